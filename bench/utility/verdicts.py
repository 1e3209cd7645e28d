"""What the cells of the utility table say: medians, ranks, and every sentence that judges them.

Tables have one row a cell, as those of ``reports/utility`` do. Nothing here draws or writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata, ttest_1samp

__all__ = [
    "HELD_OUT",
    "MOST_FEATURES",
    "MOST_ROWS",
    "OWN",
    "PEER_EPSILONS",
    "ROOT",
    "SMALL",
    "TABLES",
    "TITLES",
    "Verdict",
    "above_majority",
    "beside_own_methods",
    "beside_peers",
    "first_by_rank",
    "medians",
    "paired",
    "ranks",
    "ranks_picture",
    "read",
    "read_draws",
    "rising",
    "short_title",
    "verdicts",
]

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / "reports" / "utility"
OURS = TABLES / "ours"
# The recommended estimator, and the same with constants that were chosen without the set.
OWN, HELD_OUT = "recommended", "recommended_held_out"
# Names as readers know them.
TITLES = {
    "recommended": "**recommended**",
    "recommended_held_out": "recommended, constants chosen without the set",
    "recommended_balanced": "recommended, balanced",
    "recommended_linear": "recommended, linear",
    "dp_feature_covariance": "dp_feature_covariance",
    "dp_least_squares": "dp_least_squares",
    "dp_newton": "dp_newton",
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
# Sets that are quickly trained on with more than one draw of noise.
MOST_ROWS, MOST_FEATURES = 2500, 500
SMALL = f"sets of at most {MOST_ROWS:,} rows and {MOST_FEATURES} features"

PEER_EPSILONS = (0.5, 1.0, 4.0)
# Chance of calling any step of any set a fall that is none.
_FALSE_ALARM = 0.05


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A sentence, and in how many cells it is true.

    Attributes
    ----------
    claim : str
        The sentence, without a full stop.
    cells : int
        Number of cells that it is about.
    short : tuple of str
        Those in which it is not true, in words.
    """

    claim: str
    cells: int
    short: tuple[str, ...]

    @property
    def held(self) -> int:
        """Number of cells in which it is true."""
        return self.cells - len(self.short)

    @property
    def share(self) -> str:
        """Cells in which it is true, as a cell of a table."""
        return f"{self.held} of {self.cells} ({100 * self.held / max(self.cells, 1):.0f} %)"


def read() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Our cells, those of peers, and what knows no privacy."""
    ours = pd.concat([pd.read_csv(path) for path in sorted(OURS.glob("*.csv"))], ignore_index=True)
    peers = pd.read_csv(TABLES / "peers.csv")
    return ours[ours.epsilon.notna()], peers, ours[ours.epsilon.isna()]


def read_draws() -> pd.DataFrame | None:
    """Medians of small sets with further draws of noise, if they were measured."""
    path = TABLES / "draws.csv"
    return pd.read_csv(path) if path.exists() else None


def medians(cells: pd.DataFrame, by: list[str], score: str = "accuracy") -> pd.Series:
    """Medians over splits."""
    return cells.groupby(by)[score].median()


def ranks_picture(epsilon: float) -> str:
    """File name of the picture of mean ranks."""
    return f"utility_ranks_{100 * epsilon:03.0f}.svg"


def short_title(method: str) -> str:
    """Name of a method without emphasis."""
    return TITLES[method].strip("*")


def paired(ours: pd.DataFrame, peers: pd.DataFrame, own: str = OWN) -> pd.DataFrame:
    """Cells of the peers, and of the recommended estimator on the same splits under the same relation."""
    keys = ["set", "epsilon", "neighbours", "split"]
    scores = ours[ours.method == own].set_index(keys)[["accuracy", "balanced_accuracy", "auc"]].add_suffix("_ours")
    return peers[peers.status == "ok"].join(scores, on=keys, how="inner")


def ranks(ours: pd.DataFrame, peers: pd.DataFrame, epsilon: float, own: str = OWN) -> tuple[pd.Series, int]:
    """Mean ranks over the sets, ours under add_remove, and the number of sets.

    A peer without an answer on a set comes last there; one without an answer on half of them is left out.
    """
    have = peers[(peers.epsilon == epsilon) & (peers.status == "ok")]
    cells = ours[(ours.method == own) & (ours.epsilon == epsilon) & (ours.neighbours == "add_remove")]
    values = medians(have, ["set", "peer"]).unstack()
    values = values[values.columns[values.notna().sum() >= 0.5 * len(values)]]
    values[own] = medians(cells[cells.split.isin(have.split)], ["set"])
    values = values.dropna(subset=[own])
    placed = np.array([rankdata(-row) for row in values.fillna(-1.0).to_numpy()])
    return pd.Series(placed.mean(axis=0), index=values.columns).sort_values(), len(values)


def rising(ours: pd.DataFrame, own: str = OWN) -> Verdict:
    """Judge whether accuracy falls from one epsilon to the next by more than noise, by paired t-tests over splits."""
    falls, steps = [], 0
    for (name, relation), cells in ours[ours.method == own].groupby(["set", "neighbours"]):
        by_split = cells.pivot_table(index="split", columns="epsilon", values="accuracy")
        for low, high in zip(by_split.columns, by_split.columns[1:], strict=False):
            moved = (by_split[high] - by_split[low]).dropna().to_numpy()
            if len(moved) < 2:
                continue
            steps += 1
            if moved.mean() < 0.0:
                chance = 0.0 if np.ptp(moved) == 0.0 else ttest_1samp(moved, 0.0, alternative="less").pvalue
                words = f"{name}, {relation}, {low:g} to {high:g} ({100 * moved.mean():.1f} points)"
                falls.append((moved.mean(), chance, words))
    short = tuple(words for _, chance, words in falls if chance < _FALSE_ALARM / steps)
    claim = (
        "accuracy does not fall from one epsilon to the next, beyond noise (paired t-tests over splits, 5 % for all)"
    )
    return Verdict(claim, steps, short)


def above_majority(ours: pd.DataFrame, reference: pd.DataFrame, own: str = OWN) -> Verdict:
    """Judge whether mean accuracy is more than a point below the majority class, at epsilon .5 and above."""
    known = reference[reference.method == "majority"].groupby("set").accuracy.mean()
    means = ours[(ours.method == own) & (ours.epsilon >= 0.5)].groupby(["set", "neighbours", "epsilon"]).accuracy.mean()
    short = tuple(
        f"{name}, {relation}, epsilon {epsilon:g} ({value:.3f} against {known[name]:.3f})"
        for (name, relation, epsilon), value in means.items()
        if value < known[name] - 0.01
    )
    claim = "mean accuracy at epsilon 0.5 and above is at least the majority class's less one point"
    return Verdict(claim, len(means), short)


def beside_peers(ours: pd.DataFrame, peers: pd.DataFrame, own: str = OWN) -> Verdict:
    """Judge whether it is within half a point of the best peer, under the peer's relation and on its splits."""
    claim = "within half a point of the best other library"
    both = paired(ours, peers, own)
    if both.empty:
        return Verdict(claim, 0, ())
    cells = both.groupby(["set", "epsilon", "neighbours", "peer"])[["accuracy", "accuracy_ours"]].median()
    best = cells.groupby(["set", "epsilon", "neighbours"]).max()
    short = tuple(
        f"{name}, epsilon {epsilon:g}, {relation} ({row.accuracy_ours:.3f} against {row.accuracy:.3f})"
        for (name, epsilon, relation), row in best.iterrows()
        if row.accuracy_ours < row.accuracy - 0.005
    )
    return Verdict(claim, len(best), short)


