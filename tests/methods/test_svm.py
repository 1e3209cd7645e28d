import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import SVC

from privsvm import SVMClassifier


def scaled(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9), y


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("sparse", [False, True])
def test_predictions_are_libsvm(load, kernel, sparse):
    X, y = scaled(load)
    rows = scipy.sparse.csr_array(X) if sparse else X
    ours = SVMClassifier(kernel=kernel, gamma=0.02, C=2.0, coef0=0.5).fit(rows, y)
    theirs = SVC(kernel=kernel, gamma=0.02, C=2.0, coef0=0.5, decision_function_shape="ovo").fit(X, y)
    assert np.array_equal(ours.predict(rows), theirs.predict(X))
    values = ours._path.pair_values(rows, 0)[0]
    expected = theirs.decision_function(X)
    assert np.allclose(values[:, 0] if expected.ndim == 1 else values, expected, atol=5e-3)


def test_objective_is_the_dual_value():
    X, y = scaled(load_breast_cancer)
    C = 0.5
    model = SVMClassifier(kernel="linear", C=C, tol=1e-6).fit(X, y)
    w = model.dual_coef_[:, 0] @ X[model.support_]
    sign = np.where(y == 1, 1, -1)
    primal = 0.5 * w @ w + C * np.maximum(0, 1 - sign * (X @ w + model.intercept_[0])).sum()
    assert -model.objective_ == pytest.approx(primal, rel=1e-5)


def test_a_public_class_without_rows_is_never_predicted():
    X, y = scaled(load_wine)
    for absent in range(3):
        keep = y != absent
        model = SVMClassifier(classes=[0, 1, 2], gamma=0.1).fit(X[keep], y[keep])
        theirs = SVC(gamma=0.1).fit(X[keep], y[keep])
        assert np.array_equal(model.predict(X), theirs.predict(X))


def test_path_equals_fit():
    X, y = scaled(load_digits)
    path = SVMClassifier().release_path(X, y, [1.0], 3)
    assert path.epsilons == (np.inf,)
    assert path.n_repeats == 1
    assert np.array_equal(path.codes(path.scores(X, 0))[0], SVMClassifier().fit(X, y).predict(X))
