"""The leaderboard: ``python bench/utility/leaderboard.py`` runs missing cells and writes docs/leaderboard.md.

It also writes its pictures, a table of docs/epsilon.md, and the sentences on accuracy in the README.

A cell is an entry, a set, a relation of neighbours, an epsilon and a split. Rows of library methods, and of references
without privacy, are in ``reports/utility/leaderboard.csv``, rows of other libraries in ``peers.csv``.
``sources.json`` says by which code each entry was measured; ``--confirm 8`` runs eight cells of every entry whose code
has changed since. Other classifiers are entered by ``join.py``.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import page
import sklearn
from cells import Cells
from entries import (
    COUNTED,
    CURVES,
    DELTA,
    ENTRIES,
    EPSILONS,
    OLDER_ALONE,
    RECOMMENDED,
    REFERENCES,
    TABLES,
    VARIANTS,
)
from scores import DIGITS, SCORES, score_row
from sets import LARGE_SPLITS, OLDER, SETS, SMALL_DRAWS, SMALL_ROWS, SPLITS, UtilitySet, list_splits, load
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import LinearSVC

from privsvm.registry import estimator_class, implementations, module_name
from privsvm_bench.workflow.sources import closure_digest


def _method(entry: str) -> str:
    return RECOMMENDED if entry in VARIANTS else entry


def _code(entry: str) -> str:
    entry = _method(entry)
    if entry in REFERENCES:
        return f"scikit-learn {sklearn.__version__}"
    return closure_digest(module_name(entry))[:12]


def _epsilons(entry: str, name: str, relation: str) -> tuple[float, ...]:
    """Return the epsilons of an entry on a set under a relation."""
    if name in OLDER and relation in CURVES.get(entry, {}):
        return CURVES[entry][relation]
    # Without a number of rows to hide, the entry that counts them is the recommended method.
    if entry in OLDER_ALONE or (entry == COUNTED and relation == "replace_one"):
        return ()
    known = inspect.signature(estimator_class(_method(entry))).parameters
    return EPSILONS[relation] if relation == "add_remove" or "neighbours" in known else ()


def _splits(entry: str, name: str) -> range:
    """List the splits of an entry; boosting takes minutes on large tables."""
    few = entry == "boosting" and len(load(name).y) >= SMALL_ROWS
    return range(LARGE_SPLITS) if few else list_splits(name)


def _columns(scores: np.ndarray) -> np.ndarray:
    """Return scores with one column per class."""
    return scores if scores.ndim == 2 else np.column_stack([-scores, scores])


def run(
    entry: str, data: UtilitySet, relation: str, epsilon: float, split: int, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Fit one cell, with several draws of noise if rows are few; return mean scores and processor seconds."""
    train, test = data.splits[split]
    method = estimator_class(_method(entry))
    known = inspect.signature(method).parameters
    coded, X = data.code_columns(), data.scale_features()
    offered = {
        "epsilon": epsilon, "delta": DELTA, "classes": list(range(data.n_classes)), "neighbours": relation,
        "n_rows": len(train),
    }  # fmt: skip
    if "categories" in known:
        X, offered["categories"] = coded.X, [int(levels) for levels in coded.levels]
        offered["bounds"] = (coded.lower, coded.upper)
    elif "bounds" in known:
        X, offered["bounds"] = data.X, (data.lower, data.upper)
        offered["indicators"] = np.flatnonzero(data.indicators).tolist()
    draws = []
    for draw in range(SMALL_DRAWS if len(data.y) < SMALL_ROWS and entry not in OLDER_ALONE else 1):
        offered["random_state"] = split + SPLITS * draw
        chosen = {name: value for name, value in offered.items() if name in known}
        model = method(**(chosen | ENTRIES.get(entry, {}) | (settings or {})))
        start = time.process_time()
        model.fit(X[train], data.y[train])
        seconds = time.process_time() - start
        draws.append({**score_row(data.y[test], _columns(model.decision_function(X[test]))), "seconds": seconds})
    return {name: float(np.round(np.mean([cell[name] for cell in draws]), DIGITS)) for name in (*SCORES, "seconds")}


def run_reference(entry: str, data: UtilitySet, split: int) -> dict[str, float]:
    """Fit a reference without privacy."""
    train, test = data.splits[split]
    start = time.process_time()
    if entry == "majority":
        counts = np.bincount(data.y[train], minlength=data.n_classes)
        scores = np.tile(counts.astype(float), (len(test), 1))
    else:
        coded = data.code_columns()
        model, X = LinearSVC(C=1.0, dual="auto"), data.scale_features()
        if entry == "boosting":
            X = coded.X
            model = HistGradientBoostingClassifier(categorical_features=coded.levels > 0, random_state=split)
        model.fit(X[train], data.y[train])
        scores = np.full((len(test), data.n_classes), -np.inf)
        scores[:, model.classes_] = _columns(model.decision_function(X[test]))
        scores = np.maximum(scores, scores[np.isfinite(scores)].min() - 1.0)
    cell = {**score_row(data.y[test], scores), "seconds": time.process_time() - start}
    return {name: round(value, DIGITS) for name, value in cell.items()}


def run_cell(key: tuple[str, ...]) -> dict[str, Any]:
    """Run a cell of the table."""
    entry, name, relation, epsilon, split = key
    if entry in REFERENCES:
        return run_reference(entry, load(name), int(split))
    return run(entry, load(name), relation, float(epsilon), int(split))


CELLS = Cells(TABLES / "leaderboard.csv", ("entry", "set", "neighbours", "epsilon", "split"), _code, run_cell)


def list_cells(
    entries: Sequence[str], names: Sequence[str], splits: Sequence[int] | None, relations: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """List the keys of cells."""
    for name, entry in itertools.product(names, entries):
        columns = [(one, epsilon) for one in relations for epsilon in _epsilons(entry, name, one)]
        columns = [("", math.inf)] if entry in REFERENCES else columns
        for (relation, epsilon), split in itertools.product(columns, splits or _splits(entry, name) if columns else ()):
            yield entry, name, relation, str(epsilon), str(split)


def main() -> None:
    """Run missing cells, and write the page, its pictures, and what other pages say of accuracy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", nargs="*", default=[*ENTRIES, *REFERENCES])
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--splits", nargs="*", type=int, choices=range(SPLITS))
    parser.add_argument("--relations", nargs="*", default=list(EPSILONS), choices=list(EPSILONS))
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    parser.add_argument("--confirm", type=int, metavar="CELLS", help="run a sample of each entry with changed code")
    arguments = parser.parse_args()
    if unknown := {*map(_method, arguments.entries)} - {*REFERENCES, *implementations()}:
        parser.error(f"{', '.join(sorted(unknown))}: no method of the library; see docs/join-leaderboard.md for others")
    holds = True
    if arguments.confirm:
        holds = CELLS.confirm(arguments.entries, arguments.confirm)
    elif not arguments.page_only:
        CELLS.measure(list_cells(arguments.entries, arguments.sets, arguments.splits, arguments.relations))
    page.write()
    sys.exit(not holds)


if __name__ == "__main__":
    main()
