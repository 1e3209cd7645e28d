import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.svm import SVC

from privsvm.families.condensed.condensation import condense_rows
from privsvm.methods.ci_svm import CISVMClassifier
from privsvm.methods.fcm_svm import FCMSVMClassifier
from privsvm.methods.rsvm import ReducedSVMClassifier
from privsvm.numerics.rows.rows import squared_distances
from privsvm.solvers.condensing.condense import feature_weights
from privsvm.solvers.linear.one_norm_svm import OneNormProblem
from reproduce.ci_svm import experiments, measurements
from reproduce.ci_svm import runs as ci_svm_runs
from reproduce.ci_svm.runs import SIDES, Side, deal_folds, search_held_out
from reproduce.engine import context as engine

GRID = ((0.5, 8.0), (0.125, 2.0))
METHODS = experiments.SETTINGS["shared"]["methods"]
PARAMETERS = {
    "dataset": "made up", "source": ["x", "all"], "most_rows": None, "seed": 1, "repeats": 1, "Cs": list(GRID[0]),
    "gammas": list(GRID[1]), "methods": METHODS, "search": "every fold",
}  # fmt: skip


class MadeUp(engine.Context):
    """Two classes that overlap, in three features of different ranges."""

    n_classes = 2

    def class_rows(self, dataset, *parts):
        rng = np.random.default_rng(0)
        codes = rng.integers(self.n_classes, size=120)
        X = (rng.random((120, 3)) + 0.4 * codes[:, None]) * [1.0, 10.0, 0.1]
        return engine.ClassRows(X, codes, tuple(str(code) for code in range(self.n_classes)))


class ThreeClasses(MadeUp):
    n_classes = 3


# --- results of a job -----------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(2, 6), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_folds_are_even_over_all_and_in_each_class(codes, n_folds, seed):
    codes = np.array(codes)
    folds = deal_folds(codes, np.random.default_rng(seed), n_folds)
    for chosen in (codes >= 0, *(codes == code for code in np.unique(codes))):
        counts = np.bincount(folds[chosen], minlength=n_folds)
        assert counts.sum() == chosen.sum()
        assert counts.max() - counts.min() <= 1


def explicit_search(rows, codes, rng):
    """Accuracy of all points by scikit-learn."""
    folds = PredefinedSplit(deal_folds(codes, rng))
    return {
        (C, gamma): np.mean(cross_val_predict(SVC(C=C, gamma=gamma), rows, codes, cv=folds) == codes)
        for C, gamma in itertools.product(*GRID)
    }


def trained(name, C, gamma, stream, rows, codes):
    """Train the library's estimator of a method, or scikit-learn's; `stream` gives its random numbers."""
    if name in ("RSVM", "FCM-SVM"):
        kernel = {"kernel": "gaussian"} if name == "RSVM" else {}
        model = (ReducedSVMClassifier if name == "RSVM" else FCMSVMClassifier)(C=C, gamma=gamma, **kernel)
        model.release_path(rows, codes, [math.inf], 1, lambda epsilon, repeat: stream("side"))
        return model
    return (CISVMClassifier if name == "CI-SVM" else SVC)(C=C, gamma=gamma).fit(rows, codes)


