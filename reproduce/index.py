"""Write the papers' pages and the list of all experiments from committed files: reports/reproduce/index.html."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from pathlib import Path

from privsvm.files import write_text
from privsvm_bench.workflow.stage import run
from reproduce.cell import draws_of


def main(argv: list[str] | None = None) -> None:
    """Judge the papers' numbers by the present distributions, and write rows and pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", default="reports/reproduce", metavar="FOLDER", help="where the tables are")
    options = parser.parse_args(argv)

    from privsvm_bench.evidence import Sources
    from reproduce.engine.page import index_page
    from reproduce.engine.paper_page import paper_page
    from reproduce.engine.papers import find_experiments
    from reproduce.engine.printed import judge_paper, printed_csv

    here, reports = Path(__file__).parent, Path(options.reports)
    names = sorted(
        item.name for item in pkgutil.iter_modules([str(here)]) if (here / item.name / "printed.py").exists()
    )
    distributions = reports / "distributions"
    # Tables of changed settings have no distributions, and no verdicts on printed numbers.
    papers = [importlib.import_module(f"reproduce.{name}.printed").PAPER for name in names if distributions.exists()]
    judged = [judge_paper(paper, here / paper.name, reports) for paper in papers]
    for result in judged:
        write_text(reports / "printed" / f"{result.paper.name}.csv", printed_csv(result))
        write_text(
            reports / f"{result.paper.name}.html",
            paper_page(result, draws_of([result.paper.name]), Sources(distributions)),
        )
    experiments = list(find_experiments("reproduce").values())
    write_text(reports / "index.html", index_page(experiments, reports, judged))


if __name__ == "__main__":
    run(main)
