"""`kill -9` at random moments: the next run finishes, with the same bits and no duplicate MLflow run."""

import contextlib
import itertools
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from mlflow.tracking import MlflowClient

from privsvm.files import read_json
from tests.waits import wait_until

pytestmark = pytest.mark.workflow

# `.ci/run` has 20, and `PRIVSVM_KILLS=100 pytest tests/workflow/test_kills.py` more.
KILLS = int(os.environ.get("PRIVSVM_KILLS", "3"))
LEAST_OF_A_KIND = min(2, KILLS // 3)

# Text in the command line of each kind of victim.
VICTIMS = {"job": ("stages/",), "snakemake": ("bin/snakemake",), "dvc": ("bin/dvc", "-m dvc")}


def processes_in(folder: Path) -> dict[int, str]:
    """Return the command lines of all processes with this working folder."""
    found = (process.info for process in psutil.process_iter(["pid", "cwd", "cmdline"]))
    return {info["pid"]: " ".join(info["cmdline"] or []) for info in found if info["cwd"] == str(folder)}


def kill_in_turn(process: subprocess.Popen, folder: Path, victim: str, n_victims: int, rng: random.Random) -> int:
    """Kill processes of one kind as they start; return how many."""
    killed: set[int] = set()
    while len(killed) < n_victims:
        running = processes_in(folder).items()
        found = {pid for pid, line in running if any(text in line for text in VICTIMS[victim])}
        candidates = sorted(found - killed)
        if candidates:
            # Random moment: during imports, computation or writes.
            time.sleep(rng.choice([0.0, 0.2, 0.6, 1.2]))
            chosen = rng.choice(candidates)
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen, signal.SIGKILL)
                killed.add(chosen)
        elif process.poll() is not None:
            break
        else:
            time.sleep(0.02)
    return len(killed)


@pytest.mark.long
def test_killed_runs_recover(fresh, finished_once):
    """Kill jobs, Snakemake and DVC in turn, each with work to do."""
    rng = random.Random(20)
    folder = fresh.folder.resolve()
    killed: Counter[str] = Counter()
    for attempt in range(3 * KILLS):
        victim = list(VICTIMS)[attempt % 3]
        if attempt >= 2:
            # The first attempts start from nothing; later ones have two methods to do again.
            fresh.change("methods.pmsvm_wp.C", 0.05 + 0.001 * attempt)
            fresh.change("methods.svm.C", 1.0 + 0.001 * attempt)
        command = ["dvc", "repro"] if victim == "dvc" else ["snakemake", "--cores", "2"]
        process = fresh.start(*command)
        # Wait until so many jobs have ended; DVC starts Snakemake once a stage.
        n_ended = rng.randint(0, 2 if victim == "dvc" else 5)
        lines = (line for line in process.stdout if re.match(r" *\d+/\d+  |jobs to run: ", line))
        next(itertools.islice(lines, n_ended, None), None)
        # The run goes on without a job that is killed, and others follow.
        killed[victim] += kill_in_turn(process, folder, victim, min(4, KILLS // 3) if victim == "job" else 1, rng)
        process.communicate()
        # Nothing of a killed run may go on in the background.
        wait_until(lambda: not processes_in(folder), lambda: f"still there: {processes_in(folder)}")
        print(f"{attempt + 1}: {dict(killed)} killed")
        if sum(killed.values()) >= KILLS and min(killed[victim] for victim in VICTIMS) >= LEAST_OF_A_KIND:
            break
    assert sum(killed.values()) >= KILLS, killed
    assert min(killed[victim] for victim in VICTIMS) >= LEAST_OF_A_KIND, killed
    fresh.change("methods.pmsvm_wp.C", 0.05)
    fresh.change("methods.svm.C", 1.0)
    fresh.snakemake()
    assert fresh.hashes() == finished_once.hashes()
    output = fresh.call("dvc", "repro")
    assert "up to date" in output, output
    assert fresh.nothing_to_do()
    assert not [path for name in ("*.part*", "*.tmp", ".snakemake/start.*") for path in folder.rglob(name)]
    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiments = [item.experiment_id for item in client.search_experiments()]
    counted = Counter(run.data.tags["record_key"] for run in client.search_runs(experiments, max_results=1000))
    assert set(counted.values()) == {1}
    tracked = read_json(folder / "reports/tracking.json")
    assert {key for methods in tracked.values() for key in methods.values()} <= set(counted)


def test_half_written_files_of_dvc_are_replaced_and_those_of_jobs_removed(finished):
    left = [
        finished.folder / name
        for name in (
            "data/private/models/svm/.wine.0123abcd.part.npz", "reports/.index.0123abcd.part.html",
            ".cache/jobs/.job.abc_1234.part/job/.0.0123abcd.part",
        )
    ]  # fmt: skip
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    own = finished.folder / "data/own/.my.0123abcd.part.csv"
    own.write_text("whole")
    (finished.folder / ".dvc/tmp/rwlock").write_text("")
    lock = finished.folder / "dvc.lock"
    lock.write_text(lock.read_text()[:200] + "\n  broken: [")
    finished.change("report.reference_epsilon", 4.0)
    finished.snakemake()
    assert not [path for path in left if path.exists()]
    assert not list((finished.folder / ".cache/jobs").glob(".*"))
    assert own.read_text() == "whole"
    assert finished.nothing_to_do()
    assert "up to date" in finished.call("dvc", "repro")