@pytest.mark.parametrize("context", [MadeUp, ThreeClasses])
def test_a_job_is_a_loop_over_the_estimators(context, tmp_path):
    context = context("one", tmp_path, "0")
    methods = {name: how for name, how in METHODS.items() if name != "RSVM" or context.n_classes == 2}
    result = ci_svm_runs.accuracies({**PARAMETERS, "methods": methods}, context)
    (repeat,) = result["repeats"]
    X, codes, _ = context.class_rows("x")
    folds = deal_folds(codes, context.stream(1, "made up", 0, "folds"))
    assert result["n_rows"] == 120
    assert repeat["folds"] == np.bincount(folds).tolist() == [24] * 5
    for number in range(5):
        test = folds == number
        low, high = X[~test].min(axis=0), X[~test].max(axis=0)
        train, judged = (X[~test] - low) / (high - low), (X[test] - low) / (high - low)
        for name in methods:
            fold_values = {field: values[number] for field, values in repeat["methods"][name].items()}

            def stream(purpose, name=name, number=number):
                return context.stream(1, "made up", 0, number, METHODS[name]["side"], purpose)

            model = trained(name, fold_values["C"], fold_values["gamma"], stream, train, codes[~test])
            assert fold_values["errors"] == (model.predict(judged) != codes[test]).sum(), (name, number)
            if name in ("CI-SVM", "FCM-SVM"):
                assert fold_values["purity"] == pytest.approx(model.label_purity_)
                assert fold_values["n_support"] == model.support_.size
                assert fold_values["n_rows"] == math.ceil((~test).sum() / 3)
            if name == "RSVM":
                assert fold_values["n_rows"] == (~test).sum()
                continue
            kind = {"CI-SVM": "ci", "FCM-SVM": "fcm"}.get(name)
            rows, labels = train, codes[~test]
            if kind:
                side = condense_rows(kind, train, labels, context.n_classes, rng=stream("side"))
                rows, labels = side.rows, side.codes
            table = explicit_search(rows, labels, stream("search"))
            # Solutions are known to a tolerance, which may turn one row.
            one = 1.0 / len(labels) + 1e-9
            assert fold_values["searched"] == pytest.approx(table[fold_values["C"], fold_values["gamma"]], abs=one)
            assert fold_values["searched"] == pytest.approx(max(table.values()), abs=one)


def test_the_search_of_a_reduced_kernel_counts_its_errors(tmp_path):
    context = MadeUp("one", tmp_path, "0")
    X, codes, _ = context.class_rows("x")
    X, _ = ci_svm_runs.unit_range(X, X)

    def stream(purpose):
        return np.random.default_rng(len(purpose))

    fitted = ci_svm_runs._fit(METHODS["RSVM"], X, codes, 2, GRID, stream, None)
    drawn = np.sort(stream("side").choice(120, 12, replace=False))
    folds = deal_folds(codes, stream("search"))
    accuracies = {}
    for C, gamma in itertools.product(*GRID):
        right = 0
        for number in range(5):
            train, test = folds != number, folds == number
            # The kernel keeps its rows, including the fold's.
            K = np.exp(-gamma * squared_distances(X, X[drawn]))
            solution = OneNormProblem(K[train], np.where(codes[train] == 1, 1.0, -1.0)).solve(C)
            right += ((K[test] @ solution.coef + solution.intercept > 0) == codes[test]).sum()
        accuracies[C, gamma] = right / 120
    best = max(accuracies.values())
    assert fitted.chosen.accuracy == pytest.approx(best)
    assert accuracies[fitted.chosen.C, fitted.chosen.gamma] == best


def test_once_a_repeat_takes_the_first_folds_choice(tmp_path):
    context = MadeUp("one", tmp_path, "0")
    every = ci_svm_runs.accuracies(PARAMETERS, context)["repeats"][0]["methods"]
    once = ci_svm_runs.accuracies({**PARAMETERS, "search": "once a repeat"}, context)["repeats"][0]["methods"]
    for name in METHODS:
        assert len(every[name]["searched"]) == 5
        assert once[name]["searched"] == every[name]["searched"][:1]
        for field in ("C", "gamma"):
            assert once[name][field] == [every[name][field][0]] * 5


def test_rows_are_drawn_once_where_there_are_more(tmp_path):
    context = MadeUp("one", tmp_path, "0")
    all_rows, codes, _ = context.class_rows("x")
    parameters = {**PARAMETERS, "most_rows": 40}
    X, drawn_codes, n_classes = ci_svm_runs.read(parameters, context)
    again, _, _ = ci_svm_runs.read(parameters, context)
    np.testing.assert_array_equal(X, again)
    assert (X.shape, n_classes) == ((40, 3), 2)
    where = [int(np.flatnonzero((all_rows == row).all(axis=1))[0]) for row in X]
    assert len(set(where)) == 40
    np.testing.assert_array_equal(codes[where], drawn_codes)


