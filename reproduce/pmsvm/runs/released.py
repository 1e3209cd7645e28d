"""The released protocol of pmsvm-2025.

It is read from the authors' public repository (``JinseongP/private_multiclass_svm``, commits c0f4d7b and 7a9bb28) and
checked by the numbers that it reproduces; none of its code is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from reproduce.engine.context import Context
from reproduce.pmsvm.runs.gradient import run_curves, run_gradient
from reproduce.pmsvm.runs.shared import fit_liblinear, scaled, split_rows
from reproduce.pmsvm.runs.weight import run_one_vs_rest, run_weight


def _not_private(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Accuracies without noise, the reference of the paper's gaps."""
    rows = context.class_rows(*parameters["source"])
    X = scaled(rows.X, "min_max")
    result: dict[str, list[float]] = {}
    for method, setting in parameters["solvers"].items():
        accuracies = []
        for split in parameters["splits"]:
            train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], split)
            solver = fit_liblinear(train, y_train, setting["C"], setting["multi_class"], split)
            accuracies.append(float(np.mean(solver.predict(test) == y_test)))
        result[method] = accuracies
    gradient = run_gradient({**parameters, "epsilons": [None]}, context)["variants"]
    return {
        "accuracies": result | {method: epsilon_results[0]["accuracy"] for method, epsilon_results in gradient.items()}
    }


_KINDS: Mapping[str, Callable[[Mapping[str, Any], Context], dict[str, Any]]] = {
    "weight": run_weight,
    "one_vs_rest": run_one_vs_rest,
    "gradient": run_gradient,
    "curves": run_curves,
    "not_private": _not_private,
}


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Run one job.

    Parameters: ``kind``, and this kind's parameters. Result: JSON values.
    """
    return _KINDS[parameters["kind"]](parameters, context)
