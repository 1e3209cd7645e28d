"""Pairs of neighbouring datasets: worst cases and canaries."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from privsvm.privacy.events import NEIGHBOURS, Neighbours


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two neighbouring datasets.

    `words` say what they are, and how they differ. `first` and `second` have rows (n, d) and labels (n,).
    """

    words: str
    first: tuple[np.ndarray, np.ndarray]
    second: tuple[np.ndarray, np.ndarray]


def _check_relation(relation: Neighbours) -> None:
    if relation not in NEIGHBOURS:
        raise ValueError(f"relation={relation!r}: must be one of {', '.join(NEIGHBOURS)}")


def _with(rows: np.ndarray, labels: np.ndarray, row: np.ndarray, label: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.vstack([rows, row[None]]), np.append(labels, label)


def _around(
    rows: np.ndarray, labels: np.ndarray, row: np.ndarray, names: Sequence[Any], relation: Neighbours, what: str
) -> Iterator[Pair]:
    """Pairs that differ in one row: under its label or another, or turned into its opposite; or there and not there."""
    one, other = names[0], names[1]
    if relation == "add_remove":
        yield Pair(f"{what}, and without it", _with(rows, labels, row, one), (rows, labels))
        yield Pair(f"{what} of another class, and without it", _with(rows, labels, row, other), (rows, labels))
        return
    first = _with(rows, labels, row, one)
    yield Pair(f"{what} under two labels", first, _with(rows, labels, row, other))
    yield Pair(f"{what}, and its opposite", first, _with(rows, labels, -row, one))
    yield Pair(f"{what}, and a row of zeros", first, _with(rows, labels, np.zeros_like(row), one))


def make_pairs(
    n_classes: int, relation: Neighbours, bound: float, sizes: Sequence[float] = (1.0, 1e3), width: int = 1
) -> list[Pair]:
    """Make pairs of a few rows: one row as long as it may be, or longer, beside rows of zeros.

    Rows of zeros pull at no weight, so that all that a row can do is seen. One of each class is there in both datasets.
    The row is of the last two classes. Each of its `width` features is `bound` times one of `sizes`.
    """
    _check_relation(relation)
    rows, labels = np.zeros((n_classes, width)), np.arange(n_classes)
    pairs: list[Pair] = []
    for size in sizes:
        row = np.full(width, bound * size)
        what = f"a made-up row of norm {np.linalg.norm(row):.3g} beside {n_classes} rows of zeros"
        pairs += _around(rows, labels, row, (n_classes - 2, n_classes - 1), relation, what)
    return pairs


def make_crowded_pairs(
    relation: Neighbours, bound: float, sizes: Sequence[int] = (100, 300, 1000, 3000), width: int = 24
) -> list[Pair]:
    """Make pairs of many rows, most with one feature, which keep noise from hiding the effect of one more row.

    A crowd of the other class, half of it on either side, pulls offsets so far that the row is on the wrong side in
    every release: its gradient stays as long as its clip, turned around or not. A crowd of both classes keeps weights
    near zero, where the row pulls with all its length under either label. One crowd lies along `width` features: so
    many that a constant one has its share of their second moment, and nothing evens out the difference between the row
    and its opposite. Rows have the norm `bound`, and `sizes` of the other crowds are multiples of 4.
    """
    _check_relation(relation)
    pairs = []
    if relation == "replace_one":
        ends = bound * np.vstack([np.eye(width), -np.eye(width)])
        # A third of the rows of the largest of the other crowds.
        n_copies = math.ceil(sizes[-1] / 3 / len(ends))
        rows = np.tile(ends, (n_copies, 1))
        labels, row = np.ones(len(rows), dtype=np.int64), ends[0]
        others = f"{len(rows):,} rows of norm {bound:.3g} along {width} features"
        what = f"a made-up row beside {others}, all of the other class, and its opposite"
        pairs.append(Pair(what, _with(rows, labels, row, 0), _with(rows, labels, -row, 0)))
    row = np.full(1, bound)
    for size in sizes:
        rows, labels = np.tile([[bound], [-bound]], (size // 2, 1)), np.ones(size, dtype=np.int64)
        others = f"{size:,} rows of norm {bound:.3g} on both sides"
        what = f"a made-up row beside {others}, all of the other class"
        if relation == "add_remove":
            pairs.append(Pair(f"{what}, and without it", _with(rows, labels, row, 0), (rows, labels)))
            continue
        first = _with(rows, labels, row, 0)
        pairs.append(Pair(f"{what}, and its opposite", first, _with(rows, labels, -row, 0)))
        labels = np.tile([0, 0, 1, 1], size // 4)
        what = f"a made-up row beside {others}, of both classes alike"
        pairs.append(Pair(f"{what}, under two labels", *(_with(rows, labels, row, label) for label in (0, 1))))
    return pairs


def pairs_around(X: np.ndarray, y: np.ndarray, relation: Neighbours, seed: int, n_random: int = 4) -> list[Pair]:
    """Make pairs around given rows: far rows, rows at the limits, rows that stand out, and random ones.

    There are three rows at least, and `n_random` random ones are tried, which follow from the seed.
    """
    _check_relation(relation)
    names = np.unique(y)
    if len(names) < 2 or len(y) < 3:
        raise ValueError("y: there must be three rows and two classes at least")
    rng = np.random.default_rng([seed, len(y)])
    low, high = X.min(axis=0), X.max(axis=0)
    reach = np.maximum(np.abs(low), np.abs(high))
    reach = np.where(reach > 0, reach, 1.0)
    counts = np.array([(y == name).sum() for name in names])
    # The largest class can lose a row without disappearing.
    large = names[int(np.argmax(counts))]
    spare = int(np.flatnonzero(y == large)[0])
    kept, kept_labels = np.delete(X, spare, axis=0), np.delete(y, spare)
    rows = {
        "a row at the upper limits of the features": reach,
        "a row ten times beyond the limits of the features": 10.0 * reach,
        "a row a thousand times beyond the limits of the features": 1e3 * reach,
        "a row with one feature a thousand times beyond its limits": np.where(
            np.arange(len(reach)) == 0, 1e3 * reach, 0.0
        ),
    }
    for number in range(n_random):
        signs = rng.choice([-1.0, 1.0], size=len(reach))
        scale = 10.0 ** rng.uniform(-1.0, 2.0)
        rows[f"random row {number + 1}, of norm {np.linalg.norm(signs * scale * reach):.3g}"] = signs * scale * reach
    pairs = [
        pair
        for what, row in rows.items()
        for pair in _around(kept, kept_labels, row, list(names), relation, f"{what} beside the given ones")
    ]
    # Rows that stand out among those given: the ends of each feature's range, and the longest row.
    outliers = {int(np.argmax(np.linalg.norm(X, axis=1))), int(np.argmax(X[:, 0])), int(np.argmin(X[:, 0]))}
    for index in sorted(outliers):
        without = np.delete(X, index, axis=0), np.delete(y, index)
        if len(np.unique(without[1])) < 2:
            continue
        if relation == "add_remove":
            pairs.append(Pair(f"the given rows, and those without row {index}, which stands out", (X, y), without))
        else:
            near = X.copy()
            near[index] = np.median(X, axis=0)
            pairs.append(
                Pair(f"the given rows, and row {index}, which stands out, put in their middle", (X, y), (near, y))
            )
    return pairs


def canaries(n_canaries: int, bound: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make rows at right angles to each other, of alternating labels, and toss a coin for each.

    Returns rows (m, m) of norm `bound`, their labels, and whether each is among the training rows.
    """
    there = np.random.default_rng([seed, n_canaries]).random(n_canaries) < 0.5
    return np.eye(n_canaries) * bound, np.arange(n_canaries) % 2, there
