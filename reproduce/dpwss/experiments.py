"""The experiments of dpwss-2021 (Sun et al., PeerJ Computer Science 2021): Table 3 and Figures 1 to 21.

``python -m reproduce dpwss_table3 --datasets heart`` runs one dataset; ``python -m reproduce dpwss`` runs all.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from reproduce.engine.experiment import Experiment, Settings

TABLE3_SETTINGS: dict[str, Any] = {
    # Name in the paper: catalogue name, part, label that counts as positive.
    "datasets": {
        "a1a": ["a1a", "train", "1"],
        "a5a": ["a5a", "train", "1"],
        "australian": ["australian_scale", "all", "1"],
        # The printed precision and recall are those of the benign class, which has the label -1 in this copy.
        "breast": ["breast-cancer_scale", "all", "-1"],
        "diabetes": ["diabetes_scale", "all", "1"],
        "fourclass": ["fourclass_scale", "all", "1"],
        "german": ["german.numer_scale", "all", "1"],
        "gisette": ["gisette_scale", "train", "1"],
        "heart": ["heart_scale", "all", "1"],
        "ijcnn1": ["ijcnn1", "train", "1"],
        "ionosphere": ["ionosphere_scale", "all", "1"],
        "rcv1": ["rcv1_train.binary", "train", "1"],
        "sonar": ["sonar_scale", "all", "1"],
        "splice": ["splice_scale", "train", "1"],
        "w1a": ["w1a", "train", "1"],
        "w5a": ["w5a", "train", "1"],
    },
    "shrinking": [1, 0],
    "columns": [
        {"epsilon": 1, "sigma": 0.1},
        {"epsilon": 1, "sigma": 0.3},
        {"epsilon": 1, "sigma": 0.5},
        {"epsilon": 1, "sigma": 0.7},
        {"epsilon": 0.5, "sigma": 0.7},
        {"epsilon": 0.1, "sigma": 0.7},
    ],
    "runs": 5,
    "C": 1.0,
    "tol": 1e-3,
    "seed": 20260,
}

# Column numbers from 1 of the heart data: maximum heart rate, and ST depression (oldpeak).
FIGURES_SETTINGS: dict[str, Any] = {
    "figure1": {
        "dataset": "heart",
        "source": ["heart_scale", "all", "1"],
        "features": [8, 10],
        "shift": [-0.25, 0.25],
        "column": {"epsilon": 1, "sigma": 0.7},
        "runs": 5,
        "shrinking": 1,
        "C": 1.0,
        "tol": 1e-3,
        "seed": 20260,
    },
}


def setting_name(shrinking: int, column: Mapping[str, float] | None) -> str:
    """Write a setting as the published table does; None is WSS2."""
    return f"shrinking={shrinking}" + (f";epsilon={column['epsilon']:g};sigma={column['sigma']:g}" if column else "")


def table3_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset and shrinking setting."""
    shared = {key: settings[key] for key in ("runs", "C", "tol", "seed")}
    return {
        f"{dataset}.shrinking-{shrinking}": {
            "dataset": dataset,
            "source": source,
            "shrinking": shrinking,
            "columns": {setting_name(shrinking, column): column for column in [None, *settings["columns"]]},
            **shared,
        }
        for dataset, source in settings["datasets"].items()
        for shrinking in settings["shrinking"]
    }


def figures_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """Figure 1 is the only one that is not drawn from Table 3's results."""
    return {"figure1": dict(settings["figure1"])}


_experiment = functools.partial(Experiment, package=__package__)

TABLE3 = _experiment(
    name="dpwss_table3",
    title="DPWSS, Table 3: classification capability, objective and iterations",
    compares="Eight numbers of WSS2 (LIBSVM 3.24) and of DPWSS with six settings, on 16 datasets, with and without "
    "shrinking.",
    settings=TABLE3_SETTINGS,
    jobs=table3_jobs,
    run="runs:table3",
    report="report:table3",
)

FIGURES = _experiment(
    name="dpwss_figures",
    title="DPWSS, Figures 1 to 21: private lines, objError, iterationRatio",
    compares="The errors of the objective and the ratios of iterations that the paper draws, computed from its Table "
    "3, and its example of private lines in two dimensions.",
    settings=FIGURES_SETTINGS,
    jobs=figures_jobs,
    run="runs:figure1",
    report="report:figures",
    borrows=TABLE3,
)

EXPERIMENTS = {experiment.name: experiment for experiment in (TABLE3, FIGURES)}
