"""Measure the numbers of the recommended rule: ``python bench/utility/ablation.py``.

On the *choose* sets, with one number of `Table` changed at a time, most of them so that what it chooses is left out.
``reports/utility/ablation.csv`` has the accuracy's change in points for every epsilon, over splits and draws of noise:
the number of sets that it changes, their median and mean, and the set that loses most. Large sets are cut to `ROWS`
rows.
"""

from __future__ import annotations

import functools
import math
import statistics
from typing import Any

import numpy as np
import pandas as pd
from entries import DELTA, TABLES
from sets import CHOOSE, SMALL_DRAWS, SMALL_ROWS, load

from privsvm import PrivateLinearClassifier
from privsvm.families.moments.scaled_descent import Budget, Recipe
from privsvm.files import write_text
from privsvm.methods.recommended.rule import TABLE, choose_recipe
from privsvm_bench.evidence import Sources
from privsvm_bench.workflow.sources import closure_digest

ROWS, SPLITS = 4000, 3
EPSILONS = [0.5, 1.0, 4.0]
OTHERS: list[dict[str, Any]] = [
    {"hats_from": math.inf}, {"n_hats": 16}, {"hat_weight": 0.25}, {"fourier_from": math.inf}, {"n_frequencies": 64},
    {"few_columns": 0}, {"evened_from": math.inf}, {"moment_share": 0.2}, {"widest": 300},
]  # fmt: skip


def accuracies(name: str, changes: dict[str, Any]) -> np.ndarray:
    """Mean accuracy on a set at every epsilon, where a row is added, with changed numbers of the rule."""
    data, found = load(name), []
    for split, (train, test) in enumerate(data.splits[:SPLITS]):
        rows = np.random.default_rng(split).permutation(train)[:ROWS]
        model = PrivateLinearClassifier(
            delta=DELTA, classes=list(range(data.n_classes)), bounds=(data.lower, data.upper), neighbours="add_remove",
            indicators=np.flatnonzero(data.indicators).tolist(), n_rows=len(rows), allow_unsound=True,
        )  # fmt: skip
        model._table = TABLE._replace(**changes)
        path = model.release_path(
            data.X[rows], data.y[rows], EPSILONS, SMALL_DRAWS if len(data.y) < SMALL_ROWS else 1, split
        )
        codes = [path.codes(path.scores(data.X[test], index)) for index in range(len(EPSILONS))]
        found.append([np.mean(one == data.y[test]) for one in codes])
    return np.mean(found, axis=0)


def recipes(name: str, changes: dict[str, Any]) -> list[Recipe]:
    """Recipes of a set at every epsilon, with changed numbers of the rule."""
    data, table = load(name), TABLE._replace(**changes)
    sizes = min(len(data.splits[0][0]), ROWS), data.X.shape[1], int((~data.indicators).sum())
    budgets = [Budget(epsilon=epsilon, delta=DELTA, neighbours="add_remove") for epsilon in EPSILONS]
    return [choose_recipe(*sizes, budget, table=table)[0] for budget in budgets]


def main() -> None:
    """Measure all sets, and write the table."""
    as_it_is = functools.cache(lambda name: accuracies(name, {}))
    rows = []
    for changes in OTHERS:
        # The same recipes and seeds have the same models.
        changed = {name for name in CHOOSE if recipes(name, changes) != recipes(name, {})}
        gains = {
            name: 100.0 * (accuracies(name, changes) - as_it_is(name)) if name in changed else np.zeros(len(EPSILONS))
            for name in CHOOSE
        }
        ((number, instead),) = changes.items()
        for index, epsilon in enumerate(EPSILONS):
            here = {name: float(gain[index]) for name, gain in gains.items()}
            on = min(here, key=here.__getitem__)
            touched = [gain for gain in here.values() if gain != 0.0] or [0.0]
            told = {"median": statistics.median(touched), "mean": statistics.fmean(touched), "worst": here[on]}
            rows.append({
                "number": number, "value": getattr(TABLE, number), "instead": instead, "epsilon": epsilon,
                "sets": sum(map(bool, here.values())), **{name: f"{value:.2f}" for name, value in told.items()},
                "on": on,
            })  # fmt: skip
        # Objects: columns hold whole numbers and others.
        write_text(TABLES / "ablation.csv", pd.DataFrame(rows, dtype=object).to_csv(index=False))
    Sources(TABLES).measure("ablation", "recommended", closure_digest("privsvm.methods.recommended")[:12], "choose")


if __name__ == "__main__":
    main()
