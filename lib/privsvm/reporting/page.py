"""The report page: one self-contained HTML file that makes no network request."""

from __future__ import annotations

import functools
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from privsvm.metrics import METRICS
from privsvm.reporting.attacks import (
    NEARLY,
    RECOVERED,
    condensed_rows_findings,
    condensed_rows_table,
    known_sample_figures,
    known_sample_table,
)
from privsvm.reporting.glossary import glossary
from privsvm.reporting.provenance import without_absolute_paths
from privsvm.reporting.records import STATUSES, Condensing, Result, Timing, as_number
from privsvm.reporting.tables import epsilon_grids, nearest_epsilon

__all__ = ["counted", "page_context", "percent", "render_page", "short_number"]

_TEMPLATES = Path(__file__).with_name("templates")

# Up to this many datasets every section starts open; above it only the first, and the page stays quick.
_OPEN_DATASETS = 4

# Up to this many datasets the lines of the first chart carry their dataset's name.
_LABELLED_DATASETS = 5
_LONGEST_LABEL = 18

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

NOISE_SOURCE_TEXT = {
    "system": "fresh system entropy",
    "seeded stream": "seeded, for the benchmark only: whoever knows the seed can take it off",
}

# Relative slack for comparing printed epsilons: round-off is not a contradiction.
_SLACK = 1e-6

STATUS_TEXT = {
    "proved": "proved",
    "claimed": "claimed, does not hold",
    "none": "none",
}


def short_number(value: Any, digits: int = 3) -> str:
    """Write a number for people.

    Parameters
    ----------
    value : object
        A number, ``"inf"``, None, or anything else, which is written as it is.
    digits : int
        Significant digits.

    Returns
    -------
    str
        ``"∞"`` for infinity, an en dash for None.
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {short_number(item, digits)}" for key, item in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return ", ".join(short_number(item, digits) for item in value)
    number = as_number(value)
    if number is None:
        return str(value)
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number and (abs(number) < 1e-3 or abs(number) >= 1e6):
        mantissa, _, exponent = f"{number:.{digits - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{int(exponent)}"
    if abs(number) >= 10 ** (digits - 1):
        return f"{number:.0f}"
    return f"{number:.{digits}g}"


def percent(share: float) -> str:
    """Write a share for people: never 100 % where it is less.

    Parameters
    ----------
    share : float
        From 0 to 1.

    Returns
    -------
    str
        Such as ``"33.8 %"``, with a space that does not break.
    """
    return f"{short_number(100 * share if share in (0, 1) else min(100 * share, 99.9))}\N{NO-BREAK SPACE}%"


def counted(count: int, word: str) -> str:
    """Write a count of things as in a sentence.

    Parameters
    ----------
    count : int
        Not negative.
    word : str
        The singular.

    Returns
    -------
    str
        Such as ``"one method"`` or ``"25 datasets"``.
    """
    return f"{_COUNTS[count] if count < len(_COUNTS) else count} {word}{'' if count == 1 else 's'}"


def _drawn() -> list[str]:
    """Names of the metrics that are drawn; the others are in curves.csv."""
    return [name for name, metric in METRICS.items() if metric.drawn]


def _score(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.3f}" if spread is None else f"{mean:.3f} ± {spread:.3f}"


def _parameter_text(value: Any) -> str:
    """Write one parameter exactly: text bare, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _names(datasets: Sequence[str], most: int = 4) -> str:
    """List a few names and count the rest."""
    if len(datasets) <= most:
        return ", ".join(datasets)
    return f"{', '.join(datasets[: most - 1])} and {len(datasets) - most + 1} more"


def _unique(values: Iterable[Any]) -> list[Any]:
    """Drop repeats and empty values, keeping the order."""
    kept: list[Any] = []
    for value in values:
        if value not in (None, "", []) and value not in kept:
            kept.append(value)
    return kept


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else round(value, 4) for value in values]


def _witness(guarantee: Mapping[str, Any]) -> tuple[float | None, Mapping[str, Any]]:
    record = guarantee.get("witness")
    if not isinstance(record, Mapping):
        return None, {}
    return as_number(record.get("epsilon")), record


