"""Sums of clipped gradients of all rows before rounding and noise, and models of many runs of noisy steps."""

import math

import numpy as np

from privsvm.solvers.gradients import noisy_gradient
from privsvm.solvers.gradients.clipped_gradients import PRODUCT_BITS, clipped_sum, parts, round_point, with_regulariser
from privsvm.solvers.gradients.noisy_gradient import objective_of, prepare_rows


def clip_to_cells(X, codes, coef, intercept, steps):
    """Whole numbers of `sum_clipped_gradients`, flat int64: of weights, then of intercepts if there are any."""
    coef = np.asarray(coef, dtype=np.float64)
    objective = objective_of(steps, *coef.shape)
    weights = np.concatenate([coef.ravel(), intercept]) if steps.fit_intercept else coef.ravel()
    point = round_point(weights, coef.shape[0], objective)
    codes = np.require(codes, dtype=np.int64, requirements=["C", "W"])
    return with_regulariser(*clipped_sum(prepare_rows(X, steps), codes, None, point, objective), point)


def sum_clipped_gradients(X, codes, coef, intercept, steps):
    """Sums by weights (c, d) and by intercepts (c,), which are zeros where there are none."""
    cells = clip_to_cells(X, codes, coef, intercept, steps) * math.ldexp(float(steps.max_grad_norm), -PRODUCT_BITS)
    by_coef, by_intercept = parts(cells, len(coef), steps.fit_intercept)
    return by_coef, by_intercept if steps.fit_intercept else np.zeros(len(coef))


def _split(models, n_classes, steps):
    coef, intercept = parts(np.array(models), n_classes, steps.fit_intercept)
    return coef, intercept * steps.intercept_scale if steps.fit_intercept else np.zeros(coef.shape[:-1])


def repeat_noisy_gradient_steps(X, codes, n_classes, steps, rng, n_runs):
    """Weights (n_runs, c, d) and intercepts (n_runs, c); the runs share two streams, keyed once."""
    training = noisy_gradient._training(X, codes, n_classes, steps, rng)
    return _split([[*training.models(number)][-1] for number in range(n_runs)], n_classes, steps)


def models_of_steps(X, codes, n_classes, steps, rng):
    """Weights (T, c, d) and intercepts (T, c) after each step of one run."""
    training = noisy_gradient._training(X, codes, n_classes, steps, rng)
    return _split([model.copy() for model in training.models()][1:], n_classes, steps)
