"""What to expect of an epsilon: real sets of about the shape, from the table in the wheel."""

import csv
import statistics

from tests.release.conftest import refusal, run
from tests.scripts import REPOSITORY

from privsvm import PrivateLinearClassifier
from privsvm.privacy.gate import default_delta
from privsvm.release.training.planning import Expected, TableShape, find_real_sets, rows_worth, simulate_accuracy
from privsvm.release.training.recipes import Recipe, Terms, plan_event
from privsvm.tables.schema import parse_schema

TABLE = REPOSITORY / "reports/utility/leaderboard.csv"


def test_the_nearest_sets_are_shown_as_measured():
    near = find_real_sets(700, 8, 2, [0.5, 1.2])
    assert near[0].name == "pima_uci"
    assert [one.epsilon for one in near[:2]] == [0.5, 1.0]
    assert len({one.name for one in near}) == 3
    with TABLE.open() as handle:
        rows = [row for row in csv.DictReader(handle) if row["set"] == "pima_uci"]
    aucs = [float(row["auc"]) for row in rows if (row["entry"], row["epsilon"]) == ("recommended_balanced", "1.0")]
    assert near[1].auc == (round(min(aucs), 3), round(max(aucs), 3))
    plain = statistics.median(float(row["balanced_accuracy"]) for row in rows if row["entry"] == "svm")
    assert near[1].balanced_accuracy_without_privacy == round(plain, 3)
    # Five rows a person: a row gets a fifth.
    assert [one.epsilon for one in find_real_sets(700, 8, 2, [5.0], rows_per_person=5)] == [1.0] * 3

    # Other shapes have none.
    assert find_real_sets(10**7, 8, 2, [1.0]) == []
    assert find_real_sets(700, 10**4, 2, [1.0]) == []
    assert {one.classes > 2 for one in find_real_sets(1500, 50, 10, [1.0])} == {True}


def test_rows_worth_are_measured_where_noise_is_about_the_same():
    """More rows for one unit of noise are worth more, epsilon and rows alike; nothing is said beyond measurements."""
    small, large = rows_worth(300, 0.5, 1e-5), rows_worth(5000, 1.0, 1e-5)
    assert 0.0 < small[0] <= small[1] <= small[2] <= 1.0
    assert small[0] < large[0]
    assert small[1] < large[1]
    rulers = TABLE.with_name("rulers.csv")
    with rulers.open() as handle:
        shares = [int(row["rows_worth"]) / int(row["rows"]) for row in csv.DictReader(handle)]
    assert min(shares) - 0.001 <= small[0]
    assert rows_worth(10, 0.01, 1e-5) == []
    assert rows_worth(10**9, 1.0, 1e-10) == []


def test_the_command_shows_both(monkeypatch):
    expected = Expected("hard", 0.7, 1.0, 1.0, (0.6, 0.65, 0.7), (0.5, 0.55, 0.6), "93.8 rows for one unit of noise")
    monkeypatch.setattr("privsvm.release.training.planning.simulate_accuracy", lambda *arguments, **options: [expected])
    code, out, _ = run("plan", "--rows", 700, "--features", 8, "--epsilon", 1)
    assert code == 0
    assert "pima_uci, 614 x 8, 2 classes: epsilon 1: AUC 0." in out
    assert "Recipe at epsilon 1 on a hard table: 93.8 rows for one unit of noise" in out
    assert "Rows worth at epsilon 1: as accurate as a linear SVM without privacy on " in out
    shared = run("plan", "--rows", 700, "--features", 8, "--epsilon", 1, "--rows-per-person", 4)[1]
    low, middle, high = (f"{100 * share:.0f} %" for share in rows_worth(700, 0.25, default_delta(700) / 4))
    assert f"Rows worth at epsilon 1: as accurate as a linear SVM without privacy on {middle} of" in shared
    assert f"(quartiles {low.removesuffix(' %')} and {high}, real sets" in shared
    code, out, _ = run("plan", "--rows", 9, "--features", 8)
    assert "No real set of similar shape was measured" in out
    assert "Rows worth" not in out


