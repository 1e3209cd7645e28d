"""The gate: the only code that makes a record which says ``proved``, or ``seeded`` where the noise was.

It grants the word from declared facts (`privsvm.privacy.statement`) and an event (`privsvm.privacy.events`), from
which it computes epsilon itself. Default deny: an unstated fact counts as broken. Estimators, pipeline and
reproductions pass through it, and so does every record that is read back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.digests import canonical_json
from privsvm.privacy.accountants import account, double_sensitivity
from privsvm.privacy.events import (
    Composed,
    EpsilonDelta,
    Event,
    Neighbours,
    check_effort,
    noise_multipliers,
    relation_factor,
)
from privsvm.privacy.statement import FACTS, Facts, Randomness, Statement, Witness, merge_facts

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

_NO_EPSILON: dict[str, Any] = {"epsilon_proved": math.inf, "epsilon_with_system_noise": math.inf}


def default_delta(rows: int | None) -> float:
    """Return the delta of a release: 1e-5, or a tenth of 1 over the declared number of rows if that is less."""
    return 1e-5 if rows is None else min(1e-5, 0.1 / max(rows, 1))


# Only functions of this module know it: tests/privacy/test_gate.py searches the sources.
_GRANT = object()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guarantee(Statement):
    """The privacy record that every trained model carries, with the fields of `Statement`.

    Anybody can make one that says ``claimed`` or ``none``. One that says ``proved`` or ``seeded`` comes from
    `privsvm.privacy.gate` alone: `grant`, `restore` and `compose`. It cannot be changed by `dataclasses.replace`,
    either.

    Raises
    ------
    ValueError
        Where ``proved`` or ``seeded`` is asked for elsewhere, and for ``proved`` with noise that is not the system's.
    """

    grant: dataclasses.InitVar[Any] = None

    def __post_init__(self, grant: Any) -> None:
        super().__post_init__()
        if self.theorem_holds and grant is not _GRANT:
            raise ValueError(f"status is {self.status!r}: only privsvm.privacy.gate may say so")
        if self.status == "proved" and self.randomness != "system":
            raise ValueError(f"randomness is {self.randomness!r} but status is 'proved': must be 'system'")

    def with_broken_assumption(self, broken: str) -> Guarantee:
        """Return the record for the case that an assumption does not hold, such as bounds taken from private rows.

        A ``proved`` or ``seeded`` record becomes ``claimed``, with no epsilon. Reasons are added to each other.
        """
        if self.status == "none":
            return self
        reason = broken if self.reason is None else f"{self.reason}; {broken}"
        return dataclasses.replace(self, **_NO_EPSILON, status="claimed", reason=reason)

    def without_proof(self, *reasons: str | None) -> Guarantee:
        """Take the proof from the record for reasons that it does not name yet, if there are any."""
        guarantee = self
        for reason in filter(None, reasons):
            if reason not in (guarantee.reason or ""):
                guarantee = guarantee.with_broken_assumption(reason)
        return guarantee

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Judge a record that comes from a pickle, a skops file or a copy as one that is read from JSON."""
        vars(self).update(vars(restore(state)))


