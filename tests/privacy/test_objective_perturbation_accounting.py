"""The numbers of objective perturbation, against exact privacy losses of one-dimensional problems."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy import oracles
from tests.privacy.oracles import epsilon_of

from privsvm.numerics.noise.noise_source import seeded_source
from privsvm.privacy import accountants
from privsvm.privacy.accountants import account, group_account, recompute_account
from privsvm.privacy.accounting import gaussian_epsilon, gaussian_noise_multiplier
from privsvm.privacy.events import Composed, Gaussian, PerturbedObjectives, PoissonSampled, relation_factor
from privsvm.privacy.gaussian_delta import exact_gaussian_epsilon, gaussian_delta
from privsvm.privacy.objective_perturbation import ObjectivePerturbation, objective_perturbation_signal
from privsvm.privacy.objective_perturbation_delta import corner_delta, corner_epsilon, delta_of_minima
from privsvm.privacy.renyi import perturbed_divergence
from privsvm.solvers.linear.hinge import smoothed_hinge_slopes

DELTA = 1e-5
# Fine enough that the sums below are integrals to ten digits.
NORMAL = np.linspace(-14, 14, 200_001)


def objective_perturbation_epsilon(
    signal, delta, n_vectors=1, curvature=0.0, output_signal=1e-9, neighbours="replace_one"
):
    """Epsilon of signals of what neighbours differ by, not of one row."""
    factor = relation_factor(neighbours)
    event = PerturbedObjectives(signal / factor, curvature, n_vectors, factor / output_signal)
    return account(event, delta, neighbours).epsilon


def mechanism_for(**changes):
    chosen = {"epsilon": 1.0, "delta": DELTA, "neighbours": "add_remove", "row_bound": 0.5, "curvature": 0.2,
              "distance": 1e-6, "n_vectors": 1, "size": 1}  # fmt: skip
    return ObjectivePerturbation(**{**chosen, **changes})


@pytest.mark.parametrize("signal", [1e-3, 0.2, 1.5, 6.0])
def test_divergence_is_that_of_the_positive_part_of_a_gaussian_loss(signal):
    density = np.exp(-(NORMAL**2) / 2)
    density /= density.sum()
    loss = np.maximum(signal**2 / 2 + signal * NORMAL, 0)
    for order in (1.0001, 1.5, 2.0, 1 + 4 / signal):
        expected = math.log(float(density @ np.exp((order - 1) * loss))) / (order - 1)
        (divergence,) = perturbed_divergence(np.array([order]), signal)
        assert divergence == pytest.approx(float(oracles.perturbed_divergence(order, signal)), rel=1e-7)
        assert divergence == pytest.approx(expected, rel=1e-4)
        # No less than a Gaussian release, no more than with the absolute value in place of the positive part.
        assert order * signal**2 / 2 <= divergence <= order * signal**2 / 2 + math.log(2) / (order - 1)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("n_vectors", "epsilon"), [(1, 0.05), (1, 8.0), (3, 1.0), (10, 0.05), (26, 8.0)])
def test_calibrated_signal_is_enough_and_not_much_less(n_vectors, epsilon, relation):
    for curvature in (0.0, 0.3 * epsilon / n_vectors):
        signal = objective_perturbation_signal(epsilon, DELTA, n_vectors, curvature, relation)
        output = 0.1 * math.sqrt(n_vectors) * signal
        assert objective_perturbation_epsilon(signal, DELTA, n_vectors, curvature, output, relation) <= epsilon
        more = signal * (1 + 2e-6)
        again = objective_perturbation_epsilon(more, DELTA, n_vectors, curvature, output * (1 + 2e-6), relation)
        assert again > epsilon
        # Never less noise than plain Gaussian releases of all gradients together.
        gaussian = 1 / (gaussian_noise_multiplier(epsilon, DELTA) * math.sqrt(n_vectors))
        assert 0.4 * gaussian < signal < gaussian


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_mechanism_is_what_the_accountant_says(relation):
    mechanism = mechanism_for(neighbours=relation, n_vectors=3, size=7, epsilon=2.0)
    times = 2 if relation == "replace_one" else 1
    signal = objective_perturbation_signal(2.0, DELTA, 3, 0.2, relation)
    assert mechanism.noise_scale == pytest.approx(times * 0.5 / signal, rel=1e-11)
    assert mechanism.sensitivity == pytest.approx(times * 0.5 * math.sqrt(3), rel=1e-12)
    assert mechanism.output_sensitivity == pytest.approx(2e-6 * math.sqrt(3), rel=1e-3)
    assert mechanism.output_sensitivity > 2e-6 * math.sqrt(3)
    assert 2.0 * (1 - 1e-5) < epsilon_of(mechanism) <= 2.0
    spent = objective_perturbation_epsilon(
        times * 0.5 / mechanism.noise_scale, DELTA, 3, 0.2, mechanism.output_sensitivity / mechanism.output_noise_scale,
        relation,
    )  # fmt: skip
    assert epsilon_of(mechanism) == pytest.approx(spent, rel=1e-9)


@pytest.mark.parametrize(("size", "distance"), [(1, 1e-6), (50, 1e-9), (1000, 1e-3), (7, 1e-14)])
def test_linear_terms_lie_on_their_grid_and_its_cost_is_counted(size, distance):
    """A rounded term is off by half a cell in each number; the 1-strongly convex minimum moves by no more."""
    mechanism = mechanism_for(size=size, distance=distance, n_vectors=2)
    terms = mechanism.linear_terms(seeded_source(0, "test"))
    cells = terms / mechanism.term_grid
    assert np.array_equal(cells, np.rint(cells))
    noise = seeded_source(0, "test").rounded_normals(mechanism.noise_scale / mechanism.term_grid, 2 * size)
    assert np.array_equal(cells.ravel(), noise)
    assert mechanism.total_distance >= distance + 0.5 * mechanism.term_grid * math.sqrt(size)
    assert mechanism.output_sensitivity >= math.sqrt(2) * 2 * mechanism.total_distance
    # Costs nothing that counts, where the distance is not far below the noise.
    assert distance < 1e-8 or mechanism.total_distance <= distance * 1.001


def test_points_of_another_size_are_refused():
    with pytest.raises(ValueError, match="3 numbers"):
        mechanism_for(size=2).release(np.zeros((1, 3)), seeded_source(0, "test"))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"), ({"delta": 1.0}, "delta=1.0"), ({"neighbours": "add"}, "neighbours='add'"),
        ({"row_bound": 0.0}, "row_bound=0.0"), ({"curvature": math.inf}, "curvature=inf"),
        ({"distance": -1.0}, "distance=-1.0"), ({"n_vectors": 0}, "n_vectors=0"), ({"size": 0}, "size=0"),
        ({"curvature": 2.0}, "epsilon=1.0: the curvature of the loss alone costs 1.099"),
        ({"curvature": 0.2, "n_vectors": 10}, "the curvature of the loss alone costs 1.823"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(changes, named):
    with pytest.raises(ValueError, match=named):
        _ = mechanism_for(**changes).noise_scale


# One feature: the density of the minimum is known.


def gradient_and_curvature(w, X, y, C, h):
    """First and second derivative (n_w,) of the objective without its linear term; the rows are numbers."""
    margins = w[:, None] * (y * X)
    gradient = w + C * (smoothed_hinge_slopes(margins, h) @ (y * X))
    curved = (margins < 1) & (margins > 1 - h)
    return gradient, 1.0 + C / h * (curved @ X**2)


def log_density(w, X, y, C, h, s):
    gradient, curvature = gradient_and_curvature(w, X, y, C, h)
    return -((gradient / s) ** 2) / 2 + np.log(curvature)


def cells(data, C, h, s):
    """Grid of weights with a point in the middle of every cell, the ends of the loss's pieces among the borders."""
    ends = [0.0]
    for X, y in data:
        margins = y * X
        for margin in margins[margins != 0]:
            ends += [1 / margin, (1 - h) / margin]
    reach = 9 * s + C * max(np.abs(X).sum() for X, _ in data)
    borders = np.unique(np.concatenate([np.linspace(-reach, reach, 20_001), [e for e in ends if abs(e) < reach]]))
    return (borders[1:] + borders[:-1]) / 2, np.diff(borders)