# --- sides ----------------------------------------------------------------------------------------------------------


def triples_by_distance(W):
    """The printed steps with squared distances in place of similarities; rows without ties."""
    ungrouped, groups = list(range(len(W))), []
    while len(ungrouped) >= 3:
        pairs = itertools.combinations(ungrouped, 2)
        a, b = min(pairs, key=lambda pair: ((W[pair[0]] - W[pair[1]]) ** 2).sum())
        others = [c for c in ungrouped if c not in (a, b)]
        c = min(others, key=lambda c: ((W[a] - W[c]) ** 2).sum() + ((W[b] - W[c]) ** 2).sum())
        groups.append({a, b, c})
        ungrouped = [row for row in ungrouped if row not in (a, b, c)]
    return groups + ([set(ungrouped)] if ungrouped else [])


@pytest.mark.parametrize("n", [3, 40, 61, 62])
def test_triples_by_distance_follow_the_steps(n):
    rng = np.random.default_rng(n)
    X, codes = rng.random((n, 4)), rng.integers(3, size=n)
    side = SIDES["condensed information, by distance"](X, codes, 3, rng)
    groups = triples_by_distance(X * feature_weights(X))
    expected = sorted(X[sorted(group)].mean(axis=0).round(9).tolist() for group in groups)
    assert sorted(side.rows.round(9).tolist()) == expected
    rows = {tuple(row): code for row, code in zip(side.rows.round(9).tolist(), side.codes, strict=True)}
    labels = [rows[tuple(X[sorted(group)].mean(axis=0).round(9).tolist())] for group in groups]
    right = sum((codes[sorted(group)] == label).sum() for group, label in zip(groups, labels, strict=True))
    assert side.purity == pytest.approx(right / n)


def test_sides_of_one_class_each():
    rng = np.random.default_rng(0)
    X, codes = rng.random((50, 3)), np.repeat([0, 2], [20, 30])
    side = SIDES["condensed information, class by class"](X, codes, 3, rng)
    np.testing.assert_array_equal(side.codes, [0] * 7 + [2] * 10)
    assert side.purity == 1.0
    # The mean of the means, weighted by their rows, is the mean of the class.
    last = condense_rows("ci", X[:20], np.zeros(20, dtype=int), 1)
    np.testing.assert_array_equal(side.rows[:7], last.rows)
    sizes = (last.groups >= 0).sum(axis=1)
    np.testing.assert_allclose(sizes @ side.rows[:7] / 20, X[:20].mean(axis=0))


def test_a_third_of_the_rows_is_drawn_from_each_class():
    rng = np.random.default_rng(0)
    X, codes = rng.random((90, 2)), np.repeat([0, 1], [30, 60])
    side = SIDES["a third of the rows"](X, codes, 2, rng)
    assert np.bincount(side.codes).tolist() == [10, 20]
    assert {tuple(row) for row in side.rows} <= {tuple(row) for row in X}
    other = SIDES["a third of the rows"](X, codes, 2, rng)
    assert not np.array_equal(side.rows, other.rows)


# --- search ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_searching_on_original_rows_is_a_loop_over_the_classifier(n_classes):
    rng = np.random.default_rng(1)
    codes = rng.integers(n_classes, size=80)
    X = rng.random((80, 2)) + 0.3 * codes[:, None]
    make = SIDES["condensed information"]
    best_point = search_held_out(make, X, codes, n_classes, GRID, np.random.default_rng(7))
    folds = deal_folds(codes, np.random.default_rng(7))
    right = {
        point: sum(
            (
                CISVMClassifier(C=point[0], gamma=point[1]).fit(X[folds != number], codes[folds != number])
                .predict(X[folds == number]) == codes[folds == number]
            ).sum()
            for number in range(5)
        )
        for point in itertools.product(*GRID)
    }  # fmt: skip
    best = max(right.values())
    assert best_point.accuracy == pytest.approx(best / 80)
    assert (best_point.C, best_point.gamma) == next(point for point, count in right.items() if count == best)


