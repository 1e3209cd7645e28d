import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from tests.adversarial import KINDS, Silence, neighbours, scaled

from privsvm import DPFrankWolfeClassifier
from privsvm.families.output_perturbation.perturbation import one_vs_rest_signs
from privsvm.methods.dp_frank_wolfe import score_sensitivity, slope_bits


def model_for(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "radius": 10.0, "n_steps": 20, **changes}
    return DPFrankWolfeClassifier(**chosen)


def loss(margins, h):
    return np.where(margins >= 1, 0, np.where(margins > 1 - h, (1 - margins) ** 2 / (2 * h), 1 - margins - h / 2))


@given(st.tuples(st.integers(0, 10**6), st.sampled_from([kind for kind in KINDS if kind != "removed"]),
                 st.integers(2, 4), st.integers(1, 30), st.floats(-2, 3), st.floats(-3, 3), st.floats(-3, 1),
                 st.booleans()))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_scores_never_move_more_than_the_sensitivity(case):
    """Whatever weights the earlier selections have led to."""
    seed, kind, n_classes, n, log_radius, log_bound, log_smoothing, intercept = case
    rng = np.random.default_rng(seed)
    radius, bound, smoothing = 10.0**log_radius, 10.0**log_bound, 10.0**log_smoothing
    X = rng.normal(size=(n, 4)) * rng.choice([0.1, 1, 10]) * bound
    y = rng.integers(0, n_classes, size=n)
    first, second, _ = neighbours(X, y, n_classes, kind, rng)
    model = model_for(n_classes, radius=radius, data_bound=bound, smoothing=smoothing, fit_intercept=intercept)
    shape = 2, 1 if n_classes == 2 else n_classes
    step = int(rng.integers(0, 100))
    counts = rng.multinomial(step, rng.dirichlet(np.full(4 + intercept, 0.3)), size=shape)
    counts = counts * rng.choice([-1.0, 1.0], size=counts.shape)
    scores = [
        model._scores(model._bound_rows(rows), one_vs_rest_signs(codes, n_classes), counts, step)
        for rows, codes in (first, second)
    ]
    assert scores[0].dtype == np.int64
    assert np.abs(scores[0] - scores[1]).max() <= score_sensitivity(n) == 2**39


@given(st.integers(0, 10**6), st.integers(1, 60), st.booleans())
@settings(max_examples=60, deadline=None)
def test_scores_do_not_depend_on_the_order_of_rows_their_padding_or_their_form(seed, n, sparse):
    """Whole numbers: permuted rows, rows of zeros whose slope is 0, dense or CSR, give the same scores bit for bit."""
    rng = np.random.default_rng(seed)
    model = model_for(2, fit_intercept=False)
    X, signs = rng.normal(size=(n, 7)), rng.choice([-1.0, 1.0], size=(1, n))
    step = int(rng.integers(1, 50))
    counts = np.round(rng.normal(size=(3, 1, 7)) * step / 10)
    rows = model._bound_rows(X)
    scores = model._scores(rows, signs, counts, step)
    order = rng.permutation(n)
    changed = scipy.sparse.csr_array(rows[order]) if sparse else rows[order]
    assert np.array_equal(model._scores(changed, signs[:, order], counts, step), scores)
    padded = np.vstack([rows, np.zeros((3, 7))])
    assert np.array_equal(model._scores(padded, np.append(signs, np.ones((1, 3)), axis=1), counts, step), scores)
    # The other rows' shares, one by one.
    single = sum(model._scores(rows[i : i + 1], signs[:, i : i + 1], counts, step) for i in range(n))
    assert np.array_equal(single, scores)


def test_many_rows_have_scores_that_fit():
    assert [slope_bits(n) for n in (1, 2**23, 2**24 - 1, 2**24, 2**30)] == [18, 18, 18, 17, 11]
    for n in (1, 2**23, 2**24, 2**30):
        assert n * score_sensitivity(n) <= 2**63


def test_a_flipped_label_attains_the_bound():
    X = np.array([[1.0, -1.0]] * 5)
    counts = np.zeros((1, 1, 3))
    scores = [
        model_for(2)._scores(model_for(2)._bound_rows(X), one_vs_rest_signs(np.array([0, 0, 1, 1, y]), 2), counts, 0)
        for y in (0, 1)
    ]
    assert np.abs(scores[0] - scores[1]).max() == score_sensitivity(5)


def test_scores_are_the_slopes_of_the_loss_towards_the_vertices():
    X, y = scaled(load_wine)
    model = model_for(3, radius=3.0, smoothing=0.7)
    cells, signs = model._bound_rows(X), one_vs_rest_signs(y, 3)
    counts = np.round(np.random.default_rng(0).normal(size=(2, 3, 14)) * 3)
    rows, weights = cells / 2.0**20, counts * 3.0 / 40
    scores = model._scores(cells, signs, counts, 40) * (3.0 / len(y) / 2.0**38)
    for problem in range(3):
        for vertex in range(28):
            towards = np.zeros(14)
            towards[vertex % 14] = 3.0 if vertex < 14 else -3.0
            step = 1e-6
            up, down = (
                loss(signs[problem] * (rows @ (weights[1, problem] + s * towards)), 0.7).mean() for s in (step, -step)
            )
            assert scores[1, problem, vertex] == pytest.approx(-(up - down) / (2 * step), abs=2e-5)


