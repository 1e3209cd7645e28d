"""Algorithms of papers, some of them later refuted, written with NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from case import Case, clip_feature, release

PACKAGE = "numpy"
_RNG = np.random.default_rng()
_SVT = "Lyu, Su and Li, Understanding the sparse vector technique (2017), algorithm "
_N_QUERIES = 200


def _answers(X: np.ndarray) -> np.ndarray:
    """Answer queries of sensitivity 1: half of them rise with the last row, half fall."""
    value = clip_feature(X, 0.0, 1.0)[-1]
    return np.where(np.arange(_N_QUERIES) % 2 == 0, value, 1.0 - value)


def _sparse_vector(
    threshold_scale: float, query_scale: float, most: int, renew: bool = False
) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return a sparse vector technique that compares noisy answers with a noisy threshold of 1/2.

    How many more of the rising answers exceed it than of the falling ones is published.
    """

    def above(X: np.ndarray, y: np.ndarray) -> float:
        said, count = np.zeros(_N_QUERIES), 0
        threshold = 0.5 + _RNG.laplace(0.0, threshold_scale)
        noise = _RNG.laplace(0.0, query_scale, _N_QUERIES) if query_scale else np.zeros(_N_QUERIES)
        for index, answer in enumerate(_answers(X) + noise):
            if answer >= threshold:
                said[index], count = 1.0, count + 1
                if count == most:
                    break
                if renew:
                    threshold = 0.5 + _RNG.laplace(0.0, threshold_scale)
        return float(said[::2].sum() - said[1::2].sum())

    return above


def _largest(published: Callable[[np.ndarray], float]) -> Callable[[np.ndarray, np.ndarray], float]:
    """Publish the index or the value of the largest of eight noisy counts, which one row moves by 1 each."""
    return lambda X, y: published(clip_feature(X, 0.0, 1.0)[-1] + _RNG.laplace(0.0, 2.0, 8))


def _floats_of(centre: float, outputs: float) -> bool:
    """Tell whether NumPy's Laplace noise of scale 1 around a centre can give a number."""
    distance = abs(outputs - centre)
    near = np.round(np.exp(-distance) * 2.0**53) + np.arange(-8, 9)
    made = np.log(near[near > 0] / 2.0**53)
    return bool(np.any(centre + made == outputs) if outputs < centre else np.any(centre - made == outputs))


def _floating_laplace(X: np.ndarray, y: np.ndarray) -> list[float]:
    """Add noise to a number from 0 to 1, and say which of two numbers could have given the result."""
    output = float(_RNG.laplace(clip_feature(X, 0.0, 1.0)[-1], 1.0))
    return [float(_floats_of(centre, output)) for centre in (0.0, 1.0)]


CASES = [
    Case("sparse vector, corrected", release(_sparse_vector(2.0, 4.0, 1)), 4000),
    Case("sparse vector of Dwork and Roth", release(_sparse_vector(4.0, 8.0, 2, True)), 4000),
    Case(
        "sparse vector of Lee and Clifton", release(_sparse_vector(4.0, 4.0 / 3.0, _N_QUERIES)), 4000, source=f"{_SVT}4"
    ),
    Case("sparse vector of Stoddard et al.", release(_sparse_vector(2.0, 0.0, 0)), 4000, source=f"{_SVT}5"),
    Case("sparse vector of Chen et al.", release(_sparse_vector(2.0, 2.0, 0)), 4000, source=f"{_SVT}6"),
    Case("index of the noisy maximum", release(_largest(np.argmax)), 4000),
    Case(
        "value of the noisy maximum",
        release(_largest(np.max)),
        40_000,
        source="Ding et al., Detecting violations of differential privacy (2018)",
    ),
    Case(
        "Laplace noise in floating point",
        release(_floating_laplace),
        2000,
        source="Mironov, On significance of the least significant bits (2012)",
    ),
]
