"""Many independent runs of noisy gradient steps, for statistical tests."""

import numpy as np

from privsvm.solvers.gradients import noisy_gradient


def repeat_noisy_gradient_steps(X, codes, n_classes, steps, rng, n_runs):
    """Weights (n_runs, c, d) and intercepts (n_runs, c); the runs share two streams, keyed once."""
    training = noisy_gradient._training(X, codes, n_classes, steps, rng)
    models = np.stack([training.run(number)[0] for number in range(n_runs)])
    return noisy_gradient._model(models, n_classes, steps, float(steps.intercept_scale))
