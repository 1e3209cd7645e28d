"""After a warm-up, no fit compiles anything, whatever the type, the order and the flags of the rows."""

import os

import pytest
from tests.processes import run_python

WARM_UP = (
    "from privsvm.warm_up import MODULES, warm_up; warm_up(*(m for m in MODULES if m.startswith('solvers.kernel')))"
)
FITS = """
import gc
import numpy as np
import pandas as pd
import scipy.sparse
from numba.core.dispatcher import Dispatcher
from privsvm import SVMClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(1300, 68))
y = np.where(X[:, 0] + rng.normal(size=1300) > 0, 1, 0)
rows = [X, np.asfortranarray(X), X.astype(np.float32), np.round(X).astype(np.int64), np.vstack([X, X])[::2]]
rows[0].flags.writeable = False
zeros = X * (rng.random(X.shape) < 0.1)
rows += [zeros, scipy.sparse.csr_matrix(zeros)]
rows += [scipy.sparse.csc_array(zeros), scipy.sparse.csr_array(zeros, dtype=np.float32), pd.DataFrame(X)]
long = scipy.sparse.csr_array(zeros)
long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
rows += [long]
for data in rows:
    for labels in (y, np.arange(1300) % 3):
        for options in ({}, {"C": 1e5}, {"kernel": "linear"}, {"kernel": "poly"}, {"kernel": "sigmoid"}):
            SVMClassifier(max_iter=3000, **options).fit(data, labels).predict(data[:50])
        SVMClassifier().fit(data[:200], labels[:200])
matrix = X @ X.T
matrix.flags.writeable = False
for kernel in (matrix, np.asfortranarray(matrix)):
    SVMClassifier(kernel="precomputed", max_iter=3000).fit(kernel, y)
print(sorted({f.py_func.__qualname__ for f in gc.get_objects() if isinstance(f, Dispatcher) and f.stats.cache_misses}))
"""


@pytest.mark.long
def test_a_first_fit_compiles_nothing(tmp_path):
    # What other tests compiled must not count.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for code, printed in ((WARM_UP, ""), (FITS, "[]\n")):
        assert run_python("-W", "ignore", "-c", code, env=environment) == printed
