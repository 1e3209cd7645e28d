"""One released model as two files that hold no code: the arrays, and a record of everything else with a digest.

`model.npz` holds the arrays of a path (`privsvm.base.released`) with one epsilon and one repeat, `model.json` its
record. The record says which version of this format it has, and other versions are refused.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pydantic

from privsvm.base.released import ReleasedPath, array_names, path_from_arrays
from privsvm.constraints import DIGEST, LABEL, VERSION
from privsvm.digests import canonical_json, sha256_of_file, sha256_of_json
from privsvm.errors import PrivSVMError
from privsvm.files import write_json, write_npz
from privsvm.models import Model, Obeys, check_model
from privsvm.privacy.accountants import relation_accounts
from privsvm.privacy.events import Laplace, Neighbours, OneOf, leaves
from privsvm.privacy.gate import Guarantee, agrees, foreign_numbers, reasons_against, restore
from privsvm.privacy.risk import Risk
from privsvm.untrusted import LARGEST_ARRAYS, LARGEST_JSON, parse_json, parse_npz, read_regular_file

MODEL_VERSION = 1
ARRAYS, RECORD, CARD = "model.npz", "model.json", "card.json"

_FORMAT = "privsvm model"
_COUNT = Annotated[int, pydantic.Field(ge=1)]
_Digest = Annotated[str, Obeys(DIGEST)]
_relation_accounts = functools.lru_cache(maxsize=256)(relation_accounts)


class Protection(Model, strict=True):
    """Who is protected, and how well.

    `rows` are those that a unit has at most. `epsilon` and `delta` hold for the unit, epsilon None where nothing is
    proved; `accountant` computed it. `by_relation` has epsilon under each relation that is known, the guarantee's own
    first.
    """

    unit: Literal["row", "person"]
    rows: _COUNT
    epsilon: float | None
    delta: Annotated[float, pydantic.Field(ge=0, lt=1)]
    accountant: str
    # Files of earlier commits have none.
    by_relation: dict[Neighbours, float] = pydantic.Field(default_factory=dict)


class OneRelease(Model, strict=True):
    """A release in an average, with its public or noisy number of rows; the last one has no digest and price yet."""

    rows: Annotated[float, pydantic.Field(ge=1, lt=1e100)]
    weight: Annotated[float, pydantic.Field(gt=0, lt=1e100)]
    model: _Digest | None = None
    epsilon: Annotated[float, pydantic.Field(ge=0)] | None = None
    delta: Annotated[float, pydantic.Field(ge=0, lt=1)] | None = None


class ModelFile(Model, strict=True):
    """The record of a model.

    `privsvm` is the version of the library that wrote it, `kind` the kind of the arrays (see `privsvm.base.released`),
    and `arrays` the SHA-256 of their file. `classes` are labels in the order of their codes. `guarantee` is the privacy
    record for rows, as JSON, and `protection` states whom it protects, and how far: nobody has judged either, see
    `judged`. `recipe` is class and parameters, and `table` the public schema by which a table becomes rows. `held_back`
    are noisy counts of rows that did not train (`privsvm.release.documents.calibration.HeldBackCounts`). `history`
    lists the releases in the average that a model of the recommended method is, the oldest first. `digest` is the
    SHA-256 of the canonical JSON of all other keys.
    """

    format: Literal["privsvm model"]
    version: int
    privsvm: Annotated[str, Obeys(VERSION)]
    kind: str
    arrays: _Digest
    classes: list[Annotated[Any, Obeys(LABEL)]]
    n_features: Annotated[int, pydantic.Field(ge=0)]
    guarantee: dict[str, Any]
    protection: Protection
    recipe: dict[str, Any]
    table: dict[str, Any] | None
    held_back: dict[str, Any] | None
    history: list[OneRelease] | None
    digest: _Digest

    @functools.cached_property
    def judged(self) -> tuple[Guarantee, Protection]:
        """Judge the guarantee for rows, and compute the protection of the file's unit from its event.

        The protection is at the delta that the file names. Raises PrivSVMError if they do not hold as the file states
        them.
        """
        stated = self.protection
        try:
            with foreign_numbers():
                guarantee = restore(self.guarantee, stated.rows)
                computed = protection_of(guarantee, stated.unit, stated.rows, stated.delta)
        except ValueError as error:
            raise PrivSVMError(f"{RECORD}: the guarantee is refused ({error}); get the model again") from None
        if not agree(computed, stated.epsilon, stated.by_relation):
            raise PrivSVMError(
                f"{RECORD}: epsilon is {stated.epsilon} at delta {stated.delta:g} {stated.by_relation or ''}, and its "
                f"event gives {computed.epsilon} {computed.by_relation}; get the model again"
            )
        if guarantee.status == "proved" and self.held_back and _covered_scale(self.held_back) != scale_of(guarantee):
            raise PrivSVMError(f"{RECORD}: its guarantee does not cover its counts of rows; get the model again")
        unpaid = [one for one in self.releases[:-1] if None in (one.model, one.epsilon, one.delta)]
        if guarantee.status == "proved" and unpaid:
            raise PrivSVMError(f"{RECORD}: a release in its history has no digest or price; get the model again")
        return guarantee, computed

    def risk(self, units: int = 1, *, false_positive_rate: float = 0.01, prior: float = 0.5) -> Risk:
        """Bound the leakage of the model about a protected unit, or several; see `Guarantee.risk`.

        Raises PrivSVMError if nothing is proved, or its event cannot be accounted for.
        """
        rows = units * self.protection.rows
        try:
            with foreign_numbers():
                return self.restored.risk(false_positive_rate=false_positive_rate, prior=prior, rows=rows)
        except ValueError as error:
            raise PrivSVMError(f"{RECORD}: no risk can be stated ({error})") from None

    @property
    def releases(self) -> list[OneRelease]:
        """The releases in the average that the model is, this one last; none for methods that average nothing."""
        own = {"model": self.digest, "epsilon": self.protection.epsilon, "delta": self.protection.delta}
        history = self.history or []
        return [*history[:-1], *(one.model_copy(update=own) for one in history[-1:])]

    def check_schema(self, declared: Mapping[str, Any], folder: Any) -> None:
        """Raise PrivSVMError unless the model is of this schema, but for its rows and the card's answers."""
        stored = self.table or {}
        for key in sorted(({*stored} | {*declared}) - {"rows", "card", "delimiter", "latest_by"}):
            if canonical_json(stored.get(key)) != canonical_json(declared.get(key)):
                raise PrivSVMError(f"{folder}: `{key}` of its schema is another; give a model of this schema, or none")

    @property
    def restored(self) -> Guarantee:
        """The guarantee for rows; see `judged`."""
        return self.judged[0]


