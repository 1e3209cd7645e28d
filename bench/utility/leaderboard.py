"""The leaderboard: ``python bench/utility/leaderboard.py`` runs missing cells and writes docs/leaderboard.md.

A cell is an entry, a set, an epsilon and a split, under add_remove. Rows of library methods are in
``reports/utility/leaderboard.csv``, with the digest of the sources; those of other libraries in ``peers.csv``. A
submission is one file with a class that has ``fit`` and ``decision_function``, importable as ``package.module:Class``:
``python bench/utility/leaderboard.py --entries package.module:Class``. Its constructor may take ``epsilon``, ``delta``,
``classes``, ``bounds``, ``categories``, ``indicators``, ``neighbours``, ``n_rows`` and ``random_state``.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import itertools
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from page import table
from run_ours import DELTA, scaled
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon
from scores import SCORES, score_row
from sets import NEWER, SETS, UtilitySet, load
from verdicts import PEER_EPSILONS, ROOT, TABLES, TITLES

from privsvm.files import write_text
from privsvm.registry import estimator_class, implementations, is_foreign, module_name
from privsvm_bench.workflow.sources import closure_digest

CELLS, PAGE = TABLES / "leaderboard.csv", ROOT / "docs" / "leaderboard.md"
SPLITS, RELATION = 3, "add_remove"
RECOMMENDED = "recommended"
# Entries of the library, with settings that are the same for all sets.
ENTRIES: dict[str, dict[str, Any]] = {
    RECOMMENDED: {},
    "dp_naive_bayes": {},
    "dp_tr_newton": {},
    "dp_feature_covariance": {},
    "dp_least_squares": {},
    "dp_newton": {},
    "pmsvm_gp": {"scaling": "centre"},
    "objective_perturbation": {"C": 0.05},
}
_KEYS = ("entry", "set", "epsilon", "split")
_FIELDS = (*_KEYS, *SCORES, "seconds", "sources")
# Last significance level, of all paired tests of a page together.
_ALARM = 0.05


def _sources(entry: str) -> str:
    return entry if is_foreign(entry) else closure_digest(module_name(entry))[:12]


def run(entry: str, data: UtilitySet, epsilon: float, split: int) -> dict[str, Any]:
    """Fit one cell; return its scores and processor seconds."""
    train, test = data.splits[split]
    method = estimator_class(entry)
    known = inspect.signature(method).parameters
    coded, X = data.coded(), scaled(data)
    offered = {
        "epsilon": epsilon, "delta": DELTA, "classes": list(range(data.n_classes)), "neighbours": RELATION,
        "n_rows": None if entry == RECOMMENDED else len(train), "random_state": split,
    }  # fmt: skip
    if "categories" in known:
        X, offered["categories"] = coded.X, [int(levels) for levels in coded.levels]
        offered["bounds"] = (coded.lower, coded.upper)
    elif "bounds" in known:
        X, offered["bounds"] = data.X, (data.lower, data.upper)
        offered["indicators"] = np.flatnonzero(data.indicators).tolist()
    chosen = {name: value for name, value in offered.items() if name in known}
    model = method(**chosen, **ENTRIES.get(entry, {}))
    start = time.process_time()
    model.fit(X[train], data.y[train])
    seconds = time.process_time() - start
    scores = model.decision_function(X[test])
    columns = scores if scores.ndim == 2 else np.column_stack([-scores, scores])
    return {**score_row(data.y[test], columns), "seconds": round(seconds, 3)}


def measure(entries: Sequence[str], names: Sequence[str], splits: Sequence[int]) -> None:
    """Run the cells that the present sources lack."""
    present = {entry: _sources(entry) for entry in entries}
    rows = pd.read_csv(CELLS).to_dict("records") if CELLS.exists() else []
    kept = [row for row in rows if row["sources"] == present.get(row["entry"], row["sources"])]
    done = {tuple(row[key] for key in _KEYS) for row in kept}
    with CELLS.open("w", newline="") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept, key=lambda row: tuple(str(row[key]) for key in _KEYS)))
        for name, split in itertools.product(names, splits):
            for entry, epsilon in itertools.product(entries, PEER_EPSILONS):
                if (entry, name, epsilon, split) not in done:
                    cell = run(entry, load(name), epsilon, split)
                    writer.writerow({"entry": entry, "set": name, "epsilon": epsilon, "split": split}
                                    | {"sources": present[entry]} | cell)  # fmt: skip
                    file.flush()


def read() -> pd.DataFrame:
    """Read the cells of all entries on common splits."""
    own = pd.read_csv(CELLS)
    peers = pd.read_csv(TABLES / "peers.csv").rename(columns={"peer": "entry"})
    peers = peers[(peers.status == "ok") & (peers.split < SPLITS)]
    return pd.concat([own, peers], ignore_index=True)[[*_KEYS, *SCORES, "seconds"]]


def complete(values: pd.DataFrame) -> pd.DataFrame:
    """Keep entries with answers on half of the sets at least."""
    return values[values.columns[values.notna().mean() >= 0.5]]


def places(values: pd.DataFrame) -> pd.DataFrame:
    """Rank entries on every set; one without an answer is last."""
    ranks = np.array([rankdata(-row) for row in values.fillna(-1.0).to_numpy()])
    return pd.DataFrame(ranks, index=values.index, columns=values.columns)


def critical_difference(n_entries: int, n_sets: int) -> float:
    """Return by how much mean ranks must differ (Nemenyi, 5 %)."""
    quantile = float(studentized_range.ppf(0.95, n_entries, 1e6)) / math.sqrt(2.0)
    return quantile * math.sqrt(n_entries * (n_entries + 1) / (6.0 * n_sets))


def title(entry: str) -> str:
    """Name an entry for readers."""
    return TITLES.get(entry, entry).strip("*")


def section(cells: pd.DataFrame, epsilon: float, names: Sequence[str]) -> list[str]:
    """Write ranks, paired tests and accuracy at one epsilon on some sets."""
    here = cells[(cells.epsilon == epsilon) & cells["set"].isin(names)]
    values = here.groupby(["set", "entry"]).accuracy.mean().unstack().reindex(list(names)).dropna(how="all")
    values = complete(values)
    ranks = places(values).mean().sort_values()
    seconds = here.groupby("entry").seconds.median()
    first, rows = ranks.index[0], []
    tests = [entry for entry in ranks.index if entry != RECOMMENDED]
    for entry, rank in ranks.items():
        row = [title(str(entry)), f"{rank:.2f}", f"{seconds[entry]:.2f}"]
        if entry == RECOMMENDED:
            rows.append([f"**{row[0]}**", *row[1:], "", "", "", ""])
            continue
        gaps = (100.0 * (values[RECOMMENDED] - values[entry])).dropna()
        chance = float(wilcoxon(gaps).pvalue) if (gaps != 0.0).any() else 1.0
        # Bonferroni: all entries of the table together.
        sure = "yes" if chance * len(tests) < _ALARM else "no"
        rows.append([*row, str((gaps > 0).sum()), str((gaps < 0).sum()), f"{gaps.mean():+.1f}", sure])
    friedman = friedmanchisquare(*values.fillna(-1.0).to_numpy().T).pvalue
    best = values.drop(columns=RECOMMENDED).max(axis=1)
    behind = (100.0 * (best - values[RECOMMENDED])).sort_values(ascending=False)
    behind = behind[behind > 0.0]
    who = values.drop(columns=RECOMMENDED).idxmax(axis=1)
    short = [f"{name} ({gap:.1f} points behind {title(who[name])})" for name, gap in behind.items()]
    claim = (
        f"`recommended` is first among the {len(ranks)} entries listed by mean rank"
        if first == RECOMMENDED
        else f"`recommended` is not first by mean rank: {title(str(first))} is"
    )
    return [
        f"### Epsilon {epsilon:g}", "",
        f"{claim} ({ranks[RECOMMENDED]:.2f} on {len(values)} sets). It has the highest accuracy on "
        f"{len(values) - len(behind)} of them. Mean ranks that differ by less than "
        f"{critical_difference(len(ranks), len(values)):.2f} may be chance (Nemenyi, 5 %; Friedman p {friedman:.1g}).",
        "",
        table(["entry", "mean rank", "seconds", "recommended wins", "loses", "points", "sure"], rows),
        *(["It is behind on " + ", ".join(short) + ".", ""] if short else []),
    ]  # fmt: skip


def accuracy(cells: pd.DataFrame, epsilon: float) -> str:
    """Write accuracy by set and entry."""
    values = cells[cells.epsilon == epsilon].groupby(["set", "entry"]).accuracy.mean().unstack()
    entries = [entry for entry in (*ENTRIES, *values.columns) if entry in complete(values)]
    entries = list(dict.fromkeys(entries))
    rows = []
    for name in (name for name in SETS if name in values.index):
        row = values.loc[name, entries]
        shown = ["" if math.isnan(v) else f"{v:.3f}".lstrip("0") for v in row]
        marked = [f"**{text}**" if v >= row.max() - 5e-4 else text for text, v in zip(shown, row, strict=True)]
        rows.append([name, *marked])
    return table(["set", *map(title, entries)], rows)


_HEAD = """# Leaderboard

