"""Attacks on published random kernels: columns recovered exactly, and the limits of recovery."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.privacy.attacks.known_sample import _basis, _extend_basis, _residuals, _span, audit_entity, recovery_curve

KERNELS = [("linear", None), ("gaussian", 0.1)]
kernels = pytest.mark.parametrize(("kernel", "gamma"), KERNELS)


def publish(columns, mbar, gamma, rng):
    """The block of one entity; gamma None for the linear kernel."""
    private = rng.standard_normal((mbar, columns.shape[1]))
    if gamma is None:
        return columns @ private.T
    return np.exp(-gamma * ((columns[:, None] - private) ** 2).sum(axis=2))


def z_scores(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def recover_columns(block, known_indices, known_rows, gamma):
    return _extend_basis(*_basis(block, gamma, known_rows.shape[1]), np.asarray(known_indices), known_rows)


def largest_error(block, columns, known_indices, gamma):
    return np.abs(recover_columns(block, known_indices, columns[known_indices], gamma) - columns).max()


def residual(block, guess, gamma=None):
    """Return the share of a guessed column outside the span of the block, and a random guess's share."""
    span, readable = _span(block, gamma)
    return _residuals(span, guess[readable, None])[0], np.sqrt(1.0 - span.shape[1] / (len(span) - 1))


@given(
    kernel=st.sampled_from(KERNELS),
    features=st.integers(1, 12),
    more_columns=st.integers(0, 20),
    unknown=st.integers(15, 60),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=150, deadline=None)
def test_as_many_rows_as_needed_give_all_others_and_one_fewer_does_not(kernel, features, more_columns, unknown, seed):
    rng = np.random.default_rng(seed)
    (kernel, gamma), needed = kernel, features + (kernel[1] is not None)
    mixing = rng.standard_normal((features, features))
    columns = z_scores(rng.standard_normal((needed + unknown, features)) @ mixing)
    block = publish(columns, needed + more_columns, gamma, rng)
    known_indices = rng.permutation(len(columns))[:needed]
    assert largest_error(block, columns, known_indices, gamma) < 1e-8
    if needed > 1:
        assert largest_error(block, columns, known_indices[1:], gamma) > 0.05


@kernels
def test_known_rows_come_back_as_given_and_more_of_them_do_no_harm(kernel, gamma):
    rng = np.random.default_rng(0)
    columns = z_scores(rng.standard_normal((80, 5)))
    block = publish(columns, 12, gamma, rng)
    recovered = recover_columns(block, range(40), columns[:40], gamma)
    assert np.array_equal(recovered[:40], columns[:40])
    assert np.abs(recovered - columns).max() < 1e-12
    # The least-squares answer also stays near what slightly wrong knowledge says.
    wrong = recover_columns(block, range(40), columns[:40] + 1e-3 * rng.standard_normal((40, 5)), gamma)
    assert 1e-5 < np.abs(wrong - columns)[40:].max() < 1e-2


@kernels
def test_too_few_published_columns_protect(kernel, gamma):
    rng = np.random.default_rng(1)
    columns = z_scores(rng.standard_normal((200, 9)))
    needed = 9 + (gamma is not None)
    enough = recovery_curve(publish(columns, needed, gamma, rng), columns, kernel, gamma, rng=0)
    fewer = recovery_curve(publish(columns, needed - 1, gamma, rng), columns, kernel, gamma, rng=0)
    assert enough.possible
    assert enough.recovered_at == needed == enough.rows_needed == fewer.rows_needed
    assert not fewer.possible
    assert fewer.recovered_at is None
    assert min(fewer.max_error) > 0.1
    assert max(fewer.recovered_share) < 0.05


