"""Start a job's script in a copy of a process that has already imported the large packages.

To start Python and to import scikit-learn and Numba takes longer than most jobs. Snakemake's main process therefore
starts one server (`start_server`), which imports these packages and what most scripts need of privsvm. Before each job
it looks at the files of privsvm: once one of them is not as it was, it starts no more jobs, so no edited source is ever
stale. The rules call ``python -IS lib/privsvm/pipeline/start.py stages/<name>.py ...``, which asks the server to fork.
The copy gets the caller's arguments, environment, working folder and standard files, and runs the script as Python
would. The caller waits, passes signals on, and ends as the copy ends.

Without a server the caller becomes a plain ``python stages/<name>.py ...``: on other machines and systems, with another
Python, after an edit of privsvm, or with other values of what packages read when they are imported, such as numbers of
threads. A job on a cluster has a server of its own (`start_server_of_job`).

No job outlives its caller: the server kills the job whose connection ends, and all jobs when Snakemake ends.
This file also runs by itself, before any path is set, so what callers need of it is in the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys

# What `typing` says of it; to import that takes as long as all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

__all__ = ["SOCKET", "start_server", "start_server_of_job"]

# Environment variable that names the server's socket.
SOCKET = "PRIVSVM_START_SOCKET"

# What the scripts import; those without a line of their own need the first two lines alone. No module with jit
# functions is among it: a job has those compiled that it has imported itself (`privsvm.warm_up`).
_PLAIN = ("argparse", "ctypes", "importlib.metadata", "numpy", "pydantic.type_adapter", "runpy", "tempfile")
_ALWAYS = (*_PLAIN, "privsvm.data.prepared", "privsvm.pipeline.evaluation", "privsvm.pipeline.model_files")
_TRAINING = (
    *_ALWAYS,
    *("numba", "scipy.optimize", "scipy.special", "sklearn.base", "sklearn.utils.metaestimators"),
    *("sklearn.utils.validation", "privsvm.base.estimators", "privsvm.pipeline.training"),
)
# What the accountant's package takes most of its time to import. Not that package itself: its logging may close the
# output of others.
_ACCOUNTING = (*_TRAINING, "attr", "scipy.signal")
_PACKAGES = {
    "agree.py": _TRAINING,
    "audit.py": _ACCOUNTING,
    "condense.py": _TRAINING,
    "download.py": (*_TRAINING, "sklearn.datasets"),
    "prepare.py": (*_TRAINING, "sklearn.model_selection"),
    "train.py": _ACCOUNTING,
    "train_on_blocks.py": _ACCOUNTING,
}

# What variables that Python or these packages read early begin with.
_READ_EARLY = ("LANG", "LC_", "LD_", "MKL_", "NUMBA_", "OMP_", "OPENBLAS_", "PYTHON")

_PR_SET_PDEATHSIG = 1

# Seconds that a caller may take to say what it wants.
_PATIENCE = 10


def _receive(connection: socket.socket, size: int) -> bytes:
    """Read a number of bytes; OSError if the other side has gone."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def _call(arguments: list[str]) -> int:
    """Run a script in a copy of the server and return its exit code, or become a plain Python that runs it."""
    address = os.environ.pop(SOCKET, None)
    words = [sys.executable, os.getcwd(), str(len(arguments)), *arguments]
    words += [f"{name}={value}" for name, value in os.environ.items()]
    request = os.fsencode("\0".join(words))
    job = 0
    if address is not None:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address)
            socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
            connection.sendall(request)
            job = int.from_bytes(_receive(connection, 8), "big")
        except OSError:
            job = 0
    if not job:
        os.execv(sys.executable, [sys.executable, *arguments])
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(job, number))
    try:
        status = int.from_bytes(_receive(connection, 8), "big")
    except OSError:
        # The server was killed, and the job with it.
        status = int(signal.SIGKILL)
    if os.WIFSIGNALED(status):
        ended_by = os.WTERMSIG(status)
        if ended_by != signal.SIGKILL:
            signal.signal(ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), ended_by)
    return os.waitstatus_to_exitcode(status)


def start_server(folder: str = ".snakemake") -> None:
    """Start the server, which ends with this process, and name its socket in the environment.

    Where that is not possible jobs start plainly.

    Parameters
    ----------
    folder : str, default=".snakemake"
        Holds the socket while this process lives. Relative to the working folder, as a socket's path must be short.
    """
    import atexit
    import subprocess

    if not hasattr(os, "pidfd_open"):
        return
    address = os.path.join(folder, f"start.{os.getpid()}")
    listener = socket.socket(socket.AF_UNIX)
    ours, theirs = socket.socketpair()
    files = (listener.fileno(), theirs.fileno())
    # Not the Python that runs Snakemake but the one that jobs find, by the same name. -P: no modules are looked for in
    # the folder of this file.
    command = ["python", "-P", __file__, "--serve", *map(str, files)]
    # Arrow, which pandas brings along, would start a thread for its memory.
    environment = {**os.environ, "JE_ARROW_MALLOC_CONF": "background_thread:false"}
    nowhere = subprocess.DEVNULL
    # Nobody else may have jobs run in this user's name.
    mask = os.umask(0o077)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(address)
        listener.bind(address)
    except OSError:
        return
    finally:
        os.umask(mask)
    listener.listen(128)
    try:
        server = subprocess.Popen(
            command, stdin=nowhere, stdout=nowhere, stderr=nowhere, pass_fds=files, env=environment
        )
    except OSError:
        return
    listener.close()
    theirs.close()
    os.environ[SOCKET] = address

    def stop() -> None:
        ours.close()
        server.wait()
        with contextlib.suppress(OSError):
            os.unlink(address)

    atexit.register(stop)


