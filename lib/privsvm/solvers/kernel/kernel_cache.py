"""A least-recently-used cache of kernel rows within a memory budget."""

from __future__ import annotations

import numpy as np

from privsvm.numerics.compiled.jit import jit
from privsvm.solvers.kernel.gram_rows import subtract_whole
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import LINEAR, Kernel

__all__ = ["RowStore", "worth_storing"]

# Product cost below which computing a kernel value is as fast as reading it from memory; see `KernelRows.product_cost`.
_STORED_COST = 3.0


def worth_storing(rows: KernelRows) -> bool:
    """Tell whether kernel rows are worth caching."""
    # The linear kernel is left out: its expansions need no kernel value.
    return rows.storable and rows.product_cost >= _STORED_COST and rows.kind != LINEAR


@jit()
def _gather(stored, slots, columns, targets, out):
    """Set ``out[targets_t, i] = stored[slots_t, columns_i]``."""
    for t in range(slots.shape[0]):
        row, result = stored[slots[t]], out[targets[t]]
        for i in range(columns.shape[0]):
            result[i] = row[columns[i]]


@jit()
def _mirror(out, cached, missing):
    """Fill in missing columns of cached rows by the symmetry of the matrix."""
    for k in range(missing.shape[0]):
        column = missing[k]
        for t in range(cached.shape[0]):
            out[cached[t], column] = out[column, cached[t]]


@jit()
def _narrow(memory, n_columns, slots, kept):
    """Keep only some columns of some rows, at the beginning of the memory.

    Slots ascend.
    """
    row = np.empty(kept.shape[0], memory.dtype)
    for k in range(slots.shape[0]):
        start = slots[k] * n_columns
        for i in range(kept.shape[0]):
            row[i] = memory[start + kept[i]]
        target = k * kept.shape[0]
        for i in range(kept.shape[0]):
            memory[target + i] = row[i]


class RowStore:
    """A cache of kernel rows.

    The least recently used one is evicted where there is no room.

    Parameters
    ----------
    rows : KernelRows (n)
        The rows.
    budget : float
        Bytes for kernel values.
    memory : ndarray or None
        Memory of a former store, which must not be used any more; replaces the budget.
    """

    def __init__(self, rows: KernelRows, budget: float, memory: np.ndarray | None = None):
        self._rows, n = rows, rows.n_rows
        if memory is None:
            size = min(n * n, int(budget / rows.dtype.itemsize)) if worth_storing(rows) else 0
            memory = np.empty(size, dtype=rows.dtype)
        self._memory = memory
        self._capacity = min(n, memory.size // max(n, 1))
        self._stored = memory[: self._capacity * n].reshape(self._capacity, n)
        self._slot_of = np.full(n if self._capacity else 0, -1)
        self._row_of = np.full(self._capacity, -1)
        self._last_use = np.zeros(self._capacity, dtype=np.int64)
        self._clock = 0

    @property
    def holds_all(self) -> bool:
        """Whether all rows fit, so that none is ever computed twice."""
        return 0 < self._capacity == self._rows.n_rows

    @property
    def holds_most(self) -> bool:
        """Whether at least half of the rows fit, so that most are used again in time."""
        return 2 * self._capacity >= self._rows.n_rows

    def emptied(self, rows: KernelRows) -> RowStore:
        """Return an empty store of other rows in this one's memory."""
        return RowStore(rows, 0, self._memory)

    def narrowed(self, rows: KernelRows, kept: np.ndarray) -> RowStore:
        """Return a store of the rows `kept` (ascending), in this one's memory."""
        narrowed = self.emptied(rows)
        if not self._capacity:
            return narrowed
        new_number = np.full(self._rows.n_rows, -1)
        new_number[kept] = np.arange(kept.size)
        slots = np.flatnonzero((self._row_of >= 0) & (new_number[self._row_of] >= 0))
        _narrow(self._memory, self._rows.n_rows, slots, kept)
        narrowed._row_of[: slots.size] = new_number[self._row_of[slots]]
        narrowed._slot_of[narrowed._row_of[: slots.size]] = np.arange(slots.size)
        narrowed._last_use[: slots.size], narrowed._clock = self._last_use[slots], self._clock
        return narrowed

    def gram(self, index: np.ndarray, rows: KernelRows, buffer: np.ndarray) -> np.ndarray:
        """Return the kernel matrix of some rows, from the cache if half are cached.

        Parameters
        ----------
        index : ndarray of int (m,)
            Numbers of the rows.
        rows : KernelRows (m)
            These rows.
        buffer : ndarray
            Memory for the result; see `KernelRows.gram`.

        Returns
        -------
        ndarray (m, m)
            A view of `buffer`.
        """
        slots = self._slot_of[index] if self._capacity else np.empty(0, dtype=np.int64)
        cached = np.flatnonzero(slots >= 0)
        if 2 * cached.size < index.size:
            return rows.gram(buffer)
        out = buffer[: index.size**2].reshape(index.size, index.size)
        _gather(self._stored, slots[cached], index, cached, out)
        missing = np.flatnonzero(slots < 0)
        if missing.size:
            rows.fill(out, missing, missing)
            _mirror(out, cached, missing)
        return out

    def subtract_expansion(self, values: np.ndarray, index: np.ndarray, coef: np.ndarray) -> None:
        """Subtract an expansion over some of the rows themselves.

        See `KernelRows.subtract_expansion`.

        Parameters
        ----------
        values : ndarray (n,) of float64
            Changed in place.
        index : ndarray of int (m,)
            Numbers of the rows.
        coef : ndarray (m,)
            Their coefficients.
        """
        if self._capacity:
            self._store(index)
            slots = self._slot_of[index]
            cached = slots >= 0
            subtract_whole(values, self._stored, slots[cached], coef[cached])
            index, coef = index[~cached], coef[~cached]
        if index.size:
            self._rows.subtract_expansion(values, self._rows.take(index), coef)

    def _store(self, index: np.ndarray) -> None:
        """Compute and cache the missing ones of these rows, as many as fit."""
        self._clock += 1
        slots = self._slot_of[index]
        self._last_use[slots[slots >= 0]] = self._clock
        missing = index[slots < 0]
        room = np.flatnonzero(self._last_use < self._clock)
        if room.size > missing.size:
            room = room[np.argsort(self._last_use[room], kind="stable")[: missing.size]]
        missing, owners = missing[: room.size], self._row_of[room]
        self._slot_of[owners[owners >= 0]] = -1
        self._row_of[room], self._slot_of[missing], self._last_use[room] = missing, room, self._clock
        if missing.size:
            self._rows.fill(self._stored, room, missing)


def warm_up() -> None:
    """Compile what this module runs, for rows in single precision and in double."""
    single = KernelRows(np.ones((8, 8)) + np.eye(8), Kernel("rbf"))
    for rows in (single, single.in_double()):
        rows.product_cost = _STORED_COST
        store = RowStore(rows, 1e3)
        store.subtract_expansion(np.zeros(8), np.arange(6), np.ones(6))
        for kind in (np.float32, np.float64):
            store.gram(np.arange(8), rows, np.empty(64, kind))
        kept = np.arange(4)
        store.narrowed(rows.take(kept), kept)
