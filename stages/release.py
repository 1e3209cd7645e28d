"""Release one private model: `snakemake release --config dataset=name epsilon=1 out=folder`."""

from __future__ import annotations

import argparse

from privsvm.command import main as privsvm
from privsvm_bench.workflow.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> int:
    """Call `privsvm release` with the schema in params.yaml."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, metavar="FILE")
    parser.add_argument("--settings", required=True, type=json_argument, metavar="JSON")
    options = parser.parse_args(arguments)
    die_with_parent()
    settings = {name: value for name, value in options.settings.items() if name != "yes"}
    command = ["release", f"--data={options.data}", "--schema=params.yaml"]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    return privsvm([*command, *(["--yes"] if options.settings.get("yes") is True else [])])


if __name__ == "__main__":
    run(main)
