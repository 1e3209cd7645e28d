"""The ledger: two lines for every release of a data set, each bound to the line before.

The first line, "begun", pays: it is on the disk before any noise is drawn, and nothing takes it back, since a release
that fails after its draw would be an answer too. The second one, "released", names the model, and is on the disk before
that leaves its temporary folder. A release that was killed in between published nothing, and draws again on its line.

An account is a declared name, so an edited file stays on its account. Lines are only ever added, under a lock. Every
line holds the hash of the one before it; the second line's is printed on the card of the release, so that edits and
cuts show.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from privsvm.base.model_file import Protection, agree, content_digest, protection_of
from privsvm.constraints import DAY, DIGEST, NAME
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.files import append_line
from privsvm.models import Model, Obeys
from privsvm.privacy.accountants import double_sensitivity, group_account, relation_accounts
from privsvm.privacy.events import Composed, Event, Neighbours
from privsvm.privacy.gate import Guarantee, compose, foreign_numbers, restore
from privsvm.privacy.risk import trade_off
from privsvm.privacy.statement import describe_relations
from privsvm.untrusted import parse_json, read_regular_file

# Version 2 added the budget of an account; up to it, one line both paid and named the model.
LEDGER_VERSION, _ONE_LINE = 3, 2
_START = "0" * 64
# Bytes of a ledger: some 10,000 releases.
_LARGEST = 32 << 20


class _Fields(Model, strict=True):
    """Content of a line beside the guarantee and its place; see `Entry`."""

    account: Annotated[str, Obeys(NAME)]
    unit: Literal["row", "person"]
    rows: Annotated[int, pydantic.Field(ge=1)]
    epsilon: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, pydantic.Field(ge=0, lt=1)]
    by_relation: dict[Neighbours, float] = pydantic.Field(default_factory=dict)
    model: Annotated[str, Obeys(DIGEST)] | Literal[""] = ""
    date: Annotated[str, Obeys(DAY)]
    budget: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)] | None = None
    id: Annotated[str, Obeys(DIGEST)] | Literal[""] = ""


class _Released(Model, strict=True):
    """Content of a line that names the model of a release that was begun."""

    number: int
    model: Annotated[str, Obeys(DIGEST)]
    date: Annotated[str, Obeys(DAY)]


def default_ledger() -> Path:
    """Return the path of the user's ledger: the variable PRIVSVM_LEDGER, or a file in the home folder."""
    return Path(os.environ.get("PRIVSVM_LEDGER") or Path.home() / ".privsvm" / "ledger.jsonl")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One release, which is paid for, whether or not there is a model yet.

    `account` is the declared name of the data set. A `unit` is protected, of which `rows` rows count; `epsilon` and
    `delta` are for the unit, of this release alone, and `by_relation` has epsilon under each relation that is known; of
    lines that do not state it, too. `guarantee` is for rows, judged by the gate when the ledger was read. `model` is
    the digest of the model; empty until it is released. `budget` is the epsilon that all releases of the account may
    cost together, as it was given with this one. By its `id`, an interrupted release finds the line that paid for it.
    `head` is the hash of its last line, which holds the hash of the line before. `number` counts releases in the file;
    both lines of a release have it.
    """

    account: str
    unit: Literal["row", "person"]
    rows: int
    epsilon: float
    delta: float
    guarantee: Guarantee
    model: str
    date: str
    budget: float | None
    by_relation: Mapping[Neighbours, float]
    id: str = ""
    head: str = ""
    number: int = 0


@dataclasses.dataclass(frozen=True)
class Total:
    """Cost of the releases of one account together, for one row or one person (`unit`).

    `epsilon` is under the relation `neighbours`, ``replace_one`` as soon as one release is, and `by_relation` has it
    under each relation that is known. `budget` is the epsilon that they may cost, as it was given last. `guess` bounds
    how often the best guess whether someone's data were used is right, for an attacker who sees all of them.
    """

    account: str
    releases: int
    unit: str
    neighbours: Neighbours
    epsilon: float
    delta: float
    by_relation: Mapping[Neighbours, float]
    accountant: str
    budget: float | None
    guess: Callable[[], float] = dataclasses.field(compare=False)

    def __str__(self) -> str:
        budget = "" if self.budget is None else f", of a budget of {self.budget:g}"
        return f"{self.account}: {self.releases} release(s), {cost_words(self)}{budget}"

    def beside(self, before: Total) -> str:
        """Say what all releases will cost, beside what those before cost."""
        budget = "" if self.budget is None else f"; the budget is {self.budget:g}"
        if before.budget not in (None, self.budget):
            budget += f", and was {before.budget:g}"
        return (
            f"account {self.account!r}: with this one, {self.releases} releases will cost about {cost_words(self)}, "
            f"together (so far {before.epsilon:.4g} under {before.neighbours}){budget}"
        )


def cost_words(cost: Entry | Total | Protection) -> str:
    """Write the cost of a release, or several, for a protected person or row, under each relation that is known."""
    relations = describe_relations(cost.by_relation)
    return f"epsilon {cost.epsilon:.4g} per {cost.unit}, delta {cost.delta:.3g}, {relations}"


class Ledger:
    """An append-only file of releases, made with the first one, readable for its owner alone.

    `wait` is in seconds, for another process that writes it.
    """

    def __init__(self, path: str | os.PathLike[str], wait: float = 30.0) -> None:
        self.path, self.wait = Path(path), wait

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the ledger; raise PrivSVMError if another process holds it for too long."""
        import filelock

        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            # Beside the file itself: links to it share the lock.
            with filelock.FileLock(f"{os.path.realpath(self.path)}.lock", timeout=self.wait):
                if self.path.exists() and self.path.stat().st_nlink > 1:
                    raise PrivSVMError(f"{self.path}: has several names (hard links), which share no lock; keep one")
                yield
        except filelock.Timeout:
            raise PrivSVMError(
                f"{self.path}: locked by another release for {self.wait:g} s; wait for it, then run again"
            ) from None

    def check_writable(self) -> None:
        """Raise OSError or PrivSVMError where no release could be entered, before one is trained in vain."""
        with self.lock():
            if self.path.exists():
                with open(self.path, "r+b"):
                    pass

    def entries(self) -> list[Entry]:
        """Read and check all entries.

        Raises PrivSVMError if a line was edited, moved, taken out or cut, or is of a newer version.
        """
        return list(self._read()[0].values())

    @property
    def head(self) -> str | None:
        """Hash of the last line; None without any."""
        _, number, head = self._read()
        return head if number else None

    def _read(self) -> tuple[dict[int, Entry], int, str]:
        """Return the entries by number, the number of lines, and the hash of the last one."""
        entries: dict[int, Entry] = {}
        number, head = 0, _START
        try:
            text = read_regular_file(self.path, _LARGEST, "give --ledger, or PRIVSVM_LEDGER, the name of one").decode()
        except FileNotFoundError:
            return entries, number, head
        except UnicodeDecodeError as error:
            raise PrivSVMError(f"{self.path}: cannot be read ({error}); restore it from a copy") from None
        for line in filter(str.strip, text.splitlines()):
            number += 1
            head = self._include(entries, line, number, head).head
        return entries, number, head

    def _include(self, entries: dict[int, Entry], line: str, number: int, previous: str) -> Entry:
        """Add a line's content to the entries, and return its entry."""
        broken = PrivSVMError(
            f"{self.path}: line {number} was changed or cut, or a line before it is missing; restore the file from a "
            "copy, and keep the account's total in mind until then"
        )
        try:
            content = parse_json(line.encode())
            version = content["version"]
        except (ValueError, KeyError, TypeError):
            raise broken from None
        if isinstance(version, int) and version > LEDGER_VERSION:
            raise PrivSVMError(f"{self.path}: line {number} has version {version}; update PrivSVM to read it")
        try:
            if content.get("previous") != previous or content.get("hash") != content_digest(content, "hash"):
                raise broken
            state = content["state"] if version > _ONE_LINE else None
            if state == "released":
                stated = _Released.model_validate({name: content[name] for name in _Released.model_fields})
                entry = entries[stated.number]
                if entry.model:
                    raise broken
                entry = dataclasses.replace(entry, model=stated.model, date=stated.date, head=content["hash"])
            else:
                fields = _Fields.model_validate(
                    {name: content[name] for name in _Fields.model_fields if name in content}
                )
                if (state, bool(fields.model), bool(fields.id)) not in ((None, True, False), ("begun", False, True)):
                    raise broken
                with foreign_numbers():
                    guarantee = restore(content["guarantee"], fields.rows)
                    computed = protection_of(guarantee, fields.unit, fields.rows, fields.delta)
                own = len(entries) + 1
                if content["number"] != own or not agree(computed, fields.epsilon, fields.by_relation):
                    raise broken
                known = fields.model_dump() | {"by_relation": computed.by_relation}
                entry = Entry(**known, guarantee=guarantee, head=content["hash"], number=own)
        except (ValueError, KeyError, TypeError):
            raise broken from None
        entries[entry.number] = entry
        return entry

    def begun(self, content: Mapping[str, Any]) -> Entry | None:
        """Find the line that has paid for a release: it has its id and public terms, and no model."""
        for entry in self.entries():
            stated = {name: value for name, value in vars(entry).items() if name not in ("head", "number", "date")}
            if not entry.model and canonical_json(stated | {"date": content["date"]}) == canonical_json(content):
                return entry
        return None

    def begin(self, content: Mapping[str, Any]) -> Entry:
        """Pay for a release, before any noise is drawn; the caller holds the lock.

        `content` has the fields of `Entry` but ``head`` and ``number``, with no model. The entry is on the disk on
        return.
        """
        paid = {name: value for name, value in content.items() if name not in ("model", "number")}
        return self._append(paid | {"state": "begun"})

    def finish(self, entry: Entry, model: str, date: str) -> Entry:
        """Name the model of a release that was paid for; the caller holds the lock.

        Raises PrivSVMError if another process has released a model on that line, or it is gone: this one is not paid
        for.
        """
        if entry.model or entry not in self.entries():
            raise PrivSVMError(
                f"{self.path}: another process has finished release {entry.number}, or its line is gone; this model is "
                "dropped, and the next one pays anew"
            )
        return self._append({"state": "released", "number": entry.number, "model": model, "date": date})

    def _append(self, content: Mapping[str, Any]) -> Entry:
        entries, number, previous = self._read()
        line = {"number": len(entries) + 1, **content, "version": LEDGER_VERSION, "previous": previous}
        line["hash"] = content_digest(line)
        text = canonical_json(line)
        entry = self._include(entries, text, number + 1, previous)
        append_line(self.path, text)
        return entry

    def total_up_to(self, entry: Entry) -> Total:
        """Compose a release with its account's earlier ones."""
        before = [other for other in self.entries() if other.account == entry.account and other.number <= entry.number]
        total = total_of(entry.account, before)
        assert total is not None
        return total

    def total_with(
        self, before: Total, event: Event | None, rows: int, neighbours: Neighbours, epsilon: float, delta: float
    ) -> Total:
        """Estimate the cost of all releases of an account with one more, before it is trained.

        `before` is the cost without it. `event` is its effect on a row under its relation; None where it is unknown:
        its budget, epsilon and delta, is then added, where the relation is that of the others. `rows` rows of a unit
        count.
        """
        entries = [entry for entry in self.entries() if entry.account == before.account]
        is_same = before.neighbours == neighbours
        relation: Neighbours = neighbours if is_same else "replace_one"
        added = before.epsilon + epsilon if is_same else math.inf
        total_delta, accountant = before.delta + delta, "the budgets are added"
        known = {relation: added}
        if event is not None:
            most = max(rows, *(entry.rows for entry in entries))
            events = *events_under(relation, entries), _event_under(relation, event, neighbours)
            accounted = group_account(Composed(events), most, total_delta, relation)
            if accounted.epsilon < added:
                added, accountant = accounted.epsilon, accounted.accountant
            known = _by_relation(events, most, total_delta, relation, added)
        return dataclasses.replace(
            before,
            releases=before.releases + 1,
            neighbours=relation,
            epsilon=added,
            delta=total_delta,
            by_relation=known,
            accountant=accountant,
        )

    def total(self, account: str, planned: Sequence[Entry] = ()) -> Total | None:
        """Compose the releases of an account, and the planned ones; None where there is no release.

        Raises PrivSVMError where releases protect different units, or refer to different relations and one of them has
        no bound under ``replace_one``: their total is unknown.
        """
        return total_of(account, [entry for entry in self.entries() if entry.account == account] + list(planned))


