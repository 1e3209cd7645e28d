"""Bases of estimators that release models: noise streams, and fitting and predicting through a released path.

They are apart from `privsvm.base.released` because predicting with stored models does not need scikit-learn.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import math
import operator
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privsvm.base.budget import charge_to, fit_payer, refuse_clone, refuse_in_budget
from privsvm.base.parameters import (
    ALLOW_COMPOSITION,
    ALLOW_UNSOUND,
    CLASSES,
    EPSILON,
    LABELS,
    NEIGHBOURS,
    RANDOM_STATE,
    DeclaredEstimator,
    check_consent,
)
from privsvm.base.released import KernelPath, ReleasedPath
from privsvm.base.rows import as_training_rows, rows_to_predict
from privsvm.constraints import POSITIVE, is_trusted
from privsvm.digests import canonical_json
from privsvm.numerics.compiled.threads import one_blas_thread
from privsvm.numerics.noise.noise_source import NoiseSource, as_source, seeded_source, system_source
from privsvm.numerics.noise.streams import seeded_stream, system_stream
from privsvm.numerics.rows.row_blocks import RowBlocks, blocks_in_order
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Neighbours
from privsvm.privacy.gate import ONE_OF_SEVERAL, Claim, Guarantee, grant, with_assumption
from privsvm.privacy.statement import AS_GIVEN, Facts, Randomness, Witness

# Types that callers may pass, and what `noise_streams` makes of them.
NoiseStreams = Callable[[float, int], NoiseSource | np.random.Generator]
NoiseSources = Callable[[float, int], NoiseSource]
RandomState = NoiseStreams | np.random.Generator | int | None


def _check_rng(rng: Any) -> None:
    """Raise ValueError unless this is a generator or an integer."""
    if isinstance(rng, bool) or not isinstance(rng, (np.random.Generator, int, np.integer)):
        raise ValueError(f"rng={rng!r}: must be a callable, a numpy Generator, an integer or None")


def noise_streams(rng: RandomState, estimator: Any) -> NoiseSources:
    """Give every (epsilon, repeat) of a path a noise source of its own.

    A callable ``(epsilon, repeat) -> NoiseSource or Generator`` is asked each time; a generator that it returns gives a
    key of 32 bytes. An integer seeds the sources. A generator is asked once for a key. None takes fresh entropy of the
    operating system for every release. The estimator's class is part of the sources' keys: two methods with one seed
    share no noise.
    """
    if callable(rng):
        return lambda epsilon, repeat: as_source(rng(epsilon, repeat))
    if rng is None:
        return lambda epsilon, repeat: system_source()
    method = type(estimator).__name__
    if isinstance(rng, np.random.Generator):
        common = as_source(rng)
        return lambda epsilon, repeat: common.part(canonical_json([method, float(epsilon), repeat]))
    _check_rng(rng)
    seed = int(rng)
    return lambda epsilon, repeat: seeded_source(seed, method, float(epsilon), repeat)


def noise_generators(rng: RandomState, estimator: Any) -> Callable[[float, int], np.random.Generator]:
    """Give every (epsilon, repeat) a generator of NumPy's, for methods that prove nothing; see `noise_streams`.

    A generator that a callable returns is used as it is.
    """
    if rng is None:
        return lambda epsilon, repeat: system_stream()
    if callable(rng):
        given: NoiseStreams = rng

        def stream(epsilon: float, repeat: int) -> np.random.Generator:
            source = given(epsilon, repeat)
            return source.generator() if isinstance(source, NoiseSource) else source

        return stream
    _check_rng(rng)
    seed = int(rng.integers(2**63)) if isinstance(rng, np.random.Generator) else int(rng)
    return lambda epsilon, repeat: seeded_stream(seed, "noise", type(estimator).__name__, float(epsilon), repeat)


PathT = TypeVar("PathT", bound=ReleasedPath)
# Times depend on the private rows, so a path is published without them.
NO_SECONDS: Mapping[str, float] = {"fit_seconds": 0.0, "release_seconds": 0.0}
# Purpose of the noise of one release: an epsilon, or its mechanism.
_Item = TypeVar("_Item")
_Solution = TypeVar("_Solution")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Release:
    """The checked rows, labels and budgets that a method trains on and releases models for.

    Rows (n, d) and class codes (n,) train E x R models: `repeats` for each epsilon of the grid. `delta` goes with every
    epsilon; 0 for a method without one. `sources` maps an epsilon and the number of a repeat to a source of noise, see
    `noise_streams` and `source`; `randomness` is its origin, for the privacy record. With `audit`, guarantees get a
    witness. `book` lets a guarantee be paid for, see `pay`; `guarantees` are the ones that were paid for.
    `declared_classes` is whether the class set is public. `clock` has the seconds of the exact solve (`solved_in`), and
    the time of the payment (`paid_at`).
    """

    rows: Any
    codes: np.ndarray
    n_classes: int
    epsilons: tuple[float, ...]
    delta: float
    neighbours: Neighbours
    repeats: int
    sources: Callable[[float, int], Any]
    randomness: Randomness
    audit: bool
    declared_classes: bool
    book: Callable[[Guarantee], Guarantee]
    guarantees: list[Guarantee] = dataclasses.field(default_factory=list)
    clock: dict[str, float] = dataclasses.field(default_factory=dict)

    def solve(self, solver: Callable[..., _Solution], *arguments: Any) -> _Solution:
        """Call the exact solver, and take its time."""
        started = time.perf_counter()
        solution = solver(*arguments)
        self.clock["solved_in"] = time.perf_counter() - started
        return solution

    def claim(self, epsilon: float, **fields: Any) -> Guarantee:
        """Make the record of an epsilon that somebody states, and that nothing proves."""
        return Guarantee(
            status="claimed",
            neighbours=self.neighbours,
            epsilon_requested=epsilon,
            delta=self.delta,
            randomness=self.randomness,
            **fields,
        )

    def grant(
        self,
        claim: Claim,
        witness: Witness | None = None,
        *,
        n_rows: Any = "not used",
        features: Any = "none",
        solution: Any = "none needed",
    ) -> Guarantee:
        """Judge a claim by the facts of this call, for rows as they are given, and make its record.

        `n_rows` is the parameter of methods that use the number of rows, which None counts; see `Facts` for the others.
        """
        declared = n_rows is not None and n_rows != "not used"
        facts = Facts(
            **AS_GIVEN,
            classes="declared" if self.declared_classes else "private labels",
            n_rows="counted" if n_rows is None else "declared" if declared else "not used",
            features=features,
            solution=solution,
            # Whole numbers of any kind, 8.0 too.
            declared_rows=int(n_rows) if declared else None,
        )
        return grant(claim, facts.for_rows(self.rows.shape[0], self.neighbours), self.randomness, witness)

    def pay(self, guarantees: Iterable[Guarantee]) -> None:
        """Pay for the guarantees of the E epsilons, once: they follow from public facts alone.

        Whatever is refused is refused here. After it nothing may depend on noise or rows but the released models: an
        error, a warning or a number of steps would be an answer that nobody accounts for.
        """
        self.guarantees.extend([self.book(guarantee) for guarantee in guarantees])
        self.clock["paid_at"] = time.perf_counter()

    def source(self, epsilon: float, repeat: int) -> Any:
        """Return the noise of one model; raise RuntimeError before it is paid for."""
        if not self.guarantees:
            raise RuntimeError("noise is drawn before it is paid for: a fault of the method")
        return self.sources(epsilon, repeat)

    def stack(self, items: Sequence[_Item], draw: Callable[[_Item, Any], np.ndarray]) -> np.ndarray:
        """Draw from the noise of every epsilon and repeat.

        `items` has one for each epsilon, such as its mechanism; `draw` makes an array of an item and a source of noise.
        Returns (E, R, ...).
        """
        return np.stack(
            [
                np.stack([draw(item, self.source(epsilon, repeat)) for repeat in range(self.repeats)])
                for epsilon, item in zip(self.epsilons, items, strict=True)
            ]
        )

    def stack_models(self, models: Sequence[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        """Stack the arrays of all models, one epsilon after the other, to (E, R, ...) each."""
        shape = len(self.epsilons), self.repeats
        return [np.stack(arrays).reshape(*shape, *arrays[0].shape) for arrays in zip(*models, strict=True)]

    def path(self, kind: type[PathT], **arrays: Any) -> PathT:
        """Make the path of the released models, which were made since they were paid for, from their arrays."""
        return kind(
            epsilons=self.epsilons,
            guarantees=tuple(self.guarantees),
            n_classes=self.n_classes,
            fit_seconds=self.clock.get("solved_in", 0.0),
            release_seconds=time.perf_counter() - self.clock["paid_at"],
            **arrays,
        )


# Public by declaration, so that recipes state their values; more than so many as their number.
_PUBLIC_LISTS, _LONGEST_LIST = ("bounds", "indicators"), 16

# Standard deviation of the noise with a whole budget, in rows.
_MOST_NOISE = 1e6


def _plain(value: Any, listed: bool) -> Any:
    value = value.tolist() if isinstance(value, np.generic) or (listed and isinstance(value, np.ndarray)) else value
    if listed and isinstance(value, (list, tuple)):
        return [_plain(item, True) for item in value] if len(value) <= _LONGEST_LIST else f"{len(value)} values"
    return value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimator's parameters as JSON values, without the seed; other objects become their type's name."""
    return {
        name: _plain(value, name in _PUBLIC_LISTS)
        for name, value in parameters.items()
        if name not in ("after", "random_state", "classes", "allow_unsound", "allow_composition")
    }


