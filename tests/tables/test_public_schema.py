"""Public schemas: their meaning; no cell raises, or changes the features of another row, whatever it is."""

import datetime
import decimal
import fractions
import gzip
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.refusals import refusal
from tests.release.hospital import SCHEMA

from privsvm import PrivateLinearClassifier, PublicSchema, make_private_pipeline
from privsvm.base.rows import as_training_rows, rows_to_predict
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.tables.schema import parse_schema, read_schema
from privsvm.tables.tables import Encoder, read_chunks, units_table

DECLARED = {
    "name": "wards",
    "label": "died",
    "classes": ["no", "yes"],
    "columns": {
        "age": {"bounds": [0, 100], "fill": "middle"},
        "dose": {"bounds": [-1e-3, 1e300], "fill": 0.5},
        "ward": {"categories": ["a", "b"], "unknown": "other"},
        "sex": {"categories": ["f", "m"]},
        "day": {"date": "%Y-%m-%d", "bounds": ["2020-01-01", "2020-12-31"], "fill": "middle"},
        "smoker": {"boolean": True, "fill": False},
        "id": "ignore",
    },
}
COLUMNS = ("age", "dose", "ward", "sex", "day", "smoker")
CELLS = st.one_of(
    st.text(max_size=6),
    st.floats(allow_nan=True, allow_infinity=True).map(str),
    st.sampled_from(
        ["", "NA", "nan", "-inf", " 7 ", "1_0", "+5", "0x10", "a", "b", "1.0", "1", "2020-02-30", "2020-03-01", "yes"]
    ),
)


def schema_of(**columns):
    return PublicSchema({"name": "s", "label": "y", "classes": ["0", "1"], "columns": columns})


@pytest.mark.parametrize("cell", ["1_0", "\uff11", "5"])
def test_texts_of_numpy_have_the_same_features_in_any_company(cell):
    schema = schema_of(a={"bounds": [0, 10], "fill": 0})
    first = [schema.fit_transform({"a": np.array([cell, other])})[0, 0] for other in ("3", "none")]
    assert first[0] == first[1]


def test_what_each_kind_of_column_becomes():
    schema = PublicSchema(DECLARED)
    rows = {
        "age": ["25", "", "-7", "text"],
        "dose": ["1e300", "", "nan", "-1"],
        "ward": ["b", "z", "", "a"],
        "sex": ["m", "x", "", "f"],
        "day": ["2020-12-31", "2019-01-01", "soon", "2020-07-01"],
        "smoker": ["yes", "0", "", "TRUE"],
    }
    assert schema.get_feature_names_out().tolist() == [
        "age", "dose", "ward=a", "ward=b", "ward=other", "sex=f", "sex=m", "day", "smoker",
    ]  # fmt: skip
    X = clone(schema).fit_transform(rows)
    assert X[:, 0].tolist() == [-0.5, 0.0, -1.0, 0.0]
    np.testing.assert_allclose(X[:, 1], [1, -1, -1, -1], atol=1e-12)
    assert X[:, 2:7].tolist() == [[0, 1, 0, 0, 1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 1, 0]]
    np.testing.assert_allclose(X[:, 7], [1, -1, 0, (182 - 182.5) / 182.5], atol=1e-12)
    assert X[:, 8].tolist() == [1, -1, -1, 1]


def test_a_declaration_survives_json_and_yaml(tmp_path):
    schema = parse_schema(DECLARED)
    parsed = parse_schema(json.loads(canonical_json(schema.to_json())))
    assert parsed == schema
    assert list(parsed.columns) == list(schema.columns)
    (tmp_path / "s.yaml").write_text(SCHEMA)
    declared = read_schema(tmp_path / "s.yaml")
    assert parse_schema(declared.to_json()) == declared
    assert declared.class_order == ("no", "yes")


WRONG = yaml.safe_load(Path(__file__).with_name("wrong_declarations.yaml").read_text())


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_a_wrong_declaration_is_one_line(changes, message):
    changed = {key: value for key, value in (DECLARED | changes).items() if value is not None}
    assert message in refusal(parse_schema, changed)


