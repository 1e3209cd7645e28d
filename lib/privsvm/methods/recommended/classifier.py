"""The recommended private classifier: one estimator that chooses how to train, and says so.

`privsvm.methods.recommended.rule` chooses the features. It reads declared numbers: rows, features, epsilon, delta and
the relation; where the number of rows is no public one, a part of the budget buys a noisy one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np

from privsvm.base.estimators import PrivateClassifier, Release
from privsvm.base.parameters import BOUNDS, CLASS_WEIGHT, DELTA, N_JOBS, NEIGHBOURS, check_bounds, parameter
from privsvm.base.released import LinearPath, NoisyLinearPath
from privsvm.constraints import ROWS, Constraint, one_of, optional, text
from privsvm.families.moments.scaled_descent import (
    Budget,
    EarlierModel,
    Recipe,
    ScaledModel,
    make_path,
    noisy_count,
    read_earlier,
    train,
)
from privsvm.families.moments.second_moments import unit_cell_rows
from privsvm.families.output_perturbation.perturbation import REFUSED_DATA
from privsvm.methods.recommended.rule import FEATURES, TABLE, Table, choose_recipe
from privsvm.numerics.compiled.threads import count_threads, thread_pool
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import RowBlocks, RowsByBlock, dense_bytes, dense_rows, map_rows
from privsvm.numerics.rows.rows import unit_rows
from privsvm.privacy.events import Composed, Event, Gaussian, Neighbours, relation_factor
from privsvm.privacy.gate import ONE_MODEL, Claim, Guarantee
from privsvm.privacy.mechanisms import NOISE_ASSUMPTION
from privsvm.solvers.features.columns import Columns, column_features, keeps_zeros, n_column_features

# Bound of columns without one: audits square and add up the released numbers.
_UNBOUNDED = 2.0**500
# Bytes of a table of features above which rows are worked on block by block.
_LARGEST_TABLE = 2**25

_INDICATORS = Constraint(
    {"anyOf": [{"enum": ["all"]}, {"type": "array", "items": {"type": "integer", "minimum": 0}}, {"type": "null"}]},
    'must be "all", numbers of columns, or None',
    '"all", list of int or None',
)


_PUBLIC_ROWS = Constraint(
    {"anyOf": [{"type": "array", "minItems": 1}, {"type": "null"}]}, "must be rows of numbers, or None", "array or None"
)


class PrivateLinearClassifier(PrivateClassifier):
    """The recommended private classifier: it chooses features, scales rows and trains, all within one budget.

    Attributes
    ----------
    recipe_ : str
        The choice, and its reason.
    coef_ : ndarray (c, D)
        Weights, of scaled rows or of their features.
    intercept_ : ndarray (c,)
        Offsets.
    mean_ : ndarray (d,)
        Public or noisy mean of unit rows.

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
    8 hat functions of each of 1 numbers
    """

    reads_blocks = True
    class_memory = "model"
    pays_for_counts = True
    _table: ClassVar[Table] = TABLE

    delta: float = DELTA
    neighbours: Neighbours = dataclasses.replace(NEIGHBOURS, default="add_remove")
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
    public_rows: Any = parameter(
        None,
        _PUBLIC_ROWS,
        "Rows that are public, such as one of usual values from documentation: rows are centred by their mean where a "
        "noisy one costs too much. They must not be taken from the training rows.",
    )
    after: str | None = parameter(
        None,
        optional(text("must be the folder of a saved model")),
        "Folder of the model of an earlier release, whose features are taken: the new model is the average of all "
        "releases so far, which costs no epsilon. A person in several of their tables pays for each.",
        common=True,
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
        "Which features to train on: the columns (linear), hat functions of numbers with bounds beside them (hats), or "
        'random Fourier features beside all those (fourier); "auto" takes what rows are enough for.',
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
        for label, weight in self.class_weight.items():  # type: ignore[union-attr]
            class_index = np.flatnonzero(self.classes_ == label)
            if class_index.size != 1 or not (isinstance(weight, (int, float)) and 0 < weight < math.inf):
                raise ValueError(
                    f"class_weight={self.class_weight!r}: {label!r} must be a label, and its weight positive and finite"
                )
            weights[class_index] = weight
        return weights / weights.max()

    def _check_public_rows(self, n_features: int) -> np.ndarray:
        """Return the public rows (m, d)."""
        try:
            rows = np.atleast_2d(np.asarray(self.public_rows, dtype=np.float64))
        except (TypeError, ValueError):
            rows = np.empty(0)
        if rows.shape[1:] != (n_features,) or not np.isfinite(rows).all():
            raise ValueError(f"public_rows={self.public_rows!r}: must be finite, with {n_features} numbers each")
        return rows

    def _release(self, release: Release) -> LinearPath:
        X, n_threads = release.rows, count_threads(self.n_jobs)
        n_features = X.shape[1]
        lower, upper, indicators = self._limits(n_features)
        bounds = {"lower": lower, "upper": upper, "indicators": indicators.astype(np.float64)}
        earlier: EarlierModel | None = None
        releases: list[Any] = []
        if self.after is not None:
            if self.public_rows is not None or self.features != "auto":
                raise ValueError(
                    f"after={self.after!r}: it gives centre and features; give no public_rows, no features"
                )
            earlier, releases = read_earlier(
                self.after, classes=self.classes_, neighbours=self.neighbours, bounds=bounds,
                randomness=release.randomness,
            )  # fmt: skip
        public_rows = None if self.public_rows is None else self._check_public_rows(n_features)
        given_weights = isinstance(self.class_weight, dict)
        class_weights = self._public_weights() if given_weights else np.ones(release.n_classes)
        choose = functools.partial(
            choose_recipe, n_features=n_features, n_numbers=int((~indicators).sum()), features=self.features,
            table=self._table, earlier=earlier,
        )  # fmt: skip
        known_rows = float(X.shape[0] if self.n_rows is None else self.n_rows)
        counts_rows, balanced = self.n_rows is None and self.neighbours == "add_remove", self.class_weight == "balanced"
        richest = Columns(constant=1.0, n_hats=self._table.n_hats)
        width = n_column_features(indicators, richest) + 2 * self._table.n_frequencies
        by_block = isinstance(X, RowBlocks) or dense_bytes(X, width) > _LARGEST_TABLE

        @functools.cache
        def featurise(columns: Columns) -> tuple[Any, np.ndarray | None]:
            """Make unit rows of columns, and the mean of the public ones, if there are any."""
            sparse = keeps_zeros(lower, upper, indicators, columns)
            given = RowsByBlock.of(X, n_threads, sparse=sparse) if by_block else X if sparse else dense_rows(X)
            width = n_column_features(indicators, columns)
            rows = map_rows(given, column_features, lower, upper, indicators, columns, n_features=width)
            if public_rows is None:
                return unit_cell_rows(rows), None
            usual = unit_rows(column_features(public_rows, lower, upper, indicators, columns))
            return unit_cell_rows(rows), usual.mean(axis=0)

        def train_model(job: tuple[Budget, NoiseSource]) -> tuple[ScaledModel, Recipe, str, float]:
            (budget, source), n_rows, weights = job, known_rows, class_weights
            if counts_rows:
                n_rows = float(noisy_count(release.codes, 1, budget, source.part("count"))[0])
            if balanced:
                counts = noisy_count(release.codes, weights.size, budget, source.part("classes"))
                weights = counts.min() / counts
            recipe, why = choose(n_rows, budget=budget)
            rows, public_mean = featurise(recipe.columns)
            earlier = recipe.earlier
            model = train(
                rows, release.codes, recipe=recipe, budget=budget, class_weights=weights,
                source=source, public_mean=public_mean if earlier is None else earlier.mean,
            )  # fmt: skip
            # Matrices of many models would fill the memory.
            model = model if len(jobs) == 1 else dataclasses.replace(model, noise=model.kept[None])
            weight = (recipe.n_rows * budget.signal) ** 2
            return model if earlier is None else earlier.average(model, weight), recipe, why, weight

        budgets = [
            Budget(epsilon=epsilon, delta=release.delta, neighbours=self.neighbours, n_counts=counts_rows + balanced)
            for epsilon in release.epsilons
        ]
        choices = [None if counts_rows else choose(known_rows, budget=budget) for budget in budgets]
        release.pay(self._guarantee(*terms, release) for terms in zip(budgets, choices, strict=True))
        repeats = range(release.repeats)
        jobs = [(budget, release.source(budget.epsilon, repeat)) for budget in budgets for repeat in repeats]
        with thread_pool(1 if by_block else n_threads) as pool:
            results = list(map(train_model, jobs) if pool is None else pool.map(train_model, jobs))
        models, recipes, reasons, sizes = zip(*results, strict=True)
        self._why = reasons[0]
        own = {"rows": float(recipes[0].n_rows), "weight": sizes[0]}
        self._history = [*(releases if recipes[0].earlier else []), own]
        path = make_path(models, recipes, bounds, len(budgets))
        if len(models) > 1 or recipes[0].earlier is not None:
            return release.path(LinearPath, **path)
        path |= {"noise": models[0].noise, "kept": models[0].kept}
        return release.path(NoisyLinearPath, **path)

    def _guarantee(self, budget: Budget, choice: tuple[Recipe, str] | None, release: Release) -> Guarantee:
        """Privacy record of one epsilon, of public numbers alone: no choice where it follows from a noisy count."""
        noise, used = None, "not used" if choice is None else self.n_rows
        counts = [Gaussian(budget.count_multiplier)] * budget.n_counts
        if choice is None:
            # The division of the rest follows from released numbers, and its cost does not.
            event: Event = Composed((*counts, Gaussian(budget.multiplier(1.0))))
            how = "as its rule says for a noisy number of rows"
        else:
            recipe, how = choice
            event = Composed((*counts, recipe.event(budget)))
            # Beside a second moment it follows from released numbers.
            fixed = recipe.joint_share(budget.neighbours) is None
            noise = budget.multiplier(recipe.step_share) if fixed else None
        public = "" if self.public_rows is None else ", and so are the public rows, of which none is a training row"
        public += "" if self.after is None else ", and so is the earlier model, with an epsilon of its own"
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
                + ("" if choice is None else ", and so is the number of rows")
                + public,
                ONE_MODEL,
                "rows and their clipped gradients are truncated to grids; sums and their noise are exact; training "
                "time is not covered",
                NOISE_ASSUMPTION,
            ),
        )
        return release.grant(claim, n_rows=used, features="public")

    def _keep(self, path: LinearPath) -> None:
        super()._keep(path)
        self.intercept_ = path.intercept[0, 0]
        self.recipe_ = self._why

    @property
    def mean_(self) -> np.ndarray:
        """Public or noisy mean (d,) of unit rows."""
        mean: np.ndarray = self._path.step("direction")["centre"][0, 0]
        return mean
