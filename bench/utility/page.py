"""Write docs/utility.md and its pictures from reports/utility: ``python bench/utility/page.py``."""

from __future__ import annotations

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterable
from statistics import NormalDist, mean
from typing import Any

import pandas as pd
from verdicts import (
    HELD_OUT,
    OWN,
    PEER_EPSILONS,
    ROOT,
    SMALL,
    TABLES,
    TARGETS,
    TITLES,
    Verdict,
    medians,
    paired,
    quick_fits,
    ranks,
    ranks_picture,
    read,
    read_draws,
    short_run,
    short_title,
    verdicts,
)

from privsvm.files import write_text

PAGE, README = ROOT / "docs" / "utility.md", ROOT / "README.md"
# What stands between these in the README is written here.
_START, _END = "<!-- written by bench/utility/page.py -->", "<!-- end of what is written -->"


def read_choices() -> tuple[dict[str, Any], pd.DataFrame]:
    """Constants chosen without each set, and searches over C."""
    return json.loads((TABLES / "held_out.json").read_text()), pd.read_csv(TABLES / "search.csv")


def _number(value: float) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3f}".lstrip("0")


def table(header: list[str], rows: list[list[str]]) -> str:
    """Lay out a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] * len(header)) + " |"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def accuracy_table(ours: pd.DataFrame, reference: pd.DataFrame, epsilon: float) -> str:
    """One row a set: what knows no privacy, and our methods, under replace_one."""
    cells = ours[(ours.epsilon == epsilon) & (ours.neighbours == "replace_one")]
    values = medians(cells, ["set", "method"]).unstack()
    known = medians(reference, ["set", "method"]).unstack()
    methods = [name for name in TITLES if name in values and name not in ("recommended_balanced", HELD_OUT)]
    rows = []
    for name in values.index:
        own = values.loc[name, methods]
        marked = [f"**{_number(v)}**" if v >= own.max() - 5e-4 else _number(v) for v in own]
        rows.append([name, *(_number(known.loc[name, m]) for m in ("majority", "svm")), *marked])
    return table(["set", "majority", "SVM without privacy", *(TITLES[m] for m in methods)], rows)


def methods_part(ours: pd.DataFrame) -> list[str]:
    """Compare our other methods with the recommended one at every epsilon, on the splits that both have."""
    here = ours[ours.neighbours == "replace_one"]
    keys = ["set", "epsilon", "split"]
    both = here[~here.method.str.startswith(OWN)].merge(
        here[here.method == OWN][[*keys, "accuracy"]], on=keys, suffixes=("", "_own")
    )
    values = both.groupby(["method", "set", "epsilon"])[["accuracy", "accuracy_own"]].median()
    gaps = (100.0 * (values.accuracy - values.accuracy_own)).groupby(["method", "epsilon"]).mean().unstack()
    best = values.accuracy.groupby(["set", "epsilon"]).transform("max")
    ahead = (values.accuracy >= best) & (values.accuracy > values.accuracy_own)
    rows = [
        [TITLES[name], *(f"{gap:+.1f}" for gap in gaps.loc[name]), f"{ahead[name].sum()} of {len(ahead[name])}"]
        for name in TITLES
        if name in gaps.index
    ]
    return [
        "Points above (+) or below the recommended one, mean over sets, by epsilon; and in how many cells a method is "
        "the best of all of ours.",
        "",
        table(["method", *(f"{epsilon:g}" for epsilon in gaps.columns), "best"], rows),
    ]


def peer_table(both: pd.DataFrame, peers: pd.DataFrame, epsilon: float) -> str:
    """One row a set: every peer, and in parentheses ours under the peer's relation on the same splits."""
    cells = both[both.epsilon == epsilon]
    theirs, own = medians(cells, ["set", "peer"]).unstack(), medians(cells, ["set", "peer"], "accuracy_ours").unstack()
    status = peers[peers.epsilon == epsilon].groupby(["set", "peer"]).status.agg(lambda s: s.mode().iloc[0])
    names = [name for name in TITLES if name in set(peers.peer)]
    rows = []
    for data in sorted(set(peers[peers.epsilon == epsilon]["set"])):
        row = [data]
        for name in names:
            if name in theirs and data in theirs.index and not math.isnan(theirs.loc[data, name]):
                a, b = theirs.loc[data, name], own.loc[data, name]
                row.append(f"{_number(a)} (**{_number(b)}**)" if b >= a else f"**{_number(a)}** ({_number(b)})")
            else:
                row.append(status.get((data, name), "not run").replace("ok", "not compared"))
        rows.append(row)
    return table(["set", *(TITLES[name] for name in names)], rows)


