"""Open the MLflow store: created atomically, checked before use, used by one process at a time."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import logging
import os
import queue
import re
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import filelock
import requests
import sqlalchemy.exc
from alembic.util.exc import CommandError
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.engine import make_url

from privsvm.errors import PrivSVMError, without_passwords

__all__ = [
    "file_folder",
    "is_server",
    "one_line_errors",
    "only_one_process",
    "open_client",
    "sqlite_path",
    "without_standstill",
]

_Result = TypeVar("_Result")

_USABLE = "use sqlite:///mlflow.db or the address of a server such as http://127.0.0.1:5000"
_COMPANIONS = ("-journal", "-wal", "-shm")
_SERVER_TIMEOUT_SECONDS = 10
# MLflow itself tries a request for many minutes before it gives up.
_REQUESTS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
}
# Those limits are of silence: a server that sends a byte now and then never reaches them. This is for one run.
_STANDSTILL_SECONDS = 60.0


def is_server(tracking_uri: str) -> bool:
    """Whether the URI is the address of an MLflow server rather than a database."""
    return tracking_uri.startswith(("http://", "https://"))


def sqlite_path(tracking_uri: str) -> Path | None:
    """Find the file behind an SQLite URI.

    Parameters
    ----------
    tracking_uri : str
        As in ``params.yaml``.

    Returns
    -------
    pathlib.Path or None
        None if the store is a server or another kind of database.

    Raises
    ------
    PrivSVMError
        If MLflow cannot keep runs at such a URI.
    """
    scheme = re.match(r"([a-z0-9]+)(\+[a-z0-9]+)?://", tracking_uri)
    if scheme is None or scheme[1] not in {"sqlite", "http", "https", "postgresql", "mysql", "mssql"}:
        raise PrivSVMError(f"mlflow.tracking_uri: {without_passwords(tracking_uri)!r} cannot hold runs; {_USABLE}")
    if scheme[1] != "sqlite":
        return None
    try:
        database = make_url(tracking_uri).database
    except sqlalchemy.exc.ArgumentError:
        database = None
    if not database or ":memory:" in database:
        raise PrivSVMError(
            f"mlflow.tracking_uri: {without_passwords(tracking_uri)!r} names no file; use sqlite:///mlflow.db"
        )
    return Path(database)


def file_folder(tracking_uri: str) -> Path | None:
    """Find the folder of the runs' files.

    Parameters
    ----------
    tracking_uri : str
        As in ``params.yaml``.

    Returns
    -------
    pathlib.Path or None
        ``mlartifacts`` beside an SQLite file, or here for another database; None if a server keeps them.
    """
    if is_server(tracking_uri):
        return None
    database = sqlite_path(tracking_uri)
    return (Path() if database is None else database.parent) / "mlartifacts"


@contextlib.contextmanager
def only_one_process(tracking_uri: str) -> Iterator[None]:
    """Hold the lock of a store; a second process waits until the first is done (or killed).

    Parameters
    ----------
    tracking_uri : str
        For SQLite the lock is a file next to the database, otherwise a file in the folder for temporary files.

    Yields
    ------
    None
    """
    database = sqlite_path(tracking_uri)
    if database is not None:
        database.parent.mkdir(parents=True, exist_ok=True)
        path = database.with_name(database.name + ".lock")
    else:
        digest = hashlib.sha256(tracking_uri.encode()).hexdigest()[:16]
        user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
        path = Path(tempfile.gettempdir()) / f"privsvm-mlflow-{user}-{digest}.lock"
    # It is not removed, which would let two processes hold locks of two files with one name. No symbolic link is
    # followed: the folder for temporary files is everybody's.
    lock = filelock.FileLock(path, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        print(f"waiting: another process is logging ({path} is locked)", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def one_line_errors(tracking_uri: str) -> Iterator[None]:
    """Turn exceptions of MLflow and the database into a `PrivSVMError` of one line.

    Parameters
    ----------
    tracking_uri : str
        Named in the message (without a password).

    Yields
    ------
    None

    Raises
    ------
    PrivSVMError
        In place of any error of MLflow, SQLAlchemy, Alembic, SQLite or the network.
    """
    try:
        yield
    except (
        MlflowException,
        sqlalchemy.exc.SQLAlchemyError,
        CommandError,
        sqlite3.Error,
        requests.RequestException,
    ) as error:
        raise PrivSVMError(_describe(tracking_uri, error)) from error


def _describe(tracking_uri: str, error: Exception) -> str:
    """Write the line: which store, what is wrong with it, and what to do."""
    cause = " ".join(str(error).split("[SQL:")[0].split())
    cause = without_passwords(cause)[:300] or type(error).__name__
    database = sqlite_path(tracking_uri)
    if is_server(tracking_uri):
        remedy = (
            "results and reports stand; look at the server's own log, then run `make track`: nothing is logged twice"
        )
    elif "out-of-date" in cause:
        cause = "made by an older MLflow"
        remedy = f"run `mlflow db upgrade {without_passwords(tracking_uri)}` (keep a copy first) or move the file away"
    elif "locked" in cause:
        remedy = "another program is writing to it; close it and run again"
    elif "readonly" in cause or "unable to open" in cause:
        remedy = "make the file and its folder writable, or set another mlflow.tracking_uri in params.yaml"
    elif "full" in cause:
        remedy = "free some disk space and run again"
    else:
        remedy = "move the file away and run again; the runs are logged again from data/results"
    where = database if database is not None else without_passwords(tracking_uri)
    return f"{where}: MLflow cannot use this store ({cause}); {remedy}"


def without_standstill(tracking_uri: str, work: Callable[[Callable[[], None]], _Result]) -> _Result:
    """Do work on a store; give up on a server with which it does not get on.

    Parameters
    ----------
    tracking_uri : str
        Of the store.
    work : callable
        Is called with a function, which it calls whenever something is done: so often that a healthy server needs much
        less than a minute in between.

    Returns
    -------
    object
        What `work` returns.

    Raises
    ------
    PrivSVMError
        If a server keeps the work waiting.
    """
    if not is_server(tracking_uri):
        return work(lambda: None)
    news: queue.SimpleQueue[tuple[bool, Any] | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            news.put((True, work(lambda: news.put(None))))
        except BaseException as error:
            news.put((False, error))

    # It ends with the process: no request can be called back.
    threading.Thread(target=run, daemon=True).start()
    while True:
        try:
            found = news.get(timeout=_STANDSTILL_SECONDS)
        except queue.Empty:
            raise PrivSVMError(
                f"mlflow.tracking_uri: {without_passwords(tracking_uri)}: the server is too slow (no run in "
                f"{_STANDSTILL_SECONDS:g} s); results and reports stand; look at the server's own log, then run "
                "`make track`: nothing is logged twice"
            ) from None
        if found is not None:
            succeeded, result = found
            if not succeeded:
                raise result
            return cast("_Result", result)


def open_client(tracking_uri: str) -> MlflowClient:
    """Open a store that is known to work; call it while holding `only_one_process`.

    Parameters
    ----------
    tracking_uri : str
        ``sqlite:///path`` (made if missing), another SQLAlchemy URI, or the address of an MLflow server.

    Returns
    -------
    mlflow.tracking.MlflowClient
        A client of that store; no global MLflow state is changed.

    Raises
    ------
    PrivSVMError
        If the server does not answer, or the database is unreadable or of another MLflow version.
    """
    for name in ("alembic", "mlflow.store.db.utils", "mlflow.store.db.base_sql_model"):
        logging.getLogger(name).setLevel(logging.ERROR)
    database = sqlite_path(tracking_uri)
    with one_line_errors(tracking_uri):
        if is_server(tracking_uri):
            for name, value in _REQUESTS.items():
                os.environ.setdefault(name, value)
            _check_server(tracking_uri)
        elif database is not None and (not database.exists() or database.stat().st_size == 0):
            _make_database(database)
        elif database is not None:
            _check_database(database)
        client = MlflowClient(tracking_uri=tracking_uri)
        client.search_experiments(max_results=1)
    return client


def _check_server(tracking_uri: str) -> None:
    """Ask the server once; MLflow itself would try for minutes before it gives up."""
    try:
        answer = requests.get(tracking_uri.rstrip("/") + "/health", timeout=_SERVER_TIMEOUT_SECONDS)
        answer.raise_for_status()
    except requests.HTTPError:
        raise PrivSVMError(
            f"mlflow.tracking_uri: {without_passwords(tracking_uri)}: the server answers HTTP {answer.status_code}; "
            "results and reports stand; look at the server's own log, then run `make track`"
        ) from None
    except requests.RequestException as error:
        raise PrivSVMError(
            f"mlflow.tracking_uri: {without_passwords(tracking_uri)}: no server answers ({type(error).__name__}); "
            "results and reports stand; start it and run `make track`, or set mlflow.tracking_uri to sqlite:///mlflow.db"
        ) from None


def _make_database(database: Path) -> None:
    """Create an empty MLflow database elsewhere and move it into place.

    MLflow runs dozens of migrations, which take seconds. If it is killed half-way, it leaves a file that no MLflow can
    use or repair.
    """
    workshop = database.with_name(database.name + ".new")
    copy = database.with_name(database.name + ".copy")
    for leftover in (workshop, copy):  # of an attempt that was killed
        _remove_with_companions(leftover)
    try:
        MlflowClient(tracking_uri=f"sqlite:///{workshop}").search_experiments(max_results=1)
        # SQLite would apply the journal of a deleted database to the new one.
        for companion in _COMPANIONS:
            database.with_name(database.name + companion).unlink(missing_ok=True)
        # A copy of the content, as MLflow still holds the file at its first name open; SQLite syncs it to disk.
        with (
            contextlib.closing(sqlite3.connect(workshop)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
        os.replace(copy, database)
    finally:
        _remove_with_companions(workshop)
        _remove_with_companions(copy)


def _remove_with_companions(path: Path) -> None:
    for suffix in ("", *_COMPANIONS):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _check_database(database: Path) -> None:
    """Refuse a file that is not a sound database, before MLflow tries ten times to open it."""
    with contextlib.closing(sqlite3.connect(database, timeout=30)) as connection:
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise sqlite3.DatabaseError(f"damaged: {problem}")
