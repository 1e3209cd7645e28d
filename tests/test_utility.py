"""The page on accuracy matches its tables, and every verdict can fail."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
RELATIONS = ("replace_one", "add_remove")


@pytest.fixture(scope="module")
def bench():
    """Load modules of bench/utility, which is not a package, by name."""
    modules = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("verdicts", "page"):
            spec = importlib.util.spec_from_file_location(name, REPOSITORY / "bench" / "utility" / f"{name}.py")
            modules[name] = importlib.util.module_from_spec(spec)
            patch.setitem(sys.modules, name, modules[name])
            spec.loader.exec_module(modules[name])
        yield modules


@pytest.fixture(scope="module")
def judge(bench):
    return bench["verdicts"]


def ours(values, method="recommended", relations=RELATIONS, score="accuracy"):
    """Make cells on ten splits from values by set and epsilon."""
    return pd.DataFrame(
        [
            {
                "method": method,
                "set": name,
                "epsilon": epsilon,
                "neighbours": relation,
                "split": split,
                **dict.fromkeys(("accuracy", "balanced_accuracy", "auc"), 0.5),
                score: value + 0.001 * (split - 4.5),
            }
            for (name, epsilon), value in values.items()
            for relation in relations
            for split in range(10)
        ]
    )


def majority(values):
    return pd.DataFrame([{"method": "majority", "set": name, "accuracy": value} for name, value in values.items()])


def test_a_fall_of_accuracy_is_named_and_noise_is_not(judge):
    assert not judge.rising(ours({("wine", 0.5): 0.8, ("wine", 1.0): 0.9, ("wine", 4.0): 0.9})).short
    fallen = judge.rising(ours({("wine", 0.5): 0.8, ("wine", 1.0): 0.9, ("wine", 4.0): 0.88}, relations=RELATIONS[:1]))
    assert (fallen.cells, fallen.short) == (2, ("wine, replace_one, 1 to 4 (-2.0 points)",))
    noise = ours({("wine", 1.0): 0.9, ("wine", 4.0): 0.899})
    noise.loc[noise.epsilon == 4.0, "accuracy"] += np.tile([0.03, -0.03], 10)
    assert not judge.rising(noise).short


def test_more_than_a_point_below_the_majority_is_named(judge):
    reference = majority({"a9a": 0.76})
    assert not judge.above_majority(ours({("a9a", 0.5): 0.751, ("a9a", 0.1): 0.3}), reference).short
    verdict = judge.above_majority(ours({("a9a", 0.5): 0.749, ("a9a", 1.0): 0.8}), reference)
    assert (verdict.cells, verdict.held, verdict.share) == (4, 2, "2 of 4 (50 %)")
    assert verdict.short[0] == "a9a, add_remove, epsilon 0.5 (0.749 against 0.760)"


def test_the_best_of_our_own_methods_in_hindsight(judge):
    recommended = ours({("a", 1.0): 0.8, ("b", 1.0): 0.8})
    other = ours({("a", 1.0): 0.814, ("b", 1.0): 0.816}, "dp_least_squares", ("replace_one",))
    verdict = judge.beside_other_methods(pd.concat([recommended, other]))
    assert (verdict.cells, verdict.short) == (2, ("b, epsilon 1 (0.800 against 0.816)",))


def test_the_pages_are_those_of_the_tables(bench):
    page = bench["page"]
    cells, searches = page.read(), pd.read_csv(page.TABLES / "search.csv")
    assert page.page_text(*cells, searches) == page.PAGE.read_text(), "run python bench/utility/page.py"
    # A changed cell changes the page.
    ours, peers, reference = cells
    worse = ours.assign(accuracy=ours.accuracy - 0.01)
    assert page.page_text(worse, peers, reference, searches) != page.PAGE.read_text()
    epsilon = page.EPSILON.read_text()
    assert page.with_accuracy(epsilon, page.accuracy_by_rows(ours, reference)) == epsilon
    assert page.with_accuracy(epsilon, page.accuracy_by_rows(worse, reference)) != epsilon


def test_calibration_is_measured_by_a_release(monkeypatch):
    """A sample of `bench/utility/calibration.py`, on made-up rows."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "bench" / "utility"))
    names = ("calibration", "run_ours", "sets", "scores", "packaged")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    calibration, sets = importlib.import_module("calibration"), importlib.import_module("sets")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(8000, 2))
    y = (rng.random(8000) < 1 / (1 + np.exp(-6 * X[:, 0]))).astype(np.int64)
    limits = (-np.ones(2), np.ones(2), np.zeros(2, dtype=bool), np.arange(2))
    splits = [(np.arange(4000), np.arange(4000, 8000))]
    row = calibration.measure_split(sets.UtilitySet("made_up", X, y, *limits, 2, splits), 0)
    for name in names:
        sys.modules.pop(name, None)
    assert row["held_back"] == 400
    # The noise is seeded: these are far from what chance does to so many rows.
    assert row["error"] < 0.06
    assert row["coverage"] > 0.87
    assert row["stated_coverage_low"] >= 0.9
    assert abs(row["stated_accuracy"] - row["accuracy"]) < 0.08
    assert list(row) == list(pd.read_csv(REPOSITORY / "reports" / "utility" / "calibration.csv").columns)
