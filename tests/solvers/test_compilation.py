"""Compiled code belongs to the present sources, and many processes compile once."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from privsvm.pipeline.sources import compiled_code_key

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
    """All start at once on a cold cache: one compiles, the others load what it left, for every module."""
    code = textwrap.dedent("""
        import importlib
        from privsvm.solvers import JIT_MODULES, compile_once, warm_up
        compiled = compile_once()
        if not compiled:
            warm_up()
        hits, misses = 0, 0
        for name in JIT_MODULES:
            module = importlib.import_module(f"privsvm.solvers.{name}")
            for function in vars(module).values():
                stats = getattr(function, "stats", None)
                if hasattr(stats, "cache_hits"):
                    hits += sum(stats.cache_hits.values())
                    misses += sum(stats.cache_misses.values())
        print(int(compiled), hits, misses)
    """)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    answers = [[int(word) for word in process.communicate(timeout=500)[0].split()] for process in processes]
    assert sorted(compiled for compiled, _, _ in answers) == [0] * 7 + [1]
    for compiled, hits, misses in answers:
        if not compiled:
            assert hits > 20
            assert misses == 0


def test_without_a_cache_folder_nothing_is_done(monkeypatch):
    from privsvm.solvers import compile_once

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compile_once() is False
