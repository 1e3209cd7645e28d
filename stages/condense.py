"""Condense the training rows of one dataset, or pass them on as they are."""

from __future__ import annotations

import argparse

from privsvm.files import write_npz
from privsvm_bench.workflow.stage import read_job, run


def main(arguments: list[str] | None = None) -> None:
    """Write condensed rows, attacks and times; for ``none`` only the word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", default="", help="digest of the code; outputs of an equal job are then reused")
    parser.add_argument("--prepared", required=True, metavar="NPZ", help="the prepared dataset")
    parser.add_argument("--rows", required=True, metavar="NPZ", help="condensed rows to write")
    parser.add_argument("--record", required=True, metavar="JSON", help="sizes, purity and attacks to write")
    parser.add_argument("--timings", required=True, metavar="JSON", help="timings to write")
    parser.add_argument("--parameters", required=True, metavar="JSON", help="see privsvm_bench.jobs.job.CondenseJob")
    options = parser.parse_args(arguments)

    from privsvm_bench.jobs.job import CondenseJob
    from privsvm_bench.workflow.finished import FinishedJob

    job = read_job(CondenseJob, options.parameters)
    outputs = [options.rows, options.record, options.timings]
    finished = FinishedJob(options.code, job.model_dump(), inputs=[options.prepared], outputs=outputs)
    if finished.restore():
        return

    from privsvm_bench.datasets.prepared import load_prepared
    from privsvm_bench.jobs.condensing import condense_splits
    from privsvm_bench.records import write

    if job.condense != "none":
        from privsvm.warm_up import warm_up

        warm_up("solvers.condensing.condense")
    prepared = load_prepared(options.prepared)
    arrays, record, timings = condense_splits(prepared, job.condense, job.experiment, job.seed)
    # For ``none`` no copy: the train stage reads the prepared rows.
    write_npz(options.rows, arrays)
    write(options.record, record)
    write(options.timings, timings)
    finished.keep()
    print(f"condense: {record.dataset}: {record.condense}")


if __name__ == "__main__":
    run(main, is_job=True)
