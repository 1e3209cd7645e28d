"""Delta of perturbed objectives by corners, against integrals, sums of fifty digits and plain Gaussian releases."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.privacy.accountants import account, group_account
from privsvm.privacy.events import PerturbedObjectives
from privsvm.privacy.gaussian_delta import exact_gaussian_epsilon, gaussian_delta
from privsvm.privacy.objective_perturbation_delta import corner_delta, corner_epsilon, delta_of_minima

# Two numbers of the noise, on a grid fine enough that kinks cost less than one part in a thousand.
AXIS = np.linspace(-9.0, 9.0, 721)
FIRST, SECOND = np.meshgrid(AXIS, AXIS)
MASS = np.exp(-(FIRST**2 + SECOND**2) / 2)
MASS /= MASS.sum()


def loss_at(vector):
    """Privacy loss of the difference `vector` for every noise on the grid."""
    return (vector @ vector) / 2 + vector[0] * FIRST + vector[1] * SECOND


def delta_of(loss, epsilon):
    return float((MASS * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())


@given(st.floats(-1.5, 0.3), st.floats(0, math.pi), st.floats(0, 1), st.floats(0, 3), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_no_change_that_knows_the_noise_shows_more_than_the_corners(log_length, angle, share, many, seed):
    """Two vectors at any angle, the second one shorter; also for shares of them that someone chose at random."""
    length = 10**log_length
    vectors = np.array([[length, 0.0], [share * length * math.cos(angle), share * length * math.sin(angle)]])
    epsilon = many * 2 * length
    bound = corner_delta(epsilon, 2 * length, 1, 2, 0.0)
    largest = np.max([loss_at(np.array(ends) @ vectors) for ends in itertools.product((0.0, 1.0), repeat=2)], axis=0)
    assert delta_of(largest, epsilon) <= bound * 1.001
    rng = np.random.default_rng(seed)
    for _ in range(5):
        assert np.all(loss_at(rng.random(2) @ vectors) <= largest + 1e-12)


@given(st.floats(-1.5, 0.3), st.floats(0, 2), st.floats(0, 3))
@settings(max_examples=60, deadline=None)
def test_two_objectives_or_one_and_its_output_show_no_more(log_length, share, many):
    length = 10**log_length
    epsilon = many * 1.5 * length
    first, second = (np.maximum(loss_at(length * axis), 0.0) for axis in np.eye(2))
    assert delta_of(first + second, epsilon) <= corner_delta(epsilon, length, 2, 1, 0.0) * 1.001
    # The noise on the minimum: its distance may depend on the first number, and is here longest where that is large.
    output = share * length
    distance = output * (FIRST > 0.3)
    both = first + distance**2 / 2 + distance * SECOND
    assert delta_of(both, epsilon) <= corner_delta(epsilon, length, 1, 1, output) * 1.001


@pytest.mark.parametrize(("n_objectives", "n_vectors"), [(1, 1), (1, 2), (2, 2), (3, 1), (3, 2), (2, 4)])
def test_corners_are_counted_one_by_one(n_objectives, n_vectors):
    """Every set of vectors of every objective, in fifty digits."""
    with mpmath.workdps(50):
        for signal, output, epsilon in ((0.3, 0.0, 0.4), (1.5, 0.2, 6.0), (0.02, 0.01, 0.3)):
            length = mpmath.mpf(signal) / n_vectors
            one_objective = [
                (sum(chosen) ** 2, 1) for chosen in itertools.product((0, 1), repeat=n_vectors) if sum(chosen)
            ]
            one_objective.append((0, mpmath.ncdf(-length / 2)))
            total = mpmath.mpf(0)
            for corner in itertools.product(one_objective, repeat=n_objectives):
                size = mpmath.sqrt(length**2 * sum(squares for squares, _ in corner) + mpmath.mpf(output) ** 2)
                if size:
                    x = mpmath.mpf(epsilon) / size
                    delta = mpmath.ncdf(size / 2 - x) - mpmath.exp(epsilon) * mpmath.ncdf(-size / 2 - x)
                    total += mpmath.fprod(rare for _, rare in corner) * delta
        bound = corner_delta(epsilon, signal, n_objectives, n_vectors, output)
        assert float(total) <= bound <= float(total) * (1 + 1e-9)


@pytest.mark.parametrize("signal", [1e-3, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12, 1e-200])
def test_for_one_objective_the_bound_is_that_of_a_gaussian_release(signal, delta):
    """One row that goes: exactly. One that is replaced by its opposite: corners halfway cost next to nothing."""
    exact = exact_gaussian_epsilon(signal, delta)
    assert corner_epsilon(delta, signal, 1, 1, 0.0) == pytest.approx(exact, rel=1e-9)
    assert exact * (1 - 1e-9) <= corner_epsilon(delta, signal, 1, 2, 0.0) <= exact * (1 + 1e-3)


@given(st.floats(-2.5, 0.7), st.floats(-12, -1), st.integers(1, 6), st.integers(1, 4), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_epsilon_is_the_smallest(log_signal, log_delta, n_objectives, n_vectors, share):
    signal, delta = 10**log_signal, 10**log_delta
    chosen = (signal, n_objectives, n_vectors, share * signal)
    epsilon = corner_epsilon(delta, *chosen)
    assert corner_delta(epsilon, *chosen) <= delta
    if epsilon > 0:
        assert corner_delta(epsilon * (1 - 1e-9), *chosen) > delta * (1 - 1e-6)
        # The farthest corner alone, and every cost more, are on the right side.
        assert gaussian_delta(epsilon, math.sqrt(n_objectives) * signal) <= delta
        assert corner_epsilon(delta / 2, *chosen) > epsilon
        assert corner_epsilon(delta, 1.01 * signal, *chosen[1:]) > epsilon


def test_what_is_too_much_for_corners_is_left_to_others():
    assert math.isinf(corner_delta(1.0, 0.1, 65, 1, 0.0))
    assert math.isinf(corner_epsilon(1e-5, 0.1, 33, 2, 0.0))
    assert math.isinf(corner_epsilon(0.0, 0.1, 1, 1, 0.0))
    assert corner_epsilon(0.5, 0.1, 1, 1, 0.0) == 0.0
    many = PerturbedObjectives(signal=0.01, curvature=0.0, n_objectives=70, output_multiplier=10.0)
    assert account(many, 1e-5, "add_remove").accountant.startswith("Renyi")


@pytest.mark.parametrize(("relation", "times"), [("add_remove", 1), ("replace_one", 2)])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_every_row_of_a_group_has_a_vector(relation, times, k):
    event = PerturbedObjectives(signal=0.1, curvature=0.05, n_objectives=2, output_multiplier=30.0)
    corners = corner_epsilon(delta_of_minima(1e-5), times * k * 0.1, 2, times * k, times / 30.0)
    group = group_account(event, k, 1e-5, relation)
    expected = corners + 2 * k * math.log1p(0.05)
    assert group.epsilon <= expected * (1 + 1e-12)
    if group.accountant.startswith("Gaussian"):
        assert group.epsilon == pytest.approx(expected, rel=1e-12)
    assert group.accountant.startswith("Gaussian") or k == 5
