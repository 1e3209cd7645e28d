"""Snakemake, DVC and scripts as forks of a process that has imported already what they import.

Their imports take longer than what most tests make them do. Everything else is as at a start of its own: arguments,
folder, environment, search path, open files, output, exit code. Nothing of this repository is imported before the fork.

What these programs start themselves is forked too: DVC's stages, Snakemake below them, and the server that Snakemake's
jobs are forked from (`privsvm.pipeline.start`). For that, the first ``python`` on their path is a script of the shell
that calls the server of this module, or becomes Python. Programs that a test kills start plainly; only the servers
of jobs below them, which nobody kills, are forked.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib
import importlib.machinery
import json
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

SCRIPTS = Path(sys.executable).parent
CLIENT = Path(__file__).with_name("client.py")
MAIN = {"snakemake": "snakemake.cli", "dvc": "dvc.cli"}

# With what they would import once they know what to do, and with what the jobs' server and the job of MLflow import.
IMPORTED_BEFORE = (
    *MAIN.values(), "snakemake.executors.dryrun", "snakemake.executors.local", "snakemake.storage", "dvc.cachemgr",
    "dvc.cli.parser", "dvc.data_cloud", "dvc.repo", "dvc.repo.artifacts", "dvc.repo.datasets", "dvc.repo.fetch",
    "dvc.repo.index", "dvc.repo.metrics", "dvc.repo.open_repo", "dvc.repo.params", "dvc.repo.plots", "dvc.repo.stage",
    "dvc.stage.cache", "dvc.utils.strictyaml", "dulwich.worktree", "email.headerregistry",
    "attr", "fsspec.implementations.memory", "networkx", "pandas", "pydantic", "pydantic.dataclasses",
    "pydantic.type_adapter", "rich.json", "ruamel.yaml", "scmrepo.git", "scmrepo.noscm", "numba", "scipy.optimize",
    "scipy.signal", "scipy.special",
    "sklearn.base", "sklearn.utils.validation", "mlflow.tracking", "mlflow.store.tracking.sqlalchemy_store",
    "alembic.command", "alembic.migration",
)  # fmt: skip

# What a worker says that starts no program.
ANOTHER_WORKER = bytes(8)

# Of a program's environment: the shell script that stands for Python.
SHIM = "PRIVSVM_TEST_PYTHON"

# What copies stand for: all programs, or, where those are killed, the servers of Snakemake's jobs alone.
KNOWN = {
    "bin": """"-m snakemake" | "-m dvc" | "-m reproduce"* | stages/*.py" "* | "-P "*/pipeline/start.py""",
    "servers": """"-P "*/pipeline/start.py""",
}
SCRIPT = """#!/bin/sh
# Python: in a copy of the tests' server where that knows the program.
case "$1 $2" in
    {known}) exec {python} -IS {client} {address} python "$@" ;;
esac
exec {python} "$@"
"""
# Snakemake puts the folder of its own Python first on the path of its jobs.
CUSTOMIZED = """import sys

sys.executable = {script!r}
"""
# Snakemake and DVC by their own names, as the Makefile calls them.
PROGRAM = """#!/bin/sh
exec {python} -IS {client} {address} {name} "$@"
"""


def can_run(command: Sequence[str]) -> bool:
    """Whether a command is one of the programs, or Python with the file of a script."""
    return command[0] in MAIN or (command[0] == sys.executable and command[1].endswith(".py"))


def arguments_of(command: list[str]) -> tuple[str, list[str], list[str]]:
    """A program's module or file, its arguments, and the folders that come first on its search path."""
    if command[0] in MAIN:
        return MAIN[command[0]], [str(SCRIPTS / command[0]), *command[1:]], [str(SCRIPTS)]
    if command[1] == "-m":
        return MAIN.get(command[2], command[2]), command[2:], [os.getcwd()]
    if command[1] == "-P":
        return command[2], command[2:], []
    return command[1], command[1:], [str(Path(command[1]).absolute().parent)]


