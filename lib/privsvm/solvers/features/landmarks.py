"""Nystrom features from landmarks, which approximate the Gaussian kernel."""

from __future__ import annotations

import numpy as np

from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix

# Ridge on the eigenvalues of a kernel matrix before they are inverted: far above their round-off, far below the kernel.
_RIDGE = 1e-8


def landmark_map(landmarks: np.ndarray, gamma: float) -> np.ndarray:
    """Compute the inverse root ``(K_zz + ridge I)^{-1/2}`` (m, m) of landmarks z (m, d)."""
    values, vectors = np.linalg.eigh(kernel_matrix(landmarks, landmarks, Kernel("rbf", gamma)))
    return (vectors / np.sqrt(np.maximum(values, 0.0) + _RIDGE)) @ vectors.T


def landmark_features(X, landmarks: np.ndarray, gamma: float, inverse_root: np.ndarray) -> np.ndarray:
    """Compute Nystrom features ``(K_zz + ridge I)^{-1/2} k_z(x)`` on given landmarks z (m, d).

    The inverse root comes from `landmark_map`. The n rows have norm at most 1 up to round-off:
    ``k_z' (K_zz + ridge I)^{-1} k_z <= k_z' K_zz^{-1} k_z <= k(x, x) = 1``, since the kernel matrix of the landmarks
    and x together has no negative eigenvalue.
    """
    # Overflow: a distance too large for float64 counts as infinite, so that kernel values are always in range.
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = np.nan_to_num(kernel_matrix(X, landmarks, Kernel("rbf", gamma)), nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(kernel, 0.0, 1.0) @ inverse_root
