"""One gate: nothing else says proved, and it refuses what nobody states."""

import copy
import dataclasses
import json
import math
import pickle
import re
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import numpy as np
import proof_pages
import pytest
from dp_accounting import get_epsilon_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.guarantees import SOUND, proved
from tests.processes import run_python
from tests.scripts import REPOSITORY

from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.privacy.accounting import zcdp_rho
from privsvm.privacy.events import (
    BestOfPoisson,
    Composed,
    EpsilonDelta,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    NonPrivate,
    OneOf,
    PerturbedObjectives,
    PoissonSampled,
    SelfComposed,
    ZeroConcentrated,
    relation_factor,
)
from privsvm.privacy.gate import (
    _GRANT,
    SECRET_SEED,
    THIS_STEP_ALONE,
    Claim,
    Guarantee,
    Stored,
    compose,
    convert_relation,
    grant,
    restore,
)
from privsvm.privacy.statement import AS_GIVEN, BROKEN, FACTS, HOLDS, NEIGHBOURS, Facts, Statement, Witness, merge_facts
from privsvm.registry import estimator_class, implementations
from privsvm_bench.records import parse

LIBRARY = REPOSITORY / "lib" / "privsvm"
METHODS = [estimator_class(name) for name in implementations()]
X = np.array([[0.0, 0.1], [0.2, 0.0], [1.0, 0.9], [0.8, 1.0]] * 5)
Y = np.array(["no", "no", "yes", "yes"] * 5)


def asked(**changes):
    """Make a method's request to the gate."""
    if "event" in changes:
        changes = {"sensitivity": None, "noise_scale": None, **changes}
    facts, randomness = changes.pop("facts", SOUND), changes.pop("randomness", "system")
    claim = Claim(
        **{
            "event": Gaussian(8.0),
            "mechanism": "m",
            "reference": "r",
            "neighbours": "replace_one",
            "epsilon_requested": 2.0,
            "delta": 1e-5,
            "sensitivity": 1.0,
            "noise_scale": 8.0 / relation_factor(changes.get("neighbours", "replace_one")),
            "assumptions": ("rows are clipped",),
            **changes,
        }
    )
    return grant(claim, facts, randomness)


def fitted(method, **chosen):
    """A model of some rows."""
    settings = {"allow_unsound": True, "classes": ["no", "yes"], **chosen}
    return method(**{name: value for name, value in settings.items() if name in method.declared}).fit(X, Y)


def relations(method):
    """The relations that a method knows."""
    if "neighbours" not in method.declared:
        return ["replace_one"]
    return [relation for relation in NEIGHBOURS if method.declared["neighbours"].constraint.accepts(relation)]


def test_the_word_comes_with_an_epsilon_that_the_gate_computes():
    made = asked()
    assert (made.status, made.delta, made.randomness) == ("proved", 1e-5, "system")
    assert made.epsilon_proved == pytest.approx(made.verify().epsilon, rel=1e-3)
    assert made.assumptions[:2] == (THIS_STEP_ALONE, "rows are clipped")
    assert SECRET_SEED not in made.assumptions
    with pytest.raises(ValueError, match="the event costs"):
        asked(epsilon_requested=0.5)


def test_seeded_noise_has_a_word_of_its_own():
    made, seeded = asked(), asked(randomness="seeded")
    assert made.epsilon_with_system_noise == made.epsilon_proved
    assert (seeded.status, seeded.epsilon_proved) == ("seeded", math.inf)
    assert seeded.epsilon_with_system_noise == made.epsilon_proved
    assert (made.theorem_holds, seeded.theorem_holds) == (True, True)
    assert SECRET_SEED in seeded.assumptions
    for judged in (
        seeded,
        restore(seeded, split="as given"),
        restore(seeded),
        compose([seeded]),
        pickle.loads(pickle.dumps(seeded)),
    ):
        assert judged.status == "seeded"
    fallen = seeded.with_broken_assumption("the wind has turned")
    assert (fallen.status, fallen.epsilon_with_system_noise, fallen.theorem_holds) == ("claimed", math.inf, False)
    assert restore(seeded, split="stratified").status == "claimed"
    # Nobody else can say it, either.
    with pytest.raises(ValueError, match=r"status is 'seeded': only privsvm\.privacy\.gate may say so"):
        dataclasses.replace(fallen, status="seeded", epsilon_with_system_noise=1.0)
    fields = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    with pytest.raises(ValueError, match=r"randomness is 'seeded' but status is 'proved': must be 'system'"):
        Guarantee(**fields | {"randomness": "seeded"}, grant=_GRANT)


