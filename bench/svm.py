"""Time kernel SVMs against LIBSVM (scikit-learn) and oneDAL (scikit-learn-intelex), each fit in a subprocess.

A subprocess gives every library its threads, its memory and cold caches. Compilation is not timed: each process begins
with a small fit, and loads all kernels. Rows are read through the catalogue; missing sets are marked.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from drawn import gamma_of, objective, timed, worker_environment
from sklearn.datasets import make_classification

from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.reproduction.context import Context

REPOSITORY = Path(__file__).resolve().parents[1]
RAW = REPOSITORY / ".cache" / "bench"

# Dataset, scaling of dense rows, kernel, C, gamma (None: scikit-learn's "scale").
CASES: dict[str, tuple[str, str, str, float, float | None]] = {
    "cod-rna, rbf": ("cod-rna", "range", "rbf", 1.0, 1 / 8),
    "cod-rna, rbf, C=10": ("cod-rna", "range", "rbf", 10.0, 1.0),
    "ijcnn1, linear": ("ijcnn1", "none", "linear", 1.0, 1.0),
    "ijcnn1, rbf": ("ijcnn1", "none", "rbf", 1.0, 1 / 22),
    "ijcnn1, rbf, C=32": ("ijcnn1", "none", "rbf", 32.0, 2.0),
    "a9a, rbf": ("a9a", "none", "rbf", 1.0, 1 / 123),
    "w8a, linear": ("w8a", "none", "linear", 1.0, 1.0),
    "USPS, rbf, 10 classes": ("usps", "none", "rbf", 10.0, 1 / 128),
    "letter, rbf, 26 classes": ("letter.scale", "none", "rbf", 10.0, None),
    "satimage, rbf, 6 classes": ("satimage.scale", "none", "rbf", 10.0, None),
    "segment, rbf, 7 classes": ("segment.scale", "none", "rbf", 10.0, None),
    "vowel, rbf, 11 classes": ("vowel.scale", "none", "rbf", 10.0, None),
    "phishing, rbf": ("phishing", "none", "rbf", 1.0, None),
    "8 features, rbf, C=100": ("8 features", "none", "rbf", 100.0, 1 / 8),
    "15,000 x 300, rbf": ("15000 x 300, 2", "none", "rbf", 1.0, None),
    "40,000 x 20, rbf": ("40000 x 20, 2", "none", "rbf", 1.0, None),
    "20,000 x 20, rbf, 5 classes": ("20000 x 20, 5", "none", "rbf", 1.0, None),
}
MANY_PREDICTED = "cod-rna, rbf"
N_PREDICTED, N_MANY = 5_000, 100_000
CACHE_MB = 200
TOLERANCE = 1e-3
LIBRARIES = ("PrivSVM", "LIBSVM", "oneDAL")
REPETITIONS = 3
# Fits longer than this are timed once.
LONG_SECONDS = 4.0


def hard_rows() -> tuple[np.ndarray, np.ndarray]:
    """Draw a hard problem: few features, noisy labels, many support vectors."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(10_000, 8))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=len(X)) > 0, 1, -1)


