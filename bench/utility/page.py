"""Write docs/leaderboard.md, its pictures, and what README and docs/epsilon.md say of accuracy, from the cells."""

from __future__ import annotations

import math
import statistics
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from entries import (
    BALANCED,
    COUNTED,
    DELTA,
    ENTRIES,
    EPSILONS,
    LINEAR,
    RANKED,
    RECOMMENDED,
    REFERENCES,
    ROOT,
    TABLES,
    title,
)
from ranking import (
    ALARM,
    above_majority,
    accuracies,
    beside_next_best,
    by_rows,
    critical_difference,
    gaps_to_svm,
    places,
    read,
    rising,
    under,
)
from scipy.stats import friedmanchisquare, wilcoxon
from sets import CHOSE, LARGE_ROWS, LARGE_SPLITS, NEWER, OLDER, SMALL_DRAWS, SMALL_ROWS, SPLITS, UNSEEN, training_rows

from privsvm.files import write_text
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Gaussian
from privsvm.privacy.risk import trade_off
from privsvm_bench.evidence import Sources

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from sections import with_section

PAGE, README, EPSILON = ROOT / "docs" / "leaderboard.md", ROOT / "README.md", ROOT / "docs" / "epsilon.md"
# Marks of what stands in the README, and in the page on choosing epsilon.
_SENTENCES = ("<!-- written by bench/utility/leaderboard.py -->", "<!-- end of what is written -->")
_ACCURACY = ("<!-- accuracy: written by bench/utility/leaderboard.py -->", "<!-- end of accuracy -->")
# Two-class sets on which the positive class is rare.
_RARE = ("a9a", "ijcnn1", "w8a")


def number(value: float) -> str:
    """Write a share with three digits; nothing for a missing one."""
    return "" if value is None or math.isnan(value) else f"{value:.3f}".lstrip("0")


