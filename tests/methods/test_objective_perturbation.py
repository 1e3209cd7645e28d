import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from tests.adversarial import KINDS, Silence, neighbours, scaled
from tests.methods.test_what_a_model_holds import held

from privsvm.families.output_perturbation.perturbation import one_vs_rest_signs
from privsvm.methods.objective_perturbation import ObjectivePerturbationClassifier, smoothing_for
from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.privacy.objective_perturbation import ObjectivePerturbation
from privsvm.solvers.linear.hinge import smoothed_hinge_slopes
from privsvm.solvers.linear.smoothed_hinge import solve_smoothed_hinge


def model_for(n_classes, **changes):
    chosen = {"classes": list(range(n_classes)), "C": 0.01, "data_norm": 1.5, **changes}
    return ObjectivePerturbationClassifier(**chosen)


def log_density(w, X, signs, C, h, s):
    """Logarithm of the density of one problem's minimum, but for a constant, and the linear term that belongs to it."""
    margins = signs * (X @ w)
    term = -(w + C * X.T @ (smoothed_hinge_slopes(margins, h) * signs))
    curved = X[(margins < 1) & (margins > 1 - h)]
    _, determinant = np.linalg.slogdet(np.eye(w.size) + C / h * curved.T @ curved)
    return float(determinant - term @ term / (2 * s**2)), term


def changed_rows(first, second):
    """The one row (with its sign) in which each of two datasets differs from the other; an empty one if none."""
    (X, signs), (other_X, other_signs) = first, second
    n = len(other_signs)
    differ = np.flatnonzero((X[:n] != other_X).any(axis=1) | (signs[:n] != other_signs))
    if n < len(signs):
        index = int(differ[0]) if differ.size else n
        return np.append(X[index], signs[index]), np.empty(0)
    index = int(differ[0]) if differ.size else 0
    assert differ.size <= 1
    return np.append(X[index], signs[index]), np.append(other_X[index], other_signs[index])


def largest_loss(changes, term, s):
    """Positive part of a Gaussian release's privacy loss, averaged over the rows' changes of the gradient."""
    losses = [change @ change / (2 * s**2) + change @ term / s**2 for change in changes]
    return float(np.mean(np.maximum(losses, 0.0)))


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(1, 10), st.integers(1, 4), st.floats(-3, 2),
       st.floats(-1.5, 0.5), st.floats(-1, 2))  # fmt: skip
@settings(max_examples=250, deadline=None)
def test_no_privacy_loss_exceeds_what_the_proof_says(seed, kind, n, d, log_C, log_h, log_s):
    """The exact privacy loss at minima that the solver finds, against the bound whose moments are accounted."""
    rng = np.random.default_rng(seed)
    first, second, relation = neighbours(rng.normal(size=(n, d)), rng.integers(0, 2, size=n), 2, kind, rng)
    C, h, norm = 10.0**log_C, 10.0**log_h, 1.5
    s = C * norm * 10.0**log_s
    sets = [(grid_rows(X, norm), np.where(y == 1, 1.0, -1.0)) for X, y in (first, second)]
    changed = [row[None] if len(row) else np.empty((0, d + 1)) for row in changed_rows(*sets)]
    beta = math.log1p(C * norm**2 / h)
    for turn in (0, 1):
        here, there = sets[turn], sets[1 - turn]
        old, new = changed[turn], changed[1 - turn]
        w = solve_smoothed_hinge(*here, C, h, 1e-9 * C, rng.normal(size=d) * s).coef
        (log_p, term), (log_q, _) = (log_density(w, *one, C, h, s) for one in (here, there))
        # From here to there, a row's pull on the gradient is removed, or put there.
        pulls = [-C * row[-1] * row[:-1] for row in old] + [C * row[-1] * row[:-1] for row in new]
        pulls = [np.asarray(pull) * (2.0 if relation == "replace_one" else 1.0) for pull in pulls]
        bound = largest_loss(pulls, term, s)
        # The determinants only help where a row is added.
        determinants = 0.0 if relation == "add_remove" and len(new) else beta
        assert log_p - log_q <= bound + determinants + 1e-6 * (1 + abs(bound) + abs(log_p))


