"""Make one entity's public block of training rows, or of rows to predict."""

from __future__ import annotations

import argparse

from privsvm.pipeline.stage import die_with_parent, run


def main(arguments: list[str] | None = None) -> None:
    """Read one entity's own columns and secrets, write its public message."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entity", required=True, metavar="NAME")
    parser.add_argument("--part", required=True, choices=("train", "test"), help="training rows, or rows to predict")
    parser.add_argument("--columns", required=True, metavar="NPZ", help="its own columns")
    parser.add_argument("--secret", required=True, metavar="NPZ", help="its own secrets")
    parser.add_argument("--agreement", required=True, metavar="JSON")
    parser.add_argument("--labels", metavar="NPZ", help="training labels as this entity knows them")
    parser.add_argument("--block", required=True, metavar="NPZ", help="message to write")
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.base.ppsvm_protocol import make_block, read_private, rows_digest
    from privsvm.files import read_json, read_npz, write_npz

    agreement = read_json(options.agreement)
    digests = None
    if options.labels:
        labels = read_npz(options.labels)
        digests = [rows_digest(labels[f"train_{split}"]) for split in range(agreement["n_splits"])]
    columns, secrets = read_private(options.columns), read_private(options.secret)
    write_npz(options.block, make_block(columns, secrets, agreement, options.entity, options.part, digests))


if __name__ == "__main__":
    run(main)
