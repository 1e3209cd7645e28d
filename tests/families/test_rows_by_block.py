"""Models of rows that are read block by block: the bits of rows in memory, whatever the blocks are."""

import errno
import os
import time
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse
from proof_pages import proofs

from privsvm import (
    DPFeatureCovarianceClassifier,
    DPLeastSquaresClassifier,
    DPNewtonClassifier,
    GRPUAClassifier,
    LandmarkDualClassifier,
    OPERAClassifier,
    PMSVMAGPClassifier,
    PMSVMGPClassifier,
    PrivateLinearClassifier,
    PrivateSVMClassifier,
    PrivateSVMRBFClassifier,
    SoftmaxDPSGDClassifier,
    open_rows,
)
from privsvm.base.rows import check_class_memory
from privsvm.errors import PrivSVMError
from privsvm.families.gradients import noisy_training
from privsvm.families.moments import centred_training, second_moments
from privsvm.methods.recommended import classifier as recommended
from privsvm.numerics.rows import row_blocks
from privsvm.numerics.rows.row_blocks import ArrayBlocks, NpyBlocks, RowBlocks, RowsByBlock
from privsvm.registry import estimator_class

N, D, C = 2500, 6, 3
CASES = {
    "sampled": (PMSVMGPClassifier, {"batch_size": 500, "epochs": 3, "momentum": 0.5}),
    "inside": (PMSVMGPClassifier, {"inside_clip": True, "margin_weight": 0.1, "ridge": 0.1, "epochs": 4}),
    "clipped rows": (SoftmaxDPSGDClassifier, {"data_norm": 0.7, "epochs": 2}),
    "one vs rest": (GRPUAClassifier, {"epochs": 2}),
    "centred": (SoftmaxDPSGDClassifier, {"scaling": "centre", "epochs": 3}),
    "centred, offsets": (PMSVMAGPClassifier, {"scaling": "centre", "fit_intercept": True, "epochs": 3}),
    "whitened": (PMSVMGPClassifier, {"scaling": "whiten", "fit_intercept": True, "epochs": 2}),
    "least squares": (DPLeastSquaresClassifier, {}),
    "second moment": (DPFeatureCovarianceClassifier, {"n_steps": 3}),
    "newton": (DPNewtonClassifier, {"n_steps": 3}),
    "recommended": (PrivateLinearClassifier, {"bounds": (-3.0, 3.0), "class_weight": "balanced"}),
    "recommended, few rows": (PrivateLinearClassifier, {"features": "linear", "epsilon": 0.05}),
}
# And every other proved method that reads blocks, but for solvers that stop at a tolerance.
OTHERS = {
    method for name in proofs() if (method := estimator_class(name)).reads_blocks and "tol" not in method.declared
}
CASES |= {
    method.__name__: (method, {"epochs": 2} if "epochs" in method.declared else {})
    for method in sorted(OTHERS - {method for method, _ in CASES.values()}, key=lambda method: method.__name__)
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, C, N)
    return rng.normal(size=(N, D)) + 2.0 * np.eye(C, D)[y], y


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "X.npy", data[0])
    np.save(folder / "y.npy", data[1].astype(np.int16))
    return folder


def numbers(model):
    return {name: value for name, value in vars(model._path).items() if isinstance(value, np.ndarray)}


def fitted(case, X, y, **changed):
    kind, parameters = (CASES | SPARSE)[case]
    common = {"epsilon": 8.0, "classes": list(range(C)), "random_state": 3}
    return kind(**{**common, **parameters, **changed}).fit(X, y)


@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_of_rows_in_memory(case, data, files):
    X, y = data
    expected = fitted(case, X, y)
    for block_rows, n_jobs in ((1, None), (10**6, 2)):
        rows = open_rows(files / "X.npy", files / "y.npy", block_rows=block_rows)
        threads = {"n_jobs": n_jobs} if "n_jobs" in type(expected).declared else {}
        by_block = fitted(case, rows, None, **threads)
        for name, value in numbers(expected).items():
            assert np.array_equal(numbers(by_block)[name], value), name
        assert by_block.guarantee_ == expected.guarantee_
        assert np.array_equal(by_block.predict(rows), expected.predict(X))


