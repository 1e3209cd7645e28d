"""Write docs/utility.md and its pictures from reports/utility/*.csv: ``python bench/utility/page.py``."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from scipy.stats import rankdata, studentized_range

from privsvm.files import write_text

mpl.use("svg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
TABLES, PAGE, IMAGES = ROOT / "reports" / "utility", ROOT / "docs" / "utility.md", ROOT / "docs" / "images"
OWN = "recommended"
# Names as readers know them.
TITLES = {
    "recommended": "**recommended**",
    "recommended_balanced": "recommended, balanced",
    "recommended_linear": "recommended, linear",
    "dp_least_squares": "dp_least_squares",
    "pmsvm_gp_centre": "pmsvm_gp, centre",
    "objective_perturbation": "objective_perturbation",
    "ovr_joint_gaussian": "ovr_joint_gaussian",
    "diffprivlib_lr": "diffprivlib, logistic",
    "diffprivlib_forest": "diffprivlib, forest",
    "dp_ebm": "DP-EBM",
    "opacus_linear": "Opacus, linear",
    "opacus_hidden_layer": "Opacus, hidden layer",
    "mst_svm": "MST + SVM",
}
PEER_EPSILONS = (0.5, 1.0, 4.0)
plt.rcParams.update({"svg.hashsalt": "utility", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def read() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Our cells, those of peers, and what knows no privacy."""
    ours = pd.read_csv(TABLES / "ours.csv")
    peers = pd.read_csv(TABLES / "peers.csv")
    return ours[ours.epsilon.notna()], peers, ours[ours.epsilon.isna()]


def medians(cells: pd.DataFrame, by: list[str], score: str = "accuracy") -> pd.Series:
    """Medians over splits."""
    return cells.groupby(by)[score].median()


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
    methods = [name for name in TITLES if name in values and name != "recommended_balanced"]
    rows = []
    for name in values.index:
        own = values.loc[name, methods]
        marked = [f"**{_number(v)}**" if v >= own.max() - 5e-4 else _number(v) for v in own]
        rows.append([name, *(_number(known.loc[name, m]) for m in ("majority", "svm")), *marked])
    return table(["set", "majority", "SVM without privacy", *(TITLES[m] for m in methods)], rows)


def paired(ours: pd.DataFrame, peers: pd.DataFrame) -> pd.DataFrame:
    """Cells of the peers, and of the recommended estimator on the same splits under the same relation."""
    keys = ["set", "epsilon", "neighbours", "split"]
    own = ours[ours.method == OWN].set_index(keys)
    have = peers[peers.status == "ok"]
    scores = own[["accuracy", "balanced_accuracy", "auc"]].add_suffix("_ours")
    return have.join(scores, on=keys, how="inner")


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


def ranks(ours: pd.DataFrame, peers: pd.DataFrame, epsilon: float) -> tuple[pd.Series, int]:
    """Mean ranks over the sets, ours under add_remove, and the number of sets.

    A peer without an answer on a set comes last there; one without an answer on half of them is left out.
    """
    have = peers[(peers.epsilon == epsilon) & (peers.status == "ok")]
    own = ours[(ours.method == OWN) & (ours.epsilon == epsilon) & (ours.neighbours == "add_remove")]
    values = medians(have, ["set", "peer"]).unstack()
    values = values[values.columns[values.notna().sum() >= 0.5 * len(values)]]
    values[OWN] = medians(own[own.split.isin(have.split)], ["set"])
    values = values.dropna(subset=[OWN])
    placed = np.array([rankdata(-row) for row in values.fillna(-1.0).to_numpy()])
    return pd.Series(placed.mean(axis=0), index=values.columns).sort_values(), len(values)


def critical_difference(ranking: pd.Series, n_sets: int, epsilon: float) -> None:
    """Draw mean ranks and the least difference that the Nemenyi test at 5 % calls one."""
    k = len(ranking)
    least = studentized_range.ppf(0.95, k, 1e6) / math.sqrt(2.0) * math.sqrt(k * (k + 1) / (6.0 * n_sets))
    figure, axes = plt.subplots(figsize=(7, 0.32 * k + 1.0))
    for height, (name, rank) in enumerate(ranking.items()):
        strong = name == OWN
        axes.plot([rank], [-height], "o", color="#0b57d0" if strong else "#6b7280", zorder=3)
        axes.annotate(
            TITLES[name].strip("*"),
            (rank, -height),
            (8, -3),
            textcoords="offset points",
            weight="bold" if strong else "normal",
        )
    best = ranking.iloc[0]
    axes.plot([best, best + least], [0.6, 0.6], color="#111", lw=2)
    axes.annotate(f"critical difference {least:.2f}", (best, 0.75))
    axes.set(
        xlim=(0.8, k + 1.2),
        ylim=(-k + 0.4, 1.4),
        xlabel=f"mean rank of accuracy over {n_sets} sets, epsilon {epsilon:g}",
        yticks=[],
    )
    axes.spines["left"].set_visible(False)
    _save(figure, _ranks_picture(epsilon))


