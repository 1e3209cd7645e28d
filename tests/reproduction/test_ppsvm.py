import csv
import math

import numpy as np
import pytest

from privsvm.methods.ppsvm import PPSVMClassifier
from reproduce.engine import context as engine
from reproduce.ppsvm import classifiers, experiments, privacy
from reproduce.ppsvm import runs as ppsvm_runs
from reproduce.ppsvm.measurements import alone_errors, improvements, ppsvm_errors
from tests.scripts import REPOSITORY

SIZES = {"Cleveland Heart": 297, "Ionosphere": 351, "WDBC": 569, "Arrhythmia": 452, "German Credit": 1000,
         "Pima Indians": 768, "Bupa Liver": 345}  # fmt: skip
PARAMETERS = {
    "dataset": "made up", "source": ["x", "all", "1"], "missing": None, "reading": None, "kernel": "linear",
    "entities": 2, "mbar": 0.1, "n_folds": 4, "seed": 1, "partitions": 1, "most_entities": None,
}  # fmt: skip
ONCE = {"tune": "once", "rule": "judged on the tenth"}


def published():
    with open(REPOSITORY / "reproduce" / "ppsvm" / "published.csv", encoding="utf-8", newline="") as file:
        return {tuple(row.values())[1:5]: row["value"] for row in csv.DictReader(file)}


def is_whole(printed, count):
    """Tell whether a whole number of errors among `count` predictions is printed so."""
    return abs(round(float(printed) * count) / count - float(printed)) <= 5e-5 + 1e-12


class MadeUp(engine.Context):
    """Two classes that one column tells apart; the others are noise."""

    def rows(self, dataset, part, positive="1"):
        rng = np.random.default_rng(0)
        signs = np.where(rng.random(80) < 0.4, 1.0, -1.0)
        X = rng.normal(size=(80, 4))
        X[:, 2] = signs * (1.0 + rng.random(80))
        return engine.Rows(X, signs)


def test_printed_no_sharing_errors_are_those_of_one_fold():
    """Integers only: is there a whole number of errors that is printed so?"""
    alone, shared = [], []
    for (dataset, method, setting, metric), value in published().items():
        if metric != "error":
            assert metric != "n_samples" or int(value) == SIZES[dataset]
            continue
        fold = SIZES[dataset] // 10
        entities = int(setting.rpartition("=")[2])
        count = fold * entities if method == "no sharing" else fold
        (alone if method == "no sharing" else shared).append(is_whole(value, count))
    assert len(alone) == 28
    assert all(alone)
    # Chance level for a mean over ten folds.
    assert sum(shared) < 5


def test_every_printed_error_has_a_job():
    for kernel, jobs_of, settings in (
        ("linear", experiments.table1_jobs, experiments.TABLE1_SETTINGS),
        ("gaussian", experiments.table2_jobs, experiments.TABLE2_SETTINGS),
    ):
        made = {
            (job["dataset"], f"kernel={kernel};entities={job['entities']}")
            for job in jobs_of(settings).values()
            if job["reading"] is None
        }
        assert made == {(key[0], key[2]) for key in published() if f"kernel={kernel}" in key[2]}
        assert len(made) == 14
        assert all(job["partitions"] >= 5 for job in jobs_of(settings).values())


def test_the_simulation_is_that_of_the_classifier(tmp_path):
    """One fold of the runs, with a C that is given, against PPSVMClassifier on the same deal and matrices."""
    context = MadeUp("one", tmp_path, "0")
    X, codes = ppsvm_runs.read(PARAMETERS, context)
    partition = ppsvm_runs._partition(PARAMETERS, context, X, 0)
    model = PPSVMClassifier(
        C=1.0, entities=[entity_columns.tolist() for entity_columns in partition.columns], mbar=8, random_state=0
    )
    model.fit(X, codes)
    model.entities_ = partition.entities
    block = sum(
        entity.standardized(X[:, entity_columns]) @ entity.random_matrix.T
        for entity_columns, entity in zip(partition.columns, partition.entities, strict=True)
    )
    np.testing.assert_allclose(model.public_kernel(X), block, atol=1e-12)
    assert [entity.random_matrix.shape[0] for entity in partition.entities] == [8, 8]
    assert np.bincount(partition.folds).tolist() == [20] * 4


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_sharing_helps_who_lacks_the_column(tmp_path, kernel):
    context = MadeUp("one", tmp_path, "0")
    alone = {"main": {**ONCE, "columns": "own"}}
    parameters = {**PARAMETERS, "kernel": kernel, "PPSVM": {"main": ONCE}, "alone": alone}
    (errors_by_scheme,) = ppsvm_runs.errors(parameters, context)["partitions"]
    partition = ppsvm_runs._partition(parameters, context, *ppsvm_runs.read(parameters, context)[:1], 0)
    errors = [sum(entity["errors"]) for entity in errors_by_scheme["alone"]["main"]]
    holder = next(number for number, columns in enumerate(partition.columns) if 2 in columns)
    assert errors[holder] <= 4
    assert errors[1 - holder] >= 16
    assert sum(errors_by_scheme["PPSVM"]["main"]["errors"]) < errors[1 - holder]
    assert sum(errors_by_scheme["folds"]) == 80


