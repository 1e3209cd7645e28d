"""Patient waits for servers, pages and processes: a condition ends them early, and no clock is read."""

import time
from collections.abc import Callable
from typing import Any

# In seconds, long because the machine may be slow and busy.
PATIENCE = 1800
_PAUSE = 0.05


def wait_until(condition: Callable[[], Any], words: Callable[[], str] = str, pause: float = _PAUSE) -> Any:
    """Poll a condition until it is true, and return its value; after thousands of polls raise AssertionError."""
    for _ in range(int(PATIENCE / pause)):
        if value := condition():
            return value
        time.sleep(pause)
    raise AssertionError(f"this did not happen, however long one waited: {words()}")
