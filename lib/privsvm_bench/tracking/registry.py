"""MLflow's registry of models: releases under the alias ``production``, and seeded models for comparison."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from privsvm.base.model_file import CARD
from privsvm.privacy.gate import Guarantee
from privsvm.release.documents.card import read_card
from privsvm.release.documents.card_page import card_text
from privsvm.release.predicting.exporting import export
from privsvm.release.predicting.model import load
from privsvm_bench.tracking.experiments import CURVE_NOTE
from privsvm_bench.tracking.mlflow_log import AUTHOR, find_runs, local_folder, open_experiment
from privsvm_bench.tracking.store import file_folder, open_store

PRODUCTION = "production"
FOR_COMPARISON = "seeded: for comparison only"
_NOTE = "Models of `snakemake release`; the newest has the alias `production` in MLflow's registry."


def register_model(folder: Path, name: str, tracking_uri: str, experiment: str, record_key: str | None = None) -> None:
    """Register the model in a folder with its card as a new version of a name, unless a version is the same model.

    Its files go to the run with a record key, or to a new run of the MLflow experiment. The alias ``production`` goes
    to released models alone. Raises PrivSVMError if the store cannot be used, or a card is not of its model.
    """
    with tempfile.TemporaryDirectory() as temporary:
        files = Path(temporary, "mlflow")
        tags = _export(folder, files)
        _register(files, tags, name, tracking_uri, experiment, record_key)


def _export(folder: Path, out: Path) -> dict[str, str]:
    """Export a model for MLflow with its card beside it, and return its tags.

    Its use is ``released`` if its card is verified, and it has a proof and system noise.
    """
    model, is_released = load(folder), Path(folder, CARD).exists()
    export(folder, "mlflow", out)
    is_released &= model.guarantee_.status == "proved"
    card = card_text(read_card(folder / CARD)) if is_released else _card(model.guarantee_)
    (out / "card.md").write_text(card, encoding="utf-8")
    return {"model_digest": model.record.digest, "use": "released" if is_released else FOR_COMPARISON}


def _card(guarantee: Guarantee) -> str:
    """Write the card of a model of the benchmark."""
    known = {name: value for name, value in vars(guarantee).items() if value not in (None, ())}
    lines = [f"- {name}: {value}" for name, value in known.items() if name not in ("event", "facts")]
    return "\n".join([f"**{FOR_COMPARISON}**: noise from a seed can be drawn again, and protects nobody.", "", *lines])


def _register(
    files: Path, tags: dict[str, str], name: str, tracking_uri: str, experiment: str, record_key: str | None
) -> None:
    """Register exported files."""
    with open_store(tracking_uri) as client:
        if not client.search_registered_models(f"name = '{name}'"):
            client.create_registered_model(name)
        if any(version.tags == tags for version in client.search_model_versions(f"name = '{name}'")):
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
        version = client.create_model_version(name, source, run.info.run_id, tags, description=card)
        if tags["use"] == "released":
            client.set_registered_model_alias(name, PRODUCTION, version.version)
