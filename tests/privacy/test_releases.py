"""Thousands of releases of every method, looked at from outside: they have the noise that their records speak of.

Nothing is known here of how noise is made. Its distribution, tails and grid agree with the record; it is independent
across numbers, classes, repeats, epsilons and calls. A test raises a false alarm with a probability below 1e-7: each of
its comparisons has `ALARM`, divided where there are many. Seeds are fixed.
"""

import math

import numpy as np
import pytest
import scipy.stats
from tests.adversarial import Silence
from tests.proved import CASES, METHODS
from tests.replay import Recorder

from privsvm.base.released import OneVsRestKernelPath
from privsvm.families.moments.private_scaling import release_multipliers, rows_to_scale, scale_rows
from privsvm.families.moments.second_moments import simplex_codes
from privsvm.methods import DPLeastSquaresClassifier
from privsvm.methods.landmark_dual import landmark_map
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.events import ExponentialMechanism, Gaussian, Laplace, PerturbedObjectives, leaves

ALARM = 1e-9
RNG = np.random.default_rng(11)
ROWS = RNG.uniform(-0.6, 0.6, size=(8, 2))
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1])
N = 1000


def check_noise(noise, law):
    """Compare columns (N, m) with a law, and with each other.

    `noise` is in units of the scale. A column's distribution, spread and tails are the law's; no two columns have to do
    with each other, or with the next release, neither in values nor in sizes.
    """
    n, m = noise.shape
    alarm_per_column, alarm_per_pair = ALARM / m, ALARM / m**2
    # Kolmogorov and Smirnov's test of all columns: the one that is furthest from the law has the least p-value.
    shares, quantiles = law.cdf(np.sort(noise, axis=0)), np.arange(1, n + 1)[:, None] / n
    furthest = max((quantiles - shares).max(), (shares - quantiles).max() + 1 / n)
    assert scipy.stats.kstwo.sf(furthest, n) > alarm_per_column, "another distribution"
    spread = (noise**2).mean(axis=0) / law.var()
    # Mean squares are about normal, with the kurtosis of the law.
    error = math.sqrt((law.stats("k") + 2.0) / n)
    assert np.abs(spread - 1.0).max() < 1.5 * scipy.stats.norm.isf(alarm_per_column) * error, (
        f"spread {np.sqrt(spread)}"
    )
    for tail in (1e-1, 1e-2, 3e-3):
        for beyond in ((noise > law.isf(tail)).sum(axis=0), (noise < law.ppf(tail)).sum(axis=0)):
            assert scipy.stats.binom.sf(beyond - 1, n, tail).min() > alarm_per_column, "too many far out"
            assert scipy.stats.binom.cdf(beyond, n, tail).min() > alarm_per_column, "too few far out"
    bound = scipy.stats.norm.isf(alarm_per_pair) / math.sqrt(n - 1)
    # Ranks have no tails.
    for shown in (noise, np.abs(noise)):
        ranks = np.argsort(np.argsort(shown, axis=0), axis=0) / (n - 1) * math.sqrt(12) - math.sqrt(3)
        correlations = np.abs(ranks.T @ ranks / n)
        np.fill_diagonal(correlations, 0.0)
        assert correlations.max() < bound, "numbers that have to do with each other"
        later = np.abs(ranks[1:].T @ ranks[:-1] / (n - 1))
        assert later.max() < bound, "releases that have to do with each other"


def released(path):
    """The numbers (E, R, ...) that got noise."""
    if isinstance(path, OneVsRestKernelPath):
        root = landmark_map(path.support_vectors, path.kernel_parameters[1])
        return np.swapaxes(path.pair_coef, -1, -2) @ np.linalg.inv(root)
    return path.coef


def several(case, X, y, n=N, **changes):
    """Releases of two epsilons and of two calls (N, 3, m), and the records of the three."""
    model = case.model(**changes)
    both = model.release_path(X, y, [1.0, 2.0], n, 3)
    again = model.release_path(X, y, [2.0], n, np.random.default_rng(3))
    numbers = np.concatenate([released(both), released(again)])
    return numbers.reshape(3, n, -1).swapaxes(0, 1), [*both.guarantees, *again.guarantees], [both, again]