<!-- written by bench/utility/leaderboard.py from reports/utility -->

Mean accuracy over {splits} label-blind splits, at delta 1e-5 under `add_remove`. diffprivlib's logistic regression has
`replace_one`, and diffprivlib delta 0. Everybody gets the same rows, classes, bounds and categories, and has one
setting for all sets. "First" means: among the entries listed here, on the sets listed here.

No set of this page is unseen: results on all of them were looked at while the rules of `recommended` were written, and
on a few of them while those of `dp_naive_bayes` and `dp_tr_newton` were. That favours these three. The constants for
linear features are older and were chosen on {older} sets. Newer are {names}.

Three rules of `recommended` came last: no second moment of wide tables where a row is added, features of tables of few
numbers, and what trials with more than two classes need and cost. The older sets chose their constants, with eight
that are not on this page (cleveland_uci, dermatology_uci, fourclass_scale, glass.scale, heart_scale,
ionosphere_scale, sonar_scale, vehicle.scale) and made-up tables of one to four columns. The newer sets judge them;
only, the first rule applies to fewer tables than those sets ask for, as libras and leaf lost by it.

An entry without an answer on a set is last there; one with answers on fewer than half of the sets is left out of the
table. *Wins*, *loses* and *points* are of `recommended` against the entry, set by set. *Sure* is a Wilcoxon test over
sets, at 5 % for all entries of the table together. *Seconds* are the median processor time of a fit. Cells are of the
sources whose digest `reports/utility/leaderboard.csv` states.

