"""The wine table, prepared as the benchmark does it."""

import numpy as np
import scipy.sparse
from sklearn.datasets import load_wine
from sklearn.preprocessing import minmax_scale

from privsvm_bench.datasets.prepared import PreparedData

DESCRIPTION = {
    "dataset": "wine", "n_splits": 1, "classes": ["a", "b", "c"], "classes_origin": "declared",
    "declared_training_rows": [140], "protocol": {"kind": "holdout", "stratified": False},
    "scaling": {"kind": "bounds", "origin": "declared", "bounds_origin": "declared", "range": [-1.0, 1.0]},
    "prescaled": False, "prescaled_origin": "catalogue", "sparse": False, "indicators": [],
    "missing": {"rule": "error", "columns_dropped": []}, "n_features_origin": "declared",
}  # fmt: skip


def prepare_wine(n_splits=1, sparse=False, n_train=140, labels=None, **description):
    """Split 178 rows into `n_train` and 38; `labels` changes the class codes."""
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    if sparse:
        X = scipy.sparse.csr_array(np.where(X > 0.6, X, 0.0))
    rng = np.random.default_rng(1)
    arrays = {"scale_shift": np.zeros((1, 13)), "scale_factor": np.ones((1, 13))}
    for split in range(n_splits):
        order = rng.permutation(len(y))
        arrays |= {f"train_{split}": order[:n_train], f"test_{split}": order[140:]}
    changes = {"n_splits": n_splits, "sparse": sparse, "declared_training_rows": [140] * n_splits} | description
    codes = (y if labels is None else labels(y)).astype(np.int64)
    return PreparedData(X, codes, DESCRIPTION | changes, arrays)
