"""Time SVMs on random shapes, which rule out tuning to the cases; print the distribution of the ratios to the peers.

Each library runs in a subprocess, which is killed if a fit takes too long: its ratio is then a lower bound. With one
thread all times are processor time, which depends less on the load of the machine. `bench/drawn.json` holds the
records, and is extended by a run with the same seeds; the page's answer, picture and table are computed from it.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib.util
import json
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from measuring import AddedMemory, time_call
from peer_environments import LineWorker, single_threaded
from sections import markdown_table, with_section

N_CASES = 24
LIMIT_SECONDS = 20.0
CACHE_MB = 200
TOLERANCE = 1e-3
# Number of timed predictions.
N_PREDICTED = 5000
# Ratio of the limits of wall time and processor time, with one thread.
BUSY = 10.0
# Repetitions of cases with a ratio below 1.
AGAIN = 5
# Shorter fits are repeated.
SHORT_SECONDS = 0.3
# Most numbers of a matrix: 320 MB in double precision.
LARGEST = 40_000_000
REPOSITORY = Path(__file__).resolve().parents[1]
RAW = REPOSITORY / ".cache" / "bench"
RESULTS = REPOSITORY / "bench/drawn.json"
PAGE, PICTURE = REPOSITORY / "docs" / "benchmarks.md", REPOSITORY / "docs" / "images" / "speed.svg"
ANSWER = "<!-- answer: written by bench/drawn.py -->", "<!-- end of answer -->"
TABLE = "<!-- shapes: written by bench/drawn.py -->", "<!-- end of shapes -->"
# Peers by the package that they need.
PEERS = {"LIBSVM": "sklearn", "oneDAL": "sklearnex"}
# Peers without threads.
ONE_THREAD = ("LIBSVM",)


def draw_case(rng: np.random.Generator) -> dict[str, Any]:
    """Draw one shape."""

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    n, d = round(between(300, 40_000)), round(between(2, 1000))
    return {
        "n": min(n, LARGEST // d),
        "d": d,
        "classes": min(round(between(2, 26.4)), 26),
        "density": float(rng.choice([1.0, 0.1, 0.01])),
        "kernel": str(rng.choice(["rbf", "rbf", "linear"])),
        "C": between(0.01, 100.0),
        "gamma": between(0.1, 10.0),
        "noise": between(0.001, 0.3),
        "seed": int(rng.integers(2**31)),
    }


def read_rows(name: str, *parts: str) -> tuple[Any, np.ndarray]:
    """Read a set of the catalogue, its first part if none is named: rows and class codes."""
    from privsvm_bench.datasets.catalogue import resolve

    sys.path.insert(0, str(REPOSITORY))
    from reproduce.engine.context import Context

    known = resolve(name).parts
    parts = parts or ("train" if "train" in known else next(iter(known)),)
    X, codes, _ = Context("bench", RAW, "bench").class_rows(name, *parts)
    if scipy.sparse.issparse(X):
        # The peers accept 32-bit indices only.
        X = scipy.sparse.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    return X, codes


def make_rows(case: dict[str, Any]) -> tuple[Any, np.ndarray, np.ndarray | Any]:
    """Draw rows around centres of their classes, with label noise; or read a named set."""
    if "set" in case:
        X, y = read_rows(case["set"])
        if case.get("scaled"):
            X = 2 * (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12) - 1
        return X, y, X[np.random.default_rng(0).integers(0, X.shape[0], N_PREDICTED)]
    rng = np.random.default_rng(case["seed"])
    n, d, classes = case["n"] + N_PREDICTED, case["d"], case["classes"]
    y = rng.integers(0, classes, n)
    if case["density"] < 1.0:
        X = scipy.sparse.random_array((n, d), density=case["density"], rng=rng, format="csr", data_sampler=rng.normal)
        X = X + X.multiply(rng.normal(size=(classes, d))[y] * 0.7)
        X = scipy.sparse.csr_matrix(X)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    else:
        X = rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[y] * min(1.0, 3.0 / np.sqrt(d))
    wrong = rng.random(n) < case["noise"]
    y[wrong] = rng.integers(0, classes, int(wrong.sum()))
    y[:classes] = np.arange(classes)
    return X[: case["n"]], y[: case["n"]], X[case["n"] :]


def gamma_of(case: dict[str, Any], X: Any) -> float:
    """Return a multiple of scikit-learn's "scale", or the width of a named case."""
    if "width" in case:
        return float(case["width"])
    mean = X.mean()
    variance = float(X.multiply(X).mean() - mean**2) if scipy.sparse.issparse(X) else float(X.var())
    return case["gamma"] / (X.shape[1] * max(variance, 1e-12))