def _averaged(values: pd.DataFrame, draws: pd.DataFrame, own: str) -> pd.DataFrame:
    """Means over draws of the medians in cells where all methods have as many draws, and the method of its own too."""
    keys = ["set", "epsilon", "method"]
    more = draws.groupby(keys)["median"].agg(["sum", "count"]).reindex(values.index)
    base = draws[draws.method == own].groupby(keys[:2])["median"].agg(["sum", "count"])
    base = base.reindex(values.index.droplevel("method")).set_axis(values.index)
    count = base["count"].fillna(0.0)
    alike = (more["count"] == count).groupby(keys[:2]).transform("all")
    averaged = pd.DataFrame(
        {
            "accuracy": (values.accuracy + more["sum"]) / (1.0 + count),
            "accuracy_own": (values.accuracy_own + base["sum"]) / (1.0 + count),
        }
    )
    return averaged.where(alike, values)


def beside_own_methods(ours: pd.DataFrame, own: str = OWN, draws: pd.DataFrame | None = None) -> Verdict:
    """Judge whether it is within 1.5 points of the best of our methods chosen with hindsight.

    With more draws of noise, the medians of a cell are averaged over them, for all methods alike: with one draw, the
    best in hindsight is the luckiest one too.
    """
    here = ours[ours.neighbours == "replace_one"]
    judged = here[here.method == own]
    keys = ["set", "epsilon", "split"]
    others = here[~here.method.str.startswith("recommended_")]
    # Each on the splits that both have.
    both = others.merge(judged[[*keys, "accuracy"]], on=keys, suffixes=("", "_own"))
    values = both.groupby(["set", "epsilon", "method"])[["accuracy", "accuracy_own"]].median()
    claim = "within 1.5 points of the best of our methods, picked with hindsight"
    if draws is not None:
        values = _averaged(values, draws, own)
        claim += (
            f", each averaged over {1 + draws.draw.nunique()} draws of noise on {draws['set'].nunique()} small sets"
        )
    cells = [(cell, own) for cell, own in values.groupby(["set", "epsilon"]) if len(own) > 1]
    best = {cell: own.loc[(own.accuracy - own.accuracy_own).idxmax()] for cell, own in cells}
    short = tuple(
        f"{name}, epsilon {epsilon:g} ({row.accuracy_own:.3f} against {row.accuracy:.3f})"
        for (name, epsilon), row in best.items()
        if row.accuracy_own < row.accuracy - 0.015
    )
    return Verdict(claim, len(best), short)


def first_by_rank(ours: pd.DataFrame, peers: pd.DataFrame, own: str = OWN) -> Verdict:
    """Judge whether it is first by mean rank among all peers."""
    placed = {epsilon: ranks(ours, peers, epsilon, own)[0] for epsilon in PEER_EPSILONS}
    short = tuple(
        f"epsilon {epsilon:g} ({short_title(ranking.index[0])})"
        for epsilon, ranking in placed.items()
        if ranking.index[0] != own
    )
    claim = "first by mean rank among the other libraries, at epsilon " + ", ".join(f"{one:g}" for one in placed)
    return Verdict(claim, len(placed), short)


def verdicts(
    ours: pd.DataFrame,
    peers: pd.DataFrame,
    reference: pd.DataFrame,
    own: str = OWN,
    draws: pd.DataFrame | None = None,
) -> Iterable[Verdict]:
    """All of them."""
    yield first_by_rank(ours, peers, own)
    yield beside_peers(ours, peers, own)
    yield beside_own_methods(ours, own)
    if draws is not None:
        yield beside_own_methods(ours, own, draws)
    yield above_majority(ours, reference, own)
    if own == OWN:
        yield rising(ours)
