"""The leaderboard: ``python bench/utility/leaderboard.py`` runs missing cells and writes docs/leaderboard.md.

It also writes the sentences on accuracy in the README.

A cell is an entry, a set, an epsilon and a split. Rows of library methods, and of references without privacy, are in
``reports/utility/leaderboard.csv``, those under replace_one in ``replace_one.csv``, those of other libraries in
``peers.csv``. ``sources.json`` says by which code each entry was measured; ``--confirm 8`` runs eight cells of every
entry whose code has changed since. A submission is one file with a class that has ``fit`` and
``decision_function``, importable as ``package.module:Class``:
``python bench/utility/leaderboard.py --entries package.module:Class``. Its constructor may take ``epsilon``, ``delta``,
``classes``, ``bounds``, ``categories``, ``indicators``, ``neighbours``, ``n_rows`` and ``random_state``.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import math
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import verdicts
from cells import Cells
from page import gaps_by_rows, number, sources_section, table, with_section
from run_ours import DELTA, SCIKIT_LEARN, columns, reference_row, scaled
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon
from scores import SCORES, score_row
from sets import (
    CHOSE,
    LARGE_ROWS,
    LARGE_SPLITS,
    NEWER,
    OLDER,
    SETS,
    SMALL_DRAWS,
    SMALL_ROWS,
    SPLITS,
    UNSEEN,
    UtilitySet,
    load,
    measured_splits,
)
from verdicts import PEER_EPSILONS, RECOMMENDED, ROOT, TABLES, short_title

from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Gaussian
from privsvm.privacy.risk import trade_off
from privsvm.registry import estimator_class, foreign_source, implementations, is_foreign, module_name
from privsvm_bench.workflow.sources import closure_digest

PAGE, README = ROOT / "docs" / "leaderboard.md", ROOT / "README.md"
# Marks of what this script writes into the README.
_START, _END = "<!-- written by bench/utility/leaderboard.py -->", "<!-- end of what is written -->"
# Cells and epsilons of each relation of neighbours.
RELATIONS = {"add_remove": ("leaderboard", PEER_EPSILONS), "replace_one": ("replace_one", (1.0,))}
COLUMNS = [(relation, epsilon) for relation, (_, epsilons) in RELATIONS.items() for epsilon in epsilons]
# The recommended method where the number of rows is private: it pays for a noisy one, and has no place in the tables.
COUNTED = "recommended_counted"
# Entries of the library, with settings that are the same for all sets.
ENTRIES: dict[str, dict[str, Any]] = {
    RECOMMENDED: {},
    "dp_naive_bayes": {},
    "dp_tr_newton": {},
    "dp_feature_covariance": {},
    "dp_least_squares": {},
    "adassp": {},
    "dp_lda": {},
    "dp_newton": {},
    "pmsvm_gp": {"scaling": "centre"},
    "objective_perturbation": {"C": 0.05},
    COUNTED: {"n_rows": None},
}
# Without privacy; their epsilon is infinite.
REFERENCES = ("majority", "svm", "boosting")
_KEYS = ("entry", "set", "epsilon", "split")
# Of scores: with more, equal answers would differ by how they were rounded.
_DIGITS = 4
# Last significance level, of all paired tests of a page together.
_ALARM = 0.05


def _method(entry: str) -> str:
    return RECOMMENDED if entry == COUNTED else entry


def _code(entry: str) -> str:
    entry = _method(entry)
    if entry in REFERENCES:
        return SCIKIT_LEARN
    return (foreign_source(entry).digest if is_foreign(entry) else closure_digest(module_name(entry)))[:12]


def _epsilons(entry: str, relation: str) -> tuple[float, ...]:
    """Return the epsilons at which an entry is measured under a relation."""
    if entry in REFERENCES:
        return (math.inf,) if relation == "add_remove" else ()
    if entry == COUNTED and relation == "replace_one":
        # Neighbours have as many rows: it is the recommended method.
        return ()
    known = inspect.signature(estimator_class(_method(entry))).parameters
    return RELATIONS[relation][1] if relation == "add_remove" or "neighbours" in known else ()


def _splits(entry: str, name: str) -> range:
    """List the splits of an entry; boosting takes minutes on large tables."""
    few = entry == "boosting" and len(load(name).y) >= SMALL_ROWS
    return range(LARGE_SPLITS) if few else measured_splits(name)


def run(entry: str, data: UtilitySet, epsilon: float, split: int, relation: str = "add_remove") -> dict[str, Any]:
    """Fit one cell, with several draws of noise if rows are few; return mean scores and processor seconds."""
    train, test = data.splits[split]
    method = estimator_class(_method(entry))
    known = inspect.signature(method).parameters
    coded, X = data.coded(), scaled(data)
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
    for draw in range(SMALL_DRAWS if len(data.y) < SMALL_ROWS else 1):
        offered["random_state"] = split + SPLITS * draw
        chosen = {name: value for name, value in offered.items() if name in known}
        model = method(**(chosen | ENTRIES.get(entry, {})))
        start = time.process_time()
        model.fit(X[train], data.y[train])
        seconds = time.process_time() - start
        draws.append({**score_row(data.y[test], columns(model.decision_function(X[test]))), "seconds": seconds})
    return {name: float(np.round(np.mean([cell[name] for cell in draws]), _DIGITS)) for name in (*SCORES, "seconds")}


def cells_of(relation: str) -> Cells:
    """Return the table of a relation."""

    def run_cell(key: tuple[str, ...]) -> dict[str, Any]:
        entry, name, epsilon, split = key
        if entry in REFERENCES:
            cell = reference_row(entry, load(name), int(split))
            return {score: round(value, _DIGITS) for score, value in cell.items()}
        return run(entry, load(name), float(epsilon), int(split), relation)

    return Cells(TABLES / f"{RELATIONS[relation][0]}.csv", _KEYS, _code, run_cell)


def wanted(
    entries: Sequence[str], names: Sequence[str], splits: Sequence[int] | None, relation: str
) -> Iterator[tuple[str, ...]]:
    """List the keys of cells."""
    for name, entry in itertools.product(names, entries):
        for epsilon, split in itertools.product(_epsilons(entry, relation), splits or _splits(entry, name)):
            yield entry, name, str(epsilon), str(split)


def read() -> pd.DataFrame:
    """Read the cells of all entries on common splits, with their relation of neighbours, to as many digits."""
    own = [pd.read_csv(cells_of(relation).path).assign(neighbours=relation) for relation in RELATIONS]
    peers = pd.read_csv(TABLES / "peers.csv").rename(columns={"peer": "entry"})
    peers = peers[peers.status == "ok"]
    cells = pd.concat([*own, peers], ignore_index=True)[[*_KEYS, "neighbours", *SCORES]]
    return cells.round(dict.fromkeys(SCORES, _DIGITS))


def complete(values: pd.DataFrame) -> pd.DataFrame:
    """Keep entries (columns) with answers on half of the sets at least."""
    return values[values.columns[values.notna().mean() >= 0.5]]


def places(values: pd.DataFrame, ties: str = "average") -> pd.DataFrame:
    """Rank entries on every set; one without an answer is last. Ties are those of `scipy.stats.rankdata`."""
    ranks = np.array([rankdata(-row, ties) for row in values.fillna(-1.0).to_numpy()])
    return pd.DataFrame(ranks, index=values.index, columns=values.columns)


def critical_difference(n_entries: int, n_sets: int) -> float:
    """Return by how much mean ranks must differ (Nemenyi, 5 %)."""
    quantile = float(studentized_range.ppf(0.95, n_entries, 1e6)) / math.sqrt(2.0)
    return quantile * math.sqrt(n_entries * (n_entries + 1) / (6.0 * n_sets))


def under(cells: pd.DataFrame, relation: str) -> pd.DataFrame:
    """Select what is compared under a relation; a peer that has replaced rows alone is compared under both."""
    if relation == "replace_one":
        return cells[cells.neighbours == relation]
    replaced = (cells.neighbours == "replace_one").groupby(cells.entry).transform("all")
    return cells[(cells.neighbours == relation) | replaced]


def accuracies(cells: pd.DataFrame, epsilon: float, names: Sequence[str]) -> pd.DataFrame:
    """Average over splits, by set and entry, without entries that lack answers."""
    here = cells[(cells.epsilon == epsilon) & cells["set"].isin(names) & (cells.entry != COUNTED)]
    return complete(here.groupby(["set", "entry"]).accuracy.mean().unstack().reindex(list(names)).dropna(how="all"))


def section(cells: pd.DataFrame, epsilon: float, names: Sequence[str], heading: str = "") -> list[str]:
    """Write ranks, paired tests and sets where it is behind, at one epsilon on some sets."""
    values = accuracies(cells, epsilon, names)
    ranks = places(values).mean().sort_values()
    first, rows = ranks.index[0], []
    tests = [entry for entry in ranks.index if entry != RECOMMENDED]
    for entry, rank in ranks.items():
        row = [short_title(str(entry)), f"{rank:.2f}"]
        if entry == RECOMMENDED:
            rows.append([f"**{row[0]}**", *row[1:], "", "", "", ""])
            continue
        gaps = (100.0 * (values[RECOMMENDED] - values[entry])).dropna()
        chance = float(wilcoxon(gaps).pvalue) if (gaps != 0.0).any() else 1.0
        # Bonferroni: all entries of the table together.
        sure = "yes" if chance * len(tests) < _ALARM else "no"
        rows.append([*row, str((gaps > 0).sum()), str((gaps < 0).sum()), f"{gaps.mean():+.1f}", sure])
    friedman = friedmanchisquare(*values.fillna(-1.0).to_numpy().T).pvalue
    others = values.drop(columns=RECOMMENDED)
    behind = (100.0 * (others.max(axis=1) - values[RECOMMENDED])).sort_values(ascending=False)
    behind, who = behind[behind > 0.0], others.idxmax(axis=1)
    short = [f"{name} ({gap:.1f} points behind {short_title(who[name])})" for name, gap in behind.items()]
    claim = (
        f"`recommended` is first among the {len(ranks)} entries listed by mean rank"
        if first == RECOMMENDED
        else f"`recommended` is not first by mean rank: {short_title(str(first))} is"
    )
    return [
        f"### {heading}", "",
        f"{claim} ({ranks[RECOMMENDED]:.2f} on {len(values)} sets). It has the highest accuracy on "
        f"{len(values) - len(behind)} of them. Mean ranks that differ by less than "
        f"{critical_difference(len(ranks), len(values)):.2f} may be chance (Nemenyi, 5 %; Friedman p {friedman:.1g}).",
        "",
        table(["entry", "mean rank", "recommended wins", "loses", "points", "sure"], rows),
        *(["It is behind on " + ", ".join(short) + ".", ""] if short else []),
    ]  # fmt: skip


def _points(gap: float) -> str:
    """Write points; nothing for missing ones, and no sign of a rounded zero."""
    return "" if math.isnan(gap) else f"{round(gap, 1) + 0.0:.1f}"


def standing(cells: pd.DataFrame, names: Sequence[str]) -> str:
    """Write what holds of `recommended` on some sets, by relation and epsilon."""
    references = accuracies(cells, math.inf, names)
    columns: dict[str, list[str]] = {}
    for relation, epsilon in COLUMNS:
        values = accuracies(under(cells, relation), epsilon, names)
        ranks, ours = places(values).mean().sort_values(), values[RECOMMENDED]
        best_places = places(values, "min")[RECOMMENDED].mean()
        behind = 100.0 * (values.drop(columns=RECOMMENDED).max(axis=1) - ours)
        below = references.rsub(ours, axis=0).mul(-100.0)
        poor = below.index[below.majority > 1.0]
        columns[f"{relation}, {epsilon:g}"] = [
            f"{ranks[RECOMMENDED]:.2f} ({list(ranks.index).index(RECOMMENDED) + 1} of {len(ranks)})",
            f"{best_places:.2f}",
            f"{(behind <= 0).sum()} of {len(values)}",
            f"{(behind <= 1).sum()} of {len(values)} ({100 * (behind <= 1).mean():.0f} %)",
            f"{behind.max():.1f} ({behind.idxmax()})",
            f"{len(poor)} ({', '.join(poor)})" if len(poor) else "none",
            *(_points(below[one].median()) for one in ("svm", "boosting")),
        ]
    statements = [
        "mean rank (place among the entries)", "mean rank where equal accuracies share the best place",
        "sets with the highest accuracy", "sets at most 1 point behind the best", "most points behind",
        "sets more than 1 point below the majority class",
        "median points below the SVM without privacy", "median points below gradient boosting without privacy",
    ]  # fmt: skip
    rows = [list(row) for row in zip(statements, *columns.values(), strict=True)]
    return table(["epsilon", *columns], rows)


def missing(cells: pd.DataFrame, names: Sequence[str]) -> str:
    """Say which entries lack answers, but for sets of classes that they do not offer."""
    values = accuracies(under(cells, "add_remove"), 1.0, names)
    lacks = {entry: list(values.index[values[entry].isna()]) for entry in values if not entry.startswith("dp_ebm")}
    return "".join(
        f" {short_title(entry)} has no answer on {', '.join(sets)}." for entry, sets in lacks.items() if sets
    )


def cost_of_counting(cells: pd.DataFrame, names: Sequence[str]) -> str:
    """Write what a private number of rows costs."""
    here = cells[
        cells.entry.isin([RECOMMENDED, COUNTED]) & (cells.neighbours == "add_remove") & cells["set"].isin(names)
    ]
    values = here.groupby(["epsilon", "set", "entry"]).accuracy.mean().unstack()
    costs = (100.0 * (values[RECOMMENDED] - values[COUNTED])).groupby("epsilon").mean()
    told = ", ".join(f"{_points(cost)} points at epsilon {epsilon:g}" for epsilon, cost in costs.items())
    return f"Where the number of rows is private, `recommended` pays for a noisy one, which costs {told} on average."


def distances(cells: pd.DataFrame, names: Sequence[str]) -> str:
    """Write the distance to training without privacy at epsilon 1, set by set."""
    references = accuracies(cells, math.inf, names).reindex(names)[list(REFERENCES)]
    ours = {one: accuracies(under(cells, one), 1.0, names)[RECOMMENDED] for one in RELATIONS}
    rows = []
    for name, known in references.iterrows():
        below = [100.0 * (known[one] - ours[relation][name]) for relation in ours for one in ("svm", "boosting")]
        rows.append([str(name), *map(number, known), *map(_points, below)])
    header = [f"below {one}, {relation}" for relation in ours for one in ("SVM", "boosting")]
    return table(["set", "majority", "SVM", "boosting", *header], rows)


def costs(cells: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Write what replaced rows cost, and what half of epsilon does."""
    added, replaced = under(cells, "add_remove"), under(cells, "replace_one")
    half, whole, other = accuracies(added, 0.5, names), accuracies(added, 1.0, names), accuracies(replaced, 1.0, names)
    rows = [
        [short_title(entry), *(_points(100.0 * (whole[entry] - less[entry]).mean()) for less in (other, half))]
        for entry in ENTRIES
        if entry in other
    ]
    loss, halved = (100.0 * (whole[RECOMMENDED] - less[RECOMMENDED]) for less in (other, half))
    most = loss.sort_values(ascending=False).index[:5]
    return [
        f"At epsilon 1, `recommended` loses {loss.mean():.1f} points on average (median {loss.median():.1f}) where a "
        "row is replaced instead of added. Replacing a row takes one away and adds another, so the noise is twice as "
        f"large; halving epsilon under `add_remove` nearly doubles it, and costs {halved.mean():.1f} points "
        f"(correlation over sets {loss.corr(halved):.2f}). Tables of few rows for each class lose most, as accuracy "
        "there still rises steeply with epsilon.",
        "",
        table(["entry", "points by replace_one", "points by half of epsilon"], rows),
        table(
            ["`recommended` on", "points by replace_one", "points by half of epsilon"],
            [[name, _points(loss[name]), _points(halved[name])] for name in most],
        ),
    ]


