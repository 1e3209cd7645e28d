"""Typed models of an entry of ``datasets`` and of a protocol in params.yaml.

Light, because the workflow reads them at every start.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pydantic

from privsvm.constraints import COUNT, FLAG, FOLDS, LINE, REPEATS, Constraint, one_of, optional, text
from privsvm.errors import PrivSVMError, nearest_name
from privsvm.models import KeyedError, Model, Obeys, check_model
from privsvm.tables.delimited import DELIMITER
from privsvm.tables.labels import normalise_label, parse_words

# Largest size of a file, packed or not, unless its dataset declares another limit.
MOST_BYTES = 2 << 30
FORMATS = ("csv", "data", "libsvm", "parquet", "npz", "mat")

_FLAG = optional(FLAG)


@dataclass(frozen=True)
class Bounds:
    """Public bounds of the features in the units of the file: one number for all features, or one for each."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _number(value: Any) -> float:
    # Text that is a number counts as one.
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number; give a number")
    return number


def parse_bounds(value: Any) -> Bounds:
    """Read ``[low, high]`` or ``{lower: ..., upper: ...}``; raise ValueError for anything else."""
    if isinstance(value, Mapping):
        for key in value:
            if key not in ("lower", "upper"):
                raise KeyedError(f"bounds.{key}", f"unknown key; {nearest_name(str(key), ['lower', 'upper'])}")
        pair: list[Any] = [value.get("lower"), value.get("upper")]
    else:
        pair = list(value) if _is_list(value) and len(value) == 2 else [None, None]
    if None in pair:
        raise ValueError(f"{value!r} is not a pair; write [low, high] or {{lower: [...], upper: [...]}}")
    lower, upper = (tuple(map(_number, side if _is_list(side) else [side])) for side in pair)
    if len(lower) != len(upper):
        raise ValueError(f"{len(lower)} lower and {len(upper)} upper bounds; give one of each per feature")
    for index, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if low > high or (low == high and len(lower) == 1):
            raise ValueError(
                f"lower bound {low} of feature {index + 1} is not below upper bound {high}; swap or widen them"
            )
    return Bounds(lower, upper)


def _parse_range(value: Any) -> tuple[float, float]:
    if not _is_list(value) or len(value) != 2:
        raise ValueError(f"{value!r} is not a pair; write [low, high]")
    low, high = map(_number, value)
    if low >= high:
        raise ValueError(f"{low} is not below {high}; swap them")
    return low, high


def _parse_groups(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} is not a mapping; write {{class: [label, label]}}")
    groups: dict[str, tuple[str, ...]] = {}
    seen: dict[str, str] = {}
    for key, labels in value.items():
        group = normalise_label(key)
        groups[group] = tuple(map(_parse_word, labels if _is_list(labels) else [labels]))
        for label in groups[group]:
            if label in seen:
                raise ValueError(f"label {label!r} is in {seen[label]!r} and {group!r}; keep it in one group")
            seen[label] = group
    if len(groups) == 1:
        raise ValueError(f"one class only, {next(iter(groups))!r}; name at least two classes")
    return groups


def _parse_word(value: Any) -> str:
    return normalise_label(parse_words([value])[0])


def _parse_classes(value: Any) -> tuple[str, ...]:
    if not _is_list(value) or len(value) < 2:
        raise ValueError(f"{value!r}; list every class that may occur, at least two")
    return tuple(map(normalise_label, parse_words(value)))


def _parse_sha256(value: Any) -> str:
    digest = str(value).lower().removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ValueError(f"{digest!r} is not 64 hexadecimal digits; copy it again")
    return digest


def _parse_encoding(value: Any) -> str:
    try:
        # Encode a text: some of Python's codecs only turn bytes into bytes.
        "a".encode(str(value))
    except (LookupError, ValueError):
        raise ValueError(f"{value!r} is no encoding of text; give one such as utf-8, latin-1 or cp1252") from None
    return str(value)


def _parse_columns(value: Any) -> tuple[int | str, ...]:
    columns = tuple(value) if _is_list(value) else (value,)
    if None in columns or not all(map(_COLUMN.accepts, columns)):
        raise ValueError(f"{value!r}; {_COLUMN.wish}, or a list of them")
    return columns


def _parse_parts(value: Any) -> tuple[str, ...]:
    roles = tuple(value) if _is_list(value) else (value,)
    if not roles or not all(isinstance(role, str) for role in roles) or len(set(roles)) != len(roles):
        raise ValueError(f"{value!r}; name each part once")
    return roles


def _optional(parse: Any) -> Any:
    """Apply `parse` to any value but null."""
    return pydantic.PlainValidator(lambda value: None if value is None else parse(value))


_COLUMN = Constraint(
    {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
    "give a column name or a position (0 is the first)",
)


_TEST_SIZE = Constraint(
    {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, COUNT.schema]},
    "give a fraction between 0 and 1 or a number of rows",
)


