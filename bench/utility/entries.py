"""Entries of the leaderboard with their settings and names, epsilons, and where its tables are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / "reports" / "utility"
DELTA = 1e-5
RECOMMENDED, NEXT_BEST = "recommended", "dp_feature_covariance"
# The recommended method with other settings, which has no place in the rankings: one that pays for a noisy number of
# rows, one with equal classes, and one without random features.
COUNTED, BALANCED, LINEAR = "recommended_counted", "recommended_balanced", "recommended_linear"
VARIANTS: dict[str, dict[str, Any]] = {
    COUNTED: {"n_rows": None},
    BALANCED: {"class_weight": "balanced"},
    LINEAR: {"features": "linear"},
}
# Entries of the library, with settings that are the same for all sets.
ENTRIES: dict[str, dict[str, Any]] = {
    RECOMMENDED: {},
    "dp_naive_bayes": {},
    "dp_tr_newton": {},
    NEXT_BEST: {},
    "dp_least_squares": {},
    "adassp": {},
    "dp_lda": {},
    "dp_newton": {},
    "pmsvm_gp": {"scaling": "centre"},
    "objective_perturbation": {"C": 0.05},
    **VARIANTS,
}
# Without privacy; their epsilon is infinite.
REFERENCES = ("majority", "svm", "boosting")
# Names for readers, of entries of other libraries.
TITLES = {
    "diffprivlib_lr": "diffprivlib, logistic",
    "diffprivlib_forest": "diffprivlib, forest",
    "dp_ebm": "DP-EBM",
    "dp_ebm_nominal": "DP-EBM, nominal columns",
    "opacus_linear": "Opacus, linear",
    "opacus_hidden_layer": "Opacus, hidden layer",
    "mst_svm": "MST + SVM",
    "aim_boosting": "AIM + boosting",
}
# Package and first words of the cases in reports/audit_peers.csv that are about an entry.
AUDITED = {"diffprivlib_forest": ("diffprivlib", "random forest")}
# Epsilons on all sets, by relation of neighbours.
EPSILONS = {"add_remove": (0.5, 1.0, 4.0), "replace_one": (1.0,)}
RANKED = [(relation, epsilon) for relation, epsilons in EPSILONS.items() for epsilon in epsilons]
# Further epsilons on the older sets, by entry and relation.
CURVE = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
CURVES = {
    RECOMMENDED: dict.fromkeys(EPSILONS, CURVE),
    NEXT_BEST: {"replace_one": CURVE},
    BALANCED: {"replace_one": CURVE},
    LINEAR: {"replace_one": (1.0,)},
}
# These are on the older sets alone, with one draw of noise in a split: `privsvm plan` shows ranges of single releases.
OLDER_ALONE = (BALANCED, LINEAR)


def title(entry: str) -> str:
    """Return the name of an entry for readers."""
    return TITLES.get(entry, entry)


def refutations(entry: str, relations: Iterable[str]) -> list[dict[str, Any]]:
    """List the audits of other libraries that refute the epsilon of an entry under its relations."""
    package, case = AUDITED.get(entry, ("", ""))
    audits = pd.read_csv(ROOT / "reports" / "audit_peers.csv")
    about = (audits.package == package) & audits.case.str.startswith(case) & audits.relation.isin(list(relations))
    return audits[about & audits.refuted].to_dict("records")


def status(entry: str, relations: Iterable[str]) -> str:
    """Return "proved" for an entry of the library; otherwise "claimed", or "refuted" by an audit."""
    if entry in ENTRIES:
        return "proved"
    return "**refuted**" if refutations(entry, relations) else "claimed"
