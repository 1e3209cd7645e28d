import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from tests.adversarial import KINDS, Silence, neighbours, whole_numbers
from tests.replay import Recorder

from privsvm import PMSVMGPClassifier, SoftmaxDPSGDClassifier
from privsvm.families.moments import private_scaling, second_moments
from privsvm.families.moments.private_scaling import SCALINGS, feature_bound, release_multipliers, rows_to_scale
from privsvm.families.moments.second_moments import (
    Moments,
    MomentsMechanism,
    centre_rows,
    code_cells,
    constant_feature,
    exact_moments,
    noisy_centre,
    share_beside,
    share_of_centre,
    simplex_codes,
)
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.rows import unit_rows
from privsvm.privacy.accounting import gaussian_epsilon
from privsvm.privacy.events import relation_factor

ONE = 2**20
# Squared change by one row, in units of a row of norm 1: by relation, with codes or without.
SQUARES = {("replace_one", True): 8, ("replace_one", False): 2, ("add_remove", True): 3, ("add_remove", False): 1}


def squared_length(moments, n_features):
    """Of the vector that gets noise: numbers off the diagonal once, with the root of 2. Python's whole numbers."""
    gram, cross = moments[:, :n_features], moments[:, n_features:]
    return int((gram**2).sum() + 2 * (cross**2).sum())


def mechanism(n_features, n_codes, relation, multiplier=3.0):
    return MomentsMechanism(n_features=n_features, n_codes=n_codes, neighbours=relation, multiplier=multiplier)


def check_distance(first, second, relation):
    """Two datasets (rows, codes) of whole numbers: exact and rounded moments are within the sensitivities."""
    n_features, n_codes = first[0].shape[1], first[1].shape[1]
    slow = [whole_numbers(rows).T @ whole_numbers(np.hstack([rows, codes])) for rows, codes in (first, second)]
    fast = [exact_moments(rows, codes) for rows, codes in (first, second)]
    assert all(np.array_equal(one, other) for one, other in zip(slow, fast, strict=True))
    moved = squared_length(slow[0] - slow[1], n_features)
    assert moved <= SQUARES[relation, n_codes > 0] * 2**80
    for multiplier in (1e-3, 3.0, 1e6):
        release = mechanism(n_features, n_codes, relation, multiplier)
        cells = [release.rounded(one).astype(object) for one in fast]
        # In units of the noise's grid.
        unit = Fraction(2) ** (release.shift - 40)
        bound = Fraction(release.sensitivity)
        assert squared_length(cells[0] - cells[1], n_features) * unit**2 <= bound**2
        assert bound**2 >= SQUARES[relation, n_codes > 0]
    return moved


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(2, 5), st.integers(2, 9), st.integers(1, 4),
       st.sampled_from([1e-310, 1e-3, 1.0, 1e301]), st.sampled_from([0.0, 0.3, 1.0, 1e6]))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_moments_of_neighbours_are_within_the_sensitivity(seed, kind, n_classes, n, n_features, size, reach):
    """From rows as they are to whole numbers, given any centre that was released before."""
    rng = np.random.default_rng(seed)
    with np.errstate(under="ignore"):
        X, y = rng.normal(size=(n, n_features)) * size, rng.integers(0, n_classes, size=n)
    centre = rng.normal(size=n_features) * reach
    *pair, relation = neighbours(X, y, n_classes, kind, rng)
    sets = []
    for rows, labels in pair:
        cells = rows_to_scale(rows, "centre")
        assert all((row * row).sum() <= 2**40 for row in whole_numbers(cells))
        moments = constant_feature(centre_rows(cells, centre))[0]
        assert all((row * row).sum() <= 2**40 for row in whole_numbers(moments))
        sets.append((cells, moments, code_cells(n_classes)[labels]))
    sums = [whole_numbers(cells).sum(axis=0) for cells, _, _ in sets]
    factor = 2 if relation == "replace_one" else 1
    assert ((sums[0] - sums[1]) ** 2).sum() <= (factor * ONE) ** 2
    check_distance(sets[0][1:], sets[1][1:], relation)
    without = [(cells, np.zeros((len(cells), 0))) for cells, _, _ in sets]
    check_distance(*without, relation)


