"""Draw the distributions of printed numbers: ``python -m reproduce.draws dpwss --datasets heart --seconds 600``."""

from __future__ import annotations

import argparse

from privsvm.errors import PrivSVMError, nearest_name
from privsvm_bench.workflow.stage import run
from reproduce.cell import MODULES, draws_of, judge_committed, set_up

# A p-value below which a printed number lies outside.
OUTSIDE = 0.05


def main(argv: list[str] | None = None) -> None:
    """Run the pieces that the arguments name and that are not stored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", default=list(MODULES), metavar="PAPER", help=", ".join(MODULES))
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="draw only on these datasets")
    parser.add_argument("--names", nargs="+", metavar="TEXT", help="draw only what has one of these in its name")
    parser.add_argument("--seconds", type=float, help="start nothing new after so many seconds")
    parser.add_argument("--share", type=float, default=1.0, help="of the pieces of each setting")
    parser.add_argument(
        "--further", type=int, metavar="RUNS", help="draw on where a printed number lies outside the central 95 %%"
    )
    parser.add_argument(
        "--cheap", type=float, default=120.0, metavar="SECONDS",
        help="of processor time that --further may take a setting",
    )  # fmt: skip
    parser.add_argument("--data", default="data/reproduce", metavar="FOLDER", help="where pieces are kept")
    parser.add_argument(
        "--reports", default="reports/reproduce/distributions", metavar="FOLDER", help="where distributions go"
    )
    options = parser.parse_args(argv)
    set_up(options.papers)

    from privsvm_bench.evidence import Sources
    from reproduce.engine.draws import Further, run_draws

    chosen = draws_of(options.papers)
    datasets = list(dict.fromkeys(draws.dataset for draws in chosen))
    for dataset in options.datasets or []:
        if dataset not in datasets:
            raise PrivSVMError(f"--datasets {dataset!r} is unknown; {nearest_name(dataset, datasets)}")
    if options.datasets:
        chosen = [draws for draws in chosen if draws.dataset in options.datasets]
    # The experiment tells settings of one name apart.
    names = [f"{draws.experiment} {draws.name}" for draws in chosen]
    for text in options.names or []:
        if not any(text in name for name in names):
            raise PrivSVMError(f"--names {text!r}: no draw has it in its name; {nearest_name(text, names)}")
    if options.names:
        named = zip(chosen, names, strict=True)
        chosen = [draws for draws, name in named if any(text in name for text in options.names)]
    further = None
    if options.further:
        cells = frozenset(
            judgement.printed.id.removesuffix(" SD")
            for name in options.papers
            for judgement in judge_committed(name).judgements
            if judgement.p is not None and judgement.p < OUTSIDE
        )
        further = Further(cells=cells, runs=options.further, seconds=options.cheap)
    sources = Sources(options.reports)
    if lacking := run_draws(chosen, options.data, sources, options.seconds, options.share, further=further):
        raise PrivSVMError(f"{lacking} of {len(chosen)} draws lack their data; the lines above say where to put them")


if __name__ == "__main__":
    run(main)
