"""Measure fits of large tables, in memory and beyond it, and write the tables of docs/large-tables.md.

Tasks are fits of every private linear method on a million dense rows, and on sparse ones that would not fit into memory
as a dense table; fits of the recommended method, which has limits of seconds and gigabytes; and fits of rows on disk,
which are removed afterwards (``TMPDIR`` says where they are written). Each task has its own process, and its figures
are kept in bench/large_tables.json. Rates depend on the load of the machine: each round measures disk, memory, fit,
disk and memory in turn, and the median share of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from measuring import read_status
from sections import markdown_table, with_section

from privsvm.numerics.rows.row_blocks import ArrayBlocks, NpyBlocks, RowBlocks
from privsvm.registry import estimator_class

HERE = Path(__file__).resolve()
RESULTS, PAGE = HERE.with_suffix(".json"), HERE.parents[1] / "docs" / "large-tables.md"

# Rows in memory: number, features, density, classes. The limits are in seconds and gigabytes.
SETS = {"dense": (1_000_000, 20, 1.0, 5), "sparse": (200_000, 2_000, 0.01, 5)}
LIMITS = {
    f"{n:,} x 20, {c} classes": ((n, 20, 1.0, c), seconds, 4)
    for n, seconds in ((50_000, 3), (1_000_000, 60))
    for c in (2, 10)
}
# Limits for every fit.
MEGABYTES, SECONDS, THREADS = 2000, 120, 2
# Name, implementation, parameters.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("recommended", "dp_least_squares", "dp_feature_covariance", "dp_newton")},
    "softmax_dpsgd": ("softmax_dpsgd", {}),
    "softmax_dpsgd, centred": ("softmax_dpsgd", {"scaling": "centre"}),
    "softmax_dpadam": ("softmax_dpadam", {}),
    "pmsvm_gp": ("pmsvm_gp", {}),
    "pmsvm_gp, centred": ("pmsvm_gp", {"scaling": "centre"}),
    "pmsvm_gp, centred, offsets": ("pmsvm_gp", {"scaling": "centre", "fit_intercept": True}),
    "pmsvm_gp, whitened": ("pmsvm_gp", {"scaling": "whiten"}),
    "pmsvm_agp, centred": ("pmsvm_agp", {"scaling": "centre"}),
    "grpua": ("grpua", {}),
    **{
        name: (name, {"C": 0.005})
        for name in (
            "pmsvm_wp", "ovr_joint_gaussian", "opera", "private_svm", "private_svm_laplace", "objective_perturbation",
        )
    },
    "dp_frank_wolfe": ("dp_frank_wolfe", {"radius": 10.0, "n_steps": 80}),
    "private_svm_rbf": ("private_svm_rbf", {"C": 0.005}),
    "landmark_dual": ("landmark_dual", {"C": 0.005, "n_landmarks": 200}),
}  # fmt: skip
# Methods without a form for sparse rows.
DENSE_ONLY = ("pmsvm_gp, whitened",)

# Rows on disk: features, type, those that are read into memory for comparison, and those that time the disk.
FEATURES, KIND, IN_MEMORY, DISK_ROWS = 50, np.dtype(np.float32), 400_000, 10_000_000
# Gigabytes on disk, and rounds of each.
SIZES = {1: 3, 5: 3, 20: 1}
DISK_CASES = {
    "least squares": ("dp_least_squares", {}),
    "noisy gradients": ("pmsvm_gp", {"epochs": 2, "n_jobs": THREADS}),
}


class Peak:
    """Peak of anonymous memory, sampled by a thread."""

    def __init__(self) -> None:
        self.megabytes, self._done = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.sample()

    def sample(self) -> None:
        """Sample once."""
        self.megabytes = max(self.megabytes, read_status("RssAnon"))

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.sample()


def draw_rows(name: str) -> tuple[Any, np.ndarray]:
    """Draw rows in [-1, 1] around the centres of the classes, and class codes."""
    n, d, density, n_classes = SETS[name] if name in SETS else LIMITS[name][0]
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, n)
    if density == 1.0:
        X = rng.standard_normal((n, d))
        X *= 0.2
        X += rng.uniform(-0.3, 0.3, (n_classes, d))[codes]
        np.clip(X, -1.0, 1.0, out=X)
        return X, codes
    per_row = round(d * density)
    # Half of a row's features belong to its class.
    columns = rng.integers(0, d, (n, per_row))
    class_width = d // n_classes
    columns[:, : per_row // 2] = columns[:, : per_row // 2] % class_width + class_width * codes[:, None]
    values = rng.uniform(0.1, 1.0, columns.size)
    X = scipy.sparse.csr_array((values, columns.ravel(), np.arange(n + 1) * per_row), shape=(n, d))
    X.sum_duplicates()
    np.clip(X.data, 0.0, 1.0, out=X.data)
    return X, codes


def measure_fit(name: str, case: str) -> dict[str, float]:
    """Fit a method once in this process, after a small fit that compiles."""
    implementation, parameters = METHODS[case]
    method = estimator_class(implementation)
    X, codes = draw_rows(name)
    labels = list(range(codes.max() + 1))
    common = {"epsilon": 1.0, "classes": labels, "random_state": 0, **parameters}
    common |= {"n_jobs": THREADS} if "n_jobs" in method.declared else {}
    # Below one over the rows: a larger one proves nothing.
    common |= {"delta": 1e-7} if "delta" in method.declared else {}
    common |= {"bounds": (-1, 1)} if name in LIMITS else {}
    # The fewest rows that a fit accepts, of every class; more compile all trials of the recommended method.
    least = 1000 if name in LIMITS else 40
    warm_up_rows = np.concatenate([np.flatnonzero(codes == k)[:least] for k in labels])
    method(**common).fit(X[warm_up_rows], codes[warm_up_rows])
    with Peak() as peak:
        started, processor = time.perf_counter(), time.process_time()
        model = method(**common).fit(X, codes)
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
    return {
        "seconds": seconds,
        "processor": processor,
        "megabytes": peak.megabytes,
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "accuracy": float(np.mean(model.predict(X[:5000]) == codes[:5000])),
    }


def write_rows(path: Path, gigabytes: float) -> None:
    """Write rows of two classes, block by block."""
    n = int(gigabytes * 1e9) // (KIND.itemsize * FEATURES)
    rng = np.random.default_rng(0)
    block = rng.standard_normal((2**16, FEATURES)) * 0.1
    rows = np.lib.format.open_memmap(path / "X.npy", mode="w+", dtype=KIND, shape=(n, FEATURES))
    labels = np.lib.format.open_memmap(path / "y.npy", mode="w+", dtype=np.int8, shape=(n,))
    for start in range(0, n, len(block)):
        chunk = block[: min(len(block), n - start)]
        y = rng.integers(0, 2, len(chunk))
        rows[start : start + len(chunk)] = np.roll(chunk, start // len(block), axis=1) + 0.02 * (2 * y[:, None] - 1)
        labels[start : start + len(chunk)] = y
    rows.flush()
    labels.flush()


class Counted(RowBlocks):
    """Rows that count reads."""

    n_read = 0

    def read(self, start: int, stop: int) -> Any:
        """Read rows."""
        self.n_read += stop - start
        return super().read(start, stop)  # type: ignore[safe-super]


class CountedBlocks(Counted, NpyBlocks):
    """Rows on disk."""


class CountedArray(Counted, ArrayBlocks):
    """Rows in memory that, like rows on disk, are not kept in another form."""

    in_memory = False


def drop_cache(path: Path) -> None:
    """Ask Linux to drop its cache of a file."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def model_of(case: str, n_rows: int) -> Any:
    """Make the model of a case."""
    implementation, parameters = DISK_CASES[case]
    # One byte per class, because predictions have the type of the classes. Nothing is proved of rows that count reads.
    classes = [np.int8(0), np.int8(1)]
    common = {"epsilon": 1.0, "delta": 1e-9, "classes": classes, "random_state": 0, "allow_unsound": True}
    return estimator_class(implementation)(n_rows=n_rows, **common, **parameters)


