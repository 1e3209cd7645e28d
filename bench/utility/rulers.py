"""Measure three rulers beside accuracy: ``python bench/utility/rulers.py``.

``reports/utility/curves.csv`` has accuracies `at` a number of rows or an epsilon: of a linear SVM without privacy on
part of the training rows (`svm`), of the recommended recipe without its noise (`without_noise`), and of the recommended
method on tables of few rows, or with usual values in their documentation, less 30 training rows: as it is (`alone`),
with these as public rows (`public_rows`), and with one public row of the documented values (`typical`).

``rulers.csv`` compares, where a row is added or removed: the rows that the SVM needs to be as accurate as the
recommended method; the points that the recipe loses to the SVM without noise (`structure`) and by it (`privacy`); and
the epsilon below which group privacy leaves less accuracy than the SVM has to a method that is as good whatever the
labels of a class are (`binds_below`).
``public_rows.csv`` says what public rows and documented values gain over `alone`, and the rows that the SVM needs to be
as accurate with them, and as it is (`worth_alone`).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import leaderboard
import numpy as np
import pandas as pd
from cells import Cells
from entries import DELTA, RECOMMENDED, TABLES
from ranking import read
from scores import SCORES
from sets import CHOOSE, JUDGE, LARGE_SPLITS, LOOK, REAL, SMALL_ROWS, load, training_rows

from privsvm.families.moments.scaled_descent import Budget
from privsvm.files import write_text
from privsvm.methods.recommended.rule import choose_recipe
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.tables.schema import MIDDLE, parse_schema
from privsvm_bench.datasets.catalogue import load_catalogue

KINDS = {name: kind for kind, names in (("choose", CHOOSE), ("look", LOOK), ("judge", JUDGE)) for name in names}
PUBLIC, FEWEST, SPLITS = 30, 8, 5
EPSILONS, FEW_EPSILONS = (0.5, 1.0, 4.0), (0.1, 0.5)
# Epsilons at which a ceiling may bind.
_SCAN = np.geomspace(1e-5, 10.0, 601)
# Accuracies that are so near are a tie.
_TIED = 0.002
_FIELDS = ("set", "kind", "epsilon", "rows", "rows_worth", "accuracy", "svm", "structure", "privacy", "binds_below")
_GAINS = ("entry", "set", "kind", "epsilon", "rows", "centre", "accuracy", "gain", "worth_alone", "worth")
_DIGITS = {"accuracy": 4, "svm": 4, "structure": 2, "privacy": 2, "binds_below": 3, "gain": 2}


def typical_row(name: str) -> np.ndarray | None:
    """Return the documented usual values of a set, as features; None if no column has one but the middle."""
    entry = load_catalogue()[name]
    if entry.schema is None:
        return None
    columns = list(parse_schema(entry.schema).features.values())
    if all(column.kind == "categories" or column.fill in (None, MIDDLE) for column in columns):
        return None
    data, shares = load(name), np.zeros(len(columns))
    for number, column in enumerate(columns):
        if column.kind != "categories":
            low, high = column.limits
            shares[number] = (column.fill_number - low) / (high - low)
    return data.lower + shares[data.columns] * (data.upper - data.lower)


def is_few(name: str) -> bool:
    """Return whether a set has few rows, or documented values."""
    return training_rows(name) < 0.8 * SMALL_ROWS or typical_row(name) is not None


def shared_splits(name: str) -> range:
    """List the splits that are compared: fewer where rows are many."""
    return range(SPLITS if training_rows(name) < SMALL_ROWS else LARGE_SPLITS)


def run_cell(key: tuple[str, ...]) -> dict[str, Any]:
    """Run a cell of the table."""
    entry, name, at, split = key[0], key[1], float(key[2]), int(key[3])
    data = load(name)
    train, test = data.splits[split]
    order, settings = np.random.default_rng(split).permutation(train), {}
    if entry == "svm":
        order = order[: int(at)]
        part = replace(data, splits=[(order, test)])
        return leaderboard.run_reference("svm" if np.ptp(data.y[order]) else "majority", part, 0)
    public, rest = order[:PUBLIC], order[PUBLIC:]
    if entry == "without_noise":
        silent = mock.patch.object(NoiseSource, "add_rounded_normals", lambda self, numbers, sigma, stated: numbers)
        with silent, mock.patch.object(leaderboard, "SMALL_DRAWS", 1):
            return leaderboard.run(RECOMMENDED, data, "add_remove", at, split)
    if entry != "alone":
        settings["public_rows"] = data.X[public] if entry == "public_rows" else typical_row(name)
    splits = list(data.splits)
    splits[split] = (rest, test)
    return leaderboard.run(RECOMMENDED, replace(data, splits=splits), "add_remove", at, split, settings)


CELLS = Cells(
    TABLES / "curves.csv", ("entry", "set", "at", "split"),
    lambda entry: leaderboard.CELLS.code("svm" if entry == "svm" else RECOMMENDED), run_cell,
)  # fmt: skip


def list_cells(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """List the keys of cells."""
    for name in names:
        rows = len(load(name).splits[0][0])
        # Other tables have the accuracy on all rows, but for sets that have no cells there.
        parts = [rows >> step for step in range(name not in REAL, 20) if rows >> step >= FEWEST]
        columns: dict[str, Sequence[float]] = {"svm": parts, "without_noise": EPSILONS}
        if is_few(name):
            columns |= dict.fromkeys(("alone", "public_rows"), FEW_EPSILONS)
            columns |= {"typical": FEW_EPSILONS} if typical_row(name) is not None else {}
        for entry, values in columns.items():
            yield from ((entry, name, f"{at:g}", str(split)) for at in values for split in shared_splits(name))


def rows_worth(accuracy: float, curve: pd.Series) -> float:
    """Return the number of rows at which a learning curve, by rows, first reaches an accuracy.

    It is the last one where the accuracy there is a tie: curves are flat in the end.
    """
    rows, best = np.log2(curve.index.to_numpy(dtype=float)), np.maximum.accumulate(curve.to_numpy())
    if accuracy >= curve.iloc[-1] - _TIED:
        return float(2.0 ** rows[-1])
    return float(2.0 ** np.interp(accuracy, best, rows)) if accuracy > best[0] else float(2.0 ** rows[0])


def ceiling(counts: np.ndarray, epsilon: float, delta: float = DELTA) -> float:
    """Bound the accuracy on rows of all classes, of which there are so many, where a row is added or removed.

    Other labels of a class of m rows are 2 m rows away. No output is then more likely by a factor of more than
    ``exp(2 m epsilon)``, and a share that grows with it: of both tables together, more than ``(1 + t) / 2`` of the rows
    of the class cannot be right, where t is the total variation.
    """
    group = np.minimum(2.0 * counts * epsilon, 300.0)
    deltas = delta * np.expm1(group) / math.expm1(epsilon)
    variation = np.minimum((np.expm1(group) + 2.0 * deltas) / (np.exp(group) + 1.0), 1.0)
    return float(np.average((1.0 + variation) / 2.0, weights=counts))


def learning_curve(curves: pd.Series, cells: pd.DataFrame, name: str) -> pd.Series:
    """Return the accuracy of the SVM without privacy on parts of the training rows of a set, and on all if known."""
    here = cells[(cells.entry == "svm") & (cells["set"] == name) & cells.split.isin(shared_splits(name))]
    whole = {float(load(name).splits[0][0].size): here.accuracy.mean()} if len(here) else {}
    return pd.concat([curves["svm", name], pd.Series(whole, dtype=float)]).sort_index()


def compare(cells: pd.DataFrame) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Compute the rulers of the recommended method (`_FIELDS`), and gains from public rows (`_GAINS`)."""
    curves, rulers, gains = pd.read_csv(CELLS.path).groupby(["entry", "set", "at"]).accuracy.mean(), [], []
    ours = cells[(cells.entry == RECOMMENDED) & (cells.neighbours == "add_remove")]
    for name in (name for name in KINDS if ("svm", name) in curves.index):
        data, (train, _) = load(name), load(name).splits[0]
        curve, few = learning_curve(curves, cells, name), is_few(name)
        here = ours[(ours["set"] == name) & ours.split.isin(shared_splits(name))].groupby("epsilon").accuracy.mean()
        counts = np.bincount(data.y[train])
        # One that binds at no epsilon of the scan has a share of chance alone, at epsilon 0.
        limit = max((value for value in _SCAN if ceiling(counts, value) < curve.iloc[-1]), default=0.0)
        for epsilon in EPSILONS if here.size else ():
            accuracy, svm, quiet = here[epsilon], curve.iloc[-1], curves["without_noise", name, epsilon]
            numbers = (accuracy, svm, 100.0 * (svm - quiet), 100.0 * (quiet - accuracy), limit)
            rulers.append((name, KINDS[name], epsilon, train.size, round(rows_worth(accuracy, curve)), *numbers))
        shape = (train.size - PUBLIC, data.X.shape[1], int((~data.indicators).sum()))
        for epsilon in FEW_EPSILONS if few else ():
            recipe, _ = choose_recipe(*shape, Budget(epsilon=epsilon, delta=DELTA, neighbours="add_remove"))
            alone = curves["alone", name, epsilon]
            for entry in ("public_rows", "typical"):
                if (entry, name, epsilon) in curves:
                    known = curves[entry, name, epsilon]
                    worth = [round(rows_worth(accuracy, curve)) for accuracy in (alone, known)]
                    centre, gain = recipe.mean_share > 0.0, 100.0 * (known - alone)
                    gains.append((entry, name, KINDS[name], epsilon, shape[0], centre, alone, gain, *worth))
    return rulers, gains


def main() -> None:
    """Run missing cells, and write the rulers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(KINDS), choices=list(KINDS))
    CELLS.measure(list_cells(parser.parse_args().sets))
    columns = ["entry", "set", "neighbours", "epsilon", "split", *SCORES]
    cells = pd.concat([read(), pd.read_csv(TABLES / "judge.csv")], ignore_index=True)[columns]
    for fields, rows, table in zip((_FIELDS, _GAINS), compare(cells), ("rulers", "public_rows"), strict=True):
        shown = pd.DataFrame(rows, columns=fields).round(_DIGITS)
        write_text(TABLES / f"{table}.csv", shown.to_csv(index=False))


if __name__ == "__main__":
    main()
