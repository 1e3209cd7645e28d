"""Training rows that stand in the model that DPSVMDVP releases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.auditing.witnesses import verbatim_row_witness
from privsvm.methods.dpsvmdvp import DPSVMDVPClassifier
from reproduce.dpsvmdvp.experiments import SHARED
from reproduce.dpsvmdvp.runs import _data
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws


def witness(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Count the training rows in the clear, and whether one of them is missing in a neighbouring dataset.

    Parameters: ``dataset, train, test, C, gamma, tol, epsilon, seed`` and those by which `reproduce.dpsvmdvp.runs`
    reads data. Result: ``claim/privacy/<what>`` to one number.
    """
    X, signs, _, _ = _data(parameters, context)
    model = DPSVMDVPClassifier(
        C=parameters["C"], gamma=1.0 / X.shape[1], tol=parameters["tol"], allow_unsound=True, classes=[0, 1]
    )
    stream = context.stream(parameters["seed"], "privacy")
    path = model.release_path(X, (signs > 0).astype(np.int64), [parameters["epsilon"]], 1, stream)
    released = np.asarray(path.support_vectors)
    rows = {row.tobytes() for row in X + 0.0}
    return {
        "claim/privacy/training rows": [float(signs.size)],
        "claim/privacy/rows in the clear": [float(sum(row.tobytes() in rows for row in released + 0.0))],
        "claim/privacy/epsilon is infinite": [
            float(math.isinf(verbatim_row_witness(released, X, "replace_one").epsilon))
        ],
    }


DRAWS = [
    Draws(
        experiment="dpsvmdvp_privacy", name="privacy", dataset="splice", run=f"{__name__}:witness",
        cells=("claim/privacy/",),
        parameters={
            "dataset": "splice", **SHARED["datasets"]["splice"], "C": SHARED["C"], "tol": SHARED["tol"],
            "seed": SHARED["seed"], "epsilon": 1.0, "scaling": "none", "n_train": None, "n_test": None,
            "n_features": None,
        },
    )
]  # fmt: skip
