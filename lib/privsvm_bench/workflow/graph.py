"""Code and parameters of every job of the benchmark, which it depends on besides the files of other jobs."""

from __future__ import annotations

import functools

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError, without_passwords
from privsvm.registry import foreign_source, is_foreign, module_name
from privsvm_bench.jobs.job import AuditJob, CondenseJob, DownloadJob, PrepareJob, ReportJob, TrackJob, TrainJob
from privsvm_bench.jobs.params import Params
from privsvm_bench.workflow.private_outputs import private_folder
from privsvm_bench.workflow.sources import closure_digest


@functools.cache
def rule_code(rule: str) -> str:
    """Digest the code of a rule's jobs, without the code of methods."""
    return closure_digest(f"stages/{rule}.py")


@functools.cache
def method_code(rule: str, implementation: str) -> str:
    """Digest the rule's script, the method, and all that they import."""
    if not is_foreign(implementation):
        return closure_digest(f"stages/{rule}.py", module_name(implementation))
    source = foreign_source(implementation)
    return f"{closure_digest(f'stages/{rule}.py')} {source.package} {source.version} {source.digest}"


_digest_of_file = functools.cache(sha256_of_file)


def own_content(params: Params, dataset: str) -> str:
    """Digest the user's own file of a dataset; empty without one."""
    path = params.own_file(dataset)
    return "" if path is None else _digest_of_file(path)


def download_parameters(params: Params, dataset: str, folder: str) -> str:
    """Write the parameters of the jobs that download a dataset's files.

    Raises PrivSVMError if the files belong into another folder: private data would lie in a public one.
    """
    if folder != private_folder(params, dataset):
        raise PrivSVMError(
            f"data/{folder}raw/{dataset}: belongs to data/{private_folder(params, dataset)}raw; request that path"
        )
    return DownloadJob(settings=params.dataset_settings(dataset)).argument()


def prepare_parameters(params: Params, dataset: str) -> str:
    """Write the parameters of the job that prepares a dataset."""
    return PrepareJob(
        experiment=params.experiment,
        protocol=params.protocol,
        seed=params.seed,
        settings=params.dataset_settings(dataset),
    ).argument()


def condense_parameters(params: Params) -> str:
    """Write the parameters of the jobs that condense training rows."""
    return CondenseJob(condense=params.condense, experiment=params.experiment, seed=params.seed).argument()


def train_parameters(params: Params, method: str, dataset: str) -> str:
    """Write the parameters of the job that trains a method on a dataset.

    A method that states no epsilon takes none of `privacy`, so that its jobs do not depend on it.
    """
    return TrainJob(
        condense=params.condense,
        experiment=params.experiment,
        implementation=params.methods[method].implementation,
        method=method,
        parameters=params.method_parameters(method, dataset),
        seed=params.seed,
        **(dict(params.privacy) if params.reads_privacy(method, dataset) else {}),
    ).argument()


def audit_parameters(params: Params, method: str) -> str:
    """Write the parameters of the job that audits a method."""
    return AuditJob(
        delta=params.privacy.delta,
        draws=params.audit.draws,
        epsilons=params.audit.epsilons,
        implementation=params.methods[method].implementation,
        method=method,
        neighbours=params.privacy.neighbours,
        parameters=params.methods[method].parameters,
        seed=params.seed,
    ).argument()


def report_parameters(params: Params) -> str:
    """Write the parameters of the job that writes the report."""
    return ReportJob(
        experiment=params.experiment,
        left_out=tuple(params.left_out()),
        own_datasets=tuple(sorted(name for name in params.datasets if params.own_file(name) is not None)),
        reference_epsilon=params.report.reference_epsilon,
    ).argument()


def track_parameters(params: Params) -> str:
    """Write the parameters of the job that logs to MLflow.

    Snakemake stores and shows them, so the address lacks its password; the job reads it from its environment, see
    `privsvm_bench.workflow.session.set_addresses`.
    """
    address = without_passwords(params.mlflow.tracking_uri)
    if not params.mlflow.registers:
        return TrackJob(tracking_uri=address).argument()
    epsilon = params.report.reference_epsilon
    return TrackJob(tracking_uri=address, experiment=params.experiment, epsilon=epsilon).argument()
