"""Rows that are no rows never reach compiled code, and no table is read as other numbers than its user sees."""

import contextlib
import importlib

import numpy as np
import pandas as pd
import pyarrow
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from tests.methods.test_contract import METHODS, ready

from privsvm import (
    DPFrankWolfeClassifier,
    MajorityClassifier,
    PrivateLinearClassifier,
    PrivateSVMClassifier,
    PublicSchema,
    SVMClassifier,
)
from privsvm.base.rows import as_training_rows, read_rows, rows_to_predict
from privsvm_bench.datasets.prepared import rows_of_arrays

ROWS = np.array([[0.0, 0.1, 0.3], [0.2, 0.0, 0.0], [1.0, 0.9, 0.0], [0.8, 1.0, 0.5]] * 3)
LABELS = np.array([0, 0, 1, 1] * 3)

# Damage that is written into a good matrix, for each of its arrays.
DAMAGE = {
    "index too large": ("indices", 0, 2**20),
    "negative index": ("indices", 1, -1),
    "rows end before they begin": ("indptr", 1, 1000),
    "rows end behind the data": ("indptr", -1, 2**20),
    "rows begin late": ("indptr", 0, 1),
    "a row ends before 0": ("indptr", 1, -3),
}


def damaged(name, kind=scipy.sparse.csr_array):
    array, index, value = DAMAGE[name]
    X = kind(ROWS)
    values = getattr(X, array).copy()
    values[index] = value
    setattr(X, array, values)
    return X


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_malformed_rows_reach_no_method(method):
    estimator = ready(method, classes=[0, 1])
    # Checked before anything is compiled: this takes no time.
    for name in DAMAGE:
        with pytest.raises(ValueError, match=r"\AX: .*\Z"):
            estimator.fit(damaged(name), LABELS)


@pytest.mark.parametrize("model", [DPFrankWolfeClassifier(classes=[0, 1], random_state=0), MajorityClassifier()])
def test_malformed_rows_reach_no_prediction(model):
    model.fit(ROWS, LABELS)
    right = model.predict(ROWS)
    for name in DAMAGE:
        with pytest.raises(ValueError, match=r"\AX: "):
            model.predict(damaged(name))
    with pytest.raises(ValueError, match="masked array"):
        model.predict(np.ma.masked_array(ROWS, ROWS > 0.9))
    np.testing.assert_array_equal(model.predict(scipy.sparse.csr_array(ROWS)), right)
    np.testing.assert_array_equal(model.predict(pyarrow.table(dict(zip("abc", ROWS.T, strict=True)))), right)


