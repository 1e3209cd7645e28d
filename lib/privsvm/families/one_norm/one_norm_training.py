"""Parts that the 1-norm SVMs share: a linear program for each class, and the paper's ways of choosing C and gamma.

C is the paper's nu, the weight of a row's slack; gamma is its mu.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.base.estimators import RandomState, SingleModelClassifier, noise_generators
from privsvm.base.parameters import RANDOM_STATE, parameter
from privsvm.base.released import ReleasedPath
from privsvm.base.rows import as_training_rows
from privsvm.constraints import COUNT, POSITIVE, SHARE, either, one_of, real, whole
from privsvm.privacy.gate import Guarantee
from privsvm.solvers.kernel.kernels import KERNELS
from privsvm.solvers.linear.one_norm_svm import OneNormProblem
from privsvm.solvers.linear.uniform_design import nested_search

TUNE = "tune"
KERNEL_NAMES = ("linear", "gaussian")
MBAR = either(
    "must be a share of the training rows between 0 and 1, or a whole number of rows",
    real("", above=0, below=1),
    whole(1),
)

# Section 4.1 of the paper.
_EXPONENTS = tuple(range(-7, 8))
_TUNING_SHARE = 0.1
_FOLDS = 5
# Which parameters are best must not depend on the last digits.
_TUNING_TOLERANCE = 1e-8
# The values that the kernel of the closest pair may take (Huang et al. 2007, section 3).
_CLOSEST_PAIR = (0.15, 0.999)


@dataclasses.dataclass(frozen=True)
class OneNormModel:
    """A trained model of k columns.

    `coef` (p, k) has a row for each class, and `intercept` (p,) its offset; one row, positive for class 1, where there
    are two. C and gamma were given or chosen; gamma is NaN where the columns do not depend on it. `objective`, summed
    over the linear programs, is optimal to within `gap`, and `n_iter` counts the simplex iterations of the final
    programs.
    """

    coef: np.ndarray
    intercept: np.ndarray
    C: float
    gamma: float
    objective: float
    gap: float
    n_iter: int


def check_tuning(kernel: str, C: float | str, gamma: float | str) -> None:
    """Raise ValueError where gamma is to be chosen and C is not."""
    if kernel == "gaussian" and gamma == TUNE and C != TUNE:
        raise ValueError(f"gamma={TUNE!r}: chosen together with C only, which is {C!r}; set both to {TUNE!r}")


def count_kernel_rows(mbar: Any, n_rows: int) -> int:
    """Rows of a reduced or random kernel.

    `mbar` is a share of the training rows, below 1, or their number; ValueError if it is neither, or there are fewer
    training rows.
    """
    is_whole = COUNT.accepts(mbar)
    if not is_whole and not SHARE.accepts(mbar):
        raise ValueError(f"mbar={mbar!r}: must be a share of the training rows between 0 and 1, or a whole number")
    if mbar > n_rows:
        raise ValueError(f"mbar={mbar!r}: there are n_samples = {n_rows} training rows; the kernel cannot have more")
    return int(mbar) if is_whole else max(1, round(mbar * n_rows))


def draw_rows(n_rows: int, n_drawn: int, rng: np.random.Generator) -> np.ndarray:
    """Draw different row numbers, ascending."""
    return np.sort(rng.choice(n_rows, n_drawn, replace=False))


def gamma_range(distances: np.ndarray) -> tuple[float, float]:
    """Range in which gamma is searched: the kernel of the closest pair of different points goes from 0.999 to 0.15.

    From squared distances (n, k). Huang, Lee, Lin and Huang (2007), section 3.
    """
    # Below this, two rows differ by the round-off of the distance alone.
    least = 1e-12 * float(distances[np.isfinite(distances)].max(initial=0.0))
    closest = float(distances[distances > least].min(initial=np.inf))
    if not math.isfinite(closest):
        closest = 1.0
    low, high = (-math.log(value) / closest for value in reversed(_CLOSEST_PAIR))
    return low, high


def train_one_norm(
    columns: np.ndarray, codes: np.ndarray, n_classes: int, kernel: str, C: Any, gamma: Any, rng: np.random.Generator
) -> OneNormModel:
    """Train on columns that are public, or the trainer's own.

    Columns (n, k) are the kernel's for "linear", and for "gaussian" squared distances, so that any gamma can be tried.
    Two classes give one program, more give one for each class against the rest. C and gamma are as in
    `OneNormClassifier`, and `rng` draws the tuning set, or the folds; see `tune_on_a_tenth` and `tune_by_design`. With
    fewer than ten rows nothing can be held back: C is 1, and gamma the middle of its range.
    """
    gaussian = kernel == "gaussian"
    search = gaussian and gamma == TUNE
    if C == TUNE and codes.size < 2 * _FOLDS:
        C, gamma = 1.0, math.sqrt(math.prod(gamma_range(columns))) if search else gamma
    elif search:
        C, gamma = tune_by_design(columns, codes, n_classes, rng)
    K = np.exp(-gamma * columns) if gaussian else columns
    if C == TUNE:
        C = tune_on_a_tenth(K, codes, n_classes, rng)
    solutions = [OneNormProblem(K, signs).solve(C) for signs in _signs(codes, n_classes)]
    return OneNormModel(
        coef=np.array([solution.coef for solution in solutions]),
        intercept=np.array([solution.intercept for solution in solutions]),
        C=float(C),
        gamma=float(gamma) if gaussian else math.nan,
        objective=sum(solution.objective for solution in solutions),
        gap=sum(solution.gap for solution in solutions),
        n_iter=sum(solution.n_iter for solution in solutions),
    )


def _signs(codes: np.ndarray, n_classes: int) -> Iterator[np.ndarray]:
    """Signs (n,) of each program: of class 1, or of each class in turn."""
    for positive in [1] if n_classes == 2 else range(n_classes):
        yield np.where(codes == positive, 1.0, -1.0)


def count_errors(
    K: Any, codes: np.ndarray, n_classes: int, Cs: Sequence[float], held_out: Sequence[np.ndarray]
) -> np.ndarray:
    """Count errors on rows held out in turn, after training on the others.

    `held_out` masks the rows that are not trained on, each time. Returns the errors for each of `Cs`, summed over
    `held_out`.
    """
    errors = np.zeros(len(Cs), dtype=np.int64)
    problems = [OneNormProblem(K, signs, _TUNING_TOLERANCE) for signs in _signs(codes, n_classes)]
    for test in held_out:
        scores = []
        for problem in problems:
            path = problem.path(Cs, ~test)
            scores.append([K[test] @ solution.coef + solution.intercept for solution in path])
        values = np.array(scores)
        predicted = (values[0] > 0).astype(np.int64) if n_classes == 2 else np.argmax(values, axis=0)
        errors += (predicted != codes[test]).sum(axis=1)
    return errors


def tune_on_a_tenth(K: Any, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> float:
    """Choose C as the paper does (section 4.1): the fewest errors on a random tenth, after training on the rest.

    Of 1e-7, 1e-6, ..., 1e7; among equals the smallest.
    """
    test = np.zeros(codes.size, dtype=bool)
    test[draw_rows(codes.size, max(1, round(_TUNING_SHARE * codes.size)), rng)] = True
    Cs = [10.0**exponent for exponent in _EXPONENTS]
    return Cs[int(np.argmin(count_errors(K, codes, n_classes, Cs, [test])))]


def tune_by_design(
    distances: np.ndarray, codes: np.ndarray, n_classes: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Choose C and gamma as the paper does (section 4.1): a nested uniform design, with five-fold cross-validation.

    From squared distances (n, k): the columns are ``exp(-gamma * distances)``. Returns both.
    """
    folds = rng.permutation(np.arange(codes.size) % _FOLDS)
    held_out = [folds == fold for fold in range(_FOLDS)]

    def evaluate(points: np.ndarray) -> np.ndarray:
        return np.array(
            [
                count_errors(np.exp(-(10.0**log_gamma) * distances), codes, n_classes, [10.0**log_C], held_out)[0]
                for log_C, log_gamma in points
            ]
        )

    low, high = gamma_range(distances)
    log_C, log_gamma = nested_search(evaluate, (_EXPONENTS[0], _EXPONENTS[-1]), (math.log10(low), math.log10(high)))
    return 10.0**log_C, 10.0**log_gamma