def table(header: list[str], rows: list[list[str]]) -> str:
    """Lay out a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] * len(header)) + " |"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def section(cells: pd.DataFrame, epsilon: float, names: Sequence[str], heading: str = "") -> list[str]:
    """Write ranks, paired tests and sets where it is behind, at one epsilon on some sets."""
    values = accuracies(cells, epsilon, names)
    ranks = places(values).mean().sort_values()
    first, rows = ranks.index[0], []
    tests = [entry for entry in ranks.index if entry != RECOMMENDED]
    for entry, rank in ranks.items():
        row = [title(str(entry)), f"{rank:.2f}"]
        if entry == RECOMMENDED:
            rows.append([f"**{row[0]}**", *row[1:], "", "", "", ""])
            continue
        gaps = (100.0 * (values[RECOMMENDED] - values[entry])).dropna()
        chance = float(wilcoxon(gaps).pvalue) if (gaps != 0.0).any() else 1.0
        # Bonferroni: all entries of the table together.
        sure = "yes" if chance * len(tests) < ALARM else "no"
        rows.append([*row, str((gaps > 0).sum()), str((gaps < 0).sum()), f"{gaps.mean():+.1f}", sure])
    friedman = friedmanchisquare(*values.fillna(-1.0).to_numpy().T).pvalue
    others = values.drop(columns=RECOMMENDED)
    behind = (100.0 * (others.max(axis=1) - values[RECOMMENDED])).sort_values(ascending=False)
    behind, who = behind[behind > 0.0], others.idxmax(axis=1)
    short = [f"{name} ({gap:.1f} points behind {title(who[name])})" for name, gap in behind.items()]
    claim = (
        f"`recommended` is first among the {len(ranks)} entries listed by mean rank"
        if first == RECOMMENDED
        else f"`recommended` is not first by mean rank: {title(str(first))} is"
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
    for relation, epsilon in RANKED:
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
    return "".join(f" {title(entry)} has no answer on {', '.join(sets)}." for entry, sets in lacks.items() if sets)


def cost_of_counting(cells: pd.DataFrame, names: Sequence[str]) -> str:
    """Write the cost of a private number of rows."""
    here = cells[
        cells.entry.isin([RECOMMENDED, COUNTED]) & (cells.neighbours == "add_remove") & cells["set"].isin(names)
    ]
    values = here.groupby(["epsilon", "set", "entry"]).accuracy.mean().unstack().dropna()
    costs = (100.0 * (values[RECOMMENDED] - values[COUNTED])).groupby("epsilon").mean()
    told = ", ".join(f"{_points(cost)} points at epsilon {epsilon:g}" for epsilon, cost in costs.items())
    return f"Where the number of rows is private, `recommended` pays for a noisy one, which costs {told} on average."


def curve_section(cells: pd.DataFrame) -> list[str]:
    """Write how accuracy follows epsilon, and statements that may fail."""
    gaps = gaps_to_svm(cells)[1.0]
    verdicts = [beside_next_best(cells), above_majority(cells), rising(cells)]
    lines = [
        "## Accuracy against epsilon", "",
        f"At epsilon 1 under replace_one, the accuracy of `PrivateLinearClassifier` on {len(gaps)} sets that chose its "
        f"constants lies {gaps.median():.1f} points below that of a linear SVM without privacy (median; "
        f"{gaps.max():.1f} on the worst, {gaps.idxmax()}).", "",
        "![Points below the SVM without privacy against epsilon](images/utility_gap.svg)", "",
        "![Accuracy against epsilon, one panel a set](images/utility_sets.svg)", "",
        table(["statement", "true in"], [[one.statement, one.share] for one in verdicts]),
    ]  # fmt: skip
    for verdict in verdicts:
        if verdict.failures:
            lines += [f'Exceptions to "{verdict.statement}":', "", *(f"- {cell}" for cell in verdict.failures), ""]
    return lines


def rare_section(cells: pd.DataFrame) -> list[str]:
    """Write balanced accuracy and AUC of sets with a rare class, and what random features add."""
    here = cells[cells.epsilon == 1.0]
    ours = here[here.neighbours == "replace_one"].groupby(["set", "entry"])
    values, peers = ours.mean(numeric_only=True), here[~here.entry.isin([*ENTRIES, *REFERENCES])]
    rows = []
    for name in _RARE:
        scores = [values.loc[(name, entry), ["balanced_accuracy", "auc"]] for entry in (RECOMMENDED, BALANCED)]
        theirs = peers[peers["set"] == name].groupby("entry").balanced_accuracy.mean()
        best = f"{number(theirs.max())} ({title(str(theirs.idxmax()))})"
        rows.append([name, *(number(value) for pair in scores for value in pair), best])
    header = ["set", RECOMMENDED, "its AUC", '`class_weight="balanced"`', "its AUC", "best balanced accuracy of a peer"]
    pairs = here[here.entry.isin([RECOMMENDED, LINEAR]) & (here.neighbours == "replace_one")]
    both = pairs.set_index(["set", "split", "entry"]).accuracy.unstack().dropna()
    # On smaller sets the recommended method has several draws of noise.
    large = [name for name in OLDER if training_rows(name) >= 0.8 * SMALL_ROWS]
    gaps = (100.0 * (both[RECOMMENDED] - both[LINEAR])).groupby("set").mean()[large].sort_values(ascending=False)
    return [
        "## Rare classes, and linear features", "",
        'Balanced accuracy at epsilon 1 under replace_one. Set `class_weight="balanced"` where a class is rare.', "",
        table(header, rows),
        f'With `features="linear"` the model is linear in the columns, and loses {_points(gaps.mean())} points on '
        f"average over {len(gaps)} sets with {SMALL_ROWS:,} rows or more, and {_points(gaps.iloc[0])} on "
        f"{gaps.index[0]}.", "",
    ]  # fmt: skip


def times() -> str:
    """Write how long the recommended method takes."""
    measured = Sources(TABLES).entries("leaderboard")[RECOMMENDED]["measured"]
    seconds = pd.Series({name: time for item in measured for name, time in item["parts"].items() if time is not None})
    longest = str(seconds.idxmax())
    return (
        f"A fit of `recommended` takes {seconds.median():.2f} s of processor time (median over sets), and at most "
        f"{seconds.max():.1f} s ({longest}, {training_rows(longest):,} rows), once compiled."
    )


def accuracy_by_rows(cells: pd.DataFrame) -> str:
    """Write the table of the page on choosing epsilon: the gap to an SVM without privacy, by the number of rows."""
    epsilons = (0.5, 1.0, 2.0, 4.0)
    rows = []
    for words, inside in by_rows(gaps_to_svm(cells)).items():
        texts = [f"{_points(inside[epsilon].median())} ({_points(inside[epsilon].max())})" for epsilon in epsilons]
        rows.append([words, str(len(inside)), *texts])
    note = "Median over the sets, and in parentheses the set that loses most."
    return f"{table(['training rows', 'sets', *(f'epsilon {epsilon:g}' for epsilon in epsilons)], rows)}\n{note}"


def distances(cells: pd.DataFrame, names: Sequence[str]) -> str:
    """Write the distance to training without privacy at epsilon 1, set by set."""
    references = accuracies(cells, math.inf, names).reindex(names)[list(REFERENCES)]
    ours = {one: accuracies(under(cells, one), 1.0, names)[RECOMMENDED] for one in EPSILONS}
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
        [title(entry), *(_points(100.0 * (whole[entry] - less[entry]).mean()) for less in (other, half))]
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
    return table(["set", *map(title, entries)], rows)


def search_section() -> list[str]:
    """Compare private searches over C with public values of C."""
    rows = pd.read_csv(TABLES / "search.csv")
    fixed, searches = rows[rows.C.notna()], rows[rows.C.isna()]
    table_rows = []
    names = list(dict.fromkeys(rows["set"]))
    for epsilon, cells in fixed.groupby("run_epsilon", sort=False):
        best = [cells[cells["set"] == name].sort_values("accuracy").iloc[-1] for name in names]
        label = f"best of {cells.C.nunique()} public C in hindsight, epsilon {epsilon:g}"
        table_rows.append([label, "", "", *(f"{number(row.accuracy)} (C {row.C:g})" for row in best)])
    for (runs, shape, share), cells in searches.groupby(["mean_runs", "shape", "score_share"], sort=False):
        by_set = cells.set_index("set")
        law = "Poisson" if math.isinf(shape) else f"shape {shape:g}"
        label = f"search, {runs:g} runs ({law}), share {share:g}"
        noise = f"{100 * by_set.score_noise.min():.1f} to {100 * by_set.score_noise.max():.1f} %"
        table_rows.append(
            [label, f"{by_set.run_epsilon.iloc[0]:.2f}", noise, *(number(by_set.accuracy[name]) for name in names)]
        )
    gaps = []
    for name in names:
        best, best_search = (
            rows_of_kind[rows_of_kind["set"] == name].sort_values("accuracy").iloc[-1]
            for rows_of_kind in (fixed, searches)
        )
        gaps.append(f"{100 * (best.accuracy - best_search.accuracy):.1f} points on {name}")
    return [
        f"The best private search loses {' and '.join(gaps)} against the C that is best in hindsight, which no "
        "search knows. A run of a search has less than the whole budget, and noisy counts of correct rows tell the "
        "runs apart.",
        "",
        "Objective perturbation at epsilon 1, delta 1e-5, replace_one; mean accuracy over splits (standard errors "
        f"up to {rows.error.max():.3f}). The noise of the score is a share of all rows.",
        "",
        table(["", "epsilon of a run", "noise of the score", *names], table_rows),
    ]


def calibration_section() -> list[str]:
    """Write the section on calibrated probabilities and prediction sets."""
    cells = pd.read_csv(TABLES / "calibration.csv")
    inside = {
        name: int(((cells[f"stated_{name}_low"] <= cells[name]) & (cells[name] <= cells[f"stated_{name}_high"])).sum())
        for name in ("error", "coverage")
    }
    rows = [
        [
            name,
            str(group.classes.iloc[0]),
            f"{group.held_back.iloc[0]:,}",
            *(number(group[column].mean()) for column in ("uncalibrated_error", "error", "stated_error", "coverage")),
            f"{group.set_size.mean():.2f}",
        ]
        for name, group in cells.groupby("set", sort=False)
    ]
    header = ["set", "classes", "held back", "uncalibrated", "calibrated", "stated", "coverage", "labels in a set"]
    return [
        "## Probabilities and prediction sets",
        "",
        "Releases at epsilon 1 under replace_one that hold back a tenth of the rows (`--hold-back 0.1`): the expected "
        "calibration error on the test rows, without and with calibration and as the card states it, and the coverage "
        f"of the sets for 90 %. Means of {cells.split.nunique()} splits of the eight largest sets.",
        "",
        table(header, rows),
        f"The stated interval of 95 % holds the error on the test rows in {inside['error']} of {len(cells)} releases, "
        f"and the coverage in {inside['coverage']}; none covers less than {number(cells.coverage.min())}. "
        "`python bench/utility/calibration.py` measures them again.",
        "",
    ]


def sources_section(*tables: str) -> list[str]:
    """Write when the entries of tables were measured and confirmed, and how long a fit takes."""
    sources, rows = Sources(TABLES), []
    for name in tables:
        for entry in sources.entries(name):
            seconds = sources.seconds(name, entry)
            time = f"{statistics.median(seconds):.2f}" if seconds else ""
            rows.append([title(entry), name, time, sources.sentence(name, entry)])
    return ["## When it was measured", "", table(["entry", "table", "seconds of a fit", "source"], rows)]


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
of `reports/utility/leaderboard.csv` to have it made again. Entries of other libraries run in their own environments
(`python bench/utility/run_peers.py`). Nothing here judges whether an epsilon holds: this library's methods have
[proofs](proofs/README.md), and `privsvm.audit` tests any class ([auditing](auditing.md)).
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
    lines += [cost_of_counting(cells, names), "", *curve_section(cells)]
    for heading, group in (("Sets that judge", judges), ("Sets that chose", chose)):
        lines += [f"## {heading}", ""]
        for relation, epsilon in RANKED:
            words_of = f"Epsilon {epsilon:g}, {relation}"
            lines += section(under(cells, relation), epsilon, group, words_of)
    lines += ["## What replace_one costs", "", *costs(cells, names)]
    lines += ["## Against training without privacy", "", "Points at epsilon 1.", "", distances(cells, names)]
    lines += [
        *rare_section(cells), "## What a private search for C costs", "", *search_section(), *calibration_section(),
        "## Every set", "",
    ]  # fmt: skip
    for relation, epsilon in RANKED:
        lines += [
            f"Accuracy at epsilon {epsilon:g} under {relation}; bold is the best.",
            "",
            accuracy(under(cells, relation), epsilon, names),
        ]
    sources = sources_section("leaderboard", "peers", "search", "calibration")
    return "\n".join([*lines, *sources, times(), "", _SUBMIT])


def with_sentences(readme: str, cells: pd.DataFrame) -> str:
    """Replace the sentences on accuracy in the README."""
    values = accuracies(under(cells, "add_remove"), 1.0, sorted(set(cells["set"])))
    ranks = places(values).mean().sort_values()
    place = list(ranks.index).index(RECOMMENDED) + 1
    gaps, sizes = gaps_to_svm(cells)[[1.0]], []
    for words, group in by_rows(gaps).items():
        median = round(group[1.0].median(), 1)
        sizes.append(f"{abs(median):.1f} points {'higher' if median < 0 else 'lower'} with {words} rows")
    worst = gaps[1.0].idxmax()
    guess = trade_off(Gaussian(gaussian_noise_multiplier(1.0, DELTA)), "add_remove").guess(0.5)
    chose = len(values.index.intersection([*OLDER, *CHOSE]))
    sentences = (
        f"At epsilon 1, a guess whether a row was used is right at most {math.ceil(100 * guess)} times in 100 "
        f"([risks](docs/epsilon.md)), and accuracy compares with a linear SVM without privacy as follows: "
        f"{', '.join(sizes)} (medians of {len(gaps)} real sets; {gaps[1.0].max():.1f} lower on the worst, {worst}). "
        f"On {len(values)} sets, {chose} of which chose its constants, it is "
        f"{'first' if place == 1 else f'number {place}'} of {len(ranks)} private classifiers by mean rank: see the "
        "[leaderboard](docs/leaderboard.md)."
    )
    return with_section(readme, *_SENTENCES, textwrap.fill(sentences, 128))


def with_accuracy(page: str, cells: pd.DataFrame) -> str:
    """Replace the table of the page on choosing epsilon."""
    return with_section(page, *_ACCURACY, accuracy_by_rows(cells))


def write() -> None:
    """Write the page, its pictures, and what other pages say of accuracy."""
    # Lazy: tests of the text need no matplotlib.
    from pictures import draw

    cells = read()
    draw(cells)
    write_text(PAGE, page_text(cells))
    write_text(README, with_sentences(README.read_text(), cells))
    write_text(EPSILON, with_accuracy(EPSILON.read_text(), cells))
