"""DPWSS at sigma 0.9, which the paper says it leaves out because the objective is not reached."""

from __future__ import annotations

from reproduce.dpwss.draws import unit
from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name
from reproduce.engine.draws import Draws

# Sets of at most 1,000 rows.
DATASETS = ("australian", "breast", "diabetes", "fourclass", "german", "heart", "ionosphere", "sonar", "splice")
COLUMN = {"epsilon": 1, "sigma": 0.9}
RUNS = 60

DRAWS = [
    Draws(
        experiment="dpwss_sigma", name=f"{dataset}.{setting_name(0, COLUMN)}", dataset=dataset,
        run="reproduce.dpwss.draws:table3",
        parameters={
            "dataset": dataset, "source": TABLE3_SETTINGS["datasets"][dataset], "shrinking": 0,
            "setting": setting_name(0, COLUMN), "column": COLUMN, "runs": RUNS, "C": TABLE3_SETTINGS["C"],
            "tol": TABLE3_SETTINGS["tol"], "seed": TABLE3_SETTINGS["seed"],
        },
        combine="mean", size=5, unit=unit, cells=(f"{dataset}/DPWSS/{setting_name(0, COLUMN)}/",),
    )
    for dataset in DATASETS
]  # fmt: skip
