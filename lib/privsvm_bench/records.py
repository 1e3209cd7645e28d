"""Typed records of the JSON files between stages; nothing else reads or writes these files.

Every record is a frozen dataclass, validated by pydantic where a file is read. docs/files.md describes the files.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, cast

from annotated_types import Ge, Le, MinLen, Predicate

from privsvm.digests import sha256_of_json
from privsvm.errors import PrivSVMError
from privsvm.files import ExtendedFloat, missing_file, write_json
from privsvm.privacy.events import Neighbours
from privsvm.privacy.gate import Guarantee, Stored
from privsvm.privacy.statement import Status, Witness, theorem_holds, weakest_status

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Condense = Literal["none", "ci", "fcm"]
"""How rows are condensed: not at all, to means of three (CI-SVM), to centres of fuzzy c-means (FCM-SVM)."""

# As in params.yaml: names become folders, addresses and headings.
Name = Annotated[str, Predicate(re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}").fullmatch)]
NAME_REMEDY = "must be a name of at most 64 letters, digits, _ . + and -"
# Remedies for errors that only records have, by pydantic's type of error.
_WISHES = {
    "predicate_failed": NAME_REMEDY,
    "union_tag_invalid": "must have a known 'attack'",
    "union_tag_not_found": "must have a key 'attack'",
}
Words = Annotated[str, MinLen(1)]
Count = Annotated[int, Ge(0)]
Positive = Annotated[int, Ge(1)]
Share = Annotated[float, Ge(0), Le(1)]
NotNegative = Annotated[float, Ge(0)]
Numbers = tuple[float | None, ...]
Worth = Literal["proved", "seeded", "claimed", "refuted", "none"]
"""What an epsilon is worth: the status of its curve, or ``refuted`` for a claim that a witness refutes."""

# Relative slack for comparing printed epsilons: round-off is not a contradiction.
SLACK = 1e-6

_Form = TypeVar("_Form")

_REMEDY = "delete the file and run again"
_SEAL = "record_sha256"


@dataclass(frozen=True, kw_only=True)
class _Record:
    """Base of all records: no unknown keys, no conversion of types, no infinity unless a field allows it.

    The file of a sealed record holds a digest of all the rest, which `read` checks.
    """

    is_sealed: ClassVar[bool] = False

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}


@dataclass(frozen=True, kw_only=True)
class CondensedSplit(_Record):
    """Findings of attacks on the condensed rows of one split; see `privsvm.privacy.attacks.condensation_attacks`."""

    n_rows: Positive
    n_condensed: Positive
    size_ratio: Share
    label_purity: Share
    lost_classes: Count
    groups_of_three: Count | None
    third_member_error: NotNegative | None
    linkage_rate: Share | None
    guessing_rate: Share | None
    membership_auc: Share | None
    certain_members: Share | None
    nearest_row: NotNegative
    linked_rows: Positive
    other_rows: Count

    def undefined(self, condense: Condense) -> dict[str, str]:
        """Name the fields that have no value for rows condensed this way, each with the reason."""
        reasons: dict[str, str] = {}
        if condense == "fcm":
            # A fuzzy centre is no mean of its group.
            means_only = ("groups_of_three", "third_member_error", "linkage_rate", "guessing_rate")
            reasons |= dict.fromkeys(means_only, "condense is 'fcm'")
        elif self.groups_of_three == 0:
            reasons["third_member_error"] = "groups_of_three is 0"
        if self.other_rows == 0:
            reasons |= dict.fromkeys(("membership_auc", "certain_members"), "other_rows is 0")
        return reasons


@dataclass(frozen=True, kw_only=True)
class CondensedRowsAttack(_Record):
    """Findings of attacks on the condensed rows of one dataset, with a record for each split.

    `method` condensed the rows; None stands for the stage, which condenses for all methods.
    """

    method: Name | None
    dataset: Name
    attack: Literal["condensed_rows"] = "condensed_rows"
    condense: Condense
    splits: tuple[CondensedSplit, ...]

    def __post_init__(self) -> None:
        if self.condense == "none" and self.splits:
            raise ValueError("splits is not empty: must be [] where condense is 'none'")
        if self.condense != "none" and not self.splits:
            raise ValueError("splits is []: must hold one record for each split")
        for position, split in enumerate(self.splits):
            undefined = split.undefined(self.condense)
            for field in dataclasses.fields(split):
                where, value = f"splits.{position}.{field.name}", getattr(split, field.name)
                if field.name in undefined and value is not None:
                    raise ValueError(f"{where} is {value!r}: must be null where {undefined[field.name]}")
                if field.name not in undefined and value is None:
                    raise ValueError(f"{where} is None: must be a number")


@dataclass(frozen=True, kw_only=True)
class RecoveryErrors(_Record):
    """Errors of recovered rows against the number of known ones."""

    known: tuple[Count, ...]
    max_error: Numbers
    rms_error: Numbers
    recovered_share: Numbers


@dataclass(frozen=True, kw_only=True)
class Membership(_Record):
    """Residuals of guessed columns beside a block: the worst right guess, the best wrong one."""

    true_column_residual: float | None
    random_residual: float | None


@dataclass(frozen=True, kw_only=True)
class Entity(_Record):
    """Rows that the known-sample attack recovers from one entity's public block."""

    entity: Words
    features: Positive
    rows_needed: Count
    possible: bool
    error_at_rows_needed: NotNegative | None
    recovered_at: Count | None
    unreadable_rows: Count
    curve: RecoveryErrors
    membership: Membership

    @classmethod
    def of_audit(cls, entity: str, recovery: Mapping[str, Any]) -> Self:
        """Take over the findings of `privsvm.privacy.attacks.known_sample.audit_entity`."""
        curve = {name: tuple(values) for name, values in recovery["curve"].items()}
        nested = {"curve": RecoveryErrors(**curve), "membership": Membership(**recovery["membership"])}
        return cls(entity=entity, **{**recovery, **nested})


