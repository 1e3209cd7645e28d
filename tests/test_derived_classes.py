"""Values of derived classes, which answer otherwise than they are: the same bits, a refusal, or nothing proved.

Each class here stores the same values as a plain one, and lies to callers of its usual methods.
"""

import datetime
import decimal
import inspect
import numbers
import types

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from pandas.api.extensions import ExtensionArray, ExtensionDtype
from sklearn.base import BaseEstimator, TransformerMixin

import privsvm
from privsvm import PrivateLinearClassifier, PrivateSearch, PrivateSVMClassifier, PublicSchema, make_private_pipeline
from privsvm.base.parameters import DeclaredEstimator
from privsvm.constraints import is_trusted, plain
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.numerics.rows.row_blocks import ArrayBlocks
from privsvm.tables.schema import Column, Schema, parse_schema
from privsvm.tables.tables import units_table
from tests.methods.test_contract import METHODS

RNG = np.random.default_rng(3)
X = RNG.uniform(-0.5, 0.5, size=(60, 3))
Y = RNG.integers(0, 2, size=60)


class Text(str):
    def __str__(self):
        return "lie"

    __hash__ = str.__hash__
    strip = lower = encode = __format__ = lambda self, *_: "lie"

    def __eq__(self, other):
        return True


class Whole(int):
    __int__ = __index__ = __float__ = __round__ = lambda self, *_: 7
    __gt__ = __ge__ = __lt__ = __le__ = __eq__ = lambda self, other: True
    __hash__ = int.__hash__


class Real(float):
    __float__ = is_integer = __gt__ = __ge__ = __lt__ = __le__ = __eq__ = lambda self, *_: 7.0
    __hash__ = float.__hash__


class Exact(decimal.Decimal):
    __float__ = __ne__ = lambda self, *_: 7.0


class Bytes(bytes):
    decode = strip = lambda self, *_: "lie"


class Items(list):
    __iter__ = copy = lambda self: iter(["lie"] * len(self))


class Pair(tuple):
    __iter__ = __reversed__ = lambda self: iter([0.0, 7.0])


class Mapped(dict):
    __getitem__ = get = lambda self, *_: "lie"
    items = values = __iter__ = lambda self: iter([])


class Array(np.ndarray):
    """Every row is row 0."""

    __getitem__ = take = lambda self, key: np.ndarray.__getitem__(np.asarray(self), 0)
    sum = astype = copy = ravel = tolist = lambda self, *_, **__: np.zeros(self.shape)

    def __array_function__(self, *_):
        return np.zeros(self.shape)

    def __array_ufunc__(self, *_, **__):
        return np.zeros(self.shape)


class Matrix(scipy.sparse.csr_array):
    """Every row is row 0."""

    def __getitem__(self, key):
        first = scipy.sparse.csr_array(self)[[0]]
        return scipy.sparse.vstack([first] * len(range(*key.indices(self.shape[0])))).tocsr()

    toarray = sum = multiply = lambda self, *_, **__: np.zeros(self.shape)


class Columns(scipy.sparse.csc_array):
    toarray = sum = lambda self, *_, **__: np.zeros(self.shape)


class Frame(pd.DataFrame):
    """Every cell is 0."""

    __getitem__ = get = lambda self, key: pd.Series(np.zeros(len(self)))
    __array__ = to_numpy = lambda self, *_, **__: np.zeros(self.shape)

    @property
    def iloc(self):
        return pd.DataFrame(np.zeros(self.shape)).iloc


class Sequence(pd.Series):
    __iter__ = items = lambda self: iter([7.0] * len(self))
    __array__ = to_numpy = lambda self, *_, **__: np.zeros(len(self))


class First(Column):
    """Every cell is read as the first one was."""

    def number(self, value):
        return 0.9 if value in (0.25, 0.75) else super().number(value)


class Declared(Schema):
    @property
    def class_order(self):
        return ("lie", "no", "yes")

    @property
    def features(self):
        return {}


class Client:
    """Answers with sums of its own."""

    def submit(self, *_, **__):
        raise AssertionError("it was asked")


class Foreign:
    """Claims to be a text, the one that pleases its reader."""

    __class__ = property(lambda self: str)
    __eq__ = __ge__ = lambda self, other: True
    __hash__ = object.__hash__


class Registered:
    """Another number at each look."""

    __int__ = __index__ = lambda self: 1

    def __float__(self):
        return 1.0

    __gt__ = __ge__ = __lt__ = __le__ = __eq__ = lambda self, other: True
    __hash__ = object.__hash__


