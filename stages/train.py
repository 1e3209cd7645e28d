"""Train one method on every split of one dataset and release its models."""

from __future__ import annotations

import argparse

from privsvm.files import read_npz
from privsvm_bench.workflow.stage import read_job, run


def main(arguments: list[str] | None = None) -> None:
    """Read the prepared data, train, write models, record and timings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", default="", help="digest of the code; outputs of an equal job are then reused")
    parser.add_argument("--prepared", required=True, metavar="NPZ")
    parser.add_argument("--condensed", required=True, metavar="NPZ")
    parser.add_argument("--condensed-record", required=True, metavar="JSON")
    parser.add_argument("--models", required=True, metavar="NPZ", help="arrays to write")
    parser.add_argument("--record", required=True, metavar="JSON", help="record to write")
    parser.add_argument("--timings", required=True, metavar="JSON", help="timings to write")
    parser.add_argument("--parameters", required=True, metavar="JSON", help="see privsvm_bench.jobs.job.TrainJob")
    options = parser.parse_args(arguments)

    from privsvm_bench.jobs.job import TrainJob
    from privsvm_bench.workflow.finished import FinishedJob

    job = read_job(TrainJob, options.parameters)
    finished = FinishedJob(
        options.code,
        job.model_dump(),
        inputs=[options.prepared, options.condensed, options.condensed_record],
        outputs=[options.models, options.record, options.timings],
    )
    if finished.restore():
        return

    from privsvm.registry import estimator_class
    from privsvm.warm_up import warm_up
    from privsvm_bench.datasets.prepared import load_prepared
    from privsvm_bench.jobs.model_files import model_record, save_paths, train_timings
    from privsvm_bench.jobs.training import train_paths, training_sizes
    from privsvm_bench.records import CondensedRowsAttack, read, write

    prepared = load_prepared(options.prepared)
    # Compile the functions that the method imports before any time is measured.
    estimator_class(job.implementation)
    warm_up()
    paths, attacks = train_paths(prepared, read_npz(options.condensed), job)
    description = prepared.description
    if job.condense != "none":
        attacks = [read(CondensedRowsAttack, options.condensed_record), *attacks]
    record = model_record(job, description, training_sizes(prepared, job), paths, attacks)
    save_paths(paths, options.models, options.record, record)
    write(options.timings, train_timings(paths))
    finished.keep()
    print(f"train: {job.method} on {description['dataset']}: {len(paths)} splits")


if __name__ == "__main__":
    run(main, is_job=True)
