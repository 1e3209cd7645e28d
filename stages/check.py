"""Check the outputs of a finished run: all files, sane numbers, everything recorded in DVC and MLflow."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.files import read_json
from privsvm_bench.datasets.prepared import load_prepared
from privsvm_bench.jobs.model_files import check_arrays
from privsvm_bench.jobs.params import read_params
from privsvm_bench.metrics import METRICS
from privsvm_bench.records import ModelRecord, Result, read
from privsvm_bench.reporting.curve_tables import curve_rows, curves_csv, metrics_record
from privsvm_bench.reporting.results import read_results
from privsvm_bench.workflow.private_outputs import private_folder
from privsvm_bench.workflow.stage import run


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


def check_numbers(folder: str, results: list[Result], reference: float) -> None:
    """Compare the numbers in a folder with the results that they are of."""
    computed = {
        "metrics.json": canonical_json(metrics_record(results, reference)),
        "curves.csv": curves_csv(curve_rows(results, reference)),
    }
    for name, text in computed.items():
        path = Path(folder, name)
        require(path.is_file(), f"{path}: file not found; run `make run`")
        written = path.read_text(encoding="utf-8") if name == "curves.csv" else canonical_json(read_json(path))
        require(written == text, f"{path}: not the numbers of the results; delete it and run `make run`")


def check_versions() -> None:
    """Ask DVC whether dvc.lock names the outputs that are here."""
    done = subprocess.run([sys.executable, "-m", "dvc", "status"], capture_output=True, text=True, check=False)
    said = " ".join((done.stdout if done.returncode == 0 else done.stderr).split())[:200] or "dvc status says nothing"
    require(
        "not a git repository" not in said,
        "dvc.lock: DVC needs a Git repository, and all else is in order; run `git init`, then `make run`",
    )
    # An edit that changes no job is one to DVC alone.
    require(
        done.returncode == 0 and "up to date" in said,
        f"dvc.lock: not up to date: {said}; run `make run`, and `dvc repro` if there is nothing to be done",
    )


def main(arguments: list[str] | None = None) -> None:
    """Check the reports, the results of every job, dvc.lock and the tracking record."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    params = read_params()
    jobs = params.train_jobs()
    for name in ("index.html", "tracking.json"):
        require((Path("reports") / name).is_file(), f"reports/{name}: file not found; run `make run`")
    tracked = read(dict[str, dict[str, str]], "reports/tracking.json")
    # Reading refuses edited files, and a guarantee that contradicts itself or that its own audit refutes.
    folder = {dataset: f"data/{private_folder(params, dataset)}" for dataset in params.datasets}
    audits = [f"data/audits/{method}.json" for method in params.methods_to_audit()]
    results = read_results([f"{folder[dataset]}results/{method}/{dataset}.json" for method, dataset in jobs], audits)
    prepared = {name: load_prepared(f"{folder[name]}prepared/{name}.npz").description for name in params.datasets}
    for result in results:
        method, dataset = result.method, result.dataset
        source, models = (f"{folder[dataset]}{kind}/{method}/{dataset}" for kind in ("results", "models"))
        check_ranges(result)
        check_arrays(f"{models}.npz", read(ModelRecord, f"{models}.json"), f"{models}.json")
        check_arrays(f"{models}.npz", result, f"{source}.json")
        require(method in tracked.get(dataset, {}), f"reports/tracking.json: {method} on {dataset} is missing")
        require(
            result.dataset_digest == prepared[dataset]["digest"],
            f"{source}.json: not of the prepared data that is here; run `make run`",
        )
    private = [result for result in results if params.is_private(result.dataset)]
    check_numbers("reports", [result for result in results if result not in private], params.report.reference_epsilon)
    if private:
        check_numbers("data/private/reports", private, params.report.reference_epsilon)
    check_versions()
    print(f"check: {len(jobs)} jobs, reports, tracking and dvc.lock are in order")


if __name__ == "__main__":
    run(main)
