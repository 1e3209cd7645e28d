import csv
import json
import re

import numpy as np
import pytest

from privsvm_bench.datasets.catalogue import resolve
from reproduce.engine.measurements import Measurement, measure, measurements_csv, merge_measurements, read_measurements
from reproduce.engine.panels import charts_of
from reproduce.engine.papers import find_experiments
from tests.scripts import REPOSITORY

EXPERIMENTS = find_experiments("reproduce")


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_experiment_gives_measurements_and_charts(finished, name):
    cells, item = finished.cells(name), EXPERIMENTS[name]
    assert cells
    for (table, cell), values in cells.items():
        assert table in item.captions()
        assert cell.count("/") == 3
        assert np.isfinite(values).all()
    charts = charts_of(item.records("charts.csv"), [Measurement(*key, values) for key, values in cells.items()])
    assert charts
    assert not any(chart.empty for chart in charts)


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_committed_measurements_are_described(name):
    item, path = EXPERIMENTS[name], REPOSITORY / f"reports/reproduce/{name}.csv"
    committed = read_measurements(path)
    assert measurements_csv(committed) == path.read_text()
    assert len({entry[:2] for entry in committed}) == len(committed)
    assert {entry.table for entry in committed} <= set(item.captions())
    assert not [
        text for pair in item.captions().values() for text in pair if re.search(r"\bagrees?\b|within tolerance", text)
    ]
    assert item.name == name
    assert name.startswith(f"{item.paper}_")
    assert callable(item.function(item.run))
    assert json.loads(json.dumps(item.settings)) == item.settings


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_jobs_name_their_data_and_stand_alone(name):
    item, sources = EXPERIMENTS[name], ("source", "train", "test")
    for job, parameters in item.all_jobs().items():
        assert parameters["dataset"]
        assert all(character.isalnum() or character in "_.-" for character in job)
        for source, *parts in (parameters[key] for key in sources if key in parameters):
            assert parts[0] in resolve(source).parts
    datasets = item.settings.get("datasets", {})
    for dataset in list(datasets)[:1]:
        one = item.with_settings({"datasets": {dataset: datasets[dataset]}}).all_jobs()
        assert one == {
            job: parameters for job, parameters in item.all_jobs().items() if parameters["dataset"] == dataset
        }


def test_every_table_belongs_to_an_experiment():
    assert sorted(EXPERIMENTS) == sorted(path.stem for path in (REPOSITORY / "reports/reproduce").glob("*.csv"))


def test_published_numbers_name_their_source():
    paths = list((REPOSITORY / "reproduce").glob("*/published.csv"))
    assert {path.parent.name for path in paths} == {item.paper for item in EXPERIMENTS.values()}
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == ["source", "dataset", "method", "setting", "metric", "value"]
        assert all(row["source"].startswith(("Table", "Figure")) for row in rows)
        assert len({tuple(row.values())[1:5] for row in rows}) == len(rows)
        assert all(np.isfinite(float(row["value"])) for row in rows)


def test_measurements_are_read_as_written(tmp_path):
    items = measure("t", "a", "m", "s=1", error_SD=0.25, curve=[1.0, -0.0, 1e-17, 123456.7])
    path = tmp_path / "e.csv"
    path.write_text(measurements_csv(items))
    assert read_measurements(path) == [
        Measurement("t", "a/m/s=1/error SD", (0.25,)), Measurement("t", "a/m/s=1/curve", (1.0, 0.0, 1e-17, 123457.0))
    ]  # fmt: skip
    assert read_measurements(tmp_path / "none.csv") == []


def test_incomplete_datasets_keep_their_cells():
    def cells(**values):
        return [Measurement("t", f"{name}///x", (value,)) for name, value in values.items()]

    earlier, present = cells(a=1.0, b=2.0, mean=1.5), cells(a=3.0, b=4.0, mean=3.5)
    assert merge_measurements(earlier, present, {"a": True, "b": True}) == present
    # An average needs all datasets.
    assert merge_measurements(earlier, present, {"a": True, "b": False}) == cells(a=3.0, b=2.0, mean=1.5)
    # A complete dataset loses the cells that its results no longer give; an unknown one is added.
    assert merge_measurements(earlier, cells(c=5.0), {"a": True, "b": False, "c": True}) == cells(
        b=2.0, mean=1.5, c=5.0
    )
    assert merge_measurements([], present[:1], {"a": False}) == present[:1]