def family(case):
    """How a method's releases come about."""
    guarantee = case.model().fit(ROWS, LABELS % case.n_classes).guarantee_
    kinds = {type(leaf) for leaf, _ in leaves(guarantee.event)}
    if kinds == {ExponentialMechanism}:
        return "selections"
    if kinds == {PerturbedObjectives}:
        return "objective"
    if "max_grad_norm" in case.method.declared:
        return "adam" if "beta2" in case.method.declared else "descent"
    if guarantee.facts.solution == "certified":
        return "added"
    return "sums" if kinds == {Gaussian} else None


# Other choices change the sensitivity, with which the noise is compared by replays, or have tests of their own below.
# Under both relations the noise is made by the same lines.
OTHER = {"scaling", "inside_clip", "ridge", "batch_size", "fit_intercept", "normalize"}
OWN = [
    case
    for case in CASES
    if not OTHER & case.chosen.keys()
    and (case.relation == "replace_one" or not {"composition", "classes", "constant"} & case.chosen.keys())
]
FAMILIES = {str(case): family(case) for case in OWN}


def of(*names):
    """List the cases of families. Steps are made by the same lines whatever is chosen: their other cases are `long`."""
    return [
        pytest.param(case, id=str(case), marks=pytest.mark.long if is_like_another(case) else ())
        for case in OWN
        if FAMILIES[str(case)] in names
    ]


def is_like_another(case):
    return FAMILIES[str(case)] in ("descent", "adam") and (bool(case.chosen) or case.relation == "add_remove")


def test_every_method_has_a_family():
    assert {case.method for case in OWN} == set(METHODS)
    assert None not in FAMILIES.values()


@pytest.mark.parametrize("case", of("added"))
def test_weights_are_released_with_the_noise_of_the_record(case):
    labels = LABELS % case.n_classes
    numbers, guarantees, _ = several(case, ROWS, labels)
    silent = case.model().release_path(ROWS, labels, [1.0, 2.0], 1, lambda epsilon, repeat: Silence())
    exact = released(silent).reshape(2, -1)
    noise = []
    for index, guarantee in enumerate(guarantees):
        away = numbers[:, index] - exact[min(index, 1)]
        noise.append(away / guarantee.noise_scale)
        # Whole numbers of a grid that is a power of two, and fine: only the map to landmarks takes them off it.
        cells = numbers[:, index] / 2.0 ** math.floor(math.log2(1e-6 * guarantee.sensitivity / away.shape[1]))
        assert isinstance(silent, OneVsRestKernelPath) or np.array_equal(cells, np.rint(cells))
    pure = isinstance(leaves(guarantees[0].event)[0][0], Laplace)
    check_noise(np.hstack(noise), scipy.stats.laplace() if pure else scipy.stats.norm())


@pytest.mark.parametrize("case", of("objective"))
def test_linear_terms_and_minima_get_the_noise_of_the_record(case):
    """Of rows of zeros, the minimum is minus the linear term."""
    labels = LABELS % case.n_classes
    numbers, guarantees, _ = several(case, 0 * ROWS, labels, n=400)
    noise = []
    for index, guarantee in enumerate(guarantees):
        recorder = Recorder()
        case.model().release_path(0 * ROWS, labels, [guarantee.epsilon_requested], 1, lambda *_, r=recorder: r)
        minima = recorder.calls[1]
        scale = math.hypot(guarantee.noise_scale, minima.scale * minima.stated.grid)
        assert guarantee.noise_scale < scale < 1.02 * guarantee.noise_scale
        noise.append(numbers[:, index] / scale)
    check_noise(np.hstack(noise), scipy.stats.norm())


@pytest.mark.parametrize("case", of("descent"))
@pytest.mark.parametrize("batch_size", [None, 4])
def test_steps_of_descent_get_the_noise_of_the_record(case, batch_size):
    """Rows of zeros have no gradient without offsets: weights are the noise of two steps or four, added up."""
    labels, n_steps = LABELS % len(case.model().classes), 2 if batch_size is None else 4
    settings = {"fit_intercept": False, "learning_rate": 0.5, "average": "none", "batch_size": batch_size}
    numbers, guarantees, _ = several(case, 0 * ROWS, labels, n=600, **settings)
    expected = len(ROWS) if batch_size is None else batch_size
    unit = [0.5 / expected * math.sqrt(n_steps) * guarantee.noise_scale for guarantee in guarantees]
    check_noise((numbers / np.array(unit)[:, None]).reshape(len(numbers), -1), scipy.stats.norm())


