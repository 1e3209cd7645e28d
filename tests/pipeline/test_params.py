import inspect
import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from privsvm.errors import PrivSVMError
from privsvm.pipeline.methods import estimator_class, implementations
from privsvm.pipeline.params import (
    check_params,
    coerce_numbers,
    entity_names,
    implementation_parameters,
    method_parameters,
    protocol_methods,
    train_jobs,
)

REPOSITORY = Path(__file__).resolve().parents[2]

# Handed to every method by the workflow, not by its entry.
COMMON = {"n_jobs", "n_rows", "epsilon", "delta", "neighbours", "classes", "random_state"}


def default():
    return yaml.safe_load((REPOSITORY / "params.yaml").read_text())


def test_the_default_benchmark_is_valid():
    checked = check_params(default())
    assert len(train_jobs(checked)) == sum(
        len(entry.get("datasets", checked["datasets"])) for entry in checked["methods"].values()
    )


@pytest.mark.parametrize("implementation", implementations())
def test_schema_and_constructor_have_the_same_parameters(implementation):
    estimator = estimator_class(implementation)
    assert set(implementation_parameters(implementation)) == set(inspect.signature(estimator).parameters) - COMMON


def test_every_parameter_is_documented():
    page = (REPOSITORY / "docs/parameters.md").read_text()
    for implementation in implementations():
        for name in implementation_parameters(implementation):
            assert name in page, f"{implementation}: {name}"
    schema = json.loads((REPOSITORY / "lib/privsvm/pipeline/params.schema.json").read_text())
    for name, section in schema["properties"].items():
        for key in section.get("properties", {}) or [name]:
            assert key in page, f"{name}.{key}"


@pytest.mark.parametrize(("text", "value"), [("1e-5", 1e-5), ("1E+3", 1e3), (".5e1", 5.0), ("-2.e-3", -2e-3)])
def test_exponents_are_numbers(text, value):
    assert coerce_numbers({"a": [text, {"b": text}]}) == {"a": [value, {"b": value}]}


@given(st.text(alphabet="abcdef-_./ ", max_size=12))
def test_words_stay_words(text):
    assert coerce_numbers(text) == text


def test_per_dataset_changes_and_restrictions():
    params = default()
    params["methods"]["pmsvm_wp"]["per_dataset"] = {"wine": {"C": 0.5}}
    params["methods"]["majority"]["datasets"] = ["digits"]
    checked = check_params(params)
    assert method_parameters(checked, "pmsvm_wp", "wine")["C"] == 0.5
    assert method_parameters(checked, "pmsvm_wp", "digits")["C"] == params["methods"]["pmsvm_wp"]["C"]
    assert "implementation" not in method_parameters(checked, "pmsvm_wp", "wine")
    assert [job for job in train_jobs(checked) if job[0] == "majority"] == [("majority", "digits")]


def test_protocols_and_their_entities():
    params = default()
    params["methods"] = {
        "majority": {"implementation": "majority"},
        "shared": {"implementation": "ppsvm", "entities": 5, "per_dataset": {"wine": {"entities": [[0], [1, 2]]}}},
    }
    checked = check_params(params)
    assert protocol_methods(checked) == ["shared"]
    assert entity_names(checked, "shared", "digits") == [f"entity-{number}" for number in range(1, 6)]
    assert entity_names(checked, "shared", "wine") == ["entity-1", "entity-2"]
    # A condensed row would mix what the entities hold.
    with pytest.raises(PrivSVMError, match=r"condense: 'fcm' cannot go with methods\.shared") as caught:
        protocol_methods({**checked, "condense": "fcm"})
    assert "\n" not in str(caught.value)
    del params["methods"]["shared"]
    assert protocol_methods({**params, "condense": "fcm"}) == []


@pytest.mark.parametrize(
    ("entities", "part"),
    [(None, "the key 'entities' is missing"), (0, "entities: 0"), ([[0], []], "none of them empty"), (2.5, "2.5")],
)
def test_entities_that_mean_nothing(entities, part):
    params = default()
    entry = {"implementation": "ppsvm", **({} if entities is None else {"entities": entities})}
    params["methods"] = {"shared": entry}
    with pytest.raises(PrivSVMError, match=re.escape(part)):
        check_params(params)


def test_the_first_mistake_is_one_line():
    params = default()
    params["privacy"]["delta"] = 0
    params["seed"] = -1
    with pytest.raises(PrivSVMError) as caught:
        check_params(params, "mine.yaml")
    assert str(caught.value).startswith("mine.yaml: ")
    assert "\n" not in str(caught.value)
