"""One reader of tables: a record is a physical line, and the rules of docs/tables.md hold for every reader."""

import gzip
import io
import re
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.datasets.refusal import refused
from tests.lines import RECORDS
from tests.refusals import refusal
from tests.scripts import REPOSITORY

from privsvm import PublicSchema
from privsvm.errors import PrivSVMError
from privsvm.tables import delimited
from privsvm.tables.delimited import DELIMITER, DelimitedText, Malformed, Tally, parse_number, split_fields
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema
from privsvm.tables.tables import header_of, read_chunks, read_labelled_table, table_columns, units_table
from privsvm_bench.datasets.readers import read_part

SCHEMA = {
    "name": "wards",
    "label": "died",
    "classes": ["no", "yes"],
    "columns": {
        "age": {"bounds": [0, 100], "fill": 40},
        "ward": {"categories": ["a", "b"], "unknown": "other"},
        "day": {"date": "%d.%m.%Y", "bounds": ["01.01.2020", "31.12.2020"], "fill": "middle"},
        "smoker": {"boolean": True, "fill": "no"},
    },
}
HEADER = b"age,ward,day,smoker,died"
ROWS = [
    b"%d,%s,%02d.03.2020,%s,%s" % (index * 7 % 100, b"ab"[index % 2 :][:1], index + 1, b"yes", b"no")
    for index in range(9)
]
# Values are missing in a row that other rows must not fill.
ROWS[5] = b",,,,yes"


def write(folder, rows, header=HEADER, end=b"\n"):
    path = folder / "t.csv"
    path.write_bytes(b"".join(row + end for row in (header, *rows)))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@given(RECORDS, st.integers(0, len(ROWS) - 1), st.sampled_from([b"\n", b"\r\n"]))
@example(b'41,"a', 2, b"\n")
@example(b"", 4, b"\n")
@example(b'"', 8, b"\r\n")
def test_a_record_moves_no_other_row(folder, record, index, end):
    schema = parse_schema(SCHEMA)
    before = units_table(write(folder, ROWS, end=end), schema)[:2]
    rows = [*ROWS[:index], record, *ROWS[index + 1 :]]
    after = units_table(write(folder, rows, end=end), schema)[:2]
    for first, second in zip(before, after, strict=True):
        assert first.shape == second.shape
        assert np.delete(first, index, axis=0).tobytes() == np.delete(second, index, axis=0).tobytes()
    assert np.isfinite(after[0]).all()


def rows_of_persons(path, schema):
    """The person of each line, and the rows of each person."""
    X, codes, units = units_table(path, schema)
    persons = [normalise_label(who) for block in read_chunks(path, schema, ["who"]) for who in block["who"]]
    names = dict.fromkeys(who for who in persons if who)
    rows = {who: X[units == unit].tobytes() + codes[units == unit].tobytes() for unit, who in enumerate(names)}
    return persons, rows


@given(RECORDS, st.integers(0, len(ROWS) - 1))
@example(b'p0,"', 3)
@example(b"p2,1,a,01.03.2020,yes,no", 0)
def test_a_record_moves_no_row_of_other_persons(folder, record, index):
    schema = parse_schema(SCHEMA | {"person": "who", "rows_per_person": 2})
    lines = [b"p%d," % (number // 3) + row for number, row in enumerate(ROWS)]
    before, rows = rows_of_persons(write(folder, lines, b"who," + HEADER), schema)
    lines[index] = record
    after, changed = rows_of_persons(write(folder, lines, b"who," + HEADER), schema)
    for who in {*rows, *changed} - {before[index], after[index]}:
        assert rows[who] == changed[who]


def record_of(line, header="a,b,c", **options):
    (record,) = DelimitedText(io.StringIO(f"{header}\n{line}", newline="\n"), "t", **options)
    return record


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("1,2,3", ["1", "2", "3"]),
        ('"1","2,2","3"', ["1", "2,2", "3"]),
        ('1, "a ""b""" ,3', ["1", 'a "b"', "3"]),
        ('1,5" pipe,3', ["1", '5" pipe', "3"]),
        (",,", ["", "", ""]),
        ('"","",""', ["", "", ""]),
        (" 1 ,\t2,\u20283", [" 1 ", "\t2", "\u20283"]),
        ("1,2,3\r", ["1", "2", "3"]),
    ],
)
def test_fields(line, fields):
    assert record_of(line) == fields


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('1,2,"3', "quotation mark without its pair"),
        ('1,"2"x,3', "text behind one"),
        ('1,2,""3', "text behind one"),
        ("1,2", "has 2 fields and the first line 3"),
        ("1,2,3,4", "has 4 fields and the first line 3"),
        ("1,2,3,", "has 4 fields"),
        ("1,2\r,3", "carriage return"),
        ("1,2\0,3", "zero byte"),
        ("1,\udcff,3", "not UTF-8"),
        ("  ", "is blank"),
    ],
)
def test_malformed_records(line, reason):
    record = record_of(line + "\n1,2,3".partition("\n")[0])
    assert isinstance(record, Malformed)
    assert record.line == 2
    assert reason in str(record)