def start_server_of_job() -> None:
    """Start a server within a job that a cluster's scheduler runs: its group of small jobs starts from it.

    Never that of the Snakemake which submitted the job, and whose socket its environment may name: on the same machine
    that server would run the job outside of the processors and the memory which the scheduler gave to it.
    """
    import tempfile

    os.environ.pop(SOCKET, None)
    # The working folder is shared with other machines, which have processes of the same number.
    start_server(tempfile.gettempdir())


def _sources() -> list[tuple[str, int, int, int, int]]:
    """State of each file of privsvm but for compiled code: its path, times, size and place on the disk."""
    import importlib.util

    package = importlib.util.find_spec("privsvm")
    found = []
    for top in (package and package.submodule_search_locations) or ():
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for path in [os.path.join(folder, name) for name in names]:
                # A file may go meanwhile; then this list is another one, too.
                with contextlib.suppress(OSError):
                    state = os.stat(path)
                    found.append((path, state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino))
    return sorted(found)


def _read_early(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_EARLY)}


class _Request:
    """What a caller wants to be run, and where."""

    def __init__(self, connection: socket.socket):
        connection.settimeout(_PATIENCE)
        header, self.files, _, _ = socket.recv_fds(connection, 8, 3)
        size = int.from_bytes(header + _receive(connection, 8 - len(header)), "big")
        self.python, self.folder, count, *words = os.fsdecode(_receive(connection, size)).split("\0")
        self.arguments = words[: int(count)]
        self.environment = dict(word.split("=", 1) for word in words[int(count) :])

    def import_packages(self) -> None:
        """Import what the script needs. What is not installed is the script's own concern."""
        import importlib

        known = "numba" in sys.modules
        for name in _PACKAGES.get(os.path.basename(self.arguments[0]), _ALWAYS):
            # An edited file may fail in any way.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        # What Numba sets up for the first function that is compiled or loaded takes longer than to load one. Not by
        # an import statement: this file would count as a source of compiled code.
        if not known and "numba" in sys.modules:
            sys.modules["numba"].njit(lambda number: number)(0)

    def run(self) -> None:
        """Make this process, a copy of the server, what a new Python with these arguments would be."""
        import runpy
        import tempfile

        import numpy

        for target, file in enumerate(self.files):
            os.dup2(file, target)
            os.close(file)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv = self.arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(self.arguments[0])))
        # What must differ between copies, and what was read from the server's environment.
        numpy.random.seed()  # noqa: NPY002 - a package may use the old generator
        tempfile.tempdir = None
        runpy.run_path(self.arguments[0], run_name="__main__")


def _status_of(run: Callable[[], None]) -> int:
    """Run a script, and return the exit code that Python would end with."""
    try:
        run()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # Python ends by the signal itself.
        raise
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _leave(status: int) -> NoReturn:
    """End the process as Python would, but for taking the packages apart: that takes longer than many a job."""
    import atexit
    import threading

    # What the package multiprocessing does for its forked processes.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status & 0xFF)


class _Server:
    """Starts jobs until Snakemake ends, which closes its end of the lifeline."""

    def __init__(self, listener: int, lifeline: int):
        import selectors

        self.listener = socket.socket(fileno=listener)
        self.pid = os.getpid()
        self.environment = _read_early(dict(os.environ))
        # Before the first of them is imported.
        self.sources = _sources()
        # Ctrl-C goes to everyone: jobs end as they would, Snakemake waits for them, and the server for Snakemake.
        self.on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Not epoll, whose state the copies would share.
        self.watched = selectors.PollSelector()
        self.watch(self.listener, self.start)
        # The jobs die with their parent.
        self.watch(socket.socket(fileno=lifeline), lambda: os._exit(0))

    def watch(self, file: Any, react: Callable[[], None]) -> None:
        self.watched.register(file, 1, react)

    def serve(self) -> None:
        """React to one event after the other."""
        while True:
            key, _ = self.watched.select()[0]
            key.data()

    def can_run(self, request: _Request) -> bool:
        """Whether a copy of this process is what a new Python would be."""
        if request.python != sys.executable or _read_early(request.environment) != self.environment:
            return False
        request.import_packages()
        # In a copy of a process with several threads a lock may be held by nobody.
        return len(os.listdir("/proc/self/task")) == 1 and _sources() == self.sources

    def start(self) -> None:
        """Start the job of a new connection, or answer that its caller has to do it."""
        connection, _ = self.listener.accept()
        try:
            request = _Request(connection)
        except (OSError, ValueError):
            connection.close()
            return
        job = os.fork() if self.can_run(request) else None
        if job == 0:
            self.become(request, connection)
        for file in request.files:
            os.close(file)
        if job is None:
            connection.close()
            return
        process = os.pidfd_open(job)

        def kill() -> None:
            self.watched.unregister(connection)
            os.kill(job, signal.SIGKILL)

        def answer() -> None:
            self.watched.unregister(process)
            os.close(process)
            _, status = os.waitpid(job, 0)
            if connection in self.watched.get_map():
                self.watched.unregister(connection)
            with contextlib.suppress(OSError):
                connection.sendall(status.to_bytes(8, "big"))
            connection.close()

        self.watch(process, answer)
        # A caller says no more: its connection can be read when it has gone.
        self.watch(connection, kill)
        with contextlib.suppress(OSError):
            connection.sendall(job.to_bytes(8, "big"))

    def become(self, request: _Request, connection: socket.socket) -> NoReturn:
        """Run the job in this process, a copy of the server."""
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self.pid:
            os._exit(1)
        signal.signal(signal.SIGINT, self.on_interrupt)
        for key in list(self.watched.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        connection.close()
        _leave(_status_of(request.run))


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        _Server(*map(int, sys.argv[2:])).serve()
    else:
        sys.exit(_call(sys.argv[1:]))