def hides(package: str) -> str | None:
    """The folder of another package that comes before one of the programs by its name, if a test has put one there."""
    found = importlib.machinery.PathFinder.find_spec(package)
    assert found is not None
    folder = Path(str(found.origin)).parent
    return None if folder == Path(str(sys.modules[package].__file__)).parent else str(folder)


def become(command: list[str], folder: str, environment: dict[str, str], files: dict[int, int]) -> NoReturn:
    """Turn this process into one that was started by a command in a folder, with open files."""
    # Above all numbers that they are to have.
    moved = {number: os.dup(file) for number, file in files.items()}
    while any(file in moved for file in moved.values()):
        moved = {number: os.dup(file) for number, file in moved.items()}
    for number, file in moved.items():
        os.dup2(file, number)
        os.set_inheritable(number, True)
    os.closerange(max(moved) + 1, 1024)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # Read when it was imported.
    sys.modules["numba"].config.reload_config()
    tempfile.tempdir = None
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    name, sys.argv, first = arguments_of(command)
    sys.path[:0] = [*first, *(place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place)]
    if SHIM in environment:
        if command[1:2] == ["-P"]:
            # The jobs' server starts jobs for the same Python alone; the jobs themselves call programs.
            os.register_at_fork(after_in_child=lambda: setattr(sys, "executable", environment[SHIM]))
        else:
            sys.executable = environment[SHIM]
    code = 1
    try:
        if command[1:2] == ["-m"] and name not in sys.modules:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
            code = 0
        elif other := hides(name.partition(".")[0]) if name in sys.modules else name:
            runpy.run_path(other, run_name="__main__")
            code = 0
        else:
            code = sys.modules[name].main() or 0
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        else:
            code = error.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Server:
    """Forks once for each connection, and answers with the process's number and status; what nobody waits for ends.

    It serves all workers of a run, and ends with the last one.
    """

    def __init__(self, listener: socket.socket):
        self.listener = listener
        self.folder = Path(listener.getsockname()).parent
        self.watched = selectors.PollSelector()
        self.watched.register(listener, selectors.EVENT_READ, self.start)
        self.workers: set[Any] = set()
        # The worker that started it has the other end.
        self.serve_while_open(sys.stdin)

    def serve_while_open(self, worker: Any) -> None:
        def leave() -> None:
            self.watched.unregister(worker)
            self.workers.remove(worker)
            if not self.workers:
                shutil.rmtree(self.folder, ignore_errors=True)
                os._exit(0)

        self.workers.add(worker)
        self.watched.register(worker, selectors.EVENT_READ, leave)

    def serve(self) -> None:
        while True:
            for key, _ in self.watched.select()[:1]:
                key.data()

    def start(self) -> None:
        connection, _ = self.listener.accept()
        header, files, _, _ = socket.recv_fds(connection, 8, 64)
        if header == ANOTHER_WORKER:
            self.serve_while_open(connection)
            connection.sendall(header)
            return
        with connection.makefile("rb") as stream:
            header += stream.read(8 - len(header))
            order: dict[str, Any] = json.loads(stream.read(int.from_bytes(header, "big")))
        numbers = dict(zip(order.pop("numbers"), files, strict=True))
        leads = order.pop("leads")
        process = os.fork()
        if not process:
            if leads:
                os.setsid()
            become(**order, files=numbers)
        for file in files:
            os.close(file)
        self.watch(process, connection)
        connection.sendall(process.to_bytes(8, "big"))

    def watch(self, process: int, connection: socket.socket) -> None:
        ended = os.pidfd_open(process)

        def kill() -> None:
            self.watched.unregister(connection)
            os.kill(process, signal.SIGKILL)

        def answer() -> None:
            self.watched.unregister(ended)
            os.close(ended)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            if connection in self.watched.get_map():
                self.watched.unregister(connection)
            with contextlib.suppress(OSError):
                connection.sendall(code.to_bytes(8, "big", signed=True))
            connection.close()

        self.watched.register(ended, selectors.EVENT_READ, answer)
        self.watched.register(connection, selectors.EVENT_READ, kill)


