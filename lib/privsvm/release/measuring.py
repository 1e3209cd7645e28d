"""What a released model is worth: measured on rows that it was not trained on, with noise, and paid for.

Rows are held back by a draw that reads none of them. A row either trains or measures, so that the whole costs what the
dearer of the two costs, and not their sum: `docs/proofs/measured_accuracy.md`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.base.released import ReleasedPath, codes_one_by_one
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise.noise_source import ROUND_UP, NoiseSource, Stated
from privsvm.privacy.events import Laplace, Neighbours, OneOf, leaves, relation_factor
from privsvm.privacy.gate import Claim, grant
from privsvm.privacy.guarantee import Guarantee
from privsvm.release.intervals import NoisyCounts, share_interval

__all__ = [
    "LARGEST_SHARE",
    "LEAST_SHARE",
    "HeldBack",
    "Measurement",
    "count_answers",
    "held_back_rows",
    "measure",
    "scale_of",
    "with_measurement",
]

LEAST_SHARE, LARGEST_SHARE = 0.001, 0.5
MEASURED = "measured on rows that were held back"

# Noise is in whole cells of a row, at least so many in its scale.
_LEAST_SCALE = 64
_ERROR = 0.05


def held_back_rows(units: np.ndarray, share: float, neighbours: Neighbours, source: NoiseSource) -> np.ndarray:
    """Draw who measures; everybody else trains.

    Parameters
    ----------
    units : ndarray of int64 (n,)
        Number of the person or row that each row belongs to, from 0 on.
    share : float
        Of units, strictly between 0 and 1.
    neighbours : {"replace_one", "add_remove"}
        The relation.
    source : NoiseSource
        Of the draw alone.

    Returns
    -------
    ndarray of bool (n,)
        Under ``replace_one`` a random set of places with a public number of them; under ``add_remove`` each unit with
        the given probability, independently, since places move when a unit is taken out.

    Raises
    ------
    PrivSVMError
        If a public number of rows leaves none for either part.
    """
    from privsvm.numerics.noise.exact_draws import sample_rows, sampling_threshold

    n_units = int(units.max()) + 1 if len(units) else 0
    chosen = np.zeros(n_units, dtype=bool)
    if neighbours == "replace_one":
        number = round(share * n_units)
        if not 0 < number < n_units:
            raise PrivSVMError(f"hold_back={share:g} would hold back {number} of {n_units} rows; take another share")
        # Whatever the places are, they are public: no guarantee rests on this draw.
        chosen[source.generator().permutation(n_units)[:number]] = True
    else:
        key = np.frombuffer(source.next_key(), dtype="<u4").astype(np.uint32)
        chosen[sample_rows(key, 0, np.uint64(sampling_threshold(share)[0] - 1), 0, n_units)] = True
    held: np.ndarray = chosen[units]
    return held


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """Noisy numbers of right and wrong answers on rows that were held back, by their class.

    Attributes
    ----------
    hold_back : float
        Declared share of the units.
    rows_per_unit : int
        Rows that one of them has at most.
    number : int or None
        Rows that were held back, where that is public.
    scale : float
        Scale b of the discrete Laplace noise on each number, in rows.
    right, wrong : tuple of float (c)
        By true class, in the order of the codes.
    """

    hold_back: float
    rows_per_unit: int
    number: int | None
    scale: float
    right: tuple[float, ...]
    wrong: tuple[float, ...]

    @property
    def accuracy(self) -> tuple[float, float, float]:
        """Estimate, and both ends of an interval that holds the accuracy with 95 %."""
        total_counts = self._counts(math.fsum(self.right), math.fsum(self.wrong), len(self.right), self.number)
        return _estimate(total_counts, _ERROR)

    @property
    def balanced_accuracy(self) -> tuple[float, float, float]:
        """The same for the mean over the classes; the classes share the error."""
        classes = [self._counts(right, wrong, 1, None) for right, wrong in zip(self.right, self.wrong, strict=True)]
        estimates = [_estimate(counts, _ERROR / len(classes)) for counts in classes]
        estimate, low, high = (math.fsum(bounds) / len(estimates) for bounds in zip(*estimates, strict=True))
        return estimate, low, high

    def _counts(self, right: float, wrong: float, cells: int, number: int | None) -> NoisyCounts:
        return NoisyCounts(
            right=right, wrong=wrong, cells=cells, scale=self.scale, number=number, answers_per_unit=self.rows_per_unit
        )

    def to_json(self) -> dict[str, Any]:
        """Return what a card holds; `from_json` reads it."""
        return {
            **dataclasses.asdict(self),
            "right": list(self.right),
            "wrong": list(self.wrong),
            "confidence": 1.0 - _ERROR,
            "accuracy": [round(value, 4) for value in self.accuracy],
            "balanced_accuracy": [round(value, 4) for value in self.balanced_accuracy],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Measurement:
        """Read a measurement; raise ValueError where it does not follow from its own numbers."""
        try:
            fields = {name: content[name] for name in (field.name for field in dataclasses.fields(cls))}
            measurement = cls(**{**fields, "right": tuple(fields["right"]), "wrong": tuple(fields["wrong"])})
            same = measurement.to_json() == dict(content)
        except (KeyError, TypeError, ZeroDivisionError, OverflowError) as error:
            raise ValueError(f"{error}") from None
        if not same:
            raise ValueError("its intervals do not follow from its counts")
        return measurement

    @property
    def words(self) -> str:
        """For people."""
        shares = [
            f"{name} {estimate:.2f} (95 % interval {low:.2f} to {high:.2f})"
            for name, (estimate, low, high) in (
                ("accuracy", self.accuracy),
                ("balanced accuracy", self.balanced_accuracy),
            )
        ]
        whom = "rows" if self.rows_per_unit == 1 else "persons"
        return (
            f"{', '.join(shares)}; {MEASURED}, {100 * self.hold_back:.3g} % of the {whom} drawn without looking at "
            "them, which did not train. The intervals cover the noise on the counts and the drawing of new "
            f"{whom} like these"
        )


def _estimate(counts: NoisyCounts, error: float) -> tuple[float, float, float]:
    """Estimate of a share, inside its interval."""
    low, high = share_interval(counts, error)
    if counts.number is None:
        share = counts.right / max(counts.right + counts.wrong, 1.0)
    else:
        # Both counts tell of it where their sum is known.
        share = 0.5 * (counts.right + counts.number - counts.wrong) / counts.number
    return min(max(share, low), high), low, high


def count_answers(path: ReleasedPath, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Count right and wrong answers by true class.

    Parameters
    ----------
    path : ReleasedPath
        One model.
    X, codes : ndarray (n, d), (n,)
        Rows that did not train it.

    Returns
    -------
    ndarray of int64 (2, c)
        Right, then wrong. A row is in one of the 2 c numbers, whatever the other rows are.
    """
    wrong, n_classes = (codes_one_by_one(path, X) != codes).astype(np.int64), path.n_classes
    return np.bincount(wrong * n_classes + codes, minlength=2 * n_classes).reshape(2, n_classes)


