"""What dpwss-2021 leaves open, tried at sigma 0.7: which pairs are candidates, when they are marked, how a run ends.

A solver of its own, without shrinking, in which each of these is a switch; with all switches off it takes the steps of
the library's solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numba
import numpy as np

from privsvm.numerics.noise.streams import seeded_stream
from privsvm_bench.reproduction.context import Context
from privsvm_bench.reproduction.draws import Draws
from reproduce.dpwss.experiments import TABLE3_SETTINGS
from reproduce.dpwss.runs import _libsvm_order

# Switches: pairs are marked in both orders; never; where no pair of a share of sigma is left, any violating pair; the
# marks are forgotten; or LIBSVM's own pair. Then the factor on the exponent, and whether rows stay in the file's order.
READINGS: dict[str, dict[str, Any]] = {
    "to the letter": {},
    "pairs marked in both orders": {"mark": 1},
    "pairs never marked": {"mark": 2},
    "any violating pair where none of sigma is left": {"empty": 1},
    "marks forgotten where no pair is left": {"empty": 2},
    "LIBSVM's pair where no pair is left": {"empty": 3},
    "drawn evenly": {"factor": 0.0},
    "sensitivity 1 in the exponent": {"factor": 0.3},
    "rows in the file's order": {"sorted": False},
    "tolerance 1e-4": {"tol": 1e-4},
}
# Rules that choose the printed run of five runs to the letter.
SELECTIONS = ("the run with the best objective of five", "the run with the most iterations of five")
# Place by objective, best first, of one run out of so many, chosen where the text says a mean of five.
CHOSEN = {
    "one run": (0, 1),
    "the middle run of five by objective": (2, 5),
    "the better run of two": (0, 2),
    "the best run of three": (0, 3),
}
SIGMA = 0.7
# Sets of at most 1,000 rows.
DATASETS = ("australian", "breast", "diabetes", "fourclass", "german", "heart", "ionosphere", "sonar", "splice")
RUNS = 40
_GROUPS = 300


@numba.njit(fastmath=False, cache=False)
def _second_order(i, F, low, K, largest):
    """LIBSVM's second variable: the largest decrease to second order."""
    best, chosen = 0.0, -1
    for t in range(F.size):
        violation = largest - F[t]
        if low[t] and violation > 0.0:
            curvature = max(K[i, i] + K[t, t] - 2.0 * K[i, t], 1e-12)
            gain = violation * violation / curvature
            if gain >= best:
                best, chosen = gain, t
    return chosen


@numba.njit(fastmath=False, cache=False)
def _draw(i, F, low, used, extremes, rule, level, weights, candidates):
    """Draw a second variable; -1 where there is no candidate."""
    largest, gap = extremes
    sigma, tol, sharpness = rule
    count, total = 0, 0.0
    for t in range(F.size):
        violation = largest - F[t]
        if low[t] and violation > tol and violation / gap >= sigma and not used[i, t]:
            total += np.exp(sharpness * (violation / gap - 1.0))
            weights[count] = total
            candidates[count] = t
            count += 1
    if count == 0:
        return -1
    return candidates[np.searchsorted(weights[:count], level * total, side="right")]


@numba.njit(fastmath=False, cache=False)
def _train(K, y, C, tol, sigma, sharpness, mark, empty, rng, max_iter):
    """Objective and iterations of one run."""
    n = y.size
    alpha, F = np.zeros(n), y.copy()
    up, low = y > 0, y < 0
    used = np.zeros((n, n), dtype=np.bool_)
    weights, candidates = np.empty(n), np.empty(n, dtype=np.int64)
    iterations = 0
    while iterations < max_iter:
        largest, smallest, i = -np.inf, np.inf, -1
        for t in range(n):
            if up[t] and F[t] >= largest:
                largest, i = F[t], t
            if low[t] and F[t] < smallest:
                smallest = F[t]
        gap = largest - smallest
        if i < 0 or gap < tol:
            break
        level = rng.random()
        j = _draw(i, F, low, used, (largest, gap), (sigma, tol, sharpness), level, weights, candidates)
        if j < 0 and empty == 1:
            j = _draw(i, F, low, used, (largest, gap), (0.0, tol, sharpness), level, weights, candidates)
        elif j < 0 and empty == 2:
            used[:] = False
            j = _draw(i, F, low, used, (largest, gap), (sigma, tol, sharpness), level, weights, candidates)
        elif j < 0 and empty == 3:
            j = _second_order(i, F, low, K, largest)
        if j < 0:
            break
        iterations += 1
        if mark < 2:
            used[i, j] = True
        if mark == 1:
            used[j, i] = True
        curvature = max(K[i, i] + K[j, j] - 2.0 * K[i, j], 1e-12)
        # The step along y_i e_i - y_j e_j, cut where a variable meets its bound.
        step = (F[i] - F[j]) / curvature
        step = min(step, C - alpha[i] if y[i] > 0 else alpha[i])
        step = min(step, alpha[j] if y[j] > 0 else C - alpha[j])
        alpha[i] = min(max(alpha[i] + y[i] * step, 0.0), C)
        alpha[j] = min(max(alpha[j] - y[j] * step, 0.0), C)
        for t in range(n):
            F[t] -= step * (K[i, t] - K[j, t])
        for t in (i, j):
            up[t] = alpha[t] < C if y[t] > 0 else alpha[t] > 0.0
            low[t] = alpha[t] > 0.0 if y[t] > 0 else alpha[t] < C
    # F = -y G with G = Q alpha - e, so that the objective is half of alpha' (G - e).
    return 0.5 * np.sum(alpha * (-y * F - 1.0)), iterations


