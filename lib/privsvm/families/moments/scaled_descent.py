"""Linear classifiers on rows that are scaled by noisy statistics of them, trained by noisy full-batch descent.

Given the earlier releases, a row is divided by its norm, a public or noisy mean is subtracted, and the rest is divided
by its norm again. Random Fourier features of the result may follow it. A constant is appended, which makes room for
offsets. Where rows are many, a noisy second moment then evens out the spread along its directions. Descent along noisy
sums of clipped gradients follows (`privsvm.solvers.gradients.huber_descent`). Where rows are few for the noise, and the
weights show that most columns have no signal, the weights of such columns are shrunk: this reads released numbers
alone.

Every release is a sum over rows, or of their outer products, in whole numbers and with exact noise; each row depends on
itself and on earlier releases alone, bit for bit. All are Gaussian releases, and composed as such: a share f of the
budget buys a release whose squared signal is the share f of the squared signal of one release with the whole budget.
`docs/proofs/recommended.md` has the proof.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from privsvm.base.feature_steps import Step
from privsvm.families.moments.second_moments import (
    MomentsMechanism,
    centre_rows,
    constant_feature,
    noisy_centre,
    share_beside,
)
from privsvm.numerics.noise.noise_source import NoiseSource, Sensitivity
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.numerics.rows.centred_grid import CentredCells
from privsvm.numerics.rows.row_blocks import cache_rows, dense_rows, map_rows
from privsvm.numerics.rows.unit_grid import CELLS, unit_cells, unit_rows_on_grid
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Composed, Event, Gaussian, Neighbours, SelfComposed, relation_factor
from privsvm.solvers.features.columns import Columns
from privsvm.solvers.features.row_features import fourier_row_features
from privsvm.solvers.gradients.huber_descent import HuberDescent, condition_of_product, descend, exact_product

# Budgets of all releases together must not exceed the whole by round-off.
_ROUND_UP = 1.0 + 2.0**-40
# Share of the budget for each noisy number of rows: of every class, and of all rows.
_COUNT_SHARE = 0.01
# Counts are in whole numbers of this share of a row.
_COUNT_CELLS = 2.0**10
# Rows whose codes are counted at a time: NumPy makes them wider.
_COUNTED_ROWS = 2**20
_AS_THEY_ARE = Columns()
# Of the paths of these models.
_KIND = "columns unit direction fourier unit linear"
# The constant beside unit rows of two classes: so large that the largest class is known before anything else is.
_CONSTANT = 0.4
# The noise that descent leaves in weights, over what all steps add: steps lead back a little. (Splice and tables with
# shuffled columns gained most from .7 to .85; other tables lost next to nothing there, and tables of many classes at
# 1.)
_NOISE_LEFT = 0.7
# Rounds of a fit, its smallest share, and by how much its log-likelihood must exceed the fit of a single normal.
_FIT_ROUNDS, _LEAST, _EVIDENCE = 60, 1e-3, 6.0
# The seed of the frequencies is public, and part of the method.
_FREQUENCIES_SEED = 0
# Frequencies that are orthogonal to each other at most: finding more takes long.
_ORTHOGONAL = 128


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """A budget of Gaussian releases: `n_counts` noisy counts take a share each, and the others the rest."""

    epsilon: float
    delta: float
    neighbours: Neighbours
    n_counts: int = 0

    @property
    def signal(self) -> float:
        """One row's addition over the noise of a single release with the whole budget."""
        return 1.0 / (relation_factor(self.neighbours) * gaussian_noise_multiplier(self.epsilon, self.delta))

    def multiplier(self, share: float) -> float:
        """Return the noise multiplier of a release that costs a share of the rest of the budget."""
        return _ROUND_UP / (self.signal * math.sqrt((1.0 - self.n_counts * _COUNT_SHARE) * share))

    @property
    def count_multiplier(self) -> float:
        """Noise multiplier of each noisy count."""
        return _ROUND_UP / (self.signal * math.sqrt(_COUNT_SHARE))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaledModel:
    """A linear model of scaled rows; see `privsvm.base.feature_steps`.

    `coef` (c, D) are weights of centred unit rows, or of their features, and `intercept` (c,) offsets. `mean` (d,) is
    subtracted from unit rows. For `noise` (m, D) and `kept` (D,) see `privsvm.base.released.NoisyLinearPath`. It is of
    the steps alone, and at most so much: to first order, later steps lead it back, and none enlarges it.
    """

    coef: np.ndarray
    intercept: np.ndarray
    mean: np.ndarray
    noise: np.ndarray
    kept: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class EarlierModel:
    """A public model of earlier releases, with its features; `weight` is its squared rows for one unit of noise."""

    coef: np.ndarray
    intercept: np.ndarray
    mean: np.ndarray
    columns: Columns
    frequencies: np.ndarray
    weight: float

    def average(self, model: ScaledModel, weight: float) -> ScaledModel:
        """Average with a later model of the same features, which has less noise than each; `noise` is the later's."""
        share = weight / (self.weight + weight)
        coef = self.coef + share * (model.coef - self.coef)
        intercept = self.intercept + share * (model.intercept - self.intercept)
        return dataclasses.replace(model, coef=coef, intercept=intercept)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings of one training, all public or released before; shares are of the budget.

    There are `n_rows` rows. `mean_share` pays for the noisy mean of unit rows, and `moment_share` for the second moment
    of features, whose eigenvalues count as at least about `lift` times the size of its noise; a share of 0 leaves its
    release out. The `n_steps` noisy steps get the rest. The caller of `train` has made the `columns` of single
    features. Each of the `n_frequencies` random frequencies of the Gaussian kernel, with coefficient `gamma` for rows
    of norm 1, adds a cosine and a sine to the features. `length` is the length of all steps together, for a row's mean
    gradient, over the number of rows for one unit of noise. An `earlier` model gives columns, frequencies and centre.
    """

    n_rows: float
    mean_share: float
    columns: Columns = _AS_THEY_ARE
    n_frequencies: int = 0
    gamma: float = 0.4
    moment_share: float = 0.0
    lift: float = 1.0
    n_steps: int = 40
    length: float = 0.4
    earlier: EarlierModel | None = dataclasses.field(default=None, compare=False)

    def frequencies(self, n_features: int) -> np.ndarray:
        """Public random frequencies (d, F) for rows of so many features."""
        if self.earlier is not None:
            return self.earlier.frequencies
        return public_frequencies(n_features, self.n_frequencies, self.gamma)

    @property
    def step_share(self) -> float:
        """Share of one step, where no other release pays for a part of it."""
        return (1.0 - math.fsum([self.mean_share, self.moment_share])) / self.n_steps

    def joint_share(self, neighbours: Neighbours) -> float | None:
        """Share of the second moment and all steps as one release, under the relation where that needs less; or None.

        A step's cost then follows from the released second moment: see
        `privsvm.families.moments.second_moments.share_beside`.
        """
        if neighbours == "add_remove" or self.moment_share == 0.0:
            return None
        return math.fsum([self.step_share * self.n_steps, self.moment_share])

    def event(self, budget: Budget) -> Event:
        """Event of a training with a budget."""
        joint = self.joint_share(budget.neighbours)
        shares = (self.mean_share, self.moment_share if joint is None else joint)
        before = [Gaussian(budget.multiplier(share)) for share in shares if share > 0.0]
        if joint is not None:
            return Composed(tuple(before))
        steps = SelfComposed(Gaussian(budget.multiplier(self.step_share)), self.n_steps)
        return Composed((*before, steps))


def public_frequencies(n_features: int, n_frequencies: int, gamma: float) -> np.ndarray:
    """Draw frequencies (d, F) of the Gaussian kernel from a public seed: the first ones of any longer draw.

    As many as there are features are orthogonal, which comes closer to the kernel (Yu et al. 2016).
    """
    stream = seeded_stream(_FREQUENCIES_SEED, "scaled descent")
    size = min(n_features, _ORTHOGONAL)
    blocks = [np.empty((n_features, 0))]
    for _ in range(-(-n_frequencies // size)):
        directions = np.linalg.qr(stream.normal(size=(size, n_features)).T)[0]
        blocks.append(directions * np.sqrt(stream.chisquare(n_features, size=size)))
    return np.ascontiguousarray(math.sqrt(2.0 * gamma) * np.hstack(blocks)[:, :n_frequencies])


def noisy_count(codes: np.ndarray, n_classes: int, budget: Budget, source: NoiseSource) -> np.ndarray:
    """Noisy numbers of rows (c,) of each class; none is below twice its noise.

    With one class they are the number of rows.
    """
    exact = np.full(n_classes, codes.shape[0], dtype=np.int64)
    if n_classes > 1:
        starts = range(0, codes.shape[0], _COUNTED_ROWS)
        block_counts = (np.bincount(codes[start : start + _COUNTED_ROWS], minlength=n_classes) for start in starts)
        exact = sum(block_counts, np.zeros(n_classes, dtype=np.int64))
    exact *= int(_COUNT_CELLS)
    multiplier = budget.count_multiplier
    stated = Sensitivity(_COUNT_CELLS, per_row=True, grid=1.0 / _COUNT_CELLS)
    counts = source.add_rounded_normals(exact, multiplier * _COUNT_CELLS * _ROUND_UP, stated) / _COUNT_CELLS
    return np.maximum(counts, max(2.0 * multiplier, 1.0))


def _over_cells(cells: Any) -> np.ndarray:
    return dense_rows(cells) / CELLS


def _with_fourier(rows: Any, frequencies: np.ndarray) -> Any:
    rows = _over_cells(rows) if isinstance(rows, CentredCells) else rows
    return unit_rows_on_grid(np.hstack([rows, fourier_row_features(rows, frequencies)]))


def _evening(moment: np.ndarray, noise: float, lift: float) -> np.ndarray:
    """Return a symmetric matrix that divides directions by the fourth root of the noisy second moment along them."""
    spectrum, directions = np.linalg.eigh(moment)
    floor = lift * noise * math.sqrt(moment.shape[0])
    matrix: np.ndarray = (directions * (np.square(spectrum) + floor**2) ** -0.25) @ directions.T
    return matrix


def _even_out(cells: Any, matrix: np.ndarray) -> np.ndarray:
    """Multiply rows of whole numbers by a matrix, and divide by their norms; a row that is short becomes zeros."""
    cells = dense_rows(cells)
    evened: np.ndarray = unit_cells(exact_product(cells, matrix))[0]
    # Rows with a constant feature are as long as truncation leaves them. Of others, nothing would be proved.
    evened[np.einsum("ij,ij->i", cells, cells) < (CELLS - math.sqrt(cells.shape[1])) ** 2] = 0.0
    return evened


def signal_chances(squares: np.ndarray, noise: float, n_numbers: int) -> np.ndarray:
    """Estimate for every feature the chance that its weights are more than noise.

    `squares` (D,) are the squared norms of each feature's weights, `noise` above 0 is the variance of every weight's
    noise, and `n_numbers` the number of a feature's free weights. Some features have a signal, normal like the noise.
    Their share and variance are fitted to all features (empirical Bayes; Johnstone and Silverman 2004). The chance is 1
    for all features unless that is much less likely.
    """
    mean = max(float(squares.mean()) / n_numbers, (1.0 + _LEAST) * noise)
    part, spread = 0.5, 2.0 * (mean - noise)
    for _ in range(_FIT_ROUNDS):
        gains = 0.5 * (squares * (spread / (noise * (noise + spread))) - n_numbers * math.log1p(spread / noise))
        chances: np.ndarray = expit(gains + math.log(part / (1.0 - part)))
        part = min(max(float(chances.mean()), _LEAST), 1.0 - _LEAST)
        spread = max(float(chances @ squares) / (n_numbers * part * chances.size) - noise, _LEAST * noise)
    mixed = float(np.logaddexp(math.log(1.0 - part), math.log(part) + gains).sum())
    single = 0.5 * float((squares * (1.0 / noise - 1.0 / mean) - n_numbers * math.log(mean / noise)).sum())
    return chances if mixed > single + _EVIDENCE else np.ones_like(chances)


def train(
    rows: Any,
    codes: np.ndarray,
    *,
    recipe: Recipe,
    budget: Budget,
    class_weights: np.ndarray,
    source: NoiseSource,
    public_mean: np.ndarray | None = None,
) -> ScaledModel:
    """Train one model.

    Rows (n, d) are unit rows as whole numbers, see `privsvm.numerics.rows.unit_grid.unit_cells`. The
    weights of the classes, from 0 to 1, are public or released before; `public_mean` (d,) of unit rows is public.
    """
    mean = np.zeros(rows.shape[1]) if public_mean is None else public_mean
    if recipe.mean_share > 0.0:
        mean = noisy_centre(rows, recipe.n_rows, budget.multiplier(recipe.mean_share), source.part("mean"), mean)
    scaled = centre_rows(rows, mean) if mean.any() else map_rows(rows, _over_cells)
    if recipe.n_frequencies > 0:
        frequencies = recipe.frequencies(rows.shape[1])
        width = rows.shape[1] + 2 * recipe.n_frequencies
        scaled = map_rows(scaled, _with_fourier, frequencies, n_features=width)
    cells, scale, constant = constant_feature(scaled, _CONSTANT * math.sqrt(2.0 / class_weights.size))
    matrix, step_share = None, recipe.step_share
    joint = recipe.joint_share(budget.neighbours)
    joint_multiplier = None if joint is None else budget.multiplier(joint)
    if recipe.moment_share > 0.0:
        mechanism = MomentsMechanism(
            n_features=cells.shape[1],
            n_codes=0,
            neighbours=budget.neighbours,
            multiplier=budget.multiplier(recipe.moment_share),
            whole_multiplier=joint_multiplier,
        )
        moment = mechanism.release(cells, np.zeros((cells.shape[0], 0)), source.part("moment")).gram
        matrix = _evening(moment / recipe.n_rows, mechanism.spread / recipe.n_rows, recipe.lift)
        if joint is not None:
            condition = condition_of_product(matrix)
            rounding = mechanism.rounding_share
            steps = share_beside(recipe.moment_share, joint, condition, cells.shape[1], rounding)
            step_share = steps / recipe.n_steps
        cells = map_rows(cells, _even_out, matrix)
    cells = cache_rows(cells)
    descent = HuberDescent(
        n_steps=recipe.n_steps,
        length=recipe.length * budget.signal,
        noise_multiplier=budget.multiplier(step_share),
        whole_multiplier=joint_multiplier,
    )
    weights = descend(cells, codes, class_weights.size, class_weights, descent, source.part("steps"))
    kept = np.ones(weights.shape[1] - 1)
    if matrix is None and recipe.n_frequencies == 0 and descent.noise_multiplier > 0.0:
        squares = np.square(weights[:, :-1]).sum(axis=0)
        kept = signal_chances(squares, _NOISE_LEFT * descent.noise_variance, class_weights.size - 1)
        weights[:, :-1] *= kept
    coef = weights if matrix is None else weights @ matrix
    noise = np.ones((1, kept.size)) if matrix is None else matrix[:, :-1]
    noise = noise * (scale * math.sqrt(descent.noise_variance))
    return ScaledModel(coef=coef[:, :-1] * scale, intercept=coef[:, -1] * constant, mean=mean, noise=noise, kept=kept)


def read_earlier(
    folder: str, *, classes: np.ndarray, neighbours: str, bounds: Mapping[str, np.ndarray], randomness: str
) -> tuple[EarlierModel, list[Any]]:
    """Read the model in a folder, and list the releases in it.

    Whatever it says, it changes no sensitivity: rows stay unit rows. Raises PrivSVMError for files that are damaged or
    state more than their event, and ValueError for a model that does not fit.
    """
    # Imported late: training does not wait for pydantic.
    from privsvm.base.model_file import plain_labels, read_model

    if not Path(folder).is_dir():
        raise ValueError(f"after={folder!r}: no such folder; give the folder of a saved model")
    path, record = read_model(folder)
    guarantee, labels, codes = record.judged[0], plain_labels(classes.tolist()), [*range(classes.size)]
    arrays: Any = {step.name: step.arrays for step in getattr(path, "steps", ())}
    columns, is_ours = arrays.get("columns", {}), path.kind.replace("noisy_", "") == _KIND
    fits = {
        "it is no model of PrivateLinearClassifier": is_ours and record.history is not None,
        f"its guarantee is {guarantee.status}, not proved": guarantee.status in ("proved", randomness),
        # A release trains on the codes of its schema's classes.
        f"its classes are {record.classes}": labels == record.classes or (record.table and labels == codes),
        f"its relation is {guarantee.neighbours}": guarantee.neighbours == neighbours,
        "it has other columns": all(np.array_equal(columns.get(name), bounds[name]) for name in bounds),
    }
    for problem, holds in fits.items():
        if not holds:
            raise ValueError(f"after={folder!r}: {problem}; give a model of such releases alone, or none")
    weights, fourier = path.arrays(), arrays["fourier"]
    earlier = EarlierModel(
        coef=weights["coef"][0, 0], intercept=weights["intercept"][0, 0], mean=arrays["direction"]["centre"][0, 0],
        columns=Columns(*(columns[name][0, 0].item() for name in Columns._fields)),
        frequencies=fourier["frequencies"][:, : fourier["count"].item()],
        weight=sum(one.weight for one in record.releases),
    )  # fmt: skip
    return earlier, record.releases


def make_path(
    models: Sequence[ScaledModel], recipes: Sequence[Recipe], bounds: dict[str, np.ndarray], n_epsilons: int
) -> dict[str, Any]:
    """Make the weights and steps of a path from E R models, padded to the widest, and the bounds of columns."""

    def stack(arrays: Iterable[np.ndarray]) -> np.ndarray:
        arrays = list(arrays)
        width = max(array.shape[-1] for array in arrays)
        rows = [np.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, width - row.shape[-1])]) for row in arrays]
        return np.reshape(rows, (n_epsilons, -1, *rows[0].shape))

    columns = {
        name: np.reshape([getattr(recipe.columns, name) for recipe in recipes], (n_epsilons, -1))
        for name in Columns._fields
    }
    count = np.reshape([recipe.n_frequencies for recipe in recipes], (n_epsilons, -1))
    # Fewer are the first ones of more: rows with random features are all as wide.
    most, widest = int(count.argmax()), max(model.mean.size for model in models)
    frequencies = recipes[most].frequencies(models[most].mean.size) if count.any() else np.empty((widest, 0))
    steps = (
        Step("columns", bounds | columns),
        Step("unit"),
        Step("direction", {"centre": stack(model.mean for model in models)}),
        Step("fourier", {"frequencies": frequencies, "count": count, "beside": np.ones(1)}),
        Step("unit"),
    )
    coef, intercept = stack(model.coef for model in models), stack(model.intercept for model in models)
    return {"coef": coef, "intercept": intercept, "steps": steps}
