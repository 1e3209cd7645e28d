"""Unpack compressed files and zip members, recognised by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from typing import Any

from privsvm.errors import PrivSVMError, list_names, nearest_name
from privsvm_bench.datasets.settings import MOST_BYTES

_CHUNK = 1 << 20
# Errors of the standard library for zips that are broken, encrypted, or packed by an unknown method.
BAD_ZIP = (
    zipfile.BadZipFile, EOFError, MemoryError, NotImplementedError, OSError, OverflowError, RuntimeError,
    UnicodeDecodeError, zlib.error, lzma.LZMAError,
)  # fmt: skip

_XZ, _BZ2, _GZIP, _COMPRESS, _ZIP = b"\xfd7zXZ\x00", b"BZh", b"\x1f\x8b", b"\x1f\x9d", b"PK\x03\x04"


def is_packed(head: bytes) -> bool:
    """Tell whether a file is xz, bz2, gzip or compress (.Z) by its first bytes."""
    return head.startswith((_XZ, _BZ2, _GZIP, _COMPRESS))


def is_html(head: bytes) -> bool:
    """Tell whether a file is a web page by its first bytes (512 are enough)."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:16].lower()
    return start.startswith((b"<!doctype", b"<html"))


def _too_large(name: str, most: int) -> PrivSVMError:
    return PrivSVMError(
        f"{name}: more than {most} bytes when unpacked; if it is to be as large, declare `max_bytes` for the dataset"
    )


def _read_stream(stream: Any, most: int) -> bytes:
    """Read a stream to its end, or one byte more than the limit."""
    chunks, size = [], 0
    while chunk := stream.read(min(_CHUNK, most + 1 - size)):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def unpack(data: bytes, name: str, most: int = MOST_BYTES) -> bytes:
    """Unpack a file if it is compressed (xz, bz2, gzip or compress); other files are returned unchanged.

    `name` stands in errors, and `most` limits the content in bytes. Raises PrivSVMError if the file is truncated or
    corrupt, or its content too large.
    """
    try:
        if data.startswith(_COMPRESS):
            from unlzw3 import unlzw

            content = unlzw(data)
        elif data.startswith((_XZ, _BZ2, _GZIP)):
            opener = lzma.open if data.startswith(_XZ) else bz2.open if data.startswith(_BZ2) else gzip.open
            with opener(io.BytesIO(data)) as stream:
                content = _read_stream(stream, most)
        else:
            return data
    except (OSError, EOFError, ValueError, MemoryError, lzma.LZMAError, zlib.error) as error:
        raise PrivSVMError(
            f"{name}: compressed file is truncated or corrupt ({error}); delete it and download it again"
        ) from None
    if len(content) > most:
        raise _too_large(name, most)
    return content


def read_member(data: bytes, name: str, member: str | None, most: int = MOST_BYTES) -> bytes:
    """Read one file of a zip, or of a zip inside a zip.

    `member` is the path inside it, through nested zips too (``"inner.zip/folder/file.csv"``); None means the only file.
    `name` stands in errors, and `most` limits the content in bytes. Raises PrivSVMError if the zip is corrupt,
    encrypted or packed in an unusual way, the content too large, or there is no such member, or several if one is
    expected.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
            if member is None:
                if len(names) != 1:
                    choices = list_names(sorted(names))
                    raise PrivSVMError(f"{name}: the zip holds {len(names)} files; set `member:` to one of: {choices}")
                member = names[0]
            if member in names:
                return unpack(_read_archived(archive, member, name, most), f"{name}/{member}", most)
            for outer in names:
                if member.startswith(outer + "/"):
                    inner = _read_archived(archive, outer, name, most)
                    return read_member(inner, f"{name}/{outer}", member[len(outer) + 1 :], most)
            raise PrivSVMError(f"{name}: no member {member!r} in the zip; {nearest_name(member, names[:50])}")
    except BAD_ZIP as error:
        raise PrivSVMError(
            f"{name}: zip file is truncated, corrupt, encrypted or packed in an unusual way ({error}); delete it and "
            "download it again, or unpack it yourself"
        ) from None


def _read_archived(archive: zipfile.ZipFile, member: str, name: str, most: int) -> bytes:
    """Read a file of a zip without trusting the size that the zip states."""
    with archive.open(member) as stream:
        content = _read_stream(stream, most)
    if len(content) > most:
        raise _too_large(f"{name}/{member}", most)
    return content


def is_zip(head: bytes) -> bool:
    """Tell whether a file is a zip by its first bytes."""
    return head.startswith(_ZIP)