def objective(model: Any, X: Any, kernel: str, gamma: float) -> float:
    """Sum the dual objectives of all pairs of classes in float64."""
    from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix

    coef = model.dual_coef_
    coef = np.asarray(coef.toarray() if scipy.sparse.issparse(coef) else coef)
    starts = np.concatenate([[0], np.cumsum(model.n_support_)])
    vectors, total = X[model.support_], 0.0
    for a in range(len(starts) - 1):
        for b in range(a + 1, len(starts) - 1):
            rows_a, rows_b = slice(starts[a], starts[a + 1]), slice(starts[b], starts[b + 1])
            rows = np.r_[rows_a, rows_b]
            values = np.concatenate([coef[b - 1, rows_a], coef[a, rows_b]])
            used = values != 0
            values, rows = values[used], rows[used]
            for begin in range(0, len(rows), 500):
                chunk = rows[begin : begin + 500]
                block = kernel_matrix(vectors[chunk], vectors[rows], Kernel(kernel, gamma))
                total += 0.5 * float(values[begin : begin + 500] @ (block @ values))
            total -= float(np.abs(values).sum())
    return total


def time_run(call: Callable[[], Any], threads: int) -> tuple[Any, float]:
    """Return the result of a call and its mean processor time; on several threads, the least wall time of three."""
    if threads == 1:
        return time_call(call, SHORT_SECONDS)
    times: list[float] = []
    while len(times) < 3 and (not times or times[-1] <= SHORT_SECONDS):
        started = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - started)
    return result, min(times)


def limit_processor_time(seconds: float) -> None:
    """Let a signal end this process after so much more processor time."""
    used = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(np.ceil(used + seconds)), resource.getrlimit(resource.RLIMIT_CPU)[1]))


def measure(library: str, threads: int, case: dict[str, Any]) -> tuple[dict[str, Any], Callable[[], float] | None]:
    """Fit and predict one case; return times and a function for the objective."""
    X, y, rows = make_rows(case)
    gamma = gamma_of(case, X)
    if threads == 1:
        limit_processor_time(case["limit"] + SHORT_SECONDS)
    common = {"C": case["C"], "kernel": case["kernel"], "gamma": gamma, "tol": TOLERANCE, "cache_size": CACHE_MB}
    if library == "PrivSVM":
        from privsvm import SVMClassifier

        kind: Any = functools.partial(SVMClassifier, n_jobs=threads)
    elif library == "oneDAL":
        import daal4py
        from sklearnex.svm import SVC

        daal4py.daalinit(threads)
        kind = SVC
    else:
        from sklearn.svm import SVC

        kind = SVC
    build = functools.partial(kind, **common)
    # Untimed fit that loads and compiles.
    warm_up_rows = np.concatenate([np.flatnonzero(y == k)[:20] for k in range(case["classes"])])
    build().fit(X[warm_up_rows], y[warm_up_rows]).predict(rows[:10])
    with AddedMemory() as added:
        model, fit = time_run(lambda: build().fit(X, y), threads)
    if threads == 1:
        # Predictions and objectives are not limited.
        limit_processor_time(60 * LIMIT_SECONDS)
    predict = time_run(lambda: model.predict(rows), threads)[1]
    return {"fit": fit, "predict": predict, "megabytes": added.megabytes}, lambda: objective(
        model, X, case["kernel"], gamma
    )