FIRST_VERSION = Path(__file__).with_name("version_1") / "guarantees.json"


def test_the_first_version_of_a_record_is_read_for_ever():
    """It called seeded noise proved, and had other words for its assumption."""
    for name, record in json.loads(FIRST_VERSION.read_text()).items():
        assert record["status"] == "proved"
        assert "epsilon_with_system_noise" not in record
        for made in (parse(Annotated[Guarantee, Stored()], json.dumps(record), "stored"), restore(record)):
            assert (made.status, made.randomness) == ({"system": "proved", "seeded": "seeded"}[name], name)
            assert made.epsilon_with_system_noise == record["epsilon_proved"]
            assert (SECRET_SEED in made.assumptions) == (name == "seeded")
            assert not any("proved for system noise" in text for text in made.assumptions)
            assert restore(json.loads(canonical_json(made))) == made


def test_the_noise_of_a_record_decides_and_not_its_word():
    record = json.loads(canonical_json(asked(randomness="seeded")))
    epsilon = record["epsilon_with_system_noise"]
    made = restore(record | {"status": "proved", "epsilon_proved": epsilon})
    assert (made.status, made.epsilon_proved) == ("seeded", math.inf)
    for change in ({"randomness": "system"}, {"epsilon_proved": epsilon}, {"epsilon_with_system_noise": 0.9 * epsilon}):
        with pytest.raises(ValueError, match=r"randomness|epsilon_proved|its event gives"):
            restore(record | change)
    with pytest.raises(ValueError, match=r"epsilon_with_system_noise is 0\.9: must be epsilon_proved, 1"):
        proved(epsilon_with_system_noise=0.9)


@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_must_be_stated_and_hold(fact):
    words = get_args(get_args(get_type_hints(Facts)[fact])[0])
    # Every word is judged, and none both ways.
    assert set(words) == HOLDS[fact].keys() | BROKEN[fact].keys()
    assert not HOLDS[fact].keys() & BROKEN[fact].keys()
    for word in [None, "surely fine", *BROKEN[fact]]:
        stated = dataclasses.replace(SOUND, **{fact: word})
        made = asked(facts=stated, neighbours="add_remove")
        assert (made.status, made.epsilon_proved) == ("claimed", math.inf), word
        assert made.reason == (BROKEN[fact].get(word) or f"nobody states the {fact.replace('_', ' ')}")
        assert restore(proved(neighbours="add_remove"), **{fact: word}).status == "claimed"
        with pytest.raises(ValueError, match=r"^status is 'proved': "):
            restore(dataclasses.replace(statement(asked(neighbours="add_remove")), facts=stated))
    for word in HOLDS[fact]:
        extra = {"declared_rows": 1000} if word == "declared" else {}
        assert asked(facts=dataclasses.replace(SOUND, **{fact: word}, **extra)).status == "proved"


def statement(guarantee):
    """The same, as a file says it."""
    return Statement(**{field.name: getattr(guarantee, field.name) for field in dataclasses.fields(guarantee)})


def test_nothing_stated_is_everything_broken():
    assert len(Facts().judge("replace_one")[1]) == len(FACTS)
    assert not SOUND.judge("replace_one")[1]


