"""Scaled sets, neighbouring datasets that move a solution far, and a noise source of zeros."""

import collections
import dataclasses

import numpy as np

from privsvm.numerics.noise.noise_source import NoiseSource

KINDS = ["label", "zeros", "huge", "opposite", "duplicate", "lost class", "removed"]


def scaled(load, low=-1.0):
    """Rows scaled to [low, 1] by ranges, as if these were public."""
    X, y = load(return_X_y=True)
    return (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9) * (1.0 - low) + low, y


def standardised(load):
    """Columns of mean 0 and standard deviation 1."""
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9), y


def unit_rows(load):
    """Scaled rows of norm 1."""
    X, y = scaled(load)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def whole_numbers(cells):
    """Turn a matrix of whole numbers into Python's, which do not overflow."""
    assert np.array_equal(cells, np.rint(cells))
    return np.array([[int(value) for value in row] for row in cells], dtype=object).reshape(cells.shape)


def count_differences(pair):
    """Count the rows that the first dataset has beyond the second, and the other way round."""
    first, second = (
        collections.Counter((*row, label) for row, label in zip(rows.tolist(), labels.tolist(), strict=True))
        for rows, labels in (pair.first, pair.second)
    )
    return (first - second).total(), (second - first).total()


def neighbours(X, y, n_classes, kind, rng):
    """Return two datasets (rows, labels) that differ in one row, and their relation."""
    base = (X, y)
    X, y = X.copy(), y.copy()
    row = int(rng.integers(len(y)))
    if kind == "label":
        y[row] = (y[row] + 1) % n_classes
    elif kind == "zeros":
        X[row] = 0
    elif kind == "huge":
        X[row] = rng.normal(size=X.shape[1]) * 1e6
    elif kind == "opposite":
        X[row], y[row] = -X[row] * 50, (y[row] + 1) % n_classes
    elif kind == "duplicate":
        X[row], y[row] = X[row - 1], y[row - 1]
    elif kind == "lost class":
        # The row becomes the only one of its class, then leaves it.
        label = y[row]
        others = (y == label) & (np.arange(len(y)) != row)
        y[others] = (label + 1) % n_classes
        base = (X, y.copy())
        y[row] = (label + 1) % n_classes
    elif kind == "removed":
        keep = np.arange(len(y)) != row
        return base, (X[keep], y[keep]), "add_remove"
    return base, (X, y), "replace_one"


def silent(model, X, y, epsilon=1.0):
    """Release a path without noise: exact weights, on the mechanism's grid."""
    return model.release_path(X, y, [epsilon], 1, lambda epsilon, repeat: Silence())


class Silence(NoiseSource):
    """A noise source of zeros, which leaves the exact quantity on the grid."""

    def __init__(self):
        super().__init__(bytes(32))

    def part(self, name):
        return self

    def rounded_normals(self, sigma, size):
        return np.zeros(size, dtype=np.int64)

    def discrete_laplace(self, scale, size):
        return np.zeros(size, dtype=np.int64)

    def exponential_choices(self, scores, scale):
        return scores.argmax(axis=-1)

    def generator(self):
        return self

    def normal(self, loc, scale, size):
        return np.zeros(size)


def all_but_the_number_of_rows(guarantee):
    """Fields of a record; the number of rows is public where a row is replaced."""
    return vars(guarantee) | {"facts": dataclasses.replace(guarantee.facts, declared_rows=None)}
