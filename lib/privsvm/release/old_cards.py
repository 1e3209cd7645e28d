"""Words and pages of cards of versions 1 and 2: they are put together again for as long as there are such cards."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from typing import Any

from privsvm.base.model_file import ModelFile, Protection
from privsvm.release.calibration import Measurement
from privsvm.release.card_page import table_cell, text_lines
from privsvm.release.measuring import MEASURED

__all__ = ["common_content", "old_card_content", "old_card_pages", "old_card_text"]

_NOT_MEASURED = "not stated, and not measured: `--hold-back 0.1` would measure it on rows that do not train"
_NOT_COVERED = (
    "Anything else that was computed from the rows: statistics, plots, earlier models, the choice of this model among "
    "others. Each needs a budget of its own.",
    "What holds of a whole population. A model may tell that smokers die earlier, also of a smoker who is not in the "
    "table.",
    "Wrong declarations: bounds, categories, classes, a number of rows or fill values that were read off the rows.",
    "The computer that trained: who reads its memory, its files or the time that it took learns more than the model "
    "tells.",
    "That the data are right, and the model fair or fit for a use.",
)


_WORDS = (
    "Whoever guesses whether one {}'s data were used, with everything else known and even odds before, is right at "
    "most {} times in 100 after seeing the model{}."
)
_NOT_ONE_PERSON = (
    "Identifiers that do not identify: who is in the table under two of them counts as two persons, and pays twice."
)
_TITLES = {
    "protected": "Who is protected", "in_words": "What this means", "relation": "Relation of neighbours",
    "delta": "Delta", "status": "Status", "mechanism": "Mechanism", "reference": "Theorem",
    "accountant": "Accountant", "randomness": "Noise", "public": "What is public",
    "assumptions": "What the proof assumes", "not_covered": "What is not covered", "accuracy": "Accuracy",
    "recipe": "Recipe", "how_to_load": "How to load it", "date": "Date", "privsvm": "Version of PrivSVM",
    "model_digest": "Digest of the model", "ledger": "Ledger",
}  # fmt: skip


def old_card_content(
    record: ModelFile,
    account: str,
    date: str,
    accuracy: str | None,
    measured: Measurement | None,
    *,
    version: int,
    first: bool,
) -> dict[str, Any]:
    """Put together what a card of version 1 or 2 says; see `privsvm.release.card.card_content`."""
    protection, unit = record.protection, record.protection.unit
    whom = "any one row of the table"
    if unit == "person":
        whom = f"any one person with all their rows (the first {protection.rows} of each count)"
        if first:
            whom = f"any one person with all rows ({protection.rows} count)"
    relation = {
        "replace_one": "replaced by any other row; the number of rows is public",
        "add_remove": "added or removed",
    }[str(record.judged[0].neighbours)]
    return {
        **common_content(record, account, date, measured),
        "version": version,
        "protected": f"{whom}, {relation}",
        "in_words": _in_words(record) if version > 1 else _in_words_of_version_1(protection),
        "not_covered": [*_NOT_COVERED, *([_NOT_ONE_PERSON] if unit == "person" and not first else [])],
        "accuracy": accuracy or (_NOT_MEASURED if measured is None else _measured_words(measured)),
    }


def common_content(record: ModelFile, account: str, date: str, measured: Measurement | None) -> dict[str, Any]:
    """Put together what cards of all versions say in the same words."""
    protection, (guarantee, computed), table = record.protection, record.judged, record.table or {}
    rows = ["the number of rows"] if guarantee.neighbours == "replace_one" else []
    return {
        "data": account,
        "date": date,
        "privsvm": record.privsvm,
        "model_digest": record.digest,
        "unit": {"kind": protection.unit, "rows": protection.rows},
        "epsilon": protection.epsilon,
        "delta": protection.delta,
        "status": guarantee.status,
        "relation": guarantee.neighbours,
        "mechanism": guarantee.mechanism,
        "reference": guarantee.reference,
        "accountant": computed.accountant,
        "randomness": "the operating system's entropy; no seed was used or kept",
        "public": [
            "the schema: names, bounds, categories, fill values",
            f"the classes: {', '.join(map(str, record.classes))}",
            *([f"the number of rows, {table['rows']}"] if "rows" in table else rows),
            "method and parameters",
        ],
        "assumptions": list(guarantee.assumptions),
        "recipe": record.recipe,
        **({} if measured is None else {"measured": measured.to_card()}),
        "how_to_load": "import privsvm; model = privsvm.load('<this folder>'); model.predict(table)",
    }


def _measured_words(measured: Measurement) -> str:
    shares = [
        f"{name} {estimate:.2f} (95 % interval {low:.2f} to {high:.2f})"
        for name, (estimate, low, high) in (
            ("accuracy", measured.accuracy),
            ("balanced accuracy", measured.balanced_accuracy),
        )
    ]
    whom = "rows" if measured.rows_per_unit == 1 else "persons"
    return (
        f"{', '.join(shares)}; {MEASURED}, {100 * measured.hold_back:.3g} % of the {whom} drawn without looking at "
        "them, which did not train. The intervals cover the noise on the counts and the drawing of new "
        f"{whom} like these"
    )


def _in_words(record: ModelFile) -> str:
    """Say the risk, rounded up."""
    return _WORDS.format(record.protection.unit, math.ceil(100.0 * record.risk().guess), "")


def _in_words_of_version_1(protection: Protection) -> str:
    """Say what (epsilon, delta) alone says of the risk."""
    guess = 100.0 / (1.0 + math.exp(-min(float(protection.epsilon or 0.0), 50.0)))
    return _WORDS.format(protection.unit, f"{guess:.0f}", f", but for an event of probability {protection.delta:g}")


def old_card_pages(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Render a card in every layout that releases of version 1 and 2 have had, the last one first."""
    last = _page(
        content, '<meta name="viewport" content="width=device-width">',
        "@media(max-width:40rem){th,td{display:block}td{padding-top:0}}", table_cell,
    )  # fmt: skip
    return last, _page(content, "", "", _first_cell)


