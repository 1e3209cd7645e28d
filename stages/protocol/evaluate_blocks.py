"""Evaluate the models of one protocol on one dataset, from the entities' blocks of the test rows."""

from __future__ import annotations

import argparse

from privsvm.pipeline.stage import die_with_parent, run


def main(arguments: list[str] | None = None) -> None:
    """Read models, blocks of the test rows and their labels, write results and timings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", required=True, nargs="+", metavar="NPZ", help="of all entities")
    parser.add_argument("--labels", required=True, metavar="NPZ", help="of the test rows")
    parser.add_argument("--agreement", required=True, metavar="JSON")
    parser.add_argument("--models", required=True, metavar="NPZ")
    parser.add_argument("--record", required=True, metavar="JSON", help="the models' record")
    parser.add_argument("--results", required=True, metavar="JSON", help="results to write")
    parser.add_argument("--timings", required=True, metavar="JSON", help="timings to write")
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.base.ppsvm_protocol import AnsweredRows, combine_messages
    from privsvm.files import read_json, read_npz
    from privsvm.pipeline.evaluation import evaluate_paths
    from privsvm.pipeline.model_files import load_paths
    from privsvm.records import ModelRecord, write

    agreement, labels = read_json(options.agreement), read_npz(options.labels)
    kernels = combine_messages({source: read_npz(source) for source in options.blocks}, agreement, "test")
    rows = AnsweredRows(kernels, [labels[f"test_{split}"] for split in range(agreement["n_splits"])])
    paths, record = load_paths(options.models, options.record, ModelRecord)
    result, timings = evaluate_paths(rows, paths, record)
    write(options.results, result, indent=None)
    write(options.timings, timings)
    print(f"evaluate_blocks: {result.method} on {result.dataset}")


if __name__ == "__main__":
    run(main)