def agree(computed: Protection, epsilon: float | None, by_relation: Mapping[Neighbours, float]) -> bool:
    """Whether stated epsilons are the computed ones; None where nothing is proved."""
    pairs = [(computed.epsilon, epsilon), *((computed.by_relation.get(key), by_relation[key]) for key in by_relation)]
    return all(one is other if one is None or other is None else agrees(one, other) for one, other in pairs)


def protection_of(
    guarantee: Guarantee,
    unit: Literal["row", "person"],
    rows: int,
    delta: float | None = None,
    *,
    with_system_noise: bool = False,
) -> Protection:
    """State a guarantee for rows as a guarantee for a unit with several of them.

    `rows` counts the rows of a unit, 1 for rows, and `delta` is for the unit; None takes the guarantee's delta. The
    result has the epsilon that the guarantee's event has at this delta, whatever the guarantee says of itself. If
    `with_system_noise`, for simulations, it says what would hold of a release with seeded noise if its noise were the
    system's.
    """
    if unit == "row" and rows != 1:
        raise ValueError(f"rows is {rows}: a row is one")
    delta = guarantee.delta if delta is None else delta
    nothing = Protection(unit=unit, rows=rows, epsilon=None, delta=delta or 0.0, accountant="nothing is proved")
    holds = guarantee.theorem_holds if with_system_noise else guarantee.status == "proved"
    if not holds or guarantee.event is None or guarantee.neighbours is None or delta is None:
        return nothing
    accounts = _relation_accounts(guarantee.event, rows, delta, guarantee.neighbours)
    accounted = accounts.get(guarantee.neighbours)
    if accounted is None or reasons_against(guarantee.facts, guarantee.neighbours, delta, accounted.epsilon):
        return nothing
    return Protection(
        unit=unit,
        rows=rows,
        epsilon=accounted.epsilon,
        delta=accounted.delta,
        accountant=accounted.accountant,
        by_relation={relation: account.epsilon for relation, account in accounts.items()},
    )


def scale_of(guarantee: Guarantee) -> float | None:
    """Return the scale of the noise on counts of held-back rows that a record covers; None where it covers none."""
    event_counts = leaves(guarantee.event) if guarantee.event is not None else []
    if (
        len(event_counts) == 1
        and isinstance(event_counts[0][0], OneOf)
        and isinstance(event_counts[0][0].events[-1], Laplace)
    ):
        return event_counts[0][0].events[-1].noise_multiplier
    return None


def _covered_scale(held_back: Mapping[str, Any]) -> float | None:
    """Return the scale that one table of counts alone would need; None where the content says none."""
    scale, groups = held_back.get("scale"), held_back.get("groups", {})
    return scale / (1 + len(groups)) if isinstance(scale, (int, float)) and isinstance(groups, dict) else None


def plain_labels(classes: Sequence[Any]) -> list[Any]:
    """Turn labels into JSON values; raise PrivSVMError for one that JSON does not have."""
    labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    for label in labels:
        if not LABEL.accepts(label):
            raise PrivSVMError(f"class {label!r} {LABEL.wish}; train with such labels to save the model")
    return labels