numbers.Integral.register(Registered)


# It says that it is the library's own, or NumPy's.
Text.__module__ = "builtins"
Array.__module__, Array.__qualname__ = "numpy", "ndarray"
Client.__module__, Client.__qualname__ = "distributed.client", "Client"
DERIVED = {
    str: Text("a"), int: Whole(3), float: Real(0.5), bytes: Bytes(b"a"), list: Items([1, 2]), tuple: Pair((1, 2)),
    dict: Mapped(a=1), decimal.Decimal: Exact("0.5"), np.ndarray: X.view(Array), pd.DataFrame: Frame(X),
    pd.Series: Sequence(X[:, 0]), scipy.sparse.csr_array: Matrix(X),
}  # fmt: skip


@pytest.mark.parametrize("kind", DERIVED, ids=lambda kind: kind.__name__)
def test_a_value_is_rebuilt_from_what_it_stores(kind):
    value = DERIVED[kind]
    assert not is_trusted(value)
    assert type(plain(value)) is kind
    own = {np.ndarray: X, pd.DataFrame: pd.DataFrame(X), pd.Series: pd.Series(X[:, 0])}
    stored = own.get(kind, scipy.sparse.csr_array(X) if kind is scipy.sparse.csr_array else None)
    if stored is None:
        assert plain(value) == {str: "a", int: 3, float: 0.5, bytes: b"a", list: [1, 2], tuple: (1, 2)}.get(
            kind, {"a": 1} if kind is dict else decimal.Decimal("0.5")
        )
    else:
        np.testing.assert_array_equal(*(t.toarray() if hasattr(t, "toarray") else t for t in (plain(value), stored)))


def test_plain_values_stay_as_they_are():
    for value in ("a", 1, True, 0.5, None, [1], {"a": 1}, X, np.float32(1), np.matrix(X), pd.NaT, pd.Timestamp("2020")):
        assert plain(value) is value
    for value in (np.memmap, datetime.datetime(2020, 1, 1), scipy.sparse.coo_matrix(X), Client()):
        assert plain(value) is value
    assert not is_trusted(Client(), "distributed")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_no_parameter_may_be_of_a_derived_class(method):
    assert issubclass(method, DeclaredEstimator)
    for name in inspect.signature(method).parameters:
        nested = [planted for value in DERIVED.values() for planted in (value, [value], {"a": value})]
        for planted in (*nested, Foreign(), Registered()):
            with pytest.raises(ValueError, match=rf"\A{name}="):
                method(**{name: planted}).check_declared()


def test_every_public_name_is_looked_at():
    """What takes values of the user's, and where this page plants them; the others take none that a proof reads."""
    planted = {"PrivateLinearClassifier", "SVMClassifier", "PrivateSearch", "PublicSchema", "RowBlocks"}
    planted |= {"make_private_pipeline"}
    # A budget takes its numbers once, and its record is computed from the models' records; a path names any rows or
    # files.
    others = {"Budget", "BudgetExceededError", "Guarantee", "PrivSVMError", "audit", "load", "open_rows", "save"}
    assert planted | others == {*privsvm.__all__}


@pytest.mark.parametrize("name", ["epsilon", "delta", "mean_runs", "shape", "score_share"])
def test_no_number_of_a_search_may_be_of_a_derived_class(name):
    search = PrivateSearch(PrivateSVMClassifier(classes=[0, 1]), {"C": [0.1]})
    for value in (Real(0.5), Whole(1)):
        with pytest.raises(ValueError, match=rf"\A{name}="):
            search.set_params(**{name: value}).fit(X, Y)


def test_the_grid_of_a_search_is_the_one_that_is_stored():
    def best(grid):
        search = PrivateSearch(PrivateSVMClassifier(classes=[0, 1]), grid, epsilon=4.0, mean_runs=2.0, random_state=0)
        return search.fit(X, Y).best_params_, search.best_estimator_.coef_.tobytes()

    assert best(Mapped(C=[0.1, 1.0])) == best({"C": [0.1, 1.0]})
    assert best({"C": [Real(0.1)]}) == best({"C": [0.1]})


def matrix_of_derived_arrays():
    rows = scipy.sparse.csr_array(X)
    rows.data = rows.data.view(Array)
    return rows


class Converted(scipy.sparse.csc_array):
    """Every row is row 0 in any other form."""

    format = property(lambda self: "csr")
    tocsr = tocoo = lambda self, *_, **__: scipy.sparse.csr_array(np.repeat(X[:1], len(X), 0))


