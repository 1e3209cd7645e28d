"""Opacus: DP-SGD on a linear model and on one hidden layer of 64 units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from opacus import PrivacyEngine
from rows import unit_rows
from torch.utils.data import DataLoader, TensorDataset

Score = Callable[[np.ndarray], np.ndarray]
_EPOCHS = 20
_HIDDEN = 64


def _fit(model: torch.nn.Module, X: np.ndarray, y: np.ndarray, epsilon: float, delta: float, seed: int) -> Score:
    """Train 20 epochs with 16 batches, clipping norm 1, momentum 0.9, softmax."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    rows = TensorDataset(torch.tensor(unit_rows(X), dtype=torch.float32), torch.tensor(y, dtype=torch.int64))
    loader = DataLoader(rows, batch_size=max(len(y) // 16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    model, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        target_epsilon=epsilon,
        target_delta=delta,
        epochs=_EPOCHS,
        max_grad_norm=1.0,
    )
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(_EPOCHS):
        for batch, labels in loader:
            if not len(labels):
                continue
            optimizer.zero_grad()
            loss(model(batch), labels).backward()
            optimizer.step()

    def score(X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return torch.softmax(model(torch.tensor(unit_rows(X), dtype=torch.float32)), dim=1).numpy()

    return score


def linear(X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int) -> Score:
    """Train softmax regression."""
    torch.manual_seed(seed)
    return _fit(torch.nn.Linear(X.shape[1], n_classes), X, y, epsilon, delta, seed)


def hidden_layer(X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int) -> Score:
    """Train one hidden layer of tanh units, which suit clipped gradients."""
    torch.manual_seed(seed)
    layers = (torch.nn.Linear(X.shape[1], _HIDDEN), torch.nn.Tanh(), torch.nn.Linear(_HIDDEN, n_classes))
    return _fit(torch.nn.Sequential(*layers), X, y, epsilon, delta, seed)
