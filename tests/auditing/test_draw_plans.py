"""Plans of audits for faster draws, against real releases and exact enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from privsvm.auditing.curves import LaplaceCurve, SampledCurve, table_of
from privsvm.auditing.distinguish import Threshold
from privsvm.auditing.draw_plans import _listening, plan_cell, plan_replays
from privsvm.auditing.methods import _draw_of, _release_of, worst_parameters
from privsvm.auditing.neighbours import make_crowded_pairs, make_pairs
from privsvm.auditing.replays import ReplayError, ReplayingSource, nearest_difference
from privsvm.auditing.sampled_steps import find_sampled_steps
from privsvm.auditing.transcripts import ListeningSource, fixed_release, listen, noisy_numbers, numbers_before_noise
from privsvm.numerics.noise.noise_source import NoiseSource, seeded_source
from privsvm.privacy.gaussian_delta import gaussian_signal
from privsvm.privacy.lower_bounds import counts_bound
from privsvm.registry import estimator_class

KEY = ("test",)


def made(name, relation="replace_one", **changes):
    parameters = {"classes": [0, 1], "delta": 1e-5, "neighbours": relation, "C": 0.005}
    declared = estimator_class(name).declared
    estimator = estimator_class(name)(**{key: value for key, value in parameters.items() if key in declared}, **changes)
    return estimator, make_pairs(2, relation, 1.0)[0]


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


@pytest.mark.parametrize("name", ["private_svm", "private_svm_laplace", "objective_perturbation"])
def test_many_releases_at_a_time_are_distributed_like_real_ones(name):
    """Means within 6 standard errors: a false alarm has a probability below 1e-8."""
    plan, many = planned(name)
    assert plan.n_numbers
    assert plan.looks_at == "the released model"
    assert 0.85 < plan.plan.reachable <= 1.0
    statistic, n = plan.plan.statistic, 1500
    drawn = [statistic(plan.draw(dataset, n, "a")) for dataset in (0, 1)]
    error = math.sqrt(2.0 / n) * drawn[0].std()
    assert drawn[0].mean() - drawn[1].mean() > 6.0 * error
    if name != "private_svm_laplace":
        real = statistic(many(0, n, "b"))
        assert abs(real.mean() - drawn[0].mean()) < 6.0 * error
        assert real.std() == pytest.approx(drawn[0].std(), rel=6.0 / math.sqrt(n))


@pytest.mark.parametrize("name", ["private_svm", "private_svm_laplace", "objective_perturbation"])
def test_both_datasets_get_the_same_noise(name):
    """Statistics of both datasets move together; further draws are fresh."""
    plan, _ = planned(name)
    first, second, fresh = (
        plan.plan.statistic(plan.draw(*which)) for which in ((0, 300, "a"), (1, 300, "a"), (0, 300, "b"))
    )
    if name == "private_svm_laplace":
        # The sum is clipped, so compare the noise.
        first, second, fresh = (plan.draw(*which)[:, 0] for which in ((0, 300, "a"), (1, 300, "a"), (0, 300, "b")))
    assert first.std() > 0
    assert np.ptp(first - second) < 1e-6 * first.std()
    assert not np.any(first == fresh)


def test_bounds_from_shared_noise_keep_their_confidence():
    """More than 46 of 400 at 95 % have a probability below 1e-7."""
    rng = np.random.default_rng(0)
    move, runs, repeats = gaussian_signal(0.5, 1e-5), 20_000, 400
    threshold = Threshold(above=1.5 + move, below=-1.5)
    truth = math.log((float(ndtr(-1.5)) - 1e-5) / float(ndtr(-1.5 - move)))
    lows_by_sharing = {}
    for shared in (True, False):
        lows = []
        for _ in range(repeats):
            noise = rng.normal(size=runs)
            counts = threshold.count(noise + move, noise if shared else rng.normal(size=runs))
            lows.append(float(counts_bound(*counts, 1e-5, mixed=True)))
        lows_by_sharing[shared] = np.array(lows)
        assert (lows_by_sharing[shared] > truth).sum() <= 46
    assert lows_by_sharing[True].std() < 0.6 * lows_by_sharing[False].std()


def test_releases_with_other_noise_are_drawn_one_by_one():
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


def test_sampled_noise_fits_its_curve_and_half_does_not():
    curve, loud = SampledCurve(0.25, 2.0, 4, "add_remove", 1e-5), SampledCurve(0.25, 1.0, 4, "add_remove", 1e-5)
    epsilon = curve._power(np.array([0.1]), 2.0)[1]
    alarm = np.array([0.2])
    runs = 1e6
    bound = curve.f_dp_bound(runs * float(curve.power(alarm)[0]), runs, runs * 0.2, runs, 0.95).epsilon
    assert 0.85 * epsilon < bound <= epsilon
    assert curve.f_dp_bound(runs * float(loud.power(alarm)[0]), runs, runs * 0.2, runs, 0.95).epsilon > epsilon


def sampled():
    """Make sampled steps of softmax_dpsgd on two datasets."""
    method = estimator_class("softmax_dpsgd")
    worst = {**worst_parameters(method, {"batch_size": 8, "epochs": 1}), "n_rows": 32}
    estimator = method(classes=[0, 1], delta=1e-5, neighbours="replace_one", **worst)
    # A long row has the largest clipped gradient, wherever the weights are.
    pair = make_pairs(2, "replace_one", 1.0, (1e3,))[0]
    event = estimator.release_path(*pair.first, [8.0], 1, 0).guarantees[0].event
    return _release_of(estimator, pair, 8.0), event


def test_sampled_steps_are_told_apart_by_their_privacy_loss():
    """Fast and single draws agree within 6 standard errors (1e-8)."""
    release, event = sampled()
    plan = plan_cell(release, event, "replace_one", 1e-5, None, KEY)
    assert isinstance(plan.plan.curve, SampledCurve)
    assert plan.n_numbers == plan.plan.statistic.n_numbers == 4 * 4
    n = 300
    real = _listening(release, KEY)
    losses, others = ([plan.plan.statistic(draw(dataset, n, "a")) for dataset in (0, 1)] for draw in (plan.draw, real))
    # The means of a privacy loss are two divergences.
    assert losses[0].mean() > 0.5
    assert losses[1].mean() < -0.5
    for many, one_by_one in zip(losses, others, strict=True):
        error = math.sqrt((many.var() + one_by_one.var()) / n)
        assert abs(many.mean() - one_by_one.mean()) < 6.0 * error


def test_steps_with_other_sampling_are_drawn_one_by_one():
    release, _ = sampled()
    _, runs = listen(lambda sources: release(0, sources), 60, seeded_source(0, "rows"))
    assert find_sampled_steps(runs) is not None

    def changed(change):
        copies = [[call._replace(given=call.given.copy(), drawn=call.drawn.copy()) for call in run] for run in runs]
        for ((call,),) in zip(copies, strict=True):
            change(call)
        return copies

    def moved(call):
        call.given[0, 0] += 1

    def repeated(call):
        call.drawn[1] = call.drawn[0]
        call.given[1] = call.given[0]

    def another_row(call):
        call.drawn[:, 2] = call.drawn[:, 0]

    assert find_sampled_steps(changed(moved)) is None
    assert find_sampled_steps(changed(repeated)) is None
    assert find_sampled_steps(changed(another_row)) is None
    often = [[call._replace(threshold=call.threshold // 2) for call in run] for run in runs]
    assert find_sampled_steps(often) is None


def replayed(name, relation):
    """Make releases of pairs with many rows at epsilon 4."""
    method = estimator_class(name)
    estimator = method(classes=[0, 1], delta=1e-5, neighbours=relation, **worst_parameters(method, {}))
    return [_release_of(estimator, pair, 4.0) for pair in make_crowded_pairs(relation, 1.0, (100, 300))]


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", ["dp_newton", "dp_feature_covariance"])
def test_replays_show_the_privacy_loss_of_real_releases(name, relation):
    """Seeded: bounds are at 6 standard errors, which have a probability below 1e-8."""
    releases = replayed(name, relation)
    index, plan = plan_replays(releases, 1e-5, KEY)
    assert plan.looks_at == "all noisy numbers, replayed"
    assert 3.5 < plan.plan.reachable <= 4.0
    n, release, size = 400, releases[index], np.linalg.norm(plan.plan.statistic.direction)
    drawn = [plan.plan.statistic(plan.draw(dataset, n, "a")) / size for dataset in (0, 1)]
    # Both datasets get the same noise.
    assert np.ptp(drawn[0] - drawn[1]) < 1e-6
    for dataset, sign in ((0, 1.0), (1, -1.0)):
        _, runs = listen(lambda sources, dataset=dataset: release(dataset, sources), n, seeded_source(1, dataset))
        replays = [ReplayingSource(calls) for calls in runs]
        release(1 - dataset, replays)
        losses = []
        for calls, replay in zip(runs, replays, strict=True):
            numbers, replayed_numbers, noisy = (
                numbers_before_noise(calls),
                numbers_before_noise(replay.calls),
                noisy_numbers(calls),
            )
            losses.append(sign * (np.square(noisy - replayed_numbers).sum() - np.square(noisy - numbers).sum()) / 2.0)
        losses = np.array(losses) / size
        # Releases with a larger distance of sums than the nearest one show slightly more.
        shift = sign * (losses.mean() - drawn[dataset].mean())
        assert -6.0 * math.sqrt(2.0 / n) < shift < 0.1 * size + 6.0 * math.sqrt(2.0 / n)
        assert losses.std() == pytest.approx(1.0, rel=0.1 + 6.0 / math.sqrt(2.0 * n))


def test_what_a_replay_does_not_explain_is_not_taken_for_noise():
    (release, *_), source = replayed("dp_least_squares", "replace_one"), seeded_source(0, "replays")

    def adds_a_number(dataset, sources):
        return release(dataset, sources) + float(dataset)

    def half_of_the_noise_is_taken_away(dataset, sources):
        sources = list(sources)
        released = release(dataset, sources)
        given = np.array([numbers_before_noise(one.calls)[: released.shape[1]] for one in sources])
        return (released + given) / 2.0

    def draws_once_more(dataset, sources):
        for one in sources[:dataset]:
            one.add_rounded_normals(np.zeros(1, dtype=np.int64), 1.0, None)
        return release(dataset, sources)

    def draws_for_itself(dataset, sources):
        return release(dataset, sources) + np.array([[float(one.next_key()[0])] for one in sources])

    assert nearest_difference(release, 3, source)[1].any()
    for wrong in (adds_a_number, half_of_the_noise_is_taken_away, draws_once_more, draws_for_itself):
        with pytest.raises(ReplayError):
            nearest_difference(wrong, 3, source)
        assert plan_replays([wrong], 1e-5, KEY) is None
    assert plan_replays([lambda dataset, sources: release(0, sources)], 1e-5, KEY) is None
