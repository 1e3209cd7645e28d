"""Share of rows that condensing leaves, its leaks about the original rows, and its cost; nothing random enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.families.condensed.condensation import condense_rows
from privsvm.privacy.attacks.condensation_attacks import audit_condensation
from reproduce.ci_svm.experiments import SETTINGS, kinds_of
from reproduce.ci_svm.runs import deal_folds, read
from reproduce.engine.context import Context
from reproduce.engine.draws import Draws


def size_ratio(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Condense the rows of each dataset: condensed rows for each row, averaged over the datasets."""
    ratios = []
    for dataset, source in parameters["datasets"].items():
        X, codes, n_classes = read({**parameters, "dataset": dataset, "source": source}, context)
        ratios.append(condense_rows("ci", X, codes, n_classes).rows.shape[0] / X.shape[0])
    return {"all/CI-SVM//size ratio": [float(np.mean(ratios))]}


def attack(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Condense four fifths of the rows and attack the condensed ones.

    Parameters: ``dataset, source, most_rows, seed``. Result: ``claim/privacy/<what>`` to one number; see
    `privsvm.privacy.attacks.condensation_attacks.audit_condensation`.
    """
    X, codes, n_classes = read(parameters, context)
    stream = context.stream(parameters["seed"], parameters["dataset"], "attack")
    test = deal_folds(codes, stream) == 0
    rows = X[~test]
    condensed = condense_rows("ci", rows, codes[~test], n_classes)
    assert condensed.groups is not None
    group_of = np.empty(rows.shape[0], dtype=np.int64)
    for group, members in enumerate(condensed.groups):
        group_of[members[members >= 0]] = group
    result = audit_condensation(rows, condensed.rows, group_of, X[test], stream)
    originals = {row.tobytes() for row in rows + 0.0}
    coincident = np.mean([row.tobytes() in originals for row in np.asarray(condensed.rows) + 0.0])
    names = ("third_member_error", "linkage_rate", "guessing_rate", "membership_auc", "certain_members", "nearest_row")
    return {f"claim/privacy/{name}": [float(result[name])] for name in names} | {
        "claim/coincident/share of condensed rows": [float(coincident)]
    }


def growth(parameters: Mapping[str, Any], context: Context, piece: int) -> dict[str, list[float]]:
    """Condense random rows by the printed steps, and count the similarities that their searches look at.

    Parameters: ``sizes`` (numbers of rows), ``seed``. Result: ``claim/growth/<size> rows/similarities`` to one number.
    """
    result = {}
    for size in parameters["sizes"]:
        rows = context.stream(parameters["seed"], "growth", size).random((size, 5))
        unit_rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        similarity, left, looked_at = np.tril(unit_rows @ unit_rows.T, -1), np.arange(size), 0
        # Step 3 searches the lower triangle of the rows that are left for a pair, then their columns for the third row.
        while left.size > 2:
            rest = similarity[np.ix_(left, left)]
            first, second = np.unravel_index(np.argmax(rest), rest.shape)
            looked_at += left.size * (left.size - 1) // 2
            means = rest[first] + rest[:, first] + rest[second] + rest[:, second]
            means[[first, second]] = -np.inf
            looked_at += 2 * (left.size - 2)
            left = np.delete(left, [first, second, np.argmax(means)])
        result[f"claim/growth/{size} rows/similarities"] = [float(looked_at)]
    return result


def unit(cell: str) -> float:
    """Return the unit of the printed ratio, of a count, or of the share that condensing leaves."""
    if cell.endswith("similarities"):
        return 1.0
    return 1e-17 if cell.endswith("error") else 0.01 if cell.endswith("size ratio") else 1e-4


_SHARED = SETTINGS["shared"]
_READ = {key: _SHARED[key] for key in ("most_rows", "seed")}
DRAWS = [
    Draws(
        experiment="ci_svm_exact", name="size ratio", dataset="all", run=f"{__name__}:size_ratio", unit=unit,
        cells=("all/CI-SVM//size ratio",),
        parameters={
            **_READ,
            "datasets": {
                name: source for sets in kinds_of(_SHARED).values() for name, source in sets.items()
            },
        },
    ),
    Draws(
        experiment="ci_svm_exact", name="attack", dataset="heart", run=f"{__name__}:attack", unit=unit,
        cells=("claim/privacy/", "claim/coincident/"),
        parameters={**_READ, "dataset": "heart", "source": _SHARED["two_class"]["heart"]},
    ),
    Draws(
        experiment="ci_svm_exact", name="growth", dataset="random rows", run=f"{__name__}:growth", unit=unit,
        cells=("claim/growth/",), parameters={"sizes": [300, 600, 1200], "seed": _SHARED["seed"]},
    ),
]  # fmt: skip