def measure_disk(gigabytes: int, case: str) -> dict[str, float]:
    """Write rows, and fit them repeatedly in this process; rates are in megabytes per second."""
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), gigabytes)
        figures = measure_rounds(Path(folder), case, SIZES[gigabytes])
    medians = {name: statistics.median(one[name] for one in figures) for name in figures[0]}
    return medians | {"anonymous_megabytes": max(one["anonymous_megabytes"] for one in figures)}


def measure_rounds(path: Path, case: str, rounds: int) -> list[dict[str, float]]:
    """Measure disk, memory, fit, disk and memory in turn, several times."""
    rows = CountedBlocks(path / "X.npy", path / "y.npy")
    row_megabytes = FEATURES * KIND.itemsize / 1e6
    n_small = min(IN_MEMORY, rows.shape[0])
    model_of(case, 2000).fit(ArrayBlocks(rows.read(0, 2000)), np.asarray(rows.labels[:2000]))

    def disk() -> float:
        """Measure the rate of reading blocks alone."""
        drop_cache(path / "X.npy")
        started, n_read = time.perf_counter(), 0
        for start, stop in rows.blocks():
            rows.read(start, stop)
            n_read = stop
            if n_read >= DISK_ROWS:
                break
        return n_read * row_megabytes / (time.perf_counter() - started)

    def in_memory() -> float:
        """Measure the rate of the same sums in memory."""
        held, y = CountedArray(rows.read(0, n_small)), np.asarray(rows.labels[:n_small])
        started = time.perf_counter()
        model_of(case, n_small).fit(held, y)
        return held.n_read * row_megabytes / (time.perf_counter() - started)

    figures = []
    for _ in range(rounds):
        limits = [disk(), in_memory()]
        drop_cache(path / "X.npy")
        rows.n_read = 0
        model = model_of(case, rows.shape[0])
        with Peak() as peak:
            started = time.perf_counter()
            model.fit(rows, None)
            seconds, read = time.perf_counter() - started, rows.n_read
            accuracy = float(np.mean(model.predict(rows) == rows.labels))
        limits = [max(pair) for pair in zip(limits, (disk(), in_memory()), strict=True)]
        rate = read * row_megabytes / seconds
        figures.append(
            {
                "passes": read / rows.shape[0], "seconds": seconds, "rate": rate, "share": rate / min(limits),
                "anonymous_megabytes": peak.megabytes, "accuracy": accuracy,
            }
        )  # fmt: skip
    return figures