def test_a_counted_number_of_rows_is_public_for_neighbours_of_one_size():
    counted = dataclasses.replace(SOUND, n_rows="counted")
    assert asked(facts=counted).status == "proved"
    assert "same number of rows" in " ".join(asked(facts=counted).assumptions)
    assert asked(facts=counted, neighbours="add_remove").status == "claimed"


def test_a_delta_that_allows_a_row_to_be_published_proves_nothing():
    rows = dataclasses.replace(SOUND, n_rows="declared", declared_rows=100)
    assert asked(facts=rows, delta=0.0099, epsilon_requested=9.0).status == "proved"
    for delta in (0.01, 0.5):
        assert "a row to be published" in asked(facts=rows, delta=delta).reason
    # With one that fits.
    many = dataclasses.replace(rows, declared_rows=100_000)
    refused = asked(delta=1e-5, facts=many)
    assert refused.status == "claimed"
    assert "at 1 / 100000 or more, it allows a row to be published; use delta 1e-06 or less" in refused.reason
    assert asked(delta=1e-6, facts=many).status == "proved"
    assert "nobody says what it is" in asked(facts=dataclasses.replace(rows, declared_rows=None)).reason
    with pytest.raises(ValueError, match="declared_rows is 0"):
        Facts(declared_rows=0)


def test_no_delta_above_a_hundredth_is_proved():
    """Where nobody declares the number of rows, too: delta .999 used to be proved."""
    assert asked(event=EpsilonDelta(1.0, 0.01), delta=0.01).status == "proved"
    fallen = asked(event=EpsilonDelta(1.0, 0.011), delta=0.011)
    assert (fallen.status, fallen.epsilon_proved) == ("claimed", math.inf)
    assert "above 0.01" in fallen.reason


def test_no_epsilon_above_50_is_proved():
    assert asked(event=Laplace(2.0 / 50.0), epsilon_requested=50.0, delta=0.0).status == "proved"
    too_much = asked(event=Laplace(2.0 / 50.1), epsilon_requested=51.0, delta=0.0)
    assert (too_much.status, too_much.epsilon_proved) == ("claimed", math.inf)
    assert "above 50" in too_much.reason
    for method in METHODS:
        if "epsilon" in method.declared and fitted(method).guarantee_.status == "proved":
            with pytest.raises(ValueError, match=r"allow_unsound=False: nothing is proved: .*above 50"):
                fitted(method, allow_unsound=False, epsilon=60.0, delta=1e-5)


@pytest.mark.parametrize("part", [
    Gaussian(8.0), PoissonSampled(0.5, Gaussian(8.0)), SelfComposed(Laplace(8.0), 2), ExponentialMechanism(0.5),
    OneOf((Gaussian(8.0), Laplace(9.0))), BestOfPoisson(3.0, Gaussian(8.0)), PerturbedObjectives(0.125, 0.1, 1, 80.0),
    Composed((Laplace(9.0), Gaussian(8.0))),
], ids=lambda part: part.kind)  # fmt: skip
def test_sensitivity_and_noise_are_those_of_a_part(part):
    """A card shows both: noise of 8 rows, which are 2 long and so move sums by 4 where one is replaced."""
    record = asked(event=part, sensitivity=4.0, noise_scale=16.0, epsilon_requested=50.0)
    assert record.status == "proved"
    assert restore(record) == record
    for name, value in (("sensitivity", 3.9), ("noise_scale", 16.1)):
        edited = copy.copy(record)
        object.__setattr__(edited, name, value)
        with pytest.raises(ValueError, match="noise_scale is 16"):
            restore(edited)
        with pytest.raises(ValueError, match="noise_scale is 16"):
            asked(**{"event": part, "sensitivity": 4.0, "noise_scale": 16.0, "epsilon_requested": 50.0, name: value})
    object.__setattr__(edited, "sensitivity", None)
    with pytest.raises(ValueError, match=r"noise_scale is 16.1: of what sensitivity is not stated"):
        restore(edited)


