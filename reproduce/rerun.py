"""Print a rerun beside the committed distributions: ``python -m reproduce.rerun FOLDER``.

FOLDER is where ``python -m reproduce.draws --reports FOLDER`` put its distributions.
"""

from __future__ import annotations

import argparse
import collections
import sys
from pathlib import Path

from privsvm.errors import PrivSVMError
from privsvm.files import read_json
from privsvm_bench.workflow.stage import run


def _origin(folder: Path) -> str:
    """Say what the distributions of a folder were made with."""
    result = {
        ", ".join(f"{key} {value}" for key, value in origin.items() if key not in ("code", "seed"))
        for origin in read_json(folder / "origins.json").values()
    }
    return "; or ".join(sorted(result))


def main(argv: list[str] | None = None) -> None:
    """Compare, and print the cells that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="distributions of the rerun")
    parser.add_argument(
        "--committed", default="reports/reproduce/distributions", metavar="FOLDER", help="what it is compared with"
    )
    options = parser.parse_args(argv)

    from privsvm_bench.reproduction.distributions import read_distributions
    from privsvm_bench.reproduction.rerun import beside

    folder, committed = Path(options.folder), Path(options.committed)
    tables = sorted(folder.glob("*.csv"))
    if not tables:
        raise PrivSVMError(f"{folder}: has no distributions; run `python -m reproduce.draws --reports {folder}` first")
    lines = [
        line
        for table in tables
        for line in beside(read_distributions(committed / table.name), read_distributions(table))
    ]
    readings = dict(collections.Counter(line.reading for line in lines).most_common())
    print(f"committed: {_origin(committed)}\nrerun: {_origin(folder)}")
    for line in lines:
        if line.reading != "the same":
            print(f"{line.cell}: committed {line.committed:.6g}, rerun {line.rerun:.6g}; {line.reading}")
    print("; ".join(f"{number} {reading}" for reading, number in readings.items()), file=sys.stderr)


if __name__ == "__main__":
    run(main)