@pytest.mark.parametrize("case", of("adam"))
def test_steps_of_adam_get_the_noise_of_the_record(case):
    """The first step goes by the sign of the noisy sum: how often it is the signal's tells the noise from the signal.

    All rows are one, of length 1 along the first feature, and their gradients are clipped.
    """
    n_classes, n = case.n_classes, 1000
    n_rows = 20 if case.relation == "replace_one" and n_classes > 2 else 10
    settings = {"fit_intercept": False, "epochs": 1, "average": "none", "max_grad_norm": 1e-3, "n_rows": n_rows}
    rows = np.tile([1.0, 0.0], (n_rows, 1))
    numbers, guarantees, _ = several(case, rows, np.zeros(n_rows, dtype=int), n=n, **settings)
    slopes = np.append(-(n_classes - 1.0), np.ones(n_classes - 1))
    gradient = np.outer(slopes / np.linalg.norm(slopes), [1.0, 0.0]).ravel() * 1e-3 * n_rows
    signs = np.sign(numbers)
    assert np.abs(signs).min() == 1.0
    for index, guarantee in enumerate(guarantees):
        chances = scipy.stats.norm.cdf(-gradient / guarantee.noise_scale)
        assert 0.02 < chances.min() < 0.4
        ups = (signs[:, index] > 0).sum(axis=0)
        assert (scipy.stats.binom.sf(ups - 1, n, chances) > ALARM / 10).all()
        assert (scipy.stats.binom.cdf(ups, n, chances) > ALARM / 10).all()
    centred = signs.reshape(n, -1) - signs.reshape(n, -1).mean(axis=0)
    correlations = np.abs(centred.T @ centred / n)
    np.fill_diagonal(correlations, 0.0)
    # Products of signs are between -1 and 1: Hoeffding.
    assert correlations.max() < 2.2 * math.sqrt(2 * math.log(2 * correlations.size / ALARM) / n)


@pytest.mark.parametrize("case", of("descent", "adam"))
def test_noise_of_all_steps_and_problems_is_independent(case):
    """In a recorded long training, the noise of every step agrees with the record."""
    recorder = Recorder(bytes(range(32)))
    model = case.model(epochs=1000, fit_intercept=False)
    path = model.release_path(ROWS, LABELS % case.n_classes, [2.0], 1, lambda epsilon, repeat: recorder)
    scale = path.guarantees[0].noise_scale
    noise = [(call.released - call.given) * call.stated.grid / scale for call in recorder.calls]
    check_noise(np.hstack(noise), scipy.stats.norm())


SUMS = [case.values[0] for case in of("sums")]
LEAST_SQUARES = [case for case in SUMS if case.method is DPLeastSquaresClassifier]
# Of others default settings only: the releases after the centre take long.
CENTRES = [case for case in SUMS if case in LEAST_SQUARES or (not case.chosen and "n_rows" in case.method.declared)]


@pytest.mark.parametrize("case", CENTRES, ids=str)
def test_a_shrunk_centre_has_the_noise_of_the_record(case):
    """Of rows of zeros it is noise, shrunk by a known share: its length and its direction have known laws."""
    n, d = 3000 if case in LEAST_SQUARES else 500, 2
    # The recommended method buys no centre for few rows.
    times = 1 if case in LEAST_SQUARES else 40
    rows, labels = np.tile(0 * ROWS, (times, 1)), np.tile(LABELS % case.n_classes, times)
    model = case.model() if times == 1 else case.model(n_rows=len(rows))
    path = model.release_path(rows, labels, [2.0], n, 3)
    multiplier = leaves(path.guarantees[0].event)[0][0].noise_multiplier
    centres = path.step("direction")["centre"][0] * len(rows) / multiplier
    shrunk = np.linalg.norm(centres, axis=1)
    kept = shrunk > 0
    # Vectors longer than the root of d stay: then c = r - d / r.
    chance = scipy.stats.chi2.sf(d, d)
    assert scipy.stats.binom.sf(kept.sum() - 1, n, chance) > ALARM
    assert scipy.stats.binom.cdf(kept.sum(), n, chance) > ALARM
    lengths = (shrunk[kept] + np.sqrt(shrunk[kept] ** 2 + 4 * d)) / 2
    shares = scipy.stats.chi2.sf(lengths**2, d) / chance
    assert scipy.stats.kstest(shares, "uniform").pvalue > ALARM
    turns = np.arctan2(*centres[kept].T) / (2 * math.pi) % 1.0
    assert scipy.stats.kstest(turns, "uniform").pvalue > ALARM
    ranks = np.column_stack([shares, turns]) - 0.5
    assert abs((ranks[:, 0] * ranks[:, 1]).mean() * 12) < scipy.stats.norm.isf(ALARM) / math.sqrt(len(ranks))
    later = np.abs((ranks[1:] * ranks[:-1]).mean(axis=0) * 12)
    assert later.max() < scipy.stats.norm.isf(ALARM) / math.sqrt(len(ranks) - 1)