@given(st.floats(0, 2 * math.pi), st.floats(0, 1), st.floats(0, 1), st.integers(2, 6), st.integers(0, 5),
       st.sampled_from(["replace_one", "add_remove"]))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_two_rows_are_within_the_sensitivity(angle, first_norm, second_norm, n_classes, label, relation):
    """Two rows at every angle and of every norm up to 1, with every pair of labels: no constant feature helps here."""
    rows = np.array([[first_norm, 0.0], [second_norm * math.cos(angle), second_norm * math.sin(angle)]])
    cells = np.trunc(rows * (ONE - 1))
    codes = code_cells(n_classes)[[0, label % n_classes]]
    first = cells[:1], codes[:1]
    second = (cells[1:], codes[1:]) if relation == "replace_one" else (cells[:0], codes[:0])
    check_distance(first, second, relation)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 10])
def test_two_rows_attain_the_sensitivity(n_classes, relation):
    """Opposite rows with one label; without codes, rows at a right angle. No smaller number would do."""
    codes = code_cells(n_classes)[[0, 0]] if n_classes > 1 else np.zeros((2, 0))
    cells = np.array([[ONE, 0.0], [-ONE, 0.0]] if n_classes > 1 else [[ONE, 0.0], [0.0, ONE]])
    second = (cells[1:], codes[1:]) if relation == "replace_one" else (cells[:0], codes[:0])
    moved = check_distance((cells[:1], codes[:1]), second, relation)
    assert moved >= SQUARES[relation, n_classes > 1] * 2**80 * (1 - 1e-5)
    # With the constant feature nearly so.
    made_up = mechanism(5, n_classes - 1, relation)
    assert 0.998 * made_up.sensitivity < made_up.largest_distance() <= made_up.sensitivity


@pytest.mark.parametrize("n_classes", [2, 3, 7, 26, 100])
def test_codes_of_classes_are_unit_vectors(n_classes):
    codes = simplex_codes(n_classes)
    products = np.full((n_classes, n_classes), -1 / (n_classes - 1))
    np.fill_diagonal(products, 1.0)
    assert np.allclose(codes @ codes.T, products, atol=1e-12)
    cells = whole_numbers(code_cells(n_classes))
    assert all(2**40 * (1 - 1e-4) < (row * row).sum() <= 2**40 for row in cells)
    assert np.abs(cells.astype(float) / ONE - codes).max() <= 2 / ONE
    if n_classes == 2:
        assert codes.ravel().tolist() == [-1.0, 1.0]


def test_a_row_s_moments_depend_on_that_row_and_the_centre_alone():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(203, 6))
    X[3], X[4], X[5] = 0.0, 1.7e308, 1e-310
    centre = rng.normal(size=6) * 0.1

    def seen(rows):
        return constant_feature(centre_rows(rows_to_scale(rows, "centre"), centre))[0]

    all_moments = seen(X)
    for kept in (rng.permutation(203), np.arange(1), np.arange(0, 203, 3), rng.integers(0, 203, 31), np.arange(7)):
        assert np.array_equal(seen(X[kept]), all_moments[kept])
    assert np.array_equal(seen(np.asfortranarray(X)), all_moments)


def test_noise_is_that_of_the_stream():
    """Bit for bit; the moments of no rows are noise alone."""
    key, none = bytes(range(32)), np.zeros((0, 4))
    release = mechanism(4, 2, "replace_one")
    noisy = release.release(none, np.zeros((0, 2)), NoiseSource(key))
    unit, source = 2.0 ** (release.shift - 40), NoiseSource(key)
    assert unit * 6 <= 2e-6
    sigma = release.noise_scale / unit
    assert sigma * unit == pytest.approx(3.0 * math.sqrt(2.0), rel=1e-5)
    assert np.array_equal(np.diag(noisy.gram) / unit, source.rounded_normals(sigma, 4))
    others = sigma / math.sqrt(2.0) * (1 + 2.0**-48)
    assert np.array_equal(noisy.gram[np.triu_indices(4, 1)] / unit, source.rounded_normals(others, 6))
    assert np.array_equal(noisy.cross.ravel() / unit, source.rounded_normals(others, 8))
    assert np.array_equal(noisy.gram, noisy.gram.T)
    assert release.spread == pytest.approx(others * unit, rel=1e-12)
    noise = NoiseSource(key).rounded_normals(3.0 * ONE * (1 + 2.0**-48), 4).astype(float)
    kept = max(0.0, 1.0 - 4 * (3.0 * ONE) ** 2 / (noise @ noise))
    assert np.allclose(noisy_centre(none, 10, 3.0, NoiseSource(key)), noise * kept / (10 * ONE), rtol=1e-12)


