"""Parameters of an estimator, declared once; constructor, checks, documentation and params.yaml follow from them.

A class that inherits from `DeclaredEstimator` declares each parameter in its body::

    C: float = parameter(1.0, POSITIVE, "Weight of one row's loss.")

It gets the keyword-only constructor that scikit-learn requires, the section Parameters of its docstring, and
`check_declared`. Its section Attributes goes on with its bases' attributes; Notes that it lacks come from its nearest
base. Parameters are inherited. Parameters of many classes are declared here.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator

from privsvm.base.budget import refuse_uncounted
from privsvm.constraints import BOUND, FLAG, POSITIVE, SHARE, Constraint, either, one_of, optional, whole

_WIDTH = 116
_SECTIONS = ("Parameters", "Attributes", "Notes", "References", "Examples")

# Effect of a parameter: on the model or its record, a model's answers, time, the user's consent, or the draw.
Effect = Literal["model", "answers", "time", "consent", "draw"]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of an estimator.

    `effect` names its effect. A `common` one is set by the workflow for all methods, so that an entry of params.yaml
    does not.
    """

    default: Any
    constraint: Constraint
    doc: str
    effect: Effect = "model"
    common: bool = False


def parameter(default: Any, constraint: Constraint, doc: str, *, effect: Effect = "model", common: bool = False) -> Any:
    """Declare a parameter; for the type checker, the value is the default. See `Parameter`."""
    return Parameter(default, constraint, doc, effect, common)


