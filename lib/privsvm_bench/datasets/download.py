"""Get raw files: from a mirror folder, the cache of downloads or the network, with their SHA-256 checked."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError, nearest_name, printable, without_passwords
from privsvm.files import atomic_path, remove_leftovers, write_npz
from privsvm.tables.labels import normalise_label
from privsvm_bench.datasets.catalogue import (
    PACKING_SUFFIXES,
    DataFile,
    DatasetEntry,
    resolve,
)
from privsvm_bench.datasets.packing import is_html, is_packed, unpack

if TYPE_CHECKING:
    import requests

# Seconds to connect (several addresses of one host are tried one after the other), and without a byte.
CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
# Further attempts at a source that broke off; pooch waits one second more before each.
RETRIES = 2
_CHUNK = 1 << 16


class _SourceError(Exception):
    """A source that failed for good; the next one is tried."""


class _LimitedFile(io.BufferedWriter):
    """A file that refuses to grow beyond a limit: a server may send without end."""

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(io.FileIO(path, "w"))
        self.limit = limit

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.limit:
            raise _SourceError(f"more than {self.limit} bytes; declare `max_bytes` if that is right")
        return super().write(data)


def _find_in_mirror(file: DataFile, mirror: str, dataset: str | None) -> Path | None:
    """Find a file in a mirror: at its mirror path, by its bare name, or as ``<dataset>/<name>``; no hash is checked."""
    names = [] if file.mirror_path is None else [file.mirror_path, Path(file.mirror_path).name]
    names += [file.name] if dataset is None else [f"{dataset}/{file.name}", file.name]
    paths = (Path(mirror).expanduser() / name for name in names if mirror)
    return next((path for path in paths if path.is_file()), None)


def _check_content(file: DataFile, path: Path) -> None:
    """Refuse files that plainly hold no data, and unpack a packed copy in place, so that one hash fits every source."""
    with open(path, "rb") as handle:
        head = handle.read(512)
    if not head:
        raise _SourceError("empty file")
    if is_html(head):
        raise _SourceError("an HTML page instead of data")
    # A file named as a packed one stays packed.
    if is_packed(head) and file.path is None and not file.name.endswith(PACKING_SUFFIXES):
        try:
            path.write_bytes(unpack(path.read_bytes(), file.name, file.max_bytes))
        except PrivSVMError as error:
            raise _SourceError(str(error).split(";")[0].split(": ", 1)[-1]) from None


def _copy_local(file: DataFile, source: Path, target: Path) -> None:
    """Copy from a mirror, or own data from their path."""
    shutil.copyfile(source, target)
    _check_content(file, target)
    if file.sha256 is not None and sha256_of_file(target) != file.sha256:
        raise _SourceError("other content than expected (SHA-256 differs)")


def _explain(error: requests.RequestException) -> tuple[str, bool]:
    """Return why a request failed, and whether another attempt may help."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        status = error.response.status_code
        return f"HTTP {status}", status == 429 or status >= 500
    if isinstance(error, requests.ConnectionError):
        return f"no connection ({type(error).__name__}; no network?)", False
    return "broken off" if isinstance(error, requests.exceptions.ChunkedEncodingError) else "timed out", True


def _download(file: DataFile, url: str, target: Path) -> None:
    """Download an address into the cache, unless the file is there already, and copy it from there.

    Processes that share the cache wait for each other, so each file is downloaded once. A file without a hash may
    change on its server, and the user's files are private: neither stays in the cache.
    """
    import filelock
    import pooch
    import requests

    # pooch announces every file.
    pooch.get_logger().setLevel(logging.WARNING)
    transfer = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(),
        chunk_size=_CHUNK,
        timeout=(CONNECT_SECONDS, READ_SECONDS),
        # Else `requests` would unpack files that the server stores packed.
        headers={"Accept-Encoding": "identity"},
    )

    def downloader(url: str, output: str, _: Any) -> None:
        try:
            with _LimitedFile(output, file.max_bytes) as stream:
                transfer(url, stream, None)
        except requests.RequestException as error:
            reason, again = _explain(error)
            if again:
                raise
            raise _SourceError(reason) from None
        _check_content(file, Path(output))

    key = file.sha256 or hashlib.sha256(url.encode()).hexdigest()
    folder = Path(os.environ.get("PRIVSVM_CACHE", ".cache")) / "downloads" / key[:32]
    folder.mkdir(parents=True, exist_ok=True)
    kept = file.sha256 is not None and not file.user_supplied
    registry = {file.name: None if file.sha256 is None else f"sha256:{file.sha256}"}
    store = pooch.create(folder, "", registry=registry, urls={file.name: url}, retry_if_failed=RETRIES)
    with filelock.FileLock(f"{folder}.lock"):
        for path in folder.iterdir():
            # A killed process leaves files of other names.
            if path.name != file.name or not kept:
                path.unlink()
        try:
            cached = store.fetch(file.name, downloader=downloader)
            shutil.copyfile(cached, target)
            if not kept:
                os.unlink(cached)
        except requests.RequestException as error:
            raise _SourceError(_explain(error)[0]) from None
        except ValueError as error:
            differs = "other content than expected (SHA-256 differs)"
            raise _SourceError(differs if "hash" in str(error) else str(error).split("\n")[0]) from None


