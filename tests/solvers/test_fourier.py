import numpy as np
import pytest
import scipy.sparse

from privsvm.methods.landmark_dual import landmark_map
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.solvers.features.fourier import fourier_features, fourier_frequencies
from privsvm.solvers.features.row_features import landmark_row_features
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix

X = np.random.default_rng(0).uniform(-1, 1, size=(60, 6))


@pytest.mark.parametrize("gamma", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("n_components", [50, 800, 12800])
def test_fourier_features_approximate_the_kernel(gamma, n_components):
    """Hoeffding: a mean of D cosines misses by 5.9 / sqrt(D) with probability below 6e-8; 1,800 pairs: below 1e-4.

    The seed is fixed, and the frequencies are the library's own.
    """
    frequencies = fourier_frequencies(6, n_components, gamma, seeded_stream(0, "test"))
    features = fourier_features(X, frequencies)
    error = np.abs(features @ features.T - kernel_matrix(X, X, Kernel("rbf", gamma))).max()
    assert error <= 5.9 / np.sqrt(n_components)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8, 1e200, 1e308])
def test_every_row_has_features_of_norm_one(scale):
    frequencies = fourier_frequencies(6, 100, 2.0, seeded_stream(0, "test"))
    for rows in (X * scale, scipy.sparse.csr_array(X * scale)):
        features = fourier_features(rows, frequencies)
        assert np.allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-13)


@pytest.mark.parametrize("gamma", [1e-9, 1e-3, 0.1, 1.0, 50.0])
def test_landmark_features_give_the_projected_kernel_and_norms_of_at_most_one(gamma):
    landmarks = np.vstack([X[:20], X[:20], X[:1] + 1e-9])
    features = landmark_row_features(X, landmarks, gamma, landmark_map(landmarks, gamma))
    assert np.linalg.norm(features, axis=1).max() <= 1.0 + 1e-9
    # On the landmarks themselves nothing is lost but the ridge.
    error = np.abs(features @ features.T - kernel_matrix(X, X, Kernel("rbf", gamma)))[:20, :20]
    assert error.max() <= 1e-6
