"""Draw the README's picture, docs/images/curves.svg: accuracy against epsilon on one set.

The rows behind it are in docs/images/curves.csv; docs/write_sample_report.py takes them from a run.
"""

from pathlib import Path

import pandas as pd

from privsvm_bench.charts import BLUE, INK, SOFT, TEAL, new_figure, style, svg_text
from privsvm_bench.palette import CLAIMED

REPOSITORY = Path(__file__).resolve().parents[1]
ROWS = REPOSITORY / "docs/images/curves.csv"
COLUMNS = ["dataset", "method", "status", "neighbours", "epsilon", "accuracy", "accuracy_low", "accuracy_high"]
DATASET, RECOMMENDED = "breast_cancer", "recommended"


def take_rows():
    """Take the set's rows from the curves of a run."""
    rows = pd.read_csv(REPOSITORY / "reports/curves.csv", dtype=str, usecols=COLUMNS)
    rows[rows["dataset"] == DATASET].to_csv(ROWS, columns=COLUMNS, index=False)


def choose_curves(rows):
    """Choose three lines: ours, the best other proved one, the best claim."""
    others = rows[rows["method"] != RECOMMENDED]

    def best(statuses, epsilon):
        chosen = others[others["status"].isin(statuses) & (others["epsilon"] == epsilon)]
        return chosen.loc[chosen["accuracy"].idxmax(), "method"]

    return RECOMMENDED, best(("proved", "seeded"), 1.0), best(("claimed",), rows["epsilon"].min())


def draw():
    """Draw the picture as SVG."""
    rows = pd.read_csv(ROWS)
    ours, other, claim = choose_curves(rows)
    (relation,) = rows.loc[rows["method"].isin((ours, other, claim)), "neighbours"].unique()
    words = ", ".join(rows.loc[rows["method"] == claim, "status"].unique())
    looks = {
        ours: (BLUE, "-", "o", f"{ours} (proved)"),
        other: (TEAL, "-", "s", f"{other} (proved)"),
        claim: (CLAIMED, (0, (6, 3)), "x", f"{claim} ({words})"),
        "svm": (INK, (0, (2, 3)), None, "SVM without privacy"),
        "majority": (SOFT, (0, (2, 3)), None, "majority class"),
    }
    with style():
        figure, (axes,) = new_figure(760, 320)
        figure.subplots_adjust(0.08, 0.17, 0.7, 0.96)
        for name, (color, line, mark, label) in looks.items():
            epsilons, *scores = rows.loc[rows["method"] == name, COLUMNS[4:]].to_numpy().T
            means, low, high = (100 * score for score in scores)
            axes.plot(epsilons, means, color=color, linestyle=line, marker=mark, markersize=6, label=label)
            if name == ours:
                axes.fill_between(epsilons, low, high, color=color, alpha=0.12, linewidth=0)
        axes.set(xscale="log", ylabel="accuracy, %", ylim=(50, 100))
        axes.set_xlabel(f"stated epsilon, {relation} (smaller is more private)")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=11)
        return svg_text(figure, f"Accuracy against epsilon on {DATASET}, with the range over splits and noise")
