"""Colour and mark of each method in all figures, distinct for colour-blind readers too."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

__all__ = ["COLOURS", "ORDER", "SYMBOLS", "Look", "looks_of"]

# Colours for light and dark pages, one for each method in ORDER: contrast of at least 3 : 1 to the page, distinct for
# every kind of colour blindness, the first eight most (tests/reporting/test_palette.py). None is grey: claims are.
COLOURS = (
    ("#1852cc", "#7797f1"),
    ("#7b542d", "#e97f3c"),
    ("#289676", "#41e3ab"),
    ("#bb359c", "#c66b9f"),
    ("#163e4f", "#bae1f3"),
    ("#9c9224", "#f2e989"),
    ("#340e65", "#7a5aef"),
    ("#570b17", "#e53e60"),
    ("#810dff", "#cf17b3"),
    ("#1703b0", "#1473ba"),
    ("#a67fde", "#9d15fc"),
    ("#fa1f6e", "#b7af7b"),
    ("#680796", "#b53a8b"),
    ("#9a470b", "#89ff58"),
    ("#e403fc", "#985971"),
    ("#b179a1", "#d12418"),
    ("#c38253", "#0cab34"),
    ("#77060c", "#9cc369"),
    ("#5a4374", "#d2a6ec"),
    ("#7c74b5", "#79c7b6"),
    ("#3883fe", "#087c4d"),
    ("#873d4c", "#716f20"),
    ("#fd20cc", "#f6ba0d"),
    ("#757a30", "#629d77"),
)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star")

# Append only, so that a method looks the same in every report. Other methods get a look by a hash of their name.
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
    "dp_naive_bayes",
    "dp_tr_newton",
    "dp_lda",
    "adassp",
)


@dataclasses.dataclass(frozen=True)
class Look:
    """Colours and mark of one method."""

    light: str
    dark: str
    symbol: str


def _position(implementation: str) -> int:
    if implementation in ORDER:
        return ORDER.index(implementation)
    return int(hashlib.sha256(implementation.encode()).hexdigest()[:8], 16)


def looks_of(implementations: Sequence[str]) -> list[Look]:
    """Choose colours and marks.

    Parameters
    ----------
    implementations : sequence of str
        Of the methods of a report. The first setting of an implementation has its fixed look; further ones keep its
        colour and get further marks.
    """
    looks: list[Look] = []
    seen: dict[str, int] = {}
    for implementation in implementations:
        position, repeat = _position(implementation), seen.get(implementation, 0)
        seen[implementation] = repeat + 1
        light, dark = COLOURS[position % len(COLOURS)]
        # A second round through the colours starts with another mark.
        symbol = SYMBOLS[(position + position // len(COLOURS) + repeat) % len(SYMBOLS)]
        # Of two reference lines without a mark, one has other dashes.
        looks.append(Look(light, dark, "dash-dot" if implementation == "majority" else symbol))
    return looks
