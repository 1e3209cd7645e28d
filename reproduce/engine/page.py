"""HTML pages of the reproductions: one for each experiment, and a list of all. They load nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce.engine.comparison import VERDICTS, Row, count_verdicts
from reproduce.engine.experiment import Experiment, Report
from reproduce.engine.judging import VERDICTS as MEANINGS
from reproduce.engine.panels import charts_of, legend, panel_svg
from reproduce.engine.paper_page import summary
from reproduce.engine.printed import PrintedPaper
from reproduce.engine.rendering import environment

__all__ = ["experiment_page", "index_page"]

# Rows from which a table gets an overview.
_OVERVIEW = 60


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
        compared = cell["within tolerance"] + cell["beyond tolerance"]
        if not compared:
            verdict = next(verdict for verdict, count in cell.items() if count)
            return verdict, "missing"
        return f"{cell['within tolerance']} of {compared}", "differs" if cell["beyond tolerance"] else "agrees"

    return {
        "metrics": metrics,
        "lines": [(dataset, [text(dataset, metric) for metric in metrics]) for dataset in datasets],
    }


def experiment_page(experiment: Experiment, report: Report) -> str:
    """Render the page of one experiment as HTML that makes no network request."""
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
                "differing": [row for row in table.rows if row.verdict == "beyond tolerance"],
                "groups": [(name, rows, count_verdicts(rows)) for name, rows in groups.items()],
            }
        )
    charts = [*charts_of(experiment.records("charts.csv"), report.rows), *report.charts]
    return (
        environment()
        .get_template("experiment.html.jinja")
        .render(
            experiment=experiment,
            report=report,
            tables=tables,
            counts=count_verdicts(report.rows),
            verdicts=VERDICTS,
            settings=json.dumps(experiment.settings, indent=1, sort_keys=True),
            charts=[(chart.title, panel_svg(chart), legend(chart)) for chart in charts if not chart.empty],
        )
    )


def index_page(experiments: Sequence[Experiment], reports: str | Path, judged: Sequence[PrintedPaper] = ()) -> str:
    """Render the overview: each paper in short, every table as a map of its verdicts, and the list of experiments.

    `reports` holds the tables and pages; an experiment without a table counts as not run. `judged` are the papers with
    a verdict on everything that they print, for the first part.
    """
    folder = Path(reports)
    papers = [summary(paper) for paper in judged]
    return (
        environment()
        .get_template("index.html.jinja")
        .render(
            entries=[
                {
                    "experiment": experiment,
                    # Without a page there is nothing to lead to.
                    "page": (folder / f"{experiment.name}.html").exists(),
                    "table": (folder / f"{experiment.name}.csv").exists(),
                }
                for experiment in experiments
            ],
            judged=papers,
            printed=sum(item["printed"] for item in papers),
            undecided=sum(item["counts"]["cannot discriminate"] for item in papers),
            meanings=MEANINGS,
        )
    )