def expansion_arrays(vectors: Any, model: OneNormModel, coef: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays of the path of a Gaussian expansion over rows (m, d) with weights (p, m)."""
    dense = vectors.toarray() if scipy.sparse.issparse(vectors) else vectors
    return {
        "support_vectors": np.ascontiguousarray(dense),
        "pair_coef": coef.T[None, None],
        "intercept": model.intercept[None, None],
        "kernel_parameters": np.array([KERNELS.index("rbf"), model.gamma, 3, 0.0]),
    }


class OneNormClassifier(SingleModelClassifier):
    """A classifier whose model is one linear program a class; a base.

    Attributes
    ----------
    intercept_ : ndarray (p,)
        Offsets.
    C_, gamma_ : float
        Given or chosen.
    objective_, gap_ : float
        Objective, summed over the programs, and a bound on its distance to the optimum.
    n_iter_ : int
        Simplex iterations.
    """

    C: float | str = parameter(
        1.0,
        either('must be a positive finite number, or "tune"', POSITIVE, one_of(TUNE)),
        "Weight of a row's slack; the paper's nu. \"tune\" chooses it as the paper does, on rows held back.",
    )
    kernel: str = parameter(
        "linear", one_of(*KERNEL_NAMES), '"gaussian" is ``exp(-gamma ||x - z||^2)``, called rbf elsewhere.'
    )
    gamma: float | str = parameter(
        "auto",
        either('must be a positive finite number, "auto" or "tune"', POSITIVE, one_of("auto", TUNE)),
        'Kernel coefficient; the paper\'s mu. "auto" is ``1 / d``; "tune", with a C of "tune", chooses both as the '
        "paper does.",
    )
    random_state: int | np.random.Generator | None = RANDOM_STATE

    @abc.abstractmethod
    def _model(
        self, X: Any, codes: np.ndarray, rng: np.random.Generator
    ) -> tuple[OneNormModel, type[ReleasedPath], dict[str, Any]]:
        """Train; return the model, and kind and arrays of its path."""

    @abc.abstractmethod
    def _guarantee(self, rng: RandomState) -> Guarantee:
        """Return the record of a model that was just trained with streams from `rng`."""

    def _start_gamma(self) -> float | str:
        """Return gamma as a number, or "tune"."""
        return 1.0 / self.n_features_in_ if self.gamma == "auto" else self.gamma

    def _train(self, X: Any, y: Any, rng: RandomState) -> None:
        self.check_declared()
        check_tuning(self.kernel, self.C, self.gamma)
        X, codes = as_training_rows(self, X, y, self.classes)
        model, path, arrays = self._model(X, codes, noise_generators(rng, self)(0.0, 0))
        self.C_, self.gamma_ = model.C, model.gamma
        self.objective_, self.gap_, self.n_iter_ = model.objective, model.gap, model.n_iter
        record = self._guarantee(rng)
        self._keep_model(path, record, objective=model.objective, n_iter=model.n_iter, **arrays)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags
