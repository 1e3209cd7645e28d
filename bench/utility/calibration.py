"""Measure calibration and coverage of releases with held-back rows: ``python bench/utility/calibration.py``.

``reports/utility/calibration.csv`` has a row for each split of the eight largest sets of the utility table: one release
at epsilon 1 under replace_one with a tenth held back, its statements, and their counterparts on the test rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from entries import DELTA, TABLES
from sets import UtilitySet, load

from privsvm.base.released import ReleasedPath
from privsvm.files import write_text
from privsvm.release.documents.calibration import Calibration, rank_labels
from privsvm.release.predicting.model import probabilities
from privsvm.release.training.recipes import Terms, train
from privsvm.tables.schema import parse_schema
from privsvm_bench.evidence import Sources
from privsvm_bench.workflow.sources import closure_digest

CSV = TABLES / "calibration.csv"
# The eight sets with most rows that are not of a package.
LARGEST = ("cod-rna", "ijcnn1", "w8a", "a9a", "letter.scale", "phishing", "mushrooms", "usps")
EPSILON, HOLD_BACK, SPLITS = 1.0, 0.1, 5
# Bins of probabilities that take many values.
_BINS = 15


def expected_calibration_error(shares: np.ndarray, true: np.ndarray) -> float:
    """Compute the mean distance between probabilities and how often they come true, by value or in equal bins."""
    values, groups = np.unique(shares, return_inverse=True)
    if len(values) > 2 * _BINS:
        groups = np.minimum((shares * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(groups, weights=shares - true)
    return float(np.abs(gaps).sum() / len(shares))


def _error_on(path: ReleasedPath, scores: np.ndarray, shares: np.ndarray, codes: np.ndarray) -> float:
    """Compute the error of probabilities of class 1, or of the first label of several classes."""
    if path.n_classes == 2:
        return expected_calibration_error(shares[:, 1], codes == 1)
    first = rank_labels(path, scores)[0][:, 0]
    return expected_calibration_error(shares[np.arange(len(codes)), first], first == codes)


def measure_split(data: UtilitySet, split: int) -> dict[str, Any]:
    """Release a model with seeded noise, and compare its statements with the test rows."""
    train_rows, test_rows = data.splits[split]
    X, names = data.scale_features(), [f"x{number}" for number in range(data.X.shape[1])]
    columns: dict[str, Any] = {
        name: {"boolean": True, "fill": False} if boolean else {"bounds": [-1, 1], "fill": "middle"}
        for name, boolean in zip(names, data.indicators, strict=True)
    }
    schema = parse_schema(
        {
            "name": data.name, "label": "label", "classes": [str(code) for code in range(data.n_classes)],
            "prescaled": False, "rows": len(train_rows), "columns": columns,
        }
    )  # fmt: skip
    terms = Terms(EPSILON, DELTA, "replace_one", hold_back=HOLD_BACK)
    released = train(X[train_rows], data.y[train_rows], schema, terms, random_state=split)
    assert released.held_back is not None
    calibration, path, codes = Calibration(released.held_back), released.estimator._path, data.y[test_rows]
    scores = path.scores(X[test_rows], 0)[0]
    shares, sets = calibration.probabilities(path, scores), calibration.sets(path, scores)
    row: dict[str, Any] = {
        "set": data.name, "split": split, "classes": data.n_classes, "held_back": released.held_back.number,
        "bins": calibration.n_bins, "accuracy": np.mean(path.codes(scores[None])[0] == codes),
        "uncalibrated_error": _error_on(path, scores, probabilities(scores), codes),
        "error": _error_on(path, scores, shares, codes), "coverage": sets[np.arange(len(codes)), codes].mean(),
        "set_size": sets.sum(axis=1).mean(),
    }  # fmt: skip
    for name, interval in (
        ("accuracy", released.held_back.accuracy),
        ("error", calibration.calibration_error),
        ("coverage", calibration.coverage),
    ):
        row |= {f"stated_{name}{end}": value for end, value in zip(("", "_low", "_high"), interval, strict=True)}
    return {name: round(float(value), 4) if isinstance(value, float) else value for name, value in row.items()}


def main() -> None:
    """Measure all sets."""
    rows: list[dict[str, Any]] = []
    for name in LARGEST:
        for split in range(SPLITS):
            rows.append(measure_split(load(name), split))
            print(rows[-1], flush=True)
        Sources(TABLES).measure("calibration", "release", closure_digest(train.__module__)[:12], name)
    write_text(CSV, pd.DataFrame(rows).to_csv(index=False))


if __name__ == "__main__":
    main()
