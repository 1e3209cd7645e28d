"""Audit the releases of one private method on made-up neighbours."""

from __future__ import annotations

import argparse

from privsvm_bench.workflow.stage import read_job, run


def main(arguments: list[str] | None = None) -> None:
    """Draw releases, write the bounds, and fail if a proof is refuted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", default="", help="digest of the code; outputs of an equal job are then reused")
    parser.add_argument("--output", required=True, metavar="JSON", help="record to write")
    parser.add_argument("--parameters", required=True, metavar="JSON", help="see privsvm_bench.jobs.job.AuditJob")
    options = parser.parse_args(arguments)

    from privsvm_bench.jobs.job import AuditJob
    from privsvm_bench.workflow.finished import FinishedJob

    job = read_job(AuditJob, options.parameters)
    finished = FinishedJob(options.code, job.model_dump(), inputs=[], outputs=[options.output])
    if finished.restore():
        return

    from privsvm.registry import estimator_class
    from privsvm.warm_up import warm_up
    from privsvm_bench.jobs.auditing import audit_entry
    from privsvm_bench.records import write

    # Compile the functions that the method imports once, while other jobs wait.
    estimator_class(job.implementation)
    warm_up()
    record = audit_entry(job)
    write(options.output, record)
    finished.keep()
    print(f"audit: {job.method}: {len(record.cells)} cells")


if __name__ == "__main__":
    run(main, is_job=True)