def test_a_record_that_somebody_edited_is_refused():
    """In memory, where Python stops nobody, or in a file: whatever else it says must fit its event and its facts."""
    for lie, change in {
        "epsilon_proved is 0.1": {"epsilon_proved": 0.1},
        "its event gives": {"event": Gaussian(16.0)},
        "noise_scale is 0.4": {"noise_scale": 0.4},
        "noise_scale is 4": {"sensitivity": 0.5},
        "lack 'covered is": {"assumptions": ("rows are clipped", *asked().assumptions[1:-1])},
        "assumptions": {"randomness": "seeded"},
        "its event gives inf": {"event": NonPrivate()},
        "gives inf": {"delta": float("nan")},
        "epsilon_proved is 1.0": {"event": Gaussian(1e-300), "epsilon_proved": 1.0},
        "nobody states": {"facts": Facts()},
    }.items():
        edited = asked()
        for name, value in change.items():
            object.__setattr__(edited, name, value)
        for judge in (lambda one: restore(one, classes="declared"), restore, lambda one: compose([one, asked()])):
            with pytest.raises(ValueError, match=re.escape(lie)):
                judge(edited)
        if edited.delta == edited.delta:
            with pytest.raises(PrivSVMError, match=r"stored: .*delete the file and run again"):
                parse(Annotated[Guarantee, Stored()], canonical_json(edited), "stored")

    # A class that states the word is judged by its statement.
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Lax(Guarantee):
        def __post_init__(self, grant):
            pass

    forged = Lax(
        **{**dataclasses.asdict(asked()), "event": asked().event, "facts": asked().facts, "epsilon_proved": 0.1}
    )
    assert forged.status == "proved"
    for judge in (lambda one: restore(one, classes="declared"), restore, lambda one: compose([one, asked()])):
        with pytest.raises(ValueError, match=r"epsilon_proved is 0\.1"):
            judge(forged)


def test_nobody_else_can_say_it():
    fields = {field.name: getattr(asked(), field.name) for field in dataclasses.fields(Guarantee)}
    for forged in (None, object(), "_GRANT", True):
        with pytest.raises(ValueError, match=r"only privsvm\.privacy\.gate may say so"):
            Guarantee(**fields, grant=forged)
    made = asked()
    for change in ({"reason": "r"}, {"delta": 0.0}, {"event": Gaussian(1e6)}, {"facts": Facts()}, {}):
        with pytest.raises(ValueError, match=r"only privsvm\.privacy\.gate may say so"):
            dataclasses.replace(made, **change)
    with pytest.raises(ValueError, match=r"only privsvm\.privacy\.gate may say so"):
        dataclasses.replace(made.with_broken_assumption("b"), status="proved", epsilon_proved=1.0)
    # Lowering is free.
    lower = {"status": "claimed", "epsilon_proved": math.inf, "epsilon_with_system_noise": math.inf, "reason": "r"}
    assert dataclasses.replace(made, **lower).status == "claimed"
    # A record that is read without the gate's mark is refused too.
    with pytest.raises(PrivSVMError, match="only privsvm"):
        parse(Guarantee, canonical_json(made), "stored")
    assert copy.deepcopy(made) == made == pickle.loads(pickle.dumps(made))
    with pytest.raises(AttributeError):
        made.status = "none"


