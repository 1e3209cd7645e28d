"""Plain measurements of experiments: numbers by table and cell, one CSV file an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from reproduce.engine.distributions import ONE_VALUE, SINGLE, Distribution, lines_csv, of_whole, read_lines


class Measurement(NamedTuple):
    """Numbers of one cell: a single one, or one for each run or point of a curve."""

    table: str
    cell: str  # As from `cell_id`.
    values: tuple[float, ...]

    @property
    def dataset(self) -> str:
        """First name of the cell."""
        return self.cell.partition("/")[0]


def cell_id(dataset: str, method: str, setting: str, metric: str) -> str:
    """Join the names that identify a number."""
    return "/".join((dataset, method, setting, metric))


def measure(
    table: str, dataset: str, method: str, setting: str, **metrics: float | Sequence[float]
) -> list[Measurement]:
    """List the measurements of one setting by metric, whose names have underscores for spaces."""
    return [
        Measurement(table, cell_id(dataset, method, setting, metric.replace("_", " ")),
                    (float(values),) if isinstance(values, (int, float)) else tuple(map(float, values)))
        for metric, values in metrics.items()
    ]  # fmt: skip


def measurements_csv(measurements: Iterable[Measurement]) -> str:
    """Write measurements as CSV text: six digits are more than any paper prints."""
    return lines_csv(
        Measurement._fields,
        ([table, cell, " ".join(f"{value + 0.0:.6g}" for value in values)] for table, cell, values in measurements),
    )


def read_measurements(path: str | Path) -> list[Measurement]:
    """Read the output of `measurements_csv`; without a file there is none."""
    return [
        Measurement(line["table"], line["cell"], tuple(map(float, line["values"].split()))) for line in read_lines(path)
    ]


def merge_measurements(
    earlier: Sequence[Measurement], present: Sequence[Measurement], complete: Mapping[str, bool]
) -> list[Measurement]:
    """Keep earlier cells of datasets whose results are incomplete; averages over datasets need all of them.

    `complete` tells by dataset whether all of its results are here.
    """

    def is_new(item: Measurement) -> bool:
        return complete.get(item.dataset, all(complete.values()))

    cells = {item[:2]: item for item in earlier if not is_new(item)}
    known = {item.dataset for item in earlier}
    cells |= {item[:2]: item for item in present if is_new(item) or item.dataset not in known}
    # Lines keep their places.
    order = {key: number for number, key in enumerate(dict.fromkeys(item[:2] for item in (*earlier, *present)))}
    tables = {table: number for number, table in enumerate(dict.fromkeys(table for table, _ in order))}
    return [cells[key] for key in sorted(cells, key=lambda key: (tables[key[0]], order[key]))]


def constant(cell: str, value: float) -> Distribution:
    """Return a number that is computed from others, without their spread, as a distribution."""
    return Distribution(cell=cell, statistic=SINGLE, runs=1, unit=1e-6, fresh=(), quantiles=of_whole([value]))


def as_distributions(experiment: str, measurements: Iterable[Measurement]) -> dict[str, Distribution]:
    """Return measurements as distributions by ``<experiment>/<table>/<cell>``; a single number shows no spread."""
    return {
        (name := f"{experiment}/{item.table}/{item.cell}"): Distribution(
            cell=name, statistic=SINGLE if len(item.values) == 1 else ONE_VALUE, runs=len(item.values), unit=1e-6,
            fresh=(), quantiles=of_whole(item.values), table=experiment,
        )
        for item in measurements
        if item.values
    }  # fmt: skip