def accuracy(cells: pd.DataFrame, epsilon: float, names: Sequence[str]) -> str:
    """Write accuracy by set and entry."""
    values = accuracies(cells, epsilon, names)
    entries = [entry for entry in dict.fromkeys((*ENTRIES, *values.columns)) if entry in values]
    rows = []
    for name, row in values[entries].iterrows():
        marked = [f"**{number(v)}**" if v >= row.max() - 5e-4 else number(v) for v in row]
        rows.append([str(name), *marked])
    return table(["set", *map(short_title, entries)], rows)


_HEAD = """# Leaderboard

<!-- written by bench/utility/leaderboard.py from reports/utility -->

Mean accuracy of private classifiers on {sets} real tables, at delta 1e-5, over {splits} label-blind splits, or {few} of
tables with {rows:,} rows or more. On tables with fewer than {small:,} rows, where noise decides most, methods of this
library are averaged over {draws} draws of noise in every split. Everybody gets the same rows, classes, bounds,
categories and number of rows, which are public here, and has one setting for all sets. "First" means: among the entries
listed here, on the sets listed here.

## Which sets chose, and which judge

These chose the constants of `recommended`, on {older} of them those of linear features, on all those of its last rules:
{chose}.

These chose no constant, but results on them were looked at while the rules of three methods were written, which
favours `recommended`, `dp_naive_bayes` and `dp_tr_newton`: {newer}.

These came last: {unseen}.

The last rules let random features see low hat functions, and of more than two classes let features that are more win
with nearly as many votes, as was best on columns drawn from letter, satimage, segment, covtype, cod-rna, ijcnn1, usps,
digits and vehicle. The rules before try random features on tables of up to 256 columns, as was best on phishing, a9a,
mushrooms, and columns drawn from digits, usps and isolet. The rules on votes, trials, shrunken weights, hat functions
and steps of two classes were best on the sets that chose, or on columns and subsets drawn from them. Results on all
sets were seen before these choices: winered led to the rules on votes, and diamonds to those on hat functions. Older
rules (when a second moment is taken, shorter steps, what trials with more than two classes cost) were chosen before
the sets that came last were seen. Only the steps of many classes and those of few columns were chosen later.

## How to read the tables

An entry without an answer on a set is last there; one with answers on fewer than half of the sets of a table is left
out of it. *Wins*, *loses* and *points* are of `recommended` against the entry, set by set. *Sure* is a Wilcoxon test
over sets, at 5 % for all entries of the table together. diffprivlib has delta 0, and its logistic regression
`replace_one` in all tables. Other libraries have their defaults, or settings that their documentation suggests; a fit
of theirs has ten minutes and 8 GB. The SVM without privacy is linear, and gradient boosting is scikit-learn's with its
defaults.

DP-EBM handles two classes only.{missing} Opacus has {opacus} splits. MST and AIM have one split on too few sets for a
table: banana and mammographic, and MST also flchain, hr, ring, vowel and winered (`reports/utility/peers.csv`). OpenDP
0.16 has no logistic regression to run here.
"""
_SUBMIT = """## Submit a method

Write one file with a scikit-learn class that has `fit` and `decision_function`, and whose constructor takes `epsilon`,
and any of `delta`, `classes`, `bounds`, `categories`, `indicators`, `neighbours`, `n_rows` and `random_state`. With
`categories` it gets categories as codes, otherwise as indicators. One that takes `neighbours` is also measured under
`replace_one`. One command runs it on all sets and writes this page, which lists entries with answers on half of the
sets:

```text
PYTHONPATH=. python bench/utility/leaderboard.py --entries my_package.my_module:MyClassifier
```

`--sets`, `--splits` and `--relations` select cells. An entry whose code has changed runs again on these sets;
`--confirm 8` runs eight of its cells instead, and states in `reports/utility/sources.json` that they hold. Delete a row
of `reports/utility/leaderboard.csv` or `replace_one.csv` to have it made again. Entries of other libraries run in their
own environments (`python bench/utility/run_peers.py`). Nothing here judges whether an epsilon holds: this library's
methods have [proofs](proofs/README.md), and `privsvm.audit` tests any class ([auditing](auditing.md)).
"""


