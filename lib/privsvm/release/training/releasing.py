"""One release: train once, enter it into the ledger, then let the model out of its temporary folder."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from privsvm.base.model_file import (
    ARRAYS,
    CARD,
    RECORD,
    Description,
    Protection,
    content_digest,
    read_model,
    write_model,
)
from privsvm.constraints import DAY, DIGEST, written
from privsvm.digests import sha256_of_file, sha256_of_json
from privsvm.errors import PrivSVMError
from privsvm.files import read_json, write_json, write_text
from privsvm.privacy.gate import Guarantee, default_delta
from privsvm.release.documents.calibration import HeldBackCounts
from privsvm.release.documents.card import CARD_FILES, CARD_FORMAT, CARD_VERSION, PAGE, card_content, total_on_card
from privsvm.release.documents.card_page import page
from privsvm.release.documents.explanation import explain_on_card
from privsvm.release.documents.ledger import Entry, Ledger, Total
from privsvm.release.documents.signing import signature_of
from privsvm.release.documents.verifying import verify
from privsvm.release.training.inspections import is_inspected
from privsvm.release.training.recipes import Terms, plan_event, train
from privsvm.tables.schema import Schema, parse_schema
from privsvm.tables.tables import units_table
from privsvm.untrusted import parse_json, read_regular_file

# Statements that a user may make about a model.
_ACCURACY = written(1, 10_000, breaks=True)
_DRAFT, _BEGUN = "card.draft.json", "begun.json"


class RefusedError(PrivSVMError):
    """A release that the ledger or the user does not allow."""


@dataclasses.dataclass(frozen=True)
class Released:
    """Result of `release`.

    `entry` is the release in the ledger, and `total` the cost of all releases of the data set together. `resumed` says
    whether the model comes from an earlier run, which was interrupted after its release was in the ledger. `measured`
    are counts that show the model's quality, where they were paid for.
    """

    entry: Entry
    total: Total
    resumed: bool = False
    measured: HeldBackCounts | None = None


def _check_free(out: Path) -> None:
    if os.path.lexists(out):
        raise PrivSVMError(f"{out}: exists already, and a release overwrites nothing; give a new folder")


@contextlib.contextmanager
def _reserve(out: Path) -> Iterator[Path]:
    """Reserve the place of a release, and give its temporary folder."""
    import filelock

    out.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(out.with_name(f".{out.name}.lock"), timeout=0)
    try:
        with lock:
            # Again: another release may have ended in between, and this one would be paid for and have no place.
            try:
                _check_free(out)
                yield out.with_name(f".{out.name}.part")
            finally:
                # While it is locked: a lock on a file that is no longer there counts as none, and is tried again.
                with contextlib.suppress(OSError):
                    os.unlink(lock.lock_file)
    except filelock.Timeout:
        raise PrivSVMError(f"{out}: another release is writing to this folder; wait for it") from None


@dataclasses.dataclass(frozen=True)
class Permission:
    """Permission of the user.

    `budget` is the epsilon that all releases of the data set may cost together. The ledger remembers it: None is the
    budget given with an earlier release. `confirm` is asked before a second release of a data set, with the cost of the
    first ones, and of all. `without_inspection` allows a table that nobody has inspected with this declaration: see
    `privsvm.release.training.inspections`.
    """

    budget: float | None = None
    confirm: Callable[[Total, Total], bool] = lambda before, after: False
    without_inspection: bool = False


@dataclasses.dataclass(frozen=True)
class CardOptions:
    """Content of the card that does not follow from the model.

    `key` is the private key that signs the card. `accuracy` is a statement from elsewhere than these rows. `today` is
    the day of the release; None asks the clock.
    """

    key: str | os.PathLike[str] | None = None
    accuracy: str | None = None
    today: str | None = None


def release(
    data: str | os.PathLike[str],
    schema: Schema,
    out: str | os.PathLike[str],
    terms: Terms,
    ledger: Ledger,
    permission: Permission = Permission(),
    card: CardOptions = CardOptions(),
) -> Released:
    """Train one private model on a table, delimited text with a header, and write it with its card.

    The folder `out` must not exist. The release is paid for in the ledger before any noise is drawn. Raises
    PrivSVMError if something is wrong whose cause is not the rows; RefusedError if the budget or the user does not
    allow it, or nobody has inspected the table.
    """
    epsilon, key, schema = terms.epsilon, card.key, parse_schema(schema)
    # Without `..`, which would name another folder once this one is made.
    out = Path(os.path.normpath(out))
    _check_free(out)
    if key is not None:
        # Before anything is spent.
        signature_of("", key)
    if card.accuracy is not None and terms.hold_back is not None:
        raise PrivSVMError("accuracy: give a stated accuracy or hold_back, not both")
    if card.accuracy is not None and not _ACCURACY.accepts(card.accuracy):
        raise PrivSVMError(f"accuracy={card.accuracy[:100]!r}: {_ACCURACY.problem(card.accuracy)}")
    date = datetime.datetime.now(datetime.UTC).date().isoformat() if card.today is None else card.today
    if not DAY.accepts(date):
        raise PrivSVMError(f"today={date!r}: {DAY.problem(date)}")
    with _reserve(out) as draft_folder:
        interrupted, token = draft_folder.exists(), _token(draft_folder)
        # Of all that is public: another command does not find the line that paid for this one.
        identifier = sha256_of_json([token, schema.to_json(), terms])
        try:
            resumed = _resume(draft_folder, out, ledger, key, identifier)
        except OSError as error:
            raise _resume_error(out, error) from None
        if resumed is not None:
            spent = ledger.total(resumed.account)
            if spent is None or resumed.account != schema.name or abs(resumed.epsilon - epsilon) > 1e-6 * epsilon:
                raise RefusedError(
                    f"{out}: holds an interrupted release of {resumed.account!r} with epsilon "
                    f"{resumed.epsilon:.4g}; nothing was spent now. Give another folder for a new release"
                )
            return Released(resumed, spent, resumed=True)
        if schema.card is not None and (schema.card.expires or date) < date:
            raise PrivSVMError(f"card.expires: {schema.card.expires} is past, on {date}; give a later day or remove it")
        if not permission.without_inspection and not is_inspected(data, schema, ledger):
            raise RefusedError(
                f"{data}: was not inspected with this schema, so unreadable columns would waste epsilon; "
                "run `privsvm inspect` with the table and --schema, or pass --without-inspection"
            )
        if terms.after is not None:
            verify(terms.after, ledger=ledger).check_schema(schema.to_json(), terms.after)
        payment = _Payment(ledger, schema, terms, permission, {"date": date, "id": identifier, "model": ""})
        payment.ask()
        ledger.check_writable()
        X, codes, units = units_table(data, schema)
        _clear(draft_folder)
        try:
            write_json(draft_folder / _BEGUN, {"token": token})
            trained = train(X, codes, schema, terms, units=units, book=payment.book)
            assert payment.entry is not None
            digest = _write_part(draft_folder, trained, schema, date, card.accuracy)
            with ledger.lock():
                entry = ledger.finish(payment.entry, digest, date)
                total = ledger.total_up_to(entry)
        except BaseException as error:
            if payment.entry is None and not interrupted:
                shutil.rmtree(draft_folder, ignore_errors=True)
            elif isinstance(error, OSError):
                raise _resume_error(out, error) from None
            raise
        try:
            _finish(draft_folder, out, entry, total, key)
        except OSError as error:
            raise _resume_error(out, error) from None
    return Released(entry, total, measured=trained.held_back)


def _clear(draft_folder: Path) -> None:
    """Make the temporary folder, or empty it but for its token: a killed run may have paid."""
    if draft_folder.is_symlink() or not draft_folder.is_dir():
        draft_folder.unlink(missing_ok=True)
    draft_folder.mkdir(mode=0o700, exist_ok=True)
    draft_folder.chmod(0o700)
    for path in draft_folder.iterdir():
        if path.name != _BEGUN or not path.is_file():
            path.unlink()


def _resume_error(out: Path, error: OSError) -> PrivSVMError:
    return PrivSVMError(
        f"{out}: {error.strerror or error}; the release is paid for in the ledger: fix that and run the same command "
        "again, which spends nothing"
    )


@dataclasses.dataclass
class _Payment:
    """How a release is paid for: by a line of the ledger, once, before any noise is drawn."""

    ledger: Ledger
    schema: Schema
    terms: Terms
    permission: Permission
    # Fields of the line that do not follow from the guarantee.
    fields: dict[str, Any]
    before: Total | None = None
    entry: Entry | None = None

    def ask(self) -> None:
        """Raise RefusedError where budget or user do not allow the release, before anything is trained."""
        account, epsilon, budget = self.schema.name, self.terms.epsilon, self.permission.budget
        if any(entry.id == self.fields["id"] and not entry.model for entry in self.ledger.entries()):
            # An interrupted release of this folder; `book` asks where it was of other terms.
            return
        self.before = before = self.ledger.total(account)
        budget = before.budget if before is not None and budget is None else budget
        if before is not None:
            _check_budget(dataclasses.replace(before, budget=budget))
            delta = default_delta(self.schema.rows) if self.terms.delta is None else self.terms.delta
            after = self.ledger.total_with(before, *plan_event(self.schema, self.terms), epsilon, delta)
            after = dataclasses.replace(after, budget=budget)
            if not self.permission.confirm(before, after):
                raise RefusedError(
                    f"account {account!r} holds {before.releases} release(s), epsilon {before.epsilon:.4g} per "
                    f"{before.unit} in all; with this one, about {after.epsilon:.4g}. Run with --yes to spend more"
                )
        if budget is not None and epsilon > budget:
            raise RefusedError(f"epsilon {epsilon:g} is above the budget of {budget:g}; nothing was spent")

    def book(self, guarantee: Guarantee, protection: Protection) -> None:
        """Write the line that pays, or find the one of a release that was interrupted."""
        content = {
            **self.fields,
            "account": self.schema.name,
            "unit": protection.unit,
            "rows": protection.rows,
            "epsilon": protection.epsilon,
            "delta": protection.delta,
            "by_relation": protection.by_relation,
            "guarantee": guarantee,
            "budget": self.permission.budget,
        }
        with self.ledger.lock():
            self.entry = self.ledger.begun(content)
            if self.entry is not None:
                return
            total = self.ledger.total(self.schema.name, [Entry(**content)])
            assert total is not None
            _check_budget(total)
            now = self.ledger.total(self.schema.name)
            if now is not None and now != self.before and not self.permission.confirm(now, total):
                raise RefusedError(
                    f"account {self.schema.name!r}: another release was entered in the meantime; this one spent "
                    "nothing. Run again to see the total"
                )
            self.entry = self.ledger.begin(content)


def _check_budget(total: Total) -> None:
    if total.budget is not None and total.epsilon > total.budget * (1.0 + 1e-9):
        raise RefusedError(
            f"account {total.account!r}: {total.releases} release(s) cost epsilon {total.epsilon:.4g} per {total.unit} "
            f"together under {total.neighbours}, above the budget of {total.budget:g}; nothing was spent"
        )


def _write_part(draft_folder: Path, trained: Any, schema: Schema, date: str, accuracy: str | None) -> str:
    """Write the model and the content of its card; return the model's digest."""
    estimator = trained.estimator
    digest = write_model(
        draft_folder,
        estimator._path,
        Description(
            classes=schema.class_order,
            n_features=estimator.n_features_in_,
            recipe=trained.recipe,
            table=schema.to_json(),
            held_back=None if trained.held_back is None else trained.held_back.to_json(),
            history=estimator._history,
        ),
        estimator.guarantee_,
        trained.protection,
    )
    path, record = read_model(draft_folder)
    explained = explain_on_card(path, record)
    write_json(draft_folder / _DRAFT, card_content(record, schema.name, date, accuracy, trained.held_back, explained))
    return digest