def test_entries_that_underflowed_are_left_out():
    rng = np.random.default_rng(5)
    columns = rng.standard_normal((300, 6))
    columns[:20] *= np.linspace(17.8, 19.5, 20)[:, None] / np.linalg.norm(columns[:20], axis=1, keepdims=True)
    columns[20] = 500.0
    gamma = 2.0
    block = publish(columns, 60, gamma, rng)
    readable = (block > 1e-300).sum(axis=1)
    partly = (readable < 60) & (readable > 10)
    assert partly.sum() >= 5
    assert (block == 0).any(axis=0).all()
    known_indices = np.concatenate([np.flatnonzero(partly)[:2], np.arange(100, 108)])
    recovered = recover_columns(block, known_indices, columns[known_indices], gamma)
    assert np.abs(recovered - columns)[readable > 10].max() < 1e-8
    # A row of zeros only says that it is far from all others.
    assert readable[20] == 0
    assert np.isfinite(recovered).all()
    curve = recovery_curve(block, columns, "gaussian", gamma, rng=0)
    assert 1 <= curve.unreadable_rows <= (readable < 7).sum()
    assert curve.recovered_share[-1] > 1 - 20 / 270
    assert curve.error_at_rows_needed < 1e-8
    # Neither a known row without a readable entry nor the guess of a column is disturbed by such rows.
    known_indices[0] = 20
    recovered = recover_columns(block, known_indices, columns[known_indices], gamma)
    assert np.abs(recovered - columns)[readable > 10].max() < 1e-8
    assert residual(block, columns[:, 3], gamma)[0] < 1e-10


def test_nothing_readable():
    columns = np.arange(12.0).reshape(6, 2)
    recovered = recover_columns(np.zeros((6, 4)), [0, 1], columns[:2], 1.0)
    assert np.isfinite(recovered).all()
    assert recovery_curve(np.zeros((6, 4)), columns, "gaussian", 1.0).error_at_rows_needed is None


@kernels
def test_curve(kernel, gamma):
    rng = np.random.default_rng(7)
    columns = z_scores(rng.standard_normal((150, 6)))
    block = publish(columns, 20, gamma, rng)
    needed = 6 + (gamma is not None)
    counts = list(range(1, 12))
    curve = recovery_curve(block, columns, kernel, gamma, counts=counts, draws=7, rng=1)
    assert curve == recovery_curve(block, columns, kernel, gamma, counts=counts, draws=7, rng=np.random.default_rng(1))
    assert curve.known == counts
    for count, worst, typical, share in zip(
        counts, curve.max_error, curve.rms_error, curve.recovered_share, strict=True
    ):
        assert typical <= worst
        if count >= needed:
            assert worst < 1e-8
            assert share == 1.0
        else:
            assert worst > 0.1
            assert share == 0.0
    assert curve.recovered_at == needed
    # Knowledge of some directions already helps.
    assert curve.rms_error[needed - 2] < curve.rms_error[0]
    # In units of a column's spread.
    scaled = columns * np.array([1e3, 1, 1, 1, 1, 1])
    unscaled = recovery_curve(scaled @ np.eye(6), scaled, "linear", counts=[2], rng=1)
    assert unscaled.max_error[0] < 50
    default = recovery_curve(block, columns, kernel, gamma)
    assert default.known[0] == 1
    assert {needed - 1, needed, needed + 1} <= set(default.known)
    assert len(default.known) <= 20


@kernels
def test_rows_that_repeat_tell_less(kernel, gamma):
    rng = np.random.default_rng(8)
    columns = (rng.random((300, 4)) < 0.1) * 1.0
    block = publish(columns, 30, gamma, rng)
    curve = recovery_curve(block, columns, kernel, gamma, rng=0)
    needed = 4 + (gamma is not None)
    assert curve.max_error[curve.known.index(needed)] > 0.1
    # With rows in general position the number needed is enough.
    assert curve.error_at_rows_needed < 1e-8


