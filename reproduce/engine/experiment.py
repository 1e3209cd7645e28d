"""Experiments of papers: settings, jobs, and the tables and charts made from their results."""

from __future__ import annotations

import csv
import dataclasses
import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from reproduce.engine.comparison import Missing, Published, Row, read_published
from reproduce.engine.panels import Panel

__all__ = ["Experiment", "Outcome", "Report", "Result", "Results", "Table", "outcome"]

Settings = Mapping[str, Any]
Result = Mapping[str, Any]


class Outcome(NamedTuple):
    """Numbers of a job, or else the verdict and reason for its rows."""

    numbers: Result | None
    missing: Missing | None


Results = Mapping[str, Outcome]


def outcome(result: Result | None) -> Outcome:
    """Tell a job's stored numbers from the reason why there are none; None: it has not run."""
    if result is None:
        return Outcome(None, ("not run", ""))
    if "missing" in result:
        return Outcome(None, (str(result["missing"]["verdict"]), str(result["missing"]["reason"])))
    return Outcome(result, None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """One table of a report; the caption says which numbers are compared, and when they agree."""

    name: str
    title: str
    caption: str
    rows: list[Row]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """Content of an experiment's page: tables, charts of results, and notes on choices and findings."""

    tables: list[Table]
    charts: list[Panel] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        """Rows of all tables."""
        return [row for table in self.tables for row in table.rows]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """One experiment of one paper.

    `run` and `report` are ``module:function`` of the package, imported on use. `run` maps ``(parameters, context)`` to
    a result; `report` maps ``(experiment, outcomes of all jobs)`` to rows, charts and, as text, notes. ``tables.csv``
    has the headings, captions and further notes.
    """

    package: str  # The paper's package, ``reproduce.<paper>``.
    name: str  # ``<paper>_<experiment>``, which names its files.
    title: str
    compares: str  # The two things compared.
    settings: Settings  # Datasets, protocol and constants, as JSON.
    # ``settings -> {job: parameters}``. Parameters hold all that a job needs; equal ones give equal results.
    jobs: Callable[[Settings], dict[str, dict[str, Any]]]
    run: str
    report: str
    borrows: Experiment | None = None  # Another experiment whose results the report also reads.

    @property
    def paper(self) -> str:
        """Name of the paper's folder."""
        return self.package.rpartition(".")[2]

    def module(self, function: str) -> str:
        """Full name of the module in ``module:function``."""
        return f"{self.package}.{function.partition(':')[0]}"

    def function(self, name: str) -> Callable[..., Any]:
        """Import the function that ``module:function`` names."""
        return getattr(importlib.import_module(self.module(name)), name.partition(":")[2])

    def make_report(self, results: Mapping[str, Result | None]) -> Report:
        """Compare the stored results of all jobs (None for a job that has not run) with the paper's numbers."""
        items: Iterable[Row | Panel | str] = self.function(self.report)(
            self, {job: outcome(result) for job, result in results.items()}
        )
        rows: dict[str, list[Row]] = {}
        charts, notes = [], self.notes()
        for item in items:
            if isinstance(item, Row):
                rows.setdefault(item.table, []).append(item)
            elif isinstance(item, Panel):
                charts.append(item)
            else:
                notes.append(item)
        order = [*(name for name in self.captions() if name in rows), *rows]
        return Report(
            tables=[self.table(name, rows[name]) for name in dict.fromkeys(order)], charts=charts, notes=notes
        )

    def table(self, name: str, rows: list[Row]) -> Table:
        """Give rows the heading and the caption of their table."""
        title, caption = self.captions().get(name, (name, ""))
        return Table(name=name, title=title, caption=caption, rows=rows)

    def records(self, file: str) -> list[dict[str, str]]:
        """Read the lines on this experiment of a CSV file in the paper's folder."""
        path = Path(importlib.import_module(self.package).__path__[0]) / file
        if not path.exists():
            return []
        with open(path, encoding="utf-8", newline="") as handle:
            return [line for line in csv.DictReader(handle) if line.pop("experiment") == self.name]

    def _texts(self) -> list[tuple[str, str, str]]:
        """Return table, heading and text of the lines of ``tables.csv``, which name settings in braces."""
        words = {key: ", ".join(map(str, value)) if isinstance(value, list) else value
                 for key, value in self.settings.items()}  # fmt: skip
        return [(line["table"], line["title"], line["text"].format(**words)) for line in self.records("tables.csv")]

    def captions(self) -> dict[str, tuple[str, str]]:
        """Return the heading and the caption of each table, in order."""
        return {table: (title, text) for table, title, text in self._texts() if table}

    def notes(self) -> list[str]:
        """Return the page's notes on the whole experiment."""
        return [text for table, _, text in self._texts() if not table]

    def published(self) -> Published:
        """Read the numbers that the paper prints, from the ``published.csv`` of its folder."""
        package = importlib.import_module(self.package)
        return read_published(Path(package.__path__[0]) / "published.csv")

    def with_settings(self, changes: Settings) -> Experiment:
        """Return the experiment with some settings changed, also in a borrowed experiment that has them."""
        borrowed = self.borrows.with_settings(changes) if self.borrows else None
        changed = {key: value for key, value in changes.items() if key in self.settings}
        return dataclasses.replace(self, settings={**self.settings, **changed}, borrows=borrowed)

    def all_jobs(self) -> dict[str, tuple[Experiment, dict[str, Any]]]:
        """All jobs that the report reads: name to the experiment they belong to, and parameters."""
        borrowed = self.borrows.all_jobs() if self.borrows else {}
        return {**borrowed, **{job: (self, parameters) for job, parameters in self.jobs(self.settings).items()}}