def balanced_table(ours: pd.DataFrame, both: pd.DataFrame, epsilon: float) -> str:
    """Balanced accuracy and area under the curve, of two-class sets with a rare class."""
    own = ours[(ours.epsilon == epsilon) & (ours.neighbours == "replace_one")]
    rows = []
    peers = both[both.epsilon == epsilon]
    for name in ("a9a", "ijcnn1", "w8a"):
        cells = own[own["set"] == name]
        if not len(cells):
            continue
        theirs = medians(peers[peers["set"] == name], ["peer"], "balanced_accuracy")
        best = f"{_number(theirs.max())} ({TITLES[theirs.idxmax()]})" if len(theirs) else "not run"
        row = [name]
        for method in ("recommended", "recommended_balanced"):
            of = cells[cells.method == method]
            row += [_number(of.balanced_accuracy.median()), _number(of.auc.median())]
        rows.append([*row, best])
    header = [
        "set",
        "recommended",
        "its AUC",
        '`class_weight="balanced"`',
        "its AUC",
        "best balanced accuracy of a peer",
    ]
    return table(header, rows)


def in_short(found: Iterable[Verdict]) -> list[str]:
    """Verdicts as a list, and an empty line."""
    return [*(f"- {verdict}" for verdict in found), ""]


def splits_of_sets(ours: pd.DataFrame, method: str = OWN) -> str:
    """Say on how many splits each set was measured."""
    own = ours[(ours.method == method) & (ours.epsilon == 1.0) & (ours.neighbours == "replace_one")]
    names: dict[int, list[str]] = {}
    for name, count in own.groupby("set").split.nunique().items():
        names.setdefault(int(count), []).append(str(name))
    most = max(names)
    fewer = "; ".join(f"{count} of {', '.join(names[count])}" for count in sorted(names, reverse=True) if count < most)
    return f"{most} splits" + (f" ({fewer})" if fewer else "")


def fewer_splits(ours: pd.DataFrame) -> str:
    """Name the sets that other methods of ours have fewer splits of."""
    cells = ours[(ours.neighbours == "replace_one") & (ours.method != HELD_OUT)]
    counts = cells.groupby(["set", "method", "epsilon"]).split.nunique().unstack("epsilon").fillna(0.0)
    sets = counts.min(axis=1).groupby("set").min()
    names = ", ".join(sets[sets < counts.max(axis=None)].index)
    return f" ({names}: fewer of some methods)" if names else ""


def held_out_part(chosen: dict[str, Any], ours: pd.DataFrame) -> list[str]:
    """Say what the constants are when they are chosen without each set, and what that costs."""
    folds, regrets = chosen["folds"], chosen["regret"]
    names = list(next(iter(folds.values())))
    constant = [
        [
            f"`{name}`",
            f"{chosen['shipped'][name]:g}",
            f"{chosen['all'][name]:g}",
            ", ".join(
                f"{value:g} ({count})" for value, count in Counter(fold[name] for fold in folds.values()).most_common()
            ),
        ]
        for name in names
    ]
    steady = sum(len({fold[name] for fold in folds.values()}) == 1 for name in names)
    points = {kind: 100.0 * mean(row[kind] for row in regrets.values()) for kind in ("shipped", "all", "held_out")}
    unseen = sorted(set(folds) - set(regrets))
    return [
        "The rule has constants, and they were chosen on real sets, these among them. So they are chosen again for "
        "each set, on the other sets alone, by the least mean regret: how much less accurate the chosen recipe is than "
        "the best of all recipes that the grids allow, at epsilon .5, 1 and 4 under replace_one "
        "(`bench/utility/refit.py`). What this leaves out: the form of the rule and the grids were thought of with "
        "these sets at hand."
        + (f" {', '.join(unseen)}: judged by what the other sets choose, and choose nothing." if unseen else ""),
        "",
        f"Of {len(names)} constants {steady} are the same in all {len(folds)} choices, and of {chosen['cells']} cells "
        f"{chosen['same']} get the recipe of the library either way. The mean regret is {points['shipped']:.2f} points "
        f"with the constants of the library, {points['all']:.2f} with those chosen on all sets, and "
        f"{points['held_out']:.2f} on the set that was left out.",
        "",
        table(["constant", "in the library", "chosen on all sets", "without one set (how often)"], constant),
        f"With these constants, each on the set that they do not know, on {splits_of_sets(ours, HELD_OUT)}:",
        "",
    ]


