"""Draw the pictures of docs/utility.md from the cells that `verdicts` judges."""

from __future__ import annotations

import math

import matplotlib as mpl
import pandas as pd
from verdicts import RECOMMENDED, ROOT, TITLES, medians

mpl.use("svg")
from matplotlib import pyplot as plt

__all__ = ["draw"]

IMAGES = ROOT / "docs" / "images"
_BLUE, _GREY, _OCHRE, _RED = "#0b57d0", "#6b7280", "#9a6700", "#b42318"
_MARKS = "x+^sv*Dp"
plt.rcParams.update({"svg.hashsalt": "utility", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def draw(ours: pd.DataFrame, peers: pd.DataFrame, reference: pd.DataFrame) -> None:
    """Draw all pictures."""
    small_multiples(ours, peers, reference)
    gap_picture(ours, peers, reference)


def _complete(values: pd.DataFrame) -> pd.DataFrame:
    """Select epsilons with nearly all sets, and sets with all of these epsilons."""
    return values[values.columns[values.notna().mean() >= 0.9]].dropna()


def gap_picture(ours: pd.DataFrame, peers: pd.DataFrame, reference: pd.DataFrame) -> None:
    """Draw the gap of ours and of peers to the SVM without privacy."""
    best = medians(reference[reference.method == "svm"], ["set"])
    figure, axes = plt.subplots(figsize=(7, 3.6))
    recommended = ours[ours.method == RECOMMENDED]
    for relation, style in (("replace_one", "-"), ("add_remove", "--")):
        values = _complete(
            medians(recommended[recommended.neighbours == relation], ["epsilon", "set"]).unstack("epsilon")
        )
        gaps = 100.0 * values.rsub(best.reindex(values.index), axis=0)
        axes.plot(gaps.columns, gaps.median(), style, color=_BLUE, marker=".", label=f"recommended, {relation}")
        if relation == "replace_one":
            low, high = gaps.quantile(0.25), gaps.quantile(0.75)
            label = f"middle half of {len(gaps)} sets"
            axes.fill_between(gaps.columns, low, high, color=_BLUE, alpha=0.12, lw=0, label=label)
    finished = peers[peers.status == "ok"]
    names = sorted(set(peers.peer))
    for number, peer in enumerate(names):
        values = _complete(medians(finished[finished.peer == peer], ["epsilon", "set"]).unstack("epsilon"))
        if len(values) < 0.5 * len(best):
            continue
        gaps = 100.0 * values.rsub(best.reindex(values.index), axis=0).median()
        shift = 1.0 + 0.03 * (number - len(names) / 2)
        label = f"{TITLES[peer]} ({len(values)} sets)"
        axes.plot(gaps.index * shift, gaps, _MARKS[number % len(_MARKS)], color=_OCHRE, alpha=0.8, label=label)
    axes.axhline(0.0, color="#111", lw=0.8)
    axes.set(xscale="log", xlabel="epsilon", ylabel="points below the SVM (median over sets)")
    ticks = sorted(set(recommended.epsilon))
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _save(figure, "utility_gap.svg")


def small_multiples(ours: pd.DataFrame, peers: pd.DataFrame, reference: pd.DataFrame) -> None:
    """Draw accuracy against epsilon, one panel per set, with references."""
    references = medians(reference, ["set", "method"]).unstack()
    names = sorted(set(ours["set"]))
    columns = 4
    lines = math.ceil(len(names) / columns)
    figure, grid = plt.subplots(lines, columns, figsize=(11, 2.1 * lines), sharex=True, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        recommended = ours[(ours["set"] == name) & (ours.method == RECOMMENDED)]
        for relation, style in (("replace_one", "-"), ("add_remove", "--")):
            curve = medians(recommended[recommended.neighbours == relation], ["epsilon"])
            axes.plot(curve.index, curve, style, color=_BLUE, marker=".", lw=1.4, label=f"recommended, {relation}")
        for number, peer in enumerate(sorted(set(peers.peer))):
            curve = medians(peers[(peers["set"] == name) & (peers.peer == peer) & (peers.status == "ok")], ["epsilon"])
            if len(curve):
                axes.plot(
                    curve.index,
                    curve,
                    ls="",
                    marker=_MARKS[number % len(_MARKS)],
                    ms=5,
                    color=_OCHRE,
                    alpha=0.8,
                    label=TITLES[peer],
                )
        axes.axhline(references.loc[name, "svm"], color="#111", lw=0.8, label="SVM without privacy")
        axes.axhline(references.loc[name, "majority"], color=_RED, lw=0.8, ls=":", label="majority class")
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