@pytest.mark.parametrize("kind", [scipy.sparse.csc_array, scipy.sparse.bsr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("name", DAMAGE)
def test_other_formats(kind, name):
    with pytest.raises(ValueError, match=r"\AX: "):
        read_rows(damaged(name, kind))


def test_coordinates_and_python_objects():
    for change in ({"row": 99}, {"row": -1}, {"col": 3}):
        X = scipy.sparse.coo_array(ROWS)
        for name, value in change.items():
            getattr(X, name)[2] = value
        with pytest.raises(ValueError, match=r"\AX: (row|column) index"):
            read_rows(X)
    X = scipy.sparse.lil_array(ROWS)
    X.rows[0][0] = 77
    with pytest.raises(ValueError, match=r"\AX: column index 77"):
        read_rows(X)
    X = scipy.sparse.csr_array(ROWS)
    X.indices = X.indices.astype(float)
    with pytest.raises(ValueError, match="not whole numbers"):
        read_rows(X)
    for kind in ("csr", "csc", "bsr", "coo", "lil", "dok", "dia"):
        np.testing.assert_array_equal(read_rows(scipy.sparse.csr_array(ROWS).asformat(kind)).toarray(), ROWS)


def test_rows_of_a_file():
    X = scipy.sparse.csr_array(ROWS)
    arrays = {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": np.array([12, 2])}
    with pytest.raises(ValueError, match=r"column|ind"):
        rows_of_arrays("X", arrays)


def test_masked_arrays():
    for X, y in ((np.ma.masked_array(ROWS), LABELS), (ROWS, np.ma.masked_array(LABELS))):
        with pytest.raises(ValueError, match=r"\A[Xy] is a masked array"):
            MajorityClassifier().fit(X, y)


class Foreign:
    """A table of a package that only has the old interface."""

    def __dataframe__(self):
        raise NotImplementedError


class StreamOnly:
    """A table without the old interface, which pandas, Polars and PyArrow give up."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Streaming(Foreign, StreamOnly):
    """A table of any package that exports Arrow data, as Polars does."""


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["1", "2"], "column 'b' holds values of type"),
        (pd.Categorical(["1", "2"]), "column 'b' holds values of type category"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "column 'b' holds values of type datetime64"),
        (pd.array([1, None], dtype="Int64"), "column 'b' has 1 missing values"),
        (pd.array([True, None], dtype="boolean"), "column 'b' has 1 missing values"),
        (pd.array([1.5, None], dtype="double[pyarrow]"), "column 'b' has 1 missing values"),
        ([1j, 2j], "column 'b' holds values of type complex"),
        (pd.array(["x", "y"], dtype="string"), "column 'b' holds values of type str"),
    ],
)
def test_columns_that_are_no_numbers(column, words):
    with pytest.raises(ValueError, match=words):
        MajorityClassifier().fit(pd.DataFrame({"a": [1.0, 2.0], "b": column}), [0, 1])


def test_tables_are_read_as_they_are():
    frame = pd.DataFrame(
        {
            "a": pd.array([1, 2], dtype="Int64"),
            "b": [True, False],
            "c": pd.array([0.5, 2.5], dtype="double[pyarrow]"),
            "d": np.array([1, 2], dtype=object),
        }
    )
    wanted = [[1, 1, 0.5, 1], [2, 0, 2.5, 2]]
    np.testing.assert_array_equal(np.asarray(read_rows(frame), dtype=float), wanted)
    table = pyarrow.table({"a": [1, 2], "b": [True, False], "c": [0.5, 2.5], "d": [1, 2]})
    for given in (table, Streaming(table)):
        model = MajorityClassifier().fit(given, [0, 1])
        assert model.feature_names_in_.tolist() == list("abcd")
        np.testing.assert_array_equal(np.asarray(read_rows(given), dtype=float), wanted)
    with pytest.raises(ValueError, match=r"X is a test_rows_of_users.Foreign"):
        MajorityClassifier().fit(Foreign(), [0, 1])
    for texts in (np.array([["1"], ["2"]]), np.array([["2020-01-01"], ["2021-01-01"]], dtype="M8[D]")):
        with pytest.raises(ValueError, match="must hold numbers"):
            MajorityClassifier().fit(texts, [0, 1])


def test_labels_of_the_declared_set_are_not_judged_by_the_other_rows():
    # A label 0.5 among whole ones was refused, and whole ones alone were not: a refusal told neighbours apart.
    outcomes = []
    for last in (0.5, 1.0):
        y = np.append(np.ones(len(ROWS) - 1), last)
        with pytest.raises(ValueError, match="Unknown label type") as caught:
            PrivateSVMClassifier(classes=[0.5, 1.0]).fit(ROWS, y)
        outcomes.append(str(caught.value))
    assert outcomes[0] == outcomes[1]
    model = PrivateSVMClassifier(classes=[0, 1]).fit(ROWS, LABELS.astype(object))
    assert model.guarantee_.status == "proved"


@pytest.mark.parametrize("kind", ["csr", "coo"])
def test_what_a_row_adds_up_to_does_not_depend_on_the_order_of_another_row(kind):
    # SciPy sorts all rows where one is out of order, and not in the order of equals: 60 entries of one place.
    values = np.array([1e16, 1.0, -1e16, 1.0] * 15)
    sums = []
    for other in ([0, 1], [1, 0]):
        data, columns = np.append(values, [1.0, 2.0]), np.append(np.zeros(60, dtype=int), other)
        rows = scipy.sparse.csr_array((data, columns, [0, 60, 62]), shape=(2, 2))
        if kind == "coo":
            rows = scipy.sparse.coo_array((data, (np.repeat([0, 1], [60, 2]), columns)), shape=(2, 2))
        estimator = PrivateLinearClassifier(classes=[0, 1])
        sums.append(as_training_rows(estimator, rows, [0, 1], [0, 1])[0].toarray()[0].tolist())
    assert sums[0] == sums[1]


@pytest.mark.parametrize(
    "labels",
    [LABELS, LABELS - 0.0, LABELS == 1, np.array(["b", "a", "\U0001f600", "ab", "", "B"] * 2)],
    ids=["whole", "floating", "truth values", "texts"],
)
@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_matrix], ids=["dense", "csr"])
def test_plain_rows_and_labels_pass_as_they_are(kind, labels):
    estimator = PrivateLinearClassifier()
    rows, codes = as_training_rows(estimator, kind(ROWS), labels, None)
    unique_labels, expected = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(estimator.classes_, unique_labels)
    assert estimator.classes_.dtype == unique_labels.dtype
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_array_equal(rows if kind is np.array else rows.toarray(), ROWS)
    assert estimator.n_features_in_ == 3


@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_matrix], ids=["dense", "csr"])
def test_predictions_take_plain_rows_as_they_are_and_look_at_all_others(kind):
    with pytest.raises(NotFittedError):
        SVMClassifier().decision_function(kind(ROWS))
    model = SVMClassifier().fit(kind(ROWS), LABELS)
    rows = kind(ROWS)
    assert rows_to_predict(model, rows) is rows
    np.testing.assert_array_equal(model.predict(rows), model.predict(ROWS.tolist()))
    with pytest.raises(ValueError, match="2 features"):
        model.predict(kind(ROWS[:, :2]))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(kind(np.where(ROWS == 1.0, np.nan, ROWS)))
    named = SVMClassifier().fit(pd.DataFrame(ROWS, columns=["a", "b", "c"]), LABELS)
    with pytest.warns(UserWarning, match="feature names"):
        named.predict(kind(ROWS))


FRAME = {"whole": [1, 2, 3, 4], "floating": [0.5, 1.5, -2.0, 3.0], "truth": [True, False, True, True]}


def arrow_tables(values):
    """The same table by every package that is here; all hand over Arrow's stream."""
    table = pyarrow.table(values)
    yield "pyarrow", lambda: table
    yield "batches", lambda: pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches())
    yield "stream alone", lambda: StreamOnly(table)
    yield "pandas", lambda: pd.DataFrame(values)
    for package in ("polars", "duckdb"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(package)
            yield (
                package,
                (lambda m=module: m.DataFrame(values)) if package == "polars" else lambda m=module: m.arrow(table),
            )


def test_tables_by_arrow_streams():
    expected = np.array(list(FRAME.values()), dtype=float).T
    for name, make in arrow_tables(FRAME):
        np.testing.assert_array_equal(np.asarray(read_rows(make()), dtype=float), expected, err_msg=name)
        for damaged, words in ({**FRAME, "text": list("1234")}, "'text'"), ({**FRAME, "gap": [1, None, 2, 3]}, "NaN"):
            (table,) = [one for other, one in arrow_tables(damaged) if other == name]
            with pytest.raises(ValueError, match=words):
                MajorityClassifier().fit(table(), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="cannot be read"):
        read_rows(pyarrow.chunked_array([[1.0, 2.0]]))


def test_declared_columns_by_arrow_streams():
    """Whole numbers beside missing ones keep their text, whichever package the table is of."""
    values = {"ward": [1, 2, None, 1], "age": [30, None, 50, 60], "other": list("abcd")}
    columns = {"ward": {"categories": ["1", "2"], "unknown": "other"}, "age": {"bounds": [0, 100], "fill": "middle"}}
    schema = PublicSchema({"name": "t", "label": "y", "classes": [0, 1], "columns": columns})
    expected = schema.fit_transform(values)
    for name, make in arrow_tables(values):
        if name != "pandas":
            np.testing.assert_array_equal(schema.fit_transform(make()), expected, err_msg=name)
