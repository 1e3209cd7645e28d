"""Random Fourier features, which approximate the Gaussian kernel; by NumPy alone."""

from __future__ import annotations

import numpy as np


def fourier_frequencies(n_features: int, n_components: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """Draw frequencies (d, D) from the Gaussian kernel's spectrum, ``N(0, 2 gamma)``."""
    return rng.normal(0.0, np.sqrt(2.0 * gamma), size=(n_features, n_components))


def fourier_features(X, frequencies: np.ndarray) -> np.ndarray:
    """Compute random Fourier features (Rahimi and Recht 2007; Rubinstein et al. 2012, Algorithm 2).

    Frequencies (d, D) come from `fourier_frequencies`. Returns (n, 2 D): ``cos(x . f) / sqrt(D)`` for every frequency,
    then ``sin``; rows have norm 1 up to round-off.
    """
    n_components = frequencies.shape[1]
    # Overflow: a projection too large for float64 becomes 0, so that every row has a feature vector.
    with np.errstate(over="ignore", invalid="ignore"):
        angles = np.nan_to_num(np.asarray(X @ frequencies), nan=0.0, posinf=0.0, neginf=0.0)
    features = np.empty((angles.shape[0], 2 * n_components))
    np.cos(angles, out=features[:, :n_components])
    np.sin(angles, out=features[:, n_components:])
    features /= np.sqrt(n_components)
    return features
