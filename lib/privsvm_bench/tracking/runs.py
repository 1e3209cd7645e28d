"""Results as MLflow runs: plain values, computed without MLflow."""

from __future__ import annotations

import math
import os
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

from privsvm.digests import canonical_json, sha256_of_json
from privsvm_bench.metrics import mean_of_known
from privsvm_bench.records import CondensedRowsAttack, Result, Timing, Worth, is_refuted, read_results, read_timings

ResultFiles = tuple[str | os.PathLike[str], Sequence[str | os.PathLike[str]]]
"""The path of a result file and the paths of its timing files."""

LAYOUT = 13
"""Part of every key: raise it when something else is logged of the same record, lest it be taken for present."""

OVERVIEW = "_all-datasets"
"""In the name of the MLflow experiment of means, the place of a dataset, which no dataset can have."""

_PARAMETERS = (
    "method", "implementation", "dataset", "delta", "neighbours", "condense", "protocol", "repeats",
    "n_splits", "n_train", "n_test", "n_features", "n_classes",
)  # fmt: skip
_OF_GUARANTEES = ("epsilon_proved", "epsilon_with_system_noise", "sensitivity", "noise_scale")
# One number for each split; None where it would be private.
_SOLUTION = ("objective", "n_support", "n_iter")
# Metrics of condensed rows: the information that a condensing method reveals.
_CONDENSED = ("size_ratio", "label_purity")
_ATTACKED = ("linkage_rate", "membership_auc", "certain_members")
_TIMINGS = ("fit_seconds", "release_seconds", "predict_seconds")

# The ends of a reference line where no private method of the dataset says how far it should reach.
_LONE_REFERENCE_GRID = (0.01, 100.0)

_LONGEST_PARAMETER = 500
_LONGEST_TAG = 4000


@dataclass(frozen=True)
class MetricPoint:
    """One value of one metric at one epsilon, in a unit of steps that gives all charts a logarithmic axis."""

    name: str
    value: float
    step: int  # 1000 log10 epsilon; 0 for a value without an epsilon.


@dataclass(frozen=True)
class CurveRun:
    """One result as an MLflow run: a curve over the epsilon grid."""

    experiment: str
    dataset: str
    method: str
    key: str  # SHA-256 of the content; two runs with the same key are the same curve.
    dataset_digest: str  # SHA-256 of the prepared data; "" if there are none.
    name: str  # What its epsilon is worth, and the method.
    parameters: dict[str, str]
    tags: dict[str, str]
    metrics: tuple[MetricPoint, ...]  # The curve; depends on the result alone.
    timings: tuple[MetricPoint, ...]  # Seconds; differ between machines and are no part of `key`.
    files: dict[str, str]  # Texts by file name, such as all guarantees as recorded.
    sweep: dict[str, str] = field(default_factory=dict)  # Parameters of the parent run; none without one.

    @property
    def experiment_name(self) -> str:
        """Name of the MLflow experiment: one for each dataset, as a chart must not average over datasets."""
        return f"{self.experiment}/{self.dataset}"


def collect_runs(files: Sequence[ResultFiles], audits: Sequence[str | os.PathLike[str]] = ()) -> list[CurveRun]:
    """Read results, each with its timing files (none is fine), and return their runs in the same order.

    `audits` are records of audits, which may refute a claim. A method without an epsilon is drawn as a horizontal line
    over the epsilons of the private methods of the same experiment and dataset. Raises PrivSVMError if a file is
    missing or malformed, or two files hold the same method and dataset.
    """
    results = read_results([path for path, _ in files], audits)
    private: dict[tuple[str, str], set[float]] = defaultdict(set)
    for result in results:
        private[result.experiment, result.dataset].update(filter(math.isfinite, result.epsilons))
    runs = []
    for result, (_, timing_paths) in zip(results, files, strict=True):
        epsilons = tuple(sorted(private[result.experiment, result.dataset])) or _LONE_REFERENCE_GRID
        grid = epsilons if result.is_reference else result.epsilons
        runs.append(_run(result, grid, read_timings(timing_paths), _sweep(result, epsilons)))
    return runs


