"""The ledger: one line for every release of a data set, each bound to the one before.

An account is a declared name, so an edited file stays on its account. Lines are only ever added, under a lock, and are
on the disk before a model leaves its temporary folder. Every entry holds the hash of the one before it; the last one is
printed on the card of the release, so that edits and cuts show.
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
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.models import Model
from privsvm.privacy.accountants import group_account
from privsvm.privacy.events import Composed, Event
from privsvm.privacy.gate import compose, foreign_numbers, restore
from privsvm.privacy.guarantee import Guarantee
from privsvm.privacy.risk import trade_off
from privsvm.untrusted import parse_json, read_regular_file

__all__ = ["LEDGER_VERSION", "Entry", "Ledger", "Total", "cost_words", "default_ledger"]

# Version 2 added the budget of an account.
LEDGER_VERSION = 2
_START = "0" * 64
# Bytes of a ledger: some 10,000 releases.
_LARGEST = 32 << 20


class _Fields(Model, strict=True):
    """What a line says beside the guarantee and its place; see `Entry`."""

    account: str
    unit: Literal["row", "person"]
    rows: Annotated[int, pydantic.Field(ge=1)]
    epsilon: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, pydantic.Field(ge=0, lt=1)]
    model: str
    date: str
    budget: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)] | None = None


def default_ledger() -> Path:
    """Path of the user's ledger: that of the environment variable PRIVSVM_LEDGER, or one in the home folder."""
    return Path(os.environ.get("PRIVSVM_LEDGER") or Path.home() / ".privsvm" / "ledger.jsonl")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One release.

    Attributes
    ----------
    account : str
        Declared name of the data set.
    unit, rows : str, int
        Who is protected, and how many rows of a unit count.
    epsilon, delta : float
        For the unit, of this release alone.
    guarantee : Guarantee
        For rows, judged by the gate when the ledger was read.
    model : str
        Digest of the model.
    date : str
        Day of the release.
    budget : float or None
        Epsilon that all releases of the account may cost together, as it was given with this one.
    head : str
        Hash of the entry, which holds that of the one before.
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
    head: str
    number: int


@dataclasses.dataclass(frozen=True)
class Total:
    """What the releases of one account cost together, for one row or one person.

    Attributes
    ----------
    account : str
        Its name.
    releases : int
        Their number.
    unit : str
        Who is protected.
    epsilon, delta, accountant : float, float, str
        The account of all together.
    budget : float or None
        Epsilon that they may cost, as it was given last.
    guess : callable
        Bounds how often the best guess whether someone's data were used is right, for whoever sees all of them.
    """

    account: str
    releases: int
    unit: str
    epsilon: float
    delta: float
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
            f"together (so far {before.epsilon:.4g}){budget}"
        )


def cost_words(cost: Entry | Total | Protection) -> str:
    """Write what a release, or several, cost whoever is protected."""
    return f"epsilon {cost.epsilon:.4g} per {cost.unit}, delta {cost.delta:.3g}"


