"""Run the methods of this library on the sets of the utility table: ``python bench/utility/run_ours.py``.

A cell is a method, a set, a relation of neighbours, an epsilon and a split; one that stands in
``reports/utility/ours.csv`` with the digest of the present sources is not run again, so the run may be stopped at any
time. ``svm`` and ``majority`` have no epsilon and stand beside as what could be had at most and at least.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scores import SCORES, score_row
from sets import SETS, SPLITS, UtilitySet, load
from sklearn.svm import LinearSVC

import privsvm
from privsvm.files import write_text
from privsvm.pipeline.sources import closure_digest

TABLE = Path(__file__).resolve().parents[2] / "reports" / "utility" / "ours.csv"
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RELATIONS = ("replace_one", "add_remove")
DELTA = 1e-5
_FIELDS = ("method", "set", "epsilon", "delta", "neighbours", "split", *SCORES, "seconds", "sources")


def _scaled(data: UtilitySet) -> np.ndarray:
    """Features in [-1, 1] by public bounds; methods cut rows to norm 1 themselves."""
    return 2.0 * np.clip((data.X - data.lower) / (data.upper - data.lower), 0.0, 1.0) - 1.0


@dataclasses.dataclass(frozen=True)
class Method:
    """A class of this library with fixed settings; `bounded` takes the units of the file and the bounds."""

    name: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bounded: bool = False

    @functools.cached_property
    def sources(self) -> str:
        """Digest of what it is computed by."""
        return closure_digest(getattr(privsvm, self.name).__module__)[:12]

    def __call__(self, data: UtilitySet, **settings: Any) -> tuple[Any, np.ndarray]:
        """Make the estimator, and the features that it is handed."""
        if self.bounded:
            settings["bounds"] = (data.lower, data.upper)
        estimator = getattr(privsvm, self.name)(delta=DELTA, **self.settings, **settings)
        return estimator, data.X if self.bounded else _scaled(data)


METHODS = {
    "recommended": Method("PrivateLinearClassifier", bounded=True),
    "recommended_balanced": Method("PrivateLinearClassifier", {"class_weight": "balanced"}, bounded=True),
    "recommended_linear": Method("PrivateLinearClassifier", {"features": "linear"}, bounded=True),
    "dp_least_squares": Method("DPLeastSquaresClassifier"),
    "pmsvm_gp_centre": Method("PMSVMGPClassifier", {"scaling": "centre"}),
    "objective_perturbation": Method("ObjectivePerturbationClassifier", {"C": 0.05}),
    "ovr_joint_gaussian": Method("OvRJointGaussianClassifier", {"C": 0.05}),
}
_BOTH_RELATIONS = ("recommended", "recommended_balanced")


def _columns(scores: np.ndarray) -> np.ndarray:
    """One column per class."""
    return scores if scores.ndim == 2 else np.column_stack([-scores, scores])


def private_row(method: str, data: UtilitySet, neighbours: str, epsilon: float, split: int) -> dict[str, float]:
    """Fit one private cell."""
    train, test = data.splits[split]
    settings = {"epsilon": epsilon, "classes": list(range(data.n_classes)), "neighbours": neighbours}
    estimator, X = METHODS[method](data, **settings, random_state=split)
    start = time.process_time()
    estimator.fit(X[train], data.y[train])
    seconds = time.process_time() - start
    return {**score_row(data.y[test], _columns(estimator.decision_function(X[test]))), "seconds": round(seconds, 3)}


def reference_row(method: str, data: UtilitySet, split: int) -> dict[str, float]:
    """Fit what knows no privacy."""
    train, test = data.splits[split]
    start = time.process_time()
    if method == "majority":
        counts = np.bincount(data.y[train], minlength=data.n_classes)
        scores = np.tile(counts.astype(float), (len(test), 1))
    else:
        X = _scaled(data)
        model = LinearSVC(C=1.0, dual="auto").fit(X[train], data.y[train])
        scores = np.full((len(test), data.n_classes), -np.inf)
        scores[:, model.classes_] = _columns(model.decision_function(X[test]))
        scores = np.maximum(scores, scores[np.isfinite(scores)].min() - 1.0)
    return {**score_row(data.y[test], scores), "seconds": round(time.process_time() - start, 3)}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--epsilons", nargs="*", type=float, default=list(EPSILONS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    arguments = parser.parse_args()
    present = {name: METHODS[name].sources if name in METHODS else "" for name in (*METHODS, "majority", "svm")}
    kept = []
    if TABLE.exists():
        with TABLE.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if present.get(row["method"]) == row["sources"]]
    done = {(row["method"], row["set"], row["neighbours"], row["epsilon"], int(row["split"])) for row in kept}
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(_FIELDS), *(",".join(row[name] for name in _FIELDS) for row in kept)]
    write_text(TABLE, "\n".join(lines) + "\n")

    def add(method: str, name: str, neighbours: str, epsilon: str, split: int, cell: dict[str, float]) -> None:
        row = {"method": method, "set": name, "neighbours": neighbours, "epsilon": epsilon, "split": split, **cell}
        row |= {"delta": DELTA if epsilon else "", "sources": present[method]}
        with TABLE.open("a", newline="") as file:
            csv.DictWriter(file, _FIELDS).writerow(row)

    for name in arguments.sets:
        data = load(name)
        for split in range(arguments.splits):
            for method in ("majority", "svm"):
                if (method, name, "", "", split) not in done:
                    add(method, name, "", "", split, reference_row(method, data, split))
            for method in arguments.methods:
                for neighbours in RELATIONS if method in _BOTH_RELATIONS else RELATIONS[:1]:
                    for epsilon in arguments.epsilons:
                        if (method, name, neighbours, f"{epsilon:g}", split) not in done:
                            cell = private_row(method, data, neighbours, epsilon, split)
                            add(method, name, neighbours, f"{epsilon:g}", split, cell)


if __name__ == "__main__":
    main()
