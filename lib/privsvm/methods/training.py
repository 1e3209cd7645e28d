"""Train one method on every split of one dataset, and store what it released."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privsvm.data.prepare import PreparedData
from privsvm.errors import PrivSVMError
from privsvm.files import read_json, read_npz, write_json, write_npz
from privsvm.methods.released import ReleasedPath, path_from_arrays
from privsvm.methods.validation import INFERRED_CLASSES
from privsvm.privacy.guarantee import Guarantee
from privsvm.streams import seeded_stream

__all__ = ["load_paths", "record_header", "save_paths", "train_paths", "training_rows"]


_PUBLIC_SIZE = "n_rows is the size of the benchmark's training set: public, and the same for both neighbours"
_FIXED_SPLIT = "neighbouring data sets are training sets: how the rows were split is fixed and public"


def training_rows(prepared: PreparedData, condensed: Mapping[str, np.ndarray], split: int) -> tuple[Any, np.ndarray]:
    """Training rows of one split, after condensation.

    Parameters
    ----------
    prepared : PreparedData
        The dataset.
    condensed : mapping of str to ndarray
        The condense stage's file: for ``none`` only the word; else ``X_<s>`` and ``y_<s>``.
    split : int
        Index of the split.

    Returns
    -------
    X : ndarray or CSR matrix (n, d)
    y : ndarray of int (n,)
    """
    if str(condensed["condense"]) == "none":
        rows = prepared.split(split)
        return rows.X_train, rows.y_train
    return condensed[f"X_{split}"], condensed[f"y_{split}"]


def _broken_assumptions(prepared: PreparedData, condense: str) -> list[str]:
    """List what the data's preparation took from private rows, so that no method's proof covers it."""
    description = prepared.description
    broken = []
    origin = description["scaling"]["origin"]
    if origin not in ("none", "declared"):
        broken.append(f"the scaling ({description['scaling']['kind']}) was taken from {origin}, which are private")
    if description["classes_origin"] != "declared":
        broken.append(INFERRED_CLASSES)
    if description["prescaled"]:
        broken.append("the published file was scaled by statistics of its own rows")
    if description["missing"]["columns_dropped"]:
        broken.append("columns were dropped because of missing values in private rows")
    if description["n_features_origin"] != "declared":
        broken.append("the number of features was taken from the private rows")
    if condense != "none":
        broken.append(f"the rows were condensed ({condense}), which has no bounded sensitivity")
    return broken


def _estimator(
    implementation: str, parameters: Mapping[str, Any], privacy: Mapping[str, Any], n_classes: int, n_rows: int
):
    """Build the estimator of a method file, handing it those common parameters it knows."""
    estimator_class = importlib.import_module(f"privsvm.methods.{implementation}").ESTIMATOR
    common = {
        "classes": list(range(n_classes)),
        "delta": privacy["delta"],
        "neighbours": privacy["neighbours"],
        # The size of a benchmark's training set is public: it follows from the dataset's and the protocol.
        "n_rows": n_rows,
    }
    known = inspect.signature(estimator_class).parameters
    return estimator_class(**{name: value for name, value in common.items() if name in known}, **parameters)


def train_paths(
    prepared: PreparedData,
    condensed: Mapping[str, np.ndarray],
    method: str,
    job: Mapping[str, Any],
) -> tuple[list[ReleasedPath], dict[str, list[float]]]:
    """Train one method on every split.

    Parameters
    ----------
    prepared : PreparedData
        The dataset and its S splits.
    condensed : mapping of str to ndarray
        See `training_rows`.
    method : str
        Name of the method's entry; part of the key of its noise streams.
    job : mapping
        ``experiment, seed, implementation, parameters, privacy`` (epsilons, delta, neighbours, repeats)
        and ``condense``.

    Returns
    -------
    paths : list of ReleasedPath (S)
    seconds : dict of str to list (S)
        ``fit_seconds`` and ``release_seconds``, as the paths carry them.

    Raises
    ------
    PrivSVMError
        One line, for parameters the method refuses.
    """
    privacy = job["privacy"]
    dataset = prepared.description["dataset"]
    broken = _broken_assumptions(prepared, str(condensed["condense"]))
    n_classes = len(prepared.description["classes"])
    paths: list[ReleasedPath] = []
    for split in range(prepared.n_splits):
        X, y = training_rows(prepared, condensed, split)

        def stream(epsilon: float, repeat: int, split: int = split) -> np.random.Generator:
            purpose = ("noise", job["experiment"], dataset, method, split, float(epsilon), repeat)
            return seeded_stream(job["seed"], *purpose)

        estimator = _estimator(job["implementation"], job["parameters"], privacy, n_classes, X.shape[0])
        try:
            # One audit per dataset is enough, and it costs a few more solves.
            path = estimator.release_path(X, y, privacy["epsilons"], privacy["repeats"], stream, audit=split == 0)
        except ValueError as error:
            raise PrivSVMError(f"methods.{method} on {dataset}: {error}") from None
        guarantees = tuple(guarantee.with_assumption(_FIXED_SPLIT) for guarantee in path.guarantees)
        if hasattr(estimator, "n_rows"):
            guarantees = tuple(guarantee.with_assumption(_PUBLIC_SIZE) for guarantee in guarantees)
        for reason in broken:
            guarantees = tuple(guarantee.with_broken_assumption(reason) for guarantee in guarantees)
        paths.append(dataclasses.replace(path, guarantees=guarantees))
    return paths, {
        "fit_seconds": [path.fit_seconds for path in paths],
        "release_seconds": [path.release_seconds for path in paths],
    }


def record_header(method: str, job: Mapping[str, Any], description: Mapping[str, Any], n_train: int) -> dict[str, Any]:
    """Say what the models of one job are of: the part of their record that is known beforehand.

    Parameters
    ----------
    method : str
        Name of the method's entry.
    job : mapping
        See `train_paths`.
    description : mapping
        Of the prepared data: ``dataset, digest, protocol, classes, n_features``.
    n_train : int
        Training rows, of the largest split.

    Returns
    -------
    dict
    """
    return {
        "experiment": job["experiment"],
        "method": method,
        "implementation": job["implementation"],
        "parameters": job["parameters"],
        "condense": job["condense"],
        "delta": job["privacy"]["delta"],
        "neighbours": job["privacy"]["neighbours"],
        "dataset": description["dataset"],
        "dataset_digest": description["digest"],
        "protocol": description["protocol"],
        "classes": description["classes"],
        "n_features": description["n_features"],
        "n_train": n_train,
    }


def save_paths(paths: list[ReleasedPath], models: str | Path, record: str | Path, header: Mapping[str, Any]) -> None:
    """Store the paths of all splits as arrays and a record.

    Parameters
    ----------
    paths : list of ReleasedPath (S)
        One per split.
    models, record : path-like
        The ``.npz`` and ``.json`` to write.
    header : mapping
        What the record says besides, see `record_header`.
    """
    arrays = {f"{split}.{name}": array for split, path in enumerate(paths) for name, array in path.arrays().items()}
    first = paths[0]
    write_npz(models, arrays)
    write_json(
        record,
        {
            **header,
            "kind": first.kind,
            "epsilons": first.epsilons,
            "repeats": first.n_repeats,
            "n_splits": len(paths),
            "n_classes": first.n_classes,
            # Those of split 0, where the witness is computed. Where another split has another number of rows, its
            # sensitivity, its noise, its sample rate and the gap among its assumptions may differ a little.
            "guarantees": [guarantee.to_dict() for guarantee in first.guarantees],
            "objective": [path.objective for path in paths],
            "n_support": [path.n_support for path in paths],
            "n_iter": [path.n_iter for path in paths],
        },
    )


def load_paths(models: str | Path, record: str | Path) -> tuple[list[ReleasedPath], dict[str, Any]]:
    """Read what `save_paths` wrote.

    Returns
    -------
    paths : list of ReleasedPath (S)
    record : dict
    """
    arrays, header = read_npz(models), read_json(record)
    guarantees = tuple(Guarantee.from_dict(item) for item in header["guarantees"])
    paths = []
    for split in range(header["n_splits"]):
        prefix = f"{split}."
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        paths.append(
            path_from_arrays(
                header["kind"],
                own,
                epsilons=tuple(float(epsilon) for epsilon in header["epsilons"]),
                guarantees=guarantees,
                n_classes=header["n_classes"],
                objective=header["objective"][split],
                n_support=header["n_support"][split],
                n_iter=header["n_iter"][split],
            )
        )
    return paths, header