def search_part(rows: pd.DataFrame) -> list[str]:
    """Compare private searches over C with public values of C."""
    fixed, searches = rows[rows.C.notna()], rows[rows.C.isna()]
    table_rows = []
    names = list(dict.fromkeys(rows["set"]))
    for epsilon, cells in fixed.groupby("run_epsilon", sort=False):
        best = [cells[cells["set"] == name].sort_values("accuracy").iloc[-1] for name in names]
        label = f"best of {cells.C.nunique()} public C in hindsight, epsilon {epsilon:g}"
        table_rows.append([label, "", "", *(f"{_number(row.accuracy)} (C {row.C:g})" for row in best)])
    for (runs, shape, share), cells in searches.groupby(["mean_runs", "shape", "score_share"], sort=False):
        of = cells.set_index("set")
        law = "Poisson" if math.isinf(shape) else f"shape {shape:g}"
        label = f"search, {runs:g} runs ({law}), share {share:g}"
        noise = f"{100 * of.score_noise.min():.1f} to {100 * of.score_noise.max():.1f} %"
        table_rows.append(
            [label, f"{of.run_epsilon.iloc[0]:.2f}", noise, *(_number(of.accuracy[name]) for name in names)]
        )
    gaps = []
    for name in names:
        best, found = (part[part["set"] == name].sort_values("accuracy").iloc[-1] for part in (fixed, searches))
        gaps.append(
            f"{100 * (best.accuracy - found.accuracy):.1f} points on {name} ({found.mean_runs:g} runs; "
            f"C {best.C:g} has {_number(best.accuracy)})"
        )
    return [
        "Objective perturbation at epsilon 1, delta 1e-5, replace_one: mean accuracy over splits (standard errors up "
        f"to {rows.error.max():.3f}; `bench/utility/search.py`). A run of a search has to do with less than the whole "
        "budget, and what tells runs apart is a noisy count of rows that they get right, whose noise is given as a "
        "share of all rows. A smaller share for the score makes runs hard to tell apart, a larger one takes from the "
        f"training, and fewer runs leave less to choose from. The best search is behind the best C by "
        f"{', by '.join(gaps)}: the C that is best in hindsight is what no search knows.",
        "",
        table(["", "epsilon of a run", "noise of the score", *names], table_rows),
    ]