def test_a_record_without_an_end_is_not_held_in_memory(monkeypatch):
    monkeypatch.setattr(delimited, "LONGEST_RECORD", 40)
    text = "a,b\n" + "1" * 100 + ",2\n" + "3,4\n" + "5" * 38 + ",6"
    long, row, last = DelimitedText(io.StringIO(text, newline="\n"), "t")
    assert (str(long), row) == ("line 2 has 40 characters or more", ["3", "4"])
    assert str(last) == "line 4 has 40 characters or more"


@pytest.mark.parametrize(
    ("line", "fields"),
    [("a  b\tc ", ["a", "b", "c"]), (' a "b c"\t""', ["a", "b c", ""]), ('"a b" c d', ["a b", "c", "d"])],
)
def test_blanks_as_delimiters(line, fields):
    assert record_of(line, "a b c", delimiter="whitespace") == fields


@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])), min_size=2),
    st.sampled_from(",;\t| "),
)
def test_what_the_standard_writer_writes_is_read(fields, delimiter):
    import csv

    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="", quoting=csv.QUOTE_ALL).writerow(fields)
    assert split_fields(line.getvalue(), delimiter) == fields


def test_numbers_have_ascii_digits():
    assert [parse_number(text) for text in ("7", " -.5 ", "1e3", "+2.", "000", "inf")] == [7, -0.5, 1000, 2, 0, np.inf]
    for text in ("1_0", "\u0661", "0x10", "1,5", "", "1 0"):
        with pytest.raises(ValueError, match=r"^"):
            parse_number(text)
    # The same as text of a data frame, and as a date.
    column = parse_schema(SCHEMA).columns
    assert np.isnan([column["age"].number("1_0"), column["day"].number("0\u0661.03.2020")]).all()


VARIANTS = {
    "plain": b"x,z,kind\n1,-2,a\n3,4,b\n5,6,a\n",
    "byte order mark": b'\xef\xbb\xbf"x",z,kind\n1,-2,a\n3,4,b\n5,6,a\n',
    "sep line": b"sep=,\r\nx,z,kind\r\n1,-2,a\r\n3,4,b\r\n5,6,a\r\n",
    "quoted sep line and mark": b'\xef\xbb\xbf"sep=,"\nx,z,kind\n1,-2,a\n3,4,b\n5,6,a',
    "blank lines before": b"\n  \r\nx,z,kind\n1,-2,a\n3,4,b\n5,6,a\n",
    "delimiters at the ends": b"x,z,kind,\n1,-2,a,\n3,4,b,\n5,6,a,\n",
    "quotes and blanks": b'x, "z" , kind\n"1", -2 ,"a"\n3,"4", b\n 5,6 , a \n',
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_readers_have_the_same_rules(make_entry, tmp_path, variant):
    X, labels = read_part(make_entry(VARIANTS[variant], format="csv", label="kind", header_rows=1), "all", tmp_path)
    assert X.tolist() == [[1, -2], [3, 4], [5, 6]]
    assert labels.tolist() == ["a", "b", "a"]
    columns = {name: {"bounds": [-8, 8], "fill": 0} for name in "xz"}
    schema = parse_schema({"name": "t", "label": "kind", "classes": ["a", "b"], "columns": columns})
    for read in (units_table, read_labelled_table):
        rows, codes, *_ = read(tmp_path / "file", schema)
        assert (rows * 8).tolist() == X.tolist()
        assert codes.tolist() in ([0, 1, 0], ["a", "b", "a"])
    assert header_of(tmp_path / "file") == ["x", "z", "kind"]
    columns = [list(map(normalise_label, cells)) for cells in table_columns(tmp_path / "file").values()]
    assert columns == [["1", "3", "5"], ["-2", "4", "6"], ["a", "b", "a"]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # Row names, as R writes them: the header names one column fewer.
        (b"x,z,kind\n0,1,-2,a\n1,3,4,b\n", "line 2 has 4 fields and the first line 3"),
        (b'x,z,kind\n1,"2,a\n3,4,b\n', "line 2 has a quotation mark without its pair"),
        (b"x,z,kind,\n1,2,a,\n3,4,b,5\n", "line 3 has a value behind the last column"),
    ],
)
def test_rows_that_the_benchmark_refuses_are_rows_without_values_elsewhere(make_entry, tmp_path, text, reason):
    refused(make_entry(text, format="csv", label="kind", header_rows=1), tmp_path, reason)
    columns = {name: {"bounds": [-8, 8], "fill": 8} for name in "xz"}
    schema = parse_schema({"name": "t", "label": "kind", "classes": ["a", "b"], "columns": columns})
    with pytest.raises(PrivSVMError, match=re.escape(reason)):
        read_labelled_table(tmp_path / "file", schema)
    tally = Tally()
    (block,) = read_chunks(tmp_path / "file", schema, ["kind"], tally=tally)
    assert tally.records == text.count(b"\n") - 1
    assert reason in str(tally)
    index = tally.first.line - 2
    assert {cells[index] for cells in block.values()} == {""}


