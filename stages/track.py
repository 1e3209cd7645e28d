"""Log all results to MLflow; running again adds nothing."""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

from privsvm_bench.evidence import describe_commit
from privsvm_bench.jobs.job import TrackJob
from privsvm_bench.records import timing_files, write
from privsvm_bench.workflow.stage import read_job, run


def main(arguments: list[str] | None = None) -> None:
    """Log the results and write the record keys."""
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--results", nargs="+", type=Path, required=True, help="data/results/<method>/<dataset>.json")
    parser.add_argument("--audits", nargs="*", type=Path, default=[], help="data/audits/<method>.json")
    parser.add_argument(
        "--models", nargs="*", type=Path, default=[], help="data/models/<method>/<dataset>.npz to register"
    )
    parser.add_argument("--output", type=Path, required=True, help="reports/tracking.json")
    parser.add_argument("--parameters", required=True, metavar="JSON", help="see privsvm_bench.jobs.job.TrackJob")
    options = parser.parse_args(arguments)
    job = read_job(TrackJob, options.parameters)
    files = [(path, timing_files(path, Path("logs/timings"))) for path in sorted(options.results)]

    from privsvm_bench.tracking.mlflow_log import log_results  # slow to import, and no other stage needs it

    keys = log_results(files, job.address, describe_commit() or "unknown", options.audits)
    by_dataset: dict[str, dict[str, str]] = defaultdict(dict)
    for (path, _), key in zip(files, keys, strict=True):
        by_dataset[path.stem][path.parent.name] = key
    for models in options.models:
        from privsvm_bench.workflow.registering import register, write_first_model

        dataset, method = models.stem, models.parent.name
        with tempfile.TemporaryDirectory() as folder:
            write_first_model(models, job.epsilon or 1.0, Path(folder))
            register(Path(folder), job, f"{dataset}-{method}", dataset, by_dataset[dataset][method])
    write(options.output, by_dataset)
    print(f"track: {len(keys)} results on {len(by_dataset)} datasets are in MLflow")


if __name__ == "__main__":
    run(main, is_job=True)
