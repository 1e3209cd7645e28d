"""Features of a row depend on that row and on public numbers alone, bit for bit."""

import math
import struct

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from privsvm import LandmarkDualClassifier, PrivateSVMClassifier, PrivateSVMRBFClassifier
from privsvm.methods.landmark_dual import landmark_map
from privsvm.numerics.compiled import vector_math
from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.compiled.vector_math import exact_exp2, sine_and_cosine
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.solvers.features.fourier import fourier_features, fourier_frequencies
from privsvm.solvers.features.row_features import fourier_row_features, landmark_row_features
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix

# Sizes around whole machine vectors, and around the blocks of loops that LLVM writes out.
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 131]
SIZES = [5e-324, 1e-160, 1e-9, 1e-3, 1.0, 7.0, 1e3, 1e6]


def maps(d, width, gamma, shortest=1e-3):
    """Both kinds of features, on public numbers of their own."""
    rng = seeded_stream(0, "test")
    frequencies = fourier_frequencies(d, width, gamma, rng)
    landmarks = rng.uniform(-1, 1, size=(width, d))
    root = landmark_map(landmarks, gamma)
    return (
        lambda X: fourier_row_features(X, frequencies),
        lambda X: landmark_row_features(X, landmarks, gamma, root, shortest),
    )


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 12), st.sampled_from(WIDTHS), st.floats(-3, 1),
       st.lists(st.sampled_from(SIZES), min_size=9, max_size=9), st.sampled_from([0.0, 1e-3]))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_other_rows_change_no_bit(seed, n, d, width, log_gamma, sizes, shortest):
    """Removed, permuted, padded, and alone; dense, CSR, and CSR with stored zeros; Fortran order; 1 and 2 threads."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7) * np.array(sizes[:n])[:, None]
    order = rng.permutation(n)
    for features in maps(d, width, 10.0**log_gamma, shortest):
        expected_features = features(X)
        assert np.isfinite(expected_features).all()
        for rows, expected in (
            (X[1:], expected_features[1:]),
            (X[:-1], expected_features[:-1]),
            (X[order], expected_features[order]),
            (np.asfortranarray(X), expected_features),
            (scipy.sparse.csr_array(X), expected_features),
            (scipy.sparse.csr_array(X)[order], expected_features[order]),
            (
                scipy.sparse.csr_array((X.ravel(), np.tile(np.arange(d), n), np.arange(n + 1) * d), shape=X.shape),
                expected_features,
            ),
        ):
            assert features(rows).tobytes() == expected.tobytes()
        padded = features(np.vstack([rng.normal(size=(37, d)), X, np.full((300, d), 1e6)]))
        assert padded[37 : 37 + n].tobytes() == expected_features.tobytes()
        for i in range(n):
            assert features(X[i : i + 1]).tobytes() == expected_features[i].tobytes()
        for threads in (1, 2):
            with threadpool_limits(threads):
                assert features(X).tobytes() == expected_features.tobytes()


def python_sine_and_cosine(angle):
    """The same operations in Python's floats, which are never fused or reordered."""
    m = vector_math
    angle = angle if abs(angle) < 2.0**31 else 0.0
    turns = float(round(angle * m._TURNS))
    rest = ((angle - turns * m._HALF_PI_1) - turns * m._HALF_PI_2) - turns * m._HALF_PI_3
    z = rest * rest
    sine = rest + rest * z * (m._S1 + z * (m._S2 + z * (m._S3 + z * (m._S4 + z * (m._S5 + z * m._S6)))))
    cosine = 1.0 - (0.5 * z - z * z * (m._C1 + z * (m._C2 + z * (m._C3 + z * (m._C4 + z * (m._C5 + z * m._C6))))))
    quarter = int(turns) % 4
    return ((sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine))[quarter]


def python_exp2(exponent):
    m = vector_math
    exponent = max(exponent, -1022.0) if exponent == exponent else -1022.0
    rounded = float(round(exponent))
    rest, value = exponent - rounded, float(m._B11)
    for k in range(10, -1, -1):
        value = value * rest + float(getattr(m, f"_B{k}"))
    return math.ldexp(value, int(rounded))