@contextlib.contextmanager
def rollback_on_error(estimator: Any) -> Iterator[None]:
    """Count a fit; put the estimator's attributes back if it fails: nothing stays of a model that is not paid for."""
    before = dict(estimator.__dict__)
    try:
        with charge_to():
            yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def reason_if_subclass(estimator: Any) -> str | None:
    """Say why nothing is proved of a class that is not the library's own, or return None."""
    if is_trusted(estimator, "privsvm"):
        return None
    return (
        f"{type(estimator).__name__} is a class of yours, or has a method that you replaced: proofs are of the "
        "library's own classes, not derived ones"
    )


# Why nothing is proved of a clone to whose fits nobody consented.
_MANY_FITS = (
    "allow_composition=False: sklearn.base.clone made this estimator, as searches, cross-validations and ensembles do, "
    "which fit many on the same rows, and their budgets add up"
)


class CloneAware:
    """Knows whether `sklearn.base.clone` made an estimator, as meta-estimators do before they fit; a mixin."""

    _cloned = False

    def __sklearn_clone__(self) -> Self:
        clone: Self = super().__sklearn_clone__()  # type: ignore[misc]
        clone._cloned = True
        return clone

    def _check_clone(self, allow_composition: bool, allow_unsound: bool) -> None:
        """Refuse a clone in a budget, and elsewhere one to whose fits nobody consented."""
        refuse_clone(self)
        if not allow_composition and not allow_unsound:
            raise ValueError(
                f"{_MANY_FITS}; use privsvm.PrivateSearch, fit an estimator that you made by its class, or set "
                "allow_composition=True if you add up yourself"
            )


