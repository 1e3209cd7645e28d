"""What every method owes its users: the scikit-learn contract, and errors that name the argument."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import privsvm
from privsvm import (
    DPFrankWolfeClassifier,
    DPSVMDVPClassifier,
    DPWSSClassifier,
    LandmarkDualClassifier,
    MajorityClassifier,
    PMSVMClassifier,
    PrivateSVMClassifier,
    SVMClassifier,
)

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
        PrivateSVMClassifier(allow_unsound=True, random_state=0),
        PrivateSVMClassifier(allow_unsound=True, kernel="rbf", mechanism="laplace", random_state=0),
        LandmarkDualClassifier(allow_unsound=True, random_state=0),
        DPFrankWolfeClassifier(allow_unsound=True, random_state=0),
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
        (LandmarkDualClassifier(), {"landmarks_seed": 0.5}),
        (LandmarkDualClassifier(), {"bounds": (1.0, -1.0)}),
        (LandmarkDualClassifier(), {"bounds": 1.0}),
        (DPFrankWolfeClassifier(), {"radius": -1.0}),
        (DPFrankWolfeClassifier(), {"n_steps": 0}),
        (DPFrankWolfeClassifier(), {"data_bound": 0.0}),
        (DPFrankWolfeClassifier(), {"smoothing": 0.0}),
        (DPFrankWolfeClassifier(), {"fit_intercept": 2}),
        (DPFrankWolfeClassifier(), {"neighbours": "add_remove"}),
    ],
)
def test_bad_parameters_are_named_with_their_value(estimator, changes):
    name, value = next(iter(changes.items()))
    chosen = {"classes": ["no", "yes"], **changes}
    with pytest.raises(ValueError, match=f"{name}=") as caught:
        clone(estimator).set_params(**chosen).fit(X, Y)
    assert str(value) in str(caught.value)
    assert "\n" not in str(caught.value)