@dataclass(frozen=True, kw_only=True)
class KnownSampleAttack(_Record):
    """Rows that the known-sample attack recovers from a method without a guarantee on one dataset."""

    method: Name
    dataset: Name
    attack: Literal["known_sample"] = "known_sample"
    kernel: str
    gamma: float | None
    mbar: Positive
    n_rows: Positive
    entities: tuple[Entity, ...]


class _ByName:
    """Tells pydantic that the key `attack` names the type of a record, without importing it here."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import Field

        return handler.generate_schema(Annotated[source, Field(discriminator="attack")])


Attack = Annotated[KnownSampleAttack | CondensedRowsAttack, _ByName()]


@dataclass(frozen=True, kw_only=True)
class AuditBound(_Record):
    """A lower bound on epsilon from sampled releases; see `privsvm.auditing.cells.CellBound`."""

    kind: Literal["counts", "f_dp", "gaussian", "one_run"]
    epsilon: ExtendedFloat
    sure: ExtendedFloat
    estimate: ExtendedFloat
    ceiling: ExtendedFloat

    def __post_init__(self) -> None:
        if not 0 <= self.sure <= self.epsilon <= self.estimate:
            raise ValueError(f"epsilon is {self.epsilon}: must lie between sure, {self.sure}, and the estimate")


@dataclass(frozen=True, kw_only=True)
class AuditCell(_Record):
    """Findings of the audit of one stated epsilon, over `draws` releases of both datasets of a pair.

    The noise of audited releases is seeded, so `epsilon_proved` is infinite, and `epsilon_with_system_noise` where no
    theorem holds. `refuted` says whether a bound that a whole run can build on, and fresh draws too, exceed the proved
    or stated epsilon.
    """

    relation: Neighbours
    epsilon: NotNegative
    delta: Share
    status: Status
    epsilon_proved: ExtendedFloat
    epsilon_with_system_noise: ExtendedFloat = math.inf
    event: str | None  # Kind of the releases' event.
    pair: Words  # The two datasets, in words.
    draws: Positive
    # By counts of an event; of Gaussian noise also by its trade-off curve, by normal samples and by one run.
    bounds: Annotated[tuple[AuditBound, ...], MinLen(1)]
    looks_at: Words = "the released model"  # Part of the releases that the bounds are about.
    reachable: ExtendedFloat = math.inf  # Largest epsilon that draws of this pair can show; infinite if unknown.
    refuted: bool

    def __post_init__(self) -> None:
        if self.status == "proved":
            raise ValueError("status is 'proved': must be 'seeded', 'claimed' or 'none', since audits seed their noise")

    @property
    def theorem_holds(self) -> bool:
        """Whether a theorem covers the releases; see `privsvm.privacy.statement.theorem_holds`."""
        return theorem_holds(self.status)

    @property
    def best(self) -> AuditBound:
        """The largest bound."""
        return max(self.bounds, key=lambda bound: bound.epsilon)


@dataclass(frozen=True, kw_only=True)
class AuditRecord(_Record):
    """Findings of audits of one method's releases: a cell for each relation and stated epsilon."""

    method: Name
    implementation: Words
    parameters: dict[str, Any]
    cells: tuple[AuditCell, ...]
    problem: str | None = None  # Why a class of another package could not be audited.


