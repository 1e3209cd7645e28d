"""Objective perturbation: the minimum of an SVM's objective with a random linear term, one-vs-rest.

The loss is the hinge loss smoothed over a margin of h. `privsvm.privacy.objective_perturbation` has the proof; the
problems are solved to a certified gradient, and the points found are released with a little noise, as Approximate
Minima Perturbation does (Iyengar et al. 2019).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from privsvm.auditing.witnesses import perturbed_minimum_witness
from privsvm.base.estimators import PrivateClassifier, Release
from privsvm.base.parameters import C_PUBLIC, DATA_NORM, DELTA, parameter
from privsvm.base.released import LinearPath
from privsvm.constraints import POSITIVE, optional
from privsvm.families.output_perturbation.perturbation import (
    EVERY_RELEASE,
    REFUSED_DATA,
    certificate_text,
    check_rows,
    check_scale,
    clip_rows,
    clipping_text,
    count_covered_rows,
    one_vs_rest_signs,
)
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.gate import Claim, Guarantee
from privsvm.privacy.objective_perturbation import ObjectivePerturbation
from privsvm.privacy.statement import Witness
from privsvm.solvers.linear.smoothed_hinge import solve_smoothed_hinge

# The default smoothing: no narrower than this, and so wide that the curvature costs this share of epsilon.
_LEAST_SMOOTHING = 0.1
_CURVATURE_SHARE = 0.2

# The default tolerance of the gradient's norm, over the norm of one row's gradient. The noise that covers it is small.
_TOLERANCE_SHARE = 1e-5

# Smaller tolerances than this share of one row's gradient, or of the longest linear term, buy nothing.
_SMALLEST_SHARE, _ROUND_OFF_SHARE = 1e-10, 2.0**-40

# Weights are held for linear terms of d numbers up to 2^10 s (sqrt(d) + 9) long. What longer ones cost is taken off
# delta: `privsvm.privacy.objective_perturbation_delta.delta_of_minima`.
_NORM_MARGIN = 9.0


def smoothing_for(epsilon: float, C: float, data_norm: float, n_vectors: int) -> float:
    """Public default of the smoothing h.

    0.1, or more where ``k log(1 + C R^2 / h)`` would be above a fifth of epsilon, the budget of all k binary problems
    on rows of norm at most R.
    """
    return max(_LEAST_SMOOTHING, C * data_norm**2 / math.expm1(_CURVATURE_SHARE * epsilon / n_vectors))


class ObjectivePerturbationClassifier(PrivateClassifier):
    """Private linear SVM by a random linear term in its objective; one-vs-rest for more than two classes.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Noisy weight vectors; k is 1 for two classes.

    Notes
    -----
    Training time is not covered by the status ``proved``: it depends on the rows.

    Examples
    --------
    >>> from privsvm import ObjectivePerturbationClassifier
    >>> model = ObjectivePerturbationClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    delta: float = DELTA
    C: float = C_PUBLIC
    data_norm: float = DATA_NORM
    smoothing: float | None = parameter(
        None,
        optional(POSITIVE),
        "Width h of the margin over which the hinge loss is smoothed: quadratic from ``1 - h`` to 1. Public. "
        "None: see `smoothing_for`.",
    )
    tol: float | None = parameter(
        None,
        optional(POSITIVE),
        "Public bound on the distance to the minimum that a solve certifies; None means ``1e-5 C R``, or more where "
        "the noise is very large. At most ``C R / 10``.",
    )

    def _release(self, release: Release) -> LinearPath:
        rows, codes = clip_rows(release.rows, float(self.data_norm)), release.codes
        n_vectors = 1 if len(self.classes_) == 2 else len(self.classes_)
        guarantees, solves = [], []
        for epsilon in release.epsilons:
            smoothing = self._smoothing(epsilon, n_vectors)
            mechanism, tol = self._mechanism(epsilon, release.delta, smoothing, rows.shape[1], n_vectors)
            # Rounding must move weights by less than half of `tol`. Weights are no longer than twice their linear term,
            # and what rows alone would make of them; the former leaves half of the room.
            most_rows = count_covered_rows(2.0**50 * tol, float(self.C), float(self.data_norm))
            check_rows(rows.shape[0], most_rows)
            witness = None
            if release.audit:
                witness = perturbed_minimum_witness(mechanism, float(self.C), float(self.data_norm), smoothing)
            guarantees.append(self._guarantee(mechanism, smoothing, most_rows, release, witness))
            solves.append(functools.partial(self._train, rows, codes, mechanism, smoothing, tol))
        release.pay(guarantees)
        coef = release.stack(solves, lambda solve, source: solve(source))
        return release.path(LinearPath, coef=coef, intercept=np.zeros(coef.shape[:3]))

    def _smoothing(self, epsilon: float, n_vectors: int) -> float:
        if self.smoothing is not None:
            return float(self.smoothing)
        return smoothing_for(epsilon, float(self.C), float(self.data_norm), n_vectors)

    def _mechanism(
        self, epsilon: float, delta: float, smoothing: float, n_features: int, n_vectors: int
    ) -> tuple[ObjectivePerturbation, float]:
        """Choose the mechanism, and the gradient's norm at which a solve may stop."""
        C, data_norm = float(self.C), float(self.data_norm)
        row_bound = C * data_norm

        def mechanism(distance: float) -> ObjectivePerturbation:
            return ObjectivePerturbation(
                epsilon=epsilon,
                delta=delta,
                neighbours=self.neighbours,
                row_bound=row_bound,
                curvature=row_bound * data_norm / smoothing,
                distance=distance,
                n_vectors=n_vectors,
                size=n_features,
            )

        # Rounding weights that are as long as their linear term must cost nothing. Its scale depends on the distance by
        # less than a cell of its grid.
        longest = mechanism(row_bound).noise_scale * (math.sqrt(n_features) + _NORM_MARGIN)
        smallest = max(_SMALLEST_SHARE * row_bound, _ROUND_OFF_SHARE * longest)
        tol = max(_TOLERANCE_SHARE * row_bound, smallest) if self.tol is None else float(self.tol)
        if self.tol is not None and tol < smallest:
            raise ValueError(f"tol={self.tol!r}: use at least {smallest:.1e} here, or None")
        if tol > 0.1 * row_bound:
            if self.tol is not None:
                raise ValueError(f"tol={self.tol!r}: must be at most C * data_norm / 10, here {0.1 * row_bound:.1e}")
            raise ValueError(
                f"epsilon={epsilon!r}: float64 cannot hold weights as long as its noise; use a larger epsilon"
            )
        return mechanism(tol), tol

    def _train(
        self,
        rows,
        codes: np.ndarray,
        mechanism: ObjectivePerturbation,
        smoothing: float,
        tol: float,
        stream: NoiseSource,
    ) -> np.ndarray:
        """One released model (k, d)."""
        terms = mechanism.linear_terms(stream)
        signs, C = one_vs_rest_signs(codes, len(self.classes_)), float(self.C)
        problems = zip(signs, terms, strict=True)
        minima = np.stack([solve_smoothed_hinge(rows, y, C, smoothing, tol, term).coef for y, term in problems])
        return mechanism.release(minima, stream)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_scale(self.C, self.data_norm)

    def _guarantee(
        self,
        mechanism: ObjectivePerturbation,
        smoothing: float,
        most_rows: int,
        release: Release,
        witness: Witness | None,
    ) -> Guarantee:
        claim = Claim(
            event=mechanism.event,
            mechanism="random linear term in the objective of a bias-free smoothed hinge SVM (objective perturbation)",
            neighbours=mechanism.neighbours,
            epsilon_requested=mechanism.epsilon,
            delta=mechanism.delta,
            sensitivity=mechanism.sensitivity,
            noise_scale=mechanism.noise_scale,
            assumptions=(
                clipping_text(float(self.data_norm)),
                f"every solution is within {mechanism.total_distance:.3g} of its optimum: certified by the gradient "
                f"and a bound on round-off, {certificate_text(most_rows)}; rounding the random linear term is counted",
                f"noise of standard deviation {mechanism.output_noise_scale:.3g} covers that distance",
                REFUSED_DATA,
                f"C, the smoothing ({smoothing:.4g}), the class set, the number of features and the scaling bounds are "
                "public",
                *EVERY_RELEASE,
            ),
            reference="Kifer, Smith, Thakurta (2012); Redberg, Koskela, Wang (2023), for losses that never rise",
        )
        return release.grant(claim, witness, solution="certified")


ESTIMATOR = ObjectivePerturbationClassifier
