"""Write the report: index.html and its pages for people, metrics.json and curves.csv for DVC."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from privsvm.errors import PrivSVMError
from privsvm.files import write_json, write_text
from privsvm_bench.workflow.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> None:
    """Read the results and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--timings", default="logs/timings", type=Path, metavar="FOLDER", help="of all jobs, if there")
    parser.add_argument("--audits", nargs="*", default=[], metavar="FILE", help="records of the stage audit")
    parser.add_argument("--prepared", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--output-html", required=True, metavar="FILE")
    parser.add_argument("--output-metrics", required=True, metavar="FILE")
    parser.add_argument("--output-curves", required=True, metavar="FILE")
    parser.add_argument("--parameters", type=json_argument, default={}, metavar="JSON")
    options = parser.parse_args(arguments)
    die_with_parent()

    # Imported late, so that --help and a wrong argument answer at once.
    from privsvm_bench import records, reporting

    parameters = options.parameters
    if not isinstance(parameters, dict):
        raise PrivSVMError(f"--parameters: {parameters!r} is not a mapping; pass e.g. '{{\"reference_epsilon\": 1.0}}'")
    reference_epsilon = parameters.get("reference_epsilon", 1.0)
    if not isinstance(reference_epsilon, (int, float)) or not 0 < reference_epsilon < float("inf"):
        raise PrivSVMError(f"--parameters: reference_epsilon is {reference_epsilon!r}; use a positive number")
    results = reporting.read_results(options.results)
    condensing = [options.timings / "_condense" / f"{name}.json" for name in {result.dataset for result in results}]
    files = reporting.report_files(
        results,
        timings=records.read_timings(
            path for name in options.results for path in records.timing_files(name, options.timings)
        ),
        condensing=records.read_condensing(
            path for path in condensing if path.is_file() and results[0].condense != "none"
        ),
        attacks=records.attacks_of(results),
        audits=records.read_audits(options.audits),
        prepared=records.read_prepared(options.prepared),
        origin=reporting.provenance(),
        experiment=str(parameters.get("experiment", results[0].experiment)),
        reference_epsilon=reference_epsilon,
        own=parameters.get("own", ()),
    )
    # Compute all before writing the first.
    metrics = reporting.metrics_record(results, reference_epsilon)
    curves = reporting.curves_csv(reporting.curve_rows(results, reference_epsilon))
    write_json(options.output_metrics, metrics)
    write_text(options.output_curves, curves)
    folder = Path(options.output_html).parent
    # Of data sets that are no longer there, too.
    shutil.rmtree(folder / "pages", ignore_errors=True)
    page = files.pop("index.html")
    for name, text in files.items():
        write_text(folder / name, text)
    write_text(options.output_html, page)


if __name__ == "__main__":
    run(main)
