"""Opacus: one noisy step on all rows at epsilon 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from case import ADDED, DELTA, GAUSSIAN, Case, release
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch.utils.data import DataLoader, TensorDataset

PACKAGE = "opacus"
_MULTIPLIER = get_noise_multiplier(
    target_epsilon=1.0, target_delta=DELTA, sample_rate=1.0, steps=1, accountant="rdp", epsilon_tolerance=1e-4
)
torch.set_num_threads(1)


def _clip_average(optimizer: Any) -> None:
    """Clip the average gradient, not each row's."""
    for parameter in optimizer.params:
        average, rows = parameter.grad_sample.mean(dim=0), len(parameter.grad_sample)
        parameter.summed_grad = rows * average * torch.clamp(optimizer.max_grad_norm / (average.norm() + 1e-6), max=1.0)


def _step(width: int, reduction: str, average: bool = False) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Publish weights after a step whose gradient is as long as the row, before it is clipped."""

    def publish(X: np.ndarray, y: np.ndarray) -> Any:
        rows = TensorDataset(torch.tensor(X, dtype=torch.float32))
        model = torch.nn.Linear(1, width, bias=False)
        torch.nn.init.zeros_(model.weight)
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            data_loader=DataLoader(rows, batch_size=len(rows)),
            noise_multiplier=_MULTIPLIER,
            max_grad_norm=1.0,
            loss_reduction=reduction,
        )
        if average:
            optimizer.clip_and_accumulate = lambda: _clip_average(optimizer)
        for (batch,) in loader:
            optimizer.zero_grad()
            losses = model(batch).sum(dim=1)
            (losses.sum() if reduction == "sum" else losses.mean()).backward()
            optimizer.step()
        return model._module.weight.detach().numpy().ravel()

    return publish


CASES = [
    Case("one step, sums", release(_step(1, "sum")), 4000, options=GAUSSIAN),
    Case(
        "one step, the average gradient clipped",
        release(_step(1, "sum", average=True)),
        4000,
        source="planted, as in Tramèr et al., Debugging differential privacy (2022)",
        options=GAUSSIAN,
    ),
    Case(
        "one step, means of 2 or 3 rows, 64 weights",
        release(_step(64, "mean")),
        1000,
        source="meta-pytorch/opacus#571, #819: the number of rows divides sum and noise",
        options={**ADDED, "delta": DELTA},
    ),
]
