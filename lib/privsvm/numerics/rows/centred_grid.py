"""Sparse unit rows minus a vector on the grid, stored sparse, dense when used.

A row that was zero in most places becomes dense when a vector is subtracted. What such a place becomes depends on the
vector and on the few numbers that the row was multiplied by. They are found once; after that a dense row costs a few
multiplications a number. The bits equal dense rows' bits: the same operations on the same numbers, in the same order.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.rows.unit_grid import CELLS, unit_cells


@jit()
def _set_dense(data, indices, indptr, centre, factors, n_columns, out):
    """Set dense rows after divisions of the first ``n_columns[k]`` columns.

    The columns that divisions append are set already.
    """
    shorter = 1.0 / CELLS
    for i in range(out.shape[0]):
        row = out[i]
        once, again, factor = factors[0, i, 0], factors[0, i, 1], factors[0, i, 2]
        # Negative zero: adding 0 turns -0 into 0, as in whole numbers. 1 / CELLS is a power of two, so that multiplying
        # equals dividing.
        for j in range(centre.shape[0]):
            row[j] = np.trunc((0.0 - centre[j]) * once * again * factor) + 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            row[j] = np.trunc((data[e] * shorter - centre[j]) * once * again * factor) + 0.0
        for k in range(1, factors.shape[0]):
            once, again, factor = factors[k, i, 0], factors[k, i, 1], factors[k, i, 2]
            for j in range(n_columns[k]):
                row[j] = np.trunc(row[j] * shorter * once * again * factor) + 0.0


@dataclasses.dataclass(frozen=True)
class CentredCells:
    """Rows divided by their norms after a vector was subtracted, in 2^-20.

    `cells` (n, d) are the rows before, as whole numbers of 2^-20 in CSR form, and `centre` (d,) the vector. `factors`
    (n, 3) multiplied a row, one array a division, and `columns` (n,) or None were appended after each division.
    """

    cells: Any
    centre: np.ndarray
    factors: tuple[np.ndarray, ...]
    columns: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, cells: Any, centre: np.ndarray) -> CentredCells:
        """Subtract a finite vector (d,) from sparse cells (n, d), and normalise."""
        return cls(cells, centre, (unit_cells(cells.toarray() / CELLS - centre)[3],), (None,))

    def unit(self, constant: float = 0.0) -> tuple[CentredCells, np.ndarray, np.ndarray]:
        """Divide by norms once more, as `unit_grid.unit_cells` does, in 2^-20."""
        _, constants, norms, factors = unit_cells(self.toarray() / CELLS, constant)
        divided = dataclasses.replace(self, factors=(*self.factors, factors), columns=(*self.columns, None))
        return divided, constants, norms

    def with_column(self, column: np.ndarray) -> CentredCells:
        """Append a column of cells (n,) after the last division."""
        return dataclasses.replace(self, columns=(*self.columns[:-1], column))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.cells.shape[0], self.cells.shape[1] + sum(column is not None for column in self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of what belongs to the rows."""
        sparse = (self.cells.data, self.cells.indices, self.cells.indptr)
        return sum(array.nbytes for array in (*sparse, *self.factors, *self.columns) if array is not None)

    def __getitem__(self, rows: np.ndarray) -> CentredCells:
        """Rows by their numbers."""
        return dataclasses.replace(
            self,
            cells=self.cells[rows],
            factors=tuple(array[rows] for array in self.factors),
            columns=tuple(None if array is None else array[rows] for array in self.columns),
        )

    def toarray(self) -> np.ndarray:
        """Dense rows, with the columns that were appended."""
        cells, out = self.cells, np.empty(self.shape)
        n_columns = [cells.shape[1]]
        for column in self.columns:
            if column is not None:
                out[:, n_columns[-1]] = column
            n_columns.append(n_columns[-1] + (column is not None))
        _set_dense(
            cells.data, cells.indices, cells.indptr, self.centre, np.stack(self.factors), np.array(n_columns), out
        )
        return out
