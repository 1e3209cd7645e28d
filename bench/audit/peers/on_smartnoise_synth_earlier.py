"""smartnoise-synth before the repair of its covariances."""

from __future__ import annotations

import dataclasses

import on_smartnoise_synth as present

PACKAGE = present.PACKAGE
CASES = [dataclasses.replace(present.CASES[0], source="opendp/smartnoise-sdk#622")]
