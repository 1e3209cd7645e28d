"""Majority class: the reference that uses no feature at all."""

from __future__ import annotations

import numpy as np

from privsvm.base.estimators import SingleModelClassifier
from privsvm.base.released import ConstantPath
from privsvm.base.rows import as_training_rows
from privsvm.privacy.gate import exact_training


class MajorityClassifier(SingleModelClassifier):
    """Answer with the most frequent class of the training rows. Not private.

    Attributes
    ----------
    class_frequencies_ : ndarray (c,)
        Share of each class among the training rows.

    Examples
    --------
    >>> from privsvm import MajorityClassifier
    >>> MajorityClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"]).predict([[5.0]])
    array(['b'], dtype='<U1')
    """

    def _train(self, X, y, rng) -> None:
        self.check_declared()
        _, codes = as_training_rows(self, X, y, self.classes)
        self.class_frequencies_ = np.bincount(codes, minlength=len(self.classes_)) / codes.size
        record = exact_training("reference method, no paper", "none: the most frequent class, counted exactly")
        self._keep_model(ConstantPath, record, class_scores=self.class_frequencies_[None, None, :])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # It answers one class by design, whatever the rows say.
        tags.classifier_tags.poor_score = True
        return tags


ESTIMATOR = MajorityClassifier
