"""A sampler's rows and labels in the container types of its input."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain_labels(y: Any) -> tuple[Any, np.ndarray | None]:
    """Read labels that may stand in a column, or as one column of 0 and 1 a class.

    (n, c) with a single 1 in each row, or ValueError, stands for c classes, whose labels are the numbers of the
    columns. Returns labels (n,), and these numbers (c,) or None.
    """
    values = y if hasattr(y, "ndim") else np.asarray(y)
    if values.ndim != 2:
        return y, None
    values = np.asarray(values)
    if values.shape[1] == 1:
        return values[:, 0], None
    if not (((values == 0) | (values == 1)).all() and (values.sum(axis=1) == 1).all()):
        raise ValueError("y has several columns: each row must hold one 1 among zeros")
    return values.argmax(axis=1), np.arange(values.shape[1])


def rows_like(given: Any, rows: Any) -> Any:
    """Return rows in the container type of the input.

    Single precision where all of `given` has it, otherwise double. Tables other than pandas' become arrays.
    """
    if isinstance(given, list):
        return rows.tolist()
    if type(given).__module__.partition(".")[0] == "pandas":
        import pandas as pd

        if not hasattr(rows, "toarray"):
            return pd.DataFrame(rows, columns=given.columns)
        return pd.DataFrame.sparse.from_spmatrix(rows, columns=given.columns)
    return rows.astype(np.float32) if getattr(given, "dtype", None) == np.float32 else rows


def labels_like(given: Any, labels: np.ndarray, columns: np.ndarray | None) -> Any:
    """Return labels in the container type of the input.

    `columns` are those that `plain_labels` returned.
    """
    values: np.ndarray = labels
    if columns is not None:
        values = (labels[:, None] == columns).astype(np.asarray(given).dtype)
    if isinstance(given, list):
        return values.tolist()
    if type(given).__module__.partition(".")[0] == "pandas":
        import pandas as pd

        if given.ndim == 1:
            return pd.Series(values, name=given.name, dtype=given.dtype)
        return pd.DataFrame(values, columns=given.columns)
    return values


def sampler_tags(tags: Any) -> Any:
    """Add imbalanced-learn's tags of a sampler to scikit-learn's tags."""
    # Defined here, since scikit-learn's classes of tags are imported late and have no further fields.
    from dataclasses import dataclass, field, fields

    from sklearn.utils import InputTags, Tags

    @dataclass
    class SamplerTags:
        sample_indices: bool = False

    @dataclass
    class SamplerInputTags(InputTags):  # type: ignore[misc]
        dataframe: bool = True

    @dataclass
    class TagsOfSampler(Tags):  # type: ignore[misc]
        sampler_tags: SamplerTags = field(default_factory=SamplerTags)

    values = {each.name: getattr(tags, each.name) for each in fields(tags)}
    inputs = {each.name: getattr(tags.input_tags, each.name) for each in fields(tags.input_tags)}
    return TagsOfSampler(**{**values, "estimator_type": "sampler", "input_tags": SamplerInputTags(**inputs)})
