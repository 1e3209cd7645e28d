"""Write what all entities know at the start: the agreement on the kernel, and the labels."""

from __future__ import annotations

import argparse
from pathlib import Path

from privsvm.pipeline.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> None:
    """Read the prepared data, write the agreement, training labels and test labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", required=True, help="name of the method's entry in params.yaml")
    parser.add_argument("--prepared", required=True, metavar="NPZ")
    parser.add_argument("--agreement", required=True, metavar="JSON", help="agreement to write")
    parser.add_argument("--labels", required=True, metavar="NPZ", help="training labels to write")
    parser.add_argument("--test-labels", required=True, metavar="NPZ", help="test labels to write")
    parser.add_argument(
        "--parameters", required=True, type=json_argument, metavar="JSON", help="parameters, columns_seed"
    )
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.base.ppsvm_protocol import deal_columns, kernel_agreement
    from privsvm.data.prepared import load_prepared
    from privsvm.errors import PrivSVMError
    from privsvm.files import write_json, write_npz
    from privsvm.numerics.streams import seeded_stream

    job = options.parameters
    prepared = load_prepared(options.prepared)
    description = prepared.description
    splits = [prepared.split(split) for split in range(prepared.n_splits)]
    try:
        parts = deal_columns(
            description["n_features"], job["parameters"]["entities"], seeded_stream(job["columns_seed"], "columns")
        )
        agreement = kernel_agreement(
            job["parameters"],
            {f"entity-{number}": part.size for number, part in enumerate(parts, start=1)},
            [split.y_train.size for split in splits],
            [split.y_test.size for split in splits],
        )
    except ValueError as error:
        raise PrivSVMError(f"methods.{options.method} on {description['dataset']}: {error}") from None
    folder, names = Path(options.agreement).parent, {item["name"] for item in agreement["entities"]}
    for block in folder.glob("*.entity-*.npz"):
        # From an entity of an earlier agreement.
        if block.name.split(".")[1] not in names:
            block.unlink()
    public = {name: description[name] for name in ("dataset", "digest", "protocol", "classes", "n_features")}
    write_npz(options.labels, {f"train_{number}": split.y_train for number, split in enumerate(splits)})
    write_npz(options.test_labels, {f"test_{number}": split.y_test for number, split in enumerate(splits)})
    write_json(options.agreement, {**agreement, **public})


if __name__ == "__main__":
    run(main)
