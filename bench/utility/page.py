"""Write docs/leaderboard.md, its pictures, and what README and docs/epsilon.md say of accuracy, from the cells."""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import sets
from entries import (
    BALANCED,
    COUNTED,
    DELTA,
    ENTRIES,
    EPSILONS,
    LINEAR,
    NEXT_BEST,
    RANKED,
    RECOMMENDED,
    REFERENCES,
    ROOT,
    TABLES,
    VARIANTS,
    status,
    title,
)
from joined import list_rows, with_joined
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
    tied_place,
    under,
)
from scipy.stats import friedmanchisquare, wilcoxon
from scores import SCORES
from sets import CHOOSE, JUDGE, LOOK, OLDER, SMALL_ROWS, training_rows

from privsvm.files import write_text
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Gaussian
from privsvm.privacy.risk import trade_off
from privsvm_bench.evidence import Sources

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from sections import markdown_table, sources_table, with_section

PAGE, README, EPSILON = ROOT / "docs" / "leaderboard.md", ROOT / "README.md", ROOT / "docs" / "epsilon.md"
# Marks in the page, in the README, and in the page on choosing epsilon.
_SETS = ("<!-- sets: written by bench/utility/leaderboard.py -->", "<!-- end of sets -->")
_TABLES = ("<!-- tables: written by bench/utility/leaderboard.py -->", "<!-- end of tables -->")
_ACCURACY = ("<!-- accuracy: written by bench/utility/leaderboard.py -->", "<!-- end of accuracy -->")
# Two-class sets on which the positive class is rare.
_RARE = ("a9a", "ijcnn1", "w8a")


def number(value: float) -> str:
    """Write a share with three digits; nothing for a missing one."""
    return "" if value is None or math.isnan(value) else f"{value:.3f}".lstrip("0")


def ranking_blocks(cells: pd.DataFrame, epsilon: float, names: Sequence[str], heading: str) -> list[str]:
    """Write ranks, paired tests and sets where it is behind, at one epsilon on some sets."""
    values = accuracies(cells, epsilon, names)
    ranks = places(values).mean().sort_values()
    first, rows = ranks.index[0], []
    for entry, rank in ranks.items():
        if entry == RECOMMENDED:
            rows.append([f"**{RECOMMENDED}**", "proved", f"{rank:.2f}", "", "", "", ""])
            continue
        gaps = (100.0 * (values[RECOMMENDED] - values[entry])).dropna()
        chance = float(wilcoxon(gaps).pvalue) if (gaps != 0.0).any() else 1.0
        # Bonferroni: all entries of the table together.
        sure = "yes" if chance * (len(ranks) - 1) < ALARM else "no"
        stated = status(str(entry), cells.neighbours[cells.entry == entry])
        start = [title(str(entry)), stated, f"{rank:.2f}"]
        rows.append([*start, (gaps > 0).sum(), (gaps < 0).sum(), f"{gaps.mean():+.1f}", sure])
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
        f"### {heading}",
        f"{claim} ({ranks[RECOMMENDED]:.2f} on {len(values)} sets). It has the highest accuracy on "
        f"{len(values) - len(behind)} of them. Mean ranks that differ by less than "
        f"{critical_difference(len(ranks), len(values)):.2f} may be chance (Nemenyi, 5 %; Friedman p {friedman:.1g}).",
        markdown_table(["entry", "status", "mean rank", "recommended wins", "loses", "points", "sure"], rows),
        *(["It is behind on " + ", ".join(short) + "."] if short else []),
    ]


def _points(gap: float) -> str:
    """Write points; nothing for missing ones, and no sign of a rounded zero."""
    return "" if math.isnan(gap) else f"{round(gap, 1) + 0.0:.1f}"