# Every path of the recommended estimator: with and without random features and a second moment.
SPARSE = {
    "recommended, linear": (PrivateLinearClassifier, {"features": "linear", "epsilon": 0.05}),
    "recommended, indicators": (
        PrivateLinearClassifier,
        {"bounds": ([-3, 0, -2, 0, 1, -3], [3, 1, 2, 1, 1, 3]), "features": "linear"},
    ),
    "recommended, features": (PrivateLinearClassifier, {"features": "fourier", "bounds": (-3.0, 3.0)}),
    "recommended, dense": (PrivateLinearClassifier, {"features": "linear", "bounds": (-3.0, 2.0)}),
}


@pytest.mark.parametrize(
    "case", ["centred", "centred, offsets", "least squares", "second moment", "newton", "recommended", *SPARSE]
)
def test_large_tables_in_memory_have_the_same_bits_by_block(case, data, monkeypatch):
    """Sparse rows too, of which no dense table is made; with room for the transformed rows of a block only."""
    X, y = data
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    expected = numbers(fitted(case, X, y))
    monkeypatch.setattr(row_blocks, "_KEPT_BYTES", 30_000)
    for module in (centred_training, noisy_training, recommended):
        monkeypatch.setattr(module, "_LARGEST_TABLE", 1000)
    read = []
    monkeypatch.setattr(
        ArrayBlocks,
        "read",
        lambda self, a, b, read_block=ArrayBlocks.read: read.append(b - a) or read_block(self, a, b),
    )
    monkeypatch.setattr(row_blocks, "_WORK_NUMBERS", 1024)
    for rows in (X, scipy.sparse.csr_array(X)):
        by_block = numbers(fitted(case, rows, y))
        assert all(np.array_equal(by_block[name], value) for name, value in expected.items())
    assert max(read) == 1024


def test_sums_wrap_around_and_have_one_result(data):
    X = np.full((3000, 2), 2.0**62)
    totals = [RowsByBlock.of(rows).sum(axis=0, dtype=np.int64) for rows in (X, ArrayBlocks(X, 1))]
    assert all(np.array_equal(sums, X.sum(axis=0, dtype=np.int64)) for sums in totals)


