"""Softmax regression by Adam on noisy gradients: `privsvm.methods.softmax_dpsgd` with another optimizer."""

from __future__ import annotations

from privsvm.families.gradients.noisy_classifiers import AdamClassifier, SoftmaxClassifier


class SoftmaxDPAdamClassifier(SoftmaxClassifier, AdamClassifier):
    """Private softmax regression by Adam on noisy clipped gradients.

    Examples
    --------
    >>> from privsvm import SoftmaxDPAdamClassifier
    >>> model = SoftmaxDPAdamClassifier(epsilon=4.0, epochs=2, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """


ESTIMATOR = SoftmaxDPAdamClassifier