@dataclass(frozen=True, kw_only=True)
class _Models(_Record):
    """Facts of the models that one method released on every split of a dataset.

    Guarantees are one for each epsilon; `epsilons` is ``(inf,)`` for a non-private method. `objective`, `n_support` and
    `n_iter` are of the solves, one number a split, None where it would be private.
    """

    is_sealed: ClassVar[bool] = True

    implementation: Words
    epsilons: Annotated[tuple[ExtendedFloat, ...], MinLen(1)]
    repeats: Positive
    n_splits: Positive
    n_classes: Positive
    guarantees: tuple[Annotated[Guarantee, Stored()], ...]
    objective: Numbers
    n_support: tuple[int | None, ...]
    n_iter: tuple[int | None, ...]
    arrays_sha256: str = ""  # Of the file with the models' arrays; "" before it is written.

    def __post_init__(self) -> None:
        if not all(epsilon > 0 for epsilon in self.epsilons):
            raise ValueError(f"epsilons is {list(self.epsilons)}: must be positive numbers or ['inf']")
        if len(self.guarantees) != len(self.epsilons):
            counts = f"{len(self.guarantees)} guarantees for {len(self.epsilons)} epsilons"
            raise ValueError(f"guarantees: there are {counts}")
        for name in ("objective", "n_support", "n_iter"):
            if len(getattr(self, name)) != self.n_splits:
                raise ValueError(f"{name} has {len(getattr(self, name))} numbers for {self.n_splits} splits")

    @property
    def is_reference(self) -> bool:
        """Whether no epsilon is finite: drawn against epsilon, the method is a horizontal line."""
        return not any(math.isfinite(epsilon) for epsilon in self.epsilons)


@dataclass(frozen=True, kw_only=True)
class SavedModels(_Models):
    """The record beside the arrays of saved models: all that is needed to predict with them."""

    kind: Words  # Of the arrays, see `privsvm_bench.jobs.model_files`.
    classes: tuple[str, ...]  # In the order of the class codes.


@dataclass(frozen=True, kw_only=True)
class _Job(_Record):
    """The subject of one job of the benchmark."""

    experiment: Name
    method: Name
    dataset: Name
    dataset_digest: str
    parameters: dict[str, Any]
    protocol: dict[str, Any]
    condense: Condense  # How the training rows were condensed before this and every other method.
    delta: Share | None
    neighbours: Neighbours | None
    n_train: Positive | None  # Of the largest split; under ``add_remove`` the declared number, or None.
    n_features: Positive
    # On the rows that were condensed for this method or by it, and on the blocks that its entities published.
    attacks: tuple[Attack, ...]


@dataclass(frozen=True, kw_only=True)
class ModelRecord(SavedModels, _Job):
    """The record of one training job, beside the arrays of its models."""


@dataclass(frozen=True, kw_only=True)
class Summary(_Record):
    """One metric over splits and repeats, one number for each epsilon; None where undefined."""

    mean: Numbers
    sd: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True, kw_only=True)
