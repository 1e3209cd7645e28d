"""Typed models of what users write, with messages of one line that name the key, the value and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast, get_args

import pydantic
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from privsvm.constraints import Constraint
from privsvm.errors import PrivSVMError, nearest_name, printable

__all__ = ["KeyedError", "Model", "Obeys", "check_model", "shown_value"]

_LONGEST_VALUE = 200

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
    except pydantic.ValidationError as errors:
        first_error = min(errors.errors(), key=lambda error: [str(item) for item in error["loc"]])
    path = [str(item) for item in first_error["loc"]]
    if path and path[-1] == "[key]":
        # A name that cannot be one: it is the value.
        path = path[:-2]
    key = printable(".".join([*([where] if where else []), *path]))
    if first_error["type"] == "extra_forbidden":
        raise PrivSVMError(f"{key} is not a known key; {nearest_name(path[-1], _fields(model, path[:-1]))}")
    if first_error["type"] == "missing":
        parent, _, last = key.rpartition(".")
        prefix = f"{parent}: " if parent else ""
        raise PrivSVMError(f"{prefix}the key {last!r} is missing; add it (see docs/parameters.md)")
    if first_error["type"] == "value_error":
        # A validator's text is the whole message.
        problem = first_error["ctx"]["error"]
        named = ".".join([*([where] if where else []), problem.key]) if isinstance(problem, KeyedError) else key
        prefix = f"{where}." if where else ""
        raise PrivSVMError(f"{prefix}{problem}" if isinstance(problem, PrivSVMError) else f"{named}: {problem}")
    raise PrivSVMError(f"{key}: {shown_value(first_error['input'])} is not valid; {_wish(first_error)}")


def shown_value(value: Any) -> str:
    """Write a value so that it fits a line."""
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_VALUE else f"{shown[: _LONGEST_VALUE - 3]}..."


def _wish(error: Mapping[str, Any]) -> str:
    """Say what would be right."""
    wishes = {
        "dict_type": "must be a mapping",
        "model_type": "must be a mapping",
        "list_type": "must be a list",
        "tuple_type": "must be a list",
        "too_short": "must not be empty",
    }
    return wishes.get(str(error["type"]), str(error["msg"]))


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
