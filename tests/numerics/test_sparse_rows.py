import numpy as np
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.numerics.compiled.vector_code import WIDTH
from privsvm.numerics.rows.sparse_rows import (
    compact,
    count_numbers,
    score_rows,
    square_rows,
    sum_rows,
    zero_weights,
)


def some_rows(seed, n, d, share):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < share)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 200), st.sampled_from([0.0, 0.02, 0.5, 1.0]))
@settings(max_examples=60, deadline=None)
def test_compact_equals_scipy(seed, n, d, share):
    X = some_rows(seed, n, d, share)
    # The smallest number counts, a zero with a sign does not.
    X[0, 0], X[-1, -1] = 5e-324, -0.0
    theirs = scipy.sparse.csr_array(X)
    data, indices, indptr = compact(X)
    assert np.array_equal(data, theirs.data)
    assert np.array_equal(indices, theirs.indices)
    assert np.array_equal(indptr, theirs.indptr)
    for step in (1, 3):
        assert count_numbers(X, step) == np.count_nonzero(X[::step])


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 50), st.integers(2, 20))
@settings(max_examples=60, deadline=None)
def test_products_equal_those_of_dense_rows(seed, n, d, n_classes):
    X = some_rows(seed, n, d, 0.3)
    rows = compact(X)
    alpha = np.random.default_rng(seed).normal(size=(n, n_classes))
    weights = zero_weights(d, n_classes)
    assert weights.ctypes.data % (WIDTH * weights.itemsize) == 0
    # Earlier contents are overwritten.
    weights[:] = 1.0
    sum_rows(*rows, alpha, weights)
    assert np.allclose(weights[:, :n_classes], X.T @ alpha, rtol=0, atol=1e-13 * n)
    assert not weights[:, n_classes:].any()
    scores = np.full((n, n_classes), np.nan)
    score_rows(*rows, weights, scores)
    assert np.allclose(scores, X @ weights[:, :n_classes], rtol=0, atol=1e-12 * n * d)
    assert np.allclose(square_rows(rows[0], rows[2]), np.square(X).sum(axis=1), rtol=1e-14, atol=0)
