# What all rules share: checked parameters, code dependencies, how a stage is called.
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

# The library of this working copy, wherever the environment's own copy lies.
LIBRARY = str(Path(workflow.basedir) / "lib")
sys.path.insert(0, LIBRARY)
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [LIBRARY, os.environ.get("PYTHONPATH")])
)

from privsvm.errors import PrivSVMError
from privsvm.files import canonical_json
from privsvm.locking import clear_stale_locks
from privsvm.params import check_params, method_parameters, numba_cache_key, train_jobs
from privsvm.stage import die_with_parent

IN_DVC = "DVC_STAGE" in os.environ
if IN_DVC:
    # A killed `dvc repro` must not leave a Snakemake behind that writes into its folders.
    die_with_parent()
WORKFLOW_LOCK = clear_stale_locks()

try:
    PARAMS = check_params(config)
except PrivSVMError as error:
    raise WorkflowError(f"error: {error}")

PYTHON = sys.executable
METHODS = list(PARAMS["methods"])
DATASETS = list(PARAMS["datasets"])
JOBS = train_jobs(PARAMS)
IMPLEMENTATION = {
    name: entry["implementation"] for name, entry in PARAMS["methods"].items()
}
CONDENSE = PARAMS["condense"]
# Where the bytes come from is no parameter of a job: they are checked against their hash.
if PARAMS["data"]["mirror"]:
    os.environ.setdefault("PRIVSVM_MIRROR", PARAMS["data"]["mirror"])

NUMBA_KEY = numba_cache_key(Path(LIBRARY) / "privsvm")
os.environ["NUMBA_CACHE_DIR"] = str(Path(".cache/numba").resolve() / NUMBA_KEY)
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DVC_NO_ANALYTICS"] = "true"


def code(*names):
    """Source files a rule depends on: files, and all modules below folders, of lib/privsvm or stages."""
    found = []
    for name in [*names, *COMMON_CODE]:
        path = Path(name)
        if path.is_dir():
            found += [
                str(file)
                for file in path.rglob("*")
                if file.is_file() and "__pycache__" not in file.parts
            ]
        else:
            found.append(str(path))
    return sorted(set(found))


COMMON_CODE = [
    "stages/common.smk",
    "lib/privsvm/errors.py",
    "lib/privsvm/files.py",
    "lib/privsvm/params.py",
    "lib/privsvm/stage.py",
    "lib/privsvm/streams.py",
]


def text(parameters):
    """Parameters as one canonical JSON text: what Snakemake compares is what the script sees."""
    return canonical_json(parameters)


wildcard_constraints:
    dataset="[A-Za-z0-9][A-Za-z0-9_.-]*",
    method="[A-Za-z0-9][A-Za-z0-9_-]*",
    condense="none",
