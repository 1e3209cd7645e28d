"""Time the solvers against other libraries at equal quality; write docs/benchmarks.md.

Ratios are medians of several alternating runs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from pathlib import Path

import numpy as np
import sklearn
from condense import condense_section
from crammer_singer import REPETITIONS, crammer_singer_section, seconds
from drawn import PICTURE, date_seed, drawn_section, head, measure_all, picture
from gradient import gradient_section
from grid_search import grid_search_section
from one_norm import one_norm_section
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from svm import CASES, installed_libraries, svm_section
from threadpoolctl import threadpool_limits

from privsvm.files import write_text
from privsvm_bench.metrics import METRICS, Predictions


def metric_rows() -> list[str]:
    """Write the table on metrics of many models against scikit-learn's functions."""
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
            predictions = Predictions(y, predicted, np.empty((len(predicted), y.size, 0)), c)
            for metric in METRICS.values():
                if metric.name != "auc":
                    metric.compute(predictions)

        ours, peer = seconds(mine, theirs)
        rows.append(
            f"| {label} | 100 models x {y.size} rows | {1e3 * ours:.2f} | {1e3 * peer:.1f} | {peer / ours:.0f} |"
        )
    return rows


def peer_version() -> str:
    """Return the version of oneDAL's package; empty if it is not installed."""
    try:
        return f", scikit-learn-intelex {importlib.metadata.version('scikit-learn-intelex')}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def main() -> None:
    """Run all comparisons, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"))
    parser.add_argument("--seed", type=int, default=date_seed(), help="of the shapes drawn at random")
    parser.add_argument("--opacus", action="store_true", help="also measure Opacus, in a separate environment")
    options = parser.parse_args()
    libraries = installed_libraries()
    # Subprocesses first, before this process starts threads or fills caches.
    svm = svm_section(libraries, list(CASES))
    results = measure_all([options.seed], sorted({1, min(2, os.cpu_count() or 1)}))
    drawn = drawn_section(results)
    gradient = gradient_section(with_opacus=options.opacus)
    crammer_singer = crammer_singer_section()
    one_norm = one_norm_section()
    condensation = condense_section()
    grid_search = grid_search_section()
    threadpool_limits(1)
    page = "\n".join(
        [
            *head(results),
            "",
            "A ratio above 1 means that PrivSVM is faster. `make bench` measures everything on your machine; "
            f"datasets that it does not have are marked `no data`. These figures are from {os.cpu_count()} cores "
            f"({platform.machine()}), Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn "
            f"{sklearn.__version__}{peer_version()}. For tables beyond memory see [Train on large "
            "tables](large-tables.md#how-fast-it-is).",
            "",
            *svm,
            *drawn,
            *crammer_singer,
            *gradient,
            *one_norm,
            *condensation,
            *grid_search,
            "## Metrics of many models against scikit-learn",
            "",
            f"Processor time in milliseconds on one thread (median of {REPETITIONS} alternating runs). scikit-learn "
            "computes accuracy, macro-F1 and MCC of 100 models. PrivSVM computes all metrics except the AUC from one "
            "count.",
            "",
            "| data | size | PrivSVM, ms | scikit-learn, ms | ratio |",
            "| --- | --- | --- | --- | --- |",
            *metric_rows(),
            "",
        ]
    )
    write_text(options.output, page)
    PICTURE.write_text(picture(results["records"]), encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
