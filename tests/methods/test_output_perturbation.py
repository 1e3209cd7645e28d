"""Methods that add noise to solved weights: every row's effect, the path, two classes, accuracy."""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proof_pages import methods_of
from sklearn.datasets import load_breast_cancer, load_wine
from tests.adversarial import KINDS, all_but_the_number_of_rows, neighbours, scaled
from tests.replay import Recorder

from privsvm import (
    LandmarkDualClassifier,
    ObjectivePerturbationClassifier,
    OPERAAsPublishedClassifier,
    OPERAClassifier,
    OvRJointGaussianClassifier,
    PMSVMWPClassifier,
    PrivateSVMClassifier,
    PrivateSVMRBFClassifier,
)
from privsvm.families.output_perturbation import perturbation
from privsvm.families.output_perturbation.fourier_release import FourierRows
from privsvm.families.output_perturbation.hinge_release import HingeReleaseClassifier
from privsvm.families.output_perturbation.perturbation import (
    count_rounded_rows,
    public_gap,
    solution_sensitivity,
    solve_one_vs_rest,
)
from privsvm.families.output_perturbation.weight_perturbation import weight_sensitivity
from privsvm.methods import objective_perturbation
from privsvm.methods.ovr_joint_gaussian import centred_sensitivity, solve_centred
from privsvm.numerics.rows.row_grid import grid_rows
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.registry import estimator_class
from privsvm.solvers.linear.crammer_singer import solve_crammer_singer

METHODS = [estimator_class(name) for name in methods_of("output_perturbation")]
# One problem a class; two classes have one.
ONE_VS_REST = [method for method in METHODS if issubclass(method, HingeReleaseClassifier)]
CHOICES = {"composition": ["joint", "naive"], "constant": ["proved", "published"], "normalize": [False, True]}
# How much of epsilon the witness of an audit reaches at least, where it is more than a tenth.
AUDITED = {ObjectivePerturbationClassifier: 0.7, PMSVMWPClassifier: 0.8, OvRJointGaussianClassifier: 0.8}

# How far one row moves the weights of two classes and of three, over C and the longest row.
MOVED = {
    **dict.fromkeys(
        (PrivateSVMClassifier, PrivateSVMRBFClassifier, LandmarkDualClassifier, OPERAClassifier), (1.0, math.sqrt(3.0))
    ),
    OvRJointGaussianClassifier: (1.0, math.sqrt(8.0 / 3.0)),
    PMSVMWPClassifier: (math.sqrt(2.0), math.sqrt(2.0)),
}


def model_for(method, n_classes, **changes):
    """Make an estimator with the parameters that it declares."""
    chosen = {"classes": list(range(n_classes)), "C": 0.3, "data_norm": 1.5, "n_landmarks": 8, "n_components": 5}
    chosen |= {"gamma": 0.05, "allow_unsound": method is OPERAAsPublishedClassifier, **changes}
    return method(**{name: value for name, value in chosen.items() if name in method.declared})


def cases(*methods):
    """Parametrise a test by methods and all combinations of their choices."""
    params = []
    for method in methods:
        names = sorted(CHOICES.keys() & method.declared.keys())
        for words in itertools.product(*(CHOICES[name] for name in names)):
            name = "-".join([method.__name__, *map(str, words)])
            params.append(pytest.param(method, dict(zip(names, words, strict=True)), id=name))
    return pytest.mark.parametrize(("method", "chosen"), params)


@cases(*METHODS)
def test_weights_never_move_more_than_the_sensitivity(method, chosen):
    """Whatever the row that differs: the exact weights on the mechanism's grid, in the norm of the noise."""

    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(2, 8), st.integers(1, 12), st.floats(-10, 2),
        st.sampled_from([0.6, 1.0, 1.5]), st.floats(-4, 1),
    )  # fmt: skip
    def check(seed, kind, n_classes, n, log_C, norm, log_gamma):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3)) * rng.choice([0.1, 1, 10])
        y = rng.integers(0, n_classes, size=n)
        first, second, relation = neighbours(X, y, n_classes, kind, rng)
        if len(second[1]) == 0:
            return
        numbers = {"C": 10.0**log_C, "data_norm": norm, "gamma": 10.0**log_gamma, "neighbours": relation}
        model = model_for(method, n_classes, **numbers, **chosen)
        weights, guarantees = [], []
        for rows in (first, second):
            recorder = Recorder()
            guarantees += model.release_path(*rows, [1.0], 1, lambda epsilon, repeat, noise=recorder: noise).guarantees
            weights.append(np.concatenate([(call.given * call.stated.grid).ravel() for call in recorder.calls]))
        # A naive release accounts every class by itself, a joint one all of them together.
        naive = chosen.get("composition") == "naive" and n_classes > 2
        moved = (weights[0] - weights[1]).reshape(n_classes if naive else 1, -1)
        distances = np.linalg.norm(moved, 1 if recorder.calls[0].kind == "laplace" else 2, axis=1)
        assert distances.max() <= guarantees[0].sensitivity

    check()