class Ledger:
    """An append-only file of releases.

    Parameters
    ----------
    path : path-like
        The file; it is made with the first release, readable for its owner alone.
    wait : float, default=30
        Seconds to wait for another process that writes it.
    """

    def __init__(self, path: str | os.PathLike[str], wait: float = 30.0) -> None:
        self.path, self.wait = Path(path), wait

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the ledger; raise PrivSVMError if another process holds it for too long."""
        import filelock

        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            # Beside the file itself: links to it share the lock.
            with filelock.FileLock(f"{os.path.realpath(self.path)}.lock", timeout=self.wait):
                yield
        except filelock.Timeout:
            raise PrivSVMError(
                f"{self.path}: locked by another release for {self.wait:g} s; wait for it, then run again"
            ) from None

    def check_writable(self) -> None:
        """Raise OSError or PrivSVMError where no release could be entered, before one is trained in vain."""
        with self.locked():
            if self.path.exists():
                with open(self.path, "r+b"):
                    pass

    def entries(self) -> list[Entry]:
        """Read and check all entries.

        Raises
        ------
        PrivSVMError
            If a line was edited, moved or taken out, or is of a newer version.
        """
        try:
            text = read_regular_file(self.path, _LARGEST, "give --ledger, or PRIVSVM_LEDGER, the name of one").decode()
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as error:
            raise PrivSVMError(f"{self.path}: cannot be read ({error}); restore it from a copy") from None
        # A line without its end was being written when a process was killed: nothing was released on it.
        lines = text[: text.rfind("\n") + 1].splitlines()
        entries: list[Entry] = []
        previous = _START
        for number, line in enumerate(lines, start=1):
            entries.append(self._entry(line, number, previous))
            previous = entries[-1].head
        return entries

    def _entry(self, line: str, number: int, previous: str) -> Entry:
        broken = PrivSVMError(
            f"{self.path}: line {number} was changed, or a line before it is missing; restore the file "
            "from a copy, and keep the account's total in mind until then"
        )
        try:
            content = parse_json(line.encode())
            version = content["version"]
        except (ValueError, KeyError, TypeError):
            raise broken from None
        if isinstance(version, int) and version > LEDGER_VERSION:
            raise PrivSVMError(f"{self.path}: line {number} has version {version}; update PrivSVM to read it")
        if content.get("previous") != previous or content.get("hash") != content_digest(content, "hash"):
            raise broken
        try:
            stated = {name: content[name] for name in _Fields.model_fields if name != "budget" or name in content}
            fields = _Fields.model_validate(stated)
            with foreign_numbers():
                guarantee = restore(content["guarantee"], fields.rows)
                computed = protection_of(guarantee, fields.unit, fields.rows, fields.delta)
            if content["number"] != number or not agree(computed.epsilon, fields.epsilon):
                raise broken
            return Entry(**fields.model_dump(), guarantee=guarantee, head=content["hash"], number=number)
        except (ValueError, KeyError, TypeError):
            raise broken from None

    def append(self, content: Mapping[str, Any]) -> Entry:
        """Add a release; the caller holds the lock.

        Parameters
        ----------
        content : mapping
            Fields of `Entry` but ``head`` and ``number``; the guarantee may be an object or JSON.

        Returns
        -------
        Entry
            On the disk when this returns.
        """
        entries = self.entries()
        line = {
            **content,
            "version": LEDGER_VERSION,
            "number": len(entries) + 1,
            "previous": entries[-1].head if entries else _START,
        }
        line["hash"] = content_digest(line)
        text = canonical_json(line) + "\n"
        entry = self._entry(text, len(entries) + 1, line["previous"])
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as handle:
            # Cut off a line that a killed process left incomplete.
            complete = handle.read().rfind(b"\n") + 1
            handle.truncate(complete)
            handle.seek(complete)
            try:
                handle.write(text.encode())
                handle.flush()
                os.fsync(handle.fileno())
            except OSError:
                # Perhaps on the disk, perhaps not: taken back, since nothing was released on it.
                os.ftruncate(handle.fileno(), complete)
                raise
        return entry

    def total_up_to(self, entry: Entry) -> Total:
        """Compose a release with those of its account before it."""
        before = [other for other in self.entries() if other.account == entry.account and other.number <= entry.number]
        total = total_of(entry.account, before)
        assert total is not None
        return total

    def total_with(self, before: Total, event: Event | None, rows: int, epsilon: float, delta: float) -> Total:
        """Say about what all releases of an account will cost with one more, before that is trained.

        Parameters
        ----------
        before : Total
            Without it.
        event : Event or None
            What it will do with a row; None where that is not known: its budget is then added.
        rows : int
            Rows of a unit that count.
        epsilon, delta : float
            Its budget.
        """
        entries = [entry for entry in self.entries() if entry.account == before.account]
        neighbours, total_delta, added = entries[0].guarantee.neighbours, before.delta + delta, before.epsilon + epsilon
        accountant = "the budgets are added"
        if event is not None and neighbours is not None:
            most = max(rows, *(entry.rows for entry in entries))
            accounted = group_account(Composed((*_events(entries), event)), most, total_delta, neighbours)
            if accounted.epsilon < added:
                added, accountant = accounted.epsilon, accounted.accountant
        return dataclasses.replace(
            before, releases=before.releases + 1, epsilon=added, delta=total_delta, accountant=accountant
        )

    def total(self, account: str, planned: Sequence[Entry] = ()) -> Total | None:
        """Compose the releases of an account.

        Parameters
        ----------
        account : str
            Its name.
        planned : sequence of Entry
            Releases to count with those of the file.

        Returns
        -------
        Total or None
            None where there is no release.

        Raises
        ------
        PrivSVMError
            Where releases protect different units, or refer to different relations: no total is known for those.
        """
        return total_of(account, [entry for entry in self.entries() if entry.account == account] + list(planned))


def total_of(account: str, entries: Sequence[Entry]) -> Total | None:
    """Compose releases of one account; see `Ledger.total`."""
    if not entries:
        return None
    kinds = {(entry.unit, entry.guarantee.neighbours) for entry in entries}
    if len(kinds) > 1:
        listed = " and ".join(sorted(f"{unit}s under {relation}" for unit, relation in kinds))
        raise PrivSVMError(
            f"account {account!r} would hold releases for {listed}, which have no total: release with the same unit "
            "and relation as before"
        )
    unit, events = entries[0].unit, _events(entries)
    composed = compose([entry.guarantee for entry in entries])
    rows, neighbours = max(entry.rows for entry in entries), composed.neighbours
    assert neighbours is not None
    epsilon, delta, accountant = composed.epsilon_proved, float(composed.delta or 0.0), str(composed.accountant)
    if unit == "person":
        delta = math.fsum(entry.delta for entry in entries)
        epsilon, delta, accountant = group_account(Composed(events), rows, delta, neighbours)
        # Guarantees for persons add up, however many rows of a person each release counts.
        added = math.fsum(entry.epsilon for entry in entries)
        if added < epsilon:
            epsilon, accountant = added, "the budgets are added"

    def guess() -> float:
        if composed.status != "proved":
            return 1.0
        return trade_off(Composed(events), neighbours, rows, composed.delta).guess(0.5)

    if composed.status != "proved":
        accountant = "nothing is proved of all together"
    budgets = [entry.budget for entry in entries if entry.budget is not None]
    return Total(account, len(entries), unit, epsilon, delta, accountant, budgets[-1] if budgets else None, guess)


def _events(entries: Sequence[Entry]) -> tuple[Event, ...]:
    return tuple(entry.guarantee.event for entry in entries if entry.guarantee.event is not None)
