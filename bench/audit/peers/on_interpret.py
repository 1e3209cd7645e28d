"""interpret's DP-EBM at epsilon 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import DELTA, Case, two_classes
from interpret.privacy import DPExplainableBoostingClassifier

PACKAGE = "interpret-core"
_OPTIONS = {"delta": DELTA, **two_classes([0, 1] * 10, 0.5)}


class Boosted(DPExplainableBoostingClassifier):
    """A few rounds on one feature, whose bounds are given."""

    def __init__(self, privacy_bounds: Any = ((-1.0, 1.0),)) -> None:
        super().__init__(
            epsilon=1.0,
            delta=DELTA,
            feature_types=["continuous"],
            privacy_bounds=privacy_bounds if privacy_bounds is None else np.array(privacy_bounds),
            max_rounds=4,
            outer_bags=1,
            n_jobs=1,
            random_state=None,
        )


CASES = [
    Case("DP-EBM", Boosted, 1000, options=_OPTIONS),
    Case(
        "DP-EBM without bounds",
        lambda: Boosted(None),
        600,
        source="its warning: bounds come from the rows",
        options=_OPTIONS,
    ),
]