class Section(Model):
    """A frozen mapping with fixed keys, such as the protocols, which split rows into training and test rows; a base."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Holdout(Section):
    """Random test rows."""

    kind: Literal["holdout"] = "holdout"
    repeats: Annotated[int, Obeys(REPEATS)] = 1
    test_size: Annotated[float | int, Obeys(_TEST_SIZE)] = 0.2
    stratified: Annotated[bool, Obeys(FLAG)] = False


class KFold(Section):
    """Each row is a test row once in every repeat."""

    kind: Literal["k_fold"] = "k_fold"
    folds: Annotated[int, Obeys(FOLDS)] = 5
    repeats: Annotated[int, Obeys(REPEATS)] = 1
    stratified: Annotated[bool, Obeys(FLAG)] = False


class Given(Section):
    """The parts of the files."""

    kind: Literal["given"] = "given"
    train: Annotated[str, Obeys(text("must name a part"))] = "train"
    test: Annotated[str, Obeys(text("must name a part"))] = "test"


class Resubstitution(Section):
    """The training rows are the test rows."""

    kind: Literal["resubstitution"] = "resubstitution"


Protocol = Holdout | KFold | Given | Resubstitution
PROTOCOLS: Mapping[str, type[Protocol]] = {
    "holdout": Holdout,
    "k_fold": KFold,
    "given": Given,
    "resubstitution": Resubstitution,
}


def parse_protocol(value: Any) -> Protocol:
    """Check a protocol and fill in its defaults.

    A mapping such as ``{"kind": "holdout", "repeats": 10}`` has fields of one of `PROTOCOLS`; a kind alone stands for
    its defaults. Raises PrivSVMError if the kind or a key is unknown, or a value makes no sense.
    """
    if isinstance(value, Protocol):
        return value
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping) or "kind" not in value:
        raise PrivSVMError(f"protocol: {value!r} has no `kind`; known: {', '.join(PROTOCOLS)}")
    kind = value["kind"]
    if not isinstance(kind, str) or kind not in PROTOCOLS:
        raise PrivSVMError(f"protocol.kind: unknown protocol {kind!r}; {nearest_name(str(kind), PROTOCOLS)}")
    return check_model(PROTOCOLS[kind], dict(value), "protocol")


# A field of a model that holds a protocol.
ParsedProtocol = Annotated[Protocol, pydantic.BeforeValidator(parse_protocol)]


class Settings(Model):
    """Settings of any dataset; the dataset's own value replaces null and missing ones."""

    scaling: Annotated[str | None, Obeys(optional(one_of("none", "bounds", "min_max", "z_score")))] = None
    fit_on: Annotated[str | None, Obeys(optional(one_of("training_rows", "all_rows")))] = None
    range: Annotated[tuple[float, float] | None, _optional(_parse_range)] = None
    bounds: Annotated[Bounds | None, _optional(parse_bounds)] = None
    positive: Annotated[str | None, _optional(_parse_word)] = None
    groups: Annotated[dict[str, tuple[str, ...]] | None, _optional(_parse_groups)] = None
    missing: Annotated[str | None, Obeys(optional(one_of("error", "drop_rows", "drop_columns", "zero")))] = None
    protocol: Annotated[Protocol | None, _optional(parse_protocol)] = None
    parts: Annotated[tuple[str, ...] | None, _optional(_parse_parts)] = None


class OwnSettings(Settings):
    """Settings of own data."""

    path: Annotated[str | None, Obeys(optional(LINE))] = None
    schema_: Annotated[Any, pydantic.Field(alias="schema")] = None
    url: Annotated[str | None, Obeys(optional(LINE))] = None
    sha256: Annotated[str | None, _optional(_parse_sha256)] = None
    format: Annotated[str | None, Obeys(optional(one_of(*FORMATS)))] = None
    label: Annotated[int | str | None, Obeys(_COLUMN)] = None
    features: Annotated[str | None, Obeys(optional(LINE))] = None
    classes: Annotated[tuple[str, ...] | None, _optional(_parse_classes)] = None
    delimiter: Annotated[str | None, Obeys(optional(DELIMITER))] = None
    encoding: Annotated[str | None, _optional(_parse_encoding)] = None
    header: Annotated[bool | None, Obeys(_FLAG)] = None
    drop_columns: Annotated[tuple[int | str, ...], pydantic.PlainValidator(_parse_columns)] = ()
    member: Annotated[str | None, Obeys(optional(LINE))] = None
    max_bytes: Annotated[int | None, Obeys(optional(COUNT))] = None
    n_features: Annotated[int | None, Obeys(optional(COUNT))] = None
    n_rows: Annotated[int | None, Obeys(optional(COUNT))] = None
    prescaled: Annotated[bool | None, Obeys(_FLAG)] = None
    share: Annotated[bool | None, Obeys(_FLAG)] = None


def check_settings(name: str, settings: Mapping[str, Any], user_supplied: bool) -> Settings:
    """Validate the settings of one dataset, `OwnSettings` if it is the user's own.

    Raises PrivSVMError, in one line, for the first problem.
    """
    for key in settings:
        if not user_supplied and key in OwnSettings.model_fields and key not in Settings.model_fields:
            raise PrivSVMError(f"datasets.{name}.{key}: only for own data; remove it or add `path` or `url`")
    if settings.get("share") is not None and settings.get("path") is None:
        raise PrivSVMError(f"datasets.{name}.share: what has a `url` counts as public; put it into data/own, as `path`")
    return check_model(OwnSettings if user_supplied else Settings, dict(settings), f"datasets.{name}")
