"""Take one step of the PPSVM protocol on one party's machine, from CSV files; README.md has the commands.

A CSV file of columns has a header; its first column identifies the rows, the others are numbers. A file of labels has
the two columns `id` and `label`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from messages import (
    AgreedLabels,
    Part,
    combine_messages,
    draw_secrets,
    kernel_agreement,
    make_block,
    read_private,
    rows_digest,
    train_on_messages,
    write_private,
)

from privsvm.errors import PrivSVMError
from privsvm.families.one_norm.ppsvm_protocol import Entity
from privsvm.files import read_json, read_npz, write_json, write_npz, write_text
from privsvm.numerics.noise.streams import system_stream
from privsvm.privacy.attacks.known_sample import audit_entity
from privsvm_bench.jobs.model_files import collect_fields, load_paths, save_paths
from privsvm_bench.records import SavedModels


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a CSV file with a header as text; the first column is the index."""
    try:
        return pd.read_csv(path, index_col=0, dtype=str, keep_default_na=False)
    except ValueError as error:
        problem = " ".join(str(error).split())
        raise PrivSVMError(f"{path}: no CSV file with a header ({problem}); export the table again") from None


def read_columns(path: str | Path) -> tuple[list[str], np.ndarray]:
    """Read identifiers and columns (n, n_j)."""
    table = read_table(path)
    try:
        return list(table.index), table.astype(np.float64).to_numpy()
    except ValueError as error:
        raise PrivSVMError(f"{path}: {error}; all but the first column must hold numbers") from None


def read_labels(path: str | Path) -> tuple[list[str], list[str]]:
    """Read identifiers and labels."""
    table = read_table(path)
    return list(table.index), list(table.iloc[:, 0])


def agree(options: argparse.Namespace) -> None:
    """Write the agreement: the kernel, and the number of columns of each entity."""
    columns = {}
    for item in options.entities:
        name, _, count = item.partition("=")
        if not count.isdigit():
            raise PrivSVMError(f"--entities: {item!r} is not NAME=NUMBER OF COLUMNS")
        columns[name] = int(count)
    parameters = {"kernel": options.kernel, "gamma": options.gamma, "mbar": options.mbar}
    agreement = kernel_agreement(parameters, columns, options.rows)
    write_json(options.agreement, {**agreement, "classes": options.classes})


def draw(options: argparse.Namespace) -> None:
    """Draw this entity's secrets from the operating system's entropy; no seed is kept."""
    _, columns = read_columns(options.columns)
    secrets = draw_secrets(columns, read_json(options.agreement), options.name, system_stream())
    write_private(options.secret, secrets)


def publish(options: argparse.Namespace) -> None:
    """Make this entity's public block of the training rows."""
    identifiers, columns = read_columns(options.columns)
    labelled, labels = read_labels(options.labels)
    if labelled != identifiers:
        raise PrivSVMError(
            f"{options.labels}: its rows are not those of {options.columns}, in the same order; sort both"
        )
    write_block(options, columns, "train", rows_digest(identifiers, labels))


def write_block(options: argparse.Namespace, columns: np.ndarray, part: Part, digest: str) -> None:
    """Write this entity's public block of some rows."""
    secrets, agreement = read_private(options.secret), read_json(options.agreement)
    write_npz(options.block, make_block(columns, secrets, agreement, options.name, part, digest))


def audit(options: argparse.Namespace) -> None:
    """Say what this entity's block gives away, before or after it is published."""
    _, columns = read_columns(options.columns)
    agreement = read_json(options.agreement)
    hidden = Entity(**read_private(options.secret)).standardized(columns)
    block = read_npz(options.block)["train"]
    attack = audit_entity(block, hidden, agreement["kernel"], agreement["gamma"], system_stream())
    if attack["error_at_rows_needed"] is None or attack["error_at_rows_needed"] > 1e-8:
        print(f"  {options.name}: {attack['rows_needed']} known rows do not suffice to recover the others")
    else:
        print(
            f"  {options.name}: whoever knows {attack['rows_needed']} of its {len(columns)} rows computes all others, "
            f"to within {attack['error_at_rows_needed']:.0e} standard deviations"
        )


