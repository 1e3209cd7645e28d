"""PMSVM-AGP, private multi-class SVM by Adam on noisy gradients (pmsvm-2025).

The loss and its regulariser are those of `privsvm.methods.pmsvm_gp`.
"""

from __future__ import annotations

from privsvm.base.noisy_classifiers import AdamClassifier, MarginLossClassifier

__all__ = ["ESTIMATOR", "PMSVMAGPClassifier"]


class PMSVMAGPClassifier(MarginLossClassifier, AdamClassifier):
    """Private multi-class SVM with adaptive gradient perturbation: Adam on noisy gradients (PMSVM-AGP).

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Weight vectors, of scaled rows for `scaling`.
    intercept_ : ndarray (c,)
        Offsets.
    centre_, spread_, bound_ : ndarray (d,), ndarray (d,), float
        For ``whiten``: scores are those of ``(x - centre_) / spread_``, cut at `bound_`. (For ``centre``: of rows
        divided by their norm.)
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_, privacy_ : Guarantee
        What is proved; two names of one record.
    noise_multiplier_ : float
        Standard deviation of the noise over `max_grad_norm`.
    sample_rate_ : float
        Probability with which a step draws a row.
    n_steps_ : int
        Number of steps.

    Notes
    -----
    Status ``proved`` assumes idealised float64 noise. Training time is not covered: it depends on the rows.

    Examples
    --------
    >>> from privsvm import PMSVMAGPClassifier
    >>> model = PMSVMAGPClassifier(epsilon=4.0, epochs=2, classes=[0, 1], random_state=0)
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    def _words(self) -> tuple[str, str]:
        return (
            "all-in-one SVM with smoothed hinge, by Adam (PMSVM-AGP)",
            "pmsvm-2025, Theorem 2, equation 16, with an exact accountant",
        )


ESTIMATOR = PMSVMAGPClassifier
