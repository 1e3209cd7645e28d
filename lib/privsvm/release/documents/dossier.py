"""Answers to a reviewer of a released model, by the points of NIST SP 800-226: from its record, card and ledger."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from privsvm.base.model_file import ModelFile
from privsvm.escaping import markdown_text
from privsvm.privacy.events import Event, leaves
from privsvm.release.documents.card import CARD, per_cent, read_card
from privsvm.release.documents.ledger import Ledger
from privsvm.release.documents.verifying import verify
from privsvm.tables.schema import parse_schema

__all__ = ["dossier"]

_UNANSWERED = (
    "Who collected the data, on what legal ground, and who is the owner of this model?",
    "Who can read the table, its backups and the computer that trained? How is that logged?",
    "Where were bounds, categories, classes and fill values taken from, if not from the rows?",
    "Which other results from the same rows were published, and what do they cost together?",
    "Is the model accurate enough for every group of people that it will judge? What happens to those it gets wrong?",
    "When will the model be retired, and what is the total budget of this table?",
)


def dossier(folder: str | os.PathLike[str], ledger: Ledger | None = None) -> str:
    """Write a dossier in Markdown, after the folder was verified.

    With a ledger, which must hold the release, the dossier states the cost of all releases of the data set together.
    Words of the files are escaped. Raises PrivSVMError if `verify` refuses the folder.
    """
    record = verify(folder, ledger=ledger)
    card = read_card(Path(folder) / CARD)
    sections = (
        ("Privacy parameters", _parameters(record)),
        ("Risk", _risk(record)),
        ("Unit of privacy", _unit(record, card)),
        ("Mechanism", _mechanism(record, card)),
        ("Composition", _composition(record, card, ledger)),
        ("Accuracy and bias", _accuracy(card)),
        ("Correctness", _correctness(record)),
        ("Trust and security", _security(card)),
        ("Exposure of the data", _exposure(record, card)),
        ("What the proof assumes", _list(card["assumptions"])),
        ("What is not covered", _list(card["not_covered"])),
        ("For you to answer", _list(_UNANSWERED)),
    )
    lines = [
        f"# Dossier of the private model of {markdown_text(card['data'])}",
        "",
        f"Model `{record.digest}`, released on {card['date']} with PrivSVM {record.privsvm}. The order "
        "is that of the points in NIST SP 800-226 (2025): parameters, unit, mechanism, accuracy, security, data. Every "
        "number was computed again from the files of the release, but for an accuracy that its issuer states.",
    ]
    if card["about"]:
        answers = ((name.replace("_", " "), text) for name, text in card["about"].items())
        lines += ["", *_table(("point", "answer of the owner"), answers)]
    for number, (title, content) in enumerate(sections, start=1):
        lines += ["", f"## {number}. {title}", "", *content]
    return "\n".join(lines) + "\n"


def _list(items: Iterable[Any]) -> list[str]:
    return [f"- {markdown_text(item)}" for item in items]


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    marked = [head, ["---"] * len(head), *([markdown_text(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in marked]


def _parameters(record: ModelFile) -> list[str]:
    guarantee, protection = record.judged
    variant = "pure differential privacy" if protection.delta == 0 else "approximate differential privacy"
    rows = (
        ("variant", f"{variant}, central model"),
        ("epsilon", f"{protection.epsilon:.6g} per {protection.unit}"),
        ("delta", f"{protection.delta:.3g}"),
        ("status", guarantee.status),
        ("asked of the training", f"epsilon {guarantee.epsilon_requested:.6g} per row"),
        ("accountant", protection.accountant),
    )
    return _table(("parameter", "value"), rows)


def _risk(record: ModelFile) -> list[str]:
    unit, rows = record.protection.unit, []
    for prior in (0.5, 0.1, 0.01):
        right, alone = per_cent(record.risk(prior=prior).guess), 100 * max(prior, 1 - prior)
        question = f"{100 * prior:g} in 100 candidates were used: right guesses"
        rows.append((question, f"at most {right} in 100 (without the model {alone:g})"))
    for rate in (0.01, 0.001):
        named = per_cent(record.risk(false_positive_rate=rate).true_positive_rate)
        rows.append((f"a test wrongly names {100 * rate:g} in 100: it finds", f"at most {named} in 100 of those used"))
    for units in (2, 5):
        right = per_cent(record.risk(units).guess)
        rows.append((f"{units} {unit}s, all used or none, at even odds: right guesses", f"at most {right} in 100"))
    one = record.risk()
    rows.append(("advantage of any test", f"at most {per_cent(one.advantage)} in 100"))
    rows.append(("mu of the Gaussian curve above all tests", per_cent(one.mu / 100)))
    words = f"Someone who knows everything else, and has the model, guesses whether one {unit} was used."
    return [words, "", *_table(("question", "bound"), rows)]


def _unit(record: ModelFile, card: dict[str, Any]) -> list[str]:
    contribution = "one row is one unit; whoever is in several rows is protected in each of them alone"
    if record.protection.unit == "person":
        most = record.protection.rows
        contribution = f"the first {most} rows of each person in the file count, whatever they hold, and no others"
    rows = (
        ("protected", card["protected"]),
        ("contribution", contribution),
        ("relation of single rows", card["relation"]),
    )
    return _table(("point", "answer"), rows)


def _event_words(event: Event) -> str:
    def words(value: Any) -> str:
        if isinstance(value, (int, float)):
            return f"{value:.6g}"
        if isinstance(value, Event):
            return _event_words(value)
        return "; ".join(map(words, value)) if isinstance(value, tuple) else str(value)

    names = [field.name for field in dataclasses.fields(event) if field.name != "kind"]
    given = [f"{name} {words(getattr(event, name))}" for name in names if getattr(event, name) is not None]
    return f"{type(event).__name__}: {', '.join(given)}"


def _mechanism(record: ModelFile, card: dict[str, Any]) -> list[str]:
    guarantee, recipe = record.judged[0], record.recipe
    assert guarantee.event is not None
    rows = (
        ("mechanism", guarantee.mechanism),
        ("theorem", guarantee.reference),
        ("source of the noise", card["randomness"]),
        ("sensitivity", "see the theorem" if guarantee.sensitivity is None else f"{guarantee.sensitivity:.6g}"),
        ("method", recipe.get("method")),
        ("public parameters", json.dumps(recipe.get("parameters"), sort_keys=True)),
    )
    events = [(_event_words(event), count) for event, count in leaves(guarantee.event)]
    words = "What was done with the rows, for the accountant; a noise multiplier is noise over what one row adds:"
    return [*_table(("point", "answer"), rows), "", words, "", *_table(("event", "times"), events)]


def _composition(record: ModelFile, card: dict[str, Any], ledger: Ledger | None) -> list[str]:
    place = card["ledger"]
    lines = [
        "Counts, choice of features, training and any measurement on held-back rows share one budget: epsilon covers "
        "all of them together.",
        "",
        f"Entry {place['entry']} of account {markdown_text(place['account'])} in the ledger, `{place['head']}`.",
    ]
    total = None if ledger is None else ledger.total(place["account"])
    if total is not None:
        budget = "" if total.budget is None else f" Their budget is epsilon {total.budget:g}."
        return [
            *lines,
            "",
            f"The ledger holds {total.releases} release(s) of this data set. Together they cost epsilon "
            f"{total.epsilon:.4g} and delta {total.delta:.3g} per {total.unit} ({total.accountant}).{budget}",
        ]
    spent = place["total"]
    return [
        *lines,
        "",
        f"When it was released, it was release {spent['releases']} of this data set, and all releases cost epsilon "
        f"{spent['epsilon']:.4g} and delta {spent['delta']:.3g} together.",
        "",
        "What later releases of the data set cost is not known here: give `--ledger`.",
    ]


def _accuracy(card: dict[str, Any]) -> list[str]:
    bias = "Accuracy for groups of people was not measured. Noise harms rare classes and small groups most."
    rates = ["", *_list(card["by_class"])] if card["by_class"] else []
    return [markdown_text(card["accuracy"]), *rates, "", bias]


def _correctness(record: ModelFile) -> list[str]:
    method, relation = record.recipe.get("method"), record.judged[0].neighbours
    audits = json.loads(Path(__file__).with_name("audits.json").read_text(encoding="utf-8"))["audits"]
    lines = [
        "- The files are those of the card, and the card is the one that its record gives.",
        "- Epsilon was computed again from the event, and by an accountant of another kind.",
        f"- The proof is public, and comes with tests: {markdown_text(record.judged[0].reference)}.",
    ]
    rows = [
        (steps, f"{draws:,}", f"{epsilon:g}", bound)
        for neighbours, steps, draws, epsilon, bound in audits.get(str(method), [])
        if neighbours == relation
    ]
    if not rows:
        return [*lines, "- This method was not audited for this relation."]
    words = (
        "Audits of the method, on made-up rows under this relation: how large epsilon must be for what was seen, with "
        "95 % confidence. A bound above the stated epsilon would refute the proof."
    )
    return [*lines, "", words, "", *_table(("steps", "draws", "stated epsilon", "bound"), rows)]


def _security(card: dict[str, Any]) -> list[str]:
    signature = (
        "The card is signed: check it with `privsvm verify --key`."
        if card.get("signature")
        else "The card is not signed."
    )
    return [
        "- Trust: whoever trains sees the whole table (central model). Nobody else needs to be trusted.",
        "- Noise is exact, so round-off reveals nothing. The files hold no code and no seed, and no training rows "
        "unless the method publishes some by design.",
        "- Not covered: training time, memory, and files of the computer that trained.",
        f"- {signature} Digests find accidents; only a signature finds forgeries.",
    ]


def _exposure(record: ModelFile, card: dict[str, Any]) -> list[str]:
    lines = ["Public, because people declared it:", "", *_list(card["public"])]
    if record.table is None:
        return lines
    schema = parse_schema(record.table, "the model's schema")
    rows = [(name, column.kind) for name, column in schema.features.items()]
    words = "The model reads these columns; the table may hold others, which were not used:"
    return [*lines, "", words, "", *_table(("column", "kind"), rows)]