class Hidden(scipy.sparse.csr_array):
    data = property(lambda self: np.zeros(X.size), lambda self, value: None)


def with_replaced(rows, **replaced):
    """The same object, with methods of its own."""
    vars(rows).update(replaced)
    return rows


def instance(kind, stored):
    """Return an object of a derived class with the values of a plain one."""
    return with_replaced(kind.__new__(kind), **vars(stored))


def blocks_of_matrix_in_blocks():
    rows = scipy.sparse.bsr_array(X)
    rows.data = rows.data.view(Array)
    return rows


def zeros(*_, **__):
    return scipy.sparse.coo_array(np.zeros(X.shape))


ROWS = {
    "converted": lambda: instance(Converted, scipy.sparse.csc_array(X)),
    "hidden": lambda: instance(Hidden, scipy.sparse.csr_array(X)),
    "bsr of derived arrays": blocks_of_matrix_in_blocks,
    "replaced in csc": lambda: with_replaced(scipy.sparse.csc_array(X), tocoo=zeros, tocsr=zeros),
    "replaced in dia": lambda: with_replaced(scipy.sparse.dia_array(X), tocoo=zeros, tocsr=zeros),
    "replaced in lil": lambda: with_replaced(scipy.sparse.lil_array(X), tocoo=zeros, tocsr=zeros),
    "replaced in dok": lambda: with_replaced(scipy.sparse.dok_array(X), tocoo=zeros, tocsr=zeros),
    "replaced in frame": lambda: with_replaced(pd.DataFrame(X), __array__=lambda *_, **__: np.zeros(X.shape)),
    "blocks of replaced": lambda: ArrayBlocks(with_replaced(scipy.sparse.coo_array(X), tocoo=zeros, tocsr=zeros)),
    "array": lambda: X.view(Array),
    "objects": lambda: np.array([[Real(value) for value in row] for row in X], dtype=object),
    "lists": lambda: [[Real(value) for value in row] for row in X],
    "csr": lambda: Matrix(X),
    "csc": lambda: Columns(X),
    "arrays of a matrix": matrix_of_derived_arrays,
    "frame": lambda: Frame(X),
    "objects of a frame": lambda: pd.DataFrame([[Real(value) for value in row] for row in X], dtype=object),
    "matrix": lambda: np.matrix(X),
    "masked": lambda: np.ma.masked_array(X, X > 0.4),
    "masked blocks": lambda: ArrayBlocks(np.ma.masked_array(X, X > 0.4)),
    "blocks of an array": lambda: ArrayBlocks(X.view(Array)),
    "blocks of a matrix": lambda: ArrayBlocks(Matrix(X)),
    "blocks of derived arrays": lambda: ArrayBlocks(matrix_of_derived_arrays()),
}
REFUSED = {"objects of a frame": "must hold numbers", "matrix": "matrix"}
REFUSED |= dict.fromkeys(("masked", "masked blocks"), "X is a masked array")


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("method", [PrivateLinearClassifier, PrivateSVMClassifier], ids=lambda method: method.__name__)
def test_rows_are_those_that_are_stored(method, name):
    model = method(classes=[0, 1], random_state=0)
    if name in REFUSED or ("blocks" in name and not method.reads_blocks):
        with pytest.raises((TypeError, ValueError), match=REFUSED.get(name, "needs all rows in memory")):
            model.fit(ROWS[name](), Y)
        return
    derived = model.fit(ROWS[name](), Y)
    same = derived.predict(ROWS[name]()).tolist(), derived.coef_.tobytes()
    fitted = method(classes=[0, 1], random_state=0).fit(X, Y)
    assert same == (fitted.predict(X).tolist(), fitted.coef_.tobytes())


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize(
    "labels",
    [
        Y.view(Array),
        Sequence(Y),
        with_replaced(pd.Series(Y), __array__=lambda *_, **__: np.zeros(len(Y))),
        Items(Y.tolist()),
        [Whole(label) for label in Y],
        np.array([*map(Whole, Y)], dtype=object),
    ],
    ids=["array", "series", "replaced in series", "list", "numbers", "objects"],
)
def test_labels_are_those_that_are_stored(labels, blocks):
    rows = ArrayBlocks(X) if blocks else X
    coef = [PrivateLinearClassifier(classes=[0, 1], random_state=0).fit(rows, y).coef_ for y in (labels, Y)]
    assert coef[0].tobytes() == coef[1].tobytes()


