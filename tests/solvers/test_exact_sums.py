"""Sums of clipped gradients as whole numbers: equal to slow Python integers, and moved by no more than one row may."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adversarial import KINDS, neighbours
from tests.clipped_sums import clip_to_cells, repeat_noisy_gradient_steps
from tests.solvers.test_row_features import python_exp2

from privsvm.numerics.compiled import vector_math
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.noise.rounded_normals import rounded_normals, uniform_words
from privsvm.numerics.rows.unit_grid import unit_cells
from privsvm.solvers.gradients import clipped_gradients, noisy_gradient
from privsvm.solvers.gradients.noisy_gradient import LOSSES, REGULARISERS, GradientSteps, noisy_gradient_steps

UNIT = 2**38


def settings_of(loss, **changes):
    return GradientSteps(**{"loss": loss, "learning_rate": 0.1, "max_grad_norm": 1.0, **changes})


def problem(seed, n, d, c, size=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * size
    return X, rng.integers(0, max(c, 2), n), rng.normal(size=(c, d)), rng.normal(size=c)


def cells_of(X, codes, coef, intercept, steps):
    """Whole numbers of the sum (c, d + 1)."""
    totals = clip_to_cells(X, np.asarray(codes), coef, intercept, steps)
    by_coef, by_intercept = np.split(totals, [coef.size])
    return np.column_stack(
        [by_coef.reshape(coef.shape), by_intercept if steps.fit_intercept else np.zeros(len(coef), dtype=np.int64)]
    )


def reference_slopes(scores, code, steps):
    """Slopes of one row, in Python floats, in the order of the compiled loops."""
    c = len(scores)

    def smooth(g):
        square = steps.smoothing * steps.smoothing
        return steps.loss_weight * (0.5 + 0.5 * (g / math.sqrt(g * g + square)))

    if steps.loss == "one_vs_rest_hinge":
        signs = [1.0 if code == k + (c == 1) else -1.0 for k in range(c)]
        return [
            smooth(1.0 - sign * score) * (-1.0 if sign > 0 else 1.0) for sign, score in zip(signs, scores, strict=True)
        ]
    if steps.loss == "hinge":
        top = 1.0 - scores[code]
        h = [smooth(score + top) for score in scores]
    else:
        top = max(scores)
        h = [python_exp2((score - top) * vector_math.LOG2_E) for score in scores]
        total = 0.0
        for value in h:
            total += value
        h = [value * (steps.loss_weight / total) for value in h]
    h[code] = 0.0
    total = 0.0
    for value in h:
        total += value
    h[code] = -total
    return h


def reference_cells(X, codes, coef, intercept, steps, bound):
    """Sum of the products of one row after the other, in Python's integers; regulariser outside."""
    c = coef.shape[0]
    s = steps.intercept_scale if steps.fit_intercept else 0.0
    rows, constants, norms, _ = unit_cells(X, s)
    weights = np.column_stack([coef, intercept if steps.fit_intercept else np.zeros(c)])
    exponent = 31 - math.frexp(math.sqrt(sum(Fraction(w) ** 2 for w in weights.ravel())))[1]
    integers = [[round(Fraction(w) * Fraction(2) ** exponent) for w in row] for row in weights]
    total = [[0] * (X.shape[1] + 1) for _ in range(c)]
    for i, code in enumerate(codes):
        unit = [int(value) for value in [*rows[i], constants[i]]]
        z = [sum(w * u for w, u in zip(row, unit, strict=True)) for row in integers]
        last = 0 if steps.loss == "one_vs_rest_hinge" else z[-1]
        by_score = float(norms[i]) * math.ldexp(1.0, -exponent - 20)
        h = reference_slopes([min(max((value - last) * by_score, -1e150), 1e150) for value in z], code, steps)
        length = 0.0
        for value in h:
            length += value * value
        length = math.sqrt(length) + c * 2e-154
        size = float(norms[i]) * (2.0**18 / steps.max_grad_norm)
        size = size if length * size <= bound else bound / length
        slopes = [math.trunc(value * size) for value in h]
        if steps.loss != "one_vs_rest_hinge":
            slopes[code] = 0
            slopes[code] = -sum(slopes)
        assert sum(value * value for value in slopes) <= 2**36
        for row, slope in zip(total, slopes, strict=True):
            for j, value in enumerate(unit):
                row[j] += slope * value
    return np.array(total, dtype=object)


