"""Statistics of the leaderboard's cells: accuracies, ranks, gaps to training without privacy, and verdicts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from entries import NEXT_BEST, RECOMMENDED, TABLES, VARIANTS
from scipy.stats import rankdata, studentized_range, ttest_1samp
from scores import DIGITS, SCORES
from sets import training_rows

# Error of all tests of a page together.
ALARM = 0.05
# Points below another method, or below the majority class, that a verdict names.
_BEHIND, _BELOW_MAJORITY = 0.015, 0.01
# Accuracies that are so near are a tie.
_TIED = 0.01
SIZES = {"fewer than 1,000": (0, 1000), "1,000 to 10,000": (1000, 10_000), "more than 10,000": (10_000, 10**9)}


def read() -> pd.DataFrame:
    """Read the cells of all entries on common splits, to as many digits."""
    own = pd.read_csv(TABLES / "leaderboard.csv")
    peers = pd.read_csv(TABLES / "peers.csv").rename(columns={"peer": "entry"})
    peers = peers[peers.status == "ok"]
    cells = pd.concat([own, peers], ignore_index=True)[[*own.columns]]
    common = cells.loc[cells.entry == RECOMMENDED, ["set", "split"]].drop_duplicates()
    return cells.merge(common, on=["set", "split"]).round(dict.fromkeys(SCORES, DIGITS))


def complete(values: pd.DataFrame) -> pd.DataFrame:
    """Keep entries (columns) with answers on half of the sets at least."""
    return values[values.columns[values.notna().mean() >= 0.5]]


def places(values: pd.DataFrame) -> pd.DataFrame:
    """Rank entries on every set; one without an answer is last."""
    ranks = np.array([rankdata(-row) for row in values.fillna(-1.0).to_numpy()])
    return pd.DataFrame(ranks, index=values.index, columns=values.columns)


def tied_place(values: pd.DataFrame) -> float:
    """Average the place of `recommended` where one point is a tie: 1 and the entries that are more than that ahead."""
    ahead = values.sub(values[RECOMMENDED], axis=0) > _TIED
    return 1.0 + float(ahead.sum(axis=1).mean())


def critical_difference(n_entries: int, n_sets: int) -> float:
    """Return by how much mean ranks must differ (Nemenyi, 5 %)."""
    quantile = float(studentized_range.ppf(0.95, n_entries, 1e6)) / math.sqrt(2.0)
    return quantile * math.sqrt(n_entries * (n_entries + 1) / (6.0 * n_sets))


def under(cells: pd.DataFrame, relation: str) -> pd.DataFrame:
    """Select the entries of a relation; a peer that has replaced rows alone is compared under both."""
    if relation == "replace_one":
        return cells[cells.neighbours == relation]
    replaced = (cells.neighbours == "replace_one").groupby(cells.entry).transform("all")
    return cells[(cells.neighbours == relation) | replaced]


def accuracies(cells: pd.DataFrame, epsilon: float, names: Sequence[str]) -> pd.DataFrame:
    """Average over splits, by set and entry, without variants and entries that lack answers."""
    here = cells[(cells.epsilon == epsilon) & cells["set"].isin(names) & ~cells.entry.isin(list(VARIANTS))]
    return complete(here.groupby(["set", "entry"]).accuracy.mean().unstack().reindex(list(names)).dropna(how="all"))


def curves(cells: pd.DataFrame, entry: str, relation: str) -> pd.DataFrame:
    """Select accuracy by set, split and epsilon, on splits with all epsilons of the entry."""
    here = cells[(cells.entry == entry) & (cells.neighbours == relation)]
    return here.set_index(["set", "split", "epsilon"]).accuracy.unstack().dropna()


def reference(cells: pd.DataFrame, entry: str) -> pd.Series:
    """Select the accuracy of a reference, by set and split."""
    return cells[cells.entry == entry].set_index(["set", "split"]).accuracy


def gaps_to_svm(cells: pd.DataFrame, relation: str = "add_remove") -> pd.DataFrame:
    """Compute points below the SVM without privacy, by set and epsilon; means over splits."""
    values = curves(cells, RECOMMENDED, relation)
    gaps = 100.0 * values.rsub(reference(cells, "svm").reindex(values.index), axis=0)
    return gaps.groupby("set").mean()


def by_rows(gaps: Any, sizes: Mapping[str, tuple[int, int]] = SIZES) -> dict[str, Any]:
    """Group sets, the index of a table or a series, by the number of training rows."""
    rows = pd.Series({name: training_rows(str(name)) for name in gaps.index})
    return {words: gaps[(rows >= least) & (rows < most)] for words, (least, most) in sizes.items()}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A statement, the number of cells that it is about, and those in which it is false."""

    statement: str
    cells: int
    failures: tuple[str, ...]

    @property
    def share(self) -> str:
        """Write the share of cells in which it is true."""
        held = self.cells - len(self.failures)
        return f"{held} of {self.cells} ({100 * held / max(self.cells, 1):.0f} %)"


