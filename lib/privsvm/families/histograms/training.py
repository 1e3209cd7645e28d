"""Classifiers on noisy histograms of columns: the code around their releases."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privsvm.base.estimators import PrivateClassifier, Release
from privsvm.base.parameters import BOUNDS, DELTA, check_bounds, parameter
from privsvm.base.released import TreesPath
from privsvm.constraints import Constraint
from privsvm.families.histograms.quantiles import noisy_ranges, quantile_edges
from privsvm.families.output_perturbation.perturbation import EVERY_RELEASE, REFUSED_DATA
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import dense_rows
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Composed, Event, Gaussian, relation_factor
from privsvm.privacy.gate import Claim, Guarantee
from privsvm.solvers.features.trees import CELLS, column_cells

# Share of the budget that buys quantiles, where there are columns of numbers.
_QUANTILE_SHARE = 0.05
# Keeps the shares of a budget from adding up to more than it by round-off.
_ROUND_UP = 1.0 + 1e-12
FEW_BINS = Constraint(
    {"type": "integer", "minimum": 2, "maximum": CELLS}, f"must be a whole number from 2 to {CELLS}", "int"
)
_CATEGORIES = Constraint(
    {"anyOf": [{"type": "array", "items": {"type": "integer", "minimum": 0}}, {"type": "null"}]},
    "must be a list with a whole number for every column, or None",
    "list of int, or None",
)


class Bins(NamedTuple):
    """Columns as whole numbers, and how they are binned; released but for `cells`."""

    cells: np.ndarray
    # Categories of each column, 0 for numbers.
    levels: np.ndarray
    # Noisy counts (d, 256) of the cells of numbers; zeros for categories.
    ranges: np.ndarray
    # Noisy number of rows; None without numbers.
    n_rows: float | None

    def edges(self, column: int, n_bins: int) -> np.ndarray:
        """Return where bins of a column begin, but the first: quantiles of numbers, every code of categories."""
        levels = int(self.levels[column])
        return np.arange(1, levels) if levels else quantile_edges(self.ranges[column], n_bins)


class Trees(NamedTuple):
    """One released model; see `TreesPath`."""

    feature: np.ndarray
    low: np.ndarray
    high: np.ndarray
    value: np.ndarray
    intercept: np.ndarray


class HistogramClassifier(PrivateClassifier):
    """Training on columns in whole numbers; a base.

    Attributes
    ----------
    feature_, low_, high_ : ndarray (T, N)
        Inner nodes of the trees: a row goes right where the cell of the feature lies in ``low <= cell < high``.
    value_ : ndarray (T, N + 1, k)
        A leaf's addition to the scores.
    intercept_ : ndarray (k,)
        What scores begin with.

    Notes
    -----
    Training time is not covered: it depends on the rows.
    """

    delta: float = DELTA
    bounds: tuple[Any, Any] | None = parameter(
        None, BOUNDS, "Public bounds of the numbers, which are cut to them. None: -1 and 1.", common=True
    )
    categories: list[int] | None = parameter(
        None,
        _CATEGORIES,
        "Public number of categories of each column, whose codes count from 0; 0 for a column of numbers. None: all "
        "are numbers.",
        common=True,
    )
    reference: ClassVar[str]

    @abc.abstractmethod
    def _events(self, multiplier: float, n_features: int) -> tuple[Event, str]:
        """Say what follows the quantiles, of the noise multiplier of one release with the rest of the budget."""

    @abc.abstractmethod
    def _train(self, bins: Bins, codes: np.ndarray, multiplier: float, source: NoiseSource) -> Trees:
        """Train one model; `multiplier` as of `_events`."""

    def _columns(self, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return bounds and numbers of categories (d,)."""
        bounds = (-1.0, 1.0) if self.bounds is None else self.bounds
        lower, upper = check_bounds(bounds, n_features)
        levels = (
            np.zeros(n_features, dtype=np.int64) if self.categories is None else np.array(self.categories, np.int64)
        )
        if levels.shape != (n_features,):
            raise ValueError(f"categories={self.categories!r}: must have a number for each of {n_features} columns")
        return lower, upper, levels

    def _release(self, release: Release) -> TreesPath:
        lower, upper, levels = self._columns(release.rows.shape[1])
        cells = column_cells(dense_rows(release.rows), lower, upper, levels)
        release.pay(self._guarantee(release, epsilon, levels) for epsilon in release.epsilons)
        models = [
            self._model(
                cells,
                release.codes,
                levels,
                self._multipliers(epsilon, release.delta, levels),
                release.source(epsilon, repeat),
            )
            for epsilon in release.epsilons
            for repeat in range(release.repeats)
        ]
        arrays = dict(zip(Trees._fields, release.stack_models(models), strict=True))
        return release.path(TreesPath, lower=lower, upper=upper, levels=levels, **arrays)

    def _multipliers(self, epsilon: float, delta: float, levels: np.ndarray) -> tuple[float, float]:
        """Noise multipliers of the quantiles, infinite without numbers, and of one release with the rest."""
        share = _QUANTILE_SHARE if (levels == 0).any() else 0.0
        multiplier = relation_factor(self.neighbours) * gaussian_noise_multiplier(epsilon, delta) * _ROUND_UP
        return multiplier / math.sqrt(share) if share else math.inf, multiplier / math.sqrt(1.0 - share)

    def _model(
        self,
        cells: np.ndarray,
        codes: np.ndarray,
        levels: np.ndarray,
        multipliers: tuple[float, float],
        source: NoiseSource,
    ) -> Trees:
        numbers, ranges, n_rows = np.flatnonzero(levels == 0), np.zeros((len(levels), 0)), None
        if numbers.size:
            counts = noisy_ranges(cells[:, numbers], multipliers[0], self.neighbours, source.part("quantiles"))
            ranges = np.zeros((len(levels), counts.shape[1]))
            ranges[numbers], n_rows = counts, max(1.0, float(counts.sum()) / numbers.size)
        bins = Bins(cells, levels, ranges, n_rows)
        return self._train(bins, codes, multipliers[1], source)

    def _guarantee(self, release: Release, epsilon: float, levels: np.ndarray) -> Guarantee:
        """Privacy record of one epsilon; of public numbers alone."""
        quantiles, rest = self._multipliers(epsilon, release.delta, levels)
        event, what = self._events(rest, len(levels))
        numbers = math.isfinite(quantiles)
        claim = Claim(
            event=Composed((Gaussian(quantiles), event)) if numbers else event,
            mechanism="Gaussian noise on " + ("counts of the cells of columns, then on " if numbers else "") + what,
            reference=self.reference,
            neighbours=self.neighbours,
            epsilon_requested=epsilon,
            delta=release.delta,
            assumptions=(
                "a row counts once in every column and scale, and what it adds to a leaf is cut to norm 1 in whole "
                "numbers, row by row",
                REFUSED_DATA,
                "classes, bounds, categories, the number of columns and all other parameters are public",
                *EVERY_RELEASE,
            ),
        )
        return release.grant(claim, features="public")

    def _keep(self, path: TreesPath) -> None:
        self._path, self.guarantee_ = path, path.guarantees[0]
        for name in Trees._fields:
            setattr(self, f"{name}_", getattr(path, name)[0, 0])
