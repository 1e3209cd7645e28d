import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adversarial import KINDS, neighbours

from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.unit_grid import unit_cells
from privsvm.solvers.gradients import huber_descent
from privsvm.solvers.gradients.huber_descent import HuberDescent, descend, exact_product, gradient_cells

BOUND = 2**38


def noise_shift(multiplier, size):
    return huber_descent._StepNoise(HuberDescent(n_steps=1, length=1.0, noise_multiplier=multiplier), size, None).shift


def as_integers(array):
    return np.array([int(value) for value in array.ravel()], dtype=object)


def problem(rng, n, d, c, size=1.0):
    cells = unit_cells(rng.normal(size=(n, d)))[0]
    weights = rng.normal(size=(1 if c == 2 else c, d)) * size
    return cells, rng.integers(0, c, size=n), weights


def loss(scores, label):
    """The Huber hinge of the rivals' margins, one row."""
    margins = np.delete(scores[label] - scores, label)
    return np.where(margins < 0, 0.5 - margins, 0.5 * np.square(np.maximum(1 - margins, 0))).sum()


@pytest.mark.parametrize("c", [2, 3, 7])
def test_gradients_are_those_of_the_loss_clipped(c):
    rng = np.random.default_rng(c)
    for _ in range(20):
        cells, codes, weights = problem(rng, 1, 4, c, rng.choice([0.1, 1.0]))
        row = cells[0] / 2**20
        vectors = weights if c > 2 else np.concatenate([-weights, weights]) / math.sqrt(2)

        def at(vectors, row=row, label=codes[0]):
            return loss(vectors @ row, label)

        numeric = np.zeros_like(vectors)
        for entry in np.ndindex(*vectors.shape):
            step = np.zeros_like(vectors)
            step[entry] = 1e-6
            numeric[entry] = (at(vectors + step) - at(vectors - step)) / 2e-6
        numeric /= max(1.0, np.linalg.norm(numeric))
        gradient = gradient_cells(cells, codes, c, np.ones(c), weights) / BOUND
        if c == 2:
            gradient = np.concatenate([-gradient, gradient]) / math.sqrt(2)
        assert np.allclose(gradient, numeric, atol=1e-4)


