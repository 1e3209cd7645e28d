"""Run an experiment's random parts again and again, in pieces that are kept, and sum them up as distributions."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privsvm.files import write_text
from privsvm.numerics.noise.streams import seeded_stream
from privsvm_bench.workflow.sources import closure_digest
from reproduce.engine.context import Context, MissingError
from reproduce.engine.distributions import (
    MANY_RUNS,
    ONE_VALUE,
    SINGLE,
    Distribution,
    lines_by_cell,
    merge_distributions,
    of_mean,
    of_parts,
    of_whole,
)

if TYPE_CHECKING:
    # No import at run time: code that states sources has no influence on results.
    from privsvm_bench.evidence import Sources

# Fresh draws of a cell that are kept.
_FRESH = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Draws:
    """Random results of one dataset and setting."""

    experiment: str  # Names the file of distributions.
    name: str  # Among the draws of the experiment.
    dataset: str  # As the paper names it.
    # ``module:function`` with ``(parameters, context, piece) -> {cell: values}``: one value for each run, or for each
    # run a list with one value for each part.
    run: str
    parameters: Mapping[str, Any]  # The results depend on nothing else.
    # The printed statistic: "mean" (of `size` runs; of one, a number that is nearly normal), "parts" (mean over the
    # parts), "whole" (the value itself) or "exact" (the same in every run).
    combine: str = "exact"
    size: int = 1  # Runs, or parts, behind a printed number.
    pieces: int = 1  # By default.
    unit: Callable[[str], float] | float = 1.0  # Of the last printed digit; a function maps each cell to its own.
    spread: int | None = None  # Also ``<cell> SD``, the standard deviation with so many degrees of freedom taken off.
    means: tuple[str, int] | None = None  # Also means of so many runs, as ``mean/<cell>`` in the file of this name.
    cells: tuple[str, ...] = ()  # Printed numbers that it gives; with a slash at the end, all that begin so.
    # Metrics that the machine decides, such as times and sums of round-off; no rerun can confirm them.
    machine_metrics: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Experiment and name, which no other draws have."""
        return self.experiment, self.name

    @property
    def code(self) -> str:
        """Digest of the code that the results depend on."""
        return _code(self.run.partition(":")[0])

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the files of distributions that it fills."""
        return (self.experiment, *(self.means or ())[:1])

    def gives(self, cell: str) -> bool:
        """Return whether it gives a printed number."""
        return any(
            cell.startswith(prefix) if prefix.endswith("/") else cell.removesuffix(" SD") == prefix
            for prefix in self.cells
        )

    @property
    def statistic(self) -> str:
        """The printed statistic, in words."""
        return {
            "mean": f"mean of {self.size} runs" if self.size > 1 else "one run",
            "parts": f"mean of {self.size} splits",
            "whole": ONE_VALUE,
            "exact": "exact",
        }[self.combine]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Further:
    """Cells that are drawn on because the printed number lies outside."""

    cells: frozenset[str]
    runs: int  # At most.
    seconds: float  # Of processor time for all runs of a setting; slower ones are not drawn on.

    def pieces(self, piece: Mapping[str, Sequence[Any]], spent: float) -> int:
        """Pieces of a setting whose first piece gave these cells and whose slowest one took so many seconds."""
        if self.cells.isdisjoint(piece):
            return 0
        wanted = math.ceil(self.runs / max(1, min(len(values) for values in piece.values())))
        return wanted if wanted * spent <= self.seconds else 0


@functools.cache
def _code(module: str) -> str:
    return closure_digest(module, "reproduce.engine.context")


def _summary(draws: Draws, cell: str, values: np.ndarray) -> list[Distribution]:
    """Return the distributions of a cell's mean and, where it is printed, of its standard deviation."""
    shared: dict[str, Any] = {"runs": 1, "unit": draws.unit(cell) if callable(draws.unit) else draws.unit}
    if draws.combine == "mean" and len(values) == 1:
        return [Distribution(cell=cell, statistic=SINGLE, fresh=(), quantiles=of_whole(values.tolist()), **shared)]
    size = draws.size
    held, kept = np.split(values, [_count_held_out(draws, len(values))])
    shared["runs"] = len(kept)
    result = []
    for spread in (None,) if draws.spread is None else (None, draws.spread):
        rng = seeded_stream(20260, "distribution", cell, spread or 0)

        def sum_up(block: np.ndarray, spread: int | None = spread) -> float:
            return float(block.mean() if spread is None else block.std(ddof=spread))

        statistic = draws.statistic if spread is None else draws.statistic.replace("mean", "standard deviation")
        if draws.combine == "mean" and size == 1 and len(kept) >= MANY_RUNS:
            # So many runs need no assumption on their form.
            statistic, quantiles, fresh = ONE_VALUE, of_whole(kept.tolist()), held.tolist()
        elif draws.combine == "mean":
            quantiles = of_mean(kept.tolist(), size, rng, spread)
            fresh = [sum_up(block) for block in held.reshape(-1, size)]
        elif draws.combine == "parts":
            quantiles, fresh = of_parts(kept, rng, spread), [sum_up(block) for block in held]
        else:
            quantiles, fresh = of_whole(kept.tolist()), held.tolist()
        name = cell if spread is None else f"{cell} SD"
        result.append(
            Distribution(cell=name, statistic=statistic, fresh=tuple(fresh[:_FRESH]), quantiles=quantiles, **shared)
        )
    return result


