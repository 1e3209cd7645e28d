"""The recommended private classifier: one estimator that chooses how to train, and says so.

Few rows get linear features by a public rule. It reads declared numbers: rows, features, classes, epsilon, delta and
the relation. The most important number is the rows for one unit of noise, ``s = n signal``, where the signal is one
row's addition over the noise of a single release with the whole budget. With more rows a part of the budget buys trials
of hat functions beside them, and of random Fourier features of both. Of two classes, linear features stay unless
another trial has more votes, beyond its noise; of more, those that are most win if they have nearly as many votes.
Tables of few numbers, or of no more numbers than classes, have no trial of linear features: hat functions or random
features do better there, and a trial costs. Numbers have the more hat functions, the more rows there are for each. The
constants were chosen on the sets of docs/leaderboard.md, which says on which.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from privsvm.base.estimators import PrivateClassifier, Release
from privsvm.base.feature_steps import Step
from privsvm.base.parameters import BOUNDS, CLASS_WEIGHT, DELTA, N_JOBS, parameter
from privsvm.base.released import LinearPath
from privsvm.base.validation import check_bounds
from privsvm.constraints import ROWS, Constraint, one_of, optional
from privsvm.families.moments.scaled_descent import (
    Budget,
    Recipe,
    ScaledModel,
    class_weights_from,
    noisy_count,
    noisy_leads,
    rows_to_train,
    train,
    votes,
)
from privsvm.families.moments.second_moments import share_of_centre
from privsvm.families.output_perturbation.perturbation import REFUSED_DATA
from privsvm.numerics.compiled.threads import count_threads, thread_pool
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import RowBlocks, RowsByBlock, dense_bytes, dense_rows, map_rows
from privsvm.privacy.events import Composed, Event, Gaussian, relation_factor
from privsvm.privacy.gate import ONE_MODEL, Claim, Guarantee
from privsvm.privacy.mechanisms import NOISE_ASSUMPTION
from privsvm.solvers.features.columns import Columns, column_features, keeps_zeros, n_column_features

FEATURES = ("auto", "linear", "hats", "fourier")

# Shares of the budget for noisy numbers of rows: of every class, and of all rows.
_CLASS_SHARE, _COUNT_SHARE = 0.01, 0.01
# Shares of the rest: of votes on trials, and of each trial. Where no winner is trained again, linear features have that
# or more, by how many they are, and the other trials get the rest.
_VOTE_SHARE, _TRIAL_SHARE = 0.04, 0.06
# Steps of a trial at most, where its winner is trained again.
_TRIAL_STEPS = 20
# A trial must have so many more votes than linear features: in standard deviations of the difference's noise, and in
# roots of the number of rows, as features that are more fit the rows better, whatever their classes are.
_EARNED, _EARNED_ROOTS = 1.0, 0.5
# With more than two classes the winner is trained again, and features that are more gain the most from the rest of the
# budget: of features within so many votes of the best, as a share of all rows, those that are most win.
_FEWER_OF_MORE = 0.03
# Numbers with hat functions at most, the fewest and the most hats of each, and the constant beside columns.
_WIDEST_HATS, _HATS, _MOST_HATS, _CONSTANT = 40, 8, 32, 1.0
# How high hats are on a table of numbers alone, and at most. Indicators shorten numbers and hats of a unit row, and
# hats make up for it: their squares grow with the columns for each number.
_HAT_WEIGHT, _LARGEST_HAT_WEIGHT = 0.5, 0.8
# Random features see hats too: few and low ones. (They gained .3 points on columns drawn from the sets that chose, and
# 5 on fourclass at epsilon 1; more or higher ones gained less.)
_FOURIER_HATS, _LOWER = 5, 0.5
# Bound of columns without one: audits square and add up the released numbers.
_UNBOUNDED = 2.0**500
# Few columns: their random features have larger frequencies, and are always evened out.
_FEW_COLUMNS, _GAMMA_OF_ONE = 3, 3.0
# A centre is bought where its noise is no longer than this many unit rows: a noisier one moves all rows one way.
_NOISIEST_CENTRE = 1.0
# Random features need so many rows each, or weights fit the rows and not their classes, whatever the noise.
_ROWS_PER_FEATURE = 5
# A second moment of more features takes long: its eigenvalues are the cube of them.
_WIDEST_EVENED = 1000
# Few steps are far from where they go, and the last ones are nearest: fewer of them are averaged.
_AVERAGED_OF_FEW = 0.15
# Fewer rows than these for each column: two classes have `Rule.length_few` however little noise there is, as longer
# steps fit the rows. (Breast cancer gained .3 points at epsilon 4, splice .9 at 8; other small sets are within noise.)
# Where a row is added, their columns are not evened out: a second moment of so few rows is far from the second moment
# of other rows, and weights of columns that say nothing stay apart. (That gained .1 points from epsilon 1 to 16, on
# splice 2 from 6 on.)
_ROWS_PER_COLUMN = 20
# And more classes have at most all these steps together, over the number of rows.
_LONGEST_OF_FEW = 0.35
# Features that the rule may choose at most, and bytes of a table of them above which rows are worked on block by block:
# any table, and one on which fewer models are trained than there are threads.
_WIDEST, _LARGEST_TABLE, _LARGEST_OF_FEW_MODELS = 256, 2**28, 2**25


_INDICATORS = Constraint(
    {"anyOf": [{"enum": ["all"]}, {"type": "array", "items": {"type": "integer", "minimum": 0}}, {"type": "null"}]},
    'must be "all", numbers of columns, or None',
    '"all", list of int or None',
)


@dataclasses.dataclass(frozen=True)
class _Choice:
    """A recipe, and why it was chosen."""

    recipe: Recipe
    why: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """Constants of the rule; rows are counted in units of the noise, ``s = n signal``.

    - `constant_rows_per_class`: from so many rows for each class on, numbers with bounds have a constant beside them.
    - `trial_rows`, `trial_rows_per_class`: from so many rows on, and so many for each class, hat functions are tried.
    - `large`, `large_per_column`: from so many rows on, few columns have trials. With so many rows for each column,
      too, trials of two classes get all of the budget, and the winner is released unchanged: the best features depend
      on the budget of a model, and so large a part of it is enough.
    - `fourier_rows_per_class`, `fourier_rows_per_column`: from so many rows for each class on, and so many for each
      class and column, random features are tried.
    - `rich`: from so many rows on, random features are more, and evened out.
    - `few_rows_per_class`: from so many rows for each class on, tables of few numbers have hat functions; without other
      columns, random features, and no trial below `large` rows. (On few columns drawn from the older sets no trial paid
      for itself.)
    - `rows_per_number`: from so many rows for each class and number on, tables of more than two classes and no more
      numbers than classes have them, too: linear scores of few numbers do not order many classes. (On columns drawn
      from the older sets hat functions gained 2 points in the median there; below, they lost up to 6.)
    - `evened`: where a row is added, columns are evened out from so many rows for each of them on: a second moment
      costs its share. Where a row is replaced it costs next to nothing beside steps, and columns always are, as hat
      functions.
    - `evened_widest`: where a row is added, at most so many columns of more than two classes are evened out: of many
      columns, the ones that spread least tell classes apart least, and would get most of the noise. Columns of two
      classes need rows.
    - `short`: below so many rows for a class, there are few steps.
    - `hat_rows`: from so many rows for each class and number on, a number has twice as many hats, and from four times
      as many rows on twice as many again.
    - `few_two`: below so many rows two classes get `length_few`, unless columns are few; with few rows for each column
      they get it, too.
    - `length_few`, `length_two`: length of all steps together, for two classes. No step is longer than a mean gradient
      of all rows for each feature: evened-out rows spread along about so many directions, and a longer step goes too
      far.
    - `length_plain`, `length_evened`, `length_many`: the same for more classes, with unchanged features (and the most
      for two classes), with evened-out ones, and for more than twenty classes or random features that are not evened
      out.
    """

    constant_rows_per_class: float = 10.0
    trial_rows: float = 200.0
    trial_rows_per_class: float = 40.0
    large: float = 2500.0
    large_per_column: float = 60.0
    fourier_rows_per_class: float = 120.0
    fourier_rows_per_column: float = 5.0
    rich: float = 1500.0
    few_rows_per_class: float = 15.0
    rows_per_number: float = 1.75
    evened: float = 4.0
    evened_widest: int = 32
    short: float = 25.0
    hat_rows: float = 100.0
    few_two: float = 300.0
    length_few: float = 0.4
    length_two: float = 0.6
    length_plain: float = 0.3
    length_evened: float = 0.4
    length_many: float = 0.5


RULE = Rule()


def candidates(
    n_rows: float, n_features: int, n_classes: int, budget: Budget, rule: Rule = RULE, n_numbers: int = 0
) -> tuple[str, ...]:
    """Choose the features to try, from public numbers or released ones; parameters are as in `choose_recipe`."""
    size = max(n_rows * budget.signal, 1e-3)
    per_class = size / n_classes
    hats = 0 < n_numbers <= _WIDEST_HATS and n_rows >= _ROWS_PER_FEATURE * _HATS * n_numbers
    crowded = 2 < n_classes >= n_numbers and per_class >= rule.rows_per_number * n_numbers
    few_numbers = hats and (crowded or n_numbers <= _FEW_COLUMNS)
    few_columns = _few_columns(n_features, n_numbers)
    if few_columns and size < rule.large and per_class >= rule.few_rows_per_class:
        return ("fourier",)
    if size < rule.trial_rows or per_class < rule.trial_rows_per_class:
        return ("hats",) if few_numbers and per_class >= rule.few_rows_per_class else ("linear",)
    many = per_class >= max(rule.fourier_rows_per_class, rule.fourier_rows_per_column * n_features)
    enough_rows = n_rows >= _ROWS_PER_FEATURE * 2 * _n_frequencies(size, rule)
    fourier = few_columns or (many and enough_rows and n_features <= _WIDEST)
    tried = {"linear": not few_numbers, "hats": hats, "fourier": fourier}
    return tuple(kind for kind, is_tried in tried.items() if is_tried)


def _few_columns(n_features: int, n_numbers: int) -> bool:
    return n_numbers > 0 and n_features <= _FEW_COLUMNS


def _n_frequencies(size: float, rule: Rule) -> int:
    return 128 if size >= rule.rich else 100


def _n_hats(n_rows: float, size: float, n_classes: int, n_numbers: int, rule: Rule) -> int:
    """Choose how many hat functions a number has."""
    n_hats, needed = _HATS, rule.hat_rows * n_classes * n_numbers
    widest = min(_WIDEST, n_rows / _ROWS_PER_FEATURE)
    while size >= needed and 2 * n_hats * n_numbers <= widest and n_hats < _MOST_HATS:
        n_hats, needed = 2 * n_hats, 4.0 * needed
    return n_hats


def choose_recipe(
    n_rows: float,
    n_features: int,
    n_classes: int,
    budget: Budget,
    features: str = "auto",
    rule: Rule = RULE,
    n_numbers: int = 0,
) -> tuple[Recipe, str]:
    """Choose a recipe from public or released numbers; return it, and the reason in words.

    `features` is ``auto``, ``linear``, ``hats`` or ``fourier``; ``auto`` is linear: see `candidates` for others to try.
    `n_numbers` of the features are numbers with public bounds.
    """
    size = max(n_rows * budget.signal, 1e-3)
    per_class = size / n_classes
    rich, has_rows = size >= rule.rich, n_rows >= _ROWS_PER_COLUMN * n_features
    fourier, hats = features == "fourier", features == "hats" and n_numbers > 0
    why = [f"{size:.3g} rows for one unit of noise ({n_classes} classes, {n_features} features)"]
    constant = n_numbers > 0 and (fourier or per_class >= rule.constant_rows_per_class)
    columns = Columns(constant=_CONSTANT if constant else 0.0)
    if hats or (fourier and 0 < n_numbers <= _WIDEST_HATS):
        n_hats = _FOURIER_HATS if fourier else _n_hats(n_rows, size, n_classes, n_numbers, rule)
        hat_weight = min(_HAT_WEIGHT * math.sqrt(n_features / n_numbers), _LARGEST_HAT_WEIGHT)
        columns = columns._replace(n_hats=n_hats, hat_weight=hat_weight * (_LOWER if fourier else 1.0))
    row_width = n_features + constant + columns.n_hats * n_numbers
    n_frequencies = _n_frequencies(size, rule) if fourier else 0
    width = 2 * n_frequencies if fourier else row_width
    few_columns = _few_columns(n_features, n_numbers)
    mean_share = share_of_centre(row_width, size)
    if math.sqrt(row_width / mean_share) > _NOISIEST_CENTRE * size:
        mean_share = 0.0
        why.append("no centre: too few rows for its noise")
    if fourier:
        moment_share = 0.15 if rich or few_columns else 0.0
        why.append(f"{n_frequencies} random Fourier frequencies")
    else:
        may_be_evened = has_rows if n_classes == 2 else n_features <= rule.evened_widest
        evened = hats or budget.neighbours == "replace_one" or (may_be_evened and size >= rule.evened * width)
        moment_share = 0.1 if evened and width <= _WIDEST_EVENED else 0.0
        why.append(f"{columns.n_hats} hat functions of each of {n_numbers} numbers" if hats else "features as they are")
    why.append(
        "directions evened out by a noisy second moment" if moment_share else f"no second moment of {width} features"
    )
    is_short = per_class < rule.short
    n_steps = 12 if is_short else 40
    if n_classes == 2:
        few = (size < rule.few_two and not few_columns) or not has_rows
        length = min(rule.length_few if few else rule.length_two, n_steps * width / size)
        length = length if moment_share or fourier else min(length, rule.length_plain)
    elif n_classes > 20 or (fourier and not moment_share):
        length = rule.length_many
    else:
        length = rule.length_evened if moment_share else rule.length_plain
    if n_classes > 2 and not has_rows:
        length = min(length, _LONGEST_OF_FEW / budget.signal)
    why.append(f"{n_steps} steps")
    recipe = Recipe(
        mean_share=mean_share,
        columns=columns,
        n_frequencies=n_frequencies,
        gamma=max(Recipe.gamma, _GAMMA_OF_ONE / n_features) if few_columns else Recipe.gamma,
        feature_mean_share=share_of_centre(width, size, 0.1) if fourier else 0.0,
        moment_share=moment_share,
        lift=0.5 if fourier else 1.0,
        n_steps=n_steps,
        length=length,
        averaged=_AVERAGED_OF_FEW if is_short else Recipe.averaged,
    )
    return recipe, "; ".join(why)


class PrivateLinearClassifier(PrivateClassifier):
    """The recommended private classifier: it scales rows, chooses features and trains, all within one budget.

    Attributes
    ----------
    recipe_ : str
        The choice, and its reason.
    coef_ : ndarray (c, D)
        Weights, of scaled rows or of their features.
    intercept_ : ndarray (c,)
        Offsets.
    mean_ : ndarray (d,)
        Noisy mean of unit rows.
    feature_mean_ : ndarray (D,)
        Noisy mean of random features; empty without them.

    Notes
    -----
    Probabilities are a fixed function of the scores, which reads no rows: they order rows as scores do, and are not
    calibrated. To move the threshold of a decision between two classes, hand the fitted model, in a
    `sklearn.frozen.FrozenEstimator`, to `sklearn.model_selection.FixedThresholdClassifier`, which does not train it
    again. Sums and noise are exact. Training time is not covered: it depends on the rows.

    Examples
    --------
    >>> from privsvm import PrivateLinearClassifier
    >>> model = PrivateLinearClassifier(epsilon=1.0, classes=[0, 1], bounds=(-2, 2))
    >>> model.fit([[-1.0], [1.0]] * 500, [0, 1] * 500).guarantee_.status
    'proved'
    >>> print(model.recipe_.split(";")[1].strip())
    100 random Fourier frequencies
    """

    reads_blocks = True
    class_memory = "model"
    pays_for_counts = True
    _rule: ClassVar[Rule] = RULE

    delta: float = DELTA
    n_rows: int | None = parameter(
        None,
        optional(ROWS),
        "Public number of rows, which the rule reads. None counts them under ``replace_one``, where neighbours have as "
        "many, and pays for a noisy count under ``add_remove``.",
        common=True,
    )
    bounds: tuple | None = parameter(
        None,
        BOUNDS,
        "Public bounds of the features: rows are cut to them, and numbers are mapped to [-1, 1]. None: rows were "
        "scaled already, by public numbers.",
    )
    indicators: Any = parameter(
        None,
        _INDICATORS,
        'Columns of two values, such as 0 and 1 for a category: they are cut to their bounds and stay. "all", or the '
        "numbers of the columns from 0. None: all columns are numbers. Without bounds they mean nothing.",
    )
    class_weight: dict[Any, Any] | str | None = parameter(
        None,
        CLASS_WEIGHT,
        'Public weight of each label\'s rows; "balanced" gives all classes the same say, by noisy numbers of their '
        "rows, which take a hundredth of the budget.",
    )
    features: str = parameter(
        "auto",
        one_of(*FEATURES),
        "Which features to train on: the columns (linear), hat functions of numbers with bounds beside them, or random "
        'Fourier features of both; "auto" takes the columns, and tries the others where rows are many; of three '
        "numbers or fewer, or no more numbers than classes, it takes one of the others.",
    )
    n_jobs: int | None = N_JOBS

    def _limits(self, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bounds of every feature, and which are indicators; without bounds all stay as they are."""
        if self.bounds is None:
            largest = np.full(n_features, _UNBOUNDED)
            return -largest, largest, np.ones(n_features, dtype=bool)
        low, high = check_bounds(self.bounds, n_features)
        indicators = np.zeros(n_features, dtype=bool)
        if self.indicators is not None:
            chosen = slice(None) if isinstance(self.indicators, str) else np.asarray(self.indicators, dtype=np.int64)
            if not isinstance(chosen, slice) and np.any(chosen >= n_features):
                raise ValueError(f"indicators={self.indicators!r}: there are {n_features} columns, counted from 0")
            indicators[chosen] = True
        return low, high, indicators

    def _public_weights(self) -> np.ndarray:
        """Weights of the classes from declared numbers, the largest 1."""
        weights = np.ones(len(self.classes_))
        if isinstance(self.class_weight, dict):
            for label, weight in self.class_weight.items():
                class_index = np.flatnonzero(self.classes_ == label)
                if class_index.size != 1 or not (isinstance(weight, (int, float)) and 0 < weight < math.inf):
                    raise ValueError(
                        f"class_weight={self.class_weight!r}: {label!r} must be a label, and its weight positive and "
                        "finite"
                    )
                weights[class_index] = weight
        return weights / weights.max()

    @property
    def _counts_rows(self) -> bool:
        """Whether a noisy number of rows is paid for."""
        return self.n_rows is None and self.neighbours == "add_remove"

    @property
    def _count_shares(self) -> dict[str, float]:
        """Shares of the budget for noisy numbers of rows."""
        shares = {
            "classes": _CLASS_SHARE if self.class_weight == "balanced" else 0.0,
            "rows": _COUNT_SHARE if self._counts_rows else 0.0,
        }
        return {name: share for name, share in shares.items() if share > 0.0}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        count_threads(self.n_jobs)

    def _release(self, release: Release) -> LinearPath:
        X, n_threads = release.rows, count_threads(self.n_jobs)
        lower, upper, indicators = self._limits(X.shape[1])
        self._n_numbers = int((~indicators).sum())
        weights = self._public_weights()
        started = time.perf_counter()
        widest = X.shape[1] + 1 + _WIDEST + _HATS * min(self._n_numbers, _WIDEST_HATS)
        few_models = len(release.epsilons) * release.repeats < n_threads
        largest = _LARGEST_OF_FEW_MODELS if few_models else _LARGEST_TABLE
        by_block = isinstance(X, RowBlocks) or dense_bytes(X, widest) > largest

        @functools.cache
        def rows(columns: Columns) -> Any:
            sparse = keeps_zeros(lower, upper, indicators, columns)
            given = RowsByBlock.of(X, n_threads, sparse=sparse) if by_block else X if sparse else dense_rows(X)
            width = n_column_features(indicators, columns)
            return rows_to_train(map_rows(given, column_features, lower, upper, indicators, columns, n_features=width))

        budgets = [
            Budget(epsilon=epsilon, delta=release.delta, neighbours=self.neighbours) for epsilon in release.epsilons
        ]
        n_rows = self.n_rows if self.n_rows is not None else X.shape[0]
        release.pay(self._guarantee(budget, n_rows, X.shape[1], release) for budget in budgets)
        run = functools.partial(self._train, rows, X.shape, release.codes, weights)
        repeats = range(release.repeats)
        jobs = [(budget, release.source(budget.epsilon, repeat)) for budget in budgets for repeat in repeats]
        with thread_pool(1 if by_block else n_threads) as pool:
            results = list(map(run, jobs) if pool is None else pool.map(run, jobs))
        seconds = time.perf_counter() - started
        self._why = results[0][1].why
        models, recipes = [result[0] for result in results], [result[1].recipe for result in results]
        bounds = {"lower": lower, "upper": upper, "indicators": indicators.astype(np.float64)}
        return release.path(LinearPath, release_seconds=seconds, **_path(models, recipes, bounds, len(budgets)))

    def _candidates(self, n_rows: float, n_features: int, budget: Budget) -> tuple[str, ...]:
        """Features to try."""
        if self.features != "auto":
            return (self.features,)
        return candidates(n_rows, n_features, len(self.classes_), budget, self._rule, self._n_numbers)

    def _train(
        self,
        rows: Callable[[Columns], Any],
        shape: tuple[int, int],
        codes: np.ndarray,
        weights: np.ndarray,
        job: tuple[Budget, NoiseSource],
    ) -> tuple[ScaledModel, _Choice]:
        """Train one model on the rows that a function makes for a recipe."""
        budget, source = job
        (n_counted, n_features), n_classes = shape, len(self.classes_)
        n_rows = float(n_counted if self.n_rows is None else self.n_rows)
        if self._counts_rows:
            n_rows = float(noisy_count(codes, 1, budget, _COUNT_SHARE, source.part("count"))[0])
        if self.class_weight == "balanced":
            weights = class_weights_from(noisy_count(codes, n_classes, budget, _CLASS_SHARE, source.part("classes")))
        kinds, left = self._candidates(n_rows, n_features, budget), self._left(budget)

        def recipe_of(kind: str, part: Budget) -> tuple[Recipe, str]:
            return choose_recipe(n_rows, n_features, n_classes, part, kind, self._rule, self._n_numbers)

        common: dict[str, Any] = {"n_rows": n_rows, "class_weights": weights}

        def train_on(recipe: Recipe, part: Budget) -> ScaledModel:
            return train(rows(recipe.columns), codes, recipe=recipe, budget=part, source=source, **common)

        if len(kinds) == 1:
            recipe, why = recipe_of(kinds[0], budget)
            return train_on(recipe, left), _Choice(recipe, why + self._requested)
        trials, counts = [], []
        enough = max(self._rule.large, self._rule.large_per_column * n_features)
        large = n_classes == 2 and n_rows * budget.signal >= enough
        shares = _trial_shares(kinds, large, n_features)
        for kind, trial_share in zip(kinds, shares, strict=True):
            part = dataclasses.replace(budget, part=left.share * trial_share)
            recipe, why = recipe_of(kind, part)
            if not large:
                recipe = dataclasses.replace(recipe, n_steps=min(recipe.n_steps, _TRIAL_STEPS))
            model, count = votes(
                rows(recipe.columns), codes, recipe=recipe, budget=part,
                source=source.part(f"trial of {kind}"), **common,
            )  # fmt: skip
            trials.append((model, recipe, why))
            counts.append(count)
        leads, sigma = noisy_leads(counts, left, _VOTE_SHARE, source.part("votes"))
        # What all rows weigh together, if the weights make up for the numbers of rows.
        least = float(weights.min())
        total = n_rows * least / float((least / weights).mean())
        if n_classes == 2:
            best = 1 + int(leads[1:].argmax())
            best = best if leads[best] > _EARNED * sigma + _EARNED_ROOTS * math.sqrt(total) else 0
        else:
            best = int(np.flatnonzero(leads >= leads.max() - _FEWER_OF_MORE * total)[-1])
        model, recipe, why = trials[best]
        if not large:
            recipe, why = recipe_of(kinds[best], budget)
            rest = left.share * (1.0 - math.fsum([*shares, _VOTE_SHARE]))
            model = train_on(recipe, dataclasses.replace(left, share=rest))
        told = ", ".join(f"{kind} {lead:+.0f}" for kind, lead in zip(kinds[1:], leads[1:], strict=True))
        why = f"{why}; {kinds[best]} features by noisy votes of trials: {told} beside {kinds[0]}"
        return model, _Choice(recipe, why)

    @property
    def _requested(self) -> str:
        return "" if self.features == "auto" else "; by request"

    def _left(self, budget: Budget) -> Budget:
        """Take the shares of noisy numbers of rows off a budget."""
        return dataclasses.replace(budget, share=1.0 - math.fsum(self._count_shares.values()))

    def _guarantee(self, budget: Budget, n_rows: int, n_features: int, release: Release) -> Guarantee:
        """Privacy record of one epsilon; of public numbers alone."""
        counted, left = self._count_shares, self._left(budget)
        used: Any = "not used" if self._counts_rows else self.n_rows
        counts = [Gaussian(budget.multiplier(epsilon_share)) for epsilon_share in counted.values()]
        kinds = () if self._counts_rows else self._candidates(n_rows, n_features, budget)
        if len(kinds) != 1:
            # The division of the rest follows from released numbers, and its cost does not.
            event: Event = Composed((*counts, Gaussian(left.multiplier(1.0))))
            how, noise = "as its rule says for a noisy number of rows", None
            if kinds:
                how = f"on {', '.join(kinds[:-1])} or {kinds[-1]} features, by noisy votes of trials"
        else:
            recipe, why = choose_recipe(
                n_rows, n_features, len(self.classes_), budget, kinds[0], self._rule, self._n_numbers
            )
            event = Composed((*counts, recipe.event(left)))
            how = why + self._requested
            # Beside a second moment it follows from released numbers.
            fixed = recipe.joint_share(budget.neighbours) is None
            noise = left.multiplier(recipe.step_share) if fixed else None
        claim = Claim(
            event=event,
            mechanism=f"Gaussian noise on sums of scaled rows, then on full sums of clipped gradients: {how}",
            reference="docs/proofs/recommended.md",
            neighbours=self.neighbours,
            epsilon_requested=budget.epsilon,
            delta=budget.delta,
            sensitivity=relation_factor(self.neighbours),
            noise_scale=noise,
            assumptions=(
                "no row adds more than 1 to the norm of a sum, or of a sum of clipped gradients: enforced by whole "
                "numbers, row by row",
                REFUSED_DATA,
                "classes, bounds, the number of features, public class weights and all other parameters are public"
                + ("" if self._counts_rows else ", and so is the number of rows"),
                ONE_MODEL,
                "rows and their clipped gradients are truncated to grids; sums and their noise are exact; training "
                "time is not covered",
                NOISE_ASSUMPTION,
            ),
        )
        return release.grant(claim, n_rows=used, features="public")

    def _keep(self, path: LinearPath) -> None:
        super()._keep(path)
        centre, mean = path.step("direction")["centre"][0, 0], path.step("scale")["mean"][0, 0]
        self.intercept_ = path.intercept[0, 0]
        self.mean_, self.feature_mean_ = (centre, mean) if path.step("fourier")["count"].any() else (mean, mean[:0])
        self.recipe_ = self._why


