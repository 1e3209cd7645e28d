"""Synthetic result files that follow docs/files.md."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.guarantees import proved_fields
from tests.once import make_once

from privsvm.files import write_json
from privsvm.privacy.statement import theorem_holds
from privsvm_bench.metrics import METRICS
from privsvm_bench.records import seal
from privsvm_bench.tracking.mlflow_log import log_results

EPSILONS = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0]
N_SPLITS, REPEATS = 2, 3

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
    constant = [0.02] * len(means)
    noise = "system" if status == "proved" else "seeded"
    guarantees = [
        {
            "status": status,
            "mechanism": "gaussian" if private else "none",
            "neighbours": "replace_one" if private else None,
            "epsilon_requested": epsilon,
            "epsilon_proved": "inf",
            "epsilon_with_system_noise": "inf",
            "delta": 1e-5 if private else None,
            "sensitivity": 0.5 if private else None,
            "noise_scale": 1 / float(epsilon) if private else None,
            "accountant": "closed form",
            "assumptions": [],
            "reason": None if theorem_holds(status) else "the scale is taken from the data",
            "event": None,
            "randomness": None,
            "facts": None,
            "reference": "",
            "witness": None,
            **(proved_fields(float(epsilon), randomness=noise) if theorem_holds(status) else {}),
        }
        for epsilon in epsilons
    ]
    return {
        "experiment": experiment,
        "method": method,
        "implementation": "privsvm",
        "dataset": dataset,
        "parameters": parameters or {"C": 1.0, "kernel": "linear"},
        "protocol": {"kind": "holdout", "repeats": 2},
        "condense": "none",
        "status": status,
        "delta": 1e-5 if private else None,
        "neighbours": "replace_one" if private else None,
        "epsilons": list(epsilons),
        "repeats": REPEATS,
        "n_splits": N_SPLITS,
        "guarantees": guarantees,
        "metrics": {name: [[[mean] * REPEATS for mean in means]] * N_SPLITS for name in METRICS},
        "summary": {name: {"mean": means, "sd": constant, "low": means, "high": means} for name in METRICS},
        "objective": [1.5] * N_SPLITS,
        "n_support": [10] * N_SPLITS,
        "n_iter": [100] * N_SPLITS,
        "predictions_sha256": "0" * 64,
        "dataset_digest": "d" * 64,
        "n_train": 120,
        "n_test": 58,
        "n_features": 13,
        "n_classes": 3,
        "attacks": [],
    }


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
