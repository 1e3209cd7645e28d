"""Compiled code belongs to the present sources, and many processes compile once."""

import json
import os
import subprocess
import sys
from pathlib import Path

from privsvm.pipeline.sources import compiled_code_key
from privsvm.solvers import JIT_GROUPS

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_changed_callee_in_another_file_is_noticed(tmp_path):
    """Numba's own cache keeps the old code; a cache folder named after the sources does not."""
    package = tmp_path / "repository/lib"
    package.mkdir(parents=True)
    (package / "callee.py").write_text("from numba import njit\n@njit(cache=True)\ndef g(x):\n    return x + 1.0\n")
    (package / "caller.py").write_text(
        "from numba import njit\nfrom callee import g\n@njit(cache=True)\ndef f(x):\n    return 2.0 * g(x)\n"
    )

    def result(cache: Path) -> float:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", "from caller import f; print(f(1.0))"],
            cwd=package, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return float(done.stdout)

    fixed, keyed = tmp_path / "fixed", tmp_path / "keyed"
    assert result(fixed) == 4.0
    assert result(keyed / compiled_code_key(package.parent)) == 4.0
    (package / "callee.py").write_text("from numba import njit\n@njit(cache=True)\ndef g(x):\n    return x + 100.0\n")
    assert result(keyed / compiled_code_key(package.parent)) == 202.0
    # Where this fails, Numba has learnt to notice, and the keyed folders can go.
    assert result(fixed) == 4.0


COLD_START = """
import json, sys
from numba.core import caching
from numba.core.dispatcher import Dispatcher
from privsvm.solvers import JIT_GROUPS, JIT_MODULES, compile_once, warm_up
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

compiled = compile_once(*JIT_MODULES)
loaded = {}
for group in JIT_GROUPS:
    before = set(entries("cache_hits"))
    warm_up(group)
    loaded[group] = len(set(entries("cache_hits")) - before)
print(json.dumps([compiled, written, loaded, entries("cache_hits"), entries("cache_misses")]))
"""


def test_of_eight_processes_one_compiles(tmp_path):
    """All start at once on a cold cache: each group is compiled by one, and loaded by the others."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")}
    processes = [
        subprocess.Popen([sys.executable, "-c", COLD_START], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    answers = [json.loads(process.communicate()[0]) for process in processes]
    assert sorted(group for compiled, *_ in answers for group in compiled) == sorted(JIT_GROUPS)
    # Every file of the cache was written once, by one of them.
    files = [path.name for path in (tmp_path / "cold").rglob("*.nbc")]
    assert sorted(name for _, written, *_ in answers for name in written) == sorted(files)
    assert len(set(files)) == len(files)
    # Five groups, eight processes: some have compiled nothing, and loaded everything that Python calls.
    every = next(set(hits) for compiled, *_, hits, _ in answers if not compiled)
    compiled_by_any = {name for *_, misses in answers for name in misses}
    for compiled, written, loaded, hits, misses in answers:
        assert len(misses) == len(set(misses)) == len(written)
        assert len(hits) == len(set(hits))
        # Each function was loaded or compiled, never both, and none was left out.
        assert not set(hits) & set(misses)
        assert every <= set(hits) | set(misses)
        # Who compiles a function also loads what another group has compiled and it calls; compiled code contains that.
        own = set(hits) - every
        assert own <= compiled_by_any if compiled else not own
        assert bool(compiled) == bool(misses)
        for group in JIT_GROUPS:
            assert (loaded[group] > 0) == (group not in compiled)


def test_a_process_compiles_what_it_has_imported_and_sparse_rows_have_functions_of_their_own(tmp_path):
    code = """
import os
import privsvm.solvers.hinge
from privsvm.solvers import compile_once
print(*compile_once(), *sorted(name for name in os.listdir(os.environ["NUMBA_CACHE_DIR"]) if name.endswith(".lock")))
print(*compile_once("hinge", sparse=True), *compile_once("hinge", sparse=True), *compile_once("hinge"))
from privsvm.solvers import crammer_singer, hinge
print(*(len(function.signatures) for function in (crammer_singer._epochs_sparse, hinge._epochs_sparse)))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["linear_svm linear_svm.lock", "linear_svm", "1 1"]


def test_without_a_cache_folder_nothing_is_done(monkeypatch):
    from privsvm.solvers import compile_once

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compile_once("hinge") == []
