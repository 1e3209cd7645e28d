import pytest

from reproduce.engine.comparison import (
    VERDICTS,
    Row,
    compare,
    count_verdicts,
    read_rows,
    rows_csv,
    ruled_by,
    within,
    within_either,
    within_share,
)

PLACE = ("t", "d", "m", "s", "x")


@pytest.mark.parametrize(
    ("rule", "published", "inside", "outside"),
    [
        (within(0.01), 0.91, (0.90, 0.92), (0.899, 0.9201)),
        (within(0.00005), 0.8481, (0.84805, 0.84814), (0.84804, 0.8482)),
        (within_share(0.15), 100.0, (85.0, 115.0), (84.9, 115.1)),
        (within_share(0.0), 1010.0, (1010.0,), (1009.0, 1011.0)),
        (within_share(1e-4, least=0.005), -92.47, (-92.475, -92.465), (-92.48, -92.459)),
        (within_share(1e-4, least=0.005), -8590.16, (-8590.9, -8589.4), (-8591.1,)),
        (within_either(2.0, 0.01), -90.0, (-92.0, -88.0), (-92.1, -87.9)),
        (within_either(2.0, 0.01), -8590.0, (-8675.0, -8505.0), (-8676.0,)),
    ],
)
def test_rules(rule, published, inside, outside):
    assert rule.text
    for value in inside:
        assert rule.agrees(published, value), value
    for value in outside:
        assert not rule.agrees(published, value), value


def test_a_row_that_differs_must_say_why():
    with pytest.raises(ValueError, match="without an explanation"):
        compare(PLACE, "0.5", 0.9, within(0.01))
    asked = []
    row = compare(PLACE, "0.5", 0.9, within(0.01), why=lambda: asked.append(1) or "because", note="more")
    assert (row.verdict, row.explanation, row.difference) == ("beyond tolerance", "because; more", pytest.approx(0.4))
    assert compare(PLACE, "0.5", 0.5, within(0.01), why=lambda: asked.append(1) or "").verdict == "within tolerance"
    assert len(asked) == 1
    assert compare(PLACE, "0.5", 0.9, within(0.01), why="other", open_choice=True).verdict == "ruled out"


def test_what_is_missing_gets_a_verdict():
    row = compare(PLACE, "0.5", None, within(0.01), missing=("no data", "gone"))
    assert (row.verdict, row.published, row.ours, row.explanation) == ("no data", "0.5", None, "gone")
    assert compare(PLACE, "0.5", None, within(0.01)).verdict == "not run"
    assert compare(PLACE, None, 0.3, within(0.01)).verdict == "no number"
    assert compare(PLACE, "rises", None, False, missing=("no data", "gone")).verdict == "no data"


def test_statements():
    assert compare(PLACE, "rises", 0.1, True).verdict == "within tolerance"
    assert compare(PLACE, "rises", -0.1, False, why="it falls").verdict == "beyond tolerance"
    row = compare(PLACE, "0.5", 0.4, ruled_by(True))
    assert (row.verdict, row.difference) == ("within tolerance", pytest.approx(-0.1))


def test_unknown_verdicts_are_refused():
    with pytest.raises(ValueError, match="verdict='fine'"):
        Row(table="t", verdict="fine")


def test_csv_round_trip(tmp_path):
    rows = [
        compare(PLACE, "0.50", 0.504, within(0.01)),
        compare(PLACE, "-92.47", -92.1234567, within(0.01), why='it, "beyond tolerance"'),
        compare(PLACE, None, 12.0, within(0.01)),
        compare(PLACE, "1", None, within(0.01), missing=("no data", "gone")),
    ]
    path = tmp_path / "rows.csv"
    path.write_text(rows_csv(rows))
    rows_read = read_rows(path)
    assert rows_csv(rows_read) == path.read_text()
    assert [row.verdict for row in rows_read] == ["within tolerance", "beyond tolerance", "no number", "no data"]
    assert rows_read[0].published == "0.50"
    assert rows_read[1].ours == pytest.approx(-92.1235)
    assert count_verdicts(rows_read) == {"within tolerance": 1, "beyond tolerance": 1, "no data": 1, "no number": 1}
    assert set(count_verdicts(rows_read)) <= set(VERDICTS)
