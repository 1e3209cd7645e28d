"""Open the MLflow store for one process at a time, with errors of one line."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import filelock
import mlflow
import requests
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from privsvm.errors import PrivSVMError, without_passwords

_USABLE = "use sqlite:///mlflow.db or the address of a server such as http://127.0.0.1:5000"
# Without these limits MLflow repeats a request to a server that does not answer for many minutes.
_REQUESTS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
}


def is_server(tracking_uri: str) -> bool:
    """Tell whether the URI is the address of an MLflow server rather than a database."""
    return tracking_uri.startswith(("http://", "https://"))


def sqlite_path(tracking_uri: str) -> Path | None:
    """Return the file behind an SQLite URI, or None for a server or another kind of database.

    Raises PrivSVMError if MLflow cannot keep runs at such a URI.
    """
    scheme = re.match(r"([a-z0-9]+)(\+[a-z0-9]+)?://", tracking_uri)
    if scheme is None or scheme[1] not in {"sqlite", "http", "https", "postgresql", "mysql", "mssql"}:
        raise PrivSVMError(f"mlflow.tracking_uri: {without_passwords(tracking_uri)!r} cannot hold runs; {_USABLE}")
    if scheme[1] != "sqlite":
        return None
    try:
        database = make_url(tracking_uri).database
    except ArgumentError:
        database = None
    if not database or ":memory:" in database:
        raise PrivSVMError(f"mlflow.tracking_uri: {tracking_uri!r} names no file; use sqlite:///mlflow.db")
    return Path(database)


def file_folder(tracking_uri: str) -> Path | None:
    """Return the folder of the runs' files: ``mlartifacts`` beside an SQLite file, or here; None for a server."""
    if is_server(tracking_uri):
        return None
    database = sqlite_path(tracking_uri)
    return (Path() if database is None else database.parent) / "mlartifacts"


@contextlib.contextmanager
def open_store(tracking_uri: str) -> Iterator[MlflowClient]:
    """Open a store; a second process waits until the first has closed it.

    It is ``sqlite:///path`` (made if missing), another SQLAlchemy URI, or the address of an MLflow server. No global
    state of MLflow is changed. Raises PrivSVMError in place of any error of MLflow, the database or the network.
    """
    database = sqlite_path(tracking_uri)
    if database is not None:
        if database.exists() and not database.is_file():
            # MLflow would try for minutes to open a folder.
            raise PrivSVMError(f"mlflow.tracking_uri: {database} is no file; {_USABLE}")
        database.parent.mkdir(parents=True, exist_ok=True)
        lock = database.with_name(f"{database.name}.lock")
    else:
        digest = hashlib.sha256(tracking_uri.encode()).hexdigest()[:16]
        lock = Path(tempfile.gettempdir(), f"privsvm-mlflow-{getpass.getuser()}-{digest}.lock")
    for name, value in _REQUESTS.items():
        os.environ.setdefault(name, value)
    with filelock.FileLock(lock, mode=0o600):
        try:
            if database is not None:
                if not (database.exists() and database.stat().st_size):
                    _create(database)
                _check_owner(database)
            yield MlflowClient(tracking_uri=tracking_uri)
        except (MlflowException, SQLAlchemyError, CommandError, requests.RequestException, ImportError) as error:
            raise PrivSVMError(_describe(tracking_uri, error)) from error


def _create(database: Path) -> None:
    """Create the database under another name: MLflow cannot use one that a kill has left half-made."""
    draft = database.with_name(f"{database.name}.new")
    for leftover in (draft, draft.with_name(f"{draft.name}-journal"), database.with_name(f"{database.name}-journal")):
        leftover.unlink(missing_ok=True)
    MlflowClient(tracking_uri=f"sqlite:///{draft}").search_experiments(max_results=1)
    os.replace(draft, database)


def _check_owner(database: Path) -> None:
    """Refuse the database of another program, to which MLflow would add its tables."""
    try:
        with contextlib.closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        # MLflow names the problem.
        return
    if not {"alembic_version", "experiments"} <= tables:
        raise PrivSVMError(
            f"{database}: no database of MLflow, or a damaged one; name another file in mlflow.tracking_uri, or "
            "move the file away and run again"
        )


def _is_newer(cause: str) -> bool:
    """Tell whether this MLflow does not know the version of a database that it calls out-of-date."""
    found = re.search(r"found version (\w+)", cause)
    versions = ScriptDirectory(os.path.join(os.path.dirname(mlflow.__file__), "store", "db_migrations"))
    return found is not None and found[1] not in {script.revision for script in versions.walk_revisions()}


def _describe(tracking_uri: str, error: Exception) -> str:
    """Write the one-line error: the store, the problem and the remedy."""
    cause = without_passwords(" ".join(str(error).split("[SQL:")[0].split()))[:300] or type(error).__name__
    if is_server(tracking_uri):
        remedy = "results and reports stand; look at the server and its log, then run `make run`"
    elif "out-of-date" in cause:
        remedy = f"run `mlflow db upgrade {without_passwords(tracking_uri)}` (keep a copy first) or move the file away"
        if _is_newer(cause):
            cause = "a newer MLflow made it"
            remedy = "install that version (pip install --upgrade mlflow) or move the file away"
    elif isinstance(error, ImportError):
        remedy = f"install the package of its driver where the workflow runs, or {_USABLE}"
    elif "locked" in cause:
        remedy = "another program is writing to it; close it and run again"
    elif "readonly" in cause or "unable to open" in cause or "full" in cause:
        remedy = "make the file and its folder writable and see that the disk has room, then run again"
    else:
        remedy = "move the file away and run again; the runs are logged again from data/results"
    store = sqlite_path(tracking_uri) or without_passwords(tracking_uri)
    return f"{store}: MLflow cannot use this store ({cause}); {remedy}"
