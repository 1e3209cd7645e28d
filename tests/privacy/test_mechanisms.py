import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.oracles import epsilon_of

from privsvm.numerics.noise.noise_source import seeded_source
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.privacy.accounting import gaussian_epsilon, gaussian_noise_multiplier
from privsvm.privacy.mechanisms import ExponentialSelections, GaussianMechanism, LaplaceMechanism, VectorsMechanism


@pytest.mark.parametrize("norm", [1, 2], ids=["laplace", "gaussian"])
@given(st.floats(1e-8, 1e6), st.integers(1, 5000), st.floats(-5, 2), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_rounding_is_paid_for(norm, sensitivity, size, log_epsilon, seed):
    epsilon = 10.0**log_epsilon if norm == 1 else 1.0
    if norm == 1:
        mechanism = LaplaceMechanism(epsilon=epsilon, sensitivity=sensitivity, size=size)
    else:
        mechanism = GaussianMechanism(epsilon=epsilon, delta=1e-5, sensitivity=sensitivity, size=size)
    rng = np.random.default_rng(seed)
    first = rng.normal(size=size) * sensitivity
    step = rng.normal(size=size)
    second = first + step / np.linalg.norm(step, norm) * sensitivity
    grid = mechanism.grid
    distance = np.linalg.norm((np.rint(first / grid) - np.rint(second / grid)) * grid, norm)
    assert distance <= mechanism.total_sensitivity * (1 + 1e-12)
    assert mechanism.total_sensitivity <= sensitivity * (1 + 2e-6)
    assert epsilon_of(mechanism) <= epsilon
    if norm == 2:
        expected = mechanism.total_sensitivity * gaussian_noise_multiplier(1.0, 1e-5)
        assert mechanism.noise_scale == pytest.approx(expected, rel=1e-12)
        return
    assert mechanism.total_sensitivity / mechanism.noise_scale <= epsilon
    # The scale is rounded up to a multiple of the grid.
    cells = mechanism.noise_scale / grid
    assert cells == np.rint(cells)
    assert epsilon * (1 - 1e-9 - 1 / cells) <= epsilon_of(mechanism)


def cells_of(mechanism, cell, size, seed):
    """Releases of `size` numbers that all lie on one cell of the grid, in units of the grid."""
    cells = mechanism.release(np.full(size, cell * mechanism.grid), seeded_source(seed, "test")) / mechanism.grid
    assert np.array_equal(cells, np.rint(cells))
    return cells.astype(np.int64)


def test_laplace_noise_on_few_cells_has_the_discrete_distribution():
    """Fixed seed; chi-square with an error probability of 1e-7."""
    size = 10**6
    mechanism = LaplaceMechanism(epsilon=1e6 * size, sensitivity=1.0, size=size)
    scale = round(mechanism.noise_scale / mechanism.grid)
    assert scale == 2
    drawn = cells_of(mechanism, 7, size, 5) - 7
    cells = np.arange(-15, 16)
    pmf = np.tanh(0.5 / scale) * np.exp(-np.abs(cells) / scale)
    seen = np.array([np.sum(drawn == cell) for cell in cells])
    tail = drawn.size - seen.sum()
    expected = np.append(pmf, 1 - pmf.sum()) * size
    assert scipy.stats.chisquare(np.append(seen, tail), expected).pvalue > 1e-7


def test_laplace_noise_that_does_not_fit_into_whole_numbers_is_refused():
    with pytest.raises(ValueError, match=r"epsilon=1e-06, size=5000: .*whole numbers"):
        LaplaceMechanism(epsilon=1e-6, sensitivity=1.0, size=5000)


VECTORS = {"epsilon": 1.3, "delta": 1e-6, "sensitivity": 0.2, "n_vectors": 7, "size": 11}


def test_joint_release_of_vectors_is_one_gaussian_release():
    mechanism = VectorsMechanism(noise="gaussian", composition="joint", **VECTORS)
    assert mechanism.total_sensitivity == pytest.approx(np.sqrt(7) * 0.2, rel=1e-5)
    assert mechanism.noise_scale == pytest.approx(np.sqrt(7) * 0.2 * gaussian_noise_multiplier(1.3, 1e-6), rel=1e-5)
    assert (1 - 1e-6) * 1.3 <= epsilon_of(mechanism) <= 1.3


def test_naive_release_of_vectors_splits_both_budgets():
    mechanism = VectorsMechanism(noise="gaussian", composition="naive", **VECTORS)
    assert mechanism.noise_scale == pytest.approx(0.2 * gaussian_noise_multiplier(1.3 / 7, 1e-6 / 7), rel=1e-5)
    assert (1 - 1e-6) * 1.3 <= epsilon_of(mechanism) <= 1.3
    # The naive split only wastes: the same noise is worth far less epsilon when accounted jointly.
    joint = gaussian_epsilon(mechanism.noise_scale / (np.sqrt(7) * mechanism.total_sensitivity), 1e-6)
    assert joint < 0.6 * 1.3


def test_for_laplace_noise_naive_and_joint_are_the_same():
    joint, naive = (VectorsMechanism(noise="laplace", composition=how, **VECTORS) for how in ("joint", "naive"))
    assert joint.noise_scale == pytest.approx(naive.noise_scale, rel=1e-5)
    assert joint.noise_scale == pytest.approx(7 * np.sqrt(11) * 0.2 / 1.3, rel=1e-5)
    assert epsilon_of(naive) <= 1.3


@pytest.mark.parametrize("n_vectors", [1, 2, 3, 10, 26])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("composition", ["joint", "naive"])
def test_vectors_keep_their_shape_and_budget(n_vectors, noise, composition):
    chosen = {**VECTORS, "n_vectors": n_vectors, "noise": noise, "composition": composition}
    for epsilon in (1e-4, 0.1, 0.3, 1.0, 3.0, 100.0):
        mechanism = VectorsMechanism(**{**chosen, "epsilon": epsilon})
        assert epsilon_of(mechanism) <= epsilon
        vectors = np.random.default_rng(0).normal(size=(n_vectors, 11))
        released = mechanism.release(vectors, seeded_source(0, "test"))
        assert released.shape == vectors.shape
        assert np.abs(released - vectors).max() < 40 * mechanism.noise_scale


@pytest.mark.parametrize("change", [{"noise": "gausian"}, {"composition": "jiont"}])
def test_unknown_words_are_named(change):
    name, value = next(iter(change.items()))
    with pytest.raises(ValueError, match=f"{name}='{value}': did you mean"):
        VectorsMechanism(**{"noise": "gaussian", "composition": "joint", **VECTORS, **change})


def test_selections_have_the_exponential_mechanism_s_frequencies():
    """Fixed seed; chi-square with an error probability of 1e-7."""
    mechanism = ExponentialSelections(epsilon=20.0, delta=1e-5, sensitivity=10**6, n_selections=3)
    scores = np.array([3_000_000, 2_500_000, 0, -2_000_000, 2_900_000])
    drawn = mechanism.select(np.tile(scores, (200_000, 1)), seeded_source(2, "test"))
    weights = np.exp(mechanism.step_epsilon * scores / 2e6)
    expected = weights / weights.sum() * drawn.size
    assert scipy.stats.chisquare(np.bincount(drawn, minlength=5), expected).pvalue > 1e-7


@given(st.floats(-2, 2), st.integers(1, 500), st.integers(0, 1000), st.integers(2, 50))
@settings(max_examples=60, deadline=None)
def test_one_selection_has_bounded_range_and_all_stay_within_the_budget(log_epsilon, n_selections, seed, size):
    epsilon, delta = 10.0**log_epsilon, 1e-5
    sensitivity = 3 * 2**30
    mechanism = ExponentialSelections(epsilon=epsilon, delta=delta, sensitivity=sensitivity, n_selections=n_selections)
    assert epsilon * (1 - 1e-5) <= epsilon_of(mechanism) <= epsilon
    assert epsilon_of(mechanism) <= n_selections * mechanism.step_epsilon * (1 + 1e-12)
    rng = np.random.default_rng(seed)
    first = np.rint(rng.normal(size=size) * 2**32)
    second = first + rng.choice([-sensitivity, sensitivity], size=size)
    log_p, log_q = (
        scores / mechanism.noise_scale - np.logaddexp.reduce(scores / mechanism.noise_scale)
        for scores in (first, second)
    )
    assert np.ptp(log_p - log_q) <= mechanism.step_epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("n_selections", [1, 20, 400])
def test_a_pair_of_candidates_does_not_refute_the_selections(epsilon, n_selections):
    """Two candidates whose scores change places: the privacy loss counts how often the first one is selected."""
    mechanism = ExponentialSelections(epsilon=epsilon, delta=1e-5, sensitivity=2**39, n_selections=n_selections)
    share = 1 / (1 + np.exp(-mechanism.step_epsilon / 2))
    counts = np.arange(n_selections + 1)
    p, q = (scipy.stats.binom.pmf(counts, n_selections, chance) for chance in (share, 1 - share))

    def delta_of(claim):
        return np.maximum(p - np.exp(claim) * q, 0).sum()

    assert delta_of(epsilon_of(mechanism)) <= 1e-5
    # The accounting is of the right order: a third of the budget is refuted.
    assert delta_of(epsilon_of(mechanism) / 3) > 1e-5


def test_scores_are_whole_numbers_and_the_scale_is_rounded_up():
    mechanism = ExponentialSelections(epsilon=1.0, delta=1e-5, sensitivity=1, n_selections=1)
    with pytest.raises(TypeError, match="scores: are float64"):
        mechanism.select(np.array([[0.0, 1.0]]), seeded_source(0, "test"))
    assert mechanism.noise_scale == 3
    assert epsilon_of(mechanism) <= 1.0
    with pytest.raises(ValueError, match=r"epsilon=1e-06, n_selections=1000000000: .*whole numbers"):
        ExponentialSelections(epsilon=1e-6, delta=1e-9, sensitivity=2**39, n_selections=10**9)


def test_seeded_streams_repeat_and_differ_by_purpose():
    draw = lambda *purpose: seeded_stream(3, *purpose).normal(size=4).tobytes()  # noqa: E731
    assert draw("a", 1, 0.5) == draw("a", 1, 0.5)
    assert len({draw("a", 1, 0.5), draw("a", 1, 0.25), draw("a", 2, 0.5), draw("b", 1, 0.5)}) == 4


MECHANISMS = [
    GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=1.0, size=6),
    LaplaceMechanism(epsilon=1.0, sensitivity=1.0, size=6),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_vectors_of_another_size_are_refused(mechanism):
    with pytest.raises(ValueError, match="values has 3 numbers"):
        mechanism.release(np.zeros(3), seeded_source(0, "test"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nothing_that_depends_on_the_numbers_is_refused(mechanism):
    """A refusal would tell neighbours apart. Too large numbers are clipped; NaN counts as 0."""
    values = np.array([np.nan, np.inf, -np.inf, 1e308, -1e-320, 3.0])
    released = mechanism.release(values, seeded_source(0, "test"))
    assert np.isfinite(released).all()
    same = mechanism.release(np.array([0.0, 1e300, -1e300, 1e30, 0.0, 3.0]), seeded_source(0, "test"))
    assert np.array_equal(released, same)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_neighbours_have_the_same_possible_releases(mechanism):
    """The same noise on vectors one cell apart: all releases move by one cell, and none is lost to rounding."""
    base = np.array([0.0, 1.0, -1.0, 1e3, 7.25, -0.5])
    cells = [
        mechanism.release(base + k * mechanism.grid, seeded_source(5, "test")) / mechanism.grid for k in (0, 1, 2)
    ]  # fmt: skip
    assert np.array_equal(cells[1] - cells[0], np.ones(6))
    assert np.array_equal(cells[2] - cells[0], np.full(6, 2.0))
    # A neighbour releases the same value with other noise: one cell less.
    wanted = cells[0] - (cells[1] - cells[0])
    assert np.array_equal(wanted, mechanism.release(base - mechanism.grid, seeded_source(5, "test")) / mechanism.grid)


def test_gaussian_noise_is_rounded_on_the_grid_and_its_scale_rounded_up():
    """The release is the cells of the vector plus whole numbers of the stated scale, as the sampler draws them."""
    for epsilon, size, sensitivity in ((1.0, 5, 1.0), (0.01, 300, 1e-7), (20.0, 7, 3e5)):
        mechanism = GaussianMechanism(epsilon=epsilon, delta=1e-6, sensitivity=sensitivity, size=size)
        sigma = mechanism.noise_scale / mechanism.grid
        assert sigma * mechanism.grid == mechanism.noise_scale
        assert mechanism.noise_scale > mechanism.total_sensitivity * gaussian_noise_multiplier(epsilon, 1e-6)
        values = np.linspace(-1, 1, size) * sensitivity
        released = mechanism.release(values, seeded_source(0, "test"))
        noise = seeded_source(0, "test").rounded_normals(sigma, size)
        assert np.array_equal(released, (np.rint(values / mechanism.grid) + noise) * mechanism.grid)


def test_noise_of_very_many_cells_gets_a_wider_grid():
    usual = GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=1.0, size=100)
    noisy = GaussianMechanism(epsilon=1e-6, delta=1e-12, sensitivity=1.0, size=100)
    assert noisy.grid > usual.grid
    assert noisy.noise_scale / noisy.grid < 2.0**41
    assert noisy.total_sensitivity < 1.001
    assert np.isfinite(noisy.release(np.zeros(100), seeded_source(0, "test"))).all()


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, np.inf, np.nan])
def test_wrong_sensitivity_is_refused(sensitivity):
    with pytest.raises(ValueError, match="sensitivity"):
        GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=sensitivity, size=2)
