"""Attacks on condensed rows: the third member of a group, linkage, membership, and rows published verbatim.

A condensed row is published in place of the rows of its group: their mean (microaggregation, CI-SVM), or a centre of
fuzzy c-means.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.metrics import pairwise_distances_chunked, roc_auc_score

_GROUP = 3
# Distances that differ by less, against the larger norm, count as equal.
_RELATIVE_TIE = 1e-9


def third_members(rows: Any, condensed_rows: Any, group_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute each row of a group of three from the other two and the published mean: ``3 b - x1 - x2``.

    `group_of` (n,) is the condensed row of each original row. Returns the rows (k,) that have two companions, and the
    largest error (k,) of their entries, in units of each column's standard deviation (of 1 where it is 0). The mean's
    definition: CI-SVM (2018), equation 13.
    """
    sizes = np.bincount(group_of, minlength=condensed_rows.shape[0])
    attacked = np.flatnonzero(sizes[group_of] == _GROUP)
    if attacked.size == 0:
        return attacked, np.zeros(0)
    order = attacked[np.argsort(group_of[attacked], kind="stable")]
    members = order.reshape(-1, _GROUP)
    means = condensed_rows[group_of[members[:, 0]]]
    spread = _spread(rows)
    error = np.zeros(rows.shape[0])
    for position in range(_GROUP):
        others = rows[members[:, (position + 1) % _GROUP]] + rows[members[:, (position + 2) % _GROUP]]
        off = abs(_GROUP * means - others - rows[members[:, position]])
        if scipy.sparse.issparse(off):
            # An error in an entry of which all three members have a 0 does not arise: their mean has one too.
            error[members[:, position]] = off.multiply(1.0 / spread[None]).tocsr().max(axis=1).toarray().ravel()
        else:
            error[members[:, position]] = (off / spread).max(axis=1, initial=0.0)
    return attacked, error[attacked]


