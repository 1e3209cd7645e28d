"""A released model, and a pipeline that trained one, are classifiers for scikit-learn's tools."""

import io

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mapie.classification import SplitConformalClassifier
from matplotlib import pyplot
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay, get_scorer, roc_auc_score
from sklearn.model_selection import FixedThresholdClassifier, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from tests.methods.test_rows_of_users import StreamOnly
from tests.release.made_up import release_by

import privsvm
from privsvm import PrivateLinearClassifier, PublicSchema, make_private_pipeline
from privsvm.errors import PrivSVMError
from privsvm.tables.schema import parse_schema

NUMBERS = {"age": {"bounds": [0, 100], "fill": 50}, "dose": {"bounds": [-1, 1], "fill": 0}}
WARD = {"ward": {"categories": ["007", "012", "a"], "unknown": "other"}}
DAY = {"day": {"date": "iso", "bounds": ["2020-01-01", "2020-12-31"], "fill": "middle"}}
TWO, TEN = ["no", "yes"], [str(number) for number in range(1, 11)]
# Classes, the last one the positive one of two, and columns.
MODELS = {
    "numbers": (TWO, NUMBERS),
    "numbers, ten classes": (TEN, NUMBERS),
    "categories": (["well", "ill"], NUMBERS | WARD),
    "categories, ten classes": (TEN, NUMBERS | WARD),
    "dates": (TWO, NUMBERS | DAY),
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
    classes, columns = MODELS[request.param]
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
    assert model.classes_.tolist() == sorted(schema.classes)


@pytest.mark.filterwarnings("ignore:probabilities are not calibrated")
def test_tools_of_sklearn_take_a_released_model(model, schema):
    X, y = rows_of(schema)
    labels, shares, two = model.predict(X), model.predict_proba(X), len(schema.classes) == 2
    weights = np.arange(N_ROWS)
    assert model.score(X, y, sample_weight=weights) == np.average(labels == y, weights=weights)
    assert get_scorer("accuracy")(model, X, y) == model.score(X, y) == np.mean(labels == y)
    right = shares[np.arange(N_ROWS), np.searchsorted(model.classes_, y)]
    assert get_scorer("neg_log_loss")(model, X, y) == pytest.approx(np.log(right).mean())
    importance = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert importance.importances.shape == (len(schema.features), 2)
    assert importance.importances.any()
    for name in schema.features:
        category = [name] if name in ("ward", "day") else None
        PartialDependenceDisplay.from_estimator(model, X, [name], target=y[0], categorical_features=category)
    assert (shares.argmax(axis=1) == np.searchsorted(model.classes_, labels)).all()
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
        np.testing.assert_array_equal(cut.predict(X) == model.classes_[1], shares[:, 1] >= 0.7)


@pytest.mark.filterwarnings("ignore:probabilities are not calibrated")
def test_mapie_makes_sets_of_a_released_model(model, schema):
    X, y = rows_of(schema)
    conformal = SplitConformalClassifier(model, confidence_level=0.9, prefit=True).conformalize(X, y)
    labels, sets = conformal.predict_set(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    assert sets[np.arange(N_ROWS), np.searchsorted(model.classes_, y), 0].mean() >= 0.9


SCHEMA = parse_schema({
    "name": "t", "label": "y", "classes": ["well", "ill"], "prescaled": False,
    "columns": NUMBERS | WARD | DAY | {"smoker": {"boolean": True, "fill": False}},
})  # fmt: skip


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A loaded model with columns of all kinds, and a table."""
    folder = tmp_path_factory.mktemp("forms")
    release_by(SCHEMA, folder / "model", folder / "ledger.jsonl")
    table, y = rows_of(parse_schema(SCHEMA.to_json() | {"columns": NUMBERS | WARD | DAY}))
    return privsvm.load(folder / "model"), table.assign(smoker=np.resize([True, False, False], N_ROWS)), y


def without_some(table):
    """A table with cells that are missing in every column."""
    return table.where(np.arange(N_ROWS)[:, None] % 7 != np.arange(len(table.columns)))


def in_arrow(**types):
    """Turn a table into Arrow's, with other types for some columns."""

    def form(table):
        columns = {name: pa.array(values, from_pandas=True) for name, values in table.items()}
        columns["ward"] = types.get("ward", lambda column: column)(columns["ward"].cast(pa.string()))
        return pa.table(columns)

    return form


def unchanged(table):
    return table


# Situations of reports about tables, by their names in tests/reports_of_others.csv: a table, and another form of it.
FORMS = {
    "pandas-dev/pandas#51845": (unchanged, in_arrow(ward=lambda column: column.cast(pa.large_string()))),
    "abstractqqq/polars_ds_extension#396": (
        unchanged,
        lambda table: StreamOnly(in_arrow(ward=lambda column: column.cast("string_view").dictionary_encode())(table)),
    ),
    "dmlc/xgboost#8598": (
        unchanged, lambda table: table.astype({"ward": pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))})
    ),
    "scikit-learn/scikit-learn#29042": (without_some, lambda table: table.convert_dtypes(dtype_backend="pyarrow")),
    "mlflow/mlflow#25593": (without_some, lambda table: table.convert_dtypes()),
    "mlflow/mlflow#5207": (without_some, lambda table: table.astype(object).replace({np.nan: None})),
    "ome/omero-metadata#93": (without_some, lambda table: table.astype({"ward": "str"})),
    "catboost/catboost#3106": (without_some, lambda table: table.astype({"ward": "category"})),
    "scikit-learn-contrib/category_encoders#421": (
        unchanged, lambda table: table.astype({"ward": "string[pyarrow]"})
    ),
    "scikit-learn/scikit-learn#12086": (
        unchanged,
        lambda table: table.astype({"ward": pd.CategoricalDtype(["a", "?", "012", "007"], ordered=True)}),
    ),
    "chdb-io/chdb-core#137": (
        unchanged,
        lambda table: table.astype({"age": "double[pyarrow]", "smoker": "bool[pyarrow]", "ward": "string[pyarrow]"}),
    ),
    "pandas-dev/pandas#57666": (
        unchanged,
        lambda table: pd.read_csv(io.BytesIO(table.to_csv(index=False).encode()), dtype=str, engine="pyarrow"),
    ),
    "ray-project/ray#65187": (
        lambda table: table.assign(dose=None), lambda table: table.astype({"dose": pd.ArrowDtype(pa.null())})
    ),
}  # fmt: skip


