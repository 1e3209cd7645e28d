import functools
import itertools
import struct
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
import scipy.stats
from tests.chacha import chacha_block

from privsvm.numerics.compiled.jit import jit
from privsvm.numerics.noise.long_numbers import cosine, minus_logarithm
from privsvm.numerics.noise.rounded_normals import (
    BUFFER,
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    certain_integer,
    error_bound,
    normal_pair,
    random_bits,
    round_words,
    rounded_normals,
    uniform_words,
)

# Chance of a false alarm of one statistical check, for new seeds.
ALARM = 1e-7

KEY = bytes(range(7, 39))

# Words with all bits clear, all set, at the edges of what float64 holds, at ties of the sign and of the quarter turns.
RADIUS_WORDS = [
    0, 1, 2**10, 2**24 - 1, 2**24, 2**24 + 1, 2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1, 2**63, 2**63 + 2**10,
    0xB504F333F9DE6484, 0xB504F333F9DE6485, 2**64 - 2**30, 2**64 - 2**24, 2**64 - 2**23, 2**64 - 2**11, 2**64 - 2**10,
    2**64 - 2, 2**64 - 1,
]  # fmt: skip
ANGLE_WORDS = [
    0, 1, 2**20, 2**61 - 1, 2**61, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, 2**63, 2**63 + 1, 3 * 2**61, 3 * 2**62 - 1,
    3 * 2**62, 3 * 2**62 + 1, 2**64 - 2, 2**64 - 1,
]  # fmt: skip


@functools.cache
def ideal_parts(pair, radius_word, angle_word, digits):
    """Radius, and angle as a share of a half turn, of both numbers of a pair."""
    uniform, angle, bits = int(radius_word), int(angle_word) % 2**63, 0
    if digits:
        for nonce in (1, 2, 3):
            block = chacha_block([int(word) for word in np.frombuffer(KEY, dtype="<u4")], pair, (nonce, 0))
            for i in range(8):
                uniform, angle, bits = uniform << 32 | block[i], angle << 32 | block[8 + i], bits + 32
    with mpmath.workprec(1000):
        radius = mpmath.sqrt(-2 * mpmath.log((uniform + mpmath.mpf(0.5)) / mpmath.mpf(2) ** (64 + bits)))
        # A share of a half turn: a signed number from -1/2 to 1/2.
        share = (angle + mpmath.mpf(0.5)) / mpmath.mpf(2) ** (63 + bits)
        return radius, share - 1 if share >= 0.5 else share


@functools.cache
def ideal_number(pair, radius_word, angle_word, second, digits=True):
    """The normal number in 1000 bits, from 832 digits of either uniform number; in whole blocks of the cipher.

    Without `digits`, from those that the float64 stage reads, halfway to the next. No scale changes it.
    """
    radius, share = ideal_parts(pair, radius_word, angle_word, digits)
    with mpmath.workprec(1000):
        if second:
            return radius * mpmath.sinpi(share)
        return radius * mpmath.cospi(share) * (-1 if int(angle_word) >> 63 else 1)


def round_number(sigma, number):
    """The nearest integer, which the digits leave no doubt about."""
    with mpmath.workprec(1000):
        value = mpmath.mpf(sigma) * number
        nearest = int(mpmath.floor(value + mpmath.mpf(0.5)))
        assert abs(value - nearest) < mpmath.mpf(0.5) - mpmath.mpf(2) ** -300
        return nearest


def both_rounded(sigma, words, first_pair=0):
    """Return the integers of pairs of words, cosines first, and the number that took more digits than float64 has."""
    bits = np.array([word for word, _ in words] + [word for _, word in words], dtype=np.uint64)
    cells = np.empty((1, bits.size), dtype=np.int64)
    slow = round_words(KEY, first_pair, bits.reshape(1, -1), float(sigma), cells)
    return cells.reshape(2, -1), slow


CORNERS = [(radius, angle) for radius in RADIUS_WORDS for angle in ANGLE_WORDS]