def _summaries(draws: Draws, values: Mapping[str, np.ndarray]) -> dict[str, list[Distribution]]:
    """Return the distributions of all cells by the file that has them."""
    files = {draws.experiment: [item for cell, members in values.items() for item in _summary(draws, cell, members)]}
    if draws.means is not None:
        file, size = draws.means
        mean = dataclasses.replace(draws, size=size)
        files[file] = [
            dataclasses.replace(item, cell=f"mean/{item.cell}", fresh=())
            for cell, numbers in values.items()
            for item in _summary(mean, cell, numbers)
        ]
    return files


def _count_held_out(draws: Draws, count: int) -> int:
    """Return how many of the first runs are kept apart, to be judged like the paper's numbers."""
    if draws.combine == "exact":
        return 0
    if draws.combine == "parts":
        return min(2, count // 10)
    if draws.combine == "whole" or draws.size == 1:
        return min(10, count // 10)
    return 2 * draws.size if count >= 6 * draws.size else draws.size if count >= 3 * draws.size else 0


def run_draws(
    chosen: Iterable[Draws],
    folder: str | Path,
    sources: Sources,
    seconds: float | None = None,
    share: float = 1.0,
    say: Callable[[str], None] | None = None,
    further: Further | None = None,
) -> int:
    """Make the pieces that are not stored in `folder`, and write the distributions of all pieces beside `sources`.

    Cells of ``<experiment>.csv`` that were not drawn keep their bytes. No piece starts after `seconds`; `share` is the
    share of the pieces of each draws, where stored ones count in any case. `say` takes a line on progress; None prints
    it to standard error. `further` cells are drawn on. Returns how many draws lack their data.
    """
    lacking = 0
    say = functools.partial(print, file=sys.stderr, flush=True) if say is None else say
    started = time.monotonic()
    for draws in chosen:
        module, function = draws.run.split(":")
        context = Context(f"{draws.experiment}_draws", folder, draws.code)
        run = getattr(importlib.import_module(module), function)
        pieces: list[Mapping[str, Sequence[Any]]] = []
        spent: list[float] = []
        for piece in itertools.count():
            key = {"name": draws.name, "parameters": draws.parameters, "piece": piece}
            late = seconds is not None and time.monotonic() - started > seconds
            wanted = max(1, round(share * draws.pieces))
            if further is not None and pieces:
                wanted = max(wanted, further.pieces(pieces[0], max(spent)))
            if (late or piece >= wanted) and not context.has(key):
                break
            try:
                stored = context.part(key, functools.partial(_time_piece, run, draws.parameters, context, piece))
                pieces.append(stored["values"])
                spent.append(stored["seconds"])
            except MissingError as error:
                say(f"{draws.experiment} {draws.name}: {error}")
                lacking += 1
                break
        if not pieces:
            continue
        values = {cell: np.concatenate([np.asarray(piece[cell]) for piece in pieces]) for cell in pieces[0]}
        for file, items in _summaries(draws, values).items():
            path = sources.path.with_name(f"{file}.csv")
            write_text(path, merge_distributions(lines_by_cell(path), items))
            sources.measure(file, draws.dataset, draws.code, draws.name, float(f"{sum(spent):.2g}"))
        say(f"{draws.experiment} {draws.name}: {len(pieces)} pieces, {time.monotonic() - started:.0f} s")
    return lacking


def _time_piece(run: Callable[..., Any], parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, Any]:
    """Run a piece and measure its processor time, and the time of stored results that it shares with other draws."""
    began, saved = time.process_time(), context.saved
    values = run(parameters, context, piece)
    return {"values": values, "seconds": time.process_time() - began + context.saved - saved}
