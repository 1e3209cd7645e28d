"""Weight perturbation with the released protocol: PMSVM-WP, OPERA, PrivateSVM."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.methods.opera_as_published import OPERAAsPublishedClassifier
from privsvm.methods.pmsvm_wp_as_published import PMSVMWPAsPublishedClassifier
from privsvm.privacy.accounting import gaussian_epsilon
from reproduce.engine.context import ClassRows, Context
from reproduce.pmsvm.runs.shared import accuracy_of, scaled, split_rows, without


def true_epsilon(noise_scale: float, C: float, largest_norm: float, delta: float) -> float:
    """Compute the exact epsilon of PMSVM-WP for its noise: the Gaussian mechanism with sensitivity ``2 sqrt(2) C R``.

    `noise_scale` is the standard deviation on every weight, and `largest_norm` the norm R of the longest row.
    Neighbours replace one row.
    """
    return gaussian_epsilon(noise_scale / (2.0 * math.sqrt(2.0) * C * largest_norm), delta)


class _Remembering:
    """Keeps the exact solutions of one job: many releases, one solve."""

    C: float

    def __init__(self, *, memory: dict[tuple[float, bytes, bytes], np.ndarray], **parameters: Any):
        super().__init__(**parameters)
        self.memory = memory

    def _solve_as_published(self, X, codes: np.ndarray, n_classes: int) -> np.ndarray:
        key = (self.C, hashlib.sha256(np.ascontiguousarray(X).data).digest(), codes.tobytes())
        if key not in self.memory:
            self.memory[key] = super()._solve_as_published(X, codes, n_classes)  # type: ignore[misc]
        return self.memory[key]


class _PMSVM(_Remembering, PMSVMWPAsPublishedClassifier):
    pass


class _OPERA(_Remembering, OPERAAsPublishedClassifier):
    pass


def _releases(
    parameters: Mapping[str, Any],
    context: Context,
    rows: ClassRows,
    X: np.ndarray,
    make: Callable[[], Any],
    purpose: Sequence[str | float],
    n_audited: int,
) -> dict[str, Any]:
    """Accuracies of one setting on all splits, for every epsilon; noise scales and witnesses of the first split."""
    result: dict[str, Any] = {"as released": [], "corrected": [], "noise_scale": [], "witness": []}

    def noise(split: int, epsilon: float, repeat: int) -> np.random.Generator:
        return context.stream(parameters["seed"], parameters["dataset"], *purpose, split, epsilon, repeat)

    for number, split in enumerate(parameters["splits"]):
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], split)
        model = make()
        path = model.release_path(
            train, y_train, parameters["epsilons"], 1, functools.partial(noise, split), audit=number < n_audited
        )
        scores = [path.scores(test, index)[0] for index in range(len(path.epsilons))]
        # As released: the number of the row of weights, although a class may be missing among the training rows.
        result["as released"].append([accuracy_of(score, y_test) for score in scores])
        result["corrected"].append([accuracy_of(score, y_test, model.classes_) for score in scores])
        if not number:
            result["noise_scale"] = [guarantee.noise_scale for guarantee in path.guarantees]
            result["witness"] = [
                guarantee.witness.epsilon if guarantee.witness else None for guarantee in path.guarantees
            ]
    return {**result, **{key: np.transpose(result[key]).tolist() for key in ("as released", "corrected")}}


def run_weight(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """PMSVM-WP as released, for several settings where the paper and its code disagree."""
    rows = context.class_rows(*parameters["source"])
    X = scaled(rows.X, "min_max")
    largest_norm = float(np.linalg.norm(X, axis=1).max())
    memory: dict[tuple[float, bytes, bytes], np.ndarray] = {}

    def compute(C: float, factor: float, n_audited: int) -> dict[str, Any]:
        # Rows are not clipped here, so that data_norm does nothing but scale the noise.
        make = functools.partial(
            _PMSVM, memory=memory, C=C, data_norm=factor, delta=parameters["delta"],
            allow_unsound=True,
        )  # fmt: skip
        return _releases(parameters, context, rows, X, make, ["PMSVM-WP", C, factor], n_audited)

    variants = {}
    for name, variant in parameters["variants"].items():
        numbers = (variant["C"], variant["noise_factor"], int(name == parameters["audited"]))
        key = {"parameters": without(parameters, "variants", "audited"), "numbers": numbers}
        variants[name] = context.part(key, functools.partial(compute, *numbers))
    first, C = variants[parameters["audited"]], parameters["variants"][parameters["audited"]]["C"]
    return {
        "variants": variants,
        "true_epsilon": [
            true_epsilon(noise, C, largest_norm, parameters["delta"]) for noise in first["noise_scale"]
        ],
        "n_rows": int(X.shape[0]),
    }  # fmt: skip


def run_one_vs_rest(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """OPERA and PrivateSVM as released: one program, but for how epsilon becomes noise."""
    rows = context.class_rows(*parameters["source"])
    X = scaled(rows.X, "min_max")
    memory: dict[tuple[float, bytes, bytes], np.ndarray] = {}

    def compute(method: str, C: float, factor: float, n_audited: int) -> dict[str, Any]:
        make = functools.partial(
            _OPERA, memory=memory, C=C, constant=factor, delta=parameters["delta"],
            calibration="analytic" if method == "OPERA" else "classic", allow_unsound=True,
        )  # fmt: skip
        return _releases(parameters, context, rows, X, make, [method, C, factor], n_audited)

    variants = {}
    for method in parameters["methods"]:
        for name, variant in parameters["variants"].items():
            numbers = (method, variant["C"], variant["sensitivity_factor"], int(name == parameters["audited"]))
            key = {"parameters": without(parameters, "variants", "methods", "audited"), "numbers": numbers}
            variants[f"{method}, {name}"] = context.part(key, functools.partial(compute, *numbers))
    return {"variants": variants, "n_rows": int(X.shape[0])}
