"""Train and predict on rows beyond memory: anonymous memory, throughput, and the bits of releases.

The rows are synthetic, 50 features of float32, on disk, and removed afterwards. A full pass is one sum over all rows:
the second moments of `DPLeastSquaresClassifier`, or a step of noisy gradient descent. Rates depend on the load of the
machine: each round measures disk, memory, fit, disk and memory in turn, and the median share of the rounds counts.
Processor time per gigabyte depends less on the load.

Bits are those of one release with one key: from rows in memory, out of core, and by dask's workers, one of which may be
killed in the middle of the rows.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from large_rows import Peak
from sections import with_section

from privsvm import DPLeastSquaresClassifier, PMSVMGPClassifier
from privsvm.numerics.rows.row_blocks import ArrayBlocks, NpyBlocks, RowBlocks

FEATURES, IN_MEMORY, DISK_ROWS = 50, 400_000, 10_000_000
KIND = np.dtype(np.float32)
# Fits up to this many gigabytes are repeated in rounds.
REPEATED, ROUNDS = 5.0, 3

CASES = ("least squares", "noisy gradients")
# Largest array in gigabytes: fits of an array hold it as float64 too.
LARGEST_ARRAY = 1.0
WORKERS = {"1 worker": 1, "2 workers": 2, "4 workers": 4, "2 workers, one killed": 2}
ROUTES = ("an array in memory", "blocks in memory", "out of core", *WORKERS)

HERE = Path(__file__).resolve()
RESULTS, PAGE = HERE.with_suffix(".json"), HERE.parents[1] / "docs" / "large-tables.md"
BEGIN, END = "<!-- out of core: written by bench/out_of_core.py -->", "<!-- end of out of core -->"


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


class FatalBlocks(NpyBlocks):
    """Rows on disk that kill the first process that reads the middle."""

    marker = ""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read rows, or kill this process."""
        if start <= self.shape[0] // 2 < stop and not os.path.exists(self.marker):
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(start, stop)


def drop_cache(path: Path) -> None:
    """Ask Linux to drop its cache of a file."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def model_of(case: str, n_rows: int, threads: int, epochs: int) -> Any:
    """Make the model of a case."""
    # One byte per class, because predictions have the type of the classes.
    classes = [np.int8(0), np.int8(1)]
    # Rows that count what is read are of a class of this script, of which nothing is proved.
    common = {"epsilon": 1.0, "delta": 1e-9, "classes": classes, "random_state": 0, "allow_unsound": True}
    if case == "least squares":
        return DPLeastSquaresClassifier(n_rows=n_rows, **common)
    return PMSVMGPClassifier(n_rows=n_rows, epochs=epochs, n_jobs=threads, **common)


def measure(path: Path, case: str, threads: int, epochs: int, rounds: int) -> dict[str, float]:
    """Fit repeatedly in this process; return rates in megabytes per second."""
    rows = CountedBlocks(path / "X.npy", path / "y.npy")
    row_megabytes = FEATURES * KIND.itemsize / 1e6
    n_small = min(IN_MEMORY, rows.shape[0])
    model_of(case, 2000, threads, epochs).fit(ArrayBlocks(rows.read(0, 2000)), np.asarray(rows.labels[:2000]))

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

    def in_memory() -> tuple[float, float]:
        """Measure megabytes per second, and processor time per gigabyte, in memory."""
        held, y = CountedArray(rows.read(0, n_small)), np.asarray(rows.labels[:n_small])
        started, processor = time.perf_counter(), time.process_time()
        model_of(case, n_small, threads, epochs).fit(held, y)
        megabytes = held.n_read * row_megabytes
        return megabytes / (time.perf_counter() - started), 1e3 * (time.process_time() - processor) / megabytes

    figures = []
    for _ in range(rounds):
        before = disk(), in_memory()
        drop_cache(path / "X.npy")
        rows.n_read = 0
        model = model_of(case, rows.shape[0], threads, epochs)
        with Peak() as peak:
            started, processor = time.perf_counter(), time.process_time()
            model.fit(rows, None)
            seconds, processor = time.perf_counter() - started, time.process_time() - processor
            read = rows.n_read
            predicted = model.predict(rows)
        accuracy = float(np.mean(predicted == rows.labels))
        del predicted
        after = disk(), in_memory()
        rate = read * row_megabytes / seconds
        fastest_disk = max(before[0], after[0])
        fastest_memory = max(before[1][0], after[1][0])
        figures.append(
            {
                "passes": read / rows.shape[0],
                "seconds": seconds,
                "processor": 1e3 * processor / (read * row_megabytes),
                "processor_in_memory": min(before[1][1], after[1][1]),
                "anonymous_megabytes": peak.megabytes,
                "rate": rate,
                "disk": fastest_disk,
                "in_memory": fastest_memory,
                "share": rate / min(fastest_disk, fastest_memory),
                "accuracy": accuracy,
            }
        )
    medians = {name: statistics.median(one[name] for one in figures) for name in figures[0]}
    return medians | {"anonymous_megabytes": max(one["anonymous_megabytes"] for one in figures), "rounds": rounds}


@contextlib.contextmanager
def source_of(path: Path, way: str) -> Iterator[tuple[Any, Any]]:
    """Yield rows and labels in the form that one way of training reads."""
    files = path / "X.npy", path / "y.npy"
    if way == "an array in memory":
        yield np.load(files[0]), np.load(files[1])
    elif way == "blocks in memory":
        yield ArrayBlocks(np.load(files[0])), np.load(files[1])
    elif way == "out of core":
        yield NpyBlocks(*files), None
    else:
        import distributed

        rows = FatalBlocks(*files) if "killed" in way else NpyBlocks(*files)
        if isinstance(rows, FatalBlocks):
            rows.marker = str(path / "killed")
            Path(rows.marker).unlink(missing_ok=True)
        with (
            distributed.LocalCluster(
                n_workers=WORKERS[way], threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield rows.on(client), None
        if isinstance(rows, FatalBlocks) and not os.path.exists(rows.marker):
            raise RuntimeError("no worker was killed")


def bits(path: Path, case: str, way: str, threads: int, epochs: int) -> dict[str, Any]:
    """Train and predict in one way; return digests of release and labels."""
    with source_of(path, way) as (X, y):
        started = time.perf_counter()
        model = model_of(case, X.shape[0], threads, epochs).fit(X, y)
        released = hashlib.sha256()
        for name, value in sorted(vars(model._path).items()):
            if isinstance(value, np.ndarray):
                released.update(name.encode() + np.ascontiguousarray(value).tobytes())
        labels = hashlib.sha256(model.predict(X).astype(np.int8).tobytes())
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "model": released.hexdigest(), "labels": labels.hexdigest()}


TEXT = """{answer}

