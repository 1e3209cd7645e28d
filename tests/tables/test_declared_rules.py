"""Rules that a schema declares of messy cells and of several rows a person, beside pandas' own readers."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm import PublicSchema
from privsvm.digests import canonical_json
from privsvm.tables.inspection import inspect_table
from privsvm.tables.labels import normalise_label, spell_in_any_case
from privsvm.tables.schema import parse_schema
from privsvm.tables.tables import Encoder, units_table

FORMATS = ["%d.%m.%Y", "%d/%m/%Y", "%Y-%m-%d", "%m/%d/%Y"]
DECLARED = {
    "name": "wards", "label": "died", "classes": ["no", "yes"], "prescaled": False, "missing": [-999, "n.d."],
    "columns": {
        "age": {"bounds": [0, 100], "fill": 40},
        "dose": {"bounds": [-1000, 0], "fill": -1, "missing": []},
        "sex": {"categories": ["Male", "wei\u00df", "7"], "unknown": "other", "fill": "7", "ignore_case": True},
        "day": {"date": FORMATS, "bounds": ["01.01.2000", "2030-12-31"], "fill": "middle", "missing": ["01.01.2020"]},
        "smoker": {"boolean": True, "fill": "no"},
    },
}  # fmt: skip
COLUMNS = [*DECLARED["columns"]]
PERSONS = {"person": "who", "rows_per_person": 2, "latest_by": "day"}
DAYS = st.dates(datetime.date(1990, 1, 1), datetime.date(2040, 1, 1))
WRITTEN = st.builds(lambda day, form: day.strftime(form), DAYS, st.sampled_from(FORMATS))
NUMBERS = ["-999", "-999.0", " -9.99e2", "n.d.", " N.D. ", "", "NA", "12", "7.5", "-3", "400"]
WORDS = ["male", "MALE", " Male", "weiss", "WEI\u1e9e", "7.0", "-999", "n.d.", "N.D.", "", "OTHER", "x", "\u212a"]
CELLS = (
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.sampled_from(WORDS),
    st.one_of(WRITTEN, st.sampled_from(["01.01.2020", "2020-01-01", "01/01/2020", "31.02.2020", "n.d.", "", "soon"])),
    st.sampled_from(["yes", "No", "1", "0", "n.d.", "-999", ""]),
)


def scaled(numbers, low, high, fill):
    return 2 * (numbers.fillna(fill).clip(low, high) - low) / (high - low) - 1


def days_of(texts):
    read = [(pd.to_datetime(texts, format=form, errors="coerce") - pd.Timestamp(0)).dt.days for form in FORMATS]
    days = read[0]
    for other in read[1:]:
        days = days.combine_first(other)
    return days.astype(float)


def features_by_pandas(frame):
    number = {name: pd.to_numeric(frame[name].str.strip(), errors="coerce") for name in ("age", "dose")}
    words = frame["sex"].str.strip().str.casefold().replace({"7.0": "7", "": "7", "-999": "7", "n.d.": "7"})
    words = words.where(words.isin(["male", "weiss", "7"]), "other")
    days = days_of(frame["day"])
    first, last = days_of(pd.Series(["01.01.2000", "31.12.2030", "01.01.2020"])).tolist()[:2]
    new_year = days_of(pd.Series(["01.01.2020"]))[0]
    smoker = frame["smoker"].map({"yes": 1.0, "1": 1.0}).fillna(-1.0)
    return np.column_stack([
        scaled(number["age"].mask(number["age"] == -999), 0, 100, 40), scaled(number["dose"], -1000, 0, -1),
        *((words == word).astype(float) for word in ("male", "weiss", "7", "other")),
        scaled(days.mask(days == new_year), first, last, (first + last) / 2), smoker,
    ])  # fmt: skip


@settings(max_examples=40)
@given(st.lists(st.tuples(*CELLS), min_size=1, max_size=12))
def test_messy_cells_are_read_as_pandas_reads_them(rows):
    frame = pd.DataFrame(rows, columns=COLUMNS, dtype=object)
    schema = parse_schema(DECLARED)
    found = Encoder(schema).features(frame.to_dict("list"))
    np.testing.assert_allclose(found, features_by_pandas(frame), atol=1e-12)
    # As the model file holds it, from Python, and without its neighbours.
    again = PublicSchema(schema.to_json())
    assert again.fit_transform(frame).tobytes() == found.tobytes()
    assert again.transform(frame.iloc[:1]).tobytes() == found[:1].tobytes()


def write(path, rows, persons):
    frame = pd.DataFrame(rows, columns=COLUMNS, dtype=object).assign(who=persons, died="yes")
    frame.to_csv(path, index=False)
    return frame


ROWS_OF_PERSONS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "7", "7.0", "", "n.d.", "-999.0"]), st.tuples(*CELLS)), min_size=1, max_size=25
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rules")


@settings(max_examples=40)
@given(ROWS_OF_PERSONS, st.sampled_from([None, "day"]), st.booleans(), st.integers(1, 3))
def test_the_rows_of_a_person_are_those_that_pandas_chooses(folder, rows, latest_by, is_ignored, most):
    persons, cells = zip(*rows, strict=True)
    frame = write(folder / "t.csv", cells, persons)
    changes = {"person": "who", "rows_per_person": most} | ({} if latest_by is None else {"latest_by": latest_by})
    columns = DECLARED["columns"] | ({"day": {"date": FORMATS, "ignore": True}} if is_ignored and latest_by else {})
    if is_ignored and not latest_by:
        columns = columns | {"day": "ignore"}
    schema = parse_schema(DECLARED | changes | {"columns": columns})
    assert parse_schema(schema.to_json()) == schema
    found, codes, units = units_table(folder / "t.csv", schema)
    frame = frame.assign(day_number=days_of(frame["day"]), who=[*map(normalise_label, persons)])
    if not is_ignored:
        frame["day_number"] = frame["day_number"].mask(frame["day_number"] == days_of(pd.Series(["01.01.2020"]))[0])
    frame = frame[~frame["who"].isin(["", "n.d.", "-999"])]
    order = frame if latest_by is None else frame.sort_values("day_number", ascending=False, kind="stable")
    expected = order.groupby("who", sort=False).head(most).sort_index()
    features = features_by_pandas(expected) if len(expected) else np.zeros((0, 8))
    np.testing.assert_allclose(found, np.delete(features, 6, axis=1) if is_ignored else features, atol=1e-12)
    numbers = {who: number for number, who in enumerate(dict.fromkeys(frame["who"]))}
    assert units.tolist() == [numbers[who] for who in expected["who"]]
    assert codes.tolist() == [1] * len(expected)


def test_spellings_are_all_that_fold_to_a_word():
    for word in ("k", "ss", "weiss", "7", "\u03bcm"):
        spellings = spell_in_any_case(word, 10_000)
        assert {spelling.casefold() for spelling in spellings} == {word}
        assert len(set(spellings)) == len(spellings)
    assert {"WEISS", "wei\u00df", "WEI\u1e9e", "wei\u017fs"} <= set(spell_in_any_case("weiss", 10_000))
    with pytest.raises(ValueError, match="more than 100 spellings"):
        spell_in_any_case("x" * 900, 100)


def test_older_declarations_are_written_as_before():
    day = {"date": "iso", "bounds": ["2020-01-01", "2021-01-01"], "fill": "middle"}
    declared = {"version": 1, "name": "s", "label": "y", "classes": ["0", "1"], "delimiter": ","}
    schema = parse_schema(declared | {"columns": {"day": day, "note": "ignore"}})
    expected = declared | {"columns": [["day", day], ["note", "ignore"]]}
    assert canonical_json(schema.to_json()) == canonical_json(expected)
    assert schema.rules == []


def test_inspection_tells_marks_from_mistakes(tmp_path):
    cells = [
        ("-999", "-999", "n.d.", "01.01.2020", "n.d."),
        ("soon", "12", "x", "03/04/2020", "maybe"),
        ("n.d.", "NA", "MALE", "13/04/2020", "yes"),
    ]
    write(tmp_path / "t.csv", cells, ["n.d.", "a", "a"])
    lines = inspect_table(tmp_path / "t.csv", parse_schema(DECLARED | PERSONS | {"rows_per_person": 1}))
    for line in (
        "age: 0 of 3 values could be read",
        "age: NONE of its values could be read: its feature will be the same in all rows",
        "age: 2 values are missing; they count as the fill value",
        "age: 1 values cannot be read, such as 'soon'; they count as the fill value",
        "dose: 1 values are missing; they count as the fill value",
        "dose: 1 values lie outside the bounds, such as '12'; each counts as the nearer end",
        "sex: 1 values are none of the categories, such as 'x'; they count as 'other'",
        "sex: 1 values are missing; they count as 'other'",
        "day: 1 values are missing; they count as the fill value",
        "day: 1 values are two dates by two formats, such as '03/04/2020'; the first format counts",
        "smoker: 1 values cannot be read, such as 'maybe'; they count as the fill value",
        "who: 1 rows name nobody and are left out",
        "who: 1 rows beyond the latest 1 by day of their person are left out",
    ):
        assert line in lines, "\n".join(lines)