def test_forced_words_give_the_integers_of_the_reference():
    ideal = [
        [ideal_number(1000 + i, *words, second) for i, words in enumerate(CORNERS)] for second in (False, True)
    ]  # fmt: skip
    for sigma in (SMALLEST_SIGMA, 0.25, 1.0, 3.7, 2.0**20 + 1 / 3, 2.0**33, 1.7 * 2.0**40, LARGEST_SIGMA):
        cells, slow = both_rounded(sigma, CORNERS, 1000)
        expected = [[round_number(sigma, number) for number in numbers] for numbers in ideal]
        assert np.array_equal(cells, expected)
        # Integers that float64 decides agree with more digits.
        surely = [
            [certain_integer(KEY, 1000 + i, words, second, sigma) for i, words in enumerate(CORNERS)]
            for second in (False, True)
        ]
        assert np.array_equal(cells, surely)
        # Words without a leading bit are never left to float64.
        assert slow >= 2 * 4 * len(ANGLE_WORDS)


def test_near_ties_are_settled_by_more_digits():
    """Scales that bring a number as close to a half as float64 can say: most of them take more digits."""
    rng = np.random.default_rng(3)
    settled = 0
    for number in range(150):
        words = [int(word) for word in rng.integers(0, 2**64, size=2, dtype=np.uint64)]
        for second in (False, True):
            ideal = ideal_number(number, *words, second)
            for half in (0.5, 17.5, 2.0**30 + 0.5):
                for sigma in (float(half / abs(ideal)), np.nextafter(float(half / abs(ideal)), np.inf)):
                    cells, slow = both_rounded(sigma, [words], number)
                    assert cells[int(second), 0] == round_number(sigma, ideal)
                    settled += slow > 0
    assert settled > 1700


