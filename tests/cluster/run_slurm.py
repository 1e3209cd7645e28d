"""Run the benchmark through a real Slurm and take that apart while it runs: `make test-slurm`.

The local run and the runs through Slurm are in two working copies of this repository as it is now, in a scratch folder
that is removed at the end. Every check prints one line; the first that fails ends the script with exit code 1. The
commands are those of docs/cluster.md, and `--default` writes its measured times.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import figures
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
    },
}

# As many jobs at a time here as the two nodes have processors.
HERE = ("snakemake", "--cores", "4")

# Small jobs through Slurm may take this many times as long as here.
MOST_TIMES = 4

_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page_block(word: str) -> str:
    """The one block of commands of docs/cluster.md that holds a word."""
    (block,) = [text for text in _BLOCK.findall(figures.PAGE.read_text(encoding="utf-8")) if word in text]
    return str(block)


def page_command(word: str) -> list[str]:
    """The words of the one command of such a block."""
    return shlex.split(page_block(word).replace("\\\n", " "))


# The default benchmark's, again and again, and how often.
SMALL_JOBS = ("--forcerun", "evaluate", "--until", "evaluate")
ROUNDS = 3

SUBMITTED = "has been submitted with SLURM jobid"

# What docs/cluster.md shows: a run, and what more a site may want.
SLURM = page_command("snakemake --workflow-profile slurm\n")
ACCOUNT = page_command("slurm_account=bench")[len(SLURM) :]
SINGLY = page_command("--group-components")[len(SLURM) :]


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
        if not workspace.folder.exists():
            workspace.folder.mkdir(parents=True)
            copy_repository(workspace, {} if default else SMALL)
    yield local, remote


def same_bits(local: Workspace, remote: Workspace, what: str) -> None:
    """Check that models, results and metrics are the same."""
    here, there = local.hashes(), remote.hashes()
    different = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    check(here and not different, f"{what}: {len(here)} files are the same, bit for bit{different[:3] or ''}")


def plainly(workspace: Workspace, *command: str) -> None:
    """Run a command as a user does. `Workspace.call` forks it from a process that may use BLAS with more threads."""
    process = workspace.start(*command)
    output, _ = process.communicate()
    if process.returncode:
        sys.exit(f"error: {' '.join(command)} ended with {process.returncode}:\n{output[-4000:]}")


def counts(text: str) -> dict[str, int]:
    """How many jobs and Slurm jobs a run had, by what Snakemake printed."""
    return {"jobs": len(set(re.findall(r"\n *jobid: (\d+)\n", text))), "slurm_jobs": text.count(SUBMITTED)}


def times(local: Workspace, remote: Workspace, default: bool) -> None:
    """Run here, then through Slurm."""
    if not default:
        # Compilation takes longer than all jobs of the small benchmark.
        local.take_compiled(Workspace(REPOSITORY))
        remote.take_compiled(local)
    begin = time.monotonic()
    plainly(local, *HERE)
    here = time.monotonic() - begin
    say(f"here: {here:.0f} s")
    before = compiled(remote)
    begin = time.monotonic()
    run = Run(remote)
    code = run.end(7200)
    there = time.monotonic() - begin
    check(code == 0, f"a run through Slurm ends with 0{'' if code == 0 else run.text()[-4000:]}")
    say(f"through Slurm, {run.text().count(SUBMITTED)} Slurm jobs: {there:.0f} s, {there / here:.1f} times as long")
    same_bits(local, remote, "through Slurm")
    check("Nothing to be done" in remote.call(*SLURM, "--dry-run"), "then there is nothing to do, through Slurm")
    check("Nothing to be done" in remote.call(*HERE, "-n"), "and here")
    if default:
        small_jobs(local, remote, {**counts(run.text()), "here": [here], "there": [there]})
    else:
        check(compiled(remote) == before, "jobs on nodes use what was compiled before")
    check(there <= MOST_TIMES * here, f"that is at most {MOST_TIMES} times as long")


def small_jobs(local: Workspace, remote: Workspace, whole: dict | None = None) -> None:
    """Time the small jobs of the default benchmark here and through Slurm in turns, and write docs/cluster.md."""
    sides: dict[str, list[float]] = {"here": [], "there": []}
    load = []
    for _ in range(ROUNDS):
        begin = time.monotonic()
        plainly(local, *HERE, *SMALL_JOBS)
        sides["here"].append(time.monotonic() - begin)
        load.append(os.getloadavg()[0])
        begin = time.monotonic()
        run = Run(remote, *SMALL_JOBS)
        code = run.end(3600)
        check(code == 0, f"small jobs through Slurm end with 0{'' if code == 0 else run.text()[-4000:]}")
        sides["there"].append(time.monotonic() - begin)
        load.append(os.getloadavg()[0])
        say(f"small jobs: {sides['here'][-1]:.0f} s here, {sides['there'][-1]:.0f} s through Slurm")
    same_bits(local, remote, "small jobs again")
    measured = {"processors": os.cpu_count(), "load": sum(load) / len(load), "small": {**counts(run.text()), **sides}}
    figures.write({**measured, **({"all": whole} if whole else {})})
    ratio = sum(sides["there"]) / sum(sides["here"])
    check(ratio <= MOST_TIMES, f"small jobs take {ratio:.1f} times as long through Slurm, at most {MOST_TIMES}")


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
    parser.add_argument("--small-jobs", action="store_true", help="time these anew in the folder of --scratch")
    parser.add_argument("--accounts", choices=("without", "with", "both"), default="both", help="slurmdbd")
    events = [*EVENTS, "a lost controller"]
    parser.add_argument("--events", nargs="*", choices=events, default=events, help="all without it")
    parser.add_argument("--scratch", type=Path, help="a folder that is kept, with what an earlier call left there")
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
                    if options.small_jobs:
                        small_jobs(local, remote)
                    elif kept is accounts[0]:
                        times(local, remote, options.default)
                    for what in EVENTS if kept is accounts[0] else ["30 s without controller"]:
                        if what in options.events:
                            disturbed(
                                slurm,
                                local,
                                remote,
                                what,
                                *(ACCOUNT if kept else SINGLY if what == "a cancelled job" else ()),
                            )
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
