"""Attacks on condensed rows: rows that they must find, and rows that they must not."""

import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.privacy.attacks.condensation_attacks import (
    audit_condensation,
    distance_to_rows,
    nearest_condensed,
    tell_members,
    third_members,
)


def grouped(n, d, rng):
    """Rows, means of random groups of three (the last one smaller), and the groups."""
    X = rng.standard_normal((n, d)) * rng.uniform(0.1, 10.0, d) + 5.0
    group_of = rng.permutation(np.arange(n) // 3)
    means = np.array([X[group_of == group].mean(axis=0) for group in range(group_of.max() + 1)])
    return X, means, group_of


@given(n=st.integers(3, 60), d=st.integers(1, 8), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_two_known_members_give_the_third(n, d, seed):
    X, means, group_of = grouped(n, d, np.random.default_rng(seed))
    for rows, published in ((X, means), (scipy.sparse.csr_array(X), scipy.sparse.csr_array(means))):
        attacked, error = third_members(rows, published, group_of)
        np.testing.assert_array_equal(attacked, np.flatnonzero(np.bincount(group_of)[group_of] == 3))
        assert attacked.size == n - n % 3
        assert (error < 1e-10).all()


def test_the_error_is_in_units_of_the_columns_spread():
    X, means, group_of = grouped(30, 2, np.random.default_rng(0))
    shift = np.array([0.2, 0.1]) * X.std(axis=0)
    _, error = third_members(X, means + shift, group_of)
    np.testing.assert_allclose(error, 0.6, rtol=1e-9)
    _, sparse_error = third_members(scipy.sparse.csr_array(X), scipy.sparse.csr_array(means + shift), group_of)
    np.testing.assert_allclose(sparse_error, 0.6, rtol=1e-9)


def test_a_constant_column_counts_as_it_is():
    X = np.column_stack([np.full(6, 4.0), np.arange(6.0)])
    group_of = np.arange(6) // 3
    means = X.reshape(2, 3, 2).mean(axis=1)
    means[0, 0] += 0.5
    np.testing.assert_allclose(third_members(X, means, group_of)[1], [1.5] * 3 + [0.0] * 3)


def test_centres_that_are_no_means_hide_the_third():
    rng = np.random.default_rng(0)
    X, means, group_of = grouped(90, 4, rng)
    _, error = third_members(X, means + rng.standard_normal(means.shape), group_of)
    assert error.min() > 1e-3


class TestLinks:
    def test_tight_groups_are_all_linked(self):
        rng = np.random.default_rng(0)
        centres = 100.0 * rng.standard_normal((40, 3))
        group_of = np.repeat(np.arange(40), 3)
        X = centres[group_of] + 0.01 * rng.standard_normal((120, 3))
        means = X.reshape(40, 3, 3).mean(axis=1)
        audit = audit_condensation(X, means, group_of, rng.standard_normal((50, 3)), rng)
        assert audit["linkage_rate"] == 1.0
        assert audit["guessing_rate"] == 1 / 40
        assert audit["groups_of_three"] == 40
        assert audit["third_member_error"] < 1e-12

    def test_unrelated_rows_are_linked_as_often_as_guessed(self):
        rng = np.random.default_rng(0)
        nearest, _ = nearest_condensed(rng.standard_normal((6000, 2)), rng.standard_normal((4, 2)))
        assert np.mean(nearest == rng.integers(4, size=6000)) == pytest.approx(0.25, abs=0.03)

    def test_as_counted_by_hand(self):
        X = np.array([[0.0], [1.0], [5.0], [6.0], [2.0], [9.0]])
        group_of = np.array([0, 0, 0, 1, 1, 1])
        # Means 2 and 17/3: rows 0, 1 go to the first; 5, 6 and 9 to the second; 2 to the first.
        nearest, distance = nearest_condensed(X, np.array([[2.0], [17 / 3]]))
        np.testing.assert_array_equal(nearest, [0, 0, 1, 1, 0, 1])
        np.testing.assert_allclose(distance, [2, 1, 2 / 3, 1 / 3, 0, 10 / 3], atol=1e-12)
        audited = audit_condensation(X, np.array([[2.0], [17 / 3]]), group_of, X[:0], np.random.default_rng(0))
        assert (audited["linkage_rate"], audited["guessing_rate"]) == (4 / 6, 0.5)

    def test_of_equally_near_ones_the_first(self):
        nearest, _ = nearest_condensed(np.full((5, 7), 0.1), np.full((3, 7), 0.3))
        np.testing.assert_array_equal(nearest, 0)


class TestMembership:
    def test_known_values(self):
        assert tell_members(np.array([0.0, 0.1]), np.array([1.0, 2.0])) == (1.0, 1.0)
        assert tell_members(np.array([1.0, 2.0]), np.array([0.0, 0.1])) == (0.0, 0.0)
        assert tell_members(np.array([1.0, 1.0]), np.array([1.0])) == (0.5, 0.0)
        assert tell_members(np.array([0.5, 3.0]), np.array([1.0])) == (0.5, 0.5)
        assert tell_members(np.zeros(2), np.zeros(3)) == (0.5, 0.0)
        # Round-off makes no difference.
        assert tell_members(np.array([0.3, 1.0]), np.array([0.1 + 0.2, 1.0])) == (0.5, 0.0)

    def test_unrelated_to_the_members_it_is_guessing(self):
        rng = np.random.default_rng(0)
        X, others = rng.standard_normal((2, 2000, 3))
        audit = audit_condensation(X, rng.standard_normal((500, 3)), rng.integers(500, size=2000), others, rng)
        assert audit["membership_auc"] == pytest.approx(0.5, abs=0.04)


class TestRowsPublishedAsTheyAre:
    def test_distances_as_counted_by_hand(self):
        rows = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 10.0]])
        published = np.array([[4.0, 0.0], [1.0, -0.5], [0.0, 7.0]])
        for kind in (np.asarray, scipy.sparse.csr_array):
            np.testing.assert_allclose(distance_to_rows(kind(published), kind(rows)), [0.0, 1.0, 3.0])

    def test_a_third_of_the_rows_in_place_of_all_of_them(self):
        """The area under the curve hides that a third of the members is certain."""
        rng = np.random.default_rng(0)
        X, others = rng.standard_normal((900, 6)), rng.standard_normal((400, 6))
        audit = audit_condensation(X, X[:300], np.arange(900) % 300, others, rng, means=False)
        assert audit["nearest_row"] == 0.0
        assert audit["certain_members"] == pytest.approx(1 / 3, abs=0.01)
        assert audit["membership_auc"] == pytest.approx(2 / 3, abs=0.03)
        # Links and third members do not apply.
        assert all(
            audit[name] is None for name in ("groups_of_three", "third_member_error", "linkage_rate", "guessing_rate")
        )


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_units_of_the_features_do_not_matter(offset):
    rng = np.random.default_rng(0)
    X, means, group_of = grouped(300, 4, rng)
    others = X[:100] + 0.3 * X.std(axis=0)
    plain = audit_condensation(X, means, group_of, others, np.random.default_rng(1))
    units = np.array([1e-3, 1.0, 50.0, 1e4])
    scaled = [(table + offset) * units for table in (X, means, others)]
    audit = audit_condensation(scaled[0], scaled[1], group_of, scaled[2], np.random.default_rng(1))
    assert audit == pytest.approx(plain, abs=1e-6)


