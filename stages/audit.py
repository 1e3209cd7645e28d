"""Audit the releases of one private method on made-up neighbours."""

from __future__ import annotations

import argparse

from privsvm_bench.workflow.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> None:
    """Draw releases, bound epsilon from below, and write the record; end with an error where a proof is refuted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", default="", help="digest of the code; with it, outputs of equal jobs are used again")
    parser.add_argument("--method", required=True, help="name of the method's entry in params.yaml")
    parser.add_argument("--output", required=True, metavar="JSON", help="record to write")
    parser.add_argument(
        "--parameters",
        required=True,
        type=json_argument,
        metavar="JSON",
        help="implementation, parameters, seed, delta, neighbours, draws, epsilons",
    )
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm_bench.workflow.finished import FinishedJob

    finished = FinishedJob(
        options.code, {**options.parameters, "method": options.method}, inputs=[], outputs=[options.output]
    )
    if finished.restore():
        return

    from privsvm.registry import estimator_class
    from privsvm.warm_up import warm_up
    from privsvm_bench.jobs.auditing import audit_entry
    from privsvm_bench.records import write

    # What the method imports is compiled by one job, for which others wait.
    estimator_class(options.parameters["implementation"])
    warm_up()
    record = audit_entry(options.method, options.parameters)
    write(options.output, record)
    finished.keep()
    print(f"audit: {options.method}: {len(record.cells)} cells")


if __name__ == "__main__":
    run(main)
