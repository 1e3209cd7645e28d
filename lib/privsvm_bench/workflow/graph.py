"""What every job of the benchmark depends on besides the files of other jobs: its code and its parameters."""

from __future__ import annotations

import functools

from privsvm.digests import canonical_json, sha256_of_file
from privsvm.errors import PrivSVMError, without_passwords
from privsvm.registry import foreign_source, is_foreign, module_name
from privsvm_bench.jobs.params import Params
from privsvm_bench.workflow.private_outputs import private_folder
from privsvm_bench.workflow.sources import closure_digest

__all__ = [
    "audit_parameters",
    "condense_parameters",
    "download_parameters",
    "method_code",
    "own_content",
    "prepare_parameters",
    "report_parameters",
    "rule_code",
    "track_parameters",
    "train_parameters",
]


@functools.cache
def rule_code(rule: str) -> str:
    """Digest the code that the jobs of a rule run, without that of methods."""
    return closure_digest(f"stages/{rule}.py")


@functools.cache
def method_code(rule: str, implementation: str) -> str:
    """Digest the code that a job of one method runs: the rule's script, the method, and all that they import."""
    if not is_foreign(implementation):
        return closure_digest(f"stages/{rule}.py", module_name(implementation))
    source = foreign_source(implementation)
    return f"{closure_digest(f'stages/{rule}.py')} {source.package} {source.version} {source.digest}"


_digest_of_file = functools.cache(sha256_of_file)


def own_content(params: Params, dataset: str) -> str:
    """Digest the file of a data set of one's own: it counts by its content, whatever its time. Others have none."""
    path = params.own_file(dataset)
    return "" if path is None else _digest_of_file(path)


def download_parameters(params: Params, dataset: str, folder: str) -> str:
    """Parameters of the jobs that get a dataset's files, as canonical JSON.

    Raises
    ------
    PrivSVMError
        If the files belong into another folder: private data would lie in a public one.
    """
    if folder != private_folder(params, dataset):
        raise PrivSVMError(
            f"data/{folder}raw/{dataset}: belongs to data/{private_folder(params, dataset)}raw; ask for that"
        )
    return canonical_json({"settings": params.dataset_settings(dataset)})


def prepare_parameters(params: Params, dataset: str) -> str:
    """Parameters of the job that prepares a dataset, as canonical JSON."""
    return canonical_json(
        {
            "experiment": params.experiment,
            "protocol": params.protocol.model_dump(exclude_unset=True),
            "seed": params.seed,
            "settings": params.dataset_settings(dataset),
        }
    )


def condense_parameters(params: Params) -> str:
    """Parameters of the jobs that condense training rows, as canonical JSON."""
    return canonical_json({"condense": params.condense, "experiment": params.experiment, "seed": params.seed})


def train_parameters(params: Params, method: str, dataset: str) -> str:
    """Parameters of the job that trains a method on a dataset, as canonical JSON.

    A method that states no epsilon has no ``privacy``, so that its jobs do not depend on it.
    """
    return canonical_json(
        {
            **{key: getattr(params, key) for key in ("condense", "experiment", "seed")},
            **({"privacy": params.privacy.model_dump()} if params.reads_privacy(method, dataset) else {}),
            "implementation": params.methods[method].implementation,
            "parameters": params.method_parameters(method, dataset),
        }
    )


def audit_parameters(params: Params, method: str) -> str:
    """Parameters of the job that audits a method, as canonical JSON."""
    return canonical_json(
        {
            **params.audit.model_dump(),
            "delta": params.privacy.delta,
            "neighbours": params.privacy.neighbours,
            "implementation": params.methods[method].implementation,
            "parameters": params.entry_parameters(method),
            "seed": params.seed,
        }
    )


def report_parameters(params: Params) -> str:
    """Parameters of the job that writes the report, as canonical JSON."""
    # Data sets that their owner brought: the report then speaks to that owner.
    own = sorted(name for name in params.datasets if params.own_file(name) is not None)
    return canonical_json({"experiment": params.experiment, **params.report.model_dump(), "own": own})


def track_parameters(params: Params) -> str:
    """Parameters of the job that logs to MLflow, as canonical JSON.

    Snakemake stores and shows them, so a password in the address is left out; the job finds it in its environment, see
    `privsvm_bench.workflow.session.set_environment`.
    """
    return canonical_json({"tracking_uri": without_passwords(params.mlflow.tracking_uri)})
