"""Time the triples of CI-SVM against the paper's steps, and against other groupings by three.

The paper's steps search the full matrix of similarities for each triple and find the same triples. k-means has n / 3
centres, MDAV groups of three; both find other groups, so the tables show the spread of the rows around their centres as
a share of the total sum of squares. MDAV is anonypyx's; its column is empty if anonypyx is not installed, or if its
matrix of distances would be too large.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from crammer_singer import paper_rows
from sklearn.cluster import KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from privsvm.errors import PrivSVMError
from privsvm.solvers.condensing.condense import feature_weights, greedy_triples, warm_up, weighted_unit_rows

try:
    from anonypyx.microaggregation import MDAVGeneric
except ImportError:
    MDAVGeneric = None

PRINTED_ROWS = (300, 1000, 3000)
RIVAL_ROWS = (1000, 5000, 20_000)
GROWTH_ROWS = (5000, 10_000, 20_000, 40_000, 59_535)
# Limits: Lloyd's iterations have n / 3 centres, MDAV a square matrix of distances.
KMEANS_ROWS, MDAV_ROWS = 5000, 5000
REPETITIONS = 3
FULL_SETS = ("cod-rna", "a9a", "usps")
# Uniform random rows have no structure to exploit. A pass computes the products of all pairs of rows in single
# precision, for at most PASS_ROWS rows.
RANDOM_SHAPES = ((20_000, 50), (20_000, 300), (40_000, 100), (240_000, 8), (1_000_000, 8))
THREADS, PASS_ROWS, PASS_BLOCK = 2, 40_000, 1024


def triples(X, n_threads: int = 1) -> np.ndarray:
    """Group rows by three: condensing without the means."""
    return greedy_triples(weighted_unit_rows(X, feature_weights(X)), n_threads)


def printed_triples(X: np.ndarray) -> np.ndarray:
    """Follow steps 1 to 4 of the paper, with the library's rounding and rule for ties."""
    U = weighted_unit_rows(X, feature_weights(X)).toarray()
    similarities = np.zeros((len(U), len(U)))
    for column in U.T:
        similarities += np.outer(column, column)
    similarities = np.rint(similarities * 2.0**46)
    pairs, is_left, groups = (
        np.where(np.tri(len(U), dtype=bool), -np.inf, similarities),
        np.ones(len(U), dtype=bool),
        [],
    )
    while is_left.sum() >= 3:
        a, b = np.unravel_index(np.argmax(pairs), pairs.shape)
        is_left[[a, b]] = False
        c = int(np.argmax(np.where(is_left, similarities[a] + similarities[b], -np.inf)))
        is_left[c] = False
        pairs[[a, b, c]] = pairs[:, [a, b, c]] = -np.inf
        groups.append([a, b, c])
    if is_left.any():
        groups.append([*np.flatnonzero(is_left), *[-1] * (3 - is_left.sum())])
    return np.array(groups)


def of_triples(groups: np.ndarray) -> np.ndarray:
    """Return the group of every row."""
    held = groups >= 0
    group_of = np.empty(held.sum(), np.int64)
    group_of[groups[held]] = np.repeat(np.arange(len(groups)), held.sum(axis=1))
    return group_of


def by_means(X: np.ndarray, kind: type) -> np.ndarray:
    """Group rows by k-means with a third as many centres."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(-(-len(X) // 3), n_init=1, random_state=0).fit(X).labels_


def by_mdav(X: np.ndarray) -> np.ndarray:
    """Group rows by anonypyx's MDAV."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    group_of = np.empty(len(X), np.int64)
    for number, members in enumerate(MDAVGeneric(frame, list(frame.columns)).partition(3)):
        group_of[members] = number
    return group_of


def spread(X: np.ndarray, group_of: np.ndarray) -> float:
    """Return the sum of squares around the groups' means, as a share of the total."""
    sizes = np.bincount(group_of)
    averaging = scipy.sparse.csr_array((1.0 / sizes[group_of], (group_of, np.arange(len(X)))))
    return float(np.sum((X - (averaging @ X)[group_of]) ** 2) / np.sum((X - X.mean(axis=0)) ** 2))


def least_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor time and last result of a few runs."""
    times = []
    while len(times) < REPETITIONS and sum(times) < 5.0:
        started = time.process_time()
        result = run()
        times.append(time.process_time() - started)
    return min(times), result


def scaled_rows(name: str) -> Any:
    """Read all rows of a set, shuffled and scaled; sparse if mostly zeros."""
    X = paper_rows(name)[0]
    X = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
    X = X[np.random.default_rng(0).permutation(len(X))]
    return scipy.sparse.csr_array(X) if np.count_nonzero(X) < 0.3 * X.size else X


def printed_lines(X: np.ndarray) -> list[str]:
    """Write the table against the paper's steps."""
    lines = []
    for n in PRINTED_ROWS:
        slow, expected = least_seconds(lambda n=n: printed_triples(X[:n]))
        fast, groups = least_seconds(lambda n=n: triples(X[:n]))
        same = "yes" if np.array_equal(groups, expected) else "**no**"
        lines.append(f"| {n} | {same} | {1e3 * fast:.1f} | {1e3 * slow:.0f} | **{slow / fast:.0f}** |")
    return lines


def rival_lines(X: np.ndarray) -> list[str]:
    """Write the table against other groupings: seconds and spread."""
    lines = []
    for n in RIVAL_ROWS:
        rows = X[:n]
        runs: list[Callable[[], np.ndarray] | None] = [
            lambda rows=rows: of_triples(triples(rows)),
            lambda rows=rows: by_means(rows, MiniBatchKMeans),
            (lambda rows=rows: by_means(rows, KMeans)) if n <= KMEANS_ROWS else None,
            (lambda rows=rows: by_mdav(rows)) if MDAVGeneric is not None and n <= MDAV_ROWS else None,
        ]
        cells = []
        for run in runs:
            if run is None:
                cells += ["–", "–"]
                continue
            seconds, group_of = least_seconds(run)
            cells += [f"{seconds:.2f}", f"{100 * spread(rows, group_of):.2f} %"]
        lines.append(f"| {n} | {' | '.join(cells)} |")
    return lines


