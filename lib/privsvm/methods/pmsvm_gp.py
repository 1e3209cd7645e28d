"""PMSVM-GP, private multi-class SVM by noisy gradient descent (pmsvm-2025).

Clipped and noised gradient steps on the smoothed loss ``sum_{k != y} (g + sqrt(g^2 + s^2)) / 2`` with
``g = 1 - (z_y - z_k)`` of a row (the paper's equation 12). The margin regulariser ``lambda sum_{k < l} |w_k - w_l|^2``
reads no rows, so its gradient is added after the noise; the paper's equation 15 puts it inside every row's clipped
gradient (``inside_clip``).
"""

from __future__ import annotations

from privsvm.families.gradients.noisy_classifiers import DescentClassifier, MarginLossClassifier


class PMSVMGPClassifier(MarginLossClassifier, DescentClassifier):
    """Private multi-class SVM with gradient perturbation: noise on the gradient of every step of descent (PMSVM-GP).

    Examples
    --------
    >>> from privsvm import PMSVMGPClassifier
    >>> model = PMSVMGPClassifier(epsilon=4.0, epochs=2, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    _description = "all-in-one SVM with smoothed hinge, by descent (PMSVM-GP)"
    _reference = "pmsvm-2025, Theorem 2, equation 14, with an exact accountant"


ESTIMATOR = PMSVMGPClassifier
