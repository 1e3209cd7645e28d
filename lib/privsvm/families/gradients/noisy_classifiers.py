"""Classifiers trained by noisy clipped gradient steps: their settings, each declared once, and what goes with them."""

from __future__ import annotations

from typing import Any

from privsvm.base.parameters import parameter
from privsvm.constraints import BOUND, FLAG, NOT_NEGATIVE, POSITIVE, SHARE_KEPT, one_of, optional
from privsvm.families.gradients.noisy_training import NoisyGradientClassifier
from privsvm.families.moments.private_scaling import SCALINGS


class ScaledRowsClassifier(NoisyGradientClassifier):
    """Base class of classifiers that can scale rows by noisy statistics.

    Attributes
    ----------
    coef_ : ndarray (c, d)
        Weight vectors, of scaled rows for `scaling`.
    intercept_ : ndarray (c,)
        Offsets.
    centre_, spread_, bound_ : ndarray (d,), ndarray (d,), float
        For ``whiten``: scores are of ``(x - centre_) / spread_``, cut at `bound_`. (For ``centre``: of rows divided by
        their norm; with offsets, less `centre_`, and divided by their norm again.)
    noise_multiplier_ : float
        Standard deviation of the noise over `max_grad_norm`.
    """

    scaling: str = parameter(
        "none",
        one_of(*SCALINGS),
        "Scale rows by noisy statistics of them, paid for out of the budget; see "
        "`privsvm.families.moments.private_scaling`. With scaling, `data_norm` is refused.",
    )
    fit_intercept: bool | None = parameter(
        None,
        optional(FLAG),
        "Whether to train offsets; they are part of the clipped gradient. None: unless rows are scaled by `scaling`. "
        "Scaled rows get a constant feature for them, whose weights are regularised like all others.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.scaling != "none" and self.data_norm is not None:
            raise ValueError(
                f"data_norm={self.data_norm!r}: scaling={self.scaling!r} bounds the rows by itself; use None"
            )


class DescentClassifier(NoisyGradientClassifier):
    """Gradient descent on noisy gradients; a base."""

    momentum: float = parameter(0.0, SHARE_KEPT, "Share of the last step that is kept, below 1.")

    def _optimizer(self) -> dict[str, Any]:
        return {"optimizer": "sgd", "momentum": float(self.momentum)}


class AdamClassifier(NoisyGradientClassifier):
    """Adam on noisy gradients; a base."""

    beta1: float = parameter(
        0.0,
        SHARE_KEPT,
        "How much of its running mean of gradients Adam keeps. (The usual 0.9 costs accuracy where most of a gradient "
        "is noise.)",
    )
    beta2: float = parameter(0.999, SHARE_KEPT, "How much of its running mean of squared gradients Adam keeps.")

    def _optimizer(self) -> dict[str, Any]:
        return {"optimizer": "adam", "beta1": float(self.beta1), "beta2": float(self.beta2)}


class MarginLossClassifier(ScaledRowsClassifier):
    """PMSVM's smoothed all-in-one loss and margin regulariser; a base."""

    smoothing: float = parameter(0.1, POSITIVE, "s in the smoothed hinge.")
    margin_weight: float = parameter(
        0.0, NOT_NEGATIVE, "lambda, the weight of the margin regulariser, beside a row's mean loss."
    )
    inside_clip: bool = parameter(
        False,
        FLAG,
        "Whether the regularisers are part of every row's clipped gradient (the paper's equation 15), or added "
        "exactly, after the noise.",
    )

    def _loss(self) -> dict[str, Any]:
        return {
            "loss": "hinge",
            "smoothing": float(self.smoothing),
            "margin_weight": float(self.margin_weight),
            "regulariser": "inside" if self.inside_clip else "outside",
        }


class SoftmaxClassifier(ScaledRowsClassifier):
    """Softmax regression; a base."""

    _description = "softmax regression (Linear)"
    _reference = "pmsvm-2025, section 5.1 (Linear); Abadi et al. (2016), Algorithm 1"

    loss_weight: float = parameter(1.0, BOUND, "Multiplies every row's loss before its gradient is clipped.")

    def _loss(self) -> dict[str, Any]:
        return {"loss": "softmax", "loss_weight": float(self.loss_weight)}
