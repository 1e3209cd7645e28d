"""GRPUA, one-vs-rest SVMs by private gradient descent: a baseline of pmsvm-2025 (after Ding et al. 2022).

One binary SVM with smoothed hinge for each class. The PMSVM paper gives each ``epsilon / c`` (``naive``). Training all
of them together, with one clipped and noised gradient of all weight vectors, spends the budget once (``joint``).
"""

from __future__ import annotations

from typing import Any

from privsvm.base.parameters import parameter
from privsvm.constraints import POSITIVE, one_of
from privsvm.families.gradients.noisy_classifiers import DescentClassifier
from privsvm.privacy.mechanisms import COMPOSITIONS


class GRPUAClassifier(DescentClassifier):
    """Private one-vs-rest SVM by noisy clipped gradient steps.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weight vectors; k is 1 for two classes.
    intercept_ : ndarray (k,)
        Offsets.
    noise_multiplier_ : float
        Standard deviation of the noise over `max_grad_norm`; of one binary problem for ``naive``.

    Examples
    --------
    >>> from privsvm import GRPUAClassifier
    >>> model = GRPUAClassifier(epsilon=4.0, epochs=2, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    _description = "one-vs-rest SVMs with smoothed hinge (GRPUA)"
    _reference = "pmsvm-2025, section 5.1 (GRPUA, after Ding et al. 2022), with an exact accountant"

    class_memory = "rows"

    composition: str = parameter(
        "naive",
        one_of(*COMPOSITIONS),
        "``naive``: every binary problem is trained alone, with ``epsilon / c`` and ``delta / c``, as the PMSVM paper "
        "does. ``joint``: all together, by one noisy gradient. Two classes make one problem.",
    )
    smoothing: float = parameter(0.1, POSITIVE, "s in the smoothed hinge ``(g + sqrt(g^2 + s^2)) / 2``.")

    def _loss(self) -> dict[str, Any]:
        return {"loss": "one_vs_rest_hinge", "smoothing": float(self.smoothing)}


ESTIMATOR = GRPUAClassifier
