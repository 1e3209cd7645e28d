"""Run the benchmark through a real Slurm and take that apart while it runs: `make test-slurm`.

The local run and the runs through Slurm are in two working copies of this repository as it is now, in a scratch folder
that is removed at the end. Every check prints one line; the first that fails ends the script with exit code 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import slurm_daemons as daemons
from tests.cluster.slurm_daemons import Slurm, answer, wait_for
from tests.workflow.conftest import REPOSITORY, Workspace, copy_repository

# One rule of each group.
SMALL = {
    "datasets": {"wine": {"scaling": "bounds"}},
    "protocol": {"kind": "holdout", "repeats": 2, "test_size": 0.25, "stratified": True},
    "privacy": {"epsilons": [0.5, 4.0], "delta": 1e-5, "neighbours": "replace_one", "repeats": 2},
    "audit": {"draws": 400, "epsilons": [1.0]},
    "methods": {
        "svm": {"implementation": "svm", "kernel": "linear", "C": 1.0},
        "majority": {"implementation": "majority"},
        "pmsvm_wp": {"implementation": "pmsvm_wp", "C": 0.05, "data_norm": 1.0},
        "one_norm_svm": {"implementation": "one_norm_svm", "C": 1.0},
        "ppsvm_linear": {"implementation": "ppsvm", "entities": 2, "C": 1.0},
    },
}

# Small jobs through Slurm may take this many times as long as here.
MOST_TIMES = 4

SLURM = ("snakemake", "--workflow-profile", "slurm")

ACCOUNT = (
    "--default-resources", "runtime=2*attempt", "mem_mb=1000*attempt", "slurm_account=bench", "slurm_partition=main"
)  # fmt: skip


def say(text: str) -> None:
    """Print a line with the time since the start."""
    print(f"[{time.monotonic() - STARTED:5.0f} s] {text}", flush=True)


def check(holds: object, text: str) -> None:
    """Print what holds; end with what does not."""
    if not holds:
        sys.exit(f"error: does not hold: {text}")
    say(f"ok: {text}")


class Run:
    """A Snakemake that runs in the background, and what it prints.

    Parameters
    ----------
    workspace : Workspace
        Where.
    *arguments : str
        For Snakemake, after the profile.
    **environment : str
        Further variables.
    """

    def __init__(self, workspace: Workspace, *arguments: str, **environment: str):
        self.log = workspace.folder.parent / "run.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*SLURM, *arguments], cwd=workspace.folder, env=workspace.environment(**environment),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def wait_for_job(self) -> tuple[str, str]:
        """The number and the node of a Slurm job that runs."""
        found: list[str] = []

        def look() -> bool:
            if self.process.poll() is not None:
                sys.exit(f"error: Snakemake ended before a job ran:\n{self.log.read_text()[-4000:]}")
            found[:] = answer("squeue", "-h", "-t", "running", "-o", "%i %N").split()
            return bool(found)

        wait_for("a job of Slurm", look, 300)
        return found[0], found[1]

    def end(self, seconds: float = 1200) -> int:
        """Wait until Snakemake ends; its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit(f"error: Snakemake still waits after {seconds:g} s:\n{self.log.read_text()[-4000:]}")

    def text(self) -> str:
        """What Snakemake has printed."""
        return self.log.read_text()


def compiled(workspace: Workspace) -> set[str]:
    """Files of compiled functions."""
    cache = workspace.folder / ".cache/numba"
    return {path.relative_to(cache).as_posix() for path in cache.rglob("*.nb[ic]")}


@contextmanager
def benchmark(scratch: Path, default: bool) -> Iterator[tuple[Workspace, Workspace]]:
    """Two working copies, for the runs here and through Slurm."""
    local, remote = (Workspace(scratch / name / "privsvm") for name in ("here", "slurm"))
    for workspace in (local, remote):
        workspace.folder.mkdir(parents=True)
        copy_repository(workspace, {} if default else SMALL)
    yield local, remote


def same_bits(local: Workspace, remote: Workspace, what: str) -> None:
    """Check that models, results and metrics are the same."""
    here, there = local.hashes(), remote.hashes()
    different = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    check(here and not different, f"{what}: {len(here)} files are the same, bit for bit{different[:3] or ''}")


