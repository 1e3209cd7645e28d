"""Explicit features whose dot products approximate the Gaussian kernel ``exp(-gamma |x - z|^2)``."""

from __future__ import annotations

import numpy as np

from privsvm.solvers.kernels import kernel_matrix

__all__ = ["fourier_features", "fourier_frequencies", "landmark_features", "landmark_map"]

# Added to the eigenvalues of a kernel matrix before they are inverted: far above their round-off, far below the kernel.
_RIDGE = 1e-8


def fourier_frequencies(n_features: int, n_components: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """Draw frequencies from the Gaussian kernel's spectrum, ``N(0, 2 gamma)`` in every coordinate.

    Parameters
    ----------
    n_features : int
        Number of features d.
    n_components : int
        Number of frequencies D.
    gamma : float
        Kernel coefficient.
    rng : numpy.random.Generator
        Source of the draw.

    Returns
    -------
    ndarray (d, D)
    """
    return rng.normal(0.0, np.sqrt(2.0 * gamma), size=(n_features, n_components))


def fourier_features(X, frequencies: np.ndarray) -> np.ndarray:
    """Random Fourier features (Rahimi and Recht 2007; Rubinstein et al. 2012, Algorithm 2).

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows.
    frequencies : ndarray (d, D)
        See `fourier_frequencies`.

    Returns
    -------
    ndarray (n, 2 D)
        ``cos(x . f) / sqrt(D)`` for every frequency, then ``sin``: rows of norm 1 up to round-off.
    """
    n_components = frequencies.shape[1]
    # A projection too large for float64 becomes 0, so that every row has a feature vector.
    with np.errstate(over="ignore", invalid="ignore"):
        angles = np.nan_to_num(np.asarray(X @ frequencies), nan=0.0, posinf=0.0, neginf=0.0)
    features = np.empty((angles.shape[0], 2 * n_components))
    np.cos(angles, out=features[:, :n_components])
    np.sin(angles, out=features[:, n_components:])
    features /= np.sqrt(n_components)
    return features


def landmark_map(landmarks: np.ndarray, gamma: float) -> np.ndarray:
    """Inverse square root of the kernel matrix of landmarks, ``(K_zz + ridge I)^{-1/2}``.

    Parameters
    ----------
    landmarks : ndarray (m, d)
        Points z.
    gamma : float
        Kernel coefficient.

    Returns
    -------
    ndarray (m, m)
    """
    values, vectors = np.linalg.eigh(kernel_matrix(landmarks, landmarks, "rbf", gamma))
    return (vectors / np.sqrt(np.maximum(values, 0.0) + _RIDGE)) @ vectors.T


def landmark_features(X, landmarks: np.ndarray, gamma: float, inverse_root: np.ndarray) -> np.ndarray:
    """Nystrom features ``(K_zz + ridge I)^{-1/2} k_z(x)`` on given landmarks.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows.
    landmarks : ndarray (m, d)
        Points z.
    gamma : float
        Kernel coefficient.
    inverse_root : ndarray (m, m)
        See `landmark_map`.

    Returns
    -------
    ndarray (n, m)
        Rows of norm at most 1 up to round-off: ``k_z' (K_zz + ridge I)^{-1} k_z <= k_z' K_zz^{-1} k_z <= k(x, x) = 1``,
        since the kernel matrix of the landmarks and x together has no negative eigenvalue.
    """
    # A distance too large for float64 is an infinite one; whatever a row holds, its kernel values are in range.
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = np.nan_to_num(kernel_matrix(X, landmarks, "rbf", gamma), nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(kernel, 0.0, 1.0) @ inverse_root
