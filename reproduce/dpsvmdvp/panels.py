"""Points of all 18 panels of Figures 1 to 6: accuracies of means of three draws, and processor times on one machine.

The noise hangs on round-off, and so on the order in which a solver takes the rows. On splice each accuracy is drawn
around the solution of another order; on cod-rna, where a training takes a minute, around one solution.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.methods.dpsvmdvp import laplace_scales
from privsvm.methods.private_svm_rbf_laplace import PrivateSVMRBFLaplaceClassifier
from privsvm.solvers.kernel.c_svc import SolverOptions
from privsvm.solvers.kernel.kernels import Kernel, kernel_matrix
from privsvm.solvers.kernel.smo import solve_smo
from reproduce.dpsvmdvp.draws import N_TEST, READINGS, RUNS, SIZE, _errors, _noisy_accuracies, _train, _Trained
from reproduce.dpsvmdvp.experiments import (
    BUDGET_SETTINGS,
    EPSILONS,
    FEATURES_SETTINGS,
    SIZE_SETTINGS,
    budget_jobs,
    features_jobs,
    size_jobs,
)
from reproduce.dpsvmdvp.runs import _accuracy, _data
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws

METHODS = ("SVM", "DPSVMDVP", "PrivateSVM")
TIMES = ("training seconds", "prediction seconds")
# Draws of noise, draws of PrivateSVM, and repeats of the times: fewer where a training takes a minute and not a second.
DRAWN = {
    "splice": {"runs": RUNS, "private_runs": 60, "repeats": 24},
    "cod-rna": {"runs": 102, "private_runs": 6, "repeats": 1},
}
# Points that are the whole training set, whose budget has them.
WHOLE = {"splice": (), "cod-rna": ("n_train=59535", "n_features=8")}
_BLOCK = 4_000_000


def unit(cell: str) -> float:
    """Return the unit of the last digit that the paper's text prints, or of a small time."""
    if cell.endswith("seconds"):
        return 1e-5
    return 1e-4 if cell.endswith("knee") or "n_features" in cell else 1e-2


# An accuracy this near to a coin's counts as chance, this near to the SVM's as its level.
CHANCE, NEAR_CHANCE, NEAR_SVM = 0.5, 0.1, 0.02


def knees(epsilons: Sequence[float], curve: Sequence[float], svm: float) -> tuple[float | None, float | None]:
    """Find the epsilons where a curve leaves chance, and where it has reached the SVM; None if it does not.

    All accuracies up to the first are near chance, and all from the second on near the SVM's.
    """
    lower = upper = None
    for epsilon, accuracy in zip(epsilons, curve, strict=True):
        if abs(accuracy - CHANCE) > NEAR_CHANCE:
            break
        lower = epsilon
    for epsilon, accuracy in reversed(list(zip(epsilons, curve, strict=True))):
        if accuracy < svm - NEAR_SVM:
            break
        upper = epsilon
    return lower, upper


