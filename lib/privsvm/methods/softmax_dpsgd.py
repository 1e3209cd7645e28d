"""Softmax regression by private gradient descent: the baseline that the PMSVM paper calls Linear.

The training is that of PMSVM with gradient perturbation (Abadi et al. 2016, Algorithm 1), with the cross-entropy loss
in place of the margin loss, so that the two differ in the loss alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from privsvm.base.noisy_training import NoisyGradientClassifier
from privsvm.base.validation import check_bound, check_choice
from privsvm.privacy.guarantee import Neighbours
from privsvm.solvers.noisy_gradient import OPTIMIZERS, GradientSteps

__all__ = ["ESTIMATOR", "SoftmaxDPSGDClassifier"]


class SoftmaxDPSGDClassifier(NoisyGradientClassifier, ClassifierMixin, BaseEstimator):
    """Private softmax regression by noisy clipped gradient steps.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release.
    delta : float, default=1e-5
        Probability that goes with it.
    data_norm : float or None, default=None
        Rows longer than this are scaled down to it; None leaves rows as they are.
    classes : sequence or None, default=None
        The public label set. Taking it from the training labels (None) reveals which labels occur: that
        needs ``allow_unsound=True``, and the status falls to ``claimed``.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        The relation between data sets.
    n_rows : int or None, default=None
        Public number of training rows, from which sample rate and number of steps follow. None counts the rows, which
        neighbours have in common for ``replace_one``; for ``add_remove`` that needs ``allow_unsound=True``, and the
        status falls to ``claimed``.
    scaling : {"none", "centre", "whiten"}, default="none"
        Scale rows by noisy statistics of them, paid for out of the budget; see `privsvm.base.private_scaling`.
        `data_norm` is then not used.
    batch_size : int or None, default=None
        How many rows a step is to draw; None: all.
    epochs : int, default=60
        How often a row is drawn, on average.
    optimizer : {"sgd", "adam"}, default="sgd"
        What is done with the noisy gradients.
    learning_rate : float or "auto", default="auto"
        Step size; see `PMSVMClassifier`.
    schedule : {"constant", "linear", "cosine", "inverse_sqrt"}, default="constant"
        How the step size falls.
    momentum : float, default=0.0
        Share of the last step that ``sgd`` keeps, below 1.
    average : {"none", "all", "last_half"}, default="last_half"
        The iterates whose average is released.
    max_grad_norm : float, default=1.0
        A row's gradient is scaled down to this norm.
    loss_weight : float, default=1.0
        Multiplies every row's loss before its gradient is clipped.
    ridge : float, default=0.0
        Weight of the squared norm of weights and offsets, beside a row's mean loss.
    fit_intercept : bool or None, default=None
        Whether to train offsets; they are part of the clipped gradient. None: unless rows are scaled by `scaling`.
    n_jobs : int or None, default=None
        Threads, for models at the same time; where there are fewer models, for the steps of one. The result does
        not depend on it.
    allow_unsound : bool, default=False
        Consent to a model whose epsilon is not proved.
    random_state : int, numpy.random.Generator or None, default=None
        Noise source. None takes fresh entropy of the operating system: the only choice for a release, since whoever
        knows a seed can draw the same noise and take it off. The guarantee says which it was.

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Weight vectors.
    intercept_ : ndarray (c,)
        Offsets.
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        What is proved.
    noise_multiplier_, sample_rate_, n_steps_ : float, float, int
        As of `PMSVMClassifier`.

    Examples
    --------
    >>> from privsvm import SoftmaxDPSGDClassifier
    >>> model = SoftmaxDPSGDClassifier(epsilon=4.0, epochs=2, classes=[0, 1], random_state=0)
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        data_norm: float | None = None,
        classes: Sequence | None = None,
        neighbours: Neighbours = "replace_one",
        n_rows: int | None = None,
        scaling: str = "none",
        batch_size: int | None = None,
        epochs: int = 60,
        optimizer: str = "sgd",
        learning_rate: float | str = "auto",
        schedule: str = "constant",
        momentum: float = 0.0,
        average: str = "last_half",
        max_grad_norm: float = 1.0,
        loss_weight: float = 1.0,
        ridge: float = 0.0,
        fit_intercept: bool | None = None,
        n_jobs: int | None = None,
        allow_unsound: bool = False,
        random_state: int | np.random.Generator | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.classes = classes
        self.neighbours = neighbours
        self.n_rows = n_rows
        self.scaling = scaling
        self.batch_size = batch_size
        self.epochs = epochs
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.average = average
        self.max_grad_norm = max_grad_norm
        self.loss_weight = loss_weight
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.allow_unsound = allow_unsound
        self.random_state = random_state

    def _check_own(self) -> None:
        check_bound("loss_weight", self.loss_weight)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if self.optimizer == "adam" and self.momentum != 0:
            raise ValueError(f"momentum={self.momentum!r}: has no effect on Adam; remove it")

    def _gradient_steps(self) -> GradientSteps:
        return GradientSteps(
            loss="softmax", loss_weight=float(self.loss_weight), optimizer=self.optimizer, **self._common_steps()
        )

    def _words(self) -> tuple[str, str]:
        return "softmax regression (Linear)", "pmsvm-2025, section 5.1 (Linear); Abadi et al. (2016), Algorithm 1"


ESTIMATOR = SoftmaxDPSGDClassifier
