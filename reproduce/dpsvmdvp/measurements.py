"""Measurements of dpsvmdvp-2019: accuracies by epsilon under the choices that the paper leaves open."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from reproduce.engine.experiment import Experiment, Results
from reproduce.engine.jobs import finished_jobs
from reproduce.engine.measurements import Measurement, measure


def budget(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Curves of Figures 1 and 2 for each variant and option: mean accuracies at the epsilons of the settings."""
    for parameters, result in finished_jobs(experiment, results):
        dataset = parameters["dataset"]
        option = f"scaling {parameters['scaling']}; C={parameters['C']:g}"
        for variant in parameters["variants"]:
            curve = [statistics.fmean(draws) for draws in result["variants"][variant]]
            yield from measure("curves", dataset, f"DPSVMDVP ({variant})", option, accuracy=curve)
        yield from measure("curves", dataset, "SVM", option, accuracy=result["SVM"])
        curve = [statistics.fmean(draws) for draws in result["PrivateSVM"]]
        yield from measure("curves", dataset, "PrivateSVM", option, accuracy=curve)
