"""What to expect of an epsilon: real sets of about the shape, from the table in the wheel."""

import csv
import statistics
from pathlib import Path

import pytest
from tests.release.conftest import run

from privsvm.release.planning import Expected, measured_on_real_sets

TABLE = Path(__file__).resolve().parents[2] / "reports/utility/ours/pima_uci.csv"


def test_the_nearest_sets_are_shown_as_measured():
    near = measured_on_real_sets(700, 8, 2, [0.5, 1.2])
    assert near[0].name == "pima_uci"
    assert [one.epsilon for one in near[:2]] == [0.5, 1.0]
    assert len({one.name for one in near}) == 3
    with TABLE.open() as handle:
        rows = list(csv.DictReader(handle))
    private = ("recommended_balanced", "replace_one", 1.0)
    aucs = [
        float(row["auc"]) for row in rows if (row["method"], row["neighbours"], float(row["epsilon"] or 0)) == private
    ]
    assert near[1].auc == (round(min(aucs), 3), round(max(aucs), 3))
    plain = statistics.median(float(row["balanced_accuracy"]) for row in rows if row["method"] == "svm")
    assert near[1].balanced_accuracy_without_privacy == round(plain, 3)
    # Five rows a person: a row gets a fifth.
    assert [one.epsilon for one in measured_on_real_sets(700, 8, 2, [5.0], rows_per_person=5)] == [1.0] * 3


def test_other_shapes_have_none():
    assert measured_on_real_sets(10**7, 8, 2, [1.0]) == []
    assert measured_on_real_sets(700, 10**4, 2, [1.0]) == []
    assert {one.classes > 2 for one in measured_on_real_sets(1500, 50, 10, [1.0])} == {True}


def test_the_command_shows_both(monkeypatch):
    expected = Expected("hard", 0.7, 1.0, (0.6, 0.7), (0.5, 0.6), "93.8 rows for one unit of noise")
    monkeypatch.setattr("privsvm.release.planning.expected_accuracy", lambda *arguments, **options: [expected])
    code, out, _ = run("plan", "--rows", 700, "--features", 8, "--epsilon", 1)
    assert code == 0
    assert "pima_uci, 614 x 8, 2 classes: epsilon 1: AUC 0." in out
    assert "Recipe at epsilon 1 on a hard table: 93.8 rows for one unit of noise" in out
    code, out, _ = run("plan", "--rows", 9, "--features", 8)
    assert "No real set of similar shape was measured" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", 100, "--features", 5, "--prevalence", "nan"], "prevalence=nan"),
        (["--rows", 100, "--features", 5, "--prevalence", 1], "prevalence=1.0"),
        (["--rows", 5 * 10**12, "--features", 5], "would take"),
        (["--rows", 100, "--features", 10**10], "would take"),
        (["--rows", 10**400, "--features", 5], "would take"),
        (["--rows", 0, "--features", 5], "schema.rows"),
        (["--rows", 100, "--features", -1], "schema.columns"),
    ],
)
def test_shapes_of_no_table_are_one_line(options, message):
    code, _, err = run("plan", *options)
    assert (code, err.count("\n")) == (1, 1)
    assert message in err
