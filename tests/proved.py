"""Every method that proves something, with every choice of words and every relation that it declares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from privsvm.privacy.guarantee import NEIGHBOURS
from privsvm.registry import estimator_class, implementations

__all__ = ["CASES", "METHODS", "Case", "cases"]

CLASSES = [0, 1, 2]
# Small settings, for parameters that have these names.
SMALL = {
    "epsilon": 2.0, "n_rows": 8, "epochs": 2, "n_steps": 3, "n_components": 2, "n_landmarks": 3, "C": 0.3,
    "allow_unsound": False,
}  # fmt: skip
# Choices besides those of words: sampled rows, and regularisers, which other choices are about.
MORE = {
    "batch_size": [{"batch_size": 4}],
    # Where it is neither declared nor the same for neighbours, it is released or refused.
    "n_rows": [{"n_rows": None}],
    "inside_clip": [{"inside_clip": True, "margin_weight": 0.1, "ridge": 0.05, "batch_size": 4}],
    "scaling": [
        *({"scaling": scaling, "batch_size": 4} for scaling in ("centre", "whiten")),
        {"scaling": "centre", "fit_intercept": True},
    ],
    # Of the user's own: 3 of them, of 2 numbers each.
    "landmarks": [{"landmarks": np.array([[0.0, 0.1], [0.5, -0.4], [-1.0, 0.7]]), "landmarks_public": True}],
}
# Words that change no sum.
IDLE = {"allow_composition", "allow_unsound", "neighbours", "landmarks_public", "schedule", "average"}


class Case(NamedTuple):
    """One way to call a method."""

    method: Any
    relation: str
    chosen: dict[str, Any]

    def model(self, **changes):
        """The estimator, unfitted."""
        values = {"classes": CLASSES, "neighbours": self.relation, **SMALL, **self.chosen, **changes}
        return self.method(**{name: value for name, value in values.items() if name in self.method.declared})

    @property
    def n_classes(self):
        return len(self.chosen.get("classes", CLASSES))

    def __str__(self):
        shown = [f"{name}={value if np.ndim(value) == 0 else '...'}" for name, value in self.chosen.items()]
        return "-".join([self.method.__name__, self.relation, *shown])


def _words(item):
    """The values of a parameter that has few: words, or yes and no."""
    options = item.constraint.schema.get("anyOf", [item.constraint.schema])
    words = [word for option in options for word in option.get("enum", ())]
    flags = [False, True] if any(option.get("type") == "boolean" for option in options) else []
    # Yes is what None means, where rows are not scaled.
    return [value for value in [*words, *flags] if value not in (item.default, item.default is None)]


def _proves(case):
    """Whether a call proves something; a refusal proves nothing, but for one that finds a fault in the proof."""
    rows = np.array([[0.1, 0.2], [0.3, -0.1], [-0.2, 0.5]])
    try:
        return case.model().fit(rows, [0, 1, case.n_classes - 1]).guarantee_.status == "proved"
    except ValueError as error:
        return "the event costs" in str(error)


def cases():
    """List the cases, and the methods that have any."""
    found = []
    for name in implementations():
        method = estimator_class(name)
        if "epsilon" not in method.declared:
            continue
        relations = [word for word in NEIGHBOURS if method.declared["neighbours"].constraint.accepts(word)]
        needed = MORE["landmarks"][0] if "landmarks" in method.declared else {}
        choices = [{}, {"classes": [0, 1]}]
        for parameter, item in method.declared.items():
            choices += [{parameter: word} for word in _words(item) if parameter not in IDLE]
            choices += [chosen for chosen in MORE.get(parameter, []) if chosen != needed]
        own = [Case(method, relation, {**needed, **chosen}) for relation in relations for chosen in choices]
        found += [case for case in own if _proves(case)]
    return found


CASES = cases()
METHODS = list(dict.fromkeys(case.method for case in CASES))
