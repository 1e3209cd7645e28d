import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.solvers.kernel.kernel_rows import KernelRows, _rows_at_once, kernel_expansion
from privsvm.solvers.kernel.kernels import KERNELS, Kernel, kernel_matrix

PARAMETERS = {"gamma": 0.3, "degree": 3, "coef0": 0.5}


def rows_like(kind, n, d, rng):
    X = rng.normal(size=(n, d))
    if kind == "dense":
        return X + 0.5
    X[rng.random(size=X.shape) < 0.9] = 0.0
    return scipy.sparse.csr_array(X) if kind == "sparse" else X


def dense(X):
    return X.toarray() if scipy.sparse.issparse(X) else X


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", ["dense", "sparse", "dense with zeros"])
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 2e-4), (np.float64, 1e-10)])
def test_products_are_those_of_the_kernel_matrix(kernel, kind, dtype, error):
    rng = np.random.default_rng(0)
    X = rows_like(kind, 700, 30, rng)
    rows = KernelRows(X, Kernel(kernel, **PARAMETERS), dtype=dtype)
    index = rng.permutation(700)[:600]
    coef = rng.normal(size=600)
    exact = kernel_matrix(dense(X), dense(X), Kernel(kernel, **PARAMETERS))
    size = np.abs(exact).max()
    values = rng.normal(size=700)
    expected = values - exact[:, index] @ coef
    rows.subtract_expansion(values, rows.take(index), coef)
    assert np.allclose(values, expected, rtol=0, atol=600 * size * error / 20)
    gram = rows.take(index[:90]).gram(np.empty(8100, dtype=dtype))
    assert np.allclose(gram, exact[np.ix_(index[:90], index[:90])], rtol=0, atol=size * error)
    assert np.array_equal(gram, gram.T) or kind != "dense"
    assert np.allclose(rows.diagonal(), np.diag(exact), rtol=0, atol=size * error)


@pytest.mark.parametrize("n_features", [15, 16, 30, 31, 61, 62, 130])
def test_expansions_are_the_same_however_many_rows_are_taken_at_a_time(n_features):
    """Few rows at a time where there are few features, and all features where there are many."""
    rng = np.random.default_rng(n_features)
    X, coef = rng.normal(size=(700, n_features)) / np.sqrt(n_features), rng.normal(size=600)
    rows, values = KernelRows(X, Kernel("rbf", 0.5)), np.zeros(700)
    rows.subtract_expansion(values, rows.take(np.arange(600)), coef)
    expected = -np.exp(-0.5 * ((X[:, None] - X[None, :600]) ** 2).sum(axis=-1)) @ coef
    assert np.abs(values - expected).max() < 1e-5 * np.abs(coef).sum()
    taken = _rows_at_once(n_features, 512)
    assert taken == 128 or taken * n_features * 512 <= 1_000_000 < 2 * taken * n_features * 512


@pytest.mark.parametrize("n_features", [6, 30])
def test_threads_change_nothing(n_features):
    rng = np.random.default_rng(2)
    X, coef = rng.normal(size=(5000, n_features)), rng.normal(size=5000)
    results = []
    for n_threads in (1, 2, 3):
        with ThreadPoolExecutor(n_threads) as pool:
            rows = KernelRows(X, Kernel("rbf", 0.1), pool=None if n_threads == 1 else pool, n_threads=n_threads)
            values = np.zeros(5000)
            rows.subtract_expansion(values, rows, coef)
            results.append(values)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 80), m=st.integers(1, 600), d=st.sampled_from([1, 2, 5, 9, 70]), k=st.integers(1, 3),
    kernel=st.sampled_from(KERNELS), sparse=st.booleans(), threads=st.sampled_from([1, 2]), seed=st.integers(0, 1000),
)  # fmt: skip
def test_expansions_equal_the_matrix_product(n, m, d, k, kernel, sparse, threads, seed):
    """Wide rows stay sparse."""
    rng = np.random.default_rng(seed)
    X, Z, coef = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=(m, k))
    X *= rng.random(X.shape) < (0.1 if d > 9 else 1.0)
    rows = scipy.sparse.csr_array(X) if sparse else X
    values = kernel_expansion(rows, Z, coef, Kernel(kernel, **PARAMETERS), threads)
    expected = kernel_matrix(X, Z, Kernel(kernel, **PARAMETERS)) @ coef
    assert np.allclose(values, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_sums", [1, 2])
def test_expansions_far_from_the_origin_are_exact(n_sums):
    rng = np.random.default_rng(3)
    X, Z, coef = rng.normal(size=(40, 3)), rng.normal(size=(30, 3)), rng.normal(size=(30, n_sums))
    near, far = (kernel_expansion(X + offset, Z + offset, coef, Kernel("rbf", 1 / 3)) for offset in (0.0, 2.0**26))
    assert np.allclose(near, far, rtol=0, atol=1e-6)
    assert np.allclose(far, kernel_matrix(X + 2.0**26, Z + 2.0**26, Kernel("rbf", 1 / 3)) @ coef, rtol=0, atol=1e-12)


def test_sparse_rows_of_many_features_take_little_memory():
    """A block of columns is spread out at a time, not the whole working set."""
    X = scipy.sparse.random_array((400, 200_000), density=2e-4, format="csr", rng=np.random.default_rng(4))
    rows = KernelRows(X, Kernel("rbf", 0.1))
    tracemalloc.start()
    gram = rows.gram(np.empty(160_000, np.float32))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
    assert np.allclose(gram, kernel_matrix(X, X, Kernel("rbf", 0.1)), atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.filterwarnings("error")
def test_an_expansion_of_no_row_is_zero(kernel):
    assert np.array_equal(
        kernel_expansion(np.ones((3, 2)), np.empty((0, 2)), np.empty((0, 4)), Kernel(kernel)), np.zeros((3, 4))
    )
