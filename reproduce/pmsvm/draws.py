"""Random runs behind Tables 2, 9, 10 and 11: noise on weights trained once a split, and whole noisy trainings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.digests import canonical_json
from reproduce.engine.context import ClassRows, Context
from reproduce.engine.draws import Draws
from reproduce.engine.experiment import Settings
from reproduce.pmsvm.experiments import (
    SETTINGS,
    TABLE2_SETTINGS,
    batch_jobs,
    clip_jobs,
    is_drawn,
    lr_decay_jobs,
    table2_jobs,
)
from reproduce.pmsvm.runs.gradient import scores_of, train_released
from reproduce.pmsvm.runs.shared import accuracy_of, scaled, split_rows, without
from reproduce.pmsvm.runs.weight import _OPERA, _PMSVM

# Draws of noise for each split.
NOISES = 200
# The printed standard deviations are of the values at hand.
SPREAD = 0
# Trainings in a piece, and pieces: a training takes 2 to 10 ms on the first two sets, and 0.1 to 0.8 s on the others.
PIECES = {
    "Dermatology": (60, 4),
    "Vehicle": (60, 4),
    "Cornell": (5, 6),
    "ISOLET": (5, 6),
    "USPS": (5, 6),
    "HHAR": (5, 6),
}


def unit(cell: str) -> float:
    """Return the unit of the last digit of the printed accuracies."""
    return 1e-3


def _model(method: str, C: float, delta: float) -> Any:
    """Weight perturbation with the noise of the published numbers."""
    shared: dict[str, Any] = {"memory": {}, "C": C, "delta": delta, "allow_unsound": True}
    if method == "PMSVM-WP":
        return _PMSVM(data_norm=1.0, **shared)
    return _OPERA(constant=4.0, calibration="analytic" if method == "OPERA" else "classic", **shared)


def weight(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[list[float]]]:
    """Accuracies on every split with many draws of noise each.

    Parameters: ``dataset, source, method, C, delta, test_size, splits, epsilons, noises, seed``. Result: cell to draws,
    each a list with one accuracy for each split.
    """
    rows: ClassRows = context.class_rows(*parameters["source"])
    X = scaled(rows.X, "min_max")

    def compute(split: int) -> list[list[float]]:
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], split)
        path = _model(parameters["method"], parameters["C"], parameters["delta"]).release_path(
            train,
            y_train,
            parameters["epsilons"],
            parameters["noises"],
            lambda epsilon, repeat: context.stream(
                parameters["seed"], parameters["dataset"], parameters["method"], split, epsilon, repeat, piece
            ),
        )
        return [
            [accuracy_of(scores, y_test) for scores in path.scores(test, index)] for index in range(len(path.epsilons))
        ]

    result = np.array(
        [
            context.part({**parameters, "split": split, "piece": piece}, functools.partial(compute, split))
            for split in parameters["splits"]
        ]
    )
    prefix = f"{parameters['dataset']}/{parameters['method']}"
    return {
        f"{prefix}/epsilon={epsilon}/accuracy": result[:, index, :].T.tolist()
        for index, epsilon in enumerate(parameters["epsilons"])
    }


def trainings(parameters: Mapping[str, Any], context: Context, piece: int) -> list[list[float]]:
    """Accuracies of several noisy trainings on one split, for each epsilon; methods of equal training share them.

    Parameters: ``dataset, source, training, delta, test_size, split, epsilons, runs, seed``.
    """
    rows, training = context.class_rows(*parameters["source"]), parameters["training"]
    kept_sparse = training["scaling"] == "none" and training["start"] == "random" and scipy.sparse.issparse(rows.X)
    X = rows.X if kept_sparse else scaled(rows.X, training["scaling"])
    train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], parameters["split"])
    n_classes = int(rows.codes.max()) + 1
    outcome = []
    for epsilon in parameters["epsilons"]:
        key = (parameters["seed"], parameters["dataset"], canonical_json(training), epsilon, piece)
        streams = (context.stream(*key, run) for run in range(parameters["runs"]))
        models = (
            train_released(train, y_train, n_classes, training, epsilon, parameters["delta"], stream)
            for stream in streams
        )
        outcome.append([accuracy_of(scores_of(test, coef), y_test) for coef in models])
    return outcome


def gradient(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Accuracies of several noisy trainings by cell; see `trainings`.

    Parameters: as for `trainings`, ``method, suffix`` (of the setting). Result: Cell to accuracies.
    """
    shared = Context("pmsvm_trainings", context.folder, context.code)
    reduced = without(parameters, "method", "suffix")
    result = shared.part({**reduced, "piece": piece}, functools.partial(trainings, reduced, shared, piece))
    context.saved += shared.saved
    prefix = f"{parameters['dataset']}/{parameters['method']}"
    return {
        f"{prefix}/epsilon={epsilon}{parameters['suffix']}/accuracy": values
        for epsilon, values in zip(parameters["epsilons"], result, strict=True)
    }


def _weight_draws() -> list[Draws]:
    settings, result = TABLE2_SETTINGS, []
    for dataset, source in settings["datasets"].items():
        for method in ("PMSVM-WP", "OPERA", "PrivateSVM"):
            result.append(  # noqa: PERF401
                Draws(
                    experiment="pmsvm_table2",
                    name=f"{dataset}.{method}",
                    dataset=dataset,
                    run="reproduce.pmsvm.draws:weight",
                    parameters={
                        "dataset": dataset, "source": source, "method": method, "C": settings["C"][dataset],
                        "noises": NOISES,
                        **{key: settings[key] for key in ("delta", "test_size", "splits", "epsilons", "seed")},
                    },
                    pieces=1, combine="parts", size=len(settings["splits"]), spread=SPREAD, unit=unit,
                    cells=tuple(f"{dataset}/{method}/epsilon={epsilon}/accuracy" for epsilon in settings["epsilons"]),
                )
            )  # fmt: skip
    return result


def _gradient_draws(experiment: str, jobs_of: Callable[[Settings], Mapping[str, Mapping[str, Any]]]) -> list[Draws]:
    """Draws of the readings that printed numbers are judged by."""
    settings, result = SETTINGS[experiment], []
    for job in jobs_of(settings).values():
        if job["kind"] != "gradient":
            continue
        for name, training in job["variants"].items():
            method, _, rest = name.partition(", ")
            if not is_drawn(rest):
                continue
            dataset, suffix = job["dataset"], "" if rest == "as released" else f";{rest}"
            result.append(
                Draws(
                    experiment=experiment,
                    name=f"{dataset}.{name}",
                    dataset=dataset,
                    run="reproduce.pmsvm.draws:gradient",
                    parameters={
                        "dataset": dataset, "method": method, "training": training, "runs": PIECES[dataset][0],
                        "suffix": suffix,
                        **{key: job[key] for key in ("source", "delta", "test_size", "split", "epsilons", "seed")},
                    },
                    pieces=PIECES[dataset][1], combine="mean", size=settings["runs"], spread=SPREAD, unit=unit,
                    cells=tuple(
                        f"{dataset}/{method}/epsilon={epsilon}{suffix}/accuracy" for epsilon in job["epsilons"]
                    ),
                )
            )  # fmt: skip
    return result


DRAWS = [
    *_weight_draws(),
    *_gradient_draws("pmsvm_table2", table2_jobs),
    *_gradient_draws("pmsvm_lr_decay", lr_decay_jobs),
    *_gradient_draws("pmsvm_clip", clip_jobs),
    *_gradient_draws("pmsvm_batch", batch_jobs),
]
