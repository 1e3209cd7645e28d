"""No cell raises, warns or changes another row, whatever it is, in any kind of column and by every way in."""

import datetime
import decimal
import fractions
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.test_public_schema import COLUMNS, DECLARED

from privsvm import PrivateLinearClassifier, PublicSchema, make_private_pipeline
from privsvm.base.rows import as_training_rows, rows_to_predict
from privsvm.errors import PrivSVMError
from privsvm.tables.schema import parse_schema
from privsvm.tables.tables import Encoder


class Raising:
    """A cell that nobody can read."""

    def _refuse(self, *_):
        raise RecursionError("a cell was asked")

    __str__ = __float__ = __eq__ = __ne__ = __bool__ = __len__ = _refuse
    __hash__ = object.__hash__


class Mute(Raising):
    """A cell that is like itself, and has no text."""

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


ENDLESS = []
ENDLESS.append(ENDLESS)
HOSTILE = [
    None, pd.NA, pd.NaT, np.nan, np.inf, -np.inf, np.ma.masked, np.datetime64("NaT"), np.datetime64(2**62, "Y"),
    decimal.Decimal("NaN"), decimal.Decimal("sNaN"), decimal.Decimal("-Infinity"), decimal.Decimal("1e-999999"),
    5e-324, -5e-324, 1.7976931348623157e308, np.float32(1e-45), np.longdouble("1e-4000"), np.longdouble("1e4000"),
    np.longdouble(3), 10**5000, -(10**400), 10**16, 1e16, 2**53 + 1, 20200301.0, 1j, np.complex128(1 + 2j),
    np.complex64(1j), np.array([1, 2]), np.array(5.0), np.ma.masked_array(True, mask=True), np.void(b"ab"), b"\xff\xfe",
    b"a", "\ud800", "sNaN", "1e-400", "9" * 5000, "\0", "", " a ", True, np.True_, fractions.Fraction(1, 3),
    datetime.date(2020, 3, 1), datetime.datetime(2020, 3, 1, tzinfo=datetime.UTC), datetime.timedelta(1),
    pd.Timestamp("2020-03-01"), pd.Timedelta(1), pd.Period("2020-03"), pd.Interval(0, 1), [], {}, (1,), object(),
    ENDLESS, Raising(), Mute(), Raising, slice(None), np.float64(0.1), np.int64(1), np.str_("a"), np.uint64(2**63),
]  # fmt: skip
GOOD = {"age": 25, "dose": 0.5, "ward": "b", "sex": "m", "day": "2020-03-01", "smoker": True}
WAYS = {
    "mapping": lambda rows: {name: [row[name] for row in rows] for name in COLUMNS},
    "objects": lambda rows: {name: objects([row[name] for row in rows]) for name in COLUMNS},
    "frame": lambda rows: pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=object) for name in COLUMNS}
    ),
    "mappings": lambda rows: rows,
    "lists": lambda rows: [[row[name] for name in COLUMNS] for row in rows],
    "array": lambda rows: np.stack([objects([row[name] for name in COLUMNS]) for row in rows]),
}
SCHEMA = PublicSchema(DECLARED).fit()


def objects(values):
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array


def read(rows, way):
    """Features of rows, where every number that is not exact is an error."""
    # Recorded: raised, a warning would be an error that is caught.
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="raise"), decimal.localcontext() as context:
        warnings.simplefilter("always")
        context.traps = dict.fromkeys(context.traps, True)
        features = SCHEMA.transform(WAYS[way](rows))
    assert not [str(warning.message) for warning in caught]
    return features


EXPECTED = read([GOOD], "mapping")


@given(
    st.lists(st.tuples(st.sampled_from(COLUMNS), st.sampled_from(HOSTILE)), min_size=1, max_size=6),
    st.sampled_from(sorted(WAYS)),
)
def test_no_cell_changes_another_row(cells, way):
    rows = [GOOD, *(GOOD | {name: cell} for name, cell in cells), GOOD]
    features = read(rows, way)
    assert features[0].tobytes() == features[-1].tobytes() == EXPECTED.tobytes()
    assert np.abs(features).max() <= 1.0
    for row, alone in zip(rows, features, strict=True):
        assert read([row], "mapping").tobytes() == alone.tobytes()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COLUMNS)
def test_every_cell_in_every_column(name, way):
    for cell in HOSTILE:
        features = read([GOOD, GOOD | {name: cell}, GOOD], way)
        assert features[0].tobytes() == features[2].tobytes() == EXPECTED.tobytes()


def test_cells_that_are_no_number_are_missing():
    columns = {"a": {"bounds": [0, 100], "fill": 7}, "c": {"categories": ["x", "gone"], "fill": "gone"}}
    schema = PublicSchema({"name": "s", "label": "y", "classes": ["0", "1"], "columns": columns})
    missing = schema.fit_transform({"a": [None], "c": [None]}).tolist()
    for cell in (decimal.Decimal("NaN"), decimal.Decimal("sNaN"), np.ma.masked, pd.NA, pd.NaT, np.float32("nan")):
        assert schema.transform({"a": [cell], "c": [cell]}).tolist() == missing
    for cell in (1j, np.complex128(1), datetime.date(2020, 1, 1), np.array([1, 2]), Raising()):
        assert schema.transform({"a": [cell], "c": [None]}).tolist() == missing
    masked = np.ma.masked_array([50.0, 60.0], [False, True])
    assert schema.transform({"a": masked, "c": ["x", None]})[1].tolist() == missing[0]