def bits(value):
    return struct.pack("<d", value)


@pytest.mark.parametrize("width", [1, 7, 8, 16, 33])
def test_every_bit_is_that_of_one_operation_after_the_other(width):
    """In whole vectors and in the remainder alike, no operation was fused or moved."""
    d, gamma, rng = 5, 0.3, np.random.default_rng(width)
    X = rng.normal(size=(20, d)) * 10.0 ** rng.uniform(-3, 4, size=(20, 1))
    frequencies = fourier_frequencies(d, width, gamma, rng)
    landmarks = rng.uniform(-1, 1, size=(width, d))
    root = landmark_map(landmarks, gamma)
    fourier = fourier_row_features(X, frequencies)
    nystrom = landmark_row_features(X, landmarks, gamma, root, 1e-3)
    squares = np.square(landmarks).sum(axis=1)
    for i, row in enumerate(X.tolist()):
        for k in range(width):
            angle = 0.0
            for j, value in enumerate(row):
                angle += value * float(frequencies[j, k])
            sine, cosine = python_sine_and_cosine(angle)
            scale = 1.0 / math.sqrt(width)
            assert bits(scale * cosine) == bits(fourier[i, k])
            assert bits(scale * sine) == bits(fourier[i, width + k])
        kernel = [float(square) for square in squares]
        for j, value in enumerate(row):
            for k in range(width):
                kernel[k] += value * (value - 2.0 * float(landmarks[k, j]))
        kernel = [python_exp2(-gamma * vector_math.LOG2_E * max(distance, 0.0)) for distance in kernel]
        sums = [0.0] * width
        for a in range(width):
            for k in range(width):
                sums[k] += kernel[a] * float(root[a, k])
        total = 0.0
        for value in sums:
            total += value * value
        length = max(math.sqrt(total), 1e-3)
        for k in range(width):
            assert bits(sums[k] / length) == bits(nystrom[i, k])


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
def test_they_are_the_features_of_prediction(layout):
    X = np.random.default_rng(0).uniform(-1, 1, size=(60, 6))
    frequencies = fourier_frequencies(6, 100, 0.4, seeded_stream(0, "test"))
    assert np.allclose(fourier_row_features(layout(X), frequencies), fourier_features(X, frequencies), atol=1e-14)
    root = landmark_map(X[:9], 0.3)
    expected_features = landmark_row_features(layout(X), X[:9], 0.3, root)
    assert np.allclose(expected_features, kernel_matrix(X, X[:9], Kernel("rbf", 0.3)) @ root, atol=1e-10)
    unit = landmark_row_features(layout(X), X[:9], 0.3, root, 1e-3)
    assert np.allclose(unit, expected_features / np.linalg.norm(expected_features, axis=1)[:, None], atol=1e-12)


@jit()
def _values(angles, exponents, sines, cosines, powers):
    for i in range(angles.shape[0]):
        sines[i], cosines[i] = sine_and_cosine(angles[i])
        powers[i] = exact_exp2(exponents[i])


def test_sines_cosines_and_powers_are_accurate():
    rng = np.random.default_rng(0)
    angles = np.concatenate([rng.normal(size=5000) * 10.0 ** rng.uniform(-8, 6, 5000), np.arange(-50, 50) * np.pi / 4])
    exponents = -np.abs(rng.normal(size=angles.size)) * 10.0 ** rng.uniform(-5, 3, angles.size)
    sines, cosines, powers = np.empty((3, angles.size))
    _values(angles, exponents, sines, cosines, powers)
    assert np.abs(sines - np.sin(angles)).max() < 1e-15
    assert np.abs(cosines - np.cos(angles)).max() < 1e-15
    inside = exponents > -1022
    assert np.allclose(powers[inside], np.exp2(exponents[inside]), rtol=3e-15, atol=0)
    odd = np.array([np.inf, -np.inf, np.nan, 2.0**31, -1e308])
    sines, cosines, powers = np.empty((3, odd.size))
    _values(odd, np.array([-np.inf, np.nan, -1e308, -1023.0, 0.0]), sines, cosines, powers)
    assert (sines == 0).all()
    assert (cosines == 1).all()
    assert powers.tolist() == [2.0**-1022] * 4 + [1.0]


