"""The command line that all files of ``reproduce/`` share."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from privsvm.errors import PrivSVMError, nearest_name
from privsvm.files import read_json, write_text
from privsvm.pipeline.sources import compiled_code_key
from privsvm.pipeline.stage import die_with_parent, json_argument
from privsvm.reproduction.comparison import count_verdicts, rows_csv
from privsvm.reproduction.experiment import Experiment

__all__ = ["main"]


def _chosen(experiments: Mapping[str, Experiment], names: Sequence[str]) -> list[Experiment]:
    """Find experiments by full or short name; all where none is named."""
    # What all names begin with is the paper's.
    words = [name.split("_") for name in experiments]
    shared = sum(1 for _ in itertools.takewhile(lambda places: len(set(places)) == 1, zip(*words, strict=False)))
    short = {"_".join(parts[shared:]): name for name, parts in zip(experiments, words, strict=True)}
    for name in names:
        if name not in experiments and name not in short:
            raise PrivSVMError(f"experiment {name!r} is unknown; {nearest_name(name, [*experiments, *short])}")
    return [experiments[short.get(name, name)] for name in names] or list(experiments.values())


def main(experiments: Mapping[str, Experiment], argv: Sequence[str] | None = None) -> None:
    """Run experiments of one paper and write their tables.

    Parameters
    ----------
    experiments : mapping
        The paper's experiments by name.
    argv : sequence of str or None
        Arguments; None: those of the process.
    """
    parser = argparse.ArgumentParser(description="Reproduce experiments of one paper; what is stored is not run again")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=", ".join(experiments))
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="run only jobs on these datasets")
    parser.add_argument("--settings", type=json_argument, default={}, metavar="JSON", help="change some settings")
    parser.add_argument("--job", help="run this job only and write no table (for Snakemake)")
    parser.add_argument("--parameters", type=json_argument, metavar="JSON", help="parameters of that job")
    parser.add_argument("--tables-only", action="store_true", help="write tables from what is stored")
    parser.add_argument("--data", default="data/reproduce", metavar="FOLDER", help="where results are kept")
    parser.add_argument("--reports", default="reports/reproduce", metavar="FOLDER", help="where tables go")
    options = parser.parse_args(argv)
    die_with_parent()
    # Kernels compiled for other sources must not be found.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(".cache/numba").resolve() / compiled_code_key()))
    chosen = [experiment.with_settings(options.settings) for experiment in _chosen(experiments, options.experiments)]

    # Imported late, so that --help and a wrong name answer at once.
    from privsvm.reproduction.jobs import run_job

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
                maker = experiments[owner].with_settings(options.settings)
                ran = run_job(maker, job, options.data, parameters)
                spent = f"{time.perf_counter() - started:.1f} s" if ran else "stored"
                print(f"{owner} {job}: {spent}", file=sys.stderr)
        write_report(experiment, options.data, options.reports)


def write_report(experiment: Experiment, data: str | Path, reports: str | Path) -> None:
    """Write the table and the page of one experiment, from stored results.

    Parameters
    ----------
    experiment : Experiment
        With the settings its results were made with; results of other settings count as not run.
    data, reports : path-like
        Where results are, and where ``<experiment>.csv`` and ``<experiment>.html`` go.
    """
    from privsvm.reproduction.page import experiment_page

    results = {}
    for job, (owner, parameters) in experiment.all_jobs().items():
        path = Path(data) / owner / f"{job}.json"
        stored = read_json(path) if path.exists() else {}
        results[job] = stored["result"] if stored.get("parameters") == parameters else None
    report = experiment.report(experiment, results)
    # Both are computed before the first is written.
    table, page = rows_csv(report.rows), experiment_page(experiment, report)
    write_text(Path(reports) / f"{experiment.name}.csv", table)
    write_text(Path(reports) / f"{experiment.name}.html", page)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(report.rows).items())
    print(f"{experiment.name}: {counts}", file=sys.stderr)
