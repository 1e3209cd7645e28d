import numpy as np
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.numerics.compiled.vector_code import WIDTH
from privsvm.numerics.rows.sparse_rows import score_rows, square_rows, sum_rows, zero_weights


def some_rows(seed, n, d, share):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < share)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 50), st.integers(2, 20))
@settings(max_examples=60, deadline=None)
def test_products_equal_those_of_dense_rows(seed, n, d, n_classes):
    X = some_rows(seed, n, d, 0.3)
    stored = scipy.sparse.csr_array(X)
    rows = stored.data, stored.indices.astype(np.int32), stored.indptr.astype(np.int64)
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