def test_sums_beyond_int64_wrap_around_with_their_noise(monkeypatch):
    release = mechanism(1, 1, "replace_one")
    exact = np.array([[-(2**63) + 2**22, 2**63 - 1]])
    monkeypatch.setattr(second_moments, "exact_moments", lambda cells, codes: exact.copy())
    wrapped = release.release(np.zeros((0, 1)), np.zeros((0, 1)), Silence())
    half = 1 << release.shift >> 1
    assert wrapped.gram[0, 0] == ((-(2**63) + 2**22 + half) >> release.shift) * 2.0 ** (release.shift - 40)
    # The sum with what rounding adds is beyond int64: it comes out on the other side.
    assert wrapped.cross[0, 0] == -(2.0**63) * 2.0**-40


def test_many_rows_are_added_up_exactly():
    rng = np.random.default_rng(1)
    cells, codes = np.rint(rng.uniform(-1, 1, size=(9000, 3)) * 2**19), np.full((9000, 1), 2.0**20)
    assert np.array_equal(
        exact_moments(cells, codes), whole_numbers(cells).T @ whole_numbers(np.hstack([cells, codes]))
    )


def test_a_centre_without_noise_is_the_mean():
    rng = np.random.default_rng(2)
    cells = rows_to_scale(rng.normal(size=(500, 3)) + 1.0, "centre")
    assert np.allclose(noisy_centre(cells, 500, 1e-5, Silence()), cells.mean(axis=0) / ONE, rtol=1e-6)
    # Nothing remains where noise hides all values.
    assert not noisy_centre(cells[:2], 500, 1e6, Silence()).any()
    assert share_of_centre(9, 1e9) == 0.02
    assert share_of_centre(9, 45.0) == pytest.approx(0.1)
    assert share_of_centre(9, 1.0) == 0.25


def needed_beside(rows, matrix, moment, steps, rounding):
    """Largest share that two of the unit rows need of a budget, with slopes that make their gradients opposite."""
    turned = rows @ matrix
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    sines = np.sqrt(np.maximum(1.0 - (rows @ rows.T) ** 2, 0.0))
    moved = (1.0 - rounding) * sines + rounding
    return (moment * moved**2 + steps * (1.0 + np.abs(turned @ turned.T)) / 2.0).max()


@given(st.integers(0, 10**6), st.integers(2, 5), st.floats(0.0, 1.0), st.floats(0.01, 1.0), st.floats(0.0, 3.0),
       st.sampled_from([0.0, 1e-6, 0.1, 0.9, 1.0]))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_a_moment_and_the_steps_beside_it_never_need_more_than_both_have(
    seed, d, moment_fraction, joint, spread, rounding
):
    """By brute force, over rows of all angles in the plane that the matrix turns most, and others."""
    rng = np.random.default_rng(seed)
    first_basis, second_basis = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    sizes = np.exp(rng.uniform(-spread, spread, size=d))
    matrix, moment = (first_basis * sizes) @ second_basis, moment_fraction * joint
    steps = share_beside(moment, joint, sizes.max() / sizes.min(), d, rounding)
    assert joint - moment <= steps <= joint
    angles = np.linspace(0.0, math.pi, 300)[:, None]
    plane = np.cos(angles) * first_basis[:, sizes.argmax()] + np.sin(angles) * first_basis[:, sizes.argmin()]
    rows = np.vstack([plane, rng.normal(size=(50, d))])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    needed = needed_beside(rows, matrix, moment, steps, rounding)
    assert needed <= joint * (1.0 + 1e-9)
    if rounding < 1e-3:
        # Nor less, but for the angles that are not tried and what truncation may turn.
        assert needed >= joint * (1.0 - 1e-3)


