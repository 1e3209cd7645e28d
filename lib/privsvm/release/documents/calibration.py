"""Calibrated probabilities and prediction sets: what follows from noisy counts of rows that did not train.

Each of these rows is in one number, by three things: how many labels the model puts before its true class, how far the
model's first label is ahead of the second, and the true class. All else is computed from the noisy numbers:
`docs/proofs/measured_accuracy.md`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.base.released import ReleasedPath
from privsvm.release.documents.intervals import NoisyCounts, estimate_share, share_is_above

# Intervals hold with 1 - ERROR, and a prediction set holds the true class in COVERAGE of all cases.
ERROR, COVERAGE = 0.05, 0.9
_NORMAL_QUANTILE = 1.96
_MOST_ROWS, _MOST_BINS = 1e9, 64


_TERMS = ("hold_back", "rows_per_unit", "number", "scale")


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeldBackCounts:
    """All noisy counts of rows that were held back, as a model's file holds them, and their consequences.

    `hold_back` is the declared share of the units, `rows_per_unit` the largest number of rows of one, and `number` the
    rows that were held back, where that is public. `counts` (r, h, c) are noisy numbers of rows by the rank of the true
    class (see `sizes_of_ranks`), bin and true class; each has discrete Laplace noise of scale b, `scale`, in rows. The
    h bins are of the distance from the first label to the second; the h - 1 `edges` between them are public. `groups`
    have noisy numbers (g, 2) of right and wrong answers by groups, for some columns.
    """

    hold_back: float
    rows_per_unit: int
    number: int | None
    scale: float
    edges: tuple[float, ...]
    counts: np.ndarray
    groups: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def scale_of_one(self) -> float:
        """Scale that one table of counts alone would need: a row is in one number of each."""
        return self.scale / (1 + len(self.groups))

    @functools.cached_property
    def right(self) -> tuple[float, ...]:
        """Noisy numbers (c) of right answers, by true class."""
        return tuple(self.consistent[0].sum(axis=0).tolist())

    @functools.cached_property
    def wrong(self) -> tuple[float, ...]:
        """Noisy numbers (c) of wrong answers, by true class."""
        return tuple(self.consistent[1:].sum(axis=(0, 1)).tolist())

    @functools.cached_property
    def accuracy(self) -> tuple[float, float, float]:
        """Estimate, and both ends of an interval that holds the accuracy with 95 %."""
        right, wrong = math.fsum(self.right), math.fsum(self.wrong)
        return estimate_share(self.noisy_counts(right, wrong, len(self.right), self.number), ERROR)

    @functools.cached_property
    def balanced_accuracy(self) -> tuple[float, float, float]:
        """The same for the mean over the classes; the classes share the error."""
        classes = [self.noisy_counts(right, wrong) for right, wrong in zip(self.right, self.wrong, strict=True)]
        estimates = [estimate_share(counts, ERROR / len(classes)) for counts in classes]
        estimate, low, high = (math.fsum(bounds) / len(estimates) for bounds in zip(*estimates, strict=True))
        return estimate, low, high

    def noisy_counts(self, right: float, wrong: float, classes: int = 1, number: int | None = None) -> NoisyCounts:
        """Put sums of right and of wrong answers, over so many classes each, together with their noise."""
        n_ranks, n_bins, _ = self.counts.shape
        return NoisyCounts(
            right=right, wrong=wrong, cells=n_bins * classes, wrong_cells=n_bins * (n_ranks - 1) * classes,
            scale=self.scale, number=number, answers_per_unit=self.rows_per_unit,
        )  # fmt: skip

    def to_card(self) -> dict[str, Any]:
        """Return the card's content."""
        return {
            **{name: getattr(self, name) for name in _TERMS},
            "right": list(self.right),
            "wrong": list(self.wrong),
            "confidence": 1.0 - ERROR,
            "accuracy": [round(value, 4) for value in self.accuracy],
            "balanced_accuracy": [round(value, 4) for value in self.balanced_accuracy],
            "calibration_error": [round(value, 4) for value in self.calibration.calibration_error],
            "coverage": [round(value, 4) for value in self.calibration.coverage],
            "set_size": round(self.calibration.set_size, 4),
        }

    @functools.cached_property
    def calibration(self) -> Calibration:
        """Calibration by these counts."""
        return Calibration(self)

    @property
    def consistent(self) -> np.ndarray:
        """The nearest counts (r, h, c) that add up to the number of rows, where that is public."""
        if self.number is None:
            return self.counts
        missing: float = (self.number - self.counts.sum()) / self.counts.size
        return self.counts + missing

    def to_json(self) -> dict[str, Any]:
        """Return the model file's content; `from_json` reads it."""
        terms = {name: getattr(self, name) for name in _TERMS}
        groups = {"groups": {name: table.tolist() for name, table in self.groups.items()}} if self.groups else {}
        return {**terms, "edges": list(self.edges), "counts": self.counts.tolist(), **groups}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], n_classes: int) -> HeldBackCounts:
        """Read counts; raise ValueError where there can be none such."""
        groups = content.get("groups", {})
        known = {*_TERMS, "edges", "counts"} | ({"groups"} if groups else set())
        if {*content} != known or not isinstance(content["edges"], list) or not isinstance(groups, dict):
            raise ValueError("held-back counts have other keys")
        edges, number, scale = content["edges"], content["number"], content["scale"]
        terms = [content["hold_back"], scale, *edges, *([] if number is None else [number])]
        possible = all(type(value) in (int, float) and 0 <= value <= _MOST_ROWS for value in terms)
        if (
            not possible
            or scale == 0
            or type(number) not in (int, type(None))
            or type(content["rows_per_unit"]) is not int
        ):
            raise ValueError("held-back counts have impossible terms")
        if len(edges) >= _MOST_BINS or edges != sorted(set(edges)):
            raise ValueError("held-back counts have other bins")
        try:
            counts = np.array(content["counts"], dtype=np.float64)
            tables = {name: np.array(table, dtype=np.float64) for name, table in groups.items()}
        except (TypeError, ValueError, OverflowError):
            raise ValueError("held-back counts are not numbers") from None
        shapes = {(n, len(edges) + 1, n_classes) for n in range(2, len(sizes_of_ranks(n_classes)) + 1)}
        if counts.shape not in shapes or not (np.abs(counts) <= _MOST_ROWS).all():
            raise ValueError("held-back counts are of other classes, or impossible")
        if any(
            table.ndim != 2 or table.shape[1] != 2 or not (np.abs(table) <= _MOST_ROWS).all()
            for table in tables.values()
        ):
            raise ValueError("held-back counts of groups are impossible")
        return cls(**{**content, "edges": tuple(edges), "counts": counts, "groups": tables})


