"""Stated epsilons against what is proved or refuted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from privsvm.privacy.guarantee import STATUSES, Guarantee, Status, theorem_holds
from privsvm_bench.records import Result
from privsvm_bench.reporting.provenance import without_absolute_paths
from privsvm_bench.reporting.results import grouped
from privsvm_bench.reporting.tables import nearest_epsilon
from privsvm_bench.reporting.text import counted, names_text, short_number, unique

__all__ = ["Verdict", "broken_claims", "claim_traces", "contradictions", "finite_guarantees", "verdict_on"]

# Relative slack for comparing printed epsilons: round-off is not a contradiction.
_SLACK = 1e-6

# Up to this many datasets the lines of the chart carry their dataset's name.
_LABELLED_DATASETS = 5
_LONGEST_LABEL = 18

# So many other methods with the same point are named.
_OTHERS_NAMED = 8


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What is known about one stated epsilon.

    Attributes
    ----------
    kind : str
        ``proof``; ``contradiction`` where a sampled audit contradicts the proof; ``broken``; ``unbroken``;
        ``elsewhere`` for a witness under other neighbours; ``unaudited``.
    text : str
        In words.
    epsilon : float or None
        The epsilon that is proved or refuted.
    """

    kind: Literal["proof", "contradiction", "broken", "unbroken", "elsewhere", "unaudited"]
    text: str
    epsilon: float | None = None


def verdict_on(guarantee: Guarantee, status: Status) -> Verdict:
    """Say in words what is known about one stated epsilon; `status` is that of the whole curve."""
    return _proof_verdict(guarantee) if theorem_holds(status) else _claim_verdict(guarantee)


def _same_relation(guarantee: Guarantee) -> bool:
    """Whether the witness is for the neighbours that the guarantee is for."""
    return guarantee.witness is not None and guarantee.witness.neighbours == guarantee.neighbours


def _proof_verdict(guarantee: Guarantee) -> Verdict:
    proved, witness = guarantee.epsilon_with_system_noise, guarantee.witness
    if witness is not None and _same_relation(guarantee) and witness.epsilon > proved * (1 + _SLACK):
        text = (
            f"AUDIT CONTRADICTS THE PROOF: refuted below ε = {short_number(witness.epsilon)}, "
            f"said to be proved at {short_number(proved)}"
        )
        return Verdict("contradiction", text, witness.epsilon)
    text = f"ε = {short_number(proved)}"
    return Verdict(
        "proof", f"proof: {text} with system noise" if guarantee.status == "seeded" else f"proved at {text}", proved
    )


def _claim_verdict(guarantee: Guarantee) -> Verdict:
    witness = guarantee.witness
    if witness is None:
        return Verdict("unaudited", "not audited")
    refuted_epsilon, elsewhere = witness.epsilon, not _same_relation(guarantee)
    if math.isinf(refuted_epsilon):
        text = "refuted at every finite ε" + (f", for {witness.neighbours} neighbours" if elsewhere else "")
        return Verdict("broken", text, refuted_epsilon)
    refuted = f"refuted below ε = {short_number(refuted_epsilon)}"
    if elsewhere:
        text = f"{refuted}, for {witness.neighbours} neighbours"
        text += f" (the claim is for {guarantee.neighbours or 'unnamed'} ones)"
        return Verdict("elsewhere", text, refuted_epsilon)
    if refuted_epsilon > guarantee.epsilon_requested * (1 + _SLACK):
        return Verdict("broken", refuted, refuted_epsilon)
    text = f"the audit reaches ε = {short_number(refuted_epsilon)} only; the claim fails for the reason given"
    return Verdict("unbroken", text, refuted_epsilon)


def finite_guarantees(result: Result) -> list[tuple[float, Guarantee]]:
    """Pick the guarantees that state a finite epsilon, in the order of that epsilon."""
    pairs = [(guarantee.epsilon_requested, guarantee) for guarantee in result.guarantees]
    return sorted((pair for pair in pairs if math.isfinite(pair[0])), key=lambda pair: pair[0])


@dataclasses.dataclass(frozen=True)
class _Point:
    """One stated epsilon of a line; equal lines of several datasets are drawn once."""

    stated: float
    epsilon: float | None
    evidence: Literal["audited", "unaudited", "unbounded"]
    details: tuple[str, ...]


def _point(stated: float, guarantee: Guarantee, status: Status) -> _Point:
    verdict = verdict_on(guarantee, status)
    epsilon = verdict.epsilon
    audited = epsilon is not None and 0 < epsilon < math.inf
    details = [
        verdict.text,
        f"δ = {short_number(guarantee.delta)}, neighbours {guarantee.neighbours or 'not named'}",
    ]
    if status == "claimed" and guarantee.reason:
        details.append(f"Why the claim fails: {guarantee.reason}")
    if guarantee.witness and guarantee.witness.description:
        details.append(f"Witness: {guarantee.witness.description}")
    return _Point(
        stated=stated,
        epsilon=epsilon if audited else None,
        evidence="audited" if audited else "unbounded" if epsilon == math.inf else "unaudited",
        details=tuple(details),
    )


