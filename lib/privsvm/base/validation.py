"""Checks of parameters and training data that all methods share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from privsvm.base.tables import training_rows
from privsvm.constraints import plain, trusted
from privsvm.errors import nearest_name
from privsvm.numerics.rows.row_blocks import RowBlocks, memory_of_machine
from privsvm.numerics.rows.well_formed import refuse_masked
from privsvm.privacy.accounting import check_budget, gaussian_noise_multiplier
from privsvm.privacy.assumptions import AS_GIVEN, Facts

__all__ = [
    "INFERRED_CLASSES",
    "check_bounds",
    "check_budgets",
    "check_choice",
    "check_class_memory",
    "check_consent",
    "check_count",
    "check_positive",
    "check_public_classes",
    "check_training_data",
    "common_tags",
    "facts_of_call",
    "is_number",
    "memory_of_machine",
]


# Arrays as large as a model that training holds.
_MODELS = 8
# Larger whole numbers are not told apart in float64, which labels become if one of them is a float.
_LARGEST_LABEL = 2.0**53

# Why nothing is proved for a model whose public label set was not given.
INFERRED_CLASSES = "the class set was taken from the private labels"

# Standard deviation of the noise with a whole budget, in rows.
_MOST_NOISE = 1e6


def is_number(value: Any) -> bool:
    """Tell whether a parameter is a real number of double precision, and not a boolean."""
    return trusted(value) and isinstance(value, (int, float, np.integer)) and not isinstance(value, (bool, np.bool_))


def check_positive(name: str, value: Any) -> float:
    """Return a parameter that must be a positive finite number; raise ValueError with its name and value if not."""
    if not is_number(value) or not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name}={value!r}: must be a positive finite number")
    return float(value)


def check_count(name: str, value: Any) -> int:
    """Return a parameter that must be a whole number of at least 1; raise ValueError with its name and value if not."""
    if not is_number(value) or not math.isfinite(value) or value != int(value) or value < 1:
        raise ValueError(f"{name}={value!r}: must be a whole number of at least 1")
    return int(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise ValueError with a hint if a parameter is none of the known words."""
    if value not in choices:
        raise ValueError(f"{name}={value!r}: {nearest_name(value, choices)}")


def check_budgets(epsilons: Sequence[float], delta: Any) -> tuple[list[float], float]:
    """Return a grid of epsilons and the delta as plain floats; raise ValueError if one is out of range."""
    delta = check_positive("delta", delta)
    for epsilon in epsilons:
        check_budget(check_positive("epsilon", epsilon), delta)
        # Parts of a budget have more noise, which the sampler must be able to draw once it is paid for.
        if gaussian_noise_multiplier(epsilon, delta) > _MOST_NOISE:
            raise ValueError(
                f"epsilon={epsilon!r}, delta={delta!r}: noise as large as {_MOST_NOISE:.0e} rows drowns all tables; "
                "use larger ones"
            )
    return [float(epsilon) for epsilon in epsilons], delta