def rising(cells: pd.DataFrame) -> Verdict:
    """Judge by paired t-tests whether accuracy falls as epsilon grows."""
    falls, steps = [], 0
    for (name, relation), here in cells[cells.entry == RECOMMENDED].groupby(["set", "neighbours"]):
        by_split = here.pivot_table(index="split", columns="epsilon", values="accuracy")
        for low, high in zip(by_split.columns, by_split.columns[1:], strict=False):
            changes = (by_split[high] - by_split[low]).dropna().to_numpy()
            if len(changes) < 2:
                continue
            steps += 1
            if changes.mean() < 0.0:
                chance = 0.0 if np.ptp(changes) == 0.0 else ttest_1samp(changes, 0.0, alternative="less").pvalue
                falls.append((chance, f"{name}, {relation}, {low:g} to {high:g} ({100 * changes.mean():.1f} points)"))
    failures = tuple(words for chance, words in falls if chance < ALARM / steps)
    statement = (
        "Accuracy does not fall from one epsilon to the next, beyond noise (paired t-tests over splits, 5 % for all)"
    )
    return Verdict(statement, steps, failures)


def _compare(values: pd.Series, others: pd.Series, tolerance: float, statement: str) -> Verdict:
    """Judge whether accuracies by set, relation and epsilon are at most so much below others."""
    failures = tuple(
        f"{name}, {relation}, epsilon {epsilon:g} ({value:.3f} against {other:.3f})"
        for (name, relation, epsilon), value, other in zip(values.index, values, others, strict=True)
        if value < other - tolerance
    )
    return Verdict(statement, len(values), failures)


def above_majority(cells: pd.DataFrame) -> Verdict:
    """Judge whether mean accuracy is more than a point below the majority class."""
    ours = cells[(cells.entry == RECOMMENDED) & (cells.epsilon >= 0.5)]
    values = ours.groupby(["set", "neighbours", "epsilon"]).accuracy.mean()
    majority = reference(cells, "majority").groupby("set").mean().reindex(values.index.get_level_values("set"))
    statement = "Mean accuracy at epsilon 0.5 and above is at least the majority class's less one point"
    return _compare(values, majority, _BELOW_MAJORITY, statement)


def beside_next_best(cells: pd.DataFrame) -> Verdict:
    """Judge whether mean accuracy is more than 1.5 points below the next best entry, which has fewer parts."""
    both = cells[cells.entry.isin([RECOMMENDED, NEXT_BEST])]
    values = both.groupby(["set", "neighbours", "epsilon", "entry"]).accuracy.mean().unstack().dropna()
    statement = f"Mean accuracy is at most 1.5 points below {NEXT_BEST}, the next best"
    return _compare(values[RECOMMENDED], values[NEXT_BEST], _BEHIND, statement)