HUGE = 1e30


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("method", "chosen"),
    [
        (PrivateSVMRBFClassifier, {}),
        # Rows of 1e30 are near public landmarks for so wide a kernel.
        (LandmarkDualClassifier, {"gamma": 1e-60}),
        (LandmarkDualClassifier, {"gamma": 0.3, "n_landmarks": 33}),
        (PrivateSVMClassifier, {}),
    ],
)
def test_what_the_solver_sees_of_other_rows_has_the_same_bits(method, chosen, relation):
    """Rows of 1e30 turned the last bits of BLAS into numbers of size 1, beyond the sensitivity."""
    rng = np.random.default_rng(1)
    for n, d in ((2, 3), (4, 20), (16, 20), (24, 20), (33, 20), (200, 7)):
        X = rng.normal(size=(n, d)) * np.where(np.arange(n) % 2, HUGE, 1.0)[:, None]
        model = method(classes=[0, 1], neighbours=relation, **chosen)
        features = model._features(X)
        seen = features.compute(X)
        assert np.linalg.norm(seen, axis=1).max() <= features.norm
        for gone in {0, 1, n // 2, n - 1}:
            kept = np.arange(n) != gone
            assert features.compute(X[kept]).tobytes() == seen[kept].tobytes()
            assert model._features(X[kept]).compute(X[kept]).tobytes() == seen[kept].tobytes()
        replaced = X.copy()
        replaced[0] = rng.normal(size=d) * HUGE
        replaced[0, 0], replaced[0, 1] = 1e308, 5e-324
        assert features.compute(replaced)[1:].tobytes() == seen[1:].tobytes()
        sparse = features.compute(scipy.sparse.csr_array(X))
        assert (sparse.toarray() if scipy.sparse.issparse(sparse) else sparse).tobytes() == seen.tobytes()


ROWS = np.random.default_rng(0).uniform(-1, 1, size=(60, 6))


@pytest.mark.parametrize("gamma", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("n_components", [50, 800, 12800])
def test_fourier_features_approximate_the_kernel(gamma, n_components):
    """Hoeffding: a mean of D cosines misses by 5.9 / sqrt(D) with probability below 6e-8; 1,800 pairs: below 1e-4.

    The seed is fixed, and the frequencies are the library's own.
    """
    frequencies = fourier_frequencies(6, n_components, gamma, seeded_stream(0, "test"))
    features = fourier_features(ROWS, frequencies)
    error = np.abs(features @ features.T - kernel_matrix(ROWS, ROWS, Kernel("rbf", gamma))).max()
    assert error <= 5.9 / np.sqrt(n_components)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8, 1e200, 1e308])
def test_every_row_has_features_of_norm_one(scale):
    frequencies = fourier_frequencies(6, 100, 2.0, seeded_stream(0, "test"))
    for rows in (ROWS * scale, scipy.sparse.csr_array(ROWS * scale)):
        features = fourier_features(rows, frequencies)
        assert np.allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-13)


@pytest.mark.parametrize("gamma", [1e-9, 1e-3, 0.1, 1.0, 50.0])
def test_landmark_features_give_the_projected_kernel_and_norms_of_at_most_one(gamma):
    landmarks = np.vstack([ROWS[:20], ROWS[:20], ROWS[:1] + 1e-9])
    features = landmark_row_features(ROWS, landmarks, gamma, landmark_map(landmarks, gamma))
    assert np.linalg.norm(features, axis=1).max() <= 1.0 + 1e-9
    # On the landmarks themselves nothing is lost but the ridge.
    error = np.abs(features @ features.T - kernel_matrix(ROWS, ROWS, Kernel("rbf", gamma)))[:20, :20]
    assert error.max() <= 1e-6
