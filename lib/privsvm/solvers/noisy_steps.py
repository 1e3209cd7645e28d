"""The compiled loop of noisy gradient steps, which a team of threads runs together.

Every member of the team draws the same rows. It computes slopes for some of them, adds up gradients for its part of
the features, and updates its part of the model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from privsvm.numerics.jit import jit, jit_step
from privsvm.numerics.team import meet
from privsvm.numerics.vector_random import BUFFER, load_normals, next_exponentials
from privsvm.solvers.clipped_gradients import (
    add_batch,
    finish_sum,
    is_reduced,
    regulariser_norms,
    scratch_memory,
    set_regulariser,
    subtract_last,
)

__all__ = ["OPTIMIZERS", "Memory", "Optimizer", "Schedule", "run_steps"]

OPTIMIZERS = ("sgd", "adam")
_SGD, _ADAM = range(2)


class Schedule(NamedTuple):
    """What happens in which step."""

    rates: np.ndarray
    # First step whose iterate is a part of the average.
    average_from: int
    noise_scale: float
    # One by the expected number of rows.
    portion: float
    # Whether the regulariser's gradient is added after the noise.
    outside: bool


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
    # Weights in the form that `add_batch` works with.
    worked: np.ndarray
    regulariser: np.ndarray


@jit_step()
def _sample(stream, rate, mean_gap, n_rows, batch):
    """List the rows of a step, each drawn with probability `rate`; return how many.

    The gap before the next row is geometric: the whole part of `mean_gap`, which is ``-1 / log(1 - rate)``, times an
    exponential number.
    """
    if rate >= 1.0:
        for i in range(n_rows):
            batch[i] = i
        return n_rows
    if rate <= 0.0:
        return 0
    position, numbers = stream[1], stream[3]
    used: Any = np.int64(position[1])
    count, place = 0, -1.0
    while True:
        if used == numbers.shape[0]:
            next_exponentials(stream)
            used = 0
        place += 1.0 + np.floor(numbers[used] * mean_gap)
        used += 1
        if not place < n_rows:
            position[1] = np.uint64(used)
            return count
        batch[count] = np.int64(place)
        count += 1


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
def _take_step(t, schedule, optimizer, low, high, noise, place, memory, average):
    """Turn the sum of gradients into the step's direction and take it, for the numbers [low, high) of the model.

    Random number `place` belongs to the model's first number. The sum is cleared for the next step.
    """
    noise_scale, portion = schedule.noise_scale, schedule.portion
    share = 1.0 / (t - schedule.average_from + 1.0)
    while low < high:
        # As many at a time as stay in the fastest cache.
        end = min(low + BUFFER, high)
        begin = 0
        if noise_scale > 0.0:
            begin = load_normals(noise, place + low)
            end = min(low + BUFFER - begin, high)
        weights, gradient, mean = memory.weights[low:end], memory.gradient[low:end], average[low:end]
        if noise_scale > 0.0:
            numbers = noise[3][begin : begin + end - low]
            for i in range(gradient.shape[0]):
                gradient[i] += noise_scale * numbers[i]
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
def _cut(place, size, member, n_members):
    """First of the `size` numbers of a model that a member updates; random number `place` belongs to the model's first.

    Members of a larger team get whole buffers of random numbers, but for the ends.
    """
    if member == 0 or member == n_members:
        return size if member > 0 else 0
    buffer = (place + size * member // n_members + BUFFER // 2) // BUFFER
    return min(max(0, buffer * BUFFER - place), size)


@jit_step()
def _share_gradient(layout, part, own, gradient):
    """Move a part of the features' gradients, and the intercepts', to where all members find them."""
    n_vectors, n_features, _, _ = layout
    for k in range(n_vectors):
        source = own[k * n_features + part[0] : k * n_features + part[1]]
        target = gradient[k * n_features + part[0] :]
        for j in range(source.shape[0]):
            target[j] = source[j]
            source[j] = 0.0
    if part[0] == 0:
        source, target = own[n_vectors * n_features :], gradient[n_vectors * n_features :]
        for k in range(n_vectors):
            target[k] = source[k]
            source[k] = 0.0


@jit_step()
def _reset(memory, average):
    """Start a run from zero."""
    for i in range(average.shape[0]):
        memory.weights[i], memory.gradient[i], average[i] = 0.0, 0.0, 0.0
        memory.first[i], memory.second[i] = 0.0, 0.0
    for i in range(memory.worked.shape[0]):
        memory.worked[i] = 0.0


@njit(inline="always")
def _sum_gradients(
    member, team, part, rows, batch, upcoming, layout, objective, outside, separate, memory, scratch, blocks, own
):
    """Add up the step's clipped gradients; return False if a member has given up."""
    n_members, meetings = team
    weights, regulariser, norms = memory.weights, memory.regulariser, (0.0, 0.0)
    inside = objective.inside and (objective.margin_weight > 0.0 or objective.ridge > 0.0)
    if inside or outside:
        set_regulariser(weights, layout, objective, part[0], part[1], regulariser)
    if inside:
        if not meet(meetings, n_members):
            return False
        norms = regulariser_norms(weights, layout, objective, regulariser)
    total_share = add_batch(
        member, team, rows, batch, upcoming, weights, memory.worked, layout, objective, norms, scratch, blocks, part,
        own,
    )  # fmt: skip
    if total_share < 0.0:
        return False
    finish_sum(rows, layout, objective, part, total_share, regulariser, own)
    if separate:
        _share_gradient(layout, part, own, memory.gradient)
    return meet(meetings, n_members)


