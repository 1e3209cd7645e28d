"""The gate: the only code that makes a record which says ``proved``, or ``seeded`` where the noise was.

It grants the word from declared facts (`privsvm.privacy.assumptions`) and an event (`privsvm.privacy.events`), from
which it computes epsilon itself. It refuses by default: a fact that nobody states is broken. Estimators, pipeline and
reproductions pass through it, and so does every record that is read back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.digests import canonical_json
from privsvm.privacy.accountants import account
from privsvm.privacy.assumptions import FACTS, Facts, fact_assumptions, failings, merged
from privsvm.privacy.events import (
    Composed,
    EpsilonDelta,
    Event,
    check_effort,
    noise_multipliers,
    relation_factor,
)
from privsvm.privacy.guarantee import THE_GRANT, Guarantee, Neighbours, Randomness, Statement, Witness

__all__ = [
    "LARGEST_DELTA",
    "LARGEST_EPSILON",
    "ONE_MODEL",
    "ONE_OF_SEVERAL",
    "SECRET_SEED",
    "THIS_STEP_ALONE",
    "Claim",
    "Stored",
    "agrees",
    "compose",
    "foreign_numbers",
    "grant",
    "refusals",
    "restore",
    "with_assumption",
]

LARGEST_EPSILON, LARGEST_DELTA = 50.0, 0.01

SECRET_SEED = (  # nosec B105
    "the noise was seeded, for a benchmark: epsilon is that of system noise; the seed is secret, stored nowhere and "
    "used for one release only"
)
# The words of the first version.
_FIRST_SECRET_SEED = (  # nosec B105
    "proved for system noise, and this noise was seeded, for a benchmark: the seed is secret, stored nowhere and used "
    "for one release only"
)
ONE_MODEL = "one model is released; several add up"
ONE_OF_SEVERAL = (
    "this is a clone, one of several fits on the same rows: their budgets add up, and no choice among them is covered"
)
THIS_STEP_ALONE = "the status is that of this step alone: rows reach it untouched by other rows"
OUTSIDE = "covered is the released model, and nothing else that is computed from the rows"

# How exactly two computations of one epsilon agree, on two machines; and how much more an older accountant may have
# found for an event.
_STORED_ACCURACY, _OLDER = 1e-6, 0.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A method's statement about a release that a theorem covers.

    Epsilon is computed from `event`, the release's effect on the rows. To the theorem's assumptions, the gate adds
    assumptions of the facts and of the noise. See `privsvm.privacy.guarantee.Statement` for the other fields.
    """

    event: Event
    mechanism: str
    reference: str
    neighbours: Neighbours
    epsilon_requested: float
    delta: float
    sensitivity: float | None = None
    noise_scale: float | None = None
    assumptions: tuple[str, ...] = ()


def grant(claim: Claim, facts: Facts, randomness: Randomness, witness: Witness | None = None) -> Guarantee:
    """Make the record of a release that a theorem covers.

    It says ``proved`` or ``seeded``, by the noise; or ``claimed`` with the reasons, where a fact is broken or the
    numbers are out of all measure. Raises ValueError if the event costs more than was requested, or an exact witness
    refutes the proof: a fault of the method.
    """
    accounted = account(claim.event, claim.delta, claim.neighbours)
    if accounted.epsilon > claim.epsilon_requested:
        raise ValueError(f"epsilon_requested is {claim.epsilon_requested}: the event costs {accounted.epsilon}")
    fields = vars(claim) | {
        "accountant": accounted.accountant,
        "randomness": randomness,
        "facts": facts,
        "assumptions": _with_own(claim.assumptions, facts, claim.neighbours, randomness),
        "witness": witness,
    }
    return _judge(fields, accounted.epsilon)


