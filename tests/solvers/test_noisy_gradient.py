import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from tests.clipped_sums import models_of_steps, sum_clipped_gradients

from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.solvers.gradients.noisy_gradient import (
    AVERAGES,
    LOSSES,
    REGULARISERS,
    GradientSteps,
    noisy_gradient_steps,
    prepare_rows,
)

# Grid of truncated slopes, as a share of the bound. `tests/solvers/test_exact_sums.py` compares whole numbers.
STEP = 2.0**-18


def problem(seed, n, d, c, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    codes = rng.integers(0, max(c, 2), n)
    return X, codes, rng.normal(size=(c, d)), rng.normal(size=c)


def loss(scores, code, steps):
    """Loss of one row."""
    smooth = lambda g: (g + np.sqrt(g * g + steps.smoothing**2)) / 2  # noqa: E731
    if steps.loss == "softmax":
        shifted = scores - scores.max()
        return steps.loss_weight * (np.log(np.exp(shifted).sum()) - shifted[code])
    if steps.loss == "hinge":
        others = np.delete(scores, code)
        return steps.loss_weight * smooth(1 - (scores[code] - others)).sum()
    positive = np.arange(scores.size) == code if scores.size > 1 else np.array([code == 1])
    return steps.loss_weight * smooth(1 - np.where(positive, 1, -1) * scores).sum()


def slopes(scores, code, steps):
    """Gradient of `loss` by the scores, one by one."""
    slope = lambda g: (g / np.sqrt(g * g + steps.smoothing**2) + 1) / 2  # noqa: E731
    h = np.zeros(scores.size)
    if steps.loss == "softmax":
        h = np.exp(scores - scores.max())
        h /= h.sum()
        h[code] -= 1
    elif steps.loss == "hinge":
        for k in range(scores.size):
            if k != code:
                h[k] = slope(1 - (scores[code] - scores[k]))
                h[code] -= h[k]
    else:
        for k in range(scores.size):
            sign = 1 if code == (k if scores.size > 1 else 1) else -1
            h[k] = -sign * slope(1 - sign * scores[k])
    return steps.loss_weight * h


def regulariser_gradient(coef, intercept, steps):
    by_coef = 2 * steps.margin_weight * (len(coef) * coef - coef.sum(axis=0)) + 2 * steps.ridge * coef
    return by_coef, 2 * steps.ridge * intercept * steps.fit_intercept


def reference_sum(X, codes, coef, intercept, steps):
    """Row by row, with whole gradients, of the rows that are left by truncation to the grid of unit rows."""
    rows = prepare_rows(X, steps)
    off = np.abs(rows.cells * 2.0**-20 * rows.norms[:, None] - X).max(initial=0.0)
    assert off <= 2e-6 * rows.norms.max(initial=1.0)
    intercept = intercept * steps.fit_intercept
    total, total_b = np.zeros(coef.shape), np.zeros(len(coef))
    for cells, constant, norm, code in zip(rows.cells, rows.constants, rows.norms, codes, strict=True):
        row, s = cells * 2.0**-20 * norm, constant * 2.0**-20 * norm
        h = slopes(coef @ row + s * intercept, code, steps)
        gradient, gradient_b = np.outer(h, row), h * s
        if steps.regulariser == "inside":
            extra, extra_b = regulariser_gradient(coef, intercept, steps)
            slope_norm = np.sqrt((gradient**2).sum() + (gradient_b**2).sum())
            gradient, gradient_b = gradient + extra, gradient_b + extra_b
        size = np.sqrt((gradient**2).sum() + (gradient_b**2).sum())
        factor = min(1, steps.max_grad_norm / size) if size > 0 else 1
        if steps.regulariser == "inside":
            # The row's own part may not be too long either.
            factor = min(factor, 2 * steps.max_grad_norm / slope_norm) if slope_norm > 0 else factor
        total += factor * gradient
        total_b += factor * gradient_b
    return total, total_b


def inside_size(coef, intercept, steps):
    """Norm of the regulariser's gradient over the bound."""
    gradients = regulariser_gradient(coef, intercept, steps)
    return np.linalg.norm(np.concatenate([gradient.ravel() for gradient in gradients])) / steps.max_grad_norm


def settings_of(loss_name, **changes):
    return GradientSteps(**{"loss": loss_name, "learning_rate": 0.1, **changes})


@pytest.mark.parametrize("loss_name", LOSSES)
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("sparse", [False, True])
@given(
    st.tuples(
        st.integers(0, 10**6),
        st.sampled_from([0, 1, 2, 7, 8, 9, 16, 30]),
        st.sampled_from([1, 2, 7, 8, 9, 15, 16, 40, 300]),
        st.integers(1, 9),
        st.floats(-3, 2),
        st.booleans(),
        st.sampled_from([0.0, 0.03]),
        st.sampled_from([0.0, 0.2]),
    )
)
# Blocks of few rows.
@example((1, 21, 520, 25, 1.5, True, 0.0, 0.0))
@example((2, 21, 1030, 3, 1.5, False, 0.03, 0.2))
@settings(max_examples=25, deadline=None)
def test_clipped_sum_equals_whole_gradients(loss_name, regulariser, sparse, case):
    seed, n, d, c, log_bound, fit_intercept, margin_weight, ridge = case
    c = c if loss_name == "one_vs_rest_hinge" else c + 1
    X, codes, coef, intercept = problem(seed, n, d, c, density=0.3 if sparse else 1.0)
    steps = settings_of(
        loss_name, regulariser=regulariser, fit_intercept=fit_intercept, margin_weight=margin_weight, ridge=ridge,
        max_grad_norm=10.0**log_bound, intercept_scale=0.7, loss_weight=1.3, smoothing=0.05,
    )  # fmt: skip
    rows = scipy.sparse.csr_array(X) if sparse else X
    ours = sum_clipped_gradients(rows, codes, coef, intercept, steps)
    theirs = reference_sum(X, codes, coef, intercept, steps)
    # Inside, the bound is smaller by the cost of truncation, and clipping adds some round-off where both parts cancel.
    steps_off = (
        c + 1 if regulariser == "outside" else 2 * c + 8 + 4e-5 * (1 + inside_size(coef, intercept, steps)) / STEP
    )
    for ours_sum, other in zip(ours, theirs, strict=True):
        assert np.abs(ours_sum - other).max() <= max(1, n) * steps_off * STEP * steps.max_grad_norm


@pytest.mark.parametrize(
    ("loss_name", "c"), [*((name, c) for name in LOSSES for c in (2, 5, 26)), ("one_vs_rest_hinge", 1)]
)
def test_slopes_are_the_derivatives_of_the_losses(loss_name, c):
    d = 11
    X, codes, coef, intercept = problem(c, 5, d, c)
    steps = settings_of(loss_name, intercept_scale=0.5, loss_weight=2.0, smoothing=0.3)
    start = np.concatenate([0.3 * coef.ravel(), intercept])
    scores = 0.3 * X @ coef.T + 0.5 * intercept
    # A bound that clips nothing, and is no coarser than it must be.
    longest = [np.linalg.norm(slopes(z, code, steps)) * np.hypot(np.linalg.norm(x), 0.5)
               for x, z, code in zip(X, scores, codes, strict=True)]  # fmt: skip
    steps = replace(steps, max_grad_norm=1.01 * max(longest))

    def objective(flat):
        scores = X @ flat[: c * d].reshape(c, d).T + 0.5 * flat[c * d :]
        return sum(loss(row, code, steps) for row, code in zip(scores, codes, strict=True))

    def gradient(flat):
        sums = sum_clipped_gradients(X, codes, flat[: c * d].reshape(c, d), flat[c * d :], steps)
        return np.concatenate([total.ravel() for total in sums])

    off = 1e-4 * np.linalg.norm(gradient(start)) + len(X) * (c + 1) * STEP * steps.max_grad_norm
    assert check_grad(objective, gradient, start, epsilon=1e-6) < off


def test_a_clipped_row_is_as_long_as_the_bound():
    """Clipping takes no more than truncation away."""
    X, codes, coef, intercept = problem(0, 1, 50, 3)
    for regulariser in REGULARISERS:
        steps = settings_of("hinge", max_grad_norm=0.01, regulariser=regulariser, ridge=0.1)
        sums = sum_clipped_gradients(X, codes, coef, intercept, steps)
        flat = np.concatenate([total.ravel() for total in sums])
        assert 0.01 * (1 - 8 * STEP) < np.linalg.norm(flat) <= 0.01


def test_hinge_without_smoothing():
    X = np.array([[2.0], [0.5]])
    steps = settings_of("hinge", smoothing=0.0, fit_intercept=False, max_grad_norm=1.0)
    # Row 0 has margin 4, row 1 margin 1/2.
    coef_part, intercept_part = sum_clipped_gradients(
        X, np.zeros(2, int), np.array([[1.0], [-1.0]]), np.zeros(2), steps
    )
    assert coef_part.tolist() == [[0.0], [0.0]]
    coef_part, intercept_part = sum_clipped_gradients(
        X, np.zeros(2, int), np.array([[0.4], [-0.4]]), np.zeros(2), steps
    )
    assert coef_part.ravel().tolist() == pytest.approx([-0.5, 0.5], abs=2 * STEP)
    assert coef_part[0, 0] == -coef_part[1, 0]
    assert intercept_part.tolist() == [0.0, 0.0]


def reference_steps(X, codes, c, steps, sum_of=reference_sum):
    """All iterates without noise and sampling, step by step, by whole gradients or by exact sums."""
    coef, intercept = np.zeros((c, X.shape[1])), np.zeros(c)
    memory = [np.zeros_like(coef), np.zeros_like(intercept)], [np.zeros_like(coef), np.zeros_like(intercept)]
    iterates = []
    for t in range(steps.n_steps):
        share = t / steps.n_steps
        rate = (
            steps.learning_rate
            * {
                "constant": 1.0,
                "linear": 1 - share,
                "cosine": (1 + np.cos(np.pi * share)) / 2,
                "inverse_sqrt": (t + 1) ** -0.5,
            }[steps.schedule]
        )
        sums = sum_of(X, codes, coef, intercept, steps)
        gradients = [ours_sum / steps.expected_batch for ours_sum in sums]
        if steps.regulariser == "outside":
            extra = regulariser_gradient(coef, intercept, steps)
            gradients = [ours_sum + more for ours_sum, more in zip(gradients, extra, strict=True)]
        moved = []
        for i, (value, gradient) in enumerate(zip((coef, intercept), gradients, strict=True)):
            if steps.optimizer == "adam":
                first = memory[0][i] = steps.beta1 * memory[0][i] + (1 - steps.beta1) * gradient
                second = memory[1][i] = steps.beta2 * memory[1][i] + (1 - steps.beta2) * gradient**2
                first, second = first / (1 - steps.beta1 ** (t + 1)), second / (1 - steps.beta2 ** (t + 1))
                moved.append(value - rate * first / (np.sqrt(second) + steps.adam_epsilon))
            else:
                memory[0][i] = steps.momentum * memory[0][i] + gradient
                moved.append(value - rate * memory[0][i])
        coef, intercept = moved
        iterates.append((coef, steps.intercept_scale * intercept))
    return iterates


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"schedule": "linear", "momentum": 0.8},
        {"schedule": "cosine", "optimizer": "adam", "learning_rate": 0.05},
        {"schedule": "inverse_sqrt", "optimizer": "adam", "beta1": 0.5, "beta2": 0.9, "adam_epsilon": 0.1},
        {"regulariser": "inside", "momentum": 0.5},
        {"fit_intercept": False, "optimizer": "adam"},
    ],
)
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("n_steps", [1, 12])
def test_every_step_equals_the_reference(changes, average, n_steps):
    n, d, c = 13, 9, 4
    X, codes, _, _ = problem(n_steps, n, d, c)
    steps = settings_of(
        "hinge", n_steps=n_steps, average=average, expected_batch=5.0, max_grad_norm=0.8, margin_weight=0.05,
        ridge=0.02, intercept_scale=0.4,
    )  # fmt: skip
    steps = replace(steps, **changes)
    ours = noisy_gradient_steps(X, codes, c, steps, NoiseSource(bytes(32)))
    histories = models_of_steps(X, codes, c, steps, NoiseSource(bytes(32)))
    first = {"none": n_steps, "all": 0, "last_half": n_steps // 2}[average]
    for sum_of, off in ((sum_clipped_gradients, 1e-9), (reference_sum, 1e-3)):
        iterates = reference_steps(X, codes, c, steps, sum_of)
        for t in range(n_steps):
            chosen = iterates[first : t + 1] if t >= first else iterates[t : t + 1]
            for ours_sum, history in enumerate(histories):
                expected = np.mean([iterate[ours_sum] for iterate in chosen], axis=0)
                assert np.abs(history[t] - expected).max() < off
    assert np.array_equal(ours.coef, histories[0][-1])
    assert np.array_equal(ours.intercept, histories[1][-1])


def test_an_empty_step_is_a_step():
    """Noise, regulariser and momentum go on without rows."""
    steps = settings_of("hinge", sample_rate=1e-9, n_steps=3, noise_scale=1.0, ridge=0.5, momentum=0.5)
    X, codes, _, _ = problem(0, 10, 3, 3)
    ours = noisy_gradient_steps(X, codes, 3, steps, NoiseSource(bytes(32)))
    others = noisy_gradient_steps(np.empty((0, 3)), codes[:0], 3, steps, NoiseSource(bytes(32)))
    assert np.array_equal(ours.coef, others.coef)
    assert ours.coef.any()


def test_sampled_steps_equal_the_reference():
    """With the rows of every step known from a run that marks them, the noiseless path is the reference's."""
    n, d, c, n_steps = 40, 6, 3, 6
    X, codes, _, _ = problem(2, n, d, c)
    marked = settings_of(
        "one_vs_rest_hinge", sample_rate=0.3, fit_intercept=False, smoothing=0.0, learning_rate=1.0, n_steps=n_steps,
        max_grad_norm=1e-3,
    )  # fmt: skip
    marks, _ = models_of_steps(np.eye(n), np.ones(n, int), 1, marked, NoiseSource(bytes(32)))
    path = np.concatenate([np.zeros((1, n)), marks[:, 0]])
    included = np.diff(path, axis=0) > 5e-4
    steps = settings_of("softmax", sample_rate=0.3, n_steps=n_steps, expected_batch=12.0, max_grad_norm=0.5)
    coef, intercept = np.zeros((c, d)), np.zeros(c)
    for chosen in included:
        sums = sum_clipped_gradients(X[chosen], codes[chosen], coef, intercept, steps)
        theirs = reference_sum(X[chosen], codes[chosen], coef, intercept, steps)
        for ours_sum, other in zip(sums, theirs, strict=True):
            assert np.abs(ours_sum - other).max(initial=0.0) <= n * (c + 1) * STEP * 0.5
        coef, intercept = coef - 0.1 * sums[0] / 12, intercept - 0.1 * sums[1] / 12
    for rows in (X, scipy.sparse.csr_array(X)):
        ours = noisy_gradient_steps(rows, codes, c, steps, NoiseSource(bytes(32)))
        assert np.abs(ours.coef - coef).max() < 1e-11
        assert np.abs(ours.intercept - intercept).max() < 1e-11


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("loss_name", LOSSES)
def test_sparse_rows_give_the_bits_of_dense_ones(loss_name, regulariser):
    X, codes, _, _ = problem(4, 3000, 40, 5, density=0.3)
    steps = settings_of(
        loss_name, regulariser=regulariser, margin_weight=0.01, ridge=0.02, sample_rate=0.5, noise_scale=1.0, n_steps=4,
        expected_batch=1500.0,
    )  # fmt: skip
    dense, sparse = (
        noisy_gradient_steps(rows, codes, 5, steps, NoiseSource(bytes(32))) for rows in (X, scipy.sparse.csr_array(X))
    )
    assert np.array_equal(dense.coef, sparse.coef)
    assert np.array_equal(dense.intercept, sparse.intercept)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise_scale": float("nan")}, "noise_scale=nan"),
        ({"noise_scale": float("inf")}, "noise_scale=inf"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0"),
        ({"smoothing": 1e101}, "smoothing=1e"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        settings_of("hinge", **changes)


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_row_is_too_long_for_the_clip(loss, regulariser):
    """Whatever underflows or overflows on the way; the longest rows count too."""
    sizes = (1e100, 1e149, 1e160, 1e300, 1.3e308, 1.7e308)
    bounds = ((1e-100, 1.0, 1), (1.0, 1e-100, 1), (1.0, 1e-15, 60), (1e50, 1e100, 60))
    for size, (weight, bound, n_features) in itertools.product(sizes, bounds):
        steps = GradientSteps(
            learning_rate=1.0, loss=loss, loss_weight=weight, max_grad_norm=bound, regulariser=regulariser, ridge=100.0,
            margin_weight=0.1, fit_intercept=False,
        )  # fmt: skip
        for gap in (0.0, 1.0, 450.0 / size, 1e-3):
            coef = np.zeros((3, n_features))
            coef[1, 0] = gap
            clipped, _ = sum_clipped_gradients(np.full((1, n_features), size), np.array([1]), coef, np.zeros(3), steps)
            assert np.isfinite(clipped).all()
            assert np.linalg.norm(clipped / bound) <= 1.0
            if gap == 0.0 and regulariser == "outside":
                # At weights of zero every row pulls as hard as it may.
                assert np.linalg.norm(clipped / bound) > min(1 - 8 * STEP, 0.1 * weight * size / bound)
