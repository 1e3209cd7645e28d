"""A released model as one query, which runs in DuckDB and in SQLite (from 3.35, with its functions of mathematics).

The query reads columns of texts as `privsvm predict` reads a file, and columns of numbers and dates as they are. Each
step is a materialised table: SQLite would otherwise put the text of one step into the next, several times.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from privsvm.errors import PrivSVMError, list_names
from privsvm.release.predicting.exported_scores import TINY, write_scores
from privsvm.release.predicting.model import ReleasedModel, check_names
from privsvm.solvers.features.columns import Columns
from privsvm.tables.labels import letters_to_fold
from privsvm.tables.schema import FALSE, TRUE, Column
from privsvm.tables.tables import category_codes, codes_by_number

# Expressions of each step of reading a column; the names of their results are sent back.
_Steps = Generator[list[str], list[str], list[str]]

# Of SQLite.
_MOST_COLUMNS = 2000
_LARGEST = "1.7976931348623157e308"
_BLANKS = " \t"
# Patterns of the parts of a date, with leading zeros and without.
_PARTS = {
    "Y": ("[0-9][0-9][0-9][0-9]",),
    "m": ("[01][0-9]", "[0-9]"),
    "d": ("[0-3][0-9]", "[0-9]"),
    "H": ("[0-2][0-9]", "[0-9]"),
    "M": ("[0-5][0-9]", "[0-9]"),
    "S": ("[0-5][0-9]", "[0-9]"),
}
_PART_DEFAULTS = {"m": "'01'", "d": "'01'", "H": "'00'", "M": "'00'", "S": "'00'"}
_ISO = ("%Y-%m-%d", "%Y%m%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")


def _number(value: float) -> str:
    """Write a number of double precision: without an exponent, DuckDB would take it for a decimal one."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def _join(terms: Sequence[str], operator: str) -> str:
    """Join terms in halves: databases read expressions that are nested 1000 times, and no more."""
    if len(terms) < 3:
        return f" {operator} ".join(terms)
    half = len(terms) // 2
    return f"({_join(terms[:half], operator)}) {operator} ({_join(terms[half:], operator)})"


def _weigh(names: Sequence[str], weights: np.ndarray, *more: str) -> str:
    pairs = zip(names, weights.tolist(), strict=True)
    return _join([*(f"{_number(weight)} * {name}" for name, weight in pairs if weight != 0.0), *more], "+") or "0e0"


def _cut(value: str, low: float, high: float) -> str:
    return (
        f"CASE WHEN {value} < {_number(low)} THEN {_number(low)} WHEN {value} > {_number(high)} THEN {_number(high)} "
        f"ELSE {value} END"
    )


