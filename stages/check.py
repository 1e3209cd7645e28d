"""Check what a finished run left: all outputs, sane numbers, everything recorded in DVC and MLflow."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd
import yaml

from privsvm.errors import PrivSVMError
from privsvm.files import read_json
from privsvm.pipeline.params import check_params, train_jobs
from privsvm.pipeline.stage import run
from privsvm.privacy.guarantee import Guarantee


def require(holds: bool, message: str) -> None:
    """Raise an error with this message unless the condition holds."""
    if not holds:
        raise PrivSVMError(message)


def main(arguments: list[str] | None = None) -> None:
    """Check the reports, the results of every job, dvc.lock and the tracking record."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    params = check_params(yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8")))
    jobs = train_jobs(params)
    for name in ("index.html", "metrics.json", "curves.csv", "tracking.json"):
        require((Path("reports") / name).is_file(), f"reports/{name}: file not found; run `make run`")
    tracked = read_json("reports/tracking.json")
    curves = pd.read_csv("reports/curves.csv")
    for method, dataset in jobs:
        results = read_json(f"data/results/{method}/{dataset}.json")
        accuracy = results["summary"]["accuracy"]["mean"]
        possible = all(0 <= value <= 1 for value in accuracy)
        require(possible, f"{method} on {dataset}: accuracy {accuracy} is not between 0 and 1")
        for record in results["guarantees"]:
            try:
                # Refuses an epsilon proved above the one asked for, or one that its own audit refutes.
                Guarantee.from_dict(record)
            except ValueError as error:
                raise PrivSVMError(f"{method} on {dataset}: {error}") from None
        require(method in tracked.get(dataset, {}), f"reports/tracking.json: {method} on {dataset} is missing")
        found = curves[(curves.method == method) & (curves.dataset == dataset)]
        require(len(found) > 0, f"reports/curves.csv: {method} on {dataset} is missing")
    status = subprocess.run(
        [sys.executable, "-m", "dvc", "status"], capture_output=True, text=True, check=False
    ).stdout.strip()
    require("up to date" in status, f"dvc.lock: not up to date: {' '.join(status.split())[:200]}; run `make run`")
    print(f"check: {len(jobs)} jobs, reports, tracking and dvc.lock are in order")


if __name__ == "__main__":
    run(main)
