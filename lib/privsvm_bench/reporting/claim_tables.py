"""Stated epsilons against proofs and refutations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from privsvm.privacy.gate import Guarantee
from privsvm.privacy.risk import trade_off
from privsvm.privacy.statement import Status, theorem_holds
from privsvm_bench.records import SLACK, Result, is_refuted
from privsvm_bench.reporting.curve_tables import nearest_epsilon
from privsvm_bench.reporting.text import names_text, short_number, unique


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The finding on one stated epsilon."""

    # ``contradiction``: a sampled audit contradicts the proof; ``elsewhere``: a witness under other neighbours.
    kind: Literal["proof", "contradiction", "broken", "unbroken", "elsewhere", "unaudited"]
    text: str


def verdict_on(guarantee: Guarantee, status: Status) -> Verdict:
    """Judge one stated epsilon, in words; `status` is the whole curve's."""
    return _proof_verdict(guarantee) if theorem_holds(status) else _claim_verdict(guarantee)


def note_on(guarantee: Guarantee, status: Status) -> str:
    """State in words what is known of one epsilon; `status` is the whole curve's."""
    return "no guarantee stated" if status == "none" else verdict_on(guarantee, status).text


def _same_relation(guarantee: Guarantee) -> bool:
    """Whether the witness is for the neighbours that the guarantee is for."""
    return guarantee.witness is not None and guarantee.witness.neighbours == guarantee.neighbours


def _proof_verdict(guarantee: Guarantee) -> Verdict:
    proved, witness = guarantee.epsilon_with_system_noise, guarantee.witness
    if witness is not None and _same_relation(guarantee) and witness.epsilon > proved * (1 + SLACK):
        text = (
            f"AUDIT CONTRADICTS THE PROOF: refuted below ε = {short_number(witness.epsilon)}, "
            f"said to be proved at {short_number(proved)}"
        )
        return Verdict("contradiction", text)
    text = f"ε = {short_number(proved)}"
    return Verdict("proof", f"proof: {text} with system noise" if guarantee.status == "seeded" else f"proved at {text}")


def _claim_verdict(guarantee: Guarantee) -> Verdict:
    witness = guarantee.witness
    if witness is None:
        return Verdict("unaudited", "not audited")
    elsewhere = not _same_relation(guarantee)
    if math.isinf(witness.epsilon):
        text = "refuted at every finite ε" + (f", for {witness.neighbours} neighbours" if elsewhere else "")
        return Verdict("broken", text)
    refuted = f"refuted below ε = {short_number(witness.epsilon)}"
    if elsewhere:
        claim = f" (the claim is for {guarantee.neighbours or 'unnamed'} ones)"
        return Verdict("elsewhere", f"{refuted}, for {witness.neighbours} neighbours{claim}")
    if is_refuted(guarantee):
        return Verdict("broken", refuted)
    reached = short_number(witness.epsilon)
    return Verdict("unbroken", f"the audit reaches ε = {reached} only; not proved, for the reason given")


def finite_guarantees(result: Result) -> list[tuple[float, Guarantee]]:
    """Pick the guarantees that state a finite epsilon, in the order of that epsilon."""
    pairs = [(guarantee.epsilon_requested, guarantee) for guarantee in result.guarantees]
    return sorted((pair for pair in pairs if math.isfinite(pair[0])), key=lambda pair: pair[0])


def broken_claims(results: Iterable[Result], reference_epsilon: float) -> list[dict[str, Any]]:
    """List each claim, why it fails, and the finding of the audit nearest to `reference_epsilon`."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.status == "claimed":
            reason = "; ".join(unique(guarantee.reason for guarantee in result.guarantees))
            groups.setdefault((result.method, reason), []).append(result)
    rows = []
    for (method, reason), members in sorted(groups.items()):
        audits = [_audit(result.dataset, *pair) for result in members for pair in finite_guarantees(result)]
        rows.append(
            {
                "method": method,
                "datasets": names_text([result.dataset for result in members]),
                "reason": reason or "no reason recorded; nothing is proved",
                "audits": audits,
                "measured": sum(audit["found"] is not None for audit in audits),
                "headline": _headline(audits, reference_epsilon),
                "stated": sorted({audit["stated"] for audit in audits}),
                "refuted": {audit["stated"] for audit in audits if audit["verdict"].kind == "broken"},
            }
        )
    return rows


def _audit(dataset: str, stated: float, guarantee: Guarantee) -> dict[str, Any]:
    witness = guarantee.witness
    return {
        "dataset": dataset,
        # A sampled witness is of an audit.
        "rows": dataset if witness is None or witness.confidence is None else "made-up rows",
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


def right_guess(guarantee: Guarantee) -> float:
    """Bound how often a guess which of two neighbouring datasets was used is right, both being equally likely.

    From 0.5 (blind guessing) to 1, which also stands for an unknown bound. With ``seeded`` noise the bound holds as if
    the noise were the system's.
    """
    if not guarantee.theorem_holds or guarantee.event is None or guarantee.neighbours is None:
        return 1.0
    return trade_off(guarantee.event, guarantee.neighbours, delta=guarantee.delta).guess(0.5)
