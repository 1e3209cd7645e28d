"""tools/prepare.py on a small project whose `uv` is a script that logs its calls."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from tests.scripts import REPOSITORY

UV = """#!/bin/sh
echo "$@" >> uv.log
while [ -e hold ]; do sleep 0.05; done
echo installed >> uv.log
"""
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
PROJECT = """[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
dependencies = []
[tool.setuptools]
"""
BACKEND = """import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{folder}/tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return "tiny-1-py3-none-any.whl"
"""


class Clone:
    """A folder with the files that `tools/prepare.py` reads."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "tools").mkdir(parents=True)
        shutil.copy(REPOSITORY / "tools/prepare.py", folder / "tools")
        wheel = folder / "uv-1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as file:
            script = zipfile.ZipInfo("uv-1.data/scripts/uv")
            script.external_attr = 0o100755 << 16
            file.writestr(script, UV)
            file.writestr("uv-1.dist-info/METADATA", METADATA.format(name="uv"))
            file.writestr("uv-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr("uv-1.dist-info/RECORD", "")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (folder / "requirements.lock").write_text(f"a==1\nuv==1 \\\n    --hash=sha256:{digest}\nz==1\n")
        (folder / "requirements-dev.lock").write_text("b==1\n")
        (folder / "pyproject.toml").write_text(PROJECT)
        (folder / "backend.py").write_text(BACKEND)
        (folder / "privsvm").mkdir()
        (folder / "privsvm/warm_up.py").write_text("")

    def start(self, *arguments: str) -> subprocess.Popen:
        environment = {
            "PATH": "/usr/bin:/bin",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": ".",
            "PIP_CONFIG_FILE": "/dev/null",
        }
        command = [sys.executable, "tools/prepare.py", *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True)

    def prepare(self, *arguments: str) -> str:
        process = self.start(*arguments)
        output, _ = process.communicate()
        assert process.returncode == 0, output
        return output

    def log(self) -> list[str]:
        """Read the calls of uv, and where they ended."""
        log = self.folder / "uv.log"
        return log.read_text().splitlines() if log.exists() else []

    def installs(self) -> int:
        """Count the installations by uv."""
        return self.log().count("installed")

    def environment(self) -> Path:
        assert (self.folder / ".venv").is_symlink()
        subprocess.run([self.folder / ".venv/bin/python", "-c", "pass"], check=True)
        return (self.folder / ".venv").resolve()


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path / "it's a clone")


def test_an_environment_follows_contents_not_times(clone):
    """The old environment remains usable."""
    assert "Preparing" in clone.prepare()
    first = clone.environment()
    for name in ("pyproject.toml", "requirements.lock"):
        (clone.folder / name).touch()
    (clone.folder / "pyproject.toml").write_text(PROJECT + "[tool.ruff]\n")
    assert clone.prepare() == ""
    assert clone.environment() == first
    (clone.folder / "pyproject.toml").write_text(PROJECT.replace("[]\n[tool", "['c']\n[tool"))
    assert "Preparing" in clone.prepare()
    assert clone.environment() != first
    subprocess.run([first / "bin/python", "-c", "pass"], check=True)
    assert clone.installs() == 2


def test_own_packages_are_in_every_environment(clone):
    clone.prepare()
    own = clone.folder / "requirements-own.txt"
    own.write_text("-e ../mine\n")
    assert "Installing requirements-own.txt" in clone.prepare()
    first = clone.environment()
    assert clone.prepare() == ""
    # Another version of the locks is another environment, which has them too.
    (clone.folder / "requirements.lock").write_text((clone.folder / "requirements.lock").read_text() + "q==1\n")
    clone.prepare()
    assert clone.environment() != first
    calls = [line for line in clone.log() if "requirements-own.txt" in line]
    assert len(calls) == 2
    assert all(line.endswith("requirements-dev.lock") for line in calls)
    own.write_text("-e ../other\n")
    assert "Installing requirements-own.txt" in clone.prepare("dev")


def test_make_says_that_there_is_no_environment(clone):
    """In a new clone, and while the first preparation is under way."""
    shutil.copy(REPOSITORY / "Makefile", clone.folder)
    command = ["make", f"PYTHON={sys.executable}", "status"]
    # The tests may have been started by make, which says so.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for goal in ("status", "check"):
        command[-1] = goal
        done = subprocess.run(command, cwd=clone.folder, env=environment, capture_output=True, text=True)
        assert done.returncode != 0
        assert done.stderr.splitlines()[0] == "error: no environment yet: run make run"
        assert done.stdout == ""
    clone.prepare()
    assert clone.prepare("look") == ""


def test_tools_come_on_top_and_stay(clone):
    clone.prepare("dev")
    environment = clone.environment()
    assert clone.installs() == 2
    assert clone.prepare() == clone.prepare("dev") == ""
    assert clone.environment() == environment
    (clone.folder / "requirements-dev.lock").write_text("b==2\n")
    assert clone.prepare() == ""
    assert "Adding" in clone.prepare("dev")
    assert clone.environment() == environment


def test_two_at_once_prepare_once(clone):
    hold = clone.folder / "hold"
    hold.touch()
    processes = [clone.start(), clone.start()]
    time.sleep(2)
    hold.unlink()
    outputs = sorted(process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0] == ""
    assert clone.installs() == 1
    clone.environment()


def test_a_killed_preparation_runs_again_after_its_installer(clone):
    hold = clone.folder / "hold"
    hold.touch()
    process = clone.start()
    while not clone.log():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    # Its installer goes on, and holds its output open.
    process.wait()
    process = clone.start()
    # Time to begin, had it not to wait.
    time.sleep(2)
    hold.unlink()
    process.communicate()
    assert process.returncode == 0
    assert [line == "installed" for line in clone.log()] == [False, True, False, True]
    clone.environment()