# A budget divided by a released count has a record of the sum alone, which the replays compare.
@pytest.mark.parametrize("case", [case for case in SUMS if not {"features", "n_rows"} & set(case.chosen)], ids=str)
def test_draws_of_a_recipe_have_the_noise_of_the_record(case):
    """Check every recorded release: counts, means, second moments and steps."""
    draws = []
    for number in range(200):
        recorder = Recorder(number.to_bytes(32, "big"))
        path = case.model().release_path(ROWS, LABELS % case.n_classes, [2.0], 1, lambda *_, r=recorder: r)
        stated = iter([release for release, count in leaves(path.guarantees[0].event) for _ in range(count)])
        noise, release, more = [], None, False
        for call in recorder.calls:
            release = release if more else next(stated)
            unit = call.stated.sensitivity * release.noise_multiplier
            unit /= 2.0 if case.relation == "replace_one" and not call.stated.per_row else 1.0
            noise.append((call.released - call.given).ravel() / unit)
            more = call.stated.more
        assert next(stated, None) is None
        draws.append(np.concatenate(noise))
    # How many counts follow may depend on earlier releases.
    width = min(map(len, draws))
    check_noise(np.array([noise[:width] for noise in draws]), scipy.stats.norm())


@pytest.mark.parametrize("case", LEAST_SQUARES, ids=str)
def test_least_squares_have_the_law_that_noise_of_the_record_gives_them(case):
    """Beside weights that are made here, with noise of NumPy's: two samples of one law."""
    n, d, k = 2000, 3, case.n_classes - 1
    path = case.model().release_path(0 * ROWS, LABELS % case.n_classes, [2.0], n, 3)
    multiplier = leaves(path.guarantees[0].event)[1][0].noise_multiplier
    factor = 2 if case.relation == "replace_one" else 1
    diagonal = multiplier * math.sqrt(8 if factor == 2 else 3) / factor
    spread = diagonal / math.sqrt(2)
    # Beside a centre that differs from 0, rows of zeros are one unit vector; with the constant, another one.
    codes = simplex_codes(case.n_classes)
    rng, solutions = np.random.default_rng(1), []
    for centre in path.step("direction")["centre"][0]:
        length = np.linalg.norm(centre)
        row = np.append(-centre / length if length > 0 else 0 * centre, 0.2 / math.sqrt(0.96))
        row /= np.linalg.norm(row)
        rows = np.tile(row, (8, 1))
        noise = np.triu(rng.normal(size=(d, d)) * spread, 1)
        gram = rows.T @ rows + noise + noise.T + np.diag(rng.normal(size=d) * diagonal)
        cross = rows.T @ codes[LABELS % case.n_classes] + rng.normal(size=(d, k)) * spread
        values, vectors = np.linalg.eigh(gram)
        weights = vectors @ np.diag(1 / np.hypot(values, spread * math.sqrt(d))) @ vectors.T @ cross
        solutions.append((weights.T if k == 1 else codes @ weights.T)[:, :-1].ravel())
    ours = path.coef[0].reshape(n, -1)
    scale = 1 / math.hypot(1.0, 0.2 / math.sqrt(0.96))
    for column, made in zip(ours.T, np.array(solutions).T * scale, strict=True):
        assert scipy.stats.ks_2samp(column, made).pvalue > ALARM / 10


