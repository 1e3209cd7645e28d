"""One-vs-rest SVMs in one joint Gaussian release: the honest one-vs-rest baseline.

For more than two classes a row is given to the class with the largest score, which does not see the mean of the weight
vectors. It is taken off before the release, and with it goes a good part of the sensitivity.

Sensitivity. Add a row x of norm at most R to the problem of class k, with sign s: 1 for its own class, -1 for the
others. The hinge's slope there is between -s x and 0, so strong convexity gives ``||D_k||^2 <= <D_k, C s x>`` for the
move D_k of the optimum: D_k lies in the ball that has the segment from 0 to ``C s x`` as a diameter. In units of C R
the moves of the ``c - 1`` other classes share one ball of radius 1/2, and the move of the row's own class lies in its
mirror image. Let the others' mean be at a distance q from the centre of their ball. Their squared distances to that
mean add up to at most ``(c - 1)(1/4 - q^2)``; the mean and the own class are at most ``q + 3/2`` apart. So the squared
distances of all moves to their common mean add up to at most ``(c - 1)(1/4 - q^2) + (c - 1)/c (q + 3/2)^2``, with q up
to 1/2. The largest value is ``(c + 8) / 4`` for four classes and more, and ``8 / 3`` for three. A replaced row is one
removed and one added: twice the bound. Weights with their mean left in move by ``sqrt(c)`` in place of
``sqrt((c + 8) / 4)``: 1.5 times as far for ten classes, and twice as far for very many. One row attains the bound for
three and for four classes.

Two classes are one binary problem and one vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from privsvm.base.estimators import NoiseStreams, PrivateClassifier, noise_streams
from privsvm.base.perturbation import (
    clip_rows,
    extreme_rows,
    release_one_vs_rest,
    solution_sensitivity,
    solve_one_vs_rest,
)
from privsvm.base.released import LinearPath
from privsvm.base.validation import (
    check_bound,
    check_budgets,
    check_choice,
    check_positive,
    check_public_classes,
    check_training_data,
)
from privsvm.privacy.guarantee import NEIGHBOURS, Neighbours

__all__ = ["ESTIMATOR", "OvRJointGaussianClassifier", "centred_sensitivity", "solve_centred"]


def centred_sensitivity(C: float, data_norm: float, n_classes: int, neighbours: Neighbours, gap: float = 0.0) -> float:
    """Bound how far one-vs-rest weights move between neighbouring data sets once their mean is taken off.

    Parameters
    ----------
    C : float
        Weight of one row's loss.
    data_norm : float
        Bound R on a row's L2 norm.
    n_classes : int
        Number of classes c; for two it is the one vector of the binary problem.
    neighbours : {"replace_one", "add_remove"}
        The relation.
    gap : float, default=0.0
        Public bound on the duality gap of every binary problem.

    Returns
    -------
    float
        In the L2 norm of all weights together. ``C R sqrt((c + 8) / 4)`` to add or remove a row (``sqrt(8 / 3)`` for
        three classes, 1 for two), twice that to replace one, plus ``2 sqrt(k gap)`` for k problems.
    """
    if n_classes == 2:
        return solution_sensitivity(C * data_norm, neighbours, gap)
    factor = 8.0 / 3.0 if n_classes == 3 else (n_classes + 8) / 4.0
    # Taking the mean off brings no two sets of weights further apart: errors of the solver add up as they are.
    return solution_sensitivity(math.sqrt(factor) * C * data_norm, neighbours, n_classes * gap)


def solve_centred(X, codes: np.ndarray, n_classes: int, C: float, gap: float) -> np.ndarray:
    """Exact weights of the binary hinge problems less their mean, (c, d); for two classes the one vector, (1, d)."""
    weights = solve_one_vs_rest(X, codes, n_classes, C, gap)
    return weights if n_classes == 2 else weights - weights.mean(axis=0)


class OvRJointGaussianClassifier(PrivateClassifier, ClassifierMixin, BaseEstimator):
    """Private one-vs-rest linear SVM: Gaussian noise on all weight vectors at once, their mean taken off.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release.
    delta : float, default=1e-5
        Probability that goes with it.
    C : float, default=0.01
        Weight of one row's loss (the PMSVM paper's C/n). Public: choose it without looking at the data.
    data_norm : float, default=1.0
        Rows longer than this are scaled down to it.
    classes : sequence or None, default=None
        The public label set. Taking it from the training labels (None) reveals which labels occur: that
        needs ``allow_unsound=True``, and the status falls to ``claimed``.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        The relation between data sets.
    gap : float or None, default=None
        Public target of the duality gap of every binary problem; None means ``2e-4 C^2 R^2``, or more where float64
        cannot certify that.
    allow_unsound : bool, default=False
        Consent to a model whose epsilon is not proved.
    random_state : int, numpy.random.Generator or None, default=None
        Noise source. None takes fresh entropy of the operating system: the only choice for a release, since whoever
        knows a seed can draw the same noise and take it off. The guarantee says which it was.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Noisy weight vectors less their mean; k is 1 for two classes. The exact ones are not kept.
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        What is proved.

    Notes
    -----
    Status ``proved`` assumes idealised float64 noise, and that the number of rows, rounded up to a power of two, is
    public: for ``add_remove``, neighbours have numbers of rows with the same next power of two. Training time is not
    covered: it depends on the rows.

    Scores are worth comparing with each other only: what all classes have in common is gone.

    Examples
    --------
    >>> from privsvm import OvRJointGaussianClassifier
    >>> model = OvRJointGaussianClassifier(epsilon=4.0, C=0.1, classes=[0, 1, 2])
    >>> model.fit([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]] * 50, [0, 1, 2] * 50).guarantee_.status
    'proved'
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        C: float = 0.01,
        data_norm: float = 1.0,
        classes: Sequence | None = None,
        neighbours: Neighbours = "replace_one",
        gap: float | None = None,
        allow_unsound: bool = False,
        random_state: int | np.random.Generator | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.data_norm = data_norm
        self.classes = classes
        self.neighbours = neighbours
        self.gap = gap
        self.allow_unsound = allow_unsound
        self.random_state = random_state

    def release_path(
        self,
        X,
        y,
        epsilons: Sequence[float],
        repeats: int,
        rng: NoiseStreams | np.random.Generator | int | None = None,
        audit: bool = False,
    ) -> LinearPath:
        streams = noise_streams(rng, self)
        epsilons, delta = self._check_parameters(epsilons)
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        C, norm, n_classes = float(self.C), float(self.data_norm), len(self.classes_)
        release = release_one_vs_rest(
            clip_rows(X, norm),
            codes,
            n_classes,
            C=C,
            data_norm=norm,
            gap=self.gap,
            epsilons=epsilons,
            delta=delta,
            neighbours=self.neighbours,
            noise="gaussian",
            composition="joint",
            repeats=repeats,
            streams=streams,
            audit_pairs=[(clip_rows(row, norm), clip_rows(-row, norm)) for row in extreme_rows(X)] if audit else (),
            solve=solve_centred,
            together=lambda gap: centred_sensitivity(C, norm, n_classes, self.neighbours, gap),
        )
        guarantees = release.guarantees(
            "the weights of bias-free one-vs-rest hinge SVMs, all at once"
            + ("" if n_classes == 2 else ", their mean over the classes taken off"),
            [f"rows have norm at most {norm:g}: enforced by clipping"],
            "C",
            rng,
            "output perturbation (Chaudhuri, Monteleoni, Sarwate 2011) with the joint sensitivity proved in "
            "privsvm.methods.ovr_joint_gaussian",
            inferred_classes=self.classes is None,
        )
        return release.path(guarantees, n_classes)

    def _check_parameters(self, epsilons: Sequence[float]) -> tuple[list[float], float]:
        """Refuse what means nothing; return the budget as plain floats."""
        check_positive("C", self.C)
        check_bound("data_norm", self.data_norm)
        if self.gap is not None:
            check_positive("gap", self.gap)
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        check_public_classes(self.classes, self.allow_unsound)
        return check_budgets(epsilons, self.delta)


ESTIMATOR = OvRJointGaussianClassifier
