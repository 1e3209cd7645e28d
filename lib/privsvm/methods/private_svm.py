"""PrivateSVM (Rubinstein, Bartlett, Huang, Taft 2012): noise on the primal weights of a bias-free hinge SVM.

With ``C`` the weight of one row's loss (the paper's ``C / n``) and features of norm at most kappa, the optimum moves by
at most ``2 C kappa`` in the L2 norm when a row is replaced, and so by ``2 C kappa sqrt(F)`` in the L1 norm of its F
coordinates. The paper's privacy theorems have twice that, ``4 C kappa sqrt(F)``; for D random Fourier frequencies
(F = 2 D, kappa = 1) it is the ``2^2.5 C sqrt(D)`` that SACRO-ML divides by epsilon. One replaced row attains the
smaller constant, in both norms.

The theorems have no bias: releasing one without noise, as SACRO-ML does, is outside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from privsvm.base.estimators import NoiseStreams, PrivateClassifier, noise_streams
from privsvm.base.perturbation import COMPOSITIONS, clip_rows, extreme_rows, release_one_vs_rest
from privsvm.base.released import FourierPath, LinearPath
from privsvm.base.validation import (
    check_bound,
    check_budgets,
    check_choice,
    check_count,
    check_flag,
    check_positive,
    check_public_classes,
    check_seed,
    check_training_data,
)
from privsvm.numerics.streams import seeded_stream
from privsvm.privacy.guarantee import NEIGHBOURS, Neighbours
from privsvm.solvers.features import fourier_features, fourier_frequencies
from privsvm.solvers.kernels import resolve_gamma

__all__ = ["ESTIMATOR", "PrivateSVMClassifier"]

_MECHANISMS = ("gaussian", "laplace", "laplace_as_published")


class PrivateSVMClassifier(PrivateClassifier, ClassifierMixin, BaseEstimator):
    """Private SVM by noise on its weights; one-vs-rest for more than two classes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release.
    delta : float, default=1e-5
        Probability that goes with it. The Laplace mechanisms need none: their guarantee has delta 0.
    C : float, default=0.01
        Weight of one row's loss (the paper's C/n). Public: choose it without looking at the data.
    kernel : {"linear", "rbf"}, default="linear"
        ``rbf`` trains on random Fourier features of the Gaussian kernel.
    gamma : float, "auto" or "scale", default="auto"
        Coefficient of the Gaussian kernel; ``"auto"`` is 1 / d. ``"scale"`` takes the variance of the private rows:
        that needs ``allow_unsound=True``, and the status falls to ``claimed``.
    n_components : int, default=250
        Number D of random frequencies; each gives a cosine and a sine.
    features_seed : int, default=0
        Seed of the frequencies. Public, and part of the model.
    data_norm : float, default=1.0
        Rows longer than this are scaled down to it. For ``rbf`` it is not used: all features have norm 1.
    mechanism : {"gaussian", "laplace", "laplace_as_published"}, default="gaussian"
        ``gaussian``: analytic Gaussian noise for the L2 sensitivity. ``laplace``: pure differential privacy, for the
        L1 sensitivity. ``laplace_as_published``: with the paper's constant, which is twice what is needed.
    composition : {"joint", "naive"}, default="joint"
        How more than two classes share the budget: one release of all weight vectors, or ``epsilon / c`` (and
        ``delta / c``) for each. For Laplace noise both are the same.
    classes : sequence or None, default=None
        The public label set. Taking it from the training labels (None) reveals which labels occur: that
        needs ``allow_unsound=True``, and the status falls to ``claimed``.
    neighbours : {"replace_one", "add_remove"}, default="replace_one"
        The relation between data sets.
    gap : float or None, default=None
        Public target of the duality gap; None means ``2e-4 C^2 R^2``, or more where float64 cannot certify that.
    allow_unsound : bool, default=False
        Consent to a model whose epsilon is not proved.
    random_state : int, numpy.random.Generator or None, default=None
        Noise source. None takes fresh entropy of the operating system: the only choice for a release, since whoever
        knows a seed can draw the same noise and take it off. The guarantee says which it was.

    Attributes
    ----------
    coef_ : ndarray (k, F)
        Noisy weight vectors, of the features for ``rbf``; k is 1 for two classes. The exact ones are not kept.
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

    Examples
    --------
    >>> from privsvm import PrivateSVMClassifier
    >>> model = PrivateSVMClassifier(epsilon=4.0, C=0.1, mechanism="laplace", classes=[0, 1])
    >>> guarantee = model.fit([[-1.0], [1.0]] * 50, [0, 1] * 50).guarantee_
    >>> guarantee.status, guarantee.delta
    ('proved', 0.0)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        C: float = 0.01,
        kernel: str = "linear",
        gamma: float | str = "auto",
        n_components: int = 250,
        features_seed: int = 0,
        data_norm: float = 1.0,
        mechanism: str = "gaussian",
        composition: str = "joint",
        classes: Sequence | None = None,
        neighbours: Neighbours = "replace_one",
        gap: float | None = None,
        allow_unsound: bool = False,
        random_state: int | np.random.Generator | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.features_seed = features_seed
        self.data_norm = data_norm
        self.mechanism = mechanism
        self.composition = composition
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
    ) -> LinearPath | FourierPath:
        streams = noise_streams(rng, self)
        epsilons, delta = self._check_parameters(epsilons)
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        if self.kernel == "rbf":
            gamma = resolve_gamma(self.gamma, X)
            public = seeded_stream(int(self.features_seed), "fourier features")
            frequencies = fourier_frequencies(X.shape[1], int(self.n_components), gamma, public)

        def features(rows):
            """Rows as the solver sees them: of norm at most `norm`, in floating point too."""
            return clip_rows(fourier_features(rows, frequencies) if self.kernel == "rbf" else rows, norm)

        norm = 1.0 if self.kernel == "rbf" else float(self.data_norm)
        release = release_one_vs_rest(
            features(X),
            codes,
            len(self.classes_),
            C=float(self.C),
            data_norm=norm,
            gap=self.gap,
            epsilons=epsilons,
            delta=delta,
            neighbours=self.neighbours,
            noise="gaussian" if self.mechanism == "gaussian" else "laplace",
            composition=self.composition,
            repeats=repeats,
            streams=streams,
            audit_pairs=[(features(row), features(-row)) for row in extreme_rows(X)] if audit else (),
            published_constant=self.mechanism == "laplace_as_published",
        )
        if self.kernel == "rbf":
            bounded = [
                "features have norm 1: cosine and sine of every frequency, clipped for round-off; computed in float64: "
                "idealised numerics",
                f"the frequencies are public: drawn from seed {int(self.features_seed)}, not from the rows",
            ]
        else:
            bounded = [f"rows have norm at most {norm:g}: enforced by clipping"]
        guarantees = release.guarantees(
            "the weights of a bias-free hinge SVM (PrivateSVM)",
            bounded,
            "C, gamma" if self.kernel == "rbf" else "C",
            rng,
            f"Rubinstein, Bartlett, Huang, Taft (2012), {'Algorithm 2' if self.kernel == 'rbf' else 'Algorithm 1'}"
            + {"gaussian": ", with Gaussian noise", "laplace": ", with half the noise", "laplace_as_published": ""}[
                self.mechanism
            ],
            inferred_classes=self.classes is None,
        )
        if self.kernel == "linear":
            return release.path(guarantees, len(self.classes_))
        if self.gamma == "scale":
            reason = "gamma='scale' was taken from the private rows"
            guarantees = tuple(guarantee.with_broken_assumption(reason) for guarantee in guarantees)
        return FourierPath(
            epsilons=tuple(epsilons),
            guarantees=guarantees,
            n_classes=len(self.classes_),
            fit_seconds=release.fit_seconds,
            release_seconds=release.release_seconds,
            frequencies=frequencies,
            coef=release.coef,
        )

    def _check_parameters(self, epsilons: Sequence[float]) -> tuple[list[float], float]:
        """Refuse what means nothing; return the budget as plain floats."""
        check_positive("C", self.C)
        check_bound("data_norm", self.data_norm)
        check_flag("allow_unsound", self.allow_unsound)
        if self.gap is not None:
            check_positive("gap", self.gap)
        check_choice("kernel", self.kernel, ("linear", "rbf"))
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("auto", "scale"))
        else:
            check_positive("gamma", self.gamma)
        if self.kernel == "rbf" and self.gamma == "scale" and not self.allow_unsound:
            raise ValueError(
                "gamma='scale': taken from the private rows; give a public number, or consent with allow_unsound=True"
            )
        check_count("n_components", self.n_components)
        check_seed("features_seed", self.features_seed)
        check_choice("mechanism", self.mechanism, _MECHANISMS)
        check_choice("composition", self.composition, COMPOSITIONS)
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        check_public_classes(self.classes, self.allow_unsound)
        return check_budgets(epsilons, self.delta)


ESTIMATOR = PrivateSVMClassifier
