"""Turn raw files into features, label codes, splits and scaling."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import write_json, write_npz
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.numerics.rows.rows import is_sparse
from privsvm.tables.schema import parse_schema
from privsvm_bench.datasets.catalogue import DatasetEntry, label_order, positive_problem
from privsvm_bench.datasets.prepared import arrays_of_rows
from privsvm_bench.datasets.readers import count_not_finite, read_part, stack_rows
from privsvm_bench.datasets.settings import Given, Holdout, KFold, Protocol, Resubstitution


def prepare(
    entry: DatasetEntry,
    raw_folder: str | os.PathLike[str],
    protocol: Protocol,
    seed: int,
    experiment: str,
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read a dataset, code its labels, treat missing values, draw the splits and fit the scaling.

    `raw_folder` is ``data/raw/<dataset>``. A protocol of the dataset's own takes precedence over `protocol`. Splits
    depend only on seed, experiment, dataset and repeat.

    The arrays are described in docs/files.md: ``X`` (n, d) or the four CSR arrays, ``y`` (n,), ``train_<s>``,
    ``test_<s>``, ``scale_shift`` and ``scale_factor`` (1 or S, d). The description is the ``.json`` without its
    ``digest``.

    With two classes, code 1 is the positive class. Values outside declared bounds are kept and counted. A feature that
    is constant in the rows to which the scaling is fitted becomes 0 everywhere. Sparse features cannot be shifted.

    Raises PrivSVMError if the data cannot be read, a label is not a declared class, or the protocol or scaling cannot
    be applied.
    """
    protocol = entry.protocol if entry.protocol is not None else protocol
    roles = _roles(entry, protocol)
    blocks = [read_part(entry, role, raw_folder) for role in roles]
    widths = {role: block[0].shape[1] for role, block in zip(roles, blocks, strict=True)}
    if len(set(widths.values())) > 1:
        raise PrivSVMError(f"dataset {entry.name}: parts have different features {widths}; choose one with `parts`")
    X = stack_rows([block[0] for block in blocks])
    labels = np.concatenate([block[1] for block in blocks])
    part_of_row = np.repeat(np.arange(len(roles)), [len(block[1]) for block in blocks])

    bounds = _bounds_arrays(entry, X.shape[1])
    X, kept_rows, kept_columns = treat_missing(entry, X)
    labels, part_of_row = labels[kept_rows], part_of_row[kept_rows]
    if bounds is not None:
        bounds = (bounds[0][kept_columns], bounds[1][kept_columns])
    y, classes, classes_origin = _code_labels(entry, labels)

    # Row numbers of training and test rows of every split, ascending.
    if isinstance(protocol, Resubstitution):
        splits = [(np.arange(len(y), dtype=np.int64),) * 2]
    elif isinstance(protocol, Given):
        splits = [(np.flatnonzero(part_of_row == 0), np.flatnonzero(part_of_row == 1))]
    else:
        splits = _random_splits(entry, protocol, y, classes, seed, experiment)
    _check_splits(entry, splits, y, classes, classes_origin)
    shift, factor, scaling = _fit_scaling(entry, X, bounds, splits)

    arrays: dict[str, np.ndarray] = {"y": y, "scale_shift": shift, "scale_factor": factor}
    arrays |= arrays_of_rows("X", X)
    for number, (train, test) in enumerate(splits):
        arrays[f"train_{number}"] = train
        arrays[f"test_{number}"] = test
    files = [name for role in roles for name in entry.parts[role].files]
    description = {
        "dataset": entry.name,
        "n_rows": int(X.shape[0]),
        "n_features": int(X.shape[1]),
        # LIBSVM files do not say how many features there are; the largest index that occurs depends on the rows.
        "n_features_origin": "data"
        if any(entry.parts[role].format == "libsvm" and entry.parts[role].n_features is None for role in roles)
        else "declared",
        # Rows with a schema have no missing value, so no column is dropped before these.
        "indicators": [] if entry.schema is None else parse_schema(entry.schema).indicators,
        "declared_training_rows": _count_declared_rows(entry, protocol, roles, len(splits)),
        "prescaled": entry.prescaled,
        "prescaled_origin": "declared" if entry.user_supplied else "catalogue",
        "n_splits": len(splits),
        "sparse": is_sparse(X),
        "classes": list(classes),
        "classes_origin": classes_origin,
        "parts": list(roles),
        "scaling": scaling,
        "missing": {
            "rule": entry.missing if entry.schema is None else "filled in by the schema",
            "rows_dropped": int((~kept_rows).sum()),
            "columns_dropped": np.flatnonzero(~kept_columns).tolist(),
        },
        "protocol": protocol.model_dump(),
        "sources": {name: sha256_of_file(Path(raw_folder) / name) for name in dict.fromkeys(files)},
    }
    return arrays, description