def exact_training(
    reference: str, mechanism: str = "none: exact training", reason: str = "a non-private reference"
) -> Guarantee:
    """Make the record of a method that protects nobody."""
    return Guarantee(status="none", mechanism=mechanism, reason=reason, reference=reference)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A method's statement about a release that a theorem covers.

    Epsilon is computed from `event`, the release's effect on the rows. To the theorem's assumptions, the gate adds
    assumptions of the facts and of the noise. See `privsvm.privacy.statement.Statement` for the other fields.
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
    numbers are out of all measure. Raises ValueError if the event costs more than was requested or has other noise than
    is stated, or an exact witness refutes the proof: a fault of the method.
    """
    accounted = account(claim.event, claim.delta, claim.neighbours)
    if accounted.epsilon > claim.epsilon_requested:
        raise ValueError(f"epsilon_requested is {claim.epsilon_requested}: the event costs {accounted.epsilon}")
    _check_noise(claim)
    fields = vars(claim) | {
        "accountant": accounted.accountant,
        "randomness": randomness,
        "facts": facts,
        "witness": witness,
    }
    return _grant_or_claim(fields, accounted.epsilon)


def _judge(
    facts: Facts | None,
    neighbours: Neighbours | None,
    randomness: Randomness | None,
    delta: float,
    epsilon: float,
    theorem: Iterable[str] = (),
) -> tuple[tuple[str, ...], list[str]]:
    """Return the assumptions of a theorem with the gate's around them, and the reasons why nothing is proved."""
    facts = facts or Facts()
    assumptions, reasons = facts.judge(neighbours)
    if epsilon > LARGEST_EPSILON:
        reasons.append(f"epsilon is {epsilon:.6g}: above {LARGEST_EPSILON:g}, the word proved would mean nothing")
    if delta > LARGEST_DELTA:
        reasons.append(f"delta is {delta:.3g}: above {LARGEST_DELTA:g}, the word proved would mean nothing")
    rows = facts.declared_rows
    if rows is not None and delta * rows >= 1.0:
        reasons.append(
            f"delta is {delta:.3g}: at 1 / {rows} or more, it allows a row to be published; use delta "
            f"{default_delta(rows):.2g} or less"
        )
    if facts.n_rows == "declared" and rows is None:
        reasons.append("n_rows is said to be declared, and nobody says what it is")
    # First that earlier treatment of the rows is unknown.
    first = (THIS_STEP_ALONE,) if facts.preparation == "as given" else ()
    seed = (SECRET_SEED,) if randomness == "seeded" else ()
    return tuple(dict.fromkeys((*first, *theorem, *assumptions, *seed, OUTSIDE))), reasons


def reasons_against(facts: Facts | None, neighbours: Neighbours | None, delta: float, epsilon: float) -> list[str]:
    """List everything that stands between a release and the word, at this delta and epsilon."""
    return _judge(facts, neighbours, None, delta, epsilon)[1]


def _grant_or_claim(fields: Mapping[str, Any], epsilon: float) -> Guarantee:
    """Make a record that says ``proved`` or ``seeded``, or ``claimed`` and why; its assumptions are the theorem's."""
    facts, neighbours, randomness, delta = (fields[name] for name in ("facts", "neighbours", "randomness", "delta"))
    assumptions, reasons = _judge(facts, neighbours, randomness, delta, epsilon, fields["assumptions"])
    fields = {**fields, "assumptions": assumptions}
    if not math.isfinite(epsilon):
        reasons.append("no accountant bounds the event")
    if reasons:
        return Guarantee(**fields | _NO_EPSILON | {"status": "claimed", "reason": "; ".join(reasons)})
    return _say_proved(fields, epsilon)


def _say_proved(fields: Mapping[str, Any], epsilon: float) -> Guarantee:
    """Make the record of a release against which nothing speaks: ``proved``, or ``seeded`` by its noise."""
    numbers = {**_NO_EPSILON, "epsilon_with_system_noise": epsilon}
    if fields["randomness"] != "system":
        return Guarantee(**{**fields, **numbers, "status": "seeded"}, grant=_GRANT)
    return Guarantee(**{**fields, **numbers, "status": "proved", "epsilon_proved": epsilon}, grant=_GRANT)


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
        return _judge_again(guarantee, stated) if stated else guarantee
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
    return Guarantee(**fields, grant=_GRANT if guarantee.theorem_holds else None)


def _fields(statement: Statement) -> dict[str, Any]:
    return {field.name: getattr(statement, field.name) for field in dataclasses.fields(statement)}


def _judge_again(guarantee: Guarantee, stated: Mapping[str, Any]) -> Guarantee:
    """Judge a record once more, with facts in place of its own."""
    if guarantee.status == "none":
        return guarantee
    if guarantee.facts is None:
        # Published as it is: nobody judged its facts, but earlier treatment of its rows counts too.
        reasons = Facts(**stated).judge(guarantee.neighbours, [name for name in FACTS if name in stated])[1]
        return guarantee.without_proof(*reasons)
    facts = dataclasses.replace(guarantee.facts, **stated)
    # The assumptions that the gate added for other facts.
    before = {*guarantee.facts.judge(guarantee.neighbours)[0], THIS_STEP_ALONE, SECRET_SEED, OUTSIDE}
    theorem = tuple(text for text in guarantee.assumptions if text not in before)
    fields = _fields(guarantee) | {"facts": facts, "assumptions": theorem}
    if guarantee.theorem_holds:
        return _grant_or_claim(fields, guarantee.epsilon_with_system_noise)
    known, delta = guarantee.reason or "", guarantee.delta or 0.0
    assumptions, reasons = _judge(facts, guarantee.neighbours, guarantee.randomness, delta, 0.0, theorem)
    text = "; ".join([known, *(reason for reason in reasons if reason not in known)])
    return Guarantee(**fields | {"assumptions": assumptions, "reason": text})


