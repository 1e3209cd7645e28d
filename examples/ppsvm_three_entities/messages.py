"""The messages of the PPSVM protocol, which every party reads, checks and writes.

Messages are mappings of arrays, stored as ``.npz``. docs/ppsvm.md describes the files, and party.py runs each step.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from privsvm.base.released import LinearPath
from privsvm.errors import PrivSVMError
from privsvm.families.one_norm.one_norm_training import check_tuning, count_kernel_rows
from privsvm.families.one_norm.ppsvm_protocol import Entity, combine_blocks
from privsvm.families.one_norm.ppsvm_training import (
    PPSVMParameters,
    PublicKernel,
    ppsvm_guarantee,
    train_on_blocks,
)
from privsvm.files import read_npz, write_npz

Part = Literal["train", "test"]
Arrays = Mapping[str, np.ndarray]


def kernel_agreement(parameters: Mapping[str, Any], columns: Mapping[str, int], n_rows: int) -> dict[str, Any]:
    """Write the agreement before the first block, without any value of a column; docs/ppsvm.md has its keys.

    `parameters` are parameters of `privsvm.PPSVMClassifier`; `columns` has the number of columns of each entity.
    """
    declared = PPSVMParameters.declared
    values = {name: parameters.get(name, item.default) for name, item in declared.items()}
    kernel, gamma = values["kernel"], values["gamma"]
    for name, count in columns.items():
        if count < 1:
            raise PrivSVMError(f"{name} has no column; have fewer entities, or give it one")
    n_features = sum(columns.values())
    try:
        for name, value in values.items():
            declared[name].constraint.check(name, value)
        check_tuning(kernel, values["C"], gamma)
        mbar = count_kernel_rows(values["mbar"], n_rows)
    except ValueError as error:
        raise PrivSVMError(str(error)) from None
    published = 1.0 / n_features if isinstance(gamma, str) else float(gamma)
    return {
        "kernel": kernel,
        "gamma": published if kernel == "gaussian" else None,
        "standardize": values["standardize"],
        "rows": n_rows,
        "mbar": mbar,
        "n_features": n_features,
        "entities": [{"name": name, "columns": count} for name, count in columns.items()],
    }


def rows_digest(*texts: Sequence[Any] | np.ndarray) -> str:
    """Digest labels or identifiers of rows, as text and in their order: all entities must have the same.

    The SHA-256 hides nothing from who can guess the rows, and is meant for parties that know them.
    """
    digest = hashlib.sha256(len(texts).to_bytes(8, "little"))
    for row in zip(*texts, strict=True):
        for text in row:
            word = str(text).encode()
            digest.update(len(word).to_bytes(8, "little") + word)
    return digest.hexdigest()


def draw_secrets(
    columns: np.ndarray, agreement: Mapping[str, Any], entity: str, stream: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw the secrets of one entity: ``centre``, ``spread`` (n_j,) and ``random_matrix`` (mbar, n_j).

    `columns` has shape (n, n_j). The `stream` is `system_stream` of privsvm.numerics.noise.streams, seeded in a test.
    """
    _check_columns(columns, agreement, entity, "train")
    return dataclasses.asdict(Entity.draw(columns, agreement["mbar"], stream, agreement["standardize"]))


