"""Write docs/utility.md, its pictures and a table of docs/epsilon.md: ``python bench/utility/page.py``."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from verdicts import (
    RECOMMENDED,
    ROOT,
    TABLES,
    TITLES,
    Verdict,
    gaps_to_svm,
    medians,
    paired,
    read,
    short_title,
    verdicts,
)

from privsvm.files import write_text
from privsvm_bench.evidence import Sources

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from sections import with_section

PAGE, EPSILON = ROOT / "docs" / "utility.md", ROOT / "docs" / "epsilon.md"
# Marks of the table of accuracy by the number of rows, in the page on choosing epsilon.
_ACCURACY, _END_ACCURACY = "<!-- accuracy: written by bench/utility/page.py -->", "<!-- end of accuracy -->"
_SIZES = {"fewer than 1,000": (0, 1000), "1,000 to 10,000": (1000, 10_000), "more than 10,000": (10_000, 10**9)}


def number(value: float) -> str:
    """Write a share with three digits; nothing for a missing one."""
    return "" if value is None or math.isnan(value) else f"{value:.3f}".lstrip("0")


def table(header: list[str], rows: list[list[str]]) -> str:
    """Lay out a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] * len(header)) + " |"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def accuracy_table(ours: pd.DataFrame, reference: pd.DataFrame, epsilon: float) -> str:
    """Write one row per set: references, and our methods under replace_one."""
    cells = ours[(ours.epsilon == epsilon) & (ours.neighbours == "replace_one")]
    values = medians(cells, ["set", "method"]).unstack()
    references = medians(reference, ["set", "method"]).unstack()
    methods = [name for name in TITLES if name in values and name != "recommended_balanced"]
    rows = []
    for name in values.index:
        private = values.loc[name, methods]
        marked = [f"**{number(v)}**" if v >= private.max() - 5e-4 else number(v) for v in private]
        rows.append([name, *(number(references.loc[name, m]) for m in ("majority", "svm")), *marked])
    return table(["set", "majority", "SVM without privacy", *(TITLES[m] for m in methods)], rows)


def methods_section(ours: pd.DataFrame) -> list[str]:
    """Compare our other methods with the recommended one on common splits."""
    here = ours[ours.neighbours == "replace_one"]
    keys = ["set", "epsilon", "split"]
    both = here[~here.method.str.startswith(RECOMMENDED)].merge(
        here[here.method == RECOMMENDED][[*keys, "accuracy"]], on=keys, suffixes=("", "_recommended")
    )
    values = both.groupby(["method", "set", "epsilon"])[["accuracy", "accuracy_recommended"]].median()
    gaps = (100.0 * (values.accuracy - values.accuracy_recommended)).groupby(["method", "epsilon"]).mean().unstack()
    best = values.accuracy.groupby(["set", "epsilon"]).transform("max")
    ahead = (values.accuracy >= best) & (values.accuracy > values.accuracy_recommended)
    rows = [
        [TITLES[name], *(f"{gap:+.1f}" for gap in gaps.loc[name]), f"{ahead[name].sum()} of {len(ahead[name])}"]
        for name in TITLES
        if name in gaps.index
    ]
    return [
        "The other methods by epsilon: points above (+) or below the recommended one, mean over sets, and in how many "
        "cells each is the best of ours.",
        "",
        table(["method", *(f"{epsilon:g}" for epsilon in gaps.columns), "best"], rows),
    ]


def balanced_table(ours: pd.DataFrame, both: pd.DataFrame, epsilon: float) -> str:
    """Write balanced accuracy and AUC of two-class sets with a rare class."""
    recommended = ours[(ours.epsilon == epsilon) & (ours.neighbours == "replace_one")]
    rows = []
    peers = both[both.epsilon == epsilon]
    for name in ("a9a", "ijcnn1", "w8a"):
        cells = recommended[recommended["set"] == name]
        if not len(cells):
            continue
        theirs = medians(peers[peers["set"] == name], ["peer"], "balanced_accuracy")
        best = f"{number(theirs.max())} ({TITLES[theirs.idxmax()]})" if len(theirs) else "not run"
        row = [name]
        for method in ("recommended", "recommended_balanced"):
            variant = cells[cells.method == method]
            row += [number(variant.balanced_accuracy.median()), number(variant.auc.median())]
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


def upper_first(text: str) -> str:
    """Begin with a capital letter."""
    return text[:1].upper() + text[1:]


def questions(judged: Iterable[Verdict]) -> list[str]:
    """Write all verdicts."""
    judged = list(judged)
    lines = [table(["statement", "true in"], [[upper_first(verdict.claim), verdict.share] for verdict in judged])]
    short = [verdict for verdict in judged if verdict.short]
    if short:
        lines += ["It falls short in these cells (its median accuracy against the other one's):", ""]
    for verdict in short:
        lines += [f"- {upper_first(verdict.claim)}:", *(f"  - {cell}" for cell in verdict.short)]
    return [*lines, ""]


def splits_of_sets(ours: pd.DataFrame, method: str = RECOMMENDED) -> str:
    """Write the number of splits of each set."""
    cells = ours[(ours.method == method) & (ours.epsilon == 1.0) & (ours.neighbours == "replace_one")]
    names: dict[int, list[str]] = {}
    for name, count in cells.groupby("set").split.nunique().items():
        names.setdefault(int(count), []).append(str(name))
    most = max(names)
    fewer = "; ".join(f"{count} of {', '.join(names[count])}" for count in sorted(names, reverse=True) if count < most)
    return f"{most} splits" + (f" ({fewer})" if fewer else "")


