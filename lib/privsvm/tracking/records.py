"""What MLflow gets to know about one result file: plain values, worked out without MLflow."""

from __future__ import annotations

import hashlib
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError
from privsvm.files import canonical_json, read_json

__all__ = ["MetricPoint", "Record", "ResultFiles", "collect_records"]

ResultFiles = tuple[str | os.PathLike[str], Sequence[str | os.PathLike[str]]]
"""The path of a result file and the paths of its timing files."""

# Part of every record key: raise it when this module logs something else for the same result file,
# so that results are logged anew instead of being taken for present.
_LAYOUT = 3

_REQUIRED = (
    "condense",
    "dataset",
    "dataset_digest",
    "delta",
    "epsilons",
    "experiment",
    "guarantees",
    "implementation",
    "method",
    "n_splits",
    "neighbours",
    "parameters",
    "protocol",
    "repeats",
    "status",
    "summary",
)
_STATUSES = ("proved", "claimed", "none")
_SIZES = ("n_train", "n_test", "n_features", "n_classes")
_SOLUTION = ("objective", "n_support", "n_iter")
# Of rows that were condensed: what is said of them, and what a method that condenses gives away by them.
_CONDENSED = ("size_ratio", "label_purity")
_ATTACKED = ("linkage_rate", "membership_auc", "certain_members")
_TIMINGS = ("fit_seconds", "release_seconds", "predict_seconds")

# The ends of a reference line where no private method of the data set says how far it should reach.
_LONE_REFERENCE_GRID = (0.01, 100.0)

_LONGEST_PARAMETER = 500
_LONGEST_TAG = 4000


@dataclass(frozen=True)
class MetricPoint:
    """One value of one metric at one place of the epsilon grid."""

    name: str
    value: float
    step: int


@dataclass(frozen=True)
class Record:
    """One result file as an MLflow run: a curve over the epsilon grid.

    Attributes
    ----------
    experiment, dataset, method : str
        What the curve is of.
    key : str
        SHA-256 of the content; two runs with the same key are the same curve.
    dataset_digest : str
        SHA-256 of the prepared data.
    parameters, tags : dict of str to str
        What the run is filed under.
    metrics : tuple of MetricPoint
        The curve; depends on the result file alone.
    timings : tuple of MetricPoint
        Seconds; differ from machine to machine and are no part of `key`.
    """

    experiment: str
    dataset: str
    method: str
    key: str
    dataset_digest: str
    parameters: dict[str, str]
    tags: dict[str, str]
    metrics: tuple[MetricPoint, ...]
    timings: tuple[MetricPoint, ...]

    @property
    def experiment_name(self) -> str:
        """Name of the MLflow experiment: one for each data set, as a chart must not average over data sets."""
        return f"{self.experiment}/{self.dataset}"


def collect_records(results: Iterable[ResultFiles]) -> list[Record]:
    """Read result and timing files and work out what is to be logged.

    Parameters
    ----------
    results : iterable of (path, sequence of paths)
        Each result file with its timing files (none is fine).

    Returns
    -------
    list of Record
        In the order of `results`. A method without an epsilon is drawn as a horizontal line over the
        epsilons of the private methods of the same experiment and data set.

    Raises
    ------
    PrivSVMError
        If a file is missing, malformed, or two files hold the same experiment, method and data set.
    """
    loaded = [(Path(path), _read_results(Path(path)), list(timings)) for path, timings in results]
    owners: dict[tuple[str, str, str], Path] = {}
    epsilons_of: dict[tuple[str, str], set[float]] = defaultdict(set)
    for path, content, _ in loaded:
        owner = (content["experiment"], content["dataset"], content["method"])
        if owner in owners:
            raise PrivSVMError(
                f"{path}: method {content['method']!r} on data set {content['dataset']!r} is already in "
                f"{owners[owner]}; delete one of the two"
            )
        owners[owner] = path
        if not _is_reference(content):
            epsilons_of[owner[:2]].update(filter(_positive, map(_finite, content["epsilons"])))  # type: ignore[arg-type]
    records = []
    for path, content, timing_paths in loaded:
        grid: list[float | None]
        if _is_reference(content):
            grid = list(sorted(epsilons_of[content["experiment"], content["dataset"]]) or _LONE_REFERENCE_GRID)
        else:
            grid = [_finite(epsilon) for epsilon in content["epsilons"]]
        records.append(_record(path, content, grid, timing_paths))
    return records


