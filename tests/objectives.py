"""Objectives of solvers, computed from a model alone."""

import numpy as np


def hinge_objective(X, y, coef, C):
    """Primal objective ``1/2 ||w||^2 + C sum_i max(0, 1 - y_i w . x_i)``."""
    return 0.5 * float(coef @ coef) + C * float(np.maximum(1.0 - y * np.asarray(X @ coef), 0.0).sum())
