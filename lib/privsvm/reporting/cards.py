"""One guarantee card for each method, and the tables of seconds and parameters."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm.digests import canonical_json
from privsvm.privacy.guarantee import Guarantee, Status
from privsvm.records import CondenseTimings, Result, Timing
from privsvm.reporting.claims import finite_guarantees
from privsvm.reporting.provenance import without_absolute_paths
from privsvm.reporting.results import by_status, grouped
from privsvm.reporting.text import names_text, short_number, unique

__all__ = ["WEAKEST_LAST", "condensing_rows", "guarantee_cards", "parameter_rows", "timing_rows"]

# A method that is claimed on one dataset is shown as claimed.
WEAKEST_LAST: tuple[Status, ...] = ("none", "proved", "claimed")


def guarantee_cards(results: Iterable[Result], methods: Sequence[str]) -> list[dict[str, Any]]:
    """Sum up the guarantees of each method over all datasets.

    Parameters
    ----------
    results : iterable of Result
        The curves.
    methods : sequence of str
        In the order of the cards.

    Returns
    -------
    list of dict
        One for each method.
    """
    of_method = grouped(results, "method")
    return [_card(method, of_method[method]) for method in methods]


def _card(method: str, members: Sequence[Result]) -> dict[str, Any]:
    guarantees = [guarantee for result in members for guarantee in result.guarantees]
    statuses = {
        status: names_text([result.dataset for result in found]) for status, found in by_status(members).items()
    }
    grid = sorted({stated for result in members for stated, _ in finite_guarantees(result)})
    return {
        "method": method,
        "statuses": statuses,
        "seeded": any(result.seeded for result in members),
        "worst": max(statuses, key=WEAKEST_LAST.index),
        **{
            name: [
                short_number(without_absolute_paths(value))
                for value in unique(getattr(guarantee, name) for guarantee in guarantees)
            ]
            for name in ("mechanism", "neighbours", "delta", "accountant", "randomness", "reason", "reference")
        },
        "assumptions": without_absolute_paths(
            unique(assumption for guarantee in guarantees for assumption in guarantee.assumptions)
        ),
        "implementation": unique(result.implementation for result in members),
        "grid": grid,
        "scales": _scales(members, grid),
    }


def _scales(members: Iterable[Result], grid: Sequence[float]) -> list[dict[str, Any]]:
    """Sensitivity and noise by stated epsilon; datasets with the same numbers share a row."""
    rows: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for result in members:
        of_epsilon = dict(finite_guarantees(result))
        if of_epsilon:
            sensitivities = unique(short_number(guarantee.sensitivity) for guarantee in of_epsilon.values())
            cells = tuple(_scale_cell(of_epsilon.get(stated)) for stated in grid)
            rows.setdefault((" / ".join(sensitivities) or "–", cells), []).append(result.dataset)
    return [
        {"datasets": names_text(datasets), "sensitivity": sensitivity, "cells": cells}
        for (sensitivity, cells), datasets in rows.items()
    ]


def _scale_cell(guarantee: Guarantee | None) -> tuple[str, str]:
    if guarantee is None:
        return "", ""
    return short_number(guarantee.noise_scale), short_number(guarantee.epsilon_proved)


def _mean(values: Iterable[float | None] | None) -> float | None:
    known = [value for value in values or () if value is not None]
    return statistics.fmean(known) if known else None


def timing_rows(timings: Iterable[Timing], results: Iterable[Result]) -> list[dict[str, Any]]:
    """Mean seconds and sizes of the solution of each job.

    Parameters
    ----------
    timings : iterable of Timing
        Of the jobs.
    results : iterable of Result
        Of the same jobs, for the sizes.

    Returns
    -------
    list of dict
    """
    of_job: Mapping[tuple[str, str], Result] = {(result.dataset, result.method): result for result in results}
    rows = []
    for timing in timings:
        result = of_job.get((timing.dataset, timing.method))
        seconds, predicted = sum(timing.predict_seconds or ()), sum(timing.rows_predicted or ())
        rows.append(
            {
                "dataset": timing.dataset,
                "method": timing.method,
                "splits": len(timing.fit_seconds or timing.predict_seconds or ()),
                "fit": _mean(timing.fit_seconds),
                "release": _mean(timing.release_seconds),
                "predict": _mean(timing.predict_seconds),
                "rate": predicted / seconds if seconds > 0 and predicted else None,
                # None where the number would be private.
                "support": _mean(result.n_support) if result else None,
                "objective": _mean(result.objective) if result else None,
            }
        )
    return rows


def condensing_rows(timings: Iterable[CondenseTimings]) -> list[dict[str, Any]]:
    """Mean seconds to condense each dataset."""
    return [
        {
            "dataset": timing.dataset,
            "kind": timing.condense,
            "splits": len(timing.condense_seconds),
            "seconds": statistics.fmean(timing.condense_seconds),
        }
        for timing in timings
    ]


def parameter_rows(results: Iterable[Result]) -> list[dict[str, Any]]:
    """List the parameters of each method; datasets with the same ones share a row."""
    groups: dict[tuple[str, str], tuple[dict[str, str], list[str]]] = {}
    for result in results:
        parameters = without_absolute_paths(result.parameters)
        written = {str(name): _parameter_text(value) for name, value in sorted(parameters.items())}
        key = (result.method, canonical_json(written))
        groups.setdefault(key, (written, []))[1].append(result.dataset)
    return [
        {"method": method, "datasets": names_text(datasets), "parameters": written}
        for (method, _), (written, datasets) in sorted(groups.items(), key=lambda item: item[0])
    ]


def _parameter_text(value: Any) -> str:
    """Write one parameter exactly: text bare, everything else as JSON."""
    return value if isinstance(value, str) else canonical_json(value, spaced=True)
