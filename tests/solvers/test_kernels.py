import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import pairwise_kernels

from privsvm.solvers.kernel.kernels import KERNELS, Kernel, kernel_matrix, resolve_gamma

X = np.random.default_rng(0).normal(size=(17, 5))
Z = np.random.default_rng(1).normal(size=(11, 5))
PARAMETERS = {"linear": {}, "rbf": {"gamma": 0.3}, "poly": {"gamma": 0.3, "coef0": 1.5, "degree": 4}}
PARAMETERS["sigmoid"] = {"gamma": 0.3, "coef0": -0.5}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sparse", ["neither", "left", "right", "both"])
def test_equals_scikit_learn(kernel, sparse):
    first = scipy.sparse.csr_array(X) if sparse in ("left", "both") else X
    second = scipy.sparse.csr_array(Z) if sparse in ("right", "both") else Z
    ours = kernel_matrix(first, second, Kernel(kernel, **PARAMETERS[kernel]))
    assert isinstance(ours, np.ndarray)
    assert np.allclose(ours, pairwise_kernels(X, Z, metric=kernel, **PARAMETERS[kernel]), atol=1e-12)


def test_rbf_of_equal_rows_is_one_and_never_more():
    rows = np.random.default_rng(2).normal(size=(50, 3)) * 1e4
    assert kernel_matrix(rows, rows, Kernel("rbf")).max() <= 1.0


def test_gamma_words():
    assert resolve_gamma("auto", X) == pytest.approx(1 / 5)
    assert resolve_gamma("scale", X) == pytest.approx(1 / (5 * X.var()))
    assert resolve_gamma("scale", scipy.sparse.csr_array(X)) == pytest.approx(1 / (5 * X.var()))
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0


@pytest.mark.parametrize("gamma", [-1.0, float("inf"), float("nan"), "sacle"])
def test_bad_gamma_is_named(gamma):
    with pytest.raises(ValueError, match=r"gamma="):
        resolve_gamma(gamma, X)


def test_unknown_kernel_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'rbf'"):
        kernel_matrix(X, Z, Kernel("rfb"))