def test_condensed_rows_of_one_class_make_a_constant_model(tmp_path, monkeypatch):
    def lonely(X, codes, n_classes, rng):
        return Side(X[:9], np.zeros(9, dtype=np.int64))

    monkeypatch.setitem(SIDES, "condensed information", lonely)
    context = MadeUp("one", tmp_path, "0")
    methods = {"CI-SVM": METHODS["CI-SVM"], "other": {**METHODS["CI-SVM"], "judge": "held-out rows"}}
    (repeat,) = ci_svm_runs.accuracies({**PARAMETERS, "methods": methods}, context)["repeats"]
    _, codes, _ = context.class_rows("x")
    folds = deal_folds(codes, context.stream(1, "made up", 0, "folds"))
    wrong = [int(codes[folds == number].sum()) for number in range(5)]
    for method_result in repeat["methods"].values():
        assert method_result["errors"] == wrong
        assert method_result["n_support"] == [0] * 5
        assert (method_result["C"], method_result["gamma"]) == ([0.5] * 5, [0.125] * 5)
    assert repeat["methods"]["CI-SVM"]["searched"] == [1.0] * 5
    expected = [1.0 - codes[folds != number].mean() for number in range(5)]
    assert repeat["methods"]["other"]["searched"] == pytest.approx(expected)


# --- measurements -----------------------------------------------------------------------------------------------------


def test_paired_differences():
    result = {
        "repeats": [
            {
                "folds": [10, 20],
                "methods": {"a": {"errors": [1, 4]}, "b": {"errors": [3, 4]}},
            },
            {"folds": [20, 10], "methods": {"a": {"errors": [2, 1]}, "b": {"errors": [0, 2]}}},
        ]
    }
    assert measurements.fold_accuracies(result, "a") == pytest.approx([0.9, 0.8, 0.9, 0.9])
    assert measurements.repeat_accuracies(result, "b") == pytest.approx([23 / 30, 28 / 30])
    mean, error = measurements.paired_difference(result, "a", "b")
    differences = [0.2, 0.0, -0.1, 0.1]
    assert mean == pytest.approx(0.05)
    assert error == pytest.approx(math.sqrt((1 / 4 + 1 / 4) * np.var(differences, ddof=1)))
    # Datasets are independent.
    assert measurements.average([(0.1, 0.03), (0.3, 0.04)]) == (pytest.approx(0.2), pytest.approx(0.025))


def test_means_are_over_their_datasets():
    """Two repeats of one fold of 20 rows; RSVM and the variants are left out."""
    methods = {name: METHODS[name] for name in ("LIBSVM", "CI-SVM", "FCM-SVM")}
    datasets = {"heart": ["heart_scale", "all"], "sonar": ["sonar_scale", "all"]}
    experiment = experiments.EXPERIMENTS["ci_svm_accuracy"].with_settings(
        {"two_class": datasets, "multi_class": {}, "methods": methods}
    )

    def result(errors):
        own = {name: {"errors": [errors.get(name, 4)], "searched": [0.8 + (name == "CI-SVM") * 0.06], "purity": [0.9],
                      "n_rows": [80 if name == "LIBSVM" else 27]} for name in methods}  # fmt: skip
        return {"repeats": [{"folds": [20], "methods": own}] * 2}

    found = experiment.measurements({"heart": result({"CI-SVM": 5}), "sonar": result({"CI-SVM": 8})})
    cells = {item.cell: item.values[0] for item in found if item.table == "differences"}
    start, end = "CI-SVM less LIBSVM/", "difference of accuracies"
    assert cells[f"sonar/{start}/{end}"] == pytest.approx(-0.2)
    assert cells[f"two-class, mean/{start}/{end}"] == pytest.approx(-(0.05 + 0.2) / 2)
    assert cells[f"two-class, the kinds named, mean/{start}/{end}"] == pytest.approx(-0.05)
    assert cells[f"sonar/{start}/difference of searched accuracies"] == pytest.approx(0.06)
    # Without one of its datasets a mean is over the others.
    (mean,) = [item.values[0] for item in experiment.measurements({"sonar": result({"CI-SVM": 8})})
               if item.cell == f"two-class, mean/{start}/{end}"]  # fmt: skip
    assert mean == pytest.approx(-0.2)
    assert experiment.measurements({}) == []


