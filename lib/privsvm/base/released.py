"""Released models: what a method gives away, and all that is needed to predict with it.

A path holds the models that one training set released for a grid of epsilons and a number of repeats. It
knows how to predict and how to be stored as plain arrays, and holds nothing else: no clean weights, no
training rows beyond those a method publishes by design.
"""

from __future__ import annotations

import abc
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from privsvm.base.validation import common_tags
from privsvm.errors import PrivSVMError, nearest_name
from privsvm.numerics.streams import seeded_stream, system_stream
from privsvm.privacy.guarantee import Guarantee

__all__ = [
    "BlockPath",
    "ConstantPath",
    "FourierPath",
    "KernelPath",
    "LinearPath",
    "NoiseStreams",
    "OneVsOneLinearPath",
    "OneVsRestKernelPath",
    "PrivateClassifier",
    "ReleasedClassifier",
    "ReleasedPath",
    "SingleModelClassifier",
    "StandardizedLinearPath",
    "UnitLinearPath",
    "disclose_noise",
    "noise_streams",
    "one_vs_one_scores",
    "path_from_arrays",
]

NoiseStreams = Callable[[float, int], np.random.Generator]

_SECRET_SEED = "the seed is secret, stored nowhere and used for one release only: for benchmarks"


def noise_streams(rng: NoiseStreams | np.random.Generator | int | None, estimator) -> NoiseStreams:
    """Give every (epsilon, repeat) of a path a noise stream of its own.

    Parameters
    ----------
    rng : callable, numpy.random.Generator, int or None
        A callable ``(epsilon, repeat) -> Generator`` is used as it is. An integer seeds
        counter-based streams. A generator is drawn from once for such a seed. None takes fresh
        entropy of the operating system for every release.
    estimator : estimator
        Its class is part of the streams' key: two methods with one seed share no noise.

    Returns
    -------
    callable
    """
    if callable(rng):
        return rng
    if rng is None:
        return lambda epsilon, repeat: system_stream()
    if isinstance(rng, np.random.Generator):
        seed = int(rng.integers(2**63))
    elif isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        seed = int(rng)
    else:
        raise ValueError(f"rng={rng!r}: must be a callable, a numpy Generator, an integer or None")
    method = type(estimator).__name__
    return lambda epsilon, repeat: seeded_stream(seed, "noise", method, float(epsilon), repeat)


