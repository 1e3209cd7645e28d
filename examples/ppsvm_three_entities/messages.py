"""The messages of the PPSVM protocol, which every party reads, checks and writes.

Messages are mappings of arrays, with one entry for each split, that are stored as ``.npz``. docs/ppsvm.md describes the
files, and party.py runs each step.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

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


def kernel_agreement(
    parameters: Mapping[str, Any], columns: Mapping[str, int], train_rows: Sequence[int], test_rows: Sequence[int]
) -> dict[str, Any]:
    """Write down the agreement of all entities before the first block: public, and without any value of a column.

    `parameters` are parameters of `privsvm.PPSVMClassifier`, its defaults where missing; `columns` the number of
    columns of each entity by its name; `train_rows` and `test_rows` the number of rows of each split, of which fewer to
    predict may follow later. docs/ppsvm.md lists the keys. Raises PrivSVMError for a parameter out of range, more
    random rows than training rows, or an entity with no column.
    """
    declared = PPSVMParameters.declared
    values = {name: parameters.get(name, item.default) for name, item in declared.items()}
    kernel, gamma, standardize = values["kernel"], values["gamma"], values["standardize"]
    for name, count in columns.items():
        if count < 1:
            raise PrivSVMError(f"{name} has no column; have fewer entities, or give it one")
    n_features = sum(columns.values())
    try:
        for name, value in values.items():
            declared[name].constraint.check(name, value)
        check_tuning(kernel, values["C"], gamma)
        mbar = [count_kernel_rows(values["mbar"], rows) for rows in train_rows]
    except ValueError as error:
        raise PrivSVMError(str(error)) from None
    published = 1.0 / n_features if isinstance(gamma, str) else float(gamma)
    return {
        "kernel": kernel,
        "gamma": published if kernel == "gaussian" else None,
        "standardize": standardize,
        "n_splits": len(train_rows),
        "rows": {"train": [int(rows) for rows in train_rows], "test": [int(rows) for rows in test_rows]},
        "mbar": mbar,
        "n_features": n_features,
        "entities": [{"name": name, "columns": count} for name, count in columns.items()],
    }


def rows_digest(*texts: Sequence[Any] | np.ndarray) -> str:
    """Digest of what all entities must have alike in every row: labels, and identifiers where there are any.

    Labels and identifiers are taken as text, and the order of rows counts. The SHA-256 hides nothing from who can guess
    the rows, and is meant for parties that know them.
    """
    digest = hashlib.sha256(len(texts).to_bytes(8, "little"))
    for row in zip(*texts, strict=True):
        for text in row:
            word = str(text).encode()
            digest.update(len(word).to_bytes(8, "little") + word)
    return digest.hexdigest()


def draw_secrets(
    columns: Arrays, agreement: Mapping[str, Any], entity: str, stream: Callable[[int], np.random.Generator]
) -> dict[str, np.ndarray]:
    """Draw the secrets of one entity for every split.

    `columns` holds its own, ``train_<s>`` (n, n_j), and `stream` gives the stream of a split:
    `privsvm.numerics.noise.streams.system_stream` in use, a seeded one in a benchmark. Returns ``centre_<s>,
    spread_<s>`` (n_j,) and ``random_matrix_<s>`` (mbar, n_j). Raises PrivSVMError, naming the entity, if the columns
    are not finite, or not as agreed.
    """
    secrets: dict[str, np.ndarray] = {}
    for split in range(agreement["n_splits"]):
        own_columns = _own_columns(columns, agreement, entity, "train", split)
        try:
            drawn = Entity.draw(own_columns, agreement["mbar"][split], stream(split), agreement["standardize"])
        except ValueError as error:
            raise PrivSVMError(f"{entity}, split {split}: {error}") from None
        for name, array in dataclasses.asdict(drawn).items():
            secrets[f"{name}_{split}"] = array
    return secrets


def secret_of(secrets: Arrays, split: int) -> Entity:
    """Return one split's secrets, as `draw_secrets` gave them, as an `Entity`."""
    fields = [field.name for field in dataclasses.fields(Entity)]
    return Entity(**{name: secrets[f"{name}_{split}"] for name in fields})


