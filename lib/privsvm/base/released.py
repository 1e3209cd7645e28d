"""Released models: the publication of a method, and all that predictions need.

A path holds the models released from one training set for a grid of epsilons and a number of repeats. It can predict,
and it can be stored as plain arrays. It holds nothing else: no weights before noise, and no training rows except those
that a method publishes by design.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from privsvm.errors import PrivSVMError
from privsvm.privacy.gate import Guarantee

__all__ = [
    "BlockPath",
    "CentredLinearPath",
    "ConstantPath",
    "FourierPath",
    "KernelPath",
    "LinearPath",
    "OneVsOneLinearPath",
    "OneVsRestKernelPath",
    "PredictionsPath",
    "RandomKernelPath",
    "ReleasedPath",
    "StandardizedLinearPath",
    "TreesPath",
    "UnitLinearPath",
    "codes_one_by_one",
    "one_vs_one_scores",
    "rows_digest",
    "scores_one_by_one",
]

# From so many coefficients on, it pays that most of those for pairs of classes are 0.
_MANY_COEFFICIENTS = 100_000

# Votes over more values than this are counted by compiled code.
_MANY_VALUES = 100_000

# Numbers of a model that is prepared for predictions once: a copy of it has at most 8 MB.
_KEPT_NUMBERS = 1_000_000

# Rows that are unpacked at a time, to be predicted one by one.
_ALONE = 4096

# Arrays of other types than float64.
_TYPES = {
    "n_frequencies": "int64", "n_hats": "int64", "digest": "uint8", "levels": "int64", "feature": "int64",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedPath(abc.ABC):
    """Models for E epsilons and R repeats; see the subclasses for their arrays.

    `epsilons` are the requested ones, ``(inf,)`` for a model without privacy, each with a guarantee. `objective`,
    `n_support` and `n_iter` are of the solver's run; None where the number would be private. `fit_seconds` is the time
    of the exact solve, `release_seconds` the time of all E x R releases from it, without audits.
    """

    kind: ClassVar[str]
    # Sizes of the arrays by name: a letter is the same size everywhere, p the number of pairs of classes, k one or c.
    shapes: ClassVar[Mapping[str, str]]
    array_names: ClassVar[tuple[str, ...]]
    # Which of `privsvm.warm_up.MODULES` predicts.
    jit_module: ClassVar[str | None] = None
    # Whether scores of several classes come from `one_vs_one_scores`.
    by_votes: ClassVar[bool] = False

    epsilons: tuple[float, ...]
    guarantees: tuple[Guarantee, ...]
    n_classes: int
    objective: float | None = None
    n_support: int | None = None
    n_iter: int | None = None
    fit_seconds: float = 0.0
    release_seconds: float = 0.0

    def __init_subclass__(cls) -> None:
        """List the names of the arrays."""
        super().__init_subclass__()
        cls.array_names = tuple(cls.shapes)

    @property
    def n_repeats(self) -> int:
        """Number R of noise draws per epsilon."""
        name = next(name for name, shape in self.shapes.items() if shape.startswith("E R"))
        return int(getattr(self, name).shape[1])

    def check_arrays(self) -> dict[str, int]:
        """Check arrays that come from a file; compiled code would read beyond arrays of other sizes.

        Returns sizes by the letters of `shapes`. Raises PrivSVMError, naming the first array of another shape or type.
        """
        c = self.n_classes
        sizes = {"E": len(self.epsilons), "p": c * (c - 1) // 2}
        for name, shape in self.shapes.items():
            array, words, kind = getattr(self, name), shape.split(), _TYPES.get(name, "float64")
            fits = array.dtype == kind and array.ndim == len(words)
            for word, size in zip(words, array.shape, strict=False):
                letter = word.lstrip("0123456789")
                factor = int(word.removesuffix(letter) or 1)
                fits = fits and size == factor * (sizes.setdefault(letter, size // factor) if letter else 1)
            if not fits or sizes.get("k", c) not in (c, 1 if c == 2 else c):
                raise PrivSVMError(
                    f"model file: array {name!r} has sizes {array.shape} of type {array.dtype}, and a model of kind "
                    f"{self.kind!r} with {c} classes {shape!r} of type {kind}; get or make the model again"
                )
        return sizes

    @abc.abstractmethod
    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        """Compute the decision values of the R models of one epsilon.

        Of rows X (n, d), an array or a CSR matrix; (R, n, k) with k = 1 for two classes decided by sign, else k = c.
        """

    def codes(self, scores: np.ndarray) -> np.ndarray:
        """Turn decision values (R, n, k) into class codes (R, n)."""
        if scores.shape[-1] == 1:
            return (scores[..., 0] > 0).astype(np.int64)
        # Rounding gives the votes back; among equal votes LIBSVM takes the first class.
        codes: np.ndarray = np.argmax(np.rint(scores) if self.by_votes else scores, axis=-1)
        return codes

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the path by name, enough to rebuild it with `path_from_arrays`."""
        return {name: getattr(self, name) for name in self.array_names}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearPath(ReleasedPath):
    """Linear models: weight vectors (E, R, k, d) and offsets (E, R, k)."""

    kind: ClassVar[str] = "linear"
    shapes: ClassVar[Mapping[str, str]] = {"coef": "E R k d", "intercept": "E R k"}

    coef: np.ndarray
    intercept: np.ndarray

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        n_repeats, n_scores, n_features = self.coef.shape[1:]
        # One product for all repeats.
        products = np.asarray(X @ self.coef[epsilon_index].reshape(-1, n_features).T)
        products = products.reshape(-1, n_repeats, n_scores) + self.intercept[epsilon_index]
        return np.ascontiguousarray(products.transpose(1, 0, 2))


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitLinearPath(LinearPath):
    """Linear models of rows that are divided by their norm, with the attributes of `LinearPath`."""

    kind: ClassVar[str] = "unit_linear"

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        from privsvm.numerics.rows.rows import unit_rows

        return super().scores(unit_rows(X), epsilon_index)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CentredLinearPath(LinearPath):
    """Linear models, with offsets, of the directions in which unit rows lie from a centre (E, R, d).

    Rows are divided by their norm, less the centre, and divided by their norm again.
    """

    kind: ClassVar[str] = "centred_linear"
    shapes: ClassVar[Mapping[str, str]] = {**LinearPath.shapes, "centre": "E R d"}

    centre: np.ndarray

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        from privsvm.numerics.rows.rows import unit_rows

        rows = unit_rows(X)
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        models = zip(*(getattr(self, name)[epsilon_index] for name in self.array_names), strict=True)
        return np.stack([unit_rows(rows - centre) @ coef.T + intercept for coef, intercept, centre in models])


