"""Noisy gradient steps out of core, with the bits of `noisy_gradient`.

The clipped gradients of a block add up to whole numbers, as do those of all blocks, in any order. Whether a step draws
a row is told by a word that belongs to the row's number. Noise is drawn once a step, where the sums come together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from privsvm.numerics.compiled.vector_random import BUFFER
from privsvm.numerics.noise.exact_draws import sample_block
from privsvm.numerics.noise.noise_source import NO_TAPE, NoiseSource, as_source
from privsvm.numerics.noise.rounded_normals import open_rounded_stream
from privsvm.numerics.rows.centred_grid import CentredCells
from privsvm.numerics.rows.row_blocks import RowsByBlock, mapped
from privsvm.numerics.rows.sparse_rows import PADDING
from privsvm.solvers.gradients.clipped_gradients import (
    SHARE_BITS,
    Layout,
    Objective,
    add_batch,
    is_reduced,
    round_weights,
    scratch_memory,
    set_inside_regulariser,
    view_weights,
    weight_scale,
)
from privsvm.solvers.gradients.noisy_gradient import (
    DENSE,
    GradientSteps,
    blocks_of_one,
    dense_unit_cells,
    objective_of,
    optimizer_of,
    parts_of,
    sampling_of,
    schedule_of,
    stored_rows,
    threshold_of,
)
from privsvm.solvers.gradients.noisy_steps import Memory, Sampling, finish_step

__all__ = ["block_gradient_steps"]


class _Setup(NamedTuple):
    """Settings of all steps, which every worker gets."""

    layout: Layout
    objective: Objective
    key: np.ndarray
    any_drawn: bool
    all_drawn: bool
    last: int


def _prepared(rows: Any, scale: float) -> tuple[Any, np.ndarray, np.ndarray]:
    return rows.unit(scale) if isinstance(rows, CentredCells) else dense_unit_cells(rows, scale)


def _drawn(setup: _Setup, step: int, first: int, n_rows: int) -> np.ndarray:
    """Rows of a block that a step draws."""
    batch = np.arange(n_rows)
    if setup.all_drawn:
        return batch
    if not setup.any_drawn:
        return batch[:0]
    bits = np.empty(BUFFER, dtype=np.uint64)
    return batch[: sample_block(setup.key, step, np.uint64(setup.last), first, n_rows, bits, batch)]


def _gradients_of_block(
    prepared: tuple[Any, np.ndarray, np.ndarray], codes: np.ndarray, setup: _Setup, weights: np.ndarray,
    step: int, first: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Sum clipped gradients of a block, and the regulariser's share of them."""
    layout, objective = setup[:2]
    n_rows, size = codes.shape[0], weights.shape[0]
    batch = _drawn(setup, step, first, n_rows)
    totals, share = np.zeros(size, dtype=np.int64), np.zeros(2, dtype=np.int64)
    if batch.size == 0:
        return totals, share
    if isinstance(prepared[0], CentredCells):
        # Memory: only drawn rows become dense.
        cells, constants, norms = prepared if setup.all_drawn else (array[batch] for array in prepared)
        prepared, codes = (cells.toarray().astype(DENSE), constants, norms), codes[batch]
        batch = np.arange(batch.size)
    rows = stored_rows(*prepared, codes)
    worked, out = np.zeros(size + PADDING)[:size], np.zeros(size + PADDING)[:size]
    scale, reduced, regulariser = weight_scale(weights), is_reduced(rows, objective), np.zeros(size)
    features = (0, layout.n_features)
    if objective.inside:
        set_inside_regulariser(weights, scale, layout, objective, *features, regulariser)
    view = view_weights(weights, scale, layout, objective, regulariser)
    round_weights(weights, layout, scale, False, reduced, 0, layout.n_vectors - int(reduced), worked)
    # A team of one thread needs no barrier.
    team, scratch = (1, np.empty(0, dtype=np.int64)), scratch_memory(layout.n_vectors)
    add_batch(
        0, team, rows, batch, batch[:0], worked, layout, objective, view, scratch,
        blocks_of_one(batch.size, layout.n_vectors), features, out, share, totals,
    )  # fmt: skip
    return totals, share


def block_gradient_steps(
    X: RowsByBlock,
    codes: Any,
    n_classes: int,
    steps: GradientSteps,
    rng: NoiseSource | np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Train from zero, as `noisy_gradient_steps` does for dense rows.

    Parameters
    ----------
    X : RowsByBlock (n, d)
        Rows; finite.
    codes : array-like of int (n,)
        Class codes ``0..n_classes-1``, of any integer type; with one vector (`n_classes` 1) 0 and 1.
    n_classes : int
        Number of weight vectors c.
    steps : GradientSteps
        Settings.
    rng : NoiseSource or numpy.random.Generator
        Keys the two streams of the run.

    Returns
    -------
    coef : ndarray (c, d)
    intercept : ndarray (c,)
        What is added to the scores, the constant feature's value included.
    """
    n_rows, n_features = X.shape
    scale = float(steps.intercept_scale) if steps.fit_intercept else 0.0
    rows = mapped(X, _prepared, scale).keep()
    layout = Layout(n_classes, n_features, vector_stride=n_features, feature_stride=1)
    objective, optimizer = objective_of(steps, n_classes, n_features), optimizer_of(steps)
    schedule = schedule_of(steps, n_classes * (n_features + int(steps.fit_intercept)))
    size = n_classes * (n_features + 1)
    source = NoiseSource(as_source(rng).next_key())
    sampling_key, noise_key = (source.part(name).next_key() for name in ("sampling", "noise"))
    sampling: Sampling = sampling_of(threshold_of(steps), sampling_key, n_rows)
    setup = _Setup(layout, objective, sampling.key, sampling.any_drawn, sampling.all_drawn, int(sampling.last))
    noise, average = open_rounded_stream(noise_key), np.zeros(size)
    memory = Memory(
        weights=np.zeros(size),
        gradient=np.zeros(size + PADDING)[:size],
        first=np.zeros(size),
        second=np.zeros(size),
        worked=np.zeros(size + PADDING)[:size],
        regulariser=np.zeros(size),
        totals=np.zeros(size, dtype=np.int64),
    )
    no_cells = np.empty((0, n_features), dtype=DENSE), np.empty(0), np.empty(0)
    no_rows = stored_rows(*no_cells, np.empty(0, dtype=np.int64))
    used = size if steps.fit_intercept else size - n_classes
    for t in range(steps.n_steps):
        totals, share = rows.total(_gradients_of_block, codes, arguments=(setup, memory.weights.copy(), t))
        share[0] += share[1] >> SHARE_BITS
        share[1] &= (1 << SHARE_BITS) - 1
        memory.totals[:] = totals
        finish_step(
            t, no_rows, layout, objective, schedule, optimizer, share, noise, t * used, memory, average, NO_TAPE, t
        )  # fmt: skip
    coef, intercept = parts_of(average, layout, steps.intercept_scale)
    return coef, intercept
