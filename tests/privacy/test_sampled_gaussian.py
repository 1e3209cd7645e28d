"""Poisson-sampled Gaussian steps: accounting against exact formulas, calibration, and its cache on disk."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import dp_accounting
import filelock
import mpmath
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from privsvm.privacy import accounting, calibrations
from privsvm.privacy.accounting import (
    SAMPLED_GAUSSIAN_ACCOUNTANT,
    gaussian_epsilon,
    gaussian_noise_multiplier,
    loss_distribution_epsilon,
    sampled_gaussian_calibration,
    sampled_gaussian_epsilon,
    sampled_gaussian_noise_multiplier,
)
from privsvm.privacy.calibrations import cache_folder, stored_calibration
from privsvm.privacy.events import Gaussian
from privsvm.privacy.gaussian_losses import delta_of_losses, gaussian_losses
from privsvm.privacy.mechanisms import SampledGaussianSteps

RELATIONS = ["add_remove", "replace_one"]
DELTA = 1e-5


def forget():
    sampled_gaussian_calibration.cache_clear()
    sampled_gaussian_epsilon.cache_clear()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache of this test alone."""
    monkeypatch.setenv("PRIVSVM_CACHE", str(tmp_path / "cache"))
    forget()
    return tmp_path / "cache" / "accounting"


def pairs(relation, q):
    """Weights of the means -1, 0 and 1 of one step's output on two neighbours, both ways round."""
    if relation == "replace_one":
        return [((q, 1 - q, 0.0), (0.0, 1 - q, q)), ((0.0, 1 - q, q), (q, 1 - q, 0.0))]
    return [((0.0, 1 - q, q), (0.0, 1.0, 0.0)), ((0.0, 1.0, 0.0), (0.0, 1 - q, q))]


def one_step_delta(epsilon, p, q, sigma):
    """Hockey-stick divergence of two mixtures of normals around -1, 0 and 1, with 40 digits."""
    with mpmath.workdps(40):
        sigma, factor = mpmath.mpf(sigma), mpmath.exp(epsilon)

        def difference(x):
            kernel = [mpmath.exp(-(((x - mean) / sigma) ** 2) / 2) for mean in (-1, 0, 1)]
            return mpmath.fdot(p, kernel) - factor * mpmath.fdot(q, kernel)

        def above(weights, x):
            return mpmath.fdot(weights, [mpmath.ncdf((mean - x) / sigma) for mean in (-1, 0, 1)])

        # The likelihood ratio is monotone: the event is all that lies on one side of the point where it crosses.
        low, high = -40 * sigma - 2, 40 * sigma + 2
        ends = difference(low) > 0, difference(high) > 0
        if ends[0] == ends[1]:
            return 1 - factor if ends[0] else mpmath.mpf(0)
        while high - low > mpmath.mpf(10) ** -25:
            middle = (low + high) / 2
            low, high = (middle, high) if (difference(middle) > 0) == ends[0] else (low, middle)
        value = above(p, low) - factor * above(q, low)
        return value if ends[1] else (1 - factor) - value


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("sigma", "q"), [(0.4, 0.01), (0.8, 0.002), (1.0, 0.3), (3.0, 0.9), (15.0, 0.1), (0.3, 0.5)])
def test_one_step_is_the_exact_mixture_s_both_ways(relation, sigma, q):
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, 1, relation)
    assert epsilon > 0

    def worst(epsilon):
        return max(one_step_delta(epsilon, *pair, sigma) for pair in pairs(relation, q))

    assert worst(epsilon) <= DELTA
    assert worst(0.998 * epsilon) > DELTA


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("sigma", "n_steps", "releases"), [(0.7, 1, ()), (3.0, 40, ()), (50.0, 20000, (9.0, 4.0))])
def test_without_sampling_it_is_one_gaussian_release(relation, sigma, n_steps, releases):
    """With twice the sensitivity for a replaced row, whose vector may turn into its opposite."""
    mu = math.sqrt(n_steps / sigma**2 + sum(r**-2 for r in releases)) * (2 if relation == "replace_one" else 1)
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, 1.0, n_steps, relation, releases)
    delta = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(DELTA, rel=1e-5)
    # dp_accounting means the same by the relations.
    kind = dp_accounting.NeighboringRelation["REPLACE_ONE" if relation == "replace_one" else "ADD_OR_REMOVE_ONE"]
    theirs = pld.PLDAccountant(kind, 1e-3)
    theirs.compose(dp_accounting.GaussianDpEvent(sigma), n_steps)
    for r in releases:
        theirs.compose(dp_accounting.GaussianDpEvent(r))
    assert theirs.get_epsilon(DELTA) == pytest.approx(epsilon, rel=2e-3)
    # And sampling nearly all rows is nearly the same.
    nearly = sampled_gaussian_epsilon(sigma, DELTA, 1 - 1e-7, n_steps, relation, releases)
    assert nearly == pytest.approx(epsilon, rel=2e-3)


