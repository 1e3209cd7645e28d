"""Condensed information against the printed steps, followed literally."""

import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from privsvm.solvers.condensing import condense
from privsvm.solvers.condensing.condense import condensed_rows, feature_weights, greedy_triples, weighted_unit_rows
from privsvm.solvers.condensing.fuzzy_means import fuzzy_means

UNITS = 2.0**46


def printed_weights(X):
    """Equations 7 and 8, for features that vary and have a mean other than 0."""
    variation = np.std(X, axis=0, ddof=1) / np.abs(X.mean(axis=0))
    return variation / variation.sum()


def printed_similarities(X, weights):
    """Equation 9."""
    weighted = X * weights
    norms = np.linalg.norm(weighted, axis=1)
    return weighted @ weighted.T / np.outer(norms, norms)


def rounded_similarities(unit_rows):
    """Whole numbers of units, the terms added in the order of the features."""
    U = unit_rows.toarray()
    similarities = np.zeros((len(U), len(U)))
    for column in U.T:
        similarities += np.outer(column, column)
    return np.rint(similarities * UNITS)


def printed_triples(similarities):
    """Steps 3 and 4: groups, and by how much the best choice was better than the next (infinite: there was none)."""
    n = len(similarities)
    pairs, remaining = np.where(np.tri(n, dtype=bool), -np.inf, similarities), np.ones(n, dtype=bool)
    groups, margin = [], np.inf
    while remaining.sum() >= 3:
        a, b = np.unravel_index(np.argmax(pairs), pairs.shape)
        best, pairs[a, b] = pairs[a, b], -np.inf
        margin = min(margin, best - pairs.max())
        remaining[[a, b]] = False
        both = np.where(remaining, similarities[a] + similarities[b], -np.inf)
        c = int(np.argmax(both))
        best, both[c] = both[c], -np.inf
        margin = min(margin, best - both.max())
        remaining[c] = False
        pairs[[a, b, c]] = pairs[:, [a, b, c]] = -np.inf
        groups.append([a, b, c])
    if remaining.any():
        groups.append([*np.flatnonzero(remaining), *[-1] * (3 - remaining.sum())])
    return np.array(groups, dtype=np.int64).reshape(-1, 3), margin


def printed_centres(X, codes, groups):
    """Equation 13, and the rule for labels."""
    centres, labels = [], []
    for group in groups:
        rows = np.sort(group[group >= 0])
        centre = X[rows].mean(axis=0)
        votes = np.bincount(codes[rows])
        most = np.flatnonzero(votes == votes.max())
        distances = np.linalg.norm(X[rows] - centre, axis=1)
        nearest = rows[np.flatnonzero(distances <= distances.min() * (1.0 + 1e-6))[0]]
        centres.append(centre)
        labels.append(most[0] if most.size == 1 else codes[nearest])
    return np.array(centres).reshape(-1, X.shape[1]), np.array(labels, dtype=np.int64)


def find(X):
    return greedy_triples(weighted_unit_rows(X, feature_weights(X)))


