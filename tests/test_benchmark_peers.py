"""Libraries whose requirements conflict with ours get separate environments on demand."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture
def environments(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "bench")
    import peer_environments

    yield peer_environments
    del sys.modules["peer_environments"]


def test_an_environment_is_made_once_by_the_hashes_of_its_lock(environments, monkeypatch, tmp_path):
    commands = []

    def run(command, check):
        commands.append([str(word) for word in command])
        python = tmp_path / "opacus/bin/python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()

    monkeypatch.setenv("PRIVSVM_PEERS", str(tmp_path))
    monkeypatch.setattr(environments.subprocess, "run", run)
    python = environments.peer_python("opacus")
    assert python == environments.peer_python("opacus") == tmp_path / "opacus/bin/python"
    made, installed = commands
    assert made[:2] == ["uv", "venv"]
    assert "--require-hashes" in installed
    assert "\nopacus==" in Path(installed[-1]).read_text()


def test_every_environment_has_a_lock(environments):
    requested = {path.stem for folder in ("utility", "audit") for path in REPOSITORY.glob(f"bench/{folder}/peers/*.in")}
    assert requested
    assert requested == set(environments.LOCKS)


def test_audits_of_peers_load_without_our_packages():
    program = REPOSITORY / "bench" / "audit" / "run_peers.py"
    shown = subprocess.run([sys.executable, "-I", "-S", program, "--help"], capture_output=True, text=True)
    assert "--here" in shown.stdout, shown.stderr
