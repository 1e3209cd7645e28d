import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.mechanisms import GaussianMechanism
from privsvm.streams import seeded_stream, system_stream


def test_noise_is_gaussian_of_the_stated_scale():
    """Fixed seed; for a correct mechanism a new seed would fail with probability below 1e-6."""
    mechanism = GaussianMechanism(epsilon=0.7, delta=1e-6, sensitivity=0.3, size=10**6)
    noise = mechanism.release(np.zeros(10**6), seeded_stream(1, "test"))
    assert scipy.stats.kstest(noise / mechanism.noise_scale, "norm").pvalue > 1e-7
    # Chi-square bound on the variance at 5.3 standard deviations.
    assert abs(np.var(noise) / mechanism.noise_scale**2 - 1) < 5.3 * np.sqrt(2 / 1e6)


@given(st.floats(1e-8, 1e6), st.integers(1, 5000), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_rounding_is_paid_for(sensitivity, size, seed):
    mechanism = GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=sensitivity, size=size)
    rng = np.random.default_rng(seed)
    first = rng.normal(size=size) * sensitivity
    step = rng.normal(size=size)
    second = first + step / np.linalg.norm(step) * sensitivity
    grid = mechanism.grid
    distance = np.linalg.norm((np.rint(first / grid) - np.rint(second / grid)) * grid)
    assert distance <= mechanism.total_sensitivity * (1 + 1e-12)
    assert mechanism.total_sensitivity <= sensitivity * (1 + 2e-6)
    expected = mechanism.total_sensitivity * gaussian_noise_multiplier(1.0, 1e-5)
    assert mechanism.noise_scale == pytest.approx(expected, rel=1e-12)
    assert mechanism.epsilon_proved <= 1.0


def test_released_numbers_lie_on_the_grid():
    mechanism = GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=0.1, size=50)
    released = mechanism.release(np.linspace(-1, 1, 50), np.random.default_rng(0))
    cells = released / mechanism.grid
    assert np.array_equal(cells, np.rint(cells))


def test_seeded_streams_repeat_and_differ_by_purpose():
    draw = lambda *purpose: seeded_stream(3, *purpose).normal(size=4).tobytes()  # noqa: E731
    assert draw("a", 1, 0.5) == draw("a", 1, 0.5)
    assert len({draw("a", 1, 0.5), draw("a", 1, 0.25), draw("a", 2, 0.5), draw("b", 1, 0.5)}) == 4


def test_system_streams_do_not_repeat():
    """300 streams: a generator with 256 seeds would repeat for sure."""
    assert len({system_stream().bytes(16) for _ in range(300)}) == 300


@pytest.mark.parametrize("values", [np.zeros(3), np.array([1.0, np.nan]), np.array([np.inf, 0.0])])
def test_wrong_vectors_are_refused(values):
    with pytest.raises(ValueError, match="values"):
        GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=1.0, size=2).release(values, np.random.default_rng(0))


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, np.inf, np.nan])
def test_wrong_sensitivity_is_refused(sensitivity):
    with pytest.raises(ValueError, match="sensitivity"):
        GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=sensitivity, size=2)