def page_text(cells: pd.DataFrame) -> str:
    """Write the page."""
    measured = set(cells[cells.entry == RECOMMENDED]["set"])
    chose, newer, unseen = ([name for name in names if name in measured] for names in ((*OLDER, *CHOSE), NEWER, UNSEEN))
    names = [*chose, *newer, *unseen]
    splits = cells[cells.entry.str.startswith("opacus")].groupby(["entry", "set", "epsilon"]).split.nunique()
    opacus = f"{splits.min()} to {splits.max()}"
    words = {"opacus": opacus, "chose": ", ".join(chose), "newer": ", ".join(newer), "unseen": ", ".join(unseen)}
    lines = [
        *_HEAD.format(
            splits=SPLITS,
            few=LARGE_SPLITS,
            rows=LARGE_ROWS,
            small=SMALL_ROWS,
            draws=SMALL_DRAWS,
            sets=len(names),
            older=len(OLDER),
            missing=missing(cells, names),
            **words,
        ).splitlines(),
        "",
    ]
    judges = [*newer, *unseen]
    lines += ["## What holds", ""]
    elder = [name for name in names if name in (*OLDER, *NEWER)]
    groups = {
        "All sets": names,
        f"All but {', '.join(name for name in names if name not in elder)}": elder,
        "Sets that judge": judges,
        "Sets that came last": unseen,
    }
    for heading, group in groups.items():
        lines += [f"{heading} ({len(group)}), by relation and epsilon:", "", standing(cells, group)]
    lines += [cost_of_counting(cells, names), ""]
    for heading, group in (("Sets that judge", judges), ("Sets that chose", chose)):
        lines += [f"## {heading}", ""]
        for relation, epsilon in COLUMNS:
            words_of = f"Epsilon {epsilon:g}, {relation}"
            lines += section(under(cells, relation), epsilon, group, words_of)
    lines += ["## What replace_one costs", "", *costs(cells, names)]
    lines += ["## Against training without privacy", "", "Points at epsilon 1.", "", distances(cells, names)]
    lines += ["## Every set", ""]
    for relation, epsilon in COLUMNS:
        lines += [
            f"Accuracy at epsilon {epsilon:g} under {relation}; bold is the best.",
            "",
            accuracy(under(cells, relation), epsilon, names),
        ]
    return "\n".join([*lines, *sources_section("leaderboard", "replace_one", "peers"), _SUBMIT])


