"""Pages and texts of cards: what everybody needs on the first screen, the rest for the reviewer.

Cards are rendered again to check them, so that a change of a layout needs a new version of the card.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from typing import Any

__all__ = ["page", "risk_picture", "table_cell", "text", "text_lines"]

_WIDTH = 100
_REVIEWER = {
    "epsilon": "Epsilon", "delta": "Delta", "status": "Status", "relation": "Neighbouring tables",
    "mechanism": "Mechanism", "reference": "Theorem, in the sources of PrivSVM",
    "accountant": "Accountant", "randomness": "Noise",
    "public": "What is public", "assumptions": "What the proof assumes", "measured": "Measured with noise",
    "recipe": "Recipe", "how_to_load": "How to load it", "date": "Date", "privsvm": "Version of PrivSVM",
    "model_digest": "Digest of the model", "ledger": "Ledger",
}  # fmt: skip

# One hundred guesses, as rows of dots.
_DOTS, _STEP, _RADIUS = 20, 18, 6.5
_STYLE = """\
:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;color:#1b1f27;max-width:48rem;margin:1.5rem auto;padding:0 1rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .8rem}
h2{font-size:1.05rem;margin:0 0 .2rem;break-after:avoid}
section{padding-bottom:1.1rem}
p,li,figure{break-inside:avoid}
p,ul{margin:.2rem 0}
ul{padding-left:1.2rem}
figure{margin:.6rem 0}
figure{max-width:23rem}
figcaption span{display:block}
details{border-top:1px solid #d9dce2;padding-top:.8rem}
summary{cursor:pointer;font-weight:600}
table{border-collapse:collapse}
th{text-align:left;vertical-align:top;padding:.3rem 1rem .3rem 0;max-width:12rem}
td{padding:.3rem 0;overflow-wrap:anywhere}
footer{font-size:.85rem;color:#525a68;overflow-wrap:anywhere;margin-top:1rem}
.before{fill:#8a93a3}.more{fill:#a4161a}.wrong{fill:#fff;stroke:#8a93a3}
@media(min-width:64rem){body{max-width:80rem}main{columns:2;column-gap:3rem}}
@media(max-width:40rem){th,td{display:block}th{padding-bottom:0}td{padding-top:0}}
"""


def risk_picture(guess: int) -> str:
    """Draw one hundred guesses: those that are right without the model, those it adds at most, and the wrong ones."""
    kinds = ["before"] * 50 + ["more"] * (guess - 50) + ["wrong"] * (100 - guess)
    places = [(_STEP * (place % _DOTS) + _STEP // 2, _STEP * (place // _DOTS) + _STEP // 2) for place in range(100)]
    dots = "".join(
        f'<circle class="{kind}" cx="{x}" cy="{y}" r="{_RADIUS}"/>' for kind, (x, y) in zip(kinds, places, strict=True)
    )
    key = "".join(
        f'<span><svg width="14" height="14" aria-hidden="true"><circle class="{kind}" cx="7" cy="7" r="6"/></svg> '
        f"{words}</span>"
        for kind, words in (
            ("before", "50 right without the model, as with a coin"),
            ("more", f"at most {guess - 50} more right with the model"),
            ("wrong", f"{100 - guess} or more still wrong"),
        )
    )
    words = f"Of 100 guesses, 50 are right without the model and at most {guess} with it"
    width, height = _DOTS * _STEP, 100 // _DOTS * _STEP
    return (
        f'<figure><svg viewBox="0 0 {width} {height}" width="100%" role="img" aria-label="{words}">{dots}</svg>'
        f"<figcaption>{key}</figcaption></figure>"
    )


def _first_screen(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what everybody needs, by its title: a text, or a list."""
    about, unit, measured = content["about"], content["unit"]["kind"], content.get("measured")
    total = content["ledger"]["total"]
    rates = content["by_class"]
    owner = [about[name] for name in ("owner", "contact") if name in about]
    owner += [f"Not to be used after {about['expires']}"] if "expires" in about else []
    if total["releases"] == 1:
        spent = f"Epsilon {total['epsilon']:.4g} per {unit}. This is the first release from this table."
    else:
        spent = (
            f"Epsilon {total['epsilon']:.4g} per {unit} in {total['releases']} releases, this one included. Someone "
            f"who sees all of them and makes the same guess is right at most {total['guess']} times in 100."
        )
    if total["budget"] is not None:
        spent += f" The limit for all releases is {total['budget']:.4g}."
    stated = "" if measured or content["accuracy"].startswith("Not measured") else "Stated by the issuer: "
    return {
        "What it is for": f"{about.get('purpose', 'No purpose is stated').rstrip('.')}. {content['predicts']}",
        "Who is protected": content["protected"],
        "What it may reveal": list(content["in_words"]),
        "How accurate it is": [stated + content["accuracy"], *rates] if rates else stated + content["accuracy"],
        "What is not covered": list(content["not_covered"]),
        "Spent on this table so far": spent,
        **({"Intended use": about["intended_use"]} if "intended_use" in about else {}),
        **({"Who answers for it": ". ".join(owner) + "."} if owner else {}),
    }


def page(content: Mapping[str, Any]) -> str:
    """Render a card as HTML that loads nothing.

    The card has ``ledger``, and its digest and signature where there are any.
    """
    sections = []
    for title, value in _first_screen(content).items():
        if title == "What it may reveal":
            lines = [f"<p>{html.escape(sentence)}</p>" for sentence in value]
            # After the sentence that says the same.
            lines.insert(2, risk_picture(content["risk"]["guess"]))
            body = "".join(lines)
        else:
            body = table_cell(value) if isinstance(value, list) else f"<p>{table_cell(value)}</p>"
        sections.append(f"<section><h2>{title}</h2>{body}</section>")
    rows = "\n".join(
        f"<tr><th>{title}</th><td>{table_cell(content[key])}</td></tr>"
        for key, title in _REVIEWER.items()
        if key in content
    )
    name = html.escape(str(content["data"]))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{name}</title>\n<style>\n{_STYLE}</style></head>\n'
        f"<body><h1>Private model of {name}</h1>\n<main>\n"
        + "\n".join(sections)
        + f"\n</main>\n<details><summary>For the reviewer</summary>\n<table>\n{rows}\n</table></details>\n"
        f"<footer>{'<br>'.join(map(html.escape, _footer(content)))}</footer></body></html>\n"
    )


def _footer(content: Mapping[str, Any]) -> list[str]:
    signature = content.get("signature")
    return [
        f"Digest of this card: {content.get('digest')}",
        "Not signed." if signature is None else f"Signature (Ed25519): {signature}",
        "The command privsvm verify checks them, and computes epsilon and risk again.",
    ]


def text(content: Mapping[str, Any]) -> list[str]:
    """Write a card as lines for a terminal, in the order of its page."""
    lines = [f"Private model of {content['data']}"]
    for title, value in _first_screen(content).items():
        lines += ["", title, *text_lines(value, "  ")]
    lines += ["", "FOR THE REVIEWER"]
    for key, title in _REVIEWER.items():
        if key in content:
            lines += ["", title, *text_lines(content[key], "  ")]
    return lines


def text_lines(value: Any, indent: str) -> list[str]:
    """Write a value as lines: one for each of a mapping's keys, a dash before each of a list's items."""
    if isinstance(value, Mapping):
        lines = []
        for key, item in value.items():
            nested = isinstance(item, (Mapping, list, tuple)) and len(item) > 0
            lines += (
                [f"{indent}{key}:", *text_lines(item, indent + "  ")]
                if nested
                else text_lines(f"{key}: {_plain(item)}", indent)
            )
        return lines
    if isinstance(value, (list, tuple)):
        marked = [text_lines(item, indent + "  ") for item in value]
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


def table_cell(value: Any) -> str:
    """Render a value as HTML."""
    if isinstance(value, Mapping):
        # A mapping within one is a list, so that its keys stand apart from those beside it.
        return "<br>".join(f"{html.escape(str(key))}: {table_cell(_listed(item))}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "<ul>" + "".join(f"<li>{table_cell(item)}</li>" for item in value) + "</ul>"
    return html.escape(_plain(value))
