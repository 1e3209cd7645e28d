"""Time the solvers against other libraries at equal quality, and write docs/benchmarks.md.

C-SVC is timed on named sets and on shapes drawn at random (drawn.py), each library in subprocesses, and noisy gradient
steps in gradient.py. The other solvers run here, on one thread: times are medians of processor time over alternating
runs. Sets come from the catalogue; a missing one is marked.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import sklearn
from drawn import (
    CACHE_MB,
    PAGE,
    PEERS,
    PICTURE,
    TOLERANCE,
    Worker,
    compare,
    date_seed,
    drawn_section,
    head,
    measure_all,
    megabytes,
    picture,
    read_rows,
)
from gradient import gradient_section
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.preprocessing import minmax_scale, scale
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm.model_selection.grid_search import PAPER_CS, PAPER_GAMMAS, search_c_and_gamma
from privsvm.numerics.rows.rows import squared_distances
from privsvm.solvers.condensing.condense import feature_weights, greedy_triples, weighted_unit_rows
from privsvm.solvers.linear.crammer_singer import round_off_allowance, solve_crammer_singer
from privsvm.solvers.linear.one_norm_svm import OneNormProblem
from privsvm.warm_up import MODULES, warm_up
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.metrics import METRICS, Predictions

# Shortest turn in seconds, within which short runs are repeated; longer runs than LONG_SECONDS are made once.
REPETITIONS, TURN_SECONDS, LONG_SECONDS = 5, 0.02, 2.0
# C-SVC on named sets: dataset, kernel, C, classes, and gamma, or nothing for scikit-learn's "scale".
SVM_CASES: dict[str, dict[str, Any]] = {
    "cod-rna, rbf": {"set": "cod-rna", "scaled": True, "kernel": "rbf", "C": 1.0, "width": 1 / 8},
    "cod-rna, rbf, C=10": {"set": "cod-rna", "scaled": True, "kernel": "rbf", "C": 10.0, "width": 1.0},
    "ijcnn1, linear": {"set": "ijcnn1", "kernel": "linear", "C": 1.0, "width": 1.0},
    "ijcnn1, rbf": {"set": "ijcnn1", "kernel": "rbf", "C": 1.0, "width": 1 / 22},
    "ijcnn1, rbf, C=32": {"set": "ijcnn1", "kernel": "rbf", "C": 32.0, "width": 2.0},
    "a9a, rbf": {"set": "a9a", "kernel": "rbf", "C": 1.0, "width": 1 / 123},
    "w8a, linear": {"set": "w8a", "kernel": "linear", "C": 1.0, "width": 1.0},
    "USPS, rbf, 10 classes": {"set": "usps", "kernel": "rbf", "C": 10.0, "width": 1 / 128, "classes": 10},
    "letter, rbf, 26 classes": {"set": "letter.scale", "kernel": "rbf", "C": 10.0, "classes": 26},
    "satimage, rbf, 6 classes": {"set": "satimage.scale", "kernel": "rbf", "C": 10.0, "classes": 6},
    "segment, rbf, 7 classes": {"set": "segment.scale", "kernel": "rbf", "C": 10.0, "classes": 7},
    "vowel, rbf, 11 classes": {"set": "vowel.scale", "kernel": "rbf", "C": 10.0, "classes": 11},
    "phishing, rbf": {"set": "phishing", "kernel": "rbf", "C": 1.0},
}
SVM_PEERS = ("LIBSVM", "oneDAL")
# Sets of Crammer and Singer's SVM, and weights C of a row.
CRAMMER_SINGER_C = {
    "wine": (0.005, 0.05, 0.5),
    "digits": (0.005, 0.05, 0.5),
    "cornell_pmsvm": (0.005,),
    "dermatology_pmsvm": (0.005,),
    "isolet_pmsvm": (0.001,),
    "usps": (0.005,),
    "vehicle_pmsvm": (0.001,),
}
# Gap as a share of (C R)^2, as the proof of PMSVM-WP needs it; the best dual value has BEST_SHARE of this gap.
GAP_SHARE, BEST_SHARE, SMALLEST_TOLERANCE = 2e-4, 1e-3, 1e-12
ONE_NORM_SETS = ("breast_cancer", "german_uci", "ionosphere_uci")
ONE_NORM_GRID = [10.0**exponent for exponent in range(-7, 8)]
GRID_SETS = (
    "breast_cancer", "wine", "heart_scale", "diabetes_scale", "german.numer_scale", "splice_scale", "satimage.scale",
)  # fmt: skip
GRID_ROWS = 1500
# Rows of the set that is condensed, most rows of slow groupings (MDAV needs a square matrix), and whole sets.
CONDENSED, CONDENSED_ROWS, SLOW_ROWS = "cod-rna", (1000, 5000, 20_000), 5000
CONDENSED_WHOLE: tuple[str | tuple[int, int], ...] = ("cod-rna", "a9a", "usps", (20_000, 300), (240_000, 8))
BUNDLED = {"breast_cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


def seconds(*candidates: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """Return the median processor times of alternating runs of candidates, and their results."""
    results, times, calls = [], [], []
    for candidate in candidates:
        started = time.process_time()
        results.append(candidate())
        first = time.process_time() - started
        times.append([first] if first > LONG_SECONDS else [])
        calls.append(0 if first > LONG_SECONDS else max(1, int(TURN_SECONDS / max(first, 1e-6))))
    for _ in range(REPETITIONS):
        for candidate, runs, count in zip(candidates, times, calls, strict=True):
            started = time.process_time()
            for _ in range(count):
                candidate()
            if count:
                runs.append((time.process_time() - started) / count)
    return [statistics.median(runs) for runs in times], results


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read all rows of a set, dense, with features in [0, 1], and class codes."""
    X, codes = BUNDLED[name](return_X_y=True) if name in BUNDLED else read_rows(name, *resolve(name).pool)
    return minmax_scale(X.toarray() if scipy.sparse.issparse(X) else X), codes