def times(local: Workspace, remote: Workspace, default: bool) -> None:
    """Run here, then through Slurm."""
    if not default:
        # Compilation takes longer than all jobs of the small benchmark.
        local.take_compiled(Workspace(REPOSITORY))
        local.call("snakemake", "--cores", "2", "--", "compile")
        remote.take_compiled(local)
    begin = time.monotonic()
    local.call("snakemake", "--cores", "2")
    here = time.monotonic() - begin
    say(f"here, on 2 cores: {here:.0f} s")
    before = compiled(remote)
    begin = time.monotonic()
    run = Run(remote)
    code = run.end()
    there = time.monotonic() - begin
    check(code == 0, f"a run through Slurm ends with 0{'' if code == 0 else run.text()[-4000:]}")
    jobs = run.text().count("has been submitted with SLURM jobid")
    say(f"through Slurm, {jobs} Slurm jobs: {there:.0f} s, {there / here:.1f} times as long as here")
    same_bits(local, remote, "through Slurm")
    check("Nothing to be done" in remote.call(*SLURM, "--dry-run"), "then there is nothing to do, through Slurm")
    check("Nothing to be done" in remote.call("snakemake", "-n", "--cores", "2"), "and here")
    check(there <= MOST_TIMES * here, f"that is at most {MOST_TIMES} times as long")
    if not default:
        check(compiled(remote) == before, "jobs on nodes use what was compiled before")


def disturbed(slurm: Slurm, local: Workspace, remote: Workspace, what: str, *arguments: str) -> None:
    """Train all models again, and do something to Slurm when a job runs."""
    slurm.mend()
    run = Run(remote, *arguments, "--forcerun", "train")
    EVENTS[what](slurm, run)
    begin = time.monotonic()
    code = run.end()
    say(f"{what}: {time.monotonic() - begin:.0f} s later the run has ended")
    check(code == 0, f"{what}: the run ends with 0{'' if code == 0 else run.text()[-4000:]}")
    same_bits(local, remote, what)


def cancel(slurm: Slurm, run: Run) -> None:
    """Cancel a job."""
    job, _ = run.wait_for_job()
    subprocess.run(["scancel", job], check=True)


def silence(slurm: Slurm, run: Run) -> None:
    """Crash the controller, which may forget a job that it has just started, and start it again after 30 s."""
    run.wait_for_job()
    slurm.kill_controller()
    time.sleep(30)
    slurm.start_controller()


def crash(slurm: Slurm, run: Run) -> None:
    """Crash the node that a job runs on."""
    _, node = run.wait_for_job()
    slurm.crash_node(node)


EVENTS = {"a cancelled job": cancel, "30 s without controller": silence, "a crashed node": crash}


def lost_controller(slurm: Slurm, local: Workspace, remote: Workspace) -> None:
    """The controller does not come back."""
    run = Run(remote, "--forcerun", "train", PRIVSVM_SLURM_PATIENCE="20")
    run.wait_for_job()
    slurm.kill_controller()
    begin = time.monotonic()
    code = run.end(300)
    lines = [line for line in run.text().splitlines() if line.startswith("error: Slurm: the controller")]
    check(code != 0 and lines, f"a lost controller: exit code {code} after {time.monotonic() - begin:.0f} s")
    say(lines[-1])
    slurm.start_controller()
    wait_for("the controller", lambda: answer("squeue", "-h", "-o", "%i|"), 60)
    subprocess.run(["scancel", "--user=root"], check=True)
    wait_for("the end of all jobs", lambda: not answer("squeue", "-h", "-t", "running,completing", "-o", "%i"), 60)
    code = Run(remote).end()
    check(code == 0, "the same command again ends with 0")
    same_bits(local, remote, "after a lost controller")


def main() -> None:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--default", action="store_true", help="the default benchmark, for its time")
    parser.add_argument("--accounts", choices=("without", "with", "both"), default="both", help="slurmdbd")
    events = [*EVENTS, "a lost controller"]
    parser.add_argument("--events", nargs="*", choices=events, default=events, help="all without it")
    parser.add_argument("--scratch", type=Path, help="a new folder that is kept")
    options = parser.parse_args()
    accounts = {"without": [False], "with": [True], "both": [False, True]}[options.accounts]
    daemons.refuse_without(accounts=True in accounts)
    scratch = options.scratch or Path(os.environ.get(daemons.INSIDE) or tempfile.mkdtemp(prefix="slurm-"))
    scratch.mkdir(exist_ok=True, parents=True)
    daemons.enter(scratch.resolve())
    try:
        with benchmark(scratch, options.default) as (local, remote):
            for kept in accounts:
                say(f"Slurm {'with' if kept else 'without'} accounts")
                with Slurm(scratch, kept) as slurm:
                    if kept is accounts[0]:
                        times(local, remote, options.default)
                    for what in EVENTS if kept is accounts[0] else ["30 s without controller"]:
                        if what in options.events:
                            disturbed(slurm, local, remote, what, *(ACCOUNT if kept else ()))
                    if "a lost controller" in options.events:
                        slurm.mend()
                        lost_controller(slurm, local, remote)
    finally:
        if not options.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    say("all checks hold")


STARTED = time.monotonic()

if __name__ == "__main__":
    main()
