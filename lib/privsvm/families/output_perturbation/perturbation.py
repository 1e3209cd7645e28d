"""Output perturbation: shared by methods that add noise to the solution of a strongly convex problem.

The objective ``1/2 ||w||^2 + C sum_i loss_i`` is 1-strongly convex. If one row's subgradient has norm at most G, its
solution moves by at most G when a row is added or removed, and by 2 G when one is replaced. For the hinge loss
``max(0, 1 - y w . x)`` and rows of norm at most R, ``G = C R``: one row with two labels attains it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privsvm.errors import nearest_name
from privsvm.numerics.rows.row_blocks import RowBlocks, RowsByBlock, map_rows
from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.privacy.events import Neighbours
from privsvm.privacy.gate import ONE_MODEL
from privsvm.privacy.mechanisms import NOISE_ASSUMPTION
from privsvm.solvers.linear.certificate import growth
from privsvm.solvers.linear.hinge import solve_hinge

# In units of C^2 R^2: the default target of a solve costs about 1 % of extra noise, and smaller ones than the second
# nothing less.
_GAP_SHARE, _SMALLEST_GAP_SHARE = 2e-4, 1e-10

# Sums and roots in a sensitivity are off by a few round-offs, which must not lower it.
_ROUND_UP = 1.0 + 2.0**-49

# Range of C R^2 within which the solver's arithmetic is safe.
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-12, 1e12

# Assumptions that the sound methods share.
REFUSED_DATA = (
    "rows are finite, of the public number of features, and fit into memory, and labels lie in the public class set: "
    "others are refused"
)
# The last ones: time, several models and bits.
EVERY_RELEASE = (
    "how long training takes, and how many passes the solver makes, is outside the guarantee",
    ONE_MODEL,
    NOISE_ASSUMPTION,
)


def solution_sensitivity(row_bound: float, neighbours: Neighbours, gap: float = 0.0) -> float:
    """Bound how far the solution moves between neighbouring datasets, in the L2 norm.

    Twice `row_bound`, the largest norm of one row's subgradient, or once, plus ``2 sqrt(gap)``; rounded up. `gap` is
    the square of a public distance: each of the two solutions lies within ``sqrt(gap)`` of its optimum.
    """
    rows = {"replace_one": 2.0, "add_remove": 1.0}
    if neighbours not in rows:
        raise ValueError(f"neighbours={neighbours!r}: {nearest_name(neighbours, rows)}")
    return (rows[neighbours] * row_bound + 2.0 * math.sqrt(gap)) * _ROUND_UP


def check_scale(C: float, data_norm: float) -> float:
    """Return ``C R^2``, the most that a row counts; raise ValueError if float64 cannot certify a solution for it."""
    scale = C * data_norm**2
    if not _SMALLEST_SCALE <= scale <= _LARGEST_SCALE:
        raise ValueError(
            f"C={C!r}, data_norm={data_norm!r}: C * data_norm^2 must lie between {_SMALLEST_SCALE:g} and "
            f"{_LARGEST_SCALE:g} for a solution that float64 can certify"
        )
    return scale


def public_gap(gap: float | None, C: float, data_norm: float) -> float:
    """Choose the public target of a solve: the square of the distance to the optimum that it certifies.

    None means ``2e-4 C^2 R^2``, for the bound R on a row's norm. Raises ValueError if `gap` is below ``1e-10 C^2 R^2``,
    or ``C R^2`` out of range: public numbers all.
    """
    unit = check_scale(C, data_norm) * C
    if gap is None:
        return _GAP_SHARE * unit
    if gap < _SMALLEST_GAP_SHARE * unit:
        raise ValueError(
            f"gap={gap!r}: must be at least {_SMALLEST_GAP_SHARE:g} * C^2 * data_norm^2, here "
            f"{_SMALLEST_GAP_SHARE * unit:.1e}; or None"
        )
    return float(gap)


def count_covered_rows(longest: float, C: float, data_norm: float) -> int:
    """Compute for how many rows n no weights are longer than `longest`: a public number, a power of ten.

    The optimum is a sum of rows with dual variables of norm at most ``sqrt(2) C``; and, since its objective is at most
    ``n C``, the objective of zeros, it is no longer than ``sqrt(2 n C)``.
    """
    most = max(longest / (math.sqrt(2.0) * C * data_norm), longest * (longest / (2.0 * C)), 1.0)
    return int(10 ** math.floor(math.log10(min(most, 1e18))))


def count_rounded_rows(gap: float, n_classes: int, C: float, data_norm: float) -> int:
    """Compute for how many rows float64 holds the weights of an exact ascent within ``sqrt(gap) / 2``.

    Rounding, and a method's use of them, moves them by ``(c + 4) 2^-53`` of their length; half of that is left to the
    distance of the weights to the optimum.
    """
    return count_covered_rows(2.0**51 * math.sqrt(gap) / (n_classes + 4), C, data_norm)


def check_rows(n_rows: int, most: int) -> None:
    """Raise ValueError for a data set of more rows than the proof covers, a public number that the record states."""
    if n_rows > most:
        raise ValueError(
            f"X has {n_rows} rows: for these parameters a solution is certified for at most {most:.0e}; use a larger "
            "C, gap or tol"
        )


def clip_rows(X: Any, norm: float) -> Any:
    """Clip rows to a norm on a public grid; rows of a source when they are read."""
    if isinstance(X, RowBlocks):
        return map_rows(RowsByBlock.of(X), grid_rows, norm)
    return grid_rows(X, norm)


def clipping_text(norm: float) -> str:
    """Say in a record what bounds the norm of rows."""
    return f"rows have norm at most {norm:g}: each is clipped and truncated to a public grid by itself"


def certificate_text(most: int) -> str:
    """Say in a record for which data sets solutions are certified."""
    return f"for every data set of at most {most:.0e} rows, others are refused"


def one_vs_rest_signs(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Make the signs (k, n) of the binary problems: one problem for two classes, otherwise one for each class."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[None, :]
    return np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)


def solve_one_vs_rest(
    X: Any, codes: np.ndarray, n_classes: int, C: float, gap: float, centred: bool = False
) -> np.ndarray:
    """Solve the binary hinge problems, each to a distance of ``sqrt(gap)``, for their weights (k, d).

    See `one_vs_rest_signs`. If `centred`, the mean of the vectors is subtracted, and they are so much nearer to their
    optima that its round-off makes no difference.
    """
    # Each number of a mean of c is off by c + 1 round-offs of the mean size, and its difference by one more.
    reserve = growth(n_classes + 3) if centred else 0.0
    weights = np.stack(
        [solve_hinge(X, signs, C, gap, reserve=reserve).coef for signs in one_vs_rest_signs(codes, n_classes)]
    )
    return weights - weights.mean(axis=0) if centred else weights
