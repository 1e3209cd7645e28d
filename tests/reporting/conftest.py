"""Writes whole synthetic experiments to disk."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import METHODS, make_prepared, make_result

from privsvm_bench.records import seal


@pytest.fixture
def write_experiment(tmp_path: Path) -> Callable[..., dict[str, list[str]]]:
    """Write a whole experiment's files; returns the argument lists of the stage."""

    def write(
        datasets: tuple[str, ...] = ("breast_cancer", "wine", "digits"),
        methods: dict[str, str] | None = None,
        change: Callable[[dict[str, Any]], dict[str, Any]] = lambda record: record,
    ) -> dict[str, list[str]]:
        files: dict[str, list[str]] = {"results": [], "timings": [], "prepared": []}

        def save(kind: str, path: Path, record: dict[str, Any]) -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record), encoding="utf-8")
            files[kind].append(str(path))

        for position, dataset in enumerate(datasets):
            for method, status in (methods or METHODS).items():
                record = change(make_result(dataset, method, status))
                # Names may hold any character; a path cannot hold a slash.
                folder, name = method.replace("/", "_"), dataset.replace("/", "_")
                save("results", tmp_path / "results" / folder / f"{name}.json", seal(record))
                timing = {"fit_seconds": [0.5, 0.7], "release_seconds": [0.01, 0.02]}
                save("timings", tmp_path / "timings" / folder / f"{name}.train.json", timing)
                timing = {"predict_seconds": [0.1, 0.1], "rows_predicted": [100, 100]}
                save("timings", tmp_path / "timings" / folder / f"{name}.evaluate.json", timing)
            prepared = make_prepared(dataset, "declared" if position else "data")
            save("prepared", tmp_path / "prepared" / f"d{position}.json", prepared)
        return files

    return write