def test_parameters_are_chosen_without_the_test_rows(tmp_path, monkeypatch):
    seen = []

    def tune(columns, codes, kernel, rule, rng):
        seen.append((columns.shape[0], codes.size))
        return 1.0, 0.1

    monkeypatch.setattr(ppsvm_runs, "tune", tune)
    context = MadeUp("one", tmp_path, "0")
    variants = {"once": ONCE, "every": {**ONCE, "tune": "every_fold"}}
    alone = {"full": {**ONCE, "tune": "every_fold", "columns": "full"}}
    parameters = {**PARAMETERS, "kernel": "gaussian", "PPSVM": variants, "alone": alone}
    (errors_by_scheme,) = ppsvm_runs.errors(parameters, context)["partitions"]
    # Four folds of 20 rows: once, four times, and four times for either entity.
    assert seen == [(60, 60)] * (1 + 4 + 8)
    assert errors_by_scheme["PPSVM"]["once"] == errors_by_scheme["PPSVM"]["every"]


@pytest.mark.parametrize("rule", ["judged on the tenth", "largest of equals", "trained on the tenth",
                                  "cross-validated in the tenth"])  # fmt: skip
def test_rules_choose_from_the_grid(rule, tmp_path):
    X, codes = ppsvm_runs.read(PARAMETERS, MadeUp("one", tmp_path, "0"))
    C, _ = ppsvm_runs.tune(X, codes, "linear", rule, np.random.default_rng(0))
    assert math.log10(C) == pytest.approx(round(math.log10(C)))
    assert 1e-7 <= C <= 1e7
    if rule == "largest of equals":
        # The rows are separated: every large C is as good.
        assert C == 1e7


def test_missing_values_by_rule(tmp_path):
    class Holes(MadeUp):
        def rows(self, *arguments):
            X, signs = super().rows(*arguments)
            X[3, 1] = np.nan
            return engine.Rows(X, signs)

    context = Holes("one", tmp_path, "0")
    X, codes = ppsvm_runs.read({**PARAMETERS, "missing": "drop_rows"}, context)
    assert X.shape == (79, 4)
    assert codes.size == 79
    X, _ = ppsvm_runs.read({**PARAMETERS, "missing": "mean"}, context)
    assert X[3, 1] == pytest.approx(np.delete(X[:, 1], 3).mean())
    with pytest.raises(engine.MissingError, match="values are missing"):
        ppsvm_runs.read(PARAMETERS, context)


def test_another_column_as_class(tmp_path):
    context = MadeUp("one", tmp_path, "0")
    plain, labels = ppsvm_runs.read(PARAMETERS, context)
    reading = {"column": 0, "above": 0.5, "label_as_feature": True}
    X, codes = ppsvm_runs.read({**PARAMETERS, "reading": reading}, context)
    np.testing.assert_array_equal(codes, plain[:, 0] > 0.5)
    np.testing.assert_array_equal(X, np.column_stack([plain[:, 1:], labels]))
    X, _ = ppsvm_runs.read({**PARAMETERS, "reading": {**reading, "label_as_feature": False}}, context)
    np.testing.assert_array_equal(X, plain[:, 1:])


def test_means_of_folds():
    result = {
        "partitions": [
            {
                "folds": [10, 20],
                "PPSVM": {"main": {"errors": [1, 4]}},
                "alone": {"main": [{"errors": [2, 2]}, {"errors": [4, 8]}]},
            }
        ]
    }
    assert ppsvm_errors(result, "main") == [pytest.approx(0.15)]
    means, single = alone_errors(result, "main")
    assert means == [pytest.approx(0.275)]
    assert single == pytest.approx([0.3, 0.25])
    assert improvements(result) == pytest.approx([0.1, -0.1, 0.3, 0.2])


