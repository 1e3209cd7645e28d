"""An entity's columns from its published block alone: no row is known."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.stats

from reproduce.engine.context import Context
from reproduce.ppsvm.runs import _partition, _publish_columns, _stream, read

# Singular values below this share of the largest are round-off.
_RANK = 1e-9


def whiten(block: np.ndarray, kernel: str, gamma: float) -> np.ndarray:
    """Return uncorrelated columns (n, r) of variance 1 with the span of the entity's centred ones, from its block.

    A linear block mixes the columns linearly. So do differences of two columns of squared distances, which are minus
    the logarithms of a Gaussian block over gamma.
    """
    mixed = _publish_columns(block, kernel, gamma)
    if kernel == "gaussian":
        mixed = mixed[:, 1:] - mixed[:, :1]
    left, values, _ = scipy.linalg.svd(mixed - mixed.mean(axis=0), full_matrices=False)
    return left[:, values > _RANK * values[0]] * np.sqrt(len(mixed))


def unmix(white: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return independent components (n, r) of whitened columns; a single one is its own."""
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    if white.shape[1] == 1:
        return white
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return FastICA(whiten=False, max_iter=500, random_state=int(rng.integers(2**31))).fit_transform(white)


def pair_columns(columns: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Pair columns with found ones, one to one; return each column's absolute correlation, 0 without a partner."""
    varying = columns[:, columns.std(axis=0) > 0.0]
    correlations = np.abs(scipy.stats.zscore(varying).T @ scipy.stats.zscore(found)) / len(columns)
    pairs = scipy.optimize.linear_sum_assignment(correlations, maximize=True)
    result = np.zeros(varying.shape[1])
    result[pairs[0]] = correlations[pairs]
    return result


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Unmix the block of each entity, and turn it at random for a control.

    Parameters: as for `reproduce.ppsvm.runs.errors`, without "PPSVM", "alone" and "most_entities". Result: for each of
    ``entities`` of all partitions the ``correlations`` of its columns with the components, and ``control``; of a lone
    column ``error``, the largest one up to the sign in standard deviations.
    """
    X, _ = read(parameters, context)
    kernel, gamma, result = parameters["kernel"], 1.0 / X.shape[1], []
    dealt = [
        (number, position, *member)
        for number in range(parameters["partitions"])
        for position, member in enumerate(zip(*_partition(parameters, context, X, number)[:2], strict=True))
    ]
    for number, position, entity_columns, entity in dealt:
        columns = entity.standardized(X[:, entity_columns])
        rng = _stream(parameters, context, "unmixing", number, position)
        white = whiten(entity.publish(X[:, entity_columns], kernel, gamma), kernel, gamma)
        found: dict[str, Any] = {"correlations": pair_columns(columns, unmix(white, rng)).tolist()}
        if entity_columns.size == 1:
            found["error"] = float(min(np.abs(columns - sign * white).max() for sign in (-1.0, 1.0)))
        else:
            rotation = scipy.stats.special_ortho_group.rvs(max(white.shape[1], 2), random_state=rng)
            turned = white @ rotation[: white.shape[1], : white.shape[1]]
            found["control"] = pair_columns(columns, turned).tolist()
        result.append(found)
    return {"entities": result}
