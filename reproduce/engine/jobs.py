"""Run the jobs of a reproduction whose result is not stored, or was made by other code."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from privsvm.digests import canonical_json
from privsvm.files import read_json, write_json
from privsvm.registry import implementations, module_name
from privsvm_bench.workflow.sources import closure_digest
from reproduce.engine.context import Context, MissingError
from reproduce.engine.experiment import Experiment, Result, Results


def code_entries(experiment: Experiment, parameters: Mapping[str, Any]) -> list[str]:
    """List the modules whose imports a job's result depends on: the one that it runs, and a method that it names.

    The parameter ``estimator``, if given, names a file of `privsvm.methods`. Returns dotted names, for
    `privsvm_bench.workflow.sources.closure`.
    """
    method = parameters.get("estimator")
    named = [module_name(method)] if method in implementations() else []
    return [experiment.module(experiment.run), "reproduce.engine.context", *named]


def finished_jobs(experiment: Experiment, results: Results) -> Iterator[tuple[Mapping[str, Any], Result]]:
    """Yield the parameters and the result of each job that has one."""
    for job, parameters in experiment.all_jobs().items():
        if job in results:
            yield parameters, results[job]


def run_job(experiment: Experiment, job: str, folder: str | Path, parameters: Mapping[str, Any] | None = None) -> bool:
    """Run one job unless its result is stored, and return whether it had to run.

    The result goes to ``<folder>/<experiment>/<job>.json``. `parameters` defaults to the experiment's own. A job that
    lacked its data runs again.
    """
    parameters = experiment.jobs(experiment.settings)[job] if parameters is None else parameters
    path = Path(folder) / experiment.name / f"{job}.json"
    code = closure_digest(*code_entries(experiment, parameters))
    identity = {"experiment": experiment.name, "job": job, "code": code, "parameters": parameters}
    if path.exists():
        stored = read_json(path)
        same = all(canonical_json(stored.get(key)) == canonical_json(value) for key, value in identity.items())
        if same and "missing" not in stored["result"]:
            return False
    context, began = Context(experiment.name, folder, code), time.process_time()
    try:
        result = experiment.function(experiment.run)(parameters, context)
    except MissingError as error:
        result = {"missing": str(error)}
    seconds = time.process_time() - began + context.saved
    write_json(path, {**identity, "result": result, "seconds": seconds}, indent=None)
    return True
