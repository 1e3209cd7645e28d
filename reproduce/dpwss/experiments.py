"""The settings of dpwss-2021 (Sun et al., PeerJ Computer Science 2021): Table 3, which is drawn, and Figure 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.engine.experiment import Experiment

TABLE3_SETTINGS: dict[str, Any] = {
    # Name in the paper: catalogue name, part, label that counts as positive.
    "datasets": {
        "a1a": ["a1a", "train", "1"],
        "a5a": ["a5a", "train", "1"],
        "australian": ["australian_scale", "all", "1"],
        # The printed precision and recall count the benign class, which has the label -1 in this copy.
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


FIGURES = Experiment(
    __package__,
    "dpwss_figures",
    FIGURES_SETTINGS,
    lambda settings: {"figure1": dict(settings["figure1"])},
    "runs:figure1",
    "measurements:figure1",
)

EXPERIMENTS = {FIGURES.name: FIGURES}
