"""Gradient perturbation with the released protocol."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.numerics.noise.noise_source import as_source
from privsvm.privacy.accounting import calibrate_sampled_gaussian
from privsvm.solvers.gradients.noisy_gradient import GradientSteps, noisy_gradient_steps
from reproduce.engine.context import Context
from reproduce.pmsvm.runs.shared import accuracy_of, scaled, split_rows

# A norm that no gradient reaches: no clipping.
NO_CLIPPING = 1e100


def batches_per_epoch(n_rows: int, batch: int | None) -> int:
    """Count the steps of one epoch: one over the probability with which a step draws a row; None draws all rows."""
    return 1 if batch is None else math.ceil(n_rows / min(batch, n_rows))


def noise_multiplier(epsilon: float, delta: float, n_rows: int, batch: int | None, epochs: int) -> float:
    """Noise of Poisson-sampled steps over the clipping norm, for add_remove; 0 for an infinite epsilon."""
    if math.isinf(epsilon):
        return 0.0
    per_epoch = batches_per_epoch(n_rows, batch)
    return calibrate_sampled_gaussian(epsilon, delta, 1.0 / per_epoch, epochs * per_epoch, "add_remove")


def released_softmax(
    X: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    training: Mapping[str, Any],
    multiplier: float,
    rng: np.random.Generator,
    record_every: int = 0,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Softmax regression by noisy clipped steps, as the released scripts train their "support vector machine".

    It minimises the mean of the cross-entropy over rows *and* classes, from random weights and offsets, without a
    regulariser: its gradient does not reach the private step there.

    `X` has shape (n, d), with class codes (n,). `training` has ``loss_weight`` of a row's cross-entropy (None: 1 / c),
    ``optimizer`` (``"sgd"`` or ``"adam"``), ``learning_rate``, ``epochs``, ``batch`` (None: all rows), ``clip``,
    ``schedule`` (``"constant"`` or ``"linear"``, which falls to 0 by epochs). `multiplier` is noise over the clipping
    norm; 0: neither noise nor clipping. `rng` draws first the start, then for every step the rows and the noise.

    Returns weights (c, d + 1), with offsets in the last column, and the same after every `record_every` steps if
    positive.
    """
    n, d = X.shape
    rows = np.hstack([X, np.ones((n, 1))])
    norms = np.linalg.norm(rows, axis=1)
    per_epoch = batches_per_epoch(n, training["batch"])
    rate, expected = 1.0 / per_epoch, max(int(n / per_epoch), 1)
    weight = 1.0 / n_classes if training["loss_weight"] is None else training["loss_weight"]
    clip, noise = (training["clip"], multiplier * training["clip"]) if multiplier else (NO_CLIPPING, 0.0)
    # The starting values of PyTorch's linear layer.
    coef = rng.uniform(-1.0, 1.0, (n_classes, d + 1)) / math.sqrt(d)
    adam = Adam(coef.shape) if training["optimizer"] == "adam" else None
    records = []
    for step in range(training["epochs"] * per_epoch):
        drawn = np.flatnonzero(rng.random(n) < rate)
        gradient = _sum_clipped(coef, rows[drawn], norms[drawn], codes[drawn], weight, clip)
        if noise:
            gradient += noise * rng.standard_normal(coef.shape)
        gradient /= expected
        fallen = 1.0 - (step // per_epoch) / training["epochs"] if training["schedule"] == "linear" else 1.0
        coef -= training["learning_rate"] * fallen * (gradient if adam is None else adam.direction(gradient))
        if record_every and (step + 1) % record_every == 0:
            records.append(coef.copy())
    return coef, records


def _sum_clipped(
    coef: np.ndarray, rows: np.ndarray, norms: np.ndarray, codes: np.ndarray, weight: float, clip: float
) -> np.ndarray:
    """Sum over rows of the weighted cross-entropy's gradients (c, d + 1), each clipped as Opacus does."""
    scores = rows @ coef.T
    scores -= scores.max(axis=1, keepdims=True, initial=-np.inf)
    slopes = np.exp(scores)
    slopes /= slopes.sum(axis=1, keepdims=True)
    slopes[np.arange(codes.size), codes] -= 1.0
    slopes *= weight
    slopes *= np.minimum(1.0, clip / (np.linalg.norm(slopes, axis=1) * norms + 1e-6))[:, None]
    return slopes.T @ rows


class Adam:
    """Moving averages of gradients and of their squares, with PyTorch's constants."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = np.float64):
        self.first, self.second, self.steps = np.zeros(shape, dtype), np.zeros(shape, dtype), 0

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Take in a gradient; return the direction to subtract from the weights."""
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        mean = self.first / (1.0 - 0.9**self.steps)
        return mean / (np.sqrt(self.second / (1.0 - 0.999**self.steps)) + 1e-8)


def engine_steps(
    X: np.ndarray, codes: np.ndarray, n_vectors: int, training: Mapping[str, Any], multiplier: float, rng
) -> np.ndarray:
    """Weights and offsets (c, d + 1) of the library's own steps, which start at zero."""
    per_epoch = batches_per_epoch(len(codes), training["batch"])
    steps = GradientSteps(
        loss=training["loss"],
        smoothing=training.get("smoothing", 0.1),
        loss_weight=1.0 / n_vectors if training["loss_weight"] is None else training["loss_weight"],
        margin_weight=training.get("margin_weight", 0.0),
        regulariser=training.get("regulariser", "outside"),
        max_grad_norm=training["clip"] if multiplier else NO_CLIPPING,
        noise_scale=multiplier * training["clip"],
        sample_rate=1.0 / per_epoch,
        n_steps=training["epochs"] * per_epoch,
        expected_batch=len(codes) / per_epoch,
        optimizer=training["optimizer"],
        learning_rate=training["learning_rate"],
        schedule=training["schedule"],
    )
    result = noisy_gradient_steps(X, codes, n_vectors, steps, as_source(rng))
    return np.column_stack([result.coef, result.intercept])


def train_released(
    X: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    training: Mapping[str, Any],
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Weights and offsets (c, d + 1) of one private training."""
    plan = (len(codes), training["batch"], training["epochs"])
    if training["loss"] == "one_vs_rest_hinge":
        # Every class alone, with epsilon / c and, as the baselines of the released scripts, the whole delta.
        multiplier = noise_multiplier(epsilon / n_classes, delta, *plan)
        problems = ((codes == code).astype(np.int64) for code in range(n_classes))
        return np.concatenate([engine_steps(X, problem, 1, training, multiplier, rng) for problem in problems])
    multiplier = noise_multiplier(epsilon, delta, *plan)
    if training["start"] == "random":
        return released_softmax(X, codes, n_classes, training, multiplier, rng)[0]
    return engine_steps(X, codes, n_classes, training, multiplier, rng)


def scores_of(rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Decision values (n, c) of weights with offsets in the last column."""
    return rows @ coef[:, :-1].T + coef[:, -1]


def run_gradient(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Models of gradient perturbation: one split, several draws of noise, as released."""
    rows = context.class_rows(*parameters["source"])
    n_classes = int(rows.codes.max()) + 1

    def compute(name: str, training: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
        X = scaled(rows.X, training["scaling"])
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], parameters["split"])
        results = []
        for repeat in range(parameters["runs"]):
            stream = context.stream(
                parameters["seed"], parameters["dataset"], name, parameters["split"], epsilon, repeat
            )
            coef = train_released(train, y_train, n_classes, training, epsilon, parameters["delta"], stream)
            results.append([accuracy_of(scores_of(test, coef), y_test), accuracy_of(scores_of(train, coef), y_train)])
        accuracy, training_accuracy = np.transpose(results).tolist()
        return {"accuracy": accuracy, "training accuracy": training_accuracy, "n_test": len(y_test)}

    common = {key: parameters[key] for key in ("dataset", "source", "test_size", "split", "runs", "seed", "delta")}
    epsilons = [math.inf if epsilon is None else epsilon for epsilon in parameters["epsilons"]]
    variants: dict[str, list[dict[str, Any]]] = {}
    for name, training in parameters["variants"].items():
        variants[name] = [
            context.part(
                {**common, "name": name, "training": training, "epsilon": str(epsilon)},
                functools.partial(compute, name, training, epsilon),
            )
            for epsilon in epsilons
        ]
    return {"variants": variants}


def run_curves(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Loss, training and test accuracy after each epoch, means of some runs."""
    rows = context.class_rows(*parameters["source"])
    n_classes = int(rows.codes.max()) + 1
    variants: dict[str, list[dict[str, Any]]] = {}
    for name, training in parameters["variants"].items():
        X = scaled(rows.X, training["scaling"])
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], parameters["split"])
        per_epoch = batches_per_epoch(len(y_train), training["batch"])
        variants[name] = []
        for epsilon in parameters["epsilons"]:
            multiplier = noise_multiplier(
                epsilon, parameters["delta"], len(y_train), training["batch"], training["epochs"]
            )
            runs = []
            for repeat in range(parameters["runs"]):
                stream = context.stream(
                    parameters["seed"], parameters["dataset"], name, parameters["split"], epsilon, repeat
                )
                records = released_softmax(train, y_train, n_classes, training, multiplier, stream, per_epoch)[1]
                runs.append(
                    [
                        (
                            _cross_entropy(scores_of(train, coef), y_train) / n_classes,
                            accuracy_of(scores_of(train, coef), y_train),
                            accuracy_of(scores_of(test, coef), y_test),
                        )
                        for coef in records
                    ]
                )
            loss, train_accuracy, test_accuracy = np.mean(runs, axis=0).T.tolist()
            steps = [per_epoch * (epoch + 1) for epoch in range(training["epochs"])]
            variants[name].append(
                {"steps": steps, "loss": loss, "training accuracy": train_accuracy, "accuracy": test_accuracy}
            )
    return {"variants": variants}


def _cross_entropy(scores: np.ndarray, codes: np.ndarray) -> float:
    """Mean cross-entropy of scores (n, c)."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(codes.size), codes]))