def disk_text(results: dict[str, Any]) -> str:
    """Write the answer and the table on rows on disk."""
    known = {
        (size, case): results[key] for size in SIZES for case in DISK_CASES if (key := task_name(size, case)) in results
    }
    rows = [
        [
            f"{size} GB", case, f"{one['passes']:.0f}", f"{one['seconds']:.1f}", f"{one['anonymous_megabytes']:.0f}",
            f"{one['rate']:.0f}", f"{one['share']:.0%}",
        ]
        for (size, case), one in known.items()
    ]  # fmt: skip
    memory = max(one["anonymous_megabytes"] for one in known.values())
    share = min(one["share"] for one in known.values())
    header = "rows on disk | what | passes | seconds | memory, MB | MB/s | share of the slower of disk and memory"
    return (
        f"Training on up to {max(SIZES)} GB of rows took at most {memory:.0f} MB of memory, and ran at {share:.0%} or "
        f"more of the speed that disk or memory allow.\n\n{markdown_table(header.split(' | '), rows)}"
    )


def limits_text(results: dict[str, Any]) -> str:
    """Write the table on the limits of the recommended method."""
    rows = []
    for name, (_, most_seconds, most_gigabytes) in LIMITS.items():
        one = results[task_name(name, "recommended")]
        over = " **over**" if one["seconds"] > most_seconds or one["resident"] > most_gigabytes else ""
        seconds = [f"{one[key]:.1f}" for key in ("seconds", "processor")]
        rows.append([name, *seconds, f"{one['resident']:.2f}{over}", f"{one['accuracy']:.3f}"])
    return markdown_table(["rows", "seconds", "processor time, s", "resident memory, GB", "accuracy"], rows)


def fits_text(results: dict[str, Any]) -> str:
    """Write the table of every method."""
    rows = []
    for name in SETS:
        for case in METHODS:
            if one := results.get(task_name(name, case)):
                # Processor time bounds the wall time on an idle machine, whatever the number of threads.
                over = " **over**" if one["megabytes"] > MEGABYTES or one["processor"] > SECONDS else ""
                seconds = [f"{one[key]:.1f}" for key in ("seconds", "processor")]
                rows.append([case, name, *seconds, f"{one['megabytes']:.0f}{over}", f"{one['accuracy']:.3f}"])
    return markdown_table(["method", "rows", "seconds", "processor time, s", "memory, MB", "accuracy"], rows)


SECTIONS = {"out of core": disk_text, "limits": limits_text, "large rows": fits_text}


def with_figures(page: str, results: dict[str, Any]) -> str:
    """Replace the sections of the page."""
    for name, text in SECTIONS.items():
        marks = f"<!-- {name}: written by bench/large_tables.py -->", f"<!-- end of {name} -->"
        page = with_section(page, *marks, text(results))
    return page


def task_name(size: str | int, case: str) -> str:
    """Name a task: gigabytes on disk or rows in memory, and the case."""
    return f"{size}, {case}" if isinstance(size, str) else f"disk {size} GB, {case}"


def all_tasks() -> dict[str, tuple[str | int, str]]:
    """List the tasks by name."""
    tasks: list[tuple[str | int, str]] = [(name, "recommended") for name in LIMITS]
    tasks += [(name, case) for name in SETS for case in METHODS if name == "dense" or case not in DENSE_ONLY]
    tasks += [(size, case) for size in SIZES for case in DISK_CASES]
    return {task_name(*task): task for task in tasks}


def main() -> None:
    """Measure tasks, each in a subprocess, and write the page after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", default=[""], help="run tasks whose names hold one of them; all by default")
    parser.add_argument("--task", help="measure this one in this process, and print JSON")
    options = parser.parse_args()
    tasks = all_tasks()
    if options.task:
        size, case = tasks[options.task]
        print(json.dumps(measure_fit(size, case) if isinstance(size, str) else measure_disk(size, case)))
        return
    chosen = [name for name in tasks if any(word in name for word in options.words)]
    if not chosen:
        parser.error(f"{options.words[0]!r}: in the name of no task, such as {', '.join(list(tasks)[::8])}")
    failed = False
    for name in chosen:
        done = subprocess.run(
            [sys.executable, str(HERE), "--task", name], stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            failed = True
            continue
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
        results[name] = json.loads(done.stdout.splitlines()[-1])
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        PAGE.write_text(with_figures(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
        print(name, json.dumps(results[name]), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
