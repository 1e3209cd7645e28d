"""A prepared table as CSV with a Croissant description."""

import csv
import json

import numpy as np
import pytest

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm_bench.command import main
from privsvm_bench.datasets.catalogue import load_catalogue
from privsvm_bench.datasets.croissant import describe_table
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.datasets.prepare import prepare, write_prepared
from privsvm_bench.datasets.prepared import load_prepared
from privsvm_bench.datasets.settings import parse_protocol


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
