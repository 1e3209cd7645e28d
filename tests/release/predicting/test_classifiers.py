"""A released model, and a pipeline that trained one, are classifiers for scikit-learn's tools."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay, get_scorer
from sklearn.model_selection import FixedThresholdClassifier, cross_val_score
from sklearn.utils.validation import check_is_fitted
from tests.release.made_up import release_by

import privsvm
from privsvm import PrivateLinearClassifier, PublicSchema, make_private_pipeline
from privsvm.errors import PrivSVMError
from privsvm.tables.schema import parse_schema

NUMBERS = {"age": {"bounds": [0, 100], "fill": 50}, "dose": {"bounds": [-1, 1], "fill": 0}}
WARD = {"ward": {"categories": ["007", "012", "a"], "unknown": "other"}}
DAY = {"day": {"date": "iso", "bounds": ["2020-01-01", "2020-12-31"], "fill": "middle"}}
# Classes, and columns.
MODELS = {
    "numbers": (2, NUMBERS),
    "numbers, ten classes": (10, NUMBERS),
    "categories": (2, NUMBERS | WARD),
    "categories, ten classes": (10, NUMBERS | WARD),
    "dates": (2, NUMBERS | DAY),
}
N_ROWS = 120


@pytest.fixture(autouse=True)
def _no_windows():
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def rows_of(schema):
    """Rows (n, columns) of a schema and labels, in turn."""
    rng, days = np.random.default_rng(0), pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N_ROWS) % 90, unit="D")
    table = {
        "age": rng.uniform(0, 100, N_ROWS), "dose": rng.normal(size=N_ROWS),
        "ward": rng.choice(["007", "012", "a", "?"], N_ROWS), "day": days,
    }  # fmt: skip
    return pd.DataFrame({name: table[name] for name in schema.features}), np.resize(schema.classes, N_ROWS)


@pytest.fixture(scope="module", params=MODELS)
def schema(request):
    n_classes, columns = MODELS[request.param]
    classes = [f"class {code}" for code in range(n_classes)]
    return parse_schema({"name": "t", "label": "y", "classes": classes, "prescaled": False, "columns": columns})


@pytest.fixture(scope="module", params=["loaded", "pipeline"])
def model(request, schema, tmp_path_factory):
    """A loaded model of a schema, and a pipeline."""
    if request.param == "pipeline":
        classifier = PrivateLinearClassifier(epsilon=5.0, classes=list(schema.classes), random_state=0)
        return make_private_pipeline(PublicSchema(schema), classifier).fit(*rows_of(schema))
    folder = tmp_path_factory.mktemp("released")
    release_by(schema, folder / "model", folder / "ledger.jsonl")
    return privsvm.load(folder / "model")


def test_attributes_of_a_classifier(model, schema):
    assert is_classifier(model)
    check_is_fitted(model)
    assert model.n_features_in_ == len(schema.features)
    assert model.feature_names_in_.tolist() == list(schema.features)
    assert model.classes_.tolist() == list(schema.classes)


@pytest.mark.filterwarnings("ignore:probabilities are not calibrated")
def test_tools_of_sklearn_take_a_released_model(model, schema):
    X, y = rows_of(schema)
    labels, shares, two = model.predict(X), model.predict_proba(X), len(schema.classes) == 2
    weights = np.arange(N_ROWS)
    assert model.score(X, y, sample_weight=weights) == np.average(labels == y, weights=weights)
    assert get_scorer("accuracy")(model, X, y) == model.score(X, y) == np.mean(labels == y)
    assert get_scorer("neg_log_loss")(model, X, y) == pytest.approx(
        np.log(shares[np.arange(N_ROWS), np.arange(N_ROWS) % len(schema.classes)]).mean()
    )
    importance = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert importance.importances.shape == (len(schema.features), 2)
    assert importance.importances.any()
    for name in schema.features:
        category = [name] if name in ("ward", "day") else None
        PartialDependenceDisplay.from_estimator(model, X, [name], target=y[0], categorical_features=category)
    confusion = ConfusionMatrixDisplay.from_estimator(model, X, y).confusion_matrix
    assert np.trace(confusion) == np.sum(labels == y)
    frozen = FrozenEstimator(model)
    calibrated = CalibratedClassifierCV(frozen, method="sigmoid").fit(X, y)
    assert calibrated.predict_proba(X).shape == shares.shape
    assert np.isfinite(get_scorer("roc_auc" if two else "roc_auc_ovr")(model, X, y))
    if two:
        assert RocCurveDisplay.from_estimator(model, X, y).roc_auc == pytest.approx(get_scorer("roc_auc")(model, X, y))
        CalibrationDisplay.from_estimator(model, X, y)
        cut = FixedThresholdClassifier(frozen, threshold=0.7, response_method="predict_proba").fit(X, y)
        np.testing.assert_array_equal(cut.predict(X) == schema.classes[1], shares[:, 1] >= 0.7)


@pytest.mark.filterwarnings("ignore:probabilities are not calibrated")
def test_mapie_makes_sets_of_a_released_model(model, schema):
    from mapie.classification import SplitConformalClassifier

    X, y = rows_of(schema)
    conformal = SplitConformalClassifier(model, confidence_level=0.9, prefit=True).conformalize(X, y)
    labels, sets = conformal.predict_set(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    assert sets[np.arange(N_ROWS), np.searchsorted(schema.classes, y), 0].mean() >= 0.9


def test_rows_without_names_are_read_in_order(model, schema):
    X, _ = rows_of(schema)
    for rows in (X.to_numpy(dtype=object), X.astype(object).to_numpy().tolist(), X.to_dict("records")):
        np.testing.assert_array_equal(model.decision_function(rows), model.decision_function(X))


def test_a_mapping_of_single_values_is_one_row(model, schema):
    X, _ = rows_of(schema)
    row = dict(X.iloc[0])
    np.testing.assert_array_equal(model.predict(row), model.predict(X)[:1])
    with pytest.raises(PrivSVMError, match=r"'age' is a single value .* give lists, or one row"):
        model.predict(row | {"dose": [0.5, 1.0]})
    with pytest.raises(PrivSVMError, match="no column 'age'"):
        model.predict({"dose": 0.5})


@pytest.mark.parametrize("model", ["loaded"], indirect=True)
def test_a_released_model_does_not_train(model, schema):
    X, y = rows_of(schema)
    with pytest.raises(PrivSVMError, match="a released model does not train"):
        model.fit(X, y)
    with pytest.raises(PrivSVMError, match="a released model does not train"):
        cross_val_score(model, X, y, error_score="raise")
    assert clone(model) is model
    assert clone(FrozenEstimator(model)).estimator is model
    with pytest.raises(PrivSVMError, match="neither a table nor rows"):
        model.predict([54, "10"])
