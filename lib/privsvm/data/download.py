"""Download raw files: from the mirror or the network, resumed after an interruption, with their hashes checked."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from privsvm.data.catalogue import (
    PACKING_SUFFIXES,
    DataFile,
    DatasetEntry,
    load_catalogue,
    normalise_label,
    raw_files,
    resolve,
)
from privsvm.data.packing import is_html, is_packed, unpack
from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError, nearest_name, printable, without_passwords
from privsvm.files import atomic_path, remove_leftovers, write_npz

try:
    import fcntl
except ImportError:
    # Windows. There nobody claims a file, and each download begins anew.
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "availability",
    "catalogue_table",
    "download_raw",
    "fetch_file",
    "find_in_mirror",
    "mirror_folder",
    "raw_files",
]

# Several addresses of one host are tried one after the other, so a short limit keeps a dead network short.
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
ATTEMPTS = 3
PAUSE_SECONDS = 0.5
# A server that sends less than so many bytes in so many seconds is given up.
SLOW_SECONDS, SLOW_BYTES = 60.0, 1 << 13
# The most that is lost when a connection breaks off.
_CHUNK = 1 << 13

# Which paper uses a dataset, as the catalogue abbreviates it.
PAPERS = {
    "A": "dpwss-2021",
    "B": "dpsvmdvp-2019",
    "C": "ppsvm-2007",
    "D": "pmsvm-2025",
    "E": "ci-svm-2018",
    "F": "scaling tests",
}


class _SourceError(ValueError):
    """A source that failed; the next one is tried."""


def mirror_folder(configured: str | None = None) -> str | None:
    """Say which mirror is in use.

    Parameters
    ----------
    configured : str or None
        `data.mirror` of params.yaml.

    Returns
    -------
    str or None
        The environment variable ``PRIVSVM_MIRROR`` if set, else `configured`, else None.
    """
    return os.environ.get("PRIVSVM_MIRROR") or configured or None


def _mirror_candidates(dataset: str | None, file: DataFile, mirror: str) -> list[Path]:
    root = Path(mirror).expanduser()
    candidates = [] if file.mirror_path is None else [root / file.mirror_path, root / Path(file.mirror_path).name]
    if dataset is not None:
        candidates.append(root / dataset / file.name)
    candidates.append(root / file.name)
    return list(dict.fromkeys(candidates))


def find_in_mirror(file: DataFile, mirror: str | None, dataset: str | None = None) -> Path | None:
    """Look a file up in a mirror folder.

    Parameters
    ----------
    file : DataFile
        The file to look for: at its mirror path, by its bare name, or as ``<dataset>/<name>``.
    mirror : str or None
        The folder, or None for no mirror.
    dataset : str or None
        Name of the dataset, where known.

    Returns
    -------
    pathlib.Path or None
        The first that exists; its hash is not checked here.
    """
    if mirror is None:
        return None
    return next((path for path in _mirror_candidates(dataset, file, mirror) if path.is_file()), None)


@contextlib.contextmanager
def _partial_file(path: Path) -> Iterator[tuple[Path, bool]]:
    """Claim the file of an interrupted download to continue it, or a new one if a running process uses that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = open(path, "ab")  # noqa: SIM115
    try:
        if fcntl is None:
            raise BlockingIOError
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path, True
    except BlockingIOError:
        other = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        try:
            other.touch()
            yield other, False
        finally:
            other.unlink(missing_ok=True)
    finally:
        # Only a started download is worth continuing.
        if path.is_file() and path.stat().st_size == 0:
            path.unlink(missing_ok=True)
        handle.close()


