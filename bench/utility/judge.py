"""Judge the rule: ``python bench/utility/judge.py`` runs the judge sets once, by all entries alike.

Cells are in ``reports/utility/judge.csv``: ten splits, and five draws of noise where rows are few. Every run is in
``judge.log.csv`` beside it before its first cell. A rule that was judged is refused; ``--again`` goes on with a stopped
run, or adds entries, and the log says so. Read no single cell before the rule is frozen: a rule that is changed after a
look needs other judges (``draw_judges.py``), and these move to *look* in ``kinds.json``.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import inspect
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import leaderboard
import numpy as np
import pandas as pd
from cells import Cells
from entries import COUNTED, ENTRIES, OLDER_ALONE, RECOMMENDED, REFERENCES, ROOT, TABLES, VARIANTS
from run_peers import PEERS, SLOW, TWO_CLASSES, fit, peer_code, start_worker
from scores import SCORES
from sets import JUDGE, SMALL_DRAWS, SMALL_ROWS, SPLITS, load

from privsvm.errors import PrivSVMError
from privsvm.registry import estimator_class
from privsvm_bench.datasets.catalogue import load_catalogue
from privsvm_bench.evidence import describe_commit

LOG = TABLES / "judge.log.csv"
# Epsilons of the judges, by relation of neighbours.
EPSILONS = {"add_remove": (0.1, 0.5, 1.0, 4.0), "replace_one": (0.1, 1.0)}
JUDGED = [(relation, epsilon) for relation, epsilons in EPSILONS.items() for epsilon in epsilons]
# Peers that take minutes a fit are run if they are named.
_DEFAULT = [entry for entry in (*ENTRIES, *REFERENCES, *PEERS) if entry not in (*OLDER_ALONE, *SLOW)]


def entry_code(entry: str) -> str:
    """Return the digest of the code of an entry, or the version of its library."""
    return peer_code(entry) if entry in PEERS else leaderboard.CELLS.code(entry)


def columns(entry: str) -> list[tuple[str, float]]:
    """List relations and epsilons of an entry; a peer that replaces rows alone is compared at all epsilons."""
    if entry in REFERENCES:
        return [("", math.inf)]
    if entry in PEERS:
        relation = PEERS[entry][2]
        return [(relation, epsilon) for epsilon in EPSILONS["add_remove"]]
    known = inspect.signature(estimator_class(RECOMMENDED if entry in VARIANTS else entry)).parameters
    relations = ["add_remove"] if entry == COUNTED or "neighbours" not in known else list(EPSILONS)
    return [(relation, epsilon) for relation in relations for epsilon in EPSILONS[relation]]


def wanted(entries: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """List the keys of cells, entry by entry, without sets of classes that a peer does not offer."""
    for entry, name in itertools.product(entries, JUDGE):
        if entry in TWO_CLASSES and len(load_catalogue()[name].classes or ()) > 2:
            continue
        for (relation, epsilon), split in itertools.product(columns(entry), range(SPLITS)):
            yield entry, name, relation, str(epsilon), str(split)


_worker = functools.cache(start_worker)


def run_peer(peer: str, name: str, epsilon: float, split: int) -> dict[str, Any]:
    """Fit one cell of another library, with as many draws of noise as ours; NaN if one of them fails."""
    data = load(name)
    n_draws = SMALL_DRAWS if len(data.y) < SMALL_ROWS else 1
    # The number of a split is its seed.
    repeated = replace(data, splits=data.splits * n_draws)
    fits = [fit(_worker(peer), peer, repeated, epsilon, split + SPLITS * draw) for draw in range(n_draws)]
    cell = {score: round(float(np.mean([row.get(score, math.nan) for row, _ in fits])), 4) for score in SCORES}
    return cell | {"seconds": float(np.mean([seconds or 0.0 for _, seconds in fits]))}


def run_cell(key: tuple[str, ...]) -> dict[str, Any]:
    """Run a cell of the table."""
    entry, name, _, epsilon, split = key
    return run_peer(entry, name, float(epsilon), int(split)) if entry in PEERS else leaderboard.run_cell(key)


CELLS = Cells(TABLES / "judge.csv", ("entry", "set", "neighbours", "epsilon", "split"), entry_code, run_cell)


def log_run(entries: Sequence[str], again: bool) -> None:
    """Append a run to the log; refuse a rule that is there, unless it is run again. Entries without it have no rule."""
    rule = entry_code(RECOMMENDED) if {RECOMMENDED, *VARIANTS} & set(entries) else ""
    earlier: list[str] = []
    if rule and LOG.exists():
        runs = pd.read_csv(LOG, dtype=str)
        earlier = runs.date[runs.rule == rule].to_list()
    if earlier and not again:
        sys.exit(f"judge.py: this rule ({rule}) was judged on {earlier[-1]}; give --again to go on with that run")
    row = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "commit": describe_commit(ROOT),
        "rule": rule,
        "entries": " ".join(entries),
        "epsilons": " ".join("/".join(map(str, values)) for values in EPSILONS.values()),
        "relations": " ".join(EPSILONS),
        "again": bool(earlier),
    }
    pd.DataFrame([row]).to_csv(LOG, mode="a", header=not LOG.exists(), index=False)


def main() -> None:
    """Log a run and run its missing cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", nargs="*", default=_DEFAULT, help="default: all but peers that take minutes a fit")
    parser.add_argument("--again", action="store_true", help="although this rule was judged")
    arguments = parser.parse_args()
    try:
        # Before the log: an unknown entry, or an environment of a peer that cannot be built.
        for entry in arguments.entries:
            columns(entry), entry_code(entry)
    except PrivSVMError as error:
        parser.error(str(error))
    log_run(arguments.entries, arguments.again)
    try:
        CELLS.measure(wanted(arguments.entries))
    finally:
        for peer in arguments.entries:
            if peer in PEERS:
                _worker(peer).end()


if __name__ == "__main__":
    main()
