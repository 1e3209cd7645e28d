import json
import re

import numpy as np
import pytest

from reproduce.engine.comparison import read_published, read_rows
from reproduce.engine.page import index_page
from reproduce.engine.papers import find_experiments

from .conftest import REPOSITORY


@pytest.mark.parametrize("name", sorted(find_experiments("reproduce")))
def test_every_experiment_gives_a_table_and_charts(finished, name):
    rows = finished.rows(name)
    assert rows
    # Opacus may be missing, and a method that is not in this version.
    assert {row.verdict for row in rows} <= {
        "within tolerance",
        "beyond tolerance",
        "ruled out",
        "no number",
        "not available",
    }
    page = finished.page(name)
    assert page.count("<figure><figcaption>") == page.count('role="img"') > 0
    assert "://" not in page
    assert "<script" not in page
    for row in rows:
        assert row.dataset in page


def test_every_table_has_a_caption_that_gives_no_verdict():
    for name, item in find_experiments("reproduce").items():
        tables = {row.table for row in read_rows(REPOSITORY / f"reports/reproduce/{name}.csv")}
        assert set(item.captions()) == tables, name
        texts = [*(text for pair in item.captions().values() for text in pair), *item.notes()]
        assert not [text for text in texts if re.search(r"\b[Aa]grees?\b", text)], name
        for chart in item.records("charts.csv"):
            assert set(chart["table"].split("|")) <= tables


def test_all_experiments_are_listed(finished):
    experiments = find_experiments("reproduce")
    assert len(experiments) >= 21
    # Each has a table that is kept.
    assert sorted(experiments) == sorted(path.stem for path in (REPOSITORY / "reports/reproduce").glob("*.csv"))
    page = index_page(list(experiments.values()), finished.reports)
    for name, item in experiments.items():
        assert item.name == name
        assert name.startswith(f"{item.paper}_")
        assert f'href="{name}.html"' in page
        assert callable(item.function(item.run))
        assert callable(item.function(item.report))
    assert "Not run." in index_page(list(experiments.values()), finished.folder / "nowhere")


def test_published_numbers_name_their_source():
    paths = list((REPOSITORY / "reproduce").glob("*/published.csv"))
    assert {path.parent.name for path in paths} == {item.paper for item in find_experiments("reproduce").values()}
    for path in paths:
        lines = path.read_text().splitlines()
        assert lines[0] == "source,dataset,method,setting,metric,value"
        assert all(line.split(",")[0].startswith(("Table", "Figure", '"Figure')) for line in lines[1:])
        # Every number is there once.
        assert len(read_published(path)) == len(lines) - 1
        assert all(np.isfinite(float(value)) for value in read_published(path).values())


def test_settings_are_json():
    for experiment in find_experiments("reproduce").values():
        assert json.loads(json.dumps(experiment.settings)) == experiment.settings
        for parameters in experiment.jobs(experiment.settings).values():
            assert parameters["dataset"]
