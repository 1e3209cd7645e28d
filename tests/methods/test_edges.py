"""Declared values at the edge of their range: a proof or one clear line, whatever the rows are."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from tests.proved import CASES

from privsvm import (
    DPFrankWolfeClassifier,
    DPLeastSquaresClassifier,
    ObjectivePerturbationClassifier,
    PrivateSearch,
    PrivateSVMClassifier,
)
from privsvm.privacy.accounting import check_budget

# One of each method.
METHODS = [case for case in CASES if not case.chosen]
FIRST = [case for case in METHODS if case.relation == "replace_one"]
# Exact in the smallest types, with zeros, a row of them, and no two equal columns.
ROWS = np.array([[2, 1], [0, -2], [0, 0], [-3, -3], [0, 2], [1, 3], [0, 1], [3, 2]], dtype=float)
LABELS = np.arange(8) % 3

CLASSES = [
    [0, np.nan],
    [None, 0],
    [],
    [0],
    [0, 0],
    [0, -0.0],
    [[0], [1]],
    # In float64, which one label that is a float makes of all, these are equal.
    [2**53, 2**53 + 1],
]


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_a_set_of_classes_that_is_none_is_refused_before_labels_are_read(case):
    for classes, labels in itertools.product(CLASSES, (LABELS, LABELS * 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=r"\Aclasses=.*: .*\Z"):
                case.model(classes=classes).fit(ROWS, labels)


@pytest.mark.parametrize("delta", [5e-324, 1e-320, 9e-301])
def test_a_delta_that_float64_cannot_hold_is_refused(delta):
    with pytest.raises(ValueError, match=r"\Adelta=.*: must be at least 1e-300"):
        check_budget(1.0, delta)
    for method in (DPFrankWolfeClassifier, ObjectivePerturbationClassifier, DPLeastSquaresClassifier):
        with pytest.raises(ValueError, match=r"\Adelta=.*: must be at least 1e-300"):
            method(classes=[0, 1, 2], delta=delta).fit(ROWS, LABELS)


@pytest.mark.parametrize("case", [case for case in METHODS if "delta" in case.method.declared], ids=str)
def test_no_delta_from_one_over_the_rows_on_is_proved_where_all_neighbours_have_as_many(case):
    enough = np.resize(ROWS, (125, 2)), np.resize(LABELS, 125)
    if case.relation == "add_remove":
        # There a refusal would tell how many rows there are.
        assert case.model(delta=0.0081).fit(*enough).guarantee_.status == "proved"
        return
    with pytest.raises(ValueError, match=r"nothing is proved: delta is 0.0081: at 1 / 125 or more"):
        case.model(delta=0.0081).fit(*enough)
    assert case.model(delta=0.0079).fit(*enough).guarantee_.status == "proved"


def test_a_search_looks_at_delta_too():
    model = ObjectivePerturbationClassifier(classes=[0, 1, 2])
    search = PrivateSearch(model, {"C": [0.1]}, epsilon=4.0, delta=0.0081, mean_runs=2)
    with pytest.raises(ValueError, match=r"nothing is proved: delta is 0.0081: at 1 / 125 or more"):
        search.fit(np.resize(ROWS, (125, 2)), np.resize(LABELS, 125))
    model.set_params(allow_unsound=True)
    assert search.fit(np.resize(ROWS, (125, 2)), np.resize(LABELS, 125)).guarantee_.status == "claimed"


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_settings_of_other_libraries_change_no_refusal(case):
    """Neither what NumPy does with tiny numbers, nor what scikit-learn believes of rows."""
    tiny, missing = ROWS.copy(), ROWS.copy()
    tiny[0, 0], missing[0, 0] = 5e-324, np.nan
    with np.errstate(all="raise"):
        assert {case.model().fit(X, LABELS).guarantee_.status for X in (ROWS, tiny)} == {"proved"}
    with config_context(assume_finite=True), pytest.raises(ValueError, match="NaN"):
        case.model().fit(missing, LABELS)


@pytest.mark.parametrize("case", [case for case in METHODS if "n_rows" in case.method.declared], ids=str)
def test_a_number_of_rows_is_declared_whatever_its_type_is(case):
    for n_rows in (8, np.int64(8), np.uint8(8), 8.0, np.float64(8.0)):
        guarantee = case.model(n_rows=n_rows).fit(ROWS, LABELS).guarantee_
        assert (guarantee.status, guarantee.facts.declared_rows) == ("proved", 8)
        assert type(guarantee.facts.declared_rows) is int
    for n_rows in (True, np.True_, 0, -1, 8.5, "8", 1e308, 2**64):
        with pytest.raises(ValueError, match=r"\An_rows=.*: must be a whole number of at least 1"):
            case.model(n_rows=n_rows).fit(ROWS, LABELS)


def double_entries(kind):
    """Every entry in two parts, in the wrong order."""
    entries = [(value - 1.0, 1.0) for row in ROWS for value in row[::-1]]
    columns = np.tile([1, 1, 0, 0], len(ROWS))
    made = scipy.sparse.csr_array((np.ravel(entries), columns, 4 * np.arange(len(ROWS) + 1)), shape=ROWS.shape)
    made.has_canonical_format = made.has_sorted_indices = kind
    return made


def long_indices():
    made = scipy.sparse.csr_array(ROWS)
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


def read_only():
    made = ROWS.copy()
    made.setflags(write=False)
    return made


def on_disk(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


DENSE = {
    **{name: (lambda name=name: ROWS.astype(name)) for name in ("f2", "f4", ">f8", ">i4", "i1", "O", "longdouble")},
    "list": ROWS.tolist,
    "by columns": lambda: np.asfortranarray(ROWS),
    "read-only": read_only,
    "every second": lambda: np.repeat(ROWS, 2, axis=1)[:, ::2],
    "negative zeros": lambda: np.where(ROWS == 0.0, -0.0, ROWS),
}
SPARSE = {
    **{kind: (lambda kind=kind: getattr(scipy.sparse, f"{kind}_array")(ROWS)) for kind in ("csc", "coo", "lil", "dok")},
    "blocks": lambda: scipy.sparse.bsr_array(ROWS, blocksize=(4, 2)),
    "zeros": lambda: scipy.sparse.csr_array(
        (ROWS.ravel(), np.tile([0, 1], len(ROWS)), 2 * np.arange(len(ROWS) + 1)), shape=ROWS.shape
    ),
    "doubled": lambda: double_entries(False),
    "doubled, said not to be": lambda: double_entries(True),
    "long indices": long_indices,
    "single": lambda: scipy.sparse.csr_array(ROWS.astype("f4")),
}


@pytest.mark.parametrize("case", METHODS, ids=str)
def test_rows_in_any_form_give_the_same_bits_and_the_same_record(case, tmp_path):
    def release(rows, labels=LABELS):
        model = case.model(random_state=1).fit(rows, labels)
        return {name: array.tobytes() for name, array in model._path.arrays().items()}, model.guarantee_

    expected = release(ROWS)
    for name, rows in [*DENSE.items(), ("on disk", lambda: on_disk(tmp_path))]:
        assert release(rows()) == expected, name
    for kind in ("f4", "i1", ">i4", "O", "u8"):
        assert release(ROWS, LABELS.astype(kind)) == expected, kind
    compressed = release(scipy.sparse.csr_array(ROWS))
    # Noisy gradients have the weights of a feature side by side for sparse rows, and so their noise: the same sums.
    if not hasattr(case.method, "epochs") and "epochs" not in case.method.declared:
        assert compressed == expected
    assert compressed[1] == expected[1]
    for name, rows in SPARSE.items():
        assert release(rows()) == compressed, name


@pytest.mark.parametrize("signs", [np.sign, np.abs], ids=["both signs", "one sign"])
def test_huge_rows_are_trained_on_without_a_word(signs):
    # scikit-learn adds them up, and NumPy would warn of infinity less infinity: a message that rows decide.
    rows = np.random.default_rng(0).normal(size=(20, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateSVMClassifier(classes=[0, 1]).fit(1e308 * signs(np.sign(rows)), [0, 1] * 10)
    assert model.guarantee_.status == "proved"


@pytest.mark.parametrize("epsilon", [10**400, -(10**400)])
def test_whole_numbers_that_are_no_float_are_refused_as_others(epsilon):
    with pytest.raises(ValueError, match="must be"):
        PrivateSVMClassifier(classes=[0, 1], epsilon=epsilon).fit([[0.0], [1.0]], [0, 1])
