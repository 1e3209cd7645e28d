"""Releases that nobody trained: a model made up by a schema, with card and ledger, in the present format."""

import contextlib
import json
from pathlib import Path

import numpy as np

from privsvm.base.model_file import RECORD, Description, content_digest, read_model, write_model
from privsvm.base.released import LinearPath
from privsvm.digests import canonical_json, sha256_of_file
from privsvm.privacy.gate import restore
from privsvm.release.documents.calibration import HeldBackCounts
from privsvm.release.documents.card import CARD_FILES, CARD_FORMAT, card_content, total_on_card
from privsvm.release.documents.card_page import page
from privsvm.release.documents.ledger import Ledger
from privsvm.tables.schema import read_schema

# A ledger of version 1 and its schema: epsilon 2 for a row of 400, by few events, which take little time.
FIRST = Path(__file__).with_name("version_1")
RECIPE = {
    "method": "PrivateLinearClassifier",
    "parameters": {
        "class_weight": "balanced", "delta": 1e-05, "epsilon": 2.0, "n_rows": 400, "neighbours": "replace_one",
    },
}  # fmt: skip


def write_content(folder, name, content):
    """Write a record or a card with its digest computed again."""
    content["digest"] = content_digest(content, "digest", "signature")
    (folder / name).write_text(canonical_json(content, indent=1) + "\n")


def hashed(line):
    """The text of a line of a ledger, with its hash computed again."""
    return canonical_json(line | {"hash": content_digest(line, "hash")}) + "\n"


def read_folder(folder):
    """Read record and card."""
    return [json.loads((folder / name).read_text()) for name in (RECORD, "card.json")]


def write_folder(folder, record, card):
    """Write record, card and page with digests that fit."""
    if "arrays" in record:
        record["arrays"] = sha256_of_file(folder / "model.npz")
    write_content(folder, RECORD, record)
    card |= {"model_digest": record["digest"], "format": CARD_FORMAT}
    card["files"] = {**card.get("files", {}), **{name: sha256_of_file(folder / name) for name in CARD_FILES}}
    write_content(folder, "card.json", card)
    with contextlib.suppress(Exception):
        (folder / "card.html").write_text(page(json.loads((folder / "card.json").read_text())))


def change_record(folder, **changes):
    """Change a record; its card fits."""
    record, card = read_folder(folder)
    write_folder(folder, record | changes, card)


def release_by(schema, folder, ledger, accuracy="right for 90 of 100"):
    """Make up a release by a schema, with card and ledger."""
    first = json.loads((FIRST / "ledger.jsonl").read_text())
    paid, payment = Ledger(ledger), {"account": schema.name, "id": "0" * 64, "model": "", "budget": None}
    n_features = sum(len(column.words) or 1 for column in schema.features.values())
    n_scores = 1 if len(schema.classes) == 2 else len(schema.classes)
    path = LinearPath(
        coef=np.cos(np.arange(n_scores * n_features)).reshape(1, 1, n_scores, n_features),
        intercept=np.zeros((1, 1, n_scores)), epsilons=(1.0,), guarantees=(), n_classes=len(schema.classes),
    )  # fmt: skip
    described = Description(classes=schema.class_order, n_features=n_features, recipe=RECIPE, table=schema.to_json())
    folder.mkdir()
    model = write_model(folder, path, described, restore(first["guarantee"]))
    record = read_model(folder)[1]
    kept = ("unit", "rows", "epsilon", "delta", "guarantee", "date")
    entry = paid.finish(paid.begin({name: first[name] for name in kept} | payment), model, first["date"])
    card = json.loads(canonical_json(card_content(record, schema.name, first["date"], accuracy)))
    total = total_on_card(paid.total_up_to(entry), card["risk"])
    card["ledger"] = {"account": entry.account, "entry": entry.number, "head": entry.head, "total": total}
    write_folder(folder, json.loads((folder / RECORD).read_text()), card)


def release_of_wards(folder):
    """Make up the folder `model` and the file `ledger.jsonl` of a table of 400 rows."""
    release_by(read_schema(FIRST / "schema.yaml"), folder / "model", folder / "ledger.jsonl")


def counts_of(right, wrong, **terms):
    """Noisy counts of right and wrong answers by true class, in one bin."""
    return HeldBackCounts(
        **{"hold_back": 0.1, "rows_per_unit": 1, "number": None} | terms, edges=(), counts=np.array([[right], [wrong]])
    )
