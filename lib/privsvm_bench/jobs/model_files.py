"""Files of one job's models: released paths of all splits of one dataset, and their record."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from privsvm.base.released import ReleasedPath, path_from_arrays
from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import missing_file, read_npz, write_npz
from privsvm_bench.jobs.job import TrainJob
from privsvm_bench.records import Attack, ModelRecord, Result, SavedModels, TrainTimings, read, write

_Saved = TypeVar("_Saved", bound=SavedModels)


def collect_fields(paths: Sequence[ReleasedPath]) -> dict[str, Any]:
    """Collect fields of `SavedModels` from the paths of all splits."""
    first = paths[0]
    return {
        "kind": first.kind,
        "epsilons": first.epsilons,
        "repeats": first.n_repeats,
        "n_splits": len(paths),
        "n_classes": first.n_classes,
        # Guarantees of split 0, where the witness is computed. Splits of other sizes may differ a little in
        # sensitivity, noise, sample rate and the gap among the assumptions.
        "guarantees": first.guarantees,
        "objective": tuple(path.objective for path in paths),
        "n_support": tuple(path.n_support for path in paths),
        "n_iter": tuple(path.n_iter for path in paths),
    }


def model_record(
    job: TrainJob,
    description: Mapping[str, Any],
    n_train: int | None,
    paths: Sequence[ReleasedPath],
    attacks: Sequence[Attack] = (),
) -> ModelRecord:
    """Describe the models of one job, with one path for each split.

    `description` is the prepared data's, with ``dataset, digest, protocol, classes, n_features``. `n_train` counts the
    rows of the largest split, see `privsvm_bench.jobs.training.training_sizes`. `attacks` are those on the condensed
    rows or public blocks used in training.
    """
    return ModelRecord(
        experiment=job.experiment,
        method=job.method,
        implementation=job.implementation,
        parameters=job.parameters,
        condense=job.condense,
        delta=job.delta,
        neighbours=job.neighbours,
        dataset=description["dataset"],
        dataset_digest=description["digest"],
        protocol=description["protocol"],
        classes=tuple(description["classes"]),
        n_features=description["n_features"],
        n_train=n_train,
        attacks=tuple(attacks),
        **collect_fields(paths),
    )


def train_timings(paths: Sequence[ReleasedPath]) -> TrainTimings:
    """Collect the seconds that the paths of all splits took."""
    return TrainTimings(
        fit_seconds=tuple(path.fit_seconds for path in paths),
        release_seconds=tuple(path.release_seconds for path in paths),
    )


def save_paths(
    paths: Sequence[ReleasedPath],
    models: str | os.PathLike[str],
    record_path: str | os.PathLike[str],
    record: SavedModels,
) -> None:
    """Store the paths of all splits as arrays (``.npz``) and a record (``.json``), which gets their digest."""
    arrays = {f"{split}.{name}": array for split, path in enumerate(paths) for name, array in path.arrays().items()}
    write_npz(models, arrays)
    write(record_path, dataclasses.replace(record, arrays_sha256=sha256_of_file(models)))


def check_arrays(
    models: str | os.PathLike[str], record: SavedModels | Result, record_path: str | os.PathLike[str]
) -> None:
    """Refuse arrays that do not match a record: cut short, edited, or of another run.

    Raises PrivSVMError, also if the file is missing.
    """
    try:
        digest = sha256_of_file(models)
    except FileNotFoundError:
        raise missing_file(models) from None
    if digest != record.arrays_sha256:
        raise PrivSVMError(
            f"{models}: not the arrays that {record_path} is of (its digest differs); delete both and run again"
        )


def load_paths(
    models: str | os.PathLike[str], record_path: str | os.PathLike[str], form: type[_Saved]
) -> tuple[list[ReleasedPath], _Saved]:
    """Read the paths and record that `save_paths` wrote; `form` is `ModelRecord` for a job of the benchmark.

    Raises PrivSVMError if a file is missing or broken, or the two do not belong together.
    """
    record = read(form, record_path)
    check_arrays(models, record, record_path)
    arrays: dict[str, dict[str, np.ndarray]] = {str(split): {} for split in range(record.n_splits)}
    for key, array in read_npz(models).items():
        split, _, name = key.partition(".")
        if split not in arrays:
            raise PrivSVMError(
                f"{models}: array {key!r} is of none of the {record.n_splits} splits in {record_path}; delete both "
                "files and run again"
            )
        arrays[split][name] = array
    paths = [
        path_from_arrays(
            record.kind,
            split_arrays,
            epsilons=record.epsilons,
            guarantees=record.guarantees,
            n_classes=record.n_classes,
            objective=record.objective[index],
            n_support=record.n_support[index],
            n_iter=record.n_iter[index],
        )
        for index, split_arrays in enumerate(arrays.values())
    ]
    return paths, record
