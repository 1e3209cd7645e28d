"""Measure the gains of other recipes on small sets: ``python bench/utility/variants.py``.

Each variant changes one setting of the rule's recipe, and is trained on the same splits with the same seeds.
``reports/utility/variants.csv`` has the mean gain of each in points of accuracy, by set and epsilon, under replace_one;
rows with the digest of the present sources are not run again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from draws import small_sets
from resumed import append, keep
from run_ours import METHODS, TABLES
from sets import SPLITS, UtilitySet, load

from privsvm.families.moments.scaled_descent import Recipe
from privsvm.methods import recommended

TABLE = TABLES / "variants.csv"
FIELDS = ("variant", "set", "epsilon", "draws", "own", "gain", "error", "sources")
EPSILONS = (0.1, 0.25, 0.5, 1.0)
_DRAWS = 4
VARIANTS: dict[str, Callable[[Recipe], dict[str, Any]]] = {
    "length .3": lambda recipe: {"length": 0.3},
    "length .4": lambda recipe: {"length": 0.4},
    "20 steps": lambda recipe: {"n_steps": 20},
    "no mean": lambda recipe: {"mean_share": 0.0},
    "half the mean's share": lambda recipe: {"mean_share": recipe.mean_share / 2.0},
    "never evened out": lambda recipe: {"moment_share": 0.0},
    "a fifth for the second moment": lambda recipe: {"moment_share": 0.2},
    "three tenths averaged": lambda recipe: {"averaged": 0.3},
}


def accuracies(
    data: UtilitySet, epsilon: float, change: Callable[[Recipe], dict[str, Any]] | None
) -> np.ndarray | None:
    """Measure each draw and split; None if the variant changes no recipe."""
    choose, unchanged = recommended.choose_recipe, []

    def changed(*arguments: Any, **named: Any) -> tuple[Recipe, str]:
        recipe, why = choose(*arguments, **named)
        other = dataclasses.replace(recipe, **change(recipe)) if change else recipe
        unchanged.append(other == recipe)
        return other, why

    scores = np.empty((_DRAWS, SPLITS))
    with mock.patch.object(recommended, "choose_recipe", changed):
        for draw in range(_DRAWS):
            for split, (train, test) in enumerate(data.splits):
                model, X = METHODS["recommended"](
                    data, epsilon=epsilon, classes=list(range(data.n_classes)), random_state=SPLITS * draw + split
                )
                scores[draw, split] = model.fit(X[train], data.y[train]).score(X[test], data.y[test])
                if change and all(unchanged):
                    return None
    return scores


def main() -> None:
    """Run missing cells."""
    sources = METHODS["recommended"].sources
    kept = keep(TABLE, FIELDS, lambda row: row["sources"] == sources)
    done = {(row["variant"], row["set"], row["epsilon"]) for row in kept}
    for name in small_sets():
        for epsilon in EPSILONS:
            missing = [variant for variant in VARIANTS if (variant, name, f"{epsilon:g}") not in done]
            baseline = accuracies(load(name), epsilon, None) if missing else None
            for variant in missing:
                scores = accuracies(load(name), epsilon, VARIANTS[variant])
                gains = 100.0 * (np.zeros_like(baseline) if scores is None else scores - baseline)
                # Standard error over draws, which are independent; splits share rows.
                error = gains.mean(axis=1).std(ddof=1) / np.sqrt(_DRAWS)
                numbers = f"{baseline.mean():.4f}", f"{gains.mean():.2f}", f"{error:.2f}"
                append(TABLE, [variant, name, f"{epsilon:g}", _DRAWS, *numbers, sources])


if __name__ == "__main__":
    main()
