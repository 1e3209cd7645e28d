"""Situations of public bug reports of other projects, rebuilt with input of our own.

``reports_of_others.csv`` names the reports, says which of them failed here before, and names the test of each, here or
among those of a method, a solver or an accountant. `tests/methods/test_svc.py` runs scikit-learn's own tests of `SVC`.
"""

import csv
import re
import subprocess
import warnings

import numpy as np
import pytest
import yaml
from sklearn.svm import SVC

from privsvm import PublicSchema, SVMClassifier
from privsvm.tables.schema import parse_schema
from tests.scripts import REPOSITORY

X = np.random.default_rng(47).normal(size=(60, 3)).round(3)
Y = (X @ [1.0, -1.0, 0.5] > 0.2).astype(int)


def test_a_polynomial_kernel_of_small_and_large_values_ends():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVMClassifier(kernel="poly", degree=2).fit([[3.0, 7e4], [4.0, 7e4]], [0, 1])
    assert model.n_iter_ <= 1.1e7


def test_values_that_are_nearly_equal_end():
    rows = 1.0 + 1e-12 * np.arange(20.0)[:, None]
    assert SVMClassifier(kernel="linear").fit(rows, np.arange(20) % 2).n_iter_ <= 1.1e7


def test_three_points_have_the_classes_of_libsvm():
    corners = np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    ours, theirs = (kind(kernel="linear", tol=1e-8).fit(corners, [0, 1, 2]) for kind in (SVMClassifier, SVC))
    assert np.array_equal(ours.predict(corners), theirs.predict(corners))


def test_probabilities_of_one_seed_are_equal():
    with pytest.warns(FutureWarning):
        one, two = (
            SVMClassifier(probability=True, random_state=np.random.RandomState(0)).fit(X, Y).predict_proba(X)
            for _ in range(2)
        )
    assert np.array_equal(one, two)


def test_weights_of_classes_are_an_attribute():
    for weight in ("balanced", {0: 2.0}):
        assert np.allclose(*(kind(class_weight=weight).fit(X, Y).class_weight_ for kind in (SVMClassifier, SVC)))


def test_columns_of_large_values_are_learned():
    model = SVMClassifier(kernel="linear", C=25.0).fit(1e4 * X, Y)
    assert model.fit_status_ == 0
    assert model.score(1e4 * X, Y) == 1.0


def _stages():
    stages = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["stages"]
    return [stage.get("do", stage) for stage in stages.values()]


def test_stages_of_dvc_name_no_absolute_path():
    for stage in _stages():
        assert not any(word.startswith(("/", "~")) for word in str(stage["cmd"]).split())
        assert not any(str(name).startswith(("/", "..")) for name in (*stage.get("deps", ()), *stage.get("outs", ())))


def test_sources_that_stages_name_are_in_git():
    names = [name for stage in _stages() for name in stage.get("deps", ()) if name.startswith(("lib", "stages"))]
    tracked = subprocess.run(["git", "ls-files", *names], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert all(any(line.startswith(name) for line in tracked.stdout.splitlines()) for name in names)


def test_no_parameter_of_a_rule_is_computed_from_its_files():
    # A parameter computed from inputs triggers no rerun.
    for path in (REPOSITORY / "stages").glob("*.smk"):
        assert not re.search(r"lambda[^:]*\b(input|output|threads|resources)\b", path.read_text())


def test_a_lazy_frame_is_refused_with_its_remedy():
    class LazyFrame:
        columns = ("a", "b")

    columns = {name: {"bounds": [0, 1], "fill": 0} for name in "ab"}
    schema = parse_schema({"name": "t", "label": "y", "classes": ["0", "1"], "columns": columns})
    for call in (SVMClassifier().fit, PublicSchema(schema).fit_transform):
        with pytest.raises(ValueError, match=r"X is a LazyFrame of tests, which has no rows yet: pass X\.collect\(\)"):
            call(LazyFrame(), Y)


def test_every_report_has_a_test():
    with open(REPOSITORY / "tests/reports_of_others.csv", encoding="utf-8") as table:
        reports = list(csv.DictReader(table))
    assert len({(row["repository"], row["number"]) for row in reports}) == len(reports) >= 40
    for file, _, name in (row["test"].partition("::") for row in reports):
        assert f"def {name}(" in (REPOSITORY / file).read_text(encoding="utf-8")
    assert sum(row["failed_before"] == "yes" for row in reports) >= 10