@kernels
def test_constant_and_repeated_columns(kernel, gamma):
    rng = np.random.default_rng(9)
    one = z_scores(rng.standard_normal((60, 1)))
    columns = np.hstack([one, np.zeros((60, 1)), -one])
    block = publish(columns, 10, gamma, rng)
    known_indices = np.arange(1 + (gamma is not None))
    assert largest_error(block, columns, known_indices, gamma) < 1e-8
    report = audit_entity(block, columns, kernel, gamma, rng=0)
    assert report["recovered_at"] == known_indices.size
    assert report["membership"]["true_column_residual"] < 1e-10
    constant = audit_entity(publish(columns[:, 1:2], 10, gamma, rng), columns[:, 1:2], kernel, gamma, rng=0)
    assert constant["membership"] == {"true_column_residual": None, "random_residual": None}
    json.dumps([report, constant], allow_nan=False)


@given(kernel=st.sampled_from(KERNELS), features=st.integers(1, 12), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_membership(kernel, features, seed):
    rng = np.random.default_rng(seed)
    kernel, gamma = kernel
    columns = z_scores(rng.standard_normal((300, features)))
    block = publish(columns, features + 1 + int(rng.integers(20)), gamma, rng)
    column = columns[:, rng.integers(features)]
    combined = columns @ rng.standard_normal(features)
    for guess in (column, 40.0 - 3.5 * column, combined):
        assert residual(block, guess, gamma)[0] < 1e-10
    wrong, random = residual(block, rng.standard_normal(300), gamma)
    assert random == pytest.approx(np.sqrt(1 - features / 299))
    # The squared residual is a beta variable with spread below 0.02 here.
    assert wrong == pytest.approx(random, abs=0.1)


def test_a_binary_attribute_is_recognised_without_its_units():
    rng = np.random.default_rng(10)
    ill = (rng.random(400) < 0.3) * 1.0
    columns = z_scores(np.column_stack([ill, rng.standard_normal((400, 2))]))
    block = publish(columns, 40, None, rng)
    assert residual(block, ill)[0] < 1e-12
    # One wrong entry shows.
    ill[7] = 1 - ill[7]
    assert 0.01 < residual(block, ill)[0] < 0.3


@kernels
def test_membership_shows_through_too_few_published_columns(kernel, gamma):
    rng = np.random.default_rng(11)
    columns = z_scores(rng.standard_normal((450, 56)))
    report = audit_entity(publish(columns, 45, gamma, rng), columns, kernel, gamma, rng=0)
    assert not report["possible"]
    assert 0.1 < report["membership"]["true_column_residual"] < report["membership"]["random_residual"] - 0.1


BLOCK = np.full((5, 3), 0.5)
WITH_NAN = np.where(np.eye(5, 3) == 1, np.nan, 0.5)


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        ((BLOCK, BLOCK[:4], "linear"), {}, r"columns of shape \(4, 3\): must be \(5, features\)"),
        ((BLOCK, WITH_NAN, "linear"), {}, "columns=nan"),
        ((BLOCK[:1], BLOCK[:1], "linear"), {}, r"columns of shape \(1, 3\)"),
        ((BLOCK, BLOCK, "linear"), {"counts": [1, 5]}, r"counts=\[1, 5\]: .* from 1 to 4"),
        ((BLOCK, BLOCK, "linear"), {"counts": []}, r"counts=\[\]"),
        ((BLOCK, BLOCK, "linear"), {"draws": 0}, "draws=0"),
        ((BLOCK, BLOCK, "gaussian"), {}, "gamma=None"),
        ((BLOCK, BLOCK, "gaussian", -1.0), {}, "gamma=-1.0"),
        ((BLOCK, BLOCK, "cubic"), {}, "kernel='cubic'"),
        ((WITH_NAN, BLOCK, "linear"), {}, "block=nan"),
        ((-BLOCK, BLOCK, "gaussian", 1.0), {}, "block=-0.5"),
        ((BLOCK[0], BLOCK, "linear"), {}, r"block of shape \(3,\)"),
    ],
)
def test_bad_arguments(arguments, changes, message):
    with pytest.raises(ValueError, match=message):
        recovery_curve(*arguments, **changes)
