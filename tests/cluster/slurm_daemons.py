"""Slurm on this machine: one controller, two nodes, accounts if wanted, all in one scratch folder.

The job steps of Snakemake's plugin read /etc/slurm/slurm.conf and nothing else. `enter` therefore gives this process,
and what it starts, a view of the file system of its own, in which /etc/slurm and a few other folders lie in the scratch
folder. Nothing outside of it is written, and a Slurm that the machine may have is not seen.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
ACCOUNT_PACKAGES = ("slurmdbd", "mariadb-server")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged", "unshare", "mount", "runuser")
ACCOUNT_PROGRAMS = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb", "mariadb-install-db")
NODES = ("n1", "n2")

INSIDE = "PRIVSVM_TEST_SLURM_SCRATCH"

_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
AuthType=auth/munge
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool.%n
SlurmctldPidFile={scratch}/slurmctld.pid
SlurmdPidFile={scratch}/slurmd.%n.pid
SlurmctldLogFile={scratch}/slurmctld.log
SlurmdLogFile={scratch}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdTimeout=15
EnforcePartLimits=ALL
SlurmdParameters=config_overrides
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[0]}-{ports[1]}] CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=3:00:00 State=UP
"""
_ACCOUNTS = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={accounts_port}
"""
_DATABASE = """\
AuthType=auth/munge
DbdHost=localhost
DbdPort={accounts_port}
SlurmUser=root
LogFile={scratch}/slurmdbd.log
PidFile={scratch}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""


def missing(programs: tuple[str, ...]) -> list[str]:
    """Programs that are not installed."""
    return [name for name in programs if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]


def refuse_without(accounts: bool = True) -> None:
    """End with the names of Debian's packages where programs are missing, and where this is not root."""
    names = missing(PROGRAMS + (ACCOUNT_PROGRAMS if accounts else ()))
    packages = PACKAGES + (ACCOUNT_PACKAGES if accounts else ())
    if names:
        sys.exit(
            f"error: {', '.join(names)}: not installed; on Debian run `apt-get install --no-install-recommends "
            f"{' '.join(packages)}`"
        )
    if os.geteuid():
        sys.exit("error: the daemons of Slurm need root; run `make test-slurm` as root, in a container for example")


def enter(scratch: Path, module: str = "tests.cluster.run_slurm") -> None:
    """Start a script again in a view of the file system where system folders of Slurm lie in the scratch folder."""
    if os.environ.get(INSIDE) == str(scratch):
        for name in ("etc/slurm", "etc/munge", "run/munge", "run/mysqld"):
            inner = scratch / name
            inner.mkdir(parents=True, exist_ok=True)
            Path("/", name).mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", inner, Path("/", name)], check=True)
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        return
    environment = {**os.environ, INSIDE: str(scratch)}
    # With processes of its own too: whatever ends this script, no daemon stays.
    view = ["--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc", "--kill-child"]
    command = [sys.executable, "-P", "-m", module, *sys.argv[1:]]
    os.execvpe("unshare", ["unshare", *view, *command], environment)


def wait_for(what: str, is_there: Callable[[], object], seconds: float = 120) -> None:
    """Wait until something holds, or end with what it was."""
    until = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > until:
            sys.exit(f"error: {what}: not after {seconds:g} s")
        time.sleep(0.3)