def standing(cells: pd.DataFrame, names: Sequence[str], relations: Sequence[tuple[str, float]] = tuple(RANKED)) -> str:
    """Write the ranks and gaps of `recommended` on some sets, by relation and epsilon."""
    references = accuracies(cells, math.inf, names)
    columns: dict[str, list[str]] = {}
    for relation, epsilon in relations:
        values = accuracies(under(cells, relation), epsilon, names)
        ranks, ours = places(values).mean().sort_values(), values[RECOMMENDED]
        behind = 100.0 * (values.drop(columns=RECOMMENDED).max(axis=1) - ours)
        below = references.rsub(ours, axis=0).mul(-100.0)
        poor = below.index[below.majority > 1.0]
        columns[f"{relation}, {epsilon:g}"] = [
            f"{ranks[RECOMMENDED]:.2f} ({list(ranks.index).index(RECOMMENDED) + 1} of {len(ranks)})",
            f"{tied_place(values):.2f}",
            f"{(behind <= 0).sum()} of {len(values)}",
            f"{(behind <= 1).sum()} of {len(values)} ({100 * (behind <= 1).mean():.0f} %)",
            f"{behind.max():.1f} ({behind.idxmax()})",
            f"{len(poor)} ({', '.join(poor)})" if len(poor) else "none",
            *(_points(below[one].median()) for one in ("svm", "boosting")),
        ]
    statements = [
        "mean rank (place among the entries)", "mean rank where a point is a tie (1, and entries more than it ahead)",
        "sets with the highest accuracy", "sets at most 1 point behind the best", "most points behind",
        "sets more than 1 point below the majority class",
        "median points below the SVM without privacy", "median points below gradient boosting without privacy",
    ]  # fmt: skip
    rows = [list(row) for row in zip(statements, *columns.values(), strict=True)]
    return markdown_table(["epsilon", *columns], rows)


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


def rare_classes(cells: pd.DataFrame) -> dict[str, Any]:
    """Tabulate balanced accuracy and AUC of sets with a rare class, and compute what random features add."""
    here = cells[cells.epsilon == 1.0]
    replaced = here[here.neighbours == "replace_one"]
    values = replaced.groupby(["set", "entry"]).mean(numeric_only=True)
    peers, rows = here[~here.entry.isin([*ENTRIES, *REFERENCES])], []
    for name in _RARE:
        scores = [values.loc[(name, entry), ["balanced_accuracy", "auc"]] for entry in (RECOMMENDED, BALANCED)]
        theirs = peers[peers["set"] == name].groupby("entry").balanced_accuracy.mean()
        best = f"{number(theirs.max())} ({title(str(theirs.idxmax()))})"
        rows.append([name, *(number(value) for pair in scores for value in pair), best])
    header = ["set", RECOMMENDED, "its AUC", '`class_weight="balanced"`', "its AUC", "best balanced accuracy of a peer"]
    pairs = replaced[replaced.entry.isin([RECOMMENDED, LINEAR])]
    both = pairs.set_index(["set", "split", "entry"]).accuracy.unstack().dropna()
    # On smaller sets the recommended method has several draws of noise.
    large = [name for name in OLDER if training_rows(name) >= 0.8 * SMALL_ROWS]
    gaps = (100.0 * (both[RECOMMENDED] - both[LINEAR])).groupby("set").mean()[large]
    return {"table": markdown_table(header, rows), "gaps": gaps}


def times() -> str:
    """Write how long the recommended method takes."""
    seconds = pd.Series(Sources(TABLES).parts("leaderboard", RECOMMENDED), dtype=float).dropna()
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
    header = ["training rows", "sets", *(f"epsilon {epsilon:g}" for epsilon in epsilons)]
    return (
        f"{markdown_table(header, rows)}\n\nMedian over sets that chose the numbers of its rule, under `add_remove`; "
        "in parentheses the set that loses most."
    )


def distances(cells: pd.DataFrame, names: Sequence[str]) -> str:
    """Write the distance to training without privacy at epsilon 1, set by set."""
    references = accuracies(cells, math.inf, names).reindex(names)[list(REFERENCES)]
    ours = {one: accuracies(under(cells, one), 1.0, names)[RECOMMENDED] for one in EPSILONS}
    rows = []
    for name, known in references.iterrows():
        below = [100.0 * (known[one] - ours[relation][name]) for relation in ours for one in ("svm", "boosting")]
        rows.append([str(name), *map(number, known), *map(_points, below)])
    header = [f"below {one}, {relation}" for relation in ours for one in ("SVM", "boosting")]
    return markdown_table(["set", "majority", "SVM", "boosting", *header], rows)