def _sweep(result: Result, epsilons: Sequence[float]) -> dict[str, str]:
    """Collect the choices that all curves of a sweep share, whatever parameters their methods have."""
    shared = {name: _text(getattr(result, name)) for name in ("dataset", "protocol", "n_splits", "condense")}
    return shared | {"epsilons": _text(epsilons), "dataset_digest": result.dataset_digest}


def _run(result: Result, grid: Sequence[float], timings: Iterable[Timing], sweep: dict[str, str]) -> CurveRun:
    """Turn one result into a run; `grid` holds the epsilon of every step."""
    identity: dict[str, Any] = {"layout": LAYOUT, "results": result}
    if result.is_reference:
        identity["reference_grid"] = grid
    guarantees = result.guarantees
    tags = {
        "guarantee": result.worst,
        "randomness": _distinct(guarantee.randomness for guarantee in guarantees),
        "guarantee_reason": _distinct(guarantee.reason for guarantee in guarantees),
        "mechanism": _distinct(guarantee.mechanism for guarantee in guarantees),
        "witness": _distinct(
            guarantee.witness.description for guarantee in guarantees if guarantee.witness and is_refuted(guarantee)
        ),
        "dataset_digest": result.dataset_digest,
    }
    return CurveRun(
        experiment=result.experiment,
        dataset=result.dataset,
        method=result.method,
        key=sha256_of_json(identity),
        dataset_digest=result.dataset_digest,
        name=curve_name(result.method, result.worst),
        parameters=_parameters(result),
        tags={name: value for name, value in tags.items() if value},
        metrics=tuple(_points(result, grid)),
        timings=tuple(_timing_points(timings)),
        files={"guarantees.json": f"{canonical_json(guarantees, indent=1)}\n"},
        sweep=sweep,
    )


def _parameters(result: Result) -> dict[str, str]:
    """Collect the parameters that tell this run from others, as text."""
    parameters = {name: _text(getattr(result, name)) for name in _PARAMETERS}
    parameters |= {"curve": curve_name(result.method, result.worst), "status": result.worst}
    # A guarantee may be stronger than the benchmark's delta: pure differential privacy has delta 0.
    deltas = {guarantee.delta for guarantee in result.guarantees} - {None}
    if len(deltas) == 1:
        parameters["delta"] = _text(deltas.pop())
    return parameters | {f"parameter.{name}": _text(value) for name, value in result.parameters.items()}


def curve_name(method: str, worth: Worth) -> str:
    """Name a curve: what its epsilon is worth first, since lists and legends cut the end of long names."""
    return f"{worth}: {method}"


def _points(result: Result, grid: Sequence[float]) -> Iterator[MetricPoint]:
    """Make the curve; the one value of a reference method is repeated at every step."""
    columns: dict[str, list[float | None]] = {
        "epsilon": [epsilon if math.isfinite(epsilon) else None for epsilon in grid]
    }
    for name, summary in result.summary.items():
        columns[name], columns[f"{name}_sd"] = list(summary.mean), list(summary.sd)
        if result.is_reference:
            columns[name] *= len(grid)
    # Steps must not tell of values that rows decide: these are lines even where they are level.
    scores = {*columns}
    if not result.is_reference:
        columns |= {name: [getattr(one, name) for one in result.guarantees] for name in _OF_GUARANTEES}
        relations = [one.by_relation() for one in result.guarantees]
        for relation in dict.fromkeys(relation for one in relations for relation in one):
            columns[f"epsilon_{relation}"] = [one[relation].epsilon if relation in one else None for one in relations]
    columns |= {name: [mean_of_known(getattr(result, name))] for name in _SOLUTION}
    columns |= {name: [value] for name, value in _average_condensed(result).items()}
    for name, values in columns.items():
        # A bar in the place of a flat line.
        once = len(values) < len(grid) or (len(set(values)) == 1 and name not in scores)
        for epsilon, value in zip(grid, values[: 1 if once else None], strict=False):
            if value is not None and math.isfinite(value):
                yield MetricPoint(name, float(value), 0 if once else _step(epsilon))