@pytest.mark.parametrize("sigma", [0.3, 1000.7, 2.0**26, 2.0**33, 2.0**44])
def test_random_draws_are_those_of_the_reference(sigma):
    """Bit for bit: 400 draws of the stream against 1000 bits, and 20,000 against the long numbers."""
    drawn = rounded_normals(KEY, sigma, 20 * BUFFER).reshape(20, 2, BUFFER // 2)
    half = BUFFER // 2
    words = uniform_words(KEY, 0, 0, 20 * BUFFER).reshape(20, 2, half)
    for buffer in range(20):
        for index in range(10 if sigma > 2.0**40 else half):
            pair = buffer * half + index
            pair_words = int(words[buffer, 0, index]), int(words[buffer, 1, index])
            for second in (False, True):
                integer = drawn[buffer, int(second), index]
                assert integer == certain_integer(KEY, pair, pair_words, second, sigma)
                if index < 10:
                    assert integer == round_number(sigma, ideal_number(pair, *pair_words, second))


def test_few_places_lead_to_the_same_integers():
    """From 32 places on, long numbers grow until the integer is certain."""
    rng = np.random.default_rng(4)
    for pair in range(300):
        words = tuple(rng.integers(0, 2**64, size=2, dtype=np.uint64).tolist())
        for sigma in (3.0, 2.0**40, 2.0**46):
            integers = {
                certain_integer(KEY, pair, words, bool(pair % 2), sigma, places) for places in (32, 64, 96, 128, 700)
            }
            assert len(integers) == 1
    for words in ((0, 0), (0, 2**63), (1, 2**62)):
        assert len({certain_integer(KEY, 5, words, True, 2.0**46, places) for places in (32, 64, 128, 700)}) == 1


@jit()
def fill_numbers_and_errors(bits, numbers, errors):
    """Compute what the float64 stage rounds, and its bounds."""
    half = errors.shape[0]
    for i in range(half):
        numbers[i], numbers[half + i], radius, uniform = normal_pair(bits[i], bits[half + i])
        errors[i] = error_bound(radius, uniform)


def test_the_error_of_float64_stays_below_its_bound():
    """The bound of docs/proofs/exact-noise.md, against 1000 bits: random words, corners, and angles near the axes."""
    rng = np.random.default_rng(5)
    words = [tuple(int(word) for word in pair) for pair in rng.integers(0, 2**64, size=(3000, 2), dtype=np.uint64)]
    words += CORNERS
    words += [(w >> int(shift), t) for (w, t), shift in zip(words[:1000], rng.integers(1, 40, 1000), strict=True)]
    words += [(2**64 - 1 - (w >> int(s)), t) for (w, t), s in zip(words[:1000], rng.integers(1, 40, 1000), strict=True)]
    words += [(w, (t & (3 << 62)) | 2**62 - 1 - (t >> int(s)) % 2**62) for (w, t), s in
              zip(words[:500], rng.integers(2, 40, 500), strict=True)]  # fmt: skip
    bits = np.array([word for word, _ in words] + [word for _, word in words], dtype=np.uint64)
    numbers, errors = np.empty(bits.size), np.empty(len(words))
    fill_numbers_and_errors(bits, numbers, errors)
    worst = 0.0
    for i, pair in enumerate(words):
        for second in (False, True):
            number, bound = numbers[i + len(words) * second], errors[i]
            if not np.isfinite(bound):
                continue
            with mpmath.workprec(1000):
                off = abs(ideal_number(0, *pair, second, digits=False) - mpmath.mpf(number))
                # Half of the unread digits' share: the reference stands in the middle of them.
                worst = max(worst, float(off / mpmath.mpf(bound)))
    assert 0.1 < worst < 0.9


@pytest.mark.parametrize("places", [32, 64, 128, 192, 384])
def test_long_logarithms_and_cosines_are_off_by_no_more_than_they_say(places):
    """A million bits are not needed to see it: 64 more than the numbers have. Edges and random numbers."""
    rng = np.random.default_rng(places)
    one = 2**places
    drawn = [int.from_bytes(rng.bytes(places // 8), "little") for _ in range(40)]
    with mpmath.workprec(places + 64):
        ulp = mpmath.mpf(1) / one
        for digits in (one // 2, one // 2 + 1, one - 1, *(one // 2 + number // 2 for number in drawn)):
            for exponent in (0, 1, 40, 2**20):
                exact = exponent * mpmath.log(2) - mpmath.log(digits * ulp)
                off = minus_logarithm(digits, exponent, places) * ulp - exact
                assert abs(off) <= 4 * places * (exponent + 1) * ulp
        for digits in (0, 1, one // 4, one // 2, *(number // 2 for number in drawn)):
            assert abs(cosine(digits, places) * ulp - mpmath.cospi(2 * digits * ulp)) <= 22 * places * ulp


def exact_probabilities(sigma, most):
    """Probabilities of -most ... most, and of the two tails together."""
    edges = (np.arange(-most, most + 2) - 0.5) / sigma
    middle = np.array([float(mpmath.ncdf(b) - mpmath.ncdf(a)) for a, b in itertools.pairwise(edges)])
    return np.append(middle, 2 * float(mpmath.ncdf(edges[0])))


@pytest.mark.parametrize(("sigma", "most"), [(0.3, 1), (1.0, 4), (2.5, 10), (4.0, 17)])
def test_small_scales_have_the_exact_probabilities(sigma, most):
    """Fixed keys; chi-square with an error probability of 1e-7, for a million draws and for pairs of them."""
    size = 10**6
    drawn = rounded_normals(KEY, sigma, size)
    expected = exact_probabilities(sigma, most)
    bins = np.where(np.abs(drawn) > most, 2 * most + 1, drawn + most)
    seen = np.bincount(bins, minlength=2 * most + 2)
    assert scipy.stats.chisquare(seen, expected * size).pvalue > ALARM
    # The two numbers of a pair, and neighbours, are independent.
    for lag in (1, BUFFER // 2):
        signs = np.sign(drawn[:-lag]) * 3 + np.sign(drawn[lag:]) + 4
        signs = signs[::2] if lag == 1 else signs[np.arange(signs.size) % BUFFER < lag]
        zero = expected[most]
        side = np.array([(1 - zero) / 2, zero, (1 - zero) / 2])
        counts = np.bincount(signs, minlength=9)
        assert scipy.stats.chisquare(counts, np.outer(side, side).ravel() * counts.sum()).pvalue > ALARM


@pytest.mark.parametrize("sigma", [0.7, 4.0])
def test_words_on_a_lattice_meet_the_exact_probabilities(sigma):
    """A million pairs of words, one from every cell of a lattice; cells that an integer's border crosses may differ.

    In either direction a border is crossed at most four times, by the symmetry of the circle.
    """
    side = 1000
    words = np.array([(2 * i + 1) * 2**63 // side for i in range(side)], dtype=np.uint64)
    radius, angle = np.repeat(words, side), np.tile(words, side)
    cells = np.empty((1, 2 * radius.size), dtype=np.int64)
    round_words(KEY, 0, np.concatenate([radius, angle])[None], sigma, cells)
    most = 10
    expected = exact_probabilities(sigma, most)
    for numbers in cells.reshape(2, -1):
        bins = np.where(np.abs(numbers) > most, 2 * most + 1, numbers + most)
        share = np.bincount(bins, minlength=2 * most + 2) / numbers.size
        assert np.abs(share - expected).max() < 8 / side


def test_draws_do_not_depend_on_how_they_are_asked_for():
    expected = rounded_normals(KEY, 2.0**30, 5000)
    assert np.array_equal(rounded_normals(KEY, 2.0**30, 700), expected[:700])
    for first, size in ((4999, 1), (0, 5000), (1023, 2), (1024, 1024), (3000, 1096), (700, 0)):
        assert np.array_equal(rounded_normals(KEY, 2.0**30, size, first), expected[first : first + size])
    with ThreadPoolExecutor(4) as pool:
        for other in pool.map(lambda size: rounded_normals(KEY, 2.0**30, size), [5000, 4000, 3000, 1]):
            assert np.array_equal(other, expected[: other.size])
    assert not np.array_equal(rounded_normals(bytes(32), 2.0**30, 5000), expected)


def test_large_scales_keep_the_shape():
    """Fixed key; Kolmogorov-Smirnov with an error probability of 1e-7. Slow draws are as rare as the bound says."""
    sigma = 2.0**36
    drawn = rounded_normals(KEY, sigma, 10**6)
    assert scipy.stats.kstest(drawn / sigma, "norm").pvalue > ALARM
    words = uniform_words(KEY, 0, 0, 10**6)[None]
    cells = np.empty(words.shape, dtype=np.int64)
    assert round_words(KEY, 0, words, sigma, cells) < 0.001 * 10**6


@pytest.mark.parametrize("sigma", [0.0, -1.0, 2.0**-21, 2.0**47, np.inf, np.nan])
def test_scales_out_of_range_are_refused(sigma):
    with pytest.raises(ValueError, match="sigma"):
        rounded_normals(KEY, sigma, 1)


def first_blocks(key, counter, nonce, count=1):
    """The first words of the key stream, block by block (count, 16)."""
    out = np.zeros(128, dtype=np.uint64)
    random_bits(np.array(key, dtype=np.uint32), np.uint64(counter), np.uint64(nonce), out)
    return out.view(np.uint32).reshape(16, 16).T[:count]


# Key, the 16 bytes after it in the state as two uint64 (our counter and nonce), and the block: RFC 8439, 2.3.2 and A.1.
RFC_8439 = [
    (
        bytes(range(32)),
        (1 | 0x09000000 << 32, 0x4A000000),
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        b"\x00\xff" + bytes(30),
        (2, 0),
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    (
        bytes(32),
        (0, 0x02 << 56),
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
]


@pytest.mark.parametrize(("key", "start", "stream"), RFC_8439)
def test_the_published_vectors(key, start, stream):
    """RFC 8439: its nonce of 96 bits begins where our counter's upper half is."""
    block = first_blocks(struct.unpack("<8I", key), *start)[0]
    assert block.astype("<u4").tobytes().hex() == stream


@pytest.mark.parametrize("counter", [0, 1, 2**32 - 10, 2**40 + 3])
@pytest.mark.parametrize("nonce", [0, 1, 2**32, 2**64 - 1])
def test_bits_are_the_key_stream(counter, nonce):
    key = np.random.default_rng(0).integers(0, 2**32, size=8, dtype=np.uint32)
    out = np.zeros(256, dtype=np.uint64)
    random_bits(key, np.uint64(counter), np.uint64(nonce), out)
    # Two groups of 16 blocks: word by word, the 16 blocks side by side.
    words = out.view(np.uint32).reshape(2, 16, 16)
    for group in range(2):
        for lane in range(16):
            expected = chacha_block(
                [int(word) for word in key], counter + 16 * group + lane, (nonce & 0xFFFFFFFF, nonce >> 32)
            )
            assert words[group, :, lane].tolist() == expected