def content_digest(content: Mapping[str, Any], *without: str) -> str:
    """SHA-256 of the canonical JSON of a mapping, some keys left out."""
    kept = {key: value for key, value in content.items() if key not in without}
    return sha256_of_json(kept)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """Content of a model file besides the arrays and the guarantee.

    `classes` are labels in the order of their codes, `recipe` holds ``method`` and ``parameters``, `table` is a public
    schema (see `privsvm.tables.schema.Schema.to_json`), and `held_back` the noisy counts of rows that did not train.
    `history` has the releases that it is the average of, as `OneRelease` or its JSON.
    """

    classes: Sequence[Any]
    n_features: int
    recipe: Mapping[str, Any]
    table: Mapping[str, Any] | None = None
    held_back: Mapping[str, Any] | None = None
    history: Sequence[Any] | None = None


def write_model(
    folder: str | os.PathLike[str],
    path: ReleasedPath,
    described: Description,
    guarantee: Guarantee,
    protection: Protection | None = None,
) -> str:
    """Write one released model.

    The path has one epsilon and one repeat. Without a `protection`, the protection of rows is written. Returns the
    digest.
    """
    from importlib.metadata import version

    folder = Path(folder)
    if (folder / CARD).exists():
        raise PrivSVMError(f"{folder}: holds a released model, whose epsilon is spent; give another folder")
    # Witnesses are computed from the rows.
    guarantee = guarantee if guarantee.theorem_holds else dataclasses.replace(guarantee, witness=None)
    if guarantee.witness is not None:
        raise PrivSVMError("the guarantee has a witness, which is computed from the rows: fit without an audit")
    write_npz(folder / ARRAYS, path.arrays())
    content: dict[str, Any] = {
        "format": _FORMAT,
        "version": MODEL_VERSION,
        "privsvm": version("privsvm"),
        "kind": path.kind,
        "arrays": sha256_of_file(folder / ARRAYS),
        "classes": plain_labels(described.classes),
        "n_features": int(described.n_features),
        "guarantee": json.loads(canonical_json(guarantee)),
        "protection": (protection or protection_of(guarantee, "row", 1)).model_dump(),
        "recipe": dict(described.recipe),
        "table": None if described.table is None else dict(described.table),
        "held_back": None if described.held_back is None else dict(described.held_back),
        "history": described.history and [OneRelease.model_validate(one).model_dump() for one in described.history],
    }
    content["digest"] = content_digest(content)
    write_json(folder / RECORD, content)
    return str(content["digest"])


def read_versioned(path: str | os.PathLike[str], form: str, known: int) -> dict[str, Any]:
    """Read a JSON file that says its format, version and digest.

    Raises PrivSVMError if it is missing, of another format, of another version than `known`, or not as it was written.
    """
    try:
        data = read_regular_file(path, LARGEST_JSON, "give the folder of a saved model")
    except FileNotFoundError:
        raise PrivSVMError(f"{path}: file not found; give the folder of a saved model") from None
    damaged = PrivSVMError(f"{path}: damaged, or no such file of PrivSVM; get it again")
    try:
        content = parse_json(data)
        version = content["version"] if content["format"] == form else None
    except (ValueError, KeyError, TypeError):
        raise damaged from None
    if not isinstance(version, int) or version < 1:
        raise damaged
    if version != known:
        raise PrivSVMError(
            f"{path}: has version {version}, and {known} alone is read here; update PrivSVM, or release again"
        )
    signature = ("digest", "signature")
    exact = data == (canonical_json(content, indent=1) + "\n").encode()
    if not exact or content.get("digest") != content_digest(content, *signature):
        raise damaged
    return dict(content)


def read_model(folder: str | os.PathLike[str]) -> tuple[ReleasedPath, ModelFile]:
    """Read what `write_model` wrote.

    The guarantees of the path are not filled in: `ModelFile.restored` judges the one there is. Raises PrivSVMError if a
    file is missing, damaged, or of another version.
    """
    folder = Path(folder)
    record = check_model(ModelFile, read_versioned(folder / RECORD, _FORMAT, MODEL_VERSION), str(folder / RECORD))
    labels = np.array(record.classes)
    if labels.size < 2 or labels.dtype.kind not in "biufU" or np.unique(labels).size != labels.size:
        raise PrivSVMError(f"{folder / RECORD}: classes must be two or more different labels; get the file again")
    try:
        data = read_regular_file(folder / ARRAYS, LARGEST_ARRAYS, "get the file again", record.arrays)
    except FileNotFoundError:
        raise PrivSVMError(f"{folder / ARRAYS}: file not found; get the file again") from None
    try:
        arrays = parse_npz(data, array_names(record.kind))
    except ValueError as error:
        raise PrivSVMError(f"{folder / ARRAYS}: model file: array file is refused: {error}; get it again") from None
    path = path_from_arrays(record.kind, arrays, epsilons=(0.0,), guarantees=(), n_classes=len(record.classes))
    if path.check_arrays().get("d", record.n_features) != record.n_features:
        raise PrivSVMError(
            f"{folder / ARRAYS}: is not for the {record.n_features} features of {RECORD}; get both again"
        )
    if path.n_repeats != 1:
        raise PrivSVMError(f"{folder / ARRAYS}: holds {path.n_repeats} models, and one was released; get it again")
    return path, record
