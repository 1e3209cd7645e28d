import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from tests.chacha import chacha_block

from privsvm.numerics.noise.exact_draws import (
    LARGEST_CHOICE_SCALE,
    LARGEST_SCALE,
    _below,
    _happens,
    discrete_laplace,
    exponential_choices,
    sample_rows,
    sampling_threshold,
)
from privsvm.numerics.noise.noise_source import NoiseSource, as_source, seeded_source, system_source

# Chance of a false alarm of one statistical check, for new keys.
ALARM = 1e-7

KEY = bytes(range(3, 35))


class Spent(Exception):  # noqa: N818
    """The words that a test has written down are used up."""


class Words:
    """Stands for a buffer: words written down by a test, then no more."""

    shape = (2**62,)

    def __init__(self, words):
        self.words = words

    def __getitem__(self, index):
        if index >= len(self.words):
            raise Spent
        return np.uint64(self.words[index])


class Forced:
    """A word stream of words written down by a test."""

    def __init__(self, words):
        self.position, self.bits = np.zeros(2, dtype=np.uint64), Words(words)


def probability(draw, width, most):
    """Probability that a draw says yes, by enumerating its words: bounds on it, as fractions.

    Every word counts by its last `width` binary digits alone. What takes more than `most` words is left open.
    """
    yes, undecided = Fraction(0), Fraction(0)
    waiting = [()]
    while waiting:
        words = waiting.pop()
        try:
            yes += draw(Forced(words)) * Fraction(1, 2 ** (width * len(words)))
        except Spent:
            if len(words) == most:
                undecided += Fraction(1, 2 ** (width * most))
            else:
                waiting += [(*words, word) for word in range(2**width)]
    return yes, yes + undecided


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8])
def test_numbers_below_a_bound_are_equally_likely_word_by_word(bound):
    width = 3
    for number in range(bound):
        low, high = probability(lambda stream, n=number: int(_below(stream, np.uint64(bound)) == n), width, 4)
        assert low <= Fraction(1, bound) <= high
        assert high - low < Fraction(1, 5)


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (3, 4)])
def test_exponential_trials_have_the_exact_probability_word_by_word(numerator, denominator):
    """All sequences of up to six words of three digits, which is enough for numbers below 8: no trial goes further."""
    low, high = probability(lambda stream: int(_happens(stream, np.uint64(numerator), np.uint64(denominator))), 3, 6)
    assert float(low) <= math.exp(-numerator / denominator) * (1 + 1e-15)
    assert float(high) >= math.exp(-numerator / denominator) * (1 - 1e-15)
    assert high - low < Fraction(1, 10)


@pytest.mark.parametrize("scale", [1, 2, 3, 10])
def test_discrete_laplace_noise_has_the_exact_probabilities(scale):
    """Fixed keys; chi-square with an error probability of 1e-7."""
    size = 10**6
    drawn = discrete_laplace(KEY, scale, size)
    most = 10 * scale
    integers = np.arange(-most, most + 1)
    expected = np.tanh(0.5 / scale) * np.exp(-np.abs(integers) / scale)
    seen = np.bincount(np.where(np.abs(drawn) > most, 2 * most + 1, drawn + most), minlength=2 * most + 2)
    assert scipy.stats.chisquare(seen, np.append(expected, 1 - expected.sum()) * size).pvalue > ALARM


@pytest.mark.parametrize("scale", [2**20 + 7, LARGEST_SCALE])
def test_laplace_noise_of_large_scales_keeps_its_shape(scale):
    """Fixed keys; Kolmogorov-Smirnov with an error probability of 1e-7, and the last digits by chi-square."""
    drawn = discrete_laplace(KEY, scale, 10**6)
    assert scipy.stats.kstest(drawn / scale, "laplace").pvalue > ALARM
    assert scipy.stats.chisquare(np.bincount(drawn % 16, minlength=16)).pvalue > ALARM


def test_choices_have_the_exact_probabilities():
    """Fixed keys; chi-square with an error probability of 1e-7. Large scores and small ones, ties, far losers."""
    for scores, scale in (
        ([3, 3, 0, -20, 5], 4),
        ([2**61, 2**61 - 2**40, 2**61 - 2**41, -(2**61)], 2**40),
        ([0], 1),
        ([0, -1], 1),
        ([-(2**62), 2**62, 2**62], LARGEST_CHOICE_SCALE),
    ):
        size = 300_000
        drawn = exponential_choices(KEY, np.tile(np.array(scores, dtype=np.int64), (size, 1)), scale)
        weights = np.array([math.exp((score - max(scores)) / scale) for score in scores])
        expected = weights / weights.sum() * size
        seen = np.bincount(drawn, minlength=len(scores))
        likely = expected > 1e-3
        assert not seen[~likely].any()
        if likely.sum() > 1:
            assert scipy.stats.chisquare(seen[likely], expected[likely] * size / expected[likely].sum()).pvalue > ALARM


def test_draws_begin_alike_however_many_there_are():
    assert np.array_equal(discrete_laplace(KEY, 1000, 5000)[:700], discrete_laplace(KEY, 1000, 700))
    assert not np.array_equal(discrete_laplace(bytes(32), 1000, 700), discrete_laplace(KEY, 1000, 700))


