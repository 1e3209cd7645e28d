"""Permitted values of a parameter: one declaration for the check in `fit`, for params.yaml and for the docs.

Imports the standard library only, because the workflow reads params.yaml at every start.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privsvm.errors import nearest_name

# Packages whose classes hold the values that they show. Below, plain classes that others derive from, and the method of
# each that reads the stored value; without one its constructor does.
_PACKAGES = ("builtins", "collections", "datetime", "decimal", "fractions", "numpy", "pandas", "pyarrow", "scipy")
_STORED = {
    **dict.fromkeys(("builtins.bytes", "builtins.list", "builtins.tuple"), "__iter__"),
    **{"builtins.str": "__str__", "builtins.int": "__int__", "builtins.float": "__float__", "builtins.dict": "items"},
    **{"decimal.Decimal": "__str__", "numpy.ndarray": "__array__", "pandas.DataFrame": "", "pandas.Series": ""},
    **dict.fromkeys(("scipy.sparse.sparray", "scipy.sparse.spmatrix"), ""),
}
_SIMPLE = (str, int, float, bool, type(None))
# Whole numbers of any kind, and numbers of double precision.
_NUMBERS: tuple[Any, ...] = (numbers.Integral, float)


def is_trusted(value: Any, *packages: str) -> bool:
    """Tell whether the class of a value is one of some packages' own; by default of those that hold plain values.

    A derived class may answer anything: one row in place of all, or another number at each look.
    """
    kind = type(value)
    # A class may say any module of itself.
    own = value is None or getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    if not own or kind.__module__.partition(".")[0] not in (packages or _PACKAGES):
        return False
    # One object may have methods of its own, or public constants. (Masked arrays write all of theirs.)
    written = getattr(value, "__dict__", None)
    if not written or kind.__module__.startswith("numpy."):
        return True
    return not any(hasattr(kind, name) and (name[:1] != "_" or callable(getattr(kind, name))) for name in written)


def plain(value: Any, items: bool = True) -> Any:
    """Rebuild a value of a derived class, and `items` that are, as its plain base class; return others unchanged."""
    if not is_trusted(value):
        for place, method in _STORED.items():
            module, _, name = place.rpartition(".")
            # A package that nobody has imported made no value.
            kind = getattr(sys.modules.get(module), name, None)
            if kind is not None and issubclass(type(value), kind):
                stored = getattr(kind, method)(value) if method else value
                kind = sys.modules[module].csr_array if module == "scipy.sparse" else kind
                # Even of this kind, one may have methods of its own.
                value = stored if method and type(stored) is kind else kind(stored)
                break
    kind = type(value)
    if kind.__name__ == "LazyFrame":
        raise ValueError(
            f"X is a LazyFrame of {kind.__module__.partition('.')[0]}, which has no rows yet: pass X.collect()"
        )
    pandas = sys.modules.get("pandas")
    if pandas is not None and kind in (pandas.DataFrame, pandas.Series):
        for dtype in value.dtypes if kind is pandas.DataFrame else [value.dtype]:
            if not is_trusted(dtype):
                raise ValueError(
                    f"{kind.__name__}: a column is of your type {dtype}; give it as one of pandas or NumPy"
                )
    objects = kind.__name__ == "ndarray" and value.dtype == object
    if items and (kind in (list, tuple, dict) or objects):
        given = [*value, *value.values()] if kind is dict else value.ravel().tolist() if objects else value
        rebuilt = [item if type(item) in _SIMPLE else plain(item) for item in given]
        if not all(map(operator.is_, given, rebuilt)):
            if objects:
                return sys.modules["numpy"].frompyfunc(plain, 1, 1)(value)
            return dict(zip(rebuilt, rebuilt[len(value) :], strict=False)) if kind is dict else kind(rebuilt)
    return value


@dataclasses.dataclass(frozen=True)
class Constraint:
    """The values that a parameter may have.

    `schema` is a JSON schema: ``type``, ``enum``, ``anyOf``, limits, ``items`` and ``minItems``. `wish` continues the
    message "must be ...", and `words` is the type for the docs. Also allowed, but not in params.yaml, are Python
    objects of the `types`, and values for which `also` is true.
    """

    schema: Mapping[str, Any]
    wish: str
    words: str = ""
    types: tuple[type, ...] = ()
    also: Callable[[Any], bool] | None = None

    def accepts(self, value: Any) -> bool:
        """Whether a parameter may have this value."""
        if callable(value) and self.also is not None and self.also(value):
            return True
        # By its class: a value may claim anything of itself.
        if type(value) not in _SIMPLE and (
            not (is_trusted(value) or type(value) in self.types) or plain(value) is not value
        ):
            return False
        if isinstance(value, self.types) or (self.also is not None and self.also(value)):
            return True
        return _matches(self.schema, value)

    def check(self, name: str, value: Any) -> Any:
        """Return a value that is accepted; raise ValueError with the parameter's name and value for another."""
        if not self.accepts(value):
            # Arrays are shown on one line, and not all of them.
            shown = textwrap.shorten(repr(stored := plain(value)), 100, placeholder="...")
            derived = "is of a derived class, or holds one: give plain values"
            raise ValueError(f"{name}={shown}: {self.problem(value) if stored is value else derived}")
        return value

    def problem(self, value: Any) -> str:
        """Say what would be right in place of a value that is not accepted."""
        options = self.schema.get("anyOf", [self.schema])
        words = [str(word) for option in options for word in option.get("enum", ())]
        if len(options) == 1 and len(words) > 1:
            return nearest_name(str(value), words)
        if words and isinstance(value, str):
            hint = nearest_name(value, words)
            return f"{self.wish}; {hint}" if hint.startswith("did you mean") else self.wish
        return self.wish