class TestAudit:
    def test_it_is_for_json_and_repeatable(self):
        X, means, group_of = grouped(200, 3, np.random.default_rng(0))
        arguments = X, means, group_of, X + 1.0
        audit = audit_condensation(*arguments, np.random.default_rng(1), max_rows=50)
        assert audit["linked_rows"] == audit["other_rows"] == 50
        assert json.loads(json.dumps(audit)) == audit
        assert audit_condensation(*arguments, np.random.default_rng(1), max_rows=50) == audit

    def test_dense_and_sparse_rows_give_the_same(self):
        X, means, group_of = grouped(100, 3, np.random.default_rng(0))
        dense = audit_condensation(X, means, group_of, X[:30] + 1.0, np.random.default_rng(1))
        sparse = [scipy.sparse.csr_array(table) for table in (X, means, X[:30] + 1.0)]
        audit = audit_condensation(sparse[0], sparse[1], group_of, sparse[2], np.random.default_rng(1))
        assert audit == pytest.approx(dense, abs=1e-10)

    def test_what_cannot_be_attacked_is_none(self):
        X = np.arange(4.0).reshape(2, 2)
        audit = audit_condensation(X, X, np.arange(2), np.zeros((0, 2)), np.random.default_rng(0))
        assert audit["third_member_error"] is None
        assert audit["membership_auc"] is None
        assert audit["linkage_rate"] == 1.0
