"""One cell of a paper: its name on the command line, the draws and jobs behind it, and how long they take."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm.errors import PrivSVMError, nearest_name
from privsvm_bench.evidence import Sources
from reproduce.engine.draws import Draws
from reproduce.engine.judging import Printed
from reproduce.engine.printed import Paper, PrintedPaper
from reproduce.engine.statements import Claim, group_cells

# Name of the table, on the command line, of a statement that is rerun.
STATEMENTS = "statements"
# Name of the processor times of reruns among the sources of distributions.
RERUNS = "reruns"
# Among them: beyond the pieces that are drawn, of a first run, which compiles, and of a later one.
FIRST_RUN, LATER_RUN = "a first run", "a later run"


def column_of(printed: Printed) -> str:
    """Return the name of a number's column: method, setting and metric."""
    return "/".join((printed.method, printed.setting, printed.metric))


def command(paper: str, item: Printed | Claim) -> str:
    """Return the command that reruns a number or a statement."""
    if isinstance(item, Claim):
        return shlex.join(["python", "-m", "reproduce", "cell", paper, STATEMENTS, item.id, "all"])
    return shlex.join(["python", "-m", "reproduce", "cell", paper, item.source, item.dataset, column_of(item)])


def _check_name(kind: str, name: str, names: Iterable[str]) -> None:
    """Refuse a name that does not exist."""
    choices = list(dict.fromkeys(names))
    if name not in choices:
        raise PrivSVMError(f"{kind} {name!r} is unknown; {nearest_name(name, choices)}")


def find_printed(judged: PrintedPaper, table: str, row: str, column: str) -> Printed:
    """Find a printed number by its source, its dataset, and its method, setting and metric joined by slashes.

    Raises PrivSVMError for an unknown name, with the nearest one.
    """
    numbers = [judgement.printed for judgement in judged.judgements]
    _check_name("table", table, [*(printed.source for printed in numbers), STATEMENTS])
    numbers = [printed for printed in numbers if printed.source == table]
    _check_name("row", row, (printed.dataset for printed in numbers))
    numbers = [printed for printed in numbers if printed.dataset == row]
    _check_name("column", column, (column_of(printed) for printed in numbers))
    return next(printed for printed in numbers if column_of(printed) == column)


def find_claim(judged: PrintedPaper, name: str) -> Claim:
    """Find a statement by its identifier; an unknown one is an error."""
    _check_name("statement", name, (claim.id for claim in judged.claims))
    return next(claim for claim in judged.claims if claim.id == name)


def cells_behind(judged: PrintedPaper, row: Printed | Claim, column: str = "all") -> list[str]:
    """List the drawn and measured cells that a number or a statement rests on, also through computed ones.

    `column` is a dataset, whose cells are kept, or "all". Raises PrivSVMError for an unknown one.
    """
    pool, bases, seen = judged.distributions, {}, set()
    waiting = [row.id]
    if isinstance(row, Claim):
        found = group_cells("|".join(row.cells), pool).values()
        waiting = [item.cell for points in found for _, item in points]
    while waiting:
        cell = waiting.pop()
        if cell in seen or cell not in pool:
            continue
        seen.add(cell)
        sources = [pool[cell].cell] if pool[cell].cell != cell else judged.paper.sources(cell)
        waiting += sources
        if cell in sources:
            names, table = cell.split("/"), pool[cell].table
            bases[cell] = names[2] if table and names[0] == table else names[names[0] in ("mean", "panel")]
    if column != "all":
        _check_name("column", column, [*sorted(bases.values()), "all"])
    return sorted(cell for cell, dataset in bases.items() if column in (dataset, "all"))


def choose_draws(paper: Paper, draws: Sequence[Draws], cell: str) -> list[Draws]:
    """Choose the draws that a number rests on: of several experiments, the last that is read."""
    chosen: dict[tuple[str, str], Draws] = {}
    for source in paper.sources(cell):
        giving = [plan for plan in draws if plan.gives(source.removeprefix("mean/"))]
        last = max((paper.experiments.index(plan.experiment) for plan in giving), default=-1)
        chosen |= {plan.key: plan for plan in giving if paper.experiments.index(plan.experiment) == last}
    return list(chosen.values())


def choose_jobs(jobs: Mapping[str, Mapping[str, Any]], cell: str) -> list[str]:
    """Choose the jobs of an experiment behind a measured cell; an average over datasets needs the jobs of all.

    A job's parameters name its dataset, and some also a method or, as ``kind``, a table; others have the method in
    their own name.
    """
    _, table, dataset, method, *_ = cell.split("/")
    for matches in (
        [job for job, parameters in jobs.items() if parameters["dataset"] == dataset],
        [job for job, parameters in jobs.items() if method in (parameters.get("method"), job.partition(".")[2])],
        [job for job, parameters in jobs.items() if parameters.get("kind") == table],
    ):
        jobs = {job: jobs[job] for job in matches if job in jobs} or jobs
    return list(jobs)


def recorded_seconds(sources: Sources, draws: Sequence[Draws]) -> dict[tuple[str, str], float]:
    """Read the processor times of draws, by their keys; those that were not timed are left out."""
    times: dict[tuple[str, str], float] = {}
    for table, entry in dict.fromkeys((plan.experiment, plan.dataset) for plan in draws):
        parts = sources.parts(table, entry)
        times |= {(table, name): seconds for name, seconds in parts.items() if seconds is not None}
    return times


def expected_seconds(
    times: Mapping[tuple[str, str], float], draws: Sequence[Draws], paper: Paper, printed: Printed
) -> float | None:
    """Estimate the processor time of a rerun: of its own draws, else the median over the method on this dataset.

    `times` are as from `recorded_seconds`, and `draws` all of the paper. Returns None if nothing comparable was timed.
    """
    chosen = [plan.key for plan in choose_draws(paper, draws, printed.id)]
    if chosen and all(key in times for key in chosen):
        return sum(times[key] for key in chosen)
    start = f"{printed.dataset}/{printed.method}/"
    alike = [
        times[plan.key] for plan in draws if plan.key in times and any(cell.startswith(start) for cell in plan.cells)
    ]
    return statistics.median(alike) if alike else None