def _check(statement: Statement) -> Guarantee:
    """Restore a statement, or raise ValueError if its parts do not fit together."""
    if not statement.theorem_holds:
        return Guarantee(**_fields(statement))
    event, delta, neighbours = statement.accounted_parts
    epsilon = getattr(statement, statement._epsilon_key)
    own, reasons = _judge(statement.facts, neighbours, statement.randomness, delta, epsilon)
    if reasons:
        raise ValueError(f"status is {statement.status!r}: {reasons[0]}")
    accounted_epsilon = account(event, delta, neighbours).epsilon
    if not agrees(accounted_epsilon, epsilon):
        raise ValueError(f"{statement._epsilon_key} is {epsilon}: its event gives {accounted_epsilon:.9g}")
    _check_noise(statement)
    assumptions = tuple(SECRET_SEED if text == _FIRST_SECRET_SEED else text for text in statement.assumptions)
    if (SECRET_SEED in assumptions) != (statement.randomness == "seeded"):
        raise ValueError(f"randomness is {statement.randomness!r}: the assumptions say otherwise")
    for text in own:
        # Records of earlier versions lack the first.
        if text not in (THIS_STEP_ALONE, *assumptions):
            raise ValueError(f"assumptions: lack {text!r}, without which nothing is proved")
    # The noise decides, not the word of the file: the first version had one word for both.
    return _say_proved(_fields(statement) | {"assumptions": assumptions}, epsilon)


def _check_noise(record: Statement | Claim) -> None:
    """Raise ValueError where a record states a sensitivity and a scale of noise that no part of its event has."""
    sensitivity, scale, event, neighbours = record.sensitivity, record.noise_scale, record.event, record.neighbours
    assert event is not None
    assert neighbours is not None
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


def convert_relation(guarantee: Guarantee) -> Guarantee:
    """Convert a record of added and removed rows into one of replaced rows, at its delta; others stay as they are.

    Its event is accounted anew at twice the sensitivity: twice epsilon would need a larger delta. Raises ValueError for
    a record without an event, and where no accountant bounds it.
    """
    if guarantee.neighbours != "add_remove":
        return guarantee
    event, delta, _ = guarantee.accounted_parts
    event = double_sensitivity(event)
    accounted = account(event, delta, "replace_one")
    if not math.isfinite(accounted.epsilon):
        raise ValueError("nothing bounds its event for a replaced row at this delta")
    fields = _fields(guarantee) | {
        "event": event,
        "neighbours": "replace_one",
        "sensitivity": None if guarantee.sensitivity is None else 2.0 * guarantee.sensitivity,
        "epsilon_requested": max(guarantee.epsilon_requested, accounted.epsilon),
        "accountant": accounted.accountant,
    }
    return _grant_or_claim(fields, accounted.epsilon) if guarantee.theorem_holds else Guarantee(**fields)


def compose(guarantees: Sequence[Guarantee], delta: float | None = None) -> Guarantee:
    """Make the record of several releases of the same rows.

    It has the smallest epsilon of the accountants that support all parts, or the sum where none does, at `delta`; None
    adds the parts' deltas. It is ``claimed`` where a part is, else ``seeded`` where a part is. Where relations differ,
    it is for ``replace_one``, see `convert_relation`. Raises ValueError for no guarantees, one without an event, or one
    that cannot be converted.
    """
    if not guarantees:
        raise ValueError("guarantees=[]: there must be at least one")
    guarantees = [restore(guarantee) for guarantee in guarantees]
    if len({guarantee.neighbours for guarantee in guarantees}) > 1:
        guarantees = [convert_relation(guarantee) for guarantee in guarantees]
    claims = [guarantee.accounted_parts for guarantee in guarantees]
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
    facts = merge_facts([guarantee.facts or Facts() for guarantee in guarantees])
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
    fields = _fields(composed) | _NO_EPSILON
    return Guarantee(**fields | {"status": "claimed", "reason": "; ".join(dict.fromkeys(unproved))})