def section(title: str, text: str, header: str, rows: Iterator[str]) -> list[str]:
    """Write a section: its text, and a table."""
    return [f"## {title}", "", text, "", header, "| --- " * (header.count("|") - 1) + "|", *rows, ""]


def lines_of(names: tuple[str, ...], compare_set: Callable[[str], Iterator[str]]) -> Iterator[str]:
    """Compare sets in turn on one thread; a missing one is marked."""
    for name in names:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                yield from compare_set(name)
            except PrivSVMError:
                yield f"| {name} | no data |"


def svm_row(label: str, record: dict[str, Any]) -> str:
    """Write a line of the table of C-SVC."""
    ours, cells, predictions, objectives = record["ours"], [], [], [record["ours"].get("objective")]
    if "fit" not in ours:
        return f"| {label} | no data |"
    for name in SVM_PEERS:
        theirs, ratio = record["peers"].get(name, {}), record["ratios"].get(name, {})
        shown = f"{theirs['fit']:.3g}" if "fit" in theirs else f"over {theirs['over']:g}" if "over" in theirs else "–"
        cells += [shown, f"**{ratio['fit']:.1f}**" if ratio else "–"]
        predictions.append(f"{ratio['predict']:.1f}" if "predict" in ratio else "–")
        objectives.append(theirs.get("objective"))
    known = [value for value in objectives if value is not None]
    spread = f"{np.ptp(known) / abs(known[0]):.0e}" if len(known) > 1 else "–"
    memory = [f"{one['megabytes']:.0f}" for one in (ours, *record["peers"].values()) if "megabytes" in one]
    cells = [label, f"{ours['fit']:.3g}", *cells, *predictions, spread, " / ".join(memory)]
    return f"| {' | '.join(cells)} |"


