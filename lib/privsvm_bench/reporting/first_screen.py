"""First screen of a page: a sentence for each epsilon, and the methods to rely on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privsvm.privacy.statement import STATUSES
from privsvm_bench.records import Result
from privsvm_bench.reporting.curve_tables import nearest_epsilon
from privsvm_bench.reporting.dataset_sections import best_proved
from privsvm_bench.reporting.text import display_name, percent_score, short_number

# As much as without privacy, within this many points.
_EQUAL = 0.05


def answers(results: Sequence[Result], grid: Sequence[float]) -> list[dict[str, Any]]:
    """Answer, for one dataset and each epsilon, which proved method keeps most accuracy and what that costs.

    Each answer has ``epsilon``, ``text`` (a sentence), ``best`` (a row of `best_proved`) and ``rows``: all methods at
    that epsilon.
    """
    epsilon_answers = []
    for epsilon in grid:
        (best,) = best_proved(results, epsilon)
        rows = _rows(results, epsilon)
        epsilon_answers.append({"epsilon": epsilon, "text": _sentence(best, epsilon), "best": best, "rows": rows})
    return epsilon_answers


def _sentence(row: Mapping[str, Any], epsilon: float) -> str:
    best, dataset = row["best"], row["dataset"]
    if best is None:
        return f"No method here is proved on {dataset}. Rely on no epsilon on this page."
    at = f"At ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{short_number(best['epsilon'])}"
    kept = f"{100 * best['mean']:.1f}\N{NO-BREAK SPACE}%"
    if row["worthless"]:
        return f"{at}, no proved method beats the majority class on {dataset} ({kept} accuracy)."
    start = f"{at}, {best['name']} reaches {kept} accuracy on {dataset}"
    if best["loss"] is None:
        return f"{start}."
    if best["loss"] < _EQUAL:
        return f"{start}: as much as without privacy."
    return f"{start}: {best['loss']:.1f} points less than without privacy."


def _rows(results: Iterable[Result], epsilon: float) -> dict[str, list[dict[str, Any]]]:
    """List all methods that ran at an epsilon, by status, most accurate first."""
    without = [result for result in results if result.method == "svm" and result.is_reference]
    level = without[0].value("accuracy", "mean", 0) if without else None
    groups: dict[str, list[dict[str, Any]]] = {status: [] for status in STATUSES}
    for result in results:
        index = 0 if result.is_reference else nearest_epsilon(result.epsilons, epsilon)
        if not result.is_reference and not math.isclose(result.epsilons[index], epsilon):
            continue
        mean = result.value("accuracy", "mean", index)
        guarantee = result.guarantees[index]
        groups[result.status].append(
            {
                "method": result.method,
                "name": display_name(result.method, result.implementation),
                "mean": -1.0 if mean is None else mean,
                "score": percent_score(mean, result.value("accuracy", "sd", index)),
                "loss": None if mean is None or level is None else 100 * (level - mean),
                "epsilon": short_number(guarantee.epsilon_with_system_noise),
                "delta": short_number(guarantee.delta),
            }
        )
    return {status: sorted(rows, key=lambda row: (-row["mean"], row["method"])) for status, rows in groups.items()}


def data_set_rows(results: Sequence[Result], grid: Sequence[float]) -> list[dict[str, Any]]:
    """Collect for each epsilon of the selector the best proved method of every dataset, as rows of `best_proved`.

    A dataset without that epsilon shows its nearest.
    """
    return [{"epsilon": epsilon, "rows": best_proved(results, epsilon)} for epsilon in grid]


def claims_by_origin(results: Iterable[Result]) -> dict[str, list[str]]:
    """Group claims by their origin: ``papers``, ``own`` (classes outside the library) and ``settings``.

    A method belongs to the settings if the only broken facts are about the rows, such as undeclared classes.
    """
    by: dict[str, list[str]] = {"papers": [], "own": [], "settings": []}
    for result in results:
        if result.status != "claimed":
            continue
        broken = [guarantee for guarantee in result.guarantees if guarantee.status == "claimed"]
        only_facts = all(
            guarantee.facts is not None
            and guarantee.reason
            and guarantee.reason == "; ".join(guarantee.facts.judge(guarantee.neighbours)[1])
            for guarantee in broken
        )
        group = by["own" if ":" in result.implementation else "settings" if only_facts else "papers"]
        if result.method not in group:
            group.append(result.method)
    by["settings"] = [name for name in by["settings"] if name not in by["papers"]]
    return {name: sorted(methods) for name, methods in by.items()}
