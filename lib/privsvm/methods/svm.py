"""C-SVM, the non-private reference."""

from __future__ import annotations

from privsvm.families.exact.svm_classifier import SVMClassifier

ESTIMATOR = SVMClassifier