def total_of(account: str, entries: Sequence[Entry]) -> Total | None:
    """Compose releases of one account; see `Ledger.total`."""
    if not entries:
        return None
    unit = entries[0].unit
    kinds = {(entry.unit, entry.guarantee.neighbours) for entry in entries}
    try:
        if {unit} != {entry.unit for entry in entries}:
            raise ValueError("units differ")
        composed = compose([entry.guarantee for entry in entries])
    except ValueError:
        listed = " and ".join(sorted(f"{unit}s under {relation}" for unit, relation in kinds))
        raise PrivSVMError(
            f"account {account!r} would hold releases for {listed}, which have no total: release with the same unit "
            "and relation as before"
        ) from None
    rows, neighbours = max(entry.rows for entry in entries), composed.neighbours
    assert neighbours is not None
    events = events_under(neighbours, entries)
    epsilon, delta, accountant = composed.epsilon_proved, float(composed.delta or 0.0), str(composed.accountant)
    if unit == "person":
        delta = math.fsum(entry.delta for entry in entries)
        epsilon, delta, accountant = group_account(Composed(events), rows, delta, neighbours)
        # Guarantees for persons add up, however many rows of a person each release counts.
        added = math.fsum(entry.by_relation.get(neighbours, math.inf) for entry in entries)
        if added < epsilon:
            epsilon, accountant = added, "the budgets are added"
    known = _by_relation(events, rows, delta, neighbours, epsilon)

    def guess() -> float:
        if composed.status != "proved":
            return 1.0
        return trade_off(Composed(events), neighbours, rows, composed.delta).guess(0.5)

    if composed.status != "proved":
        accountant, known = "nothing is proved of all together", {neighbours: epsilon}
    budgets = [entry.budget for entry in entries if entry.budget is not None]
    budget = budgets[-1] if budgets else None
    return Total(account, len(entries), unit, neighbours, epsilon, delta, known, accountant, budget, guess)


def _event_under(relation: Neighbours, event: Event, own: Neighbours | None) -> Event:
    return event if own == relation else double_sensitivity(event)


def events_under(relation: Neighbours, entries: Sequence[Entry]) -> tuple[Event, ...]:
    """List the events of releases under a relation: their own, or ``replace_one``."""
    guarantees = [entry.guarantee for entry in entries]
    return tuple(_event_under(relation, one.event, one.neighbours) for one in guarantees if one.event is not None)


def _by_relation(
    events: tuple[Event, ...], rows: int, delta: float, neighbours: Neighbours, epsilon: float
) -> dict[Neighbours, float]:
    """Return epsilon of all events under each relation that is known; under their own it is `epsilon`."""
    accounts = relation_accounts(Composed(events), rows, delta, neighbours)
    return {neighbours: epsilon} | {key: one.epsilon for key, one in accounts.items() if key != neighbours}
