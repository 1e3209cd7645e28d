"""Experiments of ppsvm-2007: errors of PPSVM, of each entity alone and of other kernels; the attack.

A partition is one deal of the columns, one random matrix for each entity and one split into ten folds. All entities
standardise with all rows, as in the paper, so that a test row's blocks are its blocks in the published ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from privsvm.families.one_norm.one_norm_training import (
    count_errors,
    count_kernel_rows,
    draw_rows,
    tune_by_design,
    tune_on_a_tenth,
)
from privsvm.families.one_norm.ppsvm_protocol import Entity, combine_blocks, deal_columns
from privsvm.numerics.rows.rows import squared_distances
from privsvm.privacy.attacks.known_sample import recovery_curve
from privsvm.solvers.linear.one_norm_svm import OneNormProblem
from reproduce.engine.context import Context, MissingError

_CS = tuple(10.0**exponent for exponent in range(-7, 8))


class Partition(NamedTuple):
    """Columns of each entity, its secrets, and the fold of each row."""

    columns: list[np.ndarray]
    entities: list[Entity]
    folds: np.ndarray


def read(parameters: Mapping[str, Any], context: Context) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) as in their file, and class codes (n,) 0 and 1.

    Parameters: ``source`` (name, part, positive label); ``missing``: "drop_rows", "mean" or None; ``reading``: None for
    the file's label, or ``{"column", "above", "label_as_feature"}``: the class is whether that column is above the
    number, and the file's label takes its place among the features, or is dropped.
    """
    X, signs = context.rows(*parameters["source"])
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    codes = (signs > 0).astype(np.int64)
    if parameters["missing"] == "drop_rows":
        complete = ~np.isnan(X).any(axis=1)
        X, codes = X[complete], codes[complete]
    elif parameters["missing"] == "mean":
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    elif np.isnan(X).any():
        raise MissingError(f"dataset {parameters['source'][0]}: values are missing, and no rule is set")
    reading = parameters["reading"]
    if reading is not None:
        others = np.delete(X, reading["column"], axis=1)
        labels = codes
        codes = (X[:, reading["column"]] > reading["above"]).astype(np.int64)
        X = np.column_stack([others, labels]) if reading["label_as_feature"] else others
    return X, codes


