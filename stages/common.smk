# What all rules share: checked parameters, the jobs' environment, recovery from kills.
import sys
from pathlib import Path

from snakemake.logging import logger

# The folder of this working copy. The files of a run lie in the working folder, which is the same one for a plain
# `snakemake`, and that of another workflow which uses this one as a module (config/README.md).
HOME = Path(str(workflow.current_basedir)).parent
IS_HERE = HOME.is_dir() and HOME.samefile(Path.cwd())
# Whether another workflow uses this one.
IS_MODULE = not workflow.modifier.is_main_snakefile()
# The library of this working copy, wherever the environment's own copy lies.
sys.path.insert(0, str(HOME / "lib"))

from privsvm.errors import PrivSVMError, printable
from privsvm.digests import canonical_json
from privsvm.pipeline.dry_run import hasten
from privsvm.pipeline.graph import (
    audit_code,
    audit_parameters,
    condense_parameters,
    download_parameters,
    file_digest,
    one_method_code,
    prepare_parameters,
    report_parameters,
    rule_code,
    track_parameters,
    train_parameters,
)
from privsvm.pipeline.own_files import close_folders, released_file, take_release
from privsvm.pipeline.params import read_params
from privsvm.pipeline.slurm import be_patient
from privsvm.pipeline.stage import die_with_parent
from privsvm.pipeline.start import start_server, start_server_of_job
from privsvm.pipeline.workflow import (
    argument_file,
    check_writable,
    clear_stale_locks,
    collect_errors,
    missing_sources,
    runs_inside_dvc,
    set_environment,
    start_of_commands,
    stop_needless_looks_for_jobs,
)

hasten(workflow)
IN_DVC = runs_inside_dvc()
if IN_DVC:
    # A killed `dvc repro` must not leave behind a Snakemake that still writes into its folders.
    die_with_parent()
# Snakemake runs a job on a cluster by reading this file again, there.
IS_JOB = workflow.remote_exec
# Locks and handlers are the other workflow's where there is one.
if not IS_MODULE:
    WORKFLOW_LOCK = clear_stale_locks(
        is_job=IS_JOB, temporary=workflow.snakemake_tmp_dir
    )

# What `snakemake release` asks for is no choice of the benchmark.
CHANGES = dict(config)
RELEASE = take_release(CHANGES)

try:
    STAGES = start_of_commands(HOME)
    be_patient(workflow)
    # Not Snakemake's own reading, which is that of YAML 1.1 and runs the code that a file may hold.
    PARAMS = read_params("params.yaml", CHANGES)
    check_writable("data", "logs", "reports")
except PrivSVMError as error:
    # One line, without a traceback.
    sys.exit(f"error: {printable(str(error))}")

# Before anything is written.
close_folders(PARAMS, is_versioned=IS_HERE)
NUMBA_KEY = set_environment(HOME, PARAMS)
if IS_JOB:
    start_server_of_job()
elif IS_MODULE and not (workflow.output_settings.dryrun or workflow.subprocess_exec):
    # `onstart` is the other workflow's.
    start_server()
METHODS = list(PARAMS.methods)
DATASETS = list(PARAMS.datasets)
JOBS = PARAMS.train_jobs()
IMPLEMENTATION = {name: entry.implementation for name, entry in PARAMS.methods.items()}
CONDENSE = PARAMS.condense


def own_content(dataset):
    """Return the digest of a dataset's own file; empty text for a dataset without one."""
    path = PARAMS.own_file(dataset)
    return "" if path is None else file_digest(path)


wildcard_constraints:
    dataset="[A-Za-z0-9][A-Za-z0-9_.+-]*",
    method="[A-Za-z0-9][A-Za-z0-9_-]*",


onstart:
    stop_needless_looks_for_jobs(workflow)
    # A job elsewhere has a server of its own; one here would start it outside of what the scheduler gave to it.
    if workflow.local_exec:
        start_server()


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
