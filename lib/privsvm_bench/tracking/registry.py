"""MLflow's registry of models: releases under the alias ``production``, and seeded models for comparison."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from privsvm_bench.tracking.experiments import CURVE_NOTE
from privsvm_bench.tracking.mlflow_log import AUTHOR, find_runs, local_folder, open_experiment
from privsvm_bench.tracking.store import file_folder, open_store

PRODUCTION = "production"
_NOTE = "Models of `snakemake release`; the newest has the alias `production` in MLflow's registry."


def register_model(
    files: Path, tags: Mapping[str, str], name: str, tracking_uri: str, experiment: str, record_key: str | None = None
) -> None:
    """Register an exported model with its card as a new version of a name, unless a version has the same tags.

    The files go to the run with a record key, or to a new run of the MLflow experiment. The alias ``production`` goes
    to released models alone. A release gets the tag ``use`` last: without it, an interrupted call is finished by the
    next one. Raises PrivSVMError if the store cannot be used.
    """
    begun = {key: tag for key, tag in tags.items() if key != "use"} if tags["use"] == "released" else dict(tags)
    with open_store(tracking_uri) as client:
        if not client.search_registered_models(f"name = '{name}'"):
            client.create_registered_model(name)
        versions = client.search_model_versions(f"name = '{name}'")
        if any(version.tags == tags for version in versions):
            return
        experiment_id = open_experiment(client, experiment, tracking_uri, CURVE_NOTE if record_key else _NOTE)
        run = next(find_runs(client, experiment_id, record_key), None) if record_key else None
        if run is None:
            run = client.create_run(experiment_id, run_name=name, tags={**tags, **AUTHOR})
            client.set_terminated(run.info.run_id, "FINISHED")
        place = local_folder(run, file_folder(tracking_uri))
        if place is None:
            client.log_artifacts(run.info.run_id, str(files), "model")
        else:
            shutil.copytree(files, place / "model", dirs_exist_ok=True)
        card = (files / "card.md").read_text(encoding="utf-8")
        source = f"{run.info.artifact_uri}/model"
        version = next((version for version in versions if version.tags == begun), None)
        if version is None:
            version = client.create_model_version(name, source, run.info.run_id, begun, description=card)
        if tags["use"] == "released":
            client.set_registered_model_alias(name, PRODUCTION, version.version)
            client.set_model_version_tag(name, version.version, "use", tags["use"])
