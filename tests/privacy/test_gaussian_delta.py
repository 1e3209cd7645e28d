"""Delta, epsilon and signal of Gaussian noise, against eighty digits."""

import math

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.privacy.oracles import gaussian_delta_of_eighty_digits, zcdp_epsilon

from privsvm.privacy.accounting import gaussian_epsilon, gaussian_noise_multiplier, zcdp_rho
from privsvm.privacy.gaussian_delta import exact_gaussian_epsilon, gaussian_delta, gaussian_signal, log_tail

# A budget's limits and beyond: from the smallest epsilon to noise that protects nobody.
EPSILONS = [10.0**power for power in (-8, -7.3, -6, -4.5, -3, -2, -1, -0.4, 0, 0.3, 1, 1.7, 2, 3, 5, 8, 12)]
DELTAS = [1e-300, 1e-200, 1e-100, 1e-50, 1e-25, 1e-12, 1e-9, 1e-6, 1e-5, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9]


def stated_share(epsilon, signal):
    """By how much `gaussian_delta` may exceed delta."""
    middle, half = epsilon / signal, signal / 2
    return 2e-12 + 2.0**-50 * (1 + abs(middle - half)) * (middle + half)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_of_gaussian_noise_is_never_below_eighty_digits(epsilon):
    """And neither are the noise that is calibrated by it, nor epsilon; above, they are by round-off alone."""
    for delta in DELTAS:
        signal = gaussian_signal(epsilon, delta)
        share = stated_share(epsilon, signal)
        bound = gaussian_delta(epsilon, signal)
        exact = gaussian_delta_of_eighty_digits(epsilon, signal)
        assert exact <= bound <= exact * (1 + share)
        # Calibrated noise is enough, and less is not.
        assert exact <= delta
        assert gaussian_delta_of_eighty_digits(epsilon, signal * (1 + 5 * share)) > delta
        least = exact_gaussian_epsilon(signal, delta)
        assert gaussian_delta_of_eighty_digits(least, signal) <= delta
        excess = max(1e-9 * least, 1e-10) * max(share / 2e-12, 1.0)
        if least > excess:
            assert gaussian_delta_of_eighty_digits(least - excess, signal) > delta


@given(st.floats(-12, 3), st.floats(-8, 3), st.floats(-1, 1))
@settings(max_examples=300, deadline=None)
def test_delta_of_gaussian_noise_is_never_below_it_for_any_signal(log_signal, log_epsilon, near):
    """Also where epsilon and delta have nothing to do with the signal."""
    signal = 10**log_signal
    for epsilon in (0.0, 10**log_epsilon, signal * (signal / 2 + 40 * near)):
        if epsilon >= 0:
            exact = gaussian_delta_of_eighty_digits(epsilon, signal)
            smallest = math.nextafter(0, 1)
            bound = gaussian_delta(epsilon, signal)
            assert exact <= bound <= exact * (1 + stated_share(epsilon, signal)) + 3 * smallest


def test_tails_of_a_normal_number():
    with mpmath.workdps(50):
        for x in (-40.0, -1.0, 0.0, 0.5, 3.0, 24.9, 25.1, 38.0, 1e4):
            assert log_tail(x) == pytest.approx(float(mpmath.log(mpmath.ncdf(-mpmath.mpf(x)))), rel=1e-14, abs=1e-300)


@given(st.floats(-5.9, 4), st.floats(-299, -0.05))
@settings(max_examples=80, deadline=None)
@example(-6 + 1e-9, -100)
def test_noise_is_enough_and_not_much_more(log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    multiplier = gaussian_noise_multiplier(epsilon, delta)
    assert gaussian_epsilon(multiplier, delta) <= epsilon
    with mpmath.workdps(80):
        signal = 1 / mpmath.mpf(multiplier)
        assert gaussian_delta_of_eighty_digits(epsilon, signal) <= delta
        assert gaussian_delta_of_eighty_digits(epsilon, signal / (1 - mpmath.mpf(10) ** -10)) > delta


def test_no_distance_no_loss():
    assert gaussian_epsilon(math.inf, 1e-5) == 0.0


@pytest.mark.parametrize(
    ("epsilon", "delta", "named"),
    [
        (0, 1e-5, "epsilon=0"),
        (1e-9, 1e-9, "epsilon=1e-09"),
        (-1, 1e-5, "epsilon=-1"),
        (math.inf, 1e-5, "epsilon=inf"),
        (math.nan, 1e-5, "epsilon=nan"),
        (1, 0, "delta=0"),
        (1, 1, "delta=1"),
        (1, 2, "delta=2"),
    ],
)
def test_bad_budgets_are_named(epsilon, delta, named):
    with pytest.raises(ValueError, match=named):
        gaussian_noise_multiplier(epsilon, delta)


def zcdp_epsilon_exactly(rho, delta):
    """Canonne, Kamath, Steinke (2020), Proposition 12, over all orders, with 40 digits."""
    with mpmath.workdps(40):
        rho, delta = mpmath.mpf(rho), mpmath.mpf(delta)

        def epsilon(log_excess):
            order = 1 + mpmath.exp(log_excess)
            return rho * order + mpmath.log1p(-1 / order) - mpmath.log(delta * order) / (order - 1)

        # One minimum, around the order sqrt(log(1 / delta) / rho).
        middle = mpmath.log(mpmath.sqrt(-mpmath.log(delta) / rho))
        low, high = middle - 4, middle + 4
        while high - low > mpmath.mpf(10) ** -10:
            third = (high - low) / 3
            if epsilon(low + third) < epsilon(high - third):
                high -= third
            else:
                low += third
        return epsilon(low)


@given(st.floats(-3, 2), st.floats(-9, -2))
@settings(max_examples=60, deadline=None)
def test_zcdp_is_never_below_the_exact_conversion_and_close_to_it(log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon
    exact = zcdp_epsilon_exactly(rho, delta)
    assert exact * (1 - 1e-9) <= zcdp_epsilon(rho, delta)
    assert exact >= epsilon * (1 - 1e-3)
