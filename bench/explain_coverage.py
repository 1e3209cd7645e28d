"""Count how often intervals of `privsvm explain` hold the share without noise, on ten tables, in 200 fits each.

The share without noise comes from the same training with the same noisy centre, second moment and counts, and no noise
in its steps (`given`), and from a training without any noise (`all`). Writes bench/explain_coverage.csv.

    python bench/explain_coverage.py [fits]
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from privsvm import PrivateLinearClassifier
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.release.documents.explanation import Explanation

# Rows, columns, of which indicators, classes; and terms.
DRAWN: dict[str, tuple[tuple[int, int, int, int], dict[str, Any]]] = {
    "few rows": ((400, 6, 2, 2), {"epsilon": 1.0}),
    "numbers": ((3000, 5, 0, 2), {"epsilon": 2.0, "features": "hats"}),
    "indicators": ((3000, 12, 12, 2), {"epsilon": 1.0}),
    "both": ((3000, 8, 4, 2), {"epsilon": 1.0, "neighbours": "replace_one", "features": "hats"}),
    "balanced": ((2000, 6, 3, 2), {"epsilon": 1.0, "class_weight": "balanced"}),
    "four classes": ((3000, 6, 3, 4), {"epsilon": 2.0, "features": "hats"}),
    "random features": ((2000, 3, 1, 2), {"epsilon": 1.0}),
}
REAL = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def draw_table(n_rows: int, n_columns: int, n_indicators: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a table whose classes follow from half of the columns, of one by a curve."""
    rng = np.random.default_rng(n_rows + n_columns)
    X = rng.uniform(-1.0, 1.0, (n_rows, n_columns))
    X[:, :n_indicators] = np.where(X[:, :n_indicators] > 0.3, 1.0, -1.0)
    weights = rng.normal(size=(n_classes, n_columns)) * (rng.random(n_columns) < 0.5)
    scores = 3.0 * X @ weights.T + 2.0 * np.sin(4.0 * X[:, -1:]) * rng.normal(size=n_classes)
    return X, np.argmax(scores + rng.normal(size=scores.shape), axis=1)


def load_tables() -> Iterator[tuple[str, np.ndarray, np.ndarray, dict[str, Any]]]:
    """Load or draw all tables, in [-1, 1], with the terms of their models."""
    for name, (shape, terms) in DRAWN.items():
        yield name, *draw_table(*shape), terms | {"indicators": list(range(shape[2])) or None}
    for name, load in REAL.items():
        X, y = load(return_X_y=True)
        low, high = X.min(axis=0), X.max(axis=0)
        yield name, 2.0 * (X - low) / (high - low) - 1.0, y, {"epsilon": 4.0}


class Silent:
    """A source of noise without noise."""

    def part(self, *name: str) -> Silent:
        """Return the source itself."""
        return self

    def add_rounded_normals(self, exact: np.ndarray, *_: Any) -> np.ndarray:
        """Add nothing."""
        return np.array(exact)


@contextlib.contextmanager
def silence(parts: set[str]) -> Iterator[None]:
    """Draw no noise in some parts of a training."""
    part = NoiseSource.part

    def without(self: NoiseSource, *name: str) -> Any:
        return Silent() if name[0] in parts else part(self, *name)

    with mock.patch.object(NoiseSource, "part", without):
        yield


def judge(X: np.ndarray, y: np.ndarray, terms: dict[str, Any], n_fits: int) -> dict[str, Any]:
    """Fit models, and count shares without noise inside of their intervals."""
    n_columns, classes = X.shape[1], [*range(int(y.max()) + 1)]

    def fit(seed: int) -> Explanation:
        model = PrivateLinearClassifier(**terms, classes=classes, bounds=(-1, 1), delta=1e-5, random_state=seed)
        return Explanation(model.fit(X, y)._path, n_columns)

    with silence({"count", "classes", "mean", "moment", "steps"}):
        without_any = fit(0).noiseless_shares[0]
    inside: dict[str, list[np.ndarray]] = {"given": [], "all": []}
    widths, told = [], []
    for seed in range(1, n_fits + 1):
        explained = fit(seed)
        with silence({"steps"}):
            given = fit(seed).noiseless_shares[0]
        low, high = np.array([(column.low, column.high) for column in explained.columns]).T
        for kind, truth in (("given", given), ("all", without_any)):
            # The part of all columns jointly is there in some recipes alone.
            truth = np.pad(truth, (0, max(0, low.size - truth.size)))[: low.size]
            inside[kind].append(((low - 1e-9 <= truth) & (truth <= high + 1e-9))[:n_columns])
        widths.append(high - low)
        told.append(low > 0.0)
    return {
        "columns": n_columns,
        "fits": n_fits,
        **{kind: round(float(np.mean(counted)), 4) for kind, counted in inside.items()},
        "worst_column": round(float(np.mean(inside["given"], axis=0).min()), 4),
        "width": round(float(np.mean([width.mean() for width in widths])), 3),
        "told_from_noise": round(float(np.mean([share.mean() for share in told])), 3),
    }


def main() -> None:
    """Judge all tables, one line each."""
    n_fits = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    lines: list[dict[str, Any]] = []
    for name, X, y, terms in load_tables():
        lines.append({"table": name, **judge(X, y, terms, n_fits)})
        pd.DataFrame(lines).to_csv(Path(__file__).with_suffix(".csv"), index=False)
        print(lines[-1], flush=True)


if __name__ == "__main__":
    main()