def test_a_small_moment_beside_steps_is_free():
    assert share_beside(0.25, 1.0, 1.0, 0, 0.0) == pytest.approx(1.0, rel=1e-4)
    assert share_beside(0.26, 1.0, 1.0, 0, 0.0) < 0.9998
    assert share_beside(0.1, 0.9, 1.4, 0, 0.0) == pytest.approx(0.9, rel=1e-4)
    assert share_beside(0.1, 0.9, 1.6, 0, 0.0) < 0.8998
    # A matrix may turn two rows at a right angle as near to one line as it likes.
    assert share_beside(0.1, 0.9, math.inf, 5, 0.0) == pytest.approx(0.8)
    assert share_beside(0.0, 0.9, math.inf, 5, 0.0) == 0.9
    # Truncation turns rows a little.
    assert 0.9 - 1e-3 < share_beside(0.1, 0.9, 1.0, 5000, 0.0) < 0.9 - 1e-4
    # Rounding that is all of the Gram matrix's sensitivity moves it by as much at every angle.
    assert share_beside(0.1, 0.9, 1.0, 0, 1.0) == pytest.approx(0.8, rel=1e-4)


@pytest.mark.parametrize(("multiplier", "least", "most"), [(3.0, 1e-7, 1e-6), (2.0**27, 1e-3, 0.1), (2.0**40, 0.9, 1)])
def test_rounding_is_a_share_of_the_sensitivity(multiplier, least, most):
    """As fractions: on a coarse grid of the noise, nearly all of it."""
    release = mechanism(50, 0, "replace_one", multiplier)
    unit = Fraction(2) ** (release.shift - 40)
    share = Fraction(release.rounding_share)
    assert share * Fraction(release.sensitivity) >= 50 * unit
    assert least < share <= most


def scale_rows(X, scaling, *arguments):
    return private_scaling.scale_rows(rows_to_scale(X, scaling), scaling, *arguments)


PAID = [scaling for scaling in SCALINGS if scaling != "none"]


def rows_of_all_sizes(n=200, d=7):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.logspace(-300, 150, n)[:, None]
    X[3] = 0.0
    return X


def test_unit_rows_have_norm_1_at_most():
    X = rows_of_all_sizes()
    for rows in (X, scipy.sparse.csr_array(X)):
        unit = unit_rows(rows)
        unit = unit.toarray() if scipy.sparse.issparse(unit) else unit
        norms = np.linalg.norm(unit, axis=1)
        assert norms.max() <= 1.0
        assert norms[3] == 0.0
        assert np.delete(norms, 3).min() > 1 - 1e-13


class Script:
    """Records the exact sums that get noise, and gives out the same noisy ones whatever the rows are."""

    def __init__(self, monkeypatch, seed):
        self.sums = []
        self.rng = np.random.default_rng(seed)

        def noisy_sum(cells, bound, multiplier, source):
            cell_numbers = whole_numbers(cells)
            assert np.array_equal(cell_numbers.sum(axis=0, initial=0), cells.sum(axis=0, dtype=np.int64))
            self.sums.append((cell_numbers.sum(axis=0, initial=0), Fraction(bound)))
            return self.rng.normal(size=cells.shape[1]) * 10 * bound

        def release(mechanism, cells, codes, source):
            cell_numbers = whole_numbers(cells)
            moment = cell_numbers.T @ cell_numbers
            assert np.array_equal(exact_moments(cells, codes), moment)
            # Contribution of one row, or half of the effect of a replaced one, which is smaller.
            factor = Fraction(relation_factor(mechanism.neighbours))
            self.sums.append((moment, Fraction(mechanism.exact_sensitivity * (1 + 1e-15) * 2.0**40) / factor))
            # With the cost of rounding, on the grid of the noise.
            self.sums.append((mechanism.rounded(moment), Fraction(mechanism.cells_sensitivity) / factor))
            noise = self.rng.normal(size=(cells.shape[1],) * 2)
            return Moments(noise @ noise.T, np.zeros((cells.shape[1], 0)))

        monkeypatch.setattr(private_scaling, "_noisy_sum", noisy_sum)
        monkeypatch.setattr(MomentsMechanism, "release", release)


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.sampled_from(PAID), st.integers(2, 12),
       st.sampled_from([1e-310, 1e-3, 1.0, 1e4, 1e301]), st.booleans())  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_no_release_moves_more_than_its_sensitivity(seed, kind, scaling, n, size, offsets):
    """Given all earlier releases: the outputs are scripted, the exact sums are compared as whole numbers."""
    rng = np.random.default_rng(seed)
    with np.errstate(under="ignore"):
        X, y = rng.normal(size=(n, 3)) * size, rng.integers(0, 2, size=n)
    first, second, relation = neighbours(X, y, 2, kind, rng)
    recorded = []
    for rows, _ in (first, second):
        with pytest.MonkeyPatch.context() as patch:
            script = Script(patch, seed)
            scaled = scale_rows(rows, scaling, 10, (1.0,) * 4, Silence(), relation, offsets)
            recorded.append(script.sums)
        assert scaled.rows.shape[1] == 3 + offsets
        cells = whole_numbers(scaled.rows * 2.0**20)
        assert all((row * row).sum() <= 2**40 for row in cells)
    factor = 1 if relation == "add_remove" else 2
    assert len(recorded[0]) == (1 if scaling == "centre" else 5)
    for (exact, bound), (other, _) in zip(*recorded, strict=True):
        # A symmetric matrix counts with all its numbers.
        assert ((exact - other) ** 2).sum() <= (factor * bound) ** 2


