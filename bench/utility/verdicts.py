"""Judge the cells of the utility table: medians and verdicts.

Tables have one row per cell, as those of ``reports/utility``. Nothing here draws or writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / "reports" / "utility"
RECOMMENDED = "recommended"
# Names for readers.
TITLES = {
    "recommended": "**recommended**",
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
    "dp_ebm_nominal": "DP-EBM, nominal columns",
    "opacus_linear": "Opacus, linear",
    "opacus_hidden_layer": "Opacus, hidden layer",
    "mst_svm": "MST + SVM",
    "aim_boosting": "AIM + boosting",
}
PEER_EPSILONS = (0.5, 1.0, 4.0)
# Family-wise error of the tests for falls.
_FALSE_ALARM = 0.05


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A sentence, and the cells in which it is false.

    Attributes
    ----------
    claim : str
        The sentence, without a full stop.
    cells : int
        Number of cells.
    short : tuple of str
        Cells in which it is false, in words.
    """

    claim: str
    cells: int
    short: tuple[str, ...]

    @property
    def held(self) -> int:
        """Return the number of cells in which it is true."""
        return self.cells - len(self.short)

    @property
    def share(self) -> str:
        """Write the share of cells in which it is true."""
        return f"{self.held} of {self.cells} ({100 * self.held / max(self.cells, 1):.0f} %)"


def read() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Read our cells, those of peers, and those without privacy."""
    ours = pd.read_csv(TABLES / "ours.csv")
    peers = pd.read_csv(TABLES / "peers.csv")
    # Those of the leaderboard have further sets.
    peers = peers[peers["set"].isin(ours["set"])]
    return ours[ours.epsilon.notna()], peers, ours[ours.epsilon.isna()]


def medians(cells: pd.DataFrame, by: list[str], score: str = "accuracy") -> pd.Series:
    """Compute medians over splits."""
    return cells.groupby(by)[score].median()


def gaps_to_svm(ours: pd.DataFrame, reference: pd.DataFrame) -> pd.Series:
    """Compute points below the SVM without privacy on common splits, by set and epsilon under replace_one."""
    recommended = ours[(ours.method == RECOMMENDED) & (ours.neighbours == "replace_one")]
    svm = reference.loc[reference.method == "svm", ["set", "split", "accuracy"]]
    cells = recommended.merge(svm, on=["set", "split"], suffixes=("", "_svm")).groupby(["set", "epsilon"])
    gaps: pd.Series = 100.0 * (cells.accuracy_svm.median() - cells.accuracy.median())
    return gaps


def short_title(method: str) -> str:
    """Return the name of a method without emphasis."""
    return TITLES.get(method, method).strip("*")


def paired(ours: pd.DataFrame, peers: pd.DataFrame) -> pd.DataFrame:
    """Join cells of the peers with ours on the same splits under the same relation."""
    keys = ["set", "epsilon", "neighbours", "split"]
    scores = (
        ours[ours.method == RECOMMENDED].set_index(keys)[["accuracy", "balanced_accuracy", "auc"]].add_suffix("_ours")
    )
    return peers[peers.status == "ok"].join(scores, on=keys, how="inner")


def rising(ours: pd.DataFrame) -> Verdict:
    """Judge by paired t-tests whether accuracy falls as epsilon grows."""
    falls, steps = [], 0
    for (name, relation), cells in ours[ours.method == RECOMMENDED].groupby(["set", "neighbours"]):
        by_split = cells.pivot_table(index="split", columns="epsilon", values="accuracy")
        for low, high in zip(by_split.columns, by_split.columns[1:], strict=False):
            changes = (by_split[high] - by_split[low]).dropna().to_numpy()
            if len(changes) < 2:
                continue
            steps += 1
            if changes.mean() < 0.0:
                chance = 0.0 if np.ptp(changes) == 0.0 else ttest_1samp(changes, 0.0, alternative="less").pvalue
                words = f"{name}, {relation}, {low:g} to {high:g} ({100 * changes.mean():.1f} points)"
                falls.append((changes.mean(), chance, words))
    short = tuple(words for _, chance, words in falls if chance < _FALSE_ALARM / steps)
    claim = (
        "accuracy does not fall from one epsilon to the next, beyond noise (paired t-tests over splits, 5 % for all)"
    )
    return Verdict(claim, steps, short)


def above_majority(ours: pd.DataFrame, reference: pd.DataFrame) -> Verdict:
    """Judge whether mean accuracy is a point below the majority class."""
    majority = reference[reference.method == "majority"].groupby("set").accuracy.mean()
    means = (
        ours[(ours.method == RECOMMENDED) & (ours.epsilon >= 0.5)]
        .groupby(["set", "neighbours", "epsilon"])
        .accuracy.mean()
    )
    short = tuple(
        f"{name}, {relation}, epsilon {epsilon:g} ({value:.3f} against {majority[name]:.3f})"
        for (name, relation, epsilon), value in means.items()
        if value < majority[name] - 0.01
    )
    claim = "mean accuracy at epsilon 0.5 and above is at least the majority class's less one point"
    return Verdict(claim, len(means), short)


def beside_other_methods(ours: pd.DataFrame) -> Verdict:
    """Judge whether it is within 1.5 points of our best method in hindsight."""
    here = ours[ours.neighbours == "replace_one"]
    judged = here[here.method == RECOMMENDED]
    keys = ["set", "epsilon", "split"]
    others = here[~here.method.str.startswith("recommended_")]
    # Compare on the splits that both methods have.
    both = others.merge(judged[[*keys, "accuracy"]], on=keys, suffixes=("", "_recommended"))
    values = both.groupby(["set", "epsilon", "method"])[["accuracy", "accuracy_recommended"]].median()
    claim = "within 1.5 points of the best of our methods, picked with hindsight"
    cells = [(cell, rows) for cell, rows in values.groupby(["set", "epsilon"]) if len(rows) > 1]
    best = {cell: rows.loc[(rows.accuracy - rows.accuracy_recommended).idxmax()] for cell, rows in cells}
    short = tuple(
        f"{name}, epsilon {epsilon:g} ({row.accuracy_recommended:.3f} against {row.accuracy:.3f})"
        for (name, epsilon), row in best.items()
        if row.accuracy_recommended < row.accuracy - 0.015
    )
    return Verdict(claim, len(best), short)


def verdicts(ours: pd.DataFrame, reference: pd.DataFrame) -> Iterable[Verdict]:
    """Yield all verdicts."""
    yield beside_other_methods(ours)
    yield above_majority(ours, reference)
    yield rising(ours)
