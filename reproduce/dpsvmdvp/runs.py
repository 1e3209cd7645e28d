"""Experiments of dpsvmdvp-2019: accuracies of SVM, DPSVMDVP and PrivateSVM on one training set."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.base.released import KernelPath, ReleasedPath
from privsvm.methods.dpsvmdvp import DPSVMDVPClassifier
from privsvm.methods.private_svm_rbf_laplace import PrivateSVMRBFLaplaceClassifier
from privsvm.solvers.kernel.c_svc import CSVCSolution
from reproduce.engine.context import Context


class _OneSolve(DPSVMDVPClassifier):
    """DPSVMDVP that keeps its one exact solution for the next release: many variants, one solve."""

    def __init__(self, *, solutions: list[CSVCSolution], **parameters: Any):
        super().__init__(**parameters)
        self.solutions = solutions

    def _solve(self, X, signs: np.ndarray, gamma: float) -> CSVCSolution:
        if not self.solutions:
            self.solutions.append(super()._solve(X, signs, gamma))
        return self.solutions[0]


def _dense(X) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else X


def _scale(train: np.ndarray, test: np.ndarray, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """Scale both parts by the training rows, as svm-scale and the papers do: not private."""
    if scaling == "none":
        return train, test
    if scaling == "min_max":
        low, high = train.min(axis=0), train.max(axis=0)
        shift, factor = (low + high) / 2.0, 2.0 / np.where(high > low, high - low, 1.0)
    else:
        spread = train.std(axis=0)
        shift, factor = train.mean(axis=0), 1.0 / np.where(spread > 0, spread, 1.0)
    return (train - shift) * factor, (test - shift) * factor


def _data(parameters: Mapping[str, Any], context: Context) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows in their file's order, test rows, the first features of both, scaled."""
    train, test = context.rows(*parameters["train"]), context.rows(*parameters["test"])
    chosen = np.arange(train.signs.size)[: parameters["n_train"]]
    tested = np.arange(test.signs.size)
    if parameters["n_test"] is not None and parameters["n_test"] < tested.size:
        stream = context.stream(parameters["seed"], parameters["dataset"], "test rows")
        tested = np.sort(stream.permutation(tested.size)[: parameters["n_test"]])
    width = min(train.X.shape[1], test.X.shape[1])
    columns = slice(0, min(parameters["n_features"] or width, width))
    X, Z = _scale(_dense(train.X[chosen])[:, columns], _dense(test.X[tested])[:, columns], parameters["scaling"])
    return X, train.signs[chosen], Z, test.signs[tested]


def _together(paths: list[KernelPath]) -> KernelPath:
    """All models of paths over the same support vectors as repeats of one, so that kernel values are computed once."""
    first = paths[0]

    def flat(arrays: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([array.reshape(-1, *array.shape[2:]) for array in arrays])[None]

    return dataclasses.replace(
        first,
        epsilons=(math.inf,),
        guarantees=first.guarantees[:1],
        pair_coef=flat([path.pair_coef for path in paths]),
        intercept=flat([path.intercept for path in paths]),
    )


def _accuracy(path: ReleasedPath, epsilon_index: int, Z: np.ndarray, signs: np.ndarray) -> np.ndarray:
    codes = path.codes(path.scores(Z, epsilon_index))
    return (codes == (signs > 0)).mean(axis=1)


def accuracies(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Test accuracies of all methods for one training set.

    Parameters: ``dataset, train, test`` (name, part, positive label), ``n_train, n_test, n_features, scaling, C,
    gamma`` (None: 1 / features, LIBSVM's default), ``tol, epsilons, repeats, variants`` (name to parameters of
    DPSVMDVP), ``private_svm`` (parameters), ``seed``. Result: ``SVM`` (accuracy), ``variants`` (name to (E, R)
    accuracies), ``PrivateSVM`` (E, R).
    """
    X, signs, Z, Z_signs = _data(parameters, context)
    gamma = parameters["gamma"] or 1.0 / X.shape[1]
    solution, paths = _variant_paths(parameters, context, gamma, X, signs)
    support = np.flatnonzero(solution.alpha > 0)
    exact = dataclasses.replace(
        next(iter(paths.values())),
        pair_coef=(signs * solution.alpha)[support][None, None, :, None],
        intercept=np.full((1, 1, 1), -solution.rho),
    )
    # The exact model first, then all draws of all variants.
    scores = _accuracy(_together([exact, *paths.values()]), 0, Z, Z_signs)
    tables = scores[1:].reshape(len(paths), len(parameters["epsilons"]), parameters["repeats"])
    private = _private_svm(parameters, X).release_path(
        X, (signs > 0).astype(int), parameters["epsilons"], parameters["repeats"],
        functools.partial(_noise, parameters, context, "PrivateSVM"),
    )  # fmt: skip
    return {
        "SVM": float(scores[0]),
        "variants": {name: tables[index].tolist() for index, name in enumerate(paths)},
        "PrivateSVM": [_accuracy(private, index, Z, Z_signs).tolist() for index in range(len(private.epsilons))],
    }


def _noise(parameters: Mapping[str, Any], context: Context, name: str, epsilon: float, repeat: int):
    """Random stream of one draw of a method."""
    return context.stream(parameters["seed"], *_purpose(parameters), name, epsilon, repeat)


def _variant_paths(
    parameters: Mapping[str, Any], context: Context, gamma: float, X: np.ndarray, signs: np.ndarray
) -> tuple[CSVCSolution, dict[str, KernelPath]]:
    """Solve exactly once; return the solution, and the models that each variant of DPSVMDVP releases around it."""
    solutions: list[CSVCSolution] = []
    paths = {}
    for name, variant in parameters["variants"].items():
        estimator = _OneSolve(
            solutions=solutions,
            C=parameters["C"],
            gamma=gamma,
            tol=parameters["tol"],
            cache_size=1000.0,
            allow_unsound=True,
            classes=[0, 1],
            **variant,
        )
        paths[name] = estimator.release_path(
            X,
            (signs > 0).astype(np.int64),
            parameters["epsilons"],
            parameters["repeats"],
            functools.partial(_noise, parameters, context, name),
        )
    return solutions[0], paths


def _private_svm(parameters: Mapping[str, Any], X: np.ndarray) -> PrivateSVMRBFLaplaceClassifier:
    gamma = parameters["gamma"] or 1.0 / X.shape[1]
    return PrivateSVMRBFLaplaceClassifier(gamma=gamma, classes=[0, 1], **parameters["private_svm"])


def _purpose(parameters: Mapping[str, Any]) -> tuple[str | int | float, ...]:
    """Key of a job's noise: the parameters that tell its training set from others."""
    return (
        parameters["dataset"],
        parameters["scaling"],
        # The order of the rows.
        "file",
        parameters["n_train"] or 0,
        parameters["n_features"] or 0,
        float(parameters["C"]),
    )
