"""Run the methods of this library on the sets of the utility table: ``python bench/utility/run_ours.py``.

A cell is a method, a set, a relation of neighbours, an epsilon and a split. ``reports/utility/ours`` has a table for
each set; cells with the digest of the present sources are not run again, so that a run may be stopped and resumed, and
runs with different ``--sets`` may be parallel. ``svm`` and ``majority`` have no epsilon and are references.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import itertools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from scores import SCORES, score_row
from sets import OLDER, SPLITS, UtilitySet, load
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import LinearSVC
from verdicts import OURS

import privsvm
from privsvm.files import write_text
from privsvm_bench.workflow.sources import closure_digest

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RELATIONS = ("replace_one", "add_remove")
DELTA = 1e-5
_FIELDS = ("method", "set", "epsilon", "delta", "neighbours", "split", *SCORES, "seconds", "sources")


def scaled(data: UtilitySet) -> np.ndarray:
    """Scale features to [-1, 1] by public bounds; methods clip rows to norm 1."""
    return 2.0 * np.clip((data.X - data.lower) / (data.upper - data.lower), 0.0, 1.0) - 1.0


@dataclasses.dataclass(frozen=True)
class Method:
    """A class with fixed settings; `bounded`: it takes features and bounds."""

    name: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bounded: bool = False

    @functools.cached_property
    def sources(self) -> str:
        """Digest of the sources."""
        return closure_digest(getattr(privsvm, self.name).__module__)[:12]

    def __call__(self, data: UtilitySet, **settings: Any) -> tuple[Any, np.ndarray]:
        """Make the estimator and its features."""
        if self.bounded:
            settings["bounds"] = (data.lower, data.upper)
            settings["indicators"] = np.flatnonzero(data.indicators).tolist()
        estimator = getattr(privsvm, self.name)(delta=DELTA, **self.settings, **settings)
        return estimator, data.X if self.bounded else scaled(data)


METHODS = {
    "recommended": Method("PrivateLinearClassifier", bounded=True),
    "recommended_balanced": Method("PrivateLinearClassifier", {"class_weight": "balanced"}, bounded=True),
    "recommended_linear": Method("PrivateLinearClassifier", {"features": "linear"}, bounded=True),
    "dp_least_squares": Method("DPLeastSquaresClassifier"),
    "dp_feature_covariance": Method("DPFeatureCovarianceClassifier"),
    "dp_newton": Method("DPNewtonClassifier"),
    "pmsvm_gp_centre": Method("PMSVMGPClassifier", {"scaling": "centre"}),
    "objective_perturbation": Method("ObjectivePerturbationClassifier", {"C": 0.05}),
    "ovr_joint_gaussian": Method("OvRJointGaussianClassifier", {"C": 0.05}),
}
# Slow sets run last, and confirm rows only if no other set can.
SLOW = ("a9a", "cod-rna", "ijcnn1", "w8a", "letter.scale", "usps")
# Number of rows of every method, relation and epsilon that are run again to confirm the others.
CONFIRMED = 4
_BOTH_RELATIONS = ("recommended", "recommended_balanced")


def columns(scores: np.ndarray) -> np.ndarray:
    """Return scores with one column per class."""
    return scores if scores.ndim == 2 else np.column_stack([-scores, scores])


def private_row(method: str, data: UtilitySet, neighbours: str, epsilon: float, split: int) -> dict[str, float]:
    """Fit one private cell."""
    train, test = data.splits[split]
    settings = {"epsilon": epsilon, "classes": list(range(data.n_classes)), "neighbours": neighbours}
    estimator, X = METHODS[method](data, **settings, random_state=split)
    start = time.process_time()
    estimator.fit(X[train], data.y[train])
    seconds = time.process_time() - start
    return {**score_row(data.y[test], columns(estimator.decision_function(X[test]))), "seconds": round(seconds, 3)}


def reference_row(method: str, data: UtilitySet, split: int) -> dict[str, float]:
    """Fit a reference without privacy: "majority", "svm" or "boosting"."""
    train, test = data.splits[split]
    start = time.process_time()
    if method == "majority":
        counts = np.bincount(data.y[train], minlength=data.n_classes)
        scores = np.tile(counts.astype(float), (len(test), 1))
    else:
        if method == "svm":
            X = scaled(data)
            model = LinearSVC(C=1.0, dual="auto")
        else:
            coded = data.coded()
            X = coded.X
            model = HistGradientBoostingClassifier(categorical_features=coded.levels > 0, random_state=split)
        model.fit(X[train], data.y[train])
        scores = np.full((len(test), data.n_classes), -np.inf)
        scores[:, model.classes_] = columns(model.decision_function(X[test]))
        scores = np.maximum(scores, scores[np.isfinite(scores)].min() - 1.0)
    return {**score_row(data.y[test], scores), "seconds": round(time.process_time() - start, 3)}


def _same(row: dict[str, str]) -> bool:
    """Say whether a private cell reproduces its row of the table."""
    scores = private_row(row["method"], load(row["set"]), row["neighbours"], float(row["epsilon"]), int(row["split"]))
    return all(str(scores[name]) == row[name] for name in SCORES)


def confirmed(rows: list[dict[str, str]], present: Mapping[str, str]) -> list[dict[str, str]]:
    """Keep rows of other sources if a sample of them is reproduced."""
    kept = []
    for method, neighbours, epsilon in itertools.product(METHODS, RELATIONS, EPSILONS):
        cell = method, neighbours, f"{epsilon:g}"
        stale = [
            row
            for row in rows
            if (row["method"], row["neighbours"], row["epsilon"]) == cell and row["sources"] != present[method]
        ]
        cheap = [row for row in stale if row["set"] not in SLOW] or stale
        cheap.sort(key=lambda row: (row["set"], row["split"]))
        sample = cheap[:: max(1, len(cheap) // CONFIRMED)]
        if sample and all(_same(row) for row in sample):
            kept += [row | {"sources": present[method]} for row in stale]
        if stale:
            print(f"{', '.join(cell)}: {len(stale)} rows of other sources, {len(sample)} made again", flush=True)
    return kept


def read_rows(name: str) -> list[dict[str, str]]:
    """Read the present rows of a set."""
    path = OURS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _by_cost(names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: (name in SLOW, list(OLDER)[::-1].index(name)))


def main() -> None:
    """Run missing cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--sets", nargs="*", default=list(OLDER), choices=list(OLDER))
    parser.add_argument("--relations", nargs="*", default=list(RELATIONS), choices=RELATIONS)
    parser.add_argument("--epsilons", nargs="*", type=float, default=list(EPSILONS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument(
        "--confirm", action="store_true", help="keep rows of other sources if a sample of them is reproduced"
    )
    arguments = parser.parse_args()
    present = {name: METHODS[name].sources if name in METHODS else "" for name in (*METHODS, "majority", "svm")}
    OURS.mkdir(parents=True, exist_ok=True)
    rows = [row for name in arguments.sets for row in read_rows(name) if row["method"] in present]
    kept = [row for row in rows if present[row["method"]] == row["sources"]]
    kept += confirmed(rows, present) if arguments.confirm else []
    cells = ("method", "set", "neighbours", "epsilon", "split")
    done = {tuple(row[name] for name in cells) for row in kept}
    for name in arguments.sets:
        lines = [",".join(row[field] for field in _FIELDS) for row in kept if row["set"] == name]
        write_text(OURS / f"{name}.csv", "\n".join([",".join(_FIELDS), *lines]) + "\n")

    def add(method: str, name: str, neighbours: str, epsilon: str, split: int, cell: Mapping[str, Any]) -> None:
        row = {"method": method, "set": name, "neighbours": neighbours, "epsilon": epsilon, "split": split, **cell}
        row |= {"delta": DELTA if epsilon else "", "sources": present[method]}
        with (OURS / f"{name}.csv").open("a", newline="") as file:
            csv.DictWriter(file, _FIELDS, lineterminator="\n").writerow(row)

    for name in _by_cost(arguments.sets):
        data = load(name)
        for split in range(arguments.splits):
            for method in ("majority", "svm"):
                if (method, name, "", "", str(split)) not in done:
                    add(method, name, "", "", split, reference_row(method, data, split))
            for method in arguments.methods:
                for neighbours in arguments.relations if method in _BOTH_RELATIONS else RELATIONS[:1]:
                    for epsilon in sorted(arguments.epsilons):
                        key = (name, neighbours, f"{epsilon:g}", str(split))
                        if (method, *key) not in done:
                            cell = private_row(method, data, neighbours, epsilon, split)
                            add(method, name, neighbours, f"{epsilon:g}", split, cell)


if __name__ == "__main__":
    main()
