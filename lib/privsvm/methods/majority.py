"""Majority class: the reference that uses no feature at all."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privsvm.base.parameters import LABELS, DeclaredEstimator
from privsvm.base.released import ConstantPath
from privsvm.base.tables import rows_of_users
from privsvm.base.validation import check_training_data, common_tags
from privsvm.privacy.guarantee import Guarantee

__all__ = ["ESTIMATOR", "MajorityClassifier"]


class MajorityClassifier(ClassifierMixin, DeclaredEstimator):
    """Answer with the most frequent class of the training rows. Not private.

    Attributes
    ----------
    classes_ : ndarray (c,)
        The labels.
    class_frequencies_ : ndarray (c,)
        Share of each class among the training rows.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        Status ``none``.

    Examples
    --------
    >>> from privsvm import MajorityClassifier
    >>> MajorityClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"]).predict([[5.0]])
    array(['b'], dtype='<U1')
    """

    classes: Sequence | None = LABELS

    def fit(self, X, y) -> MajorityClassifier:
        """Count the classes.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; only their number is used.
        y : array-like (n,)
            Labels.

        Returns
        -------
        MajorityClassifier
            Itself.
        """
        self.check_declared()
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        self.class_frequencies_ = np.bincount(codes, minlength=len(self.classes_)) / codes.size
        self.guarantee_ = Guarantee(
            status="none",
            mechanism="none: the most frequent class, counted exactly",
            reason="a non-private reference",
            reference="reference method, no paper",
        )
        return self

    def predict(self, X) -> np.ndarray:
        """Predict the most frequent class for every row of X (n, d); returns labels (n,)."""
        check_is_fitted(self)
        X = validate_data(self, rows_of_users(X), reset=False, accept_sparse="csr")
        return np.repeat(self.classes_[np.argmax(self.class_frequencies_)], X.shape[0])

    def release_path(
        self, X, y, epsilons: Sequence[float], repeats: int, rng=None, audit: bool = False
    ) -> ConstantPath:
        """One exact model: a non-private method ignores all but the rows and labels."""
        started = time.perf_counter()
        self.fit(X, y)
        return ConstantPath(
            epsilons=(math.inf,),
            guarantees=(self.guarantee_,),
            n_classes=len(self.classes_),
            fit_seconds=time.perf_counter() - started,
            class_scores=self.class_frequencies_[None, None, :],
        )

    def __sklearn_tags__(self):
        tags = common_tags(super().__sklearn_tags__())
        # It answers one class by design, whatever the rows say.
        tags.classifier_tags.poor_score = True
        return tags


ESTIMATOR = MajorityClassifier
