"""One guarantee card for each method, and the tables of seconds and parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm.digests import canonical_json
from privsvm.errors import without_absolute_paths
from privsvm.privacy.statement import Status
from privsvm_bench.metrics import mean_of_known
from privsvm_bench.records import Result, Timing, is_refuted
from privsvm_bench.reporting.claim_tables import finite_guarantees, right_guess
from privsvm_bench.reporting.curve_tables import nearest_epsilon
from privsvm_bench.reporting.results import by_status, group_by
from privsvm_bench.reporting.text import names_text, percent, short_number, unique

# A method that is claimed on one dataset is shown as claimed.
WEAKEST_LAST: tuple[Status, ...] = ("none", "proved", "seeded", "claimed")


def guarantee_cards(
    results: Iterable[Result], methods: Sequence[str], reference_epsilon: float = 1.0
) -> list[dict[str, Any]]:
    """Sum up the guarantees of each method over all datasets, in the order of `methods`.

    Long facts that differ by epsilon, such as the mechanism in words, are shown for the nearest epsilon only.
    """
    of_method = group_by(results, "method")
    return [_card(method, of_method[method], reference_epsilon) for method in methods]


def _card(method: str, members: Sequence[Result], reference_epsilon: float) -> dict[str, Any]:
    guarantees = [guarantee for result in members for guarantee in result.guarantees]
    # One proof as an example: the words of several epsilons and data sets do not read well together.
    weakest = max((result.status for result in members), key=WEAKEST_LAST.index)
    example = next(result for result in members if result.status == weakest)
    shown = [example.guarantees[nearest_epsilon(example.epsilons, reference_epsilon)]]
    statuses = {
        status: names_text([result.dataset for result in group]) for status, group in by_status(members).items()
    }
    grid = sorted({stated for result in members for stated, _ in finite_guarantees(result)})
    return {
        "method": method,
        "statuses": statuses,
        "worst": max(statuses, key=WEAKEST_LAST.index),
        **{
            name: [
                short_number(without_absolute_paths(value))
                for value in unique(getattr(guarantee, name) for guarantee in guarantees)
            ]
            for name in ("neighbours", "delta", "randomness", "reason", "reference")
        },
        "mechanism": [short_number(without_absolute_paths(one.mechanism)) for one in shown],
        "accountant": [one.accountant for one in shown if one.accountant],
        "assumptions": without_absolute_paths(list(shown[0].assumptions)),
        "example": {"dataset": example.dataset, "epsilon": shown[0].epsilon_requested},
        "lines": [_line(stated, members) for stated in grid],
        "implementation": unique(result.implementation for result in members),
        "grid": grid,
        "scales": _scales(members, grid),
    }


def _line(stated: float, members: Iterable[Result]) -> dict[str, Any]:
    """One line of a card: the guarantee of one stated epsilon over all datasets."""
    guarantees = [
        guarantee for result in members for epsilon, guarantee in finite_guarantees(result) if epsilon == stated
    ]
    weakest = max((one.epsilon_with_system_noise for one in guarantees), default=math.inf)
    replaced = [one.by_relation().get("replace_one") for one in guarantees if one.neighbours == "add_remove"]
    noises = sorted(guarantee.noise_scale for guarantee in guarantees if guarantee.noise_scale is not None)
    low, high = (short_number(noises[0]), short_number(noises[-1])) if noises else ("–", "–")
    return {
        "stated": stated,
        "refuted": any(map(is_refuted, guarantees)),
        "epsilon": weakest,
        "replaced": max((account.epsilon for account in replaced if account is not None), default=None),
        "guess": percent(max(map(right_guess, guarantees))),
        "noise": low if low == high else f"{low} to {high}",
    }


def _scales(members: Iterable[Result], grid: Sequence[float]) -> list[dict[str, Any]]:
    """Sensitivity and noise by stated epsilon; datasets with the same numbers share a row."""
    rows: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for result in members:
        of_epsilon = dict(finite_guarantees(result))
        if of_epsilon:
            sensitivities = unique(short_number(guarantee.sensitivity) for guarantee in of_epsilon.values())
            cells = tuple(
                (short_number(one.noise_scale), short_number(one.epsilon_with_system_noise)) if one else ("", "")
                for one in map(of_epsilon.get, grid)
            )
            rows.setdefault((" / ".join(sensitivities) or "–", cells), []).append(result.dataset)
    return [
        {"datasets": names_text(datasets), "sensitivity": sensitivity, "cells": cells}
        for (sensitivity, cells), datasets in rows.items()
    ]


def timing_rows(timings: Iterable[Timing], results: Iterable[Result]) -> list[dict[str, Any]]:
    """Mean seconds of each job, with the size of its solution from the results."""
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
                "fit": mean_of_known(timing.fit_seconds or ()),
                "release": mean_of_known(timing.release_seconds or ()),
                "predict": mean_of_known(timing.predict_seconds or ()),
                "rate": predicted / seconds if seconds > 0 and predicted else None,
                # None where the number would be private.
                "support": mean_of_known(result.n_support) if result else None,
                "objective": mean_of_known(result.objective) if result else None,
            }
        )
    return rows


def parameter_rows(results: Iterable[Result]) -> list[dict[str, Any]]:
    """List the parameters of each method; datasets with the same ones share a row."""
    groups: dict[tuple[str, str], tuple[dict[str, str], list[str]]] = {}
    for result in results:
        parameters = without_absolute_paths(result.parameters)
        # Exactly: text bare, everything else as JSON.
        written = {
            str(name): value if isinstance(value, str) else canonical_json(value, spaced=True)
            for name, value in sorted(parameters.items())
        }
        key = (result.method, canonical_json(written))
        groups.setdefault(key, (written, []))[1].append(result.dataset)
    return [
        {"method": method, "datasets": names_text(datasets), "parameters": written}
        for (method, _), (written, datasets) in sorted(groups.items(), key=lambda item: item[0])
    ]