def _same_relation(guarantee: Mapping[str, Any]) -> bool:
    """Whether the witness is for the neighbours that the guarantee is for."""
    _, record = _witness(guarantee)
    return not record.get("neighbours") or record.get("neighbours") == guarantee.get("neighbours")


def _verdict(guarantee: Mapping[str, Any], status: str) -> dict[str, Any]:
    """Say in words what is known about one stated epsilon.

    Returns
    -------
    dict
        ``known`` (the epsilon on the vertical axis, or None), ``kind`` (``proved``, ``broken``, ``unbroken``,
        ``elsewhere`` for a witness under other neighbours, ``unaudited``, ``contradiction``) and ``text``.
    """
    stated = as_number(guarantee.get("epsilon_requested"))
    proved = as_number(guarantee.get("epsilon_proved"))
    found, record = _witness(guarantee)
    relation = guarantee.get("neighbours")
    same_relation = _same_relation(guarantee)
    if status == "proved":
        if found is not None and proved is not None and same_relation and found > proved * (1 + _SLACK):
            return {
                "known": found,
                "kind": "contradiction",
                "text": f"AUDIT CONTRADICTS THE PROOF: refuted below ε = {short_number(found)}, "
                f"said to be proved at {short_number(proved)}",
            }
        return {"known": proved, "kind": "proved", "text": f"proved at ε = {short_number(proved)}"}
    if found is None:
        return {"known": None, "kind": "unaudited", "text": "not audited"}
    if math.isinf(found):
        text = "refuted at every finite ε"
        if not same_relation:
            text += f", for {record.get('neighbours')} neighbours"
        return {"known": found, "kind": "broken", "text": text}
    if not same_relation:
        text = (
            f"refuted below ε = {short_number(found)}, for {record.get('neighbours')} neighbours "
            f"(the claim is for {relation or 'unnamed'} ones)"
        )
        return {"known": found, "kind": "elsewhere", "text": text}
    if stated is not None and found > stated * (1 + _SLACK):
        return {"known": found, "kind": "broken", "text": f"refuted below ε = {short_number(found)}"}
    text = f"the audit reaches ε = {short_number(found)} only; the claim fails for the reason given"
    return {"known": found, "kind": "unbroken", "text": text}


def _finite_guarantees(result: Result) -> list[tuple[float, Mapping[str, Any]]]:
    """Pick the guarantees that state a finite epsilon, with that epsilon."""
    pairs = []
    for epsilon, guarantee in zip(result.epsilons, result.guarantees, strict=True):
        stated = as_number(guarantee.get("epsilon_requested"))
        stated = epsilon if stated is None else stated
        if math.isfinite(stated) and stated > 0:
            pairs.append((stated, guarantee))
    return sorted(pairs, key=lambda pair: pair[0])


def _claim_traces(results: Sequence[Result], method_index: Mapping[str, int]) -> list[dict[str, Any]]:
    """Traces of the first chart: one per method and status, equal lines of several datasets drawn once."""
    lines: dict[tuple[str, str], dict[tuple[Any, ...], list[str]]] = {}
    shared: dict[tuple[float, float], set[str]] = {}
    for result in results:
        if result.status == "none":
            continue
        line = []
        for stated, guarantee in _finite_guarantees(result):
            verdict = _verdict(guarantee, result.status)
            known = verdict["known"]
            _, record = _witness(guarantee)
            place = "audited" if known is not None and 0 < known < math.inf else "unaudited"
            if known == math.inf:
                place = "unbounded"
            details = [
                verdict["text"],
                f"δ = {short_number(guarantee.get('delta'))}, neighbours {guarantee.get('neighbours') or 'not named'}",
            ]
            if result.status == "claimed" and guarantee.get("reason"):
                details.append(f"Why the claim fails: {guarantee['reason']}")
            if record.get("description"):
                details.append(f"Witness: {record['description']}")
            line.append((stated, known if place == "audited" else None, place, tuple(details)))
            if result.status == "proved" and place == "audited" and known is not None:
                shared.setdefault((stated, known), set()).add(result.method)
        group = lines.setdefault((result.method, result.status), {})
        group.setdefault(tuple(line), []).append(result.dataset)
    n_datasets = len({result.dataset for result in results})
    traces = []
    for (method, status), group in lines.items():
        segments = []
        for points, datasets in group.items():
            segment = []
            for stated, known, place, details in points:
                others = sorted(shared.get((stated, known), set()) - {method}) if known is not None else []
                segment.append(
                    {
                        "x": stated,
                        "y": None if known is None else float(f"{known:.6g}"),
                        "place": place,
                        "text": without_absolute_paths(list(details)),
                        "others": _names(others, 8) if status == "proved" else "",
                    }
                )
            segments.append(
                {
                    "datasets": _names(datasets, 6),
                    "label": _line_label(datasets, n_datasets) if status == "claimed" else "",
                    "points": segment,
                }
            )
        audits = _proved_audits(results, method) if status == "proved" else []
        traces.append({"method": method_index[method], "status": status, "segments": segments, "audits": audits})
    return sorted(traces, key=lambda trace: (STATUSES.index(trace["status"]), trace["method"]))


