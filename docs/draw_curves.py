"""Draw the README's picture, docs/images/curves.svg: accuracy against epsilon on one set.

The rows behind it are in docs/images/curves.csv; docs/write_sample_report.py takes them from a run.
"""

import csv
from pathlib import Path

from privsvm_bench.charts import BLUE, CLAIMED, INK, SOFT, TEAL, new_figure, style, svg_text

REPOSITORY = Path(__file__).resolve().parents[1]
ROWS = REPOSITORY / "docs/images/curves.csv"
COLUMNS = ("dataset", "method", "status", "epsilon", "accuracy", "accuracy_low", "accuracy_high")
DATASET, RECOMMENDED = "breast_cancer", "recommended"


def take_rows():
    """Take the set's rows from the curves of a run."""
    with (REPOSITORY / "reports/curves.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == DATASET]
    with ROWS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read():
    """Read status and (epsilon, accuracy, low, high) of each method."""
    curves = {}
    with ROWS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            numbers = [100 * float(row[key]) for key in ("accuracy", "accuracy_low", "accuracy_high")]
            curves.setdefault(row["method"], (row["status"], []))[1].append((float(row["epsilon"]), *numbers))
    return curves


def choose_curves(curves):
    """Choose three lines: ours, the best other proved one, the best claim."""

    def best(statuses, epsilon):
        names = [name for name, (status, _) in curves.items() if status in statuses and name != RECOMMENDED]
        return max(names, key=lambda name: dict(point[:2] for point in curves[name][1])[epsilon])

    smallest = min(point[0] for point in curves[RECOMMENDED][1])
    return RECOMMENDED, best(("proved", "seeded"), 1.0), best(("claimed",), smallest)


def draw():
    """Draw the picture as SVG."""
    curves = read()
    ours, other, claim = choose_curves(curves)
    looks = {
        ours: (BLUE, "-", "o", f"{ours} (proved)"),
        other: (TEAL, "-", "s", f"{other} (proved)"),
        claim: (CLAIMED, (0, (6, 3)), "x", f"{claim} (claimed, refuted)"),
        "svm": (INK, (0, (2, 3)), None, "SVM without privacy"),
        "majority": (SOFT, (0, (2, 3)), None, "majority class"),
    }
    with style():
        figure, (axes,) = new_figure(760, 320)
        figure.subplots_adjust(0.08, 0.17, 0.7, 0.96)
        for name, (color, line, mark, words) in looks.items():
            epsilons, means, low, high = zip(*curves[name][1], strict=True)
            axes.plot(epsilons, means, color=color, linestyle=line, marker=mark, markersize=6, label=words)
            if name == ours:
                axes.fill_between(epsilons, low, high, color=color, alpha=0.12, linewidth=0)
        axes.set(xscale="log", xlabel="stated epsilon (smaller is more private)", ylabel="accuracy, %", ylim=(50, 100))
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=11)
        return svg_text(figure, f"Accuracy against epsilon on {DATASET}, with the range over splits and noise")