@pytest.mark.parametrize("kind", ["float64", "float32", "int16", "bool"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_files_larger_than_the_cache_are_read_past_it(kind, share, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(5001, 3)).astype(kind)
    np.save(tmp_path / "X.npy", X)
    opened, open_past_cache = [], row_blocks._past_cache
    monkeypatch.setattr(row_blocks, "_CACHED_SHARE", share)
    monkeypatch.setattr(
        row_blocks, "_past_cache", lambda *arguments: opened.append(arguments) or open_past_cache(*arguments)
    )
    rows = NpyBlocks(tmp_path / "X.npy")
    for start, stop in ((0, 5001), (1, 2), (4096, 5001), (17, 4000), (5001, 5001)):
        block = rows.read(start, stop)
        assert block.dtype == np.float64
        assert np.array_equal(block, X[start:stop])
    first, second = rows.read(0, 10), rows.read(10, 20)
    assert np.array_equal(np.concatenate([first, second]), X[:20])
    assert bool(opened) == (share == 0.0)


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("moment", ["opening", "reading"])
def test_where_the_cache_cannot_be_passed_by_it_is_used(share, moment, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    np.save(tmp_path / "X.npy", X)

    def refuse(path, flags):
        if moment == "opening":
            raise OSError(errno.EINVAL, "no such way of reading")
        # A file open for writing cannot be read.
        return os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)

    monkeypatch.setattr(row_blocks, "_CACHED_SHARE", share)
    monkeypatch.setattr(row_blocks, "_past_cache", refuse)
    rows = NpyBlocks(tmp_path / "X.npy")
    assert np.array_equal(rows.read(5, 1500), X[5:1500])
    with open(tmp_path / "X.npy", "r+b") as file:
        file.truncate(128 + 1000 * X[0].nbytes + 4)
    assert np.array_equal(rows.read(5, 1000), X[5:1000])
    with pytest.raises(PrivSVMError, match=r"X.npy: ends within row 1000$"):
        rows.read(5, 1001)


def test_a_copy_of_the_process_reads_into_memory_of_its_own(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(200)))
    view = row_blocks._bytes_at(str(path), 0, 100)
    child = os.fork()
    if not child:
        os._exit(0 if bytes(row_blocks._bytes_at(str(path), 100, 100)) == bytes(range(100, 200)) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert bytes(view) == bytes(range(100))


def test_parquet_rows_are_those_of_the_columns(data, tmp_path):
    pandas, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    import pyarrow

    X, y = data
    table = pandas.DataFrame(X[:2000], columns=[f"x{k}" for k in range(D)])
    table.insert(2, "label", y[:2000])
    for number in range(2):
        half = pyarrow.Table.from_pandas(table[1000 * number : 1000 * (number + 1)], preserve_index=False)
        parquet.write_table(half, tmp_path / f"part{number}.parquet", row_group_size=600)
    rows = open_rows(tmp_path, "label", block_rows=1024)
    assert rows.shape == (2000, D)
    assert np.array_equal(np.concatenate([rows.read(*block) for block in rows.blocks()]), X[:2000])
    assert np.array_equal(rows.labels, y[:2000])
    by_block, expected = (
        fitted("least squares", *rows_and_labels) for rows_and_labels in ((rows, None), (X[:2000], y[:2000]))
    )
    assert np.array_equal(by_block.coef_, expected.coef_)
    with pytest.raises(PrivSVMError, match=r"label='kind': .* has no such column"):
        open_rows(tmp_path, "kind")


def test_what_cannot_be_read_is_refused(data, files, tmp_path):
    X, y = data
    rows = open_rows(files / "X.npy")
    for kind in (PrivateSVMClassifier, OPERAClassifier, PrivateSVMRBFClassifier):
        with pytest.raises(ValueError, match=rf"^X is a NpyBlocks: {kind.__name__} needs all rows in memory; [^\n]+$"):
            kind(epsilon=1.0, classes=[0, 1, 2]).fit(rows, y)
    with pytest.raises(ValueError, match="the source of rows has no labels"):
        fitted("least squares", rows, None)
    with pytest.raises(ValueError, match=r"y holds the label .*2.*, which is not in classes"):
        fitted("least squares", rows, y, classes=[0, 1])
    for name, array in (("wide.npy", np.zeros((2, 2, 2))), ("text.npy", np.array([["a"]]))):
        np.save(tmp_path / name, array)
        with pytest.raises(PrivSVMError, match=name):
            open_rows(tmp_path / name)
    X = X.copy()
    X[2400, 2] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        fitted("least squares", ArrayBlocks(X), y)
    (tmp_path / "cut.npy").write_bytes((files / "X.npy").read_bytes())
    rows = open_rows(tmp_path / "cut.npy")
    with open(tmp_path / "cut.npy", "r+b") as file:
        file.truncate(file.seek(0, 2) - 8)
    with pytest.raises(PrivSVMError, match=r"cut\.npy: ends"):
        fitted("least squares", rows, y)


def test_entries_that_are_stored_twice_add_up_before_rows_are_bounded():
    single = scipy.sparse.csr_array(np.array([[1000.0, 1.0], [0.0, 1.0]] * 20))
    places = np.concatenate([np.zeros(1000, np.int32), single.indices[1:]])
    starts = single.indptr + 999
    starts[0] = 0
    values = np.concatenate([np.ones(1000), single.data[1:]])
    stored = scipy.sparse.csr_array((values, places, starts), shape=single.shape)
    models = [fitted("recommended", ArrayBlocks(X), np.arange(40) % 2) for X in (stored, single)]
    assert np.array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_array])
