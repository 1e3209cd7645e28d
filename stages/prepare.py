"""Turn the raw files of one dataset into features, label codes, splits and scaling."""

from __future__ import annotations

import argparse
from pathlib import Path

from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.jobs.job import PrepareJob
from privsvm_bench.workflow.finished import FinishedJob
from privsvm_bench.workflow.stage import read_job, run

# A larger table is prepared without a look at its cells.
_MOST_BYTES = 1 << 28


def main(argv: list[str] | None = None) -> None:
    """Prepare the dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", default="", help="digest of the code; outputs of an equal job are then reused")
    parser.add_argument("--dataset", required=True, help="name of the dataset")
    parser.add_argument("--raw", required=True, help="folder with its raw files")
    parser.add_argument("--output", required=True, help="the .npz to write")
    parser.add_argument("--description", required=True, help="the .json to write")
    parser.add_argument("--parameters", required=True, metavar="JSON", help="see privsvm_bench.jobs.job.PrepareJob")
    options = parser.parse_args(argv)
    job = read_job(PrepareJob, options.parameters)
    entry = resolve(options.dataset, job.settings)
    raw = [Path(options.raw) / name for name in entry.files]
    finished = FinishedJob(
        options.code,
        {**job.model_dump(), "dataset": options.dataset},
        inputs=[path for path in raw if path.is_file()],
        outputs=[options.output, options.description],
    )
    if finished.restore():
        return

    # Lazy, so that a wrong name is reported at once.
    from privsvm.tables.inspection import inspect_table
    from privsvm.tables.schema import parse_schema
    from privsvm_bench.datasets.prepare import prepare, write_prepared

    if entry.user_supplied and entry.schema is not None:
        # Cells that cannot be read are filled in. Looking at them takes about ten times the file in memory.
        small = raw[0].stat().st_size <= _MOST_BYTES
        print(*(inspect_table(raw[0], parse_schema(entry.schema)) if small else ["run `privsvm inspect`"]), sep="\n")
    arrays, description = prepare(entry, options.raw, job.protocol, job.seed, job.experiment)
    write_prepared(options.output, options.description, arrays, description)
    finished.keep()


if __name__ == "__main__":
    run(main, is_job=True)