def _token(draft_folder: Path) -> str:
    """Return the secret of the release that was interrupted in a temporary folder, or a new one."""
    try:
        found = parse_json(read_regular_file(draft_folder / _BEGUN, 1_000, ""))["token"]
    except (PrivSVMError, OSError, LookupError, TypeError, ValueError):
        found = None
    return found if DIGEST.accepts(found) else secrets.token_hex(32)


def _resume(
    draft_folder: Path, out: Path, ledger: Ledger, key: str | os.PathLike[str] | None, identifier: str
) -> Entry | None:
    """Finish a release whose model was written before its process ended; None where there is none that is paid for."""
    if not (draft_folder / _DRAFT).exists() and not (draft_folder / CARD).exists():
        return None
    _draft(draft_folder)
    try:
        record = read_model(draft_folder)[1]
    except (PrivSVMError, OSError):
        return None
    for entry in ledger.entries():
        paid = entry.id == identifier and not entry.model and entry.guarantee == record.judged[0]
        if paid or entry.model == record.digest:
            break
    else:
        return None
    for path in draft_folder.iterdir():
        if path.name not in (ARRAYS, RECORD, CARD, PAGE, _DRAFT, _BEGUN):
            # Half a file of the process that was killed.
            path.unlink()
    if not entry.model:
        with ledger.lock():
            entry = ledger.finish(entry, record.digest, entry.date)
    _finish(draft_folder, out, entry, ledger.total_up_to(entry), key)
    return entry


