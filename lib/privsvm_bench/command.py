"""Commands of the benchmark: ``python -m privsvm_bench``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from privsvm.command import run


def _datasets(options: argparse.Namespace) -> int:
    from privsvm_bench.datasets.catalogue import load_catalogue
    from privsvm_bench.datasets.download import availability

    for name, entry in load_catalogue().items():
        sizes = ", ".join(f"{role} {table.n_rows} x {table.n_features}" for role, table in entry.parts.items())
        facts = f"{len(entry.classes or ())} classes, {sizes}, {availability(entry)}"
        print(f"{name}: {facts}. {entry.source} {entry.licence_words}")
    return 0


def _crate(options: argparse.Namespace) -> int:
    from privsvm_bench.workflow.crate import describe_run

    print(describe_run())
    return 0


def _croissant(options: argparse.Namespace) -> int:
    from privsvm_bench.datasets.croissant import describe_table

    print(describe_table(options.dataset, options.out or f"reports/{options.dataset}"))
    return 0


def _compare(options: argparse.Namespace) -> int:
    from privsvm.files import write_text
    from privsvm_bench.tracking import comparison

    names = (options.first, options.second)
    first, second = comparison.read_settings(*names)
    differences = comparison.compare(first, second, options.metric)
    if options.latex:
        write_text(options.latex, comparison.comparison_latex(names, differences, options.metric))
    if options.figure:
        write_text(options.figure, comparison.comparison_svg(names, differences, options.metric))
    print(comparison.comparison_text(names, differences, options.metric))
    for dataset in sorted(first.keys() ^ second.keys()):
        print(f"not compared: {dataset}, where only one of the two has a result")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m privsvm_bench", description="Look at the benchmark.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    compare = commands.add_parser("compare", help="compare two settings of a benchmark that ran here, split by split")
    compare.add_argument("first", help="a method, a result file, or a folder of these")
    compare.add_argument("second", help="the same; its numbers less those of the first are shown")
    compare.add_argument("--metric", default="accuracy")
    compare.add_argument("--latex", help="file for a table (booktabs)")
    compare.add_argument("--figure", help="file for a picture (SVG)")
    compare.set_defaults(run=_compare)

    commands.add_parser("crate", help="describe the run here as an RO-Crate").set_defaults(run=_crate)
    croissant = commands.add_parser("croissant", help="write a prepared table as CSV with a Croissant description")
    croissant.add_argument("dataset", help="a prepared data set of the catalogue")
    croissant.add_argument("--out", help="folder to write to, by default reports/<name>")
    croissant.set_defaults(run=_croissant)

    commands.add_parser("datasets", help="list the catalogue of data sets, with sources and licences").set_defaults(
        run=_datasets
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of the benchmark and return its exit code; the arguments default to the process's."""
    return run(_parser(), arguments, "interrupted")
