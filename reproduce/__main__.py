"""Run experiments: ``python -m reproduce dpwss_table3 --datasets heart``; without a name all of them.

``python -m reproduce cell`` reruns one cell, ``python -m reproduce confirm`` a sample of all.
"""

from __future__ import annotations

import importlib
import sys

from privsvm.arithmetic import pin_arithmetic
from privsvm_bench.workflow.stage import run


def main(argv: list[str] | None = None) -> None:
    """Run the experiments that the arguments name."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] in (["cell"], ["confirm"]):
        importlib.import_module(f"reproduce.{arguments[0]}").main(arguments[1:])
        return
    pin_arithmetic()
    # These import NumPy, which has to find one thread.
    from reproduce.engine.command import main as command
    from reproduce.engine.papers import find_experiments

    command(find_experiments("reproduce"), argv)


if __name__ == "__main__":
    run(main)