def rank_labels(path: ReleasedPath, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rank the labels of each row by decision values (n, k) of a model.

    Returns labels (n, c), the predicted class first, then the others by falling scores; and the margin (n,), the
    distance between the first two scores.
    """
    first, rows = path.codes(scores[None])[0], np.arange(len(scores))
    columns = scores if scores.shape[1] > 1 else np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    others = columns.copy()
    others[rows, first] = np.inf
    labels = np.argsort(-others, axis=1, kind="stable")
    with np.errstate(invalid="ignore"):
        margin = columns[rows, labels[:, 0]] - columns[rows, labels[:, 1]]
    return labels, margin


def sizes_of_ranks(n_classes: int, n_ranks: int | None = None) -> np.ndarray:
    """Return how many labels are of the first rank, of the first two, and so on: 1, 2, 4, and c for all ranks."""
    n_ranks = (n_classes - 1).bit_length() + 1 if n_ranks is None else n_ranks
    return np.array([*(2**rank for rank in range(n_ranks - 1)), n_classes])


def isotonic(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Fit the nearest non-decreasing values in weighted least squares, by pooling adjacent violators.

    Weights are positive.
    """
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] >= block[0]:
            last = blocks.pop()
            weight_of_both = last[1] + block[1]
            mean = (last[0] * last[1] + block[0] * block[1]) / weight_of_both
            block = (mean, weight_of_both, last[2] + block[2])
        blocks.append(block)
    return np.repeat([block[0] for block in blocks], [block[2] for block in blocks])


