"""PrivateSVM with Laplace noise, as in its paper (Rubinstein, Bartlett, Huang, Taft 2012, Algorithm 1).

`privsvm.methods.private_svm` tells how far a replaced row moves the weights.
"""

from __future__ import annotations

from privsvm.families.output_perturbation.hinge_release import LaplaceNoise, LinearRows


class PrivateSVMLaplaceClassifier(LinearRows, LaplaceNoise):
    """Private linear SVM by Laplace noise on its weights, with pure differential privacy; one-vs-rest.

    Examples
    --------
    >>> from privsvm import PrivateSVMLaplaceClassifier
    >>> model = PrivateSVMLaplaceClassifier(epsilon=4.0, C=0.1, classes=[0, 1])
    >>> guarantee = model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_
    >>> guarantee.status, guarantee.delta
    ('proved', 0.0)
    """

    _description = "the weights of a bias-free hinge SVM (PrivateSVM)"

    @property
    def _reference(self) -> str:
        noise = ", with half the noise" if self.constant == "proved" else ""
        return f"Rubinstein, Bartlett, Huang, Taft (2012), Algorithm 1{noise}"


ESTIMATOR = PrivateSVMLaplaceClassifier
