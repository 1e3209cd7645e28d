"""smartnoise-synth before the repair of its covariances."""

from __future__ import annotations

from case import Case, options, pair, release
from on_smartnoise_synth import covariances, rows

PACKAGE = "smartnoise-synth"

CASES = [
    Case(
        name="covariances of two columns",
        make=release(covariances([1.0, 1.0])),
        source="opendp/smartnoise-sdk#622",
        options=options(1500, pairs=pair("rows of zeros, and a long one", rows([9.0, 9.0]), rows([0.0, 0.0]))),
    ),
]
