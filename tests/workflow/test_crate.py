"""A run described as an RO-Crate 1.1: its rules, checked without the network."""

import hashlib
import json
import shutil

import pytest
import yaml

from privsvm.errors import PrivSVMError
from privsvm_bench.datasets.catalogue import load_catalogue
from privsvm_bench.workflow.crate import describe_run
from tests.scripts import REPOSITORY


@pytest.fixture
def folder(tmp_path):
    for name in ("Snakefile", "params.yaml", "requirements.lock", "environment.yml", "dvc.lock"):
        shutil.copy(REPOSITORY / name, tmp_path)
    return tmp_path


def find_ids(value):
    """Find all ids that an entity refers to."""
    if isinstance(value, dict) and value.keys() == {"@id"}:
        yield value["@id"]
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from find_ids(one)


def test_a_crate_is_whole_and_true(folder):
    for name in ("data/results/svm/wine.json", "data/private/results/svm/mine.json", "reports/curves.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    crate = json.loads(describe_run(folder).read_text())
    # Version 1.1 has no term for a digest.
    context, terms = crate["@context"]
    assert context == "https://w3id.org/ro/crate/1.1/context"
    assert terms.keys() == {"sha256"}
    entities = {entity["@id"]: entity for entity in crate["@graph"]}
    assert len(entities) == len(crate["@graph"])
    assert entities["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license"} <= entities["./"].keys()
    outside = {name for entity in entities.values() for name in find_ids(entity)} - entities.keys()
    assert outside == {"https://w3id.org/ro/crate/1.1"}
    files = {name: entity for name, entity in entities.items() if "File" in entity["@type"]}
    assert {"Snakefile", "params.yaml", "dvc.lock", "data/results/svm/wine.json"} <= files.keys()
    for name, entity in files.items():
        assert entity["sha256"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    # Nothing is said of private data.
    assert not any("private" in name for name in entities)
    for name in yaml.safe_load((folder / "params.yaml").read_text())["datasets"]:
        assert entities[f"#data-{name}"]["usageInfo"] == load_catalogue()[name].licence_words


def test_without_a_run_there_is_nothing_to_describe(folder):
    with pytest.raises(PrivSVMError, match="run `make run` first"):
        describe_run(folder)


def test_every_data_set_has_a_source_and_words_on_its_licence():
    entries = load_catalogue().values()
    assert all(entry.source.endswith(".") and entry.licence_words.endswith(".") for entry in entries)
    assert not any("://" in entry.source and "@" in entry.source for entry in entries)