def losses(relation, q, sigma):
    """Grid of one step's outputs: probabilities under the first neighbour, and privacy losses, both ways round."""
    x = np.linspace(-12 * sigma - 1, 12 * sigma + 1, 8001)
    kernel = np.exp(-(((x[:, None] - [-1, 0, 1]) / sigma) ** 2) / 2)
    for first, second in pairs(relation, q):
        p, other = kernel @ first, kernel @ second
        yield p / p.sum(), np.log(p / other)


def gaussian_delta(epsilon, mu):
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("sigma", "q", "releases"), [(1.1, 0.2, (5.0,)), (0.6, 0.01, (20.0, 7.0)), (6.0, 0.5, (30.0,))]
)
def test_releases_before_a_step_compose_exactly(relation, sigma, q, releases):
    """delta(epsilon) is the expectation, over the step's privacy loss L, of the releases' delta(epsilon - L)."""
    mu = math.sqrt(sum(r**-2 for r in releases)) * (2 if relation == "replace_one" else 1)
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, 1, relation, releases)

    def worst(epsilon):
        return max(float(p @ gaussian_delta(epsilon - loss, mu)) for p, loss in losses(relation, q, sigma))

    assert worst(epsilon) <= DELTA
    assert worst(0.997 * epsilon) > DELTA


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("sigma", "q", "n_steps"), [(1.0, 0.1, 3), (0.7, 0.02, 5)])
def test_a_few_steps_lie_between_losses_rounded_up_and_down(relation, sigma, q, n_steps):
    """The same composition by plain convolution of privacy losses on a grid, without dp_accounting."""
    width = 2e-3
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, relation)

    def delta(epsilon, rounding):
        worst = 0.0
        for p, loss in losses(relation, q, sigma):
            index = rounding(loss / width).astype(int)
            one = np.bincount(index - index.min(), weights=p)
            masses = one
            for _ in range(n_steps - 1):
                masses = np.convolve(masses, one)
            total = (n_steps * index.min() + np.arange(masses.size)) * width
            worst = max(worst, float(np.sum(masses * -np.expm1(np.minimum(epsilon - total, 0)))))
        return worst

    assert delta(epsilon, np.floor) <= DELTA
    assert delta(epsilon * 0.997, np.ceil) > DELTA


@given(st.floats(-1.3, 2.0), st.one_of(st.floats(-5.0, -1e-3), st.just(0.0)),
       st.sampled_from(["ADD", "REMOVE", "REPLACE"]), st.integers(20, 400))  # fmt: skip
