"""Answers to a reviewer of a released model, by the points of NIST SP 800-226: from its record, card and ledger."""

from __future__ import annotations

import json
import os
from pathlib import Path

from privsvm.base.model_file import CARD, ModelFile
from privsvm.privacy.events import (
    BestOfNegativeBinomial,
    BestOfPoisson,
    Composed,
    EpsilonDelta,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    OneOf,
    PerturbedObjectives,
    PoissonSampled,
    SelfComposed,
    ZeroConcentrated,
    leaves,
)
from privsvm.privacy.statement import describe_relations
from privsvm.release.documents.card import per_cent, read_card
from privsvm.release.documents.ledger import Ledger, cost_words
from privsvm.release.documents.rendering import render
from privsvm.release.documents.verifying import verify
from privsvm.tables.schema import parse_schema


def dossier(folder: str | os.PathLike[str], ledger: Ledger | None = None) -> str:
    """Write a dossier in Markdown, after the folder was verified.

    With a ledger, which must hold the release, the dossier states the cost of all releases of the data set together.
    Words of the files are escaped. Raises PrivSVMError if `verify` refuses the folder.
    """
    record = verify(folder, ledger=ledger)
    card = read_card(Path(folder) / CARD)
    guarantee, protection = record.judged
    assert guarantee.event is not None
    schema = None if record.table is None else parse_schema(record.table, "the model's schema")
    total = None if ledger is None else ledger.total(card["ledger"]["account"])
    audits = json.loads(Path(__file__).with_name("audits.json").read_text(encoding="utf-8"))["audits"]
    return render(
        "dossier.md",
        card=card,
        about=[(name.replace("_", " "), answer) for name, answer in card["about"].items()],
        record=record,
        guarantee=guarantee,
        protection=protection,
        unit=protection.unit,
        relations=describe_relations(protection.by_relation),
        risk=_risk(record),
        events=[(describe_event(event), count) for event, count in leaves(guarantee.event)],
        parameters=json.dumps(record.recipe.get("parameters"), sort_keys=True),
        total=total,
        total_cost=None if total is None else cost_words(total),
        audits=[
            (steps, f"{draws:,}", f"{epsilon:g}", bound)
            for relation, steps, draws, epsilon, bound in audits.get(str(record.recipe.get("method")), [])
            if relation == guarantee.neighbours
        ],
        rows_that_count=f"the first {protection.rows}" if schema is None else schema.rows_that_count,
        columns=None if schema is None else [(name, column.kind) for name, column in schema.features.items()],
    )


def _risk(record: ModelFile) -> list[tuple[str, str]]:
    """List questions about one unit, or several, and the bounds of all answers."""
    rows = []
    for prior in (0.5, 0.1, 0.01):
        right, alone = per_cent(record.risk(prior=prior).guess), 100 * max(prior, 1 - prior)
        question = f"{100 * prior:g} in 100 candidates were used: right guesses"
        rows.append((question, f"at most {right} in 100 (without the model {alone:g})"))
    for rate in (0.01, 0.001):
        named = per_cent(record.risk(false_positive_rate=rate).true_positive_rate)
        rows.append((f"a test wrongly names {100 * rate:g} in 100: it finds", f"at most {named} in 100 of those used"))
    for units in (2, 5):
        right, unit = per_cent(record.risk(units).guess), record.protection.unit
        rows.append((f"{units} {unit}s, all used or none, at even odds: right guesses", f"at most {right} in 100"))
    one = record.risk()
    rows.append(("advantage of any test", f"at most {per_cent(one.advantage)} in 100"))
    return [*rows, ("mu of the Gaussian curve above all tests", per_cent(one.mu / 100))]


def describe_event(event: Event) -> str:
    """Say in a sentence's part how the rows were read, and the noise that hides one of them."""
    match event:
        case Gaussian(noise_multiplier=noise):
            return f"sums over rows, with Gaussian noise whose standard deviation is {noise:.6g} times one row's part"
        case Laplace(noise_multiplier=noise):
            return f"sums over rows, with Laplace noise whose scale is {noise:.6g} times one row's part"
        case ExponentialMechanism(epsilon=epsilon):
            return f"a random choice among public candidates, the better ones likelier, with epsilon {epsilon:.6g}"
        case ZeroConcentrated(rho=rho):
            return f"a release with rho-zCDP, rho {rho:.6g}"
        case PerturbedObjectives():
            return (
                f"the best models ({event.n_objectives}) for the rows and a random slope, one row's part of which is "
                f"{event.signal:.6g} standard deviations and adds {event.curvature:.6g} of the curvature, with "
                f"Gaussian noise of {event.output_multiplier:.6g} times one row's part"
            )
        case EpsilonDelta(epsilon=epsilon, delta=delta):
            return f"a release with epsilon {epsilon:.6g} and delta {delta:.6g}"
        case PoissonSampled(sampling_probability=share):
            return f"rows drawn with chance {share:.6g} each, secretly: {describe_event(event.event)}"
        case SelfComposed(count=count):
            return f"{count} times: {describe_event(event.event)}"
        case Composed(events=events):
            return "; then ".join(map(describe_event, events))
        case OneOf(events=events):
            return f"one of these, chosen without looking at a row: {'; or '.join(map(describe_event, events))}"
        case BestOfNegativeBinomial(shape=shape, gamma=gamma):
            drawn = f"negative binomial, shape {shape:.6g}, gamma {gamma:.6g}"
        case BestOfPoisson(parameter=mean):
            drawn = f"Poisson, {mean:.6g}"
        case _:
            return "rows released without noise"
    return f"the best of a random and secret number of runs ({drawn}), each: {describe_event(event.event)}"