def hockey_stick(first, second, epsilon, C, h, s):
    """delta at epsilon of the two minima's densities, both ways round, and the density's total mass."""
    w, widths = cells((first, second), C, h, s)
    p, q = (np.exp(log_density(w, *data, C, h, s)) * widths / (s * math.sqrt(2 * math.pi)) for data in (first, second))
    factor = math.exp(epsilon)
    return max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum()), p.sum()


def scalar_neighbours(X, y, kind, norm):
    """Data sets of one feature that differ in their first row, and their relation."""
    other_X, other_y = X.copy(), y.copy()
    if kind == "label":
        other_y[0] = -y[0]
    elif kind == "zero":
        other_X[0] = 0.0
    elif kind == "turned":
        other_X[0] = -np.sign(X[0] or 1.0) * norm
    elif kind == "removed":
        return (X, y), (X[1:], y[1:]), "add_remove"
    return (X, y), (other_X, other_y), "replace_one"


@given(st.integers(0, 10**6), st.sampled_from(["label", "zero", "turned", "removed"]), st.integers(1, 6),
       st.floats(-3, 1.5), st.floats(-1, 0.3), st.floats(-1, 1), st.floats(0.0, 1.2))  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_the_proved_epsilon_holds_for_one_feature(seed, kind, n, log_C, log_epsilon, log_norm, spread):
    rng = np.random.default_rng(seed)
    C, epsilon, norm = 10**log_C, 10**log_epsilon, 10**log_norm
    h = max(0.05, C * norm**2 / math.expm1(0.5 * epsilon)) * (1 + rng.random())
    X = norm * np.clip(rng.normal(size=n) * spread, -1, 1)
    X[0] = norm * rng.choice([-1.0, 1.0, 0.5])
    y = rng.choice([-1.0, 1.0], size=n)
    first, second, relation = scalar_neighbours(X, y, kind, norm)
    mechanism = mechanism_for(
        epsilon=epsilon, neighbours=relation, row_bound=C * norm, curvature=C * norm**2 / h, distance=1e-9 * C * norm
    )
    delta, mass = hockey_stick(first, second, epsilon_of(mechanism), C, h, mechanism.noise_scale)
    assert mass == pytest.approx(1.0, abs=1e-5)
    assert delta <= DELTA