@settings(max_examples=60)
def test_where_losses_are_is_found_with_the_bits_of_dp_accounting(log_sigma, log_q, kind, points):
    sigma, q = 10**log_sigma, 10**log_q
    kinds = pld.privacy_loss_mechanism.AdjacencyType
    loss = pld.privacy_loss_mechanism.GaussianPrivacyLoss(sigma, sampling_prob=q, adjacency_type=kinds[kind])
    bounds = loss.connect_dots_bounds()
    epsilons = np.linspace(bounds.epsilon_lower, bounds.epsilon_upper, points)
    end = math.log1p(-q) if q < 1 else 0.0
    # Zero, and numbers on either side of where losses end.
    special = [0.0, end, -end, *(sign * end * (1 + step) for sign in (1, -1) for step in (-1e-6, -1e-12, 1e-12, 1e-6))]
    epsilons = np.concatenate([epsilons, [0.1, -0.1], special])
    try:
        expected = loss.get_delta_for_epsilon(epsilons)
    except ValueError:
        # dp_accounting refuses what is within round-off of the end.
        epsilons = epsilons[np.abs(np.abs(epsilons) - abs(end)) > 1e-8 * abs(end)]
        expected = loss.get_delta_for_epsilon(epsilons)
    assert delta_of_losses(loss, sigma, epsilons).tobytes() == expected.tobytes()


@pytest.mark.parametrize("q", [1e-12, 1e-9, 1e-4, 0.3, 1 - 1e-9])
@pytest.mark.parametrize("kind", ["ADD", "REMOVE"])
def test_at_the_end_of_the_losses_round_off_does_no_harm(q, kind):
    """Where dp_accounting raises, too: losses beyond the end never happen."""
    adjacency = pld.privacy_loss_mechanism.AdjacencyType[kind]
    loss = pld.privacy_loss_mechanism.GaussianPrivacyLoss(1.0, sampling_prob=q, adjacency_type=adjacency)
    end = math.log1p(-q) * (1.0 if kind == "REMOVE" else -1.0)
    epsilons = end * (1.0 + np.concatenate([[0.0], *(sign * 10.0 ** np.arange(-16.0, -3.0) for sign in (-1, 1))]))
    beyond = -np.expm1(epsilons) if kind == "REMOVE" else np.zeros(epsilons.size)
    deltas = delta_of_losses(loss, 1.0, epsilons)
    assert np.allclose(deltas, beyond, rtol=1e-3, atol=1e-3 * q)


@pytest.mark.parametrize(("sigma", "q"), [(0.6, 1.0), (0.4, 0.2), (3.0, 0.01)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_losses_are_those_of_dp_accounting(sigma, q, relation):
    kind = {"add_remove": "ADD_OR_REMOVE_ONE", "replace_one": "REPLACE_ONE"}[relation]
    expected = pld.privacy_loss_distribution.from_gaussian_mechanism(
        sigma, value_discretization_interval=1e-3, sampling_prob=q,
        neighboring_relation=dp_accounting.NeighboringRelation[kind],
    )  # fmt: skip
    losses = gaussian_losses(sigma, q, 1e-3, relation)
    for ours, theirs in ((losses, expected), (losses.self_compose(7), expected.self_compose(7))):
        assert [ours.get_delta_for_epsilon(x) for x in (-1.0, 0.0, 0.5, 2.0)] == [
            theirs.get_delta_for_epsilon(x) for x in (-1.0, 0.0, 0.5, 2.0)
        ]
        assert ours.get_epsilon_for_delta(DELTA) == theirs.get_epsilon_for_delta(DELTA)


def test_many_steps_lie_within_one_percent_of_an_optimistic_estimate():
    sigma, q, n_steps = 1.0, 0.02, 300
    for relation, kind in (("add_remove", "ADD_OR_REMOVE_ONE"), ("replace_one", "REPLACE_ONE")):
        epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, relation)
        low = pld.privacy_loss_distribution.from_gaussian_mechanism(
            sigma, pessimistic_estimate=False, value_discretization_interval=1e-4, sampling_prob=q,
            use_connect_dots=False, neighboring_relation=dp_accounting.NeighboringRelation[kind],
        ).self_compose(n_steps)  # fmt: skip
        assert 0 <= epsilon / low.get_epsilon_for_delta(DELTA) - 1 < 0.01


@pytest.mark.parametrize(("sigma", "q", "n_steps"), [(1.2, 0.01, 3000), (16.0, 0.002, 20000), (0.7, 0.1, 50)])
def test_renyi_bounds_lie_above(sigma, q, n_steps):
    accountant = rdp.RdpAccountant()
    step = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    bound = accountant.compose(dp_accounting.SelfComposedDpEvent(step, n_steps)).get_epsilon(DELTA)
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, "add_remove")
    assert 0.5 * bound < epsilon < bound
    assert epsilon < sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, "replace_one") < 2.5 * bound


