"""The command line of the reproductions."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from privsvm.errors import PrivSVMError, nearest_name
from privsvm.files import read_json, write_text
from privsvm.warm_up import cache_folder
from privsvm_bench.workflow.stage import die_with_parent, json_argument
from reproduce.engine.comparison import Row, count_verdicts, merge_rows, read_rows, rows_csv
from reproduce.engine.experiment import Experiment, Report, Result, outcome
from reproduce.engine.papers import choose

__all__ = ["main"]


def main(experiments: Mapping[str, Experiment], argv: Sequence[str] | None = None) -> None:
    """Run experiments and write their tables; the arguments default to the process's."""
    parser = argparse.ArgumentParser(
        description="Reproduce experiments of papers; jobs whose results are stored do not run again"
    )
    parser.add_argument("experiments", nargs="*", metavar="NAME", help=", ".join(experiments) + "; or a paper")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="run only jobs on these datasets")
    parser.add_argument("--settings", type=json_argument, default={}, metavar="JSON", help="change some settings")
    parser.add_argument("--job", help="run only this job and write no table (for Snakemake)")
    parser.add_argument("--parameters", type=json_argument, metavar="JSON", help="parameters of that job")
    parser.add_argument("--tables-only", action="store_true", help="run nothing; write tables from stored results")
    parser.add_argument("--data", default="data/reproduce", metavar="FOLDER", help="where results are kept")
    parser.add_argument(
        "--reports",
        default="reports/reproduce",
        metavar="FOLDER",
        help="where tables go; with --settings, to its folder `changed`",
    )
    options = parser.parse_args(argv)
    die_with_parent()
    # Functions compiled from other sources must not be found.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
    chosen = [experiment.with_settings(options.settings) for experiment in choose(experiments, options.experiments)]
    datasets = {str(parameters["dataset"]) for experiment in chosen for _, parameters in experiment.all_jobs().values()}
    for dataset in options.datasets or []:
        if dataset not in datasets:
            raise PrivSVMError(f"--datasets {dataset!r} is unknown; {nearest_name(dataset, datasets)}")

    # Imported late, so that --help and errors in names appear at once.
    from reproduce.engine.jobs import run_job

    if options.job is not None:
        (experiment,) = chosen
        run_job(experiment, options.job, options.data, options.parameters)
        return
    for experiment in chosen:
        if not options.tables_only:
            for job, (owner, parameters) in experiment.all_jobs().items():
                if options.datasets and parameters["dataset"] not in options.datasets:
                    continue
                started = time.perf_counter()
                ran = run_job(owner, job, options.data, parameters)
                spent = f"{time.perf_counter() - started:.1f} s" if ran else "stored"
                print(f"{owner.name} {job}: {spent}", file=sys.stderr)
        # Rows of changed settings stay apart from rows of the paper's settings.
        reports = Path(options.reports) / "changed" if options.settings else Path(options.reports)
        write_report(experiment, options.data, reports, merge=not options.settings)


def write_report(experiment: Experiment, data: str | Path, reports: str | Path, merge: bool = True) -> None:
    """Write the table (``<experiment>.csv``) and the page (``<experiment>.html``) of one experiment.

    They come from the results below `data`; results of other settings than the experiment's count as not run. With
    `merge`, rows whose results are not all stored here stay as in the present table.
    """
    from reproduce.engine.page import experiment_page

    results = {}
    for job, (owner, parameters) in experiment.all_jobs().items():
        path = Path(data) / owner.name / f"{job}.json"
        stored = read_json(path) if path.exists() else {}
        results[job] = stored["result"] if stored.get("parameters") == parameters else None
    report = experiment.make_report(results)
    table_path = Path(reports) / f"{experiment.name}.csv"
    if merge and table_path.exists():
        report = _merged(experiment, results, report, read_rows(table_path))
    # Compute both before writing the first.
    table, page = rows_csv(report.rows), experiment_page(experiment, report)
    write_text(table_path, table)
    write_text(Path(reports) / f"{experiment.name}.html", page)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(report.rows).items())
    print(f"{experiment.name}: {counts}", file=sys.stderr)


def _merged(
    experiment: Experiment, results: Mapping[str, Result | None], report: Report, earlier: Sequence[Row]
) -> Report:
    """Keep earlier rows wherever the present results are incomplete."""
    with_numbers = {row.dataset for row in earlier if row.ours is not None}
    settled: dict[str, bool] = {}
    for job, (_, parameters) in experiment.all_jobs().items():
        dataset, has = str(parameters["dataset"]), outcome(results[job])
        # Unavailable data: keep the results from a machine that had it.
        usable = has.numbers is not None or (results[job] is not None and dataset not in with_numbers)
        settled[dataset] = settled.get(dataset, True) and usable
    complete = all(settled.values())
    rows = merge_rows(earlier, report.rows, lambda row: settled.get(row.dataset, complete))
    by_table: dict[str, list[Row]] = {}
    for row in rows:
        by_table.setdefault(row.table, []).append(row)
    return dataclasses.replace(report, tables=[experiment.table(name, values) for name, values in by_table.items()])
