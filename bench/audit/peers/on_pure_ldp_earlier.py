"""pure-LDP before the repair of its unary encoding."""

from __future__ import annotations

from case import Case, release
from on_pure_ldp import unary

PACKAGE = "pure-ldp"
_REPORT = "Arcolezi and Gambs (2023); Samuel-Maddock/pure-LDP#11"

CASES = [
    Case("symmetric unary encoding", release(unary(False)), 20_000, source=_REPORT),
    Case("optimised unary encoding", release(unary(True)), 20_000, source=_REPORT),
]
