"""Compare private searches over C with public values of C: ``python bench/utility/search.py``.

Objective perturbation at epsilon 1 on small sets, where the choice of C matters most. A run of a search has less than
the total budget, and noisy counts of correct rows rank the runs. ``reports/utility/search.csv`` has mean accuracies
over splits, the budget of a run, and the noise on its score as a share of the rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from entries import DELTA, TABLES
from sets import UtilitySet, load

from privsvm import ObjectivePerturbationClassifier, PrivateSearch
from privsvm.files import write_text
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm_bench.evidence import Sources
from privsvm_bench.workflow.sources import closure_digest

TABLE = TABLES / "search.csv"
EPSILON = 1.0
NAMES = ("breast_cancer", "pima_uci")
CANDIDATES = (0.01, 0.05, 0.25, 1.25)
# Mean number of runs, shape of its distribution, the score's share of the budget.
SEARCHES = ((40.0, 0.0, 0.1), (5.0, 0.0, 0.1), (3.0, math.inf, 0.1), (5.0, math.inf, 0.02), (5.0, math.inf, 0.3))
_FIELDS = ("set", "C", "mean_runs", "shape", "score_share", "run_epsilon", "score_noise", "accuracy", "error")


class PlannedOnce(PrivateSearch):
    """A search that caches slow plans by settings and numbers of rows and features."""

    plans: ClassVar[dict[tuple[Any, ...], Any]] = {}

    def _plan(self, n_features: int, n_rows: int) -> Any:
        key = self.mean_runs, self.shape, self.score_share, n_features, n_rows
        if key not in self.plans:
            self.plans[key] = super()._plan(n_features, n_rows)
        return self.plans[key]


def measure_mean(data: UtilitySet, make: Callable[[list[int], int], Any]) -> dict[str, Any]:
    """Measure mean accuracy, its standard error, and the budget of a run."""
    X, accuracies, budget = data.scale_features(), [], EPSILON
    for split, (train, test) in enumerate(data.splits):
        model = make(list(range(data.n_classes)), split).fit(X[train], data.y[train])
        accuracies.append(np.mean(model.predict(X[test]) == data.y[test]))
        budget = getattr(model, "run_epsilon_", EPSILON)
    error = np.std(accuracies, ddof=1) / math.sqrt(len(accuracies))
    return {"accuracy": f"{np.mean(accuracies):.4f}", "error": f"{error:.4f}", "run_epsilon": f"{budget:.3f}"}


def make_fixed(classes: list[int], seed: int, **settings: Any) -> ObjectivePerturbationClassifier:
    """Make objective perturbation with the total budget."""
    return ObjectivePerturbationClassifier(epsilon=EPSILON, delta=DELTA, classes=classes, random_state=seed, **settings)


def make_search(classes: list[int], seed: int, **settings: Any) -> PrivateSearch:
    """Make a search over C with the same budget."""
    model, grid = ObjectivePerturbationClassifier(classes=classes), {"C": list(CANDIDATES)}
    return PlannedOnce(model, grid, epsilon=EPSILON, delta=DELTA, random_state=seed, **settings)


def main() -> None:
    """Measure all sets."""
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        data = load(name)
        rows += [{"set": name, "C": C, **measure_mean(data, functools.partial(make_fixed, C=C))} for C in CANDIDATES]
        for mean, shape, share in SEARCHES:
            search = functools.partial(make_search, mean_runs=mean, shape=shape, score_share=share)
            row = measure_mean(data, search)
            sigma = gaussian_noise_multiplier(float(row["run_epsilon"]), DELTA) * math.sqrt((1.0 - share) / share)
            noise = f"{sigma / len(data.splits[0][0]):.4f}"
            plan = {"mean_runs": f"{mean:g}", "shape": f"{shape:g}", "score_share": f"{share:g}", "score_noise": noise}
            rows.append({"set": name, **plan, **row})
        write_text(TABLE, pd.DataFrame(rows, columns=_FIELDS).to_csv(index=False))
        Sources(TABLES).measure("search", "private search", closure_digest(PrivateSearch.__module__)[:12], name)


if __name__ == "__main__":
    main()
