"""Write the list of all experiments, with their verdicts: reports/reproduce/index.html."""

from __future__ import annotations

import argparse
from pathlib import Path

from privsvm.files import write_text
from privsvm.pipeline.stage import run


def main(argv: list[str] | None = None) -> None:
    """Read the tables there are and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", default="reports/reproduce", metavar="FOLDER", help="where the tables are")
    options = parser.parse_args(argv)

    from privsvm.reproduction.page import index_page
    from privsvm.reproduction.papers import find_experiments

    experiments = list(find_experiments("reproduce").values())
    write_text(Path(options.reports) / "index.html", index_page(experiments, options.reports))


if __name__ == "__main__":
    run(main)
