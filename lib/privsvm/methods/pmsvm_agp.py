"""PMSVM-AGP, private multi-class SVM by Adam on noisy gradients (pmsvm-2025).

The loss and its regulariser are as in `privsvm.methods.pmsvm_gp`.
"""

from __future__ import annotations

from privsvm.families.gradients.noisy_classifiers import AdamClassifier, MarginLossClassifier


class PMSVMAGPClassifier(MarginLossClassifier, AdamClassifier):
    """Private multi-class SVM with adaptive gradient perturbation: Adam on noisy gradients (PMSVM-AGP).

    Examples
    --------
    >>> from privsvm import PMSVMAGPClassifier
    >>> model = PMSVMAGPClassifier(epsilon=4.0, epochs=2, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    _description = "all-in-one SVM with smoothed hinge, by Adam (PMSVM-AGP)"
    _reference = "pmsvm-2025, Theorem 2, equation 16, with an exact accountant"


ESTIMATOR = PMSVMAGPClassifier
