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
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from privsvm.base.feature_steps import STEPS, Step
from privsvm.errors import PrivSVMError, nearest_name
from privsvm.privacy.gate import Guarantee

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
    "count": "int64", "n_hats": "int64", "digest": "uint8", "levels": "int64", "feature": "int64",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedPath(abc.ABC):
    """Models for E epsilons and R repeats; see the subclasses for their arrays.

    `epsilons` are the requested ones, ``(inf,)`` for a model without privacy, each with a guarantee. `objective`,
    `n_support` and `n_iter` are of the solver's run; None where the number would be private. `fit_seconds` is the time
    of the exact solve, `release_seconds` the time of all E x R releases, since they were paid for.
    """

    name: ClassVar[str]
    # Sizes of the arrays by name: a letter is the same size everywhere, p the number of pairs of classes, k one or c.
    shapes: ClassVar[Mapping[str, str]]
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

    @property
    def kind(self) -> str:
        """The word for a path in a file, which tells its arrays."""
        return self.name

    @property
    def array_shapes(self) -> Mapping[str, str]:
        """`shapes` of all arrays."""
        return self.shapes

    @property
    def n_repeats(self) -> int:
        """Number R of noise draws per epsilon."""
        name = next(name for name, shape in self.shapes.items() if shape.startswith("E R"))
        return int(getattr(self, name).shape[1])

    def check_arrays(self) -> dict[str, int]:
        """Check arrays that come from a file; compiled code would read beyond arrays of other sizes.

        Returns sizes by the letters of `shapes`. Raises PrivSVMError, naming the first array of another shape or type.
        """
        c, arrays = self.n_classes, self.arrays()
        sizes = {"E": len(self.epsilons), "p": c * (c - 1) // 2}
        for name, shape in self.array_shapes.items():
            array, words, kind = arrays[name], shape.split(), _TYPES.get(name.partition(".")[2] or name, "float64")
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

        X has shape (n, d) and is an array or a CSR matrix. The result has shape (R, n, k), with k = 1 for two classes
        decided by sign, else k = c.
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
        return {name: getattr(self, name) for name in self.shapes}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearPath(ReleasedPath):
    """Linear models of features: weights (E, R, k, D) and offsets (E, R, k).

    The features are the rows themselves, or what the `steps` make of them, one after the other. Of the weights of a
    model with fewer features than D, the last ones are 0.
    """

    name: ClassVar[str] = "linear"
    shapes: ClassVar[Mapping[str, str]] = {"coef": "E R k D", "intercept": "E R k"}

    coef: np.ndarray
    intercept: np.ndarray
    steps: tuple[Step, ...] = ()

    @property
    def kind(self) -> str:
        return " ".join([*(step.name for step in self.steps), self.name])

    @property
    def array_shapes(self) -> Mapping[str, str]:
        return {**self.shapes, **step_shapes([step.name for step in self.steps])}

    def arrays(self) -> dict[str, np.ndarray]:
        parts = {
            f"{number}.{name}": array for number, step in enumerate(self.steps) for name, array in step.arrays.items()
        }
        return super().arrays() | parts

    def check_arrays(self) -> dict[str, int]:
        sizes = super().check_arrays()
        stated = [sizes.get(f"d{number}") for number in range(len(self.steps))] + [sizes["D"]]
        # The first array that is as wide as rows tells their width.
        sizes["d"] = next(width for width in stated if width is not None)
        by_model = []
        for epsilon_index, repeat in np.ndindex(len(self.epsilons), self.n_repeats):
            widths = [sizes["d"]]
            for step in self.steps:
                part = step.of_model(epsilon_index, repeat, widths[-1])
                widths.append(widths[-1] if part is None else part.n_features(widths[-1]))
            by_model.append(widths)
        # Arrays are as wide as the widest model.
        fits = (width in (None, max(read)) for width, *read in zip(stated, *by_model, strict=True))
        if min(map(min, by_model)) < 0 or not all(fits):
            raise PrivSVMError(
                f"model file: arrays of a model of kind {self.kind!r} do not fit each other; get or make it again"
            )
        return sizes

    def step(self, name: str) -> Mapping[str, np.ndarray]:
        """Return the arrays of a step, none where there is no such step."""
        return next((step.arrays for step in self.steps if step.name == name), {})

    def model_steps(self, epsilon_index: int, repeat: int, width: int) -> list[Step]:
        """Return the steps of one model, for rows of a width."""
        steps = []
        for step in self.steps:
            part = step.of_model(epsilon_index, repeat, width)
            if part is not None:
                steps.append(part)
                width = part.n_features(width)
        return steps

    def one_model(self, epsilon_index: int, repeat: int, width: int) -> LinearPath:
        """Return the path of one model, for rows of a width."""
        steps = self.model_steps(epsilon_index, repeat, width)
        for step in steps:
            width = step.n_features(width)
            for name, shape in STEPS[step.name].shapes.items():
                own = shape.startswith("E R")
                step.arrays[name] = np.asarray(step.arrays[name])[(None, None) if own else ()]
        chosen = slice(epsilon_index, epsilon_index + 1), slice(repeat, repeat + 1)
        return dataclasses.replace(
            self,
            epsilons=self.epsilons[chosen[0]],
            guarantees=self.guarantees[chosen[0]],
            coef=self.coef[chosen][..., :width],
            intercept=self.intercept[chosen],
            steps=tuple(steps),
        )

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        if not self.steps:
            return _products(X, self.coef[epsilon_index], self.intercept[epsilon_index])
        # Blocks of rows keep the features within about 64 MB.
        block = max(1, 8_000_000 // max(X.shape[1], self.coef.shape[-1], 1))
        starts = range(0, max(X.shape[0], 1), block)
        return np.concatenate([self._block_scores(X[start : start + block], epsilon_index) for start in starts], axis=1)

    def _block_scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        coef, intercept = self.coef[epsilon_index], self.intercept[epsilon_index]
        models = [self.model_steps(epsilon_index, repeat, X.shape[1]) for repeat in range(self.n_repeats)]
        keys = {tuple((step.name, step.key) for step in steps) for steps in models}
        made: dict[Any, Any] = {}
        if len(models) == 1 or (len(keys) == 1 and all(key is not None for _, key in next(iter(keys)))):
            return _products(_apply(models[0], X, made), coef, intercept)
        models_alone = zip(models, coef[:, None], intercept[:, None], strict=True)
        return np.concatenate(
            [_products(_apply(steps, X, made), weights, offset) for steps, weights, offset in models_alone]
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisyLinearPath(LinearPath):
    """One linear model with the noise in its weights, which follows from public numbers and released ones.

    The weights, less their mean over the scores, are ``(exact + normal noise) * kept``: before factors `kept` (D,) from
    0 to 1, the noise of each score is a row of independent standard normal numbers times `noise` (m, D). For several
    scores, it is so less its mean. A single row of `noise` has the standard deviations of independent noise.
    """

    name: ClassVar[str] = "noisy_linear"
    shapes: ClassVar[Mapping[str, str]] = {**LinearPath.shapes, "noise": "m D", "kept": "D"}

    noise: np.ndarray
    kept: np.ndarray


def _apply(steps: Sequence[Step], rows: Any, made: dict[Any, Any]) -> Any:
    """Compute the features of a model; `made` collects features that other models may share."""
    key: tuple[Any, ...] = ()
    for step in steps:
        key += (step.name, step.key)
        rows = made[key] if key in made else step.apply(rows)
        if None not in key:
            made[key] = rows
    return rows


def _products(rows: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Scores (R, n, k) of features (n, d) by the first d weights of each model: one product for all models."""
    (n_models, n_scores, _), n_features = coef.shape, rows.shape[1]
    coef = coef[..., :n_features]
    weights = coef[0] if n_models == 1 else coef.reshape(-1, n_features)
    products = np.asarray(rows @ weights.T).reshape(-1, n_models, n_scores)
    return np.ascontiguousarray((products + intercept).transpose(1, 0, 2))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreesPath(ReleasedPath):
    """Sums of complete trees on columns in whole numbers; see `privsvm.solvers.features.trees`.

    `lower` and `upper` (d,) are public bounds of numbers, `levels` (d,) numbers of categories, 0 for numbers. Inner
    nodes (E, R, T, N) name the column that they read; a row goes right where ``low <= cell < high``. Leaves add `value`
    (E, R, T, L, k) to scores, which begin with `intercept` (E, R, k).
    """

    name: ClassVar[str] = "trees"
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

    name: ClassVar[str] = "constant"
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

    name: ClassVar[str] = "kernel"
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
    def _first_expansions(self) -> list[Any] | None:
        """Arrays of the first epsilon, kept for further predictions; None where they would take much memory."""
        return self._expansions(0) if self.support_vectors.size + self.pair_coef.size <= _KEPT_NUMBERS else None

    def pair_values(self, X: Any, epsilon_index: int, n_threads: int = 1) -> np.ndarray:
        """Decision values (R, n, p) of the class pairs, by so many threads."""
        from privsvm.solvers.kernel.kernel_rows import sum_pairs

        n_repeats, _, n_pairs = self.pair_coef.shape[1:]
        expansions = self._first_expansions
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

    name: ClassVar[str] = "one_vs_one_linear"
    by_votes: ClassVar[bool] = True
    shapes: ClassVar[Mapping[str, str]] = {"coef": "E R p D", "intercept": "E R p"}

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        return one_vs_one_scores(super().scores(X, epsilon_index), self.n_classes)[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneVsRestKernelPath(KernelPath):
    """Kernel expansions over published rows, one for each class; for two classes one, positive for class 1.

    Attributes are as in `KernelPath`, with classes in place of pairs: p is c, or 1 for two classes.
    """

    name: ClassVar[str] = "one_vs_rest_kernel"
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

    name: ClassVar[str] = "predictions"
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


PATHS: Mapping[str, type[ReleasedPath]] = {
    path.name: path
    for path in (
        LinearPath, NoisyLinearPath, OneVsOneLinearPath, KernelPath, OneVsRestKernelPath, ConstantPath,
        PredictionsPath, TreesPath,
    )
}  # fmt: skip
_MOST_STEPS = 8


def step_shapes(steps: Sequence[str]) -> dict[str, str]:
    """Sizes of the arrays of steps by their names in a file; letters but E and R are a step's own."""
    return {
        f"{number}.{name}": re.sub(r"\b(?![ER])[A-Za-z]\b", rf"\g<0>{number}", shape)
        for number, step in enumerate(steps)
        for name, shape in STEPS[step].shapes.items()
    }


def array_names(kind: str) -> list[str]:
    """List the arrays of a stored path; raise PrivSVMError for an unknown kind."""
    *steps, name = kind.split(" ")
    known = {**dict.fromkeys(steps, STEPS), name: PATHS}
    for word, names in known.items():
        if word not in names:
            raise PrivSVMError(f"model file: kind {kind[:100]!r} is unknown; {nearest_name(word, names)}")
    if len(steps) > (_MOST_STEPS if issubclass(PATHS[name], LinearPath) else 0):
        raise PrivSVMError(f"model file: kind {kind[:100]!r} has too many steps; get or make the model again")
    return [*PATHS[name].shapes, *step_shapes(steps)]


def path_from_arrays(kind: str, arrays: Mapping[str, np.ndarray], **common: Any) -> ReleasedPath:
    """Rebuild a path from its stored arrays.

    `arrays` come from `ReleasedPath.arrays`, and `common` has the attributes of `ReleasedPath`. Raises PrivSVMError if
    the kind is unknown, or an array is missing, or is not such as a model of this kind has.
    """
    missing = set(array_names(kind)) - set(arrays)
    if missing:
        raise PrivSVMError(f"model file: array {sorted(missing)[0]!r} is missing; delete the model and run again")
    *words, name = kind.split(" ")
    steps = [
        Step(word, {part: arrays[f"{number}.{part}"] for part in STEPS[word].shapes})
        for number, word in enumerate(words)
    ]
    stored: dict[str, Any] = {part: arrays[part] for part in PATHS[name].shapes} | common
    path = PATHS[name](**stored | ({"steps": tuple(steps)} if steps else {}))
    path.check_arrays()
    return path
