"""Colour and mark of each method in all figures."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Sequence

# Colours for light and dark pages: contrast of at least 3 : 1 to the page, distinct for every kind of colour blindness,
# the first eight most (tests/reporting/test_palette.py). None is grey: claims are.
COLOURS = (
    ("#1852cc", "#7797f1"), ("#7b542d", "#e97f3c"), ("#289676", "#41e3ab"), ("#bb359c", "#c66b9f"),
    ("#163e4f", "#bae1f3"), ("#9c9224", "#f2e989"), ("#340e65", "#7a5aef"), ("#570b17", "#e53e60"),
    ("#810dff", "#cf17b3"), ("#1703b0", "#1473ba"), ("#a67fde", "#9d15fc"), ("#fa1f6e", "#b7af7b"),
    ("#680796", "#b53a8b"), ("#9a470b", "#89ff58"), ("#e403fc", "#985971"), ("#b179a1", "#d12418"),
    ("#c38253", "#0cab34"), ("#77060c", "#9cc369"), ("#5a4374", "#d2a6ec"), ("#7c74b5", "#79c7b6"),
    ("#3883fe", "#087c4d"), ("#873d4c", "#716f20"), ("#fd20cc", "#f6ba0d"), ("#757a30", "#629d77"),
)  # fmt: skip
# Lines of claims, and of methods without a guarantee.
CLAIMED, NONE = "#63676e", "#46505f"
# Marks: matplotlib's name, and the glyphs of tables, filled for proofs and hollow where the noise was seeded.
SYMBOLS = {
    "circle": ("o", "●○"), "square": ("s", "■□"), "diamond": ("D", "◆◇"), "triangle-up": ("^", "▲△"),
    "triangle-down": ("v", "▼▽"), "pentagon": ("p", "⬟⬠"), "star": ("*", "★☆"),
}  # fmt: skip

# These have the first colours, in every report. The name of another method chooses one of the rest.
NAMED = (
    "recommended", "pmsvm_wp", "objective_perturbation", "private_svm", "pmsvm_gp", "ovr_joint_gaussian",
    "landmark_dual", "dp_frank_wolfe",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Look:
    """Colours and mark of one method."""

    light: str
    dark: str
    symbol: str


def _first_places(implementations: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Choose a colour for each name, and a first mark; the order of the names does not count.

    A name's own colour is a hash of it. If a report has that already, the next colour with the fewest lines is taken,
    and another mark.
    """
    places = {name: (place, place) for place, name in enumerate(NAMED)}
    n_lines, sizes = Counter[int](), Counter(implementations)
    for name in sorted(sizes.keys() - places.keys()):
        own = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
        turn = len(COLOURS) - len(NAMED)
        place = min((len(NAMED) + (own + step) % turn for step in range(turn)), key=n_lines.__getitem__)
        places[name] = place, place + n_lines[place]
        n_lines[place] += sizes[name]
    return places


def looks_of(implementations: Sequence[str]) -> list[Look]:
    """Choose colours and marks for the methods of a report.

    Further settings of an implementation have its colour and further marks. No two methods share both, of up to seven
    lines in a colour.
    """
    looks: list[Look] = []
    places, seen = _first_places(implementations), Counter[str]()
    for implementation in implementations:
        place, mark = places[implementation]
        symbol = list(SYMBOLS)[(mark + seen[implementation]) % len(SYMBOLS)]
        seen[implementation] += 1
        # Of two reference lines without a mark, one has other dashes.
        looks.append(Look(*COLOURS[place], "dash-dot" if implementation == "majority" else symbol))
    return looks
