"""The library's methods, with their proofs, on the datasets of pmsvm-2025."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.errors import PrivSVMError
from privsvm.numerics.rows.rows import row_norms
from privsvm.privacy.gate import restore
from privsvm.privacy.statement import DROPPED
from privsvm.registry import estimator_class
from privsvm_bench.datasets.catalogue import resolve
from reproduce.engine.context import Context, MissingError
from reproduce.pmsvm.runs.shared import scaled, split_rows, without


def public_scaling(X, dataset: str, scaling: Sequence[str]):
    """Scale rows without looking at other rows; sparse rows stay sparse unless zero is moved.

    ``bounds``: features from the catalogue's public bounds to [-1, 1], values beyond them cut. ``unit_rows``: rows to
    norm 1.
    """
    for step in scaling:
        if step == "bounds":
            bounds = resolve(dataset).bounds
            if bounds is None:
                raise ValueError(f"dataset {dataset}: the catalogue has no public bounds")
            low, high = np.asarray(bounds.lower, dtype=float), np.asarray(bounds.upper, dtype=float)
            X = np.clip(2.0 * (scaled(X, "none") - low) / (high - low) - 1.0, -1.0, 1.0)
        elif step == "unit_rows":
            factors = 1.0 / np.maximum(row_norms(X), 1e-12)
            X = (scipy.sparse.diags_array(factors) @ X).tocsr() if scipy.sparse.issparse(X) else X * factors[:, None]
        else:
            raise ValueError(f"scaling {step!r}: must be bounds or unit_rows")
    return X


def _estimator(name: str) -> Callable[..., Any]:
    """Find the class of a method by its file, as params.yaml names it."""
    try:
        return estimator_class(name)
    except PrivSVMError:
        raise MissingError(f"{name} is not in this version") from None


def data_facts(source: Sequence[str], scaling: Sequence[str], test_size: float) -> dict[str, Any]:
    """State the origin of a dataset's training rows, as fields of `privsvm.privacy.statement.Facts`.

    `source` is its name in the catalogue and parts, and `scaling` has steps of `public_scaling`. `test_size` is the
    share of rows drawn for the test, by their number alone.
    """
    entry = resolve(source[0])
    data_parts = [entry.parts[role] for role in source[1:]]
    counts = [data_part.n_rows for data_part in data_parts if data_part.n_rows is not None]
    total = sum(counts) if len(counts) == len(data_parts) and entry.missing != "drop_rows" else None
    counted = any(data_part.format == "libsvm" and data_part.n_features is None for data_part in data_parts)
    facts = {
        "preparation": "prescaled" if entry.prescaled else DROPPED.get(entry.missing, "untouched"),
        "condensing": "none",
        "split": "label-blind",
        "scaling": "declared" if "bounds" in scaling else "none",
        "bounds": entry.bounds_origin if "bounds" in scaling else "none",
        "n_features": "private rows" if counted else "declared",
        "declared_rows": None if total is None else total - math.ceil(test_size * total),
    }
    return facts if entry.classes else {**facts, "classes": "private labels"}


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Run a method of the library on every split, and pass its guarantees through the gate."""
    make = _estimator(parameters["estimator"])
    rows = context.class_rows(*parameters["source"])
    X = public_scaling(rows.X, parameters["source"][0], parameters["scaling"])
    accepted = inspect.signature(make).parameters
    facts = data_facts(parameters["source"], parameters["scaling"], parameters["test_size"])

    def compute(split: int, repeats: int) -> dict[str, Any]:
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], split)
        n_rows, stated = facts["declared_rows"], facts
        if n_rows is None:
            n_rows = len(y_train)
            stated = facts | ({"n_rows": "counted"} if "n_rows" in accepted else {})
        arguments = {"delta": parameters["delta"], "neighbours": parameters["neighbours"], "n_rows": n_rows}
        model = make(
            classes=list(range(len(rows.labels))),
            **{key: value for key, value in arguments.items() if key in accepted},
            **parameters["settings"],
        )
        path = model.release_path(
            train,
            y_train,
            parameters["epsilons"],
            repeats,
            lambda epsilon, repeat: context.stream(
                parameters["seed"], parameters["dataset"], parameters["method"], split, epsilon, repeat
            ),
        )
        accuracies: list[list[float]] = []
        records: list[dict[str, Any]] = []
        for index, guarantee in enumerate(path.guarantees):
            answers = path.codes(path.scores(test, index))
            accuracies.append(np.mean(answers == y_test, axis=1).tolist())
            judged = restore(guarantee, **stated)
            epsilons = ("epsilon_proved", "epsilon_with_system_noise")
            names = ("status", "randomness", "reason", "neighbours", *epsilons, "delta")
            records.append({name: getattr(judged, name) for name in names})
        return {"accuracies": accuracies, "records": records}

    common = without(parameters, "splits", "repeats", "paper_split", "paper_runs")

    def part(split: int, repeats: int) -> dict[str, Any]:
        return context.part({**common, "split": split, "repeats": repeats}, functools.partial(compute, split, repeats))

    result = [part(split, parameters["repeats"]) for split in parameters["splits"]]
    return {
        # One list of splits times repeats for each epsilon.
        "accuracies": [
            [value for split in result for value in split["accuracies"][index]]
            for index in range(len(parameters["epsilons"]))
        ],
        # The paper's own split, where only the noise varies.
        "paper split": part(parameters["paper_split"], parameters["paper_runs"])["accuracies"],
        "records": result[0]["records"],
    }
