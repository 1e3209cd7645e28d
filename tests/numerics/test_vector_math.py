import numpy as np
import pytest
from numba import njit

from privsvm.numerics.compiled.vector_code import maximum
from privsvm.numerics.compiled.vector_math import exp2


@njit
def powers(exponents, out):
    for i in range(exponents.shape[0]):
        out[i] = exp2(exponents[i])


@njit
def maxima(first, second, out):
    for i in range(first.shape[0]):
        out[i] = maximum(first[i], second[i])


@pytest.mark.parametrize(("dtype", "lowest", "error"), [(np.float32, -126, 3e-7), (np.float64, -1022, 2e-15)])
def test_exponentials(dtype, lowest, error):
    rng = np.random.default_rng(0)
    exponents = np.concatenate([rng.uniform(lowest, 20, 200_000), np.arange(lowest, 20), [0.5, -0.5, 0.0]]).astype(
        dtype
    )
    out = np.empty_like(exponents)
    powers(exponents, out)
    assert out.dtype == dtype
    assert np.max(np.abs(out / np.exp2(exponents.astype(np.float64)) - 1)) < error


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_integers_are_exact_and_small_ones_do_not_underflow(dtype):
    exponents = np.array([0, 1, -1, 10, -1e4], dtype=dtype)
    out = np.empty_like(exponents)
    powers(exponents, out)
    assert out[:4].tolist() == [1, 2, 0.5, 1024]
    assert out[4] == pytest.approx(float(np.finfo(dtype).tiny), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maximum(dtype):
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 1001)).astype(dtype)
    out = np.empty_like(first)
    maxima(first, second, out)
    assert np.array_equal(out, np.maximum(first, second))
