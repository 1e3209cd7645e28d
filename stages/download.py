"""Download one raw file of one dataset, or list the catalogue."""

from __future__ import annotations

import argparse
import os
import sys

from privsvm.errors import printable, without_passwords
from privsvm_bench.datasets.download import catalogue_table, download_raw
from privsvm_bench.jobs.job import DownloadJob
from privsvm_bench.workflow.stage import die_with_parent, read_job, run


def main(argv: list[str] | None = None) -> None:
    """Download the file, or print the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the catalogue and the sources of each dataset")
    parser.add_argument("--dataset", help="name of the dataset")
    parser.add_argument("--file", help="raw file of the dataset")
    parser.add_argument("--output", help="file to write")
    parser.add_argument("--parameters", default="{}", metavar="JSON", help="see privsvm_bench.jobs.job.DownloadJob")
    options = parser.parse_args(argv)
    job = read_job(DownloadJob, options.parameters)
    if options.list:
        try:
            print(catalogue_table(job.mirror))
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of the table, such as `head`, has closed the pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    missing = [f"--{key}" for key in ("dataset", "file", "output") if getattr(options, key) is None]
    if missing:
        parser.error(f"needs {', '.join(missing)} (or --list)")
    die_with_parent()
    source = download_raw(options.dataset, options.file, options.output, job.settings, job.mirror)
    print(printable(f"{options.dataset}/{options.file}: from {without_passwords(source)}"), file=sys.stderr)


if __name__ == "__main__":
    run(main)
