"""Draw the curves of docs/leaderboard.md."""

from __future__ import annotations

import math

import matplotlib as mpl
import pandas as pd
from entries import CURVES, ENTRIES, NEXT_BEST, RECOMMENDED, REFERENCES, ROOT, title
from ranking import curves, gaps_to_svm, reference

mpl.use("svg")
from matplotlib import pyplot as plt

IMAGES = ROOT / "docs" / "images"
_BLUE, _GREY, _OCHRE, _RED = "#0b57d0", "#6b7280", "#9a6700", "#b42318"
_MARKS, _LINES = "x+^sv*Dp", {"replace_one": "-", "add_remove": "--"}
plt.rcParams.update({"svg.hashsalt": "utility", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def draw(cells: pd.DataFrame) -> None:
    """Draw all pictures."""
    means = cells.groupby(["entry", "neighbours", "set", "epsilon"], dropna=False).accuracy.mean()
    peers = {entry: means[entry].droplevel(0) for entry in sorted({*cells.entry} - {*ENTRIES, *REFERENCES})}
    draw_sets(cells, peers)
    draw_gaps(cells, peers)


def draw_gaps(cells: pd.DataFrame, peers: dict[str, pd.Series]) -> None:
    """Draw the gap of the recommended method and of peers to the SVM without privacy."""
    svm = reference(cells, "svm").groupby("set").mean()
    figure, axes = plt.subplots(figsize=(7, 3.6))
    for relation, style in _LINES.items():
        gaps = gaps_to_svm(cells, relation)
        axes.plot(gaps.columns, gaps.median(), style, color=_BLUE, marker=".", label=f"{RECOMMENDED}, {relation}")
        if relation == "replace_one":
            low, high = gaps.quantile(0.25), gaps.quantile(0.75)
            label = f"middle half of {len(gaps)} sets"
            axes.fill_between(gaps.columns, low, high, color=_BLUE, alpha=0.12, lw=0, label=label)
    for number, (peer, means) in enumerate(peers.items()):
        values = means.unstack().reindex(gaps.index)
        values = values[values.columns[values.notna().mean() >= 0.5]].dropna()
        if values.empty or len(values) < 0.5 * len(gaps):
            continue
        shift = 1.0 + 0.03 * (number - len(peers) / 2)
        medians = 100.0 * values.rsub(svm.reindex(values.index), axis=0).median()
        label = f"{title(peer)} ({len(values)} sets)"
        axes.plot(medians.index * shift, medians, _MARKS[number], color=_OCHRE, alpha=0.8, label=label)
    axes.axhline(0.0, color="#111", lw=0.8)
    axes.set(xscale="log", xlabel="epsilon", ylabel="points below the SVM (median over sets)")
    axes.set_xticks(gaps.columns, [f"{tick:g}" for tick in gaps.columns])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _save(figure, "utility_gap.svg")


def draw_sets(cells: pd.DataFrame, peers: dict[str, pd.Series]) -> None:
    """Draw accuracy against epsilon, one panel a set, with references."""
    lines = {
        f"{entry}, {relation}": (curves(cells, entry, relation).groupby("set").mean(), style, color)
        for entry, color in ((RECOMMENDED, _BLUE), (NEXT_BEST, _GREY))
        for relation, style in _LINES.items()
        if relation in CURVES[entry]
    }
    references = {name: reference(cells, name).groupby("set").mean() for name in ("svm", "majority")}
    names = sorted(lines[f"{RECOMMENDED}, replace_one"][0].index)
    figure, grid = plt.subplots(math.ceil(len(names) / 4), 4, figsize=(11, 0.525 * len(names)), sharex=True)
    for axes, name in zip(grid.flat, names, strict=False):
        for label, (values, style, color) in lines.items():
            curve = values.loc[name]
            axes.plot(curve.index, curve, style, color=color, marker=".", lw=1.4, label=label)
        for mark, (peer, means) in zip(_MARKS, peers.items(), strict=False):
            if name in means.index:
                curve = means.loc[name]
                axes.plot(curve.index, curve, mark, ms=5, color=_OCHRE, alpha=0.8, label=title(peer))
        axes.axhline(references["svm"][name], color="#111", lw=0.8, label="SVM without privacy")
        axes.axhline(references["majority"][name], color=_RED, lw=0.8, ls=":", label="majority class")
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
