"""Sums of clipped gradients of all rows, before rounding and noise."""

import math

import numpy as np

from privsvm.solvers.gradients.clipped_gradients import PRODUCT_BITS, clipped_sum, parts, round_point, with_regulariser
from privsvm.solvers.gradients.noisy_gradient import objective_of, prepare_rows


def clipped_cells(X, codes, coef, intercept, steps):
    """Whole numbers of `clipped_gradient_sum`, flat int64: of weights, then of intercepts if there are any."""
    coef = np.asarray(coef, dtype=np.float64)
    objective = objective_of(steps, *coef.shape)
    weights = np.concatenate([coef.ravel(), intercept]) if steps.fit_intercept else coef.ravel()
    point = round_point(weights, coef.shape[0], objective)
    codes = np.require(codes, dtype=np.int64, requirements=["C", "W"])
    return with_regulariser(*clipped_sum(prepare_rows(X, steps), codes, None, point, objective), point)


def clipped_gradient_sum(X, codes, coef, intercept, steps):
    """Sums by weights (c, d) and by intercepts (c,), which are zeros where there are none."""
    cells = clipped_cells(X, codes, coef, intercept, steps) * math.ldexp(float(steps.max_grad_norm), -PRODUCT_BITS)
    by_coef, by_intercept = parts(cells, len(coef), steps.fit_intercept)
    return by_coef, by_intercept if steps.fit_intercept else np.zeros(len(coef))