class Result(_Models, _Job):
    """Outcome of one method on one dataset: a curve over a grid of epsilons.

    `status` is the weakest of the record and its guarantees: one broken claim makes the whole curve ``claimed``.
    `metrics` hold one number for each split, epsilon and repeat, `summary` the same over splits and repeats; None where
    undefined.
    """

    status: Status
    n_test: Positive
    predictions_sha256: str
    metrics: dict[str, tuple[tuple[Numbers, ...], ...]]
    summary: dict[str, Summary]

    def __post_init__(self) -> None:
        super().__post_init__()
        stated = {guarantee.status for guarantee in self.guarantees}
        weakest = weakest_status({self.status, *stated})
        if weakest is None:
            raise ValueError(
                f"status is {self.status!r} but the guarantees say {', '.join(sorted(stated))}: must agree"
            )
        object.__setattr__(self, "status", weakest)
        if self.condense != "none" and self.theorem_holds:
            raise ValueError(
                f"status is {self.status!r} but condense is {self.condense!r}: condensing has no bounded sensitivity"
            )
        self._check_lengths()

    @property
    def theorem_holds(self) -> bool:
        """Whether a theorem covers the whole curve; see `privsvm.privacy.statement.theorem_holds`."""
        return theorem_holds(self.status)

    def _check_lengths(self) -> None:
        n_epsilons = len(self.epsilons)
        for metric, summary in self.summary.items():
            for field in dataclasses.fields(summary):
                count = len(getattr(summary, field.name))
                if count != n_epsilons:
                    counts = f"{count} numbers for {n_epsilons} epsilons"
                    raise ValueError(f"summary.{metric}.{field.name} has {counts}")
        for metric, splits in self.metrics.items():
            if len(splits) != self.n_splits or any(len(split) != n_epsilons for split in splits):
                raise ValueError(
                    f"metrics.{metric}: must hold one list for each of {self.n_splits} splits, with one list for each "
                    f"of {n_epsilons} epsilons"
                )

    @classmethod
    def of_models(cls, models: ModelRecord, **outcome: Any) -> Self:
        """Join the record of one job's models with their `outcome`: the fields that it lacks or replaces."""
        fields = {field.name for field in dataclasses.fields(cls)}
        shared = {
            field.name: getattr(models, field.name) for field in dataclasses.fields(models) if field.name in fields
        }
        return cls(**(shared | outcome))

    @property
    def points(self) -> list[int]:
        """Indices of the curve's points by ascending epsilon; a reference has one."""
        finite = (index for index, epsilon in enumerate(self.epsilons) if math.isfinite(epsilon))
        return [0] if self.is_reference else sorted(finite, key=self.epsilons.__getitem__)

    def worth(self, index: int) -> Worth:
        """Name the worth of the epsilon at an index in one word, the same everywhere."""
        return "refuted" if self.status == "claimed" and is_refuted(self.guarantees[index]) else self.status

    @property
    def worst(self) -> Worth:
        """The word for the whole curve: one refuted epsilon decides."""
        return "refuted" if "refuted" in map(self.worth, range(len(self.epsilons))) else self.status

    def value(self, metric: str, statistic: str, index: int) -> float | None:
        """One number of the summary, or None where it is undefined."""
        if metric not in self.summary:
            return None
        number: float | None = getattr(self.summary[metric], statistic)[index]
        return number


@dataclass(frozen=True, kw_only=True)
class TrainTimings(_Record):
    """Seconds of one training job, one number for each split."""

    fit_seconds: tuple[NotNegative, ...]
    release_seconds: tuple[NotNegative, ...]


@dataclass(frozen=True, kw_only=True)
class EvaluateTimings(_Record):
    """Seconds of one evaluation, and the rows predicted in them, one number for each split."""

    predict_seconds: tuple[NotNegative, ...]
    rows_predicted: tuple[Count, ...]


@dataclass(frozen=True, kw_only=True)
class CondenseTimings(_Record):
    """Seconds to condense the training rows of one dataset for all methods, one number for each split."""

    dataset: Name
    condense: Condense
    condense_seconds: tuple[NotNegative, ...]

    def __post_init__(self) -> None:
        if self.condense != "none" and not self.condense_seconds:
            raise ValueError("condense_seconds is []: must be one number for each split")