# --- both experiments on small data ---------------------------------------------------------------------------------


def test_accuracies_come_from_the_results(finished):
    cells = finished.cells("ci_svm_accuracy")
    for dataset, more in (("heart", {"RSVM"}), ("wine", set())):
        result = finished.result("ci_svm_accuracy", dataset)
        accuracies = {cell.split("/")[1]: values[0] for (table, cell), values in cells.items()
                      if table == "accuracy" and cell.startswith(dataset) and cell.endswith("/accuracy")}  # fmt: skip
        assert set(accuracies) == {"LIBSVM", "CI-SVM", "FCM-SVM"} | more
        for method, accuracy in accuracies.items():
            wrong = sum(sum(repeat["methods"][method]["errors"]) for repeat in result["repeats"])
            assert accuracy == pytest.approx(1.0 - wrong / (2 * result["n_rows"]), abs=1e-6)
            assert accuracy > 0.85
        means = [statistics.fmean(measurements.fold_accuracies(result, method)) for method in ("CI-SVM", "LIBSVM")]
        cell = f"{dataset}/CI-SVM less LIBSVM//difference of accuracies"
        assert cells["differences", cell][0] == pytest.approx(means[0] - means[1], abs=1e-6)
        assert cells["condensed rows", f"{dataset}/CI-SVM//size ratio"][0] == pytest.approx(1 / 3, abs=0.01)
        assert 0.8 < cells["condensed rows", f"{dataset}/CI-SVM//label purity"][0] < 1.0
    assert finished.result("ci_svm_accuracy", "heart")["n_rows"] == 300


def test_times_come_from_the_results(finished):
    cells, result = finished.cells("ci_svm_time"), finished.result("ci_svm_time", "heart")
    first = result["repeats"][0]
    for method in ("LIBSVM", "CI-SVM"):
        values = [repeat[method]["n_support"] for repeat in result["repeats"]]
        assert cells["times", f"heart/{method}//support vectors"][0] == statistics.median(values)
        seconds = measurements.seconds_of(result, method, "search", "train")
        assert cells["times", f"heart/{method}//seconds of search and training"][0] == pytest.approx(seconds, rel=1e-5)
    assert all(seconds > 0 for method_times in first.values() for seconds in method_times["seconds"].values())
    growth = finished.result("ci_svm_time", "cod-rna.growth")
    assert growth["ci"]["n_rows"] == [100, 200, 400]
    assert cells["growth", "cod-rna/CI-SVM/400 rows/seconds"][0] == pytest.approx(growth["ci"]["seconds"][2], rel=1e-5)
    assert min(growth["fcm"]["n_iter"]) > 0


def test_the_picture_shows_means_of_triples(finished):
    result = finished.result("ci_svm_accuracy", "heart.picture")
    rows = np.array(result["rows"])
    assert (rows.min(), rows.max()) == (0.0, 1.0)
    for centre, group in zip(result["condensed"], result["groups"], strict=True):
        members = [member for member in group if member >= 0]
        np.testing.assert_allclose(centre, rows[members].mean(axis=0), atol=1e-12)
