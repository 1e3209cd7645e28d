"""Measure our methods on small sets with more than one draw of noise: ``python bench/utility/draws.py``.

On small sets the median over splits varies by points from draw to draw, and the best of several methods in hindsight is
also the luckiest. Small sets are therefore trained with further draws, for all methods alike.
``reports/utility/draws.csv`` has a row for each method, set, epsilon and further draw, under replace_one; rows with the
digest of the present sources are not run again.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from resumed import append, keep
from run_ours import EPSILONS, METHODS, TABLES, columns
from sets import OLDER, SPLITS, UtilitySet, load
from verdicts import MOST_FEATURES, MOST_ROWS

TABLE = TABLES / "draws.csv"
FIELDS = ("method", "set", "epsilon", "draw", "median", "seconds", "sources")
_FURTHER = 4


def small_sets() -> list[str]:
    """Name the sets on which training is fast."""
    return [name for name in OLDER if len(load(name).y) <= MOST_ROWS and load(name).X.shape[1] <= MOST_FEATURES]


def accuracy(method: str, data: UtilitySet, epsilon: float, draw: int) -> float:
    """Compute the median accuracy over the splits; draw 0 is that of ``run_ours.py``."""
    accuracies = []
    for split, (train, test) in enumerate(data.splits):
        estimator, X = METHODS[method](
            data, epsilon=epsilon, classes=list(range(data.n_classes)), neighbours="replace_one",
            random_state=SPLITS * draw + split,
        )  # fmt: skip
        estimator.fit(X[train], data.y[train])
        predicted = columns(estimator.decision_function(X[test])).argmax(axis=1)
        accuracies.append(float(np.mean(predicted == data.y[test])))
    return float(np.median(accuracies))


def main() -> None:
    """Run missing cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", choices=list(OLDER))
    arguments = parser.parse_args()
    # Skip variants of the recommended estimator, which are not compared with it.
    present = {name: method.sources for name, method in METHODS.items() if not name.startswith("recommended_")}
    kept = keep(TABLE, FIELDS, lambda row: present.get(row["method"]) == row["sources"])
    done = {(row["method"], row["set"], row["epsilon"], row["draw"]) for row in kept}
    for name in arguments.sets or small_sets():
        for draw in range(1, 1 + _FURTHER):
            for method, sources in present.items():
                for epsilon in EPSILONS:
                    key = (method, name, f"{epsilon:g}", str(draw))
                    if key in done:
                        continue
                    start = time.process_time()
                    value = accuracy(method, load(name), epsilon, draw)
                    seconds = time.process_time() - start
                    append(TABLE, [*key, f"{value:.5f}", f"{seconds:.3f}", sources])


if __name__ == "__main__":
    main()
