"""A public schema: the declaration of a table's columns, so that its values need not be looked at.

One declaration for `privsvm release`, for own data in params.yaml and for `PublicSchema`. Everything in it is public:
its author takes it from a data dictionary or from common knowledge, not from the rows.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import pydantic

from privsvm.constraints import COUNT, DAY, FLAG, LINE, NAME, Constraint, either, optional, plain, text, written
from privsvm.errors import PrivSVMError, list_names
from privsvm.models import KeyedError, Model, Obeys, check_model
from privsvm.plain_yaml import read_yaml
from privsvm.tables.delimited import DELIMITER, MISSING, parse_number
from privsvm.tables.labels import normalise_label, parse_words

SCHEMA_VERSION = 1

# Forms of a column as a person writes them, shown if a decision is missing.
FORMS = (
    '{bounds: [low, high], fill: middle}, {categories: [a, b], unknown: other}, {date: "%Y-%m-%d", bounds: [first, '
    "last], fill: middle}, {boolean: true, fill: middle} or ignore"
)
# Entries that a draft may leave open, and the words for each.
_DECISIONS = {
    "label": "the column to predict",
    "classes": 'every label that may occur, such as ["no", "yes"]',
    "person": "the column that identifies persons",
    "rows_per_person": "a whole number, 1 if no rule limits the rows of a person",
    "prescaled": "false if the file was not scaled or filled in by statistics of its own rows",
}
# The fill of a column whose missing values count as the middle of its range.
MIDDLE = "middle"
TRUE = ("1", "true", "yes", "y", "t", "on")
FALSE = ("0", "false", "no", "n", "f", "off")

_TEXT, _WORD, _PROSE = written(1), written(0), written(1, 10_000, breaks=True)
_VALUE = Constraint({"anyOf": [{"type": "number"}, _WORD.schema]}, "must be a number or a line of text in quotes")
_FORMATS = either(
    "must be a format of dates, or a list of them",
    LINE,
    Constraint({"type": "array", "items": LINE.schema, "minItems": 1}, ""),
)
_EPOCH = datetime.datetime(1970, 1, 1)


def day_number(value: str, form: str) -> float:
    """Count the days from 1970-01-01 to a date; NaN for other text.

    `form` is a format of `datetime.datetime.strptime`, or ``"iso"``. Days have fractions where the format has a time of
    day. Time zones are left out.
    """
    # strptime takes the digits of all scripts.
    if not value.isascii() and any(sign.isdecimal() and not sign.isascii() for sign in value):
        return math.nan
    try:
        read = datetime.datetime.fromisoformat(value) if form == "iso" else datetime.datetime.strptime(value, form)
        return (read.replace(tzinfo=None) - _EPOCH) / datetime.timedelta(days=1)
    except ValueError:
        return math.nan


def with_point(value: Any) -> Any:
    """Write a number with a point in place of its comma; one with a point is none, being of thousands or in doubt."""
    if not isinstance(value, str):
        return value
    return "" if "." in value else value.replace(",", ".")


def same_word(value: Any, words: Sequence[str]) -> str | None:
    """Return the one of some declared words that a value is; None if it is none."""
    return next((word for word in words if normalise_label(word) == normalise_label(value)), None)


_Words = Annotated[tuple[Annotated[str, Obeys(_WORD)], ...], pydantic.BeforeValidator(parse_words)]
# Words that stand for missing cells; a column may have none.
_Marks = Annotated[
    tuple[Annotated[str, Obeys(_WORD)], ...],
    pydantic.BeforeValidator(lambda value: () if value in ([], ()) else parse_words(value)),
]


class Column(Model):
    """The declaration of one column.

    `bounds` are a public range of two numbers or two dates: values outside count as the nearer end. `date` is the
    format of dates, or ``iso``, or a list of formats, of which the first that fits a cell reads it. `categories` are
    all values that are told apart, and `unknown` is the category of any other value, one of them or one more; None: of
    none. With `numeric`, codes of digits are the same with zeros before them and without: 007 and 7; with
    `ignore_case`, categories in capital and in small letters are. `boolean` columns hold yes and no (or 1 and 0, true
    and false ...). An `ignore` column is left out; with a `date`, it may still say which rows of a person are the
    latest. Cells that are a value of `missing` are missing, whatever their spelling. `fill` replaces a value that is
    missing or cannot be read: a value, or ``middle``, the middle of the range; numbers, dates and booleans must have
    one, and for categories None is the one for unknown values.
    A release with rows held back counts right answers for each category of a `group`, or for yes and no. `looked` marks
    a draft that was made from the values.
    """

    bounds: Annotated[Any, pydantic.PlainValidator(lambda value: value)] = None
    categories: _Words | None = None
    unknown: Annotated[Any, Obeys(optional(_VALUE))] = None
    numeric: Annotated[bool | None, Obeys(optional(FLAG))] = None
    ignore_case: Annotated[bool | None, Obeys(optional(FLAG))] = None
    date: Annotated[Any, Obeys(optional(_FORMATS))] = None
    boolean: Annotated[bool | None, Obeys(optional(FLAG))] = None
    ignore: Annotated[bool | None, Obeys(optional(FLAG))] = None
    missing: _Marks | None = None
    fill: Annotated[Any, pydantic.PlainValidator(lambda value: value)] = None
    group: Annotated[bool | None, Obeys(optional(FLAG))] = None
    looked: Annotated[bool | None, Obeys(optional(FLAG))] = None

    @property
    def kind(self) -> Literal["number", "categories", "date", "boolean", "ignore"]:
        """The column's kind, by the keys that are given."""
        if self.ignore:
            return "ignore"
        if self.categories is not None:
            return "categories"
        if self.date is not None:
            return "date"
        return "boolean" if self.boolean else "number"

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of dates, the first that reads a cell counts."""
        return (self.date,) if isinstance(self.date, str) else tuple(self.date or ())

    def number(self, value: Any) -> float:
        """Turn the value of one cell into a number, NaN where it is none; no value raises or warns."""
        # A cell's error would tell of its row: whatever it is, the cell cannot be read.
        try:
            if self.date is not None:
                if str(getattr(value, "dtype", "")).startswith("datetime64"):
                    # NumPy's own, which Python's functions do not take.
                    value = value.astype("datetime64[us]").item()
                # Through its text: a date is the same number whatever its type is, 20200301.0 beside missing ones too.
                written = normalise_label(value) if isinstance(value, numbers.Real) else str(self._as_text(value))
                days = (day_number(written.strip(), form) for form in self.formats)
                return next((day for day in days if not math.isnan(day)), math.nan)
            if self.boolean:
                word = normalise_label(value).lower()
                return 1.0 if word in TRUE else 0.0 if word in FALSE else math.nan
            if hasattr(value, "item") and not hasattr(value, "mask"):
                value = value.item()
            if not isinstance(value, (str, numbers.Real, decimal.Decimal)):
                # A masked or a complex cell would become a number, with a warning.
                return math.nan
            number = parse_number(value) if isinstance(value, str) else float(value)
        except Exception:
            return math.nan
        return number if math.isfinite(number) else math.nan

    def read(self, value: Any, decimal: str | None = None) -> float:
        """Turn a cell of a file into a number, by the file's decimal mark; see `number`."""
        return self.number(with_point(value) if decimal == "," and self.kind == "number" else value)

    def category_key(self, value: Any) -> str:
        """Write a category the one way that all cells with its meaning share."""
        word = normalise_label(value)
        word = word.casefold() if self.ignore_case else word
        return re.sub("^0+(?=[0-9]+$)", "", word) if self.numeric else word

    def missing_numbers(self, decimal: str | None) -> list[float]:
        """List the numbers that stand for missing cells, by a file's decimal mark."""
        numbers = {read for word in self.missing or () for read in (self.number(word), self.read(word, decimal))}
        return sorted(number for number in numbers if math.isfinite(number))

    @property
    def rounding(self) -> float:
        """How far a number of another program may lie from a mark that it is: days with a time are rounded."""
        return 1e-6 if self.kind == "date" else 0.0

    def leave_out_missing(self, texts: Sequence[str], decimal: str | None = None) -> list[str]:
        """Leave out the texts that stand for missing cells, by the file's or the column's marks."""
        numbers, marks = self.missing_numbers(decimal), {*map(self.category_key, self.missing or ())}
        texts_of_marks = MISSING | {mark.lower() for mark in marks}

        def is_missing(text: str) -> bool:
            if self.kind == "categories":
                return self.category_key(text) in {"", *marks}
            return normalise_label(text).lower() in texts_of_marks or self.read(text, decimal) in numbers

        missing = {*filter(is_missing, {*texts})}
        return [text for text in texts if text not in missing]

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers."""
        if self.kind == "boolean":
            return 0.0, 1.0
        low, high = self.bounds
        return self.number(low), self.number(high)

    @property
    def fill_number(self) -> float:
        """Value of a missing number, date or boolean; the middle of the range where no fill is declared."""
        low, high = self.limits
        return 0.5 * low + 0.5 * high if self.fill in (None, MIDDLE) else self.number(self.fill)

    @property
    def words(self) -> tuple[str, ...]:
        """All categories, with the one for unknown values."""
        categories = self.categories or ()
        return (
            categories
            if self.unknown is None or same_word(self.unknown, categories) is not None
            else (*categories, self.unknown)
        )

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Column:
        given = [name for name in ("categories", "date", "boolean", "ignore") if getattr(self, name)]
        if len(given) > 1 and given != ["date", "ignore"]:
            raise ValueError(f"{given[0]} and {given[1]} exclude each other; keep one")
        kind = self.kind
        if self.unknown is not None:
            if kind != "categories":
                raise ValueError("unknown goes with categories; remove it")
            self.unknown = same_word(self.unknown, self.categories or ()) or parse_words([self.unknown])[0]
        keys = {*map(self.category_key, self.words)}
        for key, what in (("numeric", "zeros before them"), ("ignore_case", "capital letters")):
            if getattr(self, key) and len(keys) < max(1, len(self.words)):
                raise ValueError(f"{key} goes with categories that differ by more than {what}; remove it")
        for form in self.formats:
            if form != "iso" and "%" not in form:
                written = re.sub("d+|D+", "%d", re.sub("m+|M+", "%m", re.sub("[yYjJ]+", "%Y", form)))
                raise ValueError(f"date {form!r} names no part of a date; write {written}")
            try:
                day_number("", form)
            except re.error:
                raise ValueError(f"date {form!r} names a part of a date twice; name each once") from None
        if self.group and kind not in ("categories", "boolean"):
            raise ValueError("group goes with categories or a boolean; remove it")
        if kind in ("number", "date"):
            self._check_bounds()
        elif self.bounds is not None:
            raise ValueError(f"bounds do not go with {kind}; remove them")
        for mark in self.missing or ():
            if self.category_key(mark) in keys or (kind == "boolean" and not math.isnan(self.number(mark))):
                raise ValueError(f"missing names {mark!r}, a value of such a column; give it a `missing` of its own")
        if self.fill is not None:
            self._check_fill()
        return self

    def _check_bounds(self) -> None:
        if self.bounds is None:
            raise ValueError(f"no public range is declared; write one of {FORMS}")
        pair = isinstance(self.bounds, (list, tuple)) and len(self.bounds) == 2
        if not pair or any(isinstance(end, bool) for end in self.bounds):
            raise ValueError(f"bounds {self.bounds!r} are not a pair; write [low, high]")
        # YAML reads some dates as dates.
        self.bounds = [self._as_text(end) for end in self.bounds]
        low, high = self.limits
        # A quarter of the width is divided by.
        if not 0.25 * low < 0.25 * high:
            what = f"dates of the format {' or '.join(self.formats)}" if self.kind == "date" else "finite numbers"
            raise ValueError(f"bounds {list(map(str, self.bounds))} must be two {what}, the lower first; correct them")

    def _as_text(self, value: Any) -> Any:
        if not isinstance(value, datetime.date):
            return value
        return value.isoformat() if self.formats[:1] in ((), ("iso",)) else value.strftime(self.formats[0])

    def _check_fill(self) -> None:
        self.fill = self._as_text(self.fill)
        if isinstance(self.fill, bool) and self.kind != "boolean":
            raise ValueError(f"fill {self.fill!r} is a truth value; write a value of such a column")
        if self.kind == "categories":
            word = same_word(self.fill, self.words)
            if word is None:
                raise ValueError(f"fill {self.fill!r} is none of the categories; name one of them")
            self.fill = word
        elif self.kind == "ignore" or (self.fill != MIDDLE and math.isnan(self.number(self.fill))):
            raise ValueError(f"fill {self.fill!r} is not a value of such a column; write one, or middle")


class Group(NamedTuple):
    """A column whose values are groups of rows: its first feature, and the words of the groups."""

    name: str
    first: int
    words: tuple[str, ...]
    is_boolean: bool


class CardText(Model):
    """Statements on the card of a model that nobody can compute.

    They are its purpose, who may use it, how, and how not (`intended_use`), who answers for it (`owner`), where to ask
    (`contact`), and the last day of use, as YYYY-MM-DD (`expires`).
    """

    purpose: Annotated[str | None, Obeys(optional(_PROSE))] = None
    intended_use: Annotated[str | None, Obeys(optional(_PROSE))] = None
    owner: Annotated[str | None, Obeys(optional(_PROSE))] = None
    contact: Annotated[str | None, Obeys(optional(_PROSE))] = None
    expires: str | None = None

    @pydantic.field_validator("expires", mode="before")
    @classmethod
    def _is_day(cls, value: Any) -> Any:
        text = value.isoformat() if isinstance(value, datetime.date) else value
        if text is not None and (not DAY.accepts(text) or math.isnan(day_number(text, "iso"))):
            raise ValueError(f"{value!r} is no day; write it as YYYY-MM-DD")
        return text


class Schema(Model):
    """The declaration of a table.

    `name` is the name of the data set, and the account of the ledger, however the file is named and edited. `classes`
    are the public labels of the column `label`, `positive` the one of two that becomes the second. The column `person`
    identifies persons: the guarantee then speaks of persons, and at most `rows_per_person` rows of a person count: the
    first ones in the file, whatever else they hold, or the latest ones by the date column `latest_by`. `rows` is the
    number of rows, where it is public. `prescaled` says whether the file was scaled, or filled in, by statistics of its
    own rows; unless this is denied, nothing is proved. `missing` holds for all columns that have none of their own, and
    for identifiers of persons: such a row is nobody's.

    `delimiter` and `decimal` describe the file: numbers have "." (None) or "," before their fractions, and no marks of
    thousands. `columns` are all other columns, in the order of the features.
    """

    version: int = SCHEMA_VERSION
    name: Annotated[str, Obeys(NAME)]
    label: Annotated[str, Obeys(_TEXT)]
    classes: _Words
    positive: Annotated[Any, Obeys(optional(_VALUE))] = None
    person: Annotated[str | None, Obeys(optional(_TEXT))] = None
    rows_per_person: Annotated[int | None, Obeys(optional(COUNT))] = None
    latest_by: Annotated[str | None, Obeys(optional(_TEXT))] = None
    rows: Annotated[int | None, Obeys(optional(COUNT))] = None
    prescaled: Annotated[bool | None, Obeys(optional(FLAG))] = None
    delimiter: Annotated[str, Obeys(DELIMITER)] = ","
    decimal: Annotated[str | None, Obeys(optional(text("must be `.` or `,`", "[.,]")))] = None
    missing: _Marks | None = None
    card: CardText | None = None
    columns: dict[Annotated[str, Obeys(_TEXT)], Column]

    @pydantic.model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Name everything that a draft leaves open in one message."""
        if not isinstance(value, Mapping):
            return value
        columns = value.get("columns")
        if isinstance(columns, list) and all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in columns
        ):
            # As `to_json` writes them.
            if len(dict(columns)) < len(columns):
                raise KeyedError("columns", "one name occurs twice; name each column once")
            columns = dict(columns)
            value = {**value, "columns": columns}
        columns = columns if isinstance(columns, Mapping) else {}
        undecided = [name for name in _DECISIONS if value.get(name) == "decide"]
        remedies = [f"{name} is {_DECISIONS[name]}" for name in undecided]
        open_columns = [f"column {name!r}" for name, item in columns.items() if item is None or item == "decide"]
        remedies += [f"a column is one of {FORMS}"] if open_columns else []
        undecided += open_columns
        if undecided:
            need = "needs" if len(undecided) == 1 else "need"
            raise ValueError(f"{', '.join(undecided)} {need} a decision; {'; '.join(remedies)}")
        return value

    @pydantic.field_validator("version", mode="before")
    @classmethod
    def _check_kind(cls, value: Any) -> Any:
        if type(value) is not int or value != SCHEMA_VERSION:
            raise ValueError(f"{value!r} is not {SCHEMA_VERSION}, the only one known here; a newer PrivSVM may read it")
        return value

    @pydantic.field_validator("columns", mode="before")
    @classmethod
    def _check_choice(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        if not isinstance(value, Mapping) or not value:
            raise ValueError("must be a mapping from the name of a column to what it is; add it")
        value = {str(name): {"ignore": True} if item == "ignore" else item for name, item in value.items()}
        strange = [name for name, item in value.items() if not isinstance(item, Mapping)]
        if strange:
            raise ValueError(f"column {strange[0]!r} is {value[strange[0]]!r}; write `ignore` or one of {FORMS}")
        looked = [name for name, item in value.items() if isinstance(item, Mapping) and item.get("looked")]
        if looked:
            raise ValueError(
                f"{_names(looked)} confirmation, being drafted from private rows; put what is public in place of what "
                "was read there, and delete `looked` from each"
            )
        marks = {"missing": info.data["missing"]} if info.data.get("missing") is not None else {}
        return {name: marks | {**item} for name, item in value.items()}

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Schema:
        if len(self.classes) < 2:
            raise KeyedError("classes", f"{list(self.classes)!r}: one class only; name at least two")
        if self.positive is not None:
            positive = same_word(self.positive, self.classes)
            if positive is None or len(self.classes) != 2:
                raise KeyedError("positive", f"{self.positive!r} must be one of two classes; correct it")
            self.positive = positive
        if (self.person is None) != (self.rows_per_person is None):
            raise KeyedError("rows_per_person", "goes with `person`: at most so many rows of one person count; add it")
        if self.latest_by is not None:
            by = self.columns.get(self.latest_by)
            if self.person is None or by is None or by.date is None:
                raise KeyedError(
                    "latest_by", f"{self.latest_by!r} must be a date column of `columns`, beside `person`; correct it"
                )
        for key in ("label", "person"):
            if getattr(self, key) in self.columns:
                raise KeyedError(key, f"{getattr(self, key)!r} is among `columns` too; remove it there")
        if self.label == self.person:
            raise KeyedError("person", "is the label; name another column")
        if not self.features:
            raise KeyedError("columns", "all are ignored; declare at least one")
        unfilled = [
            name for name, column in self.features.items() if column.kind != "categories" and column.fill is None
        ]
        if unfilled:
            raise KeyedError(
                "columns",
                f"{_names(unfilled)} a fill, which stands for missing values; write a usual value, or `fill: "
                f"{MIDDLE}` for the middle of the range",
            )
        return self

    @property
    def features(self) -> dict[str, Column]:
        """The columns that become features."""
        return {name: column for name, column in self.columns.items() if column.kind != "ignore"}

    def person_of(self, cell: Any) -> str:
        """Write an identifier of a person the one way that their rows share; empty for nobody."""
        name = normalise_label(cell)
        return "" if name in map(normalise_label, self.missing or ()) else name

    @property
    def rows_that_count(self) -> str:
        """Say which rows of a person count."""
        most = self.rows_per_person or 1
        return f"the first {most}" if self.latest_by is None else f"the latest {most} by {self.latest_by}"

    @property
    def rules(self) -> list[str]:
        """Say how cells are read, where a declaration changes that."""
        rules: dict[str, list[str]] = {}
        for name, column in self.features.items():
            declared = {
                f"{', '.join(column.missing or ())} count as missing": column.missing,
                f"dates are read as {', else '.join(column.formats)}": len(column.formats) > 1,
                "capital letters count as small ones": column.ignore_case,
            }
            for rule in (rule for rule, is_declared in declared.items() if is_declared):
                rules.setdefault(rule, []).append(name)
        return [f"{rule}: {', '.join(names)}" for rule, names in rules.items()]

    @property
    def indicators(self) -> list[int]:
        """Numbers of the features that have two values: booleans, and each category."""
        kinds = [column.kind for column in self.features.values() for _ in column.words or [None]]
        return [place for place, kind in enumerate(kinds) if kind in ("boolean", "categories")]

    @property
    def groups(self) -> list[Group]:
        """The columns for whose values right answers are counted; a category that is none is the last group."""
        found, first = [], 0
        for name, column in self.features.items():
            words = ("no", "yes") if column.kind == "boolean" else column.words
            if column.group:
                others = () if column.kind == "boolean" or column.unknown is not None else ("none of these",)
                found.append(Group(name, first, (*words, *others), column.kind == "boolean"))
            first += len(column.words) or 1
        return found

    @property
    def class_order(self) -> tuple[str, ...]:
        """The classes in the order of their codes: the positive one last."""
        if self.positive is None:
            return self.classes
        return (*(name for name in self.classes if name != self.positive), str(self.positive))

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON values, from which `parse_schema` makes the same."""
        content = {name: _json(value) for name, value in vars(self).items() if name != "columns" and value is not None}
        # A list: canonical JSON sorts the keys of mappings, and the features have this order.
        return content | {"columns": [[name, _plain(column)] for name, column in self.columns.items()]}


def _plain(column: Column) -> Any:
    if column.kind == "ignore" and column.date is None:
        return "ignore"
    return _json(column)


def _json(value: Any) -> Any:
    if isinstance(value, Model):
        return {name: _json(item) for name, item in value if item is not None}
    if isinstance(value, (tuple, list)):
        return [_json(item) for item in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def _names(columns: list[str]) -> str:
    return f"columns {list_names(columns)} need" if len(columns) > 1 else f"column {list_names(columns)} needs"


def parse_schema(values: Any, where: str = "schema") -> Schema:
    """Check a declaration.

    `where` names it in messages. Raises PrivSVMError, one line; where columns need a decision it names all of them.
    """
    schema = check_model(Schema, _plain_declaration(values), where)
    for name, column in schema.features.items():
        if column.kind not in ("number", "date"):
            continue
        if not column.limits[0] <= column.fill_number <= column.limits[1]:
            raise PrivSVMError(
                f"{where}.columns.{name}: fill {column.fill!r} is outside of the bounds; write a value between them"
            )
    return schema


def _plain_declaration(value: Any) -> Any:
    """Rebuild a declaration from plain data: a derived class could read cells in its own way."""
    value = plain(value)
    if isinstance(value, Model):
        return _plain_declaration({name: item for name, item in vars(value).items() if item is not None})
    return {name: _plain_declaration(item) for name, item in value.items()} if isinstance(value, Mapping) else value


def read_schema(path: str | os.PathLike[str], dataset: str | None = None) -> Schema:
    """Read a schema from a YAML file; see `parse_schema`.

    The file is a schema, or a params.yaml with the dataset whose `schema` is meant.
    """
    if dataset is None:
        return parse_schema(read_yaml(path, "write a draft with `privsvm schema <table>`")[0], str(path))
    try:
        declared = read_yaml(path)[0]["datasets"][dataset]["schema"]
        named = {"name": dataset, **declared}
    except (KeyError, TypeError):
        raise PrivSVMError(f"{path}: datasets.{dataset} has no `schema`; write one there") from None
    return parse_schema(named, f"{path}: datasets.{dataset}.schema")