@pytest.mark.parametrize("loss", LOSSES)
@given(
    st.tuples(
        st.integers(0, 10**6),
        st.sampled_from([1, 2, 8, 9, 30]),
        st.sampled_from([1, 2, 7, 8, 9, 16, 40, 300]),
        st.integers(1, 9),
        st.sampled_from([1e-320, 1e-5, 1.0, 30.0, 1e155, 1e307]),
        st.booleans(),
        st.sampled_from([1e-3, 1.0, 40.0]),
    )
)
@settings(max_examples=40, deadline=None)
def test_sums_equal_slow_integers(loss, case):
    """Number by number, for dense and CSR rows, whatever the order in which products are added up."""
    seed, n, d, c, size, fit_intercept, bound = case
    c = c if loss == "one_vs_rest_hinge" else c + 1
    with np.errstate(under="ignore"):
        X, codes, coef, intercept = problem(seed, n, d, c, size)
    steps = settings_of(loss, fit_intercept=fit_intercept, max_grad_norm=bound, intercept_scale=0.7, loss_weight=1.3)
    objective = noisy_gradient.objective_of(steps, c, d)
    theirs = reference_cells(X, codes, coef, intercept, steps, objective.longest)
    for rows in (X, scipy.sparse.csr_array(X)):
        assert (cells_of(rows, codes, coef, intercept, steps) == theirs).all()


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_sum_is_that_of_its_rows(sparse, loss, regulariser):
    """A row's contribution depends on that row alone, bit for bit; rows are removed, permuted, repeated."""
    n, d, c = 100, 37, 4
    X, codes, coef, intercept = problem(5, n, d, c)
    X[3], X[4], X[5], X[6] = 0.0, 1e308, 5e-324, X[7]
    steps = settings_of(loss, regulariser=regulariser, margin_weight=0.1, ridge=0.2, max_grad_norm=0.7)

    def total(chosen):
        rows = scipy.sparse.csr_array(X[chosen]) if sparse else X[chosen]
        return cells_of(rows, codes[chosen], coef, intercept, steps)

    single = [total([i]) for i in range(n)]
    rng = np.random.default_rng(2)
    for chosen in (np.arange(n), rng.permutation(n), np.arange(0, n, 3), rng.integers(0, n, 333), np.arange(7)):
        # The regulariser's part is rounded down once, not for each row.
        slack = len(chosen) if regulariser == "inside" else 0
        difference = sum(single[i] for i in chosen) - total(chosen)
        assert np.abs(difference).max() <= slack
    padded = np.hstack([X, np.zeros((n, 5))])
    rows = scipy.sparse.csr_array(padded) if sparse else padded
    wide = cells_of(rows, codes, np.hstack([coef, np.zeros((c, 5))]), intercept, replace(steps, regulariser="outside"))
    narrow = cells_of(
        scipy.sparse.csr_array(X) if sparse else X, codes, coef, intercept, replace(steps, regulariser="outside")
    )
    assert np.array_equal(np.delete(wide, slice(d, d + 5), axis=1), narrow)


@pytest.mark.parametrize("loss", LOSSES)
def test_many_rows_are_added_up_exactly(loss):
    """More than float64 holds: 70,000 rows that all pull the same way, and one more."""
    X, codes, coef, intercept = np.full((1, 3), 0.9), np.array([1]), np.zeros((3, 3)), np.zeros(3)
    steps = settings_of(loss, max_grad_norm=0.01)
    one = cells_of(X, codes, coef, intercept, steps)
    assert np.abs(one).max() > 2**34
    for n in (2**14 - 1, 2**14, 2**14 + 1, 70_000, 70_001):
        rows = np.repeat(X, n, axis=0)
        assert np.array_equal(cells_of(rows, np.repeat(codes, n), coef, intercept, steps), n * one)
    many = scipy.sparse.csr_array(np.repeat(X, 2**15, axis=0))
    assert np.array_equal(cells_of(many, np.repeat(codes, 2**15), coef, intercept, steps), 2**15 * one)


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_do_not_depend_on_the_blocks(sparse, regulariser, monkeypatch):
    X, codes, coef, intercept = problem(8, 300, 5, 3)
    steps = settings_of("softmax", regulariser=regulariser, margin_weight=0.1, ridge=0.2)
    rows = scipy.sparse.csr_array(X) if sparse else X
    expected = cells_of(rows, codes, coef, intercept, steps)
    for size in (64, 100, 299):
        monkeypatch.setattr(clipped_gradients, "_EXACT_ROWS", size)
        assert np.array_equal(cells_of(rows, codes, coef, intercept, steps), expected)


def square_cells(cells):
    return sum(int(value) ** 2 for value in np.asarray(cells, dtype=object).ravel())


