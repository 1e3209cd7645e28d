"""Stage: get one raw file of one dataset, or list the catalogue."""

from __future__ import annotations

import argparse
import os
import sys

from privsvm.errors import printable, without_passwords
from privsvm_bench.datasets.download import catalogue_table, download_raw
from privsvm_bench.workflow.stage import die_with_parent, json_argument, run


def main(argv: list[str] | None = None) -> int | None:
    """Get the file, or print the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the catalogue and where each dataset can be had")
    parser.add_argument("--dataset", help="name of the dataset")
    parser.add_argument("--file", help="raw file of the dataset")
    parser.add_argument("--output", help="where to put the file")
    parser.add_argument(
        "--parameters",
        type=json_argument,
        default={},
        help='JSON: {"settings": the dataset\'s settings in params.yaml, "mirror": folder or null}',
    )
    arguments = parser.parse_args(argv)
    mirror = arguments.parameters.get("mirror")
    if arguments.list:
        try:
            print(catalogue_table(mirror))
            sys.stdout.flush()
        except BrokenPipeError:
            # Whatever reads the table, such as `head`, has closed the pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    missing = [f"--{key}" for key in ("dataset", "file", "output") if getattr(arguments, key) is None]
    if missing:
        parser.error(f"needs {', '.join(missing)} (or --list)")
    die_with_parent()
    settings = arguments.parameters.get("settings")
    source = download_raw(arguments.dataset, arguments.file, arguments.output, settings, mirror)
    print(printable(f"{arguments.dataset}/{arguments.file}: from {without_passwords(source)}"), file=sys.stderr)
    return None


if __name__ == "__main__":
    run(main)
