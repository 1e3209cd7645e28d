"""Judge all papers by committed files, and write their rows and pages: reports/reproduce/index.html."""

from __future__ import annotations

import argparse
from pathlib import Path

from privsvm.files import write_text
from privsvm_bench.workflow.stage import run
from reproduce.cell import MODULES, draws_of, judge_committed


def main(argv: list[str] | None = None) -> None:
    """Judge the papers' numbers by the present distributions and measurements, and write rows and pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", default="reports/reproduce", metavar="FOLDER", help="where the tables are")
    options = parser.parse_args(argv)

    from privsvm_bench.evidence import Sources
    from reproduce.engine.paper_page import index_page, paper_page
    from reproduce.engine.papers import find_experiments
    from reproduce.engine.printed import rows_csv

    reports = Path(options.reports)
    experiments = find_experiments("reproduce").values()
    judged = []
    for name in MODULES:
        paper = judge_committed(name, reports)
        judged.append(paper)
        write_text(reports / "printed" / f"{name}.csv", rows_csv(paper))
        own = [experiment for experiment in experiments if experiment.paper == name]
        page = paper_page(paper, draws_of([name]), Sources(reports / "distributions"), own)
        write_text(reports / f"{name}.html", page)
    write_text(reports / "index.html", index_page(judged))


if __name__ == "__main__":
    run(main)
