"""The leaderboard is computed from its cells, ranks are fair, and verdicts can fail."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics

from tests.scripts import REPOSITORY

BENCH = REPOSITORY / "bench" / "utility"


@pytest.fixture(scope="module")
def board(utility):
    return utility("leaderboard")


@pytest.fixture(scope="module")
def page(utility):
    return utility("page")


@pytest.fixture(scope="module")
def ranking(utility):
    return utility("ranking")


def cells(values):
    """Make cells on two splits from accuracies by entry and set, at every epsilon."""
    rows = [
        {"entry": entry, "set": name, "epsilon": epsilon, "split": split, "accuracy": value}
        for (entry, name), value in values.items()
        for epsilon in (0.5, 1.0, 4.0)
        for split in range(2)
    ]
    return pd.DataFrame(rows).assign(balanced_accuracy=0.5, auc=0.5, neighbours="add_remove")


def test_the_pages_are_computed_from_the_cells(page):
    known, again = page.read(), "run python bench/utility/leaderboard.py --page-only"
    worse = known.copy()
    worse.loc[worse.entry == "recommended", "accuracy"] -= 0.1
    pages = {page.PAGE: page.with_tables, page.README: page.with_sentences, page.EPSILON: page.with_accuracy}
    for path, write in pages.items():
        assert write(path.read_text(), known) == path.read_text(), again
        assert write(path.read_text(), worse) != path.read_text()


def curve(values, entry="recommended", relations=("replace_one", "add_remove")):
    """Make cells on ten splits from accuracies by set and epsilon."""
    rows = [
        {"entry": entry, "set": name, "neighbours": relation, "epsilon": epsilon, "split": split}
        | {"accuracy": value + 0.001 * (split - 4.5)}
        for (name, epsilon), value in values.items()
        for relation in relations
        for split in range(10)
    ]
    return pd.DataFrame(rows)


def test_a_fall_of_accuracy_is_named_and_noise_is_not(ranking):
    assert not ranking.rising(curve({("wine", 0.5): 0.8, ("wine", 1.0): 0.9, ("wine", 4.0): 0.9})).failures
    fallen = ranking.rising(
        curve({("wine", 0.5): 0.8, ("wine", 1.0): 0.9, ("wine", 4.0): 0.88}, relations=["add_remove"])
    )
    assert (fallen.cells, fallen.failures) == (2, ("wine, add_remove, 1 to 4 (-2.0 points)",))
    noise = curve({("wine", 1.0): 0.9, ("wine", 4.0): 0.899})
    noise.loc[noise.epsilon == 4.0, "accuracy"] += np.tile([0.03, -0.03], 10)
    assert not ranking.rising(noise).failures


def test_more_than_a_point_below_the_majority_is_named(ranking):
    majority = curve({("a9a", np.inf): 0.76}, "majority", [""])
    close, far = curve({("a9a", 0.5): 0.751, ("a9a", 0.1): 0.3}), curve({("a9a", 0.5): 0.749, ("a9a", 1.0): 0.8})
    assert not ranking.above_majority(pd.concat([majority, close])).failures
    verdict = ranking.above_majority(pd.concat([majority, far]))
    assert (verdict.cells, verdict.share) == (4, "2 of 4 (50 %)")
    assert verdict.failures[0] == "a9a, add_remove, epsilon 0.5 (0.749 against 0.760)"


def test_sets_where_the_next_best_is_ahead_are_named(ranking):
    ours = curve({("a", 1.0): 0.8, ("b", 1.0): 0.8, ("c", 1.0): 0.2})
    other = curve({("a", 1.0): 0.814, ("b", 1.0): 0.816}, ranking.NEXT_BEST, ["replace_one"])
    verdict = ranking.beside_next_best(pd.concat([ours, other]))
    assert (verdict.cells, verdict.failures) == (2, ("b, replace_one, epsilon 1 (0.800 against 0.816)",))


def test_gaps_are_of_splits_with_all_epsilons(ranking):
    ours = curve({("a", 0.5): 0.7, ("a", 1.0): 0.8, ("b", 1.0): 0.1})
    ours = ours[(ours.epsilon == 0.5) | (ours.split < 8)]
    svm = curve({("a", np.inf): 0.9, ("b", np.inf): 0.9}, "svm", [""])
    gaps = ranking.gaps_to_svm(pd.concat([ours, svm]))
    assert gaps.index.tolist() == ["a"]
    assert gaps.loc["a"].tolist() == pytest.approx([20.0, 10.0])
    assert [len(group) for group in ranking.by_rows(gaps.set_axis(["wine"])).values()] == [1, 0, 0]


def test_the_claim_names_the_first_and_where_it_is_behind(page):
    names = ["banana", "ring", "chess"]
    values = {("recommended", name): 0.9 for name in names} | {("dp_newton", name): 0.8 for name in names}
    values |= {("pmsvm_gp", name): 0.7 for name in names}
    text = "\n".join(page.ranking_blocks(cells(values), 1.0, names, "All"))
    assert "`recommended` is first among the 3 entries listed" in text
    assert "behind" not in text
    text = "\n".join(page.ranking_blocks(cells(values | {("dp_newton", "ring"): 0.95}), 1.0, names, "All"))
    assert "ring (5.0 points behind dp_newton)" in text
    ahead = values | {("dp_newton", name): 0.95 for name in names}
    assert "is not first by mean rank: dp_newton is" in "\n".join(page.ranking_blocks(cells(ahead), 1.0, names, "All"))


def standing(page, values):
    """Write what holds of accuracies by entry and set, under both relations and without privacy."""
    private = cells(values)
    both = [private.assign(neighbours=relation) for relation in page.EPSILONS]
    reference = cells({(entry, name): 0.85 for entry in page.REFERENCES for name in ("banana", "ring")})
    return page.standing(pd.concat([*both, reference.assign(epsilon=np.inf, neighbours="none")]), ["banana", "ring"])


def test_standing_has_every_relation_and_epsilon(page):
    text = standing(
        page,
        {("recommended", "banana"): 0.9, ("recommended", "ring"): 0.83}
        | {("dp_newton", "banana"): 0.905, ("dp_newton", "ring"): 0.845},
    )
    for line in (
        "| epsilon | add_remove, 0.5 | add_remove, 1 | add_remove, 4 | replace_one, 1 |",
        "| mean rank (place among the entries)" + 4 * " | 2.00 (2 of 2)" + " |",
        "| mean rank where a point is a tie (1, and entries more than it ahead)" + 4 * " | 1.50" + " |",
        "| sets at most 1 point behind the best" + 4 * " | 1 of 2 (50 %)" + " |",
        "| most points behind" + 4 * " | 1.5 (ring)" + " |",
        "| sets more than 1 point below the majority class" + 4 * " | 1 (ring)" + " |",
        "| median points below gradient boosting without privacy" + 4 * " | -1.5" + " |",
    ):
        assert line in text


def test_a_peer_with_replaced_rows_has_both_relations(ranking):
    rows = [("a", "add_remove"), ("a", "replace_one"), ("b", "add_remove"), ("c", "replace_one")]
    table = pd.DataFrame(rows, columns=["entry", "neighbours"])
    assert ranking.under(table, "add_remove").entry.tolist() == ["a", "b", "c"]
    assert ranking.under(table, "replace_one").entry.tolist() == ["a", "c"]


def test_places_are_shared_by_ties_and_last_without_an_answer(ranking):
    values = pd.DataFrame({"a": [0.5, 0.6], "b": [0.4, np.nan], "c": [np.nan, np.nan]})
    assert list(ranking.complete(values).columns) == ["a", "b"]
    assert ranking.places(ranking.complete(values))["b"].tolist() == [2.0, 2.0]
    ties = pd.DataFrame({"recommended": [0.9], "a": [0.9], "b": [0.8]})
    assert ranking.places(ties).iloc[0].tolist() == [1.5, 1.5, 3.0]
    # A point is a tie, too.
    near = pd.DataFrame({"recommended": [0.9, 0.8], "a": [0.909, 0.82], "b": [0.8, 0.82]})
    assert ranking.tied_place(near) == 2.0


def test_rows_worth_follow_a_learning_curve(utility):
    rulers = utility("rulers")
    curve = pd.Series([0.5, 0.7, 0.6, 0.8], index=[8.0, 32.0, 128.0, 512.0])
    assert [rulers.rows_worth(accuracy, curve) for accuracy in (0.4, 0.6, 0.799, 0.9)] == [8, 16, 512, 512]
    assert rulers.rows_worth(0.75, curve) == pytest.approx(256)


def test_group_privacy_limits_small_classes_alone(utility):
    """Randomised response on the label of one row, and the limits: chance, and nothing."""
    ceiling = utility("rulers").ceiling
    assert ceiling(np.array([1, 1]), 0.5, 0.0) == pytest.approx(np.exp(1.0) / (1.0 + np.exp(1.0)))
    assert ceiling(np.array([10, 10]), 1e-6, 0.0) == pytest.approx(0.5, abs=1e-4)
    assert ceiling(np.array([500, 500]), 1.0) == pytest.approx(1.0)
    assert ceiling(np.array([1, 1]), 0.5, 0.1) > ceiling(np.array([1, 1]), 0.5, 0.0)
    assert ceiling(np.array([2, 98]), 0.1) > ceiling(np.array([2, 2]), 0.1)


def test_documented_values_are_public_rows(utility, monkeypatch):
    """Those of a schema, in the units of the features; `middle` and categories say nothing."""
    rulers, sets = utility("rulers"), utility("sets")
    columns = {"a": {"bounds": [0, 10], "fill": 2}, "b": {"bounds": [0, 4], "fill": "middle"}}
    schema = {
        "name": "made",
        "label": "y",
        "prescaled": False,
        "classes": [0, 1],
        "columns": {**columns, "c": {"categories": ["u", "v"]}},
    }
    entries = {"made": SimpleNamespace(schema=schema)}
    limits = np.array([-1.0, -1.0, 0.0, 0.0]), np.ones(4), np.array([False, False, True, True]), np.array([0, 1, 2, 2])
    data = sets.UtilitySet("made", np.zeros((4, 4)), np.arange(4) % 2, *limits, 2, [])
    monkeypatch.setattr(rulers, "load_catalogue", lambda: entries)
    monkeypatch.setattr(rulers, "load", lambda name: data)
    assert rulers.typical_row("made") == pytest.approx([-0.6, 0.0, 0.0, 0.0])
    schema["columns"]["a"]["fill"] = "middle"
    assert rulers.typical_row("made") is None


def test_missing_answers_and_the_cost_of_counting(page):
    values = {(entry, name): 0.9 for entry in ("recommended", "dp_newton", "dp_ebm") for name in "abc"}
    del values["dp_newton", "b"], values["dp_ebm", "b"]
    table = cells(values).assign(neighbours="add_remove")
    assert page.missing(table, list("abc")) == " dp_newton has no answer on b."
    counted = table[table.entry == "recommended"].assign(entry=page.COUNTED, accuracy=0.88)
    table = pd.concat([table, counted])
    assert page.COUNTED not in page.accuracies(table, 1.0, list("abc"))
    assert "costs 2.0 points at epsilon 0.5, 2.0 points at epsilon 1" in page.cost_of_counting(table, list("abc"))


def test_the_critical_difference_agrees_with_the_literature(ranking):
    """Demsar (2006), table 5: 2.728 for 5 classifiers."""
    assert ranking.critical_difference(5, 10) == pytest.approx(2.728 * np.sqrt(5 * 6 / 60), rel=1e-3)


def test_a_cell_is_scored(board, monkeypatch, capsys):
    X, rows = np.random.default_rng(0).random((60, 2)), (np.arange(40), np.arange(40, 60))
    public = np.zeros(2), np.ones(2), np.zeros(2, dtype=bool), np.arange(2), 2
    data = board.UtilitySet("made", X, np.arange(60) % 2, *public, [rows])
    for entry in ("dp_tr_newton", "dp_naive_bayes", board.COUNTED, "majority"):
        assert 0.0 <= board.run(entry, data, "add_remove", 1.0, 0)["accuracy"] <= 1.0
    monkeypatch.setattr("sys.argv", ["leaderboard.py", "--entries", "dp_neton"])
    with pytest.raises(SystemExit):
        board.main()
    assert "dp_neton: no method of the library" in capsys.readouterr().err


def test_every_entry_has_its_epsilons(board):
    curve = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    for entry, name, added, replaced in (
        ("recommended", "wine", curve, curve),
        ("recommended", "banana", (0.5, 1.0, 4.0), (1.0,)),
        (board.COUNTED, "wine", (0.5, 1.0, 4.0), ()),
        ("recommended_balanced", "wine", (), curve),
        ("recommended_balanced", "banana", (), ()),
    ):
        epsilons = [board._epsilons(entry, name, relation) for relation in ("add_remove", "replace_one")]
        assert epsilons == [added, replaced]
    keys = list(board.list_cells(["majority", "recommended_linear"], ["wine"], [0], list(board.EPSILONS)))
    assert keys[0] == ("majority", "wine", "", "inf", "0")
    assert keys[1:] == [("recommended_linear", "wine", "replace_one", "1.0", "0")]


class Runner:
    """Cells of two entries on two sets, which change with the code."""

    def __init__(self, board, folder):
        self.code, self.ran, self.shift = "one", [], 0.0
        self.cells = board.Cells(folder / "cells.csv", ("entry", "set", "split"), lambda entry: self.code, self.run)

    def run(self, key):
        if len(self.ran) == 5:
            raise KeyboardInterrupt
        self.ran.append(key)
        return dict.fromkeys(("accuracy", "balanced_accuracy", "auc"), 0.5 + self.shift) | {"seconds": 0.25}

    def measure(self, entries="ab"):
        self.ran = []
        self.cells.measure((entry, name, str(split)) for name in ("x", "y") for entry in entries for split in range(2))
        return len(self.ran)


def test_cells_are_measured_once_for_each_code(board, tmp_path):
    runner = Runner(board, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        runner.measure()
    # The cell that was stopped, and those after it.
    assert runner.measure() == 3
    assert runner.measure() == 0
    assert len(runner.cells.rows()) == 8
    assert runner.cells.sources.seconds("cells", "a") == [0.25, 0.25]
    runner.code, runner.shift = "two", 0.125
    assert runner.measure("a") == 4
    # Of the other entry nothing is lost, and nothing is said.
    assert {scores[0] for key, scores in runner.cells.rows().items() if key[0] == "b"} == {"0.5"}
    assert {scores[0] for key, scores in runner.cells.rows().items() if key[0] == "a"} == {"0.625"}
    assert not runner.cells.sources.is_current("cells", "b", "two", "x")


def test_a_sample_of_cells_is_compared_by_its_scores(board, tmp_path):
    runner = Runner(board, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        runner.measure()
    runner.measure()
    runner.ran, runner.code, runner.shift = [], "two", 0.002
    assert not runner.cells.confirm("a", 2)
    runner.ran, runner.shift = [], 0.0005
    assert runner.cells.confirm("ab", 2)
    assert len(runner.ran) == len(set(runner.ran)) == 4
    assert runner.measure() == 0


def test_calibration_is_measured_by_a_release(utility):
    """A sample of `bench/utility/calibration.py`, on made-up rows."""
    calibration, sets = utility("calibration"), utility("sets")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(8000, 2))
    y = (rng.random(8000) < 1 / (1 + np.exp(-6 * X[:, 0]))).astype(np.int64)
    limits = (-np.ones(2), np.ones(2), np.zeros(2, dtype=bool), np.arange(2))
    splits = [(np.arange(4000), np.arange(4000, 8000))]
    row = calibration.measure_split(sets.UtilitySet("made_up", X, y, *limits, 2, splits), 0)
    assert row["held_back"] == 400
    # The noise is seeded: these are far from what chance does to so many rows.
    assert row["error"] < 0.06
    assert row["coverage"] > 0.87
    assert row["stated_coverage_low"] >= 0.9
    assert abs(row["stated_accuracy"] - row["accuracy"]) < 0.08
    assert list(row) == list(pd.read_csv(calibration.CSV).columns)


def test_scores_agree_with_scikit_learn(utility):
    """Ties included; a class that does not occur counts for nothing."""
    random = np.random.default_rng(0)
    for n_classes in (2, 3, 5):
        y = random.integers(min(n_classes, 4), size=200)
        scores = (np.arange(n_classes) == y[:, None]) + random.integers(-8, 8, size=(200, n_classes)) / 8
        relative = scores - scores.mean(axis=1, keepdims=True)
        areas = [sklearn.metrics.roc_auc_score(y == c, relative[:, c]) for c in np.unique(y)]
        assert utility("scores").score_row(y, scores) == pytest.approx(
            {
                "accuracy": sklearn.metrics.accuracy_score(y, scores.argmax(axis=1)),
                "balanced_accuracy": sklearn.metrics.recall_score(
                    y, scores.argmax(axis=1), labels=np.unique(y), average="macro"
                ),
                "auc": np.mean(areas),
            },
            abs=1e-5,
        )
