"""The fixture `privsvm_audit` passes a sound estimator and fails a broken one, with the bounds in its message."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

TESTS = """
import numpy as np

class Count:
    epsilon = 1.0

    def __init__(self, scale):
        self.scale = scale

    def fit(self, X, y):
        self.count_ = y.sum() + np.random.default_rng().laplace(0.0, self.scale)
        return self

    def predict(self, X):
        return np.zeros(len(X))

def test_sound(privsvm_audit):
    assert privsvm_audit(Count(1.0), draws=400).epsilon == 1.0

def test_broken(privsvm_audit):
    privsvm_audit(lambda: Count(0.01), epsilon=1.0, draws=600)
"""


def test_one_fixture_makes_one_assertion(tmp_path):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugin = project["entry-points"]["pytest11"]["privsvm"]
    (tmp_path / "test_counts.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "-q", "test_counts.py"]
    # Where the library is installed, its entry point loads the plug-in, too.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "REFUTED: replace_one" in done.stdout
    # The traceback ends in the test.
    assert "def not_refuted" not in done.stdout
