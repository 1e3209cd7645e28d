"""Typed models of what users write, with messages of one line that name the key, the value and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast, get_args

import pydantic
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from privsvm.constraints import Constraint
from privsvm.errors import PrivSVMError, nearest_name, printable

_LONGEST_VALUE = 200
# Remedies for pydantic's types of errors, with the types of JSON and YAML in their names.
_WISHES = {
    **dict.fromkeys(("dataclass_type", "dict_type", "model_type"), "must be a mapping"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("string_too_short", "too_short"), "must not be empty"),
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


def check_model(
    model: type[Checked],
    values: Any,
    where: str = "",
    *,
    page: str = "docs/parameters.md",
    wishes: Mapping[str, str] = MappingProxyType({}),
) -> Checked:
    """Validate a mapping.

    `where` is the key of the mapping, for messages: ``"datasets.wine"``. `page` describes its keys; `wishes` has the
    words for further types of errors. Raises PrivSVMError, one line for the first problem: the key, the value and the
    remedy.
    """
    try:
        return model.model_validate(values)
    except pydantic.ValidationError as errors:
        problem, error = describe_error(errors, where, wishes=wishes)
    if error["type"] == "extra_forbidden":
        *parents, last = map(str, error["loc"])
        problem += f"; {nearest_name(last, _fields(model, parents))}"
    elif error["type"] == "missing":
        problem += f"; add it (see {page})"
    raise PrivSVMError(problem)


def describe_error(
    errors: pydantic.ValidationError,
    where: str = "",
    separator: str = ": ",
    wishes: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, Mapping[str, Any]]:
    """Describe the first of pydantic's errors in one line, and return that error too.

    `where` is the key of the validated mapping. `separator` stands between the key of a mapping and the message of a
    validator of the whole mapping: ``"."`` if such messages begin with a key. `wishes` has the words for further types
    of errors.
    """
    error = min(errors.errors(include_url=False), key=lambda error: [str(item) for item in error["loc"]])
    kind, path, value = error["type"], list(error["loc"]), error["input"]
    if path and path[-1] == "[key]":
        # A name that cannot be one: it is the value.
        path = path[:-2]
    key = _join_keys([where, *path])
    problem = error["ctx"]["error"] if kind in ("value_error", "json_invalid") else None
    if kind == "json_invalid":
        text = f"not valid JSON ({problem})"
    elif kind in ("extra_forbidden", "unexpected_keyword_argument"):
        text = f"{key} is not a known key"
    elif kind == "missing":
        parent = _join_keys([where, *path[:-1]])
        text = f"{parent}{': ' if parent else ''}the key {str(path[-1])!r} is missing"
    elif isinstance(problem, PrivSVMError):
        text = _join_keys([where, str(problem)])
    elif problem is not None:
        # A validator's text is the whole message.
        key = _join_keys([where, problem.key]) if isinstance(problem, KeyedError) else key
        text = f"{key}{(separator if isinstance(value, Mapping) else ': ') if key else ''}{problem}"
    else:
        wish = str(error["msg"]).replace("Input should be", "must be")
        text = f"{key or 'the content'}: {show_value(value)} is not valid; {({**_WISHES, **wishes}).get(kind, wish)}"
    return " ".join(text.split()), error


def _join_keys(keys: Iterable[int | str]) -> str:
    return printable(".".join(str(key) for key in keys if key != ""))


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
