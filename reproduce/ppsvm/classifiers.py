"""Other classifiers on the public random kernel (section 3, close): 2-norm SVM, proximal SVM, logistic regression."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.linalg

from privsvm.families.one_norm.ppsvm_protocol import combine_blocks
from reproduce.engine.context import Context
from reproduce.ppsvm.runs import _partition, _stream, _tenth, read

_CS = tuple(10.0**exponent for exponent in range(-4, 3))
# Fitted on kernel rows (n, mbar) and codes (n,), a classifier returns the codes of other rows.
Fit = Callable[[np.ndarray, np.ndarray, float], Callable[[np.ndarray], np.ndarray]]


def fit_proximal(K: np.ndarray, codes: np.ndarray, C: float) -> Callable[[np.ndarray], np.ndarray]:
    """Fit a proximal SVM: least squares on the signs, with a quadratic regulariser on weights and offset."""
    rows = np.column_stack([K, np.ones(len(K))])
    gram = rows.T @ rows + np.eye(rows.shape[1]) / C
    solution = scipy.linalg.solve(gram, rows.T @ (2.0 * codes - 1.0), assume_a="pos")
    return lambda others: (others @ solution[:-1] + solution[-1] > 0).astype(np.int64)


def _fit_two_norm(K: np.ndarray, codes: np.ndarray, C: float) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.svm import SVC

    return SVC(kernel="linear", C=C).fit(K, codes).predict


def _fit_logistic(K: np.ndarray, codes: np.ndarray, C: float) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=1000).fit(K, codes).predict


FITS: dict[str, Fit] = {"2-norm SVM": _fit_two_norm, "proximal SVM": fit_proximal, "logistic": _fit_logistic}


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Ten-fold errors of each classifier on the linear random kernel; C is chosen on a tenth of the training rows.

    Parameters: as for `reproduce.ppsvm.runs.errors`, without "PPSVM", "alone" and "most_entities". Result: for each of
    ``partitions`` the sizes of its folds, and errors by fold of each classifier.
    """
    X, codes = read(parameters, context)

    def compute(number: int) -> dict[str, Any]:
        partition = _partition(parameters, context, X, number)
        K = combine_blocks(
            {str(position): entity.publish(X[:, columns], "linear", 1.0)
             for position, (columns, entity) in enumerate(zip(partition.columns, partition.entities, strict=True))},
            "linear",
        )  # fmt: skip
        result: dict[str, Any] = {"folds": np.bincount(partition.folds).tolist()}
        for name, fit in FITS.items():
            result[name] = {"errors": []}
            for fold in range(parameters["n_folds"]):
                test, train = partition.folds == fold, np.flatnonzero(partition.folds != fold)
                tenth = _tenth(codes[train], _stream(parameters, context, "tuning", name, number, fold))

                def count(rows: np.ndarray, others: np.ndarray, C: float, fit: Fit = fit) -> int:
                    return int((fit(K[rows], codes[rows], C)(K[others]) != codes[others]).sum())

                C = min(_CS, key=functools.partial(count, train[~tenth], train[tenth]))
                result[name]["errors"].append(count(train, np.flatnonzero(test), C))
        return result

    return {"partitions": context.parts(parameters, "partitions", "partition", compute)}
