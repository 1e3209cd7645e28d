"""What every method owes its users: the scikit-learn contract, and errors that name the argument."""

import copy
import inspect

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.refusals import refusal

import privsvm
from privsvm import (
    DPFrankWolfeClassifier,
    DPSVMDVPClassifier,
    DPWSSClassifier,
    LandmarkDualClassifier,
    ObjectivePerturbationClassifier,
    OneNormSVMClassifier,
    OPERAAsPublishedClassifier,
    PMSVMAGPClassifier,
    PMSVMGPClassifier,
    PMSVMWPAsPublishedClassifier,
    PPSVMClassifier,
    PrivateSVMRBFClassifier,
    ReducedSVMClassifier,
    SVMClassifier,
    WestonWatkinsClassifier,
)
from privsvm.base.estimators import noise_streams
from privsvm.base.released import path_from_arrays
from privsvm.digests import canonical_json
from privsvm.privacy.gate import Guarantee
from privsvm.privacy.statement import NEIGHBOURS
from privsvm.registry import estimator_class, implementations
from privsvm_bench.records import parse

# Every method there is, so that none can fall out.
METHODS = [estimator_class(implementation) for implementation in implementations()]
PRIVATE = [method for method in METHODS if "epsilon" in method.declared]
# Their epsilon does not hold.
UNSOUND = [DPSVMDVPClassifier, DPWSSClassifier, OPERAAsPublishedClassifier, PMSVMWPAsPublishedClassifier]
SOUND = [method for method in PRIVATE if method not in UNSOUND]
UNPROVED = [method for method in METHODS if method not in SOUND]
# Other kernels of methods that have several.
KERNELS = {
    DPWSSClassifier: {"kernel": "rbf"},
    **{method: {"kernel": "gaussian"} for method in (OneNormSVMClassifier, ReducedSVMClassifier, PPSVMClassifier)},
}


def with_kernels(methods):
    """Parametrise a test by methods, and by other kernels of those that have several."""
    cases = [*((method, {}) for method in methods), *KERNELS.items()]
    names = [f"{method.__name__}{''.join(f'-{kernel}' for kernel in chosen.values())}" for method, chosen in cases]
    return pytest.mark.parametrize(("method", "chosen"), cases, ids=names)


def ready(method, **chosen):
    """An estimator that fits whatever it is given, with the same noise every time."""
    common = {"allow_unsound": True, "random_state": 0}
    return method(**{name: value for name, value in common.items() if name in method.declared}, **chosen)


# Weighted rows against repeated ones, to seven digits.
WEIGHTED = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]

X = np.array([[0.0, 0.1], [0.2, 0.0], [1.0, 0.9], [0.8, 1.0]] * 5)
Y = np.array(["no", "no", "yes", "yes"] * 5)


def scikit_learn_checks(estimators):
    """Parametrise a test with scikit-learn's checks of estimators."""
    return parametrize_with_checks(
        estimators,
        expected_failed_checks=lambda estimator: (
            dict.fromkeys(WEIGHTED, "equal to the solver's tolerance only")
            if isinstance(estimator, SVMClassifier)
            else {}
        ),
    )


# One method of each base class; the others inherit what scikit-learn checks.
FIRST = {method.__bases__[0]: method for method in reversed(METHODS)}.values()


@scikit_learn_checks([ready(method) for method in FIRST])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.long
@scikit_learn_checks(
    [
        *[ready(method) for method in METHODS if method not in FIRST],
        ready(PMSVMAGPClassifier, learning_rate=0.1),
        ready(WestonWatkinsClassifier, fit_intercept=True),
        *[ready(method, **chosen) for method, chosen in KERNELS.items()],
    ]
)
def test_scikit_learn_contract_of_other_methods(estimator, check):
    check(estimator)


def test_public_names_exist():
    assert len(privsvm.__all__) <= 20
    for name in [*privsvm.__all__, *privsvm.methods.__all__]:
        assert getattr(privsvm, name).__name__ == name
    for name in privsvm.methods.__all__:
        assert getattr(privsvm.methods, name) is getattr(privsvm, name)
    with pytest.raises(AttributeError, match="NoSuchClassifier"):
        privsvm.NoSuchClassifier  # noqa: B018


