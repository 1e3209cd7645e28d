"""Cut one entity's columns out of the prepared data: the situation before the protocol starts."""

from __future__ import annotations

import argparse

from privsvm.pipeline.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> None:
    """Read the prepared data, write the columns of one entity to a file that only its user can read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", required=True, help="name of the method's entry in params.yaml")
    parser.add_argument("--entity", required=True, metavar="NAME")
    parser.add_argument("--prepared", required=True, metavar="NPZ")
    parser.add_argument("--columns", required=True, metavar="NPZ", help="columns to write")
    parser.add_argument(
        "--parameters", required=True, type=json_argument, metavar="JSON", help="entities, columns_seed"
    )
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.base.ppsvm_protocol import deal_columns, write_private
    from privsvm.data.prepared import load_prepared
    from privsvm.errors import PrivSVMError
    from privsvm.numerics.streams import seeded_stream

    job = options.parameters
    prepared = load_prepared(options.prepared)
    try:
        parts = deal_columns(
            prepared.description["n_features"], job["entities"], seeded_stream(job["columns_seed"], "columns")
        )
    except ValueError as error:
        raise PrivSVMError(f"methods.{options.method} on {prepared.description['dataset']}: {error}") from None
    held = parts[int(options.entity.removeprefix("entity-")) - 1]
    arrays = {}
    for number in range(prepared.n_splits):
        split = prepared.split(number)
        for name, X in (("train", split.X_train), ("test", split.X_test)):
            own = X[:, held]
            arrays[f"{name}_{number}"] = own.toarray() if hasattr(own, "toarray") else own
    write_private(options.columns, arrays)


if __name__ == "__main__":
    run(main)