@pytest.mark.parametrize("scale", [0, -1, LARGEST_SCALE + 1])
def test_scales_that_do_not_fit_are_refused(scale):
    with pytest.raises(ValueError, match="scale"):
        discrete_laplace(KEY, scale, 1)


def test_thresholds_are_rates_in_whole_numbers():
    for rate in (1.0, 0.5, 1 / 3, 1e-3, 2.0**-11, 1e-9, 2.0**-64, float(np.nextafter(1.0, 0.0))):
        threshold, accounted = sampling_threshold(rate)
        exact = Fraction(threshold, 2**64)
        assert 1 <= threshold <= 2**64
        assert exact <= Fraction(accounted) <= Fraction(rate)
        assert Fraction(rate) - exact < Fraction(1, 2**64)
        assert rate < 2.0**-11 or accounted == rate
    for rate in (0.0, 2.0**-65, 1.1, -0.5, math.nan):
        with pytest.raises(ValueError, match="rate"):
            sampling_threshold(rate)


def test_a_row_is_drawn_by_a_word_of_its_own():
    """Word by word against the cipher in whole numbers; more rows change nothing for the first ones."""
    key = [int(word) for word in np.frombuffer(KEY, dtype="<u4")]
    threshold, _ = sampling_threshold(0.3)
    expected = []
    for group in range(2):
        lanes = np.array([chacha_block(key, 16 * group + lane, (9, 0)) for lane in range(16)], dtype=np.uint32)
        expected += np.ascontiguousarray(lanes.T).view(np.uint64).ravel().tolist()
    expected = [row for row, word in enumerate(expected) if word < threshold]
    assert sample_rows(KEY, 9, threshold, 0, 256).tolist() == expected
    for n_rows in (1, 100, 255, 3000):
        rows = sample_rows(KEY, 9, threshold, 0, n_rows)
        assert rows[rows < 256].tolist() == [row for row in expected if row < n_rows]
    later = sample_rows(KEY, 9, threshold, 1024, 976) + 1024
    assert later.tolist() == [row for row in sample_rows(KEY, 9, threshold, 0, 2000) if row >= 1024]
    assert sample_rows(KEY, 9, 2**64, 0, 2000).tolist() == list(range(2000))
    assert sample_rows(KEY, 9, 1, 0, 2000).size == 0


def test_rows_are_drawn_at_the_rate_and_independently():
    """Fixed key; binomial counts and a table of neighbouring rows and steps, with an error probability of 1e-7."""
    rate, n_rows, n_steps = 0.1, 5000, 200
    threshold, _ = sampling_threshold(rate)
    drawn = np.zeros((n_steps, n_rows), dtype=bool)
    for step in range(n_steps):
        drawn[step, sample_rows(KEY, step, threshold, 0, n_rows)] = True
    assert scipy.stats.binomtest(int(drawn.sum()), drawn.size, rate).pvalue > ALARM
    for first, second in ((drawn[:, ::2], drawn[:, 1::2]), (drawn[::2], drawn[1::2])):
        table = np.bincount((first * 2 + second).ravel(), minlength=4)
        expected = np.array([0.81, 0.09, 0.09, 0.01]) * first.size
        assert scipy.stats.chisquare(table, expected).pvalue > ALARM


def test_sources_repeat_by_purpose_and_never_by_draw():
    source, again = NoiseSource(KEY), NoiseSource(KEY)
    keys = [source.next_key() for _ in range(5)]
    assert keys == [again.next_key() for _ in range(5)]
    assert all(len(key) == 32 for key in keys)
    assert len({KEY, *keys, source.part("noise").next_key(), source.part("sampling").next_key()}) == 8
    assert source.part("noise").next_key() == NoiseSource(KEY).part("noise").next_key()
    # Equal as Python's values, and other texts.
    assert len({source._key_of("part", one) for one in (1, 1.0, True, "1")}) == 4
    # The 12th draw repeats, too.
    assert [NoiseSource(KEY)._key_of("draw", number + 1) for number in range(12)] == [
        key for fresh in [NoiseSource(KEY)] for key in [fresh.next_key() for _ in range(12)]
    ]
    seeds = [seeded_source(3, "a", 1, 0.5), seeded_source(3, "a", 1, 0.25), seeded_source(3, "b", 1, 0.5)]
    assert len({seed.next_key() for seed in seeds} | {seeded_source(4, "a", 1, 0.5).next_key()}) == 4
    assert seeded_source(3, "a", 1, 0.5).next_key() == seeded_source(3, "a", 1, 0.5).next_key()
    assert np.array_equal(source.rounded_normals(5.0, 10), again.rounded_normals(5.0, 10))
    assert not np.array_equal(source.rounded_normals(5.0, 10), again.part("x").rounded_normals(5.0, 10))
    with pytest.raises(ValueError, match="31 bytes"):
        NoiseSource(bytes(31))


def test_generators_key_sources_and_systems_never_repeat():
    """300 sources: a generator with 256 seeds would repeat for sure."""
    assert as_source(np.random.default_rng(3)).next_key() == as_source(np.random.default_rng(3)).next_key()
    source = system_source()
    assert as_source(source) is source
    assert len({system_source().next_key() for _ in range(300)}) == 300
    assert source.generator().random() != source.generator().random()