@dataclass_transform(kw_only_default=True)
class DeclaredEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters are declared in its class body; a base."""

    declared: ClassVar[Mapping[str, Parameter]] = {}
    _own_parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        class_parameters = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
        for name in class_parameters:
            delattr(cls, name)
        cls._own_parameters = class_parameters
        declared: dict[str, Parameter] = {}
        for base in cls.__mro__:
            for name, value in vars(base).get("_own_parameters", {}).items():
                declared.setdefault(name, value)
        cls.declared = declared
        # A class may write its own constructor.
        if cls.__init__ is object.__init__ or hasattr(cls.__init__, "declared"):
            cls.__init__ = _constructor(cls, declared)  # type: ignore[method-assign]
        cls.__doc__ = _documentation(cls, declared)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def check_declared(self) -> None:
        """Check all parameters, before a model is trained or released.

        Raises ValueError, naming the parameter and its value, for the first that is not as declared; and
        BudgetExceededError in a budget, outside of a fit that it counts.
        """
        refuse_uncounted(self)
        for name, item in self.declared.items():
            item.constraint.check(name, getattr(self, name))


def _constructor(cls: type, declared: Mapping[str, Parameter]) -> Callable[..., None]:
    """Make a keyword-only ``__init__`` that only stores its arguments."""
    defaults = {name: item.default for name, item in declared.items()}

    def initialise(self: Any, **parameters: Any) -> None:
        unknown = parameters.keys() - defaults.keys()
        if unknown:
            raise TypeError(f"{cls.__name__} has no parameter {min(unknown)!r}; it has {', '.join(defaults)}")
        for name, value in (defaults | parameters).items():
            setattr(self, name, value)

    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        annotations |= inspect.get_annotations(base)
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    listed = [inspect.Parameter("self", positional)] + [
        inspect.Parameter(name, keyword, default=default, annotation=annotations.get(name, inspect.Parameter.empty))
        for name, default in defaults.items()
    ]
    initialise.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    initialise.declared = tuple(declared)  # type: ignore[attr-defined]
    initialise.__name__, initialise.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
    initialise.__module__ = cls.__module__
    return initialise


def _documentation(cls: type, declared: Mapping[str, Parameter]) -> str | None:
    """Complete a class's docstring: its Parameters, the Attributes of its bases, and their Notes if it has none."""
    doc = vars(cls).get("__doc__")
    if doc is None or not declared:
        return doc
    summary, sections = _sections(doc)
    lines = []
    for name, item in declared.items():
        default = f'"{item.default}"' if isinstance(item.default, str) else repr(item.default)
        lines.append(f"{name} : {item.constraint.words}, default={default}")
        lines += textwrap.wrap(item.doc, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    sections["Parameters"] = "\n".join(lines)
    attributes = [sections.get("Attributes", "")]
    for base in cls.__mro__[1:]:
        if issubclass(base, DeclaredEstimator):
            inherited = _sections(vars(base).get("__doc__") or "")[1]
            attributes.append(inherited.get("Attributes", ""))
            if "Notes" in inherited:
                sections.setdefault("Notes", inherited["Notes"])
    if any(attributes):
        sections["Attributes"] = _join_entries(attributes)
    written = [f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in _SECTIONS if name in sections]
    return "\n\n".join([summary, *written]) + "\n"


def _join_entries(texts: Iterable[str]) -> str:
    """Join the entries of sections; of two entries for one name, keep the first."""
    entries: list[str] = []
    described: set[str] = set()
    for entry in itertools.chain.from_iterable(re.split(r"\n(?=\S)", text) for text in texts if text):
        names = set(entry.partition(" : ")[0].split(", "))
        if not names & described:
            entries.append(entry)
            described |= names
    return "\n".join(entries)


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into what stands before its sections, and these by title."""
    summary, *title_text_pairs = re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(doc), flags=re.MULTILINE)
    return summary.strip(), {
        title: text.strip("\n") for title, text in zip(title_text_pairs[::2], title_text_pairs[1::2], strict=True)
    }


# Parameters of several classes.

C_PUBLIC: Any = parameter(
    0.01, POSITIVE, "Weight of one row's loss (the papers' C/n). Public: choose it without looking at the data."
)
EPSILON: Any = parameter(1.0, POSITIVE, "Privacy budget of one release.", common=True)
DELTA: Any = parameter(1e-5, SHARE, "Delta of the guarantee: far below 1 divided by the number of rows.", common=True)
DATA_NORM: Any = parameter(1.0, BOUND, "Bound on the norm of a row; longer rows are scaled down to it.")
NEIGHBOURS: Any = parameter(
    "replace_one", one_of("replace_one", "add_remove"), "The relation between neighbouring datasets.", common=True
)
GAP: Any = parameter(
    None,
    optional(POSITIVE),
    "Square of the distance to the optimum that a solve certifies; public. None means ``2e-4 C^2 R^2`` for rows of "
    "norm at most R; at least ``1e-10 C^2 R^2``.",
)
ALLOW_UNSOUND: Any = parameter(
    False, FLAG, "Consent to a model whose epsilon is not proved; without it `fit` raises.", effect="consent"
)
ALLOW_COMPOSITION: Any = parameter(
    False,
    FLAG,
    "Consent to fits of clones, which searches and cross-validations of scikit-learn make: the budgets of "
    "all of them add up, and you add them up. What is chosen by their scores is covered on public rows alone. No "
    "effect in a `privsvm.Budget`, which refuses clones.",
    effect="consent",
    common=True,
)
_LIST_OF_LABELS = Constraint(
    {"anyOf": [{"type": "array"}, {"type": "null"}]},
    "must be a list of different labels, or None",
    "sequence or None",
)
CLASSES: Any = parameter(
    None,
    _LIST_OF_LABELS,
    "The public set of labels. None takes it from the training labels, which reveals which labels occur: this needs "
    "``allow_unsound=True``, and the status becomes ``claimed``.",
    common=True,
)
BOUNDS = Constraint(
    {"anyOf": [{"type": "array", "minItems": 2, "maxItems": 2}, {"type": "null"}]},
    "must be (low, high), each a number or one for every feature, or None",
    "(low, high) or None",
)
CLASS_WEIGHT = Constraint(
    {"anyOf": [{"enum": ["balanced"]}, {"type": "null"}]},
    'must be "balanced", None or a mapping from labels to factors',
    'dict, "balanced" or None',
    (dict,),
)
LABELS: Any = parameter(
    None,
    _LIST_OF_LABELS,
    "The set of labels, in any order; None takes it from the training labels.",
    common=True,
)
N_JOBS: Any = parameter(
    None,
    either("must be a whole number, or None", whole(-(2**31)), Constraint({"type": "null"}, "", "None")),
    "Number of threads; None means 1, -1 all cores. The model does not depend on it.",
    effect="time",
    common=True,
)
RANDOM_STATE: Any = parameter(
    None,
    Constraint(
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
        "must be a whole number of at least 0, a numpy.random.Generator or None",
        "int, numpy.random.Generator or None",
        (np.random.Generator,),
    ),
    "Source of the noise. None takes fresh entropy from the operating system, the only choice for a release: whoever "
    "knows a seed can draw the same noise and subtract it. The guarantee says which source it was.",
    effect="draw",
    common=True,
)


def check_consent(allow_unsound: bool, problem: str) -> None:
    """Raise ValueError if the user has not consented to a method whose epsilon does not hold."""
    if not allow_unsound:
        raise ValueError(f"allow_unsound={allow_unsound!r}: {problem}; consent with allow_unsound=True")


def check_bounds(bounds: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return public bounds as two arrays (d,)."""
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features)) for bound in bounds)
    except (TypeError, ValueError):
        low, high = np.ones(1), np.zeros(1)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError(f"bounds={bounds!r}: must be (low, high), finite, low not above high")
    return low, high
