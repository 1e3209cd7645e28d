"""Evaluate every released model of one method on one dataset."""

from __future__ import annotations

import argparse

from privsvm_bench.workflow.stage import run


def main(arguments: list[str] | None = None) -> None:
    """Read prepared data and models, predict, write results and timings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code", default="", help="digest of the code; outputs of an equal job are then reused")
    parser.add_argument("--prepared", required=True, metavar="NPZ")
    parser.add_argument("--models", required=True, metavar="NPZ")
    parser.add_argument("--record", required=True, metavar="JSON", help="the models' record")
    parser.add_argument("--results", required=True, metavar="JSON", help="results to write")
    parser.add_argument("--timings", required=True, metavar="JSON", help="timings to write")
    options = parser.parse_args(arguments)

    from privsvm_bench.workflow.finished import FinishedJob

    finished = FinishedJob(
        options.code,
        {},
        inputs=[options.prepared, options.models, options.record],
        outputs=[options.results, options.timings],
    )
    if finished.restore():
        return

    from privsvm_bench.datasets.prepared import load_prepared
    from privsvm_bench.jobs.evaluation import evaluate_paths
    from privsvm_bench.jobs.model_files import load_paths
    from privsvm_bench.records import ModelRecord, write

    prepared = load_prepared(options.prepared)
    paths, record = load_paths(options.models, options.record, ModelRecord)
    if paths[0].jit_module is not None:
        from privsvm.warm_up import warm_up

        warm_up(paths[0].jit_module)
    result, timings = evaluate_paths(prepared, paths, record)
    write(options.results, result, indent=None)
    write(options.timings, timings)
    finished.keep()
    print(f"evaluate: {result.method} on {result.dataset}")


if __name__ == "__main__":
    run(main, is_job=True)
