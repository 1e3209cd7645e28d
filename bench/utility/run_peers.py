"""Run the peers of the utility table: ``python bench/utility/run_peers.py``.

Every peer has its own environment, built from its lock on first use. A cell is a peer, a set, an epsilon and a split;
cells in ``reports/utility/peers.csv`` are not run again, so that a run may be stopped and resumed. A fit is limited to
ten minutes and 8 GB.
"""

from __future__ import annotations

import argparse
import collections
import csv
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from entries import DELTA, EPSILONS, TABLES
from scores import SCORES, score_row
from sets import LARGE_SPLITS, SETS, SPLITS, UtilitySet, list_splits, load

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from peer_environments import LineWorker, peer_python, peer_version, single_threaded

from privsvm_bench.evidence import Sources

HERE = Path(__file__).resolve().parent
TABLE = TABLES / "peers.csv"
_MINUTES = 10

# Environment of each peer, its function in peers/, and the neighbour relation of its epsilon.
PEERS = {
    "diffprivlib_lr": ("diffprivlib", "on_diffprivlib.logistic_regression", "replace_one"),
    "diffprivlib_forest": ("diffprivlib", "on_diffprivlib.forest", "add_remove"),
    "dp_ebm": ("interpret", "on_interpret.ebm", "add_remove"),
    "dp_ebm_nominal": ("interpret", "on_interpret.nominal_ebm", "add_remove"),
    "opacus_linear": ("opacus", "on_opacus.linear", "add_remove"),
    "opacus_hidden_layer": ("opacus", "on_opacus.hidden_layer", "add_remove"),
    "mst_svm": ("mbi", "on_mbi.mst_svm", "add_remove"),
    "aim_boosting": ("mbi", "on_aim.aim_boosting", "add_remove"),
}
TWO_CLASSES = {"dp_ebm", "dp_ebm_nominal"}
# A fit takes seconds to minutes: few splits of all sets.
SLOW = {"mst_svm", "aim_boosting"}
_FIELDS = ("peer", "set", "epsilon", "delta", "neighbours", "split", "status", *SCORES)
_PACKAGES = {"diffprivlib": "diffprivlib", "interpret": "interpret-core", "opacus": "opacus", "mbi": "mbi"}


def peer_code(peer: str) -> str:
    """Return the version of a peer's library."""
    environment = PEERS[peer][0]
    return f"{_PACKAGES[environment]} {peer_version(peer_python(environment), _PACKAGES[environment])}"


def start_worker(peer: str) -> LineWorker:
    """Return a process in a peer's environment that fits cells in turn."""
    command = [peer_python(PEERS[peer][0]), HERE / "peers" / "fit.py"]
    return LineWorker(command, single_threaded("PYTHONPATH"), quiet=True)


def fit(
    worker: LineWorker, peer: str, data: UtilitySet, epsilon: float, split: int
) -> tuple[dict[str, object], float | None]:
    """Fit one cell; return a row of the table, and processor seconds."""
    name, _, neighbours = PEERS[peer]
    delta = 0.0 if name == "diffprivlib" else DELTA
    row: dict[str, object] = {"peer": peer, "set": data.name, "epsilon": epsilon, "delta": delta}
    row |= {"neighbours": neighbours, "split": split}
    if peer in TWO_CLASSES and data.n_classes > 2:
        return row | {"status": "not offered"}, None
    train, test = data.splits[split]
    X = data.unit_features()
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "split.npz", Path(folder) / "answer.npz"
        rows = {"X_train": X[train], "X_test": X[test], "y_train": data.y[train]}
        coded = data.code_columns()
        numbers = np.clip((coded.X - coded.lower) / np.maximum(coded.upper - coded.lower, 1e-300), 0.0, 1.0)
        table = np.where(coded.levels > 0, coded.X, numbers)
        rows |= {"coded_train": table[train], "coded_test": table[test], "levels": coded.levels}
        np.savez(given, n_classes=data.n_classes, indicators=data.indicators, **rows)
        task = {"function": PEERS[peer][1], "split": str(given), "answer": str(answer)}
        done = worker.run_task(task | {"epsilon": epsilon, "delta": DELTA, "seed": split}, _MINUTES)
        if not done or done["error"]:
            print(done["error"][:200] if done else "", file=sys.stderr)
            return row | {"status": "failed" if done else "did not finish"}, None
        with np.load(answer) as arrays:
            scores, seconds = arrays["scores"], float(arrays["seconds"])
    return row | {"status": "ok"} | score_row(data.y[test], scores), seconds


def main() -> None:
    """Run missing cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--splits", nargs="*", type=int, default=list(range(SPLITS)), choices=range(SPLITS))
    arguments = parser.parse_args()
    done = set(pd.read_csv(TABLE)[["peer", "set", "epsilon", "split"]].itertuples(index=False, name=None))
    sources, times = Sources(TABLE.parent), collections.defaultdict(list)
    for split in arguments.splits:
        for peer in arguments.peers:
            worker = start_worker(peer)
            for name, epsilon in itertools.product(arguments.sets, EPSILONS["add_remove"]):
                splits = range(LARGE_SPLITS) if peer in SLOW else list_splits(name)
                if split not in splits or (peer, name, epsilon, split) in done:
                    continue
                row, seconds = fit(worker, peer, load(name), epsilon, split)
                with TABLE.open("a", newline="") as file:
                    csv.DictWriter(file, _FIELDS, lineterminator="\n").writerow(row)
                if seconds is not None:
                    times[peer, name].append(seconds)
                    median = round(statistics.median(times[peer, name]), 2)
                    sources.measure("peers", peer, peer_code(peer), name, median)
            worker.end()


if __name__ == "__main__":
    main()
