"""pure-LDP before the repair of its unary encodings."""

from __future__ import annotations

import dataclasses

import on_pure_ldp as present

PACKAGE = present.PACKAGE
_REPORT = "Arcolezi and Gambs (2023); Samuel-Maddock/pure-LDP#11"
CASES = [dataclasses.replace(case, source=_REPORT) for case in present.CASES[:2]]