@cases(*METHODS, ObjectivePerturbationClassifier)
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_path_is_accounted_audited_and_seeded(method, chosen, relation):
    X, y = scaled(load_wine)
    epsilons = [0.5, 8.0]
    model = model_for(method, 3, C=1e-3, neighbours=relation, n_components=30, n_landmarks=30, **chosen)
    first, second = (model.release_path(X, y, epsilons, 2, np.random.default_rng(3), audit=True) for _ in range(2))
    arrays = first.arrays()
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: array.tobytes() for name, array in second.arrays().items()
    }
    noisy = arrays.get("coef", arrays.get("pair_coef"))
    assert len({noisy[e, r].tobytes() for e in range(2) for r in range(2)}) == 4
    for epsilon, guarantee in zip(epsilons, first.guarantees, strict=True):
        assert (guarantee.status, guarantee.epsilon_requested) == ("seeded", epsilon)
        assert guarantee.delta == (model.delta if "delta" in method.declared else 0.0)
        assert guarantee.neighbours == relation == guarantee.witness.neighbours
        least = AUDITED.get(method, 0.1) * epsilon
        assert least < guarantee.witness.epsilon <= guarantee.epsilon_with_system_noise <= epsilon


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("method", MOVED)
def test_gaussian_noise_is_calibrated_to_what_a_row_moves(method, relation):
    multiplier, rows = gaussian_noise_multiplier(0.7, 1e-6), 2.0 if relation == "replace_one" else 1.0
    for n_classes, load in ((2, load_breast_cancer), (3, load_wine)):
        X, y = scaled(load)
        budget = {"epsilon": 0.7, "delta": 1e-6, "neighbours": relation, "composition": "joint"}
        guarantee = model_for(method, n_classes, **budget).fit(X, y).guarantee_
        moved = rows * MOVED[method][n_classes - 2] * 0.3 * (1.5 if "data_norm" in method.declared else 1.0)
        # About 1.5 % for the inexact solution, of one row and of two.
        assert moved < guarantee.sensitivity < moved * 1.032
        assert guarantee.noise_scale == pytest.approx(guarantee.sensitivity * multiplier, rel=1e-9)


@pytest.mark.parametrize("method", [*ONE_VS_REST, ObjectivePerturbationClassifier, OPERAAsPublishedClassifier])
def test_two_classes_release_one_vector(method):
    X, y = scaled(load_breast_cancer, 0.0)
    path = model_for(method, 2, C=0.05).release_path(X, y, [4.0, 8.0], 3, 0)
    assert path.scores(X, 0).shape == (3, len(y), 1)
    if hasattr(path, "coef"):
        assert path.coef.shape == (2, 3, 1, 10 if issubclass(method, FourierRows) else 30)


@pytest.mark.parametrize("method", [*METHODS, ObjectivePerturbationClassifier])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_the_sensitivity_does_not_depend_on_the_number_of_rows(method, relation):
    """Nor does anything else of the record: neighbours on two sides of a power of two have the same."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2049, 2)), np.arange(2049) % 3
    X[0] = 1e30
    model = method(classes=[0, 1, 2], C=0.01, neighbours=relation, random_state=0)
    first, second, third = (model.fit(X[:n], y[:n]).guarantee_ for n in (2049, 2048, 1))
    assert all_but_the_number_of_rows(first) == all_but_the_number_of_rows(second) == all_but_the_number_of_rows(third)
    assert first.facts.declared_rows == (2049 if relation == "replace_one" else None)
    assert first.status == "seeded"
    assert "power of two" not in " | ".join(first.assumptions)


def test_rounding_allows_as_many_rows_as_the_page_says():
    scales = [10.0**log_C for log_C in range(-12, 13)]
    assert min(count_rounded_rows(1e-10 * C**2, classes, C, 1.0) for C in scales for classes in range(2, 12)) == 10**9
    assert min(count_rounded_rows(1e-10 * C**2, 12, C, 1.0) for C in scales) == 10**8
    assert min(count_rounded_rows(public_gap(None, C, 1.0), 10, C, 1.0) for C in scales) == 10**12


@pytest.mark.parametrize("method", [*METHODS, ObjectivePerturbationClassifier])
def test_more_rows_than_rounding_allows_are_refused(method, monkeypatch):
    """Before anything is solved, by a public number that the record states: the exact ascent's weights are rounded."""
    stated = method(classes=[0, 1], C=0.05, random_state=0).fit([[-1.0], [1.0]] * 5, [0, 1] * 5).guarantee_.assumptions
    assert any(re.search(r"every data set of at most 1e\+(\d\d) rows, others are refused", text) for text in stated)
    # The lemma, without any rounding: so many rows make no weights that float64 moves by more than half of the target.
    for log_C, norm, classes, share in itertools.product((-12, -3, 0, 12), (1e-3, 1.0, 1e20), (2, 50), (1e-5, 1e-2)):
        C = 10.0**log_C / norm**2
        most = count_rounded_rows((share * C * norm) ** 2, classes, C, norm)
        squared = min(2 * (most * Fraction(C) * Fraction(norm)) ** 2, 2 * most * Fraction(C))
        moved = squared * (Fraction(classes + 4) / 2**53) ** 2
        assert 4 * moved <= (Fraction(share) * Fraction(C) * Fraction(norm)) ** 2
    # Too many classes for a few rows, in place of too many rows for a few classes.
    assert count_rounded_rows(1e-10 * 1e-24, 10**15, 1e-12, 1.0) < 10
    for module in (perturbation, objective_perturbation):
        monkeypatch.setattr(module, "count_covered_rows", lambda *_: 9)
    with pytest.raises(ValueError, match=r"X has 10 rows: .* for at most 9e\+00"):
        method(classes=[0, 1], C=0.05).fit([[-1.0], [1.0]] * 5, [0, 1] * 5)


