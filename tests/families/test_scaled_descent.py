import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.adversarial import KINDS, Silence, neighbours, whole_numbers
from tests.replay import Recorder, Replayer, check_given

from privsvm.families.moments import scaled_descent
from privsvm.families.moments.scaled_descent import (
    Budget,
    Recipe,
    noisy_count,
    public_frequencies,
    signal_chances,
    train,
)
from privsvm.families.moments.second_moments import Moments, MomentsMechanism, share_beside, unit_cell_rows
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.events import Gaussian, leaves
from privsvm.solvers.gradients import huber_descent
from privsvm.solvers.gradients.huber_descent import condition_of_product

RECIPES = {
    "plain": Recipe(n_rows=10, mean_share=0.1, n_steps=2),
    "evened": Recipe(n_rows=10, mean_share=0.1, moment_share=0.2, n_steps=2),
    "features": Recipe(n_rows=10, mean_share=0.1, n_frequencies=3, moment_share=0.2, n_steps=2),
}


class Script:
    """Records the multipliers of noise, and answers the same whatever the rows are."""

    def __init__(self, monkeypatch, seed):
        self.multipliers, self.trained, self.matrix = [], None, None
        rng = np.random.default_rng(seed)

        def noisy_centre(cells, n_rows, multiplier, source, public):
            assert all((row * row).sum() <= 2**40 for row in whole_numbers(cells))
            self.multipliers.append(multiplier)
            return rng.normal(size=cells.shape[1])

        def release(mechanism, cells, codes, source):
            assert all((row * row).sum() <= 2**40 for row in whole_numbers(cells))
            assert codes.shape == (len(cells), 0)
            self.multipliers.append(mechanism.multiplier)
            noise = rng.normal(size=(cells.shape[1],) * 2)
            return Moments(noise @ noise.T, codes)

        def descend(cells, codes, n_classes, class_weights, descent, source):
            self.trained = cells
            self.multipliers += [descent.noise_multiplier] * descent.n_steps
            return rng.normal(size=(n_classes, cells.shape[1]))

        evening = scaled_descent._evening

        def _evening(*given):
            self.matrix = evening(*given)
            return self.matrix

        for function in (noisy_centre, descend, _evening):
            monkeypatch.setattr(scaled_descent, function.__name__, function)
        monkeypatch.setattr(MomentsMechanism, "release", release)


def scripted(X, y, recipe, budget, seed=0, n_classes=2):
    with pytest.MonkeyPatch.context() as patch:
        script = Script(patch, seed)
        model = train(
            unit_cell_rows(X), y, recipe=recipe, budget=budget, class_weights=np.ones(n_classes), source=Silence()
        )
    return script, model


def budget(neighbours="replace_one", epsilon=1.0):
    return Budget(epsilon=epsilon, delta=1e-5, neighbours=neighbours)


def share_needed(first, second, recipe, allowed, n_classes, key):
    """Record a training and replay it on a neighbour; return the needed share of its sensitivity, squared."""
    recorder = Recorder(key)
    shares = []
    for (X, y), source in ((first, recorder), (second, Replayer(recorder.calls))):
        model = train(
            unit_cell_rows(X), y, recipe=recipe, budget=allowed, class_weights=np.ones(n_classes), source=source
        )
        shares.append((model, source.calls))
    (model, calls), (other, others) = shares
    assert np.array_equal(model.coef, other.coef)
    return check_given(calls, others, 0, allowed.neighbours) ** 2


@given(st.integers(0, 10**6), st.sampled_from(KINDS[:-1]), st.sampled_from(["evened", "features"]), st.integers(2, 3),
       st.sampled_from([0, 4, 40]), st.sampled_from([0.5, 8.0, 100.0]), st.sampled_from([0.02, 0.2, 0.6]))  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_the_second_moment_and_the_steps_together_need_no_more_than_is_stated(
    seed, kind, name, n_classes, crowd, epsilon, share
):
    """In fractions, as one release: a row that moves one of them by all it can leaves the other less."""
    rng = np.random.default_rng(seed)
    # A crowd along one direction makes rows be turned.
    X = np.vstack([rng.normal(size=(6, 3)), rng.normal(size=(crowd, 3)) * [1.0, 0.1, 0.01]])
    y = rng.integers(0, n_classes, size=len(X))
    first, second, _ = neighbours(X, y, n_classes, kind, rng)
    recipe = dataclasses.replace(RECIPES[name], moment_share=share, n_rows=40)
    assert share_needed(first, second, recipe, budget(epsilon=epsilon), n_classes, seed.to_bytes(32, "big")) <= 1


