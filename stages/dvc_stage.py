"""Run one stage of dvc.yaml: DVC names it in the environment variable DVC_STAGE.

No command of dvc.yaml holds a word of params.yaml, so that none of it reaches a shell. Every stage depends on the stage
`inputs`, which checks params.yaml whenever it has changed, before DVC removes or runs anything by a name in it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# The library of this working copy, wherever the environment's own copy lies: its digests are compared.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from privsvm.data.catalogue import raw_files
from privsvm.errors import PrivSVMError
from privsvm.pipeline.own_files import close_folders, has_own_data, is_pushed
from privsvm.pipeline.params import Params, read_params
from privsvm.pipeline.stage import die_with_parent, run
from privsvm.pipeline.versions import link_outside, write_inputs, write_jobs


def snakemake(rules: list[str] | tuple[str, ...], files: list[str]) -> None:
    """Make some files by some rules. No shell reads this command."""
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--allowed-rules", *rules, "--", *files]
    done = subprocess.run(command, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def make_inputs(params: Params) -> None:
    """Write the files that the other stages depend on."""
    link_outside(params)
    write_inputs(params)


def download(params: Params, dataset: str) -> None:
    """Get the raw files of one dataset."""
    files = raw_files(dataset, params.dataset_settings(dataset))
    snakemake(["download"], [f"data/raw/{dataset}/{name}" for name in files])


def prepare(params: Params, dataset: str) -> None:
    """Prepare one dataset."""
    snakemake(["prepare"], [f"data/prepared/{dataset}.npz"])


def condense(params: Params, dataset: str) -> None:
    """Condense the training rows of one dataset."""
    snakemake(["condense"], [f"data/condensed/{params.condense}/{dataset}.npz"])


def train(params: Params, method: str) -> None:
    """Run all jobs of one method."""
    results = [f"data/results/{method}/{dataset}.json" for name, dataset in params.train_jobs() if name == method]
    snakemake(["train", "evaluate"], results)


def audit(params: Params) -> None:
    """Audit every private method."""
    # DVC wants the folder also where there is nothing to audit.
    Path("data/audits").mkdir(parents=True, exist_ok=True)
    files = [f"data/audits/{method}.json" for method in params.audited_methods()]
    if files:
        snakemake(["audit"], files)


def report(params: Params) -> None:
    """Write the report and log to MLflow; nothing is left for Snakemake's rule `record` to do.

    Unless pushes were held back for data that are gone from params.yaml: that rule looks at all outputs, and ends it.
    """
    snakemake(["track", "report"], ["reports/index.html", "reports/tracking.json"])
    if is_pushed() or has_own_data(params):
        Path("logs").mkdir(exist_ok=True)
        Path("logs/recorded").touch()


STAGES: dict[str, Callable[[Params], None]] = {
    "inputs": make_inputs,
    "jobs": write_jobs,
    "audit": audit,
    "report": report,
}
STAGES_OF_ONE: dict[str, tuple[str, Callable[[Params, str], None]]] = {
    "download": ("datasets", download),
    "prepare": ("datasets", prepare),
    "condense": ("datasets", condense),
    "train": ("methods", train),
}


def main(arguments: list[str] | None = None) -> None:
    """Check params.yaml and run the stage that DVC names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", action="store_true", help="only renew the links in data/outside, which DVC watches")
    options = parser.parse_args(arguments)
    die_with_parent()
    params = read_params()
    close_folders(params)
    if options.links:
        link_outside(params)
        return
    # Outside its own folder DVC names the dvc.yaml of the stage too.
    group, _, name = os.environ.get("DVC_STAGE", "").rpartition(":")[2].partition("@")
    if group in STAGES and not name:
        STAGES[group](params)
    elif group in STAGES_OF_ONE and name in getattr(params, STAGES_OF_ONE[group][0]):
        STAGES_OF_ONE[group][1](params, name)
    else:
        raise PrivSVMError(f"DVC_STAGE: {os.environ.get('DVC_STAGE')!r} is no stage of dvc.yaml; run `dvc repro`")


if __name__ == "__main__":
    run(main)