def fetch_file(file: DataFile, target: str | os.PathLike[str], dataset: str | None = None) -> str:
    """Get one raw file from the mirror or its sources, in this order, and return its source.

    Nothing is fetched if `target` has the right hash. The environment variable ``PRIVSVM_MIRROR`` names the mirror.
    Files are unpacked on arrival, so their bytes do not depend on the source. Raises PrivSVMError if all sources fail;
    the message names the file, the reason of each source, and how to set a mirror.
    """
    target = Path(target)
    remove_leftovers(target)
    if file.sha256 is not None and target.is_file() and sha256_of_file(target) == file.sha256:
        return str(target)
    label = file.name if dataset is None else f"{dataset}/{file.name}"
    tried: list[str] = []
    sources: list[Path | str] = list(file.urls)
    folder = os.environ.get("PRIVSVM_MIRROR", "")
    with atomic_path(target) as temporary:
        if file.path is not None:
            try:
                _copy_local(file, Path(file.path), temporary)
            except _SourceError as error:
                raise PrivSVMError(f"{file.path}: {error}; correct `path` or `sha256` of dataset {dataset}") from None
            except FileNotFoundError:
                raise PrivSVMError(f"{file.path}: no such file; correct `path` of dataset {dataset}") from None
            return file.path
        if (copy := _find_in_mirror(file, folder, dataset)) is not None:
            sources.insert(0, copy)
        elif folder:
            what = "not in it" if Path(folder).expanduser().is_dir() else "no such folder"
            tried.append(f"mirror {folder} ({what})")
        for source in sources:
            try:
                if isinstance(source, Path):
                    _copy_local(file, source, temporary)
                else:
                    _download(file, source, temporary)
            except _SourceError as error:
                tried.append(f"{without_passwords(str(source))} ({error})")
                continue
            if file.sha256 is None:
                print(f"{printable(label)}: not verified, its SHA-256 is {sha256_of_file(temporary)}", file=sys.stderr)
            return str(source)
        if not file.urls:
            tried.append("no public address serves exactly this file")
        raise PrivSVMError(
            f"{label}: could not be obtained; tried {', '.join(tried)}; "
            "point at a folder that has it: PRIVSVM_MIRROR=<folder> or `data.mirror:` in params.yaml"
        )


def _export_bundled(entry: DatasetEntry, target: Path) -> None:
    """Write a set bundled with scikit-learn as `.npz`."""
    import numpy as np
    from sklearn import datasets

    from privsvm_bench.datasets.readers import content_hash

    bunch = getattr(datasets, str(entry.bundled))()
    names = np.array([normalise_label(name) for name in bunch.target_names], dtype=np.str_)
    X, y = np.ascontiguousarray(bunch.data, dtype=np.float64), names[bunch.target]
    (file,) = entry.files.values()
    if file.content_sha256 != content_hash(X, y):
        raise PrivSVMError(
            f"{entry.name}: the set bundled with this scikit-learn differs from the catalogue's; "
            "install the locked version"
        )
    write_npz(target, {"X": X, "y": y})


def download_raw(
    name: str, file_name: str, target: str | os.PathLike[str], settings: Mapping[str, Any] | None = None
) -> str:
    """Get one raw file of a dataset from any of its sources.

    Raises PrivSVMError if the dataset has no such file, or all sources fail.
    """
    entry = resolve(name, settings)
    if file_name not in entry.files:
        raise PrivSVMError(f"dataset {name}: no file {file_name!r}; {nearest_name(file_name, entry.files)}")
    if entry.bundled is not None:
        _export_bundled(entry, Path(target))
        return f"scikit-learn ({entry.bundled})"
    print(printable(f"{name}: {entry.source} {entry.licence_words}"), file=sys.stderr)
    return fetch_file(entry.files[file_name], target, name)


def availability(entry: DatasetEntry) -> str:
    """Return ``bundled``, ``mirror``, ``network``, ``network, unverified`` or ``mirror only``."""
    if entry.bundled is not None:
        return "bundled"
    folder = os.environ.get("PRIVSVM_MIRROR", "")
    if all(_find_in_mirror(file, folder, entry.name) is not None for file in entry.files.values()):
        return "mirror"
    if not all(file.urls for file in entry.files.values()):
        return "mirror only"
    return "network" if entry.verified else "network, unverified"
