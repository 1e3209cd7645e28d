"""The compiled loop of noisy gradient steps, run by a team of threads.

Every member of the team draws a part of the rows. It computes slopes for some of those that all have drawn, adds up
gradients for its part of the features, and updates its part of the model. Sums and noise are whole numbers until both
are added up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.spin_barrier import meet
from privsvm.numerics.compiled.vector_random import BUFFER
from privsvm.numerics.noise.exact_draws import sample_block
from privsvm.numerics.noise.rounded_normals import load_rounded_normals
from privsvm.solvers.gradients.clipped_gradients import (
    add_batch,
    finish_sum,
    is_reduced,
    round_weights,
    set_inside_regulariser,
    set_regulariser,
    view_weights,
    weight_scale,
)

__all__ = ["OPTIMIZERS", "DrawnRows", "Memory", "Optimizer", "Sampling", "Schedule", "finish_step", "run_steps"]

OPTIMIZERS = ("sgd", "adam")
_SGD, _ADAM = range(2)


class Schedule(NamedTuple):
    """What happens in which step."""

    rates: np.ndarray
    # First step whose iterate is averaged.
    average_from: int
    # Sums are rounded to multiples of 2^shift, the cells of the noise.
    shift: int
    # Standard deviation of the noise in cells; 0 for none.
    sigma: float
    # Value of a cell, or without noise that of a unit of the sum.
    cell: float
    # Reciprocal of the expected number of rows.
    portion: float
    # Whether the regulariser's gradient is added after the noise.
    outside: bool


class Sampling(NamedTuple):
    """Poisson sampling: a row is drawn if its random word is at most `last`."""

    # ChaCha20 key, 8 uint32.
    key: np.ndarray
    # Whether any word draws a row.
    any_drawn: bool
    # Whether every word draws its row.
    all_drawn: bool
    last: np.uint64
    # Work space.
    bits: np.ndarray


class DrawnRows(NamedTuple):
    """Rows that the threads of a team have drawn, each from its range, for two steps."""

    # Row numbers (2, n_rows); those of a member begin at its first row, and count from there.
    rows: np.ndarray
    # Number of drawn rows of each member, (2, n_members).
    counts: np.ndarray


class Optimizer(NamedTuple):
    """Optimizer and its settings."""

    kind: int
    momentum: float
    beta1: float
    beta2: float
    epsilon: float


class Memory(NamedTuple):
    """Flat arrays as long as a model, which the team shares."""

    weights: np.ndarray
    gradient: np.ndarray
    # Moments of the optimizer.
    first: np.ndarray
    second: np.ndarray
    # Rounded weights in the form that `add_batch` works with.
    worked: np.ndarray
    regulariser: np.ndarray
    # Sums as whole numbers, int64.
    totals: np.ndarray


@jit_step(forceinline=True)
def _first_row(member, n_members, n_rows):
    """First row that a member draws: words are made for many rows at a time."""
    return n_rows if member == n_members else n_rows * member // n_members // BUFFER * BUFFER


@jit_step()
def _draw(sampling, step, n_rows, member, drawn):
    """Draw a member's range of the rows of a step.

    Those of the step before the last are overwritten.
    """
    if sampling.any_drawn and not sampling.all_drawn:
        half, n_members = step % 2, drawn.counts.shape[1]
        first, end = _first_row(member, n_members, n_rows), _first_row(member + 1, n_members, n_rows)
        rows = drawn.rows[half, first:end]
        drawn.counts[half, member] = sample_block(
            sampling.key, step, sampling.last, first, end - first, sampling.bits, rows
        )  # fmt: skip


@jit_step()
def _list(sampling, step, n_rows, drawn, batch):
    """List the rows that all members have drawn for a step; return how many."""
    if sampling.all_drawn:
        for i in range(n_rows):
            batch[i] = i
        return n_rows
    if not sampling.any_drawn:
        return 0
    half, n_members, total = step % 2, drawn.counts.shape[1], 0
    for member in range(n_members):
        first, count = _first_row(member, n_members, n_rows), drawn.counts[half, member]
        for i in range(count):
            batch[total + i] = first + drawn.rows[half, first + i]
        total += count
    return total


@jit_step()
def _record_rows(tape, step, n_rows, count, batch):
    """Record the `count` rows of a step, or replay others instead.

    Return their number.
    """
    drawn = tape.drawn[step]
    if tape.mode == 1:
        drawn[:] = 0
        for i in range(count):
            drawn[batch[i]] = 1
        return count
    count = 0
    for i in range(n_rows):
        batch[count] = i
        count += drawn[i]
    return count


@jit_step()
def _record_sums(tape, step, low, totals, half, shift, numbers):
    """Record sums and noisy sums from number `low` on, or replay the latter."""
    for i in range(totals.shape[0]):
        exact = (totals[i] + half) >> shift
        tape.sums[step, low + i] = exact
        if tape.mode == 1:
            tape.noisy[step, low + i] = exact + numbers[i]
        else:
            numbers[i] = tape.noisy[step, low + i] - exact


@jit_step(forceinline=True)
def _update(t, rate, gradient, weights, first, second, optimizer):
    """Take one step of the optimizer along `gradient`."""
    if optimizer.kind == _ADAM:
        beta1, beta2 = optimizer.beta1, optimizer.beta2
        correct_1, correct_2 = 1.0 / (1.0 - beta1 ** (t + 1)), 1.0 / (1.0 - beta2 ** (t + 1))
        for i in range(weights.shape[0]):
            g = gradient[i]
            first[i] = beta1 * first[i] + (1.0 - beta1) * g
            second[i] = beta2 * second[i] + (1.0 - beta2) * g * g
            weights[i] -= rate * (first[i] * correct_1) / (np.sqrt(second[i] * correct_2) + optimizer.epsilon)
    elif optimizer.momentum > 0.0:
        for i in range(weights.shape[0]):
            first[i] = optimizer.momentum * first[i] + gradient[i]
            weights[i] -= rate * first[i]
    else:
        for i in range(weights.shape[0]):
            weights[i] -= rate * gradient[i]


@jit_step()
def _take_step(t, schedule, optimizer, low, high, noise, first_number, memory, average, tape, step):
    """Take a step along the sum of gradients, for the numbers [low, high) of the model.

    Random number `first_number` belongs to the model's first number. The sum is cleared for the next step. The tape
    records this as step `step`.
    """
    sigma, cell, portion, shift = schedule.sigma, schedule.cell, schedule.portion, np.int64(schedule.shift)
    half = (np.int64(1) << shift) >> np.int64(1)
    share = 1.0 / (t - schedule.average_from + 1.0)
    while low < high:
        # L1 cache: as many numbers as a buffer holds.
        end = min(low + BUFFER, high)
        begin = 0
        if sigma > 0.0:
            begin = load_rounded_normals(noise, first_number + low, sigma)
            end = min(low + BUFFER - begin, high)
        weights, gradient, mean = memory.weights[low:end], memory.gradient[low:end], average[low:end]
        totals = memory.totals[low:end]
        if sigma > 0.0:
            numbers = noise.cells[begin : begin + end - low]
            if tape.mode > 0:
                _record_sums(tape, step, low, totals, half, shift, numbers)
            for i in range(gradient.shape[0]):
                # Modular arithmetic: sums wrap around at 2^64, that is at 2^(64 - shift) units of 2^shift, and so does
                # the release.
                noisy = ((totals[i] + half) >> shift) + numbers[i]
                gradient[i] = np.float64((noisy << shift) >> shift) * cell
                totals[i] = 0
        else:
            for i in range(gradient.shape[0]):
                gradient[i] = np.float64(totals[i]) * cell
                totals[i] = 0
        if schedule.outside:
            regulariser = memory.regulariser[low:end]
            for i in range(gradient.shape[0]):
                gradient[i] = gradient[i] * portion + regulariser[i]
        else:
            for i in range(gradient.shape[0]):
                gradient[i] *= portion
        _update(t, schedule.rates[t], gradient, weights, memory.first[low:end], memory.second[low:end], optimizer)
        if t >= schedule.average_from:
            for i in range(mean.shape[0]):
                mean[i] += share * (weights[i] - mean[i])
        for i in range(gradient.shape[0]):
            gradient[i] = 0.0
        low = end


@jit_step(forceinline=True)
def _cut(first_number, size, member, n_members):
    """Return the first of the `size` numbers of a model that a member updates.

    See `_take_step` for `first_number`.

    Members of a larger team get whole buffers of random numbers, but for the ends.
    """
    if member == 0 or member == n_members:
        return size if member > 0 else 0
    buffer = (first_number + size * member // n_members + BUFFER // 2) // BUFFER
    return min(max(0, buffer * BUFFER - first_number), size)


@jit_step()
def _reset(memory, average):
    """Start a run from zero."""
    for i in range(average.shape[0]):
        memory.weights[i], memory.gradient[i], average[i] = 0.0, 0.0, 0.0
        memory.first[i], memory.second[i], memory.totals[i] = 0.0, 0.0, 0
    for i in range(memory.worked.shape[0]):
        memory.worked[i] = 0.0


@njit(inline="always")
def _sum_gradients(
    member,
    team,
    features,
    rows,
    batch,
    upcoming,
    layout,
    objective,
    outside,
    memory,
    scratch,
    blocks,
    own_gradient,
    total_share,
):
    """Add up the step's clipped gradients; return False if a member has given up."""
    n_members, meetings = team
    weights, regulariser = memory.weights, memory.regulariser
    # Determinism: all threads compute the same scale.
    scale = weight_scale(weights)
    if objective.inside:
        set_inside_regulariser(weights, scale, layout, objective, features[0], features[1], regulariser)
    elif outside:
        set_regulariser(weights, layout, objective, features[0], features[1], regulariser)
    if rows.sparse:
        first, end = features
    else:
        n_worked = layout.n_vectors - 1 if is_reduced(rows, objective) else layout.n_vectors
        first, end = n_worked * member // n_members, n_worked * (member + 1) // n_members
    round_weights(weights, layout, scale, rows.sparse, is_reduced(rows, objective), first, end, memory.worked)
    if not meet(meetings, n_members):
        return False
    view = view_weights(weights, scale, layout, objective, regulariser)
    total_share[:] = 0
    if not add_batch(
        member, team, rows, batch, upcoming, memory.worked, layout, objective, view, scratch, blocks, features,
        own_gradient, total_share, memory.totals,
    ):  # fmt: skip
        return False
    finish_sum(rows, layout, objective, features, total_share, view, regulariser, memory.totals)
    return meet(meetings, n_members)


