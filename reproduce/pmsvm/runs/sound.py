"""The library's methods, with their proofs, on the datasets of pmsvm-2025."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from privsvm.data.catalogue import resolve
from privsvm.errors import PrivSVMError
from privsvm.numerics.rows import row_norms
from privsvm.pipeline.methods import estimator_class
from privsvm.reproduction.context import Context, MissingError
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
        raise MissingError("not available", f"{name} is not in this version") from None


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Run a method of the library, with its proof, on every split."""
    make = _estimator(parameters["estimator"])
    rows = context.class_rows(*parameters["source"])
    X = public_scaling(rows.X, parameters["source"][0], parameters["scaling"])
    accepted = inspect.signature(make).parameters

    def compute(split: int, repeats: int) -> dict[str, Any]:
        train, test, y_train, y_test = split_rows(X, rows.codes, parameters["test_size"], split)
        # The class set and the number of training rows are public.
        known = {"delta": parameters["delta"], "neighbours": parameters["neighbours"], "n_rows": len(y_train)}
        model = make(
            classes=list(range(len(rows.labels))),
            **{key: value for key, value in known.items() if key in accepted},
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
        accuracies, proved = [], []
        for index, guarantee in enumerate(path.guarantees):
            answers = path.codes(path.scores(test, index))
            accuracies.append(np.mean(answers == y_test, axis=1).tolist())
            proved.append([guarantee.status, guarantee.neighbours, guarantee.epsilon_proved, guarantee.delta])
        return {"accuracies": accuracies, "proved": proved}

    common = without(parameters, "splits", "repeats", "paper_split", "paper_runs")

    def part(split: int, repeats: int) -> dict[str, Any]:
        return context.part({**common, "split": split, "repeats": repeats}, functools.partial(compute, split, repeats))

    found = [part(split, parameters["repeats"]) for split in parameters["splits"]]
    return {
        # One list of splits times repeats for each epsilon.
        "accuracies": [
            [value for own in found for value in own["accuracies"][index]]
            for index in range(len(parameters["epsilons"]))
        ],
        # The paper's own split, where only the noise varies.
        "paper split": part(parameters["paper_split"], parameters["paper_runs"])["accuracies"],
        "proved": found[0]["proved"],
    }
