"""DPWSS, SVM trained by differentially private working set selection (dpwss-2021): the pairs of SMO are drawn.

In every step of SMO the first variable is the most violating one, and the second is drawn by the exponential mechanism
from those whose violation is at least a share sigma of the largest, with that share as its score (Algorithm 1); every
pair is drawn once (Algorithm 2). Nothing else is random. The stated epsilon does not hold; `DPWSSClassifier` says why.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.auditing.witnesses import verbatim_row_witness
from privsvm.base.estimators import PrivateClassifier, Release, noise_generators
from privsvm.base.parameters import LABELS, parameter
from privsvm.base.released import KernelPath, LinearPath, OneVsOneLinearPath
from privsvm.constraints import SHARE, one_of
from privsvm.families.exact.one_vs_one import KernelSVMParameters, class_pairs
from privsvm.privacy.events import Neighbours
from privsvm.privacy.gate import Guarantee
from privsvm.privacy.statement import Witness
from privsvm.solvers.kernel.kernels import KERNELS, resolve_gamma


@dataclasses.dataclass(frozen=True)
class _Training:
    """One training: weights (p, d), or coefficients (m, p) of the m rows in `support`, and its effort."""

    support: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    objective: float
    n_iter: int
    n_selected: int


class DPWSSClassifier(KernelSVMParameters, PrivateClassifier):
    """Support vector machine whose training draws its pairs of variables at random. Its epsilon does not hold.

    Every release is a training of its own, for each pair of classes.

    Attributes
    ----------
    coef_ : ndarray (p, d)
        Kernel ``linear``: weight vectors of the ``p = c (c - 1) / 2`` class pairs.
    support_vectors_ : ndarray (m, d)
        Other kernels: training rows, in the clear.
    dual_coef_ : ndarray (m, p)
        Other kernels: ``y_i a_i``.
    intercept_ : ndarray (p,)
        Offsets.
    objective_ : float
        Dual objective ``1/2 a'Qa - e'a``, summed over the class pairs.
    n_iter_ : int
        Steps, summed over the class pairs.
    n_selected_ : int
        Distinct pairs of rows among them.
    n_support_ : int
        Rows with a nonzero dual variable in some class pair.
    guarantee_ : Guarantee
        Status ``claimed``.

    Examples
    --------
    >>> from privsvm import DPWSSClassifier
    >>> model = DPWSSClassifier(epsilon=1.0, allow_unsound=True, random_state=0)
    >>> model.fit([[-1.0], [1.0]] * 10, ["no", "yes"] * 10).guarantee_.status
    'claimed'
    """

    linear_scores = False
    published = "DPWSS"
    noise_source = staticmethod(noise_generators)

    sigma: float = parameter(
        0.7,
        SHARE,
        "Smallest share of the largest violation that a drawn pair may have, between 0 and 1; `1 - sigma` is the "
        "sensitivity that the paper states for the score. With a larger sigma the pairs run out earlier.",
    )
    kernel: str = parameter("linear", one_of(*KERNELS), "Kernel function.")
    neighbours: Neighbours = parameter(
        "add_remove",
        one_of("replace_one", "add_remove"),
        "The relation that the guarantee and its witness name.",
        common=True,
    )
    classes: Sequence | None = LABELS

    def _keep(self, path: LinearPath | KernelPath) -> None:
        super()._keep(path)
        self.intercept_ = path.intercept[0, 0]
        self.objective_, self.n_iter_, self.n_support_ = path.objective, path.n_iter, path.n_support

    def _release(self, release: Release) -> LinearPath | KernelPath:
        X, codes, n_classes, repeats = release.rows, release.codes, release.n_classes, release.repeats
        if np.unique(codes).size < 2:
            raise ValueError(f"y has one class only ({self.classes_[codes[0]]!r}); an SVM needs at least two classes")
        gamma = resolve_gamma(self.gamma, X)
        jobs = [(epsilon, repeat) for epsilon in release.epsilons for repeat in range(repeats)]
        release.pay(self._guarantee(release, epsilon) for epsilon in release.epsilons)
        rngs = [release.source(epsilon, repeat) for epsilon, repeat in jobs]
        every = self._train(X, codes, n_classes, gamma, [epsilon for epsilon, _ in jobs], rngs)
        trainings = [every[start : start + repeats] for start in range(0, len(every), repeats)]
        common: dict[str, Any] = {
            "objective": float(np.mean([training.objective for training in every])),
            "n_support": round(float(np.mean([training.support.size for training in every]))),
            "n_iter": round(float(np.mean([training.n_iter for training in every]))),
            "intercept": np.array([[training.intercept for training in row] for row in trainings]),
        }
        self.n_selected_ = every[-1].n_selected
        if self.kernel == "linear":
            coef = np.array([[training.coef for training in row] for row in trainings])
            kind = LinearPath if n_classes == 2 else OneVsOneLinearPath
            return release.path(kind, coef=coef, **common)
        support = np.unique(np.concatenate([training.support for training in every]))
        vectors = X[support].toarray() if scipy.sparse.issparse(X) else X[support]
        pair_coef = np.zeros((len(trainings), repeats, support.size, every[0].intercept.size))
        for epsilon_index, row in enumerate(trainings):
            for repeat, training in enumerate(row):
                pair_coef[epsilon_index, repeat, np.searchsorted(support, training.support)] = training.coef
        path = release.path(
            KernelPath,
            support_vectors=np.ascontiguousarray(vectors),
            pair_coef=pair_coef,
            kernel_parameters=np.array([KERNELS.index(self.kernel), gamma, self.degree, self.coef0]),
            **common,
        )
        if not release.audit:
            return path
        # Nothing is proved of this method: a witness may come from its releases.
        guarantees = (
            dataclasses.replace(guarantee, witness=self._row_witness(X, row[0].support))
            for guarantee, row in zip(path.guarantees, trainings, strict=True)
        )
        return dataclasses.replace(path, guarantees=tuple(guarantees))

    def _train(
        self,
        X,
        codes: np.ndarray,
        n_classes: int,
        gamma: float,
        epsilons: Sequence[float],
        rngs: Sequence[np.random.Generator],
    ) -> list[_Training]:
        """Train all class pairs, in LIBSVM's order, for every epsilon and its generator."""
        # Imported here: other methods need no compiled solver.
        from privsvm.solvers.kernel.smo import PairSelection, UniformStreams, solve_smo_runs

        kernel, options = self._kernel(gamma), self._solver_options()
        linear = self.kernel == "linear"
        sharpness = [epsilon / (2.0 * (1.0 - self.sigma)) for epsilon in epsilons]
        selection = PairSelection("dpwss", float(self.sigma), sharpness)
        streams = UniformStreams(rngs)
        n_runs, n_pairs = len(rngs), n_classes * (n_classes - 1) // 2
        coef = np.zeros((n_runs, n_pairs, X.shape[1]) if linear else (n_runs, codes.size, n_pairs))
        used = np.zeros((n_runs, codes.size), dtype=bool)
        intercepts = np.zeros((n_runs, n_pairs))
        objective, n_iter, n_selected = np.zeros(n_runs), np.zeros(n_runs, dtype=int), np.zeros(n_runs, dtype=int)
        for number, pair in enumerate(class_pairs(codes, n_classes)):
            if pair.offset is not None:
                intercepts[:, number] = pair.offset
                continue
            # LIBSVM sorts rows by class, the positive one first; ties go by place.
            signs = pair.orientation * pair.signs
            order = np.argsort(-signs, kind="stable")
            rows, signs = pair.rows[order], signs[order]
            pair_rows = X[rows]
            upper = np.full(rows.size, float(self.C))
            solutions = solve_smo_runs(pair_rows, signs, upper, kernel, options, selection, streams)
            for run, solution in enumerate(solutions):
                used[run, rows] |= solution.alpha > 0
                if linear:
                    coef[run, number] = pair_rows.T @ (signs * solution.alpha)
                else:
                    coef[run, rows, number] = signs * solution.alpha
                intercepts[run, number] = -solution.rho
                objective[run] += solution.objective
                n_iter[run] += solution.n_iter
                n_selected[run] += solution.n_selected or 0
        supports = [np.flatnonzero(mask) for mask in used]
        return [
            _Training(
                support,
                coef[run] if linear else coef[run, support],
                intercepts[run],
                float(objective[run]),
                int(n_iter[run]),
                int(n_selected[run]),
            )
            for run, support in enumerate(supports)
        ]

    def _row_witness(self, X, support: np.ndarray) -> Witness:
        """Witness from the rows that one model releases."""
        vectors = X[support].toarray() if scipy.sparse.issparse(X) else X[support]
        witness = verbatim_row_witness(vectors, X, self.neighbours)
        if math.isinf(witness.epsilon):
            how = "replaced by another training row" if self.neighbours == "replace_one" else "taken away"
            witness = dataclasses.replace(
                witness,
                description=(
                    f"the training rows of one split, a row that occurs once and was released {how}: a release that "
                    "holds it has a probability above 0, and none without it, which refutes every epsilon at delta 0"
                ),
            )
        return witness

    def _guarantee(self, release: Release, epsilon: float) -> Guarantee:
        reason = (
            "the first variable of every pair is chosen without noise; which pairs may be drawn, every step and the "
            "number of steps depend on the private rows; the budget is spent again in every step"
        )
        if self.kernel != "linear":
            reason += "; the support vectors are training rows in the clear"
        return release.claim(
            epsilon,
            mechanism="second variable of every pair drawn by the exponential mechanism (working set selection of SMO)",
            sensitivity=1.0 - float(self.sigma),
            reason=reason,
            reference="dpwss-2021, Algorithms 1 and 2, Theorem 1",
        )


ESTIMATOR = DPWSSClassifier
