"""How each method looks, in every figure: a colour that survives colour blindness, and a mark."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

__all__ = ["COLOURS", "ORDER", "SYMBOLS", "Look", "looks_of"]

# Pairs for light and dark pages, each with a contrast of 3 : 1 or more to its page, and no two alike to any kind of
# colour blindness (tests/reporting/test_palette.py). A mark goes with every colour, so that none has to be told by it.
COLOURS = (
    ("#1852cc", "#7797f1"),
    ("#7b542d", "#e97f3c"),
    ("#289676", "#41e3ab"),
    ("#bb359c", "#c66b9f"),
    ("#163e4f", "#bae1f3"),
    ("#9c9224", "#f2e989"),
    ("#340e65", "#7a5aef"),
    ("#570b17", "#e53e60"),
)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star")

# Fixed for good, so that a method looks the same in every report: append new ones. Others get a look by their name.
ORDER = (
    "recommended",
    "pmsvm_wp",
    "objective_perturbation",
    "private_svm",
    "pmsvm_gp",
    "ovr_joint_gaussian",
    "landmark_dual",
    "dp_frank_wolfe",
    "pmsvm_agp",
    "opera",
    "softmax_dpsgd",
    "grpua",
    "softmax_dpadam",
    "dp_least_squares",
    "dp_feature_covariance",
    "private_svm_laplace",
    "private_svm_rbf",
    "private_svm_rbf_laplace",
    "landmark_dual_given",
    "dp_newton",
)


@dataclasses.dataclass(frozen=True)
class Look:
    """How one method is drawn."""

    light: str
    dark: str
    symbol: str


def _place(implementation: str) -> int:
    if implementation in ORDER:
        return ORDER.index(implementation)
    return int(hashlib.sha256(implementation.encode()).hexdigest()[:8], 16)


def looks_of(implementations: Sequence[str]) -> list[Look]:
    """Choose colours and marks.

    Parameters
    ----------
    implementations : sequence of str
        Of the methods of a report. Of several settings of one implementation the first has its fixed look; the others
        keep its colour and get further marks.

    Returns
    -------
    list of Look
    """
    looks: list[Look] = []
    seen: dict[str, int] = {}
    for implementation in implementations:
        place, again = _place(implementation), seen.get(implementation, 0)
        seen[implementation] = again + 1
        light, dark = COLOURS[place % len(COLOURS)]
        # Each round through the colours starts with another mark.
        symbol = SYMBOLS[(place + place // len(COLOURS) + again) % len(SYMBOLS)]
        looks.append(Look(light, dark, symbol))
    return looks
