"""Rerun one cell: ``python -m reproduce cell dpwss 'Table 3' heart 'DPWSS/shrinking=0;epsilon=1;sigma=0.1/AUC'``.

Trains, draws, judges, and prints the result beside the committed one. A statement has the table ``statements``, its
identifier as row, and a dataset or ``all`` as column.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privsvm.arithmetic import pin_arithmetic
from privsvm.errors import PrivSVMError, nearest_name
from privsvm.warm_up import cache_folder
from privsvm_bench.workflow.stage import die_with_parent

if TYPE_CHECKING:
    from reproduce.engine.printed import PrintedPaper

HERE = Path(__file__).parent
REPORTS = HERE.parent / "reports/reproduce"
# The modules of each paper that list its drawn numbers.
MODULES = {
    "ci_svm": ("draws",),
    "dpsvmdvp": ("draws", "panels", "exact", "privacy"),
    "dpwss": ("draws", "exact", "sigma", "privacy"),
    "pmsvm": ("draws", "exact", "noise"),
    "ppsvm": ("draws", "exact", "privacy"),
}


def draws_of(papers: Sequence[str]) -> list:
    """Return all draws of some papers."""
    modules = [f"reproduce.{paper}.{name}" for paper in papers for name in MODULES[paper]]
    return [draws for module in modules for draws in importlib.import_module(module).DRAWS]


def set_up(papers: Sequence[str]) -> None:
    """Refuse unknown papers; then compute as the jobs of the workflow do, before NumPy and Numba are imported."""
    for paper in papers:
        if paper not in MODULES:
            raise PrivSVMError(f"paper {paper!r} is unknown; {nearest_name(paper, list(MODULES))}")
    die_with_parent()
    pin_arithmetic()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))


def judge_committed(name: str, reports: str | Path = REPORTS, **changes: Any) -> PrintedPaper:
    """Judge a paper by the tables in `reports`; `changes` go to `reproduce.engine.printed.judge_paper`."""
    from reproduce.engine.printed import judge_paper

    return judge_paper(importlib.import_module(f"reproduce.{name}.printed").PAPER, HERE / name, reports, **changes)


def main(argv: Sequence[str] | None = None) -> None:
    """Rerun the cell that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m reproduce cell", description=__doc__)
    parser.add_argument("paper", help=", ".join(MODULES))
    parser.add_argument("table", help="as the page names it, or `statements`")
    parser.add_argument("row", help="dataset, or identifier of a statement")
    parser.add_argument("column", help="method/setting/metric; of a statement a dataset, or `all`")
    parser.add_argument("--data", default="data/reproduce", metavar="FOLDER", help="where pieces are kept")
    parser.add_argument(
        "--reports", default="reports/reproduce", metavar="FOLDER", help="where the committed results are"
    )
    options = parser.parse_args(argv)
    set_up([options.paper])

    from privsvm_bench.evidence import Sources
    from reproduce.engine.cells import STATEMENTS, choose_draws, find_claim, find_printed
    from reproduce.engine.draws import run_draws
    from reproduce.engine.papers import find_experiments
    from reproduce.engine.printed import read_all
    from reproduce.engine.rerun import beside
    from reproduce.engine.statements import group_cells

    committed = judge_committed(options.paper, options.reports)
    paper = committed.paper
    draws = draws_of([options.paper])
    measured: dict = {}
    if options.table == STATEMENTS:
        claim = find_claim(committed, options.row)
        name, chosen = claim.id, [plan for plan in draws if plan.gives(f"claim/{claim.id}/")]
        parts = {pattern.partition("/")[0] for pattern in claim.cells}
        measured = _measure([item for item in find_experiments("reproduce").values() if item.name in parts], options)
    else:
        printed = find_printed(committed, options.table, options.row, options.column)
        name, chosen = printed.id, choose_draws(paper, draws, printed.id)
    if not chosen and not measured:
        print("nothing is drawn for it: the row says what it is judged by")
    here = Path(options.data) / "cells" / options.paper
    run_draws(chosen, options.data, Sources(here))
    drawn = read_all(here, sorted({plan.experiment for plan in chosen}))
    rerun = judge_committed(options.paper, options.reports, changed=drawn, measured=measured)
    for title, judged in (("committed", committed), ("rerun", rerun)):
        print(f"{title}: {_line(judged, name)}")
    sources = paper.sources(name)
    for line in beside(committed.distributions, {cell: item for cell, item in drawn.items() if cell in sources}):
        print(f"{line.cell}: {line.reading}")
    if measured:
        patterns = "|".join(find_claim(committed, name).cells)
        for item in (item for points in group_cells(patterns, rerun.distributions).values() for _, item in points):
            before = committed.distributions.get(item.cell)
            if item.table and options.column in ("all", item.cell.split("/")[2]):
                earlier = "nothing" if before is None else f"{before.median:.6g}"
                print(f"{item.cell}: committed {earlier}; rerun {item.median:.6g}")


def _measure(experiments: Sequence, options: argparse.Namespace) -> dict:
    """Run the jobs of experiments on one dataset, or on all, and return their measurements by experiment."""
    from reproduce.engine.experiment import measure_results
    from reproduce.engine.jobs import run_job
    from reproduce.engine.measurements import read_measurements

    result = {}
    for experiment in experiments:
        jobs = experiment.all_jobs()
        names = [*sorted({parameters["dataset"] for parameters in jobs.values()}), "all"]
        if options.column not in names:
            raise PrivSVMError(f"column {options.column!r} is unknown; {nearest_name(options.column, names)}")
        for job, parameters in jobs.items():
            if options.column in ("all", parameters["dataset"]):
                run_job(experiment, job, options.data, parameters)
        committed = read_measurements(Path(options.reports) / f"{experiment.name}.csv")
        result[experiment.name], reasons = measure_results(experiment, options.data, committed)
        for dataset, reason in reasons.items():
            if options.column in ("all", dataset):
                print(f"{experiment.name} {dataset}: {reason}")
    return result


def _line(judged, name: str) -> str:
    """Describe a row."""
    from reproduce.engine.printed import interval

    for claim in judged.claims:
        if claim.id == name:
            return "; ".join(filter(None, (claim.verdict, claim.ours, claim.reason)))
    row = next(judgement for judgement in judged.judgements if judgement.printed.id == name)
    words = [f"printed {row.printed.text or 'lost'}"]
    if row.distribution is not None:
        middle, low, high = interval(row.distribution)
        words.append(f"ours {middle:.6g} ({low:.6g} to {high:.6g}) from {row.distribution.runs} runs")
    if row.percentile is not None:
        words.append(f"percentile {100.0 * row.percentile:.1f} %")
    return "; ".join([*words, row.verdict, *filter(None, [judged.reading(row)])])
