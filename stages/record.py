"""Tell DVC that all outputs of the workflow are current (`dvc commit`)."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm_bench.workflow.private_outputs import KINDS, README, make_output_folders
from privsvm_bench.workflow.stage import run

FOLDERS = [Path(f"data/{folder}{kind}") for folder in ("", "private/") for kind in KINDS]
FOLDERS += [Path("data/audits"), Path("data/private/reports")]
LOCK_FILE = Path("dvc.lock")
# Files that a killed DVC may leave half-written.
UNFINISHED = (LOCK_FILE, Path(".dvc/tmp/rwlock"))


def remove_other_outputs(versioned: Iterable[str]) -> list[str]:
    """Remove outputs of jobs that params.yaml no longer has.

    Equal parameters then give an equal dvc.lock.
    """
    versioned_paths = {Path(name) for name in versioned}
    stale = [
        path
        for folder in FOLDERS
        for path in folder.rglob("*")
        if path.is_file() and path not in versioned_paths and path.name != README
    ]
    for path in stale:
        path.unlink()
        while not any(path.parent.iterdir()) and path.parent not in FOLDERS:
            path = path.parent
            path.rmdir()
    return sorted(map(str, stale))


def commit() -> subprocess.CompletedProcess[str]:
    """Run `dvc commit`; --no-relink keeps files and their times."""
    command = [sys.executable, "-m", "dvc", "commit", "--force", "--no-relink"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main(arguments: list[str] | None = None) -> None:
    """Run `dvc commit` and write a marker with the hash of dvc.lock."""
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("files", nargs="+", metavar="FILE", help="versioned files; others in their folders are removed")
    parser.add_argument("--output", required=True, metavar="FILE", help="marker to write")
    options = parser.parse_args(arguments)

    make_output_folders()
    for name in remove_other_outputs(options.files):
        print(f"record: removed {name}: nothing in params.yaml uses it")
    result = commit()
    if result.returncode:
        for path in UNFINISHED:
            if path.exists():
                path.replace(f"{path}.broken")
        result = commit()
    if result.returncode:
        for path in UNFINISHED:
            if Path(f"{path}.broken").exists():
                os.replace(f"{path}.broken", path)
        lines = [line for line in f"{result.stdout}\n{result.stderr}".splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith("ERROR: ")), lines[-1] if lines else "no message")
        raise PrivSVMError(
            f"dvc commit: failed ({reason.removeprefix('ERROR: ')}), so dvc.lock lacks the versions of these outputs; "
            "results and reports are complete: run `dvc commit` to see its messages, then `make run`"
        )
    write_text(options.output, sha256_of_file(LOCK_FILE) + "\n")


if __name__ == "__main__":
    run(main, is_job=True)
