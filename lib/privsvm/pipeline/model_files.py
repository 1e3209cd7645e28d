"""The files of one job's models: what its method released on every split of one dataset, and the record of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privsvm.base.released import ReleasedPath, path_from_arrays
from privsvm.files import read_json, read_npz, write_json, write_npz
from privsvm.privacy.guarantee import Guarantee

__all__ = ["load_paths", "record_header", "save_paths"]


def record_header(
    method: str,
    job: Mapping[str, Any],
    description: Mapping[str, Any],
    n_train: int,
    attacks: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Say what the models of one job are of: the part of their record that is known beforehand.

    Parameters
    ----------
    method : str
        Name of the method's entry.
    job : mapping
        See `privsvm.pipeline.training.train_paths`.
    description : mapping
        Of the prepared data: ``dataset, digest, protocol, classes, n_features``.
    n_train : int
        Training rows, of the largest split.
    attacks : sequence of mapping, default=()
        What attacks on the condensed rows that it was trained on found.

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
        "attacks": list(attacks),
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
