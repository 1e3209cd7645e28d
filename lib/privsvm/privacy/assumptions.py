"""Facts about the data and the call that a proof needs, as declared words, and their effect on it.

The code that prepares rows or calls a method states facts. `privsvm.privacy.gate` judges them, by the tables here
alone: a fact that is not stated, or stated in a word that the tables do not know, is broken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from privsvm.privacy.events import Neighbours


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Origins of everything that a proof takes to be public or enforced; None where nobody states them.

    `preparation` is the treatment of the file before this library read it, and `condensing` of the rows before the
    method; `split` is the choice of training rows. `scaling` is the scale of the rows and `bounds` the origin of the
    bounds for it. `classes`, `n_features` and `features` (landmarks, frequencies and their like) name origins, `n_rows`
    the number that the method uses as the number of rows, and `solution` the knowledge of the optimum that is released
    with noise. `declared_rows` is the number of rows, where it is declared to be public, or neighbours have as many.
    """

    preparation: (
        Literal["as given", "untouched", "declared", "prescaled", "undeclared", "columns dropped", "rows dropped"]
        | None
    ) = None
    condensing: Literal["as given", "none", "ci", "fcm"] | None = None
    split: Literal["as given", "of the files", "every row", "label-blind", "stratified"] | None = None
    scaling: Literal["as given", "none", "declared", "training rows", "all rows"] | None = None
    bounds: Literal["as given", "none", "declared", "published", "observed"] | None = None
    classes: Literal["declared", "private labels"] | None = None
    n_features: Literal["as given", "declared", "private rows"] | None = None
    n_rows: Literal["not used", "declared", "counted"] | None = None
    features: Literal["none", "public", "declared", "private rows", "undeclared"] | None = None
    solution: Literal["none needed", "certified", "limited"] | None = None
    declared_rows: int | None = None

    def __post_init__(self) -> None:
        rows = self.declared_rows
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
            raise ValueError(f"declared_rows is {rows!r}: must be a whole number of at least 1")

    def judge(
        self, neighbours: Neighbours | None, names: Iterable[str] | None = None
    ) -> tuple[tuple[str, ...], list[str]]:
        """Judge the facts of some names, by default of all, by the tables below.

        Returns the assumptions that facts add to a record, and the reasons why nothing can be proved; no reasons where
        every fact is stated and holds.
        """
        assumptions, reasons = [], []
        for name in FACTS if names is None else names:
            word = str(getattr(self, name))
            if word in HOLDS[name]:
                assumptions.append(HOLDS[name][word])
            elif word not in BROKEN[name]:
                reasons.append(f"nobody states the {name.replace('_', ' ')}")
            elif name == "n_rows" and neighbours == "replace_one":
                assumptions.append(_SAME_NUMBER)
            else:
                reasons.append(BROKEN[name][word])
        return tuple(text for text in assumptions if text is not None), reasons

    def for_rows(self, n_rows: int, neighbours: Neighbours) -> Facts:
        """Add the number of rows, where neighbours have as many: a delta must be small for it, and for a larger one."""
        if neighbours != "replace_one" or n_rows == 0:
            return self
        return dataclasses.replace(self, declared_rows=max(n_rows, self.declared_rows or 1))


# Words under which a proof stands, each with the assumption that goes into the record; None: nothing to say.
HOLDS: Mapping[str, Mapping[str, str | None]] = {
    "preparation": {
        "as given": None,
        "untouched": None,
        "declared": "whoever declared that the file was not scaled by its own rows knows how it was made",
    },
    "condensing": {"as given": None, "none": None},
    "split": {
        "as given": "neighbouring data sets are those given to fit: what was done to the rows before is not covered",
        "of the files": "neighbouring data sets are training files: which rows they hold is fixed and public",
        "every row": "neighbouring data sets are whole files",
        "label-blind": "neighbouring data sets are training sets: how the rows were split looks at none of them, and "
        "is fixed and public",
    },
    "scaling": {"as given": None, "none": None, "declared": "the scaling is by declared bounds"},
    "bounds": {
        "as given": None,
        "none": None,
        "declared": "whoever declared the bounds took them from elsewhere than the rows",
        "published": "the bounds of the scaling are from a table that was published with the rows and is not covered",
    },
    "classes": {"declared": None},
    "n_features": {"as given": None, "declared": None},
    "n_rows": {"not used": None, "declared": None},
    "features": {"none": None, "public": None, "declared": None},
    "solution": {"none needed": None, "certified": None},
}

# Words under which none stands, each with the reason.
BROKEN: Mapping[str, Mapping[str, str]] = {
    "preparation": {
        "prescaled": "the published file was scaled by statistics of its own rows",
        "undeclared": "nobody says whether the file was scaled by statistics of its own rows (`prescaled: false` says "
        "that it was not)",
        "columns dropped": "columns are dropped where private rows have missing values",
        "rows dropped": "rows with missing values are dropped: one missing value more changes how all rows are split",
    },
    "condensing": {
        kind: f"the rows were condensed ({kind}): one row can change many condensed rows, and no noise is set for that"
        for kind in ("ci", "fcm")
    },
    "split": {
        "stratified": "the splits are stratified: one changed label can exchange many training rows (22 of 142 were "
        "seen to change), and no noise is set for that",
    },
    "scaling": {
        "training rows": "the scaling was taken from training rows, which are private",
        "all rows": "the scaling was taken from all rows, which are private",
    },
    "bounds": {"observed": "nobody says that the bounds of the scaling are not those of the private rows"},
    "classes": {"private labels": "the class set was taken from the private labels"},
    "n_features": {"private rows": "the number of features was taken from the private rows"},
    # Not under replace_one, where neighbours have as many rows.
    "n_rows": {
        "counted": "the private number of rows was counted and used as if it were public",
    },
    "features": {
        "private rows": "the feature map (gamma, say) was taken from the private rows",
        "undeclared": "the given landmarks are published as they are, and nobody said that they are public",
    },
    "solution": {"limited": "the solver stops after a given number of passes, whether or not its target is reached"},
}

# Dropped by rules for missing values.
DROPPED: Mapping[str, str] = {"drop_columns": "columns dropped", "drop_rows": "rows dropped"}

_SAME_NUMBER = "neighbours have the same number of rows, which is public"

FACTS = tuple(HOLDS)

# Facts about rows that a user hands to `fit`.
AS_GIVEN: Mapping[str, Any] = dict.fromkeys(
    ("preparation", "condensing", "split", "scaling", "bounds", "n_features"), "as given"
)


def merge_facts(several: list[Facts]) -> Facts:
    """Put together the facts of several releases of the same rows: of two words the one that assumes more."""
    words: dict[str, Any] = {}
    for name in FACTS:
        order = [None, *HOLDS[name], *BROKEN[name]]
        stated = [getattr(facts, name) for facts in several]
        broken = [word for word in stated if word is None or word in BROKEN[name]]
        words[name] = broken[0] if broken else max(stated, key=order.index)
    rows = [facts.declared_rows for facts in several if facts.declared_rows is not None]
    # The most: a delta that is small for them is small for fewer.
    return dataclasses.replace(Facts(**words), declared_rows=max(rows, default=None))
