"""HTML pages of the reproductions: one for each experiment, and a list of all. They load nothing from elsewhere."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from privsvm.reporting.page import _plotly_source, short_number
from privsvm.reproduction.comparison import VERDICTS, Row, count_verdicts, read_rows
from privsvm.reproduction.experiment import Experiment, Report

__all__ = ["experiment_page", "index_page"]

_TEMPLATES = Path(__file__).with_name("templates")
_REPORT_TEMPLATES = Path(__file__).parents[1] / "reporting" / "templates"

# What makes a row of the overview of a table that is too long to read.
_OVERVIEW = 60


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_TEMPLATES, _REPORT_TEMPLATES]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["short"] = functools.partial(short_number, digits=4)
    return environment


def _overview(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Count the agreeing rows of a long table by dataset and metric."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    if len(rows) <= _OVERVIEW or len(datasets) < 2:
        return None
    cells: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        cell = cells.setdefault((row.dataset, row.metric), dict.fromkeys(VERDICTS, 0))
        cell[row.verdict] += 1

    def text(dataset: str, metric: str) -> tuple[str, str]:
        cell = cells.get((dataset, metric))
        if cell is None:
            return "", ""
        compared = cell["agrees"] + cell["differs"]
        if not compared:
            verdict = next(verdict for verdict, count in cell.items() if count)
            return verdict, "missing"
        return f"{cell['agrees']} of {compared}", "differs" if cell["differs"] else "agrees"

    return {
        "metrics": metrics,
        "lines": [(dataset, [text(dataset, metric) for metric in metrics]) for dataset in datasets],
    }


def experiment_page(experiment: Experiment, report: Report) -> str:
    """Render the page of one experiment.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    report : Report
        Its tables and figures.

    Returns
    -------
    str
        HTML that makes no network request.
    """
    tables = []
    for table in report.tables:
        groups: dict[str, list[Row]] = {}
        for row in table.rows:
            groups.setdefault(row.dataset, []).append(row)
        tables.append(
            {
                "table": table,
                "counts": count_verdicts(table.rows),
                "overview": _overview(table.rows),
                "differing": [row for row in table.rows if row.verdict == "differs"],
                "groups": [(name, rows, count_verdicts(rows)) for name, rows in groups.items()],
            }
        )
    figures = [{"data": figure.data, "layout": figure.layout} for figure in report.figures]
    return (
        _environment()
        .get_template("experiment.html.jinja")
        .render(
            experiment=experiment,
            report=report,
            tables=tables,
            counts=count_verdicts(report.rows),
            verdicts=VERDICTS,
            settings=json.dumps(experiment.settings, indent=1, sort_keys=True),
            # "<" is escaped, so that no text can end the script.
            figures=json.dumps(figures).replace("<", "\\u003c"),
            plotly=_plotly_source(),
        )
    )


def index_page(experiments: Sequence[Experiment], reports: str | Path) -> str:
    """Render the list of all experiments.

    Parameters
    ----------
    experiments : sequence of Experiment
        All experiments; one without a table counts as not run.
    reports : path-like
        Folder of their tables.

    Returns
    -------
    str
        HTML.
    """
    entries = []
    for experiment in experiments:
        path = Path(reports) / f"{experiment.name}.csv"
        rows = read_rows(path) if path.exists() else []
        tables = {
            name: count_verdicts(row for row in rows if row.table == name)
            for name in dict.fromkeys(row.table for row in rows)
        }
        entries.append({"experiment": experiment, "counts": count_verdicts(rows), "tables": tables})
    return _environment().get_template("index.html.jinja").render(entries=entries, verdicts=VERDICTS)