def test_what_a_row_adds_up_to_does_not_depend_on_the_order_of_another(kind):
    models = []
    for last in ([2, 3], [3, 2]):
        # Summed in another order, the first entries of a row are another number.
        values = np.array([*([1e16, 1.0, -1e16, 1.0] * 6 + [1.0]) * 39, 1.0, 1.0])
        places = np.array([*([0] * 24 + [1]) * 39, *last])
        X = scipy.sparse.csr_array((values, places, np.append(np.arange(40) * 25, 977)), shape=(40, 4))
        models.append(fitted("recommended", ArrayBlocks(kind(X)), np.arange(40) % 2))
    assert np.array_equal(models[0].coef_, models[1].coef_)


def test_sparse_rows_by_column_are_read_by_row():
    X = scipy.sparse.random(64, 64, 0.2, random_state=0)
    models = [
        fitted("recommended, few rows", ArrayBlocks(rows), np.arange(64) % C, bounds=None)
        for rows in (X.tocsc(), X.tocsr())
    ]
    assert np.array_equal(models[0].coef_, models[1].coef_)


class Counted(RowBlocks):
    """Rows that are made when they are read; tells how many blocks were in memory at most."""

    def __init__(self, n):
        super().__init__((n, 2), 1024)
        self.n_read = 0

    def read(self, start, stop):
        self.n_read += 1
        return np.arange(start, stop)[:, None] * np.ones(2)


def test_rows_that_are_kept_are_not_made_again(monkeypatch):
    rows = RowsByBlock.of(np.eye(3000, 256)).keep()
    monkeypatch.setattr(ArrayBlocks, "read", None)
    wider = rows.then(_with_a_number, n_features=257)
    assert wider.sum(axis=0, dtype=np.int64).tolist() == [1] * 256 + [3000]


def _with_a_number(rows):
    return np.column_stack([rows, np.ones(rows.shape[0])])


def test_blocks_are_not_read_far_ahead():
    rows, seen = Counted(60 * 1024), []

    def slow(block, first):
        if first == 0:
            # The others must not have been read while the first one waits.
            time.sleep(0.2)
            seen.append(rows.n_read)
        return block.sum(axis=0, dtype=np.int64)

    total = RowsByBlock.of(rows).total(slow)
    assert seen[0] <= 4
    assert total.tolist() == [sum(range(60 * 1024))] * 2


@pytest.mark.parametrize(
    "kind", [PrivateSVMClassifier, DPLeastSquaresClassifier, GRPUAClassifier, PrivateLinearClassifier]
)
def test_more_classes_than_fit_into_memory_are_refused_in_one_line(kind, monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 10**6}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    check_class_memory(kind, 1000, 10, 300)
    n_classes = 50_000 if kind is not PrivateLinearClassifier else 10**8
    with pytest.raises(
        ValueError, match=rf"^classes: {n_classes} classes, 60000 rows .* GB of this machine; use [^\n]+$"
    ):
        check_class_memory(kind, 60_000, 10, n_classes)


@pytest.mark.parametrize("kind", [LandmarkDualClassifier, PrivateSVMRBFClassifier])
def test_more_kernel_features_than_fit_into_memory_are_refused_in_one_line(kind, data, monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 200}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    with pytest.raises(ValueError, match=rf"^X: \d+ kernel features of {N} rows would take .* GB, of [^\n]+$"):
        kind(epsilon=8.0, classes=list(range(C)), random_state=0).fit(*data)


def test_bounds_that_keep_zeros_make_no_dense_table(data, monkeypatch):
    """Other bounds do, block by block."""
    X = scipy.sparse.csr_array(np.where(np.abs(data[0]) < 0.7, 0.0, data[0]))
    unit = Mock(side_effect=lambda rows: second_moments.unit_cells(rows)[0])
    monkeypatch.setattr(second_moments, "_unit", unit)
    monkeypatch.setattr(recommended, "_LARGEST_TABLE", 1000)
    for bounds, kind in ((None, scipy.sparse.csr_array), ((-3.0, 3.0), scipy.sparse.csr_array), ((-3, 2), np.ndarray)):
        unit.reset_mock()
        fitted("recommended, few rows", X, data[1], bounds=bounds)
        # Later rows are random features, or rows that a second moment has evened out.
        assert type(unit.call_args_list[0].args[0]) is kind