def search_section(rows: pd.DataFrame) -> list[str]:
    """Compare private searches over C with public values of C."""
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


def summary(ours: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Summarise the table in a sentence."""
    gaps = gaps_to_svm(ours, reference).xs(1.0, level="epsilon")
    return (
        f"At epsilon 1 on {len(gaps)} real sets, the accuracy of `PrivateLinearClassifier` lies "
        f"{gaps.median():.1f} points below that of a linear SVM without privacy (median; {gaps.max():.1f} on the "
        f"worst, {gaps.idxmax()})."
    )


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


def times_section() -> list[str]:
    """Write the section on times of fits."""
    if not (TABLES / "times.csv").exists():
        return []
    times = pd.read_csv(TABLES / "times.csv").sort_values("rows", ascending=False)
    seconds = times.fit_processor_seconds
    rows = [
        [row.set, f"{row.rows:,}", str(row.features), f"{row.fit_processor_seconds:.3f}"] for row in times.itertuples()
    ]
    return [
        "## How long a fit takes",
        "",
        f"At most {seconds.max():.1f} s of processor time on these sets, once compiled (best of five, epsilon 1).",
        "",
        table(["set", "rows", "features", "seconds"], rows),
    ]


def sources_section(*tables: str) -> list[str]:
    """Write when the entries of tables were measured and confirmed, and how long a fit takes."""
    sources, rows = Sources(TABLES), []
    for name in tables:
        for entry in sources.entries(name):
            seconds = sources.seconds(name, entry)
            time = f"{statistics.median(seconds):.2f}" if seconds else ""
            rows.append([short_title(entry), name, time, sources.sentence(name, entry)])
    return ["## When it was measured", "", table(["entry", "table", "seconds of a fit", "source"], rows)]


def gaps_by_rows(ours: pd.DataFrame, reference: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Group the gaps to an SVM without privacy (sets by epsilons) by the number of rows."""
    sizes = {row.set: row.rows for row in pd.read_csv(TABLES / "times.csv").itertuples()}
    gaps = gaps_to_svm(ours, reference).unstack("epsilon")
    return {
        words: gaps.loc[[name for name in gaps.index if least <= sizes[name] < most]]
        for words, (least, most) in _SIZES.items()
    }


def accuracy_by_rows(ours: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Write the gap to an SVM without privacy by the number of rows."""
    groups = gaps_by_rows(ours, reference)
    gaps = pd.concat(groups.values())
    epsilons = [epsilon for epsilon in (0.5, 1.0, 2.0, 4.0) if epsilon in gaps]
    rows = []
    for words, inside in groups.items():
        # Without the sign of a rounded zero.
        texts = [
            f"{round(inside[epsilon].median(), 1) + 0.0:.1f} ({inside[epsilon].max():.1f})" for epsilon in epsilons
        ]
        rows.append([words, str(len(inside)), *texts])
    return table(["training rows", "sets", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], rows)


def with_accuracy(page: str, text: str) -> str:
    """Replace the table of the page on choosing epsilon."""
    note = "Median over the sets, and in parentheses the set that loses most."
    return with_section(page, _ACCURACY, _END_ACCURACY, f"{text}\n{note}")


def page_text(ours: pd.DataFrame, peers: pd.DataFrame, reference: pd.DataFrame, searches: pd.DataFrame) -> str:
    """Write the page without its pictures."""
    both = paired(ours, peers)
    lines = [
        "# Accuracy",
        "",
        "<!-- written by bench/utility/page.py from reports/utility -->",
        "",
        summary(ours, reference),
        "",
        "![Points below the SVM without privacy against epsilon](images/utility_gap.svg)",
        "",
        "Numbers are medians of accuracy over label-blind splits, with a fifth of the rows for testing: "
        f"{splits_of_sets(ours)} of ours, at most {int(peers.split.max()) + 1} of other libraries. "
        "Delta is 1e-5. Every method gets the same public bounds. The report of `make run` shows means over its own "
        "splits, so its numbers differ a little. The constants of `recommended` were chosen on these sets, among "
        "others: the [leaderboard](leaderboard.md) compares it with other methods and libraries, also on sets that "
        "chose none.",
        "",
        "## What holds, and where not",
        "",
        *questions(verdicts(ours, reference)),
        "## Every set",
        "",
        "![Accuracy against epsilon, one panel a set](images/utility_sets.svg)",
        "",
        "Our methods at epsilon 1 under replace_one; bold is the best.",
        "",
        accuracy_table(ours, reference, 1.0),
        *methods_section(ours),
        "## Rare classes",
        "",
        'Balanced accuracy at epsilon 1 under replace_one. Set `class_weight="balanced"` where a class is rare.',
        "",
        balanced_table(ours, both, 1.0),
        "## What a private search for C costs",
        "",
        *search_section(searches),
        *calibration_section(),
        *times_section(),
        *sources_section("ours", "search", "calibration", "times"),
        "`bench/utility` has the scripts, `reports/utility` every cell.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, its pictures, and the table of the page on choosing epsilon."""
    # Lazy: matplotlib is needed for pictures alone.
    from pictures import draw

    cells = read()
    draw(*cells)
    write_text(PAGE, page_text(*cells, pd.read_csv(TABLES / "search.csv")))
    write_text(EPSILON, with_accuracy(EPSILON.read_text(), accuracy_by_rows(cells[0], cells[2])))


if __name__ == "__main__":
    main()
