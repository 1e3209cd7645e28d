"""Experiments of papers: settings, jobs, and the measurements that their results give."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from privsvm.files import read_json, write_text
from privsvm.plain_yaml import read_yaml
from reproduce.engine.distributions import read_lines
from reproduce.engine.measurements import Measurement, measurements_csv, merge_measurements, read_measurements

Settings = Mapping[str, Any]
Result = Mapping[str, Any]
# By job; a job without data has none.
Results = Mapping[str, Result]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One experiment of one paper.

    `run` and `measure` are ``module:function`` of the package, imported on use. `run` maps ``(parameters, context)`` to
    a result; `measure` maps ``(experiment, results by job)`` to measurements. ``tables.csv`` has the title of the
    experiment with the two things that it compares, a note, and headings.
    """

    package: str  # The paper's package, ``reproduce.<paper>``.
    name: str  # ``<paper>_<experiment>``, which names its files.
    settings: Settings  # Datasets, protocol and constants, as JSON.
    # ``settings -> {job: parameters}``. Parameters hold all that a job needs; equal ones give equal results.
    jobs: Callable[[Settings], dict[str, dict[str, Any]]]
    run: str
    measure: str

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

    def all_jobs(self) -> dict[str, dict[str, Any]]:
        """Return the parameters of all jobs by name."""
        return self.jobs(self.settings)

    def measurements(self, results: Results) -> list[Measurement]:
        """Return the measurements that results give."""
        found: Iterable[Measurement] = self.function(self.measure)(self, results)
        return list(found)

    def records(self, file: str) -> list[dict[str, str]]:
        """Read the lines on this experiment of a CSV file in the paper's folder."""
        lines = read_lines(_folder(self.package) / file)
        return [line for line in lines if line.pop("experiment") == self.name]

    def captions(self) -> dict[str, tuple[str, str]]:
        """Return the heading and the caption of each table, in order.

        The experiment's own stand under an empty name, and a note on the whole under "note".
        """
        words = {key: ", ".join(map(str, value)) if isinstance(value, list) else value
                 for key, value in self.settings.items()}  # fmt: skip
        return {line["table"]: (line["title"], line["text"].format(**words)) for line in self.records("tables.csv")}

    def with_settings(self, changes: Settings) -> Experiment:
        """Return the experiment with some settings changed."""
        changed = {key: value for key, value in changes.items() if key in self.settings}
        return dataclasses.replace(self, settings={**self.settings, **changed})


def _folder(package: str) -> Path:
    return Path(importlib.import_module(package).__path__[0])


def read_settings(package: str) -> dict[str, Any]:
    """Read ``settings.yaml`` of a paper: settings by experiment, and those that several share."""
    return read_yaml(_folder(package) / "settings.yaml")[0]


def list_experiments(
    package: str, settings: Settings, **functions: tuple[Callable[[Settings], dict[str, dict[str, Any]]], str, str]
) -> dict[str, Experiment]:
    """List experiments by name, from their settings and their ``jobs``, ``run`` and ``measure``."""
    return {name: Experiment(package, name, settings[name], *parts) for name, parts in functions.items()}


def read_results(experiment: Experiment, data: str | Path) -> tuple[Results, dict[str, str]]:
    """Read the stored results of an experiment's present jobs, and by dataset why some have none."""
    results: dict[str, Result] = {}
    reasons: dict[str, str] = {}
    for job, parameters in experiment.all_jobs().items():
        path = Path(data) / experiment.name / f"{job}.json"
        stored = read_json(path) if path.exists() else {}
        if stored.get("parameters") != parameters:
            reasons[parameters["dataset"]] = "not run"
        elif "missing" in stored["result"]:
            reasons[parameters["dataset"]] = stored["result"]["missing"]
        else:
            results[job] = stored["result"]
    return results, reasons


def measure_results(
    experiment: Experiment, data: str | Path, earlier: Iterable[Measurement] = ()
) -> tuple[list[Measurement], dict[str, str]]:
    """Measure the stored results; datasets without all of them keep their earlier cells, and have a reason."""
    results, reasons = read_results(experiment, data)
    complete = {parameters["dataset"]: parameters["dataset"] not in reasons
                for parameters in experiment.all_jobs().values()}  # fmt: skip
    return merge_measurements(list(earlier), experiment.measurements(results), complete), reasons


def write_measurements(
    experiment: Experiment, data: str | Path, reports: str | Path, merge: bool = True
) -> dict[str, str]:
    """Write the table of an experiment, ``<experiment>.csv`` in `reports`; return why datasets are incomplete."""
    path = Path(reports) / f"{experiment.name}.csv"
    present, reasons = measure_results(experiment, data, read_measurements(path) if merge else ())
    write_text(path, measurements_csv(present))
    return reasons
