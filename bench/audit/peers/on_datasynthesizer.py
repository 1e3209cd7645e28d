"""DataSynthesizer's description of a table, independent attributes at epsilon 1."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from case import Case, release
from DataSynthesizer.DataDescriber import DataDescriber

PACKAGE = "datasynthesizer"
_RNG = np.random.default_rng()


def _describe_column(
    publish: Callable[[dict[str, Any]], Any], own_range: bool = False, own_seed: bool = False
) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Publish a part of the description; types, range and seed are given unless they are left to the package."""

    def describe(X: np.ndarray, y: np.ndarray) -> Any:
        describer = DataDescriber(histogram_bins=4)
        describer.describe_dataset_in_independent_attribute_mode(
            io.StringIO("x\n" + "\n".join(map(str, X[:, 0] if own_range else np.clip(X[:, 0], -1.0, 1.0)))),
            epsilon=1.0,
            attribute_to_datatype={"x": "Float"},
            attribute_to_is_categorical={"x": False},
            attribute_to_is_candidate_key={"x": False},
            **({} if own_range else {"numerical_attribute_ranges": {"x": [-1.0, 1.0]}}),
            **({} if own_seed else {"seed": int(_RNG.integers(2**31))}),
        )
        return publish(describer.data_description["attribute_description"]["x"])

    return describe


def _shares(column: dict[str, Any]) -> list[float]:
    return list(column["distribution_probabilities"])


CASES = [
    Case("shares of a column of given range", release(_describe_column(_shares)), 1500),
    Case(
        "shares with the seed that is the default",
        release(_describe_column(_shares, own_seed=True)),
        600,
        source="its code: seed=0 unless given",
    ),
    Case(
        "range of a column",
        release(_describe_column(lambda column: [column["min"], column["max"]], own_range=True)),
        600,
        source="Stadler, Oprisanu and Troncoso, Synthetic data - anonymisation groundhog day (2022)",
    ),
]