@njit(inline="always")
def _refresh_worked(member, team, layout, memory):
    """Bring the differences to the last vector up to date; return False if a member has given up."""
    n_members, meetings = team
    n_worked = layout.n_vectors - 1
    low, high = n_worked * member // n_members, n_worked * (member + 1) // n_members
    subtract_last(memory.weights, layout, low, high, memory.worked)
    return meet(meetings, n_members)


@jit()
def run_steps(
    member, meetings, parts, rows, layout, objective, schedule, optimizer, sample_rate, record_every, sampling, noise,
    models, memory, blocks, own, history,
):  # fmt: skip
    """Run all steps for every model of `models` (n_runs, size), one run after the other.

    Parameters
    ----------
    member : int
        Who calls.
    meetings : ndarray
        The team's; see `privsvm.numerics.team.run_team`.
    parts : ndarray of int
        Boundaries of the members' features.
    rows : privsvm.solvers.clipped_gradients.StoredRows
    layout : privsvm.solvers.clipped_gradients.Layout
    objective : privsvm.solvers.clipped_gradients.Objective
    schedule : Schedule
    optimizer : Optimizer
    sample_rate : float
        Probability of each row to be in a step.
    record_every : int
        Steps from one record to the next; 0 for none.
    sampling, noise : RandomStream
        The member's copies of the team's streams.
    models : ndarray (n_runs, size)
        Averages of the iterates.
    memory : Memory
    blocks : privsvm.solvers.clipped_gradients.Blocks
    own : ndarray
        The member's memory for gradients, used where the parts of dense rows lie too close together.
    history : ndarray (n_records, size)
        Models on the way.
    """
    n_vectors, n_members = layout.n_vectors, parts.shape[0] - 1
    n_rows, size, n_steps = rows.norms.shape[0], models.shape[1], schedule.rates.shape[0]
    part, team = (parts[member], parts[member + 1]), (n_members, meetings)
    batch, upcoming = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    scratch = scratch_memory(n_vectors)
    separate = n_members > 1 and not rows.sparse
    own = own if separate else memory.gradient
    # Without intercepts, their part stays 0.
    used = size if objective.intercept_scale > 0.0 else size - n_vectors
    mean_gap = -1.0 / np.log1p(-sample_rate) if 0.0 < sample_rate < 1.0 else 0.0
    for run in range(models.shape[0]):
        average = models[run]
        if member == 0:
            _reset(memory, average)
        if not meet(meetings, n_members):
            return
        # Rows are drawn one step ahead, so that they can be fetched in time.
        n_upcoming = 0
        if n_steps > 0:
            n_upcoming = _sample(sampling, sample_rate, mean_gap, n_rows, upcoming)
        for t in range(n_steps):
            count, batch, upcoming = n_upcoming, upcoming, batch
            if t + 1 < n_steps:
                n_upcoming = _sample(sampling, sample_rate, mean_gap, n_rows, upcoming)
            if not _sum_gradients(
                member, team, part, rows, batch[:count], upcoming[:n_upcoming], layout, objective, schedule.outside,
                separate, memory, scratch, blocks, own,
            ):  # fmt: skip
                return
            place = (run * n_steps + t) * used
            low, high = _cut(place, used, member, n_members), _cut(place, used, member + 1, n_members)
            _take_step(t, schedule, optimizer, low, high, noise, place, memory, average)
            if not meet(meetings, n_members):
                return
            if is_reduced(rows, objective) and not _refresh_worked(member, team, layout, memory):
                return
            if member == 0 and record_every > 0 and (t + 1) % record_every == 0:
                source = average if t >= schedule.average_from else memory.weights
                target = history[(t + 1) // record_every - 1]
                for i in range(size):
                    target[i] = source[i]
