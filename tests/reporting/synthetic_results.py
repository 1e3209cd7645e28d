"""Synthetic records that follow the contract of docs/files.md, as JSON holds them."""

import json
import math
from typing import Any

import numpy as np
from tests.guarantees import proved_fields

from privsvm.privacy.statement import theorem_holds
from privsvm_bench.metrics import METRICS
from privsvm_bench.records import (
    Attack,
    AuditBound,
    AuditCell,
    AuditRecord,
    CondensedRowsAttack,
    KnownSampleAttack,
    Prepared,
    Result,
    parse,
)

GRID = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
METHODS = {
    "svm": "none", "majority": "none", "pmsvm_wp": "proved", "objective_perturbation": "proved", "pmsvm_gp": "seeded",
    "pmsvm_wp_as_published": "claimed", "dpwss": "claimed", "dpsvmdvp": "claimed",
}  # fmt: skip
# Claims that their witness refutes.
WORTHS = {"pmsvm_wp_as_published": "refuted", "dpwss": "refuted"}
REASONS = {
    "pmsvm_wp_as_published": "rows are not clipped to the norm that the sensitivity assumes, so the noise is too small",
    "dpwss": "the first index is chosen without noise and epsilon is spent every iteration without composition",
    "dpsvmdvp": "the support vectors are training rows released in the clear",
}


def make_guarantee(method: str, status: str, epsilon: float | str, **changes: Any) -> dict[str, Any]:
    """One guarantee record."""
    private = status != "none"
    guarantee: dict[str, Any] = {
        "status": status,
        "mechanism": "output perturbation, analytic Gaussian" if private else "none",
        "neighbours": "replace_one" if private else None,
        "epsilon_requested": epsilon,
        "epsilon_proved": "inf",
        "epsilon_with_system_noise": "inf",
        "delta": 1e-5 if private else None,
        "sensitivity": 0.0283 if private else None,
        "noise_scale": 0.1 / epsilon if isinstance(epsilon, float) else None,
        "accountant": "analytic Gaussian" if private else None,
        "event": None,
        "randomness": "system" if private else None,
        "facts": None,
        "assumptions": ["every row has norm at most 1 (clipped)", "the class set is public"] if private else [],
        "reason": REASONS.get(method, "no noise is added") if status == "claimed" else None,
        "reference": "Example et al. 2025, https://doi.org/10.0000/example",
        "witness": None,
    }
    if method == "pmsvm_wp_as_published" and isinstance(epsilon, float):
        guarantee["witness"] = {
            "epsilon": 4.3 * epsilon**0.9, "neighbours": "replace_one",
            "description": "one row of norm 3.7 replaced by its negative", "confidence": None,
        }  # fmt: skip
    if method == "dpwss":
        guarantee["witness"] = {
            "epsilon": "inf", "neighbours": "replace_one", "description": "outputs on the two data sets never overlap",
            "confidence": None,
        }  # fmt: skip
    if theorem_holds(status) and isinstance(epsilon, float):
        noise = "system" if status == "proved" else "seeded"
        guarantee |= proved_fields(epsilon, changes.get("delta", 1e-5), noise)
    return guarantee | changes


def make_result(
    dataset: str, method: str, status: str, epsilons: tuple[Any, ...] = GRID, n_splits: int = 5, **changes: Any
) -> dict[str, Any]:
    """One results record with plausible curves."""
    if status == "none":
        epsilons = ("inf",)
    # Unlike `hash`, the same in every process.
    stream = np.random.default_rng(int.from_bytes((dataset + method).encode()[-8:], "little"))
    level = 0.62 if method == "majority" else 0.97
    steep = stream.uniform(0.5, 2.0)
    summary: dict[str, Any] = {}
    for name in METRICS:
        mean = []
        for epsilon in epsilons:
            kept = 1.0 if epsilon == "inf" else float(1 / (1 + (0.5 * steep / epsilon) ** 1.2))
            if status == "claimed":
                kept = kept**0.2
            mean.append(0.45 + (level - 0.45) * kept)
        spread = [0.05 * (level - value) + 0.006 for value in mean]
        summary[name] = {
            "mean": mean,
            "sd": spread,
            "low": [value - 2 * sd for value, sd in zip(mean, spread, strict=True)],
            "high": [min(1.0, value + 1.8 * sd) for value, sd in zip(mean, spread, strict=True)],
        }
    record = {
        "experiment": "default", "method": method, "implementation": "privsvm", "dataset": dataset,
        "parameters": {"C": 1.0, "kernel": "linear"}, "protocol": {"kind": "holdout"}, "condense": "none",
        "status": status, "delta": None if status == "none" else 1e-5,
        "neighbours": None if status == "none" else "replace_one", "epsilons": list(epsilons),
        "repeats": 1 if status == "none" else 10, "n_splits": n_splits,
        "guarantees": [make_guarantee(method, status, epsilon) for epsilon in epsilons], "metrics": {},
        "summary": summary, "objective": [None] * n_splits, "n_support": [None] * n_splits, "n_iter": [None] * n_splits,
        "predictions_sha256": "0" * 64, "dataset_digest": "1" * 64, "n_train": 398, "n_test": 171, "n_features": 30,
        "n_classes": 2, "attacks": [],
    }  # fmt: skip
    return record | changes