def _pieces(response: Any) -> Iterator[bytes]:
    """Yield what a server sends as it comes, with the exceptions of `requests`; give up one that is too slow."""
    import requests
    import urllib3

    begun, received = time.monotonic(), 0
    while True:
        try:
            piece = response.raw.read1(_CHUNK, decode_content=False)
        except urllib3.exceptions.ProtocolError as error:
            raise requests.exceptions.ChunkedEncodingError(error) from None
        except urllib3.exceptions.SSLError as error:
            raise requests.exceptions.SSLError(error) from None
        except urllib3.exceptions.HTTPError as error:
            raise requests.exceptions.ConnectionError(error) from None
        if not piece:
            return
        yield piece
        received += len(piece)
        now = time.monotonic()
        if now - begun > SLOW_SECONDS:
            if received < SLOW_BYTES:
                raise _SourceError(f"too slow: {received} bytes in {now - begun:.0f} s")
            begun, received = now, 0


class _Downloader:
    """Download one address for pooch, continuing what an earlier attempt left.

    The file is delivered unpacked, so that one hash fits every packing.
    """

    def __init__(self, file: DataFile, partial: Path, progress: bool) -> None:
        self.file = file
        self.partial = partial
        self.progress = progress
        self.resumed = False

    def __call__(self, url: str, output_file: str | IO[bytes], pooch: Any, check_only: bool = False) -> bool | None:
        if check_only:
            return None
        with _partial_file(self.partial) as (partial, _):
            try:
                self._transfer(url, partial)
                with open(partial, "rb") as handle:
                    head = handle.read(512)
                self._deliver(partial, head, Path(str(output_file)))
            except _SourceError:
                raise
            except PrivSVMError as error:
                partial.unlink(missing_ok=True)
                raise _SourceError(str(error).split(";")[0].split(": ", 1)[-1]) from None
            partial.unlink(missing_ok=True)
        return None

    def _deliver(self, partial: Path, head: bytes, output: Path) -> None:
        if not head:
            partial.unlink(missing_ok=True)
            raise _SourceError("the server sent an empty file")
        if is_html(head):
            partial.unlink()
            raise _SourceError("the server answered with an HTML page instead of data")
        if is_packed(head) and _kept_unpacked(self.file):
            output.write_bytes(unpack(partial.read_bytes(), self.file.name, self.file.max_bytes))
        else:
            shutil.copyfile(partial, output)

    def _transfer(self, url: str, partial: Path) -> None:
        """Fetch `url` into `partial`, with a few attempts that continue each other."""
        import requests

        reason = "no answer"
        for attempt in range(ATTEMPTS):
            before = partial.stat().st_size
            try:
                self._one_request(url, partial)
                return
            except requests.exceptions.HTTPError as error:
                status = 0 if error.response is None else error.response.status_code
                reason = f"HTTP {status}"
                if status < 500 and status != 429:
                    break
            except (
                requests.exceptions.ConnectTimeout,
                requests.exceptions.SSLError,
                requests.exceptions.InvalidURL,
            ) as e:
                reason = _network_reason(e)
                break
            except requests.exceptions.RequestException as error:
                reason = _network_reason(error)
                # An unknown host or a closed port stays so for more than seconds.
                if (
                    isinstance(error, requests.exceptions.ConnectionError)
                    and partial.stat().st_size == before
                    and ("broken off" not in reason)
                ):
                    break
            if attempt + 1 < ATTEMPTS:
                time.sleep(PAUSE_SECONDS * (attempt + 1))
        raise _SourceError(reason)

    def _one_request(self, url: str, partial: Path) -> None:
        import requests

        start = partial.stat().st_size
        # Packing chosen by the server for the way would make byte ranges and lengths meaningless.
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        with requests.get(url, headers=headers, stream=True, timeout=(CONNECT_SECONDS, READ_SECONDS)) as response:
            if response.status_code == 416:
                # Nothing is left to fetch, or the file became shorter: the hash tells; without one start afresh.
                total = response.headers.get("Content-Range", "").rpartition("/")[2]
                if self.file.sha256 is not None and total == str(start):
                    self.resumed = True
                    return
                os.truncate(partial, 0)
                raise requests.exceptions.ConnectionError("broken off: the file on the server changed")
            response.raise_for_status()
            if response.status_code == 206 and not start:
                raise _SourceError("the server sent a part of the file, which nobody asked for")
            resumed = response.status_code == 206 and response.headers.get("Content-Range", "").startswith(
                f"bytes {start}-"
            )
            if response.status_code == 206 and not resumed:
                raise _SourceError("the server sent another part of the file than was asked for")
            self.resumed = self.resumed or (resumed and start > 0)
            length = response.headers.get("Content-Length")
            expected = int(length) + (start if resumed else 0) if length and length.isdigit() else None
            done = start if resumed else 0
            with open(partial, "ab" if resumed else "wb") as handle, self._bar(expected, done) as bar:
                for chunk in _pieces(response):
                    done += len(chunk)
                    if done > self.file.max_bytes:
                        break
                    handle.write(chunk)
                    bar.update(len(chunk))
            if done > self.file.max_bytes or (expected or 0) > self.file.max_bytes:
                os.truncate(partial, 0)
                raise _SourceError(f"more than {self.file.max_bytes} bytes; declare `max_bytes` if that is right")
            if expected is not None and done != expected:
                raise requests.exceptions.ChunkedEncodingError(f"broken off after {done} of {expected} bytes")

    def _bar(self, total: int | None, done: int) -> Any:
        from tqdm import tqdm

        return tqdm(
            total=total,
            initial=done,
            desc=self.file.name,
            unit="B",
            unit_scale=True,
            disable=not self.progress,
            file=sys.stderr,
            leave=False,
        )


