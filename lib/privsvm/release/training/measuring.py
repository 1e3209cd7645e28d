"""Accuracy of a released model: measured on rows that it was not trained on, with noise, and paid for.

Rows are held back by a draw that reads none of them. A row either trains or measures, so that the whole costs as much
as the dearer of the two, and not their sum: `docs/proofs/measured_accuracy.md`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from privsvm.base.released import ReleasedPath, scores_one_by_one
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise.noise_source import ROUND_UP, NoiseSource, Sensitivity
from privsvm.privacy.events import Laplace, Neighbours, OneOf, relation_factor
from privsvm.privacy.gate import Claim, Guarantee, grant
from privsvm.release.documents.calibration import HeldBackCounts, rank_labels, sizes_of_ranks
from privsvm.tables.schema import Group

LEAST_SHARE, LARGEST_SHARE = 0.001, 0.5
MEASURED = "measured on rows that were held back"

# Noise is in whole cells of a row, at least so many in its scale.
_LEAST_SCALE = 64
# Bins of margins: at most; where the number of rows is private; and rows for each, also by the noise's variance.
_MOST_BINS, _BINS_OF_UNKNOWN, _ROWS_OF_BIN, _ROWS_OF_NOISE = 8, 2, 250, 32
# Made-up rows that show how large a model's margins are, numbers in them, and between which sizes bins are made.
_MADE_UP_ROWS, _MADE_UP_NUMBERS, _LEAST_MARGIN, _LARGEST_MARGIN = 400, 4_000_000, 1e-100, 1e6


def draw_held_back(units: np.ndarray, share: float, neighbours: Neighbours, source: NoiseSource) -> np.ndarray:
    """Draw who measures (n,); everybody else trains.

    `units` (n,) has the number of the person or row that each row belongs to, from 0 on, and `share` is of units. Under
    ``replace_one`` a random set of places measures, with a public number of them; under ``add_remove`` each unit with
    the given probability, independently, since places move when a unit is taken out. Raises PrivSVMError if a public
    number of rows leaves none for either part.
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
        chosen[sample_rows(source.next_key(), 0, sampling_threshold(share)[0], 0, n_units)] = True
    held: np.ndarray = chosen[units]
    return held


def count_rows(
    path: ReleasedPath, X: np.ndarray, codes: np.ndarray, edges: Sequence[float], n_ranks: int
) -> tuple[np.ndarray, np.ndarray]:
    """Count rows that did not train a model by its answers: int64 (n_ranks, h, c); and tell which are right (n,).

    `edges` (h - 1) separate the bins of margins, and `n_ranks` is at least 2; see `sizes_of_ranks`. A row is in one of
    the numbers, whatever the other rows are.
    """
    labels, margin = rank_labels(path, scores_one_by_one(path, X))
    before = np.argmax(labels == codes[:, None], axis=1)
    rank = np.searchsorted(sizes_of_ranks(path.n_classes, n_ranks), before, side="right")
    shape = n_ranks, len(edges) + 1, path.n_classes
    cells = np.ravel_multi_index((rank, np.searchsorted(edges, margin, side="right"), codes), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape), before == 0


def count_groups(X: np.ndarray, is_right: np.ndarray, group: Group) -> np.ndarray:
    """Count right and wrong answers (g, 2) for each group of encoded rows; a row is in one of the numbers."""
    members = X[:, group.first : group.first + len(group.words)]
    if group.is_boolean:
        codes = (X[:, group.first] > 0.0).astype(np.int64)
    else:
        codes = np.where(members.any(axis=1), np.argmax(members, axis=1), len(group.words) - 1)
    return np.bincount(2 * codes + ~is_right, minlength=2 * len(group.words)).reshape(-1, 2)


