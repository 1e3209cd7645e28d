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