def _kept_unpacked(file: DataFile) -> bool:
    """Tell whether a packed copy is unpacked on arrival: yes unless the file's own name says it is packed."""
    return file.path is None and not file.name.endswith(PACKING_SUFFIXES)


def _network_reason(error: Exception) -> str:
    """Say briefly why a request failed."""
    text = str(error)
    known = (
        ("broken off", text.split("\n")[0] if "broken off" in text else ""),
        ("NameResolutionError", "host name not found (no network?)"),
        ("Name or service not known", "host name not found (no network?)"),
        ("ProxyError", "the proxy refused the connection"),
        ("refused", "connection refused"),
        ("unreachable", "network unreachable"),
        ("CERTIFICATE", "the server's certificate is not trusted"),
        ("timed out", "timed out"),
        ("Max retries", "no connection"),
        ("IncompleteRead", "broken off"),
        ("ended prematurely", "broken off"),
        ("RemoteDisconnected", "broken off"),
        ("reset", "broken off"),
        ("aborted", "broken off"),
    )
    return next((reason for mark, reason in known if mark in text), type(error).__name__)


def _partial_name(target: Path, url: str) -> Path:
    """Say where an interrupted download of an address waits: not beside the data, which DVC versions by folders."""
    folder = Path(os.environ.get("PRIVSVM_CACHE", ".cache")) / "downloads"
    key = hashlib.sha256(f"{url}\n{target.absolute()}".encode()).hexdigest()[:16]
    return folder / f"{target.name[:100]}.{key}.download"


def _remove_partials(file: DataFile, target: Path) -> None:
    """Remove what interrupted downloads left."""
    for url in file.urls:
        _partial_name(target, url).unlink(missing_ok=True)


def _retrieve(file: DataFile, url: str, target: Path, temporary: Path, progress: bool) -> None:
    """Fetch one address into `temporary` with its hash checked, or raise `_SourceError`."""
    import pooch

    # Pooch announces each file and the hash of unchecked ones in its own words; ours are enough.
    pooch.get_logger().setLevel(logging.WARNING)
    partial = _partial_name(target, url)
    if file.sha256 is None:
        # Without a hash nothing would notice parts of two versions in one file.
        partial.unlink(missing_ok=True)
    known = None if file.sha256 is None else f"sha256:{file.sha256}"
    for _ in range(2):
        downloader = _Downloader(file, partial, progress)
        try:
            pooch.retrieve(
                url, known_hash=known, fname=temporary.name, path=str(temporary.parent), downloader=downloader
            )
            return
        except _SourceError:
            raise
        except ValueError as error:
            if "hash" not in str(error).lower():
                raise _SourceError(str(error).split("\n")[0]) from None
            temporary.unlink(missing_ok=True)
            if not downloader.resumed:
                raise _SourceError("other content than expected (SHA-256 differs)") from None
        # What an earlier run left may belong to another version: once more from the start.
        partial.unlink(missing_ok=True)
    raise _SourceError("other content than expected (SHA-256 differs)")


