"""Shared by all tests: one thread for each library, a Numba cache that notices changed sources, no telemetry."""

import os
from pathlib import Path

from privsvm.pipeline.stage import pin_threads

# Small matrix products on two threads were measured many times slower than on one.
pin_threads()

from privsvm.pipeline.sources import compiled_code_key  # noqa: E402 - must run before anything imports numba

REPOSITORY = Path(__file__).resolve().parents[1]

os.environ["NUMBA_CACHE_DIR"] = str(REPOSITORY / ".cache" / "numba" / compiled_code_key())
os.environ["PRIVSVM_CACHE"] = str(REPOSITORY / ".cache")
os.environ["DVC_NO_ANALYTICS"] = "true"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"

from hypothesis import settings  # noqa: E402 - the lines above must come first

# The same examples in every run: a test that fails fails again. `pytest --hypothesis-profile=default` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items):
    """Long tests early, half of them for each of two workers, so that neither is left with one at the end."""
    long = [item for item in items if item.get_closest_marker("workflow")]
    quick = [item for item in items if not item.get_closest_marker("workflow")]
    # Each worker begins with one half of the list. The second one does others first, while the first one makes the
    # working copy that most of the long ones need.
    half = max(len(items) // 2 - (len(long) + 1) // 2, 0)
    items[:] = [*long[::2], *quick[: half + len(quick) // 10], *long[1::2], *quick[half + len(quick) // 10 :]]
