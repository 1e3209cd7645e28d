"""Remove every copy that was made from a data set of one's own: `make forget DATASET=my_patients`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# The library of this working copy, wherever the environment's own copy lies.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from privsvm.pipeline.own_files import forget
from privsvm.pipeline.stage import run


def main(arguments: list[str] | None = None) -> None:
    """Forget one data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    options = parser.parse_args(arguments)
    removed = forget(options.dataset)
    print("\n".join(removed) if removed else f"nothing was made from {options.dataset!r}")
    print("Take its entry out of params.yaml, or a run makes them again.")
    print("The file itself remains, and so do what `dvc push` sent elsewhere, and its runs in MLflow.")


if __name__ == "__main__":
    run(main)