def serve(number: int) -> None:
    """Import, and fork until the tests' process ends."""
    for name in IMPORTED_BEFORE:
        importlib.import_module(name)
    # As the jobs' server does.
    sys.modules["numba"].njit(lambda number: number)(0)
    # Snakemake looks through all installed packages for its plugins, each time that it starts.
    sys.modules["snakemake.cli"].get_argument_parser()
    Server(socket.socket(fileno=number)).serve()


def join(address: Path) -> socket.socket | None:
    """Ask a server that another worker started to serve this one too; None if there is none."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(address))
        connection.sendall(ANOTHER_WORKER)
        if connection.recv(len(ANOTHER_WORKER)) == ANOTHER_WORKER:
            return connection
    except OSError:
        pass
    connection.close()
    return None


def start(address: Path, shim: Path) -> subprocess.Popen:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DVC_STAGE")}
    scripts = {f"bin/{name}": PROGRAM.replace("{name}", name) for name in MAIN}
    scripts |= {f"{folder}/python": SCRIPT.replace("{known}", known) for folder, known in KNOWN.items()}
    places = {"python": sys.executable, "client": str(CLIENT), "address": str(address)}
    for name, text in scripts.items():
        script = shim.parents[1] / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(text.format(**{name: shlex.quote(place) for name, place in places.items()}))
        script.chmod(0o755)
    servers = shim.parents[1] / "servers"
    (servers / "sitecustomize.py").write_text(CUSTOMIZED.format(script=str(servers / "python")))
    with socket.socket(socket.AF_UNIX) as listener:
        address.unlink(missing_ok=True)
        listener.bind(str(address))
        listener.listen(64)
        command = [sys.executable, "-P", __file__, "--serve", str(listener.fileno())]
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])


@cache
def server() -> tuple[subprocess.Popen | socket.socket, str, str]:
    """Start the process to fork from, or join it where another worker has. Returns a tie to it, its socket, the script.

    Its imports take six seconds of processor time.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    folder = Path(tempfile.gettempdir(), f"programs{run}") if run else Path(tempfile.mkdtemp(prefix="programs"))
    folder.mkdir(mode=0o700, exist_ok=True)
    address, shim = folder / "socket", folder / "bin" / "python"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tie = join(address) or start(address, shim)
    return tie, str(address), str(shim)


def with_programs(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which programs find the server, and on their path the scripts that call it."""
    _, _, shim = server()
    path = f"{Path(shim).parent}{os.pathsep}{environment['PATH']}"
    return {**environment, SHIM: shim, "PATH": path}


def with_servers(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which programs start plainly, but for the servers that Snakemake's jobs are forked from."""
    _, _, shim = server()
    folder = str(Path(shim).parents[1] / "servers")
    return {**environment, **{name: f"{folder}{os.pathsep}{environment[name]}" for name in ("PATH", "PYTHONPATH")}}


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], stderr: int = subprocess.STDOUT
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `stderr` is a pipe, or the same as the output."""
    # Not above: as the server's script, this file belongs to no package.
    from tests.workflow.client import Call

    known = with_programs(environment)
    order = {"command": list(command), "folder": str(folder), "environment": known, "leads": True}
    with contextlib.ExitStack() as files:
        nothing = files.enter_context(open(os.devnull))
        # To append: two programs may write.
        output, errors = (files.enter_context(tempfile.TemporaryFile("a+")) for _ in range(2))
        other = output if stderr == subprocess.STDOUT else errors
        running = Call(server()[1], order, {0: nothing.fileno(), 1: output.fileno(), 2: other.fileno()})
        try:
            code = running.wait()
        except BaseException:
            # The test's time is over.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.process, signal.SIGKILL)
            raise
        texts = [file.read() for file in (output, errors) if file.seek(0) == 0]
        return subprocess.CompletedProcess(command, code, *texts)


def call(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command to its end; return its exit code and what it printed."""
    done = run(command, folder, environment)
    return done.returncode, done.stdout


if __name__ == "__main__":
    serve(int(sys.argv[2]))