class Worker(LineWorker):
    """A library in a subprocess."""

    def __init__(self, library: str, threads: int) -> None:
        self.threads = threads
        # OPENBLAS_CORETYPE may restrict OpenBLAS to an older processor, but not MKL, which oneDAL uses.
        environment = single_threaded("OPENBLAS_CORETYPE")
        super().__init__([sys.executable, __file__, "--worker", library, str(threads)], environment)

    def run(self, case: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Measure a case; return ``{"over": seconds}`` if the fit did not end in time."""
        if self.start():
            # Loading and compiling are not limited.
            self.answer()
        self.ask({**case, "limit": seconds})
        answer = self.answer(BUSY * seconds if self.threads == 1 else seconds)
        if answer is None:
            self.end()
            # The wall time of one thread is no measurement: the machine was busy.
            return {"over": seconds} if self.threads > 1 else {"error": "took too long by the clock"}
        if answer:
            return answer
        return {"over": seconds} if self.process.wait() == -signal.SIGXCPU else {"error": "ended"}

    def objective(self) -> float | None:
        """Return the dual objective of the last model; None if it has none."""
        self.ask(None)
        return (self.answer() or {}).get("objective")


def serve(library: str, threads: int) -> None:
    """Measure cases from standard input; null asks for an objective."""
    if library == "PrivSVM":
        from privsvm.warm_up import MODULES, warm_up

        warm_up(*(name for name in MODULES if name.startswith("solvers.kernel")))
    print(json.dumps({"ready": True}), flush=True)
    value: Callable[[], float] | None = None
    for line in sys.stdin:
        case = json.loads(line)
        try:
            if case is None:
                answer: dict[str, Any] = {"objective": value() if value else None}
            else:
                answer, value = measure(library, threads, case)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


def ratios(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """Divide a peer's times by ours, for fits and predictions."""
    if "over" in theirs:
        return {"fit": theirs["over"] / ours["fit"]}
    return {key: theirs[key] / ours[key] for key in ("fit", "predict") if key in theirs and key in ours}


def cases_of(seed: int) -> list[dict[str, Any]]:
    """Draw the cases of a seed."""
    rng = np.random.default_rng(seed)
    return [draw_case(rng) for _ in range(N_CASES)]


def compare(case: dict[str, Any], count: int, workers: dict[str, Worker]) -> dict[str, Any]:
    """Measure a case with every library on `count` threads; return its record."""
    ours = workers["PrivSVM"].run(case, 6 * LIMIT_SECONDS)
    # At least our own time: stopping a peer earlier would give no ratio.
    limit = max(LIMIT_SECONDS, ours.get("fit", 0.0))
    record: dict[str, Any] = {**case, "threads": count, "ours": ours, "peers": {}, "ratios": {}}
    for name, worker in workers.items():
        if name == "PrivSVM" or (name in ONE_THREAD and count > 1):
            continue
        theirs = record["peers"][name] = worker.run(case, limit)
        if "fit" not in ours or not {"fit", "over"} & set(theirs):
            continue
        repeated = [ratios(ours, theirs)]
        if min(repeated[0].values()) < 1.0:
            # Repeat, because the machine may have been busy.
            for _ in range(AGAIN):
                pair = workers["PrivSVM"].run(case, 2 * limit), worker.run(case, 2 * limit)
                if "fit" in pair[0] and {"fit", "over"} & set(pair[1]):
                    repeated.append(ratios(*pair))
        record["ratios"][name] = {
            key: float(np.median([one[key] for one in repeated if key in one])) for key in repeated[0]
        }
        if count == 1 and "fit" in theirs:
            if "objective" not in ours:
                ours["objective"] = workers["PrivSVM"].objective()
            theirs["objective"] = worker.objective()
    return record


def start_workers(count: int) -> dict[str, Worker]:
    """Return workers of the libraries that are installed, ours first."""
    return {"PrivSVM": Worker("PrivSVM", count)} | {
        name: Worker(name, count) for name, package in PEERS.items() if importlib.util.find_spec(package)
    }


def measure_all(seeds: list[int], threads: list[int]) -> dict[str, Any]:
    """Measure the cases that `RESULTS` lacks, write it after each case, and return everything."""
    earlier = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"records": []}
    cases = [case for seed in seeds for case in cases_of(seed)]
    wanted = {(case["seed"], count) for case in cases for count in threads}
    records = [one for one in earlier["records"] if (one["seed"], one["threads"]) in wanted]
    results: dict[str, Any] = {"seeds": seeds, "threads": sorted(threads), "records": records}
    known = {(one["seed"], one["threads"]) for one in records}
    for count in threads:
        workers = start_workers(count)
        for case in cases:
            if (case["seed"], count) not in known:
                records.append(compare(case, count, workers))
                write_results(results)
        for worker in workers.values():
            worker.end()
    copy_single_threaded(records)
    write_results(results)
    return results


def copy_single_threaded(records: list[dict[str, Any]]) -> None:
    """Compare fits on several threads with the peers that have only one."""
    single = {record["seed"]: record for record in records if record["threads"] == 1}
    for record in records:
        for name in ONE_THREAD:
            theirs = single.get(record["seed"], record)["peers"].get(name)
            if record["threads"] > 1 and theirs and "fit" in record["ours"] and {"fit", "over"} & set(theirs):
                record["peers"][name], record["ratios"][name] = theirs, ratios(record["ours"], theirs)


def write_results(results: dict[str, Any]) -> None:
    """Write results as JSON, one line a record."""
    lines = ",\n".join(json.dumps(record) for record in results["records"])
    head = json.dumps({**results, "records": []}).removesuffix("]}")
    RESULTS.write_text(f"{head}\n{lines}\n]}}\n")


def excess(record: dict[str, Any], peer: str) -> float | None:
    """Return the relative excess of a peer's objective over ours, or None."""
    ours, theirs = record["ours"].get("objective"), record["peers"].get(peer, {}).get("objective")
    return None if ours is None or theirs is None else (theirs - ours) / max(abs(ours), 1e-300)