class Kind(ExtensionDtype):
    name, type, kind, _is_numeric = "mine", float, "f", True
    construct_array_type = classmethod(lambda cls: Column0)


class Column0(ExtensionArray):
    """Every cell is the first one."""

    dtype, nbytes = property(lambda self: Kind()), 8

    def __init__(self, values):
        self._values = np.asarray(values, dtype=np.float64)

    def __len__(self):
        return len(self._values)

    def __getitem__(self, key):
        return self._values[0] if isinstance(key, (int, np.integer)) else Column0(self._values[key])

    def __array__(self, *_, **__):
        return np.full(len(self), self._values[0])

    def isna(self):
        return np.zeros(len(self), dtype=bool)

    def copy(self):
        return Column0(self._values)


def test_a_frame_may_not_have_columns_of_other_types():
    frame = pd.DataFrame({"age": Column0(X[:, 0]), "ward": ["a"] * len(X)})
    model = PrivateLinearClassifier(classes=[0, 1])
    for rows, labels in ((frame[["age"]], Y), (X, pd.Series(Column0(Y)))):
        with pytest.raises(ValueError, match="is of your type mine"):
            model.fit(rows, labels)
    for table in (frame, {"age": frame["age"], "ward": frame["ward"]}):
        with pytest.raises(ValueError, match="is of your type mine"):
            PublicSchema(DECLARED).transform(table)


def test_a_matrix_is_of_scipy():
    class Duck:
        __class__ = property(lambda self: scipy.sparse.csr_array)

    with pytest.raises(ValueError, match="must be an array, or a sparse matrix of SciPy"):
        PrivateLinearClassifier(classes=[0, 1]).fit(Duck(), Y)


def test_sums_are_of_a_client_of_dask():
    rows = ArrayBlocks(X).on(Client())
    with pytest.raises(ValueError, match=r"must be a distributed\.Client"):
        PrivateLinearClassifier(classes=[0, 1]).fit(rows, Y)


DECLARED = {
    "name": "wards",
    "label": "died",
    "classes": ["no", "yes"],
    "columns": {"age": {"bounds": [0, 1], "fill": 0.5}, "ward": {"categories": ["a", "b"], "fill": "b"}},
}
TABLE = {"age": [0.25, 0.75, None] * 20, "ward": ["a", "b", "c"] * 20}
DIED = ["no", "yes", "no"] * 20


def changed(**columns):
    return DECLARED | {"columns": DECLARED["columns"] | columns}


