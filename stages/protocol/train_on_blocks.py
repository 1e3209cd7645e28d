"""Train on the public blocks of all entities and on the labels; the trainer has nothing else."""

from __future__ import annotations

import argparse

from privsvm.pipeline.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> None:
    """Read blocks, labels and agreement, write models, record and timings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", required=True, help="name of the method's entry in params.yaml")
    parser.add_argument("--blocks", required=True, nargs="+", metavar="NPZ", help="of all entities")
    parser.add_argument("--labels", required=True, metavar="NPZ")
    parser.add_argument("--agreement", required=True, metavar="JSON")
    parser.add_argument("--models", required=True, metavar="NPZ", help="arrays to write")
    parser.add_argument("--record", required=True, metavar="JSON", help="record to write")
    parser.add_argument("--timings", required=True, metavar="JSON", help="timings to write")
    parser.add_argument(
        "--parameters",
        required=True,
        type=json_argument,
        metavar="JSON",
        help="experiment, trainer_seed, implementation, parameters, privacy, condense",
    )
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.base.ppsvm_protocol import rows_digest, train_on_messages
    from privsvm.errors import PrivSVMError
    from privsvm.files import read_json, read_npz
    from privsvm.numerics.streams import seeded_stream
    from privsvm.pipeline.model_files import model_record, save_paths, train_timings
    from privsvm.records import write

    job = options.parameters
    agreement, stored = read_json(options.agreement), read_npz(options.labels)
    labels = [stored[f"train_{split}"] for split in range(agreement["n_splits"])]
    try:
        paths = train_on_messages(
            {source: read_npz(source) for source in options.blocks},
            labels,
            agreement,
            job["parameters"].get("C", 1.0),
            job["parameters"].get("gamma", "auto"),
            len(agreement["classes"]),
            lambda split: seeded_stream(job["trainer_seed"], "tuning", split),
            [rows_digest(codes) for codes in labels],
            seeded=True,
        )
    except PrivSVMError as error:
        raise PrivSVMError(f"methods.{options.method} on {agreement['dataset']}: {error}") from None
    record = model_record(options.method, job, agreement, max(agreement["rows"]["train"]), paths)
    save_paths(paths, options.models, options.record, record)
    write(options.timings, train_timings(paths))
    print(f"train_on_blocks: {options.method} on {agreement['dataset']}: {len(paths)} splits")


if __name__ == "__main__":
    run(main)
