"""Say what a run that is under way is doing."""

from __future__ import annotations

import argparse

from privsvm.pipeline.progress import status_lines
from privsvm.pipeline.stage import run


def main(arguments: list[str] | None = None) -> None:
    """Print the lines."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    print(*status_lines(), sep="\n")


if __name__ == "__main__":
    run(main)