def make_block(
    columns: np.ndarray, secrets: Arrays, agreement: Mapping[str, Any], entity: str, part: Part,
    digest: str | None = None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Make one entity's public message about its `columns` (n, n_j) of some rows.

    Returns ``entity`` (its name), the block ``<part>`` (n, mbar) and, with a `digest` (`rows_digest`) for the reader to
    compare, ``rows``.
    """
    _check_columns(columns, agreement, entity, part)
    try:
        block = Entity(**secrets).publish(columns, agreement["kernel"], agreement["gamma"] or math.nan)
    except (TypeError, ValueError) as error:
        raise PrivSVMError(f"{entity}: its secrets do not fit its columns ({error}); draw them again") from None
    return {"entity": np.array(entity), part: block, **({} if digest is None else {"rows": np.array(digest)})}


def _check_columns(columns: np.ndarray, agreement: Mapping[str, Any], entity: str, part: Part) -> None:
    """Check one entity's columns against the agreement."""
    counts = {item["name"]: item["columns"] for item in agreement["entities"]}
    if entity not in counts:
        raise PrivSVMError(f"{entity}: is not among the entities of the agreement ({', '.join(counts)})")
    n_rows, n_columns = columns.shape
    if n_columns != counts[entity]:
        raise PrivSVMError(f"{entity}: it has {n_columns} columns, agreed were {counts[entity]}; make its file again")
    if not np.isfinite(columns).all():
        row, column = np.argwhere(~np.isfinite(columns))[0]
        value = columns[row, column]
        raise PrivSVMError(f"{entity}: row {row} of its column {column} holds {value}; fill or drop it at all entities")
    if part == "train" and n_rows != agreement["rows"]:
        held = f"it has {n_rows} training rows, agreed were {agreement['rows']}"
        raise PrivSVMError(f"{entity}: {held}; all entities must hold the same rows in the same order")


def combine_messages(
    messages: Mapping[str, Arrays], agreement: Mapping[str, Any], part: Part, digest: str | None = None
) -> np.ndarray:
    """Combine the messages of all entities, by the file each came in, into the public kernel (n, mbar).

    Their digests, if any, must equal the `digest` of the reader's rows.
    """
    names = [item["name"] for item in agreement["entities"]]
    by_name: dict[str, Arrays] = {}
    for source, message in messages.items():
        name = str(message.get("entity", "nobody"))
        if name not in names:
            raise PrivSVMError(f"{source}: is of {name!r}, who is not in the agreement ({', '.join(names)})")
        if name in by_name:
            raise PrivSVMError(f"{source}: a second message of {name}; hand in one of each entity")
        by_name[name] = message
    missing = [name for name in names if part not in by_name.get(name, ())]
    if missing:
        raise PrivSVMError(f"{', '.join(missing)}: has published no block of the {part} rows; wait for it")
    _check_digests({name: str(message["rows"]) for name, message in by_name.items() if "rows" in message}, digest)
    try:
        kernel = combine_blocks({name: by_name[name][part] for name in names}, agreement["kernel"])
    except ValueError as error:
        raise PrivSVMError(str(error)) from None
    agreed = (agreement["rows"] if part == "train" else len(kernel), agreement["mbar"])
    if kernel.shape != agreed:
        blocks = f"the blocks of {', '.join(names)} have shape {kernel.shape}, agreed was {agreed}"
        raise PrivSVMError(f"{blocks}; publish again by the present agreement")
    return kernel


def _check_digests(digests: Mapping[str, str], own_digest: str | None) -> None:
    """Refuse messages about different rows or labels."""
    groups: dict[str, list[str]] = {}
    for name, digest in {**digests, **({} if own_digest is None else {"the reader": own_digest})}.items():
        groups.setdefault(digest, []).append(name)
    if len(groups) > 1:
        most, *others = sorted(groups.values(), key=len, reverse=True)
        fewest = ", ".join(name for group in others for name in group)
        differ = f"the labels, or the order of rows, of {fewest} differ from those of {', '.join(most)}"
        raise PrivSVMError(f"{differ}; agree on both and publish again")


class AgreedLabels(NamedTuple):
    """Labels that all entities know: class codes (n,), and their digest, to compare with the messages'."""

    codes: np.ndarray
    n_classes: int
    digest: str | None = None


def train_on_messages(
    messages: Mapping[str, Arrays],
    labels: AgreedLabels,
    agreement: Mapping[str, Any],
    C: float | str,
    gamma: float | str,
    stream: np.random.Generator,
) -> LinearPath:
    """Train on the messages of all entities, by the file each came in; C and gamma are as in `PPSVMClassifier`.

    The `stream` draws the rows that parameters are chosen on. Nothing private depends on it.
    """
    kernel = agreement["kernel"]
    block = combine_messages(messages, agreement, "train", labels.digest)
    if labels.codes.shape != (len(block),):
        raise PrivSVMError(f"there are {labels.codes.size} labels and {len(block)} rows in the blocks")
    started = time.perf_counter()
    public = PublicKernel(kernel, agreement["gamma"] or math.nan)
    try:
        PPSVMParameters.declared["C"].constraint.check("C", C)
        model, arrays = train_on_blocks(block, labels.codes, labels.n_classes, public, C, gamma == "tune", stream)
    except ValueError as error:
        raise PrivSVMError(str(error)) from None
    return LinearPath(
        epsilons=(math.inf,),
        guarantees=(dataclasses.replace(ppsvm_guarantee(kernel), randomness="system"),),
        n_classes=labels.n_classes,
        objective=model.objective,
        n_iter=model.n_iter,
        fit_seconds=time.perf_counter() - started,
        **arrays,
    )


def write_private(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Write arrays that no other user may read: the file gets mode 0600 and its folder 0700."""
    folder = Path(path).parent
    # From the first byte on, not after the file is complete.
    before = os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        write_npz(path, arrays)
    finally:
        os.umask(before)


def read_private(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read what `write_private` wrote; refuse a file that others may read."""
    arrays = read_npz(path)
    mode = Path(path).stat().st_mode & 0o777
    if mode & 0o077:
        raise PrivSVMError(f"{path}: others may read it (mode {mode:04o}); run chmod 600 on it, and draw new secrets")
    return arrays
