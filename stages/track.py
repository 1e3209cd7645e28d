"""Log all results to MLflow; running again adds nothing."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from pathlib import Path

from privsvm.errors import without_passwords
from privsvm_bench.evidence import describe_commit
from privsvm_bench.jobs.job import TrackJob
from privsvm_bench.records import timing_files, write
from privsvm_bench.workflow.stage import die_with_parent, read_job, run


def main(arguments: list[str] | None = None) -> None:
    """Log the results and write the record keys."""
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--results", nargs="+", type=Path, required=True, help="data/results/<method>/<dataset>.json")
    parser.add_argument("--audits", nargs="*", type=Path, default=[], help="data/audits/<method>.json")
    parser.add_argument("--output", type=Path, required=True, help="reports/tracking.json")
    parser.add_argument("--parameters", required=True, metavar="JSON", help="see privsvm_bench.jobs.job.TrackJob")
    options = parser.parse_args(arguments)
    die_with_parent()
    tracking_uri = read_job(TrackJob, options.parameters).tracking_uri
    # The environment holds the password of the address; no command line does.
    uri_with_password = os.environ.get("PRIVSVM_TRACKING_URI", "")
    if without_passwords(uri_with_password) == tracking_uri:
        tracking_uri = uri_with_password
    files = [(path, timing_files(path, Path("logs/timings"))) for path in sorted(options.results)]

    from privsvm_bench.tracking.mlflow_log import log_results  # slow to import, and no other stage needs it

    keys = log_results(files, tracking_uri, describe_commit() or "unknown", options.audits)
    by_dataset: dict[str, dict[str, str]] = defaultdict(dict)
    for (path, _), key in zip(files, keys, strict=True):
        by_dataset[path.stem][path.parent.name] = key
    write(options.output, by_dataset)
    print(f"track: {len(keys)} results on {len(by_dataset)} datasets are in MLflow")


if __name__ == "__main__":
    run(main)