@given(st.floats(-0.5, 1.5), st.floats(-2.5, -0.05), st.integers(1, 400), st.sampled_from(RELATIONS),
       st.sampled_from([(), (8.0,)]))  # fmt: skip
@settings(max_examples=10, deadline=None)
def test_more_noise_fewer_rows_and_fewer_steps_cost_less(log_sigma, log_q, n_steps, relation, releases):
    sigma, q = 10**log_sigma, 10**log_q
    epsilon = sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, relation, releases)
    # 1 in 1000 is what the grid of losses may cost.
    for other in (
        sampled_gaussian_epsilon(1.05 * sigma, DELTA, q, n_steps, relation, releases),
        sampled_gaussian_epsilon(sigma, DELTA, 0.95 * q, n_steps, relation, releases),
        sampled_gaussian_epsilon(sigma, DELTA, q, max(1, n_steps - 1 - n_steps // 20), relation, releases),
        sampled_gaussian_epsilon(sigma, 2 * DELTA, q, n_steps, relation, releases),
        sampled_gaussian_epsilon(sigma, DELTA, q, n_steps, relation, tuple(2 * r for r in releases)),
    ):
        assert other <= epsilon * 1.001 + 1e-9


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("epsilon", "q", "n_steps", "releases"),
    [
        (0.05, 0.002, 1, ()),
        (0.05, 0.002, 20000, ()),
        (1.0, 0.02, 1500, ()),
        (1.0, 0.02, 1500, (12.0, 20.0)),
        (16.0, 0.002, 20000, ()),
        (16.0, 0.3, 1, ()),
        (4.0, 1.0, 50, (3.0,)),
        (1e-3, 0.5, 1000, ()),
    ],
)
def test_calibrated_noise_is_enough_and_not_much_more(relation, epsilon, q, n_steps, releases):
    multiplier, proved = sampled_gaussian_calibration(epsilon, DELTA, q, n_steps, relation, releases)
    assert multiplier == sampled_gaussian_noise_multiplier(epsilon, DELTA, q, n_steps, relation, releases)
    assert proved == sampled_gaussian_epsilon(multiplier, DELTA, q, n_steps, relation, releases) <= epsilon
    assert sampled_gaussian_epsilon(multiplier * 0.999, DELTA, q, n_steps, relation, releases) > epsilon
    if q < 1:
        assert float(f"{multiplier:.4e}") == multiplier


def test_calibration_is_monotone():
    base = (1.0, 0.05, 100)
    noise = sampled_gaussian_noise_multiplier(base[0], DELTA, *base[1:], "add_remove")
    assert sampled_gaussian_noise_multiplier(1.1, DELTA, 0.05, 100, "add_remove") < noise
    assert sampled_gaussian_noise_multiplier(1.0, DELTA, 0.06, 100, "add_remove") > noise
    assert sampled_gaussian_noise_multiplier(1.0, DELTA, 0.05, 120, "add_remove") > noise
    assert sampled_gaussian_noise_multiplier(1.0, DELTA, 0.05, 100, "add_remove", (15.0,)) > noise
    assert 1.5 * noise < sampled_gaussian_noise_multiplier(1.0, DELTA, 0.05, 100, "replace_one") < 2.0 * noise


def test_without_sampling_the_calibration_is_the_gaussian_one():
    multiplier = gaussian_noise_multiplier(0.7, 1e-6)
    for relation, factor in (("add_remove", 1), ("replace_one", 2)):
        one = sampled_gaussian_noise_multiplier(0.7, 1e-6, 1.0, 25, relation)
        assert one == pytest.approx(factor * 5 * multiplier, rel=1e-7)


def test_where_nothing_is_needed_the_least_noise_is_used():
    """A row that is drawn with a probability below delta may show."""
    assert sampled_gaussian_calibration(1.0, 1e-3, 1e-4, 5, "add_remove") == (0.05, 0.0)
    assert sampled_gaussian_epsilon(0.01, 1e-5, 0.5, 1, "add_remove") > 1000


def test_the_rarest_rows_are_rounded_up_but_not_for_ever():
    """A rate for which the grid is at its limit, against a Renyi bound."""
    epsilon = sampled_gaussian_epsilon(1.0, DELTA, 1e-5, 10**5, "add_remove")
    accountant = rdp.RdpAccountant()
    step = dp_accounting.PoissonSampledDpEvent(1e-5, dp_accounting.GaussianDpEvent(1.0))
    bound = accountant.compose(dp_accounting.SelfComposedDpEvent(step, 10**5)).get_epsilon(DELTA)
    assert 0.0 < epsilon < 1.05 * bound


def test_infinite_noise_costs_what_the_releases_cost():
    for relation, factor in (("add_remove", 1), ("replace_one", 2)):
        epsilon = sampled_gaussian_epsilon(math.inf, DELTA, 0.1, 10, relation, (6.0,))
        assert epsilon == pytest.approx(gaussian_epsilon(6.0 / factor, DELTA), rel=1e-13)
    assert sampled_gaussian_epsilon(math.inf, DELTA, 0.1, 10, "add_remove", (math.inf,)) == 0.0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"), ({"epsilon": math.inf}, "epsilon=inf"), ({"delta": 0.0}, "delta=0.0"),
        ({"delta": 1e-12}, "delta=1e-12: must be at least 1e-09"), ({"sample_rate": 0.0}, "sample_rate=0.0"),
        ({"sample_rate": 1.1}, "sample_rate=1.1"), ({"sample_rate": math.nan}, "sample_rate=nan"),
        ({"n_steps": 0}, "n_steps=0"), ({"n_steps": 1.5}, "n_steps=1.5"), ({"n_steps": 10**8}, "n_steps=100000000"),
        ({"neighbours": "add_remov"}, "neighbours='add_remov'.*add_remove"), ({"releases": (0.0,)}, "releases="),
        ({"releases": (math.nan,)}, "releases="),
        ({"releases": (2.0,)}, r"releases=\(2.0,\): alone they cost epsilon"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(changes, named):
    plan = {"epsilon": 1.0, "delta": DELTA, "sample_rate": 0.1, "n_steps": 10, "neighbours": "add_remove"} | changes
    with pytest.raises(ValueError, match=named):
        sampled_gaussian_calibration(**plan)
    with pytest.raises(ValueError, match=named):
        _ = SampledGaussianSteps(**plan, max_grad_norm=1.0).noise_multiplier
    if "epsilon" not in changes and changes.get("releases") != (2.0,):
        del plan["epsilon"]
        with pytest.raises(ValueError, match=named):
            sampled_gaussian_epsilon(noise_multiplier=1.0, **plan)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_bad_noise_and_norms_are_named(value):
    with pytest.raises(ValueError, match="noise_multiplier="):
        sampled_gaussian_epsilon(value, DELTA, 0.1, 10, "add_remove")
    with pytest.raises(ValueError, match="max_grad_norm="):
        SampledGaussianSteps(
            epsilon=1.0, delta=DELTA, neighbours="add_remove", sample_rate=0.1, n_steps=10, max_grad_norm=value
        )


def test_the_mechanism_says_what_the_accountant_found():
    plan = {"delta": DELTA, "sample_rate": 0.1, "n_steps": 10, "neighbours": "replace_one", "releases": (20.0,)}
    steps = SampledGaussianSteps(epsilon=1.0, max_grad_norm=0.5, **plan)
    assert steps.noise_multiplier == sampled_gaussian_noise_multiplier(1.0, **plan)
    assert steps.noise_scale == 0.5 * steps.noise_multiplier
    assert steps.epsilon_proved == sampled_gaussian_epsilon(steps.noise_multiplier, **plan)
    assert 0.999 < steps.epsilon_proved <= 1.0
    assert steps.accountant == SAMPLED_GAUSSIAN_ACCOUNTANT


# The cache on disk.

REQUEST = (1.0, DELTA, 0.05, 20, "add_remove")


@pytest.fixture
def no_waiting(monkeypatch):
    """A calibration that gives too much noise, at once."""
    monkeypatch.setattr(accounting, "_smallest_multiplier", lambda *args: 6.0)


def no_search(*args):
    raise AssertionError("calibrated again")


def the_file(folder):
    (path,) = folder.glob("*.json")
    return path


def test_a_calibration_is_stored_and_read_back(folder, monkeypatch):
    first = sampled_gaussian_calibration(*REQUEST)
    stored = json.loads(the_file(folder).read_text())
    assert stored["request"]["epsilon"] == 1.0
    assert stored["answer"] == {"noise_multiplier": first[0], "epsilon": first[1]}
    assert list(folder.iterdir()) == [the_file(folder)]
    forget()
    monkeypatch.setattr(accounting, "_smallest_multiplier", no_search)
    assert sampled_gaussian_calibration(*REQUEST) == first
    for other in ((1.1, *REQUEST[1:]), (*REQUEST[:3], 21, REQUEST[4]), (*REQUEST[:4], "replace_one")):
        with pytest.raises(AssertionError, match="calibrated again"):
            sampled_gaussian_calibration(*other)


@pytest.mark.usefixtures("no_waiting")
def test_another_version_is_another_request(folder, monkeypatch):
    sampled_gaussian_calibration(*REQUEST)
    forget()
    monkeypatch.setattr(accounting, "_SAMPLED_VERSION", "other")
    sampled_gaussian_calibration(*REQUEST)
    assert len(list(folder.glob("*.json"))) == 2


def less_noise(text):
    stored = json.loads(text)
    stored["answer"]["noise_multiplier"] /= 2
    return json.dumps(stored)


def another_request(text):
    """An intact file, but not of this request."""
    stored = json.loads(text)
    stored["request"]["epsilon"] = 2.0
    body = {"request": stored["request"], "answer": stored["answer"]}
    return json.dumps({**body, "sha256": calibrations._checksum(body)})


def too_large_epsilon(text):
    """An intact file whose answer does not keep to the request."""
    stored = json.loads(text)
    stored["answer"]["epsilon"] = 1.5
    body = {"request": stored["request"], "answer": stored["answer"]}
    return json.dumps({**body, "sha256": calibrations._checksum(body)})


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(
    "damage",
    [
        less_noise,
        another_request,
        too_large_epsilon,
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "{}",
        lambda text: "null",
        lambda text: text.replace("noise_multiplier", "noise"),
        lambda text: '{"request": 1, "answer": {"noise_multiplier": NaN}, "sha256": ""}',
        lambda text: "[" * 100_000,
        lambda text: "\udcff",
    ],
)
def test_a_damaged_or_foreign_file_is_replaced(folder, damage):
    first = sampled_gaussian_calibration(*REQUEST)
    path = the_file(folder)
    good = path.read_text()
    path.write_text(damage(good), encoding="utf-8", errors="surrogateescape")
    assert path.read_bytes() != good.encode()
    forget()
    assert sampled_gaussian_calibration(*REQUEST) == first
    assert the_file(folder).read_text() == good


@pytest.mark.usefixtures("no_waiting")
def test_a_folder_in_the_file_s_place_does_no_harm(folder):
    first = sampled_gaussian_calibration(*REQUEST)
    path = the_file(folder)
    path.unlink()
    path.mkdir()
    forget()
    assert sampled_gaussian_calibration(*REQUEST) == first


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("cache_folder", ["a file", "below a file", "read-only", "no home"])
def test_without_a_writable_folder_it_is_computed(cache_folder, tmp_path, monkeypatch):
    first = sampled_gaussian_calibration(*REQUEST)
    (tmp_path / "file").write_text("")
    (tmp_path / "locked").mkdir(mode=0o555)
    chosen = {"a file": "file", "below a file": "file/below", "read-only": "locked", "no home": ""}[cache_folder]
    monkeypatch.setenv("PRIVSVM_CACHE", str(tmp_path / chosen) if chosen else "")
    if cache_folder == "no home":
        monkeypatch.setattr(calibrations, "cache_folder", lambda: None)
    forget()
    assert sampled_gaussian_calibration(*REQUEST) == first


def test_the_folder_is_the_user_s_unless_named(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("PRIVSVM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "privsvm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "privsvm"


WORKER = """
import os, sys, time
from privsvm.privacy.calibrations import stored_calibration
def compute():
    with open(sys.argv[1], "a") as log:
        log.write("computing\\n")
    time.sleep(float(sys.argv[2]))
    return {"number": 1.5}
print(stored_calibration({"one": 1}, compute, lambda answer: True)["number"])
"""


def start(*arguments):
    return subprocess.Popen([sys.executable, "-c", WORKER, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def test_of_many_processes_on_a_cold_key_one_computes(folder, tmp_path):
    log = tmp_path / "log"
    workers = [start(log, 2.0) for _ in range(6)]
    assert [worker.communicate(timeout=600)[0] for worker in workers] == ["1.5\n"] * 6
    assert log.read_text() == "computing\n"
    assert list(folder.iterdir()) == [the_file(folder)]


def test_a_killed_process_holds_nobody_up(folder, tmp_path):
    log = tmp_path / "log"
    worker = start(log, 36000.0)
    while not log.exists() or not log.read_text():
        assert worker.poll() is None
        time.sleep(0.01)
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    assert stored_calibration({"one": 1}, lambda: {"number": 2.5}, lambda answer: True) == {"number": 2.5}


def test_where_there_are_no_locks_it_is_computed_all_the_same(folder, monkeypatch):
    def refuse(lock, *settings, **more):
        raise OSError("no locks here")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    assert stored_calibration({"one": 1}, lambda: {"number": 2.5}, lambda answer: True) == {"number": 2.5}
    assert the_file(folder).exists()


def test_who_waits_too_long_computes(folder, monkeypatch, tmp_path):
    log = tmp_path / "log"
    worker = start(log, 36000.0)
    try:
        while not log.exists() or not log.read_text():
            assert worker.poll() is None
            time.sleep(0.01)
        monkeypatch.setattr(calibrations, "_LONGEST_WAIT", 0.1)
        assert stored_calibration({"one": 1}, lambda: {"number": 2.5}, lambda answer: True) == {"number": 2.5}
    finally:
        worker.kill()
        worker.communicate()


def test_the_round_off_of_transforms_is_taken_off_delta():
    """Epsilon at twice what the transforms may be wrong by is no less than the exact one at that."""
    for neighbours, factor in (("replace_one", 2), ("add_remove", 1)):
        epsilon = loss_distribution_epsilon([(Gaussian(5.0), 1)], 2e-10, neighbours)
        assert epsilon >= gaussian_epsilon(5.0 / factor, 1e-10)
        assert gaussian_epsilon(5.0 / factor, 1e-10) > 1.005 * gaussian_epsilon(5.0 / factor, 2e-10)


def test_a_stored_calibration_is_not_believed(monkeypatch):
    """Whatever its checksum says, its noise is accounted for before it is used."""
    request = (1.0, 1e-5, 0.5, 4, "replace_one")
    true, proved = sampled_gaussian_calibration(*request)
    assert proved <= 1.0

    def stored(request, compute, valid):
        stored.asked += 1
        return {"noise_multiplier": 0.5 * true, "epsilon": 1.0}

    stored.asked = 0
    monkeypatch.setattr(accounting, "stored_calibration", stored)
    multiplier, epsilon = sampled_gaussian_calibration.__wrapped__(*request)
    assert stored.asked == 1
    assert multiplier >= true * (1 - 1e-3)
    assert epsilon <= 1.0
