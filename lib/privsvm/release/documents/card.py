"""The card of a released model: the promise, its holders, its assumptions, and its limits."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic

from privsvm.base.model_file import ARRAYS, RECORD, ModelFile, read_versioned
from privsvm.constraints import DAY, DIGEST, NAME, VERSION
from privsvm.errors import PrivSVMError
from privsvm.models import Model, Obeys, check_model
from privsvm.privacy.events import Neighbours
from privsvm.privacy.statement import Status
from privsvm.release.documents.calibration import HeldBackCounts
from privsvm.release.documents.class_rates import accuracy_text, class_rates, group_rates
from privsvm.release.documents.ledger import Total
from privsvm.tables.schema import Schema, parse_schema

CARD_FORMAT, CARD_VERSION = "privsvm card", 2
PAGE = "card.html"
# Their digests are on the card; its page shows the digest of the card itself.
CARD_FILES = ARRAYS, RECORD

_FALSE_POSITIVES = 0.01
_NOT_MEASURED = (
    "Not measured. The option --hold-back 0.1 keeps a tenth of the table from training, and measures the model on it."
)
_GROUPS = (
    "Intervals of the groups of one column hold together with 95 %%. A row that was held back counts once for all "
    "answers, and once more for each column (%d): noise on all counts is larger by as much, and costs no more epsilon."
)
_NOT_COVERED = (
    "Anything else that was computed from the table: statistics, plots, other models, the choice of this model among "
    "several.",
    "What is true of many people. A model of patients may show that smokers die earlier, and so something about a "
    "smoker whose data were not used.",
    "Wrong declarations: bounds, categories, classes, fill values or a number of rows that were read off the table.",
    "The computer that trained the model. Someone who reads its memory or its files may learn more, and so may someone "
    "who knows how long training took.",
    "Whether the data are right, and whether the model is fair or suits its purpose.",
)
_AVERAGED = "These limits are for this release. The model also shows what the earlier models show of their tables."
_BUILT_ON = (
    "The model is the average of this release and of these earlier ones, each with its own epsilon. A {} in several of "
    "their tables pays for each: see what was spent so far."
)
_NOT_CALIBRATED = "Probabilities. They are not calibrated: 0.2 does not mean that 20 of 100 such rows are of the class."
_TWO_IDENTIFIERS = (
    "People who are in the table under two identifiers. Each of them counts as two, and is protected less."
)


_Name = Annotated[str, Obeys(NAME)]
_Digest = Annotated[str, Obeys(DIGEST)]


class _Unit(Model, strict=True):
    """Who is protected, and how many rows of a unit count."""

    kind: Literal["row", "person"]
    rows: int


class _Risk(Model, strict=True):
    """Bounds of `Risk`, of 100 and rounded up."""

    guess: int
    true_positives: float
    false_positives: float


class _Total(Model, strict=True):
    """What all releases of the data set cost together, this one included."""

    releases: int
    epsilon: float
    delta: float
    by_relation: dict[Neighbours, float]
    guess: int
    budget: float | None


class _Place(Model, strict=True):
    """Where the release stands in the ledger."""

    account: _Name
    entry: int
    head: _Digest
    total: _Total


class _Card(Model, strict=True):
    """Content of a card; see `card_content`."""

    format: str
    version: int
    data: _Name
    date: Annotated[str, Obeys(DAY)]
    privsvm: Annotated[str, Obeys(VERSION)]
    model_digest: _Digest
    about: dict[str, str]
    predicts: str
    protected: str
    unit: _Unit
    epsilon: float
    delta: float
    risk: _Risk
    in_words: list[str]
    built_on: list[str]
    status: Status
    relation: Neighbours
    by_relation: dict[Neighbours, float]
    mechanism: str
    reference: str
    accountant: str
    randomness: str
    public: list[str]
    assumptions: list[str]
    not_covered: list[str]
    recipe: dict[str, Any]
    accuracy: str
    by_class: list[str]
    by_group: list[str] = pydantic.Field(default_factory=list)
    measured: dict[str, Any] | None = None
    explained: dict[str, Any] | None = None
    how_to_load: str
    ledger: _Place
    files: dict[str, _Digest]
    digest: _Digest
    signature: str | None = None


def read_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a card from its JSON file, and check its digest and the types of its values.

    Raises PrivSVMError if it is missing, damaged, of another version, or no card.
    """
    content = read_versioned(path, CARD_FORMAT, CARD_VERSION)
    check_model(_Card, content, str(path))
    return content