@jit()
def finish_step(
    t, rows, layout, objective, schedule, optimizer, total_share, noise, first_number, memory, average, tape, step
):  # fmt: skip
    """Take a step along a sum of gradients that was made elsewhere, block by block.

    See `run_steps`.

    `rows` say only whether they are sparse. The sums are in `memory.totals`, and are cleared.
    """
    # Specialisation: pass int64, not a literal, since Numba compiles once more for a constant.
    features, regulariser = (np.int64(0), layout.n_features), memory.regulariser
    scale = weight_scale(memory.weights)
    if objective.inside:
        set_inside_regulariser(memory.weights, scale, layout, objective, features[0], features[1], regulariser)
    elif schedule.outside:
        set_regulariser(memory.weights, layout, objective, features[0], features[1], regulariser)
    view = view_weights(memory.weights, scale, layout, objective, regulariser)
    finish_sum(rows, layout, objective, features, total_share, view, regulariser, memory.totals)
    used = average.shape[0] if objective.has_intercept else average.shape[0] - layout.n_vectors
    _take_step(t, schedule, optimizer, features[0], used, noise, first_number, memory, average, tape, step)


@jit()
def run_steps(
    member, meetings, feature_bounds, rows, layout, objective, schedule, optimizer, record_every, sampling, drawn,
    noise, models, memory, blocks, scratch, own_gradient, history, tape,
):  # fmt: skip
    """Run all steps for every model of `models` (n_runs, size), run by run.

    Parameters
    ----------
    member : int
        Number of the calling thread.
    meetings : ndarray
        The team's; see `privsvm.numerics.compiled.spin_barrier.run_team`.
    feature_bounds : ndarray of int
        Boundaries of the members' features.
    rows : privsvm.solvers.gradients.clipped_gradients.StoredRows
    layout : privsvm.solvers.gradients.clipped_gradients.Layout
    objective : privsvm.solvers.gradients.clipped_gradients.Objective
    schedule : Schedule
    optimizer : Optimizer
    record_every : int
        Steps from one record to the next; 0 for none.
    sampling : Sampling
        The member's copy, as is that of the noise.
    drawn : DrawnRows
    noise : privsvm.numerics.noise.rounded_normals.RoundedStream
    models : ndarray (n_runs, size)
        Averages of the iterates.
    memory : Memory
    blocks : privsvm.solvers.gradients.clipped_gradients.Blocks
    scratch : privsvm.solvers.gradients.clipped_gradients.Scratch
        The member's.
    own_gradient : ndarray
        Zeros. The member's memory for gradients, which keeps threads from sharing cache lines of dense rows.
    history : ndarray (n_records, size)
        Recorded models.
    tape : privsvm.numerics.noise.noise_source.StepTape
        Has one entry for each step of each run, or none.
    """
    n_vectors, n_members = layout.n_vectors, feature_bounds.shape[0] - 1
    n_rows, size, n_steps = rows.norms.shape[0], models.shape[1], schedule.rates.shape[0]
    features, team = (feature_bounds[member], feature_bounds[member + 1]), (n_members, meetings)
    batch, upcoming = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    own_gradient = own_gradient if n_members > 1 and not rows.sparse else memory.gradient
    # Without intercepts, their numbers stay 0.
    used = size if objective.has_intercept else size - n_vectors
    total_share = np.zeros(2, np.int64)
    for run in range(models.shape[0]):
        average = models[run]
        if member == 0:
            _reset(memory, average)
        # Prefetching: rows are listed one step ahead, and drawn another step before.
        for step in range(run * n_steps, run * n_steps + min(2, n_steps)):
            _draw(sampling, step, n_rows, member, drawn)
        if not meet(meetings, n_members):
            return
        n_upcoming = 0
        for t in range(-1, n_steps):
            count, batch, upcoming, step = n_upcoming, upcoming, batch, run * n_steps + t
            if t + 1 < n_steps:
                n_upcoming = _list(sampling, step + 1, n_rows, drawn, upcoming)
                if tape.mode > 0:
                    n_upcoming = _record_rows(tape, step + 1, n_rows, n_upcoming, upcoming)
            if t < 0:
                continue
            if not _sum_gradients(
                member, team, features, rows, batch[:count], upcoming[:n_upcoming], layout, objective, schedule.outside,
                memory, scratch, blocks, own_gradient, total_share,
            ):  # fmt: skip
                return
            # Safe to overwrite: every thread has listed its rows for step t + 1.
            if t + 2 < n_steps:
                _draw(sampling, step + 2, n_rows, member, drawn)
            first_number = (run * n_steps + t) * used
            low, high = _cut(first_number, used, member, n_members), _cut(first_number, used, member + 1, n_members)
            _take_step(t, schedule, optimizer, low, high, noise, first_number, memory, average, tape, step)
            if not meet(meetings, n_members):
                return
            if member == 0 and record_every > 0 and (t + 1) % record_every == 0:
                source = average if t >= schedule.average_from else memory.weights
                target = history[(t + 1) // record_every - 1]
                for i in range(size):
                    target[i] = source[i]
