"""Draw the distributions of printed numbers: ``python -m reproduce.draws dpwss --datasets heart --seconds 600``."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from privsvm.pipeline.sources import compiled_code_key
from privsvm.pipeline.stage import die_with_parent, pin_threads, run

# The modules of each paper that say what to draw.
MODULES = {
    "dpwss": ("draws", "exact", "readings", "chosen"),
    "pmsvm": ("draws", "exact"),
    "ppsvm": ("draws",),
    "dpsvmdvp": ("draws", "exact"),
}


def main(argv: list[str] | None = None) -> None:
    """Run what the arguments name; pieces that are stored do not run again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", default=list(MODULES), metavar="PAPER", help=", ".join(MODULES))
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="draw only on these datasets")
    parser.add_argument("--names", nargs="+", metavar="TEXT", help="draw only what has one of these texts in its name")
    parser.add_argument("--seconds", type=float, help="start nothing new after so many seconds")
    parser.add_argument("--share", type=float, default=1.0, help="of the pieces of each setting")
    parser.add_argument("--data", default="data/reproduce", metavar="FOLDER", help="where pieces are kept")
    parser.add_argument(
        "--reports", default="reports/reproduce/distributions", metavar="FOLDER", help="where distributions go"
    )
    options = parser.parse_args(argv)
    die_with_parent()
    pin_threads()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(".cache/numba").resolve() / compiled_code_key()))

    from privsvm.reproduction.draws import run_draws

    modules = [f"reproduce.{paper}.{name}" for paper in options.papers for name in MODULES[paper]]
    chosen = [draws for module in modules for draws in importlib.import_module(module).DRAWS]
    if options.datasets:
        chosen = [draws for draws in chosen if draws.dataset in options.datasets]
    if options.names:
        chosen = [draws for draws in chosen if any(text in draws.name for text in options.names)]
    run_draws(chosen, options.data, options.reports, options.seconds, options.share)


if __name__ == "__main__":
    run(main)
