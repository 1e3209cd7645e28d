"""Calibrated probabilities and prediction sets: their input, and whether their stated errors hold."""

import copy
import dataclasses
import math
import shutil
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.release.conftest import release_into, run
from tests.release.made_up import change_record
from tests.scripts import load_script

import privsvm
from privsvm.base.model_file import read_model
from privsvm.base.released import LinearPath
from privsvm.errors import PrivSVMError
from privsvm.numerics.noise.noise_source import NoiseSource, seeded_source
from privsvm.release.documents.calibration import (
    COVERAGE,
    Calibration,
    HeldBackCounts,
    isotonic,
    rank_labels,
    sizes_of_ranks,
)  # fmt: skip
from privsvm.release.documents.intervals import share_is_above
from privsvm.release.documents.verifying import verify
from privsvm.release.predicting.model import ReleasedModel
from privsvm.release.training.measuring import HeldBack, count_rows, measure, public_edges, ranks_and_bins


def linear(coef, intercept, n_classes):
    coef, intercept = np.asarray(coef, dtype=float), np.asarray(intercept, dtype=float)
    return LinearPath(
        epsilons=(1.0,), guarantees=(), n_classes=n_classes, coef=coef[None, None], intercept=intercept[None, None]
    )


def model_of(n_classes):
    """A linear model that reads one feature per class, or one feature of two classes."""
    return linear([[1.0]], [0.0], 2) if n_classes == 2 else linear(np.eye(n_classes), np.zeros(n_classes), n_classes)


