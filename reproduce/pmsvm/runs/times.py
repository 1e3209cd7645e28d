"""Times of fits and steps, beside the libraries that the paper used."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.methods.opera import OPERAClassifier
from privsvm.methods.pmsvm_wp import PMSVMWPClassifier
from reproduce.engine.context import Context
from reproduce.pmsvm.runs.gradient import batches_per_epoch, engine_steps
from reproduce.pmsvm.runs.shared import fit_liblinear, scaled, split_rows

# Rows are timed as sparse from this number of features and below this share of non-zero values.
SPARSE_FEATURES, SPARSE_SHARE = 100, 0.25


def _fastest(candidates: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Smallest processor time of each candidate in seconds, taking turns; a first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(repeats + 1):
        for name, candidate in candidates.items():
            started = time.process_time()
            candidate()
            if number:
                times[name].append(time.process_time() - started)
    return {name: min(values) for name, values in times.items()}


class TorchLinear:
    """The released training step: a linear layer under Opacus.

    `X` has shape (n, d). `n_classes` counts the outputs; with one, codes are 0 and 1. `batch` is the expected number of
    drawn rows. Raises ImportError if Opacus or PyTorch is not installed.
    """

    def __init__(self, X: np.ndarray, codes: np.ndarray, n_classes: int, batch: int):
        import torch
        from opacus import PrivacyEngine

        torch.set_num_threads(1)
        data = torch.utils.data.TensorDataset(
            torch.tensor(X, dtype=torch.float32), torch.tensor(codes, dtype=torch.long)
        )
        loader = torch.utils.data.DataLoader(data, batch_size=min(batch, len(codes)))
        layer = torch.nn.Linear(X.shape[1], n_classes)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model, self.optimizer, self.loader = PrivacyEngine().make_private(
                module=layer, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
            )
        self.n_classes, self.torch = n_classes, torch

    def epoch(self) -> int:
        """Make the steps of one epoch; returns how many."""
        steps = 0
        for rows, codes in self.loader:
            self.optimizer.zero_grad()
            scores = self.model(rows)
            if self.n_classes == 1:
                margin = 1.0 - (2.0 * codes.to(scores.dtype) - 1.0) * scores[:, 0]
                loss = (0.5 * (margin + self.torch.sqrt(margin**2 + 0.01))).mean()
            else:
                loss = self.torch.nn.functional.cross_entropy(scores, codes) / self.n_classes
            with warnings.catch_warnings():
                # Opacus sets hooks on a first layer, about which PyTorch warns.
                warnings.simplefilter("ignore", UserWarning)
                loss.backward()
            self.optimizer.step()
            steps += 1
        return steps


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Seconds of a fit, and milliseconds of a step, beside the libraries that the paper used."""
    rows = context.class_rows(*parameters["source"])
    X, split, batch = scaled(rows.X, "min_max"), parameters["split"], parameters["batch"]
    train, _, y_train, _ = split_rows(X, rows.codes, parameters["test_size"], split)
    if X.shape[1] >= SPARSE_FEATURES and np.count_nonzero(X) < SPARSE_SHARE * X.size:
        # Both sides then work on nonzero values only.
        train = scipy.sparse.csr_array(train)
    n_classes, C, repeats = int(rows.codes.max()) + 1, parameters["C"], parameters["repeats"]
    classes = list(range(n_classes))

    def fit(estimator: Callable[..., Any]) -> None:
        estimator(epsilon=1.0, C=C, classes=classes, random_state=0).fit(train, y_train)

    candidates: dict[str, Callable[[], object]] = {
        "PMSVM-WP": lambda: fit(PMSVMWPClassifier),
        "PMSVM-WP, LIBLINEAR": lambda: fit_liblinear(train, y_train, C, "crammer_singer", split),
        "OPERA, LIBLINEAR": lambda: fit_liblinear(train, y_train, C, "ovr", split),
        "OPERA": lambda: fit(OPERAClassifier),
    }
    missing = {}
    seconds = _fastest(candidates, repeats)

    gradient_rows = scaled(rows.X, parameters["scaling"])
    train, _, y_train, _ = split_rows(gradient_rows, rows.codes, parameters["test_size"], split)
    per_epoch = batches_per_epoch(len(y_train), batch)
    # Enough steps to make the set-up negligible.
    epochs = max(parameters["epochs"], math.ceil(parameters["least_steps"] / per_epoch))
    training = {
        "loss_weight": None, "clip": 1.0, "batch": batch, "optimizer": "sgd", "learning_rate": 0.1,
        "schedule": "constant", "epochs": epochs,
    }  # fmt: skip
    n_steps = epochs * per_epoch
    stream = context.stream(parameters["seed"], parameters["dataset"], "time")

    def one_vs_rest() -> None:
        for code in classes:
            hinge_training = {**training, "loss": "one_vs_rest_hinge"}
            engine_steps(train, (y_train == code).astype(np.int64), 1, hinge_training, 1.0, stream)

    steps: dict[str, Callable[[], object]] = {
        "PMSVM-GP": lambda: engine_steps(train, y_train, n_classes, {**training, "loss": "hinge"}, 1.0, stream),
        "GRPUA": one_vs_rest,
    }
    try:
        joint_model = TorchLinear(train, y_train, n_classes, batch)
        class_models = [TorchLinear(train, (y_train == code).astype(np.int64), 1, batch) for code in classes]
    except ImportError as error:
        missing["PMSVM-GP, Opacus"] = missing["GRPUA, Opacus"] = f"not installed: {error}"
    else:
        steps["PMSVM-GP, Opacus"] = lambda: [joint_model.epoch() for _ in range(epochs)]
        steps["GRPUA, Opacus"] = lambda: [model.epoch() for _ in range(epochs) for model in class_models]
    milliseconds = {name: 1e3 * fastest / n_steps for name, fastest in _fastest(steps, repeats).items()}
    return {
        "fit_seconds": seconds, "ms_per_iteration": milliseconds, "absent": missing, "n_classes": n_classes,
        "n_rows": len(y_train), "n_features": int(X.shape[1]),
    }  # fmt: skip