def squared_distance(first, second):
    return sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(first.ravel(), second.ravel(), strict=True))


SIZES = st.sampled_from([5e-324, 1e-300, 1e-15, 1e-7, 0.3, 1.0, 10.0, 1e30, 1e308])


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(2, 4), st.integers(1, 6), st.floats(-11.5, 3),
       st.sampled_from([0.6, 1.0, 1e20]), st.lists(SIZES, min_size=6, max_size=6))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_weights_of_neighbours_are_within_the_sensitivity_as_rational_numbers(
    seed, kind, n_classes, n, log_C, norm, sizes
):
    """Squared distances of the solvers' float64 weights, without any rounding, beside the square of the bound."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X = X / np.abs(X).max(axis=1, keepdims=True) * np.array(sizes[:n])[:, None]
    y = rng.integers(0, n_classes, size=n)
    with np.errstate(over="ignore"):
        first, second, relation = neighbours(X, y, n_classes, kind, rng)
    if len(second[1]) == 0 or not all(np.isfinite(rows).all() for rows, _ in (first, second)):
        return
    C = 10.0**log_C / norm**2
    gap = public_gap(None, C, norm)
    sets = [(grid_rows(rows, norm), labels) for rows, labels in (first, second)]
    solutions = [solve_crammer_singer(rows, labels, n_classes, C, gap).coef for rows, labels in sets]
    assert squared_distance(*solutions) <= Fraction(weight_sensitivity(C, norm, relation, gap)) ** 2
    each = [solve_one_vs_rest(rows, labels, n_classes, C, gap) for rows, labels in sets]
    for vectors in zip(*each, strict=True):
        assert squared_distance(*vectors) <= Fraction(solution_sensitivity(C * norm, relation, gap)) ** 2
    centred = [solve_centred(rows, labels, n_classes, C, gap) for rows, labels in sets]
    bound = Fraction(centred_sensitivity(C, norm, n_classes, relation, gap))
    assert squared_distance(*centred) <= bound**2


@given(st.floats(1e-11, 1e11), st.floats(1e-3, 1e3), st.sampled_from(["replace_one", "add_remove"]), st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_sensitivities_are_rounded_up(C, norm, relation, share):
    gap = share * (C * norm) ** 2
    times = 2 if relation == "replace_one" else 1
    row, root = Fraction(C) * Fraction(norm), Fraction(math.sqrt(gap)) * (1 - Fraction(2) ** -52)
    assert Fraction(solution_sensitivity(C * norm, relation, gap)) >= times * row + 2 * root
    # (a - 2 sqrt(gap))^2 >= 2 (times C R)^2 for the released weights of all classes.
    excess = Fraction(weight_sensitivity(C, norm, relation, gap)) - 2 * root
    assert excess > 0
    assert excess**2 >= 2 * (times * row) ** 2


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 10])
def test_the_distances_of_all_problems_count(n_classes, relation):
    """Each of the problems that are released together may be that far from its optimum, on either data set."""
    n_problems = 1 if n_classes == 2 else n_classes
    closed, off = (centred_sensitivity(0.3, 1.0, n_classes, relation, gap) for gap in (0.0, 1e-2))
    assert off - closed >= 2 * math.sqrt(n_problems * 1e-2) * (1 - 1e-12)


@pytest.mark.parametrize("method", [*METHODS, *map(estimator_class, methods_of("second_moments"))])
def test_data_without_anything_to_learn_is_answered(method):
    """One row, rows of zeros, rows of one class, equal rows, and rows that are too large for a square."""
    model = method(classes=[0, 1, 2], random_state=0)
    for X, y in (
        ([[0.3, 0.1]], [2]),
        (np.zeros((5, 2)), [0, 1, 2, 0, 1]),
        (np.full((6, 2), 5e-324), [0, 1, 2, 0, 1, 2]),
        (np.random.default_rng(0).normal(size=(9, 2)), [1] * 9),
        (np.ones((7, 2)), [0, 1, 2, 0, 1, 2, 0]),
        (np.array([[1e308, -1e308], [1e308, 1e308], [5e-324, 1e308]]), [0, 1, 2]),
    ):
        assert model.fit(X, y).guarantee_.status == "seeded"
        assert np.isfinite(model.decision_function([[0.5, -0.5], [0.0, 0.0]])).all()