def _matches(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value obeys a JSON schema of the kinds used here."""
    if "anyOf" in schema:
        return any(_matches(option, value) for option in schema["anyOf"])
    if "enum" in schema:
        return (value is None or isinstance(value, str)) and value in schema["enum"]
    kind = schema["type"]
    if kind in ("number", "integer"):
        return (
            isinstance(value, _NUMBERS)
            and not isinstance(value, bool)
            and -sys.float_info.max <= value <= sys.float_info.max
            and (kind == "number" or value == int(value))
            and bool(value > schema.get("exclusiveMinimum", -math.inf))
            and bool(value >= schema.get("minimum", -math.inf))
            and bool(value < schema.get("exclusiveMaximum", math.inf))
            and bool(value <= schema.get("maximum", math.inf))
        )
    if kind == "array":
        # NumPy's arrays count as lists.
        items = value.tolist() if hasattr(value, "tolist") else value
        if not isinstance(items, Sequence) or isinstance(items, str) or len(items) < schema.get("minItems", 0):
            return False
        return len(items) <= schema.get("maxItems", len(items)) and all(
            _matches(schema["items"], item) for item in items if "items" in schema
        )
    if kind == "boolean":
        return isinstance(value, bool) or (str(getattr(value, "dtype", "")) == "bool" and value.ndim == 0)
    if kind == "string":
        return isinstance(value, str) and re.search(schema.get("pattern", ""), value) is not None
    return value is None


def real(
    wish: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> Constraint:
    """Allow finite numbers, above or at least one limit, below or at most another."""
    limits = {"exclusiveMinimum": above, "minimum": least, "exclusiveMaximum": below, "maximum": most}
    schema = {"type": "number", **{name: limit for name, limit in limits.items() if limit is not None}}
    return Constraint(schema, wish, "float")


def whole(least: int, most: int | None = None) -> Constraint:
    """Allow whole numbers, of 64 bits where no limit is given."""
    limit = "below 2^63" if most is None else f"at most {most}"
    schema = {"type": "integer", "minimum": least, "maximum": 2**63 - 1 if most is None else most}
    return Constraint(schema, f"must be a whole number of at least {least} and {limit}", "int")


def one_of(*words: str) -> Constraint:
    """Allow some words."""
    listed = ", ".join(f'"{word}"' for word in words)
    return Constraint({"enum": list(words)}, f"must be one of {listed}", f"{{{listed}}}")


def text(wish: str, pattern: str = "(?s:.*)") -> Constraint:
    """Allow texts of which the whole matches a pattern."""
    return Constraint({"type": "string", "pattern": rf"\A(?:{pattern})\Z"}, wish, "str")


def written(least: int, most: int = 1000, *, breaks: bool = False) -> Constraint:
    """Allow texts of so many characters, all of which a reader sees; `breaks` allows line feeds and tabs among them.

    Not seen are control characters, halves of surrogate pairs, and marks that turn the direction of writing.
    """
    first, wish = (r"\x00-\x08\x0b-\x1f", "") if breaks else (r"\x00-\x1f", "one line, ")
    return text(
        f"must be {wish}{least} to {most} characters, without control characters",
        rf"[^{first}\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]{{{least},{most}}}",
    )


def either(wish: str, *options: Constraint) -> Constraint:
    """Allow values that one of several constraints allows."""
    schemas = [option.schema for option in options]
    types = tuple(name for option in options for name in option.types)
    # {"a", "b"} among other types reads better without its braces.
    words = [option.words.removeprefix("{").removesuffix("}") for option in options]
    return Constraint({"anyOf": schemas}, wish, ", ".join(words[:-1]) + " or " + words[-1], types)


def optional(constraint: Constraint) -> Constraint:
    """Allow values of a constraint, and None."""
    both = either(f"{constraint.wish}, or None", constraint, Constraint({"type": "null"}, "must be None", "None"))
    return dataclasses.replace(both, words=f"{constraint.words} or None")


def with_numpy(constraint: Constraint) -> Constraint:
    """Allow NumPy's numbers of any precision, too: for methods that turn them into float64 first and prove nothing."""

    def allowed(value: Any) -> bool:
        if constraint.also is not None and constraint.also(value):
            return True
        return isinstance(value, numbers.Real) and hasattr(value, "dtype") and _matches(constraint.schema, float(value))

    return dataclasses.replace(constraint, also=allowed)


POSITIVE = real("must be a positive finite number", above=0)
NOT_NEGATIVE = real("must be a finite number of at least 0", least=0)
ANY_NUMBER = real("must be a finite number")
SHARE = real("must lie strictly between 0 and 1", above=0, below=1)
SHARE_KEPT = real("must be at least 0 and below 1", least=0, below=1)
# Far enough from the ends of float64 for the square.
BOUND = real("must lie between 1e-100 and 1e+100", least=1e-100, most=1e100)
COUNT = whole(1)
# Numbers of rows that float64 counts exactly.
ROWS = whole(1, 2**53)
# Every repeat, fold and split is in the files of results.
REPEATS = whole(1, 100_000)
FOLDS = whole(2, 100_000)
# Of paths and addresses.
PRINTED = r"[^\x00-\x1f\x7f\ud800-\udfff]+"
LINE = text("must be a text of one line without control characters", PRINTED)
FLAG = Constraint({"type": "boolean"}, "must be true or false", "bool")

# Of files that others wrote.
NAME = text("must be a name of letters, digits, _ . and -", "[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
VERSION = text("must be a version such as 1.0", "[0-9A-Za-z.!+-]{1,64}")
LABEL = either("must be a number or one line of text", written(0), ANY_NUMBER, FLAG)
DIGEST = text("must be 64 hexadecimal digits", "[0-9a-f]{64}")
DAY = text("must be a day as YYYY-MM-DD", "[0-9]{4}-[0-9]{2}-[0-9]{2}")