@given(
    st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 9),
    st.sampled_from([0.0, 1e-200, 1e-9, 1.0, 1e30, 1e140]), st.floats(1e-6, 1.0),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_no_row_is_longer_than_the_bound_in_whole_numbers(seed, c, d, size, weight):
    rng = np.random.default_rng(seed)
    cells, codes, weights = problem(rng, 1, d, c, size)
    class_weights = np.full(c, weight)
    gradient = as_integers(gradient_cells(cells, codes, c, class_weights, weights))
    # One whole slope is off by a ten-thousandth of a unit.
    assert (gradient**2).sum() <= min(BOUND**2, (int(weight * BOUND) + c * 2**20) ** 2)


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(2, 6), st.integers(2, 12))
@settings(max_examples=200, deadline=None)
def test_no_neighbour_moves_a_sum_by_more_than_the_bound(seed, kind, c, n):
    """Rounded to the grid of the noise, in whole numbers, and within the norm that the noise is set for."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, c, size=n)
    weights, shares = rng.normal(size=(1 if c == 2 else c, 3)) * 10.0, rng.uniform(0.1, 1.0, size=c)
    first, second, relation = neighbours(X, y, c, kind, rng)
    shift = noise_shift(5.0, weights.size)
    sums = [
        as_integers((gradient_cells(unit_cells(rows)[0], codes, c, shares, weights) + (1 << shift >> 1)) >> shift)
        for rows, codes in (first, second)
    ]
    factor = 1 if relation == "add_remove" else 2
    one_row = 2 ** (38 - shift) + math.sqrt(weights.size)
    assert ((sums[0] - sums[1]) ** 2).sum() <= (factor * one_row) ** 2


@pytest.mark.parametrize("c", [2, 5])
def test_a_sum_is_that_of_its_rows(c):
    """Bit for bit, whatever the other rows are, and however many threads BLAS has."""
    rng = np.random.default_rng(c)
    cells, codes, weights = problem(rng, 1200, 33, c)
    shares = rng.uniform(0.2, 1.0, size=c)

    def add_up(kept):
        return gradient_cells(cells[kept], codes[kept], c, shares, weights)

    alone = [add_up([i]) for i in range(40)]
    for kept in (np.arange(40), np.arange(0, 40, 3), rng.integers(0, 40, size=31)):
        assert np.array_equal(add_up(kept), sum(alone[i] for i in kept))
    assert np.array_equal(add_up(np.arange(1200)), add_up(rng.permutation(1200)))
    whole_sum = gradient_cells(np.asfortranarray(cells), codes, c, shares, weights)
    assert np.array_equal(add_up(np.arange(1200)), whole_sum)


def test_products_are_exact_row_by_row():
    rng = np.random.default_rng(0)
    cells, matrix = unit_cells(rng.normal(size=(50, 17)))[0], rng.normal(size=(17, 9)) * 1e-3
    product = exact_product(cells, matrix)
    assert np.allclose(product, cells / 2**20 @ matrix, rtol=0, atol=1e-10)
    numbers, unit = huber_descent._round_weights(matrix)
    expected = np.array([[sum(int(a) * int(b) for a, b in zip(row, column, strict=True)) for column in numbers.T]
                         for row in cells], dtype=object)  # fmt: skip
    assert (as_integers(product * 2**20 / unit) == as_integers(expected)).all()
    for kept in ([3], [7, 3], np.arange(0, 50, 7)):
        assert np.array_equal(exact_product(cells[kept], matrix), product[kept])


@pytest.mark.parametrize("size", [1e-80, 1.0, 1e27])
def test_rounded_weights_leave_room_in_float64(size):
    weights = np.random.default_rng(1).normal(size=(7, 301)) * size
    numbers, unit = huber_descent._round_weights(weights)
    assert 2**59 <= (as_integers(numbers) ** 2).sum() <= 2**63
    assert np.allclose(numbers * unit, weights, atol=unit)
    for lost in (0.0, 1e-200, 1e200, np.inf, np.nan):
        assert not huber_descent._round_weights(np.full((2, 2), lost))[0].any()


def test_noise_is_its_streams_bit_for_bit():
    none, key = np.zeros((0, 5)), bytes(range(32))
    steps = HuberDescent(n_steps=3, length=6.0, noise_multiplier=4.0)
    weights = descend(none, np.zeros(0, dtype=int), 3, np.ones(3), steps, NoiseSource(key))
    shift = noise_shift(4.0, 15)
    sigma = 4.0 * (2.0 ** (38 - shift) + math.sqrt(15)) * (1 + 2.0**-50) ** 2
    source = NoiseSource(key)
    noise = np.stack([source.rounded_normals(sigma, 15).reshape(3, 5) for _ in range(3)]) * 2.0 ** (shift - 38)
    noise -= noise.mean(axis=1, keepdims=True)
    # With three steps, the last one is averaged.
    assert np.allclose(weights, -2.0 * noise.sum(axis=0), rtol=1e-12)
    assert np.allclose(weights.sum(axis=0), 0.0, atol=1e-9)
    assert math.sqrt(15) * 2.0 ** (shift - 38) <= 2.0**-19


def test_the_variance_of_noise_in_weights():
    steps = HuberDescent(n_steps=40, length=6.0, noise_multiplier=4.0)
    none, codes = np.zeros((0, 4000)), np.zeros(0, dtype=int)
    weights = descend(none, codes, 2, np.ones(2), steps, NoiseSource(bytes(32)))
    # Of 12 averaged steps a little more than a third counts. The rest is chance: below 1e-6, and the key is fixed.
    expected = steps.noise_variance * (28 + 13 * 25 / 72) / 32
    assert 2.0 * np.square(weights[1]).mean() == pytest.approx(expected, rel=0.11)


def test_a_large_multiplier_gets_a_wider_grid():
    shift = noise_shift(1e9, 15)
    assert 1e9 * 2.0 ** (38 - shift) <= 2.0**40
    assert shift > noise_shift(1.0, 15)


def test_sums_beyond_int64_wrap_around_with_their_noise(monkeypatch):
    steps = HuberDescent(n_steps=1, length=1.0, noise_multiplier=1.0)
    key, none, codes = bytes(32), np.zeros((0, 1)), np.zeros(0, dtype=int)
    small = descend(none, codes, 2, np.ones(2), steps, NoiseSource(key))
    monkeypatch.setattr(huber_descent, "_sum_of_blocks", lambda *rest: np.full((1, 1), -(2**63), dtype=np.int64))
    low = descend(none, codes, 2, np.ones(2), steps, NoiseSource(key))
    difference = (low - small)[1, 0] * math.sqrt(2)
    assert abs(difference) == 2.0**25


def test_without_noise_it_separates_what_can_be_separated():
    rng = np.random.default_rng(0)
    for c in (2, 4):
        codes = rng.integers(0, c, size=300)
        cells = unit_cells(np.eye(4)[codes] + 0.1 * rng.normal(size=(300, 4)))[0]
        steps = HuberDescent(n_steps=60, length=0.2)
        coef = descend(cells, codes, c, np.ones(c), steps, NoiseSource(bytes(32)))
        assert ((cells @ coef.T).argmax(axis=1) == codes).mean() > 0.99