def made_up_rows(n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw clusters for each class with a tenth of the labels wrong, by scikit-learn."""
    informative = min(d, 20)
    return make_classification(
        n, d, n_informative=informative, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=5
    )


def load_rows(dataset: str, scaling: str) -> tuple[Any, np.ndarray]:
    """Read the training rows of a dataset and their labels."""
    if dataset == "8 features":
        return hard_rows()
    if " x " in dataset:
        return made_up_rows(*map(int, re.findall("[0-9]+", dataset)))
    parts = resolve(dataset).parts
    X, y, _ = Context("bench", RAW, "bench").class_rows(dataset, "train" if "train" in parts else next(iter(parts)))
    if scipy.sparse.issparse(X):
        # The peers accept 32-bit indices only.
        X = scipy.sparse.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    if scaling == "range":
        X = 2 * (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12) - 1
    return X, y


def classifier(library: str, **parameters):
    """Build an untrained classifier of one library."""
    common = {"tol": TOLERANCE, "cache_size": CACHE_MB, **parameters}
    if library == "PrivSVM":
        from privsvm import SVMClassifier

        return SVMClassifier(**common)
    if library == "oneDAL":
        import daal4py
        from sklearnex import svm as one_dal

        daal4py.daalinit(1)
        return one_dal.SVC(**common)
    from sklearn.svm import SVC

    return SVC(**common)


def measure(library: str, case: str) -> dict[str, Any]:
    """Fit one case with one library in this process."""
    dataset, scaling, kernel, C, gamma = CASES[case]
    X, y = load_rows(dataset, scaling)
    gamma = gamma_of({"gamma": 1.0}, X) if gamma is None else gamma
    parameters = {"kernel": kernel, "C": C, "gamma": gamma}
    if library == "PrivSVM":
        from privsvm.warm_up import MODULES, warm_up

        warm_up(*MODULES)
    for classes in (2, 3):
        classifier(library, **parameters).fit(X[:50], np.arange(50) % classes).predict(X[:50])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model, seconds = timed(lambda: classifier(library, **parameters).fit(X, y), 1)
    result = {
        "fit_seconds": seconds,
        "fit_megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        "objective": objective(model, X, kernel, gamma),
        "n_support": int(np.sum(model.n_support_)),
        "accuracy": float(np.mean(model.predict(X[:5000]) == y[:5000])),
    }
    for name, count in (
        ("predict_seconds", N_PREDICTED),
        ("predict_many_seconds", N_MANY if case == MANY_PREDICTED else 0),
    ):
        if count:
            rows = X[np.random.default_rng(0).integers(0, X.shape[0], count)]
            result[name] = timed(lambda rows=rows: model.predict(rows), 1)[1]  # type: ignore[misc]
    return result


def run_once(library: str, case: str) -> dict[str, Any]:
    """Measure in a new process."""
    command = [sys.executable, __file__, "--measure", library, case]
    done = subprocess.run(command, env=worker_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def compare(case: str, libraries: list[str]) -> dict[str, dict[str, Any]]:
    """Return medians of alternating runs of each library on one case."""
    runs: dict[str, list[dict[str, Any]]] = {library: [] for library in libraries}
    for repetition in range(REPETITIONS):
        for library in libraries:
            if repetition and (runs[library][0].get("fit_seconds", 1e9) > LONG_SECONDS):
                continue
            runs[library].append(run_once(library, case))
    summary = {}
    for library, measured in runs.items():
        summary[library] = dict(measured[0])
        for key in ("fit_seconds", "predict_seconds", "predict_many_seconds"):
            if key in measured[0]:
                summary[library][key] = statistics.median(run[key] for run in measured)
    return summary


def table_row(case: str, figures: dict[str, dict[str, Any]]) -> str:
    """Write one line of the table: seconds, ratios, and the spread of the objectives."""
    ours = figures["PrivSVM"]
    if "error" in ours:
        return f"| {case} | no data | | | | | | | |"
    cells, predictions = [case, f"{ours['fit_seconds']:.3g}"], []
    for peer in ("LIBSVM", "oneDAL"):
        theirs = figures.get(peer, {"error": "not installed"})
        if "error" in theirs:
            cells += [theirs["error"] if theirs["error"] == "not installed" else "failed", ""]
            predictions.append("")
            continue
        ratio, predicted = (theirs[key] / ours[key] for key in ("fit_seconds", "predict_seconds"))
        cells += [f"{theirs['fit_seconds']:.3g}", f"**{ratio:.1f}**"]
        predictions.append(f"{predicted:.1f}")
    cells += predictions
    objectives = [one["objective"] for one in figures.values() if one.get("objective") is not None]
    cells.append(f"{np.ptp(objectives) / abs(objectives[0]):.0e}" if len(objectives) > 1 else "–")
    return f"| {' | '.join(cells)} |"


def svm_section(libraries: list[str], cases: list[str]) -> list[str]:
    """Write the section: fits, prediction, memory."""
    figures = {case: compare(case, libraries) for case in cases}
    lines = [
        "## Kernel SVM against LIBSVM and oneDAL",
        "",
        "`SVMClassifier` against `sklearn.svm.SVC` (LIBSVM) and `sklearnex.svm.SVC` (oneDAL), all with tol "
        f"{TOLERANCE:g} and {CACHE_MB} MB of cache. Each fit runs in a new, warmed-up process on one thread. Times are "
        f"of the processor, medians of {REPETITIONS} alternating runs. Fits over {LONG_SECONDS:g} s run once. a9a, w8a "
        f"and phishing are sparse, the others dense. Predictions are for {N_PREDICTED:,} rows. The last column is the "
        "largest relative difference between the dual objectives.",
        "",
        "| case | PrivSVM, s | LIBSVM, s | ratio | oneDAL, s | ratio | predictions / LIBSVM | / oneDAL | objectives |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(table_row(case, figures[case]) for case in cases),
        "",
    ]
    one = figures.get(MANY_PREDICTED, {})
    if "predict_many_seconds" in one.get("PrivSVM", {}):
        ours = one["PrivSVM"]
        peers = [
            f"{peer} {one[peer]['predict_many_seconds']:.2f} s (ratio "
            f"**{one[peer]['predict_many_seconds'] / ours['predict_many_seconds']:.1f}**)"
            for peer in ("LIBSVM", "oneDAL")
            if "predict_many_seconds" in one.get(peer, {})
        ]
        lines.append(
            f"- Prediction of {N_MANY:,} rows ({MANY_PREDICTED}, {ours['n_support']:,} support vectors): PrivSVM "
            f"{ours['predict_many_seconds']:.2f} s, {', '.join(peers)}."
        )
    memory = [
        f"{library} {figure['fit_megabytes']:.0f} MB" for library, figure in one.items() if "fit_megabytes" in figure
    ]
    if memory:
        lines.append(f"- Memory that the fit of {MANY_PREDICTED} added at its peak: {', '.join(memory)}.")
    return [*lines, ""]


def installed_libraries() -> list[str]:
    """List the installed libraries; PrivSVM and LIBSVM always are."""
    from importlib.util import find_spec

    return [name for name in LIBRARIES if name != "oneDAL" or find_spec("sklearnex")]


def main() -> None:
    """Measure one fit for the parent process, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs=2, metavar=("LIBRARY", "CASE"))
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    print("\n".join(svm_section(installed_libraries(), options.cases)))


if __name__ == "__main__":
    main()
