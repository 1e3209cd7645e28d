import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from tests.adversarial import KINDS, neighbours, scaled

from privsvm.families.moments.private_scaling import rows_to_scale
from privsvm.families.moments.second_moments import MomentsMechanism, centre_rows, constant_feature
from privsvm.methods.dp_feature_covariance import DPFeatureCovarianceClassifier, preconditioner
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.events import relation_factor
from privsvm.solvers.gradients.huber_descent import HuberDescent, descend, gradient_cells


def model_for(n_classes, **changes):
    return DPFeatureCovarianceClassifier(**{"classes": list(range(n_classes)), "random_state": 0, **changes})


def test_steps_pay_for_what_rounding_adds_to_the_gram_matrix():
    """Where budgets are so small that the noise's grid is coarse; the largest signal is at an angle of zero."""
    plan = model_for(2)._training(lambda share: 2e7 / np.sqrt(share), 401)
    (rest,) = plan.events
    moments = MomentsMechanism(
        n_features=401, n_codes=0, neighbours="replace_one", multiplier=rest.noise_multiplier / np.sqrt(0.15)
    )
    assert moments.rounding_share > 0.02
    steps = 40 * (rest.noise_multiplier / plan.step_multiplier) ** 2
    assert 0.15 * moments.rounding_share**2 + steps < 1
    assert steps == pytest.approx(1 - 0.15 * moments.rounding_share, rel=1e-2)


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(2, 4), st.integers(2, 8),
       st.sampled_from([1e-3, 1.0, 1e30]), st.sampled_from([0.0, 1.0, 100.0]))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_no_neighbour_moves_a_sum_of_gradients_by_more_than_the_bound(seed, kind, n_classes, n, size, reach):
    """In whole numbers, given any centre and any weights that were released before."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)) * size, rng.integers(0, n_classes, size=n)
    *pair, relation = neighbours(X, y, n_classes, kind, rng)
    centre = rng.normal(size=3) * 0.3
    weights = rng.normal(size=(1 if n_classes == 2 else n_classes, 4)) * reach
    sums = []
    for rows, labels in pair:
        cells = constant_feature(centre_rows(rows_to_scale(rows, "centre"), centre))[0]
        sums.append(gradient_cells(cells, labels, n_classes, np.ones(n_classes), weights).astype(object).ravel())
    moved = int(((sums[0] - sums[1]) ** 2).sum())
    assert moved <= (int(relation_factor(relation)) * 2**38) ** 2


def test_the_preconditioner_evens_out_what_stands_out_of_the_noise():
    gram = np.diag([1e4, 1e2, 1.0, -1.0])
    for scale in (1.0, 1e6):
        matrix = preconditioner(gram * scale, 5.0 * scale, 1.0)
        assert np.allclose(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix).min() > 0
        assert np.trace(matrix) == pytest.approx(4.0)
        # The inverse, flat where noise hides the spectrum.
        assert matrix[1, 1] / matrix[0, 0] == pytest.approx(100.0, rel=1e-2)
        assert matrix[2, 2] == pytest.approx(matrix[3, 3], rel=1e-9)
        assert matrix[2, 2] / matrix[0, 0] == pytest.approx(1e4 / np.hypot(1.0, 10.0), rel=1e-2)
    root = preconditioner(gram, 5.0, 0.5)
    assert root[1, 1] / root[0, 0] == pytest.approx(10.0, rel=1e-2)
    assert np.isfinite(preconditioner(np.zeros((2, 2)), 1e-3, 1.0)).all()


def test_the_preconditioner_multiplies_what_is_released():
    rng = np.random.default_rng(0)
    cells = constant_feature(rng.normal(size=(60, 4)))[0]
    codes = rng.integers(0, 3, size=60)
    noisy = HuberDescent(n_steps=7, length=3.0, noise_multiplier=2.0)

    def trained(matrix, descent=noisy):
        return descend(cells, codes, 3, np.ones(3), descent, NoiseSource(bytes(32)), matrix)

    assert np.array_equal(trained(None), trained(np.eye(5)))
    # One step from zero is linear in the matrix, noise and all.
    once = HuberDescent(n_steps=1, length=3.0, noise_multiplier=2.0)
    matrix = preconditioner(cells.T @ cells, 1.0, 1.0)
    assert np.allclose(trained(matrix, once), trained(None, once) @ matrix, rtol=1e-12)


def test_the_power_of_the_preconditioner_changes_the_model():
    X, y = scaled(load_wine)
    models = [model_for(3, power=power).fit(X, y) for power in (0.25, 0.5, 1.0)]
    assert len({model.coef_.tobytes() for model in models}) == 3
    assert len({model.centre_.tobytes() for model in models}) == 1
