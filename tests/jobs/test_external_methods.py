"""Methods of other packages: their parameters, stored predictions and guarantees."""

import importlib.metadata
import math
import re
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from tests.refusals import refusal

from privsvm.base.released import PredictionsPath, path_from_arrays
from privsvm.errors import PrivSVMError
from privsvm.registry import version_of_package
from privsvm_bench.jobs.auditing import audit_entry
from privsvm_bench.jobs.external_methods import ForeignMethod
from privsvm_bench.jobs.job import AuditJob

PACKAGE = '''
import numpy as np


class Centroids:
    """Nearest centroid with Gaussian noise whose epsilon it states itself."""

    def __init__(self, budget=1.0, delta=1e-5, random_state=None, scale=1.0):
        self.budget, self.delta, self.random_state, self.scale = budget, delta, random_state, scale

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        self.classes_ = np.unique(y)
        means = np.array([X[y == code].mean(axis=0) for code in self.classes_])
        self.means_ = means + rng.normal(scale=self.scale / self.budget / len(X), size=means.shape)
        return self

    def predict(self, X):
        return self.classes_[np.argmin(((X[:, None] - self.means_) ** 2).sum(axis=-1), axis=1)]


class Pure(Centroids):
    def __init__(self, budget=1.0, random_state=None):
        super().__init__(budget, 0.0, random_state)


class Broken(Centroids):
    def fit(self, X, y):
        raise ValueError("one\\nand two")


class Noisy:
    """A mean with enough noise, if rows lie between -1 and 1; `leak` adds what has none."""

    def __init__(self, budget=1.0, leak=False, random_state=None):
        self.budget, self.leak, self.random_state = budget, leak, random_state

    def fit(self, X, y):
        noise = np.random.default_rng(self.random_state).laplace(scale=4 / self.budget)
        self.coef_ = X[y == 1][:, 0].sum() - X[y == 0][:, 0].sum() + noise
        self.intercept_ = X[y == 0].sum() if self.leak else 0.0
        return self

    def decision_function(self, X):
        return X[:, 0] * self.coef_ + self.intercept_

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


class SumOfRows(Noisy):
    """A sum with enough noise for rows of norm 1; `clip` makes rows that short."""

    def __init__(self, budget=1.0, delta=1e-5, clip=True, random_state=None):
        self.budget, self.delta, self.clip, self.random_state = budget, delta, clip, random_state

    def fit(self, X, y):
        rows = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)) if self.clip else X
        noise = np.random.default_rng(self.random_state).normal(scale=7.5 / self.budget, size=X.shape[1])
        self.coef_ = rows.T @ np.where(y == 1, 1, -1) + noise
        return self

    def decision_function(self, X):
        return X @ self.coef_


class LastLeaks(Noisy):
    """Noisy sums of all classes; that of the third class has no noise."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        noise = np.random.default_rng(self.random_state).laplace(scale=4 / self.budget, size=len(self.classes_))
        self.coef_ = np.array([X[y == code].sum() for code in self.classes_]) + np.where(self.classes_ < 2, noise, 0.0)
        return self

    def decision_function(self, X):
        return X[:, :1] * self.coef_


class Vague(Centroids):
    def predict(self, X):
        return np.full(len(X), 7)
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "foreign_centroids"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "models.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "foreign_centroids.models"
    for name in [name for name in sys.modules if name.startswith("foreign_centroids")]:
        del sys.modules[name]


def rows(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(40 * n_classes) % n_classes
    return np.eye(n_classes)[y] + 0.3 * rng.normal(size=(y.size, n_classes)), y


def released(implementation, n_classes=3, parameters=(), sparse=False):
    X, y = rows(n_classes)
    test, _ = rows(n_classes, 1)
    if sparse:
        X, test = scipy.sparse.csr_array(X), scipy.sparse.csr_array(test)
    method = ForeignMethod(implementation, dict(parameters), n_classes, test, 1e-5, "replace_one")
    path = method.release_path(X, y, [0.5, 2.0], 2, lambda epsilon, repeat: np.random.default_rng([repeat, 3]))
    return path, test


def test_a_class_that_states_its_epsilon(package):
    path, test = released(f"{package}:Centroids", parameters={"states_epsilon": "budget", "scale": 10.0})
    assert path.predicted_scores.shape == (2, 2, 120, 3)
    assert path.epsilons == (0.5, 2.0)
    for epsilon, guarantee in zip((0.5, 2.0), path.guarantees, strict=True):
        assert (guarantee.status, guarantee.epsilon_requested, guarantee.delta) == ("claimed", epsilon, 1e-5)
        assert guarantee.epsilon_proved == math.inf
        assert "only its predictions for the test rows are stored" in guarantee.mechanism
        assert "nothing proves it here" in guarantee.reason
        assert guarantee.reference.startswith("package foreign_centroids, sources ")
    # The class has no decision values, so its predictions are scores of 0 and 1.
    assert set(np.unique(path.predicted_scores)) == {0.0, 1.0}
    assert not np.array_equal(path.predicted_scores[0, 0], path.predicted_scores[0, 1])
    assert path.codes(path.scores(test, 0)).shape == (2, 120)
    pure, _ = released(f"{package}:Pure", parameters={"states_epsilon": "budget"})
    assert [guarantee.delta for guarantee in pure.guarantees] == [0.0, 0.0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_class_without_epsilon_predicts_as_itself(n_classes, sparse):
    path, test = released("sklearn.linear_model:LogisticRegression", n_classes, {"C": 2.0}, sparse)
    X, y = rows(n_classes)
    theirs = LogisticRegression(C=2.0).fit(X, y)
    dense = test.toarray() if sparse else test
    assert path.epsilons == (math.inf,)
    assert path.guarantees[0].status == "none"
    assert np.array_equal(path.codes(path.scores(test, 0))[0], theirs.predict(dense))
    values = path.scores(test, 0)[0]
    assert np.allclose(values[:, 0] if n_classes == 2 else values, theirs.decision_function(dense))


def test_scores_that_contradict_predictions_are_dropped():
    path, test = released("sklearn.svm:SVC", 3, {"decision_function_shape": "ovo", "break_ties": False, "C": 0.01})
    X, y = rows(3)
    theirs = SVC(C=0.01, decision_function_shape="ovo").fit(X, y)
    assert np.array_equal(path.codes(path.scores(test, 0))[0], theirs.predict(test))


def test_stored_predictions_serve_their_rows_alone():
    path, test = released("sklearn.linear_model:LogisticRegression", 3)
    common = {"epsilons": path.epsilons, "guarantees": path.guarantees, "n_classes": 3}
    again = path_from_arrays(path.kind, path.arrays(), **common)
    assert isinstance(again, PredictionsPath)
    assert np.array_equal(again.scores(test, 0), path.scores(test, 0))
    for other in (test[:-1], test + 1e-9, scipy.sparse.csr_array(test)):
        with pytest.raises(PrivSVMError, match="these are other rows"):
            again.scores(other, 0)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("Centroids", {"scael": 1.0}, "scael: not a parameter of .*did you mean 'scale'"),
        ("Centroids", {"states_epsilon": "epsilon"}, "epsilon: not a parameter"),
        ("Centroids", {"states_epsilon": "budget", "budget": 1.0}, "budget: takes the grid's epsilon"),
        ("Broken", {}, "failed: ValueError: one and two"),
        ("Vague", {}, "predict must return one of its training labels"),
        ("Centroid", {}, "did you mean 'Centroids'"),
    ],
)
def test_mistakes_are_one_line(package, name, parameters, message):
    assert re.search(message, refusal(released, f"{package}:{name}", parameters=parameters))


def test_versions_of_packages_are_those_of_distributions():
    installed = importlib.metadata.packages_distributions()
    packages = [name for name in installed if name.isidentifier()]
    assert len(packages) > 50
    for name in packages:
        assert version_of_package(name) == importlib.metadata.version(installed[name][0]), name
    assert version_of_package("no_such_package_anywhere") == ""


def audited(name, draws=800, **parameters):
    job = AuditJob(
        delta=1e-5, draws=draws, epsilons=(1.0,), implementation=f"foreign_centroids.models:{name}", method="mine",
        neighbours="replace_one", parameters={"states_epsilon": "budget", **parameters}, seed=3,
    )  # fmt: skip
    return audit_entry(job)


def test_missing_noise_of_an_own_method_is_refuted(package):
    (fair,), (leaky,) = audited("Noisy").cells, audited("Noisy", leak=True).cells
    assert (fair.status, fair.refuted, leaky.refuted) == ("claimed", False, True)
    assert leaky.best.sure > 1.0
    assert audited("Noisy", leak=True).cells == (leaky,)
    # The benchmark hands over rows within bounds: a class that relies on them is not refuted by others.
    assert "thousand times" not in fair.pair


def test_missing_clipping_of_an_own_method_is_refuted(package):
    (fair,), (long,) = (audited("SumOfRows", 2000, clip=clip).cells for clip in (True, False))
    assert (fair.refuted, long.refuted) == (False, True)
    assert "of norm 8 beside" in long.pair


def test_missing_noise_of_the_third_class_alone_is_refuted(package):
    (cell,) = audited("LastLeaks").cells
    assert cell.refuted
    assert "beside 3 rows of zeros" in cell.pair


def test_an_own_method_that_cannot_be_audited_stops_no_run(package, capsys):
    record = audited("Broken")
    assert record.cells == ()
    assert record.problem == (
        "at epsilon 1: X: the estimator refuses every pair of neighbours (ValueError: one and two); pass pairs that it "
        "takes"
    )
    assert f"mine: not audited {record.problem}" in capsys.readouterr().out
    assert audited("Noisy").problem is None
