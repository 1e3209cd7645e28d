"""The command line of the reproductions."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from privsvm.errors import PrivSVMError, list_names, nearest_name
from privsvm.warm_up import cache_folder
from privsvm_bench.workflow.stage import die_with_parent, json_argument
from reproduce.engine.experiment import Experiment, write_measurements
from reproduce.engine.papers import choose


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
    datasets = {parameters["dataset"] for experiment in chosen for parameters in experiment.all_jobs().values()}
    for dataset in options.datasets or []:
        if dataset not in datasets:
            raise PrivSVMError(f"--datasets {dataset!r} is unknown; {nearest_name(dataset, datasets)}")

    # Imported late, so that --help and errors in names appear at once.
    from reproduce.engine.jobs import run_job

    if options.job is not None:
        (experiment,) = chosen
        run_job(experiment, options.job, options.data, options.parameters)
        return
    lacking = set()
    for experiment in chosen:
        if not options.tables_only:
            for job, parameters in experiment.all_jobs().items():
                if options.datasets and parameters["dataset"] not in options.datasets:
                    continue
                started = time.perf_counter()
                ran = run_job(experiment, job, options.data, parameters)
                spent = f"{time.perf_counter() - started:.1f} s" if ran else "stored"
                print(f"{experiment.name} {job}: {spent}", file=sys.stderr)
        # Cells of changed settings stay apart from cells of the paper's settings.
        reports = Path(options.reports) / "changed" if options.settings else Path(options.reports)
        reasons = write_measurements(experiment, options.data, reports, merge=not options.settings)
        for dataset in options.datasets or reasons:
            if dataset in reasons:
                print(f"{experiment.name} {dataset}: {reasons[dataset]}", file=sys.stderr)
                lacking.add(dataset)
    if options.datasets and lacking:
        raise PrivSVMError(f"--datasets {list_names(sorted(lacking))}: not run; the lines above say why")
