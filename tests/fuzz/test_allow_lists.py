"""An adversary chooses model, steps, container, index type, and one row of a neighbour.

A proved release moves by at most its sensitivity, and passes other rows on unchanged.
"""

import os

import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer, StandardScaler

from privsvm import (
    PrivateLinearClassifier,
    PrivateSVMClassifier,
    PrivateSVMLaplaceClassifier,
    PublicSchema,
    make_private_pipeline,
)

CASES = max(40, int(os.environ.get("PRIVSVM_FUZZ_CASES", "0")))
N_ROWS = N_FEATURES = 6
COLUMNS = {f"x{column}": {"bounds": [-1, 1], "fill": "middle"} for column in range(N_FEATURES)}
# The square of this matrix has its last row in every row; without it a ColumnTransformer changes the container.
TRIANGLE = (
    np.triu(np.ones((N_ROWS, N_FEATURES))),
    np.triu(np.ones((N_ROWS, N_FEATURES))) * (np.arange(N_ROWS) < N_ROWS - 1)[:, None],
    np.array([0, 1] * 3),
)
MODELS = (PrivateSVMClassifier, PrivateSVMLaplaceClassifier, PrivateLinearClassifier)
STEPS = {
    "schema": lambda: PublicSchema({"name": "s", "label": "y", "classes": ["0", "1"], "columns": COLUMNS}),
    "scaled schema": lambda: PublicSchema(
        {"name": "s", "label": "y", "classes": ["0", "1"], "columns": COLUMNS, "prescaled": True}
    ),
    "nothing": lambda: "passthrough",
    "square": lambda: FunctionTransformer(np.square, accept_sparse=True),
    "power": lambda: FunctionTransformer(lambda X: X**2, accept_sparse=True),
    "columns": lambda: ColumnTransformer([("all", "passthrough", list(range(N_FEATURES)))], sparse_threshold=0.57),
    "norm": Normalizer,
    "scale": MaxAbsScaler,
    "mean": lambda: StandardScaler(with_mean=False),
}
CONTAINERS = {
    "dense": lambda X, index: X,
    "fortran": lambda X, index: np.asfortranarray(X),
    "list": lambda X, index: X.tolist(),
    "csr_matrix": lambda X, index: _set_index(scipy.sparse.csr_matrix(X), index),
    "csr_array": lambda X, index: _set_index(scipy.sparse.csr_array(X), index),
    "csc_array": lambda X, index: _set_index(scipy.sparse.csc_array(X), index),
}


def _set_index(X, index):
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def _outcome(work):
    """Return the result of `work`, or the class of its exception."""
    try:
        return work()
    except Exception as error:
        return type(error)


@st.composite
def neighbours(draw):
    """Draw two tables that differ in one row, and their labels."""
    numbers = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 0.3, 1e-30, 1e30])
    rows = draw(st.lists(st.lists(numbers, min_size=N_FEATURES, max_size=N_FEATURES), min_size=7, max_size=7))
    first = np.array(rows[:N_ROWS])
    second = first.copy()
    second[draw(st.integers(0, N_ROWS - 1))] = rows[N_ROWS]
    return first, second, np.array([0, 1] * 3)


@given(
    neighbours(),
    st.sampled_from(MODELS),
    st.lists(st.sampled_from(list(STEPS)), max_size=2),
    st.sampled_from(list(CONTAINERS)),
    st.sampled_from([np.int32, np.int64]),
)
@example(TRIANGLE, PrivateSVMClassifier, ["square"], "csr_matrix", np.int32)
@example(TRIANGLE, PrivateSVMClassifier, ["columns"], "csr_array", np.int64)
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_proved_in_a_pipeline_treats_other_rows_alike(tables, method, steps, container, index):
    first, second, labels = tables

    def pipeline(**changes):
        return make_private_pipeline(*(STEPS[name]() for name in steps), method(classes=[0, 1], **changes))

    X, other = (CONTAINERS[container](rows, index) for rows in (first, second))
    statuses = [_outcome(lambda rows=rows: pipeline().fit(rows, labels).guarantee_.status) for rows in (X, other)]
    # A refusal must not depend on the row.
    assert statuses[0] == statuses[1]
    if statuses[0] != "proved":
        return
    models = [pipeline(random_state=0).fit(rows, labels) for rows in (X, other)]
    reached = [model[:-1].transform(rows) if steps else rows for model, rows in zip(models, (X, other), strict=True)]
    assert type(reached[0]) is type(reached[1])
    arrays = [rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows) for rows in reached]
    same = (first == second).all(axis=1)
    assert arrays[0][same].tobytes() == arrays[1][same].tobytes()
    guarantee = models[0][-1].guarantee_
    if guarantee.sensitivity is not None:
        # Seeded noise is the same for both.
        norm = 1 if method is PrivateSVMLaplaceClassifier else 2
        moved = np.linalg.norm((models[0][-1].coef_ - models[1][-1].coef_).ravel(), norm)
        assert moved <= guarantee.sensitivity * (1.0 + 1e-9)
