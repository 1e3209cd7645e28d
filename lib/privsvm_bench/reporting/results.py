"""The results of one report: in order, comparable with one another, and grouped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Literal

from privsvm.errors import PrivSVMError
from privsvm.privacy.statement import STATUSES, Status
from privsvm_bench import records
from privsvm_bench.records import Result


def read_results(
    paths: Sequence[str | os.PathLike[str]], audits: Sequence[str | os.PathLike[str]] = ()
) -> list[Result]:
    """Read results, ordered by dataset, then status (proved first), then method, with the witnesses of audits.

    Raises PrivSVMError if a file is not a valid record, there is none, two are for the same method and dataset, or only
    some are of condensed rows.
    """
    results = records.read_results(paths, audits)
    if not results:
        raise PrivSVMError("--results: no file given; run at least one method on one dataset")
    for path, result in zip(paths, results, strict=True):
        if result.condense != results[0].condense:
            raise PrivSVMError(
                f"{path}: condense is {result.condense}, but {results[0].condense} in {paths[0]}; run all methods "
                "again with one of them"
            )
    return sorted(results, key=lambda item: (item.dataset, STATUSES.index(item.status), item.method))


def group_by(results: Iterable[Result], by: Literal["dataset", "method"]) -> dict[str, list[Result]]:
    """Group results by dataset or by method, in the order in which each first occurs."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(getattr(result, by), []).append(result)
    return groups


def by_status(results: Iterable[Result]) -> dict[Status, list[Result]]:
    """Group results by status, proved first; a status that none has is left out."""
    groups: dict[Status, list[Result]] = {status: [] for status in STATUSES}
    for result in results:
        groups[result.status].append(result)
    return {status: members for status, members in groups.items() if members}