| rows on disk | what | passes | seconds | memory, MB | MB/s | share of the slower of disk and memory |
| --- | --- | --- | --- | --- | --- | --- |
{rates}

Made-up float32 rows with {features} features (20 GB are 100 million rows), on two threads. Each line is a fit in its
own process, and the prediction of all rows after it. Memory is the peak of anonymous memory, MB/s the rate of full
passes. The last column compares that rate with reading the file alone, or with the same sums in memory, whichever is
slower. `bench/out_of_core.json` has all figures; `python bench/out_of_core.py` measures them again."""


def page_of(results: dict[str, Any]) -> str:
    """Write the section from all figures."""
    rates = sorted(results["rates"].values(), key=lambda one: (one["gigabytes"], CASES.index(one["case"])))
    lines = [
        f"| {one['gigabytes']:g} GB | {one['case']} | {one['passes']:.0f} | {one['seconds']:.1f} | "
        f"{one['anonymous_megabytes']:.0f} | {one['rate']:.0f} | {one['share']:.0%} |"
        for one in rates
    ]
    groups: dict[tuple[float, str], set[tuple[str, str]]] = {}
    for one in results["bits"].values():
        groups.setdefault((one["gigabytes"], one["case"]), set()).add((one["model"], one["labels"]))
    same = sum(len(digests) == 1 for digests in groups.values())
    largest, memory = (max(one[key] for one in rates) for key in ("gigabytes", "anonymous_megabytes"))
    share = min(one["share"] for one in rates)
    answer = (
        f"Training on up to {largest:g} GB of rows took at most {memory:.0f} MB of memory, and ran at {share:.0%} or "
        f"more of the speed that disk or memory allow. {same} of {len(groups)} models had the same bits in every way "
        "of training: in memory, by blocks, from disk, and on 1, 2 or 4 dask workers, one of them killed."
    )
    return TEXT.format(answer=answer, features=FEATURES, rates="\n".join(lines))


def write_page(results: dict[str, Any]) -> None:
    """Replace the section of the page."""
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), BEGIN, END, page_of(results)), encoding="utf-8")


def keep(section: str, gigabytes: float, case: str, figures: dict[str, Any], way: str = "") -> None:
    """Store figures over earlier ones, and write the page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"rates": {}, "bits": {}}
    key = ", ".join(word for word in (f"{gigabytes:g} GB", case, way) if word)
    named = {"gigabytes": gigabytes, "case": case} | ({"way": way} if way else {})
    results[section][key] = named | figures
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    write_page(results)
    print(key, json.dumps(figures), flush=True)


def main() -> None:
    """Measure all sizes, each case in a subprocess."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, nargs="*", default=[1.0, 5.0, 20.0], help="sizes for throughput")
    parser.add_argument("--bits", type=float, nargs="*", default=[1.0, 5.0], help="sizes for bits")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2, help="passes of noisy gradients")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of sizes up to {REPEATED:g} GB")
    parser.add_argument("--folder", type=Path, default=None, help="where to write rows; a temporary one by default")
    parser.add_argument("--case", choices=CASES, help="measure this one on the rows of --folder, and print JSON")
    parser.add_argument("--way", choices=ROUTES, help="with --case: its bits in this way")
    parser.add_argument("--cases", nargs="*", default=list(CASES), help="cases of the tables")
    parser.add_argument("--ways", nargs="*", default=list(ROUTES), help="ways of training to compare")
    options = parser.parse_args()
    if options.case:
        if options.way:
            figures = bits(options.folder, options.case, options.way, options.threads, options.epochs)
        else:
            figures = measure(options.folder, options.case, options.threads, options.epochs, options.rounds)
        print(json.dumps(figures))
        return
    if RESULTS.exists():
        write_page(json.loads(RESULTS.read_text(encoding="utf-8")))
    for gigabytes in sorted({*options.gigabytes, *options.bits}):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            write_rows(Path(folder), gigabytes)

            def alone(case: str, *more: str, folder: str = folder) -> dict[str, Any]:
                """Measure in a subprocess."""
                arguments = [sys.executable, str(HERE), "--folder", folder, "--case", case, *more]
                arguments += ["--threads", str(options.threads), "--epochs", str(options.epochs)]
                done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
                return dict(json.loads(done.stdout.splitlines()[-1]))

            for case in options.cases:
                if gigabytes in options.gigabytes:
                    rounds = options.rounds if gigabytes <= REPEATED else 1
                    keep("rates", gigabytes, case, alone(case, "--rounds", str(rounds)))
                for way in options.ways if gigabytes in options.bits else ():
                    if way != "an array in memory" or gigabytes <= LARGEST_ARRAY:
                        keep("bits", gigabytes, case, alone(case, "--way", way), way)


if __name__ == "__main__":
    main()
