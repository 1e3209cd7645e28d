"""Private-PGM (mbi): a tree of noisy two-way tables (MST) makes synthetic rows; a linear SVM learns them.

A third of the zCDP budget measures single columns, a third chooses the tree, a third measures its edges (McKenna,
Miklau and Sheldon, Winning the NIST contest, 2021). Columns are binned into eight equal intervals of their public
range; declared indicators have two. The label is a further column.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import networkx
import numpy as np
from mbi import Domain, LinearMeasurement
from mbi.estimation import MirrorDescent
from rows import score_classes
from scipy.special import logsumexp
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
_BINS = 8
_LABEL = "label"


def _zcdp(epsilon: float, delta: float) -> float:
    """Return the largest rho with ``rho + 2 sqrt(rho log(1/delta)) <= epsilon``."""
    root = math.sqrt(math.log(1.0 / delta) + epsilon) - math.sqrt(math.log(1.0 / delta))
    return root * root


def mst_svm(
    X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int, indicators: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Draw synthetic rows by MST and fit one-vs-rest linear SVMs to them."""
    rng = np.random.default_rng(seed)
    np.random.seed(seed)  # noqa: NPY002 - what mbi draws rows from
    sizes = [*np.where(indicators, 2, _BINS).tolist(), n_classes]
    codes = np.column_stack([np.minimum((X * sizes[:-1]).astype(int), np.array(sizes[:-1]) - 1), y.astype(int)])
    names = [*(f"x{j}" for j in range(X.shape[1])), _LABEL]
    domain = Domain.fromdict(dict(zip(names, sizes, strict=True)))
    rho = _zcdp(epsilon, delta) / 3.0

    # Every two-way table is a block of one matrix product.
    starts = np.concatenate([[0], np.cumsum(sizes)])
    indicator_rows = np.zeros((len(codes), starts[-1]), dtype=np.float32)
    np.put_along_axis(indicator_rows, codes + starts[:-1], 1.0, axis=1)
    tables = (indicator_rows.T @ indicator_rows).astype(float)

    def table(i: int, j: int) -> np.ndarray:
        return tables[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]

    deviation = math.sqrt(len(names) / (2.0 * rho))
    singles = [np.diag(table(i, i)) + rng.normal(scale=deviation, size=sizes[i]) for i in range(len(names))]
    measurements = [LinearMeasurement(counts, (name,), deviation) for name, counts in zip(names, singles, strict=True)]
    total = max(1.0, float(np.mean([counts.sum() for counts in singles])))
    shares = [np.maximum(counts, 0.0) / max(np.maximum(counts, 0.0).sum(), 1e-12) for counts in singles]
    distance = {
        (i, j): float(np.abs(table(i, j) - total * np.outer(shares[i], shares[j])).sum())
        for i in range(len(names))
        for j in range(i + 1, len(names))
    }
    edges = _tree(distance, len(names), rho, rng)

    deviation = math.sqrt(len(edges) / (2.0 * rho))
    for i, j in edges:
        counts = table(i, j).ravel() + rng.normal(scale=deviation, size=sizes[i] * sizes[j])
        measurements.append(LinearMeasurement(counts, (names[i], names[j]), deviation))
    model = MirrorDescent().estimate(domain, measurements, known_total=total, iters=1000, tol=1e-4)
    synthetic = model.synthetic_data(rows=len(y))
    made = np.column_stack([np.asarray(synthetic.data[name]) for name in names])
    svm = OneVsRestClassifier(LinearSVC(C=1.0, dual="auto"))
    score = score_classes(
        made[:, -1], n_classes, lambda: svm.fit((made[:, :-1] + 0.5) / sizes[:-1], made[:, -1]).decision_function
    )
    return lambda X: score((np.minimum((X * sizes[:-1]).astype(int), np.array(sizes[:-1]) - 1) + 0.5) / sizes[:-1])


def _tree(
    distance: dict[tuple[int, int], float], n_columns: int, rho: float, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Choose a spanning tree edge by edge by the exponential mechanism."""
    forest = networkx.utils.UnionFind(range(n_columns))
    pairs = np.array(list(distance))
    scores = np.array(list(distance.values()))
    step_epsilon = math.sqrt(8.0 * rho / (n_columns - 1))
    edges = []
    for _ in range(n_columns - 1):
        root = np.array([forest[i] for i in range(n_columns)])
        apart = root[pairs[:, 0]] != root[pairs[:, 1]]
        logits = np.where(apart, 0.5 * step_epsilon * scores, -np.inf)
        first, second = pairs[rng.choice(len(pairs), p=np.exp(logits - logsumexp(logits)))]
        forest.union(int(first), int(second))
        edges.append((int(first), int(second)))
    return edges