def test_columns_without_a_name_are_no_features(make_entry, tmp_path):
    text = b",x,kind\n0,1.5,a\n1,2,b\n"
    entry = make_entry(text, format="csv", label="kind", header_rows=1)
    refused(entry, tmp_path, "column 0 has no name; name it, or add 0 to `drop_columns`")
    X, _ = read_part(make_entry(text, format="csv", label="kind", header_rows=1, drop_columns=(0,)), "all", tmp_path)
    assert X.tolist() == [[1.5], [2]]
    with pytest.raises(PrivSVMError, match="give each column its own name"):
        header_of(tmp_path / "file")


def test_headers_that_cannot_be_read(tmp_path):
    for content, reason in (
        (b'age,"ward\n', "line 1 has a quotation mark without its pair"),
        (b"\n\nage,w\xff\n1,2\n", "line 3 is not UTF-8 text"),
        (b"age,ward\r1,a\r2,b\r", "carriage return; fix it, or save the table with the line ends"),
        ("age,ward\r\n1,a\r\n".encode("utf-16"), "zero byte; fix it, or save the table as CSV in UTF-8"),
        (b"sep=;\nage;ward\n", "its first line says sep=;, and the declared delimiter is ','"),
        (b'sep="\nage"ward\n', "delimiter '\"' must be one character"),
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
    ):
        (tmp_path / "t.csv").write_bytes(content)
        assert reason in refusal(header_of, tmp_path / "t.csv", ",")
    for delimiter in ("", ",,", '"', "\n", "a", "\r", ".", "1"):
        with pytest.raises(PrivSVMError, match="must be one character"):
            header_of(tmp_path / "t.csv", delimiter)
        assert not DELIMITER.accepts(delimiter)


def test_labels_and_categories_keep_their_text(make_entry, tmp_path):
    names = ["2E01", "2E03", "01", "1", "+1"]
    assert [normalise_label(name) for name in names] == names
    numbers = [normalise_label(value) for value in (1, 1.0, "1.0", " 1. ", -0.0, "-3.00", 1e16)]
    assert numbers == [*["1"] * 4, "0", "-3", "1" + "0" * 16]
    text = "x,kind\n" + "".join(f"{index},{name}\n" for index, name in enumerate(names))
    _, labels = read_part(make_entry(text, format="csv", label="kind", header_rows=1), "all", tmp_path)
    assert labels.tolist() == names
    columns = {"x": {"categories": ["01", "1"]}}
    schema = parse_schema({"name": "t", "label": "kind", "classes": ["1.0", "2E01"], "columns": columns})
    assert schema.class_order == ("1.0", "2E01")
    (tmp_path / "t.csv").write_text("x,kind\n01,1\n1,2E01\n1.0,20\n")
    X, codes = units_table(tmp_path / "t.csv", schema)[:2]
    assert X.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert codes.tolist() == [0, 1, 0]
    assert read_labelled_table(tmp_path / "t.csv", schema)[1].tolist() == ["1.0", "2E01", "20"]


