"""Check a released folder: its files, its card, and its guarantee. Nothing that trains is imported."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsvm.base.model_file import ARRAYS, CARD, RECORD, ModelFile, read_model, scale_of
from privsvm.base.released import ReleasedPath
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.privacy.accountants import group_account
from privsvm.privacy.gate import foreign_numbers
from privsvm.release.documents.calibration import HeldBackCounts
from privsvm.release.documents.card import CARD_FILES, PAGE, card_content, read_card, total_on_card
from privsvm.release.documents.card_page import page
from privsvm.release.documents.explanation import explain_on_card
from privsvm.release.documents.ledger import Ledger
from privsvm.release.documents.signing import check_form, check_signature
from privsvm.tables.schema import parse_schema
from privsvm.untrusted import LARGEST_ARRAYS, LARGEST_JSON, read_regular_file

_AGAIN = "get the folder again"


def _refusal(path: Path, problem: str) -> PrivSVMError:
    return PrivSVMError(f"{path}: {problem}; {_AGAIN}")


def _read(path: Path, largest: int, digest: str | None = None) -> bytes:
    try:
        return read_regular_file(path, largest, _AGAIN, digest)
    except FileNotFoundError:
        raise _refusal(path, "file not found") from None


def _measurement_of(card: Mapping[str, Any], record: ModelFile) -> HeldBackCounts | None:
    """Return the measurement of a card; raise ValueError unless it is covered and follows from its counts."""
    stated, covered = card.get("measured"), scale_of(record.judged[0])
    if stated is None and covered is None and record.held_back is None:
        return None
    if stated is None or record.held_back is None:
        raise ValueError(f"it was paid for, and is missing here or in {RECORD}")
    counts = HeldBackCounts.from_json(record.held_back, len(record.classes))
    if counts.scale_of_one != covered or counts.rows_per_unit != record.protection.rows:
        raise ValueError("its scale or noise is not that of the guarantee")
    if canonical_json(stated) != canonical_json(counts.to_card()):
        raise ValueError(f"it does not follow from the counts in {RECORD}")
    return counts


def _check_terms(record: ModelFile) -> None:
    """Raise ValueError where schema or recipe of a record contradict its guarantee, or its noise was seeded."""
    (guarantee, _), protection = record.judged, record.protection
    if guarantee.status != "proved":
        raise ValueError(f"nothing is proved ({guarantee.reason or 'its noise was seeded'})")
    if record.table is not None:
        schema = parse_schema(record.table, "the schema")
        unit = ("person", schema.rows_per_person) if schema.person else ("row", 1)
        declared = None if guarantee.facts is None else guarantee.facts.declared_rows
        counted = guarantee.neighbours == "replace_one" and (declared or 0) >= (schema.rows or 1)
        if (protection.unit, protection.rows) != unit or not (schema.rows == declared or counted):
            raise ValueError("the guarantee is for another unit or number of rows than the schema declares")
    parameters = record.recipe.get("parameters")
    terms = parameters if isinstance(parameters, dict) else {}
    # The recipe speaks of the training, which may be cheaper than the measurement beside it.
    event: Any = guarantee.event
    event = event.events[0] if scale_of(guarantee) is not None else event
    trained = group_account(event, 1, float(guarantee.delta or 0.0), guarantee.neighbours or "replace_one")
    epsilon, delta = terms.get("epsilon", math.inf), terms.get("delta", math.inf)
    if not (epsilon >= trained.epsilon * (1.0 - 1e-6) and delta >= trained.delta):
        raise ValueError("the recipe states a smaller epsilon or delta than the guarantee")
    if terms.get("neighbours", guarantee.neighbours) != guarantee.neighbours:
        raise ValueError("the recipe states another relation than the guarantee")


def _is_total(card: Mapping[str, Any]) -> bool:
    """Tell whether a total can be the cost of the releases up to this one, which the ledger alone lists."""
    total = card["ledger"]["total"]
    if not max(len(card["built_on"]), 1) <= total["releases"] <= card["ledger"]["entry"]:
        return False
    known, own_known = total["by_relation"], card["by_relation"]
    if total["epsilon"] not in known.values():
        return False
    relations = [relation for relation in known if relation in own_known]
    own = (card["epsilon"], card["delta"], card["risk"]["guess"], *(own_known[relation] for relation in relations))
    stated = (total["epsilon"], total["delta"], total["guess"], *(known[relation] for relation in relations))
    most = 1.0 + 1e-9 if total["releases"] == 1 else math.inf
    return total["guess"] <= 100 and all(
        other * (1.0 - 1e-9) <= one <= other * most for one, other in zip(stated, own, strict=True)
    )


def _check_ledger(card: Mapping[str, Any], record: ModelFile, ledger: Ledger) -> None:
    """Raise PrivSVMError unless a ledger holds the release of a card, and gives its total."""
    place = card["ledger"]
    entries = [entry for entry in ledger.entries() if (entry.head, entry.model) == (place["head"], record.digest)]
    if not entries:
        raise PrivSVMError(f"{ledger.path}: does not contain this release: it was truncated, or is another ledger")
    total = total_on_card(ledger.total_up_to(entries[0]), card["risk"])
    if canonical_json(total) != canonical_json(place["total"]):
        raise PrivSVMError(f"{ledger.path}: gives another total than the card; do not rely on it")


def _check_card(folder: Path, card: Mapping[str, Any], path: ReleasedPath, record: ModelFile) -> None:
    """Raise PrivSVMError unless a card, and its page, agree with its record."""
    protection, guarantee = record.protection, record.judged[0]
    card_terms = (card["model_digest"], card["epsilon"], card["delta"], card["status"], card["relation"], card["unit"])
    unit = {"kind": protection.unit, "rows": protection.rows}
    if card_terms != (
        record.digest,
        protection.epsilon,
        protection.delta,
        guarantee.status,
        guarantee.neighbours,
        unit,
    ):
        raise _refusal(folder / CARD, f"states another epsilon, unit or model than {RECORD}")
    try:
        with foreign_numbers():
            measured = _measurement_of(card, record)
            datetime.date.fromisoformat(card["date"])
    except ValueError as error:
        raise _refusal(folder / CARD, f"measured accuracy or date: {error}") from None
    account = card["data"] if record.table is None else str(record.table.get("name"))
    stated = None if measured is not None else card["accuracy"]
    content = card_content(record, account, card["date"], stated, measured, explain_on_card(path, record))
    for name in {"explained", "by_group"} & {*card} - {*content}:
        raise _refusal(folder / CARD, f"{name} is not what {RECORD} gives")
    for name, value in content.items():
        if canonical_json(card.get(name)) != canonical_json(value):
            raise _refusal(folder / CARD, f"{name} is not what {RECORD} gives")
    ledger_entry = card["ledger"]
    if ledger_entry["account"] != account or ledger_entry["entry"] < 1:
        raise _refusal(folder / CARD, "its entry in the ledger is not one of this data set")
    if not _is_total(card):
        raise _refusal(folder / CARD, "its total is less than what this release costs")
    if _read(folder / PAGE, LARGEST_JSON) != page(card).encode():
        raise _refusal(folder / PAGE, f"is not the page of {CARD}")


def verify(
    folder: str | os.PathLike[str], key: str | os.PathLike[str] | None = None, ledger: Ledger | None = None
) -> ModelFile:
    """Check a released folder, and return the model's record.

    Its epsilon is computed again, also by an accountant of another kind, and the card put together again from it. Of a
    card's words, the stated accuracy and the date are the issuer's alone. `key` is the issuer's public key: without it,
    accidents are found and forgeries are not. A ledger must hold the release. Raises PrivSVMError, in one line, for the
    first mismatch.
    """
    folder = Path(folder)
    card = read_card(folder / CARD)
    check_form(card.get("signature"))
    if key is not None:
        check_signature(str(card["digest"]), card.get("signature"), key)
    if {*card["files"]} != {*CARD_FILES}:
        raise _refusal(folder / CARD, "lists other files than a release has")
    for path in sorted(folder.iterdir()):
        if path.name not in (CARD, PAGE, *CARD_FILES):
            raise PrivSVMError(f"{path}: is not one of the card's files; remove it from the folder")
    for name in CARD_FILES:
        _read(folder / name, LARGEST_ARRAYS if name == ARRAYS else LARGEST_JSON, card["files"][name])
    released, record = read_model(folder)
    _check_card(folder, card, released, record)
    guarantee = record.judged[0]
    try:
        with foreign_numbers():
            _check_terms(record)
            second = guarantee.verify().epsilon
    except ValueError as error:
        raise PrivSVMError(f"{folder / RECORD}: {error}; do not rely on it") from None
    if second > guarantee.epsilon_proved * 1.02 + 1e-3:
        raise PrivSVMError(
            f"{folder / RECORD}: another accountant finds epsilon {second:.4g} per row; do not rely on it"
        )
    if ledger is not None:
        _check_ledger(card, record, ledger)
    return record