@pytest.mark.parametrize("case", of("selections"))
def test_selections_have_the_chances_of_the_record(case):
    """The radius is so small that all slopes stay -1: two steps of every problem select by the same known scores."""
    classes = case.model().classes
    labels = LABELS % len(classes)
    model = case.model(n_steps=2, radius=0.01)
    n = 4000
    path = model.release_path(ROWS, labels, [1.0, 2.0], n, 3)
    n_problems = path.coef.shape[2]
    features = np.hstack([ROWS, np.ones((8, 1))]) if case.model().fit_intercept else ROWS
    d = features.shape[1]
    both = np.concatenate([path.coef, path.intercept[..., None]], axis=-1)[..., :d] / (0.01 / 2)
    for index, guarantee in enumerate(path.guarantees):
        ((step, count),) = leaves(guarantee.event)
        assert count == 2 * n_problems
        seen = np.rint(both[index]).astype(int)
        assert np.abs(seen - both[index]).max() < 1e-9
        codes = []
        for k in range(n_problems):
            signs = np.where(labels == (1 if n_problems == 1 else k), 1.0, -1.0)
            scores = signs @ features
            # One replaced row changes a score by 2 at most.
            chances = np.exp(step.epsilon * np.append(scores, -scores) / 4.0)
            chances /= chances.sum()
            vertices = np.vstack([np.eye(d, dtype=int), -np.eye(d, dtype=int)])
            outcomes = {}
            for a, first in enumerate(vertices):
                for b, second in enumerate(vertices):
                    key = tuple(first + second)
                    outcomes[key] = outcomes.get(key, 0.0) + chances[a] * chances[b]
            keys = list(outcomes)
            counts = np.array([(seen[:, k] == key).all(axis=1).sum() for key in keys])
            assert counts.sum() == n
            expected = n * np.array([outcomes[key] for key in keys])
            assert expected.min() > 20
            assert scipy.stats.chisquare(counts, expected).pvalue > ALARM
            codes.append(np.array([keys.index(tuple(row)) for row in seen[:, k]]))
        for first, second in [(a, b) for i, a in enumerate(codes) for b in codes[:i]] + [
            (c[1:], c[:-1]) for c in codes
        ]:
            # No outcome of one problem, or of the release before, goes with one of another.
            table = scipy.stats.contingency.crosstab(first % 4, second % 4).count
            assert scipy.stats.chi2_contingency(table).pvalue > ALARM
    first, second = (np.rint(both[index]).astype(int).reshape(n, -1) for index in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_the_statistics_of_centring_get_the_noise_of_the_record(relation):
    cells = rows_to_scale(ROWS, "centre")
    (multiplier,) = release_multipliers("centre", 1.0, 1e-5, relation)
    means = np.stack([scale_rows(cells, "centre", 8, (multiplier,), key_of(i), relation).mean for i in range(N)])
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    # Rows are of whole numbers of 2^-20.
    noise = (means - unit.mean(axis=0)) / (multiplier / 8)
    check_noise(noise, scipy.stats.norm())


def key_of(number):
    return NoiseSource(number.to_bytes(32, "big"))


def test_the_statistics_of_whitening_get_the_noise_of_the_record():
    """With much noise, all that is released is noise; of what follows from it, the first of four is clipped."""
    rows = np.abs(ROWS) * 100
    noise_of_draws = []
    for number in range(N):
        recorder = Recorder(number.to_bytes(32, "big"))
        scaled = scale_rows(rows, "whiten", 8, (3.0, 4.0, 5.0, 6.0), recorder, "add_remove")
        plain = scale_rows(rows, "whiten", 8, (3.0, 4.0, 5.0, 6.0), key_of(number), "add_remove")
        assert all(np.array_equal(a, b) for a, b in zip(scaled.features, plain.features, strict=True))
        assert np.array_equal(scaled.matrix, plain.matrix)
        noise_of_draws.append([(call.released - call.given) / call.scale for call in recorder.calls])
    scales = [call.scale / call.stated.sensitivity for call in recorder.calls]
    assert scales == pytest.approx([3.0, 4.0, 5.0, 6.0, 6.0], rel=1e-9)
    check_noise(np.array([np.concatenate(draws) for draws in noise_of_draws]), scipy.stats.norm())