def _copy_local(file: DataFile, source: Path, temporary: Path) -> None:
    """Copy from the mirror or from the user's own path, unpacked where needed, hash checked."""
    with open(source, "rb") as handle:
        head = handle.read(512)
    if not head:
        raise _SourceError("empty file")
    if is_html(head):
        raise _SourceError("an HTML page instead of data")
    try:
        if is_packed(head) and _kept_unpacked(file):
            temporary.write_bytes(unpack(source.read_bytes(), source.name, file.max_bytes))
        else:
            shutil.copyfile(source, temporary)
    except PrivSVMError as error:
        raise _SourceError(str(error).split(";")[0].split(": ", 1)[-1]) from None
    if file.sha256 is not None and sha256_of_file(temporary) != file.sha256:
        temporary.unlink()
        raise _SourceError("other content than expected (SHA-256 differs)")


def fetch_file(
    file: DataFile,
    target: str | os.PathLike[str],
    mirror: str | None = None,
    progress: bool | None = None,
    dataset: str | None = None,
) -> str:
    """Get one raw file from the mirror, or from its sources in order.

    Parameters
    ----------
    file : DataFile
        The file, with its sources and hash.
    target : path-like
        Where it belongs. Nothing is fetched if it is there with the right hash.
    mirror : str or None
        `data.mirror` of params.yaml; the environment variable ``PRIVSVM_MIRROR`` takes precedence.
    progress : bool or None
        Whether to show a progress bar; None: only on a terminal.
    dataset : str or None
        Name of the dataset, for the mirror and for messages.

    Returns
    -------
    str
        Where it came from. Files are unpacked on arrival, so their bytes do not depend on the source.

    Raises
    ------
    PrivSVMError
        If all sources fail. The message names the file, the reason of every source, and how to set a mirror.
    """
    target = Path(target)
    remove_leftovers(target)
    if progress is None:
        progress = sys.stderr.isatty()
    if file.sha256 is not None and target.is_file() and sha256_of_file(target) == file.sha256:
        return str(target)
    label = file.name if dataset is None else f"{dataset}/{file.name}"
    tried: list[str] = []
    with atomic_path(target) as temporary:
        if file.path is not None:
            try:
                _copy_local(file, Path(file.path), temporary)
            except _SourceError as error:
                raise PrivSVMError(f"{file.path}: {error}; correct `path` or `sha256` of dataset {dataset}") from None
            except FileNotFoundError:
                raise PrivSVMError(f"{file.path}: no such file; correct `path` of dataset {dataset}") from None
            return file.path
        folder = mirror_folder(mirror)
        if folder is not None:
            source = find_in_mirror(file, folder, dataset)
            if source is not None:
                try:
                    _copy_local(file, source, temporary)
                    _report_unverified(file, label, temporary)
                    _remove_partials(file, target)
                    return str(source)
                except _SourceError as error:
                    tried.append(f"{source} ({error})")
            elif Path(folder).expanduser().is_dir():
                tried.append(f"mirror {folder} (not in it)")
            else:
                tried.append(f"mirror {folder} (no such folder)")
        for url in file.urls:
            try:
                _retrieve(file, url, target, temporary, progress)
            except _SourceError as error:
                tried.append(f"{without_passwords(url)} ({error})")
                continue
            _remove_partials(file, target)
            _report_unverified(file, label, temporary)
            return url
        if not file.urls:
            tried.append("no public address serves exactly this file")
        raise PrivSVMError(
            f"{label}: could not be obtained; tried {', '.join(tried)}; "
            "point at a folder that has it: PRIVSVM_MIRROR=<folder> or `data.mirror:` in params.yaml"
        )


