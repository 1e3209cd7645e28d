"""Audit whole releases, model and counts of held-back rows together: ``python bench/audit/release.py``.

A release is trained, measured and calibrated again and again on two tables that differ in one row, and both kinds of
tables are told apart by all that leaves the computer: the model, the counts, and the probabilities for some rows.
``reports/audit_release.csv`` has the bounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from privsvm.auditing.cells import CellBound, audit_cell
from privsvm.files import write_text
from privsvm.privacy.events import NEIGHBOURS, Neighbours
from privsvm.release.documents.calibration import Calibration
from privsvm.release.training.recipes import Recipe, Terms, train
from privsvm.tables.schema import parse_schema

CSV = Path(__file__).resolve().parents[2] / "reports" / "audit_release.csv"
EPSILON, DELTA = 1.0, 1e-5
_PROBES = np.array([[-1.0], [0.0], [0.6], [1.0]])
_SCHEMA = parse_schema(
    {
        "name": "audit", "label": "y", "classes": ["no", "yes"], "prescaled": False, "rows": 40,
        "columns": {"x": {"bounds": [-1, 1], "fill": "middle"}},
    }
)  # fmt: skip


def lay_out_numbers(rows: np.ndarray, labels: np.ndarray, epsilon: float, neighbours: Neighbours) -> np.ndarray:
    """Release once, and lay out the counts, the arrays of the model, and its probabilities for some rows."""
    terms = Terms(epsilon, DELTA, neighbours, Recipe("dp_least_squares"), hold_back=0.5)
    released = train(rows, labels, _SCHEMA, terms)
    assert released.held_back is not None
    path, calibration = released.estimator._path, Calibration(released.held_back)
    shares = calibration.probabilities(path, path.scores(_PROBES, 0)[0])
    arrays = [released.held_back.counts, *path.arrays().values(), shares]
    return np.concatenate([array.ravel() for array in arrays])


def audit_release(epsilon: float, neighbours: Neighbours, draws: int, measures: bool) -> tuple[CellBound, ...]:
    """Audit releases of 40 rows, one of which is alone in its class; it changes its class, or is not there.

    Who measures is public: it is half of the rows, with or without the one in question.
    """
    rows, labels = np.linspace(0.2, 1.0, 40)[:, None], np.zeros(40, dtype=np.int64)
    changed = labels.copy()
    changed[-1] = 1
    n_others = 40 if neighbours == "replace_one" else 39
    tables = (rows, changed), (rows[:n_others], labels[:n_others])

    def draw(dataset: int, n: int, stream: str) -> np.ndarray:
        del stream  # Every release takes its noise from the operating system.
        return np.array([lay_out_numbers(*tables[dataset], epsilon, neighbours) for _ in range(n)])

    with mock.patch("privsvm.release.training.recipes.draw_held_back", lambda units, *_: units % 2 == int(measures)):
        return audit_cell(draw, draws, epsilon, DELTA, gaussian=False)


def main() -> None:
    """Audit both relations, with the row among those that measure and among those that train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=6000)
    draws = parser.parse_args().draws
    rows: list[dict[str, Any]] = []
    for neighbours in NEIGHBOURS:
        for measures in (True, False):
            (bound,) = audit_release(EPSILON, neighbours, draws, measures)
            rows.append({
                "relation": neighbours, "row": "measures" if measures else "trains", "epsilon": EPSILON, "delta": DELTA,
                "draws": draws, "bound": round(bound.epsilon, 4), "ceiling": round(bound.ceiling, 4),
                "refuted": bound.sure > EPSILON,
            })  # fmt: skip
            print(rows[-1], flush=True)
    write_text(CSV, pd.DataFrame(rows).to_csv(index=False))


if __name__ == "__main__":
    main()
