"""Shared by all tests: one thread for each library, a Numba cache that notices changed sources, no telemetry."""

import gc
import os
import re
from pathlib import Path

from privsvm.pipeline.stage import pin_threads

# What is collected lives to the end: with Python's own thresholds, to look through it again and again takes a sixth of
# all processor time. What is new is looked at while it is in the cache.
gc.set_threshold(1_000, 5_000, 1_000)

# Small matrix products on two threads were measured many times slower than on one.
pin_threads()

from privsvm.pipeline.sources import compiled_code_key  # noqa: E402 - must run before anything imports numba

REPOSITORY = Path(__file__).resolve().parents[1]

os.environ["NUMBA_CACHE_DIR"] = str(REPOSITORY / ".cache" / "numba" / compiled_code_key())
os.environ["PRIVSVM_CACHE"] = str(REPOSITORY / ".cache")
os.environ["DVC_NO_ANALYTICS"] = "true"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"

# Folder of the tests' files, and the bytes that must be free in it and in memory.
IN_MEMORY, ROOM = Path("/dev/shm"), 8 * 2**30
# Bytes of a worker and of what its tests start.
WORKER = 2 * 2**30


def available_memory() -> int | None:
    """Bytes that programs can have, where the system says so."""
    meminfo = Path("/proc/meminfo")
    found = meminfo.exists() and re.search(r"^MemAvailable: *(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def has_room(folder: Path) -> bool:
    """Whether a folder that is kept in memory can take the files of all tests, programs among them."""
    available = available_memory()
    if available is None or not os.access(folder, os.W_OK | os.X_OK):
        return False
    state = os.statvfs(folder)
    return min(state.f_bavail * state.f_frsize, available) >= ROOM and not state.f_flag & os.ST_NOEXEC


def pytest_xdist_auto_num_workers():
    """As many workers as processors, where there is memory for so many; one more was measured to take longer."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    from privsvm.numerics.threads import count_threads

    workers, available = count_threads(-1), available_memory()
    return workers if available is None else max(1, min(workers, available // WORKER))


# Most files of tests are written, synced and removed within a second.
if has_room(IN_MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

from hypothesis import settings  # noqa: E402 - the lines above must come first

# The same examples in every run: a test that fails fails again. `pytest --hypothesis-profile=default` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")


# Seconds of the files that take long, so that each worker gets its share of them first, and none ends with a long test.
LONG = {
    "workflow/test_two_graphs_agree.py": 85,
    "workflow/test_pipeline.py": 75,
    "workflow/test_kills.py": 65,
    "workflow/test_commands_of_pages.py": 60,
    "workflow/test_push.py": 55,
    "solvers/test_compilation.py": 15,
    "privacy/test_releases.py": 45,
    "tracking/test_mlflow_log.py": 40,
    "workflow/test_no_word_reaches_a_shell.py": 40,
    "reproduce/test_dpwss.py": 30,
    "auditing/test_audits_of_methods.py": 30,
    "solvers/test_condense.py": 30,
    "base/test_rows_by_workers.py": 25,
    "tracking/test_ui_browser.py": 25,
    "numerics/test_rounded_normals.py": 23,
    "privacy/test_replay.py": 20,
    "privacy/test_sampled_gaussian.py": 20,
    "methods/test_contract.py": 20,
    "reproduce/test_snakefile.py": 20,
    "workflow/test_own_methods.py": 20,
    "reporting/test_report_browser.py": 20,
    "workflow/test_release.py": 20,
    "workflow/test_bad_input.py": 17,
    "solvers/test_block_smo.py": 16,
    "pipeline/test_start.py": 16,
    "auditing/test_plans.py": 16,
    "mutants/test_mutants.py": 12,
    "workflow/test_scale.py": 10,
    "pipeline/test_sources.py": 10,
}


def pytest_configure(config):
    """Each worker reads the files of all tests from another place on, so that on a cold start each rewrites a part.

    To rewrite their assertions takes half of what it takes to collect the tests; the others find what one has written.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or [Path(name).resolve() for name in config.args] != [REPOSITORY / "tests"]:
        return
    files = sorted((REPOSITORY / "tests").rglob("test_*.py"))
    number, n_workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    first, whole, before = 0, sum(file.stat().st_size for file in files), 0
    while before < whole * number / n_workers:
        before += files[first].stat().st_size
        first += 1
    config.args[:] = map(str, [*files[first:], *files[:first]])


def pytest_collection_modifyitems(config, items):
    """Each worker begins with its part of the list, and takes from others' when it has done its own."""
    # The same list for all workers, wherever they began to read.
    items.sort(key=lambda item: item.nodeid.partition("::")[0])
    n_workers = getattr(config, "workerinput", {}).get("workercount", 1)
    files = {item: item.nodeid.partition("::")[0].removeprefix("tests/") for item in items}
    parts, seconds = [[] for _ in range(n_workers)], [0] * n_workers
    for file, cost in LONG.items():
        lightest = seconds.index(min(seconds))
        parts[lightest].extend(item for item in items if files[item] == file)
        seconds[lightest] += cost
    quick = [item for item in items if files[item] not in LONG]
    for number, part in enumerate(parts):
        size = len(items) * (number + 1) // n_workers - len(items) * number // n_workers
        count = max(size - len(part), 0) if number < n_workers - 1 else len(quick)
        # All but the first two do others first, while those compile and make the working copy that most of them need.
        head = count // 10 if number > 1 else 0
        part[:], quick = [*quick[:head], *part, *quick[head:count]], quick[count:]
    items[:] = [item for part in parts for item in part]


def pytest_collection_finish():
    """Nor does the garbage collector look at packages and tests again."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart(session):
    """On a cold cache the first worker has all compiled; where that cannot be used, each worker compiles a part.

    Before the tests are collected: which cases there are, some modules find out by fitting estimators.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        from privsvm.solvers import JIT_MODULES, compile_once
        from tests.cold_start import fill_cache

        fill_cache(session.config._tmp_path_factory)
        # Functions for sparse rows are left to them, so that no two compile the same.
        compile_once(*JIT_MODULES, sparse=True)