def _with_own(
    assumptions: Sequence[str], facts: Facts, neighbours: Neighbours | None, randomness: Randomness | None
) -> tuple[str, ...]:
    """Add the gate's own assumptions to a theorem's: first that nothing is known of earlier treatment."""
    first = (THIS_STEP_ALONE,) if getattr(facts, "preparation", None) == "as given" else ()
    seed = (SECRET_SEED,) if randomness == "seeded" else ()
    gate_assumptions = (*fact_assumptions(facts, neighbours), *seed, OUTSIDE)
    return tuple(dict.fromkeys((*first, *assumptions, *gate_assumptions)))


def refusals(facts: Facts | None, neighbours: Neighbours | None, delta: float, epsilon: float) -> list[str]:
    """List everything that stands between a release and the word, at this delta and epsilon."""
    reasons = failings(facts, neighbours)
    if epsilon > LARGEST_EPSILON:
        reasons.append(f"epsilon is {epsilon:.6g}: above {LARGEST_EPSILON:g}, the word proved would mean nothing")
    if delta > LARGEST_DELTA:
        reasons.append(f"delta is {delta:.3g}: above {LARGEST_DELTA:g}, the word proved would mean nothing")
    rows = None if facts is None else facts.declared_rows
    if rows is not None and delta * rows >= 1.0:
        reasons.append(f"delta is {delta:.3g}: at 1 / {rows} or more, it allows a row to be published")
    if facts is not None and facts.n_rows == "declared" and rows is None:
        reasons.append("n_rows is said to be declared, and nobody says what it is")
    return reasons


def _judge(fields: Mapping[str, Any], epsilon: float) -> Guarantee:
    """Make a record that says ``proved`` or ``seeded``, or why not."""
    reasons = refusals(fields["facts"], fields["neighbours"], fields["delta"], epsilon)
    if not math.isfinite(epsilon):
        reasons.append("no accountant bounds the event")
    lower = {"epsilon_proved": math.inf, "epsilon_with_system_noise": math.inf}
    if reasons:
        return Guarantee(**{**fields, **lower, "status": "claimed", "reason": "; ".join(reasons)})
    lower["epsilon_with_system_noise"] = epsilon
    if fields["randomness"] != "system":
        return Guarantee(**{**fields, **lower, "status": "seeded"}, grant=THE_GRANT)
    return Guarantee(**{**fields, **lower, "status": "proved", "epsilon_proved": epsilon}, grant=THE_GRANT)


def restore(record: Statement | Mapping[str, Any], rows: int | None = None, **stated: Any) -> Guarantee:
    """Restore the record of a release, of our own or of others; or judge it once more, by other facts.

    `record` is a statement as it was read or, from somebody's file (a model, a ledger, a pickle), its fields, or what
    JSON makes of them. With `rows`, the rows of a unit for which others' record will be accounted, large events are
    refused: see `check_effort`. `stated` are facts that its maker could not know, about where the rows come from, in
    place of the record's.

    The result is ``proved`` or ``seeded`` only if the record says so, its event has its epsilon, and every fact holds.
    Where facts that are stated now break it, or something did before, reasons are added; one that says ``none`` is
    returned as it is. A record of the first version that calls a release with seeded noise ``proved`` is ``seeded``.

    Raises ValueError if the record says ``proved`` or ``seeded`` and a fact of its own is broken, its event has another
    epsilon or other noise, or it lacks an assumption that the gate adds; for fields of other types, and for events of
    others that cannot be accounted for.
    """
    if isinstance(record, Statement):
        guarantee = _check(record)
        return _with_facts(guarantee, stated) if stated else guarantee
    with foreign_numbers():
        # A pass through JSON drops all other types, such as events of a caller's class.
        statement: Statement = _statements().validate_json(canonical_json(record))
        if statement.event is not None and rows is not None:
            check_effort(statement.event, rows)
        return restore(statement, **stated)


def agrees(accounted: float, stated: float) -> bool:
    """Tell whether a stated epsilon is the accounted one, or a little more; false where nothing bounds the event."""
    low, high = accounted * (1.0 - _STORED_ACCURACY), accounted * (1.0 + _OLDER)
    return math.isfinite(accounted) and low <= stated <= high


