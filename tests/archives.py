"""Contents of files that tests make up, as bytes."""

import io
import zipfile
from collections.abc import Callable
from typing import Any


def content_of(write: Callable[..., Any], *arguments: Any, **options: Any) -> bytes:
    """Return the bytes that a function writes to the file that is its first argument."""
    buffer = io.BytesIO()
    write(buffer, *arguments, **options)
    return buffer.getvalue()


def zip_of(*entries: tuple[str, bytes | str], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of names and contents; names may occur twice."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()
