"""The card of a released model: what is promised, to whom, under which assumptions, and what is not covered."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import Any

from privsvm.base.model_file import ModelFile

__all__ = ["CARD_VERSION", "card_content", "card_page"]

CARD_VERSION = 1

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


def card_content(record: ModelFile, account: str, date: str, accuracy: str | None) -> dict[str, Any]:
    """Put together what a card says, but for the ledger.

    Parameters
    ----------
    record : ModelFile
        Of the model.
    account : str
        Declared name of the data set.
    date : str
        Day of the release.
    accuracy : str or None
        What the user states of it; nothing is measured on the rows.

    Returns
    -------
    dict
    """
    protection, guarantee = record.protection, record.guarantee
    unit = protection.unit
    whom = "any one row of the table" if unit == "row" else f"any one person with all rows ({protection.rows} count)"
    relation = {
        "replace_one": "replaced by any other row; the number of rows is public",
        "add_remove": "added or removed",
    }[str(guarantee["neighbours"])]
    table = record.table or {}
    rows = f"the number of rows, {table['rows']}" if "rows" in table else None
    if rows is None and guarantee["neighbours"] == "replace_one":
        rows = "the number of rows"
    return {
        "data": account,
        "date": date,
        "privsvm": record.privsvm,
        "model_digest": record.digest,
        "protected": f"{whom}, {relation}",
        "unit": {"kind": unit, "rows": protection.rows},
        "epsilon": protection.epsilon,
        "delta": protection.delta,
        "in_words": _in_words(float(protection.epsilon or 0.0), protection.delta, unit),
        "status": guarantee["status"],
        "relation": guarantee["neighbours"],
        "mechanism": guarantee["mechanism"],
        "reference": guarantee["reference"],
        "accountant": protection.accountant,
        "randomness": "the operating system's entropy; no seed was used or kept",
        "public": [
            "the schema: names, bounds, categories, fill values",
            f"the classes: {', '.join(map(str, record.classes))}",
            *([rows] if rows else []),
            "method and parameters",
        ],
        "assumptions": list(guarantee["assumptions"]),
        "not_covered": list(_NOT_COVERED),
        "recipe": record.recipe,
        "accuracy": accuracy or "not stated: measuring it on the rows would cost budget",
        "how_to_load": "import privsvm; model = privsvm.load('<this folder>'); model.predict(table)",
    }


def _in_words(epsilon: float, delta: float, unit: str) -> str:
    guess = 100.0 / (1.0 + math.exp(-min(epsilon, 50.0)))
    return (
        f"Whoever guesses whether one {unit}'s data were used, with everything else known and even odds before, is "
        f"right at most {guess:.0f} times in 100 after seeing the model, but for an event of probability {delta:g}."
    )


def card_page(content: Mapping[str, Any]) -> str:
    """Render a card as a page of HTML that loads nothing.

    Parameters
    ----------
    content : mapping
        As `card_content` returns it, with ``ledger``.

    Returns
    -------
    str
    """
    titles = {
        "protected": "Who is protected", "in_words": "What this means", "relation": "Relation of neighbours",
        "delta": "Delta", "status": "Status", "mechanism": "Mechanism", "reference": "Theorem",
        "accountant": "Accountant", "randomness": "Noise", "public": "What is public",
        "assumptions": "What the proof assumes", "not_covered": "What is not covered", "accuracy": "Accuracy",
        "recipe": "Recipe", "how_to_load": "How to load it", "date": "Date", "privsvm": "Version of PrivSVM",
        "model_digest": "Digest of the model", "ledger": "Ledger",
    }  # fmt: skip
    rows = "\n".join(f"<tr><th>{titles[key]}</th><td>{_cell(content[key])}</td></tr>" for key in titles)
    name = html.escape(str(content["data"]))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>' + name + "</title>\n<style>"
        "body{font:16px/1.5 sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
        "th{text-align:left;vertical-align:top;padding:.3rem 1rem .3rem 0;white-space:nowrap}"
        "td{padding:.3rem 0;overflow-wrap:anywhere}ul{margin:0;padding-left:1.2rem}</style></head>\n"
        f"<body><h1>Private model of {name}</h1>\n"
        f"<p><strong>epsilon {content['epsilon']:.4g} per {content['unit']['kind']}</strong>, delta "
        f"{content['delta']:g}, {html.escape(str(content['status']))}.</p>\n<table>\n{rows}\n</table></body></html>\n"
    )


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return "<br>".join(f"{html.escape(str(key))}: {_cell(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "<ul>" + "".join(f"<li>{_cell(item)}</li>" for item in value) + "</ul>"
    return html.escape(f"{value:g}" if isinstance(value, float) else str(value))
