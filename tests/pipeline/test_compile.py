import importlib.util
import os
import sys
import time
from pathlib import Path

import pytest

from privsvm.pipeline.sources import compiled_code_key
from privsvm.solvers import EARLY_MODULES, JIT_MODULES

LOCK = "gradient.lock"

SCRIPT = Path(__file__).parents[2] / "stages" / "compile.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("compile", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Other processes find it by its name.
    sys.modules["compile"] = module
    yield module
    del sys.modules["compile"]


@pytest.fixture
def remove_older_caches(script):
    return script.remove_older_caches


def a_folder(path, *files):
    path.mkdir()
    for name in files:
        (path / name).touch()
    return path


def test_only_older_cache_folders_are_removed(tmp_path, remove_older_caches):
    cache = a_folder(tmp_path / ("0" * 16), LOCK)
    older = a_folder(tmp_path / "0123456789abcdef", LOCK, "warm")
    stays = [
        cache,
        a_folder(tmp_path / "my work", LOCK),
        a_folder(tmp_path / "fedcba9876543210", "notes.txt"),
        a_folder(tmp_path / "0123456789abcde", LOCK),
    ]
    remove_older_caches(cache)
    assert not older.exists()
    assert all(folder.is_dir() for folder in stays)


def test_beside_a_cache_folder_of_somebodys_choice_nothing_is_removed(tmp_path, remove_older_caches):
    cache = a_folder(tmp_path / "numba", LOCK)
    others = [a_folder(tmp_path / "home"), a_folder(tmp_path / "0123456789abcdef", LOCK)]
    remove_older_caches(cache)
    assert all(folder.is_dir() for folder in others)


@pytest.mark.parametrize(("arguments", "n_processes"), [([], 1), (["--everything"], 3)])
def test_all_cores_compile_into_the_folder_of_a_run(tmp_path, monkeypatch, capsys, script, arguments, n_processes):
    """Each process takes what no other one has; the rule `compile` then finds its output. The rest comes after that."""

    def compile_some(*modules, sparse=False, precise=False):
        folder = Path(os.environ["NUMBA_CACHE_DIR"])
        folder.mkdir(parents=True, exist_ok=True)
        assert (sparse, precise, set(modules)) in [(False, False, {*EARLY_MODULES}), (True, True, {*JIT_MODULES})]
        name = "rest" if sparse else "early"
        (folder / f"{os.getpid()}.{name}").touch()
        while len(list(folder.glob(f"*.{name}"))) < n_processes:
            time.sleep(0.01)
        return [f"{name} {os.getpid()}"]

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(script, "count_threads", lambda n_jobs: n_processes)
    monkeypatch.setattr(script, "compile_once", compile_some)
    monkeypatch.setattr(script, "die_with_parent", lambda: None)
    script.main(arguments)
    folder = tmp_path / ".cache/numba" / compiled_code_key()
    calls = sorted(path.name for path in folder.iterdir())
    assert calls.pop() == script.MARKER
    workers = {name: {call.partition(".")[0] for call in calls if call.endswith(name)} for name in ("early", "rest")}
    assert len(workers["early"]) == n_processes
    assert workers["rest"] == (workers["early"] if arguments else set())
    assert (not arguments) == (workers["early"] == {str(os.getpid())})
    printed = capsys.readouterr().out
    assert all(f"{name} {worker}" in printed for name, found in workers.items() for worker in found)