def _train_on_the_tenth(K: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> float:
    tenth = _tenth(codes, rng)
    if np.unique(codes[tenth]).size < 2:
        return 1.0
    return _CS[int(np.argmin(count_errors(K, codes, 2, _CS, [~tenth])))]


def _cross_validated_in_the_tenth(K: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> float:
    tenth = _tenth(codes, rng)
    folds = rng.permutation(np.arange(tenth.sum()) % 10)
    held_out = [folds == fold for fold in range(folds.max() + 1)]
    return _CS[int(np.argmin(count_errors(K[tenth], codes[tenth], 2, _CS, held_out)))]


def _largest_of_equals(K: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> float:
    results = count_errors(K, codes, 2, _CS, [_tenth(codes, rng)])
    return _CS[len(_CS) - 1 - int(np.argmin(results[::-1]))]


def _tenth(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    tenth = np.zeros(codes.size, dtype=bool)
    tenth[draw_rows(codes.size, max(1, round(0.1 * codes.size)), rng)] = True
    return tenth


# Readings of "nu was selected using a random ten percent of each training set as a tuning set".
_RULES: dict[str, Callable[[np.ndarray, np.ndarray, np.random.Generator], float]] = {
    "judged on the tenth": lambda K, codes, rng: tune_on_a_tenth(K, codes, 2, rng),
    "largest of equals": _largest_of_equals,
    "trained on the tenth": _train_on_the_tenth,
    "cross-validated in the tenth": _cross_validated_in_the_tenth,
}


def tune(
    columns: np.ndarray, codes: np.ndarray, kernel: str, rule: str, rng: np.random.Generator
) -> tuple[float, float]:
    """Choose nu (our C) and mu (our gamma; of no effect for "linear").

    `columns` (n, k) of training rows are kernel values for the kernel "linear", squared distances for "gaussian".
    `rule`, for "linear", is a reading of the paper's sentence; see the code. `rng` draws the tuning set or the folds.
    Returns C and gamma.
    """
    if kernel == "linear":
        return _RULES[rule](columns, codes, rng), 1.0
    return tune_by_design(columns, codes, 2, rng)


def _cross_validate(
    columns: np.ndarray | Callable[[np.ndarray], np.ndarray],
    codes: np.ndarray,
    folds: np.ndarray,
    kernel: str,
    protocol: Mapping[str, Any],
    stream: Callable[[int], np.random.Generator],
    chosen: tuple[float, float] | None = None,
) -> dict[str, list[float]]:
    """Ten-fold errors, with nu and mu chosen on the training rows of every fold, or of the first one only, or given.

    `columns` may be a function of the training rows' mask, where the kernel has those rows for columns.
    """
    signs = np.where(codes == 1, 1.0, -1.0)
    result: dict[str, list[float]] = {"errors": [], "C": [], "gamma": []}
    C = gamma = 1.0
    K, problem = np.empty((0, 0)), None
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        tuned = fold == 0 or protocol["tune"] == "every_fold"
        fold_columns = columns(~test) if callable(columns) else columns
        if tuned:
            C, gamma = chosen or tune(fold_columns[~test], codes[~test], kernel, protocol["rule"], stream(fold))
        if problem is None or callable(columns) or (tuned and kernel == "gaussian"):
            K = np.exp(-gamma * fold_columns) if kernel == "gaussian" else fold_columns
            problem = OneNormProblem(K, signs)
        solution = problem.solve(C, ~test)
        predicted = K[test] @ solution.coef + solution.intercept > 0
        result["errors"].append(int((predicted != (codes[test] == 1)).sum()))
        result["C"].append(C)
        result["gamma"].append(gamma)
    return result


def _partition(parameters: Mapping[str, Any], context: Context, X: np.ndarray, number: int) -> Partition:
    rng = _stream(parameters, context, "partition", number)
    folds = rng.permutation(np.arange(X.shape[0]) % parameters["n_folds"])
    columns = deal_columns(X.shape[1], parameters["entities"], rng)
    mbar = count_kernel_rows(parameters["mbar"], X.shape[0])
    return Partition(columns, [Entity.draw(X[:, entity_columns], mbar, rng) for entity_columns in columns], folds)


def _stream(parameters: Mapping[str, Any], context: Context, *purpose: str | int) -> np.random.Generator:
    reading = parameters["reading"]
    name = parameters["dataset"] if reading is None else f"{parameters['dataset']}, {sorted(reading.items())}"
    return context.stream(parameters["seed"], name, parameters["kernel"], parameters["entities"], *purpose)


def _publish_columns(block: np.ndarray, kernel: str, gamma: float) -> np.ndarray:
    """Return the public information in a block: its values, or the squared distances behind them."""
    if kernel == "linear":
        return block
    with np.errstate(divide="ignore"):
        return -np.log(block) / gamma


def errors(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Ten-fold errors of PPSVM, and of each entity that shares nothing.

    Parameters: as for `read`; ``dataset, kernel, entities, mbar, n_folds, partitions, seed``; ``PPSVM`` and ``alone``:
    name to ``{"tune": "once" or "every_fold", "rule"}``; of "alone" also ``columns``: "own" (features for "linear", the
    entity's own random kernel for "gaussian") or "full" (its kernel with all training rows); ``most_entities``: None,
    or how many entities are drawn for "alone" in each partition. Result: ``n_rows, n_features, mbar``, and for each of
    ``partitions``: sizes of its folds and of its entities, errors by fold of "PPSVM" and of each entity "alone".
    """
    X, codes = read(parameters, context)

    def compute(number: int) -> dict[str, Any]:
        partition = _partition(parameters, context, X, number)
        return {
            "folds": np.bincount(partition.folds).tolist(),
            "columns": [columns.size for columns in partition.columns],
            **_partition_errors(parameters, context, X, codes, partition, number),
        }

    return {**_size(parameters, X), "partitions": context.parts(parameters, "partitions", "partition", compute)}


def _partition_errors(
    parameters: Mapping[str, Any], context: Context, X: np.ndarray, codes: np.ndarray, partition: Partition, number: int
) -> dict[str, Any]:
    """Errors by fold of PPSVM and of the entities that are tried alone."""
    kernel, gamma = parameters["kernel"], 1.0 / X.shape[1]
    blocks = {
        f"entity {position}": entity.publish(X[:, entity_columns], kernel, gamma)
        for position, (entity_columns, entity) in enumerate(zip(partition.columns, partition.entities, strict=True))
    }
    public = _publish_columns(combine_blocks(blocks, kernel), kernel, gamma)

    def validate(name: str, columns: Any, protocol: Mapping[str, Any], who: str) -> dict[str, list[float]]:
        def stream(fold: int) -> np.random.Generator:
            return _stream(parameters, context, "tuning", name, who, number, fold)

        return _cross_validate(columns, codes, partition.folds, kernel, protocol, stream)

    def alone(who: str, position: int, which: str) -> Any:
        """Columns of an entity that shares nothing."""
        rows = partition.entities[position].standardized(X[:, partition.columns[position]])
        if which == "full":
            return _full_columns(rows, kernel)
        return rows if kernel == "linear" else _publish_columns(blocks[who], kernel, gamma)

    tried = {f"entity {position}": position for position in _try_alone(parameters, context, number, len(blocks))}
    return {
        "PPSVM": {name: validate(name, public, protocol, "all") for name, protocol in parameters["PPSVM"].items()},
        "alone": {
            name: [
                validate(name, alone(who, position, protocol["columns"]), protocol, who)
                for who, position in tried.items()
            ]
            for name, protocol in parameters["alone"].items()
        },
    }


def _try_alone(parameters: Mapping[str, Any], context: Context, number: int, n_entities: int) -> list[int]:
    """Positions of the entities that are tried alone: all, or some that are drawn."""
    most = parameters["most_entities"]
    if most is None or most >= n_entities:
        return list(range(n_entities))
    return [int(position) for position in draw_rows(n_entities, most, _stream(parameters, context, "entities", number))]


def _products(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    return rows @ others.T


def _full_columns(rows: np.ndarray, kernel: str) -> Callable[[np.ndarray], np.ndarray]:
    values = rows @ rows.T if kernel == "linear" else squared_distances(rows, rows)
    return lambda train: values[:, train]


def _size(parameters: Mapping[str, Any], X: np.ndarray) -> dict[str, Any]:
    n, d = X.shape
    return {"n_rows": n, "n_features": d, "mbar": count_kernel_rows(parameters["mbar"], n)}


def kernels(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Ten-fold errors with the random kernel, with a reduced one and with the full one.

    Parameters: as for `errors`, without "PPSVM", "alone" and "most_entities"; ``protocol``: as there, with
    ``most_tuned_rows``: for "gaussian", full kernels of more rows take nu and mu of the reduced one. Result: as
    `errors`; each partition has the errors by fold of "random", "reduced" and "full".
    """
    X, codes = read(parameters, context)

    def compute(number: int) -> dict[str, Any]:
        kernel, protocol = parameters["kernel"], parameters["protocol"]
        partition = _partition(parameters, context, X, number)
        (entity,) = partition.entities
        rows = entity.standardized(X)
        drawn = rows[draw_rows(len(rows), entity.random_matrix.shape[0], _stream(parameters, context, "rows", number))]
        product = _products if kernel == "linear" else squared_distances
        columns: dict[str, Any] = {
            "random": product(rows, entity.random_matrix),
            "reduced": product(rows, drawn),
            "full": _full_columns(rows, kernel),
        }

        def validate(name: str, chosen: tuple[float, float] | None = None) -> dict[str, Any]:
            def stream(fold: int) -> np.random.Generator:
                return _stream(parameters, context, "tuning", name, number, fold)

            return _cross_validate(columns[name], codes, partition.folds, kernel, protocol, stream, chosen)

        validated = {name: validate(name) for name in ("random", "reduced")}
        large = kernel == "gaussian" and len(rows) > protocol["most_tuned_rows"]
        reduced = validated["reduced"]
        validated["full"] = validate("full", (reduced["C"][0], reduced["gamma"][0]) if large else None)
        return {"folds": np.bincount(partition.folds).tolist(), **validated}

    return {**_size(parameters, X), "partitions": context.parts(parameters, "partitions", "partition", compute)}


def attack(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Known-sample recovery from the blocks of each entity.

    Parameters: as for `read`; ``dataset, kernel, entities, mbar, n_folds, draws, seed``; ``counts``: numbers of known
    rows, or None for a grid around those needed. Result: ``n_rows, n_features, mbar, gamma`` and for each of
    ``entities`` its number of columns and the fields of `privsvm.privacy.attacks.known_sample.RecoveryCurve`.
    """
    X, _ = read(parameters, context)
    kernel, gamma = parameters["kernel"], 1.0 / X.shape[1]
    partition = _partition(parameters, context, X, 0)
    result = []
    for position, (entity_columns, entity) in enumerate(zip(partition.columns, partition.entities, strict=True)):
        columns, needed = entity.standardized(X[:, entity_columns]), entity_columns.size + (kernel == "gaussian")
        curve = recovery_curve(
            entity.publish(X[:, entity_columns], kernel, gamma),
            columns,
            kernel,
            gamma if kernel == "gaussian" else None,
            counts=None if parameters["counts"] is None else [needed + extra for extra in parameters["counts"]],
            draws=parameters["draws"],
            rng=_stream(parameters, context, "known rows", position),
        )
        result.append({"columns": entity_columns.size, **vars(curve)})
    return {**_size(parameters, X), "gamma": gamma, "entities": result}


_KINDS = {"errors": errors, "kernels": kernels, "attack": attack}


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Run a job by its ``kind``: `errors`, `kernels` or `attack`."""
    return _KINDS[parameters["kind"]](parameters, context)
