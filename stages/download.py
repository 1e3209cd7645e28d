"""Download one raw file of one dataset."""

from __future__ import annotations

import argparse
import sys

from privsvm.errors import printable, without_passwords
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.jobs.job import DownloadJob
from privsvm_bench.workflow.stage import read_job, run


def main(argv: list[str] | None = None) -> None:
    """Download the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", required=True, help="name of the dataset")
    parser.add_argument("--file", required=True, help="raw file of the dataset")
    parser.add_argument("--output", required=True, help="file to write")
    parser.add_argument("--parameters", default="{}", metavar="JSON", help="see privsvm_bench.jobs.job.DownloadJob")
    options = parser.parse_args(argv)
    job = read_job(DownloadJob, options.parameters)
    source = download_raw(options.dataset, options.file, options.output, job.settings)
    print(printable(f"{options.dataset}/{options.file}: from {without_passwords(source)}"), file=sys.stderr)


if __name__ == "__main__":
    run(main, is_job=True)
