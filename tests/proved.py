"""Every proved method with every relation and every value of its choices."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from privsvm.privacy.statement import NEIGHBOURS
from privsvm.registry import estimator_class, implementations

CLASSES = [0, 1, 2]
# Small values by name of the parameter.
SMALL = {
    "epsilon": 2.0, "n_rows": 8, "epochs": 2, "n_steps": 3, "n_components": 2, "n_landmarks": 3, "C": 0.3,
    "allow_unsound": False, "n_trees": 3, "max_depth": 2, "n_bins": 4,
}  # fmt: skip
# Further choices: sampled rows, regularisers, scaling, landmarks.
MORE = {
    "batch_size": [{"batch_size": 4}],
    # An undeclared number that differs between neighbours is released or refused.
    "n_rows": [{"n_rows": None}],
    "inside_clip": [{"inside_clip": True, "margin_weight": 0.1, "ridge": 0.05, "batch_size": 4}],
    "scaling": [
        *({"scaling": scaling, "batch_size": 4} for scaling in ("centre", "whiten")),
        {"scaling": "centre", "fit_intercept": True},
    ],
    # Features of columns, and trials of them: so many rows are declared.
    "indicators": [
        {"indicators": [1], "bounds": (-3.0, 3.0), "n_rows": 20_000},
        {"indicators": [1], "bounds": (-3.0, 3.0), "n_rows": 20_000, "class_weight": "balanced"},
    ],
    # Three landmarks with two features each.
    "landmarks": [{"landmarks": np.array([[0.0, 0.1], [0.5, -0.4], [-1.0, 0.7]]), "landmarks_public": True}],
}
# Parameters that change no draw.
IDLE = {"allow_composition", "allow_unsound", "neighbours", "landmarks_public", "schedule", "average"}


class Case(NamedTuple):
    """One way to call a method."""

    method: Any
    relation: str
    chosen: dict[str, Any]

    def model(self, **changes):
        """Make the estimator, unfitted."""
        values = {"classes": CLASSES, "neighbours": self.relation, **SMALL, **self.chosen, **changes}
        return self.method(**{name: value for name, value in values.items() if name in self.method.declared})

    @property
    def n_classes(self):
        return len(self.chosen.get("classes", CLASSES))

    def __str__(self):
        shown = [f"{name}={value if np.ndim(value) == 0 else '...'}" for name, value in self.chosen.items()]
        return "-".join([self.method.__name__, self.relation, *shown])


def _words(item):
    """List the values of a parameter that takes words or flags."""
    options = item.constraint.schema.get("anyOf", [item.constraint.schema])
    words = [word for option in options for word in option.get("enum", ())]
    flags = [False, True] if any(option.get("type") == "boolean" for option in options) else []
    # None means True if rows are not scaled.
    return [value for value in [*words, *flags] if value not in (item.default, item.default is None)]


def _proves(case):
    """Say whether a call is proved, or would be but for a faulty proof."""
    rows = np.array([[0.1, 0.2], [0.3, -0.1], [-0.2, 0.5]])
    try:
        return case.model().fit(rows, [0, 1, case.n_classes - 1]).guarantee_.status == "proved"
    except ValueError as error:
        return "the event costs" in str(error)


def cases():
    """List the cases, and the methods that have any."""
    all_cases = []
    for name in implementations():
        method = estimator_class(name)
        if "epsilon" not in method.declared:
            continue
        relations = [word for word in NEIGHBOURS if method.declared["neighbours"].constraint.accepts(word)]
        choices = [{}, {"classes": [0, 1]}]
        for parameter, item in method.declared.items():
            choices += [{parameter: word} for word in _words(item) if parameter not in IDLE]
            choices += MORE.get(parameter, [])
        method_cases = [Case(method, relation, chosen) for relation in relations for chosen in choices]
        all_cases += [case for case in method_cases if _proves(case)]
    return all_cases


def params(all_cases):
    """Make parameters of a test. A choice that an earlier method of the same base class has is `long`."""
    shared = set()
    for case in all_cases:
        chosen = {name: str(value) for name, value in case.chosen.items() if name not in MORE["landmarks"][0]}
        choice = (case.method.__bases__[0], *chosen.items())
        marks = [pytest.mark.long] if chosen and choice in shared else []
        shared.add(choice)
        yield pytest.param(case, id=str(case), marks=marks)


CASES = cases()
PARAMS = list(params(CASES))
METHODS = list(dict.fromkeys(case.method for case in CASES))