def _line_label(datasets: Sequence[str], n_datasets: int) -> str:
    """Name a line by its datasets in a few letters; nothing where there would be too many names."""
    if n_datasets > _LABELLED_DATASETS:
        return ""
    text = ", ".join(datasets)
    if len(text) <= _LONGEST_LABEL:
        return text
    if len(datasets) > 1:
        return "all datasets" if len(datasets) == n_datasets else f"{len(datasets)} datasets"
    return f"{text[: _LONGEST_LABEL - 1]}…"


def _proved_audits(results: Sequence[Result], method: str) -> list[dict[str, Any]]:
    """Audited lower bounds of a proved method: of each stated and proved epsilon the highest over the datasets."""
    found: dict[tuple[float, float], list[tuple[float, str, str]]] = {}
    for result in results:
        if result.method != method or result.status != "proved":
            continue
        for stated, guarantee in _finite_guarantees(result):
            bound, record = _witness(guarantee)
            proved = as_number(guarantee.get("epsilon_proved"))
            if bound is None or proved is None or not 0 < bound < math.inf or not _same_relation(guarantee):
                continue
            description = str(without_absolute_paths(record.get("description") or ""))
            found.setdefault((stated, float(f"{proved:.6g}")), []).append((bound, result.dataset, description))
    audits = []
    for (stated, proved), bounds in sorted(found.items()):
        highest, dataset, description = max(bounds)
        text = [
            f"an audit needs at least ε = {short_number(highest)} on {dataset}; proved at ε = {short_number(proved)}",
            "A lower bound: it can refute the proof, never replace it.",
        ]
        if highest > proved * (1 + _SLACK):
            text[1] = "AUDIT CONTRADICTS THE PROOF"
        if len(bounds) > 1:
            text.append(f"the highest of {counted(len(bounds), 'audited dataset')}")
        if description:
            text.append(f"Witness: {description}")
        audits.append({"x": stated, "y": float(f"{highest:.6g}"), "text": text})
    return audits


def _broken_claims(results: Sequence[Result], reference_epsilon: float) -> list[dict[str, Any]]:
    """Rows of the table under the first chart: each claim, why it fails, what the audit found."""
    grouped: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.status == "claimed":
            reason = "; ".join(_unique(str(item.get("reason") or "") for item in result.guarantees))
            grouped.setdefault((result.method, reason), []).append(result)
    rows = []
    for (method, reason), members in sorted(grouped.items()):
        audits: list[dict[str, Any]] = []
        for result in members:
            for stated, guarantee in _finite_guarantees(result):
                found, record = _witness(guarantee)
                audits.append(
                    {
                        "dataset": result.dataset,
                        "stated": stated,
                        "found": found,
                        "verdict": _verdict(guarantee, "claimed"),
                        "description": record.get("description"),
                    }
                )
        measured = [audit for audit in audits if audit["found"] is not None]
        stated_grid = sorted({audit["stated"] for audit in audits})
        headline = None
        if measured:
            nearest = stated_grid[nearest_epsilon(stated_grid, reference_epsilon)]
            headline = max(
                [audit for audit in measured if audit["stated"] == nearest] or measured,
                key=lambda audit: audit["found"] / audit["stated"],
            )
        rows.append(
            {
                "method": method,
                "datasets": [result.dataset for result in members],
                "dataset_text": _names([result.dataset for result in members]),
                "reason": reason or "no reason recorded; nothing is proved",
                "audits": audits,
                "measured": len(measured),
                "headline": headline,
                "stated": stated_grid,
            }
        )
    return rows