def test_without_noise_it_is_frank_wolfe_and_nears_the_optimum():
    X, y = scaled(load_breast_cancer)
    signs = np.where(y == 1, 1.0, -1.0)
    model = model_for(2, radius=5.0, n_steps=20_000)
    path = model.release_path(X, y, [1.0], 1, lambda epsilon, repeat: Silence())
    rows = model._bound_rows(X) / 2.0**20

    def objective(w):
        return loss(signs * (rows @ w), 0.5).mean()

    def split(v):
        return objective(v[:31] - v[31:])

    weights = np.append(path.coef[0, 0, 0], path.intercept[0, 0, 0])
    assert np.abs(weights).sum() <= 5.0 * (1 + 1e-12)
    best = scipy.optimize.minimize(
        split, np.full(62, 0.01), bounds=[(0, 5)] * 62, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: 5.0 - v.sum()}, options={"maxiter": 300},
    ).fun  # fmt: skip
    assert objective(weights) <= best + 0.01


def test_few_steps_use_the_sum_of_their_budgets():
    X, y = scaled(load_breast_cancer)
    guarantee = model_for(2, n_steps=1, random_state=0).fit(X, y).guarantee_
    assert "sum" in guarantee.accountant
    assert guarantee.noise_scale == pytest.approx(2 * guarantee.sensitivity / 1.0, rel=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_clipped_and_the_intercept_counts_in_the_radius(sparse):
    X, y = scaled(load_wine)
    X = X * 100
    model = model_for(3, data_bound=2.0)
    bounded = model._bound_rows(scipy.sparse.csr_array(X) if sparse else X)
    dense = bounded.toarray() if sparse else bounded
    assert np.abs(dense).max() <= 2**20
    assert np.array_equal(dense, np.rint(dense))
    assert np.array_equal(dense[:, -1], np.full(len(y), 2.0**20))
    path = model.release_path(X, y, [1.0], 3, 0)
    norms = np.abs(path.coef[0]).sum(axis=-1) + np.abs(path.intercept[0]) / 2.0
    assert norms.max() <= 10.0 * (1 + 1e-12)


def test_models_of_one_epsilon_do_not_depend_on_the_grid_or_the_block(monkeypatch):
    X, y = scaled(load_wine)
    alone = model_for(3).release_path(X, y, [1.0], 2, 7)
    monkeypatch.setattr("privsvm.methods.dp_frank_wolfe._BLOCK", 4000)
    among = model_for(3).release_path(X, y, [0.5, 1.0, 2.0], 5, 7)
    assert among.coef.shape == (3, 5, 3, 13)
    assert np.array_equal(alone.coef[0], among.coef[1, :2])
    assert len({among.coef[e, r].tobytes() for e in range(3) for r in range(5)}) == 15


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_audit_s_chain_is_the_training_on_the_rows_it_describes(intercept, sign):
    """All sequences of selections, with the scores that training computes."""
    n_rows, n_features, n_steps, scale = 6, 2, 3, 2**38
    model = model_for(2, radius=4.0, data_bound=0.5, n_steps=n_steps, fit_intercept=intercept)
    X = np.zeros((n_rows, n_features))
    X[0] = 0.5
    labels = np.array([sign, 1, 1, -1, -1, -1])[None]
    rows = model._bound_rows(X)
    width = rows.shape[1]
    expected = np.zeros((n_steps + 2, 2 * n_steps + 3 if intercept else 1))
    for vertices in itertools.product(range(2 * width), repeat=n_steps):
        counts, chance = np.zeros((1, 1, width)), 1.0
        for step, vertex in enumerate(vertices):
            scores = model._scores(rows, labels, counts, step)[0, 0] / scale
            chance *= np.exp(scores[vertex] - np.logaddexp.reduce(scores))
            counts[0, 0, vertex % width] += 1.0 if vertex < width else -1.0
        positive = sum(vertex < width for vertex in vertices)
        net = sum((vertex == width - 1) - (vertex == 2 * width - 1) for vertex in vertices) if intercept else 0
        expected[positive, net + n_steps + 1 if intercept else 0] += chance
    selection_counts = model._chain(scale, n_rows, width).last_state(sign, 2).reshape(expected.shape)
    assert np.allclose(selection_counts, expected, atol=1e-14)


@pytest.mark.parametrize(("load", "share"), [(load_breast_cancer, 0.35), (load_wine, 0.3), (load_digits, 0.15)])
def test_the_witness_is_below_what_is_proved_and_not_far(load, share):
    X, y = scaled(load)
    path = model_for(y.max() + 1).release_path(X, y, [0.1, 1.0, 8.0], 1, 0, audit=True)
    for guarantee in path.guarantees:
        assert (
            share * guarantee.epsilon_with_system_noise
            < guarantee.witness.epsilon
            <= guarantee.epsilon_with_system_noise
        )


def test_a_small_radius_is_nearly_refuted():
    """With margins that stay below 1 every selection tells as much as the first."""
    X, y = scaled(load_breast_cancer)
    (guarantee,) = model_for(2, radius=0.5).release_path(X, y, [1.0], 1, 0, audit=True).guarantees
    assert 0.8 < guarantee.witness.epsilon <= guarantee.epsilon_with_system_noise


def test_many_steps_are_not_audited():
    X, y = scaled(load_wine)
    assert model_for(3, n_steps=201).release_path(X, y, [1.0], 1, 0, audit=True).guarantees[0].witness is None


@pytest.mark.parametrize("epsilon", [1e308, 1e13, 5e-324])
def test_budgets_that_no_step_can_use_are_refused(epsilon):
    X, y = scaled(load_wine)
    with pytest.raises(ValueError, match=r"^epsilon=[^\n]+: must be at (most|least) [^\n]+$"):
        DPFrankWolfeClassifier(epsilon=epsilon, classes=[0, 1, 2]).fit(X, y)


def test_the_largest_budget_ends():
    X, y = scaled(load_wine)
    model = DPFrankWolfeClassifier(epsilon=1e12, classes=[0, 1, 2], n_steps=5, allow_unsound=True, random_state=0)
    assert np.isfinite(model.fit(X, y).coef_).all()
