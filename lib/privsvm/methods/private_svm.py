"""PrivateSVM (Rubinstein, Bartlett, Huang, Taft 2012): noise on the primal weights of a bias-free hinge SVM.

With ``C`` the weight of one row's loss (the paper's ``C / n``) and features of norm at most kappa, the optimum moves by
at most ``2 C kappa`` in the L2 norm when a row is replaced, and so by ``2 C kappa sqrt(F)`` in the L1 norm of its F
coordinates. The paper's privacy theorems have twice that, ``4 C kappa sqrt(F)``; for D random Fourier frequencies
(F = 2 D, kappa = 1) it is the ``2^2.5 C sqrt(D)`` that SACRO-ML divides by epsilon. One replaced row attains the
smaller constant, in both norms.

The theorems have no bias: releasing one without noise, as SACRO-ML does, is outside them.
"""

from __future__ import annotations

from privsvm.families.output_perturbation.hinge_release import GaussianNoise, LinearRows


class PrivateSVMClassifier(LinearRows, GaussianNoise):
    """Private linear SVM by Gaussian noise on its weights; one-vs-rest for more than two classes.

    Examples
    --------
    >>> from privsvm import PrivateSVMClassifier
    >>> model = PrivateSVMClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> guarantee = model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_
    >>> guarantee.status, guarantee.delta
    ('proved', 1e-05)
    """

    _description = "the weights of a bias-free hinge SVM (PrivateSVM)"
    _reference = "Rubinstein, Bartlett, Huang, Taft (2012), Algorithm 1, with Gaussian noise"


ESTIMATOR = PrivateSVMClassifier