def _scores(Z: np.ndarray, vectors: np.ndarray, coef: np.ndarray, gamma: float) -> np.ndarray:
    results = np.empty(Z.shape[0])
    block = max(1, _BLOCK // max(1, len(vectors)))
    for start in range(0, Z.shape[0], block):
        rows = slice(start, start + block)
        results[rows] = kernel_matrix(Z[rows], vectors, Kernel("rbf", gamma)) @ coef
    return results


def _once(
    parameters: Mapping[str, Any], data: tuple[np.ndarray, ...], epsilon: float, stream: np.random.Generator
) -> tuple[_Trained, dict[str, float]]:
    """Train and predict with all three methods, each step timed."""
    X, signs, Z, Z_signs = data
    gamma, C = parameters["gamma"] or 1.0 / X.shape[1], float(parameters["C"])
    seconds = {}
    began = time.process_time()
    kernel, options = Kernel("rbf", gamma), SolverOptions(tol=parameters["tol"], cache_size=600.0)
    solution = solve_smo(X, signs, np.full(signs.size, C), kernel, options)
    seconds["SVM/training seconds"] = time.process_time() - began
    support = np.flatnonzero(solution.alpha > 0)
    alpha, support_signs = solution.alpha[support], signs[support]
    free, vectors, coef = alpha < C, X[support], alpha * support_signs
    errors = _errors(lambda rows: kernel_matrix(vectors[rows], vectors, kernel), coef, support_signs, free)
    scales = laplace_scales(errors[READINGS[0]], C, 1.0, "signed") / epsilon
    noisy = coef.copy()
    noisy[free] += support_signs[free] * scales * stream.laplace(size=scales.size)
    seconds["DPSVMDVP/training seconds"] = time.process_time() - began
    began = time.process_time()
    scores = _scores(Z, vectors, coef, gamma) - solution.rho
    seconds["SVM/prediction seconds"] = time.process_time() - began
    began = time.process_time()
    _scores(Z, vectors, noisy, gamma)
    seconds["DPSVMDVP/prediction seconds"] = time.process_time() - began
    private = PrivateSVMRBFLaplaceClassifier(gamma=gamma, classes=[0, 1], **parameters["private_svm"])
    began = time.process_time()
    path = private.release_path(X, (signs > 0).astype(int), [epsilon], 1, lambda own_epsilon, repeat: stream)
    seconds["PrivateSVM/training seconds"] = time.process_time() - began
    began = time.process_time()
    path.scores(Z, 0)
    seconds["PrivateSVM/prediction seconds"] = time.process_time() - began
    matrix = kernel_matrix(Z, vectors[free], kernel).astype(np.float32)
    return _Trained(scores, matrix, support_signs[free], Z_signs, errors), seconds


def measure(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Accuracies and times of one training set.

    Parameters: of a job of Figures 1 to 6, with ``epsilons, runs, private_runs, repeats``. Result: ``SVM``: its
    accuracy; ``DPSVMDVP`` and ``PrivateSVM``: accuracies of single draws at each epsilon; ``seconds``: times by method
    and step.
    """
    data = _data(parameters, context)
    X, signs, Z, Z_signs = data
    run_key = (parameters["seed"], parameters["dataset"], parameters["n_train"] or 0, parameters["n_features"] or 0)

    def stream(*purpose: str | int | float) -> np.random.Generator:
        return context.stream(*run_key, *purpose)

    epsilons = parameters["epsilons"]
    seconds: dict[str, list[float]] = {f"{method}/{step}": [] for method in METHODS for step in TIMES}
    by_epsilon: dict[str, list[list[float]]] = {step: [[] for _ in epsilons] for step in TIMES}
    # The first run pays for loading and compiling: one of several, or one on a few rows of both classes.
    first = -1 if parameters["repeats"] > 1 else 0
    if first == 0:
        warm_up = np.concatenate([np.flatnonzero(signs == sign)[:100] for sign in (1.0, -1.0)])
        _once(parameters, (X[warm_up], signs[warm_up], Z[:100], Z_signs[:100]), epsilons[0], stream("times", -1))
    for repeat in range(first, parameters["repeats"]):
        number = max(repeat, 0) % len(epsilons)
        trained, outcome = _once(parameters, data, epsilons[number], stream("times", repeat))
        if repeat < 0:
            continue
        for key, value in outcome.items():
            seconds[key].append(value)
        for step in TIMES:
            by_epsilon[step][number].append(outcome[f"DPSVMDVP/{step}"])
    scales = laplace_scales(trained.errors[READINGS[0]], parameters["C"], 1.0, "signed")
    private = PrivateSVMRBFLaplaceClassifier(
        gamma=parameters["gamma"] or 1.0 / X.shape[1], classes=[0, 1], **parameters["private_svm"]
    )
    path = private.release_path(
        X, (signs > 0).astype(int), epsilons, parameters["private_runs"],
        lambda epsilon, repeat: stream("PrivateSVM", epsilon, repeat),
    )  # fmt: skip
    return {
        "SVM": float(np.mean((trained.scores > 0) == (Z_signs > 0))),
        "DPSVMDVP": [
            _noisy_accuracies(trained, scales, epsilon, parameters["runs"], stream("noise", epsilon)).tolist()
            for epsilon in epsilons
        ],
        "PrivateSVM": [_accuracy(path, index, Z, Z_signs).tolist() for index in range(len(epsilons))],
        "seconds": seconds,
        "by epsilon": by_epsilon,
    }


def _measure_once(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    reduced = {key: value for key, value in parameters.items() if key not in ("figure", "printed", "same")}
    shared = Context("dpsvmdvp_panels", context.folder, context.code)
    result = shared.part(reduced, functools.partial(measure, reduced, shared))
    context.saved += shared.saved
    return result


def panels(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Points of the panels that one training set has, and the printed accuracies that are among them.

    Parameters: as for `measure`; ``figure``: "budget", "n_train" or "n_features"; ``printed``: epsilon as text to
    cells; ``same``: points of other figures at epsilon 0.1 that have the same training set. Result:
    ``panel/<dataset>/<what varies>=<value>/<method>/<metric>`` to values of single runs.
    """
    measured, figure = _measure_once(parameters, context), parameters["figure"]
    result: dict[str, list[float]] = {}
    for number, epsilon in enumerate(parameters["epsilons"]):
        values = [f"epsilon={epsilon:g}" if figure == "budget" else f"{figure}={parameters[figure]}"]
        values += parameters["same"] if epsilon == 0.1 else []
        for cell in parameters["printed"].get(f"{epsilon:g}", []):
            result[cell] = measured["DPSVMDVP"][number]
        for value in values:
            prefix, by_epsilon = f"panel/{parameters['dataset']}/{value}", value.startswith("epsilon")
            result[f"{prefix}/SVM/accuracy"] = [measured["SVM"]] * parameters["runs"]
            result[f"{prefix}/DPSVMDVP/accuracy"] = measured["DPSVMDVP"][number]
            result[f"{prefix}/PrivateSVM/accuracy"] = measured["PrivateSVM"][number]
            if by_epsilon and parameters["repeats"] < SIZE * len(parameters["epsilons"]):
                # Too few trainings for one at each epsilon.
                continue
            for method in METHODS:
                for step in TIMES:
                    seconds = measured["seconds"][f"{method}/{step}"]
                    if by_epsilon and method == "DPSVMDVP":
                        seconds = measured["by epsilon"][step][number]
                    result[f"{prefix}/{method}/{step}"] = seconds
    if figure == "budget":
        result[f"{parameters['dataset']}/SVM//accuracy"] = [measured["SVM"]] * parameters["runs"]
    return result


def curve_knees(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Knees of curves of means of three draws; see `panels`."""
    measured, epsilons = _measure_once(parameters, context), parameters["epsilons"]
    means = np.asarray(measured["DPSVMDVP"]).reshape(len(epsilons), -1, SIZE).mean(axis=2)
    curves = [_knees_of(parameters, column, measured["SVM"]) for column in means.T]
    return {cell: [curve[cell] for curve in curves] for cell in curves[0]}


def orders(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Accuracies as printed, each a mean of three draws around the solution of another order of the same rows.

    Parameters: as for `measure`, with ``orders`` (of a piece) and ``cells``: epsilon as text to the cells that have
    it. Result: cell to one value for each order; where all epsilons are drawn, also the knees of each curve.
    """
    X, signs, Z, Z_signs = _data(parameters, context)
    run_key = (parameters["seed"], parameters["dataset"], parameters["n_train"] or 0, parameters["n_features"] or 0)
    result: dict[str, list[float]] = {}
    for number in range(parameters["orders"]):
        stream = context.stream(*run_key, "orders", piece, number)
        order = stream.permutation(signs.size)
        trained = _train(parameters, (X[order], signs[order], Z, Z_signs))
        scales = laplace_scales(trained.errors[READINGS[0]], parameters["C"], 1.0, "signed")
        exact = float(np.mean((trained.scores > 0) == (Z_signs > 0)))
        curve = [
            float(_noisy_accuracies(trained, scales, epsilon, SIZE, stream).mean())
            for epsilon in parameters["epsilons"]
        ]
        values = {
            cell: value
            for epsilon, value in zip(parameters["epsilons"], curve, strict=True)
            for cell in parameters["cells"][f"{epsilon:g}"]
        }
        if parameters["figure"] == "budget":
            values |= _knees_of(parameters, curve, exact)
        for cell, value in values.items():
            result.setdefault(cell, []).append(value)
    return result


def _knees_of(parameters: Mapping[str, Any], curve: Sequence[float], exact: float) -> dict[str, float]:
    """Return the knees of a curve; without a knee on the grid it lies below, or above."""
    epsilons = parameters["epsilons"]
    beyond = (epsilons[0] / 2, 2 * epsilons[-1])
    return {
        f"{parameters['dataset']}/DPSVMDVP//{name}": float(off if knee is None else knee)
        for name, knee, off in zip(("lower knee", "upper knee"), knees(epsilons, curve, exact), beyond, strict=True)
    }


def _one(name: str, job: Mapping[str, Any], figure: str, run: str = "panels", **changes: Any) -> Draws:
    keep = (
        "dataset", "train", "test", "C", "gamma", "tol", "seed", "scaling", "n_train", "n_features", "order",
        "private_svm",
    )  # fmt: skip
    parameters = {
        **{key: job[key] for key in keep}, "n_test": N_TEST, **DRAWN[job["dataset"]], "figure": figure,
        "printed": {}, "same": [], **changes,
    }  # fmt: skip
    cells = tuple(cell for cell_names in parameters["printed"].values() for cell in cell_names)
    points = [f"epsilon={epsilon:g}" for epsilon in parameters["epsilons"]]
    points = [*points, *parameters["same"]] if figure == "budget" else [f"{figure}={job[figure]}"]
    cells += tuple(f"panel/{job['dataset']}/{point}/" for point in points)
    if figure == "budget":
        cells += (f"{job['dataset']}/SVM//accuracy",)
    if run == "curve_knees":
        cells = tuple(f"{job['dataset']}/DPSVMDVP//{knee}" for knee in ("lower knee", "upper knee"))
    return Draws(
        experiment="dpsvmdvp_panels", name=name, dataset=job["dataset"], run=f"reproduce.dpsvmdvp.panels:{run}",
        parameters=parameters, pieces=1, combine="whole" if run == "curve_knees" else "mean",
        size=1 if run == "curve_knees" else SIZE, unit=unit, cells=cells,
        machine_metrics=TIMES,
    )  # fmt: skip


def _orders(name: str, job: Mapping[str, Any], figure: str, epsilons: Sequence[float]) -> Draws:
    """Plan the orders of one training set; the whole set has points of three figures."""
    keep = ("dataset", "train", "test", "C", "gamma", "tol", "seed", "scaling", "n_train", "n_features", "order")
    dataset, varied = job["dataset"], figure == "budget"
    full_settings = [
        f"n_train={SIZE_SETTINGS['sizes'][dataset][-1]}",
        f"n_features={FEATURES_SETTINGS['features'][dataset][-1]}",
    ]
    cells = {}
    for epsilon in epsilons:
        points = [f"epsilon={epsilon:g}"] if varied else [f"{figure}={job[figure]}"]
        points += full_settings if varied and epsilon == 0.1 else []
        cells[f"{epsilon:g}"] = [f"panel/{dataset}/{point}/DPSVMDVP/accuracy" for point in points] + [
            f"{dataset}/DPSVMDVP/epsilon=0.1;{point}/accuracy" for point in points if not point.startswith("epsilon")
        ]
    given = tuple(cell for values in cells.values() for cell in values)
    knee_cells = tuple(f"{dataset}/DPSVMDVP//{knee} knee" for knee in ("lower", "upper")) if varied else ()
    return Draws(
        experiment="dpsvmdvp_orders", name=name, dataset=dataset, run="reproduce.dpsvmdvp.panels:orders", pieces=4,
        combine="whole", size=1, unit=unit, cells=given + knee_cells,
        parameters={
            **{key: job[key] for key in keep}, "n_test": N_TEST, "figure": figure, "epsilons": list(epsilons),
            "orders": 15, "cells": cells,
        },
    )  # fmt: skip


def _draws() -> list[Draws]:
    result = []
    jobs = budget_jobs(BUDGET_SETTINGS)
    for dataset in ("splice", "cod-rna"):
        job = jobs[f"{dataset}.none.C-1"]
        same = WHOLE[dataset]
        printed = {"0.1": [f"{dataset}/DPSVMDVP/epsilon=0.1;{value}/accuracy" for value in same]}
        if dataset == "cod-rna":
            printed["0.001"] = [f"{dataset}/DPSVMDVP/epsilon<=0.001/accuracy"]
        else:
            result.append(_orders("splice.orders", job, "budget", EPSILONS))
        result.append(_one(f"{dataset}.budget", job, "budget", epsilons=EPSILONS, printed=printed, same=list(same)))
        result.append(_one(f"{dataset}.knees", job, "budget", "curve_knees", epsilons=EPSILONS))
    for jobs, key in ((size_jobs(SIZE_SETTINGS), "n_train"), (features_jobs(FEATURES_SETTINGS), "n_features")):
        for name, job in jobs.items():
            if job["order"] != "file" or f"{key}={job[key]}" in WHOLE[job["dataset"]]:
                continue
            cells = {"0.1": [f"{job['dataset']}/DPSVMDVP/epsilon=0.1;{key}={job[key]}/accuracy"]}
            result.append(_one(f"{key}.{name}", job, key, epsilons=[0.1], printed=cells))
            largest = (SIZE_SETTINGS["sizes"] if key == "n_train" else FEATURES_SETTINGS["features"])[job["dataset"]][
                -1
            ]
            if job["dataset"] == "splice" and job[key] != largest:
                result.append(_orders(f"{key}.{name}.orders", job, key, [0.1]))
    return sorted(result, key=lambda draws: (draws.dataset != "splice", draws.experiment != "dpsvmdvp_orders"))


DRAWS: Sequence[Draws] = _draws()
