"""A method of your own in the benchmark.

Any scikit-learn style class takes part by an entry in `params.yaml`, without a fork. It must be importable; here this
file is the module. `states_epsilon` names the parameter that takes epsilon. The benchmark cannot check that epsilon, so
it counts as *claimed*.
"""

import numpy as np
import yaml
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_wine
from sklearn.preprocessing import minmax_scale

from privsvm_bench.jobs.external_methods import ForeignMethod


class NoisyCentroids(ClassifierMixin, BaseEstimator):
    """Nearest centroid, from noisy sums and counts."""

    def __init__(self, budget=1.0, random_state=None):
        self.budget, self.random_state = budget, random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        rng = np.random.default_rng(self.random_state)
        sums = np.array([X[y == code].sum(axis=0) for code in self.classes_])
        counts = np.bincount(y)[:, None]
        noisy = sums + rng.laplace(scale=4 * X.shape[1] / self.budget, size=sums.shape)
        self.centroids_ = noisy / np.maximum(1, counts + rng.laplace(scale=4 / self.budget, size=counts.shape))
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self.centroids_) ** 2).sum(axis=2).argmin(axis=1)]


ENTRY = """
methods:
  my_centroids:
    implementation: own_method:NoisyCentroids
    states_epsilon: budget
"""

if __name__ == "__main__":
    # A job of the benchmark does this with the entry, on one data set.
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    entry = yaml.safe_load(ENTRY)["methods"]["my_centroids"]
    method = ForeignMethod(entry.pop("implementation"), entry, 3, X, delta=1e-5, neighbours="replace_one")
    path = method.release_path(X, y, [1, 10, 100], 5, lambda epsilon, repeat: np.random.default_rng(repeat))
    print(f"status: {path.guarantees[0].status}, because {path.guarantees[0].reason}")
    for epsilon, scores in zip(path.epsilons, path.predicted_scores, strict=True):
        print(f"epsilon {epsilon:4}: accuracy {np.mean(scores.argmax(axis=2) == y):.3f}, mean of 5")