def summary(ours: pd.DataFrame, peers: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Sum up the table in a sentence, for the README."""
    ranking, n_sets = ranks(ours, peers, 1.0)
    own = ours[(ours.method == OWN) & (ours.epsilon == 1.0) & (ours.neighbours == "replace_one")]
    gaps = (medians(reference[reference.method == "svm"], ["set"]) - medians(own, ["set"])).dropna()
    place = list(ranking.index).index(OWN) + 1
    others = ranking.drop(OWN)
    place_in_words = "first" if place == 1 else f"number {place}"
    return (
        f"At epsilon 1 on {len(gaps)} real sets its accuracy lies {100 * gaps.median():.1f} points (median) below that "
        f"of a linear SVM without privacy. Among {len(ranking)} private classifiers on {n_sets} sets it is "
        f"{place_in_words} by mean rank ({ranking[OWN]:.2f}); the best other one has {others.iloc[0]:.2f} "
        f"({short_title(others.index[0])})."
    )


def with_summary(readme: str, sentence: str) -> str:
    """Write the sentence where the README keeps it."""
    before, rest = readme.split(_START)
    after = rest.split(_END)[1]
    return f"{before}{_START}\n{textwrap.fill(sentence, 128)}\n{_END}{after}"


def repeats_part() -> list[str]:
    """Say what one draw of noise a split leaves to chance, and whether another recipe would do better."""
    if not (TABLES / "repeats.csv").exists():
        return []
    parts = []
    for name, cells in pd.read_csv(TABLES / "repeats.csv").groupby("set", sort=False):
        own, others = (cells[cells.recipe == recipe] for recipe in ("recommended", "other"))
        row, best = own.iloc[0], others.loc[others["mean"].idxmax()]
        reached = 100.0 * (1.0 - NormalDist(row["mean"], row.deviation).cdf(TARGETS[name]))
        parts.append(
            f"on {name} it is {row['mean']:.3f} on average over {row.draws} draws, with a standard deviation of "
            f"{row.deviation:.3f}, so that about {reached:.0f} % of the draws reach {TARGETS[name]:g}, and "
            f"{best['mean']:.3f} with the best of {len(others)} other numbers and lengths of steps"
        )
    return [
        "What a median over splits is at epsilon 1, replace_one, depends on the one draw of noise for each split: "
        f"{'; '.join(parts)} (`bench/utility/repeats.py`).",
        "",
    ]


def variants_part() -> list[str]:
    """Say what other recipes would gain on small sets."""
    if not (TABLES / "variants.csv").exists():
        return []
    cells = pd.read_csv(TABLES / "variants.csv")
    rows = []
    for variant, of in cells.groupby("variant", sort=False):
        means = of.groupby("epsilon").gain.mean()
        ends = [of.loc[of.gain.idxmin()], of.loc[of.gain.idxmax()]]
        rows.append(
            [
                str(variant),
                *(f"{gain:+.1f}" for gain in means),
                f"{of.gain.mean():+.2f}",
                *(f"{end.gain:+.1f} ({end['set']}, {end.epsilon:g})" for end in ends),
            ]
        )
    average = cells.groupby("variant").gain.mean()
    best = average.idxmax()
    return [
        f"What other recipes gain over the rule's on the {cells['set'].nunique()} {SMALL}, "
        f"in points of mean accuracy over the splits and {cells.draws.max()} draws of noise "
        f"(`bench/utility/variants.py`; standard errors of single cells up to {cells.error.max():.1f}). The best of "
        f"them on average ({best}) gains {average[best]:.2f} points, and loses "
        f"{-cells[cells.variant == best].gain.min():.1f} in its worst cell.",
        "",
        table(["recipe", *(f"{epsilon:g}" for epsilon in means.index), "mean", "worst cell", "best cell"], rows),
        "",
        "Tried with more draws of floating-point noise, and left out: to even gradients out and not rows, or with half "
        "the power; to shrink the centre by two standard errors of its noise more, or to the unit ball; to shrink "
        "singular values of the weights, which loses most; 40 steps where rows are few. Steps that are half "
        "as long again do better on some small sets at epsilon .1 and .25, and worse at 1.",
    ]


def times_part(cells: pd.DataFrame) -> list[str]:
    """Say how long fits take, and all of them."""
    if not (TABLES / "times.csv").exists():
        return []
    times = pd.read_csv(TABLES / "times.csv")
    return [
        "## How long it takes",
        "",
        "Fits are the best of five of the recommended estimator at epsilon 1, replace_one, once compiled "
        "(`bench/utility/times.py`).",
        "",
        *in_short([quick_fits(times), short_run(cells, times, read_draws())]),
    ]


def page_text(
    ours: pd.DataFrame, peers: pd.DataFrame, reference: pd.DataFrame, chosen: dict[str, Any], searches: pd.DataFrame
) -> str:
    """Write the page without its pictures."""
    both = paired(ours, peers)
    parts = [
        "# What accuracy a proved epsilon buys",
        "",
        "<!-- written by bench/utility/page.py from reports/utility -->",
        "",
        f"`PrivateLinearClassifier` on {ours['set'].nunique()} real sets, beside our other methods, other libraries, "
        "an SVM without privacy and the majority class. Delta is 1e-5. Numbers are medians of accuracy over "
        f"label-blind splits with a fifth of the rows for testing: {splits_of_sets(ours)} of ours{fewer_splits(ours)}, "
        f"{int(peers.split.max()) + 1} of peers. Every method is told the same public bounds. The scripts of "
        "bench/utility run what is missing.",
        "",
        "![Points below the SVM without privacy against epsilon](images/utility_gap.svg)",
        "",
        "![Accuracy against epsilon, one panel a set](images/utility_sets.svg)",
        "",
        "## In short",
        "",
        *in_short(verdicts(ours, peers, reference, draws=read_draws())),
        *repeats_part(),
        "## Constants chosen without the set",
        "",
        *held_out_part(chosen, ours),
        *in_short(verdicts(ours, peers, reference, HELD_OUT)),
        "## Our methods, epsilon 1, replace_one",
        "",
        accuracy_table(ours, reference, 1.0),
        *methods_part(ours),
        *variants_part(),
        "## Rare classes: balanced accuracy, epsilon 1, replace_one",
        "",
        balanced_table(ours, both, 1.0),
        *times_part(pd.concat([ours, reference])),
        "## A private search over C",
        "",
        *search_part(searches),
        "## Other libraries",
        "",
        "Each with its defaults, or settings that its documentation suggests, the same for all sets "
        "(`bench/utility/peers/`). A cell is the peer's median accuracy, and in parentheses ours on the same splits "
        "under the relation of neighbours that the peer's epsilon speaks of: replace_one for diffprivlib's logistic "
        "regression, add_remove for all others. diffprivlib is of pure epsilon, the others and ours of delta 1e-5. A "
        "fit has ten minutes and 8 GB.",
        "",
    ]
    for epsilon in PEER_EPSILONS:
        parts += [f"### Epsilon {epsilon:g}", "", peer_table(both, peers, epsilon)]
        parts += [f"![Mean ranks at epsilon {epsilon:g}](images/{ranks_picture(epsilon)})", ""]
    parts += [
        "Ranks are of ours under add_remove. A peer without an answer on a set (not offered, did not finish, not run "
        "yet) comes last there, and is left out where it has answers on fewer than half of the sets. Mean ranks "
        "further apart than the bar differ at 5 % (Nemenyi).",
        "",
        "Seconds stand in the CSV files, as processor time; peers ran beside other work.",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Write the page, its pictures, and the README's sentence."""
    # Needed for pictures alone.
    from pictures import draw

    cells = read()
    draw(*cells)
    write_text(PAGE, page_text(*cells, *read_choices()))
    write_text(README, with_summary(README.read_text(), summary(*cells)))


if __name__ == "__main__":
    main()