def cost_study(cells: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    """Compute and tabulate the points that replaced rows and half of epsilon cost."""
    added, replaced = under(cells, "add_remove"), under(cells, "replace_one")
    half, whole, other = accuracies(added, 0.5, names), accuracies(added, 1.0, names), accuracies(replaced, 1.0, names)
    rows = [
        [title(entry), *(_points(100.0 * (whole[entry] - less[entry]).mean()) for less in (other, half))]
        for entry in ENTRIES
        if entry in other
    ]
    loss, halved = (100.0 * (whole[RECOMMENDED] - less[RECOMMENDED]) for less in (other, half))
    most = [[name, _points(loss[name]), _points(halved[name])] for name in loss.sort_values(ascending=False).index[:5]]
    header = ["points by replace_one", "points by half of epsilon"]
    return {
        "loss": loss,
        "halved": halved,
        "table": markdown_table(["entry", *header], rows),
        "most": markdown_table(["`recommended` on", *header], most),
    }


def accuracy(cells: pd.DataFrame, epsilon: float, names: Sequence[str]) -> str:
    """Write accuracy by set and entry."""
    values = accuracies(cells, epsilon, names)
    entries = [entry for entry in dict.fromkeys((*ENTRIES, *values.columns)) if entry in values]
    rows = []
    for name, row in values[entries].iterrows():
        marked = [f"**{number(v)}**" if v >= row.max() - 5e-4 else number(v) for v in row]
        rows.append([str(name), *marked])
    return markdown_table(["set", *map(title, entries)], rows)


def ablation_table() -> str:
    """Tabulate what the numbers of the rule gain on the sets that chose them."""
    table = pd.read_csv(TABLES / "ablation.csv", dtype=str)
    rows = [[*row[:-2], f"{row[-2]} ({row[-1]})"] for row in table.itertuples(index=False)]
    return markdown_table(["number", "value", "instead", "epsilon", "sets", "median", "mean", "worst"], rows)


def growth_study() -> dict[str, Any]:
    """Tabulate the gain of a release from earlier ones, and list the cells that lose."""
    table = pd.read_csv(TABLES / "growth.csv")
    gains = table.pivot_table(index="set", columns=["neighbours", "epsilon"], values="gain")
    rows = [[str(name), *(f"{gain:+.1f}" for gain in row)] for name, row in gains.iterrows()]
    lost = [
        f"{row.set} at {row.epsilon:g} under {row.neighbours} ({row.gain:+.1f}, standard error {row.error:.1f})"
        for row in table[table.gain < -1.0].itertuples()
    ]
    header = ["set", *(f"{relation} {epsilon:g}" for relation, epsilon in gains.columns)]
    rows.append(["mean", *(f"{gain:+.1f}" for gain in gains.mean())])
    return {
        "gain": table.gain.mean(), "lost": lost, "cells": len(table), "runs": table.runs.min(),
        "table": markdown_table(header, rows, len(gains.columns)),
    }  # fmt: skip


def ruler_study() -> dict[str, Any]:
    """Tabulate rows worth, the parts of the loss, and the ceiling of every set."""
    table = pd.read_csv(TABLES / "rulers.csv")
    epsilons, rows = sorted(table.epsilon.unique()), []
    for name, here in table.groupby("set", sort=False):
        by_epsilon = here.set_index("epsilon")
        lost = by_epsilon.loc[1.0]
        worth = [f"{by_epsilon.rows_worth[epsilon]:,.0f}" for epsilon in epsilons]
        parts = [_points(lost.structure), _points(lost.privacy), f"{lost.binds_below:.2g}"]
        rows.append([str(name), f"{lost['rows']:,}", *worth, *parts])
    worths = [f"worth at {epsilon:g}" for epsilon in epsilons]
    return {
        "shares": (table.rows_worth / table.rows).groupby(table.epsilon).median(),
        "medians": table[table.epsilon == 1.0][["structure", "privacy"]].median(),
        "highest": table.loc[table.binds_below.idxmax()],
        "table": markdown_table(["set", "rows", *worths, "structure", "privacy", "ceiling below"], rows, 7),
    }


def public_study() -> dict[str, Any]:
    """Tabulate the gain from public rows, and from usual values in documentation."""
    table = pd.read_csv(TABLES / "public_rows.csv")
    names = {"public_rows": "30 public rows", "typical": "typical values"}
    rows = []
    for (entry, epsilon, centre), here in table.groupby(["entry", "epsilon", "centre"]):
        gains = [f"{gain:+.1f}" for gain in (here.gain.median(), here.gain.mean(), here.gain.min())]
        start = [names[entry], f"{epsilon:g}", "bought" if centre else "none", len(here)]
        rows.append([*start, *gains, (here.gain < -1.0).sum()])
    small = table[(table.epsilon == 0.5) & (table["rows"] < 2000)]
    header = ["public", "epsilon", "noisy centre", "sets", "median", "mean", "worst", "lose a point"]
    return {
        "ratios": (small.worth / small.worth_alone).groupby(small.entry).median(),
        "table": markdown_table(header, rows, 5),
    }


def search_study() -> dict[str, Any]:
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
    best_fixed, best_search = (kind.groupby("set").accuracy.max() for kind in (fixed, searches))
    gaps = 100 * (best_fixed - best_search)
    return {
        "gaps": [f"{gaps[name]:.1f} points on {name}" for name in names],
        "error": rows.error.max(),
        "table": markdown_table(["", "epsilon of a run", "noise of the score", *names], table_rows),
    }


def calibration_study() -> dict[str, Any]:
    """Tabulate calibrated probabilities and prediction sets, and count the statements that hold."""
    cells = pd.read_csv(TABLES / "calibration.csv")
    means = ["uncalibrated_error", "error", "stated_error", "coverage"]
    rows = [
        [name, group.classes.iloc[0], f"{group.held_back.iloc[0]:,}", *map(number, group[means].mean()),
         f"{group.set_size.mean():.2f}"]
        for name, group in cells.groupby("set", sort=False)
    ]  # fmt: skip
    header = ["set", "classes", "held back", "uncalibrated", "calibrated", "stated", "coverage", "labels in a set"]
    return {
        "splits": cells.split.nunique(),
        "cells": len(cells),
        "inside": {
            name: cells[name].between(cells[f"stated_{name}_low"], cells[f"stated_{name}_high"]).sum()
            for name in ("error", "coverage")
        },
        "least": cells.coverage.min(),
        "table": markdown_table(header, rows),
    }


def names_of(cells: pd.DataFrame) -> dict[str, list[str]]:
    """Return the sets by their kind that our entries and peers have answers on."""
    measured = set.intersection(
        *(set(cells[cells.entry == entry]["set"]) for entry in (RECOMMENDED, NEXT_BEST, "diffprivlib_lr"))
    )
    return {kind: [name for name in names if name in measured] for kind, names in (("choose", CHOOSE), ("look", LOOK))}


def render(template: str, cells: pd.DataFrame, **values: Any) -> str:
    """Write a section of the page by its template."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), undefined=jinja2.StrictUndefined, trim_blocks=True
    )  # nosec B701: Markdown
    environment.filters.update(points=_points, number=number)
    functions = (
        ablation_table, accuracy, cost_of_counting, distances, judge_blocks, judged_text, missing, ranking_blocks,
        standing, times, under,
    )  # fmt: skip
    environment.globals.update({one.__name__: one for one in functions}, ranked=RANKED, sets=sets)
    chosen, looked = names_of(cells).values()
    text = environment.get_template(template).render(cells=cells, chosen=chosen, looked=looked, **values)
    return re.sub(r"\n{3,}", "\n\n", text)


def sets_text(cells: pd.DataFrame) -> str:
    """Write the sets by kind."""
    return render("sets.md.jinja", cells)


def judged_text() -> str:
    """Say how often the sets that judge were looked at."""
    log = TABLES / "judge.log.csv"
    n_rules = pd.read_csv(log).rule.nunique() if log.exists() else 0
    rules = "1 rule was" if n_rules == 1 else f"{n_rules} rules were"
    return f"{rules} run on them so far." if n_rules else "No rule was run on them yet."


def judge_cells() -> pd.DataFrame:
    """Read the cells of the sets that judge, of entries that have all of theirs; none without those of the rule."""
    # Lazy: it imports the leaderboard, which imports this.
    from judge import CELLS, wanted

    rows = CELLS.rows()
    entries = dict.fromkeys(key[0] for key in rows)
    whole = [entry for entry in entries if rows.keys() >= set(wanted([entry]))]
    cells = pd.DataFrame([(*key, *scores) for key, scores in rows.items()], columns=[*CELLS.keys, *SCORES])
    cells = cells[cells.entry.isin(whole if RECOMMENDED in whole else [])]
    return cells.astype(dict.fromkeys(["epsilon", *SCORES], float))


def judge_blocks() -> list[str]:
    """Write where `recommended` stands on the sets that judge."""
    from judge import JUDGED

    cells = judge_cells()
    if cells.empty:
        return []
    ranked = [title(str(entry)) for entry in cells.entry.unique() if entry not in (*REFERENCES, *VARIANTS)]
    return [
        f"Judge ({len(JUDGE)}), among {'; '.join(ranked)}. Others were not run, or not on all sets. {judged_text()}",
        standing(cells, JUDGE, JUDGED),
    ]


def tables_text(cells: pd.DataFrame) -> str:
    """Write all tables of the page."""
    opacus = cells[cells.entry.str.startswith("opacus")]
    tables = ["judge", "leaderboard", "peers", "curves", "ablation", "growth", "search", "calibration"]
    names = [name for group in names_of(cells).values() for name in group]
    return render(
        "tables.md.jinja",
        cells,
        splits=opacus.groupby(["entry", "set", "epsilon"]).split.nunique(),
        gaps=gaps_to_svm(cells)[1.0],
        verdicts=[beside_next_best(cells), above_majority(cells), rising(cells)],
        costs=cost_study(cells, names),
        rulers=ruler_study(),
        public=public_study(),
        rare=rare_classes(cells),
        growth=growth_study(),
        search=search_study(),
        calibration=calibration_study(),
        sources=sources_table(Sources(TABLES), tables, title),
    )


def with_tables(page: str, cells: pd.DataFrame) -> str:
    """Replace the sets and the tables of the page."""
    return with_section(with_section(page, *_SETS, sets_text(cells)), *_TABLES, tables_text(cells))


def _place(values: pd.DataFrame) -> str:
    """Write the place of `recommended` by mean rank, and among how many."""
    ranks = places(values).mean().sort_values()
    place = list(ranks.index).index(RECOMMENDED) + 1
    return f"{'first' if place == 1 else f'number {place}'} of {len(ranks)}"


def _distance(gaps: pd.Series) -> str:
    """Write the median distance to an SVM without privacy."""
    median = round(gaps.median(), 1)
    return f"{abs(median):.1f} points {'higher' if median < 0 else 'lower'}"


def with_sentences(readme: str, cells: pd.DataFrame) -> str:
    """Replace the sentences on accuracy in the README."""
    names = [name for group in names_of(cells).values() for name in group]
    values = accuracies(under(cells, "add_remove"), 1.0, names)
    gaps = gaps_to_svm(cells)[1.0]
    sizes = [f"{_distance(group)} with {words} rows" for words, group in by_rows(gaps).items()]
    guess = trade_off(Gaussian(gaussian_noise_multiplier(1.0, DELTA)), "add_remove").guess(0.5)
    chose = len(values.index.intersection(CHOOSE))
    judges = judge_cells()
    compared = f"on {len(gaps)} sets that chose its numbers {', '.join(sizes)} (medians)"
    ranked = f"{_place(values)} private ones on {len(values)} sets, {chose} of which chose its numbers"
    if not judges.empty:
        compared = f"{_distance(gaps_to_svm(judges)[1.0])} on {len(JUDGE)} sets that judge the rule, and {compared}"
        judged = _place(accuracies(under(judges, "add_remove"), 1.0, JUDGE))
        ranked = f"{ranked}, and {judged} on the sets that judge it"
    sentences = (
        "At epsilon 1 under `add_remove`, a guess whether a row was used is right at most "
        f"{math.ceil(100 * guess)} times in 100 ([risks](docs/epsilon.md)). Compared with a linear SVM without "
        f"privacy, accuracy is {compared}. By mean rank the classifier is {ranked} "
        "([leaderboard](docs/leaderboard.md))."
    )
    return with_section(readme, *_ACCURACY, textwrap.fill(sentences, 128))


def with_accuracy(page: str, cells: pd.DataFrame) -> str:
    """Replace the table of the page on choosing epsilon."""
    return with_section(page, *_ACCURACY, accuracy_by_rows(cells))


def write() -> None:
    """Write the page, its pictures, and what other pages say of accuracy."""
    # Lazy: tests of the text need no matplotlib.
    from pictures import draw

    cells = read()
    draw(cells)
    write_text(PAGE, with_joined(with_tables(PAGE.read_text(), cells), list_rows(cells)))
    write_text(README, with_sentences(README.read_text(), cells))
    write_text(EPSILON, with_accuracy(EPSILON.read_text(), cells))