def find_in_all_ways(X):
    """Groups by distances and by products, in single and double precision, with renewed lists, on several threads."""
    unit_rows = weighted_unit_rows(X, feature_weights(X))
    # The search for nearest rows is slow where many rows have many features.
    for few_features in (0, 1000) if X.size < 20_000 else (0,):
        with mock.patch.object(condense, "_FEW_FEATURES", few_features):
            yield greedy_triples(unit_rows)
            with mock.patch.object(condense, "_QUERIED", 50):
                yield greedy_triples(unit_rows, 3)
            # Short lists, which run out and are all made anew after some scans.
            scanned = 50.0 if X.shape[0] < 1000 else 2000.0
            with mock.patch.multiple(condense, _LIST=2, _LONG_LIST=2, _SCANNED=scanned):
                yield greedy_triples(unit_rows)
                # A hundred tiles or so, and guesses of the least product that are too high for half of the rows.
                with mock.patch.multiple(condense, _TILE=max(32, X.shape[0] // 15), _SURE=0.0):
                    yield greedy_triples(unit_rows, 3)
    # Products always in double precision, or never.
    for share in (-1.0, 1.0):
        with mock.patch.multiple(condense, _UNCERTAIN_SHARE=share, _FEW_FEATURES=0):
            yield greedy_triples(unit_rows, 3)


def check_as_printed(X, n_classes=4):
    """All ways, dense and sparse, one thread and three, against the printed steps with the stated tie rule."""
    unit_rows = weighted_unit_rows(X, feature_weights(X))
    expected, _ = printed_triples(rounded_similarities(unit_rows))
    for rows in (X, scipy.sparse.csr_array(X)):
        for triples in find_in_all_ways(rows):
            np.testing.assert_array_equal(triples, expected)
    codes = np.random.default_rng(0).integers(n_classes, size=len(X))
    centres, labels = condensed_rows(X, codes, expected)
    printed, printed_labels = printed_centres(X, codes, expected)
    np.testing.assert_allclose(centres, printed, rtol=1e-13, atol=1e-13 * np.abs(X).max(initial=0.0))
    np.testing.assert_array_equal(labels, printed_labels)
    sparse_centres, sparse_labels = condensed_rows(scipy.sparse.csr_array(X), codes, expected)
    np.testing.assert_array_equal(sparse_centres.toarray(), centres)
    np.testing.assert_array_equal(sparse_labels, labels)
    return expected


@given(
    n=st.integers(3, 300),
    d=st.integers(2, 60),
    kind=st.sampled_from(["positive", "negative", "sparse", "clusters"]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_without_ties_it_takes_the_printed_steps_in_plain_numbers(n, d, kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    if kind == "negative":
        X = 3.0 * rng.standard_normal((n, d)) + 0.7
    elif kind == "sparse":
        X *= rng.random((n, d)) < 0.3
        X[:, 0] += 0.1
    elif kind == "clusters":
        X = rng.random((5, d))[rng.integers(5, size=n)] + 0.05 * rng.random((n, d))
    # Beyond that, and for constant features, the paper's weights are not defined or cut.
    assume((np.ptp(X, axis=0) > 0).all() and (X.std(axis=0, ddof=1) < np.sqrt(n) * np.abs(X.mean(axis=0))).all())
    weights = printed_weights(X)
    np.testing.assert_allclose(feature_weights(X), weights, rtol=1e-9)
    expected, margin = printed_triples(printed_similarities(X, weights))
    assume(margin > 1e-12)
    for result in find_in_all_ways(X):
        np.testing.assert_array_equal(result, expected)


@given(
    n=st.integers(0, 120),
    d=st.integers(1, 60),
    levels=st.integers(1, 3),
    share=st.floats(0.05, 1.0),
    copies=st.integers(1, 40),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=100, deadline=None)
def test_of_equals_the_smallest_numbers_win(n, d, levels, share, copies, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-levels if seed % 3 == 0 else 0, levels + 1, (n, d)) * (rng.random((n, d)) < share)
    X = X.astype(float)[rng.integers(max(1, n // copies), size=n)] if n else X.astype(float)
    # Rows of one direction, not all of them equal to the last digit.
    X[rng.random(n) < 0.1] *= 3.0
    check_as_printed(X)


RNG = np.random.default_rng(0)
ZEROS = [np.where(RNG.permutation(40)[:, None] < n, 0.0, RNG.standard_normal((40, 4))) for n in (1, 2, 3, 20, 38, 40)]
COPIES = np.vstack([np.tile(RNG.random(3), (100, 1)), RNG.random((30, 3)), np.tile(RNG.random(3), (51, 1))])
DEGENERATE = {
    **{f"{(~X.any(axis=1)).sum()} rows of zeros": X for X in ZEROS},
    "only zeros": np.zeros((10, 3)),
    "opposite": np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0], [1.0, -1.0], [0.0, 0.0], [-1.0, 1.0]]),
    "signs": np.array([[1.0], [-1.0], [1.0], [-1.0]]),
    "orthogonal": np.eye(25),
    "orthogonal and zeros": np.vstack([np.eye(9), np.zeros((4, 9)), np.eye(9)]),
    "more equal rows than a list holds": RNG.permutation(COPIES),
    "nearly alike": np.full((200, 4), 0.3) + 1e-9 * RNG.random((200, 4)),
    "nearly alike, wide": np.full((200, 30), 0.3) + 1e-7 * RNG.random((200, 30)),
}


class TestDegenerateRows:
    @pytest.mark.parametrize("name", DEGENERATE)
    def test_as_printed(self, name):
        check_as_printed(DEGENERATE[name])

    def test_one_feature(self):
        groups = check_as_printed(np.arange(-6.0, 8.0)[:, None])
        # The sign is all that is left of a row.
        assert (groups[:2] < 6).all()

    def test_equal_rows_in_their_order(self):
        np.testing.assert_array_equal(find(np.ones((3000, 5))), np.arange(3000).reshape(-1, 3))

    @pytest.mark.parametrize("n_features", [6, 20])
    def test_many_copies_take_the_time_of_few_rows(self, n_features):
        X = np.random.default_rng(0).random((10, n_features))[np.arange(60_000) % 10]
        groups = find(X)
        assert (groups % 10 == groups[:, :1] % 10).all()
        np.testing.assert_array_equal(np.sort(groups.ravel()), np.arange(60_000))

    def test_extreme_sizes(self):
        X = np.random.default_rng(3).random((31, 5))
        for size in (1e-300, 1e-150, 1e150, 1e300):
            np.testing.assert_array_equal(find(X * size), find(X))
        rows = weighted_unit_rows(X * np.logspace(-300, 300, 31)[:, None], np.full(5, 0.2))
        np.testing.assert_allclose(np.linalg.norm(rows.toarray(), axis=1), 1.0, rtol=1e-14)


class TestWeights:
    def test_a_constant_feature_has_none(self):
        X = np.random.default_rng(0).random((50, 3))
        X[:, 1] = 0.1
        assert feature_weights(X)[1] == 0.0
        np.testing.assert_allclose(feature_weights(X)[[0, 2]], printed_weights(X[:, [0, 2]]), rtol=1e-12)
        check_as_printed(X)

    def test_a_mean_of_zero_counts_as_the_largest_coefficient_of_positive_features(self):
        n = 25
        X = np.zeros((n, 3))
        X[0, 0], X[0, 1] = 1.0, 7.0
        X[:, 2] = np.arange(n) - n // 2
        # One entry other than 0 among n is the extreme of features that are never negative: sqrt(n).
        np.testing.assert_allclose(feature_weights(X), 1 / 3, rtol=1e-12)
        check_as_printed(X)

    @pytest.mark.parametrize("X", [np.ones((4, 3)), np.zeros((4, 3)), np.ones((1, 3)), np.zeros((0, 3))])
    def test_all_constant(self, X):
        np.testing.assert_array_equal(feature_weights(X), 1 / 3)

    def test_the_same_for_sparse_rows_to_the_last_digit(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 7)) * (rng.random((400, 7)) < 0.4)
        stored_zeros = scipy.sparse.csr_array(np.where(X == 0, 9.0, X))
        stored_zeros.data[stored_zeros.data == 9.0] = 0.0
        shuffled = scipy.sparse.csr_array(X[:, ::-1])[:, ::-1]
        for rows in (scipy.sparse.csr_array(X), stored_zeros, shuffled, np.asfortranarray(X)):
            np.testing.assert_array_equal(feature_weights(rows), feature_weights(X))
            np.testing.assert_array_equal(weighted_unit_rows(rows, feature_weights(rows)).data,
                                          weighted_unit_rows(X, feature_weights(X)).data)  # fmt: skip

    def test_extreme_numbers(self):
        X = np.random.default_rng(0).random((20, 2)) + 0.1
        for size in (1e-308, 1e-160, 1e160, 1e308):
            np.testing.assert_allclose(feature_weights(X * [1.0, size]), feature_weights(X), rtol=1e-6)


class TestCentresAndLabels:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 2.0], [9.0, 9.0], [2.0, 4.0]])

    def labels(self, codes, group):
        return condensed_rows(self.X, np.array(codes), np.array([group]))[1][0]

    def test_of_equally_near_ones_the_smallest_number(self):
        # Rows 1 and 5 are as far from the mean of 1, 5 and 3 wherever 3 is; 3 is nearest. Of a triangle with three
        # equal sides all are.
        X = np.vstack([np.eye(3), np.eye(3)])
        for group in ([2, 1, 0], [0, 1, 2], [1, 2, 0]):
            assert condensed_rows(X, np.array([4, 5, 3, 0, 0, 0]), np.array([group]))[1][0] == 4

    def test_two_members_that_differ(self):
        assert self.labels([0, 1, 0, 0, 0, 3], [1, 5, -1]) == 1
        assert self.labels([0, 3, 0, 0, 0, 1], [1, 5, -1]) == 3
        centres, labels = condensed_rows(self.X, np.zeros(6, np.int64), np.array([[1, 5, -1], [4, -1, -1]]))
        np.testing.assert_array_equal(centres, [[1.5, 2.0], [9.0, 9.0]])
        np.testing.assert_array_equal(labels, 0)


@pytest.mark.parametrize(("d", "levels"), [(3, None), (30, 3)])
def test_thousands_of_rows_in_all_ways(d, levels):
    X = np.random.default_rng(d).random((3000, d))
    first, *others = find_in_all_ways(X if levels is None else np.round(levels * X))
    for triples in others:
        np.testing.assert_array_equal(triples, first)


def mirror_rows(name, n_features):
    """Rows of a set in LIBSVM's format, from the mirror that PRIVSVM_MIRROR names."""
    folder = os.environ.get("PRIVSVM_MIRROR")
    paths = list(Path(folder).glob(f"*/{name}/{name}")) if folder else []
    if not paths:
        pytest.skip(f"needs {name}: set PRIVSVM_MIRROR to a folder that has it")
    return load_svmlight_file(str(paths[0]), n_features=n_features)[0].toarray()


@pytest.mark.parametrize(("name", "n_features"), [("a1a", 123), ("w1a", 300)])
def test_real_binary_rows_with_ties(name, n_features):
    X = mirror_rows(name, n_features)[:400]
    unit_rows = weighted_unit_rows(X, feature_weights(X))
    assert printed_triples(rounded_similarities(unit_rows))[1] == 0.0, "there are ties"
    check_as_printed(X)


class TestFuzzyMeans:
    @staticmethod
    def printed(X, centres, q):
        """Memberships by equation 6, and the objective of equation 5."""
        distances = np.linalg.norm(X[:, None] - centres, axis=2)
        u = 1.0 / ((distances[:, :, None] / distances[:, None, :]) ** (2.0 / (q - 1.0))).sum(axis=2)
        return u, float((u**q * distances**2).sum())

    @pytest.mark.parametrize("q", [1.3, 2.0, 3.5])
    @pytest.mark.parametrize("shift", [0.0, 1e5])
    def test_each_round_is_the_printed_one(self, q, shift):
        X = np.random.default_rng(0).random((40, 3))
        rng = np.random.default_rng(1)
        centres = X[np.sort(np.random.default_rng(1).choice(40, 6, replace=False))] + 1e-12
        for _ in range(4):
            u, objective = self.printed(X, centres, q)
            centres = (u**q).T @ X / (u**q).sum(axis=0)[:, None]
        result = fuzzy_means(X + shift, 6, rng, q=q, tol=0.0, max_iter=4)
        np.testing.assert_allclose(result.centres, centres + shift, rtol=1e-6 if shift == 0 else 1e-10)
        assert result.objective == pytest.approx(objective, rel=1e-6)
        np.testing.assert_array_equal(result.nearest, u.argmax(axis=1))
        assert result.n_iter == 4
        assert not result.converged

    def test_the_objective_falls(self):
        X = np.random.default_rng(0).random((90, 4))
        objectives = [fuzzy_means(X, 30, np.random.default_rng(2), tol=0.0, max_iter=k).objective for k in range(1, 15)]
        assert (np.diff(objectives) <= 1e-12).all()
        assert fuzzy_means(X, 30, np.random.default_rng(2), max_iter=1000).converged

    @pytest.mark.parametrize("q", [1.001, 1.05, 2.0, 50.0])
    def test_copies_and_zeros_leave_numbers(self, q):
        X = np.vstack([np.zeros((20, 2)), np.ones((20, 2)), np.tile([1e6, 0.0], (5, 1))])
        for rows in (X, scipy.sparse.csr_array(X), np.ones((7, 3))):
            means = fuzzy_means(rows, 7, np.random.default_rng(0), q=q)
            assert np.isfinite(means.centres).all()

    def test_as_many_centres_as_rows(self):
        X = np.random.default_rng(0).random((8, 3))
        means = fuzzy_means(X, 8, np.random.default_rng(0))
        np.testing.assert_allclose(means.centres, X, atol=1e-6)
        np.testing.assert_array_equal(means.nearest, np.arange(8))

    def test_sparse_rows_give_the_same_centres(self):
        X = np.random.default_rng(0).random((60, 5)) * (np.random.default_rng(1).random((60, 5)) < 0.5)
        dense = fuzzy_means(X, 20, np.random.default_rng(3))
        sparse = fuzzy_means(scipy.sparse.csr_array(X), 20, np.random.default_rng(3))
        np.testing.assert_allclose(sparse.centres, dense.centres, atol=1e-8)