def with_accuracy(readme: str, cells: pd.DataFrame) -> str:
    """Replace the sentences on accuracy in the README."""
    values = accuracies(under(cells, "add_remove"), 1.0, sorted(set(cells["set"])))
    ranks = places(values).mean().sort_values()
    place = list(ranks.index).index(RECOMMENDED) + 1
    others = ranks.drop(RECOMMENDED)
    ours, _, reference = verdicts.read()
    groups = {words: group[1.0] for words, group in gaps_by_rows(ours, reference).items()}
    gaps, sizes = pd.concat(groups.values()), []
    for words, group in groups.items():
        median = round(group.median(), 1)
        sizes.append(f"{abs(median):.1f} points {'higher' if median < 0 else 'lower'} with {words} rows")
    guess = trade_off(Gaussian(gaussian_noise_multiplier(1.0, DELTA)), "add_remove").guess(0.5)
    chose, seen, last = (len(values.index.intersection(list(names))) for names in ((*OLDER, *CHOSE), NEWER, UNSEEN))
    sentences = (
        f"At epsilon 1, whoever guesses whether a row was used is right at most {math.ceil(100 * guess)} times in 100 "
        f"([risks](docs/epsilon.md)). Against a linear SVM without privacy on {len(gaps)} real sets (`replace_one`), "
        f"its accuracy is {', '.join(sizes)} (medians; {gaps.max():.1f} lower on the worst, {gaps.idxmax()}). On "
        f"{len(values)} sets (`add_remove`; {chose} chose its constants, {seen} more were looked at, {last} came last) "
        f"it is {'first' if place == 1 else f'number {place}'} of {len(ranks)} private classifiers by mean rank "
        f"({ranks[RECOMMENDED]:.2f}; next is {short_title(str(others.index[0]))} with {others.iloc[0]:.2f}): see the "
        "[leaderboard](docs/leaderboard.md)."
    )
    return with_section(readme, _START, _END, textwrap.fill(sentences, 128))