def nearest_condensed(rows: Any, condensed_rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest condensed row of every row, and its distance.

    The first, if several are equally near. Rows (n, d) and (M, d) may be sparse; both results are (n,).
    """

    def closest(distances: np.ndarray, _start: int) -> Any:
        # Round-off must not decide.
        least = distances.min(axis=1, keepdims=True)
        return np.argmax(distances <= least * (1.0 + _RELATIVE_TIE), axis=1)

    nearest = np.concatenate(list(pairwise_distances_chunked(rows, condensed_rows, reduce_func=closest, n_jobs=1)))
    # Compute them again: those above come from products, in which small differences drown.
    off = rows - condensed_rows[nearest]
    squares = off.multiply(off).sum(axis=1) if scipy.sparse.issparse(off) else np.einsum("ij,ij->i", off, off)
    return nearest, np.sqrt(np.asarray(squares).ravel())


def tell_members(member_distance: np.ndarray, other_distance: np.ndarray) -> tuple[float, float]:
    """Measure how well the distance to the nearest condensed row tells condensed rows from others.

    The distances come from `nearest_condensed`, for the rows that were condensed and for others like them. Returns the
    area under the ROC curve of the negative distance, where 0.5 is guessing, and the share of the members that are
    nearer than all others. The AUC hides them: if a third is certain and the rest is guesswork, it is 2/3.
    """
    distance = np.concatenate([member_distance, other_distance])
    # Round-off must not decide.
    distance = np.rint(distance / (distance.max() * _RELATIVE_TIE or 1.0))
    member = np.repeat([True, False], [member_distance.size, other_distance.size])
    certain = float(np.mean(distance[member] < distance[~member].min()))
    return float(roc_auc_score(member, -distance)), certain


def distance_to_rows(condensed_rows: Any, rows: Any) -> np.ndarray:
    """Compute how far each condensed row is from the training row nearest to it.

    It is the largest difference in any entry: 0 for a row that is published verbatim.
    """
    nearest, _ = nearest_condensed(condensed_rows, rows)
    off = abs(condensed_rows - rows[nearest])
    largest: np.ndarray = (
        off.max(axis=1).toarray().ravel() if scipy.sparse.issparse(off) else off.max(axis=1, initial=0.0)
    )
    return largest


def audit_condensation(
    rows: Any,
    condensed_rows: Any,
    group_of: np.ndarray,
    other_rows: Any,
    rng: np.random.Generator,
    *,
    means: bool = True,
    max_rows: int = 5000,
) -> dict[str, Any]:
    """Attack a condensed dataset in four ways; return the results for JSON.

    `group_of` has the condensed row of each of the n original rows. `other_rows` are rows of the same kind that were
    not condensed, such as the test rows; there may be none. At most `max_rows` rows of one kind are compared with all
    of another kind, drawn by `rng`. Distances are computed on features in units of their standard deviations, since an
    attacker can choose the units.

    With `means`, condensed rows are means of groups, as CI-SVM's are. Fuzzy centres are not, and the centre of a row is
    the nearest one by definition, so that the attacks on the third member and by linkage do not apply: these four are
    then None.

    - ``groups_of_three``: their number.
    - ``third_member_error``: largest error of an entry computed from the two other members and the mean, in standard
      deviations of its column; None without such groups.
    - ``linkage_rate, guessing_rate``: share of rows whose nearest condensed row represents their own group, and the
      share by random links.
    - ``membership_auc, certain_members``: see `tell_members`; None without other rows.
    - ``nearest_row``: median over the condensed rows of `distance_to_rows`, in standard deviations.
    - ``linked_rows, other_rows``: numbers of rows that were compared.
    """
    n, d = rows.shape
    attack_results: dict[str, Any] = dict.fromkeys(
        ("groups_of_three", "third_member_error", "linkage_rate", "guessing_rate")
    )
    if means:
        _attacked, error = third_members(rows, condensed_rows, group_of)
        attack_results["groups_of_three"] = error.size // _GROUP
        attack_results["third_member_error"] = float(error.max()) if error.size else None
    linked, others = _draw(n, max_rows, rng), _draw(other_rows.shape[0], max_rows, rng)
    spread = _spread(rows)
    # Around 0 where zeros need not stay: distances are the same, and more of them is left by products.
    centre = np.zeros(d) if scipy.sparse.issparse(rows) else rows.mean(axis=0)
    rows, condensed_rows, other_rows = (
        _in_units(table, centre, spread) for table in (rows, condensed_rows, other_rows)
    )
    nearest, distance = nearest_condensed(rows[linked], condensed_rows)
    if means:
        # Distance-based record linkage (Domingo-Ferrer and Torra 2001), and the share that random links reach.
        attack_results["linkage_rate"] = float(np.mean(nearest == group_of[linked]))
        attack_results["guessing_rate"] = 1.0 / condensed_rows.shape[0]
    auc = certain = None
    if others.size:
        auc, certain = tell_members(distance, nearest_condensed(other_rows[others], condensed_rows)[1])
    published = _draw(condensed_rows.shape[0], max_rows, rng)
    return {
        **attack_results,
        "membership_auc": auc,
        "certain_members": certain,
        "nearest_row": float(np.median(distance_to_rows(condensed_rows[published], rows))),
        "linked_rows": int(linked.size),
        "other_rows": int(others.size),
    }


def _in_units(rows: Any, centre: np.ndarray, units: np.ndarray) -> Any:
    """Centre the columns of dense rows, and divide all columns."""
    if scipy.sparse.issparse(rows):
        return scipy.sparse.csr_array(rows.multiply(1.0 / units[None]))
    return (rows - centre) / units


def _draw(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """All of n rows, or so many of them."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _spread(rows: Any) -> np.ndarray:
    """Return the standard deviations of the columns; 1 where one is 0."""
    if scipy.sparse.issparse(rows):
        mean = np.asarray(rows.mean(axis=0)).ravel()
        squares = np.asarray(rows.multiply(rows).mean(axis=0)).ravel() - mean**2
        spread = np.sqrt(np.maximum(squares, 0.0))
    else:
        spread = rows.std(axis=0)
    return np.where(spread > math.sqrt(np.finfo(float).tiny), spread, 1.0)
