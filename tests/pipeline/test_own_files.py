"""What is made from own data is its owner's alone, and can be forgotten."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
import yaml

from privsvm.errors import PrivSVMError
from privsvm.pipeline.own_files import FOLDERS, close_folders, dataset_of, forget, is_pushed, set_push, shared_datasets
from privsvm.pipeline.params import Params


def benchmark(**datasets):
    return Params.model_construct(datasets=datasets)


OWN = benchmark(wine={}, clinic={"path": "clinic.csv"})


def test_folders_are_closed_with_own_data_alone(tmp_path):
    (tmp_path / ".dvc/cache").mkdir(parents=True)
    (tmp_path / "mlflow.db").write_text("")
    (tmp_path / "mlflow.db").chmod(0o644)
    before = os.umask(0o022)
    try:
        close_folders(benchmark(wine={}), tmp_path)
        close_folders(benchmark(clinic={"path": "x", "share": True}), tmp_path)
        assert not (tmp_path / "data").exists()
        assert os.umask(0o022) == 0o022
        close_folders(OWN, tmp_path)
        (tmp_path / "data/new.npz").write_text("rows")
        mask = os.umask(0o022)
    finally:
        os.umask(before)
    assert mask == 0o077
    for name in FOLDERS:
        folder = tmp_path / name
        assert not folder.exists() or folder.stat().st_mode & 0o777 == 0o700, name
    assert (tmp_path / "data/new.npz").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "mlflow.db").stat().st_mode & 0o777 == 0o600


def test_the_snakefile_and_the_stages_close_them_first():
    for name in ("stages/common.smk", "stages/dvc_stage.py"):
        assert re.search(r"^ *close_folders\(", Path(name).read_text(), re.MULTILINE)


def test_outputs_are_pushed_unless_they_are_made_from_own_data(tmp_path):
    dvc = tmp_path / "dvc.yaml"
    dvc.write_text(Path("dvc.yaml").read_text())
    outputs = yaml.safe_load(dvc.read_text())["stages"]
    kept_in_git = ("reports/tracking.json",)
    for name, stage in outputs.items():
        for out in stage.get("do", stage)["outs"]:
            assert out in ({next(iter(out)): {"push": True}}, *({path: {"cache": False}} for path in kept_in_git)), name
    assert is_pushed(tmp_path)
    before = os.umask(0o022)
    try:
        close_folders(benchmark(wine={}, clinic={"path": "x", "share": True}), tmp_path)
        assert is_pushed(tmp_path)
        close_folders(OWN, tmp_path)
    finally:
        os.umask(before)
    assert not is_pushed(tmp_path)
    assert not set_push(False, tmp_path)
    assert set_push(True, tmp_path)
    assert dvc.read_text() == Path("dvc.yaml").read_text()
    dvc.write_text(dvc.read_text().replace("  - push: &push true\n", "  - other: &push true\n"))
    with pytest.raises(PrivSVMError, match="lacks its `vars: - push`"):
        close_folders(OWN, tmp_path)


@pytest.mark.parametrize(
    ("path", "dataset"),
    [
        ("data/raw/wine/patients.csv", "wine"),
        ("data/raw/wine", None),
        ("data/prepared/wine.npz", "wine"),
        ("data/prepared/wine.scale.npz", "wine.scale"),
        ("data/prepared/wine.part", None),
        ("data/condensed/none/wine.json", "wine"),
        # A method may have the name of a data set.
        ("data/models/wine/patients.npz", "patients"),
        ("data/models/svm/wine/patients.npz", None),
        ("data/results/svm/wine.json", "wine"),
        ("data/timings/svm/wine.train.json", "wine"),
        ("data/timings/_condense/wine.json", "wine"),
        ("data/inputs/train/wine.json", None),
        ("data/jobs/wine.json", None),
        ("data/audits/wine.json", None),
        ("reports/pages/wine.html", None),
        ("elsewhere/prepared/wine.npz", None),
    ],
)
def test_where_a_file_lies_tells_whose_it_is(path, dataset):
    assert dataset_of(PurePosixPath(path)) == dataset


def test_data_of_the_catalogue_and_those_said_to_be_are_shared():
    entries = {"wine": {}, "iris": {"scaling": "bounds"}, "mine": {"path": "x"}, "ours": {"path": "x", "share": True}}
    entries["no"] = {"path": "x", "share": False}
    assert shared_datasets(benchmark(**entries)) == {"wine", "iris", "ours"}


def cached(root, content):
    """Put something into DVC's cache; returns its hash."""
    digest = hashlib.md5(content).hexdigest()
    path = root / ".dvc/cache/files/md5" / digest[:2] / digest[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o444)
    return digest


def test_forgetting_leaves_no_copy_and_nothing_of_others_is_lost(tmp_path):
    secret, others = b"secret rows", b"wine rows"
    names = {
        "clinic": ["data/raw/clinic/clinic.csv", "data/prepared/clinic.npz", "data/models/svm/clinic.json"],
        "wine": ["data/raw/wine/wine.csv", "data/prepared/wine.npz", "data/models/svm/wine.json"],
    }
    outs = []
    for dataset, paths in names.items():
        for place, name in enumerate(paths):
            content = (secret if dataset == "clinic" else others) + str(place).encode()
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
            if "models" not in name:
                outs.append({"path": name, "md5": cached(tmp_path, content)})
    (tmp_path / "data/own").mkdir()
    (tmp_path / "data/own/clinic.npz").write_bytes(b"the file itself")
    listing = [
        {"md5": cached(tmp_path, b"a model of secret rows"), "relpath": "clinic.npz"},
        {"md5": cached(tmp_path, b"a model of wine rows"), "relpath": "wine.npz"},
    ]
    folder = cached(tmp_path, json.dumps(listing).encode())
    directory = tmp_path / ".dvc/cache/files/md5" / folder[:2]
    (directory / folder[2:]).rename(directory / f"{folder[2:]}.dir")
    (tmp_path / "dvc.lock").write_text(yaml.safe_dump({"stages": {"prepare": {"outs": outs}}}))
    # An earlier version, which only the cache of runs remembers.
    earlier = {"outs": [{"path": "data/prepared/clinic.npz", "md5": cached(tmp_path, b"earlier secret rows")}]}
    run = tmp_path / ".dvc/cache/runs/ab/cd"
    run.parent.mkdir(parents=True)
    run.write_text(yaml.safe_dump(earlier | {"deps": [{"path": "data/models/svm", "md5": f"{folder}.dir"}]}))

    removed = forget("clinic", tmp_path)
    left = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [content for content in left if b"secret" in content]
    assert all((tmp_path / name).exists() for name in names["wine"])
    assert sum(b"wine rows" in content for content in left) == 6
    assert len(removed) >= 8
    assert (tmp_path / "data/own/clinic.npz").exists()
    assert forget("clinic", tmp_path) == []
    with pytest.raises(PrivSVMError, match="must be the name of a data set"):
        forget("../x", tmp_path)


def test_the_command_says_what_remains(tmp_path):
    script = os.path.abspath("stages/forget.py")
    done = subprocess.run([sys.executable, script, "nothing"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "nothing was made from 'nothing'" in done.stdout
