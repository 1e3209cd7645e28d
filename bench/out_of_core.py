"""Train and predict on rows that do not fit into memory: anonymous memory, and throughput beside that of the disk.

Rows are made up on disk, 50 features of float32 each, and removed afterwards. A full pass is one sum over all rows: the
second moments of `DPLeastSquaresClassifier`, or a step of noisy gradient descent. The disk's rate is that of reading
blocks alone, of files that Linux was asked to forget; the rate in memory is that of the same sums over rows in memory.
Rates are those of the clock, on a machine that others may use at the same time: the rate in memory is taken before and
after the fit, and the better one counts. Processor time for each gigabyte does not depend on others as much.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from large_rows import Peak

from privsvm import DPLeastSquaresClassifier, PMSVMGPClassifier, open_rows
from privsvm.numerics.row_blocks import ArrayBlocks

FEATURES, IN_MEMORY, DISK_ROWS = 50, 400_000, 10_000_000
KIND = np.dtype(np.float32)


def write_rows(path: Path, gigabytes: float) -> None:
    """Write rows of two classes, block by block."""
    n = int(gigabytes * 1e9) // (KIND.itemsize * FEATURES)
    rng = np.random.default_rng(0)
    block = rng.standard_normal((2**16, FEATURES)) * 0.1
    rows = np.lib.format.open_memmap(path / "X.npy", mode="w+", dtype=KIND, shape=(n, FEATURES))
    labels = np.lib.format.open_memmap(path / "y.npy", mode="w+", dtype=np.int8, shape=(n,))
    for start in range(0, n, len(block)):
        part = block[: min(len(block), n - start)]
        y = rng.integers(0, 2, len(part))
        rows[start : start + len(part)] = np.roll(part, start // len(block), axis=1) + 0.1 * (2 * y[:, None] - 1)
        labels[start : start + len(part)] = y
    rows.flush()
    labels.flush()


def drop_cache(path: Path) -> None:
    """Ask Linux to forget what it holds of a file."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def models(n_rows: int, threads: int, epochs: int) -> dict[str, tuple[Any, int]]:
    """Name, model and number of full passes."""
    # Predictions are of the classes' type, of one byte here.
    classes = [np.int8(0), np.int8(1)]
    common = {"epsilon": 1.0, "delta": 1e-9, "classes": classes, "n_rows": n_rows, "random_state": 0}
    return {
        "least squares": (DPLeastSquaresClassifier(**common), 2),
        "noisy gradients": (PMSVMGPClassifier(epochs=epochs, n_jobs=threads, **common), epochs),
    }


def measure(path: Path, case: str, threads: int, epochs: int) -> dict[str, float]:
    """Fit once in this process; rates are in megabytes a second."""
    rows = open_rows(path / "X.npy", path / "y.npy")
    size = rows.shape[0] * FEATURES * KIND.itemsize / 1e6
    drop_cache(path / "X.npy")
    started, n_read = time.perf_counter(), 0
    for start, stop in rows.blocks():
        rows.read(start, stop)
        n_read = stop
        if n_read >= DISK_ROWS:
            break
    disk = n_read * FEATURES * KIND.itemsize / 1e6 / (time.perf_counter() - started)
    n_small = min(IN_MEMORY, rows.shape[0])
    model, passes = models(2000, threads, epochs)[case]
    model.fit(ArrayBlocks(rows.read(0, 2000)), np.asarray(rows.labels[:2000]))
    megabytes = passes * n_small * FEATURES * KIND.itemsize / 1e6

    def in_memory() -> tuple[float, float]:
        """Megabytes a second, and processor time for a gigabyte."""
        held, y = ArrayBlocks(rows.read(0, n_small)), np.asarray(rows.labels[:n_small])
        # Not to be kept in another form, which rows on disk are not either.
        held.in_memory = False
        started, processor = time.perf_counter(), time.process_time()
        models(n_small, threads, epochs)[case][0].fit(held, y)
        return megabytes / (time.perf_counter() - started), 1e3 * (time.process_time() - processor) / megabytes

    before = in_memory()
    drop_cache(path / "X.npy")
    model = models(rows.shape[0], threads, epochs)[case][0]
    with Peak() as peak:
        started, processor = time.perf_counter(), time.process_time()
        model.fit(rows, None)
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
        predicted = model.predict(rows)
    after = in_memory()
    rate, memory_rate = passes * size / seconds, max(before[0], after[0])
    return {
        "seconds": seconds,
        "processor": 1e3 * processor / (passes * size),
        "processor_in_memory": min(before[1], after[1]),
        "anonymous_megabytes": peak.megabytes,
        "rate": rate,
        "disk": disk,
        "in_memory": memory_rate,
        "share": rate / min(disk, memory_rate),
        "accuracy": float(np.mean(predicted == rows.labels)),
    }