def test_a_table_without_a_header_keeps_its_first_row(tmp_path):
    rows, names = b"\n".join(ROWS) + b"\n", HEADER.decode().split(",")
    (tmp_path / "bare.csv").write_bytes(rows)
    (tmp_path / "named.csv").write_bytes(HEADER + b"\n" + rows)
    schema = parse_schema(SCHEMA)
    bare = read_labelled_table(tmp_path / "bare.csv", schema, names)
    named = read_labelled_table(tmp_path / "named.csv", schema)
    assert np.array_equal(bare[0], named[0])
    assert bare[1].tolist() == named[1].tolist()


def test_columns_in_python_are_checked_by_name_and_number():
    schema = PublicSchema(SCHEMA)
    rows = {"age": [1, 2, 3], "ward": ["a", "b", "a"], "day": ["01.02.2020"] * 3, "smoker": [True, False, None]}
    frame = pd.DataFrame(rows)
    assert schema.transform(frame).tolist() == schema.transform(rows).tolist()
    twice = pd.concat([frame, frame[["age"]]], axis=1)
    with pytest.raises(PrivSVMError, match="several columns are called 'age'"):
        schema.transform(twice)
    with pytest.raises(PrivSVMError, match="its columns have 2 and 3 rows"):
        schema.transform({**rows, "age": [1, 2]})
    with pytest.raises(PrivSVMError, match="no column 'age', 'day'"):
        schema.transform({"ward": ["a"], "smoker": [1]})


@pytest.mark.parametrize("form", ["iso", "%d.%m.%Y", "%d.%m.%Y %H:%M"])
def test_a_date_is_the_same_whatever_its_type(form):
    day = {"date": form, "bounds": [datetime(2020, 1, 1), datetime(2021, 1, 1)], "fill": "middle"}
    column = parse_schema(SCHEMA | {"columns": {"day": day}}).columns["day"]
    moment = datetime(2020, 3, 1, 18, 30)
    values = [moment, pd.Timestamp(moment), np.datetime64(moment), np.datetime64(moment, "ns")]
    text = moment.isoformat() if form == "iso" else moment.strftime(form)
    assert {column.number(value) for value in values} == {column.number(text)}
    assert np.isfinite(column.number(text))
    assert np.isnan([column.number(value) for value in (pd.NaT, np.datetime64("NaT"), None)]).all()


@pytest.mark.parametrize("missing", [("age",), ("age", "day"), ("smoker",)])
def test_a_number_without_a_fill_is_refused_by_the_schema_alone(missing):
    columns = {
        name: {key: value for key, value in column.items() if key != "fill"} if name in missing else column
        for name, column in SCHEMA["columns"].items()
    }
    with pytest.raises(PrivSVMError, match=re.escape(", ".join(map(repr, missing)) + " need")):
        parse_schema(SCHEMA | {"columns": columns})


def test_a_missing_value_counts_as_the_fill(tmp_path):
    (tmp_path / "t.csv").write_text(HEADER.decode() + "\n,,,,no\nNA,-,?,null,no\n")
    X, _ = units_table(tmp_path / "t.csv", parse_schema(SCHEMA))[:2]
    assert X.tolist() == [[-0.2, 0, 0, 1, 0, -1]] * 2


def test_a_packed_table_is_read_by_lines_too(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"\n".join([HEADER, ROWS[0], b'1,"', *ROWS[2:]])))
    X, _ = units_table(path, parse_schema(SCHEMA))[:2]
    assert len(X) == len(ROWS)


def test_the_page_states_the_rules_that_hold():
    page = (REPOSITORY / "docs/tables.md").read_text(encoding="utf-8")
    for mark in delimited.MISSING - {""}:
        assert f"`{mark}`" in page or f"`{mark.upper()}`" in page or f"`{mark.title()}`" in page or mark == "nan"
    assert f"{delimited.LONGEST_RECORD // 10**6} million characters" in page
