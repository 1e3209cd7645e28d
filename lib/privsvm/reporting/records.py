"""Reading what the report is made of, and refusing records that contradict themselves."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError
from privsvm.files import read_json

__all__ = [
    "CONDENSE_KINDS",
    "STATUSES",
    "Condensing",
    "Result",
    "Timing",
    "as_number",
    "read_attacks",
    "read_condensing",
    "read_prepared",
    "read_results",
    "read_timings",
    "result_from_record",
]

STATUSES = ("proved", "claimed", "none")

# How rows are condensed: means of three (CI-SVM), centres of fuzzy c-means (FCM-SVM).
CONDENSE_KINDS = ("ci", "fcm")

_REQUIRED = ("experiment", "method", "dataset", "status", "epsilons", "guarantees", "summary")


def as_number(value: Any) -> float | None:
    """Read a number of the record; infinity is written as the text ``"inf"``.

    Parameters
    ----------
    value : object
        A number, ``"inf"``, ``"-inf"`` or None.

    Returns
    -------
    float or None
        None for anything that is not a number.
    """
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(number) else number


@dataclass(frozen=True)
class Result:
    """One curve: a method on a dataset, over a grid of epsilons.

    Attributes
    ----------
    method, dataset, experiment : str
        What was run.
    status : {"proved", "claimed", "none"}
        The weakest status of the record and of its guarantees: one claim that does not hold makes the
        whole curve ``claimed``.
    epsilons : tuple of float
        The grid; ``(inf,)`` for a method without a privacy parameter.
    guarantees : tuple of mapping
        One per epsilon.
    summary : mapping
        ``{metric: {"mean" | "sd" | "low" | "high": one number or None per epsilon}}``.
    record : mapping
        Everything the results file holds.
    source : str
        The file, for messages.
    """

    method: str
    dataset: str
    experiment: str
    status: str
    epsilons: tuple[float, ...]
    guarantees: tuple[Mapping[str, Any], ...]
    summary: Mapping[str, Mapping[str, tuple[float | None, ...]]]
    record: Mapping[str, Any]
    source: str

    @property
    def condense(self) -> str | None:
        """How the training rows were condensed before this and every other method; None where they were not."""
        kind = self.record.get("condense")
        return None if kind in (None, "none") else str(kind)

    @property
    def is_reference(self) -> bool:
        """Whether the curve has no finite epsilon, so that it is a horizontal line."""
        return not any(math.isfinite(epsilon) for epsilon in self.epsilons)

    def value(self, metric: str, statistic: str, index: int) -> float | None:
        """One summary number, or None where it is undefined."""
        column = self.summary.get(metric, {}).get(statistic, ())
        return column[index] if index < len(column) else None


@dataclass(frozen=True)
class Timing:
    """Seconds of one method on one dataset, one number per split; None where not measured."""

    method: str
    dataset: str
    fit_seconds: tuple[float, ...] | None
    release_seconds: tuple[float, ...] | None
    predict_seconds: tuple[float, ...] | None
    rows_predicted: tuple[float, ...] | None


@dataclass(frozen=True)
class Condensing:
    """Seconds it took to condense the training rows of one dataset for all methods, one number per split."""

    dataset: str
    kind: str
    seconds: tuple[float, ...]


def _check_guarantee(source: str, position: int, guarantee: Mapping[str, Any]) -> None:
    """Refuse a guarantee whose status and proved epsilon disagree: it would be printed and believed."""
    status = guarantee.get("status")
    if status not in STATUSES:
        raise PrivSVMError(f"{source}: guarantees[{position}].status is {status!r}; use one of {', '.join(STATUSES)}")
    proved = as_number(guarantee.get("epsilon_proved"))
    requested = as_number(guarantee.get("epsilon_requested"))
    finite = proved is not None and math.isfinite(proved)
    if status == "proved" and not finite and requested is not None and math.isfinite(requested):
        raise PrivSVMError(
            f"{source}: guarantees[{position}] says 'proved' but epsilon_proved is "
            f"{guarantee.get('epsilon_proved')!r}; mend the method's guarantee or its status"
        )
    if status != "proved" and finite:
        raise PrivSVMError(
            f"{source}: guarantees[{position}] says {status!r} but epsilon_proved is "
            f"{guarantee.get('epsilon_proved')!r}; it must be 'inf' where nothing is proved"
        )


def _overall_status(source: str, stated: str, guarantees: Sequence[Mapping[str, Any]]) -> str:
    """Take the weakest word: a single claim that does not hold decides."""
    found = {stated} | {str(guarantee["status"]) for guarantee in guarantees}
    if "claimed" in found:
        return "claimed"
    if len(found) > 1:
        raise PrivSVMError(
            f"{source}: status is {stated!r} but its guarantees say {', '.join(sorted(found - {stated}))}; "
            "make them agree"
        )
    return stated


def result_from_record(record: Any, source: str) -> Result:
    """Check one results record and make it a `Result`.

    Parameters
    ----------
    record : mapping
        The content of a results file.
    source : str
        Its name, for messages.

    Returns
    -------
    Result
        The checked record.

    Raises
    ------
    PrivSVMError
        If a key is missing, a status is unknown, lengths differ, a guarantee contradicts itself, or one is said to be
        proved for condensed rows.
    """
    if not isinstance(record, Mapping):
        raise PrivSVMError(f"{source}: not a results record; delete it and run again")
    missing = [key for key in _REQUIRED if key not in record]
    if missing:
        raise PrivSVMError(f"{source}: key {missing[0]!r} is missing; delete the file and run again")
    if record["status"] not in STATUSES:
        raise PrivSVMError(f"{source}: status is {record['status']!r}; use one of {', '.join(STATUSES)}")
    epsilons = tuple(as_number(epsilon) for epsilon in record["epsilons"])
    if not epsilons or any(epsilon is None or epsilon <= 0 for epsilon in epsilons):
        raise PrivSVMError(f"{source}: epsilons must be positive numbers or ['inf'], got {record['epsilons']!r}")
    guarantees = tuple(record["guarantees"])
    if len(guarantees) != len(epsilons):
        raise PrivSVMError(f"{source}: {len(guarantees)} guarantees for {len(epsilons)} epsilons; run the method again")
    for position, guarantee in enumerate(guarantees):
        _check_guarantee(source, position, guarantee)
    summary: dict[str, dict[str, tuple[float | None, ...]]] = {}
    for metric, statistics in record["summary"].items():
        summary[str(metric)] = {}
        for statistic, column in statistics.items():
            if len(column) != len(epsilons):
                raise PrivSVMError(
                    f"{source}: summary.{metric}.{statistic} has {len(column)} numbers for {len(epsilons)} epsilons; "
                    "run the method again"
                )
            summary[str(metric)][str(statistic)] = tuple(as_number(value) for value in column)
    result = Result(
        method=str(record["method"]),
        dataset=str(record["dataset"]),
        experiment=str(record["experiment"]),
        status=_overall_status(source, record["status"], guarantees),
        epsilons=tuple(float(epsilon) for epsilon in epsilons if epsilon is not None),
        guarantees=guarantees,
        summary=summary,
        record=record,
        source=source,
    )
    if result.condense and result.status == "proved":
        raise PrivSVMError(
            f"{source}: status is 'proved' but condense is {result.condense!r}: condensing has no bounded sensitivity; "
            "train and evaluate the method again"
        )
    return result


def read_results(paths: Iterable[str | os.PathLike[str]]) -> list[Result]:
    """Read results files, ordered by dataset, then status (proved first), then method.

    Parameters
    ----------
    paths : iterable of path-like
        One file a method and dataset.

    Returns
    -------
    list of Result
        The same list for any order of `paths`.

    Raises
    ------
    PrivSVMError
        If a file is not a valid record, there is none, two are for the same method and dataset, or only some are of
        condensed rows.
    """
    found: dict[tuple[str, str], Result] = {}
    for path in paths:
        result = result_from_record(read_json(path), os.fspath(path))
        key = (result.dataset, result.method)
        if key in found:
            raise PrivSVMError(
                f"{path}: second result of {result.method!r} on {result.dataset!r} (the first is {found[key].source}); "
                "give each experiment a report of its own"
            )
        first = next(iter(found.values()), result)
        if first.condense != result.condense:
            raise PrivSVMError(
                f"{path}: condense is {result.condense or 'none'}, but {first.condense or 'none'} in {first.source}; "
                "run all methods again with one of them"
            )
        found[key] = result
    if not found:
        raise PrivSVMError("--results: no file given; run at least one method on one dataset")
    return sorted(found.values(), key=lambda item: (item.dataset, STATUSES.index(item.status), item.method))


def _numbers(record: Mapping[str, Any], key: str) -> tuple[float, ...] | None:
    if record.get(key) is None:
        return None
    values = record[key] if isinstance(record[key], list) else [record[key]]
    return tuple(number for number in map(as_number, values) if number is not None)


def read_timings(paths: Iterable[str | os.PathLike[str]]) -> list[Timing]:
    """Read timing files, joining the parts of train and evaluate.

    Parameters
    ----------
    paths : iterable of path-like
        ``<method>/<dataset>.train.json`` and ``<method>/<dataset>.evaluate.json``.

    Returns
    -------
    list of Timing
        Ordered by dataset and method.
    """
    joined: dict[tuple[str, str], dict[str, Any]] = {}
    for path in map(Path, paths):
        record = read_json(path)
        if not isinstance(record, Mapping):
            raise PrivSVMError(f"{path}: not a timings record; delete it and run again")
        # The file name carries what the record need not repeat; a dataset's own name may hold dots.
        dataset = str(record.get("dataset", path.name.removesuffix(".json").rpartition(".")[0]))
        method = str(record.get("method", path.parent.name))
        joined.setdefault((dataset, method), {}).update(record)
    return [
        Timing(
            method=method,
            dataset=dataset,
            fit_seconds=_numbers(record, "fit_seconds"),
            release_seconds=_numbers(record, "release_seconds"),
            predict_seconds=_numbers(record, "predict_seconds"),
            rows_predicted=_numbers(record, "rows_predicted"),
        )
        for (dataset, method), record in sorted(joined.items())
    ]


def read_condensing(paths: Iterable[str | os.PathLike[str]]) -> list[Condensing]:
    """Read how long the workflow's stage took to condense the rows, ordered by dataset.

    Parameters
    ----------
    paths : iterable of path-like
        ``_condense/<dataset>.json``.

    Returns
    -------
    list of Condensing

    Raises
    ------
    PrivSVMError
        If a file is no such record.
    """
    found = []
    for path in paths:
        record = read_json(path)
        _require_keys(path, record, ("dataset", "condense", "condense_seconds"))
        _check_kind(path, record)
        seconds = record["condense_seconds"]
        if not isinstance(seconds, list) or not seconds or not all(_is_between(item, 0, 1e15) for item in seconds):
            raise PrivSVMError(
                f"{path}: condense_seconds is {seconds!r}: must be one number for each split; delete the file and run "
                "again"
            )
        found.append(Condensing(str(record["dataset"]), record["condense"], tuple(float(item) for item in seconds)))
    return sorted(found, key=lambda item: (item.dataset, item.kind))


def read_prepared(paths: Iterable[str | os.PathLike[str]]) -> list[Mapping[str, Any]]:
    """Read the JSON beside each prepared dataset, ordered by dataset name."""
    records = []
    for path in paths:
        record = read_json(path)
        if not isinstance(record, Mapping):
            raise PrivSVMError(f"{path}: not a record of prepared data; delete it and run again")
        records.append({"dataset": Path(path).stem, **record})
    return sorted(records, key=lambda record: str(record["dataset"]))


_KNOWN_SAMPLE_KEYS = ("method", "dataset", "attack", "kernel", "mbar", "n_rows", "entities")
_CONDENSED_ROWS_KEYS = ("method", "dataset", "attack", "condense", "splits")
# What a split says of its condensed rows, between which bounds.
_SPLIT_NUMBERS = {
    "n_rows": (1, 1e15),
    "n_condensed": (1, 1e15),
    "size_ratio": (0, 1),
    "label_purity": (0, 1),
    "groups_of_three": (0, 1e15),
    "third_member_error": (0, math.inf),
    "linkage_rate": (0, 1),
    "guessing_rate": (0, 1),
    "membership_auc": (0, 1),
    "certain_members": (0, 1),
    "nearest_row": (0, math.inf),
    "lost_classes": (0, 1e15),
    "linked_rows": (1, 1e15),
    "other_rows": (0, 1e15),
}
# What a fuzzy centre, which is no mean of its group, cannot be attacked by.
_MEANS_ONLY = ("groups_of_three", "third_member_error", "linkage_rate", "guessing_rate")
_MEMBERSHIP = ("membership_auc", "certain_members")


def _require_keys(path: str | os.PathLike[str], record: Any, keys: Sequence[str]) -> None:
    for key in keys:
        if not isinstance(record, Mapping) or key not in record:
            raise PrivSVMError(f"{path}: key {key!r} is missing; delete the file and run again")


def _check_kind(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    if record["condense"] not in CONDENSE_KINDS:
        raise PrivSVMError(f"{path}: condense is {record['condense']!r}; use one of {', '.join(CONDENSE_KINDS)}")


def _is_between(value: Any, least: float, most: float) -> bool:
    number = as_number(value)
    return number is not None and least <= number <= most


def _nulls(kind: str, split: Mapping[str, Any]) -> dict[str, str]:
    """Name the numbers of a split that do not exist, with the reason."""
    absent: dict[str, str] = {}
    if kind == "fcm":
        absent |= dict.fromkeys(_MEANS_ONLY, "condense is 'fcm'")
    elif split["groups_of_three"] == 0:
        absent["third_member_error"] = "groups_of_three is 0"
    if split["other_rows"] == 0:
        absent |= dict.fromkeys(_MEMBERSHIP, "other_rows is 0")
    return absent


def _check_known_sample(path: str | os.PathLike[str], record: Any) -> None:
    _require_keys(path, record, _KNOWN_SAMPLE_KEYS)


def _check_condensed_rows(path: str | os.PathLike[str], record: Any) -> None:
    """Refuse a record whose numbers are none: they would be printed and believed."""
    _require_keys(path, record, _CONDENSED_ROWS_KEYS)
    _check_kind(path, record)
    if not isinstance(record["splits"], list) or not record["splits"]:
        raise PrivSVMError(f"{path}: splits is {record['splits']!r}: must hold one record for each split; run it again")
    for position, split in enumerate(record["splits"]):
        _require_keys(f"{path}: splits[{position}]", split, tuple(_SPLIT_NUMBERS))
        absent = _nulls(record["condense"], split)
        for key, (least, most) in _SPLIT_NUMBERS.items():
            value = split[key]
            if key in absent and value is not None:
                raise PrivSVMError(
                    f"{path}: splits[{position}].{key} is {value!r}: must be null where {absent[key]}; delete the file "
                    "and run again"
                )
            if key not in absent and not _is_between(value, least, most):
                raise PrivSVMError(
                    f"{path}: splits[{position}].{key} is {value!r}: must be a number from {least:g} to {most:g}; "
                    "delete the file and run again"
                )


_ATTACK_CHECKS = {"known_sample": _check_known_sample, "condensed_rows": _check_condensed_rows}


def read_attacks(paths: Iterable[str | os.PathLike[str]], results: Iterable[Result] = ()) -> list[Mapping[str, Any]]:
    """Read what attacks on methods without a guarantee recovered, ordered by dataset and method.

    Parameters
    ----------
    paths : iterable of path-like
        ``<dataset>.attacks.json``.
    results : iterable of Result
        Results, whose records may hold ``attacks`` too; those on rows that were condensed for all methods are in the
        results of every one of them, and are taken once.

    Returns
    -------
    list of mapping
        As docs/files.md describes them, of either kind of ``attack``.

    Raises
    ------
    PrivSVMError
        If something is no such record, or two records of the same attack differ.
    """
    sources = [(os.fspath(path), read_json(path)) for path in paths]
    for result in results:
        carried = result.record.get("attacks") or []
        if not isinstance(carried, list):
            raise PrivSVMError(f"{result.source}: attacks is {carried!r}: must be a list; run the method again")
        sources += [(f"{result.source}: attacks[{position}]", record) for position, record in enumerate(carried)]
    found: dict[tuple[str, str, str], tuple[str, Mapping[str, Any]]] = {}
    for source, record in sources:
        _require_keys(source, record, ("method", "dataset", "attack"))
        if record["attack"] not in tuple(_ATTACK_CHECKS):
            raise PrivSVMError(f"{source}: attack is {record['attack']!r}; use one of {', '.join(_ATTACK_CHECKS)}")
        _ATTACK_CHECKS[record["attack"]](source, record)
        # The stage, which has no name of a method, comes first.
        key = (str(record["dataset"]), str(record["method"] or ""), record["attack"])
        first, same = found.setdefault(key, (source, record))
        if same != record:
            raise PrivSVMError(f"{source}: differs from {first}, the same attack; run both again")
    return [record for _key, (_source, record) in sorted(found.items(), key=lambda item: item[0])]
