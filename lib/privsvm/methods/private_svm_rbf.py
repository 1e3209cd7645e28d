"""PrivateSVM on random Fourier features of the Gaussian kernel, with Gaussian noise (Rubinstein et al. 2012).

All features have norm 1. `privsvm.methods.private_svm` tells how far a row moves the weights.
"""

from __future__ import annotations

from privsvm.families.output_perturbation.fourier_release import FourierRows
from privsvm.families.output_perturbation.hinge_release import GaussianNoise


class PrivateSVMRBFClassifier(FourierRows, GaussianNoise):
    """Private SVM with random Fourier features by Gaussian noise on its weights; one-vs-rest.

    Examples
    --------
    >>> from privsvm import PrivateSVMRBFClassifier
    >>> model = PrivateSVMRBFClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> guarantee = model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_
    >>> guarantee.status, guarantee.delta
    ('proved', 1e-05)
    """

    _description = "the weights of a bias-free hinge SVM (PrivateSVM)"
    _reference = "Rubinstein, Bartlett, Huang, Taft (2012), Algorithm 2, with Gaussian noise"


ESTIMATOR = PrivateSVMRBFClassifier
