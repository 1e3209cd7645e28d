"""Compiled code belongs to the present sources, and many processes compile once."""

import json
import os
import subprocess
import sys
import textwrap
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


def test_of_eight_processes_one_compiles(tmp_path):
    """All start at once on a cold cache: each group is compiled by one, and loaded by the others."""
    code = textwrap.dedent("""
        import importlib, json
        from privsvm.solvers import JIT_GROUPS, JIT_MODULES, compile_once, full_name, warm_up
        compiled = compile_once(*JIT_MODULES)
        found = {}
        for group, names in JIT_GROUPS.items():
            if group in compiled:
                continue
            warm_up(group)
            modules = [importlib.import_module(full_name(name)) for name in names]
            others = {full_name(name) for name in JIT_MODULES if name not in names}
            # A solver may keep its jit functions in a module of their own.
            own = {id(f): f for module in modules for f in vars(module).values()
                   if hasattr(getattr(f, "stats", None), "cache_hits")
                   and f.__module__.startswith(("privsvm.solvers", "privsvm.numerics")) and f.__module__ not in others}
            stats = [f.stats for f in own.values()]
            counts = [[sum(s.cache_hits.values()), sum(s.cache_misses.values())] for s in stats]
            found[group] = [sum(column) for column in zip(*counts)]
        print(json.dumps([compiled, found]))
    """)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    answers = [json.loads(process.communicate(timeout=1500)[0]) for process in processes]
    assert sorted(group for compiled, _ in answers for group in compiled) == sorted(JIT_GROUPS)
    for compiled, found in answers:
        assert set(found) == set(JIT_GROUPS) - set(compiled)
        # Steps of compiled functions have no files of their own.
        assert sum(hits for hits, _ in found.values()) > 15 or len(compiled) > 1
        assert all(hits > 0 and misses == 0 for hits, misses in found.values())


def test_a_process_compiles_what_it_has_imported(tmp_path):
    code = """
import privsvm.solvers.hinge, os
from privsvm.solvers import compile_once
print(*compile_once(), *sorted(name for name in os.listdir(os.environ["NUMBA_CACHE_DIR"]) if name.endswith(".lock")))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["linear_svm", "linear_svm.lock"]


def test_sparse_rows_have_functions_of_their_own(tmp_path):
    code = """
import os
from privsvm.solvers import compile_once
print(*compile_once("hinge", sparse=True), *compile_once("hinge", sparse=True), *compile_once("hinge"))
from privsvm.solvers import crammer_singer, hinge
print(*(len(function.signatures) for function in (crammer_singer._epochs_sparse, hinge._epochs_sparse)))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["linear_svm", "linear_svm", "1", "1"]


def test_without_a_cache_folder_nothing_is_done(monkeypatch):
    from privsvm.solvers import compile_once

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compile_once("hinge") == []
