"""Typed models of what users write, with messages of one line that name the key, the value and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast, get_args

import pydantic
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from privsvm.constraints import Constraint
from privsvm.errors import PrivSVMError, nearest_name, printable

__all__ = ["KeyedError", "Model", "Obeys", "check_model", "first_problem", "show_value"]

_LONGEST_VALUE = 200
_RULES: Mapping[str, str] = {
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
}

Checked = TypeVar("Checked", bound="Model")


class KeyedError(ValueError):
    """A problem with one key of a mapping, that a validator of the whole found."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


class Obeys:
    """Makes a field obey a constraint: ``Annotated[float, Obeys(POSITIVE)]``. Nothing is converted."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    def _check(self, value: Any) -> Any:
        if not self.constraint.accepts(value):
            wish = self.constraint.problem(value).replace("None", "null")
            raise PydanticCustomError("constraint", "{wish}", {"wish": wish})
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Return pydantic's validator."""
        return core_schema.no_info_plain_validator_function(self._check)


class Model(pydantic.BaseModel):
    """A mapping without unknown keys; a base."""

    model_config = pydantic.ConfigDict(extra="forbid")


def check_model(model: type[Checked], values: Any, where: str = "") -> Checked:
    """Validate a mapping.

    `where` is the key of the mapping, for messages: ``"datasets.wine"``. Raises PrivSVMError, one line for the first
    problem: the key, the value and the remedy.
    """
    try:
        return model.model_validate(values)
    except pydantic.ValidationError as invalid:
        raise PrivSVMError(first_problem(invalid, where, model=model)) from None


def first_problem(
    invalid: pydantic.ValidationError,
    where: str = "",
    *,
    joint: str = ".",
    model: Any = None,
    rules: Mapping[str, str] = _RULES,
    missing: str = "add it (see docs/parameters.md)",
    unknown: str = "",
) -> str:
    """Write the first problem of a mapping in one line: key, value and rule.

    `where` names the mapping and `joint` stands before a key in it. `rules` are texts by type of error, for those of
    pydantic. `missing` and `unknown` are remedies for keys; without the latter, the keys of `model` give a hint.
    """
    error = min(invalid.errors(include_url=False), key=lambda error: [str(item) for item in error["loc"]])
    kind, path = error["type"], [str(item) for item in error["loc"]]
    if path and path[-1] == "[key]":
        # A name that cannot be one: it is the value.
        path = path[:-2]
    start = f"{where}{joint}" if where else ""
    key = printable(start + ".".join(path) if path else where)
    if kind == "json_invalid":
        return f"{key}: not valid JSON ({error['ctx']['error']})"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{key} is not a known key; {unknown or nearest_name(path[-1], _fields(model, path[:-1]))}"
    if kind == "missing":
        parent = printable(start + ".".join(path[:-1]) if path[:-1] else where)
        return f"{parent}{': ' if parent else ''}the key {path[-1]!r} is missing; {missing}"
    if kind == "value_error":
        # A validator's text is the whole message.
        problem = error["ctx"]["error"]
        if isinstance(problem, PrivSVMError):
            return f"{start}{problem}"
        return f"{start}{problem.key}: {problem}" if isinstance(problem, KeyedError) else f"{key}: {problem}"
    return f"{key}: {show_value(error['input'])} is not valid; {rules.get(kind, error['msg'])}"


def show_value(value: Any) -> str:
    """Write a value so that it fits a line."""
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_VALUE else f"{shown[: _LONGEST_VALUE - 3]}..."


def _fields(model: Any, path: list[str]) -> list[str]:
    """Names of the fields at a place of a model."""
    for key in path:
        if isinstance(model, type) and issubclass(model, pydantic.BaseModel) and key in model.model_fields:
            model = model.model_fields[key].annotation
        else:
            # A value of a mapping.
            model = (get_args(model) or (None,))[-1]
        if type(None) in get_args(model):
            model = get_args(model)[0]
    return list(cast(Any, model).model_fields) if hasattr(model, "model_fields") else []
