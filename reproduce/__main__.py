"""Run experiments: ``python -m reproduce dpwss_table3 --datasets heart``; without a name all of them."""

from __future__ import annotations

from privsvm_bench.reproduction.command import main as command
from privsvm_bench.reproduction.papers import find_experiments
from privsvm_bench.workflow.stage import run


def main(argv: list[str] | None = None) -> None:
    """Run what the arguments name."""
    command(find_experiments("reproduce"), argv)


if __name__ == "__main__":
    run(main)