TITLE = (
    "| GB | passes | what | seconds | anonymous MB | MB/s | disk, MB/s | in memory, MB/s | share |"
    " processor time, s/GB | in memory, s/GB |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
PAGE = f"""# Rows beyond memory

Made by `python bench/out_of_core.py --page docs/rows-beyond-memory.md`, which replaces the lines of what it measures.

Made-up rows of {FEATURES} features on disk, float32: 20 GB are 100 million rows. Each line is a fit in a process of its
own, and prediction of all rows after it, on two threads. Passes are those of the fit. Anonymous memory (RssAnon) is
the peak of both. MB/s are those of full passes; the disk's rate is that of reading blocks alone, after Linux was asked
to forget the file, and the rate in memory that of the same sums over {IN_MEMORY:,} rows in memory, the better of one
before and one after the fit. Share is the rate over the lesser of these two. Others may have used the machine at the
same time: processor time for a gigabyte of a pass, beside that in memory, depends on them the least.

Asked for are at most 1,000 MB, and a share of at least 0.5.

"""


def write_page(page: Path, lines: list[str]) -> None:
    """Write the table, with the lines that it had of other sizes and cases."""
    old = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    known = {
        (text.split(" | ")[0], text.split(" | ")[2]): text for text in old + lines if text[:3].strip("| ").isdigit()
    }
    table = sorted(known.values(), key=lambda text: (float(text.split(" | ")[0].strip("| ")), text.split(" | ")[2]))
    page.write_text(PAGE + "\n".join([TITLE, *table]) + "\n", encoding="utf-8")


def main() -> None:
    """Measure sizes, each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, nargs="*", default=[1.0, 5.0, 20.0], help="sizes of the rows")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3, help="passes of noisy gradients")
    parser.add_argument("--folder", type=Path, default=None, help="where to write rows; a temporary one by default")
    parser.add_argument("--case", help="measure this one on the rows of --folder, and print JSON")
    parser.add_argument("--cases", nargs="*", default=list(models(1, 1, 1)), help="cases of the table")
    parser.add_argument("--page", type=Path, help="write the table there too")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.folder, options.case, options.threads, options.epochs)))
        return
    print(TITLE)
    for gigabytes in options.gigabytes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            write_rows(Path(folder), gigabytes)
            for case in options.cases:
                arguments = [sys.executable, __file__, "--folder", folder, "--case", case]
                arguments += ["--threads", str(options.threads), "--epochs", str(options.epochs)]
                done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
                found = json.loads(done.stdout.splitlines()[-1])
                line = (
                    f"| {gigabytes:g} | {models(1, 1, options.epochs)[case][1]} | {case} | {found['seconds']:.1f} | "
                    f"{found['anonymous_megabytes']:.0f} | {found['rate']:.0f} | {found['disk']:.0f} | "
                    f"{found['in_memory']:.0f} | {found['share']:.2f} | {found['processor']:.1f} | "
                    f"{found['processor_in_memory']:.1f} |"
                )
                print(line, flush=True)
                if options.page:
                    write_page(options.page, [line])


if __name__ == "__main__":
    main()
