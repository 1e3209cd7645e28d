"""Noise around an exact solution, by readings of the precision of the errors E_i and of the offset inside them.

The precision decides how much noise there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from privsvm.methods.dpsvmdvp import laplace_scales
from privsvm.solvers.kernel.c_svc import SolverOptions
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix
from privsvm.solvers.kernel.smo import solve_smo
from reproduce.dpsvmdvp.experiments import training_set
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


class _Exact(NamedTuple):
    """One exact solution: its support vectors, with their coefficients and signs, and those that are free."""

    vectors: np.ndarray
    coef: np.ndarray
    signs: np.ndarray
    free: np.ndarray
    gradient: np.ndarray
    rho: float
    kernel: Kernel

    def errors(self) -> dict[str, np.ndarray]:
        """E_i of the free support vectors by each reading."""
        signs, free = self.signs, self.free
        exact, rounded = np.empty(signs.size), np.empty(signs.size)
        for rows in _blocks(signs.size, signs.size):
            kernel = kernel_matrix(self.vectors[rows], self.vectors, self.kernel)
            exact[rows] = kernel @ self.coef
            rounded[rows] = kernel.astype(np.float32).astype(np.float64) @ self.coef
        offsets, in_single = (exact - signs)[free], float((rounded - signs)[free].mean())
        return {
            OFFSETS[0]: offsets - offsets[0],
            OFFSETS[1]: offsets - (offsets.min() + offsets.max()) / 2.0,
            READINGS[0]: (exact - in_single - signs)[free],
            READINGS[1]: (exact - float(offsets.mean()) - signs)[free],
            READINGS[2]: (rounded - in_single - signs)[free],
            READINGS[3]: (signs * self.gradient - self.rho)[free],
        }

    def scores(self, Z: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Scores of test rows by these coefficients of the support vectors."""
        scores = np.empty(Z.shape[0])
        for rows in _blocks(Z.shape[0], len(self.vectors)):
            scores[rows] = kernel_matrix(Z[rows], self.vectors, self.kernel) @ coef
        return scores - self.rho

    def trained(self, scores: np.ndarray, errors: dict[str, np.ndarray], Z: np.ndarray, signs: np.ndarray) -> _Trained:
        """Add the change of test scores from noise on the free dual variables."""
        kernel = kernel_matrix(Z, self.vectors[self.free], self.kernel).astype(np.float32)
        return _Trained(scores, kernel, self.signs[self.free], signs, errors)


def _blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Part rows so that a kernel matrix of each part fits in memory."""
    block = max(1, _BLOCK // max(1, n_columns))
    return (slice(start, start + block) for start in range(0, n_rows, block))


def _solve(parameters: Mapping[str, Any], X: np.ndarray, signs: np.ndarray) -> _Exact:
    """Train without noise."""
    kernel, C = Kernel("rbf", parameters["gamma"] or 1.0 / X.shape[1]), float(parameters["C"])
    options = SolverOptions(tol=parameters["tol"], cache_size=600.0)
    solution = solve_smo(X, signs, np.full(signs.size, C), kernel, options)
    support = np.flatnonzero(solution.alpha > 0)
    alpha, support_signs = solution.alpha[support], signs[support]
    return _Exact(X[support], alpha * support_signs, support_signs, alpha < C, solution.gradient[support],
                  solution.rho, kernel)  # fmt: skip


def _train(parameters: Mapping[str, Any], data: tuple[np.ndarray, ...]) -> _Trained:
    """Train on rows and signs, and score test rows."""
    X, signs, Z, Z_signs = data
    exact = _solve(parameters, X, signs)
    return exact.trained(exact.scores(Z, exact.coef), exact.errors(), Z, Z_signs)


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


def _draws() -> Iterator[Draws]:
    for dataset in ("splice", "cod-rna"):
        name = f"{dataset}.readings"
        parameters = {
            **training_set(dataset),
            "n_test": N_TEST,
            "runs": RUNS,
            "name": name,
            "readings": {
                **{reading: [0.1] for reading in READINGS},
                **{offset: [0.01, 0.1, 1.0] for offset in OFFSETS},
            },
        }
        yield Draws(
            experiment="dpsvmdvp_readings", name=name, dataset=dataset, run=f"{__name__}:readings",
            cells=tuple(f"{dataset}/{reading}/" for reading in parameters["readings"]), parameters=parameters,
            pieces=1, combine="mean", size=SIZE, unit=unit, machine_metrics=ROUND_OFF,
        )  # fmt: skip


DRAWS: Sequence[Draws] = [*_draws()]
