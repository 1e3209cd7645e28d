"""Proved records for tests of their readers, made through the gate."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from privsvm.privacy.events import EpsilonDelta
from privsvm.privacy.gate import Guarantee, _judge, restore
from privsvm.privacy.statement import AS_GIVEN, Facts, Statement

SOUND = Facts(**AS_GIVEN, classes="declared", n_rows="not used", features="none", solution="certified")


def with_gate_assumptions(theorem: Sequence[str], facts: Facts, neighbours: Any, randomness: Any) -> tuple[str, ...]:
    """Add the gate's assumptions to a theorem's."""
    return _judge(facts, neighbours, randomness, 0.0, 0.0, theorem)[0]


def proved_fields(epsilon: float, delta: float = 1e-5, randomness: str = "system") -> dict[str, Any]:
    """Return JSON fields of a proved or seeded record of (epsilon, delta)."""
    return {
        "status": "proved" if randomness == "system" else "seeded",
        "epsilon_proved": epsilon if randomness == "system" else "inf",
        "epsilon_with_system_noise": epsilon,
        "delta": delta,
        "event": {"kind": "epsilon_delta", "epsilon": epsilon, "delta": delta},
        "randomness": randomness,
        "facts": dataclasses.asdict(SOUND),
        "assumptions": list(with_gate_assumptions(["an assumption"], SOUND, "replace_one", randomness)),
    }


def proved(**changes: Any) -> Guarantee:
    """Make a proved record with a fitting event; seeded if its noise is."""
    fields: dict[str, Any] = {
        "status": "proved",
        "mechanism": "m",
        "reference": "r",
        "neighbours": "replace_one",
        "epsilon_requested": 1.0,
        "epsilon_proved": 1.0,
        "delta": 1e-5,
        "accountant": "a",
        "randomness": "system",
        "facts": SOUND,
        **changes,
    }
    if "event" not in fields and isinstance(fields["delta"], float) and 0 <= fields["delta"] < 1:
        fields["event"] = EpsilonDelta(min(fields["epsilon_proved"], 1e9), fields["delta"])
    if "assumptions" not in fields:
        fields["assumptions"] = with_gate_assumptions(
            ("b",), fields["facts"], fields["neighbours"], fields["randomness"]
        )
    return restore(Statement(**fields))
