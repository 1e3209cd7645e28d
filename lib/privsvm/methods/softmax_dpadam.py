"""Softmax regression by Adam on noisy gradients: `privsvm.methods.softmax_dpsgd` with another optimizer."""

from __future__ import annotations

from privsvm.base.noisy_classifiers import AdamClassifier, SoftmaxClassifier

__all__ = ["ESTIMATOR", "SoftmaxDPAdamClassifier"]


class SoftmaxDPAdamClassifier(SoftmaxClassifier, AdamClassifier):
    """Private softmax regression by Adam on noisy clipped gradients.

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
    >>> from privsvm import SoftmaxDPAdamClassifier
    >>> model = SoftmaxDPAdamClassifier(epsilon=4.0, epochs=2, classes=[0, 1], random_state=0)
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """


ESTIMATOR = SoftmaxDPAdamClassifier