def svm_section() -> list[str]:
    """Time C-SVC on named sets."""
    workers = {
        name: Worker(name, 1) for name in ("PrivSVM", *SVM_PEERS)
        if name == "PrivSVM" or importlib.util.find_spec(PEERS[name])
    }  # fmt: skip
    defaults = {"classes": 2, "gamma": 1.0}
    rows = [svm_row(label, compare({**defaults, **case}, 1, workers, {})) for label, case in SVM_CASES.items()]
    for worker in workers.values():
        worker.end()
    return section(
        "Kernel SVM against LIBSVM and oneDAL",
        "`SVMClassifier` against `sklearn.svm.SVC` (LIBSVM) and `sklearnex.svm.SVC` (oneDAL), all with tol "
        f"{TOLERANCE:g} and {CACHE_MB} MB of cache, each in a process of its own on one thread. Times are of the "
        "processor. a9a, w8a and phishing are sparse, the others dense. Predictions are for 5,000 rows. The last "
        "columns are the largest relative difference between the dual objectives, and the megabytes that the fit "
        "added at its peak: PrivSVM, then the peers.",
        "| case | PrivSVM, s | LIBSVM, s | ratio | oneDAL, s | ratio | predictions / LIBSVM | / oneDAL | dual | MB |",
        iter(rows),
    )


def crammer_singer_objective(X: np.ndarray, y: np.ndarray, coef: np.ndarray, C: float) -> float:
    """Compute the primal objective of weights (c, d)."""
    margins = X @ coef.T
    margins += 1.0 - margins[np.arange(y.size), y][:, None]
    margins[np.arange(y.size), y] = 0.0
    return 0.5 * float(np.vdot(coef, coef)) + C * float(margins.max(axis=1).sum())


def crammer_singer_lines(name: str) -> Iterator[str]:
    """Compare the certified solver with LIBLINEAR at an equal gap, on rows as they are and clipped to norm 1.

    LIBLINEAR computes no gap: it is the objective of its weights less the best dual value of our solver. LIBLINEAR gets
    the largest tolerance, in steps of half a power of ten, that reaches the gap.
    """
    plain, y = rows_of(name)
    clipped = plain / np.maximum(1.0, np.linalg.norm(plain, axis=1))[:, None]
    n_classes = int(y.max()) + 1
    for label, X in ((name, plain), (f"{name}, norm 1", clipped)):
        for C in CRAMMER_SINGER_C[name]:
            norm = float(np.linalg.norm(X, axis=1).max())
            gap = GAP_SHARE * (C * norm) ** 2
            allowance = round_off_allowance(*X.shape, n_classes, C, norm)
            best = solve_crammer_singer(X, y, n_classes, C, max(BEST_SHARE * gap, 2 * allowance)).dual

            def liblinear(tolerance: float, X: np.ndarray = X, C: float = C) -> np.ndarray:
                settings = {"multi_class": "crammer_singer", "fit_intercept": False, "max_iter": 10**6}
                return LinearSVC(C=C, tol=tolerance, random_state=0, **settings).fit(X, y).coef_

            tolerance, reached = 10**-0.5, np.inf
            while reached > gap and tolerance > SMALLEST_TOLERANCE:
                tolerance /= 10**0.5
                reached = crammer_singer_objective(X, y, liblinear(tolerance), C) - best
            (mine, theirs), (solution, _) = seconds(
                lambda X=X, C=C, gap=gap: solve_crammer_singer(X, y, n_classes, C, gap),  # type: ignore[misc]
                lambda tolerance=tolerance, fit=liblinear: fit(tolerance),  # type: ignore[misc]
            )
            yield (
                f"| {label} | {X.shape[0]} x {X.shape[1]}, {n_classes} classes | {C:g} | {gap:.0e} | {1e3 * mine:.1f} "
                f"| {max(solution.gap, 0.0):.0e} | {1e3 * theirs:.1f} (tol {tolerance:.0e}) | {max(reached, 0.0):.0e} "
                f"| **{theirs / mine:.1f}** |"
            )


