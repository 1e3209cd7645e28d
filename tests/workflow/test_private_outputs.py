"""Outputs made from the user's own data are readable by their owner alone."""

import os
from pathlib import Path

import pytest
import yaml

from privsvm.errors import PrivSVMError
from privsvm_bench.jobs.params import Params, read_params
from privsvm_bench.workflow.graph import download_parameters
from privsvm_bench.workflow.private_outputs import close_folders, private_folder, released_file
from tests.scripts import REPOSITORY


def benchmark(**datasets) -> Params:
    methods = {"majority": {"implementation": "majority"}}
    path = REPOSITORY / "params.yaml"
    params = yaml.safe_load(path.read_text()) | {"datasets": {"wine": None, **datasets}, "methods": methods}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    return read_params()


CLINIC = {"path": "clinic.csv", "label": "label", "classes": ["a", "b"], "bounds": [0, 7]}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data/own").mkdir(parents=True)
    Path("data/own/clinic.csv").write_text("x,label\n1,a\n2,b\n")
    before = os.umask(0o022)
    yield tmp_path
    os.umask(before)


def test_folders_are_closed_with_private_data_alone(folder):
    (folder / "mlflow.db").touch(mode=0o644)
    (folder / "data").chmod(0o755)
    for params in (benchmark(), benchmark(clinic=CLINIC | {"share": True})):
        close_folders(params)
        assert (folder / "data").stat().st_mode & 0o777 == 0o755
    close_folders(benchmark(clinic=CLINIC))
    (folder / "data/new.npz").write_text("rows")
    assert (folder / "data").stat().st_mode & 0o777 == 0o700
    assert (folder / "data/new.npz").stat().st_mode & 0o777 == 0o600
    assert (folder / "mlflow.db").stat().st_mode & 0o777 == 0o600


def test_private_data_lies_in_a_folder_of_its_own():
    params = benchmark(clinic=CLINIC, shared=CLINIC | {"share": True})
    assert {name: private_folder(params, name) for name in params.datasets} == {
        "wine": "", "clinic": "private/", "shared": ""
    }  # fmt: skip
    download_parameters(params, "clinic", "private/")
    with pytest.raises(PrivSVMError, match="belongs to data/private/raw"):
        download_parameters(params, "clinic", "")


def test_a_release_names_a_private_data_set():
    params = benchmark(clinic=CLINIC)
    settings = {"dataset": "clinic", "epsilon": 1, "out": "private/model"}
    assert released_file(params, settings) == "data/own/clinic.csv"
    with pytest.raises(PrivSVMError, match="dataset=wine is not a data set of your own"):
        released_file(params, settings | {"dataset": "wine"})
    # Snakemake reads out=2026_11 as a number, and out=007 as another one.
    for numbers in ({"out": 202611}, {"ledger": 7}, {"sign": 1.0}):
        with pytest.raises(PrivSVMError, match="no number"):
            released_file(params, settings | numbers)
    with pytest.raises(PrivSVMError, match="--config lacks epsilon, out"):
        released_file(params, {"dataset": "clinic"})
