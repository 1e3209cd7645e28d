"""OPERA, output perturbation of one-vs-rest SVMs: a baseline of pmsvm-2025 (after Ding et al. 2022), made sound.

Bias-free hinge SVMs on clipped rows, solved to a certified duality gap, with analytic Gaussian noise. A replaced row
moves one of them by at most ``2 C R``, an added one by ``C R``. The PMSVM paper gives each of c classes ``epsilon / c``
(``naive``); one release of all of them (``joint``) costs ``sqrt(c)`` in place of c, and
`privsvm.methods.ovr_joint_gaussian` less than that.
"""

from __future__ import annotations

from privsvm.base.parameters import parameter
from privsvm.constraints import one_of
from privsvm.families.output_perturbation.hinge_release import GaussianNoise, LinearRows
from privsvm.privacy.mechanisms import COMPOSITIONS


class OPERAClassifier(LinearRows, GaussianNoise):
    """Private one-vs-rest linear SVM by analytic Gaussian noise on its weights.

    Examples
    --------
    >>> from privsvm import OPERAClassifier
    >>> model = OPERAClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    _description = "the weights of bias-free one-vs-rest hinge SVMs (OPERA)"
    _reference = "pmsvm-2025, baseline OPERA (after Ding et al. 2022), with the hinge loss and clipped rows"

    composition: str = parameter(
        "naive",
        one_of(*COMPOSITIONS),
        "How more than two classes share the budget: ``epsilon / c`` and ``delta / c`` for each, as the PMSVM paper "
        "has it for epsilon, or one release of all weight vectors.",
    )


ESTIMATOR = OPERAClassifier