Opacus and MST have no cells on the newer sets. OpenDP 0.16 has no logistic regression to run here.
"""
_SUBMIT = """## Submit a method

Write one file with a scikit-learn class whose constructor takes `epsilon`, and any of `delta`, `classes`, `bounds`,
`categories`, `indicators`, `neighbours`, `n_rows` and `random_state`. With `categories` it gets categories as codes,
otherwise as indicators. One command runs it on all sets and writes this page:

```text
PYTHONPATH=. python bench/utility/leaderboard.py --entries my_package.my_module:MyClassifier
```

`--sets` and `--splits` rerun single cells. Cells of other sources run again. Delete a row of
`reports/utility/leaderboard.csv` to have it made again. Entries of other libraries run in their own environments
(`python bench/utility/run_peers.py`). Nothing here judges whether an epsilon holds: this library's methods have
[proofs](proofs/README.md), and `privsvm.audit` tests any class ([auditing](auditing.md)).
"""


def page_text(cells: pd.DataFrame) -> str:
    """Write the page."""
    measured = set(cells[cells.entry == RECOMMENDED]["set"])
    older = [name for name in SETS if name not in NEWER and name in measured]
    newer = [name for name in NEWER if name in measured]
    head = _HEAD.format(splits=SPLITS, older=len(older), names=", ".join(newer))
    lines = [*head.splitlines(), ""]
    for heading, names in (("Newer sets", newer), ("Older sets", older)):
        if names:
            lines += [f"## {heading}", ""]
            for epsilon in PEER_EPSILONS:
                lines += section(cells, epsilon, names)
    lines += ["## Every set", ""]
    for epsilon in PEER_EPSILONS:
        lines += [
            f"Accuracy at epsilon {epsilon:g}; bold is the best.",
            "",
            accuracy(cells[cells["set"].isin(measured)], epsilon),
        ]
    return "\n".join([*lines, _SUBMIT])


def main() -> None:
    """Run missing cells, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", nargs="*", default=list(ENTRIES))
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--splits", nargs="*", type=int, default=list(range(SPLITS)))
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    for entry in arguments.entries:
        if not is_foreign(entry) and entry not in implementations():
            parser.error(f"{entry}: no method of the library; give package.module:Class")
    if not arguments.page_only:
        measure(arguments.entries, arguments.sets, arguments.splits)
    write_text(PAGE, page_text(read()))


if __name__ == "__main__":
    main()
