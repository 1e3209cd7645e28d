import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adversarial import KINDS, Silence, neighbours

from privsvm.base import scaled_descent
from privsvm.base.scaled_descent import (
    Budget,
    Recipe,
    class_weights_from,
    noisy_count,
    public_frequencies,
    rows_to_train,
    train,
)
from privsvm.base.second_moments import Moments, MomentsMechanism
from privsvm.numerics.noise_source import NoiseSource
from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.events import Gaussian, leaves

RECIPES = {
    "plain": Recipe(mean_share=0.1, n_steps=2),
    "evened": Recipe(mean_share=0.1, moment_share=0.2, n_steps=2),
    "features": Recipe(mean_share=0.1, n_frequencies=3, feature_mean_share=0.05, moment_share=0.2, n_steps=2),
}


def whole_numbers(cells):
    assert np.array_equal(cells, np.rint(cells))
    return np.array([[int(value) for value in row] for row in cells], dtype=object).reshape(cells.shape)


class Script:
    """Records the exact sums that get noise and for which multipliers, and answers the same whatever the rows are."""

    def __init__(self, monkeypatch, seed):
        self.sums, self.multipliers, self.trained = [], [], None
        rng = np.random.default_rng(seed)

        def noisy_centre(cells, n_rows, multiplier, source):
            whole = whole_numbers(cells)
            assert all((row * row).sum() <= 2**40 for row in whole)
            self.sums.append(("sum", whole.sum(axis=0, initial=0), Fraction(2**20)))
            self.multipliers.append(multiplier)
            return rng.normal(size=cells.shape[1])

        def release(mechanism, cells, codes, source):
            whole = whole_numbers(cells)
            assert all((row * row).sum() <= 2**40 for row in whole)
            assert codes.shape == (len(cells), 0)
            self.sums.append(("moment", whole.T @ whole, Fraction(2**40)))
            self.multipliers.append(mechanism.multiplier)
            noise = rng.normal(size=(cells.shape[1],) * 2)
            return Moments(noise @ noise.T, codes)

        def descend(cells, codes, n_classes, class_weights, descent, source):
            self.trained = cells
            self.multipliers += [descent.noise_multiplier] * descent.n_steps
            return rng.normal(size=(n_classes, cells.shape[1]))

        for function in (noisy_centre, descend):
            monkeypatch.setattr(scaled_descent, function.__name__, function)
        monkeypatch.setattr(MomentsMechanism, "release", release)


def scripted(X, y, recipe, budget, seed=0, n_classes=2):
    with pytest.MonkeyPatch.context() as patch:
        script = Script(patch, seed)
        model = train(
            rows_to_train(X), y, n_classes, recipe=recipe, n_rows=10, budget=budget, share=1.0,
            class_weights=np.ones(n_classes), source=Silence(),
        )  # fmt: skip
    return script, model