def main() -> None:
    """Run missing cells, and write the page and the sentences in the README."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", nargs="*", default=[*ENTRIES, *REFERENCES])
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--splits", nargs="*", type=int, choices=range(SPLITS))
    parser.add_argument("--relations", nargs="*", default=list(RELATIONS), choices=list(RELATIONS))
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    parser.add_argument("--confirm", type=int, metavar="CELLS", help="run a sample of each entry with changed code")
    arguments = parser.parse_args()
    for entry in arguments.entries:
        if is_foreign(entry):
            try:
                if not hasattr(estimator_class(entry), "decision_function"):
                    parser.error(f"{entry}: has no decision_function, which scores need")
            except PrivSVMError as error:
                parser.error(str(error))
        elif _method(entry) not in (*REFERENCES, *implementations()):
            parser.error(f"{entry}: no method of the library; give package.module:Class")
    holds = True
    for relation in () if arguments.page_only else arguments.relations:
        table_of_cells = cells_of(relation)
        if arguments.confirm:
            holds &= table_of_cells.confirm(arguments.entries, arguments.confirm)
        else:
            table_of_cells.measure(wanted(arguments.entries, arguments.sets, arguments.splits, relation))
    cells = read()
    write_text(PAGE, page_text(cells))
    write_text(README, with_accuracy(README.read_text(), cells))
    sys.exit(not holds)


if __name__ == "__main__":
    main()