def sentence(records: list[dict[str, Any]]) -> str:
    """Say in two sentences how fits compare."""
    ended = [one for one in records if "fit" in one["ours"]]
    medians, slower, beside = [], 0, 0
    for name in PEERS:
        values = [one["ratios"][name]["fit"] for one in records if name in one["ratios"]]
        if values:
            medians.append(f"{np.median(values):.0f} times as fast as {name}")
            slower, beside = slower + sum(value < 1 for value in values), beside + len(values)
    stopped = f" {len(records) - len(ended)} further fits were stopped." if len(ended) < len(records) else ""
    return (
        f"Over {len(ended)} random problems, `SVMClassifier` is {' and '.join(medians)} (median). It is slower in "
        f"{slower or 'none'} of {beside} comparisons.{stopped}"
    )


def picture(records: list[dict[str, Any]]) -> str:
    """Draw the ratio of every fit, one dot each, on a logarithmic axis."""
    from privsvm_bench.charts import BLUE, INK, new_figure, style, svg_text

    names = [name for name in PEERS if any(name in one["ratios"] for one in records)]
    with style():
        figure, (axes,) = new_figure(720, 60 + 60 * len(names))
        figure.subplots_adjust(0.17, 50 / (60 + 60 * len(names)), 0.97, 0.96)
        for height, name in enumerate(reversed(names)):
            values = sorted(one["ratios"][name]["fit"] for one in records if name in one["ratios"])
            heights = height + 0.3 * (np.arange(len(values)) % 5 / 4 - 0.5)
            axes.plot(values, heights, "o", color=BLUE, alpha=0.5, markersize=5, linestyle="none")
            axes.plot([np.median(values)] * 2, [height - 0.3, height + 0.3], color=INK, linewidth=2)
        axes.axvline(1.0, color=INK, linewidth=1, linestyle=(0, (2, 3)))
        axes.set_yticks(range(len(names)), names[::-1])
        axes.set(xscale="log", ylim=(-0.5, len(names) - 0.5))
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        axes.set_xlabel("time of the other library over ours (1: equally fast; line: median)")
        return svg_text(figure, "Time of other SVM libraries over that of SVMClassifier, one dot a fit")


def shape_table(results: dict[str, Any]) -> str:
    """Write the distribution of the ratios."""
    threads, records, rows = results["threads"], results["records"], []
    for count in threads:
        for name in PEERS:
            tried = [one for one in records if one["threads"] == count and name in one["peers"]]
            compared = [one for one in tried if name in one["ratios"]]
            if not compared:
                continue
            fits = [one["ratios"][name]["fit"] for one in compared]
            predictions = [one["ratios"][name]["predict"] for one in compared if "predict" in one["ratios"][name]]
            above = [value for one in compared if (value := excess(one, name)) is not None]
            rows.append([
                name, count, f"{len(fits)} of {len(tried)}", f"{min(fits):.2f}", f"**{np.median(fits):.1f}**",
                sum(value < 1 for value in fits),
                *([f"{min(predictions):.2f}", f"{np.median(predictions):.1f}"] if predictions else "––"),
                *([f"{max(0.0, -min(above)):.0e}", f"{max(*above, 0.0):.0e}"] if above else "––"),
            ])  # fmt: skip
    header = ["peer", "threads", "cases", "least", "median", "below 1", "predictions: least", "median",
              "ours above theirs, most", "theirs above ours, most"]  # fmt: skip
    return markdown_table(header, rows)


def with_shapes(page: str, results: dict[str, Any]) -> str:
    """Replace the page's answer and its table of shapes."""
    return with_section(with_section(page, *ANSWER, sentence(results["records"])), *TABLE, shape_table(results))


def write_page(results: dict[str, Any]) -> None:
    """Draw the picture, and write the answer and the table."""
    PICTURE.write_text(picture(results["records"]), encoding="utf-8")
    PAGE.write_text(with_shapes(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def date_seed() -> int:
    """Return the date as a number: a seed that rules out tuning."""
    return int(datetime.date.today().strftime("%Y%m%d"))


def main() -> None:
    """Measure for the parent process, or the shapes of some seeds, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", nargs=2, metavar=("LIBRARY", "THREADS"))
    parser.add_argument("--seeds", nargs="*", type=int, default=[date_seed()])
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    options = parser.parse_args()
    if options.worker:
        serve(options.worker[0], int(options.worker[1]))
        return
    results = measure_all(options.seeds, options.threads)
    write_page(results)
    print(shape_table(results))


if __name__ == "__main__":
    main()
