"""Other classifiers on the public random kernel (section 3, close): 2-norm SVM, proximal SVM, logistic regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.families.one_norm.ppsvm_protocol import combine_blocks
from reproduce.engine.context import Context
from reproduce.ppsvm.runs import _partition, read

_CS = [10.0**exponent for exponent in range(-4, 3)]


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Ten-fold errors of each classifier on the linear random kernel; C is chosen on a tenth of the training rows.

    Parameters: as for `reproduce.ppsvm.runs.errors`, without "PPSVM", "alone" and "most_entities". Result: for each of
    ``partitions`` the error of each classifier, the mean of its folds.
    """
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.model_selection import GridSearchCV, PredefinedSplit, ShuffleSplit, cross_val_score
    from sklearn.svm import LinearSVC

    # A column of ones makes the offset a weight, which is regularised too. The proximal SVM is least squares on the
    # signs; the 2-norm SVM squares the slack.
    models = {
        "2-norm SVM": (LinearSVC(dual=False, fit_intercept=False), {"C": _CS}),
        "proximal SVM": (RidgeClassifier(fit_intercept=False), {"alpha": [1.0 / C for C in _CS]}),
        "logistic": (LogisticRegression(solver="newton-cholesky", fit_intercept=False), {"C": _CS}),
    }
    X, codes = read(parameters, context)

    def compute(number: int) -> dict[str, float]:
        partition, tenth = (
            _partition(parameters, context, X, number),
            ShuffleSplit(1, test_size=0.1, random_state=number),
        )
        members = enumerate(zip(partition.columns, partition.entities, strict=True))
        blocks = {
            str(position): entity.publish(X[:, columns], "linear", 1.0) for position, (columns, entity) in members
        }
        K = np.column_stack([combine_blocks(blocks, "linear"), np.ones(len(X))])
        folds = PredefinedSplit(partition.folds)
        return {
            name: 1.0 - float(np.mean(cross_val_score(GridSearchCV(model, grid, cv=tenth), K, codes, cv=folds)))
            for name, (model, grid) in models.items()
        }

    return {"partitions": context.parts(parameters, "partitions", "partition", compute)}
