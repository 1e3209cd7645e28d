"""Log results to MLflow: one flat run for each result file, each logged exactly once."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, Run, ViewType
from mlflow.tracking import MlflowClient

from privsvm.digests import sha256_of_json
from privsvm.files import write_text
from privsvm_bench.tracking.experiments import CURVE_NOTE, OVERVIEW_NOTE
from privsvm_bench.tracking.runs import OVERVIEW, CurveRun, MetricPoint, ResultFiles, collect_runs, overview_runs
from privsvm_bench.tracking.store import file_folder, is_server, open_store

_KEY_TAG = "record_key"
_CURRENT_TAG = "current"
_NOTE_TAG = "mlflow.note.content"
_PARENT_TAG = "mlflow.parentRunId"
# Instead of the login name and the path of the script.
AUTHOR = {"mlflow.user": "privsvm", "mlflow.source.name": "privsvm", "mlflow.source.type": "JOB"}
# A server takes no more, of all kinds together.
_METRICS_IN_A_BATCH = 900
_PARAMETERS_IN_A_BATCH = 100
_LONGEST_DIGEST = 36
_SERVED = "mlflow-artifacts:/"


def log_results(
    results: Sequence[ResultFiles],
    tracking_uri: str,
    git_commit: str,
    audits: Sequence[str | os.PathLike[str]] = (),
) -> list[str]:
    """Log result files to MLflow, each as one run, and mark these runs as the current ones.

    The record key identifies a run, so a second call adds nothing. Unfinished runs of a killed call are removed. Runs
    with other parameter values stay for comparison, tagged ``current=no``. Pass all results of a dataset in one call:
    omitted results are not current. `audits` are records of audits, which may refute a claim.

    A result comes with its timing files, which may be none. `tracking_uri` is ``sqlite:///path`` (made if missing),
    another SQLAlchemy URI, or the address of an MLflow server. `git_commit` is the program's version, a tag of the runs
    that this call adds. Returns the record key of each result, in order. Raises PrivSVMError if a file is missing or
    malformed, or the store cannot be used.
    """
    curves = collect_runs(results, audits)
    curves += overview_runs(curves)
    by_experiment: dict[str, list[CurveRun]] = defaultdict(list)
    for curve in curves:
        by_experiment[curve.experiment_name].append(curve)

    with open_store(tracking_uri) as client:
        for name, members in sorted(by_experiment.items()):
            note = OVERVIEW_NOTE if members[0].dataset == OVERVIEW else CURVE_NOTE
            experiment_id = open_experiment(client, name, tracking_uri, note)
            _log_experiment(client, experiment_id, members, git_commit, file_folder(tracking_uri))
    return [curve.key for curve in curves[: len(results)]]


def open_experiment(client: MlflowClient, name: str, tracking_uri: str, note: str) -> str:
    """Find, restore or create the MLflow experiment of that name, and update its note."""
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        # Without an explicit place a database would store the absolute path of the working folder.
        artifact_location = None if is_server(tracking_uri) else f"{_SERVED}{name}"
        return str(client.create_experiment(name, artifact_location=artifact_location, tags={_NOTE_TAG: note}))
    if experiment.lifecycle_stage != "active":
        client.restore_experiment(experiment.experiment_id)
    if experiment.tags.get(_NOTE_TAG) != note:
        client.set_experiment_tag(experiment.experiment_id, _NOTE_TAG, note)
    return str(experiment.experiment_id)


def _log_experiment(
    client: MlflowClient,
    experiment_id: str,
    curves: Iterable[CurveRun],
    git_commit: str,
    folder: Path | None,
) -> None:
    """Update the runs of one MLflow experiment to the curves."""
    finished: dict[str, Run] = {}
    # Oldest first: if two machines log the same run at once, the first one is kept.
    for run in sorted(find_runs(client, experiment_id), key=lambda run: (run.info.start_time, run.info.run_id)):
        key = run.data.tags[_KEY_TAG]
        if run.info.status == "FINISHED" and key not in finished:
            finished[key] = run
        else:
            # Left by a killed attempt: it may be incomplete, so it is logged again.
            client.delete_run(run.info.run_id)
    current = set()
    parents = {key: run.info.run_id for key, run in finished.items() if run.data.tags.get(_CURRENT_TAG) is None}
    for curve in curves:
        parent = _parent(client, experiment_id, curve.sweep, parents) if curve.sweep else {}
        finished_run = finished.get(curve.key)
        if finished_run is None:
            current.add(_log_run(client, experiment_id, curve, git_commit, folder, parent))
            continue
        current.add(finished_run.info.run_id)
        for name, run_id in parent.items():
            if finished_run.data.tags.get(name) != run_id:
                client.set_tag(finished_run.info.run_id, name, run_id)
        missing = [point for point in curve.timings if point.name not in finished_run.data.metrics]
        if missing:  # logged when the timing files were not at hand
            _log_batches(client, finished_run.info.run_id, finished_run.info.start_time, missing)
    # First the runs that are not current any more: a chart that lacks a curve for a moment is better than one that
    # averages two parameter values.
    for run in finished.values():
        if run.info.run_id not in current and run.data.tags.get(_CURRENT_TAG, "no") != "no":
            client.set_tag(run.info.run_id, _CURRENT_TAG, "no")
    unmarked = current - {run.info.run_id for run in finished.values() if run.data.tags.get(_CURRENT_TAG) == "yes"}
    for run_id in sorted(unmarked):
        client.set_tag(run_id, _CURRENT_TAG, "yes")


def _parent(
    client: MlflowClient, experiment_id: str, sweep: Mapping[str, str], parents: dict[str, str]
) -> dict[str, str]:
    """Find or add the run of a sweep; return the tag of its curves.

    It has no tag of current runs, which charts show, as it has no curve.
    """
    key = sha256_of_json(sweep)
    if key not in parents:
        run = client.create_run(
            experiment_id, tags={_KEY_TAG: key, **AUTHOR}, run_name=f"sweep over {sweep['epsilons']}"
        )
        client.log_batch(run.info.run_id, params=[Param(name, value) for name, value in sweep.items()])
        client.set_terminated(run.info.run_id, "FINISHED")
        parents[key] = run.info.run_id
    return {_PARENT_TAG: parents[key]}


def find_runs(client: MlflowClient, experiment_id: str, key: str | None = None) -> Iterator[Run]:
    """Find all runs of an experiment that this module made, in any state, or with one key; others are left."""
    token, query = None, "" if key is None else f"tags.{_KEY_TAG} = '{key}'"
    while True:
        page = client.search_runs([experiment_id], query, ViewType.ACTIVE_ONLY, max_results=1000, page_token=token)
        yield from (run for run in page if _KEY_TAG in run.data.tags)
        token = page.token
        if not token:
            return


def _log_run(
    client: MlflowClient,
    experiment_id: str,
    curve: CurveRun,
    git_commit: str,
    folder: Path | None,
    parent: Mapping[str, str],
) -> str:
    """Add one run. Until its last line it counts as unfinished, and the next call would log it again."""
    tags = {
        **curve.tags,
        **parent,
        _KEY_TAG: curve.key,
        _CURRENT_TAG: "no",
        "git_commit": git_commit,
        **AUTHOR,
    }
    # The key is written together with the run: there is no moment at which a run exists without it.
    run = client.create_run(experiment_id, tags=tags, run_name=curve.name)
    run_id = str(run.info.run_id)
    if curve.dataset_digest:
        dataset = Dataset(
            name=curve.dataset,
            digest=curve.dataset_digest[:_LONGEST_DIGEST],
            source_type="local",
            source=f"data/prepared/{curve.dataset}.npz",
        )
        client.log_inputs(run_id, datasets=[DatasetInput(dataset, [InputTag("mlflow.data.context", "evaluation")])])
    parameters = [Param(name, value) for name, value in sorted(curve.parameters.items())]
    _log_batches(client, run_id, run.info.start_time, [*curve.metrics, *curve.timings], parameters)
    artifact_folder = local_folder(run, folder)
    for name, text in curve.files.items():
        if artifact_folder is None:
            client.log_text(run_id, text, name)
        else:
            artifact_folder.mkdir(parents=True, exist_ok=True)
            write_text(artifact_folder / name, text)
    client.set_terminated(run_id, "FINISHED")
    return run_id


def local_folder(run: Run, folder: Path | None) -> Path | None:
    """Return the place of a run's files in the folder of `make ui`'s server; None where MLflow itself writes them.

    Without a server MLflow cannot write to such an address.
    """
    if folder is None or not run.info.artifact_uri.startswith(_SERVED):
        return None
    return folder / run.info.artifact_uri.removeprefix(_SERVED)


def _log_batches(
    client: MlflowClient, run_id: str, timestamp: int, points: Sequence[MetricPoint], parameters: Sequence[Param] = ()
) -> None:
    """Log parameters, and points with the time of their run, so that logging them again changes nothing."""
    metrics = [Metric(point.name, point.value, timestamp, point.step) for point in points]
    while metrics or parameters:
        client.log_batch(run_id, metrics=metrics[:_METRICS_IN_A_BATCH], params=parameters[:_PARAMETERS_IN_A_BATCH])
        metrics, parameters = metrics[_METRICS_IN_A_BATCH:], parameters[_PARAMETERS_IN_A_BATCH:]