@dataclass(frozen=True)
class Timing:
    """Timings of one method on one dataset, those of train and evaluate together; None where not measured."""

    method: str
    dataset: str
    fit_seconds: tuple[float, ...] | None = None
    release_seconds: tuple[float, ...] | None = None
    predict_seconds: tuple[float, ...] | None = None
    rows_predicted: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Prepared(_Record):
    """Declared facts of a prepared dataset, and those taken from its rows."""

    dataset: Name
    digest: str
    n_rows: Positive
    n_features: Positive
    n_features_origin: Literal["declared", "data"]
    indicators: tuple[int, ...]
    declared_training_rows: tuple[Positive, ...] | None
    n_splits: Positive
    classes: tuple[str, ...]
    classes_origin: Literal["declared", "data"]
    prescaled: bool | None
    prescaled_origin: Literal["declared", "catalogue"]
    sparse: bool
    parts: tuple[str, ...]
    protocol: dict[str, Any]
    scaling: dict[str, Any]
    missing: dict[str, Any]
    sources: dict[str, str]


@functools.cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(form)


def parse(form: type[_Form], text: str | bytes, source: str) -> _Form:
    """Check the JSON text of a record and build it.

    `source` tells where the text comes from. Raises PrivSVMError, in one line that names the source, the key and the
    value, for a missing or an unknown key, a wrong type, a number out of range, or parts that contradict each other.
    """
    # Imported where a file is read: those who only write records do not wait for pydantic.
    from pydantic import ValidationError

    from privsvm.models import describe_error

    try:
        record: _Form = _adapter(cast(Any, form)).validate_json(text)
    except ValidationError as invalid:
        problem, error = describe_error(invalid, separator=".", wishes=_WISHES)
        if error["type"] == "unexpected_keyword_argument":
            problem += "; another version of PrivSVM may have written it"
        raise PrivSVMError(f"{source}: {problem}; {_REMEDY}") from None
    return record


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the content of a record its digest, in place of one that it may have."""
    rest = {key: value for key, value in content.items() if key != _SEAL}
    return {**rest, _SEAL: sha256_of_json(rest)}


def _unseal(text: bytes, source: str) -> str | bytes:
    """Take the digest off a record, or raise an error if the record is not as it was written."""
    try:
        content = json.loads(text)
        stated = content.pop(_SEAL, None)
        digest = seal(content)[_SEAL]
    except (ValueError, AttributeError, TypeError, RecursionError):
        # Not a sealed JSON object: let validation report it.
        return text
    if stated is None:
        raise PrivSVMError(f"{source}: key {_SEAL!r} is missing, so nothing tells whether it was changed; {_REMEDY}")
    if stated != digest:
        raise PrivSVMError(f"{source}: was changed after it was written (its digest differs); {_REMEDY}")
    return json.dumps(content)


def read(form: type[_Form], path: str | os.PathLike[str]) -> _Form:
    """Read a record; raise PrivSVMError as `parse` does, or if the file is missing or was changed after writing."""
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        raise missing_file(path) from None
    source = os.fspath(path)
    return parse(form, _unseal(text, source) if getattr(form, "is_sealed", False) else text, source)


def write(path: str | os.PathLike[str], record: Any, indent: int | None = 1) -> None:
    """Write a record as canonical JSON, sealed if it is of that kind; see `privsvm.files.write_json`."""
    if getattr(record, "is_sealed", False):
        record = seal({field.name: getattr(record, field.name) for field in dataclasses.fields(record)})
    write_json(path, record, indent=indent)


def is_refuted(guarantee: Guarantee) -> bool:
    """Tell whether the witness of a claim refutes its epsilon, or every finite one."""
    witness = guarantee.witness
    if witness is None or math.isinf(witness.epsilon):
        return witness is not None
    return witness.neighbours == guarantee.neighbours and witness.epsilon > guarantee.epsilon_requested * (1 + SLACK)


def _audit_witness(cell: AuditCell) -> Witness:
    # One of many bounds at 95 % may exceed its epsilon by chance: only fresh draws refute it.
    epsilon = cell.best.epsilon if cell.refuted else min(cell.best.epsilon, cell.epsilon)
    words = f"{cell.pair}; {cell.draws} releases{', and as many fresh ones' if cell.refuted else ''}"
    return Witness(epsilon=epsilon, neighbours=cell.relation, confidence=0.95, description=words)


def with_audits(results: Sequence[Result], audits: Iterable[AuditRecord]) -> list[Result]:
    """Add the witness of a method's audit to its claims at the audited epsilons, unless their own shows as much."""
    cells: dict[tuple[str, float, str | None], AuditCell] = {
        (record.method, cell.epsilon, cell.relation): cell for record in audits for cell in record.cells
    }

    def add_witness(method: str, guarantee: Guarantee) -> Guarantee:
        cell = cells.get((method, guarantee.epsilon_requested, guarantee.neighbours))
        if guarantee.status != "claimed" or cell is None or cell.status != "claimed":
            return guarantee
        own, drawn = guarantee.witness, _audit_witness(cell)
        return guarantee if own and own.epsilon >= drawn.epsilon else dataclasses.replace(guarantee, witness=drawn)

    return [
        dataclasses.replace(result, guarantees=tuple(add_witness(result.method, one) for one in result.guarantees))
        if result.status == "claimed"
        else result
        for result in results
    ]


