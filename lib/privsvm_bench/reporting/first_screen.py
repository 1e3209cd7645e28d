"""First screen of a page: a sentence for each epsilon, ranks over all tables, and the methods to rely on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.privacy.statement import STATUSES
from privsvm_bench.records import Result
from privsvm_bench.reporting.curve_tables import nearest_epsilon
from privsvm_bench.reporting.dataset_sections import best_proved
from privsvm_bench.reporting.text import percent_score, short_number


def answers(results: Sequence[Result], lead: str, grid: Sequence[float]) -> list[dict[str, Any]]:
    """Answer for each epsilon of some datasets, or of one, which proved method keeps most accuracy at which cost.

    Each answer has ``epsilon``, ``best`` (the row of `best_proved` for `lead`), ``rows`` (all methods at that epsilon
    on `lead`) and ``summary``: the method with the best mean rank over several datasets, None for one.
    """
    epsilon_answers = []
    members = [result for result in results if result.dataset == lead]
    for epsilon in grid:
        ranked = rank_methods(results, epsilon)
        (best,) = best_proved(members, epsilon, ranked[0]["method"] if ranked else None)
        summary = _summarise(results, ranked[0], epsilon) if ranked and len(members) < len(results) else None
        rows = _rows(members, epsilon)
        epsilon_answers.append({"epsilon": epsilon, "best": best, "summary": summary, "rows": rows})
    return epsilon_answers


def _summarise(results: Sequence[Result], first: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """Add to the method with the best mean rank its costs, and the datasets on which it is no better than guessing."""
    rows = [
        row
        for row in best_proved(results, epsilon, first["method"])
        if row["best"] is not None and row["best"]["method"] == first["method"]
    ]
    losses = sorted((row["best"]["loss"], row["dataset"]) for row in rows if row["best"]["loss"] is not None)
    no_better = [row["dataset"] for row in rows if row["worthless"]]
    return {
        **first,
        "n_datasets": len({result.dataset for result in results}),
        "losses": losses,
        "no_better": no_better,
    }


def rank_methods(results: Sequence[Result], epsilon: float) -> list[dict[str, Any]]:
    """Rank the proved methods at an epsilon over all datasets, as the leaderboard does; the best first.

    A method without an answer on a dataset is last there; one with answers on fewer than half of them is left out.
    ``behind`` and ``most`` are mean and largest points behind the best proved method, where it ran; ``behind`` orders
    equal ranks.
    """
    known: dict[str, dict[str, float]] = {result.dataset: {} for result in results}
    for result in results:
        mean = result.value("accuracy", "mean", index := nearest_epsilon(result.epsilons, epsilon))
        if result.theorem_holds and mean is not None and math.isclose(result.epsilons[index], epsilon):
            known[result.dataset][result.method] = mean
    counts = Counter(name for ours in known.values() for name in ours)
    methods = sorted(name for name, count in counts.items() if 2 * count >= len(known))
    known = {dataset: {name: ours[name] for name in methods if name in ours} for dataset, ours in known.items()}
    means = np.array([[ours.get(name, -1.0) for name in methods] for ours in known.values()])
    ahead, equal = means[:, None] > means[:, :, None], means[:, None] == means[:, :, None]
    ranks = (ahead.sum(2) + (equal.sum(2) + 1) / 2).mean(axis=0)
    gaps: dict[str, dict[str, float]] = {name: {} for name in methods}
    for dataset, ours in known.items():
        for name, mean in ours.items():
            gaps[name][dataset] = 100 * (max(ours.values()) - mean)
    statuses = {result.method: result.status for result in results}
    rows = [
        {
            "method": method,
            "status": statuses[method],
            "rank": float(rank),
            "first": sum(gap == 0 for gap in gaps[method].values()),
            "behind": sum(gaps[method].values()) / len(gaps[method]),
            "most": max(gaps[method].values()),
            "worst": max(gaps[method], key=gaps[method].__getitem__),
            "datasets": f"{counts[method]} of {len(known)}",
        }
        for rank, method in zip(ranks, methods, strict=True)
    ]
    return sorted(rows, key=lambda row: (row["rank"], row["behind"], row["method"]))


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
                "worth": result.worth(index),
                "stated": short_number(guarantee.epsilon_requested),
                "mean": -1.0 if mean is None else mean,
                "score": percent_score(mean, result.value("accuracy", "sd", index)),
                "loss": None if mean is None or level is None else 100 * (level - mean),
                "epsilon": short_number(guarantee.epsilon_with_system_noise),
                "delta": short_number(guarantee.delta),
            }
        )
    return {status: sorted(rows, key=lambda row: (-row["mean"], row["method"])) for status, rows in groups.items()}


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
