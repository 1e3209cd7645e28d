"""Time the solvers against other libraries at equal quality, and write the tables of docs/benchmarks.md.

C-SVC is timed on named sets and on shapes drawn at random (drawn.py), each library in subprocesses, and noisy gradient
steps in gradient.py. The other solvers run here, on one thread: times are medians of processor time over alternating
runs. Sets come from the catalogue; a missing one is marked. A table is written once it is measured, so that a run may
be stopped; `python bench/speed.py svm one_norm` measures two of them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import os
import statistics
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from drawn import CACHE_MB, PAGE, compare, date_seed, measure_all, read_rows, start_workers, write_page
from gradient import gradient_rows
from measuring import AddedMemory, time_call
from sections import markdown_table, with_section
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.preprocessing import minmax_scale, scale
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm.numerics.rows.rows import squared_distances
from privsvm.solvers.condensing.condense import feature_weights, greedy_triples, weighted_unit_rows
from privsvm.solvers.linear.crammer_singer import round_off_allowance, solve_crammer_singer
from privsvm.solvers.linear.one_norm_svm import OneNormProblem
from privsvm.warm_up import MODULES, warm_up
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.evidence import machine

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
Row = list[str]


def seconds(*candidates: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """Return the median processor times of alternating runs of candidates, and their results."""
    results, firsts = zip(*(time_call(candidate, 0.0) for candidate in candidates), strict=True)
    times: list[list[float]] = [[first] if first > LONG_SECONDS else [] for first in firsts]
    for _ in range(REPETITIONS):
        for candidate, first, runs in zip(candidates, firsts, times, strict=True):
            if first <= LONG_SECONDS:
                runs.append(time_call(candidate, TURN_SECONDS)[1])
    return [statistics.median(runs) for runs in times], list(results)


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read all rows of a set, dense, with features in [0, 1], and class codes."""
    X, codes = BUNDLED[name](return_X_y=True) if name in BUNDLED else read_rows(name, *resolve(name).pool)
    return minmax_scale(X.toarray() if scipy.sparse.issparse(X) else X), codes


def compare_sets(names: tuple[str, ...], compare_set: Callable[[str], Iterator[Row]]) -> Iterator[Row]:
    """Compare sets in turn on one thread; a missing one is marked."""
    for name in names:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                yield from compare_set(name)
            except PrivSVMError:
                yield [name, "no data"]


def svm_row(label: str, record: dict[str, Any]) -> Row:
    """Write a line of the table of C-SVC."""
    ours, cells, predictions, objectives = record["ours"], [], [], [record["ours"].get("objective")]
    if "fit" not in ours:
        return [label, "no data"]
    for name in SVM_PEERS:
        theirs, ratio = record["peers"].get(name, {}), record["ratios"].get(name, {})
        shown = f"{theirs['fit']:.3g}" if "fit" in theirs else f"over {theirs['over']:g}" if "over" in theirs else "–"
        cells += [shown, f"**{ratio['fit']:.1f}**" if ratio else "–"]
        predictions.append(f"{ratio['predict']:.1f}" if "predict" in ratio else "–")
        objectives.append(theirs.get("objective"))
    known = [value for value in objectives if value is not None]
    spread = f"{np.ptp(known) / abs(known[0]):.0e}" if len(known) > 1 else "–"
    memory = [f"{one['megabytes']:.0f}" for one in (ours, *record["peers"].values()) if "megabytes" in one]
    return [label, f"{ours['fit']:.3g}", *cells, *predictions, spread, " / ".join(memory)]


def svm_rows() -> Iterator[Row]:
    """Time C-SVC on named sets."""
    workers = start_workers(1)
    for label, case in SVM_CASES.items():
        yield svm_row(label, compare({"classes": 2, "gamma": 1.0, **case}, 1, workers))
    for worker in workers.values():
        worker.end()


def crammer_singer_objective(X: np.ndarray, y: np.ndarray, coef: np.ndarray, C: float) -> float:
    """Compute the primal objective of weights (c, d)."""
    margins = X @ coef.T
    margins += 1.0 - margins[np.arange(y.size), y][:, None]
    margins[np.arange(y.size), y] = 0.0
    return 0.5 * float(np.vdot(coef, coef)) + C * float(margins.max(axis=1).sum())


def crammer_singer_rows(name: str) -> Iterator[Row]:
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
            yield [
                label, f"{X.shape[0]} x {X.shape[1]}, {n_classes} classes", f"{C:g}", f"{gap:.0e}", f"{1e3 * mine:.1f}",
                f"{max(solution.gap, 0.0):.0e}", f"{1e3 * theirs:.1f} (tol {tolerance:.0e})",
                f"{max(reached, 0.0):.0e}", f"**{theirs / mine:.1f}**",
            ]  # fmt: skip


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


def one_norm_rows(name: str) -> Iterator[Row]:
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
        yield [name, size, f"{error:.0e}", f"{1e3 * path:.0f}", f"{1e3 * highs:.0f}", f"**{highs / path:.1f}**"]


