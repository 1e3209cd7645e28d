"""`dvc push` sends nothing that was made from data of one's own; `make push` sends what others may have."""

import hashlib
import json
import subprocess
import sys
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
    patients = params["datasets"].pop("patients")
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

    # Whoever says so shares it.
    params["datasets"]["patients"] = {**patients, "share": True}
    own_data.write_params(params)
    own_data.snakemake()
    with Repo(str(own_data.folder)) as repo:
        shared = [str(out) for out in repo.index.outs if out.can_push and "patients" in str(out)]
    assert any("data/prepared" in name for name in shared)
    before = set(sent(remote))
    own_data.call("dvc", "push")
    assert len(set(sent(remote)) - before) >= len(shared)
    assert [path for path in sent(remote) if b"patients" in path.read_bytes()]


def hashes(folder: Path, names: list[Path]) -> set[str]:
    return {hashlib.md5((folder / name).read_bytes()).hexdigest() for name in names}


def test_what_is_shared_is_sent_beside_data_that_are_not(own_data, tmp_path):
    remote, share = tmp_path / "remote", (sys.executable, "stages/share.py")
    own_data.call("dvc", "remote", "add", "--default", "shelf", str(remote))
    params = own_data.params()
    (own_data.folder / "data/own/colleagues.csv").write_text(
        (own_data.folder / "data/own/patients.csv").read_text().replace("3,", "4,")
    )
    params["datasets"]["colleagues"] = {**params["datasets"]["patients"], "path": "colleagues.csv", "share": True}
    own_data.write_params(params)
    # Nothing goes before the outputs are those of params.yaml: a data set may have been another one under its name.
    assert "run `make run` first" in own_data.call(*share, "push", check=False)
    assert sent(remote) == []
    own_data.snakemake()
    own_data.call("dvc", "push")
    assert sent(remote) == []

    said = own_data.call(*share, "push")
    assert "of colleagues, wine; commit reports/shared.json and dvc.lock" in said
    assert "stay here, of patients, several data sets" in said
    files = [path.relative_to(own_data.folder) for path in (own_data.folder / "data").rglob("*") if path.is_file()]
    held = [name for name in files if "patients" in name.name]
    shared = [name for name in files if "wine" in name.parts[-1] or "colleagues" in name.parts[-1]]
    shared = [name for name in shared if name.parts[1] not in ("inputs", "jobs", "outside")]
    assert len(held) > 10
    assert len(shared) > 30
    there = {path.parent.name + path.name for path in sent(remote)}
    assert there == hashes(own_data.folder, shared)
    # What is equal to a shared file tells nothing of the rows: condensed rows where nothing is condensed.
    assert not there & (hashes(own_data.folder, held) - hashes(own_data.folder, shared))
    assert not [path for path in sent(remote) if b"patients" in path.read_bytes()]
    assert "patients" not in (own_data.folder / "reports/shared.json").read_text()

    own_data.git("add", "params.yaml", "dvc.yaml", "dvc.lock", ".dvc/config", "reports")
    own_data.git("commit", "--quiet", "--message", "shared")
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["git", "clone", "--quiet", str(own_data.folder), str(elsewhere)], check=True)
    clone = type(own_data)(elsewhere)
    said = clone.call(*share, "pull")
    assert f"{len(shared)} of " in said
    for name in ("data/raw/patients", "data/prepared/patients.npz", "data/jobs", "reports/index.html"):
        assert f"\n  {name}\n" in said
    assert [name for name in shared if (elsewhere / name).read_bytes() != (own_data.folder / name).read_bytes()] == []
    assert not list((elsewhere / "data").rglob("*patients*"))
    # What was written by others names files of data sets alone.
    named = json.loads((elsewhere / "reports/shared.json").read_text())
    for change, message in [
        ({"files": {"../stolen": "0" * 32}}, "is no file of a data set"),
        ({"files": {"data/models/svm/../../../x.npz": "0" * 32}}, "is no file of a data set"),
        ({"files": {"data/prepared/wine.npz": "../../etc"}}, "is no file of a data set"),
        ({"files": {"data/prepared/wine.npz": "0" * 32}}, "the remote lacks 1 files, such as data/prepared/wine.npz"),
        ({"lock": "0" * 64}, "belongs to another dvc.lock"),
        ({"files": 1}, "names no files"),
    ]:
        (elsewhere / "reports/shared.json").write_text(json.dumps(named | change))
        assert message in clone.call(*share, "pull", check=False)

    # Later all is shared: DVC sends the rest, and nobody needs the list.
    params["datasets"]["patients"]["share"] = True
    own_data.write_params(params)
    own_data.snakemake()
    own_data.call(*share, "push")
    assert not (own_data.folder / "reports/shared.json").exists()
    assert hashes(own_data.folder, held) <= {path.parent.name + path.name for path in sent(remote)}
