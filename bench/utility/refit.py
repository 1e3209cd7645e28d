"""Choose the rule's constants for linear features again without each set: ``python bench/utility/refit.py``.

The rule of `privsvm.methods.recommended` is a function of public numbers and of a few constants (`Rule`). For every
set, epsilon and split, all recipes that constants of `GRIDS` choose are trained once, into
``reports/utility/recipes.csv``; recipes with the digest of the present sources are not trained again. For every set the
constants are then chosen on the other sets alone, by the least mean regret: the loss of accuracy of the chosen recipe
against the best one in hindsight. ``reports/utility/held_out.json`` has the choices.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import itertools
import json
import math
from typing import Any

import numpy as np
import pandas as pd
from run_ours import CHOSEN, DELTA, METHODS, SLOW, columns
from scores import score_row
from sets import OLDER, SPLITS, UtilitySet, load
from verdicts import TABLES

from privsvm.families.moments.scaled_descent import Budget, Recipe
from privsvm.files import write_text
from privsvm.methods.recommended import RULE, Rule, choose_recipe
from privsvm_bench.workflow.sources import closure_digest

TABLE = TABLES / "recipes.csv"
EPSILONS = (0.5, 1.0, 4.0)
_FIELDS = ("set", "epsilon", "recipe", "split", "accuracy", "sources")
# Grid of each constant. Those of trials and of the features that are tried have none: recipes here are those of linear
# features.
_LENGTHS = (0.2, 0.3, 0.4, 0.6, 0.9)
GRIDS: dict[str, tuple[float, ...]] = {
    "evened": (0.0, 4.0, 8.0),
    "evened_widest": (16, 32, 10**6),
    "short": (12.5, 25.0, 50.0),
    "few_two": (150.0, 300.0, 600.0),
    "length_few": _LENGTHS,
    "length_two": _LENGTHS,
    "length_plain": _LENGTHS,
    "length_evened": _LENGTHS,
    "length_many": _LENGTHS,
}
# Larger sets have fewer splits: with more test rows the split matters less.
_SPLITS_BY_ROWS = ((2000, SPLITS), (8000, 3), (math.inf, 1))
# Least gain of a step away from the middle of a grid.
_STEP = 2e-4
# Number of rows that are run again to confirm the others.
_CONFIRMED = 12


@dataclasses.dataclass(frozen=True)
class Cell:
    """Public numbers of a set that the rule reads, and an epsilon."""

    name: str
    epsilon: float
    n_rows: int
    n_features: int
    n_classes: int

    @classmethod
    def of(cls, data: UtilitySet, epsilon: float) -> Cell:
        return cls(data.name, epsilon, len(data.splits[0][0]), data.X.shape[1], data.n_classes)

    @functools.cache  # noqa: B019 - cells are few and live as long as the run
    def recipe(self, rule: Rule) -> Recipe:
        """Return the recipe of the rule with these constants."""
        budget = Budget(epsilon=self.epsilon, delta=DELTA, neighbours="replace_one")
        return choose_recipe(self.n_rows, self.n_features, self.n_classes, budget, rule=rule)[0]

    def recipes(self) -> dict[Recipe, Rule]:
        """Return all recipes that constants of the grids choose, with such constants."""
        lengths = [name for name in GRIDS if name.startswith("length_")]
        rules_by_recipe = {self.recipe(RULE): RULE}
        for values in itertools.product(*(GRIDS[name] for name in GRIDS if name not in lengths)):
            rule = Rule(**dict(zip([name for name in GRIDS if name not in lengths], values, strict=True)))
            rules_by_recipe.setdefault(self.recipe(rule), rule)
        for rule in list(rules_by_recipe.values()):
            for name in lengths:
                for value in GRIDS[name]:
                    longer = dataclasses.replace(rule, **{name: value})
                    rules_by_recipe.setdefault(self.recipe(longer), longer)
        return rules_by_recipe


def words(recipe: Recipe) -> str:
    """Describe the choices of a recipe."""
    return (
        f"{recipe.n_frequencies} frequencies {'evened' if recipe.moment_share else 'plain'} "
        f"{recipe.n_steps} steps of {recipe.length:g}"
        + (f" the last {recipe.averaged:g}" if recipe.averaged != Recipe.averaged else "")
    )


def accuracy(data: UtilitySet, epsilon: float, split: int, rule: Rule) -> float:
    """Measure the accuracy of the recommended estimator on linear features with other constants."""
    train, test = data.splits[split]
    estimator, X = METHODS["recommended_linear"](
        data, epsilon=epsilon, classes=list(range(data.n_classes)), random_state=split, allow_unsound=True
    )
    estimator._rule = rule
    estimator.fit(X[train], data.y[train])
    return score_row(data.y[test], columns(estimator.decision_function(X[test])))["accuracy"]


@functools.cache
def _rules(name: str, epsilon: float) -> dict[str, Rule]:
    """Return constants of the grids by the description of the recipe that they choose."""
    return {words(recipe): rule for recipe, rule in Cell.of(load(name), epsilon).recipes().items()}


def _same(row: dict[str, str]) -> bool:
    """Say whether a recipe reproduces its row of the table."""
    data, epsilon = load(row["set"]), float(row["epsilon"])
    rule = _rules(row["set"], epsilon)[row["recipe"]]
    return str(accuracy(data, epsilon, int(row["split"]), rule)) == row["accuracy"]


def _sources() -> str:
    """Digest sources without the rule's: the accuracy of a recipe does not depend on how it was chosen."""
    return closure_digest("privsvm.families.moments.scaled_descent")[:12]