def _draft(draft_folder: Path) -> dict[str, Any]:
    """Read a card's content but for the ledger; raise PrivSVMError where another version wrote it."""
    draft = draft_folder / _DRAFT
    content: dict[str, Any] = read_json(draft if draft.exists() else draft_folder / CARD)
    if content.get("version") != CARD_VERSION:
        raise PrivSVMError(
            f"{draft_folder}: holds an interrupted release of another version of PrivSVM; finish it with the commit "
            "that began it, or give another folder for a new release"
        )
    return content


def _finish(draft_folder: Path, out: Path, entry: Entry, total: Total, key: str | os.PathLike[str] | None) -> None:
    """Write the card, and give the folder its name."""
    content = _draft(draft_folder)
    place = {"account": entry.account, "entry": entry.number, "head": entry.head}
    card = {
        **{name: value for name, value in content.items() if name not in ("files", "digest", "signature")},
        "format": CARD_FORMAT,
        "ledger": place | {"total": total_on_card(total, content["risk"])},
        "files": {name: sha256_of_file(draft_folder / name) for name in CARD_FILES},
    }
    card["digest"] = content_digest(card)
    if key is not None:
        card["signature"] = signature_of(card["digest"], key)
    write_json(draft_folder / CARD, card)
    write_text(draft_folder / PAGE, page(read_json(draft_folder / CARD)))
    for name in (_DRAFT, _BEGUN):
        (draft_folder / name).unlink(missing_ok=True)
    # It is to be handed over, and written by nobody else, whatever the umask says.
    for path in draft_folder.iterdir():
        os.chmod(path, 0o644)
    os.chmod(draft_folder, 0o755)  # nosec B103
    os.rename(draft_folder, out)