def growth_lines(X: np.ndarray) -> list[str]:
    """Write the table on growth: exponents beside those of n log n."""
    lines, last = [], None
    for n in [n for n in GROWTH_ROWS if n <= len(X)]:
        seconds, _ = least_seconds(lambda n=n: triples(X[:n]))
        growth = expected = "–"
        if last is not None:
            step = np.log(n / last[0])
            growth = f"{np.log(seconds / last[1]) / step:.2f}"
            expected = f"{1.0 + np.log(np.log(n) / np.log(last[0])) / step:.2f}"
        lines.append(f"| {n} | {seconds:.2f} | {growth} | {expected} |")
        last = n, seconds
    return lines


def full_set_line(name: str) -> str:
    """Measure a set in a subprocess, for its peak memory; return a line."""
    done = subprocess.run([sys.executable, str(Path(__file__)), name], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def measure_full_set(name: str) -> str:
    """Write seconds on one thread, and megabytes that condensing adds."""
    try:
        X = scaled_rows(name)
    except PrivSVMError:
        return f"| {name} | no data | – | – |"
    warm_up()
    # Reset the peak, which reading the file has set.
    Path("/proc/self/clear_refs").write_text("5")
    before = megabytes("VmRSS")
    with threadpool_limits(1):
        seconds, _ = least_seconds(lambda: triples(X))
    peak = megabytes("VmHWM")
    kind = "sparse" if scipy.sparse.issparse(X) else "dense"
    return f"| {name} | {X.shape[0]} x {X.shape[1]}, {kind} | {seconds:.2f} | {peak - before:.0f} of {peak:.0f} |"


def random_line(n: int, d: int) -> str:
    """Measure random rows in a subprocess; return a line of the table."""
    command = [sys.executable, str(Path(__file__)), str(n), str(d)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def measure_random(n: int, d: int) -> str:
    """Write the wall times of condensing and of passes, and the peak memory."""
    warm_up()
    X = np.random.default_rng(0).random((n, d))
    passes = [pass_seconds(X)]
    started = time.perf_counter()
    triples(X, n_threads=THREADS)
    seconds = time.perf_counter() - started
    peak = megabytes("VmHWM")
    passes.append(pass_seconds(X))
    least = min(passes)
    cells = f"{least:.2f} | {seconds / least:.1f}" if np.isfinite(least) else "– | –"
    return f"| {n:,} x {d} | {seconds:.1f} | {cells} | {peak:.0f} |"


def pass_seconds(X: np.ndarray) -> float:
    """Time one pass: all products of pairs of rows in single precision."""
    if len(X) > PASS_ROWS:
        return np.inf
    with threadpool_limits(THREADS):
        rows = X.astype(np.float32)
        out = np.empty((PASS_BLOCK, len(X)), dtype=np.float32)
        started = time.perf_counter()
        for start in range(0, len(X), PASS_BLOCK):
            block = rows[start : start + PASS_BLOCK]
            np.matmul(block, rows.T, out=out[: len(block)])
        return time.perf_counter() - started


def megabytes(field: str) -> float:
    """Read the memory of this process: current (VmRSS) or peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def condense_section() -> list[str]:
    """Write the section on condensed information."""
    warm_up()
    try:
        X, label = scaled_rows("cod-rna"), "cod-rna"
    except PrivSVMError:
        X, label = np.random.default_rng(0).random((GROWTH_ROWS[-1], 8)) ** 2, "random rows of 8 features"
    with threadpool_limits(1):
        printed, rivals, growth = printed_lines(X), rival_lines(X), growth_lines(X)
    return [
        "## Condensed information (CI-SVM)",
        "",
        f"Processor time on one thread (best of {REPETITIONS} runs, fewer of long ones), on {label}, with features "
        "scaled to [0, 1]. Printed: the paper's steps, taken literally. Both must give the same triples.",
        "",
        "| rows | same triples | ours, ms | printed, ms | ratio |",
        "| --- | --- | --- | --- | --- |",
        *printed,
        "",
        "Other ways to group about three rows. Spread is the sum of squares around the groups' means, as a share of "
        "the total. Condensing uses the paper's weighted cosine similarity, the others Euclidean distance. Its "
        "groups have exactly three rows, those of k-means any number.",
        "",
        "| rows | ours, s | spread | mini-batch k-means, s | spread | k-means, s | spread | MDAV, s | spread |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *rivals,
        "",
        "Growth, as the exponent between one number of rows and the next, beside that of n log n:",
        "",
        "| rows | seconds | exponent | of n log n |",
        "| --- | --- | --- | --- |",
        *growth,
        "",
        "Whole datasets, each in its own process. Memory is what condensing adds, and the peak of the process.",
        "",
        "| data | size | seconds | MB |",
        "| --- | --- | --- | --- |",
        *[full_set_line(name) for name in FULL_SETS],
        "",
        f"Uniform random rows: wall time on {THREADS} threads, beside one pass over all products of pairs of rows in "
        "single precision.",
        "",
        "| size | seconds | a pass, s | passes | peak, MB |",
        "| --- | --- | --- | --- | --- |",
        *[random_line(n, d) for n, d in RANDOM_SHAPES],
        "",
    ]


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            print("\n".join(condense_section()))
        case [name]:
            print(measure_full_set(name))
        case [n, d]:
            print(measure_random(int(n), int(d)))
