"""Eight processes that compile the library at the same time, once for all tests.

The whole library takes a minute and a half of processor time to compile. What the eight have compiled is therefore what
the other tests run, where nothing was compiled before. Where all was, as in an environment that `make` has just
prepared, the eight find a copy of it that lacks one function of each group, and compile those.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from privsvm.solvers import JIT_GROUPS, MARKER
from tests.once import made_once

# The eight are copies of a process that has imported Numba and made it ready, which takes each of them two seconds.
_PROCESSES = """
import gc, json, os, sys, traceback
import filelock, numba, scipy.optimize, scipy.sparse
from numba.core import caching
from numba.core.dispatcher import Dispatcher
numba.njit(lambda number: number + 1)(1)
# As stages/compile.py does: most of what a compiler makes lives on. And copies share what they do not look through.
gc.set_threshold(100_000, 50, 1000)
gc.freeze()
written = []
save = caching.IndexDataCacheFile._save_data
def note(self, name, data):
    written.append(name)
    save(self, name, data)
caching.IndexDataCacheFile._save_data = note

def entries(kind):
    # Names and types of all compiled functions that were found in the cache, or not.
    packages = ("privsvm.solvers.", "privsvm.numerics.")
    modules = [module for name, module in sys.modules.items() if name.startswith(packages)]
    functions = {id(f): f for module in modules for f in vars(module).values() if isinstance(f, Dispatcher)}.values()
    # Steps of compiled functions have no files of their own.
    return [f"{f.py_func.__module__}.{f.py_func.__qualname__}{signature}"
            for f in functions if f.stats.cache_path for signature in getattr(f.stats, kind)]

def leave_out(groups):
    # Of each group that is compiled the function that takes the shortest time.
    from privsvm.solvers import warm_up
    found = []
    load = caching.IndexDataCacheFile._load_data
    def note(self, name):
        found.append((os.path.getsize(self._data_path(name)), self._data_path(name), self._index_path))
        return load(self, name)
    caching.IndexDataCacheFile._load_data = note
    for group in groups:
        found.clear()
        warm_up(group)
        for path in min(found)[1:]:
            os.remove(path)

def work(answer):
    from privsvm.solvers import JIT_GROUPS, JIT_MODULES, compile_once, warm_up
    compiled = compile_once(*JIT_MODULES)
    loaded = {}
    for group in JIT_GROUPS:
        before = set(entries("cache_hits"))
        warm_up(group)
        loaded[group] = len(set(entries("cache_hits")) - before)
    with open(answer, "w") as file:
        json.dump([compiled, written, loaded, entries("cache_hits"), entries("cache_misses")], file)

def load_all(answer):
    # What Python calls: all that a process loads for which others have compiled.
    from privsvm.solvers import JIT_GROUPS, warm_up
    for group in JIT_GROUPS:
        warm_up(group)
    with open(answer, "w") as file:
        json.dump([entries("cache_hits"), entries("cache_misses")], file)

def start(function, *arguments):
    process = os.fork()
    if not process:
        code = 1
        try:
            function(*arguments)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return process

assert not any(name.startswith("privsvm") for name in sys.modules)
groups, files, ninth, *answers = sys.argv[1:]
if os.waitpid(start(leave_out, groups.split()), 0)[1]:
    sys.exit(1)
with open(files, "w") as file:
    json.dump([name for *_, names in os.walk(os.environ["NUMBA_CACHE_DIR"]) for name in names], file)
processes = [start(work, answer) for answer in answers]
failed = any([os.waitpid(process, 0)[1] for process in processes])
sys.exit(failed or os.waitpid(start(load_all, ninth), 0)[1] != 0)
"""

# Of a cache folder: what says that something is compiled, or is still being written.
MARKS = ("*.lock", "*.tmp.*", "*.sparse", "*.precise", MARKER, *JIT_GROUPS)


def filled_groups() -> list[str]:
    """Groups that somebody has compiled into the cache of all tests."""
    cache = Path(os.environ["NUMBA_CACHE_DIR"])
    return [group for group in JIT_GROUPS if (cache / group).exists() or (cache / f"{group}.sparse").exists()]


def _compile(folder: Path) -> None:
    folder.mkdir()
    if groups := filled_groups():
        shutil.copytree(os.environ["NUMBA_CACHE_DIR"], folder / "cold", ignore=shutil.ignore_patterns(*MARKS))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cold")}
    answers = [folder / f"answer{number}.json" for number in range(8)]
    others = [folder / "before.json", folder / "ninth.json"]
    arguments = [" ".join(groups), *map(str, [*others, *answers])]
    subprocess.run([sys.executable, "-c", _PROCESSES, *arguments], env=environment, check=True)
    (folder / "answers.json").write_text(f"[{','.join(answer.read_text() for answer in answers)}]")


def compiled_by_eight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the cache ``cold`` that eight processes filled, and in JSON what it held before, what they
    did, and what a ninth process loaded."""
    return made_once(tmp_path_factory, "compiled_by_eight", _compile)


def _fill(cache: Path, cold: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as locks:
        try:
            for group in JIT_GROUPS:
                locks.enter_context(filelock.FileLock(cache / f"{group}.lock").acquire(timeout=0))
        except filelock.Timeout:
            return
        markers = [cache / group for group in JIT_GROUPS]
        if not any(marker.exists() for marker in markers):
            shutil.copytree(cold, cache, ignore=shutil.ignore_patterns(*MARKS), dirs_exist_ok=True)
            for marker in markers:
                marker.touch()


def fill_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Put what they compiled into ``NUMBA_CACHE_DIR`` if nothing is there yet, and nobody else compiles into it.

    The first of all workers does so, while the others wait. Should the copy be of no use, Numba compiles once more,
    which tests only take longer for.
    """
    if not filled_groups():
        cold = compiled_by_eight(tmp_path_factory) / "cold"
        made_once(tmp_path_factory, "cache_filled", lambda _: _fill(Path(os.environ["NUMBA_CACHE_DIR"]), cold))