def with_assumption(guarantee: Guarantee, assumption: str) -> Guarantee:
    """Return a record that assumes one thing more."""
    fields = _fields(guarantee) | {"assumptions": (*guarantee.assumptions, assumption)}
    return Guarantee(**fields, grant=THE_GRANT if guarantee.theorem_holds else None)


def _fields(statement: Statement) -> dict[str, Any]:
    return {field.name: getattr(statement, field.name) for field in dataclasses.fields(statement)}


def _with_facts(guarantee: Guarantee, stated: Mapping[str, Any]) -> Guarantee:
    """Judge a record once more, with facts in place of its own."""
    if guarantee.status == "none":
        return guarantee
    if guarantee.facts is None:
        # Published as it is: nobody judged its facts, but earlier treatment of its rows counts too.
        for reason in failings(Facts(**stated), guarantee.neighbours, tuple(name for name in FACTS if name in stated)):
            if reason not in (guarantee.reason or ""):
                guarantee = guarantee.with_broken_assumption(reason)
        return guarantee
    facts = dataclasses.replace(guarantee.facts, **stated)
    gate_assumptions = {*fact_assumptions(guarantee.facts, guarantee.neighbours), THIS_STEP_ALONE, SECRET_SEED, OUTSIDE}
    theorem = [text for text in guarantee.assumptions if text not in gate_assumptions]
    assumptions = _with_own(theorem, facts, guarantee.neighbours, guarantee.randomness)
    if guarantee.theorem_holds:
        fields = _fields(guarantee) | {"facts": facts, "assumptions": assumptions}
        return _judge(fields, guarantee.epsilon_with_system_noise)
    known = guarantee.reason or ""
    reasons = refusals(facts, guarantee.neighbours, guarantee.delta or 0.0, 0.0)
    text = "; ".join([known, *(reason for reason in reasons if reason not in known)])
    return dataclasses.replace(guarantee, facts=facts, assumptions=assumptions, reason=text)


def _check(statement: Statement) -> Guarantee:
    """Restore a statement, or raise ValueError if its parts do not fit together."""
    if not statement.theorem_holds:
        return Guarantee(**_fields(statement))
    event, delta, neighbours = statement._known
    epsilon = getattr(statement, statement._epsilon_key)
    reasons = refusals(statement.facts, neighbours, delta, epsilon)
    if reasons:
        raise ValueError(f"status is {statement.status!r}: {reasons[0]}")
    accounted_epsilon = account(event, delta, neighbours).epsilon
    if not agrees(accounted_epsilon, epsilon):
        raise ValueError(f"{statement._epsilon_key} is {epsilon}: its event gives {accounted_epsilon:.9g}")
    _check_noise(statement, event, neighbours)
    assumptions = tuple(SECRET_SEED if text == _FIRST_SECRET_SEED else text for text in statement.assumptions)
    if (SECRET_SEED in assumptions) != (statement.randomness == "seeded"):
        raise ValueError(f"randomness is {statement.randomness!r}: the assumptions say otherwise")
    assert statement.facts is not None
    for text in _with_own((), statement.facts, neighbours, statement.randomness):
        # Records of earlier versions lack the first.
        if text not in (THIS_STEP_ALONE, *assumptions):
            raise ValueError(f"assumptions: lack {text!r}, without which nothing is proved")
    # The noise decides, not the word of the file: the first version had one word for both.
    return _judge(_fields(statement) | {"assumptions": assumptions}, epsilon)


def _check_noise(statement: Statement, event: Event, neighbours: Neighbours) -> None:
    """Raise ValueError where a record states a sensitivity and a scale of noise that no part of its event has."""
    sensitivity, scale = statement.sensitivity, statement.noise_scale
    multipliers = list(noise_multipliers(event, neighbours))
    if sensitivity is None and scale is not None:
        raise ValueError(f"noise_scale is {scale}: of what sensitivity is not stated")
    if sensitivity is None or scale is None or not multipliers:
        return
    stated = scale * relation_factor(neighbours)
    scales = [multiplier * sensitivity for multiplier in multipliers]
    if not any(abs(stated - one) <= _STORED_ACCURACY * stated for one in scales):
        known = ", ".join(f"{one / relation_factor(neighbours):.9g}" for one in scales)
        raise ValueError(f"noise_scale is {scale}: for a sensitivity of {sensitivity:.9g} its event has {known}")