def gap_picture(ours: pd.DataFrame, peers: pd.DataFrame, reference: pd.DataFrame) -> None:
    """Draw one small multiple a set: accuracy against epsilon, between the majority class and the SVM."""
    known = medians(reference, ["set", "method"]).unstack()
    names = sorted(set(ours["set"]))
    columns = 4
    lines = math.ceil(len(names) / columns)
    figure, grid = plt.subplots(lines, columns, figsize=(11, 2.1 * lines), sharex=True, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        own = ours[(ours["set"] == name) & (ours.method == OWN)]
        for relation, style in (("replace_one", "-"), ("add_remove", "--")):
            curve = medians(own[own.neighbours == relation], ["epsilon"])
            axes.plot(curve.index, curve, style, color="#0b57d0", marker=".", lw=1.4, label=f"recommended, {relation}")
        for number, peer in enumerate(sorted(set(peers.peer))):
            curve = medians(peers[(peers["set"] == name) & (peers.peer == peer) & (peers.status == "ok")], ["epsilon"])
            if len(curve):
                axes.plot(
                    curve.index,
                    curve,
                    ls="",
                    marker="x+^sv*"[number % 6],
                    ms=5,
                    color="#9a6700",
                    alpha=0.8,
                    label=TITLES[peer],
                )
        axes.axhline(known.loc[name, "svm"], color="#111", lw=0.8, label="SVM without privacy")
        axes.axhline(known.loc[name, "majority"], color="#b42318", lw=0.8, ls=":", label="majority class")
        axes.set(xscale="log", title=name)
        axes.set_xticks([0.1, 1, 8], ["0.1", "1", "8"])
        axes.minorticks_off()
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    handles: dict[str, object] = {}
    for axes in grid.flat:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=4, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    _save(figure, "utility_sets.svg")


def _save(figure: plt.Figure, name: str) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / name, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def shares(both: pd.DataFrame, ours: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """Sum up the tables in sentences."""
    cells = both.groupby(["set", "epsilon", "neighbours", "peer"])[["accuracy", "accuracy_ours"]].median()
    best = cells.groupby(["set", "epsilon", "neighbours"]).max()
    worse = best[best.accuracy_ours < best.accuracy - 0.005]
    own = ours[ours.neighbours == "replace_one"]
    values = medians(own[~own.method.str.startswith("recommended_")], ["set", "epsilon", "method"]).unstack()
    several = values.dropna(thresh=2)
    behind = several[several[OWN] < several.max(axis=1) - 0.015]
    known = medians(reference, ["set", "method"]).unstack()
    means = own[(own.method == OWN) & (own.epsilon >= 0.5)].groupby(["set", "epsilon"]).accuracy.mean()
    below = [at for at, value in means.items() if value < known.loc[at[0], "majority"] - 0.01]

    def listed(items: list[str]) -> str:
        return "; ".join(items) or "none"

    against = [
        f"{name}, epsilon {epsilon:g}, {relation} ({row.accuracy_ours:.3f} against {row.accuracy:.3f})"
        for (name, epsilon, relation), row in worse.iterrows()
    ]
    own_best = [
        f"{name}, epsilon {epsilon:g} ({row[OWN]:.3f} against {row.max():.3f})"
        for (name, epsilon), row in behind.iterrows()
    ]
    return [
        f"Against the best peer, under the same relation and on the same splits: at most half a point worse in "
        f"{len(best) - len(worse)} of {len(best)} cells. The others: {listed(against)}.",
        f"Against the best of our own methods chosen with hindsight: at most 1.5 points worse in "
        f"{len(several) - len(behind)} of {len(several)} cells. The others: {listed(own_best)}.",
        f"More than a point below the majority class, in the mean, at epsilon .5 and above: "
        f"{listed([f'{name}, epsilon {epsilon:g}' for name, epsilon in below])}.",
    ]


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


def page_text(ours: pd.DataFrame, peers: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Write the page without its pictures."""
    both = paired(ours, peers)
    parts = [
        "# What accuracy a proved epsilon buys",
        "",
        "<!-- written by bench/utility/page.py from reports/utility/*.csv -->",
        "",
        f"`PrivateLinearClassifier` on {ours['set'].nunique()} real sets, beside our other methods, other libraries, "
        "an SVM without privacy and the majority class. Delta is 1e-5. Numbers are medians of accuracy over "
        f"label-blind splits with a fifth of the rows for testing: up to {int(ours.split.max()) + 1} splits of ours, "
        f"{int(peers.split.max()) + 1} of peers. Every method is told the same public bounds. `make utility` runs what "
        "is missing.",
        "",
        "![Accuracy against epsilon, one panel a set](images/utility_sets.svg)",
        "",
        "## In short",
        "",
        *(f"- {sentence}" for sentence in shares(both, ours, reference)),
        "",
        "## Our methods, epsilon 1, replace_one",
        "",
        accuracy_table(ours, reference, 1.0),
        "## Rare classes: balanced accuracy, epsilon 1, replace_one",
        "",
        balanced_table(ours, both, 1.0),
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
        parts += [f"![Mean ranks at epsilon {epsilon:g}](images/{_ranks_picture(epsilon)})", ""]
    parts += [
        "Ranks are of ours under add_remove. A peer without an answer on a set (not offered, did not finish, not run "
        "yet) comes last there, and is left out where it has answers on fewer than half of the sets. Mean ranks "
        "further apart than the bar differ at 5 % (Nemenyi).",
        "",
        "Seconds stand in the CSV files, as processor time; peers ran beside other work.",
    ]
    return "\n".join(parts) + "\n"


def _ranks_picture(epsilon: float) -> str:
    return f"utility_ranks_{100 * epsilon:03.0f}.svg"


def main() -> None:
    """Write the page and its pictures."""
    ours, peers, reference = read()
    gap_picture(ours, peers, reference)
    for epsilon in PEER_EPSILONS:
        critical_difference(*ranks(ours, peers, epsilon), epsilon)
    write_text(PAGE, page_text(ours, peers, reference))


if __name__ == "__main__":
    main()
