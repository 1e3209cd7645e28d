"""The recommended private classifier: `rule` says what it trains on, and `classifier` trains."""

from privsvm.methods.recommended.classifier import PrivateLinearClassifier

ESTIMATOR = PrivateLinearClassifier
