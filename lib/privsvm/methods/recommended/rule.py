"""The rule of the recommended classifier: the features of a table, by public numbers or released ones.

The number that matters most is the rows for one unit of noise, ``s = n signal``, where the signal is one row's addition
over the noise of a single release with the whole budget. Features are worth their noise where there are so many such
rows for each of them as `TABLE` says. Its numbers were tuned on the *choose* sets of bench/utility/kinds.json alone;
bench/utility/ablation.py measures what each of them gains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from privsvm.families.moments.scaled_descent import Budget, EarlierModel, Recipe
from privsvm.families.moments.second_moments import share_of_centre
from privsvm.solvers.features.columns import Columns


class Table(NamedTuple):
    """The numbers of the rule; those that end in `from` are rows for one unit of noise, for each feature."""

    # Each number has hat functions beside it.
    hats_from: float = 1.4
    n_hats: int = 8
    hat_weight: float = 0.5
    # The rest is for random Fourier features of all these, so many pairs at most.
    fourier_from: float = 4.0
    n_frequencies: int = 128
    # Of so few columns all pairs say little more than a few, and cost little more: tables with hat functions have them,
    # of larger frequencies.
    few_columns: int = 3
    gamma_of_one: float = 6.0
    # A share of the budget buys a second moment, which evens out the spread along its directions: of features that are
    # more than the columns, and of the columns from so many rows on, or where a row is replaced: there it costs next to
    # nothing beside the steps.
    evened_from: float = 3.0
    moment_share: float = 0.1
    # The work on a second moment grows with the cube of its features: so many at most.
    widest: int = 1000
    # Below so many rows for one unit of noise, even the shares of the classes are lost in it.
    least_rows: float = 15.0


TABLE = Table()
FEATURES = ("auto", "linear", "hats", "fourier")


def choose_recipe(
    n_rows: float, n_features: int, n_numbers: int, budget: Budget, features: str = "auto", table: Table = TABLE,
    earlier: EarlierModel | None = None,
) -> tuple[Recipe, str]:  # fmt: skip
    """Choose a recipe from public numbers or released ones; return it, and the reason in words.

    `n_numbers` of the features are numbers with public bounds. `features` but ``auto`` are a request, with hat
    functions beside random Fourier features as well. The features of an `earlier` model are taken, so that both can be
    averaged, unless one of them alone has hat functions: too few or too many features cost more than an average gains.
    """
    size = n_rows * budget.signal
    # However little noise there is, more features than rows fit the rows, whatever their classes are.
    rows, is_auto = min(size, n_rows), features == "auto"
    linear = n_features + (n_numbers > 0)
    width = linear + table.n_hats * n_numbers
    width = width if width <= table.widest else linear
    has_hats = width > linear and (rows >= table.hats_from * width if is_auto else features != "linear")
    few = n_features <= table.few_columns
    # Random features are for the rest of the rows, beside hat functions.
    most = math.inf if features == "fourier" or (few and has_hats) else min(rows / table.fourier_from, table.widest)
    n_frequencies = int(min(max(most - width, 0) / 2, table.n_frequencies)) if features in ("auto", "fourier") else 0
    width = width if has_hats else linear
    mean_share = share_of_centre(width, size)
    # A noise longer than a unit row would move all rows one way.
    mean_share = mean_share if mean_share * size**2 >= width else 0.0
    # Of rows that are not centred, a constant would be the longest part. All rows with random features have one, as all
    # models of a path share the frequencies.
    columns = Columns(constant=float(n_numbers > 0 and (mean_share > 0 or n_frequencies > 0)))
    if has_hats:
        weight = min(table.hat_weight * math.sqrt(n_features / n_numbers), 1.0)
        columns = columns._replace(n_hats=table.n_hats, hat_weight=weight)
    averages = earlier is not None and (earlier.columns.n_hats > 0) == has_hats
    if earlier is not None and averages:
        columns, n_frequencies, mean_share = earlier.columns, earlier.frequencies.shape[1], 0.0
    width += 2 * n_frequencies
    evened = width <= table.widest and (
        width > linear or budget.neighbours == "replace_one" or rows >= table.evened_from * width
    )
    recipe = Recipe(
        n_rows=n_rows,
        mean_share=mean_share,
        columns=columns,
        n_frequencies=n_frequencies,
        gamma=table.gamma_of_one / n_features if few else Recipe.gamma,
        moment_share=table.moment_share if evened else 0.0,
        # No step is longer than a mean gradient of all rows for each feature: evened-out rows spread along about so
        # many directions, and a longer step goes too far.
        length=min(Recipe.length, Recipe.n_steps * width / size),
        earlier=earlier if averages else None,
    )
    evening = "evened out by a noisy second moment" if evened else f"no second moment of {width} features"
    why = [
        f"{size:.3g} rows for one unit of noise ({n_features} features)",
        "" if mean_share or averages else "no centre: too few rows for its noise",
        f"{table.n_hats} hat functions of each of {n_numbers} numbers" if has_hats else "features as they are",
        f"{n_frequencies} random Fourier frequencies" if n_frequencies else "",
        evening,
        "" if earlier is None else "averaged with the earlier model" if averages else "not averaged: other features",
        "the largest class alone may be more accurate: too few rows for this noise" if size < table.least_rows else "",
    ]
    return recipe, "; ".join(filter(None, why)) + ("" if is_auto else "; by request")
