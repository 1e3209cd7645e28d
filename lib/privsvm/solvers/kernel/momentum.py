"""Momentum for a working-set solver: the best step in the span of the last ones.

Block coordinate descent converges slowly along the eigenvectors of large eigenvalues of the kernel matrix, which all
blocks share: each block alone corrects too little or too much. The effects of the last steps on the values are stored,
so that the best step in their span costs no kernel value. Source: for a quadratic problem these are the directions of
conjugate gradients (Nocedal and Wright 2006, section 5.1), kept to the bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["RecentSteps"]

# Steps that are stored.
_MAX_STEPS = 32

# Rounds of a step that is shortened where a variable reaches its bound.
_MAX_ROUNDS = 4

# Most kernel rows computed to remove bounded variables from the steps, as a share of the steps' nonzero entries.
_CORRECTED_SHARE = 0.1

# Kernel rows that are computed together.
_BLOCK_ROWS = 256

# Ridge on the diagonal of the steps' products, as a share of the largest entry.
_RIDGE = 1e-10


class RecentSteps:
    """Steps of all variables of one problem, and their effects on its values."""

    def __init__(self) -> None:
        self._steps: list[np.ndarray] = []
        self._effects: list[np.ndarray] = []

    def forget(self) -> None:
        """Drop all steps, since the set of variables has changed."""
        self._steps.clear()
        self._effects.clear()

    def add(self, step: np.ndarray, effect: np.ndarray) -> None:
        """Store a step (n,) and its effect (n,), matrix times step; drop the oldest."""
        if len(self._steps) == _MAX_STEPS:
            del self._steps[0], self._effects[0]
        self._steps.append(step)
        self._effects.append(effect)

    def improve(self, rows: Any, beta: np.ndarray, values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Take the best steps in the span of these that keep to the bounds.

        Change `beta` and `values` in place.

        Parameters
        ----------
        rows : KernelRows (n)
            The rows.
        beta, values : ndarray (n,)
            Variables, and values as in `privsvm.solvers.kernel.block_smo`.
        lower, upper : ndarray (n,)
            Bounds.
        """
        for _ in range(_MAX_ROUNDS):
            if len(self._steps) < 2 or not self._leave_bounds(rows, (beta <= lower) | (beta >= upper)):
                return
            step, effect = self._best(values)
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(step > 0, (upper - beta) / step, (lower - beta) / step)
            room[step == 0] = np.inf
            share = min(1.0, float(room.min()))
            # Round-off: a variable that reaches its bound is set to it exactly.
            target = np.where(room <= share, np.where(step > 0, upper, lower), beta + share * step)
            beta[:] = np.clip(target, lower, upper)
            values -= share * effect
            if share == 1.0:
                return

    def _leave_bounds(self, rows: Any, bounded: np.ndarray) -> bool:
        """Remove variables at their bounds from the steps.

        Drop the steps instead where that would cost too much.
        """
        held = np.flatnonzero(bounded & np.any([step != 0 for step in self._steps], axis=0))
        if held.size > _CORRECTED_SHARE * sum(np.count_nonzero(step) for step in self._steps):
            self.forget()
            return False
        for start in range(0, held.size, _BLOCK_ROWS):
            block = held[start : start + _BLOCK_ROWS]
            matrix = np.empty((block.size, bounded.size), rows.dtype)
            rows.fill(matrix, np.arange(block.size), block)
            for step, effect in zip(self._steps, self._effects, strict=True):
                effect -= step[block] @ matrix
                step[block] = 0.0
        return True

    def _best(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the best sum of steps that keeps the variables' sum, and its effect."""
        steps, effects = np.array(self._steps), np.array(self._effects)
        products, count = steps @ effects.T, len(steps)
        system = np.zeros((count + 1, count + 1))
        system[:count, :count] = 0.5 * (products + products.T)
        system[:count, :count] += _RIDGE * products.diagonal().max() * np.eye(count)
        system[count, :count] = system[:count, count] = steps.sum(axis=1)
        weights = np.linalg.lstsq(system, np.append(steps @ values, 0.0))[0][:count]
        return weights @ steps, weights @ effects
