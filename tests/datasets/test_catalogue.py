"""The catalogue, and how settings of params.yaml change its entries."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pydantic
import pytest
import yaml
from sklearn.datasets import load_breast_cancer, load_wine
from tests.processes import run_python
from tests.refusals import refusal

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema
from privsvm_bench.command import main
from privsvm_bench.datasets.catalogue import DataFile, load_catalogue, raw_files, resolve
from privsvm_bench.datasets.croissant import describe_table
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.datasets.prepare import prepare, write_prepared
from privsvm_bench.datasets.prepared import load_prepared
from privsvm_bench.datasets.settings import KFold, parse_protocol

CATALOGUE = load_catalogue()
# Rebuilt from other files, so that only a mirror has them; packages have others.
DERIVED = {"a5a", "w5a", "splice_scale", "diabetes_scale"}
PACKAGED = {name for name, entry in CATALOGUE.items() if "bench/utility/packaged.py" in entry.note}


def test_import_is_light():
    code = (
        "import sys; from privsvm_bench.datasets.catalogue import raw_files; raw_files('wine', {});"
        "print([m for m in ('sklearn', 'pandas', 'numba', 'scipy', 'numpy') if m in sys.modules])"
    )
    assert run_python("-c", code) == "[]\n"


@pytest.mark.parametrize("name", CATALOGUE)
def test_entry_is_consistent(name):
    entry = CATALOGUE[name]
    assert resolve(name, {}) == entry
    assert raw_files(name) == list(entry.files)
    assert entry.parts
    assert set(entry.pool) <= set(entry.parts)
    assert {file for part in entry.parts.values() for file in part.files} == set(entry.files)
    assert entry.classes is not None
    assert entry.labels is not None
    assert len(set(entry.classes)) == len(entry.classes) >= 2
    assert (entry.positive in entry.classes) if len(entry.classes) == 2 else entry.positive is None
    if entry.groups:
        assert set(entry.groups) == set(entry.classes)
        assert sorted(label for members in entry.groups.values() for label in members) == sorted(entry.labels)
    for part in entry.parts.values():
        if part.class_counts is not None:
            assert sum(part.class_counts.values()) == part.n_rows
            assert set(part.class_counts) <= set(entry.labels)
            assert all(normalise_label(label) == label for label in part.class_counts)
        if entry.bounds is not None:
            assert len(entry.bounds.lower) in (1, part.n_features)
    assert entry.bounds_origin in ((None,) if entry.bounds is None else ("declared", "published"))
    for file in entry.files.values():
        assert all(url.startswith(("https://", "http://")) and " " not in url for url in file.urls)
        if entry.bundled:
            assert file.content_sha256 is not None
        elif entry.verified:
            assert file.sha256 is not None
            assert len(file.sha256) == 64
            assert file.mirror_path is not None
        if entry.verified and not entry.bundled:
            # A pinned source, whose bytes cannot change, is among the addresses.
            assert any("raw.githubusercontent.com" in url for url in file.urls[-1:]) or name in DERIVED | PACKAGED


def test_unverified_sets_are_marked():
    unverified = {name for name, entry in CATALOGUE.items() if not entry.verified}
    assert unverified == {"gisette_scale", "rcv1_train.binary", "cod-rna.t", "har_smartphone"}
    assert CATALOGUE["a5a"].files["a5a.t"].urls == ()


def test_bundled_bounds_are_round_and_have_a_public_source():
    assert "not computed from the rows" in CATALOGUE["digits"].bounds_note
    assert CATALOGUE["digits"].bounds_origin == "declared"
    for name, loader in (("breast_cancer", load_breast_cancer), ("wine", load_wine)):
        entry = CATALOGUE[name]
        assert entry.scaling == "bounds"
        assert entry.bounds_origin == "published"
        assert f"load_{name}" in entry.bounds_note
        # The table of that description: name, smallest, largest.
        table = re.findall(r"^[^:\n]+: +([\d.]+) +([\d.]+)(?: +[\d.]+ +[\d.]+)?$", loader().DESCR, re.MULTILINE)
        assert len(table) == len(entry.bounds.upper)
        for low, high, (least, most) in zip(entry.bounds.lower, entry.bounds.upper, table, strict=True):
            assert low <= float(least) < float(most) <= high
            for value in (low, high):
                assert value == float(f"{value:.2g}")


def test_a_key_that_no_entry_has_is_refused():
    form = pydantic.TypeAdapter(DataFile)
    assert form.validate_python({"name": "a", "size": 3}).size == 3
    with pytest.raises(pydantic.ValidationError, match="bytes"):
        form.validate_python({"name": "a", "bytes": 3})


def test_tables_with_a_schema_state_their_licence():
    declared = {name: entry for name, entry in CATALOGUE.items() if entry.schema is not None}
    assert len(declared) == 52
    for name, entry in declared.items():
        assert entry.licence, name
        assert entry.bounds_note, name
        schema = parse_schema(entry.schema)
        assert schema.classes == entry.classes
        (part,) = entry.parts.values()
        assert sum(max(1, len(column.words)) for column in schema.features.values()) == part.n_features
    # Columns keep the order of their file: features have it, and so has their noise.
    assert list(CATALOGUE["affairs"].schema["columns"])[:3] == ["rate_marriage", "age", "yrs_married"]
    assert list(CATALOGUE["vowel"].schema["columns"])[:4] == ["half", "speaker", "sex", "f0"]


MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes_in_settings.yaml").read_text())


@pytest.mark.parametrize(("name", "settings", "words"), MISTAKES)
def test_settings_that_make_no_sense(name, settings, words):
    message = refusal(resolve, name, settings)
    for word in words:
        assert word in message


def test_settings_are_merged():
    entry = resolve("a1a", {"positive": -1, "scaling": "min_max", "fit_on": "all_rows", "range": [0, "1e0"]})
    changed = entry.positive, entry.scaling, entry.fit_on, entry.target_range
    assert changed == ("-1", "min_max", "all_rows", (0.0, 1.0))
    entry = resolve("iris_uci", {"groups": {"setosa": "Iris-setosa", "rest": ["Iris-versicolor", "Iris-virginica"]}})
    assert entry.classes == ("rest", "setosa")
    assert entry.positive is None
    assert resolve("cleveland_uci").classes == ("0", "1")
    five = resolve("cleveland_uci", {"groups": {}})
    assert five.classes == ("0", "1", "2", "3", "4")
    assert five.positive is None
    assert resolve("pima_uci", {"bounds": [0, 900], "scaling": "bounds"}).bounds_origin == "declared"
    assert load_catalogue()["a1a"].positive == "1", "the catalogue itself must not change"


def test_own_data(tmp_path):
    file = tmp_path / "people.csv.xz"
    file.write_bytes(b"x")
    entry = resolve("people", {"path": str(file), "label": "income", "classes": [0, 1.0], "bounds": [0, 10]})
    assert entry.user_supplied
    assert entry.classes == ("0", "1")
    assert entry.scaling == "bounds"
    part = entry.parts["all"]
    assert (part.format, part.label, part.header_rows) == ("csv", "income", 1)
    assert raw_files("people", {"path": str(file), "label": "income"}) == ["people.csv.xz"]
    assert raw_files("net", {"url": "https://example.org/a%20b.libsvm?x=1"}) == ["a b.libsvm"]


def test_protocol_defaults_and_errors():
    assert parse_protocol("k_fold") == KFold(folds=5, repeats=1, stratified=False)
    for wrong, word in [
        ({"kind": "holdout", "test_size": 1.5}, "fraction"),
        ({"kind": "holdout", "repeats": 0}, "at least 1"),
        ({"kind": "k_fold", "folds": True}, "at least 2"),
        ({"kind": "k_fold", "stratified": "yes"}, "true or false"),
        ({"repeats": 3}, "kind"),
    ]:
        assert word in refusal(parse_protocol, wrong)


@pytest.fixture
def wine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    download_raw("wine", "wine.npz", tmp_path / "raw" / "wine.npz")
    protocol = parse_protocol({"kind": "holdout", "repeats": 1, "test_size": 0.25, "stratified": True})
    made = prepare(load_catalogue()["wine"], tmp_path / "raw", protocol, 0, "e")
    path = tmp_path / "data" / "prepared" / "wine.npz"
    path.parent.mkdir(parents=True)
    write_prepared(path, path.with_suffix(".json"), *made)
    return load_prepared(path)


def test_a_table_is_described_as_it_is(wine, tmp_path, capsys):
    assert main(["croissant", "wine"]) == 0
    assert capsys.readouterr().out == "reports/wine/croissant.json\n"
    described = json.loads((tmp_path / "reports/wine" / "croissant.json").read_text())
    assert described["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert described["license"] == load_catalogue()["wine"].licence_words
    (file,) = described["distribution"]
    assert file["sha256"] == sha256_of_file(tmp_path / "reports/wine" / file["contentUrl"])
    with (tmp_path / "reports/wine" / "table.csv").open(newline="") as table:
        head, *rows = csv.reader(table)
    (records,) = described["recordSet"]
    assert [field["source"]["extract"]["column"] for field in records["field"]] == head
    assert {field["source"]["fileObject"]["@id"] for field in records["field"]} == {file["@id"]}
    assert np.array_equal(np.array([row[:-1] for row in rows], dtype=float), wine.X)
    assert [row[-1] for row in rows] == [wine.classes[code] for code in wine.y]


def test_data_of_ones_own_are_not_described(tmp_path):
    with pytest.raises(PrivSVMError, match="mine: not in the catalogue"):
        describe_table("mine", tmp_path)
    with pytest.raises(PrivSVMError, match="file not found"):
        describe_table("wine", tmp_path, tmp_path)
