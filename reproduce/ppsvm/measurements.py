"""Measurements of ppsvm-2007's tables, figures and remarks; tables.csv has the captions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reproduce.engine.experiment import Experiment, Results
from reproduce.engine.jobs import finished_jobs
from reproduce.engine.measurements import Measurement, measure

Job = Mapping[str, Any]
# Correlation from which a column counts as found.
_FOUND = 0.99
KERNEL_NAMES = {"linear": "linear", "gaussian": "Gaussian"}


def fold_rates(errors: Sequence[int], folds: Sequence[int]) -> list[float]:
    """Error rate on each fold."""
    return [wrong / size for wrong, size in zip(errors, folds, strict=True)]


def ppsvm_errors(result: Mapping[str, Any], variant: str) -> list[float]:
    """Error of each partition: the mean of its ten folds."""
    return [
        statistics.fmean(fold_rates(partition["PPSVM"][variant]["errors"], partition["folds"]))
        for partition in result["partitions"]
    ]


def alone_errors(result: Mapping[str, Any], variant: str) -> tuple[list[float], list[float]]:
    """Errors of entities that share nothing, averaged over the entities.

    Returns them for each partition, as means over its folds, and for each fold of each partition.
    """
    means, single = [], []
    for partition in result["partitions"]:
        rates = [fold_rates(validated["errors"], partition["folds"]) for validated in partition["alone"][variant]]
        by_fold = [statistics.fmean(values) for values in zip(*rates, strict=True)]
        means.append(statistics.fmean(by_fold))
        single += by_fold
    return means, single


def improvements(result: Mapping[str, Any]) -> list[float]:
    """Error of an entity alone less PPSVM's, for each entity and fold."""
    differences = []
    for partition in result["partitions"]:
        shared = fold_rates(partition["PPSVM"]["main"]["errors"], partition["folds"])
        for validated in partition["alone"]["main"]:
            rates = fold_rates(validated["errors"], partition["folds"])
            differences += [alone - common for alone, common in zip(rates, shared, strict=True)]
    return differences


def _errors(table: str, job: Job, method: str, values: Sequence[float], **more: float) -> list[Measurement]:
    """Mean error over partitions, its standard deviation and their number."""
    setting = f"kernel={job['kernel']};entities={job['entities']}"
    if job["reading"] is not None:
        features = "5 blood tests and the selector" if job["reading"]["label_as_feature"] else "5 blood tests"
        setting += f"; class: more than {job['reading']['above']} drinks; {features}"
    return measure(table, job["dataset"], method, setting, error=statistics.fmean(values),
                   error_SD=statistics.stdev(values) if len(values) > 1 else 0.0, partitions=len(values),
                   **more)  # fmt: skip


def tables(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Errors of Table 1 or 2, and of other choices where the paper leaves one."""
    for job, result in finished_jobs(experiment, results):
        (first, *rules), columns = job["PPSVM"], list(job["alone"])
        if job["reading"] is not None:
            yield from _errors("other choices", job, "PPSVM", ppsvm_errors(result, first))
            continue
        yield from _errors("sharing", job, "PPSVM", ppsvm_errors(result, first))
        means, single = alone_errors(result, columns[0])
        yield from _errors("no sharing", job, "no sharing", means, folds=len(single), lowest_fold=min(single),
                           highest_fold=max(single))  # fmt: skip
        for rule in rules:
            yield from _errors("other choices", job, f"PPSVM, {rule}", ppsvm_errors(result, rule))
        for column in columns[1:]:
            yield from _errors("other choices", job, f"no sharing, {column}", alone_errors(result, column)[0])


def entities(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Improvement by number of entities: quartiles, median, and the share of folds that favour sharing."""
    for job, result in finished_jobs(experiment, results):
        values = improvements(result)
        yield from measure(
            "improvements", job["dataset"], f"PPSVM, {job['kernel']}", f"{job['entities']} entities",
            median_improvement=statistics.median(values),
            share_above_0=statistics.fmean(value > 0 for value in values),
        )  # fmt: skip


def kernels(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Errors with random, reduced and full kernels."""
    for job, result in finished_jobs(experiment, results):
        for method in ("random", "reduced", "full"):
            values = [statistics.fmean(fold_rates(partition[method]["errors"], partition["folds"]))
                      for partition in result["partitions"]]  # fmt: skip
            yield from measure("errors", job["dataset"], f"{method} kernel", job["kernel"],
                               error=statistics.fmean(values), partitions=len(values))  # fmt: skip


def attack(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Largest error of rows recovered from as many known rows as an entity has columns, and the rows it takes."""
    for job, result in finished_jobs(experiment, results):
        members, kernel = result["entities"], f"{KERNEL_NAMES[job['kernel']]} kernel"
        errors = [entity["error_at_rows_needed"] for entity in members
                  if entity["possible"] and entity["error_at_rows_needed"] is not None]  # fmt: skip
        yield from measure(
            "recovery", job["dataset"], kernel, f"{job['entities']} entities",
            # Without enough rows of the random matrix there is the best approximation.
            largest_error=max(errors or [max(entity["max_error"]) for entity in members]),
            known_rows=max(entity["rows_needed"] for entity in members),
        )  # fmt: skip
        for position, entity in enumerate(members) if job["counts"] is None else ():
            setting = f"entity {position}, {entity['columns']} columns"
            values = [max(value, 1e-17) for value in entity["max_error"]]
            yield from measure("by known rows", job["dataset"], kernel, setting, largest_error=values)


def unmixing(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Share of columns that a block alone gives, and that a random rotation gives; apart, the error of lone columns."""
    for job, result in finished_jobs(experiment, results):
        members = result["entities"]
        kernel, setting = f"{KERNEL_NAMES[job['kernel']]} kernel", f"{job['entities']} entities"
        for metric, key in (("columns found", "correlations"), ("columns found by rotation", "control")):
            values = [value for entity in members if "error" not in entity for value in entity[key]]
            yield from measure("alone", job["dataset"], kernel, setting,
                               **{metric: statistics.fmean(value > _FOUND for value in values)})  # fmt: skip
        errors = [entity["error"] for entity in members if "error" in entity]
        if errors:
            yield from measure("alone", job["dataset"], kernel, setting, largest_error_of_lone_columns=max(errors))


def classifiers(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Ten-fold errors of other classifiers, means over partitions."""
    for job, result in finished_jobs(experiment, results):
        partitions = result["partitions"]
        for method in partitions[0]:
            error = statistics.fmean(partition[method] for partition in partitions)
            yield from measure("errors", job["dataset"], method, f"{job['entities']} entities", error=error)
