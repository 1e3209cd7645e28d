# What all rules share: checked parameters, the folder of each dataset, the jobs' environment.
import os
import sys
from pathlib import Path

from snakemake.logging import logger

# The folder of this working copy. The files of a run lie in the working folder, which is the same one for a plain
# `snakemake`, and that of another workflow which uses this one as a module (config/README.md).
HOME = Path(str(workflow.current_basedir)).parent
# The library of this working copy, wherever the environment's own copy lies.
sys.path.insert(0, str(HOME / "lib"))

from privsvm_bench.workflow.session import (
    argument_file,
    check_writable,
    collect_errors,
    link_copy,
    lock_folder,
    remove_parts,
    scripts_folder,
    set_addresses,
    set_environment,
)

link_copy()
set_environment(HOME)

from privsvm.digests import canonical_json, sha256_of_file
from privsvm.errors import PrivSVMError, printable
from privsvm.files import write_text
from privsvm_bench.workflow.graph import (
    audit_parameters,
    condense_parameters,
    download_parameters,
    method_code,
    own_content,
    prepare_parameters,
    report_parameters,
    rule_code,
    track_parameters,
    train_parameters,
)
from privsvm_bench.jobs.params import read_params
from privsvm_bench.workflow.private_outputs import (
    KINDS,
    close_folders,
    make_output_folders,
    private_folder,
    released_file,
    take_release,
)
from privsvm_bench.workflow.stage import die_with_parent

IN_DVC = "DVC_STAGE" in os.environ
if IN_DVC:
    # A killed `dvc repro` must not leave behind a Snakemake that still writes into its folders.
    die_with_parent()
    make_output_folders()

# What `snakemake release` asks for is no choice of the benchmark.
CHANGES = dict(config)
RELEASE = take_release(CHANGES)

try:
    STAGES = scripts_folder(HOME)
    # Not Snakemake's own reading, which is that of YAML 1.1.
    PARAMS = read_params("params.yaml", CHANGES)
    check_writable("data", "logs", "reports")
except PrivSVMError as error:
    # One line, without a traceback.
    sys.exit(f"error: {printable(str(error))}")

# Before the number of jobs: the pairs that an entry leaves out.
if workflow.is_main_process and not IN_DVC:
    for line in PARAMS.left_out():
        logger.info(f"not run on {line}")

close_folders(PARAMS)
set_addresses(PARAMS)

DATASETS = list(PARAMS.datasets)
# "private/" for data of one's own, "" for all other data: the wildcard {folder} of all rules.
FOLDER = {dataset: private_folder(PARAMS, dataset) for dataset in DATASETS}
IMPLEMENTATION = {name: entry.implementation for name, entry in PARAMS.methods.items()}
CONDENSE = PARAMS.condense


wildcard_constraints:
    folder="(private/)?",
    dataset="[A-Za-z0-9][A-Za-z0-9_.+-]*",
    method="[A-Za-z0-9][A-Za-z0-9_-]*",


onstart:
    try:
        lock_folder()
    except PrivSVMError as error:
        sys.exit(f"error: {error}")
    made = [f"data/{folder}{kind}" for folder in ("", "private/") for kind in KINDS]
    remove_parts(*made, "data/audits", "logs", ".cache/jobs", *REPORTS)


onsuccess:
    if not IN_DVC:
        logger.info(
            "\nDone. Open reports/index.html; `make ui` compares the curves in MLflow."
        )
    if not HAS_GIT and not IN_DVC:
        logger.warning(
            "note: no Git repository here, so DVC records no versions of these outputs; for that run `git init` and again"
        )


onerror:
    # Print last what the user can mend.
    for line in collect_errors(log):
        logger.error(line)
