"""Write the report: index.html and its pages for people, metrics.json and curves.csv for DVC."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from privsvm.files import write_json, write_text
from privsvm_bench.workflow.stage import read_job, run


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
    parser.add_argument(
        "--output-private", nargs="*", default=[], metavar="FILE", help="both for the results in data/private"
    )
    parser.add_argument("--parameters", default="{}", metavar="JSON", help="see privsvm_bench.jobs.job.ReportJob")
    options = parser.parse_args(arguments)

    # Lazy, so that --help and a wrong argument answer at once.
    from privsvm_bench import records
    from privsvm_bench.jobs.job import ReportJob
    from privsvm_bench.reporting.curve_tables import curve_rows, curves_csv, metrics_record
    from privsvm_bench.reporting.page import ReportRecords, report_files
    from privsvm_bench.reporting.provenance import provenance
    from privsvm_bench.reporting.results import read_results

    job = read_job(ReportJob, options.parameters)
    reference = job.reference_epsilon
    results = read_results(options.results, options.audits)
    condensing = [options.timings / "_condense" / f"{name}.json" for name in {result.dataset for result in results}]
    files = report_files(
        results,
        records=ReportRecords(
            timings=records.read_timings(
                path for name in options.results for path in records.timing_files(name, options.timings)
            ),
            condensing=records.read_by_dataset(
                records.CondenseTimings,
                (path for path in condensing if path.is_file() and results[0].condense != "none"),
            ),
            attacks=records.attacks_of(results),
            audits=records.read_audits(options.audits),
            prepared=records.read_by_dataset(records.Prepared, options.prepared),
            left_out=job.left_out,
        ),
        origin=provenance(),
        experiment=job.experiment or results[0].experiment,
        reference_epsilon=reference,
        own_datasets=job.own_datasets,
    )
    # Compute all files before writing the first, so that a failure leaves the old ones.
    private = {Path(name).stem for name in options.results if Path(name).is_relative_to("data/private")}
    shared, own = ([item for item in results if (item.dataset in private) == is_own] for is_own in (False, True))
    numbers = [
        (paths, metrics_record(chosen, reference), curve_rows(chosen, reference))
        for paths, chosen in (((options.output_metrics, options.output_curves), shared), (options.output_private, own))
        if paths
    ]
    for (metrics_path, curves_path), metrics, rows in numbers:
        write_json(metrics_path, metrics)
        write_text(curves_path, curves_csv(rows))
    folder = Path(options.output_html).parent
    # Remove pages of former datasets too.
    shutil.rmtree(folder / "pages", ignore_errors=True)
    page = files.pop("index.html")
    for name, text in files.items():
        write_text(folder / name, text)
    write_text(options.output_html, page)


if __name__ == "__main__":
    run(main, is_job=True)
