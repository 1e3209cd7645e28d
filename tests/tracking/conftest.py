"""Synthetic result files that follow docs/files.md."""

import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.once import make_once
from tests.reporting.synthetic_results import make_guarantee, make_result

from privsvm import PrivateLinearClassifier
from privsvm.files import write_json
from privsvm.privacy.statement import theorem_holds
from privsvm_bench.jobs.job import TrainJob
from privsvm_bench.jobs.model_files import model_record, save_paths
from privsvm_bench.metrics import METRICS
from privsvm_bench.records import seal
from privsvm_bench.tracking.mlflow_log import log_results

EPSILONS = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0]
N_SPLITS, REPEATS = 2, 3
ROWS = np.random.default_rng(0).uniform(-1, 1, (3000, 12))

WriteResult = Callable[..., tuple[Path, list[Path]]]


def result_content(
    method: str,
    dataset: str = "wine",
    status: str = "seeded",
    epsilons: Sequence[float | str] = EPSILONS,
    level: float = 0.9,
    parameters: dict[str, Any] | None = None,
    experiment: str = "demo",
) -> dict[str, Any]:
    """A result file: accuracy rises with epsilon up to `level`; ``["inf"]`` makes a method without privacy."""
    private = list(epsilons) != ["inf"]
    means = [level - 0.5 / (1 + float(epsilon)) if private else level for epsilon in epsilons]
    reason = None if theorem_holds(status) else "the scale is taken from the data"
    guarantees = [make_guarantee(method, status, epsilon, witness=None, reason=reason) for epsilon in epsilons]
    return make_result(
        dataset, method, status, tuple(epsilons), N_SPLITS, experiment=experiment,
        parameters=parameters or {"C": 1.0, "kernel": "linear"}, repeats=REPEATS, guarantees=guarantees,
        metrics={name: [[[mean] * REPEATS for mean in means]] * N_SPLITS for name in METRICS},
        summary={name: dict.fromkeys(("mean", "low", "high"), means) | {"sd": [0.02] * len(means)} for name in METRICS},
        objective=[1.5] * N_SPLITS, n_support=[10] * N_SPLITS, dataset_digest="d" * 64,
    ) | {"epsilons": list(epsilons)}  # fmt: skip


@pytest.fixture(scope="session")
def made_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without runs, made once: that takes longer than most of the tests."""
    made = make_once(
        tmp_path_factory, "database", lambda folder: log_results([], f"sqlite:///{folder}/mlflow.db", "abc")
    )
    return made / "mlflow.db"


@pytest.fixture
def new_uri(tmp_path: Path) -> str:
    """A database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


@pytest.fixture
def uri(new_uri: str, tmp_path: Path, made_database: Path) -> str:
    """A database without runs."""
    shutil.copy(made_database, tmp_path / "mlflow.db")
    return new_uri


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Models of one job, some with features and some without, and their path."""
    epsilons, codes = [0.1, 1.0, 30.0], (ROWS[:, 0] ** 2 > 0.4).astype(int)
    method = PrivateLinearClassifier(epsilon=1.0, classes=[0, 1], bounds=(-1, 1))
    path = method.release_path(ROWS, codes, epsilons, 2, 7)
    job = TrainJob(
        condense="none", experiment="demo", implementation="recommended", method="recommended", parameters={}, seed=7,
        epsilons=tuple(epsilons), delta=1e-5, neighbours="add_remove", repeats=2,
    )  # fmt: skip
    described = {"dataset": "wine", "digest": "d" * 64, "protocol": {}, "classes": ["no", "yes"], "n_features": 12}
    file = tmp_path_factory.mktemp("models") / "wine.npz"
    save_paths([path], file, file.with_suffix(".json"), model_record(job, described, 3000, [path]))
    return file, path


@pytest.fixture
def write_result(tmp_path: Path) -> WriteResult:
    """Write a result file and its timings below ``tmp_path/data``; arguments as of `result_content`."""

    def write(method: str, dataset: str = "wine", **options: Any) -> tuple[Path, list[Path]]:
        data = tmp_path / "data"
        path = data / "results" / method / f"{dataset}.json"
        write_json(path, seal(result_content(method, dataset, **options)))
        train = data.parent / "logs/timings" / method / f"{dataset}.train.json"
        evaluate = data.parent / "logs/timings" / method / f"{dataset}.evaluate.json"
        seconds = 0.2 + math.log(len(method))
        write_json(train, {"fit_seconds": [seconds, seconds + 0.5], "release_seconds": [0.25, 0.75]})
        write_json(evaluate, {"predict_seconds": [0.1, 0.3], "rows_predicted": [58, 58]})
        return path, [train, evaluate]

    return write


@pytest.fixture
def wine_results(write_result: WriteResult) -> list[tuple[Path, list[Path]]]:
    """Two methods without privacy and the published and repaired form of a private one, on one dataset."""
    return [
        write_result("svm", status="none", epsilons=["inf"], level=0.97),
        write_result("majority", status="none", epsilons=["inf"], level=0.4),
        write_result("pmsvm_wp", level=0.93),
        write_result("pmsvm_wp_as_published", status="claimed", level=0.96),
    ]
