"""Jobs import only packages that they use: importing SciPy and scikit-learn takes longer than most jobs."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.processes import run_python
from tests.scripts import REPOSITORY

from privsvm.base.feature_steps import Step
from privsvm.base.released import ConstantPath, LinearPath
from privsvm.digests import canonical_json
from privsvm.privacy.gate import Guarantee
from privsvm_bench.datasets.prepare import write_prepared
from privsvm_bench.jobs.job import TrainJob
from privsvm_bench.jobs.model_files import model_record, save_paths

HEAVY = {"dp_accounting", "highspy", "mlflow", "numba", "pandas", "scipy", "sklearn"}


def heavy_imports(script, *arguments):
    """Run a stage in a subprocess; return the large packages that it imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", f"stages/{script}", *map(str, arguments)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    times = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    others = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 0, "\n".join(others)
    loaded = {line.rsplit("|")[-1].strip().split(".")[0] for line in times}
    assert "privsvm" in loaded
    return loaded & HEAVY


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    rng = np.random.default_rng(0)
    arrays = {
        "X": rng.normal(size=(20, 3)), "y": np.arange(20) % 2, "scale_shift": np.zeros((1, 3)),
        "scale_factor": np.ones((1, 3)), "train_0": np.arange(12), "test_0": np.arange(12, 20),
    }  # fmt: skip
    description = {
        "dataset": "small", "n_rows": 20, "n_features": 3, "n_splits": 1, "sparse": False, "classes": ["a", "b"],
        "protocol": {"kind": "holdout"},
    }  # fmt: skip
    write_prepared(folder / "small.npz", folder / "small.json", arrays, description)
    return folder / "small.npz"


def a_path(cls, **arrays):
    guarantee = Guarantee(status="none", mechanism="none", reference="none")
    return cls(epsilons=(float("inf"),), guarantees=(guarantee,), n_classes=2, **arrays)


LINEAR = {"coef": np.ones((1, 1, 1, 3)), "intercept": np.zeros((1, 1, 1))}
STEPS = (
    Step("unit"), Step("direction", {"centre": np.ones((1, 1, 3))}),
    Step("standardise", {"centre": np.zeros((1, 1, 3)), "spread": np.ones((1, 1, 3)), "bound": np.ones(1)}),
    Step("fourier", {"frequencies": np.ones((3, 4)), "count": np.full((1, 1), 4), "beside": np.ones(1)}),
)  # fmt: skip
PATHS = {
    "linear": a_path(LinearPath, **LINEAR),
    "steps": a_path(LinearPath, coef=np.ones((1, 1, 1, 11)), intercept=np.zeros((1, 1, 1)), steps=STEPS),
    "constant": a_path(ConstantPath, class_scores=np.ones((1, 1, 2))),
}


def save(path, folder):
    privacy = {"delta": 1e-5, "epsilons": [1.0], "neighbours": "replace_one", "repeats": 1}
    job = TrainJob(
        condense="none", experiment="test", implementation="svm", method="svm", parameters={}, seed=0, **privacy
    )
    description = {"dataset": "small", "digest": "0" * 64, "protocol": {}, "classes": ["a", "b"], "n_features": 3}
    record = model_record(job, description, 12, [path])
    save_paths([path], folder / "small.npz", folder / "small.model.json", record)


@pytest.mark.parametrize("kind", PATHS)
def test_evaluating_a_linear_model_needs_numpy(kind, prepared, tmp_path):
    save(PATHS[kind], tmp_path)
    assert not heavy_imports(
        "evaluate.py", "--prepared", prepared, "--models", tmp_path / "small.npz",
        "--record", tmp_path / "small.model.json", "--results", tmp_path / "small.json",
        "--timings", tmp_path / "small.evaluate.json",
    )  # fmt: skip
    assert json.loads((tmp_path / "small.json").read_text())["n_test"] == 8


def test_passing_rows_on_that_are_not_condensed_needs_numpy(prepared, tmp_path):
    assert not heavy_imports(
        "condense.py", "--prepared", prepared, "--rows", tmp_path / "rows.npz", "--record", tmp_path / "record.json",
        "--timings", tmp_path / "timings.json",
        "--parameters", canonical_json({"condense": "none", "experiment": "test", "seed": 0}),
    )  # fmt: skip


def test_the_report_and_the_log_train_nothing(prepared, tmp_path):
    """MLflow itself brings SciPy and pandas along."""
    folder = tmp_path / "results/method"
    folder.mkdir(parents=True)
    save(PATHS["linear"], tmp_path)
    heavy_imports(
        "evaluate.py", "--prepared", prepared, "--models", tmp_path / "small.npz",
        "--record", tmp_path / "small.model.json", "--results", folder / "small.json",
        "--timings", tmp_path / "small.evaluate.json",
    )  # fmt: skip
    assert not heavy_imports(
        "report.py", "--results", folder / "small.json", "--output-html", tmp_path / "index.html",
        "--output-metrics", tmp_path / "metrics.json", "--output-curves", tmp_path / "curves.csv",
    )  # fmt: skip
    assert heavy_imports(
        "track.py", "--results", folder / "small.json", "--output", tmp_path / "tracking.json",
        "--parameters", canonical_json({"tracking_uri": f"sqlite:///{tmp_path}/mlflow.db"}),
    ) <= {"mlflow", "pandas", "scipy"}  # fmt: skip


def test_a_trainer_imports_its_own_solver():
    """scikit-learn's base classes bring SciPy and pandas along; no more than that."""
    code = (
        "import sys\nimport privsvm_bench.jobs.training\nfrom privsvm.registry import estimator_class\n"
        "estimator_class('majority')\nprint(*sys.modules)"
    )
    loaded = set(run_python("-c", code, cwd=REPOSITORY).split())
    assert "sklearn.base" in loaded
    assert not loaded & {"dp_accounting", "highspy", "numba", "sklearn.metrics", "sklearn.svm"}