def grid_search_rows(name: str) -> Iterator[Row]:
    """Compare ci-svm-2018's grid in five-fold cross-validation with GridSearchCV of SVC on the same folds."""
    X, codes = rows_of(name)
    # Importable once rows are read, see `drawn.read_rows`.
    from reproduce.ci_svm.grid_search import PAPER_CS, PAPER_GAMMAS, search_c_and_gamma

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
    yield [
        name, f"{X.shape[0]} x {X.shape[1]}, {n_classes}", f"{100 * ours.accuracy.max():.1f} %", f"{share:.0f} %",
        f"{mine:.2f}", f"{theirs:.1f}", f"**{theirs / mine:.1f}**", f"{100 * np.abs(others - ours.accuracy).max():.2f}",
    ]  # fmt: skip


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


def grouping_rows(name: str) -> Iterator[Row]:
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
            text
            for time, groups in zip(*seconds(*ways), strict=True)
            for text in (f"{time:.2f}", f"{100 * spread(rows, groups):.2f} %")
        ]
        yield [f"{n}", *cells, *"–" * (8 - len(cells))]


def condensing_rows() -> Iterator[Row]:
    """Condense whole sets and uniform random rows: seconds, and the memory that condensing adds."""
    for one in CONDENSED_WHOLE:
        try:
            X = rows_of(one)[0] if isinstance(one, str) else np.random.default_rng(0).random(one)
        except PrivSVMError:
            yield [f"{one}", "no data"]
            continue
        X = scipy.sparse.csr_array(X) if np.count_nonzero(X) < 0.3 * X.size else X
        with threadpool_limits(1), AddedMemory() as added:
            _, spent = time_call(lambda: group_by_triples(X), 0.0)  # noqa: B023 - called at once
        label, kind = one if isinstance(one, str) else "random rows", "sparse" if scipy.sparse.issparse(X) else "dense"
        yield [label, f"{X.shape[0]:,} x {X.shape[1]}, {kind}", f"{spent:.2f}", f"{added.megabytes:.0f}"]


# Rows and header of each table, by the name of its marks.
TABLES: dict[str, tuple[Callable[[], Iterable[Row]], str]] = {
    "svm": (
        svm_rows,
        "case | PrivSVM, s | LIBSVM, s | ratio | oneDAL, s | ratio | predictions / LIBSVM | / oneDAL | dual | MB",
    ),
    "gradient": (gradient_rows, "data | shape | Opacus, ms | PrivSVM, ms | ratio | products, ms"),
    "crammer_singer": (
        lambda: compare_sets(tuple(CRAMMER_SINGER_C), crammer_singer_rows),
        "data | size | C | gap asked for | PrivSVM, ms | its gap | LIBLINEAR, ms | its gap | ratio",
    ),
    "one_norm": (
        lambda: compare_sets(ONE_NORM_SETS, one_norm_rows),
        "data | size, kernel | error | PrivSVM, ms | HiGHS, ms | ratio",
    ),
    "groups": (
        lambda: compare_sets((CONDENSED,), grouping_rows),
        "rows | ours, s | spread | mini-batch k-means, s | spread | k-means, s | spread | MDAV, s | spread",
    ),
    "condensing": (condensing_rows, "data | size | seconds | MB"),
    "grid_search": (
        lambda: compare_sets(GRID_SETS, grid_search_rows),
        "data | size, classes | best accuracy | skipped | PrivSVM, s | scikit-learn, s | ratio | difference",
    ),
}  # fmt: skip


def machine_text() -> str:
    """Describe processor, system and libraries of these figures."""
    versions = []
    for package in ("scikit-learn-intelex", "highspy", "anonypyx"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f", {package} {importlib.metadata.version(package)}")
    return f"These figures are from: {machine()}{''.join(versions)}."


def write_section(name: str, text: str) -> None:
    """Replace a section of the page."""
    marks = f"<!-- {name}: written by bench/speed.py -->", f"<!-- end of {name} -->"
    write_text(PAGE, with_section(PAGE.read_text(encoding="utf-8"), *marks, text))
    print(text, flush=True)


def main() -> None:
    """Measure tables, and write each into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"shapes, {', '.join(TABLES)}; all by default")
    names = parser.parse_args().tables or ["shapes", *TABLES]
    if unknown := set(names) - {"shapes", *TABLES}:
        parser.error(f"{', '.join(sorted(unknown))}: no table of the page; give shapes, {', '.join(TABLES)}")
    warm_up(*MODULES)
    if "shapes" in names:
        write_page(measure_all([date_seed()], sorted({1, min(2, os.cpu_count() or 1)})))
    for name, (rows, header) in TABLES.items():
        if name in names:
            write_section(name, markdown_table(header.split(" | "), rows()))
    write_section("machine", machine_text())


if __name__ == "__main__":
    main()
