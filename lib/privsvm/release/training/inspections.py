"""Which tables were looked at: `privsvm inspect` records it beside the ledger, and `release` asks for the record.

A record names a table by its path and the names of its columns, and a declaration by its digest. It says nothing of the
rows: bound to their values, one of them would decide whether a release is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from privsvm.digests import canonical_json, sha256_of_json
from privsvm.errors import PrivSVMError
from privsvm.files import atomic_path
from privsvm.release.documents.ledger import Ledger, default_ledger
from privsvm.tables.schema import Schema
from privsvm.tables.tables import header_of
from privsvm.untrusted import LARGEST_JSON, read_regular_file

_FOLDER, _VERSION = "inspections", 1


def _record(table: str | os.PathLike[str], schema: Schema) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "table": os.path.realpath(table),
        "columns": sha256_of_json(header_of(table, schema.delimiter)),
        "schema": sha256_of_json(schema.to_json()),
    }


def _path(ledger: Path, record: dict[str, Any]) -> Path:
    return ledger.parent / _FOLDER / f"{sha256_of_json(record)}.json"


def record_inspection(table: str | os.PathLike[str], schema: Schema, ledger: Ledger) -> None:
    """Record that a table was inspected by a declaration, readable for its owner alone.

    The record lies in a folder beside the ledger. Raises OSError if it cannot be written.
    """
    record = _record(table, schema)
    path = _path(ledger.path, record)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    ignored = path.parent / ".gitignore"
    if not ignored.exists():
        # Paths of private tables must not be committed if the ledger lies in a repository.
        with atomic_path(ignored) as temporary:
            temporary.write_text("*\n", encoding="utf-8")
    with atomic_path(path) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_text(canonical_json(record, indent=1) + "\n", encoding="utf-8")


def is_inspected(table: str | os.PathLike[str], schema: Schema, ledger: Ledger) -> bool:
    """Return whether a table was inspected by a declaration; no row is read.

    Records beside the ledger count, and records beside the user's own ledger. Raises PrivSVMError if the header of the
    table cannot be read.
    """
    record, ledgers = _record(table, schema), [ledger.path]
    with contextlib.suppress(RuntimeError):
        # Without a home folder there is no ledger of the user's own.
        ledgers.append(default_ledger())
    for path in ledgers:
        try:
            if json.loads(read_regular_file(_path(path, record), LARGEST_JSON, "remove it")) == record:
                return True
        except (ValueError, RecursionError, OSError, PrivSVMError):
            # There is none, or it is damaged.
            continue
    return False