class _Query:
    """The steps of a query; a backend of `write_scores` whose values are names of columns of the last step."""

    def __init__(self, table: str, keep: Sequence[str]) -> None:
        self._kept = [f"source.{_name(name)}" for name in keep]
        self._last = f"{_name(table)} AS source"
        # A step of the table's name would read itself.
        self._called = "part" if table.lower().startswith("step") else "step"
        self._steps: list[str] = []

    def step(self, expressions: Sequence[str]) -> list[str]:
        """Add a step; return the names of its columns."""
        if len(self._kept) + len(expressions) > _MOST_COLUMNS:
            raise PrivSVMError(f"the model needs a table of {len(expressions)} columns; export to onnx")
        number = len(self._steps) + 1
        kept = [f"k{index}" for index in range(len(self._kept))]
        names = [f"x{index}" for index in range(len(expressions))]
        columns = zip([*self._kept, *expressions], [*kept, *names], strict=True)
        selected = ",\n    ".join(f"{expression} AS {name}" for expression, name in columns)
        step = f"{self._called}{number} AS MATERIALIZED (\n  SELECT\n    {selected}\n  FROM {self._last}\n)"  # nosec B608
        self._steps.append(step)
        self._kept, self._last = kept, f"{self._called}{number}"
        return names

    def select(self, names: Sequence[str], expressions: Sequence[str]) -> str:
        """Finish the query."""
        columns = zip([*self._kept, *expressions], names, strict=True)
        selected = ",\n  ".join(f"{expression} AS {_name(name)}" for expression, name in columns)
        return "WITH " + ",\n".join(self._steps) + f"\nSELECT\n  {selected}\nFROM {self._last}"  # nosec B608

    def read(self, readers: Sequence[_Steps]) -> list[str]:
        """Run the steps of all columns side by side; return the names of the features."""
        expressions, running = [next(reader) for reader in readers], set(range(len(readers)))
        while True:
            names = iter(self.step(list(itertools.chain.from_iterable(expressions))))
            expressions = [list(itertools.islice(names, len(each))) for each in expressions]
            if not running:
                return list(itertools.chain.from_iterable(expressions))
            for index in sorted(running):
                try:
                    expressions[index] = readers[index].send(expressions[index])
                except StopIteration as finished:
                    expressions[index] = finished.value
                    running.remove(index)

    def columns(self, rows: list[str], lower: Any, upper: Any, indicators: Any, **columns: Any) -> list[str]:
        features, limits = Columns(**columns), (lower.tolist(), upper.tolist())
        rows = self.step([_cut(row, *ends) for row, *ends in zip(rows, *limits, strict=True)])
        if not np.all(indicators):
            bounded = []
            for value, low, high, stay in zip(rows, *limits, indicators.tolist(), strict=True):
                scaled = f"2e0 * (({value} / 2e0 - {_number(low / 2)}) / {_number(high / 2 - low / 2)}) - 1e0"
                bounded.append(value if stay else scaled if high > low else "0e0")
            rows = self.step(bounded)
        expressions = [*rows, *([_number(features.constant)] if features.constant > 0.0 else [])]
        if features.n_hats > 0:
            centres, width = np.linspace(-1.0, 1.0, features.n_hats, retstep=True)
            for row, indicator in zip(rows, indicators, strict=True):
                distances = [] if indicator else [f"abs({row} - {_number(centre)})" for centre in centres]
                expressions += [
                    f"CASE WHEN {distance} < {_number(width)} THEN {_number(features.hat_weight)} * "
                    f"(1e0 - {distance} / {_number(width)}) ELSE 0e0 END"
                    for distance in distances
                ]
        return self.step(expressions)

    def unit(self, rows: list[str]) -> list[str]:
        return self._divide_by_norm(rows)

    def direction(self, rows: list[str], centre: np.ndarray) -> list[str]:
        return self._divide_by_norm(self._subtract(rows, centre))

    def _subtract(self, rows: list[str], mean: np.ndarray) -> list[str]:
        return self.step([f"{row} - {_number(number)}" for row, number in zip(rows, mean.tolist(), strict=True)])

    def _divide_by_norm(self, rows: list[str]) -> list[str]:
        *rows, norm = self.step([*rows, f"sqrt({_join([f'{row} * {row}' for row in rows], '+')})"])
        return self.step(
            [f"{row} / CASE WHEN {norm} < {_number(TINY)} THEN {_number(TINY)} ELSE {norm} END" for row in rows]
        )

    def fourier(self, rows: list[str], frequencies: np.ndarray, count: int, beside: np.ndarray) -> list[str]:
        kept = rows if beside.any() else []
        names = self.step([*kept, *(_weigh(rows, frequency) for frequency in frequencies[:, :count].T)])
        kept, angles = names[: len(kept)], names[len(kept) :]
        root = _number(np.sqrt(count))
        waves = [f"{function}({angle}) / {root}" for function in ("cos", "sin") for angle in angles]
        return self.step([*kept, *waves])

    def scores(self, rows: list[str], coef: np.ndarray, intercept: np.ndarray) -> list[str]:
        return self.step(
            [_weigh(rows, weights, _number(offset)) for weights, offset in zip(coef, intercept, strict=True)]
        )


def _is_word(text: str, word: str) -> str:
    """Compare a text without blanks with a word as `normalise_label` writes it: 7 is 7.0, too."""
    same = f"{text} = {_text(word)}"
    if not re.fullmatch(r"0|-?[1-9]\d*", word, re.ASCII):
        return same
    spellings = f"{_text(word + '.')}, '-0.'" if word == "0" else _text(word + ".")
    return f"{same} OR rtrim({text}, '0') IN ({spellings})"


def _trim(cell: str) -> str:
    return f"trim(CAST({cell} AS TEXT), {_text(_BLANKS)})"


def _is_text(cell: str) -> str:
    return f"lower(typeof({cell})) IN ('text', 'varchar')"


def _categories(column: Column, name: str, cell: str) -> _Steps:
    words, unknown, missing = category_codes(column)
    text, lost = f"COALESCE({_trim(cell)}, '')", [*codes_by_number(column).values()]
    if lost:
        # The one error that both databases raise with a text: a path that JSON does not have.
        message = (
            f"$: column {name!r} holds numbers, and category {lost[0]!r} is a text that they lose; store text, not "
        )
        error = f"CAST(json_extract('{{}}', {_text(message)} || CAST({cell} AS TEXT)) AS TEXT)"
        is_text = f"{cell} IS NULL OR {_is_text(cell)} OR lower(typeof({cell})) LIKE 'enum%'"
        text = f"CASE WHEN {is_text} THEN {text} ELSE {error} END"
    (text,) = yield [text]
    if column.ignore_case:
        # Exactly Python's folding, of the letters that can make one of the words: databases have rules of their own.
        for letter, folded in letters_to_fold("".join(words)):
            text = f"replace({text}, {_text(letter)}, {_text(folded)})"
        (text,) = yield [text]
    if column.numeric:
        digits = f"CASE WHEN ltrim({text}, '0') = '' THEN '0' ELSE ltrim({text}, '0') END"
        (text,) = yield [f"CASE WHEN {text} = '' OR ltrim({text}, '0123456789') <> '' THEN {text} ELSE {digits} END"]
    named = "".join(f" WHEN {_is_word(text, word)} THEN {code}" for word, code in words.items() if word)
    (code,) = yield [f"CASE WHEN {text} = '' THEN {missing}{named} ELSE {unknown} END"]
    return [f"CASE WHEN {code} = {index} THEN 1e0 ELSE 0e0 END" for index in range(len(column.words))]


