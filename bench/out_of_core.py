"""Train and predict on rows that do not fit into memory: anonymous memory, and throughput beside that of the disk.

Rows are made up on disk, 50 features of float64 each, and removed afterwards. A full pass is one sum over all rows: the
second moments of `DPLeastSquaresClassifier`, or a step of noisy gradient descent. The disk's rate is that of reading
blocks alone; the rate in memory is that of the same sums over rows in memory.
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

FEATURES, EPOCHS, IN_MEMORY = 50, 3, 400_000


def write_rows(path: Path, gigabytes: float) -> None:
    """Write rows of two classes, block by block."""
    n = int(gigabytes * 1e9) // (8 * FEATURES)
    rng = np.random.default_rng(0)
    block = rng.standard_normal((2**16, FEATURES)) * 0.1
    rows = np.lib.format.open_memmap(path / "X.npy", mode="w+", dtype=np.float64, shape=(n, FEATURES))
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


def models(n_rows: int, threads: int) -> dict[str, tuple[Any, int]]:
    """Name, model and number of full passes."""
    common = {"epsilon": 1.0, "delta": 1e-9, "classes": [0, 1], "n_rows": n_rows, "random_state": 0}
    return {
        "least squares": (DPLeastSquaresClassifier(**common), 2),
        "noisy gradients": (PMSVMGPClassifier(epochs=EPOCHS, n_jobs=threads, **common), EPOCHS),
    }


def measure(path: Path, case: str, threads: int) -> dict[str, float]:
    """Fit once in this process; rates are in megabytes a second."""
    rows = open_rows(path / "X.npy", path / "y.npy")
    size = rows.shape[0] * FEATURES * 8 / 1e6
    drop_cache(path / "X.npy")
    started = time.perf_counter()
    for block in rows.blocks():
        rows.read(*block)
    disk = size / (time.perf_counter() - started)
    small = rows.read(0, min(IN_MEMORY, rows.shape[0]))
    model, passes = models(len(small), threads)[case]
    y = np.asarray(rows.labels[: len(small)])
    model.fit(ArrayBlocks(small[:2000]), y[:2000])
    held = ArrayBlocks(small)
    # Not to be kept in another form, which rows on disk are not either.
    held.in_memory = False
    started, processor = time.perf_counter(), time.process_time()
    model.fit(held, y)
    memory_rate = passes * small.nbytes / 1e6 / (time.perf_counter() - started)
    del small, held
    drop_cache(path / "X.npy")
    model, passes = models(rows.shape[0], threads)[case]
    with Peak() as peak:
        started, processor = time.perf_counter(), time.process_time()
        model.fit(rows, None)
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
        predicted = model.predict(rows)
    rate = passes * size / seconds
    return {
        "seconds": seconds,
        "processor": processor,
        "anonymous_megabytes": peak.megabytes,
        "rate": rate,
        "disk": disk,
        "in_memory": memory_rate,
        "share": rate / min(disk, memory_rate),
        "accuracy": float(np.mean(predicted == rows.labels)),
    }


def main() -> None:
    """Measure sizes, each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, nargs="*", default=[1.0, 5.0], help="sizes of the rows")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="where to write rows; a temporary one by default")
    parser.add_argument("--case", help="measure this one on the rows of --folder, and print JSON")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.folder, options.case, options.threads)))
        return
    print("| GB | what | seconds | processor time, s | anonymous MB | MB/s | disk, MB/s | in memory, MB/s | share |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for gigabytes in options.gigabytes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            write_rows(Path(folder), gigabytes)
            for case in models(1, 1):
                arguments = [sys.executable, __file__, "--folder", folder, "--case", case]
                done = subprocess.run(
                    [*arguments, "--threads", str(options.threads)], stdout=subprocess.PIPE, text=True, check=True
                )
                found = json.loads(done.stdout.splitlines()[-1])
                print(
                    f"| {gigabytes:g} | {case} | {found['seconds']:.1f} | {found['processor']:.1f} | "
                    f"{found['anonymous_megabytes']:.0f} | {found['rate']:.0f} | {found['disk']:.0f} | "
                    f"{found['in_memory']:.0f} | {found['share']:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
