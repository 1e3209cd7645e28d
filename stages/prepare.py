"""Stage: turn the raw files of one dataset into features, label codes, splits and scaling."""

from __future__ import annotations

import argparse
from pathlib import Path

from privsvm.errors import PrivSVMError, nearest_name
from privsvm_bench.datasets.catalogue import raw_files, resolve
from privsvm_bench.workflow.finished import FinishedJob
from privsvm_bench.workflow.stage import die_with_parent, json_argument, run

KEYS = ("settings", "protocol", "seed", "experiment")


def main(argv: list[str] | None = None) -> int | None:
    """Prepare the dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", default="", help="digest of the code; with it, outputs of equal jobs are used again")
    parser.add_argument("--dataset", required=True, help="name of the dataset")
    parser.add_argument("--raw", required=True, help="folder with its raw files")
    parser.add_argument("--output", required=True, help="the .npz to write")
    parser.add_argument("--description", required=True, help="the .json to write")
    parser.add_argument(
        "--parameters",
        type=json_argument,
        required=True,
        help='JSON: {"settings": {}, "protocol": {"kind": ...}, "seed": 0, "experiment": "name"}',
    )
    arguments = parser.parse_args(argv)
    die_with_parent()
    parameters = arguments.parameters
    for key in parameters:
        if key not in KEYS:
            raise PrivSVMError(f"--parameters: unknown key {key!r}; {nearest_name(key, KEYS)}")
    for key in ("protocol", "seed", "experiment"):
        if key not in parameters:
            raise PrivSVMError(f"--parameters: key {key!r} missing; add it")
    entry = resolve(arguments.dataset, parameters.get("settings"))

    raw = [Path(arguments.raw) / name for name in raw_files(arguments.dataset, parameters.get("settings") or {})]
    finished = FinishedJob(
        arguments.code,
        {**parameters, "dataset": arguments.dataset},
        inputs=[path for path in raw if path.is_file()],
        outputs=[arguments.output, arguments.description],
    )
    if finished.restore():
        return None

    # Imported late, so that a wrong name is reported at once.
    from privsvm_bench.datasets.prepare import prepare, write_prepared

    arrays, description = prepare(
        entry, arguments.raw, parameters["protocol"], int(parameters["seed"]), str(parameters["experiment"])
    )
    write_prepared(arguments.output, arguments.description, arrays, description)
    finished.keep()
    return None


if __name__ == "__main__":
    run(main)
