"""Many independent runs of noisy gradient steps, and all models of one run, for tests."""

import numpy as np

from privsvm.solvers.gradients import noisy_gradient
from privsvm.solvers.gradients.clipped_gradients import parts


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