def budget(neighbours="replace_one", epsilon=1.0):
    return Budget(epsilon=epsilon, delta=1e-5, neighbours=neighbours)


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.sampled_from(sorted(RECIPES)), st.integers(2, 12),
       st.sampled_from([1e-310, 1e-3, 1.0, 1e301]))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_no_release_moves_more_than_its_sensitivity(seed, kind, name, n, size):
    """Given what was released before: the outputs are scripted, the exact sums are compared, in whole numbers."""
    rng = np.random.default_rng(seed)
    with np.errstate(under="ignore"):
        X, y = rng.normal(size=(n, 3)) * size, rng.integers(0, 2, size=n)
    first, second, relation = neighbours(X, y, 2, kind, rng)
    both = [scripted(*data, RECIPES[name], budget(relation), seed)[0] for data in (first, second)]
    for (what, one, bound), (_, other, _) in zip(*(script.sums for script in both), strict=True):
        squared = ((one - other) ** 2).sum()
        if relation == "add_remove":
            assert squared <= bound**2
        else:
            # Of outer products of two unit rows: the root of 2, and not 2.
            assert squared <= (2 if what == "moment" else 4) * bound**2
    assert len(both[0].sums) == len(RECIPES[name].releases)
    for script in both:
        assert all((row * row).sum() <= 2**40 for row in whole_numbers(script.trained))


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_a_row_depends_on_itself_and_on_releases_alone(name, size):
    """Bit for bit: rows are removed, permuted and repeated, while the releases stay the same."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(203, 6)) * size
    X[3], X[4] = 0.0, 1.7e308

    def trained(rows):
        return scripted(rows, np.zeros(len(rows), dtype=int), RECIPES[name], budget())[0].trained

    whole = trained(X)
    assert whole.any()
    for kept in (rng.permutation(203), np.arange(1), np.arange(0, 203, 3), rng.integers(0, 203, 31)):
        assert np.array_equal(trained(X[kept]), whole[kept])
    assert np.array_equal(trained(np.asfortranarray(X)), whole)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", RECIPES)
def test_the_event_is_that_of_the_noise_and_costs_the_budget(name, relation):
    recipe, own = RECIPES[name], budget(relation, 2.0)
    event = recipe.event(own, 0.5)
    stated = [part.noise_multiplier for part, count in leaves(event) for _ in range(count)]
    assert all(isinstance(part, Gaussian) for part, _ in leaves(event))
    factor = 1.0 if relation == "add_remove" else 2.0
    signal = factor * math.sqrt(sum(multiplier**-2 for multiplier in stated))
    # Half of the budget: half of the squared signal.
    assert 2.0 * (1 - 1e-6) <= gaussian_epsilon(1 / (math.sqrt(2.0) * signal), 1e-5) <= 2.0
    X = np.random.default_rng(0).normal(size=(10, 3))
    script, _ = scripted(X, np.arange(10) % 2, recipe, own)
    assert script.multipliers == pytest.approx([multiplier * math.sqrt(0.5) for multiplier in stated])


def test_a_budget_of_one_release_is_that_of_the_accountant():
    for relation, factor in (("replace_one", 2.0), ("add_remove", 1.0)):
        own = budget(relation, 3.0)
        assert 3.0 * (1 - 1e-8) <= gaussian_epsilon(own.multiplier(1.0) / factor, 1e-5) <= 3.0
        assert own.multiplier(0.25) == pytest.approx(2 * own.multiplier(1.0))
        assert own.signal * own.multiplier(1.0) == pytest.approx(1.0)


def test_fewer_frequencies_are_the_first_ones_of_more():
    few, many = public_frequencies(5, 7, 0.4), public_frequencies(5, 30, 0.4)
    assert np.array_equal(few, many[:, :7])
    # Standard deviation of 150 numbers; the seed is fixed.
    assert many.std() == pytest.approx(math.sqrt(0.8), rel=0.15)
    assert public_frequencies(5, 0, 0.4).shape == (5, 0)


def test_noisy_counts():
    codes = np.repeat([0, 1, 2], [700, 250, 0])
    exact = noisy_count(codes, 3, budget(), 0.01, Silence())
    assert exact[:2].tolist() == [700.0, 250.0]
    # An empty class counts for twice the noise.
    assert exact[2] == pytest.approx(2 * budget().multiplier(0.01))
    assert noisy_count(codes, 1, budget(), 0.01, Silence()).tolist() == [950.0]
    drawn = [noisy_count(codes, 3, budget(), 0.01, NoiseSource(bytes([i] * 32)))[0] for i in range(200)]
    # The standard deviation of 200 draws: chance of a false alarm below 1e-6; the keys are fixed besides.
    assert np.std(drawn) == pytest.approx(budget().multiplier(0.01), rel=0.26)
    assert class_weights_from(np.array([700.0, 250.0, 100.0])).tolist() == [100 / 700, 100 / 250, 1.0]


def test_without_noise_to_speak_of_rows_are_centred_and_evened_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) * [1, 0.5, 0.3, 0.1] + 5.0
    generous = Budget(epsilon=1e4, delta=0.1, neighbours="replace_one")
    kept = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            scaled_descent, "descend", lambda cells, *rest: kept.update(rows=cells / 2**20) or np.zeros((2, 5))
        )
        train(
            rows_to_train(X), np.arange(500) % 2, 2, recipe=Recipe(mean_share=0.1, moment_share=0.1), n_rows=500,
            budget=generous, share=1.0, class_weights=np.ones(2), source=NoiseSource(bytes(32)),
        )  # fmt: skip
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    unit -= unit.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    rows = np.column_stack([unit * math.sqrt(0.96), np.full(500, 0.2)])
    spectrum, directions = np.linalg.eigh(rows.T @ rows / 500)
    rows = rows @ (directions * spectrum**-0.5) @ directions.T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # An eigenvalue is next to nothing: its direction is left to the floor, and not compared.
    assert np.abs(np.sum(kept["rows"] * rows, axis=1)).mean() > 0.9
