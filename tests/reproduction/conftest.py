"""The papers' experiments, run in this process on small bundled data in place of the papers' own."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from privsvm.files import read_json
from reproduce.__main__ import main
from reproduce.engine import context as engine
from reproduce.engine.measurements import read_measurements
from reproduce.engine.papers import find_experiments
from tests.once import make_once

# Settings by paper, and further ones by experiment. Batches of all rows give the noise a closed form.
SMALL = read_json(Path(__file__).with_name("small.json"))


class Finished(NamedTuple):
    """A folder of results and tables."""

    folder: Path

    def cells(self, experiment: str) -> dict[tuple[str, str], tuple[float, ...]]:
        """Values by table and cell."""
        return {item[:2]: item.values for item in read_measurements(self.folder / "changed" / f"{experiment}.csv")}

    def result(self, experiment: str, job: str):
        return read_json(self.folder / "data" / experiment / f"{job}.json")["result"]


def run_everything(folder: Path) -> None:
    for name, experiment in find_experiments("reproduce").items():
        settings = {**SMALL[experiment.paper], **SMALL.get(name, {})}
        folders = ["--data", str(folder / "data"), "--reports", str(folder)]
        main([name, *folders, "--settings", json.dumps(settings)])


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """All experiments, run once on small data, for all workers. Do not change it."""
    return Finished(make_once(tmp_path_factory, "reproduce", run_everything))


@pytest.fixture
def no_data(monkeypatch):
    """No file can be had."""
    from privsvm.errors import PrivSVMError

    def refuse(name, file, *arguments, **options):
        raise PrivSVMError(f"{file}: not in any source; set PRIVSVM_MIRROR")

    monkeypatch.setattr(engine, "download_raw", refuse)
    engine._read.cache_clear()
    engine._read_classes.cache_clear()
    yield
    engine._read.cache_clear()
    engine._read_classes.cache_clear()
