"""Run the methods of this library on the sets of the utility table: ``python bench/utility/run_ours.py``.

A cell is a method, a set, a relation of neighbours, an epsilon and a split, and a row of ``reports/utility/ours.csv``.
Cells that the present code measured are not run again, so that a run may be stopped and resumed. ``svm`` and
``majority`` have no epsilon and are references.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn
from cells import Cells
from scores import score_row
from sets import OLDER, SPLITS, UtilitySet, load
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import LinearSVC
from verdicts import TABLES

import privsvm
from privsvm_bench.workflow.sources import closure_digest

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RELATIONS = ("replace_one", "add_remove")
DELTA = 1e-5
REFERENCES = ("majority", "svm")
# Code of references.
SCIKIT_LEARN = f"scikit-learn {sklearn.__version__}"


def scaled(data: UtilitySet) -> np.ndarray:
    """Scale features to [-1, 1] by public bounds; methods clip rows to norm 1."""
    return 2.0 * np.clip((data.X - data.lower) / (data.upper - data.lower), 0.0, 1.0) - 1.0


@dataclasses.dataclass(frozen=True)
class Method:
    """A class with fixed settings; `bounded`: it takes features and bounds."""

    name: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bounded: bool = False

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
# These run last.
SLOW = ("a9a", "cod-rna", "ijcnn1", "w8a", "letter.scale", "usps")
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


def code_of(method: str) -> str:
    """Digest the code of a method."""
    if method in REFERENCES:
        return SCIKIT_LEARN
    return closure_digest(getattr(privsvm, METHODS[method].name).__module__)[:12]


def run(key: tuple[str, ...]) -> dict[str, float]:
    """Run one cell."""
    method, name, neighbours, epsilon, split = key
    if method in REFERENCES:
        return reference_row(method, load(name), int(split))
    return private_row(method, load(name), neighbours, float(epsilon), int(split))


CELLS = Cells(TABLES / "ours.csv", ("method", "set", "neighbours", "epsilon", "split"), code_of, run)


def wanted(
    methods: Sequence[str], sets: Sequence[str], relations: Sequence[str], n_splits: int
) -> Iterator[tuple[str, ...]]:
    """List the keys of all cells, slow sets last."""
    splits = [str(split) for split in range(n_splits)]
    for name in sorted(sets, key=lambda name: (name in SLOW, list(OLDER)[::-1].index(name))):
        for method in (*REFERENCES, *methods):
            if method in REFERENCES:
                yield from ((method, name, "", "", split) for split in splits)
                continue
            both = relations if method in _BOTH_RELATIONS else RELATIONS[:1]
            for neighbours, epsilon, split in itertools.product(both, EPSILONS, splits):
                yield method, name, neighbours, f"{epsilon:g}", split


def main() -> None:
    """Run missing cells, or confirm a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--sets", nargs="*", default=list(OLDER), choices=list(OLDER))
    parser.add_argument("--relations", nargs="*", default=list(RELATIONS), choices=RELATIONS)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--confirm", type=int, metavar="CELLS", help="run a sample of each method with changed code")
    arguments = parser.parse_args()
    if arguments.confirm:
        sys.exit(not CELLS.confirm([*REFERENCES, *arguments.methods], arguments.confirm))
    CELLS.measure(wanted(arguments.methods, arguments.sets, arguments.relations, arguments.splits))


if __name__ == "__main__":
    main()
