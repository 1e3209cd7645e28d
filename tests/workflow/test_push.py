"""`dvc push` sends nothing that was made from data of one's own."""

from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo

pytestmark = pytest.mark.workflow


def sent(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_own_data_stay_here(own_data, tmp_path):
    remote = tmp_path / "remote"
    own_data.call("dvc", "remote", "add", "--default", "shelf", str(remote))
    with Repo(str(own_data.folder)) as repo:
        cached = [out for out in repo.index.outs if out.use_cache]
        assert len(cached) > 10
        assert not [str(out) for out in cached if out.can_push]
    own_data.call("dvc", "push", "--remote", "shelf", "data/models/svm", "data/prepared/patients.npz")
    # Out of params.yaml, but still among the outputs.
    params = own_data.params()
    del params["datasets"]["patients"]
    own_data.write_params(params)
    own_data.call("dvc", "push")
    assert sent(remote) == []

    own_data.snakemake()
    assert yaml.safe_load((own_data.folder / "dvc.yaml").read_text())["vars"] == [{"push": True}]
    assert own_data.nothing_to_do()
    assert "up to date" in own_data.call("dvc", "repro")
    own_data.call("dvc", "push")
    assert len(sent(remote)) > 10
    assert not [path for path in sent(remote) if b"patients" in path.read_bytes()]
