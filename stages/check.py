"""Check what a finished run left: all outputs, sane numbers, everything recorded in DVC and MLflow."""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path

from privsvm.errors import PrivSVMError
from privsvm.metrics import METRICS
from privsvm.pipeline.params import read_params, train_jobs
from privsvm.pipeline.stage import run
from privsvm.records import Result, read, read_tracked


def require(holds: bool, message: str) -> None:
    """Raise an error with this message unless the condition holds."""
    if not holds:
        raise PrivSVMError(message)


def check_ranges(result: Result) -> None:
    """Refuse a mean outside its metric's range."""
    for name, metric in METRICS.items():
        require(name in result.summary, f"{result.method} on {result.dataset}: {name} is missing; run `make run`")
        low, high = metric.range
        for mean in result.summary[name].mean:
            require(
                mean is None or low <= mean <= high,
                f"{result.method} on {result.dataset}: {name} is {mean}: must lie between {low:g} and {high:g}",
            )


def main(arguments: list[str] | None = None) -> None:
    """Check the reports, the results of every job, dvc.lock and the tracking record."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    params = read_params()
    jobs = train_jobs(params)
    for name in ("index.html", "metrics.json", "curves.csv", "tracking.json"):
        require((Path("reports") / name).is_file(), f"reports/{name}: file not found; run `make run`")
    tracked = read_tracked("reports/tracking.json")
    with open("reports/curves.csv", encoding="utf-8", newline="") as handle:
        drawn = {(row["method"], row["dataset"]) for row in csv.DictReader(handle)}
    for method, dataset in jobs:
        # Reading refuses a guarantee that contradicts itself or that its own audit refutes.
        check_ranges(read(Result, f"data/results/{method}/{dataset}.json"))
        require(method in tracked.get(dataset, {}), f"reports/tracking.json: {method} on {dataset} is missing")
        require((method, dataset) in drawn, f"reports/curves.csv: {method} on {dataset} is missing")
    status = subprocess.run(
        [sys.executable, "-m", "dvc", "status"], capture_output=True, text=True, check=False
    ).stdout.strip()
    require("up to date" in status, f"dvc.lock: not up to date: {' '.join(status.split())[:200]}; run `make run`")
    print(f"check: {len(jobs)} jobs, reports, tracking and dvc.lock are in order")


if __name__ == "__main__":
    run(main)