def test_every_public_estimator_is_a_method():
    named = {name for name in {*privsvm.__all__, *privsvm.methods.__all__} if name.endswith("Classifier")}
    assert named == {method.__name__ for method in METHODS}
    assert set(dir(privsvm)) >= named


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_the_declaration_is_the_constructor(method):
    signature = inspect.signature(method)
    assert set(signature.parameters) == set(method.declared) == set(method().get_params())
    for name, item in method.declared.items():
        assert signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert signature.parameters[name].default is item.default
        assert signature.parameters[name].annotation != inspect.Parameter.empty
        assert item.constraint.accepts(item.default), name
        assert f"\n{name} : " in method.__doc__
    with pytest.raises(TypeError, match=r"has no parameter 'epsilom'"):
        method(epsilom=1.0)
    with pytest.raises(TypeError, match="positional"):
        method(1.0)


def refused_values(schema):
    """List values that a JSON schema of a parameter refuses: of other types, and at or beyond its limits."""
    options = schema.get("anyOf", [schema])
    kinds = {option.get("type") for option in options}
    values = ["rfb", np.nan, np.inf, -np.inf, object]
    values += [value for value, kind in ((True, "boolean"), (None, "null"), ([1.0], "array")) if kind not in kinds]
    if "array" in kinds:
        values += [[]] * any("minItems" in option for option in options)
    numeric = [option for option in options if option.get("type") in ("number", "integer")]
    if not numeric:
        return [*values, 1, 1.5]
    low = min(option.get("minimum", option.get("exclusiveMinimum", -np.inf)) for option in numeric)
    high = max(option.get("maximum", option.get("exclusiveMaximum", np.inf)) for option in numeric)
    if low > -np.inf:
        values += [low - 1] + [low * 0.9] * (low > 0) + [low] * all("exclusiveMinimum" in option for option in numeric)
    if high < np.inf:
        values += [2 * high] + [high] * ("exclusiveMaximum" in numeric[0])
    return values if "number" in kinds else [*values, low + 0.5]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_bad_parameters_are_named_with_their_value(method):
    for name, item in method.declared.items():
        for value in [*refused_values(item.constraint.schema), 3.0 if name == "class_weight" else {1: 2}]:
            if item.constraint.also is not None and item.constraint.also(value):
                continue
            model = ready(method, classes=["no", "yes"]).set_params(**{name: value})
            message = refusal(model.fit, X, Y, error=ValueError)
            assert message.startswith(f"{name}=")
            assert str(value) in message


@pytest.mark.parametrize(
    ("estimator", "changes"),
    [
        *[(method(), {"allow_unsound": False}) for method in UNSOUND],
        *[(method(), {"gap": 1e-30}) for method in SOUND if "gap" in method.declared],
        *[
            (method(kernel="gaussian"), {"gamma": "scale"})
            for method in (OneNormSVMClassifier, ReducedSVMClassifier, PPSVMClassifier)
        ],
        (PrivateSVMRBFClassifier(), {"gamma": "scale"}),
        (LandmarkDualClassifier(), {"gamma": "scale"}),
        (LandmarkDualClassifier(), {"bounds": (1.0, -1.0)}),
        (DPFrankWolfeClassifier(), {"neighbours": "add_remove"}),
        *[(method(), {"mbar": value}) for method in (ReducedSVMClassifier, PPSVMClassifier) for value in (1.5, 21)],
        (PPSVMClassifier(), {"entities": 3}),
        (ObjectivePerturbationClassifier(), {"C": 1e13}),
        *[(ObjectivePerturbationClassifier(), {"tol": value}) for value in (1e-30, 1.0)],
        (PMSVMGPClassifier(), {"n_jobs": 0}),
    ],
    ids=str,
)
def test_values_that_others_rule_out_are_named(estimator, changes):
    """The declaration accepts them, or a method that is alike does."""
    ((name, value),) = changes.items()
    model = copy.deepcopy(estimator).set_params(**{"classes": ["no", "yes"], **changes})
    message = refusal(model.fit, X, Y, error=ValueError)
    assert f"{name}=" in message
    assert str(value) in message


def by_block(rows, folder):
    np.save(folder / "rows.npy", rows)
    return privsvm.open_rows(folder / "rows.npy")


