"""Sums over rows by dask's workers: the bits of one process, and of any worker that is lost on the way."""

import os
import sys

import numpy as np
import pytest

from privsvm import DPLeastSquaresClassifier, PMSVMGPClassifier, open_rows
from privsvm.numerics.rows.row_blocks import RowsByBlock

# Workers are copies of a process that has imported dask and what trains: each would take two seconds for either.
if "distributed" not in sys.modules:
    os.environ["DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD"] = "forkserver"
distributed = pytest.importorskip("distributed", reason="not installed; requirements-dev.lock has it")
IMPORTED_BEFORE = [
    "distributed", "distributed.nanny", "pandas", "privsvm.families.moments.centred_training",
    "privsvm.families.gradients.noisy_classifiers",
]  # fmt: skip

N = 6000


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    np.save(folder / "X.npy", rng.normal(size=(N, 4)) + y[:, None])
    np.save(folder / "y.npy", y.astype(np.int8))
    return folder


def rows_of(files, block_rows=None):
    return open_rows(files / "X.npy", files / "y.npy", block_rows=block_rows)


def models():
    common = {"epsilon": 2.0, "classes": [0, 1], "random_state": 1}
    return (
        DPLeastSquaresClassifier(**common),
        PMSVMGPClassifier(batch_size=2000, epochs=2, scaling="centre", **common),
    )


def die_once(rows, marker, first):
    """Sum rows; the first worker that comes to a row in the middle kills itself."""
    if first <= N // 2 < first + len(rows) and not os.path.exists(marker):
        with open(marker, "x"):
            os._exit(1)
    return (rows * 2.0**20).astype(np.int64).sum(axis=0)


def test_bits_do_not_depend_on_the_workers_nor_on_one_that_is_killed(files, tmp_path):
    # Dask sets a list of its own the first time that it asks for the context.
    distributed.utils.get_mp_context().set_forkserver_preload(IMPORTED_BEFORE)
    alone = rows_of(files)
    expected = [model.fit(alone, None) for model in models()]
    total = RowsByBlock.of(alone).total(die_once, arguments=(files / "X.npy",))
    for n_workers in (1, 2, 4):
        with (
            distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            rows = rows_of(files, block_rows=1024).on(client)
            for model, expected_bits in zip(models(), expected, strict=True):
                fitted = model.fit(rows, None)
                assert np.array_equal(fitted.coef_, expected_bits.coef_)
                assert all(
                    np.array_equal(value, getattr(expected_bits._path, name))
                    for name, value in vars(fitted._path).items()
                    if isinstance(value, np.ndarray)
                )
            assert np.array_equal(fitted.predict(rows), expected_bits.predict(alone))
            if n_workers == 2:
                marker = tmp_path / "died"
                assert np.array_equal(RowsByBlock.of(rows).total(die_once, arguments=(str(marker),)), total)
                assert marker.exists()
