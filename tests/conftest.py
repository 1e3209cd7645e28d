"""Settings of all tests: pinned arithmetic, a Numba cache keyed by the sources, no telemetry."""

import importlib
import os
import re
import subprocess
import sys

import hypothesis
import pytest
import xdist

from privsvm.arithmetic import pin_arithmetic
from privsvm.errors import PrivSVMError
from privsvm.registry import estimator_class
from privsvm.warm_up import cache_key
from tests.scripts import REPOSITORY
from tests.waits import PATIENCE

# Before NumPy and Numba are imported. Small matrix products are many times slower on two threads than on one.
pin_arithmetic()
os.environ["NUMBA_CACHE_DIR"] = str(REPOSITORY / ".cache/numba" / cache_key())
os.environ["PRIVSVM_CACHE"] = str(REPOSITORY / ".cache")
os.environ["DVC_NO_ANALYTICS"] = "true"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"
# A server on a slow machine answers late.
os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] = str(PATIENCE)

# The same examples in every run. `pytest --hypothesis-profile=default` draws new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def ledger_of_the_tests(tmp_path_factory):
    """Leave the ledger and the inspections of whoever runs the tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRIVSVM_LEDGER", str(tmp_path_factory.mktemp("home") / "ledger.jsonl"))
        yield


@pytest.fixture(scope="module")
def utility():
    """Load modules of bench/utility, which is no package."""
    folder = REPOSITORY / "bench" / "utility"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        before = set(sys.modules)
        yield importlib.import_module
        for name in set(sys.modules) - before:
            if (folder / f"{name}.py").exists():
                del sys.modules[name]


def pytest_addoption(parser):
    parser.addoption("--method", metavar="NAME", help="run the tests of one method")


def pytest_collection_modifyitems(config, items):
    """With --method, keep the method's own file, and the cases with its name or its class."""
    if (method := config.getoption("method")) is None:
        return
    try:
        names = rf"\b({method}|{estimator_class(method).__name__})\b|/test_{method}\.py"
    except PrivSVMError as error:
        raise pytest.UsageError(f"--method: {error}") from None
    others = [item for item in items if not re.search(names, item.nodeid)]
    items[:] = [item for item in items if re.search(names, item.nodeid)]
    config.hook.pytest_deselected(items=others)


def pytest_sessionstart(session):
    """Compile once before the workers start."""
    if xdist.is_xdist_controller(session):
        subprocess.run([sys.executable, "-m", "privsvm.warm_up"], check=True)


def pytest_xdist_auto_num_workers(config):
    """One worker more than processors: tests of the workflow wait for locks and servers."""
    return len(os.sched_getaffinity(0)) + 1