@given(
    st.tuples(
        st.integers(0, 10**6),
        st.sampled_from(KINDS),
        st.integers(2, 5),
        st.integers(2, 12),
        st.sampled_from(LOSSES),
        st.sampled_from([0.01, 1.0, 30.0]),
        st.sampled_from(REGULARISERS),
        st.sampled_from([0.0, 0.3, 50.0]),
        st.sampled_from([1e-310, 0.1, 1.0, 1e4, 1e302]),
    )
)
@settings(max_examples=400, deadline=None)
def test_no_neighbour_moves_a_sum_by_more_than_the_bound(case):
    """As an inequality of integers, for both relations: of the sums, and of sums rounded to the grid of the noise."""
    seed, kind, n_classes, n, loss, bound, regulariser, noise_scale, size = case
    rng = np.random.default_rng(seed)
    with np.errstate(under="ignore"):
        X = rng.normal(size=(n, 3)) * size
    y = rng.integers(0, n_classes, size=n)
    first, second, relation = neighbours(X, y, n_classes, kind, rng)
    steps = settings_of(
        loss,
        max_grad_norm=bound,
        regulariser=regulariser,
        margin_weight=0.1,
        ridge=0.2,
        noise_scale=noise_scale * bound,
    )
    model = rng.normal(size=(n_classes, 3)) * rng.choice([0, 1, 1e3]), rng.normal(size=n_classes)
    sums = [cells_of(*dataset, *model, steps).astype(object) for dataset in (first, second)]
    factor = 1 if relation == "add_remove" else 2
    assert square_cells(sums[0] - sums[1]) <= (factor * UNIT) ** 2
    shift = noisy_gradient._rounding_shift(steps, sums[0].size)
    rounded = [(total + (1 << shift >> 1)) >> shift for total in sums]
    assert square_cells(rounded[0] - rounded[1]) << (2 * shift) <= (factor * UNIT) ** 2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_no_row_is_longer_than_the_bound_in_whole_numbers(sparse, regulariser, loss):
    """Whatever the row and the weights: their size, their sign, cancelling the regulariser or not."""
    rng = np.random.default_rng(3)
    d, c = 11, 4
    steps = settings_of(loss, regulariser=regulariser, margin_weight=0.1, ridge=0.3, smoothing=0.01, noise_scale=1.0)
    with np.errstate(under="ignore"):
        rows = [rng.normal(size=d) * scale for scale in (1e-320, 1e-300, 1e-3, 1.0, 1e3, 1e20, 1e149, 1e160, 1e307)]
    rows += [np.zeros(d), np.full(d, 1.7e308), -np.full(d, 1.7e308), np.full(d, 5e-324)]
    for bound in (1e-8, 0.3, 1e3):
        rescaled = replace(steps, max_grad_norm=bound, noise_scale=bound)
        shift = noisy_gradient._rounding_shift(rescaled, c * (d + 1))
        # Room for rounding.
        room = UNIT - math.isqrt(c * (d + 1)) * 2**shift
        for scale in (0.0, 1e-3, 1.0, 1e3, 1e12, 1e29, 1e160, np.nan):
            coef, intercept = scale * rng.normal(size=(c, d)), scale * rng.normal(size=c)
            for row in rows:
                for code in range(c):
                    X = scipy.sparse.csr_array(row[None, :]) if sparse else row[None, :]
                    assert square_cells(cells_of(X, [code], coef, intercept, rescaled)) <= room**2


def test_rows_that_cancel_the_regulariser_are_short_all_the_same():
    """Weights are chosen so that a row's gradient is minus the regulariser's, or nearly."""
    steps = settings_of("hinge", regulariser="inside", ridge=0.5, smoothing=0.1, fit_intercept=False, max_grad_norm=1.0)
    for size in (0.5, 1.0, 3.0, 1e3, 1e6):
        for angle in (0.0, 1e-9, 1e-6, 1e-3, 0.1):
            X = np.array([[size, angle * size]])
            for factor in (0.1, 0.5, 0.9, 0.99, 1.0, 1.1):
                # The row's gradient is (-h, h) x', h at most 1; the regulariser's W.
                coef = factor * np.array([[size, 0.0], [-size, 0.0]])
                assert square_cells(cells_of(X, [0], coef, np.zeros(2), steps)) <= UNIT**2


def keys_of(seed):
    """Keys of sampling and noise of a run with this source."""
    source = NoiseSource(NoiseSource(bytes([seed] * 32)).next_key())
    return NoiseSource(bytes([seed] * 32)), [source.part(name).next_key() for name in ("sampling", "noise")]