def _scale_number(column: Column, number: str, decimal: str | None = None) -> _Steps:
    """Fill in a number, cut it to its bounds and map it to [-1, 1]."""
    low, high = column.limits
    marks = [f"abs({number} - {_number(mark)}) > {column.rounding}" for mark in column.missing_numbers(decimal)]
    given = _join([f"abs({number}) <= {_LARGEST}", *marks], "AND")
    (number,) = yield [f"CASE WHEN {given} THEN {number} ELSE {_number(column.fill_number)} END"]
    (inside,) = yield [_cut(number, low, high)]
    middle, width = 0.5 * (0.5 * low + 0.5 * high), 0.25 * high - 0.25 * low
    (ratio,) = yield [f"(0.5e0 * {inside} - {_number(middle)}) / {_number(width)}"]
    return [_cut(ratio, -1.0, 1.0)]


def _numbers(column: Column, cell: str, decimal: str | None) -> _Steps:
    if decimal == ",":
        text = f"CAST({cell} AS TEXT)"
        point = f"CASE WHEN {text} LIKE '%.%' THEN '' ELSE replace({text}, ',', '.') END"
        cell = f"CASE WHEN {_is_text(cell)} THEN {point} ELSE {text} END"
    value, text = yield [cell, f"lower({_trim(cell)})"]
    exponent = f"instr({text}, 'e')"
    value, digits, power = yield [
        value,
        f"CASE WHEN {exponent} > 0 THEN substr({text}, 1, {exponent} - 1) ELSE {text} END",
        f"CASE WHEN {exponent} > 0 THEN substr({text}, {exponent} + 1) ELSE '0' END",
    ]
    is_number = (
        f"{digits} GLOB '*[0-9]*' AND {digits} NOT GLOB '?*[+-]*' AND {digits} NOT GLOB '*.*.*' AND "
        f"ltrim({digits}, '0123456789.+-') = '' AND {power} GLOB '*[0-9]*' AND {power} NOT GLOB '?*[+-]*' AND "
        f"ltrim({power}, '0123456789+-') = ''"
    )
    # The cast is around the choice: no other text reaches it.
    (number,) = yield [f"CAST(CASE WHEN {is_number} THEN {value} END AS DOUBLE PRECISION)"]
    return (yield from _scale_number(column, number, decimal))


def _booleans(column: Column, cell: str) -> _Steps:
    (text,) = yield [f"lower({_trim(cell)})"]
    cases = "".join(
        f" WHEN {' OR '.join(_is_word(text, word) for word in words)} THEN {number}"
        for words, number in ((TRUE, "1e0"), (FALSE, "0e0"))
    )
    (number,) = yield [f"CASE{cases} END"]
    return (yield from _scale_number(column, number))


def _date_cases(text: str, form: str, more: str = "", *, padded: bool) -> str:
    """Turn texts of a format into digits of year, month, day, hour, minute and second."""
    tokens = re.findall(r"%(.)|([^%])", form)
    parts = [part for part, _ in tokens if part]
    adjacent = re.search("%.%", form) is not None
    cases = ""
    for patterns in itertools.product(*(_PARTS[part][: 1 if padded or adjacent else 2] for part in parts)):
        pieces, pattern, place, given = dict(_PART_DEFAULTS), "", 1, iter(patterns)
        for part, literal in tokens:
            if literal:
                pattern, place = pattern + ("[ T]" if padded and literal == " " else literal), place + 1
                continue
            one = next(given)
            width = one.count("[")
            digits = f"substr({text}, {place}, {width})"
            pieces[part] = f"'0' || {digits}" if width == 1 else digits
            pattern, place = pattern + one, place + width
        whole = " || ".join(pieces[part] for part in "YmdHMS")
        cases += f" WHEN {text} GLOB {_text(pattern + more)} THEN {whole}"
    return cases