def test_without_noise_it_is_the_smoothed_hinge_svm():
    X, y = scaled(load_wine)
    model = model_for(3, C=0.2, smoothing=0.7, epsilon=8.0)
    path = model.release_path(X, y, [8.0], 1, lambda epsilon, repeat: Silence())
    rows = X * np.minimum(1, 1.5 / np.linalg.norm(X, axis=1))[:, None]
    for coef, signs in zip(path.coef[0, 0], one_vs_rest_signs(y, 3), strict=True):
        gradient = coef + 0.2 * rows.T @ (smoothed_hinge_slopes(signs * (rows @ coef), 0.7) * signs)
        assert np.linalg.norm(gradient) <= 2e-5 * 0.2 * 1.5


def test_the_default_smoothing_is_public_and_leaves_most_of_the_budget():
    for n_vectors in (1, 3, 26):
        for epsilon in (0.1, 1.0, 8.0):
            h = smoothing_for(epsilon, 0.5, 2.0, n_vectors)
            assert n_vectors * math.log1p(0.5 * 4 / h) <= 0.2 * epsilon * (1 + 1e-12)
            assert h >= 0.1
    assert smoothing_for(1.0, 1e-5, 1.0, 1) == 0.1


@pytest.mark.parametrize("weaker", [{"row_bound": 0.8}, {"curvature": 0.1}])
def test_the_audit_finds_noise_that_is_too_small(weaker, monkeypatch):
    """A mechanism that is told of shorter rows, or of less curvature, than there are: its own witness refutes it."""
    built = ObjectivePerturbation.__init__

    def told_less(self, **changes):
        for name, factor in weaker.items():
            changes[name] *= factor
        built(self, **changes)

    X, y = scaled(load_breast_cancer)
    # A narrow margin shows the cost of the curvature.
    chosen = {"row_bound": {"C": 1e-3}, "curvature": {"C": 0.2, "smoothing": 0.075}}[next(iter(weaker))]
    model = model_for(2, neighbours="add_remove", **chosen)
    assert model.release_path(X, y, [2.0], 1, 0, audit=True).guarantees[0].witness.epsilon <= 2.0
    monkeypatch.setattr(ObjectivePerturbation, "__init__", told_less)
    with pytest.raises(ValueError, match="a witness refutes"):
        model.release_path(X, y, [2.0], 1, 0, audit=True)


def test_the_model_keeps_neither_its_linear_terms_nor_its_minimum(monkeypatch):
    kept = []
    release = ObjectivePerturbation.release

    def watched(self, minima, rng):
        kept.append(minima)
        return release(self, minima, rng)

    monkeypatch.setattr(ObjectivePerturbation, "release", watched)
    X, y = scaled(load_wine)
    model = model_for(3).fit(X, y)
    (minima,) = kept
    assert 0 < np.abs(model.coef_ - minima).max() < 0.1 * model.guarantee_.noise_scale

    assert not held(model, minima.ravel())
    assert not hasattr(model, "n_iter_")


def test_what_cannot_be_proved_or_held_is_refused():
    with pytest.raises(ValueError, match="the curvature of the loss alone costs"):
        model_for(3, C=1.0, smoothing=0.5).fit(np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="float64 cannot hold weights as long as its noise"):
        model_for(2, C=1e-9)._mechanism(1e-4, 1e-5, 0.5, 10**16, 1)


def test_a_loss_with_hardly_any_smoothing_is_answered():
    """Slopes change so fast there that float64 certifies nothing: whole numbers do."""
    guarantee = model_for(2, C=1e-2, smoothing=1e-13, epsilon=45.0).fit(np.eye(2), [0, 1]).guarantee_
    assert guarantee.status == "proved"
