"""Time of adding noise to weights, as a share of the training before it, by the paper's own solver."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from reproduce.engine.context import Context
from reproduce.engine.draws import Draws
from reproduce.pmsvm.experiments import TABLE2_SETTINGS
from reproduce.pmsvm.runs.shared import fit_liblinear, scaled, split_rows

FITS, NOISES = 6, 20


def noise_share(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Processor time of drawing and adding noise over the time of a fit.

    Parameters: ``dataset, source, C, test_size, split, seed``. Result: ``<dataset>/PMSVM-WP//share of noise`` to one
    value for each fit.
    """
    rows = context.class_rows(*parameters["source"])
    X = scaled(rows.X, "min_max")
    train, _, codes, _ = split_rows(X, rows.codes, parameters["test_size"], parameters["split"])
    rng = context.stream(parameters["seed"], parameters["dataset"], piece)
    result = []
    for fit in range(FITS):
        began = time.process_time()
        model = fit_liblinear(train, codes, parameters["C"], "crammer_singer", fit)
        fitted = time.process_time()
        for _ in range(NOISES):
            noisy = model.coef_ + rng.standard_normal(model.coef_.shape)
        assert noisy.shape == model.coef_.shape
        result.append((time.process_time() - fitted) / NOISES / max(fitted - began, 1e-9))
    return {f"{parameters['dataset']}/PMSVM-WP//share of noise": [float(np.clip(value, 0.0, 1e3)) for value in result]}


DRAWS = [
    Draws(
        experiment="pmsvm_noise", name=f"{dataset}.noise", dataset=dataset, run=f"{__name__}:noise_share",
        parameters={
            "dataset": dataset, "source": source, "C": TABLE2_SETTINGS["C"][dataset], "split": 42,
            "test_size": TABLE2_SETTINGS["test_size"], "seed": TABLE2_SETTINGS["seed"],
        },
        combine="mean", unit=1e-5, cells=(f"{dataset}/PMSVM-WP//share of noise",), machine_metrics=("share of noise",),
    )
    for dataset, source in TABLE2_SETTINGS["datasets"].items()
]  # fmt: skip
