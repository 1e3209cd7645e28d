import math

import pytest

from privsvm.digests import canonical_json
from privsvm.privacy.guarantee import Guarantee, Witness
from privsvm.records import parse

PROVED = {
    "status": "proved",
    "mechanism": "m",
    "reference": "r",
    "neighbours": "replace_one",
    "epsilon_requested": 1.0,
    "epsilon_proved": 1.0,
    "delta": 1e-5,
    "accountant": "a",
    "assumptions": ("b",),
    "witness": Witness(epsilon=0.5, neighbours="replace_one", description="d"),
}


def test_survives_json():
    for guarantee in (Guarantee(**PROVED), Guarantee(status="none", mechanism="m", reference="r")):
        assert parse(Guarantee, canonical_json(guarantee), "stored") == guarantee


def test_pure_differential_privacy_has_delta_zero():
    pure = Guarantee(**{**PROVED, "delta": 0.0})
    assert pure.status == "proved"
    assert parse(Guarantee, canonical_json(pure), "stored") == pure
    with pytest.raises(ValueError, match="refutes"):
        Guarantee(**{**PROVED, "delta": 0.0, "epsilon_proved": 0.4})


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon_proved": math.inf},
        {"status": "claimed", "reason": "x"},
        {"status": "claimed", "epsilon_proved": math.inf},
        {"status": "none"},
        {"neighbours": None},
        {"delta": None},
        {"accountant": None},
        {"epsilon_proved": 1.1},
        {"delta": 1.5},
        {"delta": -1e-9},
        {"noise_scale": 0.0},
        {"sensitivity": math.inf},
        {"witness": Witness(epsilon=1.01, neighbours="replace_one", description="d")},
    ],
)
def test_contradictions_are_refused(change):
    with pytest.raises(
        ValueError, match=r"^(epsilon_proved|reason|neighbours|delta|accountant|noise_scale|sensitivity) is .*: "
    ):
        Guarantee(**{**PROVED, **change})


def test_a_broken_assumption_takes_the_proof_away():
    fallen = Guarantee(**PROVED).with_broken_assumption("one").with_broken_assumption("two")
    assert (fallen.status, fallen.epsilon_proved, fallen.reason) == ("claimed", math.inf, "one; two")
    assert fallen.epsilon_requested == 1.0
    none = Guarantee(status="none", mechanism="m", reference="r")
    assert none.with_broken_assumption("one") is none


def test_a_witness_for_another_relation_refutes_nothing():
    witness = Witness(epsilon=1.6, neighbours="replace_one", description="d")
    assert Guarantee(**{**PROVED, "neighbours": "add_remove", "witness": witness}).status == "proved"


@pytest.mark.parametrize(
    "change", [{"epsilon": -0.1}, {"epsilon": math.nan}, {"neighbours": "swap"}, {"confidence": 0}, {"confidence": 2}]
)
def test_a_witness_of_nothing_is_refused(change):
    with pytest.raises(ValueError, match=r"^(epsilon|neighbours|confidence) is .*: must"):
        Witness(**{"epsilon": 0.5, "neighbours": "replace_one", "description": "d", **change})


def test_frozen():
    with pytest.raises(AttributeError):
        Guarantee(**PROVED).status = "none"
