"""DPSVMDVP, SVM with perturbed dual variables (dpsvmdvp-2019): Laplace noise of individual size on each of them.

``a*_i = a_i + Lap(Delta / eps_i)`` with ``eps_i = eps E_i / sum_j E_j``, ``E_i = f(x_i) - y_i`` and
``Delta = C / sqrt(l)`` for l perturbed support vectors (equations 15 to 17, Algorithm 2). The support vectors and the
offset are released as they are. The stated epsilon does not hold; `DPSVMDVPClassifier` says why.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import scipy.sparse

from privsvm.auditing.witnesses import verbatim_row_witness
from privsvm.base.estimators import PrivateClassifier, Release, noise_generators
from privsvm.base.parameters import LABELS, parameter
from privsvm.base.released import KernelPath
from privsvm.constraints import FLAG, one_of
from privsvm.families.exact.one_vs_one import KernelSVMParameters, class_pairs
from privsvm.privacy.events import Neighbours
from privsvm.privacy.gate import Guarantee
from privsvm.privacy.statement import Witness
from privsvm.solvers.kernel.c_svc import CSVCSolution
from privsvm.solvers.kernel.kernels import KERNELS, kernel_matrix, resolve_gamma

# Weights of the errors, and the precision of the kernel values from which the errors' offset is taken.
WEIGHTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "signed": ("signed", "single"),
        "signed_double": ("signed", "double"),
        "abs": ("abs", "single"),
        "abs_double": ("abs", "double"),
        "uniform": ("uniform", "double"),
    }
)
PERTURBED = ("free", "all")

# An error below the round-off of 1 counts as this much, so that every scale is finite.
_SMALLEST_ERROR = float(np.finfo(np.float64).eps)

# Numbers in one block of kernel rows: 64 MB.
_BLOCK = 8_000_000


def laplace_scales(errors: np.ndarray, C: float, epsilon: float, weights: str) -> np.ndarray:
    """Scale of the Laplace noise on each perturbed dual variable.

    ``|Delta / eps_i|`` with ``Delta = C / sqrt(l)``, for errors ``E_i = f(x_i) - y_i`` (l,), of which 0 counts as
    2.2e-16. The share of variable i in epsilon is ``E_i / sum_j E_j`` ("signed"), ``|E_i| / sum_j |E_j|`` ("abs"), or
    ``1 / l`` ("uniform").
    """
    n_perturbed = errors.size
    if n_perturbed == 0:
        return np.zeros(0)
    sizes = np.ones(n_perturbed) if weights == "uniform" else np.maximum(np.abs(errors), _SMALLEST_ERROR)
    total = abs(float(errors.sum())) if weights == "signed" else float(sizes.sum())
    return C / np.sqrt(n_perturbed) * total / (epsilon * sizes)


@dataclasses.dataclass(frozen=True)
class _Pair:
    """Input of the perturbation of one class pair: private, and gone after the release."""

    rows: np.ndarray
    coef: np.ndarray
    signs: np.ndarray
    perturbed: np.ndarray
    unit_scales: np.ndarray
    offset: float
    n_iter: int = 0


class DPSVMDVPClassifier(KernelSVMParameters, PrivateClassifier):
    """Support vector machine with Laplace noise on its dual variables. Its epsilon does not hold.

    Trains once by an exact solver, for each pair of classes; noise is all that differs between the releases.

    Attributes
    ----------
    support_vectors_ : ndarray (m, d)
        Training rows, in the clear.
    dual_coef_ : ndarray (m, p)
        Noisy ``y_i a*_i`` for the ``p = c (c - 1) / 2`` class pairs; the exact ones are not kept.
    intercept_ : ndarray (p,)
        Offsets.
    n_iter_ : int
        Iterations of the solver, summed over the pairs.
    guarantee_ : Guarantee
        Status ``claimed``.

    Notes
    -----
    The errors E_i of free support vectors are zero up to `tol`, of either sign, and sum to zero up to the round-off of
    b, which is their mean. ``signed`` divides by that sum: the individual budgets exceed epsilon hundreds of times,
    almost no noise is added, and how much depends on the solver's tolerance and on round-off. With ``abs`` or
    ``uniform`` the noise is as large as the formula promises; on the paper's two datasets the model is then at chance
    for every epsilon up to 1 (docs/reproductions.md). ``signed_double`` leaves a sum of about 1e-13 and no noise to
    speak of.

    Corrected misprints of Algorithm 2: line 7 means ``a_i > 0``, line 13 ``>``, eta is ``k11 + k22 - 2 k12``, and the
    two clipping cases are exchanged.

    Examples
    --------
    >>> from privsvm import DPSVMDVPClassifier
    >>> model = DPSVMDVPClassifier(epsilon=0.1, allow_unsound=True, random_state=0)
    >>> model.fit([[-1.0], [1.0]] * 10, ["no", "yes"] * 10).guarantee_.status
    'claimed'
    """

    linear_scores = False
    published = "DPSVMDVP"
    noise_source = staticmethod(noise_generators)

    weights: str = parameter(
        "signed",
        one_of(*WEIGHTS),
        "How the budget is divided, see `laplace_scales`. ``signed`` is the paper's formula to the letter. The offset "
        "inside E_i is taken from kernel values in single precision, as in LIBSVM, on which the paper's program is "
        "built; for ``signed_double`` and ``abs_double`` in double precision.",
    )
    perturb: str = parameter(
        "free",
        one_of(*PERTURBED),
        "Which support vectors get noise: those below C (the paper's loop; the others keep C), or all.",
    )
    use_intercept: bool = parameter(
        True,
        FLAG,
        "Release the offset b. The paper's decision rule leaves it out.",
    )
    neighbours: Neighbours = parameter(
        "replace_one",
        one_of("replace_one", "add_remove"),
        "The relation that the guarantee and its witness name; the paper names none.",
        common=True,
    )
    classes: Sequence | None = LABELS

    def _release(self, release: Release) -> KernelPath:
        X = release.rows
        gamma = resolve_gamma(self.gamma, X)
        pairs = release.solve(self._solve_pairs, X, release.codes, gamma)
        self.n_iter_ = sum(pair.n_iter for pair in pairs)
        support = np.unique(np.concatenate([pair.rows for pair in pairs]))
        vectors = X[support]
        vectors = np.ascontiguousarray(vectors.toarray() if scipy.sparse.issparse(vectors) else vectors)
        witness = verbatim_row_witness(vectors, X, self.neighbours) if release.audit else None
        release.pay(self._guarantee(release, epsilon, pairs, witness) for epsilon in release.epsilons)
        positions = [np.searchsorted(support, pair.rows) for pair in pairs]

        def noisy_coef(epsilon: float, stream: np.random.Generator) -> np.ndarray:
            coef = np.zeros((support.size, len(pairs)))
            for column, (pair, position) in enumerate(zip(pairs, positions, strict=True)):
                noisy = pair.coef.copy()
                noisy[pair.perturbed] += stream.laplace(size=pair.unit_scales.size) * (pair.unit_scales / epsilon)
                coef[position, column] = pair.signs * noisy
            return coef

        pair_coef = release.stack(release.epsilons, noisy_coef)
        offsets = np.array([pair.offset for pair in pairs])
        return release.path(
            KernelPath,
            n_support=int(support.size),
            n_iter=self.n_iter_,
            support_vectors=vectors,
            pair_coef=pair_coef,
            intercept=np.tile(offsets, (*pair_coef.shape[:2], 1)),
            kernel_parameters=np.array([KERNELS.index(self.kernel), gamma, self.degree, self.coef0]),
        )

    def _solve_pairs(self, X, codes: np.ndarray, gamma: float) -> list[_Pair]:
        """Exact solutions of all class pairs, in LIBSVM's order."""
        nothing = np.zeros(0)
        return [
            _Pair(nothing.astype(np.int64), nothing, nothing, nothing.astype(bool), nothing, pair.offset)
            if pair.offset is not None
            else self._solve_pair(X[pair.rows], pair.rows, pair.orientation * pair.signs, gamma)
            for pair in class_pairs(codes, len(self.classes_))
        ]

    def _solve_pair(self, X, rows: np.ndarray, signs: np.ndarray, gamma: float) -> _Pair:
        solution = self._solve(X, signs, gamma)
        C = float(self.C)
        support = np.flatnonzero(solution.alpha > 0)
        alpha = solution.alpha[support]
        perturbed = (alpha < C) if self.perturb == "free" else np.ones(support.size, dtype=bool)
        errors = signs * solution.gradient - solution.rho
        weights, precision = WEIGHTS[self.weights]
        if precision == "single":
            errors = self._errors_by_single_precision(X, signs, solution, gamma)
        return _Pair(
            rows=rows[support],
            coef=alpha,
            signs=signs[support],
            perturbed=perturbed,
            unit_scales=laplace_scales(errors[support][perturbed], C, 1.0, weights),
            offset=-solution.rho if self.use_intercept else 0.0,
            n_iter=solution.n_iter,
        )

    def _errors_by_single_precision(self, X, signs: np.ndarray, solution: CSVCSolution, gamma: float) -> np.ndarray:
        """E_i of the support vectors (n,), 0 elsewhere: f by exact kernel values, its offset by rounded ones."""
        support = np.flatnonzero(solution.alpha > 0)
        coef = signs[support] * solution.alpha[support]
        exact, rounded = np.empty(support.size), np.empty(support.size)
        block = max(1, _BLOCK // max(1, support.size))
        for start in range(0, support.size, block):
            rows = slice(start, start + block)
            kernel = kernel_matrix(X[support[rows]], X[support], self._kernel(gamma))
            exact[rows] = kernel @ coef
            rounded[rows] = kernel.astype(np.float32).astype(np.float64) @ coef
        free = solution.alpha[support] < float(self.C)
        # The offset is the mean over the free support vectors, as in LIBSVM.
        rho = float((rounded - signs[support])[free].mean()) if free.any() else solution.rho
        errors = np.zeros(signs.size)
        errors[support] = exact - rho - signs[support]
        return errors

    def _solve(self, X, signs: np.ndarray, gamma: float) -> CSVCSolution:
        """Solve the dual of one pair: the only place that knows which solver does it."""
        from privsvm.solvers.kernel.smo import solve_smo

        upper = np.full(signs.size, float(self.C))
        return solve_smo(X, signs, upper, self._kernel(gamma), self._solver_options())

    def _guarantee(self, release: Release, epsilon: float, pairs: list[_Pair], witness: Witness | None) -> Guarantee:
        which = "free support vectors" if self.perturb == "free" else "all support vectors"
        sensitivities = {float(self.C) / np.sqrt(pair.unit_scales.size) for pair in pairs if pair.unit_scales.size}
        reason = (
            "the support vectors are training rows in the clear; the sensitivity C/sqrt(l) divides an L2 bound by the "
            "number l of support vectors; the individual budgets depend on the private rows"
        )
        exact = ["the offset"] if self.use_intercept else []
        exact += ["the dual variables at their bound"] if self.perturb == "free" else []
        if exact:
            reason += f"; released without noise: {' and '.join(exact)}"
        return release.claim(
            epsilon,
            mechanism=f"Laplace noise on the dual variables of {which}, of a size of its own for each ({self.weights})",
            # The class pairs differ in it; the noise differs from one variable to the next.
            sensitivity=float(sensitivities.pop()) if len(sensitivities) == 1 else None,
            reason=reason,
            reference="dpsvmdvp-2019, Algorithm 2 and Theorem 1",
            witness=witness,
        )


ESTIMATOR = DPSVMDVPClassifier