def check_bounds(bounds: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return public bounds as two arrays (d,)."""
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features)) for bound in bounds)
    except (TypeError, ValueError):
        low, high = np.ones(1), np.zeros(1)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError(f"bounds={bounds!r}: must be (low, high), finite, low not above high")
    return low, high


def check_public_classes(classes: Sequence[Any] | None, allow_unsound: bool) -> None:
    """Raise ValueError if the set of classes would silently be taken from private labels."""
    if classes is None and not allow_unsound:
        raise ValueError(
            "classes=None: give the public label set; taking it from private labels needs allow_unsound=True"
        )


def facts_of_call(
    classes: Sequence[Any] | None,
    *,
    n_rows: int | str | None = "not used",
    features: Any = "none",
    solution: Any = "none needed",
) -> Facts:
    """State the facts that a method knows when it is called: its own part, and that rows are as given to it.

    Classes of None are taken from the labels. `n_rows` is the parameter of methods that use the number of rows, which
    None counts; see `Facts` for the others.
    """
    word: Any = n_rows if isinstance(n_rows, str) else "counted" if n_rows is None else "declared"
    declared = not isinstance(n_rows, str) and n_rows is not None
    return Facts(
        **AS_GIVEN,
        classes="private labels" if classes is None else "declared",
        n_rows=word,
        features=features,
        solution=solution,
        # Whole numbers of any kind, 8.0 too.
        declared_rows=int(n_rows) if declared else None,  # type: ignore[arg-type]
    )


def check_consent(allow_unsound: bool, problem: str) -> None:
    """Raise ValueError if the user has not consented to a method whose epsilon does not hold."""
    if not allow_unsound:
        raise ValueError(f"allow_unsound={allow_unsound!r}: {problem}; consent with allow_unsound=True")


def check_training_data(
    estimator: Any, X: Any, y: Any, classes: Sequence[Any] | None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Validate rows and labels, and turn labels into class codes.

    The estimator gets ``n_features_in_`` (and ``feature_names_in_``). Labels of None are those that a source of rows
    has. `classes` is the public label set in code order; None takes it from `y`, sorted.

    Returns the rows, an array or a CSR matrix of float64, or the `RowBlocks`; codes (n,) of int64, or for a source of
    rows of the smallest type that holds them; and the classes. Raises ValueError if rows or labels are not such (see
    `training_rows`), a label is outside `classes`, or there are fewer than two classes.
    """
    # Imported late: checking parameters alone does not need scikit-learn.
    from sklearn.utils.multiclass import check_classification_targets

    if isinstance(X, RowBlocks):
        return X, *_codes_of_source(estimator, X, y, classes)
    declared = None if classes is None else known_classes(classes)
    X, y = training_rows(estimator, X, y, _fewest_rows(estimator, classes))
    # It would refuse some labels of a declared set, such as 0.5, depending on the other rows.
    labels = y if declared is None else declared
    if not (labels.dtype.kind in "iubU" or (labels.dtype.kind == "f" and (labels == np.floor(labels)).all())):
        # Whole numbers and texts are classes; scikit-learn's own look at them takes longer than a small fit.
        check_classification_targets(labels)
    if declared is not None:
        class_labels, codes = declared, codes_of(y, declared)
    else:
        class_labels, codes = _distinct(y)
        if class_labels.size < 2:
            raise ValueError(f"y has one class only ({class_labels[0]!r}); a classifier needs at least two classes")
    check_class_memory(type(estimator), X.shape[0], X.shape[1], class_labels.size)
    return X, codes.astype(np.int64, copy=False), class_labels


def _fewest_rows(estimator: Any, classes: Sequence[Any] | None) -> int:
    """Fewest rows that a method trains on: 0 where a table of one row, which it accepts, has an empty neighbour."""
    method = getattr(estimator, "estimator", estimator)
    accepts = getattr(method, "accepts_no_rows", False) and method.neighbours == "add_remove"
    return 0 if accepts and classes is not None else 1


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different labels, sorted, and the code of each: what `numpy.unique` does, which sorts all texts."""
    if y.dtype.kind != "U":
        return np.unique(y, return_inverse=True)
    texts = y.tolist()
    labels = sorted(set(texts))
    code_of = {text: code for code, text in enumerate(labels)}
    return np.array(labels, dtype=y.dtype), np.fromiter((code_of[text] for text in texts), np.int64, len(texts))


def check_class_memory(kind: type, n_rows: int, n_features: int, n_classes: int) -> None:
    """Raise ValueError if a method's arrays for so many classes do not fit in memory.

    Its `class_memory` names the numbers that it holds, of 8 bytes each: "rows" for a number of each row and class,
    "classes" for each two classes; both beside a number of each class and feature.
    """
    per_class = {"rows": n_rows, "classes": 3 * n_classes, "model": 0}[getattr(kind, "class_memory", "rows")]
    needed = 8 * n_classes * (per_class + _MODELS * n_features)
    most = memory_of_machine()
    if needed > most:
        raise ValueError(
            f"classes: {n_classes} classes, {n_rows} rows and {n_features} features would take {needed / 1e9:.0f} GB "
            f"in {kind.__name__}, of {most / 1e9:.0f} GB of this machine; use fewer classes, or "
            "SoftmaxDPSGDClassifier, which holds a few models only"
        )


def known_classes(classes: Sequence[Any]) -> np.ndarray:
    """Labels of a public class set, in code order; raise ValueError if they are no list of two or more labels."""
    # A copy: it may be a part of something larger, such as of all labels.
    labels = np.array(classes)
    if (
        labels.ndim == 1
        and labels.dtype.kind in ("f", "O")
        and any(label is None or label != label for label in labels.tolist())
    ):
        raise ValueError(f"classes={classes!r}: holds a missing label; give numbers or texts")
    if labels.dtype.kind in "iuf" and np.any(np.abs(labels.astype(np.float64)) >= _LARGEST_LABEL):
        raise ValueError(f"classes={classes!r}: whole numbers from 2^53 on are not told apart; write them as texts")
    if labels.ndim != 1 or np.unique(labels).size != labels.size:
        raise ValueError(f"classes={classes!r}: must be a list of different labels")
    if labels.size < 2:
        raise ValueError(f"classes={classes!r}: has one class or none; a classifier needs at least two classes")
    return labels


def codes_of(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Turn labels (n,) into codes of the known ones; raise ValueError with a label that is none of them."""
    order = np.argsort(labels)
    try:
        position = np.clip(np.searchsorted(labels, y, sorter=order), 0, labels.size - 1)
        codes: np.ndarray = order[position]
        outside = labels[codes] != y
    except TypeError:
        # None and pandas.NA are neither above nor below a label.
        raise ValueError(
            "y holds a label that cannot be compared with the classes; leave rows without a label out, and give all "
            "labels as numbers or all as texts"
        ) from None
    if outside.any():
        raise ValueError(f"y holds the label {y[outside].tolist()[0]!r}, which is not in classes={labels.tolist()}")
    return codes


def _codes_of_source(
    estimator: Any, X: RowBlocks, y: Any, classes: Sequence[Any] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the labels of a source of rows, block by block, and the classes."""
    if not getattr(estimator, "reads_blocks", False):
        raise ValueError(
            f"X is a {type(X).__name__}: {type(estimator).__name__} needs all rows in memory; read them into an array, "
            "or use a method of sums, such as PrivateLinearClassifier"
        )
    if X.client is not None and not trusted(X.client, "distributed"):
        raise ValueError(f"client={X.client!r}: must be a distributed.Client; another may sum other rows")
    refuse_masked("y", y)
    y = plain(X.labels if y is None else y)
    if y is None:
        raise ValueError("y=None: the source of rows has no labels; give them here, or name them in open_rows")
    if classes is None:
        raise ValueError("classes=None: give the label set; rows on disk are not searched for it")
    y = np.asarray(y)
    if y.shape != X.shape[:1]:
        raise ValueError(f"y has shape {y.shape} for {X.shape[0]} rows")
    labels = known_classes(classes)
    check_class_memory(type(estimator), 0, X.shape[1], labels.size)
    codes = np.empty(y.shape[0], dtype=np.min_scalar_type(labels.size - 1))
    for start, stop in X.blocks():
        codes[start:stop] = codes_of(np.asarray(y[start:stop]), labels)
    estimator.n_features_in_ = X.shape[1]
    return codes, labels


def common_tags(tags: Any) -> Any:
    """Set the scikit-learn tags that all methods share: sparse rows are fine."""
    tags.input_tags.sparse = True
    return tags