@given(st.integers(0, 10**6), st.integers(2, 3), st.booleans(), st.floats(-3, 1.0), st.floats(-1, 0.3))
@settings(max_examples=60, deadline=None)
def test_a_group_of_rows_holds_for_one_feature(seed, k, removed, log_C, log_epsilon):
    """k rows that turn into their opposites, or go, and others that both data sets have."""
    rng = np.random.default_rng(seed)
    C, epsilon, n = 10**log_C, 10**log_epsilon, int(rng.integers(k + 1, 7))
    h = max(0.05, C / math.expm1(0.5 * epsilon)) * (1 + rng.random())
    X, y = np.clip(rng.normal(size=n), -1, 1), rng.choice([-1.0, 1.0], size=n)
    X[:k] = rng.choice([-1.0, 1.0, 0.5], size=k)
    if rng.random() < 0.5:
        X[:k], y[:k] = 1.0, 1.0
    second = (X[k:], y[k:]) if removed else (np.concatenate([-X[:k], X[k:]]), y)
    mechanism = mechanism_for(
        epsilon=epsilon, neighbours="add_remove" if removed else "replace_one", row_bound=C, curvature=C / h,
        distance=1e-9 * C,
    )  # fmt: skip
    group = group_account(mechanism.event, k, DELTA, mechanism.neighbours)
    assert "times" not in group.accountant
    delta, mass = hockey_stick((X, y), second, group.epsilon, C, h, mechanism.noise_scale)
    assert mass == pytest.approx(1.0, abs=1e-5)
    assert delta <= DELTA


