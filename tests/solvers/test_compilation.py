"""Compiled code belongs to the present sources, and many processes compile once."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests import cold_start

from privsvm import solvers
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


def function_of(name: str) -> str:
    """Module and function of a signature, or of a file of Numba's cache."""
    return re.split(r"[(-]", name.removeprefix("privsvm."))[0].rpartition("solvers.")[2].rpartition("numerics.")[2]


def test_of_eight_processes_one_compiles(tmp_path_factory):
    """All start at once on a cache that lacks a part of each group: one compiles it, and the others load it."""
    made = cold_start.compiled_by_eight(tmp_path_factory)
    names = ("before", "answers", "ninth")
    before, answers, (every, missed) = (json.loads((made / f"{name}.json").read_text()) for name in names)
    assert sorted(group for compiled, *_ in answers for group in compiled) == sorted(JIT_GROUPS)
    # Every file that the cache lacked was written once, by one of them.
    files = [path.name for path in (made / "cold").rglob("*.nbc")]
    assert sorted(name for _, written, *_ in answers for name in written) == sorted({*files} - {*before})
    assert len(set(files)) == len(files)
    # Nothing is left to compile.
    assert not missed
    compiled_by_any = {name for *_, misses in answers for name in misses}
    for compiled, written, loaded, hits, misses in answers:
        assert len(misses) == len(set(misses)) == len(written)
        assert len(hits) == len(set(hits))
        # Each function was loaded or compiled, never both, and none was left out.
        assert not set(hits) & set(misses)
        assert set(every) <= set(hits) | set(misses)
        # Who compiles a function also loads what was compiled before and it calls; compiled code contains that.
        own = set(hits) - set(every) - compiled_by_any
        assert {function_of(file) for file in before} >= {function_of(name) for name in own} if compiled else not own
        assert bool(compiled) == bool(misses)
        for group in JIT_GROUPS:
            assert (loaded[group] > 0) == (group not in compiled)


def test_a_process_compiles_what_it_has_imported_and_sparse_rows_have_functions_of_their_own(
    tmp_path, tmp_path_factory
):
    # Compiled already but for sparse rows; no group is marked as such.
    made = cold_start.compiled_by_eight(tmp_path_factory) / "cold"
    shutil.copytree(made, tmp_path / "cold", ignore=shutil.ignore_patterns(*cold_start.MARKS, "*_sparse*"))
    code = """
import os
import privsvm.solvers.hinge
from privsvm.solvers import compile_once
print(*compile_once(), *sorted(name for name in os.listdir(os.environ["NUMBA_CACHE_DIR"]) if name.endswith(".lock")))
print(*compile_once("hinge", sparse=True), *compile_once("hinge", sparse=True), *compile_once("hinge"))
from privsvm.solvers import crammer_singer, hinge
print(*(len(function.signatures) for function in (crammer_singer._epochs_sparse, hinge._epochs_sparse)))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold"), "NUMBA_OPT": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["linear_svm linear_svm.lock", "linear_svm", "1 1"]


def test_without_a_cache_folder_nothing_is_done(monkeypatch):
    from privsvm.solvers import compile_once

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compile_once("hinge") == []


def test_what_is_compiled_for_more_kinds_of_rows_is_compiled_for_fewer(tmp_path, monkeypatch):
    """Of the kinds that a group has functions for."""
    calls = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(solvers, "warm_up", lambda *arguments: calls.append(arguments))
    both, sparse = {"sparse": True, "precise": True}, {"sparse": True}
    assert solvers.compile_once("condense", "smo") == ["condense", "smo"]
    assert solvers.compile_once("condense", "smo", **sparse) == []
    assert solvers.compile_once("kernel_rows", "condense", "smo", **both) == ["kernel_svm", "condense"]
    assert calls == [
        ("condense", False, False),
        ("smo", False, False),
        *((g, True, True) for g in ("kernel_svm", "condense")),
    ]
    for kinds in ({}, sparse, {"precise": True}, both):
        assert solvers.compile_once("kernel_rows", "condense", "smo", **kinds) == []
    assert solvers.compile_once("crammer_singer") == ["linear_svm"]
    assert solvers.compile_once("crammer_singer", **sparse) == ["linear_svm"]