def test_no_row_stops_a_table(tmp_path):
    schema = parse_schema(DECLARED)
    header = "id,age,dose,ward,sex,day,smoker,died\n"
    (tmp_path / "odd.csv").write_bytes(header.encode() + b"1\n\n2,x,y,z,w,v,u,maybe\n3,\xff,,,,,,yes,and,more\n" + b'"')
    X, y = units_table(tmp_path / "odd.csv", schema)[:2]
    assert X.shape == (5, 9)
    assert y.tolist() == [0] * 5
    # A label that is none of the classes leaves nothing of its row, and a malformed row has no label.
    assert not X.any()


def test_one_message_names_all_columns(tmp_path):
    (tmp_path / "t.csv").write_text("id,age,ward,sex,extra,more,smoker,died\n")
    with pytest.raises(PrivSVMError) as caught:
        units_table(tmp_path / "t.csv", parse_schema(DECLARED))[:2]
    assert "no column 'dose', 'day'" in str(caught.value)
    assert "'extra', 'more' not in the schema: declare each, or write `extra: ignore`" in str(caught.value)
    # Rows to predict may have other columns, and need no label.
    with pytest.raises(PrivSVMError, match="no column 'dose', 'day'; correct"):
        next(read_chunks(tmp_path / "t.csv", parse_schema(DECLARED)))
    (tmp_path / "t.csv").write_text("Gro\u0308\u00dfe,died\n")
    columns = {"Gr\u00f6\u00dfe": {"bounds": [0, 250], "fill": 170}}
    declared = {"name": "wards", "label": "died", "classes": ["no", "yes"], "columns": columns}
    with pytest.raises(PrivSVMError, match="save the file in NFC"):
        units_table(tmp_path / "t.csv", parse_schema(declared))[:2]


def test_params_yaml_holds_the_same_declaration(tmp_path):
    from privsvm_bench.datasets.catalogue import resolve
    from privsvm_bench.datasets.prepare import prepare
    from privsvm_bench.datasets.settings import Holdout
    from privsvm_bench.jobs.training import data_facts

    folder = tmp_path / "raw"
    folder.mkdir()
    labels = ["yes" if number > 20 else "no" for number in range(40)]
    rows = [f"{number},{number},{number / 100},a,f,2020-01-01,no,{label}" for number, label in enumerate(labels)]
    for path in (tmp_path / "t.csv", folder / "t.csv"):
        path.write_text("\n".join(["id,age,dose,ward,sex,day,smoker,died", *rows]))
    (parquet := tmp_path / "t.parquet").touch()
    declared = {key: value for key, value in DECLARED.items() if key != "name"} | {"prescaled": False, "rows": 40}
    settings = {"path": str(tmp_path / "t.csv"), "schema": declared}
    entry = resolve("wards", settings)
    # Jobs get their settings as canonical JSON.
    assert resolve("wards", json.loads(canonical_json(settings))).classes == entry.classes
    arrays, description = prepare(entry, folder, Holdout(), 0, "test")
    X, y = units_table(tmp_path / "t.csv", parse_schema({"name": "wards", **declared}))[:2]
    np.testing.assert_array_equal((arrays["X"] - arrays["scale_shift"]) * arrays["scale_factor"], X)
    np.testing.assert_array_equal(arrays["y"], y)
    facts = data_facts(description | {"digest": ""}, "none", 0)
    assert (facts["preparation"], facts["scaling"], facts["bounds"]) == ("declared", "declared", "declared")
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({"datasets": {"wards": settings}}))
    assert read_schema(tmp_path / "params.yaml", "wards") == parse_schema({"name": "wards", **declared})
    for change, message in (
        ({"label": "died"}, "datasets.wards.label: is the schema's to say; move it"),
        ({"encoding": "latin-1"}, "datasets.wards.encoding: does not go with `schema`, .* save it so"),
        ({"path": str(parquet)}, "datasets.wards.path: 't.parquet' is parquet, .* save the table so"),
        ({"schema": declared | {"person": "id2", "rows_per_person": 1}}, "with `privsvm release`"),
        ({"schema": declared | {"columns": {"a": "decide"}}}, "column 'a' needs a decision"),
        ({"schema": "s.yaml"}, "is not a mapping"),
        ({"schema": declared | {"card": {"aim": "x"}}}, "card.aim is not a known key; known: "),
    ):
        with pytest.raises(PrivSVMError, match=message):
            resolve("wards", settings | change)


