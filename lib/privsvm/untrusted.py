"""Read files that others wrote: sizes are bounded before anything is read, and every fault is one line.

Models, cards and ledgers are handed from one person to another, with digests that a forger computes again.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection
from typing import Any

import numpy as np

from privsvm.constraints import written
from privsvm.errors import PrivSVMError

# Bytes. JSON of 2 MB takes at most about 100 MB in memory, and the digest of 512 MB about a second.
LARGEST_ARRAYS, LARGEST_JSON = 512 << 20, 2 << 20
_MOST_VALUES, _DEEPEST = 100_000, 40
_ANY_TEXT = written(0, 10_000, breaks=True)
# Arrays may unpack to so many bytes, and to so many times the bytes of their file more: most coefficients of kernel
# models of many classes are 0.
_UNPACKED, _RATIO = 32 << 20, 40
_MOST_ARRAYS, _MOST_DIMENSIONS = 64, 8
_CHUNK = 1 << 20

# Exactly what NumPy writes; a header is an expression in Python otherwise.
_HEADER = re.compile(
    rb"\{'descr': '(<f8|<i8|\|u1)', 'fortran_order': (True|False), 'shape': \(((?:\d{1,15}, ?)*(?:\d{1,15})?)\), \} *\n"
)
# A text without an end is one to the end of the file: no second look at any byte.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BAD_ZIP = (
    ValueError, OSError, EOFError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile, struct.error,
    zlib.error,
)  # fmt: skip


def read_regular_file(path: str | os.PathLike[str], largest: int, remedy: str, digest: str | None = None) -> bytes:
    """Read a file whole.

    It may be a link to one; pipes, devices and folders are refused without being opened or waited for. It may have
    `largest` bytes, and must have the SHA-256 `digest`, if one is given: another file is not read into memory. `remedy`
    is the message's request. Raises FileNotFoundError if there is none, and PrivSVMError if it is no file, cannot be
    read, is too large, or has another digest.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise PrivSVMError(f"{path}: is no file; {remedy}")
        # Another kind of file may have taken its place meanwhile.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        with os.fdopen(os.open(path, flags), "rb") as handle:
            status = os.fstat(handle.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise PrivSVMError(f"{path}: is no file; {remedy}")
            if status.st_size <= largest:
                if digest is not None:
                    if hashlib.file_digest(handle, "sha256").hexdigest() != digest:
                        raise PrivSVMError(f"{path}: damaged, it is not the file of its record; {remedy}")
                    handle.seek(0)
                data = handle.read(status.st_size + 1)
                if len(data) <= largest:
                    return data
    except (FileNotFoundError, PrivSVMError):
        raise
    except OSError as error:
        raise PrivSVMError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    except ValueError:
        # A zero byte, or half a surrogate pair.
        raise PrivSVMError(f"{str(path)!r}: is no path; {remedy}") from None
    raise PrivSVMError(f"{path}: has more than the {largest} bytes that such a file may have; {remedy}")


def parse_json(data: bytes) -> Any:
    """Parse JSON of others.

    Raises ValueError if it is none, is nested deeper or has more values than records of ours, or holds text that is
    longer, cannot be written, or that nobody sees.
    """
    if len(data) > LARGEST_JSON or sum(data.count(mark) for mark in (b",", b"[", b"{")) > _MOST_VALUES:
        raise ValueError("too many values")
    depth = 0
    for mark in re.findall(rb"[\[\]{}]", _TEXT.sub(b"", data)):
        depth += 1 if mark in b"[{" else -1
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
    content = json.loads(data.decode())
    # Halves of surrogate pairs are no text, and NaN and infinities are no numbers.
    json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    if not all(map(_ANY_TEXT.accepts, map(json.loads, _TEXT.findall(data)))):
        raise ValueError(f"a text {_ANY_TEXT.wish}")
    return content


def parse_npz(data: bytes, names: Collection[str]) -> dict[str, np.ndarray]:
    """Parse arrays of others.

    They are those that `names` tells, and no others: finite float64, int64 or uint8 arrays. Memory is taken only for
    sizes that the file is large enough for. Raises ValueError if it is no such file, has other arrays, or some that are
    too large or not finite.
    """
    # Entries of the directory: each takes memory before it can be looked at.
    if data.count(b"PK\x01\x02") > 2 * _MOST_ARRAYS:
        raise ValueError("too many entries")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if sorted(entry.filename for entry in entries) != sorted(f"{name}.npy" for name in names):
                raise ValueError(f"must hold the arrays {', '.join(sorted(names))}, and no others")
            if sum(entry.file_size for entry in entries) > _UNPACKED + _RATIO * len(data):
                raise ValueError("its arrays are too large for the file")
            arrays = {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}
    except _BAD_ZIP as error:
        raise ValueError(str(error)) from None
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"array {name!r} holds numbers that are not finite")
    return arrays


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """Read one array into memory, once its header and the size of its entry agree."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("its compression is none of NumPy's")
    with archive.open(entry) as stream:
        start = stream.read(10)
        if start[:8] != b"\x93NUMPY\x01\x00" or len(start) < 10:
            raise ValueError("an entry is no array of version 1.0")
        (length,) = struct.unpack("<H", start[8:])
        header = _HEADER.fullmatch(stream.read(length))
        if header is None:
            raise ValueError("an array is of an unknown type, or its header is damaged")
        shape = tuple(int(digits) for digits in header[3].split(b",") if digits.strip())
        kind = np.dtype(header[1].decode())
        size = math.prod(shape) * kind.itemsize
        if len(shape) > _MOST_DIMENSIONS or size != entry.file_size - 10 - length:
            raise ValueError("an array has another size than its entry")
        memory, position = bytearray(size), 0
        while chunk := stream.read(min(_CHUNK, size - position)):
            memory[position : position + len(chunk)] = chunk
            position += len(chunk)
        # Beyond the end: the checksum is compared there.
        if position != size or stream.read(1):
            raise ValueError("an array is cut off")
    return np.ndarray(shape, dtype=kind, buffer=memory, order="F" if header[2] == b"True" else "C")
