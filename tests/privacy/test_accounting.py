import math

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.privacy.oracles import gaussian_delta_of_eighty_digits, zcdp_epsilon

from privsvm.privacy.accounting import gaussian_epsilon, gaussian_noise_multiplier, zcdp_rho


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