def measure(names: list[str], confirm: bool) -> None:
    """Train missing recipes."""
    sources = _sources()
    kept: list[dict[str, str]] = []
    if TABLE.exists():
        with TABLE.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["recipe"] in _rules(row["set"], float(row["epsilon"]))]
        kept = [row for row in rows if row["sources"] == sources]
        stale = [row for row in rows if row["sources"] != sources]
        cheap = [row for row in stale if row["set"] not in SLOW]
        if confirm and cheap and all(map(_same, cheap[:: max(1, len(cheap) // _CONFIRMED)])):
            kept += [row | {"sources": sources} for row in stale]
    done = {(row["set"], row["epsilon"], row["recipe"], row["split"]) for row in kept}
    lines = [",".join(_FIELDS), *(",".join(row[name] for name in _FIELDS) for row in kept)]
    write_text(TABLE, "\n".join(lines) + "\n")
    for name in names:
        data = load(name)
        for split in range(next(splits for most, splits in _SPLITS_BY_ROWS if len(data.y) < most)):
            for epsilon in EPSILONS:
                for recipe, rule in Cell.of(data, epsilon).recipes().items():
                    key = (name, f"{epsilon:g}", words(recipe), str(split))
                    if key in done:
                        continue
                    done.add(key)
                    with TABLE.open("a", newline="") as file:
                        csv.writer(file).writerow([*key, accuracy(data, epsilon, split, rule), sources])


def measured() -> pd.Series:
    """Read mean accuracies over splits, by set, epsilon and recipe."""
    means: pd.Series = pd.read_csv(TABLE).groupby(["set", "epsilon", "recipe"]).accuracy.mean()
    return means


class Regrets:
    """Losses of accuracy of a rule's recipes against the best ones in hindsight."""

    def __init__(self, values: pd.Series, cells: list[Cell]) -> None:
        self.cells = cells
        self.values = values.to_dict()
        self.best = {
            cell: max(self.values[cell.name, cell.epsilon, words(recipe)] for recipe in cell.recipes())
            for cell in cells
        }

    def accuracy(self, cell: Cell, rule: Rule) -> float:
        """Return the mean accuracy of a rule in a cell."""
        return float(self.values[cell.name, cell.epsilon, words(cell.recipe(rule))])

    @functools.cache  # noqa: B019 - one object a run
    def by_set(self, rule: Rule) -> dict[str, float]:
        """Return the mean regret over the epsilons of every set."""
        regrets: dict[str, list[float]] = {}
        for cell in self.cells:
            regrets.setdefault(cell.name, []).append(self.best[cell] - self.accuracy(cell, rule))
        return {name: float(np.mean(of_set)) for name, of_set in regrets.items()}

    def mean(self, rule: Rule, without: str | None) -> float:
        """Return the mean regret over all sets but one."""
        return float(np.mean([regret for name, regret in self.by_set(rule).items() if name != without]))


def _steps_from_middle(rule: Rule) -> int:
    return sum(abs(grid.index(getattr(rule, name)) - len(grid) // 2) for name, grid in GRIDS.items())


def chosen(regrets: Regrets, without: str | None) -> Rule:
    """Choose constants on all sets but one, by coordinate descent from several starts.

    A step away from the middle of a grid must gain `_STEP`, so that noise alone does not move a constant.
    """

    def costs(rule: Rule) -> float:
        return regrets.mean(rule, without) + _STEP * _steps_from_middle(rule)

    candidates = []
    for start in range(3):
        rule = Rule(**{name: grid[start * (len(grid) - 1) // 2] for name, grid in GRIDS.items()})
        before = None
        while rule != before:
            before = rule
            for name, grid in GRIDS.items():
                rule = min((dataclasses.replace(rule, **{name: value}) for value in grid), key=costs)
        candidates.append(rule)
    return min(candidates, key=costs)


def choose() -> dict[str, Any]:
    """Choose constants on all sets, and without each; see ``held_out.json``."""
    values = measured()
    cells = [Cell.of(load(name), epsilon) for name in OLDER for epsilon in EPSILONS]
    # Sets with missing recipes choose nothing, and are judged by the choice of the others.
    missing = {
        cell.name
        for cell in cells
        if any((cell.name, cell.epsilon, words(recipe)) not in values.index for recipe in cell.recipes())
    }
    regrets = Regrets(values, [cell for cell in cells if cell.name not in missing])
    everywhere = chosen(regrets, None)
    folds = {name: everywhere if name in missing else chosen(regrets, name) for name in OLDER}
    return {
        "shipped": _constants(RULE),
        "all": _constants(everywhere),
        "folds": {name: _constants(rule) for name, rule in folds.items()},
        "regret": {
            name: {
                "shipped": round(regrets.by_set(RULE)[name], 5),
                "all": round(regrets.by_set(everywhere)[name], 5),
                "held_out": round(regrets.by_set(rule)[name], 5),
            }
            for name, rule in folds.items()
            if name not in missing
        },
        # Recipes that were trained by other sources.
        "earlier": int((pd.read_csv(TABLE).sources != _sources()).sum()),
        "cells": len(cells),
        "same": sum(cell.recipe(RULE) == cell.recipe(folds[cell.name]) for cell in cells),
    }


def _constants(rule: Rule) -> dict[str, float]:
    return {name: getattr(rule, name) for name in GRIDS}


def main() -> None:
    """Measure recipes and choose constants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(OLDER), choices=list(OLDER))
    parser.add_argument("--only-measure", action="store_true", help="train recipes, and choose nothing")
    parser.add_argument(
        "--confirm", action="store_true", help="keep rows of other sources if a sample of them is reproduced"
    )
    arguments = parser.parse_args()
    measure(arguments.sets, arguments.confirm)
    if not arguments.only_measure:
        write_text(CHOSEN, json.dumps(choose(), indent=2) + "\n")


if __name__ == "__main__":
    main()