def _contradictions(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Proofs that an audit refutes: a fault in the code or the accountant, shown at the top."""
    found = []
    for result in results:
        for stated, guarantee in _finite_guarantees(result):
            verdict = _verdict(guarantee, result.status)
            if verdict["kind"] == "contradiction":
                found.append(
                    {"method": result.method, "dataset": result.dataset, "stated": stated, "text": verdict["text"]}
                )
    return found


def _table_row(result: Result, grid: Sequence[float]) -> dict[str, Any]:
    """One row of a dataset's table; cells follow the dataset's grid."""
    cells = []
    if result.is_reference:
        cells.append({"score": _score(result.value("accuracy", "mean", 0), result.value("accuracy", "sd", 0))})
    else:
        position = {epsilon: index for index, epsilon in enumerate(result.epsilons)}
        for epsilon in grid:
            index = position.get(epsilon)
            if index is None:
                cells.append({"score": "", "note": ""})
                continue
            guarantee = result.guarantees[index]
            if result.status == "proved":
                note = f"proved ε {short_number(guarantee.get('epsilon_proved'))}"
                if _verdict(guarantee, "proved")["kind"] == "contradiction":
                    note = _verdict(guarantee, "proved")["text"]
            elif result.status == "claimed":
                found, _ = _witness(guarantee)
                note = "nothing proved"
                if found is not None:
                    note += "; every ε refuted" if math.isinf(found) else f"; refuted below {short_number(found)}"
            else:
                note = "no guarantee stated"
            score = _score(result.value("accuracy", "mean", index), result.value("accuracy", "sd", index))
            cells.append({"score": score, "note": note})
    return {"method": result.method, "status": result.status, "reference": result.is_reference, "cells": cells}


def _datasets(results: Sequence[Result], grids: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    sections = []
    for dataset, grid in grids.items():
        members = [result for result in results if result.dataset == dataset]
        facts = members[0].record
        sections.append(
            {
                "name": dataset,
                "grid": grid,
                "rows": [_table_row(result, grid) for result in members],
                "n_train": facts.get("n_train"),
                "n_test": facts.get("n_test"),
                "n_features": facts.get("n_features"),
                "n_classes": facts.get("n_classes"),
                "n_splits": facts.get("n_splits"),
                "repeats": max((result.record.get("repeats") or 1) for result in members),
                "protocols": _unique(
                    short_number(without_absolute_paths(result.record.get("protocol"))) for result in members
                ),
                "statuses": {
                    status: sum(result.status == status for result in members)
                    for status in STATUSES
                    if any(result.status == status for result in members)
                },
            }
        )
    return sections


def _curves(
    results: Sequence[Result], grids: Mapping[str, list[float]], method_index: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Gather the numbers behind the charts, compactly: they are most of a large page."""
    figures = []
    for dataset, grid in grids.items():
        curves = []
        for result in results:
            if result.dataset != dataset:
                continue
            if result.is_reference:
                keep = [0]
                epsilons: list[float] = []
            else:
                keep = sorted(
                    (index for index, epsilon in enumerate(result.epsilons) if math.isfinite(epsilon)),
                    key=lambda index: result.epsilons[index],
                )
                epsilons = [result.epsilons[index] for index in keep]
            values = {}
            for metric in _drawn():
                columns = [
                    _rounded(result.value(metric, statistic, index) for index in keep)
                    for statistic in ("mean", "sd", "low", "high")
                ]
                if any(value is not None for value in columns[0]):
                    values[metric] = columns
            curve: dict[str, Any] = {
                "method": method_index[result.method],
                "status": result.status,
                "epsilons": epsilons,
                "values": values,
            }
            if not result.is_reference:
                curve["known"] = [_verdict(result.guarantees[index], result.status)["text"] for index in keep]
                if result.status == "none":
                    curve["known"] = ["no guarantee stated"] * len(keep)
            curves.append(curve)
        figures.append({"name": dataset, "grid": grid, "curves": curves})
    return figures


def _best_proved(results: Sequence[Result], reference_epsilon: float) -> list[dict[str, Any]]:
    """Find the best proved method of each dataset near the reference epsilon, and what is there without privacy."""
    rows = []
    for dataset in dict.fromkeys(result.dataset for result in results):
        members = [result for result in results if result.dataset == dataset]
        row: dict[str, Any] = {"dataset": dataset, "best": None, "svm": None, "majority": None, "worthless": False}
        majority = None
        for result in members:
            if result.method in ("svm", "majority"):
                row[result.method] = _score(result.value("accuracy", "mean", 0), result.value("accuracy", "sd", 0))
                if result.method == "majority":
                    majority = result.value("accuracy", "mean", 0)
        candidates = []
        for result in members:
            index = nearest_epsilon(result.epsilons, reference_epsilon)
            mean = result.value("accuracy", "mean", index)
            if result.status == "proved" and mean is not None:
                candidates.append((mean, result.method, result, index))
        if candidates:
            mean, method, result, index = max(candidates, key=lambda item: (item[0], item[1]))
            guarantee = result.guarantees[index]
            row["best"] = {
                "method": method,
                "score": _score(mean, result.value("accuracy", "sd", index)),
                "epsilon": guarantee.get("epsilon_proved"),
                "delta": guarantee.get("delta"),
                "neighbours": guarantee.get("neighbours"),
            }
            row["worthless"] = majority is not None and mean <= majority + 0.005
        rows.append(row)
    return rows


def _cards(results: Sequence[Result], methods: Sequence[str]) -> list[dict[str, Any]]:
    """One guarantee card per method."""
    cards = []
    for method in methods:
        members = [result for result in results if result.method == method]
        records = [guarantee for result in members for guarantee in result.guarantees]

        def texts(key: str, records: Sequence[Mapping[str, Any]] = records) -> list[str]:
            return [short_number(without_absolute_paths(value)) for value in _unique(item.get(key) for item in records)]

        grid = sorted({stated for result in members for stated, _ in _finite_guarantees(result)})
        scales: dict[tuple[Any, ...], list[str]] = {}
        for result in members:
            by_epsilon = dict(_finite_guarantees(result))
            if not by_epsilon:
                continue
            sensitivity = _unique(short_number(item.get("sensitivity")) for item in by_epsilon.values())
            cells = tuple(
                (
                    short_number(by_epsilon[stated].get("noise_scale")),
                    short_number(by_epsilon[stated].get("epsilon_proved")),
                )
                if stated in by_epsilon
                else ("", "")
                for stated in grid
            )
            scales.setdefault((" / ".join(sensitivity) or "–", cells), []).append(result.dataset)
        statuses = {
            status: _names([result.dataset for result in members if result.status == status])
            for status in STATUSES
            if any(result.status == status for result in members)
        }
        assumptions: list[str] = []
        for item in records:
            stated = item.get("assumptions") or []
            assumptions += [stated] if isinstance(stated, str) else [str(line) for line in stated]
        cards.append(
            {
                "method": method,
                "statuses": statuses,
                "worst": max(statuses, key=lambda status: ("none", "proved", "claimed").index(status)),
                "mechanism": texts("mechanism"),
                "neighbours": texts("neighbours"),
                "delta": texts("delta"),
                "accountant": texts("accountant"),
                "noise_source": texts("noise_source"),
                "assumptions": without_absolute_paths(_unique(assumptions)),
                "reason": texts("reason"),
                "reference": texts("reference"),
                "implementation": _unique(result.record.get("implementation") for result in members),
                "grid": grid,
                "scales": [
                    {"datasets": _names(datasets), "sensitivity": sensitivity, "cells": cells}
                    for (sensitivity, cells), datasets in scales.items()
                ],
            }
        )
    return cards


def _timing_rows(timings: Sequence[Timing], results: Sequence[Result]) -> list[dict[str, Any]]:
    def mean(values: Iterable[float | None] | None) -> float | None:
        known = [value for value in values or () if value is not None]
        return statistics.fmean(known) if known else None

    records = {(result.dataset, result.method): result.record for result in results}

    rows = []
    for timing in timings:
        record = records.get((timing.dataset, timing.method), {})
        seconds = sum(timing.predict_seconds or ())
        predicted = sum(timing.rows_predicted or ())
        rows.append(
            {
                "dataset": timing.dataset,
                "method": timing.method,
                "splits": len(timing.fit_seconds or timing.predict_seconds or ()),
                "fit": mean(timing.fit_seconds),
                "release": mean(timing.release_seconds),
                "predict": mean(timing.predict_seconds),
                "rate": predicted / seconds if seconds > 0 and predicted else None,
                # Null where the number would be private.
                "support": mean(record.get("n_support")),
                "objective": mean(record.get("objective")),
            }
        )
    return rows


def _parameter_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    grouped: dict[tuple[str, str], list[str]] = {}
    contents: dict[tuple[str, str], dict[str, str]] = {}
    for result in results:
        parameters = without_absolute_paths(result.record.get("parameters") or {})
        if not isinstance(parameters, dict):
            parameters = {"value": parameters}
        written = {str(name): _parameter_text(value) for name, value in sorted(parameters.items())}
        key = (result.method, json.dumps(written, sort_keys=True))
        grouped.setdefault(key, []).append(result.dataset)
        contents[key] = written
    return [
        {"method": key[0], "datasets": _names(datasets), "parameters": contents[key]}
        for key, datasets in sorted(grouped.items())
    ]


def page_context(
    results: Sequence[Result],
    *,
    timings: Sequence[Timing] = (),
    condensing: Sequence[Condensing] = (),
    prepared: Sequence[Mapping[str, Any]] = (),
    attacks: Sequence[Mapping[str, Any]] = (),
    origin: Mapping[str, Any] | None = None,
    experiment: str = "",
    reference_epsilon: float = 1.0,
) -> dict[str, Any]:
    """Everything the template shows, computed from the records.

    Parameters
    ----------
    results : sequence of Result
        From `read_results`.
    timings : sequence of Timing
        From `read_timings`.
    condensing : sequence of Condensing
        From `read_condensing`.
    prepared : sequence of mapping
        From `read_prepared`.
    attacks : sequence of mapping
        From `read_attacks`.
    origin : mapping or None
        From `provenance`; left out of the page where None.
    experiment : str
        Its name.
    reference_epsilon : float
        The epsilon that headline numbers are given at.

    Returns
    -------
    dict
        The template's variables; ``figures`` is what the page's script draws.
    """
    grids = epsilon_grids(results, reference_epsilon)
    # Proved methods first everywhere; a method that is claimed anywhere is listed with the claims.
    rank: dict[str, int] = {}
    for result in results:
        order = ("proved", "claimed", "none").index(result.status)
        rank[result.method] = max(rank.get(result.method, 0), order)
    methods = sorted(rank, key=lambda method: (rank[method], method))
    method_index = {method: index for index, method in enumerate(methods)}
    by_status = {
        status: [method for method in methods if any(r.method == method and r.status == status for r in results)]
        for status in STATUSES
    }
    claims = _broken_claims(results, reference_epsilon)
    headlines = [claim for claim in claims if claim["headline"] and claim["headline"]["verdict"]["kind"] == "broken"]
    worst = max(headlines, key=lambda claim: claim["headline"]["found"] / claim["headline"]["stated"], default=None)
    claim_traces = _claim_traces(results, method_index)
    known_sample = [attack for attack in attacks if attack["attack"] == "known_sample"]
    # One value for the whole benchmark.
    condensed = next((result.condense for result in results if result.condense), None)
    condensed_rows = condensed_rows_table(
        [attack for attack in attacks if attack["attack"] == "condensed_rows"], condensed is not None
    )
    metrics = {name: METRICS[name].title for name in _drawn() if any(name in result.summary for result in results)}
    return {
        "experiment": experiment,
        "reference_epsilon": reference_epsilon,
        "methods": methods,
        "by_status": by_status,
        "claims": claims,
        "worst_claim": worst,
        "audited_proofs": any(trace["audits"] for trace in claim_traces),
        # Without one known epsilon, proved or refuted, there is nothing to draw.
        "any_known": any(
            point["place"] != "unaudited"
            for trace in claim_traces
            for segment in trace["segments"]
            for point in segment["points"]
        ),
        "any_audited": any(claim["measured"] for claim in claims),
        "contradictions": _contradictions(results),
        "known_sample": known_sample_table(known_sample),
        "condensed_rows": condensed_rows,
        "condensed_findings": condensed_rows_findings(condensed_rows),
        "condensed": condensed,
        "best": _best_proved(results, reference_epsilon),
        "datasets": _datasets(results, grids),
        "open_datasets": len(grids) if len(grids) <= _OPEN_DATASETS else 1,
        "metrics": list(metrics.items()),
        "cards": _cards(results, methods),
        "timings": _timing_rows(timings, results),
        "condensing": [
            {
                "dataset": item.dataset,
                "kind": item.kind,
                "splits": len(item.seconds),
                "seconds": statistics.fmean(item.seconds),
            }
            for item in condensing
        ],
        "prepared": without_absolute_paths(list(prepared)),
        "origin": origin,
        "parameters": _parameter_rows(results),
        "figures": {
            "methods": methods,
            "metrics": metrics,
            "claims": claim_traces,
            "datasets": _curves(results, grids, method_index),
            "attacks": known_sample_figures(known_sample),
        },
    }


def _breakable(name: str) -> Markup:
    """Let a long name wrap after its underscores."""
    return escape(name).replace("_", Markup("_<wbr>"))


def _definition(text: str) -> Markup:
    """Set what stands between backticks as code, and the exponent of e^ε as one."""
    parts = [
        Markup("<code>{}</code>").format(part) if code % 2 else escape(part)
        for code, part in enumerate(text.split("`"))
    ]
    return Markup("").join(parts).replace("e^ε", Markup("e<sup>ε</sup>"))


@functools.lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = short_number
    environment.filters["counted"] = counted
    environment.filters["percent"] = percent
    environment.globals["percent"] = percent
    environment.globals["score"] = functools.partial(_score, spread=None)
    environment.globals["two_digits"] = functools.partial(short_number, digits=2)
    environment.globals["recovered"] = RECOVERED
    environment.globals["nearly"] = NEARLY
    environment.globals["noise_source_text"] = NOISE_SOURCE_TEXT
    environment.filters["breakable"] = _breakable
    environment.filters["definition"] = _definition
    environment.globals["glossary"] = glossary()
    # JSON inside <script>: jinja's own filter escapes <, >, & and quotes, so no text can end the element.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}
    environment.globals["status_text"] = STATUS_TEXT
    environment.globals["infinity"] = math.inf
    return environment


def _plotly_source() -> Markup:
    """Take Plotly's script as installed, to be inlined: the page must work without a network."""
    from plotly.offline import get_plotlyjs

    source = get_plotlyjs()
    if "</script" in source.lower():
        source = source.replace("</script", "<\\/script")
    return Markup(source)


def render_page(results: Sequence[Result], **options: Any) -> str:
    """Write the page.

    Parameters
    ----------
    results : sequence of Result
        From `read_results`.
    **options
        See `page_context`.

    Returns
    -------
    str
        One HTML document: style, scripts and data are inside, and a content security policy forbids it to load
        anything else.
    """
    environment = _environment()
    return environment.get_template("report.html.jinja").render(
        page_context(results, **options),
        style=Markup((_TEMPLATES / "style.css.jinja").read_text(encoding="utf-8")),
        script=Markup((_TEMPLATES / "figures.js.jinja").read_text(encoding="utf-8")),
        plotly=_plotly_source(),
    )
