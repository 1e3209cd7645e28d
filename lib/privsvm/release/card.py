"""The card of a released model: what is promised, to whom, under which assumptions, and what is not covered."""

from __future__ import annotations

import html
import math
import os
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Literal

from privsvm.base.model_file import ModelFile, Protection, read_versioned
from privsvm.errors import printable
from privsvm.models import Model, check_model
from privsvm.release.measuring import Measurement

__all__ = [
    "CARD",
    "CARD_FORMAT",
    "CARD_VERSION",
    "PAGE",
    "card_content",
    "card_page",
    "card_pages",
    "card_text",
    "read_card",
]

CARD_FORMAT, CARD_VERSION = "privsvm card", 2
CARD, PAGE = "card.json", "card.html"

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
_WIDTH = 100


class _Unit(Model, strict=True):
    """Who is protected, and how many rows of a unit count."""

    kind: Literal["row", "person"]
    rows: int


class _Place(Model, strict=True):
    """Where the release stands in the ledger."""

    account: str
    entry: int
    head: str


class _Card(Model, strict=True):
    """What a card holds; see `card_content`."""

    format: str
    version: int
    data: str
    date: str
    privsvm: str
    model_digest: str
    protected: str
    unit: _Unit
    epsilon: float
    delta: float
    in_words: str
    status: str
    relation: str
    mechanism: str
    reference: str
    accountant: str
    randomness: str
    public: list[str]
    assumptions: list[str]
    not_covered: list[str]
    recipe: dict[str, Any]
    accuracy: str
    measured: dict[str, Any] | None = None
    how_to_load: str
    ledger: _Place
    files: dict[str, str]
    digest: str
    signature: str | None = None


def read_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a card.

    Parameters
    ----------
    path : path-like
        Its JSON file.

    Returns
    -------
    dict
        As it was written; its digest and the types of its values were checked.

    Raises
    ------
    PrivSVMError
        If it is missing, damaged, newer, or no card.
    """
    content = read_versioned(path, CARD_FORMAT, CARD_VERSION)
    check_model(_Card, content, str(path))
    return content


def card_content(
    record: ModelFile,
    account: str,
    date: str,
    accuracy: str | None,
    measured: Measurement | None = None,
    *,
    version: int = CARD_VERSION,
    first: bool = False,
) -> dict[str, Any]:
    """Put together what a card says, but for the ledger.

    Cards are checked by putting them together again: words of a version stay as they are, others are of the next one.

    Parameters
    ----------
    record : ModelFile
        Of the model.
    account : str
        Declared name of the data set.
    date : str
        Day of the release.
    accuracy : str or None
        What the user states of it.
    measured : Measurement or None
        What was measured and paid for.
    version : int
        Whose words to use.
    first : bool, default=False
        In the words of the first releases of version 1.

    Raises
    ------
    PrivSVMError
        If the record's event does not give what it says.
    """
    protection, (guarantee, computed) = record.protection, record.judged
    unit = protection.unit
    whom = "any one row of the table"
    if unit == "person":
        whom = f"any one person with all their rows (the first {protection.rows} of each count)"
        if first:
            whom = f"any one person with all rows ({protection.rows} count)"
    relation = {
        "replace_one": "replaced by any other row; the number of rows is public",
        "add_remove": "added or removed",
    }[str(guarantee.neighbours)]
    table = record.table or {}
    rows = f"the number of rows, {table['rows']}" if "rows" in table else None
    if rows is None and guarantee.neighbours == "replace_one":
        rows = "the number of rows"
    return {
        "version": version,
        "data": account,
        "date": date,
        "privsvm": record.privsvm,
        "model_digest": record.digest,
        "protected": f"{whom}, {relation}",
        "unit": {"kind": unit, "rows": protection.rows},
        "epsilon": protection.epsilon,
        "delta": protection.delta,
        "in_words": _in_words(record) if version > 1 else _in_words_of_version_1(protection),
        "status": guarantee.status,
        "relation": guarantee.neighbours,
        "mechanism": guarantee.mechanism,
        "reference": guarantee.reference,
        "accountant": computed.accountant,
        "randomness": "the operating system's entropy; no seed was used or kept",
        "public": [
            "the schema: names, bounds, categories, fill values",
            f"the classes: {', '.join(map(str, record.classes))}",
            *([rows] if rows else []),
            "method and parameters",
        ],
        "assumptions": list(guarantee.assumptions),
        "not_covered": [*_NOT_COVERED, *([_NOT_ONE_PERSON] if unit == "person" and not first else [])],
        "recipe": record.recipe,
        "accuracy": accuracy or (_NOT_MEASURED if measured is None else measured.words),
        **({} if measured is None else {"measured": measured.to_json()}),
        "how_to_load": "import privsvm; model = privsvm.load('<this folder>'); model.predict(table)",
    }


def _in_words(record: ModelFile) -> str:
    """Say the risk, rounded up."""
    if record.protection.epsilon is None:
        return "Nothing is proved of what the model may reveal."
    return _WORDS.format(record.protection.unit, math.ceil(100.0 * record.risk().guess), "")


def _in_words_of_version_1(protection: Protection) -> str:
    """Say what (epsilon, delta) alone says of the risk."""
    guess = 100.0 / (1.0 + math.exp(-min(float(protection.epsilon or 0.0), 50.0)))
    return _WORDS.format(protection.unit, f"{guess:.0f}", f", but for an event of probability {protection.delta:g}")


def card_page(content: Mapping[str, Any]) -> str:
    """Render a card as a page of HTML that loads nothing.

    Parameters
    ----------
    content : mapping
        As `card_content` returns it, with ``ledger``.
    """
    return _page(
        content, '<meta name="viewport" content="width=device-width">',
        "@media(max-width:40rem){th,td{display:block}td{padding-top:0}}", _cell,
    )  # fmt: skip


def card_pages(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Render a card in every layout that releases have had, today's first."""
    return card_page(content), _page(content, "", "", _first_cell)


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


