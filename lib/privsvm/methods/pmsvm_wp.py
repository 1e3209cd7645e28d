"""PMSVM-WP, private multi-class SVM by one all-in-one problem with weight perturbation (pmsvm-2025).

``W~ = W + N(0, s^2)``, with W the optimum of the Crammer-Singer problem. The objective is 1-strongly convex, and one
row's subgradient ``C (e_k - e_y) x'`` has norm at most ``sqrt(2) C R`` for rows of norm at most R, so the optimum moves
by at most ``sqrt(2) C R`` when a row is added or removed and ``2 sqrt(2) C R`` when one is replaced. (The paper's
route, ``lambda_max(G) = 2``, does not hold: it is c. The constant survives through the dual simplex, and one row with
two classes attains it.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privsvm.base.estimators import Release
from privsvm.base.parameters import GAP, parameter
from privsvm.constraints import COUNT, optional
from privsvm.families.output_perturbation.perturbation import (
    EVERY_RELEASE,
    REFUSED_DATA,
    certificate_text,
    clipping_text,
    count_rounded_rows,
    public_gap,
)
from privsvm.families.output_perturbation.weight_perturbation import WeightPerturbationClassifier
from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.privacy.events import noise_event
from privsvm.privacy.gate import Claim, Guarantee
from privsvm.privacy.statement import Witness
from privsvm.solvers.linear.crammer_singer import solve_crammer_singer


class PMSVMWPClassifier(WeightPerturbationClassifier):
    """Private multi-class SVM: Gaussian noise on exact Crammer-Singer weights of clipped rows (PMSVM-WP).

    Notes
    -----
    Training time is not covered: it depends on the rows.

    Examples
    --------
    >>> from privsvm import PMSVMWPClassifier
    >>> model = PMSVMWPClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    gap: float | None = GAP
    max_epochs: int | None = parameter(
        None,
        optional(COUNT),
        "Limit on the passes over the rows; None means as many as the gap needs. With a limit, the released model "
        "depends on whether it was reached, so nothing is proved: that needs ``allow_unsound=True``.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_epochs is not None and not self.allow_unsound:
            raise ValueError(
                f"max_epochs={self.max_epochs!r}: nothing is proved with a limit; use None, or consent with "
                "allow_unsound=True"
            )

    def _certificate(self) -> tuple[float, int]:
        C, data_norm = float(self.C), float(self.data_norm)
        gap = public_gap(self.gap, C, data_norm)
        return gap, count_rounded_rows(gap, len(self.classes_), C, data_norm)

    def _bound_rows(self, X) -> Any:
        return grid_rows(X, float(self.data_norm))

    def _solve(self, X, codes: np.ndarray, n_classes: int, gap: float) -> np.ndarray:
        return solve_crammer_singer(X, codes, n_classes, float(self.C), gap, self.max_epochs).coef

    def _guarantee(
        self, fields: dict[str, Any], certificate: tuple[float, int], witness: Witness | None, release: Release
    ) -> Guarantee:
        gap, most_rows = certificate
        claim = Claim(
            event=noise_event("gaussian", fields["noise_scale"], fields["sensitivity"], self.neighbours),
            assumptions=(
                clipping_text(float(self.data_norm)),
                f"the solution is within sqrt({gap:.3g}) of the optimum: certified by the duality gap and a bound on "
                f"round-off, {certificate_text(most_rows)}",
                REFUSED_DATA,
                "C, the class set, the number of features and the scaling bounds are public",
                *EVERY_RELEASE,
            ),
            reference="pmsvm-2025, Theorem 1, with the sensitivity proved through the dual simplex",
            **fields,
        )
        return release.grant(claim, witness, solution="certified" if self.max_epochs is None else "limited")


ESTIMATOR = PMSVMWPClassifier
