import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.steps import steps

import privsvm
from privsvm.errors import PrivSVMError
from privsvm.pipeline.generate import generated_files
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
COMMON = {"allow_composition", "n_jobs", "n_rows", "epsilon", "delta", "neighbours", "classes", "random_state",
          "break_ties", "decision_function_shape", "probability", "verbose"}  # fmt: skip


def default():
    return yaml.safe_load((REPOSITORY / "params.yaml").read_text())


def test_the_default_benchmark_is_valid():
    checked = check_params(default())
    assert len(train_jobs(checked)) == sum(
        len(entry.get("datasets", checked["datasets"])) for entry in checked["methods"].values()
    )


@pytest.mark.parametrize("path", generated_files(), ids=lambda path: path.name)
def test_generated_files_are_current(path):
    assert path.read_text() == generated_files()[path], "run python -m privsvm.pipeline.generate"


def test_the_stub_has_the_public_names():
    stub = (REPOSITORY / "lib/privsvm/__init__.pyi").read_text()
    assert re.findall(r"import (\w+) as \1$", stub, re.MULTILINE) != []
    assert set(re.findall(r"import (\w+) as \1$", stub, re.MULTILINE)) == set(privsvm.__all__)


@pytest.mark.parametrize("implementation", implementations())
def test_schema_and_constructor_have_the_same_parameters(implementation):
    method = estimator_class(implementation)
    assert set(implementation_parameters(implementation)) == set(inspect.signature(method).parameters) - COMMON


def test_the_schema_is_a_json_schema():
    schema = json.loads((REPOSITORY / "lib/privsvm/pipeline/params.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(coerce_numbers(default()))
    for entry in default()["methods"].values():
        own = {name: value for name, value in entry.items() if name not in ("implementation", "datasets")}
        jsonschema.Draft202012Validator(schema["$implementations"][entry["implementation"]]).validate(own)


def test_every_key_is_documented():
    page = (REPOSITORY / "docs/parameters.md").read_text()
    schema = json.loads((REPOSITORY / "lib/privsvm/pipeline/params.schema.json").read_text())
    for name, section in schema["properties"].items():
        model = schema["$defs"].get(section.get("$ref", "").rpartition("/")[2], {})
        for key in model.get("properties", {}) or [name]:
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
    [(None, "the key 'entities' is missing"), (0, "entities: 0"), ([[0], []], "none empty"), (2.5, "2.5")],
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


def many(count: int) -> dict:
    """The benchmark with so many methods, and a tenth as many data sets more."""
    params = default()
    entries = list(params["methods"].values())
    params["methods"] = {f"m{number}": entries[number % len(entries)] for number in range(count)}
    own = {"path": "params.yaml", "format": "csv", "label": "y", "bounds": [0, 1], "classes": [0, 1]}
    params["datasets"] |= {f"d{number}": own for number in range(count // 10)}
    return params


def test_thousands_of_methods_are_checked_in_proportion(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    check_params(many(20))
    few, more = (steps(lambda count=count: check_params(many(count))) for count in (200, 400))
    assert more < 2.2 * few
    # A second is enough for two thousand.
    assert few < 200 * 2000
    assert len(check_params(many(2000))["methods"]) == 2000


def test_methods_are_checked_without_importing_them():
    """In a process of its own: neither scikit-learn nor a method is imported."""
    code = (
        "import sys, yaml\n"
        "from privsvm.pipeline.params import check_params\n"
        "check_params(yaml.safe_load(open('params.yaml')))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('privsvm.methods.') or name == 'sklearn'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("methods.$(touch x)", {"implementation": "svm"}, "becomes a folder"),
        ("methods.a;b", {"implementation": "svm"}, "becomes a folder"),
        ("methods.a\n", {"implementation": "svm"}, "becomes a folder"),
        ("datasets.`x`", {}, "becomes a folder"),
        ("datasets.../up", {}, "becomes a folder"),
        ("experiment", "a b", "letters, digits"),
        ("experiment", "a\n", "letters, digits"),
        ("methods.new", {"implementation": "no_such"}, "is unknown"),
        ("methods.new", {"implementation": 3}, "must be a file of"),
        ("methods.new", 3, "must be a mapping"),
        ("methods.new", {"implementation": "svm", "datasets": ["wine", "wine"]}, "different datasets"),
        ("methods.new", {"implementation": "svm", "C": "1.0"}, "must be a positive number"),
        ("methods.new", {"implementation": "svm", "epsilon": 1.0}, "not a known key"),
        ("privacy.epsilons", [1, 1.0], "different epsilons"),
        ("privacy.epsilons", 1, "must be a list"),
        ("protocol.folds", 1, "at least 2"),
        ("seed", True, "whole number"),
        pytest.param("seed", 10**399, "whole number", id="a seed of 400 digits"),
        pytest.param("privacy.delta", 10**399, "privacy.delta", id="a delta of 400 digits"),
        ("datasets.mine", {"path": "x.csv", "bounds": [0, 10**399]}, "not a finite number"),
        ("data", None, "must be a mapping"),
    ],
)
def test_what_is_wrong_is_one_line(key, value, part):
    params = default()
    place, _, last = key.partition(".")
    if last:
        params[place][last] = value
    else:
        params[place] = value
    with pytest.raises(PrivSVMError, match=part) as caught:
        check_params(params)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"params.yaml: {place}")