def test_tables_sum_up_their_results(finished):
    cells = finished.cells("ppsvm_table1")
    for entities in (2, 5):
        result = finished.result("ppsvm_table1", f"Bupa-Liver.linear.{entities}")
        name = f"kernel=linear;entities={entities}"
        errors, (means, single) = ppsvm_errors(result, "judged on the tenth"), alone_errors(result, "features")
        for table, method, values in (("sharing", "PPSVM", errors), ("no sharing", "no sharing", means)):
            found = [
                cells[table, f"Bupa Liver/{method}/{name}/{metric}"][0]
                for metric in ("error", "error SD", "partitions")
            ]
            assert found == pytest.approx([np.mean(values), np.std(values, ddof=1), 2], rel=1e-5)
        found = [cells["no sharing", f"Bupa Liver/no sharing/{name}/{metric}"][0]
                 for metric in ("folds", "lowest fold", "highest fold")]  # fmt: skip
        assert found == pytest.approx([len(single), min(single), max(single)], rel=1e-5)


def test_the_attack_recovers_the_rows(finished):
    cells = finished.cells("ppsvm_attack")
    errors = [values[0] for (table, cell), values in cells.items() if table == "recovery" and cell.endswith("error")]
    assert len(errors) == 4
    assert max(errors) < 1e-8
    curves = {cell: values for (table, cell), values in cells.items() if table == "by known rows"}
    for more, kernel in enumerate(("linear", "Gaussian")):
        job = finished.result("ppsvm_attack", f"Bupa-Liver.{kernel.lower()}.5")
        for position, entity in enumerate(job["entities"]):
            cell = f"Bupa Liver/{kernel} kernel/entity {position}, {entity['columns']} columns/largest error"
            for n_known, error in zip(entity["known"], curves[cell], strict=True):
                assert (error < 1e-6) == (n_known >= entity["columns"] + more)


def test_an_attack_without_enough_rows_is_not_exact():
    experiment = experiments.EXPERIMENTS["ppsvm_attack"].with_settings(
        {"datasets": {"Arrhythmia": experiments.SETTINGS["shared"]["datasets"]["Arrhythmia"]}}
    )
    recovery = {"columns": 56, "rows_needed": 56, "possible": False, "error_at_rows_needed": 0.7, "max_error": [0.7]}
    results = {job: {"n_rows": 452, "mbar": 45, "entities": [recovery]} for job in experiment.all_jobs()}
    errors = [item.values for item in experiment.measurements(results) if item.cell.endswith("largest error")]
    assert set(errors) == {(0.7,)}


def test_lone_columns_count_for_neither_share():
    experiment = experiments.EXPERIMENTS["ppsvm_unmixing"]
    several, lone = {"correlations": [0.999, 0.5], "control": [0.4, 0.3]}, {"correlations": [1.0], "error": 1.0}
    results = {job: {"entities": [several, lone]} for job in experiment.all_jobs()}
    found = {(item.cell.rpartition("/")[2], *item.values) for item in experiment.measurements(results)}
    assert found == {("columns found", 0.5), ("columns found by rotation", 0.0), ("largest error of lone columns", 1.0)}


class Independent(engine.Context):
    """Seven independent columns: of two values each, or normal ones."""

    is_normal = False

    def rows(self, dataset, part, positive="1"):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(2000, 7)) if self.is_normal else 1.0 * (rng.random((2000, 7)) < 0.1)
        return engine.Rows(X, np.ones(2000))


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_independent_columns_are_found_from_the_block_alone(kernel, tmp_path):
    shares = []
    for is_normal in (False, True):
        context = Independent("one", tmp_path, "0")
        context.is_normal = is_normal
        # Entities of two columns and of one.
        entities = privacy.run({**PARAMETERS, "kernel": kernel, "entities": 4, "partitions": 3}, context)["entities"]
        lone = [entity for entity in entities if "error" in entity]
        assert len(lone) == 3
        assert max(entity["error"] for entity in lone) < 1e-9
        pairs = [entity for entity in entities if "control" in entity]
        shares += [np.mean([np.array(entity[key]) > 0.98 for entity in pairs]) for key in ("correlations", "control")]
    found, turned, found_of_normal, _ = shares
    assert found == 1.0
    assert turned < 0.5
    # Normal columns have no direction of their own.
    assert found_of_normal < 0.5


def test_other_classifiers_separate_what_one_column_tells(tmp_path):
    (partition,) = classifiers.run({**PARAMETERS, "partitions": 1}, MadeUp("one", tmp_path, "0"))["partitions"]
    assert set(partition) == {"2-norm SVM", "proximal SVM", "logistic"}
    # Always the larger class: 0.4.
    assert max(partition.values()) < 0.1
