"""The example of a deployment with its mistakes, and the examples of the README."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import party
import pytest
import yaml
from messages import read_private
from sklearn.datasets import load_wine

from privsvm.files import read_json
from privsvm_bench.jobs.params import check_params
from tests.blocks import blocks_run_by
from tests.scripts import REPOSITORY

EXAMPLE = REPOSITORY / "examples/ppsvm_three_entities"


def call(*arguments, check=True):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def separate_users():
    """Say whether the example can give every party a separate user here."""
    code = f"import sys; sys.path.insert(0, {str(EXAMPLE)!r}); import run; print(run.can_change_user())"
    return call("-c", code).stdout.strip() == "True"


@pytest.fixture(scope="module")
def reachable():
    """Make a folder that other users can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def example_run(reachable):
    """Return output and folder of a complete run."""
    folder = reachable / "parties"
    return call(EXAMPLE / "run.py", "--keep", folder).stdout, folder


def test_three_entities_and_a_trainer(example_run):
    output, folder = example_run
    right = int(output.split(" new clients ")[1].split()[0])
    # Of 69, with a split and secrets that have no seeds: fewer with probability 5e-7, by how often each row was wrong
    # in 150 runs. The most frequent class is right for about 43.
    assert right >= 58
    assert output.count("whoever knows 10 of its 500 rows computes all others") == 3
    predictions = (folder / "shared/trainer/predictions.csv").read_text().splitlines()
    assert len(predictions) == 70
    assert read_json(folder / "shared/trainer/model.json")["guarantees"][0]["randomness"] == "system"
    for number in (1, 2, 3):
        assert (folder / f"entity-{number}").stat().st_mode & 0o777 == 0o700
        assert (folder / f"entity-{number}/secret.npz").stat().st_mode & 0o777 == 0o600


def test_the_trainer_touches_the_shared_folder_only(example_run):
    output, _ = example_run
    steps = output.split("\ntrainer: ")[1:]
    assert len(steps) == 3
    for section in steps:
        step = section.split("\n\n")[0]
        touched = [line for line in step.splitlines() if line.startswith(("  read", "  wrote"))]
        assert touched
        names = [name.strip() for line in touched for name in line.split(maxsplit=1)[1].split(",")]
        assert all(name.startswith("shared/") for name in names), names


def test_the_private_folders_are_closed_to_other_users(example_run, separate_users):
    output, folder = example_run
    if not separate_users:
        assert "NOT closed" in output
        pytest.skip("not root: the parties cannot be separate users here")
    owners = {(folder / f"entity-{number}").stat().st_uid for number in (1, 2, 3)}
    owners.add((folder / "shared/trainer").stat().st_uid)
    assert len(owners) == 4
    assert 0 not in owners
    # Three folders with four files each, seen from the trainer when it trains and when it predicts.
    assert output.count("was refused all 15 private folders and files of the others") == 2
    assert "NOT closed" not in output


def test_an_open_private_folder_stops_the_run(reachable, separate_users):
    if not separate_users:
        pytest.skip("not root: the parties cannot be separate users here")
    folder = reachable / "open"
    folder.mkdir()
    code = (
        f"import sys; sys.path.insert(0, {str(EXAMPLE)!r}); from pathlib import Path; import run\n"
        f"deployment = run.Deployment(Path({str(folder)!r})); run.share_out(deployment)\n"
        "deployment.private['entity-2'].chmod(0o755)\n"
        "deployment.run({'trainer': ['agree', '--agreement', deployment.public['trainer'] / 'a.json', '--rows', '5', "
        "'--classes', 'a', 'b', '--entities', 'x=1']})"
    )
    done = call("-c", code, check=False)
    assert done.returncode == 1
    assert "could open" in done.stdout
    assert "entity-2" in done.stdout
    assert "trainer failed" in done.stderr
    assert not (folder / "shared/trainer/a.json").exists()


def test_one_user_is_said():
    output = call(EXAMPLE / "run.py", "--one-user", "--kernel", "gaussian").stdout
    assert "NOT closed" in output
    assert "was refused" not in output
    assert output.count("whoever knows 11 of its 500 rows") == 3


