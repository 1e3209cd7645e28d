"""Measure what each special path of the C-SVC and Crammer-Singer solvers buys.

Two processes fit the same cases in turn on one thread, one of them with the path switched off. The ratio with the path
is the recorded one, a peer's time over ours (bench/drawn.json, docs/benchmarks.md); the ratio without it is that, times
our time with over our time without, both from the same run. Peers: LIBSVM and oneDAL for C-SVC, LIBLINEAR for
Crammer-Singer. One line a path goes to bench/ablation.csv, where the lines of paths that were removed stay.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import importlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from drawn import RESULTS, gamma_of, make_rows, worker_environment

REPOSITORY = Path(__file__).resolve().parents[1]
TABLE = REPOSITORY / "bench/ablation.csv"
COLUMNS = (
    "path", "lines", "cases", "worst ratio with", "worst ratio without", "median ratio with", "median ratio without",
    "decision",
)  # fmt: skip
# A path stays if a ratio falls below 1 without it, or the median by more than this share.
LARGEST_LOSS = 0.15
# Cases of bench/drawn.json whose fit took longer are left out, and runs after which one case has been timed enough.
LONGEST_SECONDS, ENOUGH_SECONDS, LEAST_RUNS = 3.0, 1.0, 3


def patch(module: str, name: str, value: Any) -> Callable[[], None]:
    """Return a function that replaces an attribute of one of the library's modules."""
    return lambda: setattr(importlib.import_module(f"privsvm.{module}"), name, value)


def _no_pair_smo() -> None:
    from privsvm.families.exact import one_vs_one

    plan = one_vs_one.plan_solvers
    one_vs_one.plan_solvers = lambda *rest: dataclasses.replace(plan(*rest), steps=False)


def _no_duplicates() -> None:
    from privsvm.solvers.kernel.duplicate_rows import EqualRows

    EqualRows.find = lambda *rest: None  # type: ignore[method-assign,assignment]


def _never_single() -> None:
    from privsvm.families.exact import one_vs_one
    from privsvm.solvers.kernel import block_smo

    one_vs_one.single_is_enough = block_smo.single_is_enough = lambda *rest: False
    block_smo._SINGLE_TOLERANCE = np.inf


def _no_face() -> None:
    from privsvm.solvers.linear.crammer_singer_face import Face

    Face.step = lambda *rest: 0.0  # type: ignore[method-assign,assignment]


ONE_VS_ONE, KERNEL_ROWS = "families.exact.one_vs_one", "solvers.kernel.kernel_rows"
# Name: the group of cases, lines of the path in lib, and how to switch it off.
PATHS: dict[str, tuple[str, int, Callable[[], None]]] = {
    "interior_point": ("svm", 290, patch(ONE_VS_ONE, "usual_seconds", lambda X, n_rows: np.full(n_rows.size, np.inf))),
    "duplicate_rows": ("svm", 120, _no_duplicates),
    "single precision": ("svm", 60, _never_single),
    "pair_smo": ("svm", 330, _no_pair_smo),
    "exact kernel of small problems": ("svm", 10, patch(ONE_VS_ONE, "_EXACT_ROWS", -1)),
    "dense rows made sparse": ("svm", 10, patch(KERNEL_ROWS, "_mostly_zeros", lambda X: False)),
    "fewer rows at once": ("svm", 10, patch(KERNEL_ROWS, "_rows_at_once", lambda *rest: 128)),
    "crammer_singer_face": ("crammer-singer", 430, _no_face),
}


def recorded_tables() -> dict[str, dict[str, float]]:
    """Read the ratios to peers of named sets from the page, on one thread."""
    page = (REPOSITORY / "docs/benchmarks.md").read_text(encoding="utf-8")
    ratios: dict[str, dict[str, float]] = {}
    for line in page.splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) == 10 and cells[1] == "1" and re.fullmatch(r"[\d.]+", cells[4]):
            ratios[cells[0]] = {"LIBSVM": float(cells[4]), "oneDAL": float(cells[6])}
        elif len(cells) == 9 and re.fullmatch(r"[\d.e-]+", cells[2]) and "classes" in cells[1]:
            ratios[f"{cells[0]}, C={cells[2]}"] = {"LIBLINEAR": float(cells[8])}
    return ratios


def cases_of(group: str) -> list[dict[str, Any]]:
    """List the cases of a group, with the recorded ratios."""
    tables = recorded_tables()
    if group == "crammer-singer":
        return [{"name": name, "ratios": ratios} for name, ratios in tables.items() if "LIBLINEAR" in ratios]
    records = [one for one in json.loads(RESULTS.read_text())["records"] if one["threads"] == 1]
    cases = []
    for number, record in enumerate(records):
        if record["ours"].get("fit", np.inf) <= LONGEST_SECONDS:
            ratios = {peer: record["ratios"][peer]["fit"] for peer in ("LIBSVM", "oneDAL") if peer in record["ratios"]}
            cases.append({"name": f"drawn {number}", "record": record, "ratios": ratios})
    from svm import CASES

    cases += [{"name": name, "ratios": tables[name]} for name in CASES if name in tables]
    return cases


