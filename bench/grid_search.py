"""Time the grid search of C and gamma over ci-svm-2018's grid, in five-fold cross-validation, on one thread.

"From the start" runs our solver on each of the 500 problems, "scikit-learn" its GridSearchCV of SVC on the same folds.
All have the tolerance 1e-3, and the same accuracies up to rows near the decision boundary.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC
from svm import RAW
from threadpoolctl import threadpool_limits

from privsvm.errors import PrivSVMError
from privsvm.families.exact.svm_classifier import SVMClassifier
from privsvm.model_selection.grid_search import PAPER_CS, PAPER_GAMMAS, SearchGrid, search_c_and_gamma
from privsvm_bench.reproduction.context import Context

# Random rows of larger sets.
MOST_ROWS = 1500

BUNDLED = {"breast_cancer (bundled)": load_breast_cancer, "wine (bundled)": load_wine}
SETS = {
    "heart_scale": "all",
    "diabetes_scale": "all",
    "german.numer_scale": "all",
    "splice_scale": "train",
    "satimage.scale": "train",
}


def labelled_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read rows scaled to [-1, 1] and class codes, in random order."""
    if name in BUNDLED:
        X, codes = BUNDLED[name](return_X_y=True)
        X = minmax_scale(X, (-1, 1))
    else:
        rows = Context("grid_search", RAW, "bench").class_rows(name, SETS[name])
        X, codes = rows[0], np.asarray(rows[1])
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    order = np.random.default_rng(0).permutation(len(codes))[:MOST_ROWS]
    return np.ascontiguousarray(X[order]), codes[order].astype(np.int64)


def from_the_start(X: np.ndarray, codes: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Compute accuracies by one fit for each point and fold."""
    right = np.zeros((len(PAPER_CS), len(PAPER_GAMMAS)))
    for number in np.unique(folds):
        test = folds == number
        for i, C in enumerate(PAPER_CS):
            for j, gamma in enumerate(PAPER_GAMMAS):
                model = SVMClassifier(C=C, gamma=gamma, classes=range(codes.max() + 1)).fit(X[~test], codes[~test])
                right[i, j] += (model.predict(X[test]) == codes[test]).sum()
    return right / codes.size


def by_scikit_learn(X: np.ndarray, codes: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Compute accuracies by GridSearchCV: means over folds of nearly equal size."""
    grid = {"C": PAPER_CS, "gamma": PAPER_GAMMAS}
    search = GridSearchCV(SVC(cache_size=200), grid, cv=PredefinedSplit(folds), refit=False).fit(X, codes)
    return search.cv_results_["mean_test_score"].reshape(len(PAPER_CS), len(PAPER_GAMMAS))


def timed(search: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    """Return the smallest processor time of repeated runs, and the accuracies."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        accuracy = search()
        best = min(best, time.process_time() - started)
    return best, accuracy


def compared(name: str) -> str:
    """Write one line of the table."""
    X, codes = labelled_rows(name)
    n_classes = int(codes.max()) + 1
    folds = np.random.default_rng(1).permutation(codes.size) % 5
    search_c_and_gamma(X[:200], codes[:200], n_classes, folds=folds[:200], grid=SearchGrid(Cs=[1.0]))
    result = search_c_and_gamma(X, codes, n_classes, folds=folds)
    ours, accuracy = timed(lambda: search_c_and_gamma(X, codes, n_classes, folds=folds).accuracy, 3)
    cells = [f"{ours:.2f}"]
    for other in (from_the_start, by_scikit_learn):
        seconds, theirs = timed(lambda other=other: other(X, codes, folds), 1)
        difference = 100 * np.abs(theirs - accuracy).max()
        cells.append(f"{seconds:.1f} | **{seconds / ours:.1f}** | {difference:.2f}")
    share = 100 * result.n_skipped / (result.n_solves + result.n_skipped)
    size = f"{X.shape[0]} x {X.shape[1]}, {n_classes}"
    return f"| {name} | {size} | {100 * accuracy.max():.1f} % | {share:.0f} % | {' | '.join(cells)} |"


def grid_search_section() -> list[str]:
    """Write the section on the grid search."""
    lines = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name in (*BUNDLED, *SETS):
            try:
                lines.append(compared(name))
            except PrivSVMError:
                lines.append(f"| {name} | no data | – | – | – | – | – | – | – | – | – |")
    return [
        "## Grid search of C and gamma",
        "",
        "Processor time in seconds on one thread (for PrivSVM the best of 3 runs), for the 100 points of "
        f"ci-svm-2018's grid in five-fold cross-validation, on at most {MOST_ROWS} random rows. PrivSVM warm-starts "
        "each solve from the last C, and skips solves that a smaller C has answered. From the start: PrivSVM's "
        "solver without these two. scikit-learn: GridSearchCV of SVC on the same folds. The last columns are the "
        "largest difference between accuracies, in percentage points.",
        "",
        "| data | size, classes | best accuracy | skipped | ours, s | from the start, s | ratio | difference "
        "| scikit-learn, s | ratio | difference |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *lines,
        "",
    ]


if __name__ == "__main__":
    print("\n".join(grid_search_section()))
