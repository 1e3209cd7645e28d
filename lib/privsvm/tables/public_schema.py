"""A public schema as a transformer of scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from privsvm.privacy.statement import BROKEN
from privsvm.tables.schema import Schema, parse_schema, read_schema
from privsvm.tables.tables import Encoder, take_columns


class PublicSchema(TransformerMixin, BaseEstimator):
    """Encodes the columns of a table by their declaration; `fit` reads no values.

    Parameters
    ----------
    schema : mapping, Schema or path-like
        The declaration, or the YAML file that holds it; see `privsvm.tables.schema.Schema`.

    Attributes
    ----------
    n_features_in_ : int
        Columns that become features.
    feature_names_in_ : ndarray of str (d,)
        Their names.

    Examples
    --------
    >>> from privsvm import PublicSchema
    >>> schema = PublicSchema({
    ...     "name": "wards", "label": "died", "classes": ["no", "yes"],
    ...     "columns": {"age": {"bounds": [0, 100], "fill": 50}, "ward": {"categories": ["a", "b"]}},
    ... })
    >>> schema.fit_transform({"age": [25, None], "ward": ["b", "c"]}).tolist()
    [[-0.5, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, schema: Mapping[str, Any] | Schema | str | os.PathLike[str]) -> None:
        self.schema = schema

    @property
    def declaration(self) -> Schema:
        """The checked declaration."""
        if isinstance(self.schema, (str, os.PathLike)):
            return read_schema(self.schema)
        return parse_schema(self.schema)

    @property
    def broken_assumption(self) -> str | None:
        """Why nothing is proved of rows that the declaration describes, without looking at them; or None."""
        schema, reasons = self.declaration, []
        if schema.prescaled:
            reasons.append(BROKEN["preparation"]["prescaled"])
        if schema.person is not None:
            reasons.append(
                f"a person has up to {schema.rows_per_person} rows, and epsilon covers one row: `privsvm release` "
                "keeps to so many, and covers persons"
            )
        return "; ".join(reasons) or None

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the declaration; the rows are not looked at."""
        self._encoder = Encoder(self.declaration)
        self.feature_names_in_ = np.array([*self._encoder.schema.features], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoder")

    def transform(self, X: Any) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : data frame, Arrow table or stream, mapping of str to sequence (n), or array-like (n, columns)
            Columns by name, or the schema's in its order. A mapping of single values is one row.

        Returns
        -------
        ndarray (n, d)
            See `privsvm.tables.tables.Encoder.features`.

        Raises
        ------
        PrivSVMError
            Where columns are missing, or there twice; one line names all of them. Where a column has a type of numbers
            that lose one of its categories, such as 007.
        """
        if not hasattr(self, "_encoder"):
            self.fit()
        return self._encoder.features(take_columns(X, self._encoder.schema))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names (d,) of the features."""
        return np.array(Encoder(self.declaration).feature_names, dtype=object)
