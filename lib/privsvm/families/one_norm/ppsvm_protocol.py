"""The entities of PPSVM: the columns that each holds, its secrets, and its public blocks.

`examples/ppsvm_three_entities` sends the blocks between processes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.constraints import ANY_NUMBER, one_of
from privsvm.numerics.rows.rows import squared_distances

_KERNELS = ("linear", "gaussian")


def deal_columns(n_features: int, entities: Any, rng: np.random.Generator) -> list[np.ndarray]:
    """Say which entity holds which columns.

    A number of entities gets columns at random, as evenly as can be; lists name the columns of each entity, and every
    column belongs to one entity. Returns ascending column numbers. Raises ValueError if an entity would have no column,
    or a column not exactly one entity.
    """
    if ANY_NUMBER.accepts(entities):
        if entities < 1 or entities != int(entities):
            raise ValueError(f"entities={entities!r}: must be a whole number of at least 1, or lists of columns")
        if entities > n_features:
            raise ValueError(
                f"entities={entities!r}: an entity would have no column, since n_features = {n_features}; have fewer"
            )
        return [np.sort(column_set) for column_set in np.array_split(rng.permutation(n_features), int(entities))]
    try:
        column_sets = [np.array(column_set, dtype=np.int64, ndmin=1) for column_set in entities]
    except (TypeError, ValueError):
        raise ValueError(f"entities={entities!r}: must be a whole number, or lists of column numbers") from None
    for number, column_set in enumerate(column_sets):
        if column_set.size == 0:
            raise ValueError(f"entities={entities!r}: entity {number} has no column")
    held = np.sort(np.concatenate(column_sets)) if column_sets else np.empty(0, dtype=np.int64)
    if not np.array_equal(held, np.arange(n_features)):
        wrong = next(
            (column for column in range(n_features) if np.count_nonzero(held == column) != 1),
            held[-1] if held.size else 0,
        )
        raise ValueError(
            f"entities={entities!r}: column {wrong} is held {np.count_nonzero(held == wrong)} times; each of "
            f"0 to {n_features - 1} must have one entity"
        )
    return [np.sort(column_set) for column_set in column_sets]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entity:
    """Secrets of one entity, besides its rows.

    Mean and standard deviation (n_j,) are of its columns, over its training rows; 0 and 1 where it does not
    standardise. With the random matrix (mbar, n_j), the paper's B_j, anyone can undo the entity's blocks.
    """

    centre: np.ndarray
    spread: np.ndarray
    random_matrix: np.ndarray

    @classmethod
    def draw(cls, columns: np.ndarray, mbar: int, rng: np.random.Generator, standardize: bool = True) -> Entity:
        """Draw the secrets of an entity (Algorithms 2.1 and 3.1, step II).

        From its `columns` (n, n_j) of the training rows and the agreed number `mbar` of random rows, by its own `rng`.
        If it is to `standardize`, published columns have mean 0 and standard deviation 1; constant ones become 0.
        Raises ValueError if there is no column, or a number is not finite.
        """
        columns = _check_columns(columns)
        n_columns = columns.shape[1]
        centre, spread = np.zeros(n_columns), np.ones(n_columns)
        if standardize:
            centre, deviation = columns.mean(axis=0), columns.std(axis=0)
            # The mean of equal numbers may be off by round-off.
            varies = columns.max(axis=0) > columns.min(axis=0)
            spread = np.where(varies & (deviation > 0), deviation, 1.0)
            centre = np.where(varies, centre, columns[0])
        return cls(centre=centre, spread=spread, random_matrix=rng.standard_normal((mbar, n_columns)))

    def standardized(self, columns: np.ndarray) -> np.ndarray:
        """Columns (n, n_j) as the entity's kernel sees them."""
        columns = _check_columns(columns)
        if columns.shape[1] != self.centre.size:
            raise ValueError(f"the entity holds {self.centre.size} columns, and was given {columns.shape[1]}")
        scaled: np.ndarray = (columns - self.centre) / self.spread
        return scaled

    def publish(self, columns: np.ndarray, kernel: str, gamma: float) -> np.ndarray:
        """Make the public block of some rows (Algorithms 2.1 and 3.1, steps III and V).

        ``A_j B_j'`` or, with the agreed gamma, ``exp(-gamma ||a_i - b_r||^2)``, (n, mbar), for its columns (n, n_j) of
        training rows or of rows to predict.
        """
        rows = self.standardized(columns)
        if kernel == "linear":
            block: np.ndarray = rows @ self.random_matrix.T
            return block
        return np.exp(-gamma * squared_distances(rows, self.random_matrix))


def _check_columns(columns: Any) -> np.ndarray:
    dense: np.ndarray = columns.toarray() if hasattr(columns, "toarray") else np.asarray(columns, dtype=np.float64)
    if dense.ndim != 2 or dense.shape[1] == 0:
        raise ValueError(f"columns of shape {dense.shape}: an entity needs rows and at least one column")
    if not np.isfinite(dense).all():
        raise ValueError("the entity's columns hold NaN or infinity; fill or drop these rows, at all entities alike")
    return dense


def combine_blocks(blocks: Mapping[str, np.ndarray], kernel: str) -> np.ndarray:
    """Combine the public blocks of all entities into the public kernel (equations 2.5 and 3.8).

    It is their sum ("linear") or their product ("gaussian"), (n, mbar). Raises ValueError if there is none, their
    shapes differ, or one is not finite; it names the entity.
    """
    one_of(*_KERNELS).check("kernel", kernel)
    if not blocks:
        raise ValueError("no entity has published a block")
    first, expected = next((name, np.shape(block)) for name, block in blocks.items())
    for name, block in blocks.items():
        if np.shape(block) != expected or len(expected) != 2:
            raise ValueError(
                f"the block of {name} has shape {np.shape(block)} and that of {first} {expected}; all entities must "
                "publish the same rows, with the same mbar"
            )
        if not np.isfinite(block).all():
            raise ValueError(f"the block of {name} holds NaN or infinity")
    stacked = np.stack(list(blocks.values()))
    kernel_values: np.ndarray = stacked.sum(axis=0) if kernel == "linear" else stacked.prod(axis=0)
    return kernel_values
