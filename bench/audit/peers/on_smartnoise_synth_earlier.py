"""smartnoise-synth before the repair of its covariances."""

from __future__ import annotations

from case import Case, pair, release
from on_smartnoise_synth import covariances, rows

PACKAGE = "smartnoise-synth"

CASES = [
    Case(
        "covariances of two columns",
        release(covariances([1.0, 1.0])),
        1500,
        source="opendp/smartnoise-sdk#622",
        options={"pairs": pair("rows of zeros, and a long one", rows([9.0, 9.0]), rows([0.0, 0.0]))},
    ),
]