def answer(*command: str) -> str:
    """What a command prints; nothing if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def _free_ports(number: int) -> list[int]:
    """Neighbouring ports that nobody listens on."""
    for first in range(17000, 30000, 10):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + number):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return list(range(first, first + number))
    raise OSError("no free ports")


class Slurm:
    """Daemons of Slurm, by their process ids.

    Parameters
    ----------
    scratch : pathlib.Path
        Where all of their files are.
    accounts : bool
        Whether slurmdbd keeps accounts in a MariaDB of its own.
    """

    def __init__(self, scratch: Path, accounts: bool):
        self.scratch, self.accounts = scratch, accounts
        self.ports = _free_ports(4)
        self.daemons: list[Path] = []

    def __enter__(self) -> Slurm:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        key = Path("/etc/munge/munge.key")
        if not key.exists():
            key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        for folder in (key, "/etc/munge", "/run/munge"):
            shutil.chown(folder, "munge", "munge")
        # The other users' way to what is theirs.
        self.scratch.chmod(0o755)
        Path("/run/munge").chmod(0o755)
        files = [f"--{name}-file=/run/munge/{name}" for name in ("pid", "log", "seed")]
        self._daemon("/run/munge/pid", "runuser", "-u", "munge", "--", "munged", "--force", *files)
        names = {
            "host": socket.gethostname(), "scratch": self.scratch, "controller_port": self.ports[0],
            "accounts_port": self.ports[1], "ports": self.ports[2:], "password": secrets.token_hex(),
        }  # fmt: skip
        text = _CONFIGURATION + (_ACCOUNTS if self.accounts else "")
        Path("/etc/slurm/slurm.conf").write_text(text.format(**names))
        for folder in ("state", *(f"spool.{node}" for node in NODES)):
            shutil.rmtree(self.scratch / folder, ignore_errors=True)
            (self.scratch / folder).mkdir()
        if self.accounts:
            self._start_accounts(names)
        self.start_controller()
        self.mend()

    def _start_accounts(self, names: dict) -> None:
        folder = self.scratch / "database"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for owned in (folder, "/run/mysqld"):
            shutil.chown(owned, "mysql", "mysql")
        self._run("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={folder}", "--skip-test-db")
        with open(self.scratch / "mariadbd.log", "a") as log:
            subprocess.Popen(
                ["mariadbd", "--no-defaults", "--user=mysql", f"--datadir={folder}", "--skip-networking",
                 "--socket=/run/mysqld/mysqld.sock", "--pid-file=/run/mysqld/pid"],
                stdout=log, stderr=log,
            )  # fmt: skip
        self.daemons.append(Path("/run/mysqld/pid"))
        wait_for("MariaDB", lambda: answer("mariadb", "--no-defaults", "-e", "select 1"))
        self._run(
            "mariadb", "--no-defaults", "-e",
            f"create database slurm_acct_db; create user slurm@localhost identified by '{names['password']}'; "
            "grant all on slurm_acct_db.* to slurm@localhost",
        )  # fmt: skip
        file = Path("/etc/slurm/slurmdbd.conf")
        file.touch(mode=0o600)
        file.write_text(_DATABASE.format(**names))
        self._daemon(self.scratch / "slurmdbd.pid", "slurmdbd")
        wait_for("slurmdbd", lambda: answer("sacctmgr", "-i", "add", "cluster", "test"))
        self._run("sacctmgr", "-i", "add", "account", "bench")
        self._run("sacctmgr", "-i", "add", "user", "root", "account=bench")

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"error: {command[0]} ended with {done.returncode}: {done.stdout} {done.stderr}")

    def _daemon(self, pid: str | Path, *command: str) -> None:
        """Start a daemon, which goes into the background by itself."""
        pid = Path(pid)
        pid.unlink(missing_ok=True)
        self._run(*command)
        if pid not in self.daemons:
            self.daemons.append(pid)
        wait_for(f"{pid.name} of {command[0]}", pid.exists)

    def start_controller(self) -> None:
        """Start slurmctld, with the state that the last one saved."""
        self._daemon(self.scratch / "slurmctld.pid", "slurmctld")

    def start_node(self, node: str) -> None:
        """Start a node's slurmd."""
        self._daemon(self.scratch / f"slurmd.{node}.pid", "slurmd", "-N", node)

    def mend(self) -> None:
        """Start the nodes that are down, and take back those that the controller does not trust any more."""
        for node in NODES:
            if _has_ended(self._pid(self.scratch / f"slurmd.{node}.pid")):
                self.start_node(node)

        def are_idle() -> bool:
            for line in answer("sinfo", "-h", "-N", "-o", "%N %t").splitlines():
                node, state = line.split()
                if state.rstrip("*") in ("down", "drain", "drng"):
                    subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False)
            return answer("sinfo", "-h", "-o", "%D %t").split() == ["2", "idle"]

        wait_for("two idle nodes", are_idle)

    @staticmethod
    def _pid(file: Path) -> int:
        """The process of a pid file; 0 without one."""
        try:
            return int(file.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def kill_controller(self) -> None:
        """Kill slurmctld as a crash would."""
        self._end(self.scratch / "slurmctld.pid", signal.SIGKILL)

    def crash_node(self, node: str) -> None:
        """Kill a node's slurmd and all that it runs."""
        spool = str(self.scratch / f"spool.{node}")
        steps = [int(line.split()[0]) for line in answer("ps", "-eo", "pid=,args=").splitlines()
                 if "slurmstepd" in line and self._is_of(int(line.split()[0]), spool)]  # fmt: skip
        self._end(self.scratch / f"slurmd.{node}.pid", signal.SIGKILL)
        for step in steps:
            for process in [step, *_descendants(step)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    @staticmethod
    def _is_of(step: int, spool: str) -> bool:
        """Whether a slurmstepd belongs to the node with a spool folder, whose socket or files it has open."""
        try:
            found = [os.readlink(entry) for entry in Path(f"/proc/{step}/fd").iterdir()]
            found.append(os.readlink(f"/proc/{step}/cwd"))
        except OSError:
            return False
        if any(name.startswith(spool) for name in found):
            return True
        return any(name.endswith(f"slurmd.{Path(spool).suffix[1:]}.log") for name in found)

    @staticmethod
    def _end(file: Path, number: int) -> None:
        """Send a signal to the process of a pid file, and wait until it has gone."""
        pid = Slurm._pid(file)
        if not pid or _has_ended(pid):
            return
        os.kill(pid, number)
        wait_for(f"end of {file.stem}", lambda: _has_ended(pid), 60)

    def stop(self) -> None:
        """Cancel what runs, then stop the daemons, the last one first."""
        subprocess.run(["scancel", "--user=root"], capture_output=True, check=False, timeout=60)
        for file in reversed(self.daemons):
            self._end(file, signal.SIGTERM)
        self.daemons.clear()


def _has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits for its parent to take note."""
    if not pid:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def _descendants(process: int) -> list[int]:
    """Processes that a process has started, and those that they have."""
    parents: dict[int, list[int]] = {}
    for line in answer("ps", "-eo", "pid=,ppid=").splitlines():
        pid, parent = map(int, line.split())
        parents.setdefault(parent, []).append(pid)
    found: list[int] = []
    ahead = [process]
    while ahead:
        children = parents.get(ahead.pop(), [])
        found += children
        ahead += children
    return found


if __name__ == "__main__":
    refuse_without()