def test_the_sources_hold_no_other_way():
    holders = {
        str(path.relative_to(LIBRARY)): path.read_text(encoding="utf-8") for path in sorted(LIBRARY.rglob("*.py"))
    }
    for folder in ("stages", "reproduce", "bench", "examples"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            holders[str(path.relative_to(REPOSITORY))] = path.read_text(encoding="utf-8")
    assert len(holders) > 200
    granting = {name for name, text in holders.items() if "_GRANT" in text}
    assert granting == {"privacy/gate.py"}
    claim = re.compile(r"""status\s*=\s*["'](proved|seeded)["']|["']status["']\s*:\s*["'](proved|seeded)["']""")
    assert {name for name, text in holders.items() if claim.search(text)} == {"privacy/gate.py"}
    # No way around the constructor of a frozen record.
    around = re.compile(r"object\.__setattr__\(\s*\w*guarantee|object\.__new__\(Guarantee")
    assert {name for name, text in holders.items() if around.search(text)} == set()


SOUND_METHODS = [
    method for method in METHODS if "epsilon" in method.declared and fitted(method).guarantee_.status == "proved"
]


@pytest.mark.parametrize("method", SOUND_METHODS, ids=lambda method: method.__name__)
def test_what_methods_say_can_be_verified_and_read_back(method):
    for neighbours in relations(method):
        made = fitted(method, allow_unsound=False, neighbours=neighbours, n_rows=len(Y), epsilon=2.0).guarantee_
        assert made.status == "proved"
        assert SECRET_SEED not in made.assumptions
        assert "others are refused" in " | ".join(made.assumptions)
        assert "power of two" not in " | ".join(made.assumptions)
        second = made.verify()
        assert made.epsilon_proved * (1 - 1e-3) <= second.epsilon <= made.epsilon_proved * (1 + 2e-3)
        assert second.accountant
        assert made.for_group(1).epsilon == pytest.approx(made.epsilon_proved, rel=1e-8)
        assert made.for_group(3).epsilon > made.epsilon_proved
        assert parse(Annotated[Guarantee, Stored()], canonical_json(made), "stored") == made


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epsilon_proved", 1.5),
        ("delta", 1e-9),
        ("event.noise_multiplier", 7.0),
        ("neighbours", "add_remove"),
        ("randomness", "seeded"),
        ("facts.split", "stratified"),
        ("facts.split", None),
        ("facts", None),
        ("event", None),
        ("event.kind", "laplace"),
    ],
)
def test_a_record_whose_numbers_disagree_is_refused(key, value):
    record = json.loads(canonical_json(asked()))
    *parents, last = key.split(".")
    holder = record
    for parent in parents:
        holder = holder[parent]
    holder[last] = value
    with pytest.raises(PrivSVMError, match=r"stored: .*delete the file and run again"):
        parse(Annotated[Guarantee, Stored()], json.dumps(record), "stored")


def test_reading_needs_no_large_package():
    made = [
        asked(event=event, epsilon_requested=20.0)
        for event in (
            Gaussian(8.0),
            ZeroConcentrated(zcdp_rho(1.0, 1e-5)),
            SelfComposed(Gaussian(90.0), 60),
            PerturbedObjectives(0.1, 0.1, 2, 50.0),
        )
    ]
    made.append(asked(event=Laplace(3.0), delta=0.0))
    program = f"""
import sys
from typing import Annotated
from privsvm.privacy.gate import Stored
from privsvm.privacy.gate import Guarantee
from privsvm_bench.records import parse
for text in {[canonical_json(guarantee) for guarantee in made]!r}:
    assert parse(Annotated[Guarantee, Stored()], text, "stored").status == "proved"
print(sorted({{name.split(".")[0] for name in sys.modules}} & {{"scipy", "sklearn", "dp_accounting", "numba"}}))
"""
    assert run_python("-c", program) == "[]\n"


@pytest.mark.parametrize(
    ("name", "chosen", "reason"),
    [
        ("private_svm_rbf", {"gamma": "scale"}, "the feature map"),
        ("private_svm_rbf_laplace", {"gamma": "scale"}, "the feature map"),
        *[(name, {"classes": None}, "class set") for name in proof_pages.proofs()],
        *[
            (name, {"n_rows": None, "neighbours": "add_remove"}, "the private number of rows was counted")
            for name in proof_pages.proofs()
            if "n_rows" in estimator_class(name).declared and not estimator_class(name).pays_for_counts
        ],
    ],
)
def test_what_is_taken_from_the_rows_is_not_proved(name, chosen, reason):
    """Nor is it without consent."""
    made = fitted(estimator_class(name), **chosen).guarantee_
    assert (made.status, made.epsilon_proved) == ("claimed", math.inf)
    assert reason in made.reason
    with pytest.raises(ValueError, match="allow_unsound=True"):
        fitted(estimator_class(name), allow_unsound=False, **chosen)


