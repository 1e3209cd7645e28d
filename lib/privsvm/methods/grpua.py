"""GRPUA, one-vs-rest SVMs by private gradient descent: a baseline of pmsvm-2025 (after Ding et al. 2022).

One binary SVM with smoothed hinge for each class. The PMSVM paper gives each ``epsilon / c`` (``naive``). Training all
of them together, with one clipped and noised gradient of all weight vectors, spends the budget once (``joint``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from privsvm.base.noisy_training import NoisyGradientClassifier
from privsvm.base.validation import check_choice, check_positive
from privsvm.privacy.guarantee import Neighbours
from privsvm.privacy.mechanisms import COMPOSITIONS
from privsvm.solvers.noisy_gradient import GradientSteps

__all__ = ["ESTIMATOR", "GRPUAClassifier"]


class GRPUAClassifier(NoisyGradientClassifier, ClassifierMixin, BaseEstimator):
    """Private one-vs-rest SVM by noisy clipped gradient steps.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release.
    delta : float, default=1e-5
        Probability that goes with it.
    composition : {"naive", "joint"}, default="naive"
        ``naive``: every binary problem is trained alone, with ``epsilon / c`` and ``delta / c``, as the PMSVM paper
        does. ``joint``: all together, by one noisy gradient. Two classes make one problem.
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
    batch_size : int or None, default=None
        How many rows a step is to draw; None: all.
    epochs : int, default=60
        How often a row is drawn, on average.
    learning_rate : float or "auto", default="auto"
        Step size; see `PMSVMClassifier`.
    schedule : {"constant", "linear", "cosine", "inverse_sqrt"}, default="constant"
        How the step size falls.
    momentum : float, default=0.0
        Share of the last step that is kept, below 1.
    average : {"none", "all", "last_half"}, default="last_half"
        The iterates whose average is released.
    max_grad_norm : float, default=1.0
        A row's gradient is scaled down to this norm.
    smoothing : float, default=0.1
        s in the smoothed hinge ``(g + sqrt(g^2 + s^2)) / 2``.
    ridge : float, default=0.0
        Weight of the squared norm of weights and offsets, beside a row's mean loss.
    fit_intercept : bool or None, default=None
        Whether to train offsets; they are part of the clipped gradient. None: yes.
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
    coef_ : ndarray (k, d)
        Weight vectors; k is 1 for two classes.
    intercept_ : ndarray (k,)
        Offsets.
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        What is proved.
    noise_multiplier_, sample_rate_, n_steps_ : float, float, int
        As of `PMSVMClassifier`; of one binary problem for ``naive``.

    Examples
    --------
    >>> from privsvm import GRPUAClassifier
    >>> model = GRPUAClassifier(epsilon=4.0, epochs=2, classes=[0, 1], random_state=0)
    >>> model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        composition: str = "naive",
        data_norm: float | None = None,
        classes: Sequence | None = None,
        neighbours: Neighbours = "replace_one",
        n_rows: int | None = None,
        batch_size: int | None = None,
        epochs: int = 60,
        learning_rate: float | str = "auto",
        schedule: str = "constant",
        momentum: float = 0.0,
        average: str = "last_half",
        max_grad_norm: float = 1.0,
        smoothing: float = 0.1,
        ridge: float = 0.0,
        fit_intercept: bool | None = None,
        n_jobs: int | None = None,
        allow_unsound: bool = False,
        random_state: int | np.random.Generator | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.composition = composition
        self.data_norm = data_norm
        self.classes = classes
        self.neighbours = neighbours
        self.n_rows = n_rows
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.average = average
        self.max_grad_norm = max_grad_norm
        self.smoothing = smoothing
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.allow_unsound = allow_unsound
        self.random_state = random_state

    def _check_own(self) -> None:
        check_positive("smoothing", self.smoothing)
        check_choice("composition", self.composition, COMPOSITIONS)

    def _gradient_steps(self) -> GradientSteps:
        return GradientSteps(loss="one_vs_rest_hinge", smoothing=float(self.smoothing), **self._common_steps())

    def _words(self) -> tuple[str, str]:
        return (
            "one-vs-rest SVMs with smoothed hinge (GRPUA)",
            "pmsvm-2025, section 5.1 (GRPUA, after Ding et al. 2022), with an exact accountant",
        )


ESTIMATOR = GRPUAClassifier
