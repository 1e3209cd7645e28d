"""Objectives of solvers, computed from a model alone."""

import numpy as np


def hinge_objective(X, y, coef, C):
    """Primal objective ``1/2 ||w||^2 + C sum_i max(0, 1 - y_i w . x_i)``."""
    return 0.5 * float(coef @ coef) + C * float(np.maximum(1.0 - y * np.asarray(X @ coef), 0.0).sum())


def crammer_singer_objective(X, y, coef, C):
    """Primal objective ``1/2 ||W||^2 + C sum_i max_m ([m != y_i] + (w_m - w_{y_i}) . x_i)``."""
    scores = np.asarray(X @ coef.T)
    rows = np.arange(len(y))
    margins = scores - scores[rows, y][:, None] + 1.0
    margins[rows, y] = 0.0
    return 0.5 * float(np.vdot(coef, coef)) + C * float(margins.max(axis=1).sum())