def card_text(content: Mapping[str, Any]) -> str:
    """Write a card as text for a terminal, in the order of its page.

    Parameters
    ----------
    content : mapping
        As `card.json` holds it.
    """
    lines = [
        f"Private model of {content['data']}",
        f"epsilon {content['epsilon']:.4g} per {content['unit']['kind']}, delta {content['delta']:g}, "
        f"{content['status']}",
    ]
    for key, title in _TITLES.items():
        lines += ["", title, *_lines(content[key], "  ")]
    signed = "signed; see `privsvm verify --key`" if content.get("signature") else "not signed"
    lines += ["", "Digest of this card", f"  {content.get('digest')}, {signed}"]
    # It may be of others, who could hide what a terminal obeys in it.
    return "\n".join(map(printable, lines)) + "\n"


def _lines(value: Any, indent: str) -> list[str]:
    """Write a value as lines: one for each of a mapping's keys, a dash before each of a list's items."""
    if isinstance(value, Mapping):
        lines = []
        for key, item in value.items():
            nested = isinstance(item, (Mapping, list, tuple)) and len(item) > 0
            release_terms = (
                [f"{indent}{key}:", *_lines(item, indent + "  ")]
                if nested
                else _lines(f"{key}: {_plain(item)}", indent)
            )
            lines += release_terms
        return lines
    if isinstance(value, (list, tuple)):
        marked = [_lines(item, indent + "  ") for item in value]
        return [line for item in marked for line in [f"{indent}- {item[0].lstrip()}", *item[1:]]]
    return textwrap.wrap(
        _plain(value), _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    ) or [indent]  # fmt: skip


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not given"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _listed(value: Any) -> Any:
    return [{key: item} for key, item in value.items()] if isinstance(value, Mapping) else value


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        # A mapping within one is a list, so that its keys stand apart from those beside it.
        return "<br>".join(f"{html.escape(str(key))}: {_cell(_listed(item))}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "<ul>" + "".join(f"<li>{_cell(item)}</li>" for item in value) + "</ul>"
    return html.escape(_plain(value))


def _first_cell(value: Any) -> str:
    """Render a value as the first releases did."""
    if isinstance(value, Mapping):
        return "<br>".join(f"{html.escape(str(key))}: {_first_cell(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "<ul>" + "".join(f"<li>{_first_cell(item)}</li>" for item in value) + "</ul>"
    return html.escape(f"{value:g}" if isinstance(value, float) else str(value))