@pytest.mark.parametrize("scaling", PAID)
@pytest.mark.parametrize(("size", "offsets"), [(1e-300, False), (1.0, False), (1.0, True), (1e300, True)])
def test_a_scaled_row_depends_on_that_row_and_on_releases_alone(scaling, size, offsets):
    """Bit for bit: rows are removed, permuted, repeated, given in another layout, while the releases stay the same."""
    rng = np.random.default_rng(7)
    X = np.abs(rng.normal(size=(203, 6))) * size
    X[3], X[4] = 0.0, 1.7e308

    def scaled(rows):
        with pytest.MonkeyPatch.context() as patch:
            Script(patch, 1)
            return scale_rows(rows, scaling, 203, (1.0,) * 4, Silence(), "replace_one", offsets).rows

    all_rows = scaled(X)
    assert all_rows.any()
    for kept in (rng.permutation(203), np.arange(1), np.arange(0, 203, 3), rng.integers(0, 203, 31), np.arange(7)):
        assert np.array_equal(scaled(X[kept]), all_rows[kept])
    assert np.array_equal(scaled(np.asfortranarray(X)), all_rows)
    assert np.array_equal(scaled(scipy.sparse.csr_array(X)), all_rows)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("scaling", "share"), [("centre", 0.1), ("whiten", 0.4)])
def test_releases_take_their_share_of_the_budget(scaling, share, relation):
    multipliers = release_multipliers(scaling, 2.0, 1e-5, relation)
    factor = 1.0 if relation == "add_remove" else 2.0
    signal = factor * math.sqrt(sum(m**-2 for m in multipliers))
    assert gaussian_epsilon(math.sqrt(share) / signal, 1e-5) == pytest.approx(2.0, rel=1e-6)
    X, y = load_wine(return_X_y=True)
    model = PMSVMGPClassifier(scaling=scaling, epsilon=2.0, neighbours=relation, n_rows=178, classes=[0, 1, 2]).fit(
        X, y
    )
    steps = factor * math.sqrt(model.n_steps_) / model.noise_multiplier_
    # Everything together is one Gaussian release of the whole budget.
    assert gaussian_epsilon(1 / math.hypot(signal, steps), 1e-5) == pytest.approx(2.0, rel=1e-6)
    assert 2.0 * (1 - 1e-6) <= model.guarantee_.epsilon_with_system_noise <= 2.0
    assert "noisy" in model.guarantee_.mechanism.split("then")[0]


def test_noise_of_the_releases():
    """The noise equals the stream's bit for bit; the sums of no rows are noise alone."""
    none, key = np.zeros((0, 5)), bytes(range(32))
    noise = private_scaling._noisy_sum(none, 2.0**20, 3.0, NoiseSource(key))
    assert np.array_equal(noise, NoiseSource(key).rounded_normals(3.0 * 2.0**20 * (1 + 2.0**-50), 5))


def test_logarithms_are_accurate_and_those_of_each_number_alone():
    rng = np.random.default_rng(5)
    numbers = np.concatenate([10.0 ** rng.uniform(-300, 308, 5000), 1.0 + rng.uniform(-0.4, 0.6, 5000), [1.0, 1.7e308]])
    logarithms = private_scaling._log(numbers)
    exact = np.array([math.log(number) for number in numbers.tolist()])
    assert (np.abs(logarithms - exact) <= 1e-15 + 4e-15 * np.abs(exact)).all()
    for subset in (numbers[3::7], numbers[::-1][:5], np.repeat(numbers[11], 3)):
        assert np.array_equal(
            private_scaling._log(subset), [private_scaling._log(np.array([one]))[0] for one in subset]
        )


