import math
from typing import Annotated

import pytest
from tests.guarantees import proved

from privsvm.digests import canonical_json
from privsvm.privacy.gate import Guarantee, Stored
from privsvm.privacy.statement import Witness
from privsvm_bench.records import parse

PROVED = {
    "witness": Witness(epsilon=0.5, neighbours="replace_one", description="d"),
}


def test_survives_json():
    for guarantee in (proved(**PROVED), Guarantee(status="none", mechanism="m", reference="r")):
        assert parse(Annotated[Guarantee, Stored()], canonical_json(guarantee), "stored") == guarantee


def test_pure_differential_privacy_has_delta_zero():
    pure = proved(**{**PROVED, "delta": 0.0})
    assert pure.status == "proved"
    assert parse(Annotated[Guarantee, Stored()], canonical_json(pure), "stored") == pure
    with pytest.raises(ValueError, match="refutes"):
        proved(**{**PROVED, "delta": 0.0, "epsilon_proved": 0.4})


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
        {"event": None},
        {"randomness": None, "assumptions": ()},
        {"facts": None},
        {"randomness": "dice", "assumptions": ()},
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
        ValueError,
        match=r"^(epsilon_proved|reason|neighbours|delta|accountant|noise_scale|sensitivity|event|"
        r"randomness|facts) is .*: ",
    ):
        proved(**{**PROVED, **change})


def test_a_broken_assumption_takes_the_proof_away():
    fallen = proved(**PROVED).with_broken_assumption("one").with_broken_assumption("two")
    assert (fallen.status, fallen.epsilon_proved, fallen.reason) == ("claimed", math.inf, "one; two")
    assert fallen.epsilon_requested == 1.0
    none = Guarantee(status="none", mechanism="m", reference="r")
    assert none.with_broken_assumption("one") is none


def test_a_witness_for_another_relation_refutes_nothing():
    witness = Witness(epsilon=1.6, neighbours="replace_one", description="d")
    assert proved(neighbours="add_remove", witness=witness).status == "proved"


@pytest.mark.parametrize(
    "change", [{"epsilon": -0.1}, {"epsilon": math.nan}, {"neighbours": "swap"}, {"confidence": 0}, {"confidence": 2}]
)
def test_a_witness_of_nothing_is_refused(change):
    with pytest.raises(ValueError, match=r"^(epsilon|neighbours|confidence) is .*: must"):
        Witness(**{"epsilon": 0.5, "neighbours": "replace_one", "description": "d", **change})


def test_frozen():
    with pytest.raises(AttributeError):
        proved().status = "none"
