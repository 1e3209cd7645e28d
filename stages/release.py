"""Release one private model: `snakemake release --config dataset=name epsilon=1 out=folder`."""

from __future__ import annotations

import argparse
from pathlib import Path

from privsvm.command import main as privsvm
from privsvm_bench.jobs.job import TrackJob
from privsvm_bench.workflow.stage import json_argument, read_job, run

_FLAGS = ("yes", "without_inspection")


def main(arguments: list[str] | None = None) -> int:
    """Call `privsvm release` with the schema in params.yaml."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, metavar="FILE")
    parser.add_argument("--tracking", required=True, metavar="JSON", help="see privsvm_bench.jobs.job.TrackJob")
    parser.add_argument("--settings", required=True, type=json_argument, metavar="JSON")
    options = parser.parse_args(arguments)
    settings = {name: value for name, value in options.settings.items() if name not in _FLAGS}
    command = ["release", f"--data={options.data}", "--schema=params.yaml"]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    tracking = read_job(TrackJob, options.tracking)
    flags = [f"--{name.replace('_', '-')}" for name in _FLAGS if str(options.settings.get(name)).lower() == "true"]
    code = privsvm([*command, *flags])
    if code == 0 and tracking.epsilon is not None:
        from privsvm_bench.workflow.registering import register  # slow to import

        register(Path(settings["out"]), tracking, settings["dataset"], "releases")
    return code


if __name__ == "__main__":
    run(main, is_job=True)