def readings(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Objectives and iterations of many runs by every reading.

    Parameters: ``dataset, source, epsilon, C, tol, runs, seed, names`` (of readings). Result:
    ``<reading>/<dataset>/<epsilon>/<metric>`` to one value for each run.
    """
    rows = context.rows(*parameters["source"])
    dense = rows.X.toarray() if hasattr(rows.X, "toarray") else rows.X
    result: dict[str, list[float]] = {}
    for number, (name, switches) in enumerate(READINGS.items()):
        if name not in parameters["names"]:
            continue
        order = _libsvm_order(rows.signs) if switches.get("sorted", True) else np.arange(rows.signs.size)
        X, y = np.ascontiguousarray(dense[order]), rows.signs[order]
        K = (X @ X.T).astype(np.float32).astype(np.float64)
        factor = switches.get("factor", 1.0) / (2.0 * (1.0 - SIGMA))
        rng = seeded_stream(
            parameters["seed"], "dpwss readings", parameters["dataset"], parameters["epsilon"], piece, number
        )
        runs = [
            _train(
                K, y, parameters["C"], switches.get("tol", parameters["tol"]), SIGMA, factor * parameters["epsilon"],
                switches.get("mark", 0), switches.get("empty", 0), rng, 100_000,
            )
            for _ in range(parameters["runs"])
        ]  # fmt: skip
        prefix = f"{parameters['dataset']}/{parameters['epsilon']:g}"
        result[f"{name}/{prefix}/objective"] = [float(run[0]) for run in runs]
        result[f"{name}/{prefix}/iterations"] = [float(run[1]) for run in runs]
    return result


def selections(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Choose one of five runs to the letter, again and again; see `readings`."""
    runs = {key.partition("/")[2]: value for key, value in readings(parameters, context, piece).items()
            if key.startswith("to the letter/")}  # fmt: skip
    prefix = f"{parameters['dataset']}/{parameters['epsilon']:g}"
    objective, iterations = (np.array(runs[f"{prefix}/{metric}"]) for metric in ("objective", "iterations"))
    rng = seeded_stream(parameters["seed"], "dpwss selections", parameters["dataset"], parameters["epsilon"], piece)
    groups = rng.integers(objective.size, size=(_GROUPS, 5))
    results: dict[str, list[float]] = {}
    for name, chosen in zip(
        SELECTIONS, (objective[groups].argmin(axis=1), iterations[groups].argmax(axis=1)), strict=True
    ):
        chosen_runs = groups[np.arange(_GROUPS), chosen]
        results[f"{name}/{prefix}/objective"] = objective[chosen_runs].tolist()
        results[f"{name}/{prefix}/iterations"] = iterations[chosen_runs].tolist()
    return results


def chosen(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Choose among runs to the letter by objective; see `readings`."""
    runs = readings(parameters, context, piece)
    prefix = f"{parameters['dataset']}/{parameters['epsilon']:g}"
    objective, iterations = (
        np.array(runs[f"to the letter/{prefix}/{metric}"]) for metric in ("objective", "iterations")
    )
    result: dict[str, list[float]] = {}
    for name, (rank, size) in CHOSEN.items():
        rng = seeded_stream(
            parameters["seed"], "dpwss chosen", parameters["dataset"], parameters["epsilon"], piece, size
        )
        groups = rng.integers(objective.size, size=(_GROUPS, size))
        chosen_runs = groups[np.arange(_GROUPS), objective[groups].argsort(axis=1)[:, rank]]
        result[f"{name}/{prefix}/objective"] = objective[chosen_runs].tolist()
        result[f"{name}/{prefix}/iterations"] = iterations[chosen_runs].tolist()
    return result


def unit(cell: str) -> float:
    """Return the unit of the last printed digit."""
    return 0.01 if cell.endswith("objective") else 1.0


DRAWS = [
    Draws(
        experiment="dpwss_readings", name=f"{dataset}.epsilon={epsilon:g}.{run}", dataset=dataset,
        run=f"{__name__}:{run}", pieces=1, combine=combine, size=size, unit=unit,
        parameters={
            "dataset": dataset, "source": TABLE3_SETTINGS["datasets"][dataset], "epsilon": epsilon, "runs": runs,
            "names": names,
            "C": TABLE3_SETTINGS["C"], "tol": TABLE3_SETTINGS["tol"], "seed": TABLE3_SETTINGS["seed"],
        },
    )
    for dataset in DATASETS
    for epsilon in (1, 0.5, 0.1)
    for run, combine, size, runs, names in (
        ("readings", "mean", 5, RUNS, list(READINGS)), ("selections", "whole", 1, 3 * RUNS, ["to the letter"]),
        ("chosen", "whole", 1, 3 * RUNS, ["to the letter"]),
    )
]  # fmt: skip