class Stored:
    """Mark a field of a record whose guarantees are read through `restore`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Read a `Statement`, then judge it."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(restore, handler.generate_schema(Statement))


@functools.cache
def _statements() -> Any:
    # Imported late: training does not wait for pydantic.
    import pydantic

    return pydantic.TypeAdapter(Statement)


@contextlib.contextmanager
def foreign_numbers() -> Iterator[None]:
    """Account for what others wrote: numbers that overflow, and whatever else fails there, are one ValueError."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError) as error:
        raise ValueError(f"it cannot be accounted for ({type(error).__name__})") from None
    except ValueError as error:
        # Report the first of pydantic's problems.
        problems: list[Any] = getattr(error, "errors", list)()
        raise (ValueError(problems[0]["msg"]) if problems else error) from None


def compose(guarantees: Sequence[Guarantee], delta: float | None = None) -> Guarantee:
    """Make the record of several releases of the same rows.

    It has the smallest epsilon of the accountants that support all parts, or the sum where none does, at `delta`; None
    adds the parts' deltas. It is ``claimed`` where a part is, else ``seeded`` where a part is. Raises ValueError for no
    guarantees, different relations, or one without an event.
    """
    if not guarantees:
        raise ValueError("guarantees=[]: there must be at least one")
    relations = {guarantee.neighbours for guarantee in guarantees}
    if len(relations) > 1:
        raise ValueError(f"neighbours are {', '.join(sorted(map(str, relations)))}: all must be the same")
    guarantees = [restore(guarantee) for guarantee in guarantees]
    claims = [guarantee._known for guarantee in guarantees]
    neighbours = claims[0][2]
    total = math.fsum(part_delta for _, part_delta, _ in claims) if delta is None else float(delta)
    event = Composed(tuple(claimed for claimed, _, _ in claims))
    accounted = account(event, total, neighbours)
    added = math.fsum(guarantee.epsilon_with_system_noise for guarantee in guarantees)
    if delta is None and added < accounted.epsilon:
        # As plain budgets they cost their sum, or less.
        event = Composed(
            tuple(EpsilonDelta(g.epsilon_with_system_noise, d) for g, (_, d, _) in zip(guarantees, claims, strict=True))
        )
        accounted = account(event, total, neighbours)
    facts = merged([guarantee.facts or Facts() for guarantee in guarantees])
    randomness: Randomness = "seeded" if any(guarantee.randomness != "system" for guarantee in guarantees) else "system"
    texts = dict.fromkeys(text for guarantee in guarantees for text in guarantee.assumptions)
    requested = math.fsum(guarantee.epsilon_requested for guarantee in guarantees)
    claim = Claim(
        event=event,
        mechanism="; ".join(dict.fromkeys(guarantee.mechanism for guarantee in guarantees)),
        reference="; ".join(dict.fromkeys(guarantee.reference for guarantee in guarantees)),
        neighbours=neighbours,
        epsilon_requested=max(requested, accounted.epsilon),
        delta=total,
        assumptions=tuple(text for text in texts if text not in (ONE_MODEL, SECRET_SEED)),
    )
    composed = grant(claim, facts, randomness)
    unproved = [guarantee.reason or "" for guarantee in guarantees if not guarantee.theorem_holds]
    if not unproved:
        return composed
    fields = _fields(composed) | {"status": "claimed", "reason": "; ".join(dict.fromkeys(unproved))}
    return Guarantee(**fields | {"epsilon_proved": math.inf, "epsilon_with_system_noise": math.inf})
