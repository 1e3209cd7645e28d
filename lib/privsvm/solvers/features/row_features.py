"""Features for training that depend on their row and public numbers, bit for bit.

A matrix product by BLAS lacks this property: with one row less it may use another kernel, and the bits of all other
rows change. Here the sums of a row run over its own numbers, in their order, and are vectorised over the features.
Without ``fastmath``, LLVM must round as the source says, in vectors and in remainders. A number that is zero changes no
bit, so that dense and CSR rows have the same features.

For prediction, where nothing has to be private, `privsvm.solvers.features.fourier` is faster.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.compiled.vector_math import LOG2_E, exact_exp2, sine_and_cosine


@jit()
def _set_fourier(values, columns, starts, sparse, frequencies, scale, out):
    """Set `out` (n, 2 D) to cosines and sines."""
    n_components = frequencies.shape[1]
    angles = np.empty(n_components)
    for i in range(starts.shape[0] - 1):
        angles[:] = 0.0
        for e in range(starts[i], starts[i + 1]):
            value = values[e]
            if value != 0.0:
                vector = frequencies[columns[e] if sparse else e - starts[i]]
                for k in range(n_components):
                    angles[k] += value * vector[k]
        cosines, sines = out[i, :n_components], out[i, n_components:]
        for k in range(n_components):
            sine, cosine = sine_and_cosine(angles[k])
            cosines[k] = scale * cosine
            sines[k] = scale * sine


@jit()
def _set_landmark(values, columns, starts, sparse, doubled, squared_norms, exponent, inverse_root, shortest, out):
    """Set `out` (n, m) to kernel values times the inverse root, normalised."""
    n_landmarks = squared_norms.shape[0]
    kernel = np.empty(n_landmarks)
    for i in range(starts.shape[0] - 1):
        # Numbers are copied one by one: Numba's error message for an assignment of arrays takes long to compile.
        for k in range(n_landmarks):
            kernel[k] = squared_norms[k]
        for e in range(starts[i], starts[i + 1]):
            value = values[e]
            if value != 0.0:
                # |x - z|^2 is |z|^2 and, for each number of the row, x (x - 2 z).
                vector = doubled[columns[e] if sparse else e - starts[i]]
                for k in range(n_landmarks):
                    kernel[k] += value * (value - vector[k])
        for k in range(n_landmarks):
            distance = kernel[k]
            distance = 0.0 if distance < 0.0 else distance
            kernel[k] = exact_exp2(exponent * distance)
        features = out[i]
        features[:] = 0.0
        for a in range(n_landmarks):
            weight, vector = kernel[a], inverse_root[a]
            for k in range(n_landmarks):
                features[k] += weight * vector[k]
        if shortest > 0.0:
            total = 0.0
            for k in range(n_landmarks):
                total += features[k] * features[k]
            length = max(math.sqrt(total), shortest)
            for k in range(n_landmarks):
                features[k] /= length


def _numbers(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Return the rows' numbers, columns (CSR only) and starts, and whether CSR."""
    if scipy.sparse.issparse(X):
        return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64), True
    starts = np.arange(X.shape[0] + 1, dtype=np.int64) * X.shape[1]
    return np.ascontiguousarray(X).reshape(-1), np.empty(0, dtype=np.int32), starts, False


def fourier_row_features(X: Any, frequencies: np.ndarray) -> np.ndarray:
    """Compute random Fourier features (n, 2 D) of float64 rows; see `fourier.fourier_features`.

    The columns of a CSR row ascend.
    """
    n_components = frequencies.shape[1]
    features = np.empty((X.shape[0], 2 * n_components))
    frequencies = np.ascontiguousarray(frequencies)
    _set_fourier(*_numbers(X), frequencies, 1.0 / math.sqrt(n_components), features)
    return features


def landmark_row_features(
    X: Any, landmarks: np.ndarray, gamma: float, inverse_root: np.ndarray, shortest: float = 0.0
) -> np.ndarray:
    """Compute Nystrom features ``(K_zz + ridge I)^{-1/2} k_z(x)`` (n, m) of float64 rows on landmarks z (m, d).

    The inverse root comes from `privsvm.methods.landmark_dual.landmark_map`, and the columns of a CSR row ascend.
    Feature vectors are divided by their norm, or by `shortest` if the norm is smaller; 0 leaves them. Then the norm is
    at most 1 up to round-off: ``k_z' (K_zz + ridge I)^{-1} k_z <= k_z' K_zz^{-1} k_z <= k(x, x) = 1``, since the kernel
    matrix of the landmarks and x together has no negative eigenvalue.
    """
    features = np.empty((X.shape[0], landmarks.shape[0]))
    with np.errstate(over="ignore"):
        doubled, squared_norms = np.ascontiguousarray(2.0 * landmarks.T), np.square(landmarks).sum(axis=1)
    inverse_root = np.ascontiguousarray(inverse_root)
    _set_landmark(*_numbers(X), doubled, squared_norms, -gamma * LOG2_E, inverse_root, float(shortest), features)
    return features


def warm_up() -> None:
    """Compile what this module runs."""
    X = np.eye(2)
    fourier_row_features(X, X)
    landmark_row_features(X, X, 1.0, X, 1e-3)
