"""pure-LDP before the repair of its unary encoding."""

from __future__ import annotations

from case import Case, options, release
from on_pure_ldp import unary

PACKAGE = "pure-ldp"
_REPORT = "Arcolezi and Gambs (2023); Samuel-Maddock/pure-LDP#11"

CASES = [
    Case(name="symmetric unary encoding", make=release(unary(False)), source=_REPORT, options=options(20_000)),
    Case(name="optimised unary encoding", make=release(unary(True)), source=_REPORT, options=options(20_000)),
]