def optima_by_highs(K: np.ndarray, signs: np.ndarray) -> list[float]:
    """Return optima by HiGHS with its defaults, one model ``D(Ku - e gamma) + y >= e``, u = p - q, for each C."""
    import highspy

    signed, n = K * signs[:, None], len(signs)
    matrix = np.hstack([signed, -signed, -signs[:, None], np.eye(n)])
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.row_lower_, program.row_upper_ = np.ones(n), np.full(n, highspy.kHighsInf)
    program.col_lower_ = np.concatenate([np.zeros(2 * K.shape[1]), [-highspy.kHighsInf], np.zeros(n)])
    program.col_upper_ = np.full(matrix.shape[1], highspy.kHighsInf)
    rows, columns = np.nonzero(matrix.T)[::-1]
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.searchsorted(columns, np.arange(matrix.shape[1] + 1))
    program.a_matrix_.index_, program.a_matrix_.value_ = rows, matrix[rows, columns]
    optima = []
    for C in ONE_NORM_GRID:
        program.col_cost_ = np.concatenate([np.ones(2 * K.shape[1]), [0.0], np.full(n, C)])
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.passModel(program)
        highs.run()
        optima.append(highs.getObjectiveValue())
    return optima


def one_norm_lines(name: str) -> Iterator[str]:
    """Compare the path over C with HiGHS, on random kernels of a tenth of the rows, as PPSVM publishes them."""
    X, codes = rows_of(name)
    X, rng = scale(X[:, X.std(axis=0) > 0]), np.random.default_rng(0)
    B, signs = rng.standard_normal((len(X) // 10, X.shape[1])), np.where(codes == 1, 1.0, -1.0)
    kernels = {"linear": X @ B.T, "gaussian": np.exp(-0.3 / X.shape[1] * squared_distances(X, B))}
    for kernel, K in kernels.items():
        (path, highs), (ours, theirs) = seconds(
            lambda K=K: [solution.objective for solution in OneNormProblem(K, signs).path(ONE_NORM_GRID)],  # type: ignore[misc]
            lambda K=K: optima_by_highs(K, signs),  # type: ignore[misc]
        )
        error = np.max(np.abs(np.array(ours) / theirs - 1.0))
        size = f"{K.shape[0]} x {K.shape[1]}, {kernel}"
        yield f"| {name} | {size} | {error:.0e} | {1e3 * path:.0f} | {1e3 * highs:.0f} | **{highs / path:.1f}** |"


def grid_search_lines(name: str) -> Iterator[str]:
    """Compare ci-svm-2018's grid in five-fold cross-validation with GridSearchCV of SVC on the same folds."""
    X, codes = rows_of(name)
    order = np.random.default_rng(0).permutation(len(codes))[:GRID_ROWS]
    X, codes = np.ascontiguousarray(2.0 * X[order] - 1.0), codes[order].astype(np.int64)
    n_classes, folds = int(codes.max()) + 1, np.random.default_rng(1).permutation(len(codes)) % 5
    grid = {"C": PAPER_CS, "gamma": PAPER_GAMMAS}
    search = GridSearchCV(SVC(cache_size=CACHE_MB), grid, cv=PredefinedSplit(folds), refit=False)
    (mine, theirs), (ours, peer) = seconds(
        lambda: search_c_and_gamma(X, codes, n_classes, folds=folds), lambda: search.fit(X, codes)
    )
    others = peer.cv_results_["mean_test_score"].reshape(len(PAPER_CS), len(PAPER_GAMMAS))
    share = 100 * ours.n_skipped / (ours.n_solves + ours.n_skipped)
    yield (
        f"| {name} | {X.shape[0]} x {X.shape[1]}, {n_classes} | {100 * ours.accuracy.max():.1f} % | {share:.0f} % "
        f"| {mine:.2f} | {theirs:.1f} | **{theirs / mine:.1f}** | {100 * np.abs(others - ours.accuracy).max():.2f} |"
    )


def group_by_triples(X: Any, n_threads: int = 1) -> np.ndarray:
    """Group rows by three: condensing without the means."""
    groups = greedy_triples(weighted_unit_rows(X, feature_weights(X)), n_threads)
    group_of = np.empty(X.shape[0], np.int64)
    group_of[groups[groups >= 0]] = np.repeat(np.arange(len(groups)), (groups >= 0).sum(axis=1))
    return group_of


def group_by_mdav(X: np.ndarray) -> np.ndarray:
    """Group rows by anonypyx's MDAV."""
    from anonypyx.microaggregation import MDAVGeneric

    frame, group_of = pd.DataFrame(X).add_prefix("x"), np.empty(len(X), np.int64)
    for number, members in enumerate(MDAVGeneric(frame, list(frame.columns)).partition(3)):
        group_of[members] = number
    return group_of


def spread(X: np.ndarray, group_of: np.ndarray) -> float:
    """Return the sum of squares around the groups' means, as a share of the total."""
    sizes = np.bincount(group_of)
    averaging = scipy.sparse.csr_array((1.0 / sizes[group_of], (group_of, np.arange(len(X)))))
    return float(np.sum((X - (averaging @ X)[group_of]) ** 2) / np.sum((X - X.mean(axis=0)) ** 2))


def grouping_lines(name: str) -> Iterator[str]:
    """Compare condensing with other ways to group about three rows."""
    X = rows_of(name)[0]
    X = X[np.random.default_rng(0).permutation(len(X))]
    for n in CONDENSED_ROWS:
        rows = X[:n]

        def by_means(kind: type, rows: np.ndarray = rows) -> np.ndarray:
            return kind(-(-len(rows) // 3), n_init=1, random_state=0).fit(rows).labels_

        ways: list[Callable[[], np.ndarray]] = [
            lambda rows=rows: group_by_triples(rows),
            lambda: by_means(MiniBatchKMeans),
        ]  # type: ignore[misc]
        if n <= SLOW_ROWS:
            ways.append(lambda: by_means(KMeans))
            if importlib.util.find_spec("anonypyx"):
                ways.append(lambda rows=rows: group_by_mdav(rows))  # type: ignore[misc]
        cells = [
            f"{time:.2f} | {100 * spread(rows, groups):.2f} %" for time, groups in zip(*seconds(*ways), strict=True)
        ]
        yield f"| {n} | {' | '.join(cells + ['– | –'] * (4 - len(cells)))} |"


def condensing_lines() -> Iterator[str]:
    """Condense whole sets and uniform random rows: seconds, and the memory that condensing adds."""
    for one in CONDENSED_WHOLE:
        try:
            X = rows_of(one)[0] if isinstance(one, str) else np.random.default_rng(0).random(one)
        except PrivSVMError:
            yield f"| {one} | no data |"
            continue
        X = scipy.sparse.csr_array(X) if np.count_nonzero(X) < 0.3 * X.size else X
        Path("/proc/self/clear_refs").write_text("5")
        before, started = megabytes("VmRSS"), time.process_time()
        with threadpool_limits(1):
            group_by_triples(X)
        spent, kind = time.process_time() - started, "sparse" if scipy.sparse.issparse(X) else "dense"
        label = one if isinstance(one, str) else "random rows"
        added = megabytes("VmHWM") - before
        yield f"| {label} | {X.shape[0]:,} x {X.shape[1]}, {kind} | {spent:.2f} | {added:.0f} |"


def metric_lines(name: str) -> Iterator[str]:
    """Compare metrics of many models with scikit-learn's functions."""
    y = BUNDLED[name](return_X_y=True)[1][:300]
    n_classes = int(y.max()) + 1
    predicted = np.random.default_rng(0).integers(0, n_classes, size=(100, y.size))
    predictions = Predictions(y, predicted, np.empty((len(predicted), y.size, 0)), n_classes)

    def theirs() -> None:
        for answer in predicted:
            accuracy_score(y, answer)
            f1_score(y, answer, average="macro")
            matthews_corrcoef(y, answer)

    def ours() -> None:
        for metric in METRICS.values():
            if metric.name != "auc":
                metric.compute(predictions)

    (mine, peer), _ = seconds(ours, theirs)
    yield f"| {name} | 100 models x {y.size} rows | {1e3 * mine:.2f} | {1e3 * peer:.1f} | {peer / mine:.0f} |"


def sections() -> Iterator[list[str]]:
    """Write the sections of solvers that run in this process."""
    yield section(
        "Crammer-Singer solver against LIBLINEAR",
        "Processor time in milliseconds. PrivSVM stops at a certified duality gap of `2e-4 (C R)^2`, as the proof of "
        "`pmsvm_wp` requires; R is the largest norm of a row. LIBLINEAR (`LinearSVC`) certifies no gap. It gets the "
        "largest tolerance that brings its objective as close to the optimum. Features are scaled to [0, 1], with rows "
        "unchanged and clipped to norm 1.",
        "| data | size | C | gap asked for | PrivSVM, ms | its gap | LIBLINEAR, ms | its gap | ratio |",
        lines_of(tuple(CRAMMER_SINGER_C), crammer_singer_lines),
    )
    yield section(
        "Path of the 1-norm SVM",
        "Processor time in milliseconds for 15 values of C from 1e-7 to 1e7 on random kernels with a tenth of the "
        "rows. PrivSVM warm-starts each C from the last one; HiGHS solves the paper's form, with defaults. The error "
        "is the largest relative difference between their optima.",
        "| data | size, kernel | error | PrivSVM, ms | HiGHS, ms | ratio |",
        lines_of(ONE_NORM_SETS, one_norm_lines),
    )
    yield section(
        "Condensed information (CI-SVM)",
        f"Ways to group about three rows of {CONDENSED}, with features in [0, 1]. Spread is the sum of squares around "
        "the groups' means, as a share of the total. Condensing uses the paper's weighted cosine similarity, the "
        "others Euclidean distance. Its groups have exactly three rows, those of k-means any number.",
        "| rows | ours, s | spread | mini-batch k-means, s | spread | k-means, s | spread | MDAV, s | spread |",
        lines_of((CONDENSED,), grouping_lines),
    )
    yield section(
        "Condensing of whole sets",
        "Processor seconds, and the memory that condensing adds to the rows.",
        "| data | size | seconds | MB |",
        condensing_lines(),
    )
    yield section(
        "Grid search of C and gamma",
        "Processor time in seconds for the 100 points of ci-svm-2018's grid in five-fold cross-validation, on at most "
        f"{GRID_ROWS} random rows. PrivSVM warm-starts each solve from the last C, and skips solves that a smaller C "
        "has answered. scikit-learn: GridSearchCV of SVC on the same folds. The last column is the largest difference "
        "between accuracies, in percentage points.",
        "| data | size, classes | best accuracy | skipped | PrivSVM, s | scikit-learn, s | ratio | difference |",
        lines_of(GRID_SETS, grid_search_lines),
    )
    yield section(
        "Metrics of many models against scikit-learn",
        "Processor time in milliseconds. scikit-learn computes accuracy, macro-F1 and MCC of 100 models. PrivSVM "
        "computes all metrics except the AUC from one count.",
        "| data | size | PrivSVM, ms | scikit-learn, ms | ratio |",
        lines_of(("breast_cancer", "digits"), metric_lines),
    )


def main() -> None:
    """Run all comparisons, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--seed", type=int, default=date_seed(), help="of the shapes drawn at random")
    parser.add_argument("--opacus", action="store_true", help="also measure Opacus, in a separate environment")
    options = parser.parse_args()
    # Subprocesses first, before this process starts threads or fills caches.
    svm = svm_section()
    results = measure_all([options.seed], sorted({1, min(2, os.cpu_count() or 1)}))
    gradient = gradient_section(with_opacus=options.opacus)
    warm_up(*MODULES)
    try:
        one_dal = f", scikit-learn-intelex {importlib.metadata.version('scikit-learn-intelex')}"
    except importlib.metadata.PackageNotFoundError:
        one_dal = ""
    intro = (
        "A ratio above 1 means that PrivSVM is faster. `make bench` measures everything on your machine; datasets that "
        f"it does not have are marked `no data`. These figures are from {os.cpu_count()} cores ({platform.machine()}), "
        f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}{one_dal}. "
        f"Times are medians of {REPETITIONS} alternating runs on one thread, where nothing else is said; runs over "
        f"{LONG_SECONDS:g} s are made once. For tables beyond memory see [Train on large "
        "tables](large-tables.md#how-fast-it-is). `bench/ablation.csv` lists what each special path of a solver saves."
    )
    parts = [[*head(results), "", intro, ""], svm, drawn_section(results), gradient, *sections()]
    page = "\n".join(line for part in parts for line in part)
    write_text(options.output, page)
    PICTURE.write_text(picture(results["records"]), encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
