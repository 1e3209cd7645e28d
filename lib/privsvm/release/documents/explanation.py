"""What each column says in a released model, with intervals from the noise in its weights.

All follows from the model, its schema and made-up rows, spread evenly over the declared ranges and categories: no row
is read, and no epsilon spent. A score is a sum over features. A feature belongs to the column that it is made of; the
constant beside rows of norm 1, and random Fourier features, belong to all columns jointly.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from typing import Any

import numpy as np

from privsvm.base.model_file import ModelFile
from privsvm.base.released import LinearPath, NoisyLinearPath, ReleasedPath
from privsvm.errors import PrivSVMError
from privsvm.numerics.compiled.threads import one_blas_thread
from privsvm.tables.schema import Column, Schema, parse_schema

JOINT = "all columns jointly"
_NO_INTERVAL = "No intervals: how noise reaches the weights of this kind of model is not known."
_UNCONDITIONAL = "With 95 %, the interval holds the share that the same training has without noise."
_CONDITIONAL = (
    "With 95 %, the interval holds the share that the same training has without noise in its steps, to first order in "
    "that noise. It takes the released centre, second moment and numbers of rows, and the recipe that they chose, as "
    "they are."
)
_ERROR, _QUANTILE = 0.05, 1.96
# Made-up rows, and numbers in them at most; values of a number at which its effect is shown; a bound that is none; the
# largest weight or feature, whose powers do not overflow.
_MADE_UP_ROWS, _MADE_UP_NUMBERS, _VALUES, _NO_BOUND, _LARGEST = 1000, 4_000_000, 9, 1e100, 1e30
# Steps from no share to all; degrees of freedom from which a chi-square number is normal; a number next to none.
_GRID, _MANY_DEGREES, _LEAST = 1000, 1e6, 1e-200
_ON_CARD = 12


@dataclasses.dataclass(frozen=True)
class ColumnShare:
    """A column's share of the variance of a model's scores over made-up rows.

    `low` and `high` bound the share without noise with 95 %; None where the noise is not known.
    """

    name: str
    share: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """Say the share in per cent, and whether it is more than noise."""
        text = f"{self.name}: {100.0 * self.share:.1f} %"
        if self.low is None or self.high is None:
            return text
        noise = ", not told from noise" if self.low == 0.0 else ""
        return f"{text} (without noise {100.0 * self.low:.1f} to {100.0 * self.high:.1f} %{noise})"


@dataclasses.dataclass(frozen=True)
class ColumnShape:
    """A column's mean part in the scores, at some values, less its mean over made-up rows.

    `effects` (v, k) are of the k scores, and `noise` (v,) is 1.96 standard deviations of the noise in one of them; NaN
    where it is not known.
    """

    values: tuple[Any, ...]
    effects: np.ndarray
    noise: np.ndarray


class Explanation:
    """The parts of a linear model's columns in its scores; their `condition` says what the intervals hold.

    Without a `schema`, each column of the rows is one. `columns` are shares in the order of the table; the part of
    all columns jointly follows, where there is one. Raises PrivSVMError for a model whose scores are no sums over
    features, or whose numbers overflow.
    """

    @one_blas_thread()
    @np.errstate(all="ignore")
    def __init__(self, path: ReleasedPath, n_features: int, schema: Schema | None = None) -> None:
        if not isinstance(path, LinearPath) or path.by_votes:
            raise PrivSVMError(f"explain: the scores of a model of kind {path.kind!r} are no sums over its columns")
        self._steps, declared = path.model_steps(0, 0, n_features), {} if schema is None else schema.features
        self._declared: list[Column | None] = [*declared.values()] or [None] * n_features
        sizes = [1 if column is None else len(column.words) or 1 for column in self._declared]
        self._ends = np.cumsum([0, *sizes])
        owners = self._own_features(np.repeat(np.arange(len(sizes)), sizes))
        self.names = [*declared] or [f"column {number}" for number in range(n_features)]
        self.names += [JOINT] * bool((owners == len(sizes)).any())
        self._members = [np.flatnonzero(owners == number) for number in range(len(self.names))]
        self._coef, self._noise, self._kept = path.coef[0, 0][:, : owners.size], None, np.ones(owners.size)
        if len(self._coef) > 1:
            self._coef = self._coef - self._coef.mean(axis=0)
        if isinstance(path, NoisyLinearPath):
            self._noise, self._kept = path.noise, path.kept
        # Noise that adds up to zero over k scores is as much as in k - 1.
        self._copies = max(len(self._coef) - 1, 1)
        features = self._features(self._make_up_rows(owners.size))
        numbers = features, path.coef, path.intercept, self._kept, () if self._noise is None else self._noise
        if not all(np.max(np.abs(array), initial=0.0) <= _LARGEST for array in numbers):
            raise PrivSVMError(f"explain: a number of the model is beyond {_LARGEST:g}; get the model again")
        self._mean = features.mean(axis=0)
        self._centred = features - self._mean
        intercept = path.intercept[0, 0]
        self.offset = self._mean @ self._coef.T + (intercept - intercept.mean() if len(intercept) > 1 else intercept)
        self.columns = self._judge_columns()

    def _own_features(self, owners: np.ndarray) -> np.ndarray:
        """Return the number of the column that each feature belongs to; one more for all jointly."""
        joint = len(self._declared)
        for step in self._steps:
            width, hats = step.n_features(owners.size), owners[:0]
            if step.name == "columns":
                hats = np.repeat(owners[step.arrays["indicators"] == 0.0], int(step.arrays["n_hats"]))
            if step.name == "random_kernel" or (step.name == "fourier" and not step.arrays["beside"].any()):
                owners = owners[:0]
            owners = np.concatenate([owners, np.full(width - owners.size - hats.size, joint), hats])
        return owners

    def _make_up_rows(self, width: int) -> np.ndarray:
        """Rows all over the declared box, as `privsvm.tables.tables.Encoder.features` makes them."""
        n_rows = max(1, min(_MADE_UP_ROWS, _MADE_UP_NUMBERS // max(width, int(self._ends[-1]))))
        rows = np.zeros((n_rows, int(self._ends[-1])))
        for number, places in enumerate(np.random.default_rng(0).random((len(self._declared), n_rows))):
            self._set_column(rows, number, places)
        return rows

    def _set_column(self, rows: np.ndarray, number: int, places: Any) -> None:
        """Set a column of encoded rows to places, from 0 to 1, in its range or in the list of its categories."""
        (first, last), column = self._ends[number : number + 2], self._declared[number]
        if column is not None and column.kind == "categories":
            codes = np.minimum(np.floor(places * (last - first)), last - first - 1)
            rows[:, first:last] = np.equal.outer(codes, np.arange(last - first))
            return
        low, high, two_values = -1.0, 1.0, column is not None and column.kind == "boolean"
        bounds = next((step.arrays for step in self._steps if step.name == "columns"), None)
        if column is None and bounds is not None and bounds["upper"][first] < _NO_BOUND:
            low, high, two_values = (bounds[name][first] for name in ("lower", "upper", "indicators"))
        rows[:, first] = low + (high - low) * (np.rint(places) if two_values else places)

    def _features(self, rows: Any) -> np.ndarray:
        for step in self._steps:
            rows = step.apply(rows)
        return rows if isinstance(rows, np.ndarray) else rows.toarray()

    def _judge_columns(self) -> tuple[ColumnShare, ...]:
        parts = [self._centred[:, members] @ self._coef[:, members].T for members in self._members]
        shares = _shares(np.array([np.square(part).sum() for part in parts]))
        ends = [(None, None)] * len(parts) if self._noise is None else self.noiseless_shares[1]
        return tuple(
            ColumnShare(name, share, *pair) for name, share, pair in zip(self.names, shares.tolist(), ends, strict=True)
        )

    @property
    def condition(self) -> str:
        """Say what the intervals hold."""
        if self._noise is None:
            return _NO_INTERVAL
        return _CONDITIONAL if self._steps else _UNCONDITIONAL

    @functools.cached_property
    def noiseless_shares(self) -> tuple[np.ndarray, list[tuple[float, float]]]:
        """Shares (g,) by the weights before factors `kept`, and both ends of their intervals.

        Let a be a column's variance, r the variance of all other columns, and s a share. Less the means of their noise,
        ``(1 - s) a - s r`` has mean 0 where s is the share without noise (Fieller 1954). So the interval holds the
        shares where that number is at most some standard deviations from 0, as of a quadratic form of normal numbers.
        """
        assert self._noise is not None
        coef = np.divide(self._coef, self._kept, out=np.zeros_like(self._coef), where=self._kept > _LEAST)
        # In units of the scores over made-up rows: parts without noise and with it, one column after the other.
        centred = self._centred / math.sqrt(len(self._centred))
        roots: list[Any] = [np.linalg.qr(centred[:, members], mode="r") for members in self._members]
        parts = [root @ coef[:, m].T for root, m in zip(roots, self._members, strict=True)]
        noise = [self._noise_of(m, root.T) for root, m in zip(roots, self._members, strict=True)]
        values = np.array([np.square(part).sum() for part in parts])
        means = np.array([self._copies * np.square(factor).sum() for factor in noise])
        squares = np.array([np.square(factor.T @ factor).sum() for factor in noise])
        moved = [factor @ part for factor, part in zip(noise, parts, strict=True)]
        products = np.array([np.square(move).sum() for move in moved])
        squares_beside, products_beside = squares, products
        if len(self._noise) > 1:
            gram, move = sum(factor @ factor.T for factor in noise), sum(moved)
            squares_beside = np.array([np.sum(factor * (gram @ factor)) for factor in noise])
            products_beside = np.array([np.sum(own * move) for own in moved])
        total = values.sum()
        rest, rest_means = total - values, means.sum() - means
        squares_of_rest = squares_beside.sum() - 2.0 * squares_beside + squares
        products_of_rest = products_beside.sum() - 2.0 * products_beside + products
        grid = np.linspace(0.0, 1.0, _GRID + 1)[:, None]
        # Were s the share, parts had the sizes that it says, and noise moved them as it moves such parts.
        sizes = grid * total / np.maximum(values, _LEAST), (1.0 - grid) * total / np.maximum(rest, _LEAST)
        one = 2.0 * self._copies * squares + 4.0 * products * sizes[0]
        others = 2.0 * self._copies * squares_of_rest + 4.0 * products_of_rest * sizes[1]
        both = 4.0 * (products_beside - products) * np.sqrt(sizes[0] * sizes[1])
        both = np.minimum(both + 2.0 * self._copies * (squares_beside - squares), 0.0)
        variance = (1.0 - grid) ** 2 * one + grid**2 * others - 2.0 * grid * (1.0 - grid) * both
        spread = np.sqrt(np.maximum(variance, 0.0))
        number = (1.0 - grid) * values - grid * rest
        # There may be less noise than is known: its mean is taken from one side alone, for the wider interval.
        inside = number - (1.0 - grid) * means <= _reach(means, squares, self._copies) * spread
        inside &= number + grid * rest_means >= -_reach(rest_means, squares_of_rest, self._copies) * spread
        lows = np.maximum(np.argmax(inside, axis=0) - 1, 0) / _GRID
        highs = np.minimum(_GRID + 1 - np.argmax(inside[::-1], axis=0), _GRID) / _GRID
        return _shares(values), list(zip(lows.tolist(), highs.tolist(), strict=True))

    def _noise_of(self, members: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Multiply the noise in the weights of some features (m, D') by numbers (D', v)."""
        assert self._noise is not None
        factor = self._noise[:, members]
        noise: np.ndarray = factor.T * features if len(factor) == 1 else factor @ features
        return noise

    def _noise_in(self, members: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Compute 1.96 standard deviations of the noise in one score's part (v,) of some features (v, D')."""
        if self._noise is None:
            return np.full(len(features), np.nan)
        noise = np.square(self._noise_of(members, (features * self._kept[members]).T)).sum(axis=0)
        deviations: np.ndarray = _QUANTILE * np.sqrt(noise * self._copies / len(self._coef))
        return deviations

    @one_blas_thread()
    def shape(self, name: str) -> ColumnShape:
        """Compute the mean part of a column in the scores at its categories, or from one end of its range to the other.

        The mean is over made-up rows: norms of rows depend on all columns. Raises PrivSVMError for other names.
        """
        if name not in self.names[: len(self._declared)]:
            raise PrivSVMError(f"explain: {name!r} is no column of the model")
        number = self.names.index(name)
        column, members = self._declared[number], self._members[number]
        values: tuple[Any, ...] = tuple(np.linspace(0.0, 1.0, _VALUES).tolist())
        places = values
        if column is not None and column.kind == "categories":
            values, places = column.words, tuple((np.arange(len(column.words)) + 0.5) / len(column.words))
        elif column is not None and column.kind == "boolean":
            values, places = ("no", "yes"), (0.0, 1.0)
        elif column is not None:
            low, high = column.limits
            values = tuple((low + (high - low) * np.array(places)).tolist())
        rows = self._make_up_rows(len(self._mean))[: max(1, _MADE_UP_ROWS // 5)]
        means = []
        for place in places:
            self._set_column(rows, number, np.full(len(rows), place))
            means.append(self._features(rows)[:, members].mean(axis=0) - self._mean[members])
        features = np.array(means)
        return ColumnShape(values, features @ self._coef[:, members].T, self._noise_in(members, features))

    @one_blas_thread()
    def contributions(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split the decision values of encoded rows: parts of columns and an offset (n, g + 1), and noise (n, g).

        Of two classes they are of the second's score less the first's, of several of the predicted one's less the mean
        of all. The noise is as in `ColumnShape`.
        """
        features, size = self._features(X) - self._mean, len(self.offset)
        parts = np.stack([features[:, m] @ self._coef[:, m].T for m in self._members], axis=1)
        parts = np.concatenate([parts, np.broadcast_to(self.offset, (len(X), 1, size))], axis=1)
        if size == 2:
            parts = parts[..., 1] - parts[..., 0]
        else:
            chosen = np.argmax(parts.sum(axis=1), axis=1)
            parts = np.take_along_axis(parts, chosen[:, None, None], axis=2)[..., 0]
        noise = np.column_stack([self._noise_in(members, features[:, members]) for members in self._members])
        return parts, noise * (2.0 if size == 2 else 1.0)

    def to_card(self) -> dict[str, Any]:
        """Return the card's content: the largest shares."""
        largest = sorted(self.columns, key=lambda column: -column.share)[:_ON_CARD]
        shares = [
            [column.name, *(round(number, 3) for number in (column.share, column.low or 0.0, column.high or 0.0))]
            for column in largest
        ]
        return {"shares": shares, "others": len(self.columns) - len(largest), "interval": self.condition}


def _shares(parts: np.ndarray) -> np.ndarray:
    total = parts.sum()
    return parts / total if total > 0.0 else parts


def _reach(means: np.ndarray, squares: np.ndarray, copies: int) -> np.ndarray:
    """Return the standard deviations that noise exceeds with half the error: of a chi-square number as skewed."""
    from scipy.special import chdtri

    degrees = np.divide(means**2, copies * squares, out=np.full(means.shape, _MANY_DEGREES), where=squares > 0.0)
    degrees = np.clip(degrees, 1e-3, _MANY_DEGREES)
    reach: np.ndarray = np.maximum((chdtri(degrees, 0.5 * _ERROR) - degrees) / np.sqrt(2.0 * degrees), _QUANTILE)
    return reach


def explain_on_card(path: ReleasedPath, record: ModelFile) -> dict[str, Any] | None:
    """Explain a model by a table's columns; None where no intervals are known, or there is no schema."""
    if record.table is None or not isinstance(path, NoisyLinearPath):
        return None
    schema = parse_schema(record.table, "the model's schema")
    # A release is paid for before its card is made: nothing may raise.
    with contextlib.suppress(PrivSVMError):
        return Explanation(path, record.n_features, schema).to_card()
    return None