def test_facts_of_several_releases_are_the_worst():
    for fact in FACTS:
        for word in BROKEN[fact]:
            for facts in ([SOUND, dataclasses.replace(SOUND, **{fact: word})],) * 2:
                assert getattr(merge_facts(facts), fact) == getattr(merge_facts(facts[::-1]), fact) == word
        assert getattr(merge_facts([SOUND, dataclasses.replace(SOUND, **{fact: None})]), fact) is None
    rows = [dataclasses.replace(SOUND, n_rows="declared", declared_rows=rows) for rows in (100, 50)]
    assert merge_facts([SOUND, *rows]).declared_rows == 100
    assert merge_facts([SOUND, *rows]).n_rows == "declared"


def test_compositions_go_through_the_gate():
    first, second = asked(), asked(event=Gaussian(5.0))
    both = compose([first, second])
    assert both.status == "proved"
    assert both.delta == pytest.approx(2e-5)
    assert max(first.epsilon_proved, second.epsilon_proved) < both.epsilon_proved
    assert both.epsilon_proved < first.epsilon_proved + second.epsilon_proved
    assert both.verify().epsilon == pytest.approx(both.epsilon_proved, rel=1e-3)
    assert compose([first], delta=1e-5).epsilon_proved == pytest.approx(first.epsilon_proved)
    mixed = compose([first, proved()])
    assert mixed.epsilon_proved <= first.epsilon_proved + 1.0
    assert "one model is released; several add up" not in mixed.assumptions
    for guarantees in ([first, asked(randomness="seeded")], [asked(randomness="seeded"), first, second]):
        seeded = compose(guarantees)
        assert (seeded.status, seeded.randomness, seeded.epsilon_proved) == ("seeded", "seeded", math.inf)
        assert (
            seeded.epsilon_with_system_noise == compose([asked(event=one.event) for one in guarantees]).epsilon_proved
        )
    # Many of them leave the domain of the word.
    assert compose([proved(epsilon_proved=40.0, epsilon_requested=40.0)] * 2).status == "claimed"
    for wrong, message in (
        ([], "at least one"),
        ([first, asked(neighbours="add_remove", event=EpsilonDelta(1.0, 1e-5))], "nothing bounds its event"),
        ([Guarantee(status="claimed", mechanism="m", reference="r", reason="x")], "too little"),
    ):
        with pytest.raises(ValueError, match=message):
            compose(wrong)


multipliers = st.lists(st.floats(2.0, 60.0), min_size=1, max_size=4)


@settings(max_examples=25, deadline=None)
@given(multipliers, multipliers)
def test_relations_add_up_at_twice_the_sensitivity(added, replaced):
    """One Gaussian release of all signals, by dp_accounting; none is left out, and every delta counts once."""
    terms = {"epsilon_requested": 90.0, "delta": 1e-6}
    parts = [asked(event=Gaussian(one), neighbours="add_remove", **terms) for one in added]
    others = [asked(event=Gaussian(one), **terms) for one in replaced]
    both = compose([*parts, *others])
    assert (both.neighbours, both.delta) == ("replace_one", pytest.approx(1e-6 * (len(added) + len(replaced))))
    signal = 2.0 * math.hypot(*(1.0 / one for one in added + replaced))
    known = get_epsilon_gaussian(1.0 / signal, both.delta)
    assert (both.status == "proved") == (both.epsilon_with_system_noise < math.inf) == (known <= 50.0)
    if both.status == "proved":
        assert both.epsilon_proved == pytest.approx(known, rel=1e-6)
        assert both.epsilon_proved == pytest.approx(compose(list(map(convert_relation, parts)) + others).epsilon_proved)
        assert restore(json.loads(canonical_json(both))) == both
    # A data set whose releases share a relation keeps it.
    assert compose(parts).neighbours == "add_remove"