def _step(epsilon: float) -> int:
    return round(1000 * math.log10(epsilon)) if 0 < epsilon < math.inf else 0


def overview_runs(curves: Sequence[CurveRun]) -> list[CurveRun]:
    """Make a run for each method with its mean points behind the best proved method of each dataset.

    An experiment with one dataset has no such runs.
    """
    experiments: dict[str, list[CurveRun]] = defaultdict(list)
    for curve in curves:
        experiments[curve.experiment].append(curve)
    runs = []
    for members in experiments.values():
        datasets = {curve.dataset for curve in members}
        best: dict[tuple[str, int], float] = {}
        for curve in members:
            for point in curve.metrics:
                if point.name == "accuracy" and curve.parameters["status"] in ("proved", "seeded"):
                    place = curve.dataset, point.step
                    best[place] = max(point.value, best.get(place, point.value))
        methods = sorted({curve.method for curve in members if len(datasets) > 1})
        runs += [_overview_run([one for one in members if one.method == name], best) for name in methods]
    return runs


def _overview_run(curves: Sequence[CurveRun], best: Mapping[tuple[str, int], float]) -> CurveRun:
    gaps: dict[int, list[float]] = defaultdict(list)
    for curve in curves:
        for point in curve.metrics:
            if point.name == "accuracy" and (curve.dataset, point.step) in best:
                gaps[point.step].append(100 * (best[curve.dataset, point.step] - point.value))
    status = max((cast("Worth", curve.parameters["status"]) for curve in curves), key=get_args(Worth).index)
    name = curve_name(curves[0].method, status)
    return replace(
        curves[0],
        dataset=OVERVIEW,
        key=sha256_of_json({"overview": [curve.key for curve in curves], "best": sorted(best.items())}),
        dataset_digest="",
        name=name,
        parameters={
            "curve": name,
            "method": curves[0].method,
            "implementation": curves[0].parameters["implementation"],
            "status": status,
            "datasets": _text(sorted(curve.dataset for curve in curves)),
        },
        tags={"guarantee": status},
        # A mean over fewer datasets than elsewhere on the curve is not comparable.
        metrics=tuple(
            MetricPoint("points_behind", statistics.fmean(numbers), step)
            for step, numbers in gaps.items()
            if len(numbers) == len(curves)
        ),
        timings=(),
        files={},
        sweep={},
    )


def _average_condensed(result: Result) -> dict[str, float | None]:
    """Average the known figures of condensed rows over the splits."""
    values = {}
    for attack in result.attacks:
        if not isinstance(attack, CondensedRowsAttack):
            continue
        # Methods after the condensing stage do not publish its condensed rows.
        prefix, names = ("", (*_CONDENSED, *_ATTACKED)) if attack.method else ("condensed_", _CONDENSED)
        for name in names:
            values[prefix + name] = mean_of_known(getattr(split, name) for split in attack.splits)
    return values


def _timing_points(timings: Iterable[Timing]) -> Iterator[MetricPoint]:
    """Mean seconds over the splits, once: the page draws bars of them, and no flat lines."""
    for timing in timings:
        for name in _TIMINGS:
            seconds = mean_of_known(getattr(timing, name) or ())
            if seconds is not None:
                yield MetricPoint(name, seconds, 0)


def _distinct(texts: Iterable[str | None]) -> str:
    """Join the different texts of a list in order."""
    return "; ".join(dict.fromkeys(text for text in texts if text))[:_LONGEST_TAG]


def _text(value: Any) -> str:
    """Write a parameter as short text; null is ``none``, an empty text ``""``."""
    if value is None:
        return "none"
    # A server refuses an empty text.
    text = value if isinstance(value, str) and value else canonical_json(value)
    return text if len(text) <= _LONGEST_PARAMETER else text[: _LONGEST_PARAMETER - 3] + "..."
