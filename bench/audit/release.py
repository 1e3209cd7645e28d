"""Audit whole releases, model and counts of held-back rows together: ``python bench/audit/release.py``.

A release is trained, measured and calibrated again and again on two tables that differ in one row, and both kinds of
tables are told apart by all that leaves the computer: the model, the counts, and the probabilities for some rows.
``reports/audit_release.csv`` has the bounds.
"""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import Any, Self

import numpy as np

from privsvm.auditing.estimators import Audit, audit
from privsvm.auditing.neighbours import Pair
from privsvm.files import write_text
from privsvm.privacy.events import Neighbours
from privsvm.release.calibration import Calibration
from privsvm.release.recipes import Recipe, Terms, train
from privsvm.tables.schema import parse_schema

__all__ = ["WholeRelease", "audit_release"]

CSV = Path(__file__).resolve().parents[2] / "reports" / "audit_release.csv"
DELTA = 1e-5
_SCHEMA = parse_schema(
    {
        "name": "audit", "label": "y", "classes": ["no", "yes"], "prescaled": False, "rows": 40,
        "columns": {"x": {"bounds": [-1, 1], "fill": "middle"}},
    }
)  # fmt: skip


class WholeRelease:
    """A release as an estimator; half of the rows measure."""

    def __init__(self, epsilon: float = 1.0, neighbours: Neighbours = "replace_one") -> None:
        self.epsilon, self.neighbours = epsilon, neighbours

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Release a model."""
        terms = Terms(self.epsilon, DELTA, self.neighbours, Recipe("dp_least_squares"), hold_back=0.5)
        released = train(np.clip(X, -1.0, 1.0), y, _SCHEMA, terms)
        assert released.held_back is not None
        self.counts_ = released.held_back.counts
        self._path, self._calibration = released.estimator._path, Calibration(released.held_back)
        for name, array in self._path.arrays().items():
            setattr(self, f"{name}_", array)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Compute calibrated probabilities."""
        return self._calibration.probabilities(self._path, self._path.scores(X, 0)[0])


def audit_release(epsilon: float, neighbours: Neighbours, draws: int) -> Audit:
    """Audit releases of 40 rows, one of which has the other class, or its opposite, or is not there."""
    rows, labels = np.linspace(0.2, 1.0, 40)[:, None], np.zeros(40, dtype=np.int64)
    changed = labels.copy()
    changed[-1] = 1
    second = (rows, labels) if neighbours == "replace_one" else (rows[:-1], labels[:-1])
    pair = Pair("a row of a class of its own", (rows, changed), second)
    return audit(
        lambda: WholeRelease(epsilon, neighbours), rows, labels, epsilon=epsilon, delta=DELTA, relation=neighbours,
        draws=draws, pairs=[pair],
    )  # fmt: skip


def main() -> None:
    """Audit both relations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20_000)
    draws = parser.parse_args().draws
    rows: list[dict[str, Any]] = []
    for neighbours in ("replace_one", "add_remove"):
        for epsilon in (1.0, 4.0):
            found = audit_release(epsilon, neighbours, draws)
            print(found, flush=True)
            rows += [
                {
                    "relation": neighbours, "epsilon": epsilon, "delta": DELTA, "draws": draws, "bound": bound.kind,
                    "low": round(bound.epsilon, 4), "refuted": found.refuted, "pair": found.pair.words,
                }
                for bound in found.bounds
            ]  # fmt: skip
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(CSV, text.getvalue())


if __name__ == "__main__":
    main()