def _noise(epsilon: float, neighbours: Neighbours) -> tuple[int, int]:
    """Cells of a row, and scale of the noise in cells, for the epsilon of one row."""
    # In the L1 norm a row that is added moves the counts by 1, and one that is replaced by 2.
    scale = relation_factor(neighbours) / epsilon
    cells = 2 ** max(0, math.ceil(math.log2(_LEAST_SCALE / scale)))
    return cells, math.ceil(scale * cells * ROUND_UP)


@dataclasses.dataclass(frozen=True)
class HeldBack:
    """What is public of a measurement.

    Attributes
    ----------
    share : float
        Of the units, whose rows do not train.
    epsilon : float
        For one row.
    neighbours : {"replace_one", "add_remove"}
        The relation.
    rows_per_unit : int
        Rows that a unit has at most.
    """

    share: float
    epsilon: float
    neighbours: Neighbours
    rows_per_unit: int


def measure(
    path: ReleasedPath, X: np.ndarray, codes: np.ndarray, held_back: HeldBack, source: NoiseSource
) -> Measurement:
    """Measure a model on rows that were held back.

    Parameters
    ----------
    path, X, codes
        See `count_answers`.
    held_back : HeldBack
        What the noise follows from.
    source : NoiseSource
        Of the noise.
    """
    cells, scale = _noise(held_back.epsilon, held_back.neighbours)
    counts = count_answers(path, X, codes) * cells
    noisy = source.add_discrete_laplace(counts, scale, Stated(float(cells), per_row=True, grid=1.0 / cells)) / cells
    return Measurement(
        hold_back=held_back.share,
        rows_per_unit=held_back.rows_per_unit,
        number=len(codes) if held_back.neighbours == "replace_one" else None,
        scale=scale / cells,
        right=tuple(noisy[0].tolist()),
        wrong=tuple(noisy[1].tolist()),
    )


def with_measurement(guarantee: Guarantee, epsilon: float) -> Guarantee:
    """Make the record of a training and a measurement on other rows.

    Parameters
    ----------
    guarantee : Guarantee
        Of the training.
    epsilon : float
        Of the measurement, for one row.

    Returns
    -------
    Guarantee
        As the training's where no theorem covers that.
    """
    if not guarantee.theorem_holds or guarantee.event is None or guarantee.neighbours is None:
        return guarantee
    assert guarantee.facts is not None
    assert guarantee.randomness is not None
    cells, scale = _noise(epsilon, guarantee.neighbours)
    claim = Claim(
        event=OneOf((guarantee.event, Laplace(scale / cells))),
        mechanism=f"{guarantee.mechanism}; discrete Laplace noise on numbers of right and wrong answers, {MEASURED}",
        reference=f"{guarantee.reference}; docs/proofs/measured_accuracy.md",
        neighbours=guarantee.neighbours,
        epsilon_requested=max(guarantee.epsilon_requested, epsilon),
        delta=float(guarantee.delta or 0.0),
        sensitivity=guarantee.sensitivity,
        noise_scale=guarantee.noise_scale,
        assumptions=(
            *guarantee.assumptions,
            "who measures is drawn without looking at any row, and nobody both trains and measures",
        ),
    )
    return grant(claim, guarantee.facts, guarantee.randomness)


def scale_of(guarantee: Guarantee) -> float | None:
    """Return the scale of the noise of a measurement that a record covers; None where it covers none."""
    event_counts = leaves(guarantee.event) if guarantee.event is not None else []
    if (
        len(event_counts) == 1
        and isinstance(event_counts[0][0], OneOf)
        and isinstance(event_counts[0][0].events[-1], Laplace)
    ):
        return event_counts[0][0].events[-1].noise_multiplier
    return None