KINDS = {"array": lambda rows, folder: rows, "sparse": lambda rows, folder: scipy.sparse.csr_array(rows),
         "blocks": by_block}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (method, kind)
        for method in SOUND
        for kind in KINDS
        if method.declared["neighbours"].constraint.accepts("add_remove") and (kind != "blocks" or method.reads_blocks)
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_no_row_is_treated_like_its_neighbour_of_one(method, kind, tmp_path):
    """Under add_remove, and with all outputs: the guarantee, the witness and the arrays of a path."""
    settings = {"neighbours": "add_remove", "n_rows": 20, "classes": ["no", "yes"], "epsilon": 2.0}
    model = method(**{name: value for name, value in settings.items() if name in method.declared})
    tables = [(KINDS[kind](rows, tmp_path), Y[: len(rows)]) for rows in (X[:0], X[:1])]
    none, one = (copy.deepcopy(model).fit(*table) for table in tables)
    assert none.guarantee_ == one.guarantee_
    assert none.guarantee_.status == "proved"
    assert none.decision_function(X).shape == one.decision_function(X).shape
    assert set(none.predict(X)) <= {"no", "yes"}
    if kind == "array":
        path = copy.deepcopy(model).release_path(*tables[0], [1.0, 2.0], 2, rng=0, audit=True)
        with pytest.raises(ValueError, match="audit=True: a witness is computed"):
            copy.deepcopy(model).release_path(*tables[0], [1.0], 1, audit=True)
        assert path.scores(X, 0).shape[0] == 2
        with pytest.raises(ValueError, match="0 sample"):
            copy.deepcopy(model).set_params(neighbours="replace_one").fit(*tables[0])


@pytest.mark.parametrize("method", [method for method in UNSOUND if "neighbours" in method.declared])
def test_no_row_is_refused_where_nothing_is_proved(method):
    with pytest.raises(ValueError, match="0 sample"):
        ready(method, classes=["no", "yes"], neighbours="add_remove").fit(X[:0], Y[:0])


def test_a_private_search_of_no_row_is_like_one_of_one():
    model = privsvm.PrivateLinearClassifier(classes=["no", "yes"], neighbours="add_remove")
    search = privsvm.PrivateSearch(model, {"features": ["linear", "fourier"]}, epsilon=4.0)
    none, one = (copy.deepcopy(search).fit(X[:n], Y[:n]).guarantee_ for n in (0, 1))
    assert none == one
    assert none.status == "proved"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_labels_outside_the_declared_classes_are_named(method):
    """`test_scikit_learn_contract` looks at rows that are missing, infinite or of other features."""
    model = ready(method, classes=["no", "yes"])
    with pytest.raises(ValueError, match="'maybe'"):
        clone(model).fit(X, ["maybe", *Y[1:]])
    with pytest.raises(ValueError, match=r"one class|1 class"):
        clone(model).set_params(classes=["no"]).fit(X, ["no"] * len(X))


@pytest.mark.parametrize("method", PRIVATE)
def test_noise_is_fresh_and_the_record_says_where_it_came_from(method):
    made = {"classes": ["no", "yes"], "allow_unsound": True}
    first = method(**made).fit(X, Y)
    assert first.guarantee_.randomness == "system"
    # Two models of DPWSS are equal with probability .13; all of these are with less than .36^18, or 1e-8.
    others = (method(**made).fit(X, Y) for _ in range(18))
    assert any(not np.array_equal(first.decision_function(X), other.decision_function(X)) for other in others)
    assert method(**made, random_state=1).fit(X, Y).guarantee_.randomness == "seeded"


@pytest.mark.parametrize("method", PRIVATE)
def test_models_of_one_epsilon_do_not_depend_on_the_grid(method):
    model = method(classes=["no", "yes"], allow_unsound=True)
    alone, among = (model.release_path(X, Y, grid, 2, 7) for grid in ([1.0], [0.5, 1.0, 2.0]))
    assert alone.release_seconds > 0.0
    # Products of more models may be rounded in another way.
    assert np.allclose(alone.scores(X, 0), among.scores(X, 1), rtol=1e-9)