def _read_results(path: Path) -> dict[str, Any]:
    """Read a result file and check what this module relies on."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise PrivSVMError(f"{path}: holds a {type(content).__name__}, not an object; delete it and run again")
    for name in _REQUIRED:
        if name not in content:
            raise PrivSVMError(f"{path}: key {name!r} is missing; delete the file and run again")
    for name in ("experiment", "dataset", "method"):
        if not isinstance(content[name], str) or not content[name]:
            raise PrivSVMError(f"{path}: {name}: {content[name]!r} is not a name; delete the file and run again")
    if content["status"] not in _STATUSES:
        raise PrivSVMError(
            f"{path}: status: {content['status']!r} is none of {', '.join(_STATUSES)}; delete the file and run again"
        )
    epsilons = content["epsilons"]
    if not isinstance(epsilons, list) or not epsilons:
        raise PrivSVMError(f"{path}: epsilons: {epsilons!r} is not a list of numbers; delete the file and run again")
    if not isinstance(content["parameters"], dict) or not isinstance(content["summary"], dict):
        raise PrivSVMError(f"{path}: 'parameters' and 'summary' must be objects; delete the file and run again")
    lengths = {"guarantees": len(content["guarantees"])}
    for metric, statistics in content["summary"].items():
        for statistic in ("mean", "sd"):
            lengths[f"summary.{metric}.{statistic}"] = len(statistics.get(statistic) or [])
    for name, length in lengths.items():
        if length != len(epsilons):
            raise PrivSVMError(
                f"{path}: {name}: has {length} values for {len(epsilons)} epsilons; delete the file and run again"
            )
    return content


def _record(path: Path, content: dict[str, Any], grid: list[float | None], timing_paths: Iterable[Any]) -> Record:
    """Turn the content of one result file into a record; `grid` holds the epsilon of every step."""
    reference = _is_reference(content)
    identity: dict[str, Any] = {"layout": _LAYOUT, "results": content}
    if reference:
        identity["reference_grid"] = grid
    digest = str(content["dataset_digest"])
    tags = {
        "guarantee": content["status"],
        "guarantee_reason": _distinct(guarantee.get("reason") for guarantee in content["guarantees"]),
        "mechanism": _distinct(guarantee.get("mechanism") for guarantee in content["guarantees"]),
        "witness": _distinct(
            (guarantee.get("witness") or {}).get("description") for guarantee in content["guarantees"]
        ),
        "dataset_digest": digest,
    }
    return Record(
        experiment=content["experiment"],
        dataset=content["dataset"],
        method=content["method"],
        key=hashlib.sha256(canonical_json(identity).encode()).hexdigest(),
        dataset_digest=digest,
        parameters=_parameters(content),
        tags={name: value for name, value in tags.items() if value},
        metrics=tuple(_metrics(content, grid, reference)),
        timings=tuple(_timings(path, timing_paths, len(grid))),
    )


def _parameters(content: Mapping[str, Any]) -> dict[str, str]:
    """Collect what tells this run from others, as text."""
    names = ["method", "implementation", "dataset", "status", "delta", "neighbours", "condense", "protocol", "repeats"]
    names += ["n_splits", *(name for name in _SIZES if name in content)]
    parameters = {"curve": _text(_curve(content)), **{name: _text(content[name]) for name in names}}
    # A guarantee may be stronger than the benchmark's delta: pure differential privacy has delta 0.
    proved = {guarantee.get("delta") for guarantee in content["guarantees"]} - {None}
    if len(proved) == 1:
        parameters["delta"] = _text(proved.pop())
    parameters.update({f"parameter.{name}": _text(value) for name, value in content["parameters"].items()})
    return parameters


def _curve(content: Mapping[str, Any]) -> str:
    """Name a curve so that no legend can show it without what its epsilon is worth; the weakest guarantee decides."""
    found = {content["status"], *(guarantee.get("status") for guarantee in content["guarantees"])}
    if "claimed" in found:
        worth = "CLAIMED, does not hold"
    elif found == {"proved"}:
        worth = "proved"
    else:
        worth = "no privacy" if _is_reference(content) else "no guarantee"
    return f"{content['method']} ({worth})"


def _metrics(content: Mapping[str, Any], grid: Sequence[float | None], reference: bool) -> Iterable[MetricPoint]:
    """Make the curve; the one value of a reference method is repeated at every step."""
    for step, epsilon in enumerate(grid):
        index = 0 if reference else step
        values: dict[str, Any] = {}
        if _positive(epsilon):
            # Logged in both forms since MLflow has no logarithmic scale for a metric on the x-axis.
            values = {"epsilon": epsilon, "log10_epsilon": math.log10(epsilon or 1.0)}
        for name, statistics in content["summary"].items():
            values[name] = statistics["mean"][index]
            values[f"{name}_sd"] = statistics["sd"][index]
        if not reference:
            guarantee = content["guarantees"][index]
            for name in ("epsilon_proved", "sensitivity", "noise_scale"):
                values[name] = guarantee.get(name)
        for name in _SOLUTION:
            # One number per split; null where it would be private.
            values[name] = _mean(content.get(name))
        for attack in content.get("attacks") or ():
            # Those of the stage are not published by the methods that follow it.
            prefix, names = ("", (*_CONDENSED, *_ATTACKED)) if attack["method"] else ("condensed_", _CONDENSED)
            for name in names:
                values[prefix + name] = _mean(split[name] for split in attack["splits"])
        for name, value in values.items():
            number = _finite(value)
            if number is not None:
                yield MetricPoint(name, number, step)


def _timings(path: Path, timing_paths: Iterable[Any], n_steps: int) -> Iterable[MetricPoint]:
    """Mean seconds over the splits, repeated at every step so that they can be drawn on the same axis."""
    for timing_path in timing_paths:
        content = read_json(timing_path)
        if not isinstance(content, dict):
            raise PrivSVMError(f"{timing_path}: timings of {path} are not an object; delete the file and run again")
        for name in _TIMINGS:
            seconds = _mean(content.get(name))
            if seconds is not None:
                for step in range(n_steps):
                    yield MetricPoint(name, seconds, step)


def _is_reference(content: Mapping[str, Any]) -> bool:
    """Whether the method has no epsilon at all."""
    return bool(content["epsilons"] == ["inf"])


def _finite(value: Any) -> float | None:
    """Return a finite number as float and None for infinities, null, text and the rest."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def _mean(values: Iterable[Any] | None) -> float | None:
    """Average the finite numbers among values; None where there is none."""
    found = [number for number in map(_finite, values or ()) if number is not None]
    return math.fsum(found) / len(found) if found else None


def _positive(value: float | None) -> bool:
    return value is not None and value > 0


def _distinct(texts: Iterable[Any]) -> str:
    """Join the different texts of a list in order."""
    return "; ".join(dict.fromkeys(str(text) for text in texts if text))[:_LONGEST_TAG]


def _text(value: Any) -> str:
    """Write a parameter as short text; null is ``none``."""
    if value is None:
        return "none"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= _LONGEST_PARAMETER else text[: _LONGEST_PARAMETER - 3] + "..."
