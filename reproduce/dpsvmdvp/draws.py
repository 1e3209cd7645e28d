"""Noise around an exact solution, by readings of the precision of the errors E_i and of the offset inside them.

The precision decides how much noise there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from privsvm.methods.dpsvmdvp import laplace_scales
from privsvm.solvers.kernel.c_svc import SolverOptions
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix
from privsvm.solvers.kernel.smo import solve_smo
from reproduce.dpsvmdvp.experiments import BUDGET_SETTINGS, budget_jobs
from reproduce.dpsvmdvp.runs import _data
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws

_BLOCK = 4_000_000
# Test rows that are drawn where there are more: the standard error of an accuracy is then 0.2 %.
N_TEST = 20_000
RUNS, SIZE = 306, 3
# In double precision the errors sum up to round-off, of which some readings make the scale of the noise.
ROUND_OFF = ("log10 of the median scale", "log10 of the sum of errors")

# Kernel values behind f(x_i), behind the offset inside E_i, and behind training.
READINGS = ("trained single, f double", "all double", "all single", "LIBSVM's own gradient")
# Offsets of the printed Algorithms 1 and 2, which are Platt's; the readings above have LIBSVM's, the mean.
OFFSETS = ("offset of one free vector", "offset in the middle of the free vectors")


class _Trained(NamedTuple):
    """Around one exact solution: scores of the test rows, and the change from noise on the free dual variables."""

    scores: np.ndarray
    kernel: np.ndarray
    signs: np.ndarray
    test_signs: np.ndarray
    errors: dict[str, np.ndarray]


def unit(cell: str) -> float:
    """Return the unit of the last digit that the paper's text prints."""
    if cell.endswith("knee"):
        return 1e-4
    return 1e-4 if "n_features" in cell else 1e-2


def _errors(
    support_kernel: Callable[[slice], np.ndarray], coef: np.ndarray, signs: np.ndarray, free: np.ndarray
) -> dict[str, np.ndarray]:
    """E_i of the free support vectors by the readings that evaluate f anew."""
    exact, rounded = np.empty(signs.size), np.empty(signs.size)
    block = max(1, _BLOCK // max(1, signs.size))
    for start in range(0, signs.size, block):
        rows = slice(start, start + block)
        kernel = support_kernel(rows)
        exact[rows] = kernel @ coef
        rounded[rows] = kernel.astype(np.float32).astype(np.float64) @ coef
    offset = {"double": float((exact - signs)[free].mean()), "single": float((rounded - signs)[free].mean())}
    offsets = (exact - signs)[free]
    return {
        OFFSETS[0]: offsets - offsets[0],
        OFFSETS[1]: offsets - (offsets.min() + offsets.max()) / 2.0,
        READINGS[0]: (exact - offset["single"] - signs)[free],
        READINGS[1]: (exact - offset["double"] - signs)[free],
        READINGS[2]: (rounded - offset["single"] - signs)[free],
    }


def _train(parameters: Mapping[str, Any], data: tuple[np.ndarray, ...]) -> _Trained:
    """Train on rows and signs, and score test rows."""
    X, signs, Z, Z_signs = data
    gamma, C = parameters["gamma"] or 1.0 / X.shape[1], float(parameters["C"])
    options = SolverOptions(tol=parameters["tol"], cache_size=600.0)
    solution = solve_smo(X, signs, np.full(signs.size, C), Kernel("rbf", gamma), options)
    support = np.flatnonzero(solution.alpha > 0)
    alpha, support_signs = solution.alpha[support], signs[support]
    free = alpha < C
    vectors, coef = X[support], alpha * support_signs

    def kernel_of(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return kernel_matrix(rows, columns, Kernel("rbf", gamma))

    errors = _errors(lambda block: kernel_of(vectors[block], vectors), coef, support_signs, free)
    errors[READINGS[3]] = (support_signs * solution.gradient[support] - solution.rho)[free]
    scores = np.empty(Z_signs.size)
    block = max(1, _BLOCK // max(1, support.size))
    for start in range(0, Z_signs.size, block):
        rows = slice(start, start + block)
        scores[rows] = kernel_of(Z[rows], vectors) @ coef - solution.rho
    kernel = kernel_of(Z, vectors[free]).astype(np.float32)
    return _Trained(scores, kernel, support_signs[free], Z_signs, errors)


def _noisy_accuracies(
    trained: _Trained, scales: np.ndarray, epsilon: float, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Accuracies of models with noise on the free dual variables."""
    results = []
    for start in range(0, runs, 51):
        noise = rng.laplace(size=(scales.size, min(51, runs - start))) * (trained.signs * scales / epsilon)[:, None]
        with np.errstate(over="ignore"):
            scores = trained.scores[:, None] + trained.kernel @ noise.astype(np.float32)
        results.append(np.mean((scores > 0) == (trained.test_signs > 0)[:, None], axis=0))
    return np.concatenate(results)


def readings(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Accuracies under each reading of precision and offset, and how large the errors and the noise are.

    Parameters: of a job of Figures 1 and 2 (see `reproduce.dpsvmdvp.runs.accuracies`), with ``runs``, and ``readings``
    to the epsilons of each. Result: ``<dataset>/<reading>/epsilon=.../accuracy`` to accuracies; ``.../median scale``
    and ``.../sum of errors`` to as many equal numbers.
    """
    trained = _train(parameters, _data(parameters, context))
    runs, outcome = parameters["runs"], {}
    for reading, epsilon in ((name, value) for name, values in parameters["readings"].items() for value in values):
        errors = trained.errors[reading]
        scales = laplace_scales(errors, parameters["C"], 1.0, "signed")
        rng = context.stream(parameters["seed"], parameters["name"], reading, epsilon, piece)
        prefix = f"{parameters['dataset']}/{reading}/epsilon={epsilon:g}"
        outcome[f"{prefix}/accuracy"] = _noisy_accuracies(trained, scales, epsilon, runs, rng).tolist()
        outcome[f"{prefix}/log10 of the median scale"] = [math.log10(float(np.median(scales)) / epsilon)] * runs
        outcome[f"{prefix}/log10 of the sum of errors"] = [math.log10(max(abs(float(errors.sum())), 1e-18))] * runs
    return outcome


def _draws() -> list[Draws]:
    keep = ("dataset", "train", "test", "C", "gamma", "tol", "seed", "scaling", "n_train", "n_features", "order")
    jobs = budget_jobs(BUDGET_SETTINGS)
    result = []
    for dataset in ("splice", "cod-rna"):
        name, job = f"{dataset}.readings", jobs[f"{dataset}.none.C-1"]
        parameters = {
            **{key: job[key] for key in keep},
            "n_test": N_TEST,
            "runs": RUNS,
            "name": name,
            "readings": {
                **{reading: [0.1] for reading in READINGS},
                **{offset: [0.01, 0.1, 1.0] for offset in OFFSETS},
            },
        }
        result.append(
            Draws(experiment="dpsvmdvp_readings", name=name, dataset=dataset, run=f"{__name__}:readings",
                  cells=tuple(f"{dataset}/{reading}/" for reading in parameters["readings"]), parameters=parameters,
                  pieces=1, combine="mean", size=SIZE, unit=unit, machine_metrics=ROUND_OFF)
        )  # fmt: skip
    return result


DRAWS: Sequence[Draws] = _draws()