def _report_unverified(file: DataFile, label: str, path: Path) -> None:
    if file.sha256 is None:
        print(f"{printable(label)}: not verified, its SHA-256 is {sha256_of_file(path)}", file=sys.stderr)


def _export_bundled(entry: DatasetEntry, target: Path) -> None:
    """Write a set bundled with scikit-learn as `.npz`."""
    import numpy as np
    from sklearn import datasets

    from privsvm.data.readers import content_hash

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
    name: str,
    file_name: str,
    target: str | os.PathLike[str],
    settings: Mapping[str, Any] | None = None,
    mirror: str | None = None,
    progress: bool | None = None,
) -> str:
    """Get one raw file of a dataset from any of its sources.

    Parameters
    ----------
    name : str
        Name of the dataset.
    file_name : str
        One of `raw_files`.
    target : path-like
        Where to put it.
    settings : mapping or None
        The dataset's settings in params.yaml.
    mirror : str or None
        `data.mirror` of params.yaml.
    progress : bool or None
        Whether to show a progress bar; None: only on a terminal.

    Returns
    -------
    str
        Where it came from.

    Raises
    ------
    PrivSVMError
        If the dataset has no such file, or all sources fail.
    """
    entry = resolve(name, settings)
    if file_name not in entry.files:
        raise PrivSVMError(f"dataset {name}: no file {file_name!r}; {nearest_name(file_name, entry.files)}")
    if entry.bundled is not None:
        _export_bundled(entry, Path(target))
        return f"scikit-learn ({entry.bundled})"
    return fetch_file(entry.files[file_name], target, mirror, progress, name)


def availability(entry: DatasetEntry, mirror: str | None = None) -> str:
    """Say where a dataset can be had.

    Parameters
    ----------
    entry : DatasetEntry
        The dataset.
    mirror : str or None
        `data.mirror` of params.yaml; ``PRIVSVM_MIRROR`` takes precedence.

    Returns
    -------
    str
        ``bundled``, ``mirror``, ``network``, ``network, unverified`` or ``mirror only``.
    """
    if entry.bundled is not None:
        return "bundled"
    folder = mirror_folder(mirror)
    if all(find_in_mirror(file, folder, entry.name) is not None for file in entry.files.values()):
        return "mirror"
    if not all(file.urls for file in entry.files.values()):
        return "mirror only"
    return "network" if entry.verified else "network, unverified"


def _size(entry: DatasetEntry) -> str:
    sizes = [file.size for file in entry.files.values()]
    if any(size is None for size in sizes):
        return "-"
    kib = sum(size for size in sizes if size is not None) / 1024
    return f"{kib / 1024:.1f} MiB" if kib >= 1024 else f"{kib:.0f} KiB"


def catalogue_table(mirror: str | None = None) -> str:
    """Write the catalogue as a table.

    Parameters
    ----------
    mirror : str or None
        `data.mirror` of params.yaml.

    Returns
    -------
    str
        One line per part: dataset, part, rows, features, classes, format, size of the download, papers, sources.
    """
    rows = [("dataset", "part", "rows", "features", "classes", "format", "size", "papers", "available")]
    for name, entry in load_catalogue().items():
        where = availability(entry, mirror)
        for index, (role, part) in enumerate(entry.parts.items()):
            first = index == 0
            rows.append(
                (
                    name,
                    role,
                    str(part.n_rows),
                    str(part.n_features),
                    str(len(entry.classes or ())),
                    part.format,
                    _size(entry) if first else "",
                    " ".join(entry.papers) or "-",
                    where,
                )
            )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = {2, 3, 4, 6}
    lines = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += ["", "papers: " + ", ".join(f"{letter} {paper}" for letter, paper in PAPERS.items())]
    lines += ["A mirror is a folder with the raw files: PRIVSVM_MIRROR=<folder>, or data.mirror in params.yaml."]
    return "\n".join(lines)