def card_content(
    record: ModelFile,
    account: str,
    date: str,
    accuracy: str | None,
    measured: HeldBackCounts | None = None,
    explained: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Put together the content of a card, but for the ledger.

    `account` is the declared name of the data set, `date` the day of the release, and `accuracy` the user's own
    statement. `explained` says which columns matter (`privsvm.release.documents.explanation`). Cards are checked by
    putting them together again: other words are of another version. Raises PrivSVMError if nothing is proved, or the
    record's event does not give its numbers.
    """
    protection, (guarantee, computed), table = record.protection, record.judged, record.table or {}
    schema = None if record.table is None else parse_schema(record.table, "the schema")
    unit, risk = protection.unit, _risk(record)
    earlier = record.releases[:-1]
    label, classes = str(table.get("label", "the class")), [str(name) for name in record.classes]
    rows = ["the number of rows"] if guarantee.neighbours == "replace_one" else []
    parameters = record.recipe.get("parameters")
    balanced = isinstance(parameters, dict) and parameters.get("class_weight") == "balanced"
    return {
        "version": CARD_VERSION,
        "data": account,
        "date": date,
        "privsvm": record.privsvm,
        "model_digest": record.digest,
        "about": dict(table.get("card", {})),
        "predicts": f"It predicts {label}: {', '.join(classes[:-1])} or {classes[-1]}.",
        "protected": _describe_unit(unit, protection.rows, guarantee.neighbours, schema),
        "unit": {"kind": unit, "rows": protection.rows},
        "epsilon": protection.epsilon,
        "delta": protection.delta,
        "risk": risk,
        "in_words": [*_in_words(unit, risk), *([_AVERAGED] if earlier else [])],
        "built_on": [_BUILT_ON.format(unit)] * bool(earlier)
        + [f"Model {one.model}: epsilon {one.epsilon:.4g} per {unit}, delta {one.delta:.3g}." for one in earlier],
        "status": guarantee.status,
        "relation": guarantee.neighbours,
        "by_relation": computed.by_relation,
        "mechanism": guarantee.mechanism,
        "reference": guarantee.reference,
        "accountant": computed.accountant,
        "randomness": "the operating system's entropy; no seed was used or kept",
        "public": [
            "the schema: names, bounds, categories, fill values",
            *([] if schema is None else schema.rules),
            f"the classes: {', '.join(map(str, record.classes))}",
            *([f"the number of rows, {table['rows']}"] if "rows" in table else rows),
            "method and parameters",
        ],
        "assumptions": list(guarantee.assumptions),
        "not_covered": [
            *_NOT_COVERED,
            *([_TWO_IDENTIFIERS] if unit == "person" else []),
            *([_NOT_CALIBRATED] if measured is None else []),
        ],
        "recipe": record.recipe,
        "accuracy": accuracy or (_NOT_MEASURED if measured is None else accuracy_text(measured, balanced)),
        "by_class": [] if measured is None else class_rates(measured, label, classes),
        **({} if measured is None or not measured.groups else {"by_group": _by_group(measured, record)}),
        **({} if measured is None else {"measured": measured.to_card()}),
        **({} if explained is None else {"explained": explained}),
        "how_to_load": "import privsvm; model = privsvm.load('<this folder>'); model.predict(table)",
    }


def _by_group(measured: HeldBackCounts, record: ModelFile) -> list[str]:
    try:
        return [*group_rates(measured, parse_schema(record.table, "the schema").groups), _GROUPS % len(measured.groups)]
    except ValueError as error:
        raise PrivSVMError(f"{RECORD}: {error}; get the model again") from None


def _describe_unit(unit: str, rows: int, relation: str | None, schema: Schema | None) -> str:
    extent = "to the extent stated below"
    if unit == "person":
        which = f"the first {rows}" if schema is None else schema.rows_that_count
        counted = "their row" if which == "the first 1" else f"all their rows, of which {which} count"
        return f"Each person in the table, with {counted}. Noise hides whether any one person is in it, {extent}."
    if relation == "replace_one":
        return f"Each row of the table. Noise hides what any one row holds, {extent}. The number of rows is public."
    return f"Each row of the table. Noise hides whether any one row is in it, {extent}."


def _risk(record: ModelFile) -> dict[str, Any]:
    """Bound the model's leakage, rounded up."""
    risk = record.risk(false_positive_rate=_FALSE_POSITIVES)
    return {
        "guess": math.ceil(100.0 * risk.guess),
        "true_positives": float(per_cent(risk.true_positive_rate)),
        "false_positives": 100.0 * _FALSE_POSITIVES,
    }


def _in_words(unit: str, risk: Mapping[str, Any]) -> list[str]:
    whose, which = "people whose data", "a certain person's data were"
    if unit == "row":
        whose, which = "rows that", "a certain row was"
    return [
        f"The model shows what is common to many {whose.split()[0]}. What it can reveal about any one is limited.",
        f"Someone who knows everything else in the table guesses whether {which} used. Without the model, the guess is "
        f"right 50 times in 100. With the model, it is right at most {risk['guess']} times in 100.",
        f"Someone who wrongly names {risk['false_positives']:g} of 100 {whose} were not used rightly names at most "
        f"{risk['true_positives']:g} of 100 {whose} were used.",
        "These limits hold for every method of guessing, whatever else is known.",
    ]


def per_cent(share: float) -> str:
    """Write a share in per cent, rounded up to three digits."""
    if not 0.0 < share < math.inf:
        return str(share)
    unit = 10.0 ** (math.floor(math.log10(share)) - 2)
    return f"{100 * unit * math.ceil(share / unit * (1.0 - 1e-12)):.3g}"


def total_on_card(total: Total, risk: Mapping[str, Any]) -> dict[str, Any]:
    """Return the card's content about all releases of the data set, beside its own risk.

    A release alone reveals no more than all together, so that the larger of both bounds holds.
    """
    own = int(risk["guess"])
    return {
        "releases": total.releases,
        "epsilon": total.epsilon,
        "delta": total.delta,
        "by_relation": dict(total.by_relation),
        "guess": own if total.releases == 1 else max(own, min(math.ceil(100.0 * total.guess()), 100)),
        "budget": total.budget,
    }
