"""Evaluate every released model of one method on one dataset."""

from __future__ import annotations

import argparse
import math

from privsvm.files import write_json
from privsvm.stage import die_with_parent, run


def main(arguments: list[str] | None = None) -> None:
    """Read prepared data and models, predict, write results and timings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepared", required=True, metavar="NPZ")
    parser.add_argument("--models", required=True, metavar="NPZ")
    parser.add_argument("--record", required=True, metavar="JSON", help="the models' record")
    parser.add_argument("--results", required=True, metavar="JSON", help="results to write")
    parser.add_argument("--timings", required=True, metavar="JSON", help="timings to write")
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.data.prepare import load_prepared
    from privsvm.evaluation.evaluate import evaluate_paths
    from privsvm.methods.training import load_paths
    from privsvm.solvers import compile_once

    compile_once()
    prepared = load_prepared(options.prepared)
    paths, record = load_paths(options.models, options.record)
    outcome, seconds = evaluate_paths(prepared, paths)
    private = math.isfinite(float(record["epsilons"][0]))
    results = {
        **{name: value for name, value in record.items() if name not in ("kind", "classes")},
        **outcome,
        "status": record["guarantees"][0]["status"],
        "delta": record["delta"] if private else None,
        "neighbours": record["neighbours"] if private else None,
    }
    write_json(options.results, results, indent=None)
    write_json(options.timings, seconds)
    print(f"evaluate: {record['method']} on {record['dataset']}")


if __name__ == "__main__":
    run(main)
