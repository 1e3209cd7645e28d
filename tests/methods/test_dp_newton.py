import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from tests.adversarial import KINDS, Silence, neighbours, scaled

from privsvm.families.moments.private_scaling import rows_to_scale
from privsvm.families.moments.second_moments import MomentsMechanism, centre_rows, constant_feature
from privsvm.methods.dp_newton import DPNewtonClassifier, step_sums
from privsvm.numerics.rows.unit_grid import CELLS


def model_for(n_classes, **changes):
    return DPNewtonClassifier(**{"classes": list(range(n_classes)), "random_state": 0, **changes})


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.sampled_from([2, 3, 12]), st.integers(2, 8),
       st.sampled_from([1e-3, 1.0, 1e30]), st.sampled_from([0.0, 0.1, 1.0, 100.0]))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_no_neighbour_moves_a_hessian_and_its_gradient_by_more_than_the_bound(seed, kind, n_classes, n, size, reach):
    """In whole numbers, given any centre and any weights that were released before; before and after rounding."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)) * size, rng.integers(0, n_classes, size=n)
    *pair, relation = neighbours(X, y, n_classes, kind, rng)
    centre, weights = rng.normal(size=3) * 0.3, rng.normal(size=(n_classes, 4)) * reach
    mechanism = MomentsMechanism(n_features=4, n_codes=n_classes, neighbours=relation, multiplier=1.0)
    first, second = (
        step_sums(constant_feature(centre_rows(rows_to_scale(rows, "centre"), centre))[0], labels, n_classes, weights)
        for rows, labels in pair
    )
    bound = {"replace_one": 8, "add_remove": 3}[relation]
    for shift, sums in ((0, (first, second)), (mechanism.shift, (mechanism.rounded(first), mechanism.rounded(second)))):
        moved = (sums[0] - sums[1]).astype(object)
        # Every number of the Hessian above its diagonal is there twice, as its weight asks for.
        square = int((moved[:, :4] ** 2).sum() + 2 * (moved[:, 4:] ** 2).sum())
        if shift:
            assert square <= (mechanism.sensitivity * 2.0 ** (40 - shift)) ** 2
        else:
            assert square <= bound * 2**80


def test_the_bound_is_attained_at_the_first_step():
    """From weights of zero all slopes are clipped: of opposite rows with one label."""
    cells = np.array([[CELLS, 0.0], [-CELLS, 0.0]])
    first, second = (step_sums(cells[i : i + 1], np.zeros(1, dtype=int), 3, np.zeros((3, 2))) for i in range(2))
    moved = (first - second) * 2.0**-40
    assert np.linalg.norm(np.hstack([moved[:, :2], np.sqrt(2) * moved[:, 2:]])) == pytest.approx(np.sqrt(8.0), abs=1e-5)


def slow_newton(X, y, n_classes, n_steps, damping):
    """The same in floating point, row by row."""
    weights = np.zeros((n_classes, X.shape[1]))
    for _ in range(n_steps):
        hessian, gradient = np.zeros((X.shape[1],) * 2), np.zeros_like(weights)
        for x, label in zip(X, y, strict=True):
            scores = weights @ x
            gaps = 1 - (scores[label] - scores)
            rivals = np.arange(n_classes) != label
            slopes = np.where(rivals, -(1 + gaps / np.hypot(gaps, 1)) / 2, 0.0)
            slopes[label] = -slopes.sum()
            slopes /= max(np.linalg.norm(slopes), 1.0)
            gradient += np.outer(slopes, x)
            hessian += max(np.mean(1 / np.hypot(gaps, 1)[rivals]), slopes @ slopes) * np.outer(x, x)
        values, vectors = np.linalg.eigh(hessian)
        inverse = (vectors / np.hypot(values, damping)) @ vectors.T
        weights += 3 * np.sqrt(n_classes - 1) * gradient @ inverse
    return weights


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_without_noise_it_is_newton_s_method(load):
    X, y = scaled(load)
    n_classes = len(set(y))
    model = model_for(n_classes, n_steps=3)
    path = model.release_path(X, y, [20.0], 1, lambda epsilon, repeat: Silence())
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) - path.step("direction")["centre"][0, 0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scale, constant = np.sqrt(0.96), 0.2
    rows = np.column_stack([scale * rows, np.full(len(rows), constant)])
    guarantee = path.guarantees[0]
    damping = 2 * guarantee.noise_scale / np.sqrt(2) * np.sqrt(rows.shape[1])
    slow = slow_newton(rows, y, n_classes, 3, damping)
    slow = slow[1:] - slow[:1] if n_classes == 2 else slow
    ours = np.column_stack([path.coef[0, 0] / scale, path.intercept[0, 0] / constant])
    assert np.linalg.norm(ours - slow) < 1e-3 * np.linalg.norm(slow)
