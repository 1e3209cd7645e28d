"""Downloads from a web server on this machine: cache, retries, hashes, mirrors, and messages."""

import hashlib
import json
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.processes import exit_codes, refused_by_stage, run_stage
from tests.refusals import refusal

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import read_npz, write_npz
from privsvm.numerics.rows.rows import is_sparse
from privsvm_bench.command import main
from privsvm_bench.datasets import download
from privsvm_bench.datasets.catalogue import DataFile, load_catalogue, resolve
from privsvm_bench.datasets.download import availability, download_raw, fetch_file
from privsvm_bench.datasets.readers import read_part

BODY = bytes(range(256)) * 2000
HASH = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """A cache of downloads for each test."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PRIVSVM_CACHE", str(folder))
    return folder / "downloads"


@pytest.fixture(autouse=True)
def one_retry(monkeypatch):
    monkeypatch.setattr(download, "RETRIES", 1)


def data_file(*urls: str, sha256: str | None = HASH, **more) -> DataFile:
    return DataFile("a.data", urls=urls, sha256=sha256, **more)


def leftovers(folder: Path, *allowed: str) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name not in allowed)


def fails(file: DataFile, target: Path) -> str:
    message = refusal(fetch_file, file, target, dataset="toy")
    assert not target.exists()
    return message


def test_plain_download(server, tmp_path):
    server.files["a"] = BODY
    target = tmp_path / "deep" / "a.data"
    assert fetch_file(data_file(server.url("a")), target) == server.url("a")
    assert target.read_bytes() == BODY
    assert leftovers(target.parent, "a.data") == []
    fetch_file(data_file(server.url("a")), target)
    assert len(server.requests) == 1, "a file that is there is not fetched again"
    fetch_file(data_file(server.url("a")), tmp_path / "second clone" / "a.data")
    assert (tmp_path / "second clone" / "a.data").read_bytes() == BODY
    assert len(server.requests) == 1, "the cache serves a second clone"


@pytest.mark.parametrize(("habit", "count"), [("cuts", 200_000), ("failures", 503)])
def test_retry(server, tmp_path, habit, count):
    server.files["a"] = BODY
    getattr(server, habit).append(count)
    fetch_file(data_file(server.url("a")), tmp_path / "a.data")
    assert (tmp_path / "a.data").read_bytes() == BODY
    assert len(server.requests) == 2


def test_damaged_cache(server, tmp_path, cache):
    server.files["a"] = BODY
    fetch_file(data_file(server.url("a")), tmp_path / "a.data")
    (cached,) = cache.glob("*/a.data")
    cached.write_bytes(BODY[:-1])
    (cached.parent / "tmp_of_a_killed_process").write_bytes(BODY[:5])
    fetch_file(data_file(server.url("a")), tmp_path / "b.data")
    assert (tmp_path / "b.data").read_bytes() == cached.read_bytes() == BODY
    assert leftovers(cached.parent) == ["a.data"]


def test_own_files_leave_no_copy_in_the_cache(server, tmp_path, cache):
    server.files["a.csv"] = b"1,a\n2,b\n"
    settings = {"url": server.url("a.csv"), "label": 1, "sha256": hashlib.sha256(server.files["a.csv"]).hexdigest()}
    download_raw("mine", "a.csv", tmp_path / "a.csv", settings)
    assert (tmp_path / "a.csv").read_bytes() == server.files["a.csv"]
    assert list(cache.glob("*/*")) == []


def test_file_without_a_hash(server, tmp_path, capsys):
    """Its hash is shown so that it can be pinned; it may change on the server, so it is downloaded each time."""
    for body in (b"old version", BODY):
        server.files["a"] = body
        fetch_file(data_file(server.url("a"), sha256=None), tmp_path / "a.data", dataset="toy")
        assert (tmp_path / "a.data").read_bytes() == body
    assert HASH in capsys.readouterr().err


def test_clones_at_once(server, tmp_path):
    """They share a cache; each has the file, which is downloaded once."""
    server.files["a"] = BODY
    targets = [tmp_path / str(number) / "a.data" for number in range(3)]
    assert exit_codes(fetch_file, [(data_file(server.url("a")), target) for target in targets], "spawn") == [0] * 3
    assert all(target.read_bytes() == BODY for target in targets)
    assert len(server.requests) == 1


def test_next_source(server, tmp_path):
    server.files |= {"bad": BODY[:-1] + b"x", "page": b"\n<!doctype html><p>moved", "empty": b"", "good": BODY}
    urls = [server.url(name) for name in ("none", "bad", "page", "empty", "good")]
    assert fetch_file(data_file(*urls), tmp_path / "a.data") == server.url("good")
    assert (tmp_path / "a.data").read_bytes() == BODY
    assert leftovers(tmp_path, "a.data") == []
    # Other bytes may be an accident of the network; a status of 404 is none.
    assert server.requests == ["/none", "/bad", "/bad", "/page", "/empty", "/good"]


def test_failure_names_everything(server, tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVSVM_MIRROR", str(tmp_path / "nowhere"))
    server.files |= {"bad": b"other", "page": b"<html>"}
    urls = [server.url(name) for name in ("none", "bad", "page")]
    message = fails(data_file(*urls), tmp_path / "a.data")
    causes = ["toy/a.data", "HTTP 404", "SHA-256 differs", "HTML page", "no such folder"]
    for words in (*causes, "PRIVSVM_MIRROR=<folder>", "data.mirror", *urls):
        assert words in message
    assert leftovers(tmp_path) == []


def test_no_network(tmp_path, monkeypatch):
    """It is not waited for."""
    monkeypatch.setattr(download, "RETRIES", 1000)
    message = fails(data_file("http://127.0.0.1:9/a", "http://no-such-host.invalid/a"), tmp_path / "a.data")
    assert message.count("no connection (ConnectionError; no network?)") == 2
    assert leftovers(tmp_path) == []


def test_packed_source_is_kept_unpacked(server, tmp_path):
    server.files["a.xz"] = lzma.compress(BODY)
    fetch_file(data_file(server.url("a.xz")), tmp_path / "a.data")
    assert (tmp_path / "a.data").read_bytes() == BODY
    server.files["cut.xz"] = lzma.compress(BODY)[:-9]
    assert "truncated" in fails(data_file(server.url("cut.xz"), sha256="0" * 64), tmp_path / "b.data")
    # A name that says it is packed stays packed.
    packed = DataFile("a.bz2", urls=(server.url("a.xz"),))
    fetch_file(packed, tmp_path / "a.bz2")
    assert (tmp_path / "a.bz2").read_bytes() == lzma.compress(BODY)


@pytest.mark.parametrize("mirrored", ["raw/toy/a.data.xz", "a.data.xz", "toy/a.data", "a.data"])
def test_mirror(tmp_path, mirrored, monkeypatch):
    folder = tmp_path / "mirror"
    (folder / mirrored).parent.mkdir(parents=True)
    (folder / mirrored).write_bytes(lzma.compress(BODY) if mirrored.endswith("xz") else BODY)
    file = data_file(mirror_path="raw/toy/a.data.xz")
    monkeypatch.setenv("PRIVSVM_MIRROR", str(folder))
    assert fetch_file(file, tmp_path / "a.data", dataset="toy") == str(folder / mirrored)
    assert (tmp_path / "a.data").read_bytes() == BODY


def test_mirror_with_wrong_bytes_is_passed_over(server, tmp_path, monkeypatch):
    folder = tmp_path / "mirror"
    monkeypatch.setenv("PRIVSVM_MIRROR", str(folder))
    folder.mkdir()
    (folder / "a.data").write_bytes(b"rotten")
    server.files["a"] = BODY
    assert fetch_file(data_file(server.url("a")), tmp_path / "a.data") == server.url("a")
    message = fails(data_file(), tmp_path / "b.data")
    assert "SHA-256 differs" in message
    assert "no public address" in message


def test_a_killed_download_leaves_nothing_beside_the_data(server, tmp_path):
    """Also not the copy that was just being put in place: the next attempt removes it."""
    server.files["a"] = BODY
    target = tmp_path / "a.data"
    (tmp_path / ".a.0123abcd.part.data").write_bytes(BODY[:1000])
    (tmp_path / ".b.0123abcd.part.data").write_bytes(b"of another file")
    fetch_file(data_file(server.url("a")), target)
    assert leftovers(tmp_path, "a.data") == [".b.0123abcd.part.data"]


def test_old_file_survives_a_failure(tmp_path):
    (tmp_path / "a.data").write_bytes(b"old")
    with pytest.raises(PrivSVMError):
        fetch_file(data_file("http://127.0.0.1:9/a"), tmp_path / "a.data")
    assert (tmp_path / "a.data").read_bytes() == b"old"


def test_own_data(tmp_path):
    (tmp_path / "mine.csv").write_bytes(b"1,a\n2,b\n")
    good = {"path": str(tmp_path / "mine.csv"), "label": 1, "header": False}
    target = tmp_path / "raw" / "mine.csv"
    download_raw("mine", "mine.csv", target, good)
    assert target.read_bytes() == b"1,a\n2,b\n"
    with pytest.raises(PrivSVMError, match=r"mine\.csv: other content.*`sha256` of dataset mine"):
        download_raw("mine", "mine.csv", tmp_path / "x", {**good, "sha256": "0" * 64})
    with pytest.raises(PrivSVMError, match=r"no file 'mine'; did you mean 'mine\.csv'"):
        download_raw("mine", "mine", tmp_path / "x", good)


@pytest.mark.parametrize("name", ["breast_cancer", "wine", "digits", "digit_eight"])
def test_bundled(name, tmp_path):
    (file,) = resolve(name).files
    first, second = tmp_path / "one" / file, tmp_path / "two" / file
    for target in (first, second):
        download_raw(name, file, target)
    assert first.read_bytes() == second.read_bytes()
    X, labels = read_part(resolve(name), "all", first.parent)
    part = resolve(name).parts["all"]
    assert X.shape == (part.n_rows, part.n_features)
    assert set(labels) == set(part.class_counts or ())
    arrays = read_npz(first)
    arrays["X"][0, 0] += 1e-9
    write_npz(first, arrays)
    with pytest.raises(PrivSVMError, match="values differ"):
        read_part(resolve(name), "all", first.parent)


def test_stage(tmp_path):
    target = tmp_path / "wine.npz"
    wine = "download.py", "--dataset", "wine", "--file", "wine.npz", "--output"
    assert run_stage(*wine, target, "--parameters", '{"settings":{}}').returncode == 0
    assert target.is_file()
    assert refused_by_stage("download.py", "--dataset", "wien", "--file", "wine.npz", "--output", target) == (
        "error: params.yaml: datasets.wien: unknown dataset 'wien'; did you mean 'wine'? "
        "(own data needs `path` or `url`)\n"
    )
    (tmp_path / "file").write_text("")
    assert "error: " in refused_by_stage(*wine, tmp_path / "file" / "wine.npz")


def test_list(capsys):
    assert main(["datasets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(load_catalogue())
    row = next(line for line in lines if line.startswith("wine: "))
    assert row.startswith("wine: 3 classes, all 178 x 13, bundled. Bundled with scikit-learn (load_wine). ")


def test_availability(tmp_path, monkeypatch):
    catalogue = load_catalogue()
    assert availability(catalogue["a1a"]) == "network"
    assert availability(catalogue["a5a"]) == "mirror only"
    assert availability(catalogue["gisette_scale"]) == "network, unverified"
    for file in catalogue["a1a"].files.values():
        (tmp_path / file.name).write_bytes(b"")
    monkeypatch.setenv("PRIVSVM_MIRROR", str(tmp_path))
    assert availability(catalogue["a1a"]) == "mirror"


def test_stage_from_the_mirror(mirror, tmp_path):
    file = resolve("a1a").files["a1a.t"]
    target = tmp_path / "a1a.t"
    done = run_stage("download.py", "--dataset", "a1a", "--file", "a1a.t", "--output", target)
    assert done.returncode == 0, done.stderr
    assert sha256_of_file(target) == file.sha256


CATALOGUE = load_catalogue()
# Tables that a package of the index ships are in no mirror; their notes name the script that unpacks them.
PACKAGED = [name for name, entry in CATALOGUE.items() if "bench/utility/packaged.py" in entry.note]
IN_MIRROR = [name for name, entry in CATALOGUE.items() if entry.verified and not entry.bundled and name not in PACKAGED]


@pytest.mark.parametrize("name", IN_MIRROR)
def test_entry_reads_as_the_manifest_says(mirror, tmp_path, name):
    records = [record for record in json.loads((mirror / "MANIFEST.json").read_text()) if record["name"] == name]
    assert records, f"{name} is in the catalogue but not in the manifest"
    # The reader compares with the catalogue, and this test with the manifest.
    entry = CATALOGUE[name]
    for file in entry.files.values():
        assert fetch_file(file, tmp_path / file.name, dataset=name).startswith(str(mirror))
    assert {record["role"] for record in records} == set(entry.parts)
    for record in records:
        X, labels = read_part(entry, record["role"], tmp_path)
        assert X.shape == (record["n_rows"], record["n_features"])
        assert X.dtype == np.float64
        label_map = record.get("label_map", {})
        expected = {str(label_map.get(label, label)): count for label, count in record["classes"].items()}
        assert dict(Counter(labels.tolist())) == expected
        values = X.data if is_sparse(X) else X
        assert int(np.isnan(values).sum()) == record["missing_values"]
        extremes = np.append(values, 0.0) if is_sparse(X) else values
        np.testing.assert_allclose((np.nanmin(extremes), np.nanmax(extremes)), record["value_range"], rtol=1e-4)
        if (bounds := entry.bounds) is not None:
            inside = (np.nan_to_num(values) >= bounds.lower) & (np.nan_to_num(values) <= bounds.upper)
            assert inside.all(), f"{name}: declared bounds do not hold"


def test_every_manifest_entry_is_covered(mirror):
    names = {record["name"] for record in json.loads((mirror / "MANIFEST.json").read_text())}
    assert names == set(IN_MIRROR)
