"""Gradient perturbation with the released protocol."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

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


@functools.cache
def noise_multiplier(epsilon: float, delta: float, n_rows: int, batch: int | None, epochs: int) -> float:
    """Noise of Poisson-sampled steps over the clipping norm, for add_remove; 0 for an infinite epsilon."""
    if math.isinf(epsilon):
        return 0.0
    per_epoch = batches_per_epoch(n_rows, batch)
    return calibrate_sampled_gaussian(epsilon, delta, 1.0 / per_epoch, epochs * per_epoch, "add_remove")


def train_linear(
    X: np.ndarray | scipy.sparse.csr_array,
    codes: np.ndarray,
    n_classes: int,
    training: Mapping[str, Any],
    multiplier: float,
    stream: np.random.Generator,
    dtype: Any = np.float32,
) -> list[np.ndarray]:
    """Train a linear layer by noisy clipped steps, as the released scripts do, in single precision as PyTorch does.

    It minimises the mean of the cross-entropy over rows *and* classes, or of PyTorch's ``multi_margin_loss``, from
    random weights and offsets, without a regulariser: its gradient does not reach the private step there.

    `X` has shape (n, d), with class codes (n,); sparse rows stay sparse. `training` has ``loss``, ``loss_weight`` of a
    row (None: 1 / c), ``optimizer`` (``"sgd"`` or ``"adam"``), ``learning_rate``, ``epochs``, ``batch`` (None: all
    rows), ``clip``, ``schedule`` (``"constant"`` or ``"linear"``, which falls to 0 by epochs). `multiplier` is noise
    over the clipping norm; 0: neither noise nor clipping. `stream` draws the start, and seeds rows and noise of the
    steps.

    Returns weights (c, d + 1) after each epoch, with offsets in the last column.
    """
    n, d = X.shape
    sparse = scipy.sparse.issparse(X)
    if sparse:
        rows: Any = scipy.sparse.hstack([X, np.ones((n, 1))]).tocsr().astype(dtype)
        norms = np.sqrt(rows.multiply(rows).sum(axis=1)).astype(dtype).ravel()
    else:
        rows = np.hstack([X, np.ones((n, 1))]).astype(dtype)
        norms = np.linalg.norm(rows, axis=1)
    per_epoch = batches_per_epoch(n, training["batch"])
    rate, expected = 1.0 / per_epoch, max(int(n / per_epoch), 1)
    weight = dtype(1.0 / n_classes if training["loss_weight"] is None else training["loss_weight"])
    clip, noise = (training["clip"], multiplier * training["clip"]) if multiplier else (NO_CLIPPING, 0.0)
    # Single precision has no larger number.
    limit = dtype(min(clip, 1e30))
    # The starting values of PyTorch's linear layer.
    coef = (stream.uniform(-1.0, 1.0, (n_classes, d + 1)) / math.sqrt(d)).astype(dtype)
    # Normal numbers are most of the work, and twice as fast from this generator.
    rng = np.random.Generator(np.random.SFC64([int(word) for word in stream.integers(2**32, size=4)]))
    adam = Adam(coef.shape, dtype) if training["optimizer"] == "adam" else None
    records = []
    for step in range(training["epochs"] * per_epoch):
        drawn = slice(None) if per_epoch == 1 else np.flatnonzero(rng.random(n, dtype=dtype) < rate)
        batch, batch_codes = rows[drawn] if sparse or per_epoch == 1 else rows.take(drawn, axis=0), codes[drawn]
        slopes = differentiate(batch @ coef.T, batch_codes, training["loss"])
        slopes *= weight
        # Opacus clips so.
        lengths = np.sqrt(np.einsum("ij,ij->i", slopes, slopes)) * norms[drawn] + dtype(1e-6)
        slopes *= np.minimum(dtype(1.0), limit / lengths)[:, None]
        gradient = (batch.T @ slopes).T if sparse else slopes.T @ batch
        if noise:
            gradient = gradient + dtype(noise) * rng.standard_normal(coef.shape, dtype=dtype)
        gradient /= dtype(expected)
        fallen = 1.0 - (step // per_epoch) / training["epochs"] if training["schedule"] == "linear" else 1.0
        coef -= dtype(training["learning_rate"] * fallen) * (gradient if adam is None else adam.direction(gradient))
        if (step + 1) % per_epoch == 0:
            records.append(coef.copy())
    return records


def differentiate(scores: np.ndarray, codes: np.ndarray, loss: str) -> np.ndarray:
    """Return the derivatives of each row's loss by its scores (n, c), which are overwritten.

    `loss` is "softmax", the cross-entropy, or "multi_margin", c times PyTorch's ``multi_margin_loss``.
    """
    own = np.arange(codes.size), codes
    if loss == "multi_margin":
        slopes = (scores > scores[own][:, None] - 1.0).astype(scores.dtype)
        slopes[own] = 0.0
        slopes[own] = -slopes.sum(axis=1)
        return slopes
    scores -= scores.max(axis=1, keepdims=True, initial=-np.inf)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    scores[own] -= 1.0
    return scores


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
        return train_linear(X, codes, n_classes, training, multiplier, rng)[-1]
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
                records = train_linear(train, y_train, n_classes, training, multiplier, stream)
                runs.append(
                    [
                        (
                            mean_loss(scores_of(train, coef), y_train, training["loss"]) / n_classes,
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


def mean_loss(scores: np.ndarray, codes: np.ndarray, loss: str) -> float:
    """Mean over rows of the loss of `differentiate`, of scores (n, c)."""
    own = scores[np.arange(codes.size), codes]
    if loss == "multi_margin":
        # The own class has a margin of 1.
        return float(np.mean(np.maximum(scores - own[:, None] + 1.0, 0.0).sum(axis=1) - 1.0))
    highest = scores.max(axis=1)
    return float(np.mean(highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1)) - own))