def _dates(column: Column, name: str, cell: str) -> _Steps:
    iso = "".join(_date_cases("{0}", form, padded=True) for form in _ISO)
    # Fractions of seconds, and time zones.
    iso += "".join(_date_cases("{0}", form, "[.Z+-]*", padded=True) for form in _ISO[2:])
    cases = dict.fromkeys(column.formats, iso)
    for form in cases:
        if form == "iso":
            continue
        parts = [part for part, _ in re.findall(r"%(.)|([^%])", form)]
        known = all(part in (*_PARTS, "") for part in parts) and "Y" in parts
        if not known or not re.fullmatch("(%.|[ ./:,_T-])*", form):
            raise PrivSVMError(
                f"column {name!r}: dates of the format {form!r} cannot be read in SQL; export to onnx, which takes days"
            )
        own = _date_cases("{0}", form, padded=False)
        cases[form] = f" WHEN {_is_text('{1}')} THEN CASE{own} END{iso}"
    text, cell = yield [_trim(cell), cell]
    digits = yield [f"CASE{case.replace('{0}', text).replace('{1}', cell)} END" for case in cases.values()]
    places = ((1, 4), (5, 2), (7, 2), (9, 2), (11, 2), (13, 2))
    parts = yield [
        f"CAST(substr({one}, {place}, {width}) AS DOUBLE PRECISION)" for one in digits for place, width in places
    ]
    counts = yield [count for date in zip(*[iter(parts)] * 6, strict=True) for count in _calendar_counts(*date)]
    numbers = [
        f"365e0 * {years} + floor({years} / 4e0) - floor({years} / 100e0) + floor({years} / 400e0) + "
        f"floor((153e0 * {months} + 2e0) / 5e0) + {rest} - 719469e0"
        for years, months, rest in zip(*[iter(counts)] * 3, strict=True)
    ]
    # The first format that reads a cell.
    (number,) = yield [f"COALESCE({', '.join(numbers)}, NULL)"]
    return (yield from _scale_number(column, number))


def _calendar_counts(year: str, month: str, day: str, hour: str, minute: str, second: str) -> tuple[str, str, str]:
    """Count years and months from March on, where the leap day is the last one, and days; years NULL for no date."""
    leap = f"{year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0)"
    days = f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    exists = (
        f"{year} >= 1 AND {month} >= 1 AND {month} <= 12 AND {day} >= 1 AND {day} <= {days} AND {hour} < 24 AND "
        f"{minute} < 60 AND {second} < 60"
    )
    return (
        f"CASE WHEN {exists} THEN CASE WHEN {month} < 3 THEN {year} - 1 ELSE {year} END END",
        f"CASE WHEN {month} < 3 THEN {month} + 9 ELSE {month} - 3 END",
        f"{day} + ({hour} * 3600 + {minute} * 60 + {second}) / 86400e0",
    )


def _reader(name: str, column: Column, decimal: str | None) -> _Steps:
    # The name of the table before it: SQLite would take the name of a missing column for a text.
    cell = f"source.{_name(name)}"
    if column.kind == "categories":
        return _categories(column, name, cell)
    if column.kind == "date":
        return _dates(column, name, cell)
    return _booleans(column, cell) if column.kind == "boolean" else _numbers(column, cell, decimal)


def _label(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(value) if is_number else _text(str(value))


def sql_query(model: ReleasedModel, table: str, keep: Sequence[str]) -> str:
    """Write the query that predicts the rows of a table, by a model with a schema.

    The table has the columns of the schema; the columns in `keep` come before the predicted label and the scores.
    Raises PrivSVMError for more features than databases have columns, dates of a rare format, columns whose names
    differ in capital letters alone, and a column to return that has the name of a result.
    """
    schema = model.schema_
    assert schema is not None
    folded = [name.lower() for name in schema.features]
    twice = [name for name in schema.features if folded.count(name.lower()) > 1]
    if twice:
        raise PrivSVMError(f"columns {list_names(twice)}: databases do not tell their names apart; export to onnx")
    query = _Query(table, keep)
    readers = [_reader(name, column, schema.decimal) for name, column in schema.features.items()]
    scores = write_scores(query, model._path, query.read(readers), model.record.n_features)
    labels = [_label(value) for value in model.record.classes]
    if len(scores) == 1:
        names, predicted = ["score"], f"CASE WHEN {scores[0]} > 0 THEN {labels[1]} ELSE {labels[0]} END"
    else:
        names = [f"score_{value}" for value in model.record.classes]
        # The first of the largest.
        cases = "".join(
            f" WHEN {_join([f'{score} >= {other}' for other in scores[code + 1 :]], 'AND')} THEN {labels[code]}"
            for code, score in enumerate(scores[:-1])
        )
        predicted = f"CASE{cases} ELSE {labels[-1]} END"
    names = [*keep, "predicted", *names]
    check_names(names)
    return query.select(names, [predicted, *scores])
