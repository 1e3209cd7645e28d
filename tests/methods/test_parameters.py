"""No parameter is without effect: whatever the choices are, any other changes the model, its record, or raises.

SVC's own (`gamma`, `degree`, `coef0`, `break_ties`) are for some kernels only, as everybody knows them.
"""

import dataclasses
import json
import warnings

import numpy as np
import pytest

from privsvm.base.parameters import EPSILON, LABELS, DeclaredEstimator, Parameter, parameter
from privsvm.constraints import COUNT, POSITIVE, Constraint, either, one_of, optional, real
from privsvm.registry import estimator_class, implementations

SVC_OWN = {"gamma", "degree", "coef0", "break_ties"}

rng = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], 16)
X = np.clip(np.eye(3)[Y] + 0.4 * rng.normal(size=(48, 3)), -1.5, 1.5)

# Settings in which effects show: a few steps, non-zero terms, rows that are cut.
COMMON = {"allow_unsound": True, "random_state": 0, "classes": [0, 1, 2]}
SETTINGS = {
    "epochs": 3,
    "batch_size": 24,
    "margin_weight": 0.05,
    "ridge": 0.01,
    "data_bound": 0.5,
    "n_steps": 4,
    "n_components": 5,
    "n_landmarks": 5,
    "entities": 2,
    "clustering_max_iter": 3,
    "class_weight": {0: 1.0, 1: 2.0, 2: 3.0},
    "bounds": (-2.0, 1.0),
}
# Not every constraint says what else there is.
OTHERS = {
    "bounds": [(0.0, 1.0)],
    "categories": [[0, 2, 3]],
    "public_rows": [[0.5, 0.5, 0.5]],
    "after": ["no such folder"],
    "landmarks": [[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]],
    "entities": [[[0], [1, 2]]],
    "class_weight": ["balanced"],
    "mbar": [5],
}


def alternatives(name, item, value):
    """Other values that a parameter may have, near and far."""
    values = [*OTHERS.get(name, []), *_others(item.constraint.schema, value)]
    return [other for other in values if other != value and item.constraint.accepts(other)]


def _others(schema, value):
    for option in schema.get("anyOf", [schema]):
        if "enum" in option:
            yield from option["enum"]
        elif option["type"] == "boolean":
            yield from (True, False)
        elif option["type"] == "null":
            yield None
        elif option["type"] in ("number", "integer"):
            number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.5
            yield from (2 * number, number / 2, number + 1, 1000 * number, number / 1000, 1, 5, 0.5)


