import importlib.util
from pathlib import Path

import pytest

LOCK = "gradient.lock"

SCRIPT = Path(__file__).parents[2] / "stages" / "compile.py"


@pytest.fixture(scope="module")
def remove_older_caches():
    spec = importlib.util.spec_from_file_location("compile", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.remove_older_caches


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
