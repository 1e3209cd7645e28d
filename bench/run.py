"""Time the solvers against the libraries people use, in one run, at equal quality; write docs/benchmarks.md.

Ratios are medians of several alternating runs on one thread. A peer is stopped at the largest tolerance at which
its objective is at least as good as ours, so neither side works for digits the other does not deliver.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from sklearn.svm import LinearSVC
from svm import CASES, installed_libraries, svm_sections
from threadpoolctl import threadpool_limits

from privsvm.evaluation.metrics import confusion_matrices, confusion_metrics
from privsvm.files import write_text
from privsvm.solvers.crammer_singer import crammer_singer_objective, solve_crammer_singer

REPETITIONS = 7


def seconds(*candidates: Callable[[], object]) -> list[float]:
    """Median time of each candidate, taking turns; the first round warms up."""
    times: list[list[float]] = [[] for _ in candidates]
    for repetition in range(REPETITIONS + 1):
        for index, candidate in enumerate(candidates):
            started = time.perf_counter()
            candidate()
            if repetition:
                times[index].append(time.perf_counter() - started)
    return [statistics.median(item) for item in times]


def unit_rows(load: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Scale features to [-1, 1], then rows to norm 1 at most."""
    X, y = load(return_X_y=True)
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9) * 2 - 1
    return X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None], y


def liblinear(X: np.ndarray, y: np.ndarray, C: float, tolerance: float) -> np.ndarray:
    """Crammer-Singer weights by LIBLINEAR."""
    return (
        LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=tolerance, max_iter=10**6, random_state=0)
        .fit(X, y)
        .coef_
    )


def crammer_singer_rows() -> list[str]:
    """Compare the certified solver with LIBLINEAR at equal objective."""
    rows = []
    for label, load in (("wine", load_wine), ("digits", load_digits)):
        X, y = unit_rows(load)
        n_classes = int(y.max()) + 1
        for C in (0.005, 0.05, 0.5):
            gap = 2e-4 * C**2
            ours = solve_crammer_singer(X, y, n_classes, C, gap)
            tolerance = 1e-1
            while crammer_singer_objective(X, y, liblinear(X, y, C, tolerance), C) > ours.primal + gap:
                tolerance /= 10
            mine, theirs = seconds(
                lambda X=X, y=y, c=n_classes, C=C, gap=gap: solve_crammer_singer(X, y, c, C, gap),
                lambda X=X, y=y, C=C, tolerance=tolerance: liblinear(X, y, C, tolerance),
            )
            rows.append(
                f"| {label} | {X.shape[0]} x {X.shape[1]}, {n_classes} classes | {C:g} | {1e3 * mine:.1f} | "
                f"{1e3 * theirs:.1f} (tol {tolerance:.0e}) | {theirs / mine:.1f} |"
            )
    return rows


def metric_rows() -> list[str]:
    """Compare the counted metrics of many models with scikit-learn's functions."""
    rng = np.random.default_rng(0)
    rows = []
    for label, load in (("breast_cancer", load_breast_cancer), ("digits", load_digits)):
        y = load(return_X_y=True)[1][:300]
        n_classes = int(y.max()) + 1
        predicted = rng.integers(0, n_classes, size=(100, y.size))

        def theirs(y: np.ndarray = y, predicted: np.ndarray = predicted) -> None:
            for answer in predicted:
                accuracy_score(y, answer)
                f1_score(y, answer, average="macro")
                matthews_corrcoef(y, answer)

        def mine(y: np.ndarray = y, predicted: np.ndarray = predicted, c: int = n_classes) -> None:
            confusion_metrics(confusion_matrices(y, predicted, c))

        own, other = seconds(mine, theirs)
        rows.append(
            f"| {label} | 100 models x {y.size} rows | {1e3 * own:.2f} | {1e3 * other:.1f} | {other / own:.0f} |"
        )
    return rows


def peer_version() -> str:
    """Version of oneDAL's package, where it is installed."""
    try:
        return f", scikit-learn-intelex {importlib.metadata.version('scikit-learn-intelex')}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def main() -> None:
    """Run all comparisons, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    libraries = installed_libraries()
    # Before anything here starts threads or grows caches: these run in processes of their own.
    svm = svm_sections(libraries, sorted({1, min(2, os.cpu_count() or 1)}), list(CASES))
    threadpool_limits(1)
    page = "\n".join(
        [
            "# Benchmarks",
            "",
            "Written by `make bench`: run it to see the ratios on your machine. A ratio above 1 means that PrivSVM is "
            "faster. Sets that the machine cannot have (see `python stages/download.py --list`) say `no data`.",
            "",
            f"{datetime.date.today().isoformat()}, {platform.machine()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}"
            f"{peer_version()}.",
            "",
            *svm,
            "## Crammer-Singer solver against LIBLINEAR",
            "",
            f"Here and below: median milliseconds of {REPETITIONS} alternating runs, one thread each. "
            "Ours stops at a certified duality gap of `2e-4 C^2`, which the proof of `pmsvm_wp` needs; LIBLINEAR "
            "(`LinearSVC`) stops at the largest tolerance whose objective is as good, and certifies nothing.",
            "",
            "| data | size | C | PrivSVM, ms | LIBLINEAR, ms | ratio |",
            "| --- | --- | --- | --- | --- | --- |",
            *crammer_singer_rows(),
            "",
            "## Metrics of many models against scikit-learn",
            "",
            "Accuracy, macro-F1 and MCC of 100 models by scikit-learn; all metrics but the AUC by one count.",
            "",
            "| data | size | PrivSVM, ms | scikit-learn, ms | ratio |",
            "| --- | --- | --- | --- | --- |",
            *metric_rows(),
            "",
        ]
    )
    write_text(options.output, page)
    print(page)


if __name__ == "__main__":
    main()