def read_results(
    paths: Iterable[str | os.PathLike[str]], audits: Iterable[str | os.PathLike[str]] = ()
) -> list[Result]:
    """Read results, in the order of the paths, with the witnesses of audits; refuse two of one method and dataset."""
    files: dict[tuple[str, str], str] = {}
    results = []
    for path in paths:
        result = read(Result, path)
        key = (result.dataset, result.method)
        if key in files:
            raise PrivSVMError(
                f"{path}: second result of {result.method!r} on {result.dataset!r}, which is already in {files[key]}; "
                "give each experiment a folder of its own"
            )
        files[key] = os.fspath(path)
        results.append(result)
    return with_audits(results, read_audits(audits))


_TIMING_FORMS: dict[str, type[TrainTimings] | type[EvaluateTimings]] = {
    ".train.json": TrainTimings,
    ".evaluate.json": EvaluateTimings,
}


def timing_files(result: str | os.PathLike[str], folder: str | os.PathLike[str] = "logs/timings") -> list[Path]:
    """List the timing files of the result ``<method>/<dataset>.json``; another machine's results have none."""
    result = Path(result)
    files = [Path(folder) / result.parent.name / f"{result.stem}{ending}" for ending in _TIMING_FORMS]
    return [path for path in files if path.is_file()]


def read_timings(paths: Iterable[str | os.PathLike[str]]) -> list[Timing]:
    """Read timings ordered by dataset and method, joining those of train and evaluate.

    Files are named ``<method>/<dataset>.train.json`` and ``<method>/<dataset>.evaluate.json``.
    """
    joined: dict[tuple[str, str], dict[str, Any]] = {}
    for path in map(Path, paths):
        ending = next((ending for ending in _TIMING_FORMS if path.name.endswith(ending)), None)
        if ending is None:
            raise PrivSVMError(f"{path}: not named as timings; use <method>/<dataset>{' or '.join(_TIMING_FORMS)}")
        timings: TrainTimings | EvaluateTimings = read(_TIMING_FORMS[ending], path)
        joined.setdefault((path.name.removesuffix(ending), path.parent.name), {}).update(vars(timings))
    return [Timing(method, dataset, **seconds) for (dataset, method), seconds in sorted(joined.items())]


def read_by_dataset(form: type[_Form], paths: Iterable[str | os.PathLike[str]]) -> list[_Form]:
    """Read records of datasets, ordered by dataset."""
    return sorted((read(form, path) for path in paths), key=operator.attrgetter("dataset"))


def attacks_of(results: Iterable[Result]) -> list[Attack]:
    """Collect the attacks on methods without a guarantee, ordered by dataset and method.

    An attack on rows that were condensed for all methods is in the results of each, and is taken once. Raises
    PrivSVMError if two records of it differ.
    """
    first_attacks: dict[tuple[str, str, str], tuple[str, Attack]] = {}
    for result in results:
        for position, attack in enumerate(result.attacks):
            source = f"results of {result.method} on {result.dataset}: attacks[{position}]"
            # The stage, which has no name of a method, comes first.
            first, same = first_attacks.setdefault(
                (attack.dataset, attack.method or "", attack.attack), (source, attack)
            )
            if same != attack:
                raise PrivSVMError(f"{source}: differs from {first}, the same attack; run both again")
    return [attack for _key, (_source, attack) in sorted(first_attacks.items(), key=lambda item: item[0])]


def read_audits(paths: Iterable[str | os.PathLike[str]]) -> list[AuditRecord]:
    """Read the audits of releases, ordered by method."""
    return sorted((read(AuditRecord, path) for path in paths), key=lambda record: record.method)