def judge_clone(guarantee: Guarantee, composition: bool) -> Guarantee:
    """Judge the record of a clone's fit; its user adds up the fits by `composition`, or does not."""
    return with_assumption(guarantee, ONE_OF_SEVERAL) if composition else guarantee.without_proof(_MANY_FITS)


@one_blas_thread()
def _labels_of_block(path: Any, classes: np.ndarray, rows: Any) -> np.ndarray:
    labels: np.ndarray = classes[path.codes(path.scores(rows, 0)[:1])[0]]
    return labels


def check_record(path: Any, shown: Any) -> None:
    """Raise ValueError if an estimator's record differs from the record of its released path."""
    if type(shown) is not Guarantee or path.guarantees != (shown,):
        raise ValueError("guarantee_ is not the record of the released model: get the file again, or fit again")


class ReleasedClassifier:
    """Prediction of an estimator that keeps its one released model as ``_path``; a mixin.

    A class with `linear_scores` has probabilities: its scores come from a linear model, and are not votes.
    """

    linear_scores: ClassVar[bool] = False

    classes_: np.ndarray
    n_features_in_: int
    guarantee_: Guarantee
    _path: Any
    _recipe: dict[str, Any]
    # The releases in the average that the model is, see `privsvm.base.model_file.OneRelease`.
    _history: Sequence[Any] | None = None

    def decision_function(self, X: Any) -> np.ndarray:
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
        scores = self._score_rows_of_model(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels (n,) of rows X (n, d); rows of a `RowBlocks` are read block by block."""
        if isinstance(X, RowBlocks):
            check_is_fitted(self)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} features; the model was trained on {self.n_features_in_}")
            return blocks_in_order(X, functools.partial(_labels_of_block, self._path, self.classes_), self.classes_[:0])
        scores = self._score_rows_of_model(X)
        labels: np.ndarray = self.classes_[self._path.codes(scores[None])[0]]
        return labels

    def save(self, path: str | os.PathLike[str], *, table: Mapping[str, Any] | None = None) -> None:
        """Write the released model as files without code, which `privsvm.load` reads.

        The folder gets `model.npz` and `model.json`. `table` is a public schema by which tables become rows.
        """
        # Imported late: training does not wait for pydantic.
        from privsvm.base.model_file import Description, write_model

        check_is_fitted(self)
        check_record(self._path, self.guarantee_)
        if not hasattr(self, "_recipe"):
            self._keep_recipe()
        described = Description(
            classes=list(self.classes_), n_features=self.n_features_in_, recipe=self._recipe, table=table,
            history=self._history,
        )  # fmt: skip
        write_model(path, self._path, described, self.guarantee_)

    @available_if(operator.attrgetter("linear_scores"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Turn scores into numbers that add up to 1, by a fixed function that reads no rows.

        They order rows as the scores do, and are not calibrated: how often a class occurs where its number is 0.9 can
        be told from labelled rows only, public ones or at a further price.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows.

        Returns
        -------
        ndarray (n, c)
            Two classes: ``1 / (1 + exp(-z))`` for ``classes_[1]``, of decision value z. More: ``exp(z_k)`` over its
            sum.
        """
        from scipy.special import expit, softmax

        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([expit(-values), expit(values)])
        probabilities: np.ndarray = softmax(values, axis=1)
        return probabilities

    def _keep_recipe(self) -> None:
        """Remember the parameters of the training: they may be set anew afterwards."""
        parameters = {name: value for name, value in vars(self).items() if name in getattr(self, "declared", {})}
        self._recipe = {"method": type(self).__name__, "parameters": plain_parameters(parameters)}

    def __getstate__(self) -> dict[str, Any]:
        """Leave the seed of a fitted model out of the stored state: with it, anyone can subtract the noise."""
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        return state | {"random_state": None} if "_path" in state and "random_state" in state else state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore a fitted model; raise ValueError where its record differs from its released path."""
        path = state.get("_path")
        if path is not None:
            check_record(path, state.get("guarantee_"))
        super().__setstate__(state)  # type: ignore[misc]

    @one_blas_thread()
    def _score_rows_of_model(self, X: Any) -> np.ndarray:
        X = self._rows_to_predict(X)
        scores: np.ndarray = self._path.scores(X, 0)[0]
        return scores

    def _check_fitted(self) -> None:
        # scikit-learn's own look takes longer than a few predictions.
        if "_path" not in vars(self):
            check_is_fitted(self)

    def _rows_to_predict(self, X: Any) -> Any:
        self._check_fitted()
        return rows_to_predict(self, X)


class SingleModelClassifier(ReleasedClassifier, ClassifierMixin, DeclaredEstimator, abc.ABC):  # type: ignore[misc]
    """A classifier without epsilon, which trains one model; a base.

    Attributes
    ----------
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        Status ``none``.
    """

    classes: Sequence[Any] | None = LABELS

    def fit(self, X: Any, y: Any) -> Self:
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
        with one_blas_thread():
            self._train(X, y, getattr(self, "random_state", None))
        self._keep_recipe()
        return self

    def release_path(
        self,
        X: Any,
        y: Any,
        epsilons: Sequence[float],
        repeats: int,
        rng: RandomState = None,
        audit: bool = False,
    ) -> Any:
        """Release one model; a method without epsilon ignores the grid and the repeats."""
        started = time.perf_counter()
        with one_blas_thread():
            self._train(X, y, rng)
        return dataclasses.replace(self._path, fit_seconds=time.perf_counter() - started)

    @abc.abstractmethod
    def _train(self, X: Any, y: Any, rng: RandomState) -> None:
        """Train and keep the model; random draws come from `rng`."""

    def _keep_model(self, kind: type[ReleasedPath], guarantee: Guarantee, **arrays: Any) -> None:
        """Keep the model, of these arrays, and its record."""
        self._path = kind(epsilons=(math.inf,), guarantees=(guarantee,), n_classes=len(self.classes_), **arrays)
        self.guarantee_ = guarantee


class DescribedRelease(abc.ABC):
    """Words of the privacy records of a family, which each of its methods has; a mixin."""

    @property
    @abc.abstractmethod
    def _description(self) -> str:
        """Describe the released numbers."""

    @property
    @abc.abstractmethod
    def _reference(self) -> str:
        """Name the paper."""


class PrivateClassifier(CloneAware, ReleasedClassifier, ClassifierMixin, DeclaredEstimator, abc.ABC):  # type: ignore[misc]
    """A classifier that trains and releases one private model; a base.

    A class that `pays_for_counts` has no use for a number of rows that is private: it releases a noisy one. Under
    ``add_remove`` a method trains on an empty table too: it is a neighbour of tables of one row, which must not be told
    from it by a refusal. Only a method as `published` refuses it: its name is given where its epsilon does not hold.

    Attributes
    ----------
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        The privacy record.
    """

    linear_scores = True
    pays_for_counts: ClassVar[bool] = False
    published: ClassVar[str | None] = None
    # Whether it trains on `RowBlocks`, whose rows are not all in memory.
    reads_blocks: ClassVar[bool] = False
    # Memory for many classes: see `check_class_memory`.
    class_memory: ClassVar[str] = "rows"
    # `noise_generators` for a method that proves nothing.
    noise_source: ClassVar[Callable[..., Callable[[float, int], Any]]] = staticmethod(noise_streams)

    epsilon: float = EPSILON
    classes: Sequence[Any] | None = CLASSES
    neighbours: Neighbours = NEIGHBOURS
    allow_unsound: bool = ALLOW_UNSOUND
    allow_composition: bool = ALLOW_COMPOSITION
    random_state: int | np.random.Generator | None = RANDOM_STATE

    def fit(self, X: Any, y: Any) -> Self:
        """Train, and release one noisy model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks (n, d)
            Rows; finite. Scale them by public bounds: statistics of private rows are not covered. The last step of a
            scikit-learn Pipeline cannot know what came before: see `privsvm.make_private_pipeline`.
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
        with rollback_on_error(self):
            self.check_declared()
            if self._cloned:
                self._check_clone(self.allow_composition, self.allow_unsound)
            unknown = reason_if_subclass(self)
            if unknown is not None:
                # It may have a `release_path` of its own, which pays for nothing.
                check_consent(self.allow_unsound, f"nothing is proved: {unknown}")
                refuse_in_budget(unknown)
            path = self.release_path(X, y, [self.epsilon], 1, self.random_state)
            guarantees = (path.guarantees[0].without_proof(unknown),)
            # Inside, so that no interruption leaves a model under the record of the one before.
            self._keep(dataclasses.replace(path, **NO_SECONDS, guarantees=guarantees))
            self._keep_recipe()
        return self

    def break_guarantee(self, reason: str) -> None:
        """Take the proof from the fitted model, under every name that its record has."""
        broken = self._path.guarantees[0].with_broken_assumption(reason)
        self._keep(dataclasses.replace(self._path, guarantees=(broken,)))

    def release_path(
        self,
        X: Any,
        y: Any,
        epsilons: Sequence[float],
        repeats: int,
        rng: RandomState = None,
        audit: bool = False,
    ) -> Any:
        """Release models for a grid of epsilons, from one solution if noise is added after it. For benchmarks.

        Parameters
        ----------
        X, y
            As in `fit`.
        epsilons : sequence of float (E)
            The grid. Every model is accounted for on its own; publishing several would add up.
        repeats : int
            Models R per epsilon.
        rng : callable, numpy.random.Generator, int or None
            See `noise_streams`.
        audit : bool, default=False
            Whether guarantees get a witness: a lower bound on epsilon, shown on a pair of neighbouring datasets. It
            takes a few more training runs, and is computed from the rows without noise: `rng` must not be None.

        Returns
        -------
        ReleasedPath
            The E x R models and their records.
        """
        # Asked once: it may answer anything.
        audit = bool(audit)
        if audit and rng is None:
            raise ValueError("audit=True: a witness is computed from the rows without noise; give rng a seed")
        if fit_payer() is not None and repeats != 1:
            raise ValueError(f"repeats={repeats}: inside a fit, which pays for one model of each epsilon")
        sources = self.noise_source(rng, self)
        self._check_parameters()
        delta = float(getattr(self, "delta", 0.0))
        # Pure differential privacy has no delta, and the check wants one.
        checked = float(POSITIVE.check("delta", delta or 0.5))
        for epsilon in epsilons:
            # Parts of a budget have more noise, which the sampler must be able to draw once it is paid for.
            if gaussian_noise_multiplier(float(POSITIVE.check("epsilon", epsilon)), checked) > _MOST_NOISE:
                raise ValueError(
                    f"epsilon={epsilon!r}, delta={checked!r}: noise as large as {_MOST_NOISE:.0e} rows drowns all "
                    "tables; use larger ones"
                )
        rows, codes = as_training_rows(self, X, y, self.classes)
        release = Release(
            rows=rows,
            codes=codes,
            n_classes=len(self.classes_),
            epsilons=tuple(map(float, epsilons)),
            delta=delta,
            neighbours=self.neighbours,
            repeats=repeats,
            sources=sources,
            # Any argument but None counts as a seed.
            randomness="system" if rng is None else "seeded",
            audit=audit,
            declared_classes=self.classes is not None,
            book=functools.partial(self._book, rows),
        )
        # A caller who lets NumPy raise for tiny or huge numbers would learn that a row has one.
        with one_blas_thread(), np.errstate(all="ignore"):
            return self._release(release)

    def _book(self, rows: Any, guarantee: Guarantee) -> Guarantee:
        """Take the proof of foreign classes; inside a fit, see to it that a guarantee is consented to and paid for."""
        sources = [rows] if isinstance(rows, RowBlocks) else []
        guarantee = guarantee.without_proof(*map(reason_if_subclass, (*sources, self)))
        payer = fit_payer()
        if payer is not None:
            guarantee = judge_clone(guarantee, self.allow_composition) if self._cloned else guarantee
            if guarantee.status == "claimed":
                check_consent(self.allow_unsound, f"nothing is proved: {guarantee.reason}")
            payer(guarantee)
        return guarantee

    def _check_parameters(self) -> None:
        """Check parameters, and the consent that some of them need."""
        self.check_declared()
        if self.published is not None:
            check_consent(self.allow_unsound, f"the epsilon of {self.published} does not hold")
        elif self.classes is None and not self.allow_unsound:
            raise ValueError(
                "classes=None: give the public label set; taking it from private labels needs allow_unsound=True"
            )

    @abc.abstractmethod
    def _release(self, release: Release) -> Any:
        """Train and release the models of a path; see `release_path`."""

    def _keep(self, path: Any) -> None:
        """Set the fitted attributes from a path of one model."""
        self._path, self.guarantee_ = path, path.guarantees[0]
        if isinstance(path, KernelPath):
            self.support_vectors_, self.dual_coef_ = path.support_vectors, path.pair_coef[0, 0]
            self.intercept_ = path.intercept[0, 0]
        else:
            self.coef_ = path.coef[0, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks must not expect accuracy on tiny datasets.
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags
