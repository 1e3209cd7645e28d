"""Measurements of pmsvm-2025 beyond its drawn accuracies; tables.csv has the captions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from privsvm.privacy.statement import theorem_holds
from reproduce.engine.experiment import Experiment, Result, Results
from reproduce.engine.jobs import finished_jobs
from reproduce.engine.measurements import Measurement, measure
from reproduce.pmsvm.experiments import LOSSES, is_drawn

# Epochs that count as early: every column has at least ten.
_EARLY = 3


def accuracies(table: str, parameters: Mapping[str, Any], result: Result) -> Iterator[Measurement]:
    """Mean accuracies of the variants of a job of gradient perturbation; those as released are drawn."""
    for name, variant in result["variants"].items():
        method, _, reading = name.partition(", ")
        if is_drawn(reading):
            continue
        for epsilon, runs in zip(parameters["epsilons"], variant, strict=True):
            mean = statistics.fmean(runs["accuracy"])
            yield from measure(table, parameters["dataset"], method, f"epsilon={epsilon:g};{reading}", accuracy=mean)


def table2(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Accuracies of other readings of Table 2, and the epsilon that the released weight perturbation really has."""
    for parameters, result in finished_jobs(experiment, results):
        if parameters["kind"] == "gradient":
            yield from accuracies("readings", parameters, result)
            continue
        for method in parameters.get("methods", ["PMSVM-WP"]):
            yield from _weight(parameters, method, result)


def _weight(parameters: Mapping[str, Any], method: str, result: Result) -> Iterator[Measurement]:
    """One column of weight perturbation: readings, the lookup corrected, true epsilon and its lower bound."""
    dataset, prefix = parameters["dataset"], "" if parameters["kind"] == "weight" else f"{method}, "
    for index, epsilon in enumerate(parameters["epsilons"]):
        setting = f"epsilon={epsilon:g}"
        for variant in parameters["variants"]:
            released, corrected = (result["variants"][prefix + variant][name] for name in ("as released", "corrected"))
            reading, values = variant, released[index]
            if variant == parameters["audited"]:
                if corrected == released:
                    continue
                reading, values = "class lookup corrected", corrected[index]
            yield from measure("readings", dataset, method, f"{setting};{reading}", accuracy=statistics.fmean(values))
        bounds = {"lower bound on epsilon": result["variants"][prefix + parameters["audited"]]["witness"][index]}
        if parameters["kind"] == "weight":
            bounds["true epsilon"] = result["true_epsilon"][index]
        yield from measure("true epsilon", dataset, method, setting, **bounds)


def sound(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Accuracies at proved epsilons: over splits, and on the paper's; settings without a proof say so."""
    for parameters, result in finished_jobs(experiment, results):
        where = f"{parameters['dataset']}, {parameters['method']}"
        for index, epsilon in enumerate(parameters["epsilons"]):
            is_proved = check_record(result["records"][index], epsilon, where)
            setting = f"epsilon={epsilon:g}" + ("" if is_proved else ", claimed")
            values = {"accuracy": statistics.fmean(result["accuracies"][index]),
                      "accuracy on the paper's split": statistics.fmean(result["paper split"][index])}  # fmt: skip
            yield from measure("methods", parameters["dataset"], parameters["method"], setting, **values)


def check_record(record: Mapping[str, Any], epsilon: float, where: str) -> bool:
    """Return whether a release is proved; refuse a proof above the requested epsilon, and a claim without a reason."""
    if theorem_holds(record["status"]):
        if record["epsilon_with_system_noise"] > epsilon * (1 + 1e-9):
            proved = record["epsilon_with_system_noise"]
            raise ValueError(f"{where}: the proved epsilon {proved:g} exceeds the requested one")
        return True
    if record["status"] != "claimed" or not record["reason"]:
        raise ValueError(f"{where}: status {record['status']} and no reason")
    return False


def convergence(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Curves of Figures 3 and 6 by epoch, and the numbers that the paper's statements on them are about."""
    for parameters, result in finished_jobs(experiment, results):
        dataset, curves = parameters["dataset"], result["variants"]
        low, *_, high = parameters["epsilons"]
        for method, members in curves.items():
            noisy, clear = members[0]["loss"], members[-1]["loss"]
            rise = {"last loss over the smallest, minus 1": noisy[-1] / min(noisy) - 1.0}
            fall = {"last loss over the first, minus 1": clear[-1] / clear[0] - 1.0}
            yield from measure("ends of curves", dataset, method, f"epsilon={low:g}", **rise)
            yield from measure("ends of curves", dataset, method, f"epsilon={high:g}", **fall)
            for epsilon, curve in zip(parameters["epsilons"], members, strict=True):
                metrics = {name: curve[name] for name in ("loss", "accuracy", "training accuracy")}
                yield from measure("curves", dataset, method, f"epsilon={epsilon:g}", **metrics)
        for suffix in LOSSES.values():
            pairs = list(zip(curves[f"PMSVM-GP{suffix}"], curves[f"PMSVM-AGP{suffix}"], strict=True))
            for metric, sign in (("loss", -1.0), ("accuracy", 1.0), ("training accuracy", 1.0)):
                gain = statistics.fmean(
                    sign * (statistics.fmean(adaptive[metric][:_EARLY]) - statistics.fmean(plain[metric][:_EARLY]))
                    for plain, adaptive in pairs
                )
                yield from measure("ends of curves", dataset, f"PMSVM-AGP{suffix}", "early epochs",
                                   **{f"gain in {metric} over PMSVM-GP": gain})  # fmt: skip


def gap(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Accuracies without noise, from which Figures 2, 4 and 5 subtract Table 2's."""
    for parameters, result in finished_jobs(experiment, results):
        for method, values in result["accuracies"].items():
            accuracy = statistics.fmean(values)
            yield from measure("without noise", parameters["dataset"], method, "", accuracy=accuracy)


def times(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Seconds of a fit and milliseconds of a step, on one machine."""
    for parameters, result in finished_jobs(experiment, results):
        for metric in ("fit_seconds", "ms_per_iteration"):
            for method, value in result[metric].items():
                yield Measurement("times", f"{parameters['dataset']}/{method}//{metric}", (value,))
