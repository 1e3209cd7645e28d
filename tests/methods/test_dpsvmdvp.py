import math
from unittest.mock import create_autospec

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from sklearn.datasets import load_breast_cancer
from tests.adversarial import standardised
from tests.methods.test_what_a_model_holds import held

from privsvm import DPSVMDVPClassifier
from privsvm.auditing.witnesses import verbatim_row_witness
from privsvm.methods.dpsvmdvp import laplace_scales
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.smo import solve_smo

GAMMA = 0.05


@pytest.fixture(scope="module")
def cancer():
    return standardised(load_breast_cancer)


def method(**changes):
    return DPSVMDVPClassifier(**{"gamma": GAMMA, "allow_unsound": True, "random_state": 0, **changes})


def rbf(A, B):
    return np.exp(-GAMMA * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def reference(X, y, C, weights, perturb, precision):
    """Algorithm 2 in plain NumPy, given the dual variables: support, alpha, perturbed, scale for epsilon 1."""
    signs = np.where(y == 1, 1.0, -1.0)
    solution = solve_smo(X, signs, np.full(y.size, C), Kernel("rbf", GAMMA))
    support = np.flatnonzero(solution.alpha > 0)
    alpha, s = solution.alpha[support], signs[support]
    free = alpha < C
    kernel = rbf(X[support], X[support])
    if precision == "single":
        stored = kernel.astype(np.float32).astype(np.float64)
        b = -np.mean((stored @ (alpha * s) - s)[free])
        errors = kernel @ (alpha * s) + b - s
    else:
        errors = (s * solution.gradient[support]) - solution.rho
    chosen = free if perturb == "free" else np.ones(support.size, dtype=bool)
    errors = errors[chosen]
    share = {
        "signed": errors / errors.sum(),
        "abs": np.abs(errors) / np.abs(errors).sum(),
        "uniform": np.full(errors.size, 1 / errors.size),
    }[weights]
    return support, alpha * s, chosen, np.abs(np.sqrt(C**2 / errors.size) / share)


@pytest.mark.parametrize("weights", ["signed", "abs", "uniform"])
@pytest.mark.parametrize("perturb", ["free", "all"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_noise_is_that_of_algorithm_2(cancer, weights, perturb, precision):
    X, y = cancer
    epsilon, C = 0.1, 2.0
    support, coef, chosen, unit_scales = reference(X, y, C, weights, perturb, precision)
    name = f"{weights}_double" if precision == "double" and weights != "uniform" else weights
    path = method(C=C, weights=name, perturb=perturb).release_path(
        X, y, [epsilon], 1, lambda *_: np.random.default_rng(5)
    )
    assert np.array_equal(path.support_vectors, X[support])
    noise = path.pair_coef[0, 0, :, 0] - coef
    assert np.all(noise[~chosen] == 0)
    drawn = np.random.default_rng(5).laplace(size=chosen.sum()) * unit_scales / epsilon
    expected = drawn * np.sign(coef[chosen])
    if weights == "signed":
        # The divisor is round-off, which another order of summation changes: all scales by one common factor.
        expected *= np.abs(noise[chosen]).sum() / np.abs(expected).sum()
    assert np.allclose(noise[chosen], expected, rtol=1e-6, atol=1e-9 + 1e-6 * np.abs(expected).max())


def test_scales_are_finite_and_only_signed_weights_overspend():
    errors, C, epsilon = np.array([0.5, -0.1, 0.2, 0.0]), 3.0, 0.25
    assert np.isfinite(laplace_scales(errors, C, epsilon, "signed")).all()
    assert np.isfinite(laplace_scales(np.zeros(3), C, epsilon, "abs")).all()
    assert laplace_scales(np.zeros(0), C, epsilon, "abs").size == 0
    # Only abs and uniform spend no more than epsilon.
    for weights, spent in (("abs", 1.0), ("uniform", 1.0), ("signed", (0.8 / 0.6))):
        budgets = np.sqrt(C**2 / 4) / laplace_scales(errors, C, epsilon, weights)
        assert budgets.sum() == pytest.approx(spent * epsilon, rel=1e-9)


def test_one_solve_for_the_whole_grid(cancer, monkeypatch):
    X, y = cancer
    solve = create_autospec(DPSVMDVPClassifier._solve, side_effect=DPSVMDVPClassifier._solve)
    monkeypatch.setattr(DPSVMDVPClassifier, "_solve", solve)
    path = method().release_path(X, y, [0.1, 1.0, 10.0], 4, 0, audit=True)
    solve.assert_called_once()
    assert path.pair_coef.shape[:2] == (3, 4)
    assert len({path.pair_coef[e, r].tobytes() for e in range(3) for r in range(4)}) == 12


def test_no_clean_dual_variable_is_kept(cancer):
    """The exact coefficients of perturbed variables occur nowhere in the object's state."""
    X, y = cancer
    _, coef, chosen, _ = reference(X, y, 1.0, "abs", "free", "single")
    model = method(weights="abs").fit(X, y)
    assert not held(model, [*coef[chosen], *-coef[chosen]])


def test_the_witness_is_infinite_and_the_record_says_why(cancer):
    (guarantee,) = method(neighbours="add_remove").release_path(*cancer, [0.5], 1, 0, audit=True).guarantees
    assert guarantee.witness.neighbours == "add_remove"
    assert math.isinf(guarantee.witness.epsilon)
    assert "in the clear" in guarantee.reason
    assert "without noise: the offset and the dual variables at their bound" in guarantee.reason


def test_the_witness_is_a_row_that_the_neighbour_lacks(cancer):
    X, y = cancer
    path = method().release_path(X, y, [1.0], 1, 0)
    row = path.support_vectors[0]
    index = np.flatnonzero((row == X).all(axis=1))
    assert index.size == 1
    neighbour = X.copy()
    neighbour[index[0]] = X[(index[0] + 1) % len(X)]
    other = method().release_path(neighbour, y, [1.0], 1, 0)
    assert not (other.support_vectors == row).all(axis=1).any()


def test_rows_that_occur_twice_prove_nothing():
    X = np.repeat(np.arange(6.0).reshape(3, 2), 2, axis=0)
    assert verbatim_row_witness(X[::2], X, "replace_one").epsilon == 0.0
    X[1, 0] = -0.0
    X[0, 0] = 0.0
    assert verbatim_row_witness(X[:1], scipy.sparse.csr_array(X), "replace_one").epsilon == 0.0
    X[0, 0] = 9.0
    assert math.isinf(verbatim_row_witness(X[:1], scipy.sparse.csr_array(X), "replace_one").epsilon)
