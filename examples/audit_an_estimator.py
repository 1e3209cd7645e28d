"""Audit somebody else's estimator.

The first classifier adds Laplace noise to the mean of every class, as if every class had ten rows. The audit trains it
8,000 times on two neighbouring tables, compares only its releases, and refutes its epsilon. The second one adds
noise to sums, whose sensitivity does not depend on the number of rows. The audit does not refute it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from privsvm import audit

RANDOM = np.random.default_rng(0)


class NoisyMeans(ClassifierMixin, BaseEstimator):
    """Nearest noisy mean; rows are clipped to length 1."""

    def __init__(self, epsilon=1.0, fixed=False):
        self.epsilon, self.fixed = epsilon, fixed

    def fit(self, X, y):
        X = X / np.maximum(1, np.abs(X).sum(axis=1, keepdims=True))
        self.classes_ = np.array([0, 1])
        sums = np.array([X[y == code].sum(axis=0) for code in (0, 1)])
        # A replaced row changes the sums by 2 at most.
        noise = RANDOM.laplace(scale=2 / self.epsilon, size=sums.shape)
        counts = np.maximum(1, [[(y == 0).sum()], [(y == 1).sum()]])
        self.means_ = sums + noise if self.fixed else sums / counts + noise / 10
        return self

    def decision_function(self, X):
        return X @ (self.means_[1] - self.means_[0])


shown = {}
for name, fixed in {"noise on means": False, "noise on sums": True}.items():
    report = audit(NoisyMeans(epsilon=1.0, fixed=fixed), draws=8000)
    print(report, end="\n\n")
    shown[name] = report.lower_bound

plt.figure(figsize=(6, 2.2), layout="constrained")
plt.barh(list(shown), list(shown.values()), color="#7b542d")
plt.axvline(1.0, color="k", ls="--", label="stated")
plt.xlabel("epsilon is at least (95 % confidence)")
plt.legend()
plt.show()
