"""C-SVM, the non-private reference."""

from __future__ import annotations

from privsvm.base.kernel_svm import SVMClassifier

__all__ = ["ESTIMATOR", "SVMClassifier"]

ESTIMATOR = SVMClassifier