def disclose_noise(guarantee: Guarantee, rng: NoiseStreams | np.random.Generator | int | None) -> Guarantee:
    """Record where the noise came from, and what the proof needs of a seed.

    Parameters
    ----------
    guarantee : Guarantee
        Of a release with noise from `noise_streams`.
    rng : callable, numpy.random.Generator, int or None
        What `noise_streams` was given. Whoever hands in streams answers for their seed.

    Returns
    -------
    Guarantee
    """
    guarantee = dataclasses.replace(guarantee, noise_source="system" if rng is None else "seeded stream")
    if rng is None or callable(rng) or guarantee.status != "proved":
        return guarantee
    return guarantee.with_assumption(_SECRET_SEED)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedPath(abc.ABC):
    """Models for E epsilons and R repeats; see the subclasses for their arrays.

    Attributes
    ----------
    epsilons : tuple of float (E)
        What was asked for; ``(inf,)`` for a non-private model.
    guarantees : tuple of Guarantee (E)
        One record per epsilon.
    n_classes : int
        Number of classes c.
    objective, n_support, n_iter : float, int, int or None
        Of the solve; None where the number would be private.
    fit_seconds, release_seconds : float
        Time of the exact solve, and of all E x R releases from it. Audits are not counted.
    """

    kind: ClassVar[str]
    array_names: ClassVar[tuple[str, ...]]

    epsilons: tuple[float, ...]
    guarantees: tuple[Guarantee, ...]
    n_classes: int
    objective: float | None = None
    n_support: int | None = None
    n_iter: int | None = None
    fit_seconds: float = 0.0
    release_seconds: float = 0.0

    @property
    @abc.abstractmethod
    def n_repeats(self) -> int:
        """Number R of noise draws per epsilon."""

    @abc.abstractmethod
    def scores(self, X, epsilon_index: int) -> np.ndarray:
        """Decision values of the R models of one epsilon.

        Parameters
        ----------
        X : ndarray or CSR matrix (n, d)
            Rows.
        epsilon_index : int
            Index into `epsilons`.

        Returns
        -------
        ndarray (R, n, k)
            k = 1 for two classes decided by sign, else k = c.
        """

    def codes(self, scores: np.ndarray) -> np.ndarray:
        """Class codes (R, n) that belong to decision values (R, n, k)."""
        if scores.shape[-1] == 1:
            return (scores[..., 0] > 0).astype(np.int64)
        return np.argmax(scores, axis=-1)

    def without_seconds(self) -> Self:
        """Return the path without its times, which depend on the private rows: for a model that is given away."""
        return dataclasses.replace(self, fit_seconds=0.0, release_seconds=0.0)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the path by name, enough to rebuild it with `path_from_arrays`."""
        return {name: getattr(self, name) for name in self.array_names}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearPath(ReleasedPath):
    """Linear models.

    Attributes
    ----------
    coef : ndarray (E, R, k, d)
        Weight vectors.
    intercept : ndarray (E, R, k)
        Offsets.
    """

    kind: ClassVar[str] = "linear"
    array_names: ClassVar[tuple[str, ...]] = ("coef", "intercept")

    coef: np.ndarray
    intercept: np.ndarray

    @property
    def n_repeats(self) -> int:
        return self.coef.shape[1]

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        n_repeats, n_scores, n_features = self.coef.shape[1:]
        # One product for all repeats.
        products = np.asarray(X @ self.coef[epsilon_index].reshape(-1, n_features).T)
        products = products.reshape(-1, n_repeats, n_scores) + self.intercept[epsilon_index]
        return np.ascontiguousarray(products.transpose(1, 0, 2))


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitLinearPath(LinearPath):
    """Linear models of rows that are divided by their norm; attributes are those of `LinearPath`."""

    kind: ClassVar[str] = "unit_linear"

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        from privsvm.base.private_scaling import unit_rows

        return super().scores(unit_rows(X), epsilon_index)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StandardizedLinearPath(LinearPath):
    """Linear models of features that are standardised first, by numbers of each model's own.

    Attributes
    ----------
    coef, intercept
        As of `LinearPath`.
    centre, spread : ndarray (E, R, d)
        Features are taken as ``(x - centre) / spread``,
    bound : ndarray (1,)
        and cut at this size.
    """

    kind: ClassVar[str] = "standardized_linear"
    array_names: ClassVar[tuple[str, ...]] = ("coef", "intercept", "centre", "spread", "bound")

    centre: np.ndarray
    spread: np.ndarray
    bound: np.ndarray

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        X = X.toarray() if scipy.sparse.issparse(X) else X
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
    """Linear models of the columns of a public kernel, which several entities make together.

    Its rows are not those of the data, but their kernel values, which only the entities can compute.

    Attributes
    ----------
    coef, intercept
        As of `LinearPath`.
    power : ndarray (1,)
        Kernel values are raised to it first: a Gaussian kernel of another coefficient than was published.
    """

    kind: ClassVar[str] = "block"
    array_names: ClassVar[tuple[str, ...]] = ("coef", "intercept", "power")

    power: np.ndarray

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        power = float(self.power[0])
        return super().scores(X if power == 1.0 else X**power, epsilon_index)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FourierPath(ReleasedPath):
    """Linear models on random Fourier features.

    Attributes
    ----------
    frequencies : ndarray (d, D)
        The features' frequencies; public.
    coef : ndarray (E, R, k, 2 D)
        Weight vectors.
    """

    kind: ClassVar[str] = "fourier"
    array_names: ClassVar[tuple[str, ...]] = ("frequencies", "coef")

    frequencies: np.ndarray
    coef: np.ndarray

    @property
    def n_repeats(self) -> int:
        return self.coef.shape[1]

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        from privsvm.solvers.features import fourier_features

        n_repeats, n_scores, n_features = self.coef.shape[1:]
        coef = self.coef[epsilon_index].reshape(-1, n_features).T
        products = np.empty((X.shape[0], n_repeats * n_scores))
        # Blocks of rows keep the features within about 64 MB.
        block = max(1, 8_000_000 // n_features)
        for start in range(0, X.shape[0], block):
            products[start : start + block] = fourier_features(X[start : start + block], self.frequencies) @ coef
        return np.ascontiguousarray(products.reshape(-1, n_repeats, n_scores).transpose(1, 0, 2))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConstantPath(ReleasedPath):
    """A model that answers the same for every row.

    Attributes
    ----------
    class_scores : ndarray (E, R, c)
        Score of each class.
    """

    kind: ClassVar[str] = "constant"
    array_names: ClassVar[tuple[str, ...]] = ("class_scores",)

    class_scores: np.ndarray

    @property
    def n_repeats(self) -> int:
        return self.class_scores.shape[1]

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        scores = self.class_scores[epsilon_index][:, None, :]
        return np.repeat(scores, X.shape[0], axis=1)


def one_vs_one_scores(pair_values: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """LIBSVM's vote over the class pairs (0,1), (0,2), ..., (1,2), ...

    Parameters
    ----------
    pair_values : ndarray (..., c (c - 1) / 2)
        Positive for the first class of the pair.
    n_classes : int
        c.

    Returns
    -------
    votes : ndarray (..., c)
        Number of pairs each class wins; the first of the largest is the answer.
    confidences : ndarray (..., c)
        Votes plus a bounded share (below 1/3) of the summed decision values: orders rows within a class.
    """
    votes = np.zeros((*pair_values.shape[:-1], n_classes))
    sums = np.zeros_like(votes)
    pair = 0
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            values = pair_values[..., pair]
            # LIBSVM gives a tie to the second class.
            votes[..., first] += values > 0
            votes[..., second] += values <= 0
            sums[..., first] += values
            sums[..., second] -= values
            pair += 1
    return votes, votes + sums / (3 * (np.abs(sums) + 1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class KernelPath(ReleasedPath):
    """Kernel expansions over published rows, one for each pair of classes.

    Attributes
    ----------
    support_vectors : ndarray (m, d)
        The rows of the expansion, in the clear.
    pair_coef : ndarray (E, R, m, p)
        Coefficients for the ``p = c (c - 1) / 2`` class pairs.
    intercept : ndarray (E, R, p)
        Offsets; a pair's value is positive for its first class. For two classes the sign is turned, so
        that it is positive for class 1.
    kernel_parameters : ndarray (4,)
        Index into `privsvm.solvers.kernels.KERNELS`, gamma, degree, coef0.
    """

    kind: ClassVar[str] = "kernel"
    array_names: ClassVar[tuple[str, ...]] = ("support_vectors", "pair_coef", "intercept", "kernel_parameters")

    support_vectors: np.ndarray
    pair_coef: np.ndarray
    intercept: np.ndarray
    kernel_parameters: np.ndarray

    @property
    def n_repeats(self) -> int:
        return self.pair_coef.shape[1]

    def pair_values(self, X, epsilon_index: int) -> np.ndarray:
        """Decision values (R, n, p) of the class pairs."""
        from privsvm.solvers.kernel_rows import kernel_expansion
        from privsvm.solvers.kernels import KERNELS

        index, gamma, degree, coef0 = self.kernel_parameters
        n_repeats, n_vectors, n_pairs = self.pair_coef.shape[1:]
        coef = self.pair_coef[epsilon_index].transpose(1, 0, 2).reshape(n_vectors, n_repeats * n_pairs)
        values = kernel_expansion(X, self.support_vectors, coef, KERNELS[int(index)], gamma, int(degree), coef0)
        values = values.reshape(-1, n_repeats, n_pairs) + self.intercept[epsilon_index]
        return np.ascontiguousarray(values.transpose(1, 0, 2))

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        values = self.pair_values(X, epsilon_index)
        return values if self.n_classes == 2 else one_vs_one_scores(values, self.n_classes)[1]

    def codes(self, scores: np.ndarray) -> np.ndarray:
        if scores.shape[-1] == 1:
            return super().codes(scores)
        # Rounding gives the votes back; among equal votes LIBSVM takes the first class.
        return np.argmax(np.rint(scores), axis=-1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneVsOneLinearPath(LinearPath):
    """Linear models, one for each pair of classes, decided by LIBSVM's vote.

    Attributes are those of `LinearPath` with ``k = c (c - 1) / 2``; a pair's value is positive for its first class.
    """

    kind: ClassVar[str] = "one_vs_one_linear"

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        return one_vs_one_scores(super().scores(X, epsilon_index), self.n_classes)[1]

    def codes(self, scores: np.ndarray) -> np.ndarray:
        # Rounding gives the votes back; among equal votes LIBSVM takes the first class.
        return np.argmax(np.rint(scores), axis=-1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneVsRestKernelPath(KernelPath):
    """Kernel expansions over published rows, one for each class; for two classes one, positive for class 1.

    Attributes are those of `KernelPath`, with classes in place of pairs: p is c, or 1 for two classes.
    """

    kind: ClassVar[str] = "one_vs_rest_kernel"

    def scores(self, X, epsilon_index: int) -> np.ndarray:
        return self.pair_values(X, epsilon_index)

    def codes(self, scores: np.ndarray) -> np.ndarray:
        return ReleasedPath.codes(self, scores)


class ReleasedClassifier:
    """Prediction of an estimator that keeps its one released model as ``_path``; a mixin."""

    classes_: np.ndarray
    _path: Any

    def decision_function(self, X) -> np.ndarray:
        """Decision values.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows.

        Returns
        -------
        ndarray (n,) or (n, c)
            Two classes: positive for ``classes_[1]``. More: class scores; where pairs are trained, votes plus
            a bounded share of their summed values.
        """
        scores = self._released_scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> np.ndarray:
        """Predict the labels (n,) of rows X (n, d)."""
        scores = self._released_scores(X)
        return self.classes_[self._path.codes(scores[None])[0]]

    def _released_scores(self, X) -> np.ndarray:
        X = self._checked_rows(X)
        return self._path.scores(X, 0)[0]

    def _checked_rows(self, X) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)


class SingleModelClassifier(ReleasedClassifier, abc.ABC):
    """An estimator without epsilon, which trains one model; a base, with a scikit-learn classifier beside it."""

    def fit(self, X, y) -> Self:
        """Train on rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; finite.
        y : array-like (n,)
            Labels.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            For rows that are not finite, one class only, or a parameter out of range.
        """
        self._train(X, y, getattr(self, "random_state", None))
        return self

    def release_path(
        self,
        X,
        y,
        epsilons: Sequence[float],
        repeats: int,
        rng: NoiseStreams | np.random.Generator | int | None = None,
        audit: bool = False,
    ) -> Any:
        """One model: a method without epsilon ignores the grid and the repeats."""
        started = time.perf_counter()
        self._train(X, y, rng)
        return dataclasses.replace(self._path, fit_seconds=time.perf_counter() - started)

    @abc.abstractmethod
    def _train(self, X, y, rng: NoiseStreams | np.random.Generator | int | None) -> None:
        """Train and keep the model, with streams from `rng` where it draws anything."""

    def __sklearn_tags__(self):
        return common_tags(super().__sklearn_tags__())  # type: ignore[misc]


class PrivateClassifier(ReleasedClassifier, abc.ABC):
    """An estimator that trains and releases one private model; a base, with a scikit-learn classifier beside it."""

    epsilon: float
    random_state: int | np.random.Generator | None
    guarantee_: Guarantee

    def fit(self, X, y) -> Self:
        """Train, and release one noisy model.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; finite. Scale them by public bounds: statistics of private rows are not covered.
        y : array-like (n,)
            Labels.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            If a parameter is out of range, an assumption of the proof fails, or the model would be
            unsound without ``allow_unsound=True``.
        """
        self._keep(self.release_path(X, y, [self.epsilon], 1, self.random_state).without_seconds())
        return self

    @abc.abstractmethod
    def release_path(
        self,
        X,
        y,
        epsilons: Sequence[float],
        repeats: int,
        rng: NoiseStreams | np.random.Generator | int | None = None,
        audit: bool = False,
    ) -> Any:
        """Release models for a grid of epsilons, from one solve where the noise comes after it. For benchmarks.

        Parameters
        ----------
        X, y
            As in `fit`.
        epsilons : sequence of float (E)
            The grid. Every model is accounted alone; publishing all of them would compose.
        repeats : int
            Models R per epsilon.
        rng : callable, numpy.random.Generator, int or None
            See `noise_streams`.
        audit : bool, default=False
            Put a witness into the guarantees: a lower bound on epsilon, shown on a pair of neighbouring data sets. It
            takes a few more solves or trainings, and may be computed from the private rows.

        Returns
        -------
        ReleasedPath
            The E x R models and their records.
        """

    def _keep(self, path: Any) -> None:
        """Set the fitted attributes from a path of one model."""
        self._path = path
        self.coef_ = path.coef[0, 0]
        self.guarantee_ = path.guarantees[0]

    def __sklearn_tags__(self):
        tags = common_tags(super().__sklearn_tags__())  # type: ignore[misc]
        # Noise is the point: accuracy on tiny data sets is not.
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags


def path_from_arrays(kind: str, arrays: Mapping[str, np.ndarray], **common: Any) -> ReleasedPath:
    """Rebuild a path from its stored arrays.

    Parameters
    ----------
    kind : str
        As stored beside the arrays: `kind` of a subclass of `ReleasedPath`.
    arrays : mapping of str to ndarray
        As given by `ReleasedPath.arrays`.
    **common
        The attributes of `ReleasedPath`.

    Returns
    -------
    ReleasedPath

    Raises
    ------
    PrivSVMError
        If the kind is unknown or an array is missing.
    """
    paths = (
        LinearPath, UnitLinearPath, StandardizedLinearPath, OneVsOneLinearPath, BlockPath, FourierPath, KernelPath,
        OneVsRestKernelPath, ConstantPath,
    )  # fmt: skip
    kinds: dict[str, type[ReleasedPath]] = {cls.kind: cls for cls in paths}
    if kind not in kinds:
        raise PrivSVMError(f"model file: kind {kind!r} is unknown; {nearest_name(kind, kinds)}")
    missing = set(kinds[kind].array_names) - set(arrays)
    if missing:
        raise PrivSVMError(f"model file: array {sorted(missing)[0]!r} is missing; delete the model and run again")
    stored: dict[str, Any] = {**arrays, **common}
    return kinds[kind](**stored)
