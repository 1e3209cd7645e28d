"""Attacks on random kernels over vertically partitioned data: rows recovered from known ones, columns recognised.

An entity with the columns A (m rows, n features) draws a private B (mbar, n) and publishes the block ``A B'`` (linear)
or ``exp(-gamma |a_i - b_r|^2)`` (gaussian): Mangasarian, Wild and Fung 2007. Both attacks rest on one fact: B mixes the
features, and the rows stay separate. So the published columns span the columns of A when mbar is large enough, and an
attacker who knows some rows of A learns the mixing from them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

# An entry counts as recovered when it is off by no more than this, in units of its column's spread.
_RECOVERED = 1e-8

# Directions in which the known rows vary less than this, against the direction of most variation, are taken as
# not known: rounding of the block would speak there.
_RELATIVE_CUTOFF = 1e-11

_PERMUTATIONS = 20


@dataclasses.dataclass(frozen=True)
class RecoveryCurve:
    """Recovery of an entity's columns by the number of known rows.

    `max_error` and `rms_error` are the largest and root mean square error over the entries of all unknown rows, in
    standard deviations of each column; medians over the draws of the known rows. `recovered_share` is the share of the
    unknown rows of which every entry is within 1e-8, a mean over the draws, and `recovered_at` the smallest of `known`
    at which it is 1 in every draw.

    `rows_needed` known rows in general position determine all others: n features (linear), n + 1 (gaussian). `possible`
    says whether the block has as many columns. `error_at_rows_needed` is the largest error on the readable unknown rows
    with just that many known rows, chosen for being in general position, which the block shows; None where no unknown
    row is readable. `unreadable_rows` of a gaussian block cannot be determined because too many of their entries are 0
    in float64.
    """

    known: list[int]
    max_error: list[float]
    rms_error: list[float]
    recovered_share: list[float]
    recovered_at: int | None
    rows_needed: int
    possible: bool
    error_at_rows_needed: float | None
    unreadable_rows: int


def recovery_curve(
    block: np.ndarray,
    columns: np.ndarray,
    kernel: str,
    gamma: float | None = None,
    counts: Sequence[int] | None = None,
    draws: int = 5,
    rng: np.random.Generator | int | None = None,
) -> RecoveryCurve:
    """Measure how well the other rows follow from the block and some known rows, by how many these are.

    `block` (m, mbar) is the publication of an entity with `columns` (m, n), in the units in which it computed them. The
    kernel is "linear" or "gaussian", of public width gamma: ``exp(-gamma |a - b|^2)``. `counts` are numbers of known
    rows from 1 to m - 1; by default up to about 20 of them to four times the rows needed. Known rows are drawn `draws`
    times, uniformly among all rows: the attacker takes what he happens to know, also where equal or dependent rows tell
    him less. Within one draw more rows contain the fewer. Raises ValueError for other arguments.

    Linear: the columns of A are combinations of an orthonormal basis of the block's columns, and the known rows give
    the coefficients. Gaussian: ``-log(block) / gamma`` is ``|a|^2 + |b|^2 - 2 a.b``; without its row means and column
    means it is a linear block of the centred A, so a constant joins the basis and one more row is needed. Entries
    that are 0 or denormal are left out. The answer is exact up to rounding when the known rows are in general position,
    they and mbar are at least n (linear) or n + 1 (gaussian), and the row has that many entries above 2.2e-308.
    Otherwise it is the minimum-norm least-squares answer.

    The error is about 1e-16 times the size of the block's entries (gaussian: of their logarithms over gamma, at least
    1 / gamma), and grows as the known rows, or the columns of the block, come close to linear dependence. Measured on
    z-scored WDBC with just as many known rows as needed, drawn at random, largest error in 200 to 600 draws: 5e-11 for
    3 or 6 features, mbar = 56 and gamma from 0.01; 3e-9 for 30 features; 2e-7 for 30 features at gamma = 1e-6; 1e-6
    for 30 features and mbar = 31, gaussian. The median is about a hundredth of each, or less.
    """
    block, gamma = _check_block(block, kernel, gamma)
    columns = _check_columns(columns, block)
    m, features = columns.shape
    needed = features + (gamma is not None)
    if counts is None:
        # All that matter around the rows needed, some below, some above.
        below = np.linspace(1, needed, min(needed, 14)).round().astype(int).tolist()
        above = [needed - 1, needed + 1, needed + 2, needed * 3 // 2, 2 * needed, 4 * needed]
        counts = sorted({count for count in [*below, *above] if 1 <= count <= m - 1})
    known_counts = [int(count) for count in counts]
    if not known_counts or min(known_counts) < 1 or max(known_counts) > m - 1:
        raise ValueError(f"counts={known_counts}: numbers of known rows must be from 1 to {m - 1}")
    if draws < 1:
        raise ValueError(f"draws={draws}: must be at least 1")
    rng = np.random.default_rng(rng)
    spread = columns.std(axis=0)
    spread[spread == 0] = 1.0
    basis, readable = _basis(block, gamma, features)
    largest, mean_square, share = np.empty((3, draws, len(known_counts)))
    for draw in range(draws):
        order = rng.permutation(m)
        for position, count in enumerate(known_counts):
            known_indices = order[:count]
            error = (
                np.abs(_extend_basis(basis, readable, known_indices, columns[known_indices]) - columns)[order[count:]]
                / spread
            )
            largest[draw, position] = error.max()
            mean_square[draw, position] = np.mean(error**2)
            share[draw, position] = np.mean(error.max(axis=1) <= _RECOVERED)
    # The rows that span most, as far as they can be read.
    order = scipy.linalg.qr((basis * readable[:, None]).T, mode="r", pivoting=True)[1]
    chosen = order[: min(needed, m - 1)]
    others = np.setdiff1d(np.flatnonzero(readable), chosen)
    error = np.abs(_extend_basis(basis, readable, chosen, columns[chosen]) - columns)[others] / spread
    exact = [count for count, least in zip(known_counts, share.min(axis=0), strict=True) if least == 1.0]
    return RecoveryCurve(
        known=known_counts,
        max_error=np.median(largest, axis=0).tolist(),
        rms_error=np.sqrt(np.median(mean_square, axis=0)).tolist(),
        recovered_share=share.mean(axis=0).tolist(),
        recovered_at=min(exact, default=None),
        rows_needed=needed,
        possible=block.shape[1] >= needed,
        error_at_rows_needed=float(error.max()) if error.size else None,
        unreadable_rows=int(m - readable.sum()),
    )


def audit_entity(
    block: np.ndarray,
    columns: np.ndarray,
    kernel: str,
    gamma: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> dict[str, Any]:
    """Attack one entity's block in both ways; see `recovery_curve` for the arguments.

    The guess at a whole column is tested without any known row: the part of it outside the span of the block's columns
    is rounding error alone (1e-13, or more where gamma is tiny) for the entity's columns and any linear function of
    them, and for no other guess, if the block has columns enough.

    Returns, for JSON, ``features``, their number; ``rows_needed``, ``possible``, ``error_at_rows_needed``,
    ``recovered_at``, ``unreadable_rows`` and, within ``curve``, ``known``, ``max_error``, ``rms_error``,
    ``recovered_share``, as in `RecoveryCurve`; within ``membership``, ``true_column_residual``, the largest share of
    the norm outside the span among the entity's columns, and ``random_residual``, the smallest among 20 random
    permutations of each. Constant columns are no guesses; both are None where there is no other.
    """
    rng = np.random.default_rng(rng)
    curve = recovery_curve(block, columns, kernel, gamma, rng=rng)
    block, gamma = _check_block(block, kernel, gamma)
    columns = _check_columns(columns, block)
    span, readable = _span(block, gamma)
    true = _residuals(span, columns[readable])
    permuted = [_residuals(span, rng.permutation(columns)[readable]) for _ in range(_PERMUTATIONS)]
    tested = ~np.isnan(true)
    found = dataclasses.asdict(curve)
    return {
        "features": columns.shape[1],
        "curve": {name: found.pop(name) for name in ("known", "max_error", "rms_error", "recovered_share")},
        **found,
        "membership": {
            "true_column_residual": float(true[tested].max()) if tested.any() else None,
            "random_residual": float(np.nanmin(permuted)) if tested.any() else None,
        },
    }


def _check_block(block: np.ndarray, kernel: str, gamma: float | None) -> tuple[np.ndarray, float | None]:
    """Return the block in float64, and gamma, which is None for linear blocks only."""
    if kernel not in ("linear", "gaussian"):
        raise ValueError(f"kernel={kernel!r}: must be 'linear' or 'gaussian'")
    if kernel == "gaussian" and (gamma is None or not 0 < gamma < math.inf):
        raise ValueError(f"gamma={gamma}: a gaussian block needs its width, a number above 0")
    block = np.asarray(block, dtype=np.float64)
    if block.ndim != 2 or 0 in block.shape:
        raise ValueError(f"block of shape {block.shape}: must be (rows, mbar)")
    if not np.isfinite(block).all():
        raise ValueError(f"block={block[~np.isfinite(block)][0]} in an entry: must be finite")
    if kernel == "linear":
        return block, None
    if block.min() < 0:
        raise ValueError(f"block={block.min()} in an entry: gaussian kernels are not negative")
    return block, gamma


def _check_columns(columns: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return the columns in float64."""
    columns = np.asarray(columns, dtype=np.float64)
    if columns.ndim != 2 or len(columns) != len(block) or columns.shape[1] == 0:
        raise ValueError(f"columns of shape {columns.shape}: must be ({len(block)}, features), as the block has rows")
    if len(columns) < 2:
        raise ValueError(f"columns of shape {columns.shape}: one known row and one unknown row are the least")
    if not np.isfinite(columns).all():
        raise ValueError(f"columns={columns[~np.isfinite(columns)][0]} in an entry: must be finite")
    return columns