def _roles(entry: DatasetEntry, protocol: Protocol) -> tuple[str, ...]:
    """Parts to read, in row order."""
    if not isinstance(protocol, Given):
        return entry.pool
    roles = (protocol.train, protocol.test)
    for role in roles:
        if role not in entry.parts:
            raise PrivSVMError(
                f"dataset {entry.name}: protocol 'given' needs part {role!r}, the set has {', '.join(entry.parts)}; "
                "set its `protocol:` to holdout, k_fold or resubstitution"
            )
    if roles[0] == roles[1]:
        raise PrivSVMError(
            f"dataset {entry.name}: protocol 'given' trains and tests on part {roles[0]!r}; use resubstitution for that"
        )
    return roles


def _bounds_arrays(entry: DatasetEntry, n_features: int) -> tuple[np.ndarray, np.ndarray] | None:
    if entry.bounds is None:
        return None
    count = len(entry.bounds.lower)
    if count not in (1, n_features):
        raise PrivSVMError(
            f"datasets.{entry.name}.bounds: {count} pairs for {n_features} features; give one pair or one per feature"
        )
    lower, upper = (np.array(np.broadcast_to(side, n_features)) for side in (entry.bounds.lower, entry.bounds.upper))
    return lower, upper


def treat_missing(entry: DatasetEntry, X: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Apply a dataset's rule for missing values; return the kept rows of `X`, and masks of the kept rows and columns.

    `X` has shape (n, d), with NaN for missing values; a CSR matrix may be changed in place. `read_part` has already
    refused missing values if the rule is ``error``. Raises PrivSVMError if no row or no column is left.
    """
    rows, columns = np.ones(X.shape[0], dtype=bool), np.ones(X.shape[1], dtype=bool)
    missing, _ = count_not_finite(X)
    if not missing.any():
        return X, rows, columns
    if entry.missing == "zero":
        if is_sparse(X):
            X.data[np.isnan(X.data)] = 0.0
            X.eliminate_zeros()
            return X, rows, columns
        return np.where(np.isnan(X), 0.0, X), rows, columns
    if entry.missing == "drop_columns":
        columns = missing == 0
    elif is_sparse(X):
        row_of_value = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        rows[row_of_value[np.isnan(X.data)]] = False
    else:
        rows = ~np.isnan(X).any(axis=1)
    if not rows.any() or not columns.any():
        what = "row" if not rows.any() else "column"
        raise PrivSVMError(f"dataset {entry.name}: every {what} has a missing value; set `missing:` to another rule")
    # Sparse arrays accept row and column numbers on both sides, but not boolean masks.
    return X[np.flatnonzero(rows)][:, np.flatnonzero(columns)], rows, columns


def _code_labels(entry: DatasetEntry, labels: np.ndarray) -> tuple[np.ndarray, tuple[str, ...], str]:
    """Map labels to codes in the order of the public class list."""
    distinct, inverse = np.unique(labels, return_inverse=True)
    texts = [str(text) for text in distinct]
    if entry.groups:
        class_of = {label: group for group, members in entry.groups.items() for label in members}
        for text in texts:
            if text not in class_of:
                raise PrivSVMError(f"datasets.{entry.name}.groups: label {text!r} is in no group; add it to one")
        texts = [class_of[text] for text in texts]
    origin = "declared"
    classes = entry.classes
    if classes is None:
        classes, origin = label_order(sorted(set(texts))), "data"
    for text in texts:
        if text not in classes:
            raise PrivSVMError(
                f"dataset {entry.name}: label {text!r} is not a declared class ({', '.join(classes[:20])}); "
                "correct `classes` or `groups`"
            )
    # Refusal must not depend on private labels: with a declared set all may be the same.
    if origin == "data" and len(classes) < 2:
        raise PrivSVMError(
            f"dataset {entry.name}: one class only, {texts[0]!r}; correct `groups`, `label` or `missing`"
        )
    if entry.positive is not None:
        if problem := positive_problem(entry.positive, classes):
            raise PrivSVMError(f"datasets.{entry.name}.positive: {problem}")
        classes = (*(name for name in classes if name != entry.positive), entry.positive)
    code = {name: number for number, name in enumerate(classes)}
    codes = np.array([code[text] for text in texts], dtype=np.int64)
    return codes[inverse.ravel()], tuple(classes), origin


def _check_splits(
    entry: DatasetEntry,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    y: np.ndarray,
    classes: tuple[str, ...],
    classes_origin: str,
) -> None:
    """Refuse a split without rows on a side, or one class of undeclared ones."""
    for number, (train, test) in enumerate(splits):
        if len(train) == 0 or len(test) == 0:
            raise PrivSVMError(f"dataset {entry.name}: split {number} has no rows on one side; change `protocol`")
        if classes_origin == "data" and len(np.unique(y[train])) < 2:
            raise PrivSVMError(
                f"dataset {entry.name}: split {number} trains on one class only, {classes[y[train[0]]]!r}; "
                "declare `classes` or use more training rows"
            )


def _count_declared_rows(
    entry: DatasetEntry, protocol: Protocol, roles: tuple[str, ...], n_splits: int
) -> list[int] | None:
    """Compute the training rows of each split from the declared number of rows; None without one."""
    counts = [entry.declared_rows if entry.user_supplied else entry.parts[role].n_rows for role in roles]
    declared = [count for count in counts if count is not None]
    # The rule decides even if it dropped no row: whether it did depends on private rows.
    if len(declared) < len(counts) or entry.missing == "drop_rows":
        return None
    total = sum(declared)
    match protocol:
        case Given():
            rows = [declared[0]]
        case Resubstitution():
            rows = [total]
        case Holdout(test_size=size):
            rows = [total - (size if isinstance(size, int) else math.ceil(size * total))] * n_splits
        case KFold(folds=folds, repeats=repeats):
            rows = [total - total // folds - (fold < total % folds) for fold in range(folds)] * repeats
    return rows if min(rows) >= 1 else None


def _random_splits(
    entry: DatasetEntry,
    protocol: Holdout | KFold,
    y: np.ndarray,
    classes: tuple[str, ...],
    seed: int,
    experiment: str,
) -> list[tuple[np.ndarray, np.ndarray]]:
    import warnings

    from sklearn import model_selection

    stratified = protocol.stratified
    if stratified:
        counts = np.bincount(y, minlength=len(classes))
        for name, count in zip(classes, counts, strict=True):
            if count == 1:
                raise PrivSVMError(
                    f"dataset {entry.name}: class {name!r} has 1 row, so splits cannot be stratified; "
                    "set `stratified: false` in its protocol or merge classes with `groups`"
                )
    if isinstance(protocol, KFold) and protocol.folds > len(y):
        raise PrivSVMError(f"dataset {entry.name}: {protocol.folds} folds of {len(y)} rows; lower `folds`")
    splits: list[tuple[np.ndarray, np.ndarray]] = []
    for repeat in range(protocol.repeats):
        stream = seeded_stream(seed, "split", experiment, entry.name, repeat)
        state = int(stream.integers(2**31))
        if isinstance(protocol, Holdout):
            maker = model_selection.StratifiedShuffleSplit if stratified else model_selection.ShuffleSplit
            splitter: Any = maker(n_splits=1, test_size=protocol.test_size, random_state=state)
        else:
            maker = model_selection.StratifiedKFold if stratified else model_selection.KFold
            splitter = maker(n_splits=protocol.folds, shuffle=True, random_state=state)
        try:
            with warnings.catch_warnings():
                # A class with fewer rows than folds has at most one row in a fold.
                warnings.simplefilter("ignore", UserWarning)
                drawn = list(splitter.split(np.zeros((len(y), 1)), y))
        except ValueError as error:
            reason = str(error).split("\n")[0].rstrip(".")
            remedy = "set `stratified: false` or change the sizes" if stratified else "change the sizes"
            raise PrivSVMError(
                f"dataset {entry.name}: protocol {protocol.kind!r} does not fit ({reason}); {remedy} in its protocol"
            ) from None
        splits += [(np.sort(train).astype(np.int64), np.sort(test).astype(np.int64)) for train, test in drawn]
    return splits


def _affine(low: np.ndarray, high: np.ndarray, target: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Compute shift and factor that map low..high to the target range; features without width become 0."""
    width = high - low
    # A width whose reciprocal overflows counts as 0.
    usable = width > np.finfo(float).tiny * (target[1] - target[0])
    factor = np.zeros_like(width)
    factor[usable] = (target[1] - target[0]) / width[usable]
    shift = np.zeros_like(width)
    shift[usable] = low[usable] - target[0] / factor[usable]
    return shift, factor


def _column_extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    if is_sparse(X):
        return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    return X.min(axis=0), X.max(axis=0)


def _fit_scaling(
    entry: DatasetEntry,
    X: Any,
    bounds: tuple[np.ndarray, np.ndarray] | None,
    splits: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Compute shift and factor (1 or S, d), and describe their origin."""
    kind, target = entry.scaling, entry.target_range
    d = X.shape[1]
    if kind == "none":
        return np.zeros((1, d)), np.ones((1, d)), {"kind": kind, "origin": "none"}
    record: dict[str, Any] = {"kind": kind}
    if kind == "bounds":
        if bounds is None:
            raise PrivSVMError(f"datasets.{entry.name}.bounds: missing for scaling 'bounds'; add `bounds: [low, high]`")
        shift, factor = (row[np.newaxis] for row in _affine(*bounds, target))
        record |= {
            "origin": "declared",
            "range": list(target),
            "bounds_origin": entry.bounds_origin,
            "outside_bounds": _count_outside(X, *bounds),
        }
    else:
        per_split = entry.fit_on == "training_rows"
        record["origin"] = "training rows" if per_split else "all rows"
        fitted_to = [train for train, _ in splits] if per_split else [None]
        pairs = []
        for rows in fitted_to:
            rows_read = X if rows is None else X[rows]
            if kind == "min_max":
                pairs.append(_affine(*_column_extremes(rows_read), target))
            elif is_sparse(X):
                _refuse_shift(entry)
            else:
                spread = rows_read.std(axis=0)
                # Rounding gives a constant column a spread that is tiny, not zero.
                constant = rows_read.max(axis=0) == rows_read.min(axis=0)
                factor = np.divide(1.0, spread, out=np.zeros(d), where=~constant & (spread > 0))
                pairs.append((np.where(factor > 0, rows_read.mean(axis=0), 0.0), factor))
        shift, factor = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        if kind == "min_max":
            record["range"] = list(target)
    if is_sparse(X) and np.any(shift != 0.0):
        _refuse_shift(entry)
    if not (np.isfinite(shift).all() and np.isfinite(factor).all()):
        raise PrivSVMError(
            f"dataset {entry.name}: a feature is too wide or too narrow for scaling {kind!r}; declare `bounds` for it"
        )
    return shift, factor, record


def _refuse_shift(entry: DatasetEntry) -> None:
    raise PrivSVMError(
        f"datasets.{entry.name}.scaling: {entry.scaling!r} would shift sparse features and fill them up; "
        "choose `scaling: none`, or `bounds` starting at 0 with `range: [0, 1]`"
    )


def _count_outside(X: Any, lower: np.ndarray, upper: np.ndarray) -> int:
    if not is_sparse(X):
        return int((np.less(X, lower) | np.greater(X, upper)).sum())
    stored = int(((X.data < lower[X.indices]) | (X.data > upper[X.indices])).sum())
    zeros = X.shape[0] - np.bincount(X.indices, minlength=X.shape[1])
    return stored + int(zeros[(lower > 0) | (upper < 0)].sum())


def write_prepared(
    npz_path: str | os.PathLike[str],
    json_path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray],
    description: Mapping[str, Any],
) -> None:
    """Write the result of `prepare`, with the digest that ties the two files together.

    Both files are written atomically, the ``.json`` last.
    """
    write_npz(npz_path, arrays)
    write_json(json_path, {**description, "digest": sha256_of_file(npz_path)})