def _trial_shares(kinds: tuple[str, ...], large: bool, n_features: int) -> list[float]:
    """Shares of trials, linear features first if there are any; with votes on them they are all of it if `large`."""
    if not large:
        return [_TRIAL_SHARE] * len(kinds)
    of_width = (1.0 - _VOTE_SHARE) * n_features / (n_features + _WIDEST)
    linear = [max(_TRIAL_SHARE, of_width)] if kinds[0] == "linear" else []
    n_others = len(kinds) - len(linear)
    return linear + [(1.0 - _VOTE_SHARE - math.fsum(linear)) / n_others] * n_others


def _path(
    models: list[ScaledModel], recipes: list[Recipe], bounds: dict[str, np.ndarray], n_epsilons: int
) -> dict[str, Any]:
    """Make the weights and steps of a path from E R models, padded to the widest, and the bounds of columns."""

    def stack(arrays: Iterable[np.ndarray]) -> np.ndarray:
        arrays = list(arrays)
        width = max(array.shape[-1] for array in arrays)
        rows = [np.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, width - row.shape[-1])]) for row in arrays]
        return np.reshape(rows, (n_epsilons, -1, *rows[0].shape))

    # The mean of rows is subtracted before random features; without them, before the scaling.
    pairs = [
        (model.mean, model.feature_mean) if recipe.n_frequencies else (np.zeros_like(model.mean), model.mean)
        for model, recipe in zip(models, recipes, strict=True)
    ]
    centres, means = zip(*pairs, strict=True)
    count = np.array([recipe.n_frequencies for recipe in recipes], dtype=np.int64).reshape(n_epsilons, -1)
    most = int(count.max())
    frequencies = np.zeros((max(centre.size for centre in centres), most))
    for centre, recipe in zip(centres, recipes, strict=True):
        # They are the first ones of the longest draw.
        if recipe.n_frequencies == most > 0:
            frequencies[: centre.size] = recipe.frequencies(centre.size)
    by_column = zip(*(recipe.columns for recipe in recipes), strict=True)
    columns = dict(zip(Columns._fields, (np.reshape(each, (n_epsilons, -1)) for each in by_column), strict=True))
    steps = (
        Step("columns", **bounds, **columns),
        Step("unit"),
        Step("direction", centre=stack(centres)),
        Step("fourier", frequencies=frequencies, count=count),
        Step("scale", mean=stack(means)),
    )
    coef, intercept = stack(model.coef for model in models), stack(model.intercept for model in models)
    return {"coef": coef, "intercept": intercept, "steps": steps}


ESTIMATOR = PrivateLinearClassifier
