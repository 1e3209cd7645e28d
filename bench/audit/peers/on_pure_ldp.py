"""pure-LDP: one user's answer, local privacy at epsilon 1. Neighbours have another answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from case import Case, release
from pure_ldp.frequency_oracles.direct_encoding import DEClient
from pure_ldp.frequency_oracles.unary_encoding import UEClient

PACKAGE = "pure-ldp"
_ANSWERS = 4
_DIRECT = DEClient(1.0, _ANSWERS)


def _unary(optimised: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Publish the unary encoding of the last label."""
    client = UEClient(1.0, _ANSWERS, use_oue=optimised)
    return lambda X, y: client.privatise(int(y[-1]) + 1)


CASES = [
    Case("symmetric unary encoding", release(_unary(False)), 20_000),
    Case("optimised unary encoding", release(_unary(True)), 20_000),
    Case("direct encoding", release(lambda X, y: np.eye(_ANSWERS)[_DIRECT.privatise(int(y[-1]) + 1)]), 20_000),
]
