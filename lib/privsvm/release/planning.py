"""What accuracy to expect of an epsilon, without any data: the recommended method on made-up tables of the shape."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from privsvm.data.schema import parse_schema
from privsvm.release.recipes import default_delta, train

__all__ = ["Expected", "expected_accuracy", "made_up_rows"]

# How well a linear model without privacy tells the classes apart, as AUC: tables differ in nothing more.
DIFFICULTIES = {"hard": 0.75, "medium": 0.85, "easy": 0.95}
_TEST_ROWS = 4000


@dataclasses.dataclass(frozen=True)
class Expected:
    """What the simulation found for one epsilon and one difficulty; ranges are over repeated tables and noise."""

    difficulty: str
    attainable_auc: float
    epsilon: float
    auc: tuple[float, float]
    balanced_accuracy: tuple[float, float]


def made_up_rows(
    rng: np.random.Generator, rows: int, direction: np.ndarray, prevalence: float, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows in [-1, 1] whose classes lie along a direction (two classes) or around centres (more)."""
    d = direction.shape[1]
    shares = np.full(n_classes, (1.0 - prevalence) / (n_classes - 1))
    shares[-1] = prevalence
    y = rng.choice(n_classes, size=rows, p=shares)
    X = rng.normal(size=(rows, d)) + direction[y]
    return np.clip(X / 4.0, -1.0, 1.0), y


def _auc(scores: np.ndarray, y: np.ndarray) -> float:
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(y))
    ranks[order] = np.arange(1, len(y) + 1)
    positives = int(y.sum())
    return float((ranks[y == 1].sum() - positives * (positives + 1) / 2) / (positives * (len(y) - positives)))


def _distance(auc: float) -> float:
    from statistics import NormalDist

    return float(np.sqrt(2.0) * NormalDist().inv_cdf(auc))


def expected_accuracy(
    rows: int,
    features: int,
    n_classes: int,
    prevalence: float,
    epsilons: Sequence[float],
    *,
    rows_per_person: int | None = None,
    repeats: int = 5,
    seed: int = 0,
) -> list[Expected]:
    """Simulate releases.

    Parameters
    ----------
    rows, features, n_classes : int
        Shape of the table.
    prevalence : float
        Share of the last class.
    epsilons : sequence of float
        Budgets.
    rows_per_person : int or None
        For persons with so many rows.
    repeats : int, default=5
        Made-up tables for each.
    seed : int, default=0
        Of the simulation.

    Returns
    -------
    list of Expected
    """
    schema = parse_schema(
        {
            "name": "plan",
            "label": "label",
            "classes": list(range(n_classes)),
            "rows": rows,
            "prescaled": False,
            "columns": {f"x{place}": {"bounds": [-1, 1]} for place in range(features)},
            "person": None if rows_per_person is None else "id",
            "rows_per_person": rows_per_person,
        }
    )
    found = []
    for difficulty, auc in DIFFICULTIES.items():
        for epsilon in epsilons:
            pairs = []
            for repeat in range(repeats):
                rng = np.random.default_rng([seed, repeat])
                direction = rng.normal(size=(n_classes, features))
                direction -= direction.mean(axis=0)
                direction /= np.linalg.norm(direction[-1] - direction[0]) / _distance(auc)
                X, y = made_up_rows(rng, rows, direction, prevalence, n_classes)
                trained = train(
                    X, y, schema, epsilon=epsilon, delta=default_delta(schema), random_state=seed + repeat
                ).estimator
                test, truth = made_up_rows(rng, _TEST_ROWS, direction, 1.0 / n_classes, n_classes)
                scores = trained._path.scores(test, 0)[0]
                codes = trained._path.codes(scores[None])[0]
                recalls = [float((codes[truth == code] == code).mean()) for code in range(n_classes)]
                margin = scores[:, -1] - (scores[:, :-1].max(axis=1) if scores.shape[1] > 1 else 0.0)
                pairs.append((_auc(margin, (truth == n_classes - 1).astype(int)), float(np.mean(recalls))))
            aucs, balanced = zip(*pairs, strict=True)
            found.append(Expected(difficulty, auc, epsilon, (min(aucs), max(aucs)), (min(balanced), max(balanced))))
    return found