def claim_traces(results: Sequence[Result], method_index: Mapping[str, int]) -> list[dict[str, Any]]:
    """Traces of the chart of claims: one per method and status, equal lines of several datasets drawn once."""
    lines: dict[tuple[str, Status], dict[tuple[_Point, ...], list[str]]] = {}
    shared: dict[tuple[float, float], set[str]] = {}
    for result in results:
        if result.status == "none":
            continue
        line = tuple(_point(stated, guarantee, result.status) for stated, guarantee in finite_guarantees(result))
        lines.setdefault((result.method, result.status), {}).setdefault(line, []).append(result.dataset)
        for point in line:
            if result.theorem_holds and point.epsilon is not None:
                shared.setdefault((point.stated, point.epsilon), set()).add(result.method)
    sharing = {pair: sorted(names) for pair, names in shared.items()}
    n_datasets = len({result.dataset for result in results})
    of_method = grouped(results, "method")
    traces = []
    for (method, status), group in lines.items():
        segments = [
            {
                "datasets": names_text(datasets, 6),
                "label": _line_label(datasets, n_datasets) if status == "claimed" else "",
                "points": [_drawn_point(point, method, status, sharing) for point in points],
            }
            for points, datasets in group.items()
        ]
        audits = _proof_audits(of_method[method]) if theorem_holds(status) else []
        traces.append(
            {
                "method": method_index[method],
                "status": status,
                "segments": segments,
                "audits": audits,
            }
        )
    return sorted(traces, key=lambda trace: (STATUSES.index(trace["status"]), trace["method"]))


def _drawn_point(
    point: _Point, method: str, status: Status, sharing: Mapping[tuple[float, float], Sequence[str]]
) -> dict[str, Any]:
    others = ""
    if theorem_holds(status) and point.epsilon is not None:
        names = sharing[point.stated, point.epsilon]
        # Count further ones without listing them.
        first = [name for name in names[: _OTHERS_NAMED + 1] if name != method]
        others = names_text(first, _OTHERS_NAMED, len(names) - 1)
    return {
        "x": point.stated,
        "y": None if point.epsilon is None else float(f"{point.epsilon:.6g}"),
        "place": point.evidence,
        "text": without_absolute_paths(list(point.details)),
        "others": others,
    }


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


def _proof_audits(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Audited lower bounds of a proved method: of each stated and proved epsilon the highest over the datasets."""
    bounds_of: dict[tuple[float, float], list[tuple[float, str, str]]] = {}
    for result in results:
        if not result.theorem_holds:
            continue
        for stated, guarantee in finite_guarantees(result):
            witness = guarantee.witness
            if witness is None or not 0 < witness.epsilon < math.inf or not _same_relation(guarantee):
                continue
            proved = float(f"{guarantee.epsilon_with_system_noise:.6g}")
            description = str(without_absolute_paths(witness.description))
            bounds_of.setdefault((stated, proved), []).append((witness.epsilon, result.dataset, description))
    audits = []
    for (stated, proved), bounds in sorted(bounds_of.items()):
        highest, dataset, description = max(bounds)
        text = [
            f"an audit needs at least ε = {short_number(highest)} on {dataset}; the proof says {short_number(proved)}",
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


def broken_claims(results: Iterable[Result], reference_epsilon: float) -> list[dict[str, Any]]:
    """Rows of the table of claims: each claim, why it fails, what the audit found.

    Parameters
    ----------
    results : iterable of Result
        The curves.
    reference_epsilon : float
        The finding nearest to it stands for its claim.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.status == "claimed":
            reason = "; ".join(unique(guarantee.reason for guarantee in result.guarantees))
            groups.setdefault((result.method, reason), []).append(result)
    rows = []
    for (method, reason), members in sorted(groups.items()):
        audits = [_audit(result.dataset, *pair) for result in members for pair in finite_guarantees(result)]
        datasets = [result.dataset for result in members]
        rows.append(
            {
                "method": method,
                "datasets": datasets,
                "dataset_text": names_text(datasets),
                "reason": reason or "no reason recorded; nothing is proved",
                "audits": audits,
                "measured": sum(audit["found"] is not None for audit in audits),
                "headline": _headline(audits, reference_epsilon),
                "stated": sorted({audit["stated"] for audit in audits}),
            }
        )
    return rows


def _audit(dataset: str, stated: float, guarantee: Guarantee) -> dict[str, Any]:
    witness = guarantee.witness
    return {
        "dataset": dataset,
        "stated": stated,
        "found": witness.epsilon if witness else None,
        "verdict": _claim_verdict(guarantee),
        "description": witness.description if witness else None,
    }


def _headline(audits: Sequence[dict[str, Any]], reference_epsilon: float) -> dict[str, Any] | None:
    """Pick the worst finding near the reference epsilon, or of all where there is none; None without any."""
    measured = [audit for audit in audits if audit["found"] is not None]
    if not measured:
        return None
    stated = sorted({audit["stated"] for audit in audits})
    nearest = stated[nearest_epsilon(stated, reference_epsilon)]
    near = [audit for audit in measured if audit["stated"] == nearest]
    return max(near or measured, key=lambda audit: float(audit["found"] / audit["stated"]))


def contradictions(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Find proofs that a sampled audit contradicts: a fault in the code or the accountant, shown at the top."""
    return [
        {"method": result.method, "dataset": result.dataset, "stated": stated, "text": verdict.text}
        for result in results
        for stated, guarantee in finite_guarantees(result)
        if (verdict := verdict_on(guarantee, result.status)).kind == "contradiction"
    ]