def test_a_pipe_is_refused_and_not_read_from_its_middle(tmp_path):
    # Its first rows would be gone when it is opened for the second time.
    pipe = tmp_path / "table.csv"
    os.mkfifo(pipe)
    with pytest.raises(PrivSVMError, match="pipe or device"):
        list(read_chunks(pipe, parse_schema(DECLARED)))


def test_a_packed_table_that_is_damaged_is_one_line_with_its_name(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "table.csv.gz"
    rows = [",".join(map(str, rng.integers(0, 10**9, 8))) for _ in range(5000)]
    data = gzip.compress("\n".join([",".join([*COLUMNS, "id", "died"]), *rows]).encode())
    middle = len(data) // 2
    for damaged in (data[:middle], data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]):
        path.write_bytes(damaged)
        assert "table.csv.gz: cannot be read" in refusal(lambda: [*read_chunks(path, parse_schema(DECLARED))])


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
FITTED = PublicSchema(DECLARED).fit()


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
        features = FITTED.transform(WAYS[way](rows))
    assert not [str(warning.message) for warning in caught]
    return features


EXPECTED = read([GOOD], "mapping")


@given(
    st.lists(st.tuples(st.sampled_from(COLUMNS), st.sampled_from(HOSTILE) | CELLS), min_size=1, max_size=6),
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
    schema = schema_of(a={"bounds": [0, 100], "fill": 7}, c={"categories": ["x", "gone"], "fill": "gone"})
    missing = schema.fit_transform({"a": [None], "c": [None]}).tolist()
    for cell in (decimal.Decimal("NaN"), decimal.Decimal("sNaN"), np.ma.masked, pd.NA, pd.NaT, np.float32("nan")):
        assert schema.transform({"a": [cell], "c": [cell]}).tolist() == missing
    for cell in (1j, np.complex128(1), datetime.date(2020, 1, 1), np.array([1, 2]), Raising()):
        assert schema.transform({"a": [cell], "c": [None]}).tolist() == missing
    masked = np.ma.masked_array([50.0, 60.0], [False, True])
    assert schema.transform({"a": masked, "c": ["x", None]})[1].tolist() == missing[0]
    # Labels that nobody can read are no class.
    encoder = Encoder(parse_schema(DECLARED))
    assert encoder.labels(["yes", *HOSTILE, "no"]).tolist() == [1, *[-1] * len(HOSTILE), 0]


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
        features = FITTED.transform(table)
        assert features[0].tobytes() == features[2].tobytes() == EXPECTED.tobytes()
        assert features[1].tobytes() == read([GOOD | {name: object()}], "mapping").tobytes()


@pytest.mark.parametrize("dtype", ["int64", "Int64", object, "str"])
def test_whole_numbers_beside_missing_ones_are_the_same(dtype):
    """Pandas turns whole numbers into floats where one is missing."""
    codes = [7, 10**15 - 1, 20200301, 123456789012345]
    schema = schema_of(
        code={"categories": [str(code) for code in codes], "unknown": "other"},
        day={"date": "%Y%m%d", "bounds": ["20200101", "20201231"], "fill": "middle"},
    )
    table = pd.DataFrame({"code": codes, "day": [20200301] * 4}).astype(dtype)
    alone = schema.fit_transform(table)
    assert alone[:, :4].tolist() == np.eye(4).tolist()
    beside = schema.transform(pd.DataFrame({"code": [*codes, np.nan], "day": [*[20200301] * 4, np.nan]}))
    assert alone.tobytes() == beside[:4].tobytes()


@pytest.mark.parametrize("code", ["9007199254740993", "-10000000000000000"])
def test_codes_that_floats_do_not_tell_apart_are_read_as_text(code):
    """The refusal depends on the schema and the column's type, and not on whether a cell is missing."""
    schema = schema_of(code={"categories": [code, "1"]}).fit()
    columns = np.array([1, 2]), np.array([1.0, np.nan]), pd.Series([int(code), 1]), pd.Series([1.0, None])
    for table in (*(pd.DataFrame({"code": cells}) for cells in columns), np.ones((2, 1))):
        with pytest.raises(PrivSVMError, match="read the column as text"):
            schema.transform(table)
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
