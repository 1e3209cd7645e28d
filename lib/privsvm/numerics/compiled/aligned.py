"""Memory that begins where hardware reads best."""

from __future__ import annotations

import numpy as np


def allocate_aligned(size: int, unit: int) -> np.ndarray:
    """Return fresh memory that begins at a multiple of a unit.

    The unit is in bytes, such as a line of the cache or a page. The memory has any content.
    """
    memory = np.empty(size + unit, dtype=np.uint8)
    start = -memory.ctypes.data % unit
    return memory[start : start + size]
