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

import pytest  # noqa: E402 - the lines above must come first
from hypothesis import settings  # noqa: E402

from privsvm.solvers import JIT_MODULES, compile_once  # noqa: E402
from tests.cold_start import fill_cache  # noqa: E402

# The same examples in every run: a test that fails fails again. `pytest --hypothesis-profile=default` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")


# Seconds of the files that take long, so that two workers get half of them each and neither ends with a long test.
LONG = {
    "workflow/test_pipeline.py": 130,
    "workflow/test_two_graphs_agree.py": 110,
    "solvers/test_compilation.py": 20,
    "workflow/test_kills.py": 85,
    "workflow/test_protocol.py": 70,
    "workflow/test_no_word_reaches_a_shell.py": 60,
    "workflow/test_own_methods.py": 40,
    "workflow/test_bad_input.py": 30,
    "reproduce/test_snakefile.py": 30,
    "tracking/test_mlflow_log.py": 30,
    "workflow/test_scale.py": 12,
}


def pytest_collection_modifyitems(items):
    """Each worker begins with one half of the list, and takes from the other's when it has done its own."""
    files = {item: item.nodeid.partition("::")[0].removeprefix("tests/") for item in items}
    halves, seconds = ([], []), [0, 0]
    for file, cost in LONG.items():
        lighter = seconds.index(min(seconds))
        halves[lighter].extend(item for item in items if files[item] == file)
        seconds[lighter] += cost
    quick = [item for item in items if files[item] not in LONG]
    # The second one does others first, while the first one makes the working copy that most of the long ones need.
    head = len(quick) // 10
    rest = max(len(items) // 2 - len(halves[0]), 0)
    items[:] = [*halves[0], *quick[head : head + rest], *quick[:head], *halves[1], *quick[head + rest :]]


@pytest.fixture(scope="session", autouse=True)
def compiled_by_all_workers(tmp_path_factory):
    """On a cold cache the first worker has all compiled; where that cannot be used, each worker compiles a part."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        fill_cache(tmp_path_factory)
        compile_once(*JIT_MODULES)
