"""Measure a set's accuracy at epsilon 1 without the luck of one draw of noise: ``python bench/utility/repeats.py``.

Every split is trained with many draws, by the recommended recipe and by others of its kind. Writes
``reports/utility/repeats.csv``, which the page reads: what the recipe lacks, and what one draw leaves to chance.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from run_ours import DELTA, TABLES
from sets import load

from privsvm import PrivateLinearClassifier
from privsvm.families.moments.scaled_descent import Recipe
from privsvm.files import write_text
from privsvm.methods import recommended

TABLE = TABLES / "repeats.csv"
FIELDS = ("set", "recipe", "n_steps", "length", "draws", "splits", "mean", "median", "deviation")
# Steps and their length, as multiples of what the rule chooses.
STEPS, LENGTHS = (1.0, 5 / 3, 10 / 3), (2 / 3, 1.0, 4 / 3)


def medians(name: str, draws: int, changes: dict[str, float]) -> tuple[np.ndarray, Recipe]:
    """Median accuracy over the splits for each draw of noise, and the recipe."""
    data, choose, used = load(name), recommended.choose_recipe, []

    def changed(*arguments: Any, **named: Any) -> tuple[Recipe, str]:
        recipe, why = choose(*arguments, **named)
        steps = round(recipe.n_steps * changes["steps"])
        used.append(dataclasses.replace(recipe, n_steps=steps, length=recipe.length * changes["length"]))
        return used[-1], why

    found = np.empty((draws, len(data.splits)))
    with mock.patch.object(recommended, "choose_recipe", changed):
        for draw in range(draws):
            for split, (train, test) in enumerate(data.splits):
                model = PrivateLinearClassifier(
                    epsilon=1.0, delta=DELTA, classes=list(range(data.n_classes)), bounds=(data.lower, data.upper),
                    random_state=len(data.splits) * draw + split,
                )  # fmt: skip
                found[draw, split] = model.fit(data.X[train], data.y[train]).score(data.X[test], data.y[test])
    return np.median(found, axis=1), used[-1]


def rows(names: list[str], draws: int) -> Iterator[dict[str, Any]]:
    """One row for each set and recipe."""
    for name in names:
        for steps in STEPS:
            for length in LENGTHS:
                found, recipe = medians(name, draws, {"steps": steps, "length": length})
                own = steps == length == 1.0
                yield {
                    "set": name, "recipe": "recommended" if own else "other", "n_steps": recipe.n_steps,
                    "length": f"{recipe.length:.3g}", "draws": draws, "splits": len(load(name).splits),
                    "mean": f"{found.mean():.4f}", "median": f"{np.median(found):.4f}",
                    "deviation": f"{found.std(ddof=1):.4f}",
                }  # fmt: skip


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=["digits", "wine"])
    parser.add_argument("--draws", type=int, default=40)
    options = parser.parse_args()
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for row in rows(options.sets, options.draws):
        writer.writerow(row)
        print(row["set"], row["n_steps"], row["length"], row["mean"], flush=True)
    write_text(TABLE, text.getvalue())


if __name__ == "__main__":
    main()