def make_block(
    columns: Arrays,
    secrets: Arrays,
    agreement: Mapping[str, Any],
    entity: str,
    subset: Part,
    digests: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Make one entity's public message about some rows.

    `columns` holds its own, ``<subset>_<s>`` (n, n_j): training rows, of which there must be as many as agreed, or rows
    to predict. `digests` (`rows_digest`) of the rows' labels or identifiers as this entity has them are for the trainer
    to compare. Returns ``entity`` (its name), ``<subset>_<s>`` (n, mbar) and, with digests, ``rows_<s>``. Raises
    PrivSVMError, naming the entity, if columns or secrets are not as agreed.
    """
    message = {"entity": np.array(entity)}
    for split in range(agreement["n_splits"]):
        own_columns = _own_columns(columns, agreement, entity, subset, split)
        try:
            block = secret_of(secrets, split).publish(own_columns, agreement["kernel"], agreement["gamma"] or math.nan)
        except (KeyError, ValueError) as error:
            raise PrivSVMError(
                f"{entity}, split {split}: its secrets do not fit its columns ({error}); draw them again"
            ) from None
        message[f"{subset}_{split}"] = block
        if digests is not None:
            message[f"rows_{split}"] = np.array(digests[split])
    return message


def _own_columns(columns: Arrays, agreement: Mapping[str, Any], entity: str, subset: Part, split: int) -> np.ndarray:
    """Check one entity's columns of one split against the agreement, and return them."""
    counts = {item["name"]: item["columns"] for item in agreement["entities"]}
    if entity not in counts:
        raise PrivSVMError(f"{entity}: is not among the entities of the agreement ({', '.join(counts)})")
    own_columns = columns.get(f"{subset}_{split}")
    if own_columns is None:
        raise PrivSVMError(
            f"{entity}, split {split}: its columns of the {subset} rows are missing; make its file again"
        )
    if own_columns.ndim != 2 or own_columns.shape[1] == 0:
        raise PrivSVMError(f"{entity}, split {split}: it has no column; have fewer entities, or give it one")
    if own_columns.shape[1] != counts[entity]:
        raise PrivSVMError(
            f"{entity}, split {split}: it has {own_columns.shape[1]} columns, agreed were {counts[entity]}; "
            "make its file again"
        )
    if not np.isfinite(own_columns).all():
        row, column = (int(cell[0]) for cell in np.nonzero(~np.isfinite(own_columns)))
        raise PrivSVMError(
            f"{entity}, split {split}: row {row} of its column {column} holds {own_columns[row, column]}; fill or drop "
            "the row, at all entities alike"
        )
    if subset == "train" and own_columns.shape[0] != agreement["rows"]["train"][split]:
        raise PrivSVMError(
            f"{entity}, split {split}: it has {own_columns.shape[0]} training rows, agreed were "
            f"{agreement['rows']['train'][split]}; all entities must hold the same rows in the same order"
        )
    return own_columns


def combine_messages(
    messages: Mapping[str, Arrays], agreement: Mapping[str, Any], subset: Part, digests: Sequence[str] | None = None
) -> list[np.ndarray]:
    """Combine the messages of all entities into the public kernel of each split.

    `messages` are results of `make_block`, by the file each came in. Their digests, if any, must equal the digests of
    the reader's rows. Raises PrivSVMError, naming entities, if one is missing or there twice, or messages differ in
    their rows, labels or mbar.
    """
    by_name: dict[str, Arrays] = {}
    for source, message in messages.items():
        name = str(message.get("entity", ""))
        if name in by_name:
            raise PrivSVMError(f"{source}: a second message of {name}; hand in one of each entity")
        by_name[name] = message
    names = [item["name"] for item in agreement["entities"]]
    for source, message in messages.items():
        if str(message.get("entity", "")) not in names:
            raise PrivSVMError(
                f"{source}: is of {str(message.get('entity', 'nobody'))!r}, who is not in the agreement "
                f"({', '.join(names)})"
            )
    missing = [name for name in names if name not in by_name]
    if missing:
        raise PrivSVMError(f"{', '.join(missing)}: has published no block of the {subset} rows; wait for it")
    kernels = []
    for split in range(agreement["n_splits"]):
        blocks = {}
        for name in names:
            block = by_name[name].get(f"{subset}_{split}")
            if block is None:
                raise PrivSVMError(
                    f"{name}, split {split}: its message has no block of the {subset} rows; publish again"
                )
            blocks[name] = block
        _check_digests(by_name, names, split, None if digests is None else digests[split])
        try:
            kernel = combine_blocks(blocks, agreement["kernel"])
        except ValueError as error:
            raise PrivSVMError(f"split {split}: {error}") from None
        rows = agreement["rows"]["train"][split] if subset == "train" else len(kernel)
        if kernel.shape != (rows, agreement["mbar"][split]):
            raise PrivSVMError(
                f"split {split}: the blocks of {', '.join(names)} have shape {kernel.shape}, agreed was "
                f"{(rows, agreement['mbar'][split])}; publish again by the present agreement"
            )
        kernels.append(kernel)
    return kernels


def _check_digests(messages: Mapping[str, Arrays], names: Sequence[str], split: int, own_digest: str | None) -> None:
    """Refuse messages about different rows or labels."""
    digests = {name: str(messages[name][f"rows_{split}"]) for name in names if f"rows_{split}" in messages[name]}
    if own_digest is not None:
        digests["the reader"] = own_digest
    groups: dict[str, list[str]] = {}
    for name, digest in digests.items():
        groups.setdefault(digest, []).append(name)
    if len(groups) > 1:
        most, *others = sorted(groups.values(), key=len, reverse=True)
        fewest = ", ".join(name for group in others for name in group)
        raise PrivSVMError(
            f"split {split}: the labels, or the order of rows, of {fewest} differ from those of {', '.join(most)}; "
            "agree on both and publish again"
        )


@dataclasses.dataclass(frozen=True)
class AgreedLabels:
    """Labels that all entities know.

    `codes` has the class codes (n,) of each split; `digests` are digests of the labels, to compare with the messages'.
    """

    codes: Sequence[np.ndarray]
    n_classes: int
    digests: Sequence[str] | None = None


def train_on_messages(
    messages: Mapping[str, Arrays],
    labels: AgreedLabels,
    agreement: Mapping[str, Any],
    C: float | str,
    gamma: float | str,
    stream: Callable[[int], np.random.Generator],
) -> list[LinearPath]:
    """Train on the messages of all entities: blocks and labels are all that the trainer has.

    `messages` are results of `make_block` for the training rows, by the file each came in; C and gamma are parameters
    of `privsvm.PPSVMClassifier`; `stream` gives the stream of a split, for the rows that parameters are chosen on.
    Nothing private depends on it. Raises PrivSVMError as `combine_messages`, and for labels that do not fit the blocks.
    """
    kernel = agreement["kernel"]
    kernels = combine_messages(messages, agreement, "train", labels.digests)
    guarantee = dataclasses.replace(ppsvm_guarantee(kernel), randomness="system")
    paths = []
    for split, (columns, codes) in enumerate(zip(kernels, labels.codes, strict=True)):
        if codes.shape != (len(columns),):
            raise PrivSVMError(f"split {split}: there are {codes.size} labels and {len(columns)} rows in the blocks")
        started = time.perf_counter()
        try:
            model, arrays = train_on_blocks(
                columns,
                codes,
                labels.n_classes,
                PublicKernel(kernel, agreement["gamma"] or math.nan),
                C,
                isinstance(gamma, str) and gamma == "tune",
                stream(split),
            )
        except ValueError as error:
            raise PrivSVMError(f"split {split}: {error}") from None
        path = LinearPath(
            epsilons=(math.inf,),
            guarantees=(guarantee,),
            n_classes=labels.n_classes,
            objective=model.objective,
            n_iter=model.n_iter,
            **arrays,
        )
        paths.append(dataclasses.replace(path, fit_seconds=time.perf_counter() - started))
    return paths


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
    """Read what `write_private` wrote.

    Raises PrivSVMError if others may read the file, or it cannot be read.
    """
    arrays = read_npz(path)
    mode = Path(path).stat().st_mode & 0o777
    if mode & 0o077:
        raise PrivSVMError(f"{path}: others may read it (mode {mode:04o}); run chmod 600 on it, and draw new secrets")
    return arrays
