"""Check that first fits of `SVMClassifier` compile nothing after `privsvm warm-up` with an empty cache.

The warm-up takes most of the two minutes of processor time.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

# Rows, features, classes.
SHAPES = ((120, 5, 2), (1200, 20, 2), (1200, 100, 2), (400, 5, 3), (700, 80, 3), (3000, 5, 2))


def forms(X: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield rows of one shape in every form that a caller may pass."""
    yield "float64", X
    yield "float64, by columns", np.asfortranarray(X)
    yield "float32", X.astype(np.float32)
    yield "float32, by columns", np.asfortranarray(X.astype(np.float32))
    yield "every other column", np.repeat(X, 2, axis=1)[:, ::2]
    yield "integers", np.round(3 * X).astype(np.int64)
    yield "table", pd.DataFrame(X)
    yield "table of float32", pd.DataFrame(X.astype(np.float32))
    fixed = X.copy()
    fixed.flags.writeable = False
    yield "read only", fixed
    sparse = scipy.sparse.random_array(X.shape, density=0.1, rng=rng, format="csr")
    for index in (np.int32, np.int64):
        for kind in (np.float64, np.float32):
            csr_arrays = sparse.data.astype(kind), sparse.indices.astype(index), sparse.indptr.astype(index)
            yield f"CSR, {np.dtype(kind)}, {np.dtype(index)}", scipy.sparse.csr_array(csr_arrays, shape=X.shape)
    yield "CSC", scipy.sparse.csc_array(sparse)


def main() -> int:
    """Warm up, fit, and print functions compiled by fits; return 1 if there are any."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        # Late import: Numba reads the variable when it is imported.
        from privsvm import SVMClassifier
        from privsvm.command import main as command

        def compiled() -> set[str]:
            return {path.name for path in Path(folder).rglob("*.nbc")}

        command(["warm-up"])
        before, late, n_fits = compiled(), set(), 0
        rng = np.random.default_rng(0)
        for n, d, n_classes in SHAPES:
            y = np.arange(n) % n_classes
            X = rng.normal(size=(n, d)) + y[:, None] * (np.arange(d) == 0)
            for kernel in ("rbf", "linear", "poly", "sigmoid"):
                for form, rows in forms(X, rng):
                    for more in ({}, {"C": 1e4, "max_iter": 300}):
                        if more and form not in ("float64", "CSR, float64, int64"):
                            continue
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            SVMClassifier(kernel=kernel, degree=2, **more).fit(rows, y).predict(rows)
                        n_fits += 1
                        if new := compiled() - before - late:
                            print(f"{n} x {d}, {n_classes} classes, {kernel}, {form}, {more}: {sorted(new)}")
                            late |= new
        print(f"{len(before)} files by warm-up, {len(late)} by {n_fits} first fits")
    return int(bool(late))


if __name__ == "__main__":
    sys.exit(main())
