"""The user's own data is private by default: it lies in separate folders and is never pushed."""

import json
import struct

import pytest

from .conftest import OWN_ROWS, SECRET, Workspace

pytestmark = pytest.mark.workflow
NUMBERS = ("metrics.json", "curves.csv")


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_private_data_stays_on_this_machine(with_own_data, tmp_path):
    finished = with_own_data
    data = finished.folder / "data"
    numbers = [f"{folder}/{name}" for folder in ("reports", "data/private/reports") for name in NUMBERS]
    texts = [(finished.folder / name).read_text() for name in numbers]
    assert ["colleagues" in text for text in texts] == [True, True, False, False]
    assert ["patients" in text for text in texts] == [False, False, True, True]
    assert "in order" in finished.call("python", "stages/check.py")
    (finished.folder / numbers[3]).write_text(texts[3].replace("patients", "patient"))
    said = finished.call("python", "stages/check.py", check=False)
    assert f"{numbers[3]}: not the numbers of the results; delete it and run `make run`" in said
    (finished.folder / numbers[3]).write_text(texts[3])
    private = [path for path in files(data) if "patients" in path.as_posix()]
    private += [finished.folder / name for name in numbers[2:]]
    shared = [path for path in files(data) if "private" not in path.relative_to(data).parts]
    assert {path.relative_to(data).parts[0] for path in private} == {"own", "private"}
    assert len(private) > 10
    assert [path for path in shared if "colleagues" in path.name and "models" in path.parts]
    # Closed to other users.
    for folder in ("data", "logs", "reports", ".cache", ".snakemake", ".dvc/cache"):
        assert (finished.folder / folder).stat().st_mode & 0o077 == 0, folder
    assert not [path for path in private if path.is_relative_to(data / "private") and path.stat().st_mode & 0o077]
    # MLflow, reports and logs hold no cell of the table: neither its digits nor its bits, as given and scaled.
    shown = [file for folder in ("mlartifacts", "reports", "logs") for file in files(finished.folder / folder)]
    cells = [b"5.4378219", b"0.55366340", *(struct.pack("<d", number) for number in (SECRET, 2 * SECRET / 7 - 1))]
    assert len(shown) > 40
    for file in [*shown, finished.folder / "mlflow.db"]:
        assert not [cell for cell in cells if cell in file.read_bytes()], file

    # Both tools call the same jobs stale when the file's content changes, and none when its time does.
    assert finished.nothing_to_do()
    assert json.loads(finished.call("dvc", "status", "--json")) == {}
    file = data / "own/patients.csv"
    file.write_text(file.read_text())
    assert finished.nothing_to_do()
    file.write_text(file.read_text() + "6,4,b\n")
    stale = " ".join(finished.stale_jobs())
    assert "data/private/results/svm/patients.json" in stale
    assert "wine" not in stale
    assert "download" in json.loads(finished.call("dvc", "status", "--json"))
    file.write_text("\n".join(OWN_ROWS) + "\n")

    # A clone gets all but the private files.
    finished.call("dvc", "remote", "add", "--default", "shelf", str(tmp_path / "shelf"))
    finished.commit("results")
    assert "patients.csv" not in finished.git("ls-files")
    finished.call("dvc", "push")
    pushed = files(tmp_path / "shelf")
    assert len(pushed) > 20
    assert not [path for path in pushed if b"patients" in path.read_bytes()]
    # Files equal to a shared file hold no rows: "condensed" files without condensing.
    secrets = {path.read_bytes() for path in private} - {path.read_bytes() for path in shared}
    assert len(secrets) > 10
    assert secrets.isdisjoint(path.read_bytes() for path in pushed)
    finished.call("git", "clone", "--quiet", str(finished.folder), str(tmp_path / "clone"))
    clone = Workspace(tmp_path / "clone")
    clone.call("dvc", "pull", check=False)
    assert (clone.folder / "data/models/svm/colleagues.npz").is_file()
    assert not list((clone.folder / "data").rglob("*patients*"))

    # A dataset shared later moves to the public folders and is pushed.
    finished.change("datasets.patients.share", True)
    finished.snakemake()
    assert not list((data / "private").rglob("*patients*"))
    assert not any((data / "private/reports" / name).exists() for name in NUMBERS)
    finished.call("dvc", "push")
    assert [path for path in files(tmp_path / "shelf") if b"patients" in path.read_bytes()]