@pytest.mark.parametrize("report", FORMS)
def test_the_form_of_a_table_changes_no_score(released, report):
    (model, table, _), (given, form) = released, FORMS[report]
    expected = model.decision_function(given(table))
    np.testing.assert_array_equal(model.decision_function(form(given(table))), expected)
    assert len(np.unique(expected)) > 10


@pytest.mark.filterwarnings("error", "ignore:probabilities are not calibrated")
def test_other_tools_take_a_released_model(released):
    """Situations of reports about tools; the one of each is named."""
    model, X, y = released
    frozen, numbers = FrozenEstimator(model), np.searchsorted(model.classes_, y)
    # pulearn/pulearn#176, scikit-learn/scikit-learn#33220 and #30675.
    pipeline = Pipeline([("model", model)])
    assert is_classifier(pipeline)
    one, other = (partial_dependence(tool, X, ["age"])["average"] for tool in (pipeline, model))
    np.testing.assert_array_equal(one, other)
    PartialDependenceDisplay.from_estimator(model, X, ["smoker"], categorical_features=["smoker"])
    # #6451 and #8710: a clone, and rows that are mappings.
    calibrated = CalibratedClassifierCV(frozen).fit(X, y)
    for again in (clone(calibrated).fit(X, y), CalibratedClassifierCV(frozen).fit(X.to_dict("records"), y)):
        np.testing.assert_array_equal(again.predict_proba(X), calibrated.predict_proba(X))
    # #16556.
    assert StackingClassifier([("one", model)], cv="prefit").fit(X, y).predict(X).shape == y.shape
    # #9805, #10914, #2723 and #28234: the curve is of the class that sorts last, whatever the labels' type.
    area = roc_auc_score(numbers, model.decision_function(X))
    for labels in (y, y.astype(object), pd.Series(y, dtype="string"), pd.Series(y, dtype="category")):
        assert get_scorer("roc_auc")(model, X, labels) == pytest.approx(area)
    folds = cross_validate(frozen, X, y, scoring="roc_auc", cv=[(np.arange(N_ROWS), np.arange(N_ROWS))])
    assert folds["test_score"] == pytest.approx(area)


@pytest.mark.filterwarnings("ignore:probabilities are not calibrated")
def test_reports_about_arrays_and_sets(schema, tmp_path):
    """joblib/joblib#38 and #1627, scikit-learn/scikit-learn#25077, and MAPIE's #116."""
    release_by(schema, tmp_path / "model", tmp_path / "ledger.jsonl")
    model, (X, y) = privsvm.load(tmp_path / "model"), rows_of(schema)
    if list(schema.features) == ["age", "dose"]:
        DecisionBoundaryDisplay.from_estimator(model, X, response_method="predict")
        np.save(tmp_path / "rows.npy", X.to_numpy())
        joblib.dump(model, tmp_path / "model.joblib")
        rows, again = (
            np.load(tmp_path / "rows.npy", mmap_mode="r"),
            joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
        )
        np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(X))
    if len(schema.classes) > 2:
        conformal = SplitConformalClassifier(model, prefit=True).conformalize(X[y != "3"], y[y != "3"])
        assert conformal.predict_set(X)[1].shape == (N_ROWS, 10, 1)


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
