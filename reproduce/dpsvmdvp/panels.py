"""Points of all 18 panels of Figures 1 to 6: accuracies of means of three draws, and processor times on one machine.

The noise hangs on round-off, and so on the order in which a solver takes the rows. On splice each accuracy is drawn
around the solution of another order; on cod-rna, where a training takes a minute, around one solution.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.methods.dpsvmdvp import laplace_scales
from reproduce.dpsvmdvp.draws import N_TEST, READINGS, RUNS, SIZE, _noisy_accuracies, _solve, _train, _Trained
from reproduce.dpsvmdvp.experiments import EPSILONS, SHARED, VARIED, training_set
from reproduce.dpsvmdvp.runs import _accuracy, _data, _private_svm
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


def _once(
    parameters: Mapping[str, Any], data: tuple[np.ndarray, ...], epsilon: float, stream: np.random.Generator
) -> tuple[_Trained, dict[str, float]]:
    """Train and predict with all three methods, each step timed."""
    X, signs, Z, Z_signs = data
    seconds = {}
    began = time.process_time()
    exact = _solve(parameters, X, signs)
    seconds["SVM/training seconds"] = time.process_time() - began
    errors, free = exact.errors(), exact.free
    scales = laplace_scales(errors[READINGS[0]], float(parameters["C"]), 1.0, "signed") / epsilon
    noisy = exact.coef.copy()
    noisy[free] += exact.signs[free] * scales * stream.laplace(size=scales.size)
    seconds["DPSVMDVP/training seconds"] = time.process_time() - began
    began = time.process_time()
    scores = exact.scores(Z, exact.coef)
    seconds["SVM/prediction seconds"] = time.process_time() - began
    began = time.process_time()
    exact.scores(Z, noisy)
    seconds["DPSVMDVP/prediction seconds"] = time.process_time() - began
    began = time.process_time()
    path = _private_svm(parameters, X).release_path(
        X, (signs > 0).astype(int), [epsilon], 1, lambda own_epsilon, repeat: stream
    )
    seconds["PrivateSVM/training seconds"] = time.process_time() - began
    began = time.process_time()
    path.scores(Z, 0)
    seconds["PrivateSVM/prediction seconds"] = time.process_time() - began
    return exact.trained(scores, errors, Z, Z_signs), seconds


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
    path = _private_svm(parameters, X).release_path(
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


def _one(name: str, training: Mapping[str, Any], figure: str, run: str = "panels", **changes: Any) -> Draws:
    dataset, knee_run = training["dataset"], run == "curve_knees"
    parameters = {
        **training, "private_svm": SHARED["private_svm"], "n_test": N_TEST, **DRAWN[dataset], "figure": figure,
        "printed": {}, "same": [], **changes,
    }  # fmt: skip
    cells = tuple(cell for cell_names in parameters["printed"].values() for cell in cell_names)
    points = [f"epsilon={epsilon:g}" for epsilon in parameters["epsilons"]]
    points = [*points, *parameters["same"]] if figure == "budget" else [f"{figure}={training[figure]}"]
    cells += tuple(f"panel/{dataset}/{point}/" for point in points)
    if figure == "budget":
        cells += (f"{dataset}/SVM//accuracy",)
    return Draws(
        experiment="dpsvmdvp_panels", name=name, dataset=dataset, run=f"reproduce.dpsvmdvp.panels:{run}",
        parameters=parameters, combine="whole" if knee_run else "mean", size=1 if knee_run else SIZE, unit=unit,
        cells=_knee_cells(dataset) if knee_run else cells, machine_metrics=TIMES,
    )  # fmt: skip


def _knee_cells(dataset: str) -> tuple[str, ...]:
    return tuple(f"{dataset}/DPSVMDVP//{knee}" for knee in ("lower knee", "upper knee"))


def _orders(name: str, training: Mapping[str, Any], figure: str, epsilons: Sequence[float]) -> Draws:
    """Plan the orders of one training set; the whole set has points of three figures."""
    dataset, varied = training["dataset"], figure == "budget"
    full_settings = [f"{key}={values[dataset][-1]}" for key, values in VARIED.items()]
    cells = {}
    for epsilon in epsilons:
        points = [f"epsilon={epsilon:g}"] if varied else [f"{figure}={training[figure]}"]
        points += full_settings if varied and epsilon == 0.1 else []
        cells[f"{epsilon:g}"] = [f"panel/{dataset}/{point}/DPSVMDVP/accuracy" for point in points] + [
            f"{dataset}/DPSVMDVP/epsilon=0.1;{point}/accuracy" for point in points if not point.startswith("epsilon")
        ]
    given = tuple(cell for values in cells.values() for cell in values)
    return Draws(
        experiment="dpsvmdvp_orders", name=name, dataset=dataset, run="reproduce.dpsvmdvp.panels:orders", pieces=4,
        combine="whole", unit=unit, cells=given + (_knee_cells(dataset) if varied else ()),
        parameters={
            **training, "n_test": N_TEST, "figure": figure, "epsilons": list(epsilons), "orders": 15, "cells": cells,
        },
    )  # fmt: skip


def _draws() -> Iterator[Draws]:
    for dataset, same in WHOLE.items():
        whole = training_set(dataset)
        printed = {"0.1": [f"{dataset}/DPSVMDVP/epsilon=0.1;{value}/accuracy" for value in same]}
        if dataset == "cod-rna":
            printed["0.001"] = [f"{dataset}/DPSVMDVP/epsilon<=0.001/accuracy"]
        else:
            yield _orders("splice.orders", whole, "budget", EPSILONS)
        yield _one(f"{dataset}.budget", whole, "budget", epsilons=EPSILONS, printed=printed, same=list(same))
        yield _one(f"{dataset}.knees", whole, "budget", "curve_knees", epsilons=EPSILONS)
    for (key, values), label in zip(VARIED.items(), ("file.n", "d"), strict=True):
        for dataset, value in ((name, value) for name, members in values.items() for value in members):
            if f"{key}={value}" in WHOLE[dataset]:
                continue
            name, training = f"{key}.{dataset}.{label}-{value}", training_set(dataset, **{key: value})
            cells = {"0.1": [f"{dataset}/DPSVMDVP/epsilon=0.1;{key}={value}/accuracy"]}
            yield _one(name, training, key, epsilons=[0.1], printed=cells)
            if dataset == "splice" and value != values[dataset][-1]:
                yield _orders(f"{name}.orders", training, key, [0.1])


DRAWS: Sequence[Draws] = sorted(
    _draws(), key=lambda draws: (draws.dataset != "splice", draws.experiment != "dpsvmdvp_orders")
)
