"""The settings of dpsvmdvp-2019 (Zhang, Hao and Wang, IEEE Access 2019): Figures 1 to 6, most of which are drawn.

``python -m reproduce dpsvmdvp_budget --datasets splice`` runs the experiment on one dataset.
"""

from __future__ import annotations

from typing import Any

from reproduce.engine.experiment import Settings, list_experiments, read_settings

SETTINGS = read_settings(__package__)
SHARED, BUDGET_SETTINGS = SETTINGS["shared"], SETTINGS["dpsvmdvp_budget"]
EPSILONS = BUDGET_SETTINGS["epsilons"]
# What Figures 3 to 6 vary, by dataset.
VARIED = {key: SETTINGS[key] for key in ("n_train", "n_features")}


def training_set(dataset: str, **changes: Any) -> dict[str, Any]:
    """Name the parameters of one training set; by default all rows and features, as they are in the file."""
    return {
        "dataset": dataset,
        **SHARED["datasets"][dataset],
        **{key: SHARED[key] for key in ("C", "gamma", "tol", "seed")},
        "scaling": "none",
        "n_train": None,
        "n_features": None,
        **changes,
    }


def budget_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset and option set."""
    keys = ("n_test", "C", "gamma", "tol", "repeats", "private_svm", "seed", "epsilons", "variants", "n_train")
    common = {"n_features": None, **{key: settings[key] for key in keys}}
    return {
        f"{dataset}.{option['scaling']}.C-{option['C']:g}": {"dataset": dataset, **source, **common, **option}
        for dataset, source in settings["datasets"].items()
        for number, option in enumerate(settings["options"])
        if number not in settings["skip_options"].get(dataset, [])
    }


EXPERIMENTS = list_experiments(
    __package__, SETTINGS, dpsvmdvp_budget=(budget_jobs, "runs:accuracies", "measurements:budget")
)