def train(options: argparse.Namespace) -> None:
    """Train on the blocks of all entities and the labels."""
    agreement = read_json(options.agreement)
    identifiers, labels = read_labels(options.labels)
    codes = {name: code for code, name in enumerate(agreement["classes"])}
    unknown = sorted(set(labels) - set(codes))
    if unknown:
        raise PrivSVMError(f"{options.labels}: label {unknown[0]!r} is not among the agreed {agreement['classes']}")
    path = train_on_messages(
        {source: read_npz(source) for source in options.blocks},
        AgreedLabels(np.array([codes[label] for label in labels]), len(codes), rows_digest(identifiers, labels)),
        agreement,
        options.C,
        options.gamma,
        system_stream(),
    )
    record = SavedModels(implementation="ppsvm", classes=tuple(agreement["classes"]), **collect_fields([path]))
    save_paths([path], options.model, options.record, record)


def answer(options: argparse.Namespace) -> None:
    """Make this entity's public block of rows to predict."""
    identifiers, columns = read_columns(options.columns)
    write_block(options, columns, "test", rows_digest(identifiers))


def predict(options: argparse.Namespace) -> None:
    """Predict rows from the answers of all entities."""
    agreement = read_json(options.agreement)
    identifiers = list(read_table(options.rows).index)
    answers = {source: read_npz(source) for source in options.blocks}
    kernel = combine_messages(answers, agreement, "test", rows_digest(identifiers))
    (path,), _ = load_paths(options.model, options.record, SavedModels)
    codes = path.codes(path.scores(kernel, 0))[0]
    lines = [f"{name},{agreement['classes'][code]}" for name, code in zip(identifiers, codes, strict=True)]
    write_text(options.predictions, "\n".join(["id,label", *lines]) + "\n")


def number_or_word(text: str) -> float | int | str:
    """Read a parameter: a number, or a word, which its step checks."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and take the step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)

    def step(function, *files: str, name: bool = True) -> argparse.ArgumentParser:
        added = steps.add_parser(function.__name__, help=function.__doc__, description=function.__doc__)
        added.set_defaults(function=function)
        if name:
            added.add_argument("--name", required=True, help="this entity, as in the agreement")
        for file in files:
            added.add_argument(f"--{file}", required=True, metavar="FILE")
        return added

    agreed = step(agree, "agreement", name=False)
    agreed.add_argument("--entities", required=True, nargs="+", metavar="NAME=COLUMNS")
    agreed.add_argument("--rows", required=True, type=int, help="number of training rows")
    agreed.add_argument("--classes", required=True, nargs="+", metavar="LABEL")
    agreed.add_argument("--kernel", default="linear", choices=("linear", "gaussian"))
    agreed.add_argument(
        "--gamma", default="auto", type=number_or_word, help="of the gaussian kernel; auto: 1 / columns"
    )
    agreed.add_argument("--mbar", default=0.1, type=number_or_word, help="rows of the random matrices, or their share")
    step(draw, "columns", "agreement", "secret")
    step(publish, "columns", "labels", "secret", "agreement", "block")
    step(audit, "columns", "secret", "agreement", "block")
    trained = step(train, "labels", "agreement", "model", "record", name=False)
    trained.add_argument("--blocks", required=True, nargs="+", metavar="FILE")
    trained.add_argument("--C", default="tune", type=number_or_word, help="weight of a row's slack")
    trained.add_argument("--gamma", default="auto", choices=("auto", "tune"), help="tune: together with C")
    step(answer, "columns", "secret", "agreement", "block")
    predicted = step(predict, "rows", "agreement", "model", "record", "predictions", name=False)
    predicted.add_argument("--blocks", required=True, nargs="+", metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        options.function(options)
    except PrivSVMError as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        sys.exit(f"error: {error.filename or 'file system'}: {error.strerror or error}; check the path and its rights")


if __name__ == "__main__":
    main()
