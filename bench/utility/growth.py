"""Measure releases of a table that grows: ``python bench/utility/growth.py``.

Each *choose* set of `ROWS` rows with at most `MOST_COLUMNS` columns grows from 70 to 100 % of its training rows in four
releases at one epsilon each. The fourth, averaged with the three before, is compared with one from nothing.
``reports/utility/growth.csv`` has the accuracy of both in per cent, and the gain in points with its standard error over
splits and draws of noise. Sets that this code measured are skipped.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from typing import Any

import numpy as np
import pandas as pd
from entries import DELTA, TABLES
from sets import CHOOSE, load

from privsvm import PrivateLinearClassifier, save
from privsvm.files import write_text
from privsvm_bench.evidence import Sources
from privsvm_bench.workflow.sources import closure_digest

ROWS, MOST_COLUMNS, DRAWS = (700, 2000), 300, 3
SHARES = (0.7, 0.8, 0.9, 1.0)
EPSILONS, NEIGHBOURS = (0.25, 0.5, 1.0), ("add_remove", "replace_one")
_FIELDS = ("set", "neighbours", "epsilon", "alone", "averaged", "gain", "error", "runs")


def accuracies(data: Any, split: int, seed: int, epsilon: float, neighbours: str) -> tuple[float, float]:
    """Accuracy of the last release from nothing, and of the average of all, in per cent."""
    train, test = data.splits[split]
    order = np.random.default_rng(split).permutation(train)

    def fit(rows: np.ndarray, number: int, after: str | None) -> PrivateLinearClassifier:
        model = PrivateLinearClassifier(
            epsilon=epsilon, delta=DELTA, neighbours=neighbours, classes=list(range(data.n_classes)), after=after,
            bounds=(data.lower, data.upper), indicators=np.flatnonzero(data.indicators).tolist(), n_rows=len(rows),
            random_state=1000 * split + 10 * seed + number,
        )  # fmt: skip
        return model.fit(data.X[rows], data.y[rows])

    with tempfile.TemporaryDirectory() as folder:
        after = None
        for number, share in enumerate(SHARES):
            averaged = fit(order[: round(share * len(order))], number, after)
            after = f"{folder}/{number}"
            save(averaged, after)
    alone = fit(order, len(SHARES), None)
    scores = [100.0 * float(np.mean(model.predict(data.X[test]) == data.y[test])) for model in (alone, averaged)]
    return scores[0], scores[1]


def measure(name: str) -> list[dict[str, Any]]:
    """Measure all cells of a set."""
    data, rows = load(name), []
    for neighbours, epsilon in itertools.product(NEIGHBOURS, EPSILONS):
        runs = itertools.product(range(len(data.splits)), range(DRAWS))
        pairs = np.array([accuracies(data, split, seed, epsilon, neighbours) for split, seed in runs])
        gains = pairs[:, 1] - pairs[:, 0]
        values = (*pairs.mean(axis=0), gains.mean(), gains.std(ddof=1) / math.sqrt(len(gains)))
        texts = (f"{value:.2f}" for value in values)
        rows.append(dict(zip(_FIELDS, (name, neighbours, epsilon, *texts, len(gains)), strict=True)))
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure the sets that this code has not measured."""
    path, sources, code = TABLES / "growth.csv", Sources(TABLES), closure_digest("privsvm.methods.recommended")[:12]
    for name in CHOOSE:
        data = load(name)
        if not (ROWS[0] <= len(data.y) <= ROWS[1] and data.X.shape[1] <= MOST_COLUMNS):
            continue
        if sources.is_current("growth", "recommended", code, name):
            continue
        others = pd.read_csv(path, dtype=str)
        rows = pd.concat([others[others["set"] != name], pd.DataFrame(measure(name)).astype(str)])
        write_text(path, rows.to_csv(index=False))
        sources.measure("growth", "recommended", code, name)


if __name__ == "__main__":
    main()