@with_kernels(METHODS)
def test_a_stored_path_predicts_the_same(method, chosen):
    path = ready(method, classes=["no", "yes"], **chosen).release_path(X, Y, [0.5, 8.0], 2, 0)
    again = path_from_arrays(
        path.kind, path.arrays(), epsilons=path.epsilons, guarantees=path.guarantees, n_classes=path.n_classes
    )
    last = len(path.epsilons) - 1
    assert np.array_equal(again.scores(X, last), path.scores(X, last))
    assert np.allclose(again.scores(scipy.sparse.csr_array(X), 0), path.scores(X, 0), atol=1e-9)
    assert np.array_equal(again.codes(again.scores(X, 0)), path.codes(path.scores(X, 0)))


@pytest.mark.parametrize("method", [method for method in METHODS if method not in PRIVATE])
def test_without_privacy_one_model_is_released_and_says_so(method):
    path = ready(method).release_path(X, Y, [0.5, 8.0], 2, 0)
    (guarantee,) = path.guarantees
    assert (path.epsilons, path.n_repeats) == ((np.inf,), 1)
    assert (guarantee.status, guarantee.epsilon_proved) == ("none", np.inf)
    assert guarantee.reason
    assert path.fit_seconds > 0.0
    model = ready(method).fit(X, Y)
    assert np.array_equal(model.classes_[path.codes(path.scores(X, 0))[0]], model.predict(X))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("method", UNSOUND)
def test_a_claim_is_recorded_as_no_more_than_that(method, neighbours):
    path = ready(method, neighbours=neighbours).release_path(X, Y, [0.5, 2.0], 1, 0, audit=True)
    for guarantee, epsilon in zip(path.guarantees, (0.5, 2.0), strict=True):
        assert (guarantee.status, guarantee.epsilon_requested) == ("claimed", epsilon)
        assert (guarantee.epsilon_proved, guarantee.neighbours) == (np.inf, neighbours)
        assert guarantee.reason
        assert parse(Guarantee, canonical_json(guarantee), "stored") == guarantee


# Without a negative number: the condensing methods divide sparse rows by the largest one, and dense ones by the range.
TABLE = np.abs(np.random.default_rng(0).normal(size=(90, 5))) * (np.random.default_rng(1).random((90, 5)) < 0.6)
LABELS = np.array([2, 1, 0])[np.digitize(TABLE[:, 0] - TABLE[:, 1], [-0.3, 0.4])]


@with_kernels(UNPROVED)
def test_sparse_rows_and_absent_classes_change_no_unproved_model(method, chosen):
    """`test_edges.py` compares the bits of proved methods. Declared classes without rows keep their place."""
    tight = {"gap": 1e-10, "tol": 1e-7, "epsilon": 1e6}
    model = ready(method, **chosen, **{name: value for name, value in tight.items() if name in method.declared})
    dense, sparse, more = (
        clone(model).set_params(**({"classes": classes} if "classes" in method.declared else {})).fit(rows, LABELS)
        for rows, classes in (
            (TABLE, [2, 1, 0]), (scipy.sparse.csr_array(TABLE), [2, 1, 0]), (TABLE, [2, 7, 1, 0])
        )
    )  # fmt: skip
    scores = dense.decision_function(TABLE)
    assert np.allclose(sparse.decision_function(TABLE), scores, atol=1e-4 * np.abs(scores).max())
    if "classes" in method.declared:
        assert more.classes_.tolist() == [0, 1, 2, 7]
        assert more.decision_function(TABLE).shape == (90, 4)
        # All problems against the rest may say no to a row.
        assert (more.predict(TABLE) == 7).mean() < 0.05


@pytest.mark.parametrize("method", SOUND)
def test_huge_rows_do_not_stop_the_training(method):
    rows = X.copy()
    rows[0], rows[1, 0] = 1e308, -1e200
    assert np.isfinite(ready(method, classes=["no", "yes"]).fit(rows, Y).decision_function(X)).all()


def test_two_methods_with_one_seed_share_no_noise():
    streams = [noise_streams(0, estimator_class()) for estimator_class in SOUND]
    assert len({stream(1.0, 0).next_key() for stream in streams}) == len(SOUND)
    assert streams[0](1.0, 0).next_key() == noise_streams(0, SOUND[0]())(1.0, 0).next_key()