def noisy(counts, edges, rng, scale=2.0, public=True):
    number = int(counts.sum()) if public else None
    counts = counts + rng.laplace(scale=scale, size=counts.shape)
    return HeldBackCounts(hold_back=0.1, rows_per_unit=1, number=number, scale=scale, edges=edges, counts=counts)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 9)), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_the_fit_is_isotonic_regression(points):
    from sklearn.isotonic import isotonic_regression

    values, weights = np.array(points).T
    expected = isotonic_regression(values, sample_weight=weights)
    np.testing.assert_allclose(isotonic(values, weights), expected, atol=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([2, 3, 5]), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_a_row_is_in_one_number(seed, n_classes, n_bins):
    """Its place says rank, bin and class; the others' places stay when it goes."""
    rng = np.random.default_rng(seed)
    path, edges = model_of(n_classes), tuple(np.sort(rng.random(n_bins - 1)).tolist())
    X = rng.normal(size=(30, path.coef.shape[-1])) * rng.choice([0.3, 1.0, 1e300])
    X[0] = np.nan
    codes = rng.integers(0, n_classes, size=30)
    sizes = sizes_of_ranks(n_classes)
    counts, is_right = count_rows(path, X, codes, edges, len(sizes))
    assert is_right.sum() == counts[0].sum()
    assert counts.sum() == 30
    for row in (0, 1, 17):
        fewer, _ = count_rows(path, np.delete(X, row, 0), np.delete(codes, row), edges, len(sizes))
        moved = counts - fewer
        assert (moved.sum(), np.abs(moved).sum()) == (1, 1)
        ((rank,), (place,), (code,)) = np.nonzero(moved)
        assert code == codes[row]
        if row:
            scores = X[row] if n_classes > 2 else np.array([0.0, X[row, 0]])
            order = np.argsort(-scores, kind="stable")
            before = order.tolist().index(code)
            assert sizes[rank] > before >= (sizes[rank - 1] if rank else 0)
            assert place == sum(scores[order[0]] - scores[order[1]] >= edge for edge in edges)


def test_bins_are_public():
    assert [ranks_and_bins(rows, True, 2.0, 2) for rows in (1, 499, 1000, 10**6)] == [(2, 1), (2, 1), (2, 4), (2, 8)]
    assert [ranks_and_bins(None, False, 1.0, n) for n in (2, 3, 10)] == [(2, 2), (3, 1), (3, 1)]
    assert [ranks_and_bins(10**4, True, 2.0, n)[0] for n in (3, 4, 5, 10, 26)] == [3, 3, 4, 5, 6]
    # So many that the noise on accuracy stays below the sampling of the rows.
    for n_classes, scale, public in ((2, 2.0, True), (10, 0.5, False), (3, 25.0, True)):
        for rows in (300, 3000, 30000):
            n_ranks, n_bins = ranks_and_bins(rows, public, scale, n_classes)
            cells = n_bins * n_classes * (n_ranks - 1) / (n_ranks if public else 1)
            assert n_bins == 1 or 2 * scale**2 * cells <= rows / 16
    X, codes = np.zeros((3000, 1)), np.zeros(3000, dtype=np.int64)
    for neighbours, declared, n_bins in (("replace_one", None, 8), ("add_remove", None, 2), ("add_remove", 9000, 3)):
        held_back = HeldBack(0.1, 1.0, neighbours, 1, declared)
        assert measure(model_of(2), X, codes, held_back, seeded_source(0)).counts.shape == (2, n_bins, 2)
    for n_classes in (2, 4):
        edges = public_edges(model_of(n_classes), 1 if n_classes == 2 else n_classes, 5)
        assert list(edges) == sorted(set(edges))
        assert 0.1 < edges[0] < edges[-1] < 3.0
    # A model without scores has no scale.
    assert public_edges(linear([[0.0]], [0.0], 2), 1, 5) == ()


def test_probabilities_and_sets_by_hand():
    counts = np.array([[[80.0, 30.0], [100.0, 60.0]], [[10.0, 20.0], [0.0, 5.0]]])
    held = HeldBackCounts(hold_back=0.1, rows_per_unit=1, number=305, scale=1e-6, edges=(1.0,), counts=counts)
    calibration = Calibration(held)
    path, scores = model_of(2), np.array([[-2.0], [-0.5], [0.5], [2.0]])
    shares = calibration.probabilities(path, scores)
    # Of class 1, by signed margin: 5 of 105, 20 of 100, 30 of 40, 60 of 60.
    np.testing.assert_allclose(shares[:, 1], [5 / 105, 0.2, 0.75, 1.0], atol=0.02)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # All of one label cover 270 of 305, .885; two labels below a margin of 1 cover 300.
    assert calibration.set_ranks(0.8).tolist() == [0, 0]
    assert calibration.sets(path, scores, 0.8).tolist() == [[True, False], [True, False], [False, True], [False, True]]
    assert calibration.sets(path, scores).tolist() == [[True, False], [True, True], [True, True], [False, True]]
    assert calibration.sets(path, scores, 0.999).all()
    assert calibration.coverage[0] == pytest.approx(300 / 305, abs=1e-3)
    assert calibration.set_size == pytest.approx((165 + 2 * 140) / 305, abs=1e-3)


def test_probabilities_of_several_classes_add_up():
    rng = np.random.default_rng(0)
    path, edges = model_of(4), (0.5, 1.0)
    scores = rng.normal(size=(200, 4))
    for n_ranks in (2, 3):
        counts = 40.0 * rng.random((n_ranks, 3, 4)) * np.array([4.0, 1.0, 0.5])[:n_ranks, None, None]
        calibration = Calibration(noisy(counts, edges, rng))
        shares = calibration.probabilities(path, scores)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        assert shares.min() >= 0.0
        labels, margin = rank_labels(path, scores)
        order = np.argsort(margin)
        assert (np.diff(shares[np.arange(200), labels[:, 0]][order]) >= 0).all()
        # Labels of one rank share by their scores: the third and the fourth, or all but the first.
        last = np.take_along_axis(shares, labels[:, n_ranks - 1 :], axis=1)
        assert (np.diff(last, axis=1) <= 0).all()
        members = calibration.sets(path, scores)
        assert set(members.sum(axis=1)) <= ({1, 2, 4} if n_ranks == 3 else {1, 4})
        ordered = np.take_along_axis(members, labels, axis=1)
        assert (np.diff(ordered.astype(int), axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("n_classes", "n_rows", "public"), [(2, 1000, True), (2, 300, False), (4, 2500, True), (4, 900, True)]
)
def test_what_is_said_of_calibration_holds(n_classes, n_rows, public):
    """On made-up rows, the truth of error and coverage lies in its interval, and sets have the stated coverage."""
    rng = np.random.default_rng(n_rows)
    path, draws = model_of(n_classes), 60

    def rows(n):
        scores = rng.normal(size=(n, 1 if n_classes == 2 else n_classes)) * 1.5
        logits = np.column_stack([np.zeros(n), scores[:, 0]]) if n_classes == 2 else scores
        shares = np.exp(1.7 * logits + 0.3 * np.arange(n_classes))
        shares /= shares.sum(axis=1, keepdims=True)
        return scores, (rng.random((n, 1)) > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)

    scores, codes = rows(100_000)
    n_ranks, n_bins = ranks_and_bins(n_rows if public else None, public, 2.0, n_classes)
    edges = public_edges(path, scores.shape[1], n_bins)
    labels, margin = rank_labels(path, scores)
    before = np.argmax(labels == codes[:, None], axis=1)
    rank = np.searchsorted(sizes_of_ranks(n_classes, n_ranks), before, side="right")
    shape = n_ranks, n_bins, n_classes
    place = np.ravel_multi_index((rank, np.searchsorted(edges, margin, side="right"), codes), shape)
    share_of_place = np.bincount(place, minlength=math.prod(shape)) / len(place)
    missed_error = missed_coverage = uncovered = 0
    errors = []
    for _ in range(draws):
        counts = rng.multinomial(n_rows, share_of_place).reshape(shape)
        calibration = Calibration(noisy(counts, edges, rng, public=public))
        truth = Calibration(
            dataclasses.replace(calibration.held_back, counts=share_of_place.reshape(shape), number=None)
        )
        (positive, *others), fitted = truth._outcomes[0], calibration.maps[0]
        gaps = fitted * (positive + sum(others)) - positive
        error = sum(abs(gaps[fitted == value].sum()) for value in np.unique(fitted))
        errors.append(error)
        low, high = calibration.calibration_error[1:]
        missed_error += not low <= error <= high
        last = calibration.set_ranks()
        covered, stated = truth._count_covered(last).right, calibration._count_covered(last)
        uncovered += covered < COVERAGE
        # Whether the truth is inside is asked of its own tails, which costs no search for the ends.
        if covered < 1.0 - 1e-9:
            sides = (stated, covered), (stated.reversed, 1.0 - covered)
            missed_coverage += any(share_is_above(*side, calibration._error_of_rule) for side in sides)
    # At 5 % and 2.5 % of error, more would be missed with a probability below 1e-6.
    assert missed_error <= binom.isf(1e-6, draws, 0.05)
    assert missed_coverage <= binom.isf(1e-6, draws, 0.05)
    assert uncovered <= binom.isf(1e-6, draws, 0.025)
    assert n_rows < 900 or np.mean(errors) <= 0.03


@pytest.fixture(scope="module")
def calibrated(hospital, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    release_into(folder, hospital / "patients.csv", hospital / "schema.yaml", "--hold-back", 0.3, epsilon=4)
    return folder / "model"


def test_a_loaded_model_is_calibrated(calibrated, hospital, tmp_path):
    model = privsvm.load(calibrated)
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, model.n_features_in_))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shares = model.predict_proba(X)
    order = np.argsort(model.decision_function(X))
    assert (np.diff(shares[order, 1]) >= 0).all()
    assert set(shares[:, 1]) <= set(model.calibration_.maps[0])
    members = model.predict_set(X, 0.8)
    assert members[np.arange(50), np.searchsorted(model.classes_, model.predict(X))].all()
    with pytest.raises(PrivSVMError, match="coverage=1: must lie between"):
        model.predict_set(X, 1)
    # The counts stay with the model that is saved again, and the command shows sets.
    model.save(tmp_path / "again")
    assert privsvm.load(tmp_path / "again").predict_proba(X).tolist() == shares.tolist()
    code, out, err = run("predict", calibrated, hospital / "new.csv", "--coverage", 0.8)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "predicted,probability_no,probability_yes,set"
    assert {line.rsplit(",", 1)[1] for line in out.splitlines()[1:]} <= {"no", "yes", "no|yes"}


def test_classes_are_sorted_whichever_is_positive(calibrated):
    """As scikit-learn's tools expect; the record has the positive class of two last."""
    model = privsvm.load(calibrated)
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, model.n_features_in_))
    turned = ReleasedModel(model._path, model.record.model_copy(update={"classes": ["yes", "no"]}))
    assert turned.classes_.tolist() == model.classes_.tolist() == ["no", "yes"]
    assert (turned.predict(X) != model.predict(X)).all()
    np.testing.assert_array_equal(turned.decision_function(X), -model.decision_function(X))
    for answer, other in ((turned.predict_proba, model.predict_proba), (turned.predict_set, model.predict_set)):
        np.testing.assert_array_equal(answer(X), other(X)[:, ::-1])