def test_an_absurdly_long_linear_term_is_taken_off_delta(monkeypatch):
    """Up to 2^10 s (sqrt(d) + 9) weights are held; a longer one costs less than the margin."""
    for delta in (0.5, 1e-5, 1e-100, 1e-307):
        noise_delta = delta_of_minima(delta)
        assert noise_delta < delta
        # log of (1 + e^epsilon) k P(longer), by the concentration of the norm of normal numbers.
        lost = 1e7 + math.log(2.0) + math.log(1e9) - (2.0**10 * 9.0) ** 2 / 2.0
        assert lost < math.log(delta - noise_delta)
    event = PerturbedObjectives(signal=0.1, curvature=0.05, n_objectives=3, output_multiplier=10.0)
    asked = []
    monkeypatch.setattr(accountants, "delta_of_minima", lambda delta: asked.append(delta) or 0.5 * delta)
    # Other deltas than elsewhere, of which nothing is kept.
    epsilons = [account(event, 1.25e-5, "add_remove").epsilon, recompute_account(event, 1.25e-5, "add_remove").epsilon,
             group_account(event, 2, 1.25e-5, "add_remove").epsilon,
             account(Composed((event, PoissonSampled(0.1, Gaussian(3.0)))), 1.25e-5, "add_remove").epsilon,
             objective_perturbation_epsilon(0.1, 1.25e-5, 3, 0.05, 0.1, "add_remove")]  # fmt: skip
    # Events by themselves are accounted for in two ways; the composition also tries a delta for each of its parts.
    assert asked.count(1.25e-5) == 7
    assert epsilons[0] == pytest.approx(epsilons[4], rel=1e-9)
    assert account(Gaussian(3.0), 1.25e-5, "add_remove").epsilon == pytest.approx(gaussian_epsilon(3.0, 1.25e-5))
    assert math.isinf(account(event, 5e-324, "add_remove").epsilon)


def test_for_one_feature_the_bound_is_nearly_attained():
    """Where the noise is long beside the margin: the noise on the minimum costs the rest."""
    for relation, kind in (("add_remove", "removed"), ("replace_one", "turned")):
        C, norm, h = 1e-6, 1.0, 0.1
        mechanism = mechanism_for(neighbours=relation, row_bound=C * norm, curvature=C * norm**2 / h, distance=1e-12)
        first, second, _ = scalar_neighbours(np.array([norm]), np.array([1.0]), kind, norm)
        at = [hockey_stick(first, second, share, C, h, mechanism.noise_scale)[0] for share in (0.993, 1.0)]
        assert at[1] <= DELTA < at[0]


@pytest.mark.parametrize(("n_classes", "C"), [(2, 1e-3), (3, 1e-3), (3, 0.05), (5, 0.02)])
@pytest.mark.parametrize("kind", ["removed", "turned"])
def test_for_several_classes_privacy_losses_add_up(n_classes, C, kind):
    """The problems of a row that all of them see: the convolution of their privacy losses, rounded down."""
    epsilon, norm = 1.0, 1.0
    h = max(0.1, C / math.expm1(0.2 * epsilon / n_classes))
    relation = "add_remove" if kind == "removed" else "replace_one"
    mechanism = mechanism_for(
        epsilon=epsilon, neighbours=relation, row_bound=C * norm, curvature=C * norm**2 / h, distance=1e-9 * C,
        n_vectors=n_classes,
    )  # fmt: skip
    s, width = mechanism.noise_scale, 1e-3

    def delta(turn, share):
        masses, lowest = np.ones(1), 0
        for problem in range(n_classes):
            X, y = np.array([norm, 0.3]), np.array([1.0 if problem == 0 else -1.0, 1.0])
            data = scalar_neighbours(X, y, kind, norm)[:2]
            w, widths = cells(data, C, h, s)
            logs = [log_density(w, *one, C, h, s) for one in (data if turn else data[::-1])]
            index = np.floor((logs[0] - logs[1]) / width).astype(int)
            one = np.bincount(index - index.min(), weights=np.exp(logs[0]) * widths / (s * math.sqrt(2 * math.pi)))
            masses, lowest = np.convolve(masses, one), lowest + int(index.min())
        total = (lowest + np.arange(masses.size)) * width
        return float(np.sum(masses * -np.expm1(np.minimum(share * epsilon_of(mechanism) - total, 0))))

    deltas = [max(delta(True, share), delta(False, share)) for share in (0.2, 1.0)]
    assert deltas[1] <= DELTA < deltas[0]


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
