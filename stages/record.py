"""Tell DVC that all outputs of the pipeline are current (`dvc commit`)."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm.pipeline.own_files import has_own_data, set_push
from privsvm.pipeline.params import read_params
from privsvm.pipeline.stage import die_with_parent, run
from privsvm.pipeline.versions import link_outside, write_inputs, write_jobs
from privsvm.plain_yaml import load_lock

LOCK_FILE = Path("dvc.lock")
REGISTRY = Path(".dvc/tmp/rwlock")


def set_broken_lock_file_aside() -> None:
    """Move away a dvc.lock that a killed DVC left half-written; `dvc commit` then writes a new one."""
    if not LOCK_FILE.exists():
        return
    try:
        if load_lock(LOCK_FILE.read_text(encoding="utf-8"), str(LOCK_FILE)):
            return
    except (PrivSVMError, UnicodeDecodeError):
        pass
    LOCK_FILE.replace("dvc.lock.broken")
    print("record: dvc.lock could not be read; moved to dvc.lock.broken and written again")


def remove_broken_registry(registry: Path = REGISTRY) -> None:
    """Remove DVC's list of who reads and writes what, where a killed DVC left it half-written.

    DVC cannot start with it. Another DVC that is alive may be writing it right now, so it is read more than once.
    """
    for _ in range(3):
        try:
            json.loads(registry.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except (ValueError, RecursionError):
            time.sleep(0.5)
        else:
            return
    registry.unlink(missing_ok=True)
    print(f"record: {registry} could not be read and was removed; DVC writes a new one")


def remove_other_outputs(
    datasets: list[str], condense: str, audited: list[str], data: Path = Path("data")
) -> list[str]:
    """Remove the outputs for datasets, condensations and audits that params.yaml no longer names.

    DVC's cache keeps recorded versions. Equal parameters then give an equal dvc.lock, and `dvc push` publishes nothing
    that was removed from params.yaml.
    """
    removed = [folder for folder in data.glob("condensed/*") if folder.name != condense]
    removed += [file for file in data.glob("audits/*") if file.name.removesuffix(".json") not in audited]
    folders = [data / "prepared", data / "raw"]
    folders += [folder for name in ("condensed", "models", "results", "timings") for folder in data.glob(f"{name}/*")]
    removed += [
        entry
        for folder in folders
        if folder.is_dir() and folder not in removed
        for entry in folder.iterdir()
        # A dataset's name may hold dots: wine.scale.npz, wine.scale.train.json.
        if not any(entry.name == name or entry.name.startswith(f"{name}.") for name in datasets)
    ]
    for entry in removed:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    return sorted(entry.as_posix() for entry in removed)


def reason_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return in one line why a command of DVC failed: its message, or how it ended."""
    lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if errors or lines:
        # What follows an error are hints.
        return (errors or lines[-1:])[0]
    if done.returncode < 0:
        return f"ended by {signal.Signals(-done.returncode).name}, without a message"
    return f"exit code {done.returncode}, without a message"


def run_dvc(command: str, *arguments: str) -> str:
    """Run a command of DVC; return what it printed, or raise an error that says why it failed."""
    done = subprocess.run(
        [sys.executable, "-m", "dvc", command, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PrivSVMError(
            f"dvc {command}: failed ({reason_of(done)}), so dvc.lock lacks the versions of these outputs; results and "
            f"reports are complete: run `dvc {command}` to see its messages, then `make run`"
        )
    return done.stdout


def main(arguments: list[str] | None = None) -> None:
    """Run `dvc commit` and write a marker with the hash of dvc.lock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, metavar="FILE", help="marker to write")
    options = parser.parse_args(arguments)
    die_with_parent()

    set_broken_lock_file_aside()
    remove_broken_registry()
    params = read_params()
    # DVC wants the folder also where there is nothing to audit.
    Path("data/audits").mkdir(parents=True, exist_ok=True)
    for name in remove_other_outputs(list(params.datasets), params.condense, params.audited_methods()):
        print(f"record: removed {name}: nothing in params.yaml uses it")
    link_outside(params)
    write_inputs(params)
    write_jobs(params)
    # All stages in one call: DVC reads and writes dvc.lock once. Without --no-relink it would replace outputs by copies
    # from its cache, with new times. Not --quiet, which hides errors too.
    run_dvc("commit", "--force", "--no-relink")
    # Now, not before: until here dvc.lock may have named outputs from data that params.yaml no longer has.
    if not has_own_data(params) and set_push(True):
        print("record: no output is made from data of your own any more; `dvc push` sends them again (dvc.yaml)")
    write_text(options.output, sha256_of_file(LOCK_FILE) + "\n")


if __name__ == "__main__":
    run(main)