@pytest.mark.parametrize("crowd", [0, 40])
def test_some_rows_need_nearly_all_of_it(crowd):
    """Of all angles between two rows, one; with slopes that make their gradients opposite."""
    # Weights stay near zero, where every label pulls with all its length.
    recipe, allowed = Recipe(n_rows=40, mean_share=0.0, moment_share=0.2, n_steps=2, length=1e-9), budget(epsilon=100.0)
    others = np.array([[1.0, 0.0], [-1.0, 0.0]] * (crowd // 2) + [[0.0, 1.0], [0.0, -1.0]])
    y = np.arange(len(others) + 1) % 2
    needed = []
    for angle in np.linspace(0.0, math.pi, 13):
        rows = ([math.cos(angle / 2), sign * math.sin(angle / 2)] for sign in (1.0, -1.0))
        first, second = (np.vstack([row, others]) for row in rows)
        both = (y, np.append(1 - y[0], y[1:]))
        needed += [share_needed((first, y), (second, labels), recipe, allowed, 2, bytes(32)) for labels in both]
    assert 0.9 < max(needed) <= 1
    # With noise of their own, both of them, and not one or the other, are needed for rows at a right angle.
    assert min(needed) < 0.6


class OtherRows:
    """Sums of rows that two datasets share, chosen so that rounding moves every number of both as far apart as it can.

    Trainings take turns. The first two tell how far apart exact sums are; in those after them, other rows are there.
    """

    def __init__(self, monkeypatch):
        self.seen, self.turn = [], -1
        noisy, release = MomentsMechanism.noisy, huber_descent._StepNoise.release
        monkeypatch.setattr(
            MomentsMechanism,
            "noisy",
            lambda allowed, exact, source: noisy(allowed, self.among_others(exact, allowed.shift), source),
        )
        monkeypatch.setattr(
            huber_descent._StepNoise,
            "release",
            lambda allowed, total, last: release(allowed, self.among_others(total, allowed.shift), last),
        )

    def train(self, rows, labels, recipe, allowed, source):
        self.turn, self.place = self.turn + 1, 0
        if self.turn < 2:
            self.seen.append([])
        train(unit_cell_rows(rows), labels, recipe=recipe, budget=allowed, class_weights=np.ones(2), source=source)

    def among_others(self, exact, shift):
        if self.turn < 2:
            self.seen[self.turn].append(exact.copy())
            return exact
        first, second = (seen[self.place] for seen in self.seen)
        self.place += 1
        half, cell = (1 << shift) >> 1, 1 << shift
        # The smaller of both is the largest number that is rounded down, and the other is above it.
        return exact + (half - 1 - np.minimum(first, second)) % cell


@given(st.floats(-6.0, 0.0), st.floats(-300.0, -2.0), st.sampled_from([2, 20, 100]), st.floats(-9.0, 0.19),
       st.sampled_from([0.02, 0.25, 0.6, 0.95]), st.sampled_from([0.1, 1.0, 1e3]), st.booleans())  # fmt: skip
@example(-6.0, -300.0, 400, -0.45, 0.25, 1e3, False)
@settings(max_examples=40, deadline=None)
def test_rounding_on_coarse_grids_is_a_part_of_what_is_stated(log_epsilon, log_delta, d, log_angle, share, lift, crowd):
    """In fractions, at every budget that is taken; other rows have sums that are rounded as far apart as can be."""
    rng, angle = np.random.default_rng(d), 10.0**log_angle
    # All numbers of the Gram matrix are moved, and half of them equally far.
    one, other = np.repeat(np.eye(2), d // 2, axis=1) / math.sqrt(d // 2)
    others = rng.normal(size=(20 if crowd else 0, d)) * np.geomspace(1.0, 0.03, d)
    sets = [
        (np.vstack([[row], others]), np.append([label], np.arange(len(others)) % 2))
        for label, row in enumerate((one, math.cos(angle) * one + math.sin(angle) * other))
    ]
    # Weights stay near zero, where every label pulls with all its length.
    recipe = Recipe(n_rows=40, mean_share=0.0, moment_share=share, lift=lift, n_steps=2, length=1e-9)
    allowed = Budget(epsilon=10.0**log_epsilon, delta=10.0**log_delta, neighbours="replace_one")
    with pytest.MonkeyPatch.context() as patch:
        there = OtherRows(patch)
        for _ in range(2):
            recorder = Recorder(bytes(32))
            there.train(*sets[0], recipe, allowed, recorder)
            replayer = Replayer(recorder.calls)
            there.train(*sets[1], recipe, allowed, replayer)
        assert check_given(recorder.calls, replayer.calls, 0, "replace_one") <= 1


def test_a_row_that_is_short_is_no_part_of_a_gradient():
    """The bound on a matrix's products is proved for rows as long as truncation leaves them."""
    cells = np.array([[2.0**20, 0.0], [2.0**20 - 1, 0.0], [2.0**20 - 2, 0.0], [5.0, 5.0]])
    evened = scaled_descent._even_out(cells, np.eye(2))
    assert evened.any(axis=1).tolist() == [True, True, False, False]


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_a_row_depends_on_itself_and_on_releases_alone(name, size):
    """Bit for bit: rows are removed, permuted and repeated, while the releases stay the same."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(203, 6)) * size
    X[3], X[4] = 0.0, 1.7e308

    def trained(rows):
        return scripted(rows, np.zeros(len(rows), dtype=int), RECIPES[name], budget())[0].trained

    all_models = trained(X)
    assert all_models.any()
    assert all((row * row).sum() <= 2**40 for row in whole_numbers(all_models))
    for kept in (rng.permutation(203), np.arange(1), np.arange(0, 203, 3), rng.integers(0, 203, 31)):
        assert np.array_equal(trained(X[kept]), all_models[kept])
    assert np.array_equal(trained(np.asfortranarray(X)), all_models)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", RECIPES)
def test_the_event_is_that_of_the_noise_and_costs_the_budget(name, relation):
    recipe, allowed = RECIPES[name], budget(relation, 2.0)
    event = recipe.event(dataclasses.replace(allowed, n_counts=50))
    stated = [release.noise_multiplier for release, count in leaves(event) for _ in range(count)]
    assert all(isinstance(release, Gaussian) for release, _ in leaves(event))
    factor = 1.0 if relation == "add_remove" else 2.0
    signal = factor * math.sqrt(sum(multiplier**-2 for multiplier in stated))
    # Half of the budget: half of the squared signal.
    assert 2.0 * (1 - 1e-6) <= gaussian_epsilon(1 / (math.sqrt(2.0) * signal), 1e-5) <= 2.0
    X = np.random.default_rng(0).normal(size=(10, 3))
    script, _ = scripted(X, np.arange(10) % 2, recipe, allowed)
    joint = recipe.joint_share(relation)
    assert (joint is None) == (relation == "add_remove" or name == "plain")
    if joint is not None:
        # As much as the released moment leaves.
        size = len(script.matrix)
        mechanism = MomentsMechanism(
            n_features=size, n_codes=0, neighbours=relation, multiplier=allowed.multiplier(0.5 * recipe.moment_share)
        )
        condition = condition_of_product(script.matrix)
        steps = share_beside(recipe.moment_share, joint, condition, size, mechanism.rounding_share)
        assert joint - recipe.moment_share <= steps < joint
        stated[-1:] = [
            allowed.multiplier(0.5 * recipe.moment_share),
            *[allowed.multiplier(0.5 * steps / recipe.n_steps)] * 2,
        ]
    assert script.multipliers == pytest.approx([multiplier * math.sqrt(0.5) for multiplier in stated])


def test_a_budget_of_one_release_is_that_of_the_accountant():
    for relation, factor in (("replace_one", 2.0), ("add_remove", 1.0)):
        allowed = budget(relation, 3.0)
        assert 3.0 * (1 - 1e-8) <= gaussian_epsilon(allowed.multiplier(1.0) / factor, 1e-5) <= 3.0
        assert allowed.multiplier(0.25) == pytest.approx(2 * allowed.multiplier(1.0))
        assert allowed.signal * allowed.multiplier(1.0) == pytest.approx(1.0)


def test_fewer_frequencies_are_the_first_ones_of_more():
    first_frequencies, all_frequencies = public_frequencies(5, 7, 0.4), public_frequencies(5, 30, 0.4)
    assert np.array_equal(first_frequencies, all_frequencies[:, :7])
    # Standard deviation of 150 numbers; the seed is fixed.
    assert all_frequencies.std() == pytest.approx(math.sqrt(0.8), rel=0.15)
    assert public_frequencies(5, 0, 0.4).shape == (5, 0)
    # As many as there are features are at right angles.
    block = all_frequencies[:, 25:]
    assert block.T @ block == pytest.approx(np.diag(np.square(block).sum(axis=0)), abs=1e-12)


def test_noisy_counts():
    codes = np.repeat([0, 1, 2], [700, 250, 0])
    exact = noisy_count(codes, 3, budget(), Silence())
    assert exact[:2].tolist() == [700.0, 250.0]
    # An empty class counts for twice the noise.
    assert exact[2] == pytest.approx(2 * budget().multiplier(0.01))
    assert noisy_count(codes, 1, budget(), Silence()).tolist() == [950.0]
    drawn = [noisy_count(codes, 3, budget(), NoiseSource(bytes([i] * 32)))[0] for i in range(200)]
    # The standard deviation of 200 draws: chance of a false alarm below 1e-6; the keys are fixed besides.
    assert np.std(drawn) == pytest.approx(budget().multiplier(0.01), rel=0.26)


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
            unit_cell_rows(X), np.arange(500) % 2, recipe=Recipe(n_rows=500, mean_share=0.1, moment_share=0.1),
            budget=generous, class_weights=np.ones(2), source=NoiseSource(bytes(32)),
        )  # fmt: skip
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    unit -= unit.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    rows = np.column_stack([unit, np.full(500, 0.4)]) / math.sqrt(1.16)
    spectrum, directions = np.linalg.eigh(rows.T @ rows / 500)
    rows = rows @ (directions * spectrum**-0.5) @ directions.T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # An eigenvalue is next to nothing: its direction is left to the floor, and not compared.
    assert np.abs(np.sum(kept["rows"] * rows, axis=1)).mean() > 0.9


@pytest.mark.parametrize("k", [1, 4])
def test_weights_with_a_signal_are_told_from_noise(k):
    # Seeds are fixed.
    rng = np.random.default_rng(k)
    noise = rng.normal(size=(200, k)) * math.sqrt(2.0)
    few = noise + np.where(np.arange(200)[:, None] < 20, 8.0 * rng.choice([-1.0, 1.0], size=(200, k)), 0.0)
    chances = signal_chances((few * few).sum(axis=1), 2.0, k)
    assert chances[:20].min() > 0.9
    assert chances[20:].mean() < 0.1
    # Whatever the unit is.
    assert np.allclose(signal_chances(1e-8 * (few * few).sum(axis=1), 2e-8, k), chances)
    # Where all have a signal, or none has one, or there is little to tell them apart, nothing is changed.
    for same in (noise + 3.0 * rng.normal(size=(200, k)), noise, 0.1 * noise, few[19:21], 0.0 * noise, few[:1]):
        assert np.array_equal(signal_chances((same * same).sum(axis=1), 2.0, k), np.ones(len(same)))


def test_columns_that_say_nothing_cost_little_where_rows_are_few():
    rng = np.random.default_rng(3)
    y = np.arange(3000) % 2
    X = rng.integers(2, size=(3000, 300)) * 2.0 - 1.0
    X[:, :6] = np.where(rng.random((3000, 6)) < 0.25, -1.0, 1.0) * (2 * y - 1)[:, None]
    scores = {}
    for recipe in ("few", "all"):
        with pytest.MonkeyPatch.context() as patch:
            if recipe == "all":
                patch.setattr(scaled_descent, "signal_chances", lambda squares, *rest: np.ones_like(squares))
            model = train(
                unit_cell_rows(X[:1000]), y[:1000], recipe=Recipe(n_rows=1000, mean_share=0.0, length=0.3),
                budget=budget(), class_weights=np.ones(2), source=NoiseSource(bytes(32)),
            )  # fmt: skip
        scores[recipe] = ((X[1000:] @ (model.coef[1] - model.coef[0]) > 0) == y[1000:]).mean()
    assert scores["few"] > scores["all"] + 0.01


def test_a_public_mean_is_what_a_noisy_one_is_shrunk_to():
    """Alone it is subtracted as it is; with a noisy one it keeps what noise would have."""
    X, mean = np.random.default_rng(0).normal(size=(50, 3)) + 2.0, np.array([0.5, 0.4, 0.3])
    allowed = budget("add_remove", 0.01)
    for share in (0.0, 0.1):
        model = train(
            unit_cell_rows(X), np.arange(50) % 2, recipe=Recipe(n_rows=50, mean_share=share, n_steps=2), budget=allowed,
            class_weights=np.ones(2), source=NoiseSource(bytes(32)), public_mean=mean,
        )  # fmt: skip
        assert np.linalg.norm(model.mean - mean) < (0.5 * 3**0.5 * allowed.multiplier(0.1) / 50 if share else 1e-300)