@pytest.mark.parametrize("sparse", [False, True])
def test_noise_comes_from_its_stream_bit_for_bit(sparse):
    """Steps without rows: every number of the model is minus the sum of the stream's numbers, times the rate."""
    d, c, n_steps = 700, 3, 3
    rows = np.empty((0, d))
    for bound, noise_scale in ((1.0, 2.5), (0.3, 0.01), (1e-8, 3e-6)):
        steps = settings_of(
            "softmax", noise_scale=noise_scale, max_grad_norm=bound, n_steps=n_steps, learning_rate=0.5,
            expected_batch=3.0,
        )  # fmt: skip
        source, (_, key) = keys_of(4)
        X = scipy.sparse.csr_array(rows) if sparse else rows
        model = noisy_gradient_steps(X, np.empty(0, int), c, steps, source)
        size = c * (d + 1)
        schedule = noisy_gradient.schedule_of(steps, size)
        assert schedule.sigma * Fraction(schedule.cell) >= Fraction(noise_scale)
        assert schedule.sigma * Fraction(schedule.cell) <= Fraction(noise_scale) * (1 + Fraction(1, 2**48))
        assert schedule.cell <= 1e-6 * bound / math.sqrt(size)
        cells = rounded_normals(key, schedule.sigma, n_steps * size).reshape(n_steps, size)
        weights = np.zeros(size)
        for row in cells:
            weights -= 0.5 * (row * schedule.cell * (1.0 / 3.0))
        assert np.array_equal(model.coef, weights[: c * d].reshape(c, d))
        assert np.array_equal(model.intercept, weights[c * d :])


def test_no_two_runs_share_noise():
    """A source that trains two models, as naive composition does, gives each another noise and another sampling."""
    source, steps = NoiseSource(bytes(32)), settings_of("hinge", noise_scale=1.0)
    runs = [noisy_gradient_steps(np.empty((0, 50)), np.empty(0, int), 2, steps, source).coef for _ in range(2)]
    assert not np.isin(runs[0], runs[1]).any()
    sampled = settings_of("one_vs_rest_hinge", sample_rate=0.5, fit_intercept=False)
    drawn = [noisy_gradient_steps(np.eye(100), np.ones(100, int), 1, sampled, source).coef != 0 for _ in range(2)]
    # Equal with probability 2^-100.
    assert (drawn[0] != drawn[1]).any()


@pytest.mark.parametrize("rate", [2.0**-64, 1e-3, 0.3, 1.0 - 2.0**-53])
def test_a_row_is_drawn_by_its_own_word(rate):
    """However many rows there are before or behind it: word i of the step's stream, under the sampling's key."""
    n_runs = 30
    for n_rows in (3, 130, 1500):
        steps = settings_of(
            "one_vs_rest_hinge", sample_rate=rate, fit_intercept=False, smoothing=0.0, learning_rate=1.0, n_steps=1
        )
        source, (key, _) = keys_of(7)
        coef, _ = repeat_noisy_gradient_steps(np.eye(n_rows), np.ones(n_rows, int), 1, steps, source, n_runs)
        for run in range(n_runs):
            drawn = [int(word) < int(Fraction(rate) * 2**64) for word in uniform_words(key, 0, run, n_rows)]
            assert ((coef[run, 0] != 0) == drawn).all()


def test_sums_beyond_int64_wrap_around_with_their_noise():
    """The exact noisy sum is released, reduced by a modulus: no refusal, and no jump between neighbours."""
    rng = np.random.default_rng(0)
    size, steps = 6, settings_of("hinge", noise_scale=2.0)
    schedule = noisy_gradient.schedule_of(steps, size)
    exact = [2**63 - 5, -(2**63) - 7, 2**63 + 2**40, 12345, -(2**70) + 3, 2**62]
    key = rng.bytes(32)
    totals = np.array([(value + 2**63) % 2**64 - 2**63 for value in exact])
    released = noisy_gradient.StepNoise(schedule, key).release(totals, 0)
    modulus = 2 ** (64 - schedule.shift)
    for value, cell, number in zip(exact, rounded_normals(key, schedule.sigma, size), released, strict=True):
        noisy = ((value + (1 << schedule.shift >> 1)) >> schedule.shift) + int(cell)
        wrapped = (noisy + modulus // 2) % modulus - modulus // 2
        assert number == float(wrapped) * schedule.cell * schedule.portion


def test_noise_that_fits_no_grid_is_refused_by_public_numbers():
    X, codes, _, _ = problem(0, 3, 2, 2)
    for noise_scale in (1e30, 1e-30):
        with pytest.raises(ValueError, match=r"noise_scale=|sigma="):
            noisy_gradient_steps(X, codes, 2, settings_of("hinge", noise_scale=noise_scale), NoiseSource(bytes(32)))
    # Much noise has a coarser grid, and a row keeps the room that rounding needs.
    steps = settings_of("hinge", noise_scale=1e8)
    share = noisy_gradient._clipping_share(steps, 2, 2)
    shift = noisy_gradient._rounding_shift(steps, 6)
    assert share + Fraction(2) ** (shift - 38) * Fraction(math.isqrt(6)) <= 1
    assert noisy_gradient.schedule_of(steps, 6).sigma <= 2.0**40