def test_a_model_without_held_back_rows_says_so(hospital):
    model = privsvm.load(hospital / "model")
    X = np.zeros((1, model.n_features_in_))
    with pytest.warns(UserWarning, match="probabilities are not calibrated"):
        model.predict_proba(X)
    with pytest.raises(PrivSVMError, match="no rows were held back"):
        model.predict_set(X)
    assert "probabilities are not calibrated" in run("predict", hospital / "model", hospital / "new.csv")[2]
    code, out, err = run("predict", hospital / "model", hospital / "new.csv", "--coverage", 0.9)
    assert (code, out, "no rows were held back" in err) == (1, "", True)


def test_counts_that_are_not_covered_are_refused(calibrated, hospital, tmp_path):
    held_back = read_model(calibrated)[1].held_back
    less_noise = held_back | {"scale": held_back["scale"] / 2}
    for name, folder, counts in (("added", hospital / "model", held_back), ("scale", calibrated, less_noise)):
        target = shutil.copytree(folder, tmp_path / name)
        change_record(target, held_back=counts)
        with pytest.raises(PrivSVMError, match="does not cover its counts of rows"):
            _ = privsvm.load(target).protection_
        with pytest.raises(PrivSVMError):
            verify(target)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("counts", [[1.0]]), ("counts", "no"), ("counts", [[["a", "b"]]]), ("counts", [[[1e300, 1.0]], [[1.0, 1.0]]]),
        ("edges", [2.0, 1.0]), ("edges", [math.inf]), ("edges", None), ("number", 3.5), ("scale", 0.0), ("scale", -1),
        ("rows_per_unit", True), ("hold_back", "0.1"), ("more", 1), ("edges", [float(n) for n in range(100)]),
    ],
)  # fmt: skip
def test_impossible_counts_are_refused(key, value):
    counts = {"counts": [[[3.0, 1.0]], [[1.0, 2.0]]], "edges": [], "number": 7, "scale": 1.0}
    content = {"hold_back": 0.1, "rows_per_unit": 1, **counts}
    assert HeldBackCounts.from_json(copy.deepcopy(content), 2).to_json() == content
    with pytest.raises(ValueError, match="held-back counts"):
        HeldBackCounts.from_json(content | {key: value}, 2)


def test_an_audit_of_whole_releases_refutes_counts_without_noise(monkeypatch):
    """A sample of the audit: more draws show more, and never more than is stated."""
    audit = load_script("bench/audit/release.py")
    assert all(bound.sure <= 1.0 for bound in audit.audit_release(1.0, "replace_one", 80, True))
    monkeypatch.setattr(NoiseSource, "add_discrete_laplace", lambda self, numbers, *_: numbers)
    # What tells the tables apart is chosen on a tenth of the draws: of 160 it was once a bad choice.
    assert audit.audit_release(1.0, "replace_one", 1600, True)[0].sure > 1.0
