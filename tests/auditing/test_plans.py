"""What audits know of a release before it is drawn, against real releases and exact enumeration."""

import itertools
import math

import numpy as np
import pytest

from privsvm.auditing.curves import LaplaceCurve, SampledCurve, table_of
from privsvm.auditing.methods import _draw_of, _release_of
from privsvm.auditing.neighbours import made_up_pairs
from privsvm.auditing.plans import plan_cell
from privsvm.auditing.transcripts import ListeningSource, fixed_release, noisy_numbers
from privsvm.numerics.noise_source import NoiseSource
from privsvm.pipeline.methods import estimator_class

KEY = ("test",)


def made(name, relation="replace_one", **changes):
    known = {"classes": [0, 1], "delta": 1e-5, "neighbours": relation, "C": 0.005}
    declared = estimator_class(name).declared
    estimator = estimator_class(name)(**{key: value for key, value in known.items() if key in declared}, **changes)
    return estimator, made_up_pairs(2, relation, 1.0)[0]


def planned(name, **changes):
    estimator, pair = made(name, **changes)
    event = estimator.release_path(*pair.first, [1.0], 1, 0).guarantees[0].event
    many = _draw_of(estimator, pair, 1.0, True, KEY)
    return plan_cell(_release_of(estimator, pair, 1.0), event, "replace_one", 1e-5, many, KEY), many


def test_a_listening_source_changes_no_draw():
    estimator, pair = made("private_svm")
    key = bytes(range(32))
    listening = ListeningSource(key)
    paths = [estimator.release_path(*pair.first, [1.0], 1, lambda *_, s=s: s) for s in (listening, NoiseSource(key))]
    assert np.array_equal(paths[0].coef, paths[1].coef)
    (call,) = listening.calls
    assert call.kind == "gaussian"
    assert np.array_equal(noisy_numbers(listening.calls) * call.scale, call.noisy.ravel())


@pytest.mark.parametrize("name", ["private_svm", "private_svm_laplace"])
def test_many_releases_at_a_time_are_distributed_like_real_ones(name):
    """Means within 6 standard errors: a false alarm has a probability below 1e-8."""
    plan, many = planned(name)
    assert plan.n_numbers
    assert plan.looks_at == "the released model"
    assert 0.9 < plan.reachable <= 1.0
    statistic, n = plan.plan.statistic, 1500
    drawn = [statistic(plan.draw(dataset, n, "a")) for dataset in (0, 1)]
    error = math.sqrt(2.0 / n) * drawn[0].std()
    assert drawn[0].mean() - drawn[1].mean() > 6.0 * error
    if name == "private_svm":
        real = statistic(many(0, n, "b"))
        assert abs(real.mean() - drawn[0].mean()) < 6.0 * error
        assert real.std() == pytest.approx(drawn[0].std(), rel=6.0 / math.sqrt(n))


def test_releases_that_are_no_function_of_their_noise_are_drawn_one_by_one():
    fresh = np.random.default_rng(0)

    def release(sources):
        noise = [source.add_rounded_normals(np.zeros(1, dtype=np.int64), 1e6, None) for source in sources]
        return np.array(noise, dtype=float) + fresh.normal(size=(len(sources), 1))

    assert fixed_release(release, KEY).noise_to_release is None

    def moving(sources):
        given = [np.array([index]) for index, _ in enumerate(sources)]
        return np.array([source.add_rounded_normals(g, 1e6, None) for source, g in zip(sources, given, strict=True)])

    assert fixed_release(moving, KEY) is None


def test_composed_choices_are_enumerated():
    one, other = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    curve = table_of([one] * 3, [other] * 3)
    pairs = [(math.prod(one[list(c)]), math.prod(other[list(c)])) for c in itertools.product(range(3), repeat=3)]
    for epsilon in (0.0, 0.5, 2.0):
        exact = sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in pairs)
        assert np.maximum(curve.first - math.exp(epsilon) * curve.second, 0).sum() == pytest.approx(exact, abs=1e-12)
    assert curve.epsilon(0.0) == pytest.approx(3.0 * math.log(2.5), abs=1e-6)
    assert curve.power(np.array([0.008])) == pytest.approx([0.125])


def test_the_curve_of_laplace_noise_is_that_of_its_two_densities():
    curve = LaplaceCurve(1.5)
    for threshold in (-1.0, 0.2, 0.7, 1.4, 3.0):

        def above(value):
            return 0.5 * math.exp(-value) if value > 0 else 1.0 - 0.5 * math.exp(value)

        assert curve.power(np.array([above(threshold)]))[0] == pytest.approx(above(threshold - 1.5), rel=1e-12)


def test_the_curve_of_sampled_noise_holds_for_expected_counts_and_is_exceeded_by_half_the_noise():
    curve, loud = SampledCurve(0.25, 2.0, 4, "add_remove", 1e-5), SampledCurve(0.25, 1.0, 4, "add_remove", 1e-5)
    epsilon = curve._power(np.array([0.1]), 2.0)[1]
    alarm = np.array([0.2])
    runs = 1e6
    own = curve.f_dp_bound(runs * float(curve.power(alarm)[0]), runs, runs * 0.2, runs, 0.95).epsilon
    assert 0.85 * epsilon < own <= epsilon
    assert curve.f_dp_bound(runs * float(loud.power(alarm)[0]), runs, runs * 0.2, runs, 0.95).epsilon > epsilon


def test_sampled_steps_are_told_apart_by_their_privacy_loss():
    estimator = estimator_class("softmax_dpsgd")(
        classes=[0, 1], delta=1e-5, neighbours="replace_one", batch_size=8, epochs=1, n_rows=32, learning_rate=1e-9
    )
    pair = made_up_pairs(2, "replace_one", 1.0)[0]
    event = estimator.release_path(*pair.first, [8.0], 1, 0).guarantees[0].event
    plan = plan_cell(_release_of(estimator, pair, 8.0), event, "replace_one", 1e-5, None, KEY)
    assert isinstance(plan.plan.curve, SampledCurve)
    assert plan.n_numbers == 0
    losses = [plan.plan.statistic(plan.draw(dataset, 300, "a")) for dataset in (0, 1)]
    # The means of a privacy loss are two divergences.
    assert losses[0].mean() > 0.5
    assert losses[1].mean() < -0.5