def test_secrets_are_drawn_anew(example_run, tmp_path):
    """Draws have no seed: two from the same columns differ."""
    _, folder = example_run
    for name in ("first", "second"):
        party.main(
            ["draw", "--name", "entity-1", "--columns", f"{folder}/entity-1/columns.csv",
             "--agreement", f"{folder}/shared/trainer/agreement.json", "--secret", f"{tmp_path}/{name}/secret.npz"]
        )  # fmt: skip
    first, second = (read_private(tmp_path / name / "secret.npz") for name in ("first", "second"))
    np.testing.assert_array_equal(first["centre"], second["centre"])
    # Two of 500 standard normals are close with probability .0016: five or more in less than one of 1e15 runs.
    assert np.isclose(first["random_matrix"], second["random_matrix"]).sum() < 5


class TestMistakes:
    @pytest.fixture
    def base(self, tmp_path):
        """Let two entities agree and draw, before they publish."""
        labels = ["id,label", *(f"{row},{'ab'[row % 2]}" for row in range(20))]
        party.main(
            ["agree", "--agreement", f"{tmp_path}/agreement.json", "--rows", "20", "--classes", "a", "b",
             "--mbar", "5", "--entities", "north=2", "south=1"]
        )  # fmt: skip
        for name, count in (("north", 2), ("south", 1)):
            folder = tmp_path / name
            folder.mkdir()
            rows = [
                ",".join([str(row), *(str((row * 7 + column) % 11) for column in range(count))]) for row in range(20)
            ]
            (folder / "columns.csv").write_text("\n".join(["id," + ",".join("xy"[:count]), *rows]) + "\n")
            (folder / "labels.csv").write_text("\n".join(labels) + "\n")
            party.main(["draw", *self.files(tmp_path, name), "--columns", f"{folder}/columns.csv"])
        return tmp_path

    @staticmethod
    def files(base, name):
        return ["--name", name, "--agreement", f"{base}/agreement.json", "--secret", f"{base}/{name}/secret.npz"]

    def publish(self, base, name):
        folder = base / name
        party.main(
            ["publish", *self.files(base, name), "--columns", f"{folder}/columns.csv",
             "--labels", f"{folder}/labels.csv", "--block", f"{base}/{name}.npz"]
        )  # fmt: skip

    def refusal(self, function, *arguments):
        with pytest.raises(SystemExit) as caught:
            function(*arguments)
        message = str(caught.value)
        assert message.startswith("error: ")
        assert "\n" not in message
        return message

    def test_rows_in_another_order(self, base):
        header, *rows = (base / "south/columns.csv").read_text().splitlines()
        (base / "south/columns.csv").write_text("\n".join([header, *reversed(rows)]) + "\n")
        assert "in the same order" in self.refusal(self.publish, base, "south")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda path: path.write_text(path.read_text().replace("\n3,", "\n3,high", 1)), "high"),
            (lambda path: path.write_text(""), "no CSV file with a header"),
            (lambda path: path.unlink(), ""),
        ],
        ids=["a word for a number", "empty", "missing"],
    )
    def test_damaged_columns(self, base, change, words):
        change(base / "north/columns.csv")
        message = self.refusal(self.publish, base, "north")
        assert "north/columns.csv" in message
        assert words in message


class TestReadme:
    def test_its_python_runs(self):
        X, y = load_wine(return_X_y=True)
        ran = {}
        for block in blocks_run_by(__file__):
            names = {"X": X, "y": np.where(y == 0, "no", "yes")}
            exec(compile(block.text, block.page, "exec"), names)
            assert names["model"].guarantee_.status == "proved"
            ran[block.page] = names["model"].recipe_
        assert set(ran) == {"README.md", "docs/python.md"}
        assert all("rows for one unit of noise" in recipe for recipe in ran.values())

    def test_its_dataset_of_ones_own_is_valid(self, tmp_path, monkeypatch):
        params = yaml.safe_load((REPOSITORY / "params.yaml").read_text())
        page = (REPOSITORY / "docs/change.md").read_text()
        block = re.search(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
        params["datasets"] |= yaml.safe_load(block)["datasets"]
        (tmp_path / "data/own").mkdir(parents=True)
        (tmp_path / "data/own/patients.csv").write_text("age,diagnosis\n30,no\n60,yes\n")
        monkeypatch.chdir(tmp_path)
        checked = check_params(params)
        assert checked.datasets["my_patients"]["classes"] == ["no", "yes"]
