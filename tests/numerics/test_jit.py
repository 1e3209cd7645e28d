"""Damaged files of compiled functions are compiled again."""

import os

import numba
import numpy as np
import pytest

from privsvm.numerics.jit import CheckedCacheFile, jit

STAMP = (1.0, 2)


def add_one(values):
    return values + 1.0


@pytest.fixture
def cache(tmp_path):
    file = CheckedCacheFile(str(tmp_path), "base", STAMP)
    file.save("key", ("machine code", 3))
    return file


def damages(content):
    yield from (b"", content[:1], content[:-1], content[: len(content) // 2], content + b"x", b"\0" * len(content))
    for place in range(0, len(content), 5):
        yield content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


@pytest.mark.parametrize("name", ["base.nbi", "base.1.nbc"])
def test_every_damage_is_noticed(cache, tmp_path, name):
    path = tmp_path / name
    whole = path.read_bytes()
    assert cache.load("key") == ("machine code", 3)
    for content in damages(whole):
        path.write_bytes(content)
        assert cache.load("key") is None
    cache.save("key", ("machine code", 3))
    assert cache.load("key") == ("machine code", 3)
    assert sorted(os.listdir(tmp_path)) == ["base.1.nbc", "base.nbi"]


@pytest.mark.parametrize("name", ["base.nbi", "base.1.nbc"])
def test_a_link_to_itself_is_replaced(cache, tmp_path, name):
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(name)
    assert cache.load("key") is None
    cache.save("key", ("machine code", 3))
    assert cache.load("key") == ("machine code", 3)
    assert not (tmp_path / name).is_symlink()


def test_a_function_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    values = np.arange(3.0)

    def hits():
        function = jit()(add_one)
        np.testing.assert_array_equal(function(values), values + 1.0)
        return sum(function.stats.cache_hits.values())

    assert hits() == 0
    assert hits() == 1
    for path in tmp_path.rglob("*.nb?"):
        path.write_bytes(path.read_bytes()[:-7])
    assert hits() == 0
    assert hits() == 1