def make_attack(dataset: str, method: str, errors: tuple[float | None, ...] = (2e-14, 3e-13)) -> dict[str, Any]:
    """One record of the known-sample attack; None where it is not possible."""
    return {
        "method": method,
        "dataset": dataset,
        "attack": "known_sample",
        "kernel": "linear",
        "gamma": 0.1,
        "mbar": 46,
        "n_rows": 455,
        "entities": [
            {
                "entity": f"entity-{number + 1}",
                "features": 6 + number,
                "rows_needed": 6 + number,
                "possible": error is not None,
                "error_at_rows_needed": error,
                "recovered_at": None if error is None else 7 + number,
                "unreadable_rows": 0,
                "curve": {
                    "known": [1, 5, 6 + number, 40],
                    "max_error": [4.0, 2.5, 1.0 if error is None else error, 1.0 if error is None else 0.0],
                    "rms_error": [1.0, 0.5, 0.4, 0.3],
                    "recovered_share": [0.0, 0.0, 0.0 if error is None else 1.0, 0.0 if error is None else 1.0],
                },
                "membership": {"true_column_residual": 1e-15, "random_residual": 0.97},
            }
            for number, error in enumerate(errors)
        ],
    }


def make_condensed_attack(
    dataset: str, method: str | None, kind: str = "ci", twice: bool = False, **changes: Any
) -> dict[str, Any]:
    """One record of attacks on condensed rows, of three splits; changes are to the last of them."""
    means = kind == "ci"
    splits = [
        {
            "n_rows": 142,
            "n_condensed": 48,
            "size_ratio": 48 / 142,
            "label_purity": 0.95 + 0.01 * split,
            "lost_classes": 0,
            "groups_of_three": 47 if means else None,
            "third_member_error": (split + 1) * 1e-15 if means else None,
            "linkage_rate": 0.90 + 0.01 * split if means else None,
            "guessing_rate": 1 / 48 if means else None,
            "membership_auc": None if twice else (0.76 if means else 0.64) + 0.02 * split,
            "certain_members": None if twice else (0.04 if means else 0.34) + 0.02 * split,
            "nearest_row": (0.61 if means else 0.02) + 0.01 * split,
            "linked_rows": 142,
            "other_rows": 0 if twice else 36,
        }
        for split in range(3)
    ]
    splits[-1] |= changes
    return {"method": method, "dataset": dataset, "attack": "condensed_rows", "condense": kind, "splits": splits}


def make_condensed_result(dataset: str, method: str, status: str, kind: str = "ci") -> dict[str, Any]:
    """One results record of a method that was trained on condensed rows: nothing is proved."""
    weakest = "claimed" if theorem_holds(status) else status
    reason = f"the rows were condensed ({kind}), which has no bounded sensitivity" if weakest == "claimed" else None
    # No audit runs on condensed rows, and a method's flaws on training rows do not concern them.
    return change_guarantees(make_result(dataset, method, weakest, condense=kind), witness=None, reason=reason)


def change_guarantees(record: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Change every guarantee of a results record."""
    return record | {"guarantees": [guarantee | changes for guarantee in record["guarantees"]]}


def make_audit_cell(status: str, epsilon: float, low: float, **changes: Any) -> AuditCell:
    """One cell of an audit, with two lower bounds."""
    bounds = (
        AuditBound(kind="counts", sure=0.0, epsilon=low / 2, estimate=low, ceiling=0.6 * epsilon),
        AuditBound(kind="gaussian", sure=low * 0.8, epsilon=low, estimate=math.inf, ceiling=0.9 * epsilon),
    )
    fields: dict[str, Any] = {
        "relation": "replace_one", "epsilon": epsilon, "delta": 1e-5, "status": status, "event": "gaussian",
        "epsilon_proved": math.inf, "epsilon_with_system_noise": epsilon if status == "seeded" else math.inf,
        "pair": "a row <b> and none", "draws": 2000, "bounds": bounds, "refuted": False,
    }  # fmt: skip
    return AuditCell(**{**fields, **changes})


def make_audit(method: str, *cells: AuditCell, **changes: Any) -> AuditRecord:
    """The record of an audit."""
    return AuditRecord(**{"method": method, "implementation": method, "parameters": {}, "cells": cells, **changes})


def make_prepared(dataset: str, origin: str = "declared", **changes: Any) -> dict[str, Any]:
    """The record of one prepared dataset."""
    record = {
        "dataset": dataset, "n_rows": 569, "n_features": 30, "n_features_origin": "declared", "indicators": [],
        "n_splits": 5, "sparse": False, "classes": ["benign", "malignant"], "classes_origin": origin,
        "declared_training_rows": None, "prescaled": False, "prescaled_origin": "catalogue", "parts": ["all"],
        "scaling": {"kind": "bounds", "origin": "training rows" if origin == "data" else "declared"},
        "missing": {"rule": "none", "rows_dropped": 0, "columns_dropped": []}, "protocol": {"kind": "holdout"},
        "sources": {"breast_cancer.npz": "ab" * 32}, "digest": "cd" * 32,
    }  # fmt: skip
    return record | changes


def results_of(*records: dict[str, Any]) -> list[Result]:
    """Read results records."""
    return [parse(Result, json.dumps(record), "r.json") for record in records]


def whole(dataset: str = "wine") -> list[Result]:
    """Return results of all methods on one dataset."""
    return results_of(*(make_result(dataset, method, status) for method, status in METHODS.items()))


def attack_of(record: dict[str, Any]) -> Attack:
    """Read a record of either attack."""
    form = KnownSampleAttack if record["attack"] == "known_sample" else CondensedRowsAttack
    return parse(form, json.dumps(record), "a.json")


def prepared_of(record: dict[str, Any]) -> Prepared:
    """Read the record of a prepared dataset."""
    return parse(Prepared, json.dumps(record), "p.json")
