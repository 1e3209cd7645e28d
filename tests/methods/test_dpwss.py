import math

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.svm import SVC
from tests.adversarial import standardised
from tests.processes import fit_megabytes
from tests.table_3 import table_3_rows

from privsvm import DPWSSClassifier
from privsvm.base.released import KernelPath, LinearPath, OneVsOneLinearPath
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.smo import PairSelection, solve_smo


@pytest.fixture(scope="module")
def cancer():
    return standardised(load_breast_cancer)


@pytest.fixture(scope="module")
def wine():
    return standardised(load_wine)


def method(**changes):
    return DPWSSClassifier(**{"sigma": 0.1, "allow_unsound": True, "random_state": 0, **changes})


def test_one_training_is_one_solve(cancer):
    X, y = cancer
    order = np.argsort(-y, kind="stable")
    signs = np.where(y[order] == 1, 1.0, -1.0)
    rng = seeded_stream(5, "noise", "DPWSSClassifier", 2.0, 0)
    sharpness = 2.0 / (2 * (1 - 0.6))
    selection = PairSelection("dpwss", 0.6, sharpness)
    upper = np.full(y.size, 0.3)
    solution = solve_smo(X[order], signs, upper, Kernel("linear"), selection=selection, rng=rng)
    model = method(epsilon=2.0, sigma=0.6, C=0.3, random_state=5).fit(X, y)
    assert np.allclose(model.coef_[0], (signs * solution.alpha) @ X[order], rtol=1e-12)
    assert model.intercept_[0] == -solution.rho
    assert model.objective_ == solution.objective
    assert model.n_iter_ == solution.n_iter
    assert model.n_selected_ == solution.n_selected
    assert model.n_support_ == np.count_nonzero(solution.alpha)
    assert np.allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("load", [load_wine, load_iris])
def test_several_classes_vote_as_libsvm_does(load, kernel):
    X, y = standardised(load)
    exact = SVC(kernel=kernel, gamma=0.1).fit(X, y)
    model = method(kernel=kernel, gamma=0.1, epsilon=100.0).fit(X, y)
    assert model.intercept_.shape == (3,)
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.97
    assert model.decision_function(X).shape == (len(y), 3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_a_path_holds_one_training_for_each_epsilon_and_repeat(load, kernel):
    X, y = standardised(load)
    chosen = {"kernel": kernel, "gamma": 0.05, "sigma": 0.5}
    path = method(**chosen).release_path(X, y, [0.1, 5.0], 3, 11)
    expected = KernelPath if kernel == "rbf" else LinearPath if load is load_breast_cancer else OneVsOneLinearPath
    assert type(path) is expected
    assert path.n_repeats == 3
    stream = seeded_stream(11, "noise", "DPWSSClassifier", 5.0, 2)
    alone = method(**chosen, epsilon=5.0).release_path(X, y, [5.0], 1, lambda epsilon, repeat: stream)
    assert np.allclose(path.scores(X, 1)[2], alone.scores(X, 0)[0], atol=1e-10)
    scores = path.scores(X, 0)
    assert scores.shape == (3, len(y), 1 if load is load_breast_cancer else 3)


def test_the_guarantee_says_what_it_is_worth(cancer):
    (guarantee,) = method(sigma=0.7).release_path(*cancer, [0.1], 1, 0).guarantees
    assert guarantee.delta == 0.0
    assert guarantee.sensitivity == pytest.approx(0.3)
    assert "without noise" in guarantee.reason
    assert "support vectors" not in guarantee.reason


def test_other_kernels_release_rows_in_the_clear(cancer):
    X, y = cancer
    path = method(kernel="rbf", gamma=0.05).release_path(X, y, [0.1], 2, 0, audit=True)
    rows = {row.tobytes() for row in X}
    assert all(row.tobytes() in rows for row in path.support_vectors)
    guarantee = path.guarantees[0]
    assert math.isinf(guarantee.witness.epsilon)
    assert "taken away" in guarantee.witness.description
    assert "support vectors are training rows in the clear" in guarantee.reason


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_step_at_all(wine, kernel):
    X, y = wine
    path = method(kernel=kernel, max_iter=0).release_path(X, y, [1.0], 2, 0, audit=True)
    assert (path.n_iter, path.n_support, path.objective) == (0, 0, 0.0)
    assert kernel == "linear" or path.guarantees[0].witness.epsilon == 0.0
    assert path.codes(path.scores(X, 0)).shape == (2, len(y))


@pytest.mark.long
def test_memory_on_ijcnn1(tmp_path):
    """49,990 rows: the memory of used pairs is a list, not a matrix."""
    X, y = table_3_rows("ijcnn1", tmp_path)
    np.savez(tmp_path / "rows.npz", X=X.toarray() if scipy.sparse.issparse(X) else X, y=y)
    model = "DPWSSClassifier(sigma=0.3, max_iter=5000, allow_unsound=True)"
    assert fit_megabytes(model, tmp_path / "rows.npz") < 2000