@pytest.mark.parametrize(("relation", "distance"), [("replace_one", math.sqrt(2)), ("add_remove", 1.0)])
def test_second_moments_are_charged_for_what_a_row_moves_them(relation, distance):
    """They used to be charged 2 where a replaced row moves them by the root of 2."""
    recorder = Recorder(bytes(32))
    multipliers = release_multipliers("whiten", 1.0, 1e-5, relation)
    scale_rows(np.abs(rows_of_all_sizes()), "whiten", 200, multipliers, recorder, relation)
    diagonal, _ = recorder.calls[-2:]
    moments = MomentsMechanism(n_features=8, n_codes=0, neighbours=relation, multiplier=multipliers[3])
    grid = 2.0 ** (moments.shift - 40)
    assert diagonal.scale * grid == pytest.approx(multipliers[3] / relation_factor(relation) * distance, rel=1e-5)


def test_centring_without_noise_is_exact():
    X, _ = load_wine(return_X_y=True)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = unit - unit.mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    # The grid's steps are 2^-20, of rows and of their differences to the mean, which are shorter.
    shortest = np.linalg.norm(unit - unit.mean(axis=0), axis=1).min()
    assert np.allclose(
        scale_rows(X, "centre", len(X), (1.0,), Silence(), "replace_one").rows, expected, atol=8 * 2**-20 / shortest
    )


def test_whitening_decorrelates_and_forgets_units():
    rng = np.random.default_rng(2)
    mixed = rng.normal(size=(4000, 4)) @ rng.normal(size=(4, 4)) * 0.1 + 2.0
    for sizes in ([1.0, 1.0, 1.0, 1.0], [1.0, 1e2, 1e3, 1e4]):
        scaled = scale_rows(
            np.abs(mixed) * sizes, "whiten", 4000, (1e-6,) * 4, NoiseSource(bytes(32)), "replace_one"
        ).rows
        covariance = np.cov(scaled.T)
        assert np.abs(covariance / np.diag(covariance).mean() - np.eye(4)).max() < 0.25


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("scaling", PAID)
def test_released_model_reads_rows_as_they_are(scaling, offsets):
    """Its scores equal the scores of the scaled rows, up to one positive factor a row."""
    X, _ = load_wine(return_X_y=True)
    scaled = scale_rows(X, scaling, len(X), (0.1,) * 4, NoiseSource(bytes(32)), "replace_one", offsets)
    assert not offsets or np.abs(np.linalg.norm(scaled.rows, axis=1) - 1.0).max() < 1e-4
    weights = np.random.default_rng(0).normal(size=(3, 13 + offsets))
    coef, intercept, *rest = scaled.model(weights)
    if scaling == "centre":
        # Without offsets, the mean is in the intercept.
        seen = unit_rows(unit_rows(X) - rest[0]) if offsets else unit_rows(X)
    else:
        centre, spread = scaled.features
        seen = np.clip((X - centre) / spread, -feature_bound(13), feature_bound(13))
    expected, scores = scaled.rows @ weights.T, seen @ coef.T + intercept
    factors = np.linalg.norm(scores, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.allclose(scores, expected * factors[:, None], rtol=1e-3, atol=1e-3 * np.abs(scores).max())


@pytest.mark.parametrize("scaling", PAID)
def test_offsets_are_what_a_rare_class_needs(scaling):
    """It lies in a cap around one direction; without offsets, the border goes through the middle."""
    X = 3.0 + np.random.default_rng(0).normal(size=(4000, 5))
    y = X[:, 0] - X.mean(axis=1) > 1.2
    common = {"scaling": scaling, "classes": [0, 1], "random_state": 0, "epsilon": 8.0}
    accuracies = [PMSVMGPClassifier(fit_intercept=flag, **common).fit(X, y).score(X, y) for flag in (True, None)]
    assert 1 - y.mean() > 0.85
    assert accuracies[0] > max(0.9, accuracies[1] + 0.05)


def test_other_methods_scale_too():
    X, y = load_wine(return_X_y=True)
    model = SoftmaxDPSGDClassifier(scaling="whiten", epsilon=50.0, classes=[0, 1, 2], random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="data_norm="):
        SoftmaxDPSGDClassifier(scaling="centre", data_norm=1.0, classes=[0, 1, 2]).fit(X, y)
    with pytest.raises(ValueError, match="scaling='center'"):
        PMSVMGPClassifier(scaling="center", classes=[0, 1, 2]).fit(X, y)
