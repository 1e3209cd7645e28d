"""`kill -9` at random moments: the next run finishes, with the same bits and no duplicate MLflow run."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from privsvm.files import read_json

pytestmark = pytest.mark.workflow

KILLS = 21

# What stands in the command line of each kind of victim.
VICTIMS = {"job": ("stages/",), "snakemake": ("bin/snakemake",), "dvc": ("bin/dvc", "-m dvc")}


def processes_in(folder: Path) -> dict[int, str]:
    """Command lines of all processes whose working folder is the given one."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if Path(os.readlink(entry / "cwd")) == folder:
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def runs(folder: Path) -> Counter:
    """How many runs MLflow shows for each record."""
    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiments = [item.experiment_id for item in client.search_experiments()]
    return Counter(run.data.tags["record_key"] for run in client.search_runs(experiments, max_results=1000))


def find(folder: Path, victim: str, patience: float) -> list[int]:
    """Processes of one kind; waits a little for the first to appear."""
    deadline = time.monotonic() + patience
    while True:
        found = [pid for pid, line in processes_in(folder).items() if any(part in line for part in VICTIMS[victim])]
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def test_killed_runs_recover(fresh, finished_once):
    """Victims in turn: a job, Snakemake, DVC; at moments spread over the whole run. Every attempt has work to do."""
    rng = random.Random(20)
    folder = fresh.folder.resolve()
    killed: Counter[str] = Counter()
    for attempt in range(3 * KILLS):
        victim = list(VICTIMS)[attempt % 3]
        if attempt >= 6:
            # The first attempts start from nothing; later ones have one method to do again.
            fresh.change("methods.pmsvm_wp.C", 0.05 + 0.001 * attempt)
        process = fresh.start(*(["dvc", "repro"] if victim == "dvc" else ["snakemake", "--cores", "2"]))
        time.sleep(rng.uniform(0.2, 6.0))
        candidates = find(folder, victim, patience=3.0)
        if candidates and kill(rng.choice(candidates)):
            killed[victim] += 1
        process.communicate(timeout=1200)
        # Nothing of a killed run may go on in the background.
        deadline = time.monotonic() + 300
        while processes_in(folder) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not processes_in(folder)
        if sum(killed.values()) >= KILLS:
            break
    assert sum(killed.values()) >= KILLS, killed
    assert set(killed) == set(VICTIMS)
    fresh.change("methods.pmsvm_wp.C", 0.05)
    fresh.snakemake()
    assert fresh.hashes() == finished_once.hashes()
    assert "up to date" in fresh.call("dvc", "repro")
    assert fresh.nothing_to_do()
    assert not list((folder / "data").rglob("*.part*"))
    counted = runs(folder)
    assert set(counted.values()) == {1}
    tracked = read_json(folder / "reports/tracking.json")
    assert {key for methods in tracked.values() for key in methods.values()} <= set(counted)


def test_files_that_a_killed_dvc_left_half_written(finished):
    (finished.folder / ".dvc/tmp/rwlock").write_text("")
    lock = finished.folder / "dvc.lock"
    lock.write_text(lock.read_text()[:200] + "\n  broken: [")
    finished.change("methods.pmsvm_wp.C", 0.07)
    finished.snakemake()
    assert finished.nothing_to_do()
    assert "up to date" in finished.call("dvc", "repro")


def test_a_second_snakemake_does_not_take_a_living_ones_locks(finished):
    finished.change("methods.pmsvm_wp.C", 0.5)
    first = finished.start("snakemake", "--cores", "1")
    time.sleep(4)
    output = finished.snakemake(check=False)
    try:
        assert finished.code != 0
        assert "cannot be locked" in output or "Lock" in output
    finally:
        first.communicate(timeout=200)
    assert first.returncode == 0