@dataclasses.dataclass(frozen=True, kw_only=True)
class StandardizedLinearPath(LinearPath):
    """Linear models of standardised features; each model has its own centres and spreads (E, R, d).

    The models read features as ``(x - centre) / spread``, clipped to the size `bound` (1,).
    """

    kind: ClassVar[str] = "standardized_linear"
    shapes: ClassVar[Mapping[str, str]] = {**LinearPath.shapes, "centre": "E R d", "spread": "E R d", "bound": "1"}

    centre: np.ndarray
    spread: np.ndarray
    bound: np.ndarray

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        X = X if isinstance(X, np.ndarray) else X.toarray()
        bound = float(self.bound[0])
        models = zip(*(getattr(self, name)[epsilon_index] for name in self.array_names[:4]), strict=True)
        with np.errstate(over="ignore"):
            return np.stack(
                [
                    np.clip((X - centre) / spread, -bound, bound) @ coef.T + intercept
                    for coef, intercept, centre, spread in models
                ]
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockPath(LinearPath):
    """Linear models of the columns of a public kernel that several entities compute together.

    The rows to predict are kernel values, which only the entities can compute from the data. They are first raised to
    the `power` (1,), which gives the Gaussian kernel with another gamma.
    """

    kind: ClassVar[str] = "block"
    shapes: ClassVar[Mapping[str, str]] = {"coef": "E R k n", "intercept": "E R k", "power": "1"}

    power: np.ndarray

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        power = float(self.power[0])
        return super().scores(X if power == 1.0 else X**power, epsilon_index)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RandomKernelPath(BlockPath):
    """The models of a `BlockPath` with the secrets of all entities, which predict rows as they do together.

    The kernel's random matrix (n, d) is in the order of the features, which the kernel reads as
    ``(x - centre) / spread``. `gamma` (1,) belongs to the Gaussian kernel; 0 for the linear one.
    """

    kind: ClassVar[str] = "random_kernel"
    shapes: ClassVar[Mapping[str, str]] = {
        **BlockPath.shapes, "random_matrix": "n d", "centre": "d", "spread": "d", "gamma": "1",
    }  # fmt: skip

    random_matrix: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    gamma: np.ndarray

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        from privsvm.numerics.rows.rows import squared_distances

        rows = ((X if isinstance(X, np.ndarray) else X.toarray()) - self.centre) / self.spread
        gamma = float(self.gamma[0])
        kernel = np.exp(-gamma * squared_distances(rows, self.random_matrix)) if gamma else rows @ self.random_matrix.T
        return super().scores(kernel, epsilon_index)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FourierPath(ReleasedPath):
    """Linear models (E, R, k, 2 D) on random Fourier features of public frequencies (d, D)."""

    kind: ClassVar[str] = "fourier"
    shapes: ClassVar[Mapping[str, str]] = {"frequencies": "d F", "coef": "E R k 2F"}

    frequencies: np.ndarray
    coef: np.ndarray

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        from privsvm.solvers.features.fourier import fourier_features

        n_repeats, n_scores, n_features = self.coef.shape[1:]
        coef = self.coef[epsilon_index].reshape(-1, n_features).T
        products = np.empty((X.shape[0], n_repeats * n_scores))
        # Blocks of rows keep the features within about 64 MB.
        block = max(1, 8_000_000 // n_features)
        for start in range(0, X.shape[0], block):
            products[start : start + block] = fourier_features(X[start : start + block], self.frequencies) @ coef
        return np.ascontiguousarray(products.reshape(-1, n_repeats, n_scores).transpose(1, 0, 2))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreesPath(ReleasedPath):
    """Sums of complete trees on columns in whole numbers; see `privsvm.solvers.features.trees`.

    `lower` and `upper` (d,) are public bounds of numbers, `levels` (d,) numbers of categories, 0 for numbers. Inner
    nodes (E, R, T, N) name the column that they read; a row goes right where ``low <= cell < high``. Leaves add `value`
    (E, R, T, L, k) to scores, which begin with `intercept` (E, R, k).
    """

    kind: ClassVar[str] = "trees"
    shapes: ClassVar[Mapping[str, str]] = {
        "lower": "d", "upper": "d", "levels": "d", "feature": "E R T N", "low": "E R T N", "high": "E R T N",
        "value": "E R T L k", "intercept": "E R k",
    }  # fmt: skip

    lower: np.ndarray
    upper: np.ndarray
    levels: np.ndarray
    feature: np.ndarray
    low: np.ndarray
    high: np.ndarray
    value: np.ndarray
    intercept: np.ndarray

    def check_arrays(self) -> dict[str, int]:
        sizes = super().check_arrays()
        leaves, fits = sizes["L"], sizes["L"] == sizes["N"] + 1
        if not (fits and leaves & (leaves - 1) == 0 and ((self.feature >= 0) & (self.feature < sizes["d"])).all()):
            raise PrivSVMError(
                f"model file: arrays of a model of kind {self.kind!r} do not fit each other; get or make it again"
            )
        return sizes

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        from privsvm.solvers.features.trees import column_cells, leaf_numbers

        n_trees = self.feature.shape[2]
        scores = np.repeat(self.intercept[epsilon_index][:, None, :], X.shape[0], axis=1)
        # Blocks of rows keep arrays made of them within about 64 MB.
        block = max(1, 2_000_000 // max(X.shape[1], n_trees))
        for start in range(0, X.shape[0], block):
            rows = X[start : start + block]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            cells = column_cells(rows, self.lower, self.upper, self.levels)
            for model in range(self.n_repeats):
                nodes = (getattr(self, name)[epsilon_index, model] for name in ("feature", "low", "high"))
                leaves, value = leaf_numbers(cells, *nodes), self.value[epsilon_index, model]
                for tree in range(n_trees):
                    scores[model, start : start + block] += value[tree, leaves[:, tree]]
        return scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConstantPath(ReleasedPath):
    """A model with the same class scores (E, R, c) for every row."""

    kind: ClassVar[str] = "constant"
    shapes: ClassVar[Mapping[str, str]] = {"class_scores": "E R k"}

    class_scores: np.ndarray

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        scores = self.class_scores[epsilon_index][:, None, :]
        return np.repeat(scores, X.shape[0], axis=1)


def one_vs_one_scores(pair_values: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """LIBSVM's vote over the class pairs (0,1), (0,2), ..., (1,2), ...

    Pair values (..., p) are positive for the first class of the pair. Returns the number of pairs that each class wins
    (..., c), of which the first of the largest is the answer; and confidences (..., c), votes plus a bounded share
    (below 1/3) of the summed decision values: they order rows within a class.
    """
    votes = np.zeros((*pair_values.shape[:-1], n_classes))
    # LIBSVM gives a tie to the second class.
    if pair_values.size >= _MANY_VALUES:
        from privsvm.solvers.kernel.kernel_rows import count_votes

        sums, flat = np.zeros_like(votes), (-1, n_classes)
        values = np.ascontiguousarray(pair_values, dtype=np.float64).reshape(-1, pair_values.shape[-1])
        count_votes(values, votes.reshape(flat), sums.reshape(flat))
    else:
        columns, signs = _pairs_of_classes(n_classes)
        values = pair_values[..., columns]
        np.sum((values > 0) == (signs > 0), axis=-1, out=votes)
        # Added up one after the other, as compiled code does.
        sums = np.cumsum(values * signs, axis=-1)[..., -1]
    return votes, votes + sums / (3 * (np.abs(sums) + 1))


@functools.lru_cache(maxsize=8)
def _pairs_of_classes(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the pairs that each class is in, and 1 where it is the first of them, else -1, (c, c - 1) each."""
    first, second = np.triu_indices(n_classes, 1)
    columns = np.array([np.flatnonzero((first == k) | (second == k)) for k in range(n_classes)])
    return columns, np.where(first[columns] == np.arange(n_classes)[:, None], 1.0, -1.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class KernelPath(ReleasedPath):
    """Kernel expansions over published rows (m, d), in the clear, one for each pair of classes.

    Coefficients (E, R, m, p) and offsets (E, R, p) are for the ``p = c (c - 1) / 2`` class pairs; the value of a pair
    is positive for its first class. For two classes the sign is reversed, so that it is positive for class 1.
    `kernel_parameters` (4,) are an index into `privsvm.solvers.kernel.kernels.KERNELS`, gamma, degree and coef0.
    """

    kind: ClassVar[str] = "kernel"
    by_votes: ClassVar[bool] = True
    jit_module: ClassVar[str | None] = "solvers.kernel.kernel_rows"
    shapes: ClassVar[Mapping[str, str]] = {
        "support_vectors": "m d", "pair_coef": "E R m p", "intercept": "E R p", "kernel_parameters": "4",
    }  # fmt: skip

    support_vectors: np.ndarray
    pair_coef: np.ndarray
    intercept: np.ndarray
    kernel_parameters: np.ndarray

    def check_arrays(self) -> dict[str, int]:
        from privsvm.solvers.kernel.kernels import KERNELS

        sizes = super().check_arrays()
        index, _, degree, _ = self.kernel_parameters.tolist()
        if index not in range(len(KERNELS)) or not (0 <= degree < 2**31 and degree == int(degree)):
            raise PrivSVMError(
                f"model file: array 'kernel_parameters' is {self.kernel_parameters.tolist()}, no kernel that is known "
                "here; get or make the model again"
            )
        return sizes

    @functools.cached_property
    def _classes(self) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """The rows of each class and their coefficients for the pairs with another; None where that does not pay.

        A support vector of one class has coefficients for the pairs of that class only.
        """
        coef = self.pair_coef[0, 0]
        if self.pair_coef.size != coef.size or coef.size < _MANY_COEFFICIENTS or not self.kernel_parameters[0]:
            return None
        pairs = np.array(np.triu_indices(self.n_classes, 1))
        if coef.shape[1] != pairs.shape[1]:
            return None
        used = coef != 0.0
        involved = np.array([(pairs == k).any(axis=0) for k in range(self.n_classes)], dtype=np.float32)
        counts = used.astype(np.float32) @ involved.T
        row_class = np.argmax(counts, axis=1)
        if (counts[np.arange(len(row_class)), row_class] < used.sum(axis=1)).any():
            return None
        groups = []
        for k in range(self.n_classes):
            rows, columns = np.flatnonzero(row_class == k), np.flatnonzero(involved[k])
            groups.append((self.support_vectors[rows], np.ascontiguousarray(coef[np.ix_(rows, columns)])))
        return groups

    def _expansions(self, epsilon_index: int) -> list[Any]:
        """Return what predictions evaluate: an expansion for each class where `_classes` has some, else one."""
        from privsvm.solvers.kernel.kernel_rows import Expansion
        from privsvm.solvers.kernel.kernels import KERNELS, Kernel

        index, gamma, degree, coef0 = self.kernel_parameters
        kernel = Kernel(KERNELS[int(index)], gamma, int(degree), coef0)
        if self._classes is not None:
            return [Expansion(vectors, class_coef, kernel) for vectors, class_coef in self._classes]
        n_repeats, n_vectors, n_pairs = self.pair_coef.shape[1:]
        coef = self.pair_coef[epsilon_index].transpose(1, 0, 2).reshape(n_vectors, n_repeats * n_pairs)
        return [Expansion(self.support_vectors, coef, kernel)]

    @functools.cached_property
    def _kept_expansions(self) -> list[Any] | None:
        """Arrays of the first epsilon, kept for further predictions; None where they would take much memory."""
        return self._expansions(0) if self.support_vectors.size + self.pair_coef.size <= _KEPT_NUMBERS else None

    def pair_values(self, X: Any, epsilon_index: int, n_threads: int = 1) -> np.ndarray:
        """Decision values (R, n, p) of the class pairs, by so many threads."""
        from privsvm.solvers.kernel.kernel_rows import sum_pairs

        n_repeats, _, n_pairs = self.pair_coef.shape[1:]
        expansions = self._kept_expansions
        if expansions is None or (epsilon_index and self._classes is None):
            expansions = self._expansions(epsilon_index)
        if self._classes is not None:
            sums = np.stack([expansion.at(X, n_threads) for expansion in expansions])
            values = np.empty((X.shape[0], n_pairs))
            sum_pairs(sums, self.intercept[0, 0], values)
            return values[None]
        values = expansions[0].at(X, n_threads)
        values = values.reshape(-1, n_repeats, n_pairs) + self.intercept[epsilon_index]
        return np.ascontiguousarray(values.transpose(1, 0, 2))

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        values = self.pair_values(X, epsilon_index)
        return values if self.n_classes == 2 else one_vs_one_scores(values, self.n_classes)[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneVsOneLinearPath(LinearPath):
    """Linear models, one for each pair of classes, decided by LIBSVM's vote.

    Attributes are as in `LinearPath` with ``k = c (c - 1) / 2``; a pair's value is positive for its first class.
    """

    kind: ClassVar[str] = "one_vs_one_linear"
    by_votes: ClassVar[bool] = True
    shapes: ClassVar[Mapping[str, str]] = {"coef": "E R p d", "intercept": "E R p"}

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        return one_vs_one_scores(super().scores(X, epsilon_index), self.n_classes)[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneVsRestKernelPath(KernelPath):
    """Kernel expansions over published rows, one for each class; for two classes one, positive for class 1.

    Attributes are as in `KernelPath`, with classes in place of pairs: p is c, or 1 for two classes.
    """

    kind: ClassVar[str] = "one_vs_rest_kernel"
    by_votes: ClassVar[bool] = False
    shapes: ClassVar[Mapping[str, str]] = {**KernelPath.shapes, "pair_coef": "E R m k", "intercept": "E R k"}

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        return self.pair_values(X, epsilon_index)


def scores_one_by_one(path: ReleasedPath, X: Any) -> np.ndarray:
    """Compute decision values so that no row's depend on the other rows.

    Each row is scored by itself, from a copy in the same place: a product of many rows at once may round a row's
    score in another way where other rows are gone.
    """
    row = np.zeros((1, X.shape[1]))
    scores = np.empty((X.shape[0], path.scores(row, 0).shape[-1]))
    for start in range(0, X.shape[0], _ALONE):
        block = X[start : start + _ALONE]
        for offset, values in enumerate(block.toarray() if hasattr(block, "indptr") else block):
            row[0] = values
            scores[start + offset] = path.scores(row, 0)[0, 0]
    return scores


def codes_one_by_one(path: ReleasedPath, X: Any) -> np.ndarray:
    """Predict class codes (n,) so that no answer depends on the other rows; see `scores_one_by_one`."""
    codes: np.ndarray = path.codes(scores_one_by_one(path, X)[None])[0]
    return codes


def rows_digest(X: Any) -> np.ndarray:
    """SHA-256 (32,) of rows, a dense or CSR matrix."""
    arrays = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    digest = hashlib.sha256(repr(X.shape).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictionsPath(ReleasedPath):
    """Decision values (E, R, n, k) of certain rows, the test rows of one split, by models that are not stored.

    `digest` (32,) identifies the rows, see `rows_digest`: of other rows nothing is known.
    """

    kind: ClassVar[str] = "predictions"
    shapes: ClassVar[Mapping[str, str]] = {"predicted_scores": "E R n k", "digest": "32"}

    predicted_scores: np.ndarray
    digest: np.ndarray

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        if not np.array_equal(self.digest, rows_digest(X)):
            raise PrivSVMError(
                "model file: holds predictions for the test rows of its split, and these are other rows; train again"
            )
        scores: np.ndarray = self.predicted_scores[epsilon_index]
        return scores
