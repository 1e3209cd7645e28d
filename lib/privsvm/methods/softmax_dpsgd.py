"""Softmax regression by private gradient descent: the baseline that the PMSVM paper calls Linear.

The training is PMSVM's with gradient perturbation (Abadi et al. 2016, Algorithm 1), with the cross-entropy loss in
place of the margin loss, so that the two differ in the loss alone.
"""

from __future__ import annotations

from privsvm.families.gradients.noisy_classifiers import DescentClassifier, SoftmaxClassifier


class SoftmaxDPSGDClassifier(SoftmaxClassifier, DescentClassifier):
    """Private softmax regression by noisy clipped gradient steps.

    Examples
    --------
    >>> from privsvm import SoftmaxDPSGDClassifier
    >>> model = SoftmaxDPSGDClassifier(epsilon=4.0, epochs=2, classes=[0, 1])
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """


ESTIMATOR = SoftmaxDPSGDClassifier
