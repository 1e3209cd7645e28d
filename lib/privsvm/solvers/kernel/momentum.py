"""The last steps of a solver by working sets, summed up with the best weights to one more step.

A step by blocks of variables leaves what all blocks have in common: the large eigenvalues of a kernel matrix, for which
each block alone corrects too little or too much. The steps' effects on the values are known, so that the best step in
their span costs no kernel value. Source: for a quadratic problem these are the directions of conjugate gradients
(Nocedal and Wright 2006, section 5.1), kept to the bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["RecentSteps"]

# Steps that are remembered.
_REMEMBERED = 32

# Steps are taken anew so often where a variable reaches its bound on the way.
_ROUNDS = 4

# What a step moves into bounds costs kernel rows: at most this share of those of the steps.
_CORRECTED = 0.1

# Kernel rows that are computed together.
_FILLED = 256

# Added to the diagonal of the steps' products, as a share of the largest.
_RIDGE = 1e-10


class RecentSteps:
    """Steps of all variables of one problem, and what they took from its values."""

    def __init__(self) -> None:
        self._steps: list[np.ndarray] = []
        self._effects: list[np.ndarray] = []

    def forget(self) -> None:
        """Forget all steps: the variables are others now."""
        self._steps.clear()
        self._effects.clear()

    def add(self, step: np.ndarray, effect: np.ndarray) -> None:
        """Remember a step (n,) and its effect (n,), the kernel matrix times the step; the oldest goes."""
        if len(self._steps) == _REMEMBERED:
            del self._steps[0], self._effects[0]
        self._steps.append(step)
        self._effects.append(effect)

    def improve(self, rows: Any, beta: np.ndarray, values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Take the best steps in the span of these that keep to the bounds; change `beta` and `values` in place.

        Parameters
        ----------
        rows : KernelRows (n)
            The rows.
        beta, values : ndarray (n,)
            Variables, and values as in `privsvm.solvers.kernel.block_smo`.
        lower, upper : ndarray (n,)
            Bounds.
        """
        for _ in range(_ROUNDS):
            if len(self._steps) < 2 or not self._leave_bounds(rows, (beta <= lower) | (beta >= upper)):
                return
            step, effect = self._best(values)
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(step > 0, (upper - beta) / step, (lower - beta) / step)
            room[step == 0] = np.inf
            share = min(1.0, float(room.min()))
            # A variable that reaches its bound is set to it exactly.
            target = np.where(room <= share, np.where(step > 0, upper, lower), beta + share * step)
            beta[:] = np.clip(target, lower, upper)
            values -= share * effect
            if share == 1.0:
                return

    def _leave_bounds(self, rows: Any, bounded: np.ndarray) -> bool:
        """Take variables at their bounds out of the steps; forget these instead where that would cost too much."""
        held = np.flatnonzero(bounded & np.any([step != 0 for step in self._steps], axis=0))
        if held.size > _CORRECTED * sum(np.count_nonzero(step) for step in self._steps):
            self.forget()
            return False
        for start in range(0, held.size, _FILLED):
            part = held[start : start + _FILLED]
            matrix = np.empty((part.size, bounded.size), rows.dtype)
            rows.fill(matrix, np.arange(part.size), part)
            for step, effect in zip(self._steps, self._effects, strict=True):
                effect -= step[part] @ matrix
                step[part] = 0.0
        return True

    def _best(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of the steps that lowers the objective most and keeps the variables' sum, and its effect."""
        steps, effects = np.array(self._steps), np.array(self._effects)
        products, count = steps @ effects.T, len(steps)
        system = np.zeros((count + 1, count + 1))
        system[:count, :count] = 0.5 * (products + products.T)
        system[:count, :count] += _RIDGE * products.diagonal().max() * np.eye(count)
        system[count, :count] = system[:count, count] = steps.sum(axis=1)
        weights = np.linalg.lstsq(system, np.append(steps @ values, 0.0))[0][:count]
        return weights @ steps, weights @ effects
