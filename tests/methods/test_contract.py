"""What every method owes its users: the scikit-learn contract, and errors that name the argument."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import privsvm
from privsvm import (
    CISVMClassifier,
    CrammerSingerClassifier,
    DPFrankWolfeClassifier,
    DPSVMDVPClassifier,
    DPWSSClassifier,
    FCMSVMClassifier,
    GRPUAClassifier,
    LandmarkDualClassifier,
    M3SVMClassifier,
    MajorityClassifier,
    ObjectivePerturbationClassifier,
    OneNormSVMClassifier,
    OPERAClassifier,
    OvRJointGaussianClassifier,
    PMSVMClassifier,
    PPSVMClassifier,
    PrivateSVMClassifier,
    ReducedSVMClassifier,
    SoftmaxDPSGDClassifier,
    SVMClassifier,
    WestonWatkinsClassifier,
)
from privsvm.base.estimators import noise_streams
from privsvm.base.validation import check_training_data

X = np.array([[0.0, 0.1], [0.2, 0.0], [1.0, 0.9], [0.8, 1.0]] * 5)
Y = np.array(["no", "no", "yes", "yes"] * 5)


@parametrize_with_checks(
    [
        SVMClassifier(),
        MajorityClassifier(),
        DPSVMDVPClassifier(allow_unsound=True, random_state=0),
        DPWSSClassifier(allow_unsound=True, random_state=0),
        DPWSSClassifier(allow_unsound=True, kernel="rbf", random_state=0),
        PMSVMClassifier(allow_unsound=True, random_state=0),
        PMSVMClassifier(allow_unsound=True, variant="as_published", random_state=0),
        PMSVMClassifier(allow_unsound=True, perturbation="gradient", random_state=0),
        PMSVMClassifier(allow_unsound=True, perturbation="adaptive", learning_rate=0.1, random_state=0),
        SoftmaxDPSGDClassifier(allow_unsound=True, random_state=0),
        GRPUAClassifier(allow_unsound=True, random_state=0),
        PrivateSVMClassifier(allow_unsound=True, random_state=0),
        PrivateSVMClassifier(allow_unsound=True, kernel="rbf", mechanism="laplace", random_state=0),
        LandmarkDualClassifier(allow_unsound=True, random_state=0),
        DPFrankWolfeClassifier(allow_unsound=True, random_state=0),
        OneNormSVMClassifier(),
        OneNormSVMClassifier(kernel="gaussian"),
        ReducedSVMClassifier(random_state=0),
        ReducedSVMClassifier(kernel="gaussian", random_state=0),
        PPSVMClassifier(random_state=0),
        PPSVMClassifier(kernel="gaussian", random_state=0),
        CISVMClassifier(),
        FCMSVMClassifier(random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_public_names_exist():
    for name in privsvm.__all__:
        assert getattr(privsvm, name).__name__ == name
    with pytest.raises(AttributeError, match="NoSuchClassifier"):
        privsvm.NoSuchClassifier  # noqa: B018


ESTIMATORS = [
    SVMClassifier(),
    MajorityClassifier(),
    DPSVMDVPClassifier(allow_unsound=True, random_state=0),
    DPWSSClassifier(allow_unsound=True, random_state=0),
    PMSVMClassifier(classes=["no", "yes"], random_state=0),
    PrivateSVMClassifier(classes=["no", "yes"], random_state=0),
    LandmarkDualClassifier(classes=["no", "yes"], random_state=0),
    DPFrankWolfeClassifier(classes=["no", "yes"], random_state=0),
    PMSVMClassifier(classes=["no", "yes"], perturbation="gradient", random_state=0),
    SoftmaxDPSGDClassifier(classes=["no", "yes"], random_state=0),
    GRPUAClassifier(classes=["no", "yes"], random_state=0),
    OPERAClassifier(classes=["no", "yes"], random_state=0),
    OvRJointGaussianClassifier(classes=["no", "yes"], random_state=0),
    ObjectivePerturbationClassifier(classes=["no", "yes"], random_state=0),
    CrammerSingerClassifier(),
    WestonWatkinsClassifier(),
    M3SVMClassifier(),
    OneNormSVMClassifier(),
    ReducedSVMClassifier(random_state=0),
    PPSVMClassifier(random_state=0),
    CISVMClassifier(),
    FCMSVMClassifier(random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
class TestBadInput:
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, estimator, value):
        rows = X.copy()
        rows[3, 1] = value
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            clone(estimator).fit(rows, Y)

    def test_empty(self, estimator):
        with pytest.raises(ValueError, match="0 sample"):
            clone(estimator).fit(np.empty((0, 2)), [])

    def test_wrong_width_at_predict(self, estimator):
        with pytest.raises(ValueError, match="3 features"):
            clone(estimator).fit(X, Y).predict(np.zeros((2, 3)))

    def test_label_outside_the_public_classes(self, estimator):
        with pytest.raises(ValueError, match="'maybe'"):
            clone(estimator).set_params(classes=["no", "yes"]).fit(X, ["maybe", *Y[1:]])

    def test_one_class(self, estimator):
        with pytest.raises(ValueError, match=r"one class|1 class"):
            clone(estimator).set_params(classes=["no"]).fit(X, ["no"] * len(X))


@pytest.mark.parametrize(
    ("estimator", "changes"),
    [
        (SVMClassifier(), {"C": 0}),
        (SVMClassifier(), {"C": np.inf}),
        (SVMClassifier(), {"gamma": -1.0}),
        (SVMClassifier(), {"tol": 0.0}),
        (SVMClassifier(), {"kernel": "rfb"}),
        *[
            (DPWSSClassifier(allow_unsound=True), changes)
            for changes in (
                {"epsilon": 0},
                {"epsilon": np.inf},
                {"sigma": 0.0},
                {"sigma": 1.0},
                {"C": -1.0},
                {"kernel": "rfb"},
                {"gamma": 0.0},
                {"degree": 1.5},
                {"coef0": np.inf},
                {"tol": 0.0},
                {"max_iter": -2},
                {"cache_size": 0},
                {"neighbours": "replace"},
                {"allow_unsound": False},
            )
        ],
        (PMSVMClassifier(), {"epsilon": 0}),
        (PMSVMClassifier(), {"epsilon": -2.0}),
        (PMSVMClassifier(), {"delta": 1.0}),
        (PMSVMClassifier(), {"C": -1.0}),
        (PMSVMClassifier(), {"data_norm": 0.0}),
        *[
            (estimator, {name: value})
            for estimator, name in (
                (PMSVMClassifier(), "data_norm"),
                (PrivateSVMClassifier(), "data_norm"),
                (DPFrankWolfeClassifier(), "data_bound"),
            )
            for value in (9e-101, 2e100)
        ],
        *[
            (estimator, {"allow_unsound": value})
            for estimator in (
                PMSVMClassifier(),
                PrivateSVMClassifier(),
                LandmarkDualClassifier(),
                DPFrankWolfeClassifier(),
                DPWSSClassifier(),
                DPSVMDVPClassifier(),
            )
            for value in (1, "false", None)
        ],
        (PMSVMClassifier(), {"gap": 0.0}),
        (PMSVMClassifier(), {"variant": "as_publishd"}),
        (PMSVMClassifier(), {"neighbours": "replace"}),
        (PMSVMClassifier(), {"classes": None}),
        (PMSVMClassifier(), {"variant": "as_published"}),
        *[
            (estimator, changes)
            for estimator in (PrivateSVMClassifier(), LandmarkDualClassifier(), DPFrankWolfeClassifier())
            for changes in (
                {"epsilon": 0},
                {"epsilon": np.inf},
                {"delta": 0.0},
                {"neighbours": "replace"},
                {"classes": None},
            )
        ],
        *[
            (estimator, changes)
            for estimator in (PrivateSVMClassifier(), LandmarkDualClassifier())
            for changes in (
                {"C": 0},
                {"C": True},
                {"gamma": -1.0},
                {"gap": 0.0},
                {"gap": 1e-30},
                {"composition": "jiont"},
            )
        ],
        (PrivateSVMClassifier(), {"data_norm": 0.0}),
        (PrivateSVMClassifier(), {"kernel": "poly"}),
        (PrivateSVMClassifier(), {"gamma": "sacle"}),
        (PrivateSVMClassifier(kernel="rbf"), {"gamma": "scale"}),
        (PrivateSVMClassifier(), {"n_components": 0}),
        (PrivateSVMClassifier(), {"n_components": 2.5}),
        (PrivateSVMClassifier(), {"features_seed": -1}),
        (PrivateSVMClassifier(), {"mechanism": "laplac"}),
        (LandmarkDualClassifier(), {"gamma": "scale"}),
        (LandmarkDualClassifier(), {"n_landmarks": 0}),
        (LandmarkDualClassifier(), {"normalize": 1}),
        (LandmarkDualClassifier(), {"landmarks_public": 1}),
        (LandmarkDualClassifier(), {"landmarks_seed": 0.5}),
        (LandmarkDualClassifier(), {"bounds": (1.0, -1.0)}),
        (LandmarkDualClassifier(), {"bounds": 1.0}),
        (DPFrankWolfeClassifier(), {"radius": -1.0}),
        (DPFrankWolfeClassifier(), {"n_steps": 0}),
        (DPFrankWolfeClassifier(), {"data_bound": 0.0}),
        (DPFrankWolfeClassifier(), {"smoothing": 0.0}),
        (DPFrankWolfeClassifier(), {"fit_intercept": 2}),
        (DPFrankWolfeClassifier(), {"neighbours": "add_remove"}),
        *[
            (estimator_class(kernel="gaussian"), changes)
            for estimator_class in (OneNormSVMClassifier, ReducedSVMClassifier, PPSVMClassifier)
            for changes in (
                {"C": 0},
                {"C": "tuned"},
                {"C": np.nan},
                {"kernel": "rbf"},
                {"gamma": -1.0},
                {"gamma": "scale"},
                {"gamma": "tune"},
            )
        ],
        *[
            (estimator_class(), {"mbar": value})
            for estimator_class in (ReducedSVMClassifier, PPSVMClassifier)
            for value in (0, -0.1, 1.5, True, "all", 21)
        ],
        *[(PPSVMClassifier(), {"entities": value}) for value in (0, 3, 1.5, [[0], []], [[0]], [[0, 1], [1]], "two")],
        (PPSVMClassifier(), {"standardize": 1}),
    ],
)
def test_bad_parameters_are_named_with_their_value(estimator, changes):
    name, value = next(iter(changes.items()))
    chosen = {"classes": ["no", "yes"], **changes}
    with pytest.raises(ValueError, match=f"{name}=") as caught:
        clone(estimator).set_params(**chosen).fit(X, Y)
    assert str(value) in str(caught.value)
    assert "\n" not in str(caught.value)


# Sound ones whose noise follows the number of rows by its next power of two.
OUTPUT_PERTURBATION = [
    PMSVMClassifier,
    PrivateSVMClassifier,
    LandmarkDualClassifier,
    OPERAClassifier,
    OvRJointGaussianClassifier,
    ObjectivePerturbationClassifier,
]
SOUND = [*OUTPUT_PERTURBATION, DPFrankWolfeClassifier, SoftmaxDPSGDClassifier, GRPUAClassifier]


@pytest.mark.parametrize("estimator_class", SOUND)
def test_a_seed_and_what_is_refused_are_among_the_assumptions(estimator_class):
    def assumptions(**chosen):
        guarantee = estimator_class(classes=["no", "yes"], **chosen).fit(X, Y).guarantee_
        assert guarantee.status == "proved"
        return guarantee.noise_source, " | ".join(guarantee.assumptions)

    for seed in (0, np.random.default_rng(0)):
        source, stated = assumptions(random_state=seed)
        assert source == "seeded stream"
        assert "the seed is secret, stored nowhere and used for one release only" in stated
    source, stated = assumptions()
    assert source == "system"
    assert "seed is secret" not in stated
    assert "others are refused" in stated
    assert ("same next power of two" in stated) == (estimator_class in OUTPUT_PERTURBATION)


@pytest.mark.parametrize("estimator_class", SOUND)
def test_a_model_keeps_no_times(estimator_class):
    model = estimator_class(classes=["no", "yes"]).fit(X, Y)
    path = getattr(model, "_path", None)
    assert path is None or path.fit_seconds == path.release_seconds == 0.0
    assert model.release_path(X, Y, [1.0], 1).release_seconds > 0.0


def test_two_methods_with_one_seed_share_no_noise():
    streams = [noise_streams(0, estimator_class()) for estimator_class in SOUND]
    assert len({stream(1.0, 0).bytes(16) for stream in streams}) == len(SOUND)
    assert streams[0](1.0, 0).bytes(16) == noise_streams(0, PMSVMClassifier())(1.0, 0).bytes(16)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_a_stale_flag_does_not_hide_entries_stored_twice(kind):
    rows = kind((np.ones(4), np.zeros(4, dtype=int), np.array([0, 2, 4])), shape=(2, 1))
    rows.has_canonical_format = True
    rows.has_sorted_indices = True
    checked, _, _ = check_training_data(PMSVMClassifier(), rows, [0, 1], [0, 1])
    assert checked.toarray().tolist() == [[2.0], [2.0]]
    assert checked.data.tolist() == [2.0, 2.0]
    assert rows.nnz == 4


@pytest.mark.parametrize(
    "estimator",
    [SVMClassifier(), DPSVMDVPClassifier(allow_unsound=True), DPWSSClassifier(allow_unsound=True)],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iter", np.inf), ("max_iter", np.nan), ("max_iter", -2), ("degree", np.inf), ("degree", 2.7),
        ("degree", -1), ("degree", "3"), ("coef0", np.nan), ("coef0", None), ("gamma", None), ("gamma", [1.0]),
        ("gamma", True),
        ("gamma", 0.0), ("shrinking", "no"), ("C", np.nan), ("C", True), ("tol", "small"), ("cache_size", 0),
        ("kernel", "rfb"),
    ],
)  # fmt: skip
def test_parameters_of_the_kernel_machines_are_checked(estimator, name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        clone(estimator).set_params(**{"kernel": "poly", name: value}).fit(X, Y)