class Fits:
    """Runs one case in this process; keeps the rows of the last one."""

    def __init__(self) -> None:
        self._name, self._run = "", lambda: 0.0

    def time(self, case: dict[str, Any]) -> dict[str, float]:
        """Return the processor time of one run, and its objective."""
        if case["name"] != self._name:
            self._name, self._run = case["name"], self._prepare(case)
            # Untimed: loads and compiles.
            self._run()
        started = time.process_time()
        objective = self._run()
        return {"seconds": time.process_time() - started, "objective": objective}

    def _prepare(self, case: dict[str, Any]) -> Callable[[], float]:
        if "LIBLINEAR" in case["ratios"]:
            return self._crammer_singer(case["name"])
        from svm import CACHE_MB, CASES, TOLERANCE, load_rows

        from privsvm import SVMClassifier

        if "record" in case:
            record = case["record"]
            X, y, _ = make_rows(record)
            parameters = {"kernel": record["kernel"], "C": record["C"], "gamma": gamma_of(record, X)}
        else:
            dataset, scaling, kernel, C, gamma = CASES[case["name"]]
            X, y = load_rows(dataset, scaling)
            gamma = gamma_of({"gamma": 1.0}, X) if gamma is None else gamma
            parameters = {"kernel": kernel, "C": C, "gamma": gamma}
        model = SVMClassifier(tol=TOLERANCE, cache_size=CACHE_MB, **parameters)
        return lambda: float(model.fit(X, y).objective_)

    @staticmethod
    def _crammer_singer(name: str) -> Callable[[], float]:
        from crammer_singer import BUNDLED, GAP_SHARE, bundled_rows, clipped, paper_rows

        from privsvm.solvers.linear.crammer_singer import solve_crammer_singer

        title, C = name.rsplit(", C=", 1)
        dataset = title.removesuffix(", norm 1")
        X, y = bundled_rows(dataset) if dataset in BUNDLED else paper_rows(dataset)
        X = clipped(X) if title.endswith(", norm 1") else X
        gap = GAP_SHARE * (float(C) * float(np.linalg.norm(X, axis=1).max())) ** 2
        return lambda: float(solve_crammer_singer(X, y, int(y.max()) + 1, float(C), gap).primal)


class Worker:
    """A process that times cases, with one path switched off or none."""

    def __init__(self, path: str) -> None:
        command = [sys.executable, __file__, "--worker", path]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=worker_environment()
        )

    def time(self, case: dict[str, Any]) -> dict[str, float]:
        """Time one run of a case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        answer: dict[str, float] = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def serve(path: str) -> None:
    """Time cases from standard input."""
    if path:
        PATHS[path][2]()
    fits = Fits()
    for line in sys.stdin:
        print(json.dumps(fits.time(json.loads(line))), flush=True)


def compare(case: dict[str, Any], workers: dict[str, Worker]) -> dict[str, dict[str, float]]:
    """Return the least time and the objective of each path and of none, from alternating runs."""
    runs: dict[str, list[dict[str, float]]] = {path: [] for path in workers}
    for _ in range(LEAST_RUNS):
        for path, worker in workers.items():
            if sum(run["seconds"] for run in runs[path]) < ENOUGH_SECONDS or len(runs[path]) < 2:
                runs[path].append(worker.time(case))
    return {path: min(one, key=lambda run: run["seconds"]) for path, one in runs.items()}


def line_of(path: str, measured: list[tuple[dict[str, float], float]]) -> dict[str, Any]:
    """Summarise a path: recorded ratios and loss factors of its cases."""
    before = np.array([ratio for ratios, _ in measured for ratio in ratios.values()])
    after = np.array([ratio / factor for ratios, factor in measured for ratio in ratios.values()])
    stays = after.min() < min(1.0, before.min()) or np.median(after) < (1 - LARGEST_LOSS) * np.median(before)
    numbers = (before.min(), after.min(), np.median(before), np.median(after))
    return dict(
        zip(
            COLUMNS,
            (
                path, PATHS[path][1], len(measured), *(f"{number:.2f}" for number in numbers),
                "stays" if stays else "goes",
            ),
            strict=True,
        )
    )  # fmt: skip


def main() -> None:
    """Time cases for the parent process, or measure paths and write their lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker")
    parser.add_argument("--paths", nargs="*", default=list(PATHS))
    options = parser.parse_args()
    if options.worker is not None:
        serve(options.worker)
        return
    lines = {}
    if TABLE.exists():
        with TABLE.open(encoding="utf-8", newline="") as file:
            lines = {line["path"]: line for line in csv.DictReader(file)}
    for group in ("svm", "crammer-singer"):
        chosen = [path for path in options.paths if PATHS[path][0] == group]
        if not chosen:
            continue
        workers = {path: Worker(path) for path in ("", *chosen)}
        measured: dict[str, list[tuple[dict[str, float], float]]] = {path: [] for path in chosen}
        for case in cases_of(group):
            fits = compare(case, workers)
            plain = fits[""]
            for path in chosen:
                factor = fits[path]["seconds"] / plain["seconds"]
                measured[path].append((case["ratios"], factor))
            report = {path or "plain": round(fit["seconds"] / plain["seconds"], 2) for path, fit in fits.items()}
            print(case["name"], f"{plain['seconds']:.4f} s", report, file=sys.stderr, flush=True)
        for worker in workers.values():
            worker.end()
        lines |= {path: line_of(path, measured[path]) for path in chosen}
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines.values())


if __name__ == "__main__":
    main()