class Calibration:
    """A model's probabilities and prediction sets by noisy counts.

    Two classes have a probability for each bin of the signed margin, never falling. Of several, the labels of the first
    ranks together have one that never falls with the margin; labels of one rank share it as their scores do.
    """

    def __init__(self, held_back: HeldBackCounts) -> None:
        self.held_back = held_back
        self.n_ranks, self.n_bins, self.n_classes = held_back.counts.shape
        self.sizes = sizes_of_ranks(self.n_classes, self.n_ranks)

    @functools.cached_property
    def _outcomes(self) -> tuple[np.ndarray, tuple[int, ...]]:
        """Noisy numbers (o, bins) of the outcomes whose probabilities are fitted, and how many counts each sums."""
        counts = self.held_back.consistent
        if self.n_classes == 2:
            # By signed margin: rows of class 1, then of class 0.
            outcomes = np.array([
                [*counts[1, ::-1, 1], *counts[0, :, 1]],
                [*counts[0, ::-1, 0], *counts[1, :, 0]],
            ])  # fmt: skip
            return outcomes, (1, 1)
        return counts.sum(axis=2), (self.n_classes,) * self.n_ranks

    @functools.cached_property
    def maps(self) -> np.ndarray:
        """Probability (o - 1, bins) of one of the first outcomes, up to each of them; rising along the bins."""
        outcomes = np.maximum(self._outcomes[0], 0.0)
        totals, below = outcomes.sum(axis=0), np.cumsum(outcomes, axis=0)[:-1]
        # A bin with few rows leans on the mean of all.
        prior = self.held_back.scale + 1.0
        weights = totals + prior
        means = (below.sum(axis=1) + 0.5) / (totals.sum() + 1.0)
        return np.array([
            isotonic((part + prior * mean) / weights, weights) for part, mean in zip(below, means, strict=True)
        ])  # fmt: skip

    def _bins(self, margin: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.held_back.edges, margin, side="right")

    def probabilities(self, path: ReleasedPath, scores: np.ndarray) -> np.ndarray:
        """Compute calibrated probabilities (n, c) from decision values (n, k)."""
        labels, margin = rank_labels(path, scores)
        bins = self._bins(margin)
        if self.n_classes == 2:
            positive = self.maps[0][np.where(labels[:, 0] == 1, self.n_bins + bins, self.n_bins - 1 - bins)]
            return np.column_stack([1.0 - positive, positive])
        shares = np.empty(scores.shape)
        start, below = 0, np.zeros(len(scores))
        for size, fitted in zip(self.sizes, [*self.maps, np.ones(self.n_bins)], strict=True):
            group = labels[:, start:size]
            values = np.take_along_axis(scores, group, axis=1)
            weights = np.exp(values - values.max(axis=1, keepdims=True))
            weights *= ((fitted[bins] - below) / weights.sum(axis=1))[:, None]
            np.put_along_axis(shares, group, weights, axis=1)
            start, below = size, fitted[bins]
        return shares

    def sets(self, path: ReleasedPath, scores: np.ndarray, coverage: float = COVERAGE) -> np.ndarray:
        """Compute prediction sets (n, c), True for the labels in each, from decision values (n, k)."""
        labels, margin = rank_labels(path, scores)
        size = self.sizes[self.set_ranks(coverage)][self._bins(margin)]
        members = np.zeros(labels.shape, dtype=bool)
        np.put_along_axis(members, labels, np.arange(self.n_classes) < size[:, None], axis=1)
        return members

    @functools.cached_property
    def _rules(self) -> list[np.ndarray]:
        """Last rank (h,) that sets hold in each bin, by rules from the smallest sets to all labels.

        From one rule to the next, the sets of the next bin grow; those half of all bins below are one rank larger.
        """
        bins, step = np.arange(self.n_bins), math.ceil(self.n_bins / 2)
        starts = range(self.n_bins + step * (self.n_ranks - 2) + 1)
        return [sum((bins < start - step * rank).astype(int) for rank in range(self.n_ranks - 1)) for start in starts]

    def _count_covered(self, last: np.ndarray) -> NoisyCounts:
        """Noisy numbers of rows whose set holds their class, and of the others."""
        inside = np.arange(self.n_ranks)[:, None] <= last
        totals = self.held_back.consistent.sum(axis=2)
        return NoisyCounts(
            right=float(totals[inside].sum()),
            wrong=float(totals[~inside].sum()),
            cells=int(inside.sum()) * self.n_classes,
            wrong_cells=int((~inside).sum()) * self.n_classes,
            scale=self.held_back.scale,
            number=self.held_back.number,
            answers_per_unit=self.held_back.rows_per_unit,
        )

    @property
    def _error_of_rule(self) -> float:
        """Intervals of all rules but the last hold together, so that the choice among them costs no confidence."""
        return ERROR / (len(self._rules) - 1)

    def set_ranks(self, coverage: float = COVERAGE) -> np.ndarray:
        """Choose the last rank (h,) that sets hold in each bin: the smallest whose interval lies above a coverage."""
        for last in self._rules[:-1]:
            if share_is_above(self._count_covered(last), coverage, self._error_of_rule):
                return last
        return self._rules[-1]

    @functools.cached_property
    def coverage(self) -> tuple[float, float, float]:
        """Estimate of the coverage of the sets for `COVERAGE`, and both ends of its interval."""
        last = self.set_ranks()
        if (last == self.n_ranks - 1).all():
            return 1.0, 1.0, 1.0
        return estimate_share(self._count_covered(last), self._error_of_rule)

    @functools.cached_property
    def set_size(self) -> float:
        """Estimate of the mean number of labels in a set."""
        totals = np.maximum(self.held_back.consistent.sum(axis=(0, 2)), 0.0)
        sizes = self.sizes[self.set_ranks()]
        return float(sizes @ totals / totals.sum()) if totals.sum() > 0.0 else float(sizes.max())

    @functools.cached_property
    def calibration_error(self) -> tuple[float, float, float]:
        """Expected calibration error, and both ends of its interval, which is an approximation.

        The mean over rows of the distance between the probability that they are given and the share of the rows with
        this probability for which it came true: of class 1, or of the first label of several classes. In each level of
        the map, the distance is normal around the counts' share, with the variance of sampling and of the noise.
        """
        held_back, (outcomes, cells) = self.held_back, self._outcomes
        fitted, true, false = self.maps[0], outcomes[0], outcomes[1:].sum(axis=0)
        number = max(float(outcomes.sum()) if held_back.number is None else float(held_back.number), 1.0)
        mean = variance = 0.0
        for value in np.unique(fitted):
            level = fitted == value
            hits, misses, n_bins = float(true[level].sum()), float(false[level].sum()), int(level.sum())
            total = max(hits + misses, 0.0)
            share = (value * total + 1.0) / (total + 2.0)
            centre = (value * misses - (1.0 - value) * hits) / number
            hit_cells, miss_cells = n_bins * cells[0], n_bins * sum(cells[1:])
            noise = (1.0 - value) ** 2 * hit_cells + value**2 * miss_cells
            if held_back.number is not None:
                # The noise on the sum of all counts is known.
                noise -= (value * miss_cells - (1.0 - value) * hit_cells) ** 2 / held_back.counts.size
            noise *= 2.0 * held_back.scale**2
            spread = math.sqrt(held_back.rows_per_unit * total * share * (1.0 - share) + noise) / number
            distance = _mean_distance(centre, spread)
            mean, variance = mean + distance, variance + centre**2 + spread**2 - distance**2
        reach = _NORMAL_QUANTILE * math.sqrt(max(variance, 0.0))
        return min(mean, 1.0), max(mean - reach, 0.0), min(mean + reach, 1.0)


def _mean_distance(centre: float, spread: float) -> float:
    """Mean size of a normal number."""
    if spread == 0.0:
        return abs(centre)
    ratio = centre / spread
    return spread * math.sqrt(2.0 / math.pi) * math.exp(-0.5 * ratio * ratio) + centre * math.erf(ratio / math.sqrt(2))