def arrow_columns():
    """Columns of which Arrow makes no Python values, for one cell."""
    day = 18322
    for unit, cell in (("s", 2**62), ("ms", -(2**62)), ("us", 2**62)):
        first = day * 86400 * {"s": 1, "ms": 1000, "us": 10**6}[unit]
        yield "day", pa.array([first, cell, first]).cast(pa.timestamp(unit))
    yield "day", pa.array([day, 2**31 - 1, day], pa.int32()).cast(pa.date32())
    for name, text in (("age", b"25"), ("dose", b"0.5"), ("ward", b"b"), ("sex", b"m"), ("day", b"2020-03-01")):
        texts = pa.array([text, b"\xff\xfe", text], pa.binary())
        yield name, pa.Array.from_buffers(pa.string(), 3, texts.buffers())


@pytest.mark.parametrize(("name", "cells"), [*arrow_columns()], ids=str)
def test_no_cell_of_arrow_raises(name, cells):
    columns = {other: [GOOD[other]] * 3 for other in COLUMNS}
    for table in (
        pa.table(columns | {name: cells}),
        pd.DataFrame(columns | {name: pd.Series(pd.arrays.ArrowExtensionArray(cells))}),
    ):
        features = SCHEMA.transform(table)
        assert features[0].tobytes() == features[2].tobytes() == EXPECTED.tobytes()
        assert features[1].tobytes() == read([GOOD | {name: object()}], "mapping").tobytes()


def test_labels_that_nobody_can_read_are_no_class():
    encoder = Encoder(parse_schema(DECLARED))
    assert encoder.labels(["yes", *HOSTILE, "no"]).tolist() == [1, *[-1] * len(HOSTILE), 0]


@pytest.mark.parametrize("dtype", ["int64", "Int64", object, "str"])
def test_whole_numbers_beside_missing_ones_are_the_same(dtype):
    """Pandas turns whole numbers into floats where one is missing."""
    codes = [7, 10**15 - 1, 20200301, 123456789012345]
    columns = {
        "code": {"categories": [str(code) for code in codes], "unknown": "other"},
        "day": {"date": "%Y%m%d", "bounds": ["20200101", "20201231"], "fill": "middle"},
    }
    schema = PublicSchema({"name": "s", "label": "y", "classes": ["0", "1"], "columns": columns})
    table = pd.DataFrame({"code": codes, "day": [20200301] * 4}).astype(dtype)
    alone = schema.fit_transform(table)
    assert alone[:, :4].tolist() == np.eye(4).tolist()
    beside = schema.transform(pd.DataFrame({"code": [*codes, np.nan], "day": [*[20200301] * 4, np.nan]}))
    assert alone.tobytes() == beside[:4].tobytes()


@pytest.mark.parametrize("code", ["9007199254740993", "-10000000000000000"])
def test_codes_that_floats_do_not_tell_apart_are_read_as_text(code):
    """The refusal depends on the schema and the column's type, and not on whether a cell is missing."""
    columns = {"code": {"categories": [code, "1"]}}
    schema = PublicSchema({"name": "s", "label": "y", "classes": ["0", "1"], "columns": columns}).fit()
    for cells in (np.array([1, 2]), np.array([1.0, np.nan]), pd.Series([int(code), 1]), pd.Series([1.0, None])):
        with pytest.raises(PrivSVMError, match="read the column as text"):
            schema.transform(pd.DataFrame({"code": cells}))
    with pytest.raises(PrivSVMError, match="read the column as text"):
        schema.transform(np.ones((2, 1)))
    for cells in ([int(code), None], pd.Series([code, None]), pd.array([int(code), None], dtype="Int64")):
        assert schema.transform({"code": cells}).tolist() == [[1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("tiny", ["1e-4000", "5e-324", "-1e-320"])
def test_tiny_numbers_of_rows_are_no_errors(tiny):
    rows = np.ones((4, 2), dtype=np.longdouble)
    rows[1, 1] = np.longdouble(tiny)
    estimator, stored = PrivateLinearClassifier(classes=[0, 1]), rows.astype(np.float64).tolist()
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        read_rows = as_training_rows(estimator, rows, [0, 1, 0, 1], [0, 1])[0]
        assert rows_to_predict(estimator, rows).tolist() == read_rows.tolist() == stored


def test_a_pipeline_fits_what_is_tiny():
    steps = PublicSchema(DECLARED), PrivateLinearClassifier(classes=["no", "yes"])
    rows = [GOOD | {"age": 5e-324, "dose": decimal.Decimal("sNaN"), "ward": np.ma.masked}] * 20
    with np.errstate(all="raise"):
        assert make_private_pipeline(*steps).fit(rows, ["no", "yes"] * 10).guarantee_.status == "proved"