def _page(content: Mapping[str, Any], meta: str, style: str, cell: Callable[[Any], str]) -> str:
    rows = "\n".join(f"<tr><th>{title}</th><td>{cell(content[key])}</td></tr>" for key, title in _TITLES.items())
    name = html.escape(str(content["data"]))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{meta}<title>{name}</title>\n<style>'
        "body{font:16px/1.5 sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
        "th{text-align:left;vertical-align:top;padding:.3rem 1rem .3rem 0;white-space:nowrap}"
        "td{padding:.3rem 0;overflow-wrap:anywhere}ul{margin:0;padding-left:1.2rem}"
        f"{style}</style></head>\n<body><h1>Private model of {name}</h1>\n"
        f"<p><strong>epsilon {content['epsilon']:.4g} per {content['unit']['kind']}</strong>, delta "
        f"{content['delta']:g}, {html.escape(str(content['status']))}.</p>\n<table>\n{rows}\n</table></body></html>\n"
    )


def old_card_text(content: Mapping[str, Any]) -> list[str]:
    """Write a card of version 1 or 2 as lines for a terminal, in the order of its page."""
    lines = [
        f"Private model of {content['data']}",
        f"epsilon {content['epsilon']:.4g} per {content['unit']['kind']}, delta {content['delta']:g}, "
        f"{content['status']}",
    ]
    for key, title in _TITLES.items():
        lines += ["", title, *text_lines(content[key], "  ")]
    return lines


def _first_cell(value: Any) -> str:
    """Render a value as the first releases did."""
    if isinstance(value, Mapping):
        return "<br>".join(f"{html.escape(str(key))}: {_first_cell(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "<ul>" + "".join(f"<li>{_first_cell(item)}</li>" for item in value) + "</ul>"
    return html.escape(f"{value:g}" if isinstance(value, float) else str(value))