def outcome(method, values):
    """Return the public traces of a fit: arrays and record of the released model and its answers, or the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = method(**values).fit(X, Y)
        except ValueError as error:
            return f"refused: {error}"
    path = getattr(model, "_path", None)
    arrays = [] if path is None else [array.tobytes() for array in path.arrays().values()]
    # Answers are computed for parameters that change nothing else.
    answers = any(item.effect == "answers" for item in method.declared.values())
    values = model.decision_function(X).tolist() if answers else []
    public_answers = (values, hasattr(model, "predict_proba"))
    return b"".join(arrays), json.dumps([dataclasses.asdict(model.guarantee_), *public_answers], default=str)


def choices(method):
    """Every value of every choice, with all else as it is."""
    yield {}
    for name, item in method.declared.items():
        if item.effect in ("model", "answers") and item.constraint.schema.get("type", "boolean") == "boolean":
            for other in (True, False, None, *_words(item.constraint.schema)):
                if item.constraint.accepts(other) and other != item.default:
                    yield {name: other}


def _words(schema):
    return [word for option in schema.get("anyOf", [schema]) for word in option.get("enum", ())]


def without_effect(method):
    """Parameters that change nothing beside some choice."""
    base = {name: value for name, value in {**COMMON, **SETTINGS}.items() if name in method.declared}
    outcomes = {}

    def fit_values(values):
        key = json.dumps(values, sort_keys=True, default=str)
        if key not in outcomes:
            outcomes[key] = outcome(method, values)
        return outcomes[key]

    for choice in choices(method):
        chosen = {**base, **choice}
        first = fit_values(chosen)
        if isinstance(first, str):
            # A choice that needs another one with it raises: that is no effect left out.
            continue
        for name, item in method.declared.items():
            if item.effect not in ("model", "answers") or name in choice or name in SVC_OWN or name == "classes":
                continue
            value = chosen.get(name, item.default)
            others = alternatives(name, item, value)
            if not others and len(_words(item.constraint.schema)) == 1:
                continue
            if not any(fit_values({**chosen, name: other}) != first for other in others):
                yield choice, name


@pytest.mark.parametrize("implementation", implementations())
def test_no_parameter_is_without_effect(implementation):
    assert list(without_effect(estimator_class(implementation))) == []


@pytest.mark.parametrize("implementation", implementations())
def test_what_takes_time_or_consent_changes_no_model(implementation):
    method = estimator_class(implementation)
    base = {name: value for name, value in {**COMMON, **SETTINGS}.items() if name in method.declared}
    first = outcome(method, base)
    others = {"n_jobs": [2, -1], "landmarks_public": [True]}
    for name in others.keys() & method.declared.keys():
        for other in others[name]:
            assert outcome(method, {**base, name: other}) == first, (name, other)


class Described(DeclaredEstimator):
    """One line.

    Attributes
    ----------
    x_ : int
        Something.
    """

    first: float = parameter(1.0, POSITIVE, "The first.")
    second: str = parameter("a", one_of("a", "b"), "The second.")


class Narrower(Described):
    """Another default."""

    first: float = parameter(2.0, optional(COUNT), "The first again.")
    epsilon: float = EPSILON


def test_declarations_are_inherited_and_documented():
    assert Described().get_params() == {"first": 1.0, "second": "a"}
    assert Narrower().get_params() == {"first": 2.0, "second": "a", "epsilon": 1.0}
    assert Described.__doc__.split("\n")[2:8] == [
        "Parameters",
        "----------",
        "first : float, default=1.0",
        "    The first.",
        'second : {"a", "b"}, default="a"',
        "    The second.",
    ]
    assert Described.__doc__.index("Parameters") < Described.__doc__.index("Attributes")
    assert Narrower.__doc__.endswith("Attributes\n----------\nx_ : int\n    Something.\n")
    assert "first : int or None, default=2.0" in Narrower.__doc__
    assert isinstance(Described.declared["first"], Parameter)
    assert not hasattr(Described, "first")
    with pytest.raises(ValueError, match=r"^second='c': "):
        Described(second="c").check_declared()


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        (POSITIVE, [1, 0.1, np.float64(2), np.int64(3)], [0, -1.0, np.nan, np.inf, True, "1", None, np.float32(1)]),
        (COUNT, [1, 2.0, np.int32(4)], [0, 1.5, True, "1", None]),
        (real("x", least=0, below=1), [0, 0.5], [1, -0.1]),
        (one_of("a", "b"), ["a"], ["c", 1, None, ["a"], np.array(["a"])]),
        (optional(POSITIVE), [None, 1.0], [0, "a"]),
        (either("x", POSITIVE, one_of("auto")), [1.0, "auto"], [0, "tune", None]),
        (Constraint({"type": "boolean"}, "x"), [True, np.bool_(False)], [0, 1, "true", None, np.array([True])]),
        (LABELS.constraint, [None, [0, 1], ("a",), np.arange(3), range(2)], ["ab", 3]),
        (Constraint({"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}, "x"),
         [[0, 1.0], (1, 2)], [[1], [1, 2, 3], ["a", 1]]),
    ],
)  # fmt: skip
def test_constraints(constraint, good, bad):
    for value in good:
        assert constraint.accepts(value), value
    for value in bad:
        assert not constraint.accepts(value), value
