"""Confirm distributions of earlier code by a sample: ``python -m reproduce confirm dpwss --seconds 600``.

Draws a sample of every dataset whose code has changed since, beside the committed cells. Where no cell differs, states
so in ``sources.json``; where one does, prints it and ends with exit code 1.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from privsvm.errors import PrivSVMError
from reproduce.cell import MODULES, check_reports, draws_of, set_up

if TYPE_CHECKING:
    from privsvm_bench.evidence import Sources
    from reproduce.engine.draws import Draws
    from reproduce.engine.rerun import RerunLine


def stale_draws(draws: Sequence[Draws], sources: Sources) -> dict[tuple[str, str], list[Draws]]:
    """Group the measured draws by table and dataset, and keep groups that other code measured or confirmed last."""
    measured: dict[tuple[str, str], dict[tuple[str, str], Draws]] = {}
    stale = set()
    for plan in draws:
        for table in plan.tables:
            if plan.name in sources.parts(table, plan.dataset):
                measured.setdefault((plan.experiment, plan.dataset), {})[plan.key] = plan
                if not sources.is_current(table, plan.dataset, plan.code, plan.name):
                    stale.add((plan.experiment, plan.dataset))
    return {group: list(plans.values()) for group, plans in measured.items() if group in stale}


def choose_sample(
    draws: Sequence[Draws], times: Mapping[tuple[str, str], float], share: float
) -> tuple[list[Draws], float]:
    """Choose the cheapest draws of each function, and sum up their seconds; those that were not timed come last."""
    chosen = []
    for run in dict.fromkeys(plan.run for plan in draws):
        plans = sorted((plan for plan in draws if plan.run == run), key=lambda plan: times.get(plan.key, math.inf))
        chosen += plans[: max(1, math.ceil(share * len(plans)))]
    return chosen, sum(times.get(plan.key, math.inf) for plan in chosen)


def _draw_sample(
    chosen: Sequence[Draws], folder: str, reports: Path, deadline: float
) -> tuple[dict[str, list[RerunLine]], list[str]]:
    """Draw a sample; return its lines beside the committed cells by table, and why functions have none."""
    from privsvm_bench.evidence import Sources
    from reproduce.engine.distributions import read_distributions
    from reproduce.engine.draws import run_draws
    from reproduce.engine.rerun import beside

    lines: dict[str, list[RerunLine]] = {table: [] for table in chosen[0].tables}
    reasons = {plan.run: "out of time" for plan in chosen}
    for plan in chosen:
        messages: list[str] = []
        with tempfile.TemporaryDirectory() as here:
            run_draws([plan], folder, Sources(here), deadline - time.monotonic(), say=messages.append)
            for table in plan.tables:
                drawn = read_distributions(Path(here) / f"{table}.csv")
                compared = {cell: drawn[cell] for cell in drawn if cell.rpartition("/")[2] not in plan.machine_metrics}
                lines[table] += beside(read_distributions(reports / f"{table}.csv"), compared)
                if compared:
                    reasons.pop(plan.run, None)
                elif plan.run in reasons and messages:
                    reasons[plan.run] = "its cells depend on the machine" if drawn else messages[-1]
    return lines, list(dict.fromkeys(reasons.values()))


def main(argv: Sequence[str] | None = None) -> None:
    """Draw samples, the cheapest first, and state which tables they confirm."""
    parser = argparse.ArgumentParser(prog="python -m reproduce confirm", description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(MODULES))
    parser.add_argument("--seconds", type=float, default=math.inf, help="start nothing new after so many seconds")
    parser.add_argument("--share", type=float, default=0.0, help="of a dataset's draws; at least one by each function")
    parser.add_argument("--data", default="data/reproduce", metavar="FOLDER", help="where pieces are kept")
    parser.add_argument(
        "--reports", default="reports/reproduce/distributions", metavar="FOLDER", help="where the distributions are"
    )
    options = parser.parse_args(argv)
    papers = options.papers or list(MODULES)
    set_up(papers)
    check_reports(options.reports, "sources.json")

    from privsvm_bench.evidence import Sources
    from reproduce.engine.cells import recorded_seconds

    deadline, sources, draws = time.monotonic() + options.seconds, Sources(options.reports), draws_of(papers)
    times = recorded_seconds(sources, draws)
    stale = stale_draws(draws, sources)
    samples = {group: choose_sample(plans, times, options.share) for group, plans in stale.items()}
    failures: list[RerunLine] = []
    # Of draws that were not timed, exact ones are the cheapest.
    ordered = sorted(samples.items(), key=lambda item: (item[1][1], item[1][0][0].combine != "exact"))
    for (_, dataset), (chosen, expected) in ordered:
        lines: dict[str, list[RerunLine]] = {}
        reasons = [f"its sample takes about {expected:.0f} s"]
        if math.isinf(expected) or time.monotonic() + expected <= deadline:
            lines, reasons = _draw_sample(chosen, options.data, Path(options.reports), deadline)
        for table in chosen[0].tables:
            cells = lines.get(table, [])
            differing = [line for line in cells if not line.confirms]
            failures += differing
            word = "differs" if differing else f"unconfirmed: {'; '.join(reasons)}"
            if cells and not (differing or reasons):
                largest = float(f"{max(abs(line.apart) for line in cells):.2g}")
                sources.confirm(table, dataset, chosen[0].code, len(cells), largest)
                word = sources.sentence(table, dataset)
            print(f"{table} {dataset}: {word}", flush=True)
            for line in differing:
                print(f"  {line.cell}: committed {line.committed:.6g}, rerun {line.rerun:.6g}; {line.reading}")
    if failures:
        raise PrivSVMError(
            f"cells that differ from the committed ones: {len(failures)}; mend the code, or draw them anew by "
            "`python -m reproduce.draws`"
        )