def ranks_and_bins(rows: int | None, is_public: bool, scale: float, n_classes: int) -> tuple[int, int]:
    """Choose how many ranks of the true class, and how many bins of margins, are counted.

    So many that the noise on the accuracy stays below what drawing the rows does to it; at least two, and one. `rows`
    is a public number of rows to expect, None where there is none, and `is_public` says whether the number of rows that
    are counted is public itself. `scale` is the scale of the noise on each count, in rows.
    """
    n_ranks = len(sizes_of_ranks(n_classes))
    if not is_public:
        # Noise on every wrong answer counts.
        n_ranks = min(n_ranks, 3)
    counts = n_classes * (n_ranks - 1) / (n_ranks if is_public else 1)
    if rows is None:
        return (2, _BINS_OF_UNKNOWN) if n_classes == 2 else (n_ranks, 1)
    n_bins = int(min(max(rows // max(_ROWS_OF_BIN, _ROWS_OF_NOISE * counts * scale**2), 1), _MOST_BINS))
    return n_ranks, n_bins


def public_edges(path: ReleasedPath, n_features: int, n_bins: int) -> tuple[float, ...]:
    """Choose edges between bins of margins from the released model alone.

    Quantiles of a half-normal distribution with the median margin of made-up rows, all over the box of features.
    """
    from scipy.special import ndtri

    n_rows = max(1, min(_MADE_UP_ROWS, _MADE_UP_NUMBERS // max(n_features, 1)))
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, size=(n_rows, n_features))
    median = float(np.median(rank_labels(path, path.scores(rows, 0)[0])[1]))
    if not _LEAST_MARGIN < median < _LARGEST_MARGIN:
        return ()
    quantiles = ndtri(0.5 + 0.5 * np.arange(1, n_bins) / n_bins) / ndtri(0.75)
    return tuple((median * quantiles).tolist())


def _noise(epsilon: float, neighbours: Neighbours) -> tuple[int, int]:
    """Cells of a row, and scale of the noise in cells, for the epsilon of one row."""
    # In the L1 norm a row that is added moves the counts by 1, and one that is replaced by 2.
    scale = relation_factor(neighbours) / epsilon
    cells = 2 ** max(0, math.ceil(math.log2(_LEAST_SCALE / scale)))
    return cells, math.ceil(scale * cells * ROUND_UP)


@dataclasses.dataclass(frozen=True)
class HeldBack:
    """Public numbers of a measurement.

    `share` is the share of the units whose rows do not train, and `epsilon` is for one row. `rows_per_unit` is the
    largest number of rows of a unit, and `declared_rows` the public number of rows of the table; None where there is
    none. Right answers are also counted for each of the `groups`.
    """

    share: float
    epsilon: float
    neighbours: Neighbours
    rows_per_unit: int
    declared_rows: int | None = None
    groups: Sequence[Group] = ()


def measure(
    path: ReleasedPath, X: np.ndarray, codes: np.ndarray, held_back: HeldBack, source: NoiseSource
) -> HeldBackCounts:
    """Count rows that were held back, with noise that follows from public numbers; see `count_rows`.

    A row is in one number of each table, so that it moves all of them together by their number: so much more noise.
    """
    (cells, scale), tables = _noise(held_back.epsilon, held_back.neighbours), 1 + len(held_back.groups)
    scale *= tables
    number = len(codes) if held_back.neighbours == "replace_one" else None
    declared = held_back.declared_rows
    expected = number if declared is None else round(held_back.share * declared)
    n_ranks, n_bins = ranks_and_bins(expected, number is not None, scale / cells, path.n_classes)
    edges = public_edges(path, X.shape[1], n_bins)
    counts, is_right = count_rows(path, X, codes, edges, n_ranks)
    exact = [counts, *(count_groups(X, is_right, group) for group in held_back.groups)]
    stated = Sensitivity(float(tables * cells), per_row=True, grid=1.0 / cells)
    numbers = np.concatenate([table.ravel() for table in exact]) * cells
    noisy = source.add_discrete_laplace(numbers, scale, stated) / cells
    parts = np.split(noisy, np.cumsum([table.size for table in exact])[:-1])
    by_group = {group.name: part.reshape(-1, 2) for group, part in zip(held_back.groups, parts[1:], strict=True)}
    return HeldBackCounts(
        hold_back=held_back.share,
        rows_per_unit=held_back.rows_per_unit,
        number=number,
        scale=scale / cells,
        edges=edges,
        counts=parts[0].reshape(counts.shape),
        groups=by_group,
    )


def with_measurement(guarantee: Guarantee, epsilon: float) -> Guarantee:
    """Make the record of a training and a measurement on other rows, of this epsilon for one row.

    It is the training's where no theorem covers that.
    """
    if not guarantee.theorem_holds or guarantee.event is None or guarantee.neighbours is None:
        return guarantee
    assert guarantee.facts is not None
    assert guarantee.randomness is not None
    cells, scale = _noise(epsilon, guarantee.neighbours)
    claim = Claim(
        event=OneOf((guarantee.event, Laplace(scale / cells))),
        mechanism=f"{guarantee.mechanism}; discrete Laplace noise on numbers of answers, {MEASURED}",
        reference=f"{guarantee.reference}; docs/proofs/measured_accuracy.md",
        neighbours=guarantee.neighbours,
        epsilon_requested=max(guarantee.epsilon_requested, epsilon),
        delta=float(guarantee.delta or 0.0),
        sensitivity=guarantee.sensitivity,
        noise_scale=guarantee.noise_scale,
        assumptions=(
            *guarantee.assumptions,
            "those held back are drawn without looking at any row, and nobody both trains and measures",
        ),
    )
    return grant(claim, guarantee.facts, guarantee.randomness)
