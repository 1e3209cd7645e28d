"""Situations of public bug reports of other projects, rebuilt with input of our own.

``reports_of_others.csv`` names the reports, says which of them failed here before, and names the test of a method, a
solver or an accountant that has the situation among its own. `tests/methods/test_svc.py` runs scikit-learn's own tests
of `SVC`.
"""

import csv
import re
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.svm import SVC

from privsvm import PublicSchema, SVMClassifier
from privsvm.tables.schema import parse_schema
from privsvm_bench.jobs.params import read_params
from privsvm_bench.metrics import METRICS
from privsvm_bench.workflow.private_outputs import released_file
from tests.refusals import refusal

REPOSITORY = Path(__file__).resolve().parent.parent
with open(Path(__file__).with_name("reports_of_others.csv"), encoding="utf-8") as _table:
    REPORTS = {f"{row['repository']}#{row['number']}": row for row in csv.DictReader(_table)}

X = np.random.default_rng(47).normal(size=(60, 3)).round(3)
Y = (X @ [1.0, -1.0, 0.5] > 0.2).astype(int)
CASES = {}


def report(name):
    """Keep a case under the name of its report; its argument is an empty folder."""

    def keep(case):
        assert name not in CASES
        CASES[name] = case
        return case

    return keep


def sklearn(number):
    return report(f"scikit-learn/scikit-learn#{number}")


@sklearn(4648)
def _(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVMClassifier(kernel="poly", degree=2).fit([[3.0, 7e4], [4.0, 7e4]], [0, 1])
    assert model.n_iter_ <= 1.1e7


@sklearn(30353)
def _(folder):
    rows = 1.0 + 1e-12 * np.arange(20.0)[:, None]
    assert SVMClassifier(kernel="linear").fit(rows, np.arange(20) % 2).n_iter_ <= 1.1e7


@report("cjlin1/libsvm#85")
def _(folder):
    corners = np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    ours, theirs = (kind(kernel="linear", tol=1e-8).fit(corners, [0, 1, 2]) for kind in (SVMClassifier, SVC))
    assert np.array_equal(ours.predict(corners), theirs.predict(corners))


@sklearn(19447)
def _(folder):
    with pytest.warns(FutureWarning):
        one, two = (
            SVMClassifier(probability=True, random_state=np.random.RandomState(0)).fit(X, Y).predict_proba(X)
            for _ in range(2)
        )
    assert np.array_equal(one, two)


@report("NVIDIA/cuml#6977")
def _(folder):
    for weight in ("balanced", {0: 2.0}):
        assert np.allclose(*(kind(class_weight=weight).fit(X, Y).class_weight_ for kind in (SVMClassifier, SVC)))


@report("NVIDIA/cuml#2857")
def _(folder):
    model = SVMClassifier(kernel="linear", C=25.0).fit(1e4 * X, Y)
    assert model.fit_status_ == 0
    assert model.score(1e4 * X, Y) == 1.0


def _stages():
    stages = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["stages"]
    return [stage.get("do", stage) for stage in stages.values()]


@report("treeverse/dvc#10654")
def _(folder):
    for stage in _stages():
        assert not any(word.startswith(("/", "~")) for word in str(stage["cmd"]).split())
        assert not any(str(name).startswith(("/", "..")) for name in (*stage.get("deps", ()), *stage.get("outs", ())))


@report("treeverse/dvc#10697")
def _(folder):
    names = [name for stage in _stages() for name in stage.get("deps", ()) if name.startswith(("lib", "stages"))]
    tracked = subprocess.run(["git", "ls-files", *names], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert all(any(line.startswith(name) for line in tracked.stdout.splitlines()) for name in names)


@report("snakemake/snakemake#3650")
def _(folder):
    # Snakemake reads out=2026_11 as a number, and out=007 as another one.
    params = read_params(REPOSITORY / "params.yaml")
    for settings in ({"out": 202611}, {"out": "a", "ledger": 7}, {"out": "a", "sign": 1.0}):
        assert "no number" in refusal(released_file, params, {"dataset": "wine", "epsilon": 1} | settings)


@report("snakemake/snakemake#3895")
def _(folder):
    # A parameter computed from inputs triggers no rerun.
    for path in (REPOSITORY / "stages").glob("*.smk"):
        assert not re.search(r"lambda[^:]*\b(input|output|threads|resources)\b", path.read_text())


@report("mlflow/mlflow#1830")
def _(folder):
    assert not any("/" in name for name in METRICS)


@report("scikit-learn/scikit-learn#34258")
def _(folder):
    class LazyFrame:
        columns = ("a", "b")

    columns = {name: {"bounds": [0, 1], "fill": 0} for name in "ab"}
    schema = parse_schema({"name": "t", "label": "y", "classes": ["0", "1"], "columns": columns})
    for call in (SVMClassifier().fit, PublicSchema(schema).fit_transform):
        with pytest.raises(ValueError, match=r"X is a LazyFrame of tests, which has no rows yet: pass X\.collect\(\)"):
            call(LazyFrame(), Y)


@pytest.mark.parametrize("name", CASES)
def test_a_report_does_not_hold_here(name, tmp_path):
    CASES[name](tmp_path)


def test_every_report_has_a_case_or_another_test():
    named = {name: row["test"] for name, row in REPORTS.items() if row["test"]}
    assert CASES.keys() | named.keys() == REPORTS.keys()
    assert not CASES.keys() & named.keys()
    assert len(REPORTS) >= 40
    for file, _, name in (test.partition("::") for test in named.values()):
        assert f"def {name}(" in (REPOSITORY / file).read_text(encoding="utf-8")
    assert sum(row["failed_before"] == "yes" for row in REPORTS.values()) >= 10
