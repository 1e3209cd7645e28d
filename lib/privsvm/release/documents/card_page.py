"""Pages and texts of cards: what everybody needs on the first screen, the rest for the reviewer.

Cards are rendered again to check them, so that a change of a layout needs a new version of the card.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from privsvm.release.documents.explanation import ColumnShare
from privsvm.release.documents.rendering import mark_lines, plain, render

_WIDTH = 100
_COLUMNS = "Which columns matter"
_REVIEWER = {
    "epsilon": "Epsilon", "delta": "Delta", "status": "Status", "relation": "Neighbouring tables",
    "by_relation": "Epsilon under each relation",
    "mechanism": "Mechanism", "reference": "Theorem, in the sources of PrivSVM",
    "accountant": "Accountant", "randomness": "Noise",
    "public": "What is public", "assumptions": "What the proof assumes", "measured": "Measured with noise",
    "recipe": "Recipe", "how_to_load": "How to load it", "date": "Date", "privsvm": "Version of PrivSVM",
    "model_digest": "Digest of the model", "ledger": "Ledger",
}  # fmt: skip


def _first_screen(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what everybody needs, by its title: a text, or a list."""
    about, unit, measured = content["about"], content["unit"]["kind"], content.get("measured")
    total = content["ledger"]["total"]
    rates = [*content["by_class"], *content.get("by_group", [])]
    owner = [about[name] for name in ("owner", "contact") if name in about]
    owner += [f"Not to be used after {about['expires']}"] if "expires" in about else []
    changed = {"add_remove": "added or removed", "replace_one": "replaced"}
    each = [f"{epsilon:.4g} per {unit} {changed[relation]}" for relation, epsilon in total["by_relation"].items()]
    cost = f"Epsilon {', '.join(each)}"
    if total["releases"] == 1:
        spent = f"{cost}. This is the first release from this table."
    else:
        spent = (
            f"{cost}, in {total['releases']} releases, this one included. Someone "
            f"who sees all of them and makes the same guess is right at most {total['guess']} times in 100."
        )
    if total["budget"] is not None:
        spent += f" The limit for all releases is {total['budget']:.4g}."
    stated = "" if measured or content["accuracy"].startswith("Not measured") else "Stated by the issuer: "
    return {
        "What it is for": f"{about.get('purpose', 'No purpose is stated').rstrip('.')}. {content['predicts']}",
        "Who is protected": content["protected"],
        "What it may reveal": list(content["in_words"]),
        **({"What it was built on": list(content["built_on"])} if content["built_on"] else {}),
        "How accurate it is": [stated + content["accuracy"], *rates] if rates else stated + content["accuracy"],
        **(
            {_COLUMNS: [str(ColumnShare(*share)) for share in content["explained"]["shares"]]}
            if "explained" in content
            else {}
        ),
        "What is not covered": list(content["not_covered"]),
        "Spent on this table so far": spent,
        **({"Intended use": about["intended_use"]} if "intended_use" in about else {}),
        **({"Who answers for it": ". ".join(owner) + "."} if owner else {}),
    }


def page(card: Mapping[str, Any]) -> str:
    """Render a card as HTML that loads nothing.

    The card has ``ledger``, and its digest and signature where there are any.
    """
    return _render("card.html", card)


def card_text(card: Mapping[str, Any]) -> str:
    """Write a card, the content of `card.json`, as text for a terminal, in the order of its page."""
    return _render("card.txt", card)


def _render(template: str, card: Mapping[str, Any]) -> str:
    return render(
        template,
        name=card["data"],
        guess=card["risk"]["guess"],
        digest=card.get("digest"),
        signature=card.get("signature"),
        explained=card.get("explained"),
        sections=_first_screen(card),
        reviewer={title: card[key] for key, title in _REVIEWER.items() if key in card},
        lines=lambda value: mark_lines(_text_lines(value, "  ")),
    )


def _text_lines(value: Any, indent: str) -> list[str]:
    """Write a value as lines: one for each of a mapping's keys, a dash before each of a list's items."""
    if isinstance(value, Mapping):
        lines = []
        for key, item in value.items():
            nested = isinstance(item, (Mapping, list, tuple)) and len(item) > 0
            lines += (
                [f"{indent}{key}:", *_text_lines(item, indent + "  ")]
                if nested
                else _text_lines(f"{key}: {plain(item)}", indent)
            )
        return lines
    if isinstance(value, (list, tuple)):
        marked = [_text_lines(item, indent + "  ") for item in value]
        return [line for item in marked for line in [f"{indent}- {item[0].lstrip()}", *item[1:]]]
    return textwrap.wrap(
        plain(value), _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    ) or [indent]  # fmt: skip