def _basis(block: np.ndarray, gamma: float | None, features: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Vectors that span the entity's columns, one entry a row, and which rows they are right for.

    Orthonormal for a linear block; for a gaussian one the first is constant, and all are orthonormal if no entry is
    unreadable. There are no more than `features` (and the constant one).
    """
    m = len(block)
    if gamma is None:
        _, values, directions = np.linalg.svd(block, full_matrices=False)
        rank = min(int(np.sum(values > max(block.shape) * np.finfo(float).eps * values[0])), features or m)
        # Multiplied out instead of taken from the decomposition: small rows keep their relative accuracy.
        return block @ directions[:rank].T / values[:rank], np.ones(m, dtype=bool)

    readable = block >= np.finfo(float).tiny
    # The columns with fewest unreadable entries, so many of them that they and the rows readable in all of them
    # make the largest rectangle.
    order = np.argsort((~readable).sum(axis=0), kind="stable")
    complete = np.logical_and.accumulate(readable[:, order], axis=1).sum(axis=0)
    chosen = order[: int(np.argmax(complete * np.arange(1, order.size + 1))) + 1]
    readable = readable[:, chosen]
    full = np.asarray(readable.all(axis=1))
    constant = np.full((m, 1), 1 / math.sqrt(m))
    if not full.any():
        return constant, full
    distances = -np.log(np.where(readable, block[:, chosen], 1.0)) / gamma
    # The rounding of a kernel value is one of 1 / gamma in the squared distance, the rounding of its exponent a
    # relative one.
    noise = max(full.sum(), chosen.size) * np.finfo(float).eps
    noise *= np.linalg.norm(distances[full]) + math.sqrt(full.sum() * chosen.size) / gamma
    distances -= distances[full].mean(axis=0)
    centred = distances[full] - distances[full].mean(axis=1, keepdims=True)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    rank = min(int(np.sum(values > noise)), features or m)
    values, directions = values[:rank], directions[:rank]
    basis = np.empty((m, rank))
    basis[full] = centred @ directions.T / values
    seen_by = np.column_stack([np.ones(chosen.size), directions.T])
    determined = full.copy()
    for row in np.flatnonzero(~full):
        seen = readable[row]
        solution, _, solved, _ = np.linalg.lstsq(seen_by[seen], distances[row, seen], rcond=_RELATIVE_CUTOFF)
        basis[row] = solution[1:] / values
        determined[row] = solved == rank + 1
    return np.column_stack([constant, basis]), determined


def _extend_basis(
    basis: np.ndarray, readable: np.ndarray, known_indices: np.ndarray, known_rows: np.ndarray
) -> np.ndarray:
    """Combine the basis so that it fits the known rows, on all rows."""
    use = readable[known_indices]
    coefficients = np.linalg.lstsq(basis[known_indices[use]], known_rows[use], rcond=_RELATIVE_CUTOFF)[0]
    recovered: np.ndarray = basis @ coefficients
    recovered[known_indices] = known_rows
    return recovered


def _span(block: np.ndarray, gamma: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal basis of the entity's centred columns, as the block shows them on some rows, and which rows."""
    if gamma is None:
        return _basis(block - block.mean(axis=0), None)
    basis, readable = _basis(block, gamma)
    if not readable.any():
        return np.empty((0, 0)), readable
    return np.linalg.qr(basis[readable])[0][:, 1:], readable


def _residuals(span: np.ndarray, guesses: np.ndarray) -> np.ndarray:
    """Relative residual of each column of the guesses; NaN if nothing is left of it by centring."""
    size = np.abs(guesses).max(axis=0, initial=0.0)
    if len(guesses):
        guesses = guesses - guesses.mean(axis=0)
    norms = np.linalg.norm(guesses, axis=0)
    residual_columns = guesses - span @ (span.T @ guesses)
    norms[norms <= 1e-12 * math.sqrt(len(guesses)) * size] = np.nan
    residuals: np.ndarray = np.linalg.norm(residual_columns, axis=0) / norms
    return residuals
