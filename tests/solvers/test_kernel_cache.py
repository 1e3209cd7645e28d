"""Stored kernel rows give the sums and matrices of computed ones, whatever was dropped, kept or narrowed before."""

import numpy as np
import pytest
import scipy.sparse

from privsvm.numerics.compiled.threads import thread_pool
from privsvm.solvers.kernel.kernel_cache import RowStore
from privsvm.solvers.kernel.kernel_rows import KernelRows
from privsvm.solvers.kernel.kernels import Kernel


def made_rows(kernel, sparse, n=200, **options):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 80))
    if sparse:
        X[rng.random(X.shape) < 0.75] = 0.0
        X = scipy.sparse.csr_array(X)
    return KernelRows(X, Kernel(kernel, 0.02, 2, 1.0), dtype=np.float64, **options)


@pytest.fixture
def computed(monkeypatch):
    """How many whole rows each call computes."""
    counts = []
    fill = KernelRows.fill
    monkeypatch.setattr(
        KernelRows, "fill", lambda self, *rest: (counts.append((self.n_rows, len(rest[-1]))), fill(self, *rest))
    )
    return counts


def check(store, rows, rng, size):
    """One expansion and one kernel matrix of random rows, against those that are computed."""
    index, coef = rng.permutation(rows.n_rows)[:size], rng.normal(size=size)
    values, expected = np.zeros(rows.n_rows), np.zeros(rows.n_rows)
    store.subtract_expansion(values, index, coef)
    rows.subtract_expansion(expected, rows.take(index), coef)
    assert np.allclose(values, expected, rtol=0, atol=1e-10)
    subset = rows.take(index)
    gram = store.gram(index, subset, np.empty(size**2))
    assert np.allclose(gram, subset.gram(np.empty(size**2)), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("sparse", [False, True])
def test_with_room_for_all_every_row_is_computed_once(kernel, sparse, computed):
    rng = np.random.default_rng(2)
    rows = made_rows(kernel, sparse)
    store = RowStore(rows, 1e9)
    assert store.holds_all
    for _ in range(4):
        check(store, rows, rng, 60)
    assert 0 < sum(count for n, count in computed if n == 200) <= 200


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("room", [0, 1, 40, 100])
def test_with_little_room_sums_are_right_and_what_is_used_stays(room, sparse, computed):
    rng = np.random.default_rng(3)
    rows = made_rows("rbf", sparse)
    store = RowStore(rows, room * 200 * 8)
    assert not store.holds_all
    for size in (30, 90, 60, 30, 5):
        check(store, rows, rng, size)
    del computed[:]
    index = np.arange(50)
    for _ in range(2):
        store.subtract_expansion(np.zeros(200), index, np.ones(50))
    # Rows that are in use never make room for each other.
    assert sum(count for n, count in computed if n == 200) <= min(room, 50)


@pytest.mark.parametrize("room", [40, 100])
def test_a_narrowed_store_keeps_the_rows_and_has_room_for_more(room, computed):
    rng = np.random.default_rng(4)
    rows = made_rows("rbf", False)
    store = RowStore(rows, room * 200 * 8)
    check(store, rows, rng, 30)
    used = np.flatnonzero(store._slot_of >= 0)
    kept = np.sort(rng.permutation(200)[:100])
    subset = rows.take(kept)
    narrow = store.narrowed(subset, kept)
    del computed[:]
    positions = np.flatnonzero(np.isin(kept, used))
    values, expected = np.zeros(100), np.zeros(100)
    narrow.subtract_expansion(values, positions, np.ones(positions.size))
    subset.subtract_expansion(expected, subset.take(positions), np.ones(positions.size))
    assert positions.size > 5
    assert np.allclose(values, expected, rtol=0, atol=1e-10)
    assert not computed
    assert narrow.holds_all == (2 * room >= 100)
    for size in (20, 80, 50):
        check(narrow, subset, rng, size)
    emptied = narrow.emptied(rows)
    check(emptied, rows, rng, 50)


def test_threads_change_no_stored_bit():
    index = np.arange(0, 1500, 2)
    filled = []
    for sparse in (False, True):
        for n_threads in (1, 2, 3):
            with thread_pool(n_threads) as pool:
                rows = made_rows("rbf", sparse, n=1500, pool=pool, n_threads=n_threads)
                out = np.empty((index.size, 1500))
                rows.fill(out, np.arange(index.size), index)
                filled.append(out)
    assert np.array_equal(filled[0], filled[1])
    assert np.array_equal(filled[0], filled[2])
    assert np.array_equal(filled[3], filled[4])
    assert np.array_equal(filled[3], filled[5])