def test_a_record_says_what_both_relations_cost():
    added, replaced = asked(neighbours="add_remove", delta=1e-5), asked(delta=1e-5)
    accounts = added.by_relation()
    assert list(accounts) == ["add_remove", "replace_one"]
    assert accounts["add_remove"].epsilon == added.epsilon_proved
    # The same noise: the record of a release for replaced rows has this epsilon, and says nothing of added ones.
    assert accounts["replace_one"].epsilon == replaced.epsilon_proved
    assert list(replaced.by_relation()) == ["replace_one"]
    converted = convert_relation(added)
    assert (converted.status, converted.neighbours, converted.sensitivity) == ("proved", "replace_one", 2.0)
    assert converted.epsilon_proved == replaced.epsilon_proved
    assert restore(json.loads(canonical_json(converted))) == converted
    assert convert_relation(replaced) is replaced
    assert added.by_relation(3)["replace_one"].epsilon == replaced.for_group(3).epsilon
    seeded = asked(neighbours="add_remove", randomness="seeded")
    assert (convert_relation(seeded).status, list(seeded.by_relation())) == ("seeded", list(accounts))
    fallen = added.with_broken_assumption("the wind has turned")
    assert (convert_relation(fallen).status, fallen.by_relation()) == ("claimed", {})
    assert compose([fallen, replaced]).status == "claimed"


def test_one_claim_among_several_releases_decides():
    """Whatever it is that makes it one: here no fact."""
    claimed = asked().with_broken_assumption("the wind has turned")
    stratified = restore(asked(), split="stratified")
    for guarantees, reason in (
        ([asked(), claimed], "the wind has turned"), ([claimed, asked()], "the wind has turned"),
        ([claimed], "the wind has turned"), ([asked(), stratified], "stratified"),
    ):  # fmt: skip
        both = compose(guarantees)
        assert (both.status, both.epsilon_proved) == ("claimed", math.inf)
        assert reason in both.reason


@pytest.mark.parametrize("method", [m for m in METHODS if "random_state" in m.declared], ids=lambda m: m.__name__)
def test_whoever_passes_anything_has_seeded_the_noise(method):
    for state in (3, np.random.default_rng(3)):
        model = fitted(method, random_state=state)
        assert model.random_state is state
        assert model.guarantee_.randomness in ("seeded", None)
        assert model.guarantee_.status != "proved"
        assert (SECRET_SEED in model.guarantee_.assumptions) == (model.guarantee_.status == "seeded")
        stored = pickle.loads(pickle.dumps(model))
        assert stored.random_state is None
        assert (stored.predict(X) == model.predict(X)).all()
    if "epsilon" in method.declared:
        draw = {"rng": lambda epsilon, repeat: np.random.default_rng(7)}
        path = clone(fitted(method)).release_path(X, Y, [1.0], 1, **draw)
        assert path.guarantees[0].randomness == "seeded"
        assert (SECRET_SEED in path.guarantees[0].assumptions) == (path.guarantees[0].status == "seeded")
    # An estimator that is not fitted keeps its seed: grid searches send it to other processes.
    assert pickle.loads(pickle.dumps(method(random_state=5))).random_state == 5


def test_rows_as_given_are_all_that_a_method_can_speak_of():
    made = fitted(SOUND_METHODS[0], allow_unsound=False).guarantee_
    assert {name: getattr(made.facts, name) for name in AS_GIVEN} == AS_GIVEN
    assert "what was done to the rows before is not covered" in " ".join(made.assumptions)


PROVED = {
    "witness": Witness(epsilon=0.5, neighbours="replace_one", description="d"),
}


def test_survives_json():
    pure = proved(**{**PROVED, "delta": 0.0})
    assert pure.status == "proved"
    for guarantee in (proved(**PROVED), pure, Guarantee(status="none", mechanism="m", reference="r")):
        assert parse(Annotated[Guarantee, Stored()], canonical_json(guarantee), "stored") == guarantee


def test_a_witness_refutes_pure_differential_privacy():
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
