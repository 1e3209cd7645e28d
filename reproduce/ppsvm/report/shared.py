"""What the reports of ppsvm-2007 share: errors of a result, printed errors, and how they are written."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.comparison import Published
from privsvm_bench.reproduction.experiment import Experiment, Result

# Mean errors agree within this; one row of the smallest dataset is 0.003.
TOLERANCE = 0.03
# Half a unit of the last printed digit.
PRINTED = 5e-5

COLOURS = {"PPSVM": "#0a53c4", "no sharing": "#c4620a", "published": "#1b1f27"}
KERNEL_NAMES = {"linear": "linear", "gaussian": "Gaussian"}

# As the tables print them.
DATA_ROWS = {"Cleveland Heart": 297, "Ionosphere": 351, "WDBC": 569, "Arrhythmia": 452, "German Credit": 1000,
             "Pima Indians": 768, "Bupa Liver": 345}  # fmt: skip


def setting_name(kernel: str, entities: int) -> str:
    """Write a setting as the published table does."""
    return f"kernel={kernel};entities={entities}"


def printed_error(published: Published, job: Mapping[str, Any], method: str) -> str | None:
    """Look up what the paper prints for a job's dataset, kernel and number of entities."""
    return published.get((job["dataset"], method, setting_name(job["kernel"], job["entities"]), "error"))


def main_jobs(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """Jobs with the class that the file says."""
    return {name: job for name, job in experiment.jobs(experiment.settings).items() if job["reading"] is None}


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

    Returns
    -------
    means : list of float
        Of each partition, over its folds.
    single : list of float
        Of each fold of each partition.
    """
    means, single = [], []
    for partition in result["partitions"]:
        rates = [fold_rates(validated["errors"], partition["folds"]) for validated in partition["alone"][variant]]
        by_fold = [statistics.fmean(values) for values in zip(*rates, strict=True)]
        means.append(statistics.fmean(by_fold))
        single += by_fold
    return means, single


def mean_error(result: Result, job: Mapping[str, Any]) -> float:
    """PPSVM's error, with the first of its variants."""
    return statistics.fmean(ppsvm_errors(result, next(iter(job["PPSVM"]))))


def alone_mean(result: Result, job: Mapping[str, Any]) -> float:
    """Error of entities that share nothing, with the first of their variants."""
    return statistics.fmean(alone_errors(result, next(iter(job["alone"])))[0])


def whole_errors(printed: str, count: int) -> tuple[int, float, bool]:
    """Find the number of errors among `count` predictions that a printed rate can stand for.

    Parameters
    ----------
    printed : str
        Rate with four digits.
    count : int
        Predictions: rows of a fold, times entities.

    Returns
    -------
    errors : int
        The nearest number.
    rate : float
        Its rate.
    possible : bool
        Whether that rate is printed so.
    """
    errors = round(float(printed) * count)
    rate = errors / count
    return errors, rate, abs(rate - float(printed)) <= PRINTED + 1e-12


def spread_text(values: Sequence[float]) -> str:
    """Say how far the partitions are apart."""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"sd {spread:.4f} over {len(values)} partitions, {min(values):.4f} to {max(values):.4f}"