def test_more_epsilon_is_never_promised_less_accuracy(monkeypatch):
    """A rule may switch, and simulations vary: the accuracy of a smaller epsilon is then promised, at its cost."""
    means = {1.0: (0.70, 0.60), 4.0: (0.83, 0.75), 5.0: (0.75, 0.76), 6.0: (0.829, 0.751), 8.0: (0.84, 0.76)}

    def simulate(difficulty, shape, schema, releases, seeds):
        epsilon = releases[-1][1].epsilon
        auc, balanced = means[epsilon]
        return Expected(difficulty, 0.85, epsilon, epsilon, (0.5, auc, 0.9), (0.5, balanced, 0.9), f"of {epsilon:g}")

    monkeypatch.setattr("privsvm.release.training.planning._simulate", simulate)
    expected = simulate_accuracy(TableShape(3000, 14, 2, 0.06), [8.0, 5.0, 1.0, 6.0, 4.0])[:5]
    assert [(row.epsilon, row.spent) for row in expected] == [(1, 1), (4, 4), (5, 4), (6, 6), (8, 8)]
    assert [row.recipe for row in expected[1:3]] == ["of 4", "of 4"]
    code, out, _ = run("plan", "--rows", 3000, "--features", 14, "--epsilon", "4,5")
    assert code == 0
    assert "0.83 (0.50 - 0.90)  0.75 (0.50 - 0.90)  spend only 4: more gave no better model" in out


def test_simulated_tables_are_learned():
    rows = simulate_accuracy(TableShape(400, 3, 2), [0.5, 8.0], repeats=2)
    assert [row.difficulty for row in rows] == ["hard", "hard", "medium", "medium", "easy", "easy"]
    assert all(low <= mean <= high for row in rows for low, mean, high in (row.auc, row.balanced_accuracy))
    # With noise of seeds: a linear model reaches .95 on the last.
    assert 0.9 < rows[-1].auc[1] < 0.97


def test_intervals_and_sets_narrow_with_the_rows(monkeypatch):
    monkeypatch.setattr("privsvm.release.training.planning.DIFFICULTIES", {"easy": 0.95})
    terms = Terms(1.0, hold_back=0.2)
    few, many = (
        simulate_accuracy(TableShape(rows, 3, 2), [2.0], repeats=2, terms=terms)[-1].measured for rows in (300, 6000)
    )
    assert few[1] - few[0] > 2 * (many[1] - many[0])
    assert few[3] - few[2] > 2 * (many[3] - many[2])
    assert many[4] < few[4] == 2.0
    # The intervals hold the accuracy that the simulation of the same size tests for.
    assert many[2] < 0.87 < many[3]


def test_a_plan_shows_what_held_back_rows_will_say(monkeypatch):
    expected = [
        Expected("hard", 0.7, 1.0, 1.0, (0.6, 0.65, 0.7), (0.5, 0.55, 0.6), "a recipe", (0.5, 0.7, 0.412, 0.834, size))
        for size in (2.0, 1.4)
    ]
    monkeypatch.setattr("privsvm.release.training.planning.simulate_accuracy", lambda *arguments, **options: expected)
    code, out, _ = run("plan", "--rows", 700, "--features", 8, "--epsilon", 1, "--hold-back", 0.1)
    assert code == 0
    assert "On 10 % held back: 95 % intervals on the card" in out
    assert "hard        1        50.0 - 70.0   41.2 - 83.4        2.0  sets say nothing: hold back more" in out
    assert "hard        1        50.0 - 70.0   41.2 - 83.4        1.4\n" in out
    # The risk of Laplace noise on the counts, as on the card; 56 without them.
    assert ["1", "69.7"] in [line.split()[:2] for line in out.splitlines()]


def test_shapes_of_no_table_are_one_line():
    for rows, features, options, message in (
        (100, 5, ["--prevalence", "nan"], "prevalence=nan"),
        (100, 5, ["--prevalence", 1], "prevalence=1.0"),
        (100, 5, ["--classes", 5, "--prevalence", 0.3], "prevalence=0.3: is the share of the"),
        (5 * 10**12, 5, [], "would take"),
        (100, 10**10, [], "would take"),
        (10**400, 5, [], "would take"),
        (0, 5, [], "schema.rows"),
        (100, -1, [], "schema.columns"),
    ):
        assert message in refusal("plan", "--rows", rows, "--features", features, *options)


def test_a_release_has_the_relation_of_its_method_unless_one_is_named():
    columns = {"a": {"bounds": [0, 1], "fill": 0}}
    schema = parse_schema({"name": "t", "label": "y", "classes": [0, 1], "columns": columns})
    for terms, relation in (
        (Terms(1.0), PrivateLinearClassifier().neighbours),
        (Terms(1.0, neighbours="replace_one"), "replace_one"),
        (Terms(1.0, neighbours="add_remove"), "add_remove"),
        (Terms(1.0, recipe=Recipe("private_svm")), "replace_one"),
    ):
        assert plan_event(schema, terms)[2] == relation
    persons = parse_schema(schema.to_json() | {"person": "who", "rows_per_person": 2})
    assert plan_event(persons, Terms(1.0, neighbours="replace_one"))[1:] == (2, "add_remove")