DECLARATIONS = {
    "schema": lambda: Declared.model_construct(**vars(parse_schema(DECLARED))),
    "column": lambda: changed(age=First(bounds=[0, 1], fill=0.5)),
    "column of a schema": lambda: parse_schema(DECLARED).model_copy(
        update={"columns": {"age": First(bounds=[0, 1], fill=0.5), "ward": Column(categories=["a", "b"], fill="b")}}
    ),
    "mapping": lambda: Mapped(DECLARED),
    "mapping of a column": lambda: changed(age=Mapped(bounds=[0, 1], fill=0.5)),
    "bounds": lambda: changed(age={"bounds": Pair((0, 1)), "fill": 0.5}),
    "ends": lambda: changed(age={"bounds": [Real(0), Whole(1)], "fill": Real(0.5)}),
    "words": lambda: changed(ward={"categories": Items([Text("a"), Text("b")]), "fill": Text("b")}),
    "name": lambda: DECLARED | {"label": Text("died")},
    "proxy": lambda: types.MappingProxyType(changed(age={"bounds": Pair((0, 1)), "fill": Real(0.5)})),
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_a_declaration_is_the_one_that_is_stored(name, tmp_path):
    declaration = DECLARATIONS[name]()
    schema = parse_schema(declaration)
    assert (type(schema), {*map(type, schema.columns.values())}) == (Schema, {Column})
    assert schema == parse_schema(DECLARED)
    np.testing.assert_array_equal(
        PublicSchema(declaration).fit_transform(TABLE), PublicSchema(DECLARED).transform(TABLE)
    )
    model = PrivateSVMClassifier(classes=["no", "yes"])
    pipeline = make_private_pipeline(PublicSchema(declaration), model).fit(TABLE, DIED)
    assert pipeline.guarantee_.status == "proved"
    (tmp_path / "table.csv").write_text("age,ward,died\n0.25,a,no\n,c,yes\n")
    for first, second in zip(
        *(units_table(tmp_path / "table.csv", one)[:2] for one in (declaration, schema)), strict=True
    ):
        np.testing.assert_array_equal(first, second)


CELLS = {
    "age": [Real(0.25), Whole(1), Exact("0.75"), Text("0.5"), np.float32(0.25)],
    "ward": [Text("a"), Bytes(b"b"), Text("c"), Text(""), Text(" a ")],
}
PLAIN = {"age": [0.25, 1, decimal.Decimal("0.75"), "0.5", 0.25], "ward": ["a", b"b", "c", "", " a "]}


@pytest.mark.parametrize(
    "table",
    [
        lambda: CELLS,
        lambda: Mapped(CELLS),
        lambda: {name: Items(cells) for name, cells in CELLS.items()},
        lambda: {name: np.array(cells, dtype=object).view(Array) for name, cells in CELLS.items()},
        lambda: {name: Sequence(cells, dtype=object) for name, cells in CELLS.items()},
        lambda: Frame({name: pd.Series(cells, dtype=object) for name, cells in CELLS.items()}),
        lambda: [list(row) for row in zip(*CELLS.values(), strict=True)],
        lambda: [Items(row) for row in zip(*CELLS.values(), strict=True)],
        lambda: [Mapped(zip(CELLS, row, strict=True)) for row in zip(*CELLS.values(), strict=True)],
    ],
    ids=["cells", "mapping", "lists", "arrays", "series", "frame", "rows", "derived rows", "mappings"],
)
def test_cells_are_those_that_are_stored(table):
    schema = PublicSchema(DECLARED)
    np.testing.assert_array_equal(schema.fit_transform(table()), schema.fit_transform(PLAIN))


def known_noise(rng, estimator):
    return lambda epsilon, repeat: NoiseSource(bytes(32))


def search_of(model):
    return PrivateSearch(model, {"C": [0.1]}, epsilon=4.0, mean_runs=2)


SVM = {"classes": ["no", "yes"]}
REPLACED = {
    "noise": lambda: with_replaced(PrivateSVMClassifier(**SVM), noise_source=known_noise),
    "declared": lambda: with_replaced(PrivateSVMClassifier(**SVM), declared={}),
    "runs": lambda: with_replaced(search_of(PrivateSVMClassifier(**SVM)), _draw_runs=lambda source: 50),
    "noise of a search": lambda: search_of(with_replaced(PrivateSVMClassifier(**SVM), noise_source=known_noise)),
}


@pytest.mark.parametrize("name", REPLACED)
def test_an_estimator_with_a_method_of_its_own_proves_nothing(name):
    with pytest.raises(ValueError, match="or has a method that you replaced"):
        REPLACED[name]().fit(X, np.where(Y, "yes", "no"))


class DerivedBlocks(ArrayBlocks):
    """Might read other rows each time."""


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (with_replaced(ArrayBlocks(X), read=lambda start, stop: np.zeros((stop - start, 3))), "that you replaced"),
        (DerivedBlocks(X), "DerivedBlocks is a class of yours"),
    ],
)
def test_rows_that_are_read_in_another_way_prove_nothing(rows, reason):
    with pytest.raises(ValueError, match=reason):
        PrivateLinearClassifier(classes=[0, 1]).fit(rows, Y)


class Mixing(TransformerMixin, BaseEstimator):
    """Says that it is no step."""

    __ne__ = __lt__ = lambda self, other: False
    __eq__ = __ge__ = lambda self, other: True
    __hash__ = object.__hash__

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X * 0.0


class Thief(BaseEstimator):
    """Shows the record of another model."""

    guarantee_ = None

    def fit(self, X, y):
        self.guarantee_ = PrivateSVMClassifier(**SVM).fit(X, y).guarantee_
        return self


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (lambda: [with_replaced(PublicSchema(DECLARED), transform=lambda X: np.zeros((60, 3)))], "PublicSchema"),
        (lambda: [PublicSchema(DECLARED), Mixing()], "Mixing"),
        (lambda: [PublicSchema(DECLARED), Thief()], "Thief"),
    ],
    ids=["replaced", "no step", "thief"],
)
def test_a_pipeline_proves_nothing_of_other_steps(steps, reason):
    ends = reason == "Thief"
    with pytest.raises(ValueError, match=rf"nothing is proved: .*{reason}"):
        make_private_pipeline(*steps(), *([] if ends else [PrivateSVMClassifier(**SVM)])).fit(TABLE, DIED)
