"""The step of two variables that `block_smo` and `pair_smo` share.

Variables are ``b_t = y_t a_t``, so that labels occur in their bounds only, and every step keeps their sum.
"""

from __future__ import annotations

import numpy as np

from privsvm.numerics.compiled.jit import jit, jit_step

__all__ = ["TAU", "extremes", "move_pair", "set_sides"]

# Least curvature of a pair, LIBSVM's constant.
TAU = 1e-12


@jit()
def extremes(values, beta, lower, upper):
    """Return the largest value that may go up, and the smallest that may go down.

    All are arrays (n,).
    """
    m, M = -np.inf, np.inf
    for t in range(values.shape[0]):
        if beta[t] < upper[t] and values[t] > m:
            m = values[t]
        if beta[t] > lower[t] and values[t] < M:
            M = values[t]
    return m, M


@jit_step()
def set_sides(up, low, beta, lower, upper, t, out):
    """Set the masks of variable t: `out`, very negative, where it may not move."""
    zero = up.dtype.type(0)
    up[t] = zero if beta[t] < upper[t] else out
    low[t] = zero if beta[t] > lower[t] else out


@jit_step()
def move_pair(beta, lower, upper, i, j, step):
    """Move variable i up and variable j down by `step`, or to the first bound.

    Return the length of the move.
    """
    room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
    # Round-off: a variable that reaches its bound is set to it exactly.
    if room_i <= step and room_i <= room_j:
        step = room_i
        beta[i] = upper[i]
        beta[j] = lower[j] if room_i == room_j else beta[j] - step
    elif room_j <= step:
        step = room_j
        beta[j] = lower[j]
        beta[i] += step
    else:
        beta[i] += step
        beta[j] -= step
    return step
