"""Register models in MLflow, each with its card: those of the benchmark, and released ones."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

from privsvm.base.model_file import CARD, Description, write_model
from privsvm.base.released import LinearPath
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.privacy.gate import Guarantee, restore
from privsvm.release.documents.card import read_card
from privsvm.release.documents.card_page import card_text
from privsvm.release.predicting.exporting import export
from privsvm.release.predicting.model import load
from privsvm_bench.jobs.job import TrackJob
from privsvm_bench.jobs.model_files import load_paths
from privsvm_bench.records import ModelRecord
from privsvm_bench.tracking.registry import register_model

FOR_COMPARISON = "seeded: for comparison only"


def register(folder: Path, job: TrackJob, name: str, place: str, record_key: str | None = None) -> None:
    """Register the model in a folder; names of models and MLflow experiments begin with the benchmark's.

    `place` is the rest of the experiment's name, and `record_key` belongs to the curve whose run gets the files.
    """
    with tempfile.TemporaryDirectory() as temporary:
        files = Path(temporary, "mlflow")
        tags = export_for_registry(folder, files)
        register_model(files, tags, f"{job.experiment}-{name}", job.address, f"{job.experiment}/{place}", record_key)


def write_first_model(models: Path, epsilon: float, folder: Path) -> None:
    """Write the first of a job's models at the epsilon nearest to one, as `privsvm.load` reads it."""
    paths, record = load_paths(models, models.with_suffix(".json"), ModelRecord)
    index = min(range(len(record.epsilons)), key=lambda index: abs(math.log(record.epsilons[index] / epsilon)))
    if not isinstance(paths[0], LinearPath):
        raise PrivSVMError(f"{models}: holds {paths[0].kind} models, and linear ones alone are registered")
    # Witnesses are computed from the rows.
    guarantee = restore(json.loads(canonical_json(record.guarantees[index])) | {"witness": None})
    recipe = {"method": record.method, "parameters": record.parameters}
    described = Description(classes=record.classes, n_features=record.n_features, recipe=recipe)
    write_model(folder, paths[0].one_model(index, 0, record.n_features), described, guarantee)


def export_for_registry(folder: Path, out: Path) -> dict[str, str]:
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
