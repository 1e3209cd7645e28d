"""Run a small benchmark through Slurm: ``python -m tests.cluster.run_slurm``.

It runs the commands of docs/cluster.md in the environment that this page prepares. With ``--start``, as root, it starts
a Slurm with two nodes on this machine, of Debian's packages slurmctld, slurmd, slurm-client and munge.
"""

import argparse
import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.blocks import blocks_run_by
from tests.waits import wait_until
from tests.workflow.conftest import SMALL, Workspace, copy_repository

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[17001-17002] CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=1:00:00 State=UP
"""
PLAIN, ACCOUNT, SINGLY = (shlex.split(block.text.replace("\\\n", " ")) for block in blocks_run_by(__file__))


def say(holds: object, text: str) -> None:
    """Print a text if its condition holds; otherwise exit with it."""
    if not holds:
        sys.exit(f"error: does not hold: {text}")
    print(f"ok: {text}", flush=True)


def answer(*command: str) -> str:
    """Return the output of a command; empty if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[None]:
    """Run a controller and two nodes, unless /etc/slurm is configured."""
    configuration = Path("/etc/slurm/slurm.conf")
    if os.geteuid() or configuration.exists():
        sys.exit(f"error: --start needs root, and no {configuration}, which another Slurm reads")
    folder.chmod(0o755)
    Path("/run/munge").mkdir(exist_ok=True)
    shutil.chown("/run/munge", "munge", "munge")
    started = [folder / "slurmctld.pid", folder / "slurmd.n1.pid", folder / "slurmd.n2.pid"]
    try:
        configuration.write_text(CONFIGURATION.format(host=socket.gethostname(), folder=folder))
        if not answer("munge", "-n"):
            subprocess.run(["runuser", "-u", "munge", "--", "munged"], check=True)
            started.append(Path("/run/munge/munged.pid"))
        for daemon in (["slurmctld"], ["slurmd", "-N", "n1"], ["slurmd", "-N", "n2"]):
            subprocess.run(daemon, check=True)
        wait_until(lambda: answer("sinfo", "-h", "-o", "%D %t").split() == ["2", "idle"], lambda: "two idle nodes")
        yield
    finally:
        subprocess.run(["scancel", "--user=root"], check=False)
        for pid in started:
            with contextlib.suppress(OSError):
                os.kill(int(pid.read_text()), 15)
        configuration.unlink()


def runs(local: Workspace, remote: Workspace) -> None:
    """Compare runs here, through Slurm, and with a cancelled job."""
    local.snakemake(cores=4)
    begin = time.monotonic()
    remote.call(*PLAIN)
    (log,) = (remote.folder / ".snakemake/log").glob("*.snakemake.log")
    jobs = len(re.findall("has been submitted with SLURM jobid", log.read_text()))
    say(local.hashes() == remote.hashes(), f"{jobs} Slurm jobs in {time.monotonic() - begin:.0f} s: the same bits")
    say("Nothing to be done" in remote.call(*PLAIN, "--dry-run"), "then there is nothing to do, through Slurm")
    say(remote.nothing_to_do(), "and here")
    say("Nothing to be done" in remote.call(*ACCOUNT, "--dry-run"), "with an account too")
    process = remote.start(*SINGLY, "--forcerun", "train")
    wait_until(lambda: answer("squeue", "-h", "-t", "running", "-o", "%i"), lambda: "a job of Slurm")
    subprocess.run(["scancel", *answer("squeue", "-h", "-t", "running", "-o", "%i").split()[:1]], check=True)
    process.communicate()
    say(process.returncode == 0 and local.hashes() == remote.hashes(), "a cancelled job is submitted again")


def main() -> None:
    """Run all checks in a folder that all nodes see."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", action="store_true", help="start a Slurm on this machine")
    parser.add_argument("--folder", type=Path, help="folder of the runs, which all nodes must see")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True)))
        (folder / "slurm").mkdir()
        if options.start:
            stack.enter_context(slurm(folder / "slurm"))
        local, remote = (Workspace(folder / name) for name in ("here", "there"))
        for workspace in (local, remote):
            copy_repository(workspace, SMALL)
        runs(local, remote)


if __name__ == "__main__":
    main()
