"""Rerun one cell: ``python -m reproduce cell dpwss 'Table 3' heart 'DPWSS/shrinking=0;epsilon=1;sigma=0.1/AUC'``.

Trains, draws, judges, and prints the result beside the committed one; the exit code is 1 if they differ. A statement
has the table ``statements``, its identifier as row, and a dataset or ``all`` as column.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privsvm.arithmetic import pin_arithmetic
from privsvm.errors import PrivSVMError, nearest_name
from privsvm.warm_up import cache_folder
from privsvm_bench.workflow.stage import die_with_parent

if TYPE_CHECKING:
    from reproduce.engine.distributions import Distribution
    from reproduce.engine.printed import PrintedPaper

HERE = Path(__file__).parent
REPORTS = HERE.parent / "reports/reproduce"
# So many cells are listed one by one.
_FEW = 12
# The modules of each paper that list its drawn numbers.
MODULES = {
    "ci_svm": ("draws",),
    "dpsvmdvp": ("draws", "panels", "exact", "privacy"),
    "dpwss": ("draws", "exact", "sigma", "privacy"),
    "pmsvm": ("draws", "exact", "noise"),
    "ppsvm": ("draws", "exact"),
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


def check_reports(folder: str, *tables: str) -> None:
    """Refuse a folder of committed results that lacks a table."""
    for table in tables:
        if not (Path(folder) / table).exists():
            raise PrivSVMError(f"--reports {folder}: has no {table}; name the folder that has the committed results")


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
    parser.add_argument("--data", default="data/reproduce", metavar="FOLDER", help="where raw data are kept")
    parser.add_argument("--resume", action="store_true", help="keep finished pieces in that folder, and take them")
    parser.add_argument("--record", action="store_true", help="state the processor time of a run that compiles nothing")
    parser.add_argument(
        "--reports", default="reports/reproduce", metavar="FOLDER", help="where the committed results are"
    )
    options = parser.parse_args(argv)
    set_up([options.paper])
    options.compiled = _list_compiled()

    from reproduce.engine.cells import STATEMENTS, cells_behind, find_claim, find_printed
    from reproduce.engine.papers import find_experiments

    committed = judge_committed(options.paper, options.reports)
    measured_tables = [f"{name}.csv" for name in find_experiments("reproduce") if name.startswith(options.paper)]
    drawn_tables = [f"distributions/{name}.csv" for name in committed.paper.experiments]
    check_reports(options.reports, *measured_tables, *drawn_tables)
    if options.table == STATEMENTS:
        claim = find_claim(committed, options.row)
        name, cells, reason = claim.id, cells_behind(committed, claim, options.column), claim.reason
    else:
        printed = find_printed(committed, options.table, options.row, options.column)
        row = next(item for item in committed.judgements if item.printed is printed)
        name, cells, reason = printed.id, cells_behind(committed, printed), row.reason or row.verdict
    if not cells and reason:
        raise PrivSVMError(f"{name}: no runs of ours are behind it, so nothing can be rerun; {reason}")
    if not cells:
        print("computed from the printed numbers alone")
    with _open_folder(options) as folder:
        drawn, seconds = _draw(committed, cells, folder)
        measured, spent = _measure(committed, [cell for cell in cells if cell not in drawn], folder)
    rerun = judge_committed(options.paper, options.reports, changed={**drawn, **measured})
    if options.record:
        _record(options, committed, name, seconds + spent)
    _compare(committed, rerun, name, drawn | {cell: item for cell, item in measured.items() if cell in cells})


@contextlib.contextmanager
def _open_folder(options: argparse.Namespace) -> Iterator[Path]:
    """Open the folder of finished pieces: an empty one with the raw data, or the one to resume."""
    raw = Path(options.data).resolve() / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    if options.resume:
        yield raw.parent
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "raw").symlink_to(raw)
        yield Path(folder)


def _draw(committed: PrintedPaper, cells: Sequence[str], folder: Path) -> tuple[dict[str, Distribution], float]:
    """Draw the cells that draws give; also return the processor time of their pieces."""
    from privsvm_bench.evidence import Sources
    from reproduce.engine.cells import choose_draws
    from reproduce.engine.draws import run_draws
    from reproduce.engine.printed import read_all

    draws = draws_of([committed.paper.name])
    by_cell = {cell: chosen for cell in cells if (chosen := choose_draws(committed.paper, draws, cell))}
    plans = {plan.key: plan for chosen in by_cell.values() for plan in chosen}
    messages: list[str] = []
    with tempfile.TemporaryDirectory() as here:
        sources = Sources(here)
        run_draws(plans.values(), folder, sources, say=messages.append)
        tables = {table for plan in plans.values() for table in plan.tables}
        drawn = read_all(here, [table for table in committed.paper.experiments if table in tables])
        entries = {(plan.experiment, plan.dataset) for plan in plans.values()} if drawn else ()
        seconds = sum(sum(sources.seconds(*entry)) for entry in entries)
    for cell in by_cell:
        if cell not in drawn:
            raise PrivSVMError(f"{cell}: not drawn; {'; '.join(dict.fromkeys(messages))}")
    # Other cells of the same draws too, but for those that later draws give.
    for cell in list(drawn):
        if any(plan.key not in plans for plan in choose_draws(committed.paper, draws, cell)):
            del drawn[cell]
    return drawn, seconds


def _measure(committed: PrintedPaper, cells: Sequence[str], folder: Path) -> tuple[dict[str, Distribution], float]:
    """Run the jobs behind measured cells; return these cells, and the processor time of the jobs."""
    from privsvm.files import read_json
    from reproduce.engine.cells import choose_jobs
    from reproduce.engine.experiment import read_results
    from reproduce.engine.jobs import run_job
    from reproduce.engine.measurements import as_distributions
    from reproduce.engine.papers import find_experiments

    experiments, seconds = find_experiments("reproduce"), 0.0
    result: dict[str, Distribution] = {}
    for name in dict.fromkeys(cell.partition("/")[0] for cell in cells):
        experiment, known = experiments[name], {item.dataset for item in committed.measurements[name]}
        jobs = experiment.all_jobs()
        by_cell = {cell: choose_jobs(jobs, cell) for cell in cells if cell.startswith(f"{name}/")}
        chosen = dict.fromkeys(job for own in by_cell.values() for job in own)
        for job in chosen:
            run_job(experiment, job, folder, jobs[job])
            seconds += read_json(folder / name / f"{job}.json")["seconds"]
        results, reasons = read_results(experiment, folder)
        found = as_distributions(name, experiment.measurements({job: results[job] for job in chosen if job in results}))
        # A dataset that the committed cells do without may be lacking here too.
        lacking = {jobs[job]["dataset"] for job in chosen if job not in results} & known
        for cell in by_cell:
            if lacking or cell not in found:
                why = "; ".join(f"{dataset}: {reasons[dataset]}" for dataset in sorted(lacking or reasons))
                raise PrivSVMError(f"{cell}: not measured; {why}")
        result |= {cell: found[cell] for cell in found if set(choose_jobs(jobs, cell)) <= set(chosen)}
    return result, seconds


def _compare(committed: PrintedPaper, rerun: PrintedPaper, name: str, cells: Mapping[str, Distribution]) -> None:
    """Print a row and its cells before and after; raise PrivSVMError if they differ.

    A statement differs by its verdict: single cells of it may depend on the machine.
    """
    from reproduce.engine.rerun import beside

    (old, before), (new, after) = _describe(committed, name), _describe(rerun, name)
    print(f"committed: {before}\nrerun: {after}")
    is_claim = name in {claim.id for claim in committed.claims}
    machine = {metric for plan in draws_of([committed.paper.name]) for metric in plan.machine_metrics}
    compared = {cell: item for cell, item in cells.items() if not (item.table or cell.rpartition("/")[2] in machine)}
    lines = beside(committed.distributions, compared)
    if not is_claim or len(lines) <= _FEW:
        for line in lines:
            print(f"{line.cell}: {line.reading}")
    else:
        readings = collections.Counter(line.reading for line in lines)
        print("; ".join(f"{number} cells {reading}" for reading, number in readings.items()))
    measured = {cell: [f"{judged.distributions[cell].median:.6g}" for judged in (committed, rerun)]
                for cell, item in cells.items() if item.table and cell in committed.distributions}  # fmt: skip
    differing = [cell for cell, (first, second) in measured.items() if first != second]
    if is_claim and len(differing) > _FEW:
        print(f"{len(differing)} of {len(measured)} measured cells differ in six digits")
    else:
        for cell in differing:
            print("{}: committed {}; rerun {}".format(cell, *measured[cell]))
    far = [line.cell for line in lines if not (is_claim or line.confirms)]
    if old != new or far:
        raise PrivSVMError(f"{name}: committed and rerun differ: {'; '.join([f'{old} and {new}', *far])}")


def _record(options: argparse.Namespace, committed: PrintedPaper, name: str, seconds: float) -> None:
    """State the processor time of a statement's pieces and jobs; of a number, what a run takes beyond them.

    Pages state compiling apart: of a run that compiles some functions, nothing is stated.
    """
    from privsvm_bench.evidence import Sources
    from privsvm_bench.workflow.sources import closure_digest
    from reproduce.engine.cells import FIRST_RUN, LATER_RUN, RERUNS, expected_seconds, recorded_seconds

    is_first = not options.compiled
    is_number = any(row.printed.id == name for row in committed.judgements)
    if _list_compiled() - options.compiled and not (is_first and is_number):
        print("no time is stated, since functions were compiled: run the command again")
        return
    sources = Sources(Path(options.reports) / "distributions")
    for printed in (row.printed for row in committed.judgements if row.printed.id == name):
        draws = draws_of([options.paper])
        expected = expected_seconds(recorded_seconds(sources, draws), draws, committed.paper, printed)
        name = FIRST_RUN if is_first else LATER_RUN
        seconds = time.process_time() - min(seconds, expected or seconds)
    sources.measure(RERUNS, options.paper, closure_digest("reproduce.cell"), name, float(f"{seconds:.2g}"))


def _list_compiled() -> set[Path]:
    """List the compiled functions in Numba's cache."""
    return set(Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nbc"))


def _describe(judged: PrintedPaper, name: str) -> tuple[str, str]:
    """Return the verdict on a row, and a line on it."""
    from reproduce.engine.printed import interval

    for claim in judged.claims:
        if claim.id == name:
            return claim.verdict, "; ".join(filter(None, (claim.verdict, claim.ours, claim.reason)))
    row = next(judgement for judgement in judged.judgements if judgement.printed.id == name)
    words = [f"printed {row.printed.text or 'lost'}"]
    if row.distribution is not None:
        middle, low, high = interval(row.distribution)
        words.append(f"ours {middle:.6g} ({low:.6g} to {high:.6g}) from {row.distribution.runs} runs")
    if row.percentile is not None:
        words.append(f"percentile {100.0 * row.percentile:.1f} %")
    return row.verdict, "; ".join([*words, row.verdict, *filter(None, [judged.reading(row)])])
