import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, load_wine

from privsvm import OPERAAsPublishedClassifier, PMSVMWPAsPublishedClassifier, PMSVMWPClassifier
from privsvm.families.output_perturbation.weight_perturbation import weight_sensitivity
from privsvm.solvers.linear.crammer_singer import solve_crammer_singer


def sound(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "data_norm": 1.5, **changes}
    return PMSVMWPClassifier(**chosen)


def test_one_row_and_two_classes_attain_the_bound():
    C, norm = 1e-3, 2.0
    X = np.array([[norm]])
    first, second = (solve_crammer_singer(X, np.array([label]), 2, C, gap=1e-16).coef for label in (0, 1))
    distance = np.linalg.norm(first - second)
    assert distance == pytest.approx(2 * np.sqrt(2) * C * norm, rel=1e-9)
    assert distance == pytest.approx(weight_sensitivity(C, norm, "replace_one"), rel=1e-9)


@pytest.mark.parametrize("method", [PMSVMWPClassifier, PMSVMWPAsPublishedClassifier, OPERAAsPublishedClassifier])
def test_the_witness_is_the_same_for_sparse_rows(method):
    X, y = load_digits(return_X_y=True)
    X, y = X[:150], y[:150]
    model = method(classes=list(range(10)), C=0.01, data_norm=1.5, allow_unsound=True)
    dense, sparse = (
        model.release_path(rows, y, [1.0], 1, 0, audit=True).guarantees[0].witness.epsilon
        for rows in (X, scipy.sparse.csr_array(X))
    )
    assert dense == pytest.approx(sparse, rel=0.02)


def test_a_limit_on_the_passes_takes_the_proof_away():
    """Whether a limit is hit depends on the rows, and so would the released model."""
    X, y = load_digits(return_X_y=True)
    with pytest.raises(ValueError, match="max_epochs=3"):
        sound(10, max_epochs=3).fit(X, y)
    guarantee = sound(10, C=100.0, max_epochs=3, allow_unsound=True).fit(X, y).guarantee_
    assert guarantee.status == "claimed"
    assert "stops after a given number of passes" in guarantee.reason


@pytest.mark.parametrize(("C", "norm"), [(1e-16, 1.0), (1e-170, 1.0), (1.0, 1e-8), (1e160, 1.0)])
def test_what_float64_cannot_certify_is_refused(C, norm):
    with pytest.raises(ValueError, match="C="):
        sound(3, C=C, data_norm=norm).fit(*load_wine(return_X_y=True))


def test_published_variant_agrees_with_liblinear_on_two_classes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] > 0).astype(int)
    published = PMSVMWPAsPublishedClassifier(allow_unsound=True, classes=[0, 1], C=0.1)._solve(X, y, 2, 0.0)
    ours = solve_crammer_singer(X, y, 2, 0.1, gap=1e-12).coef
    assert np.allclose(published, ours, atol=1e-3)
