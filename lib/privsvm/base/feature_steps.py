"""Feature steps of released linear models: each maps rows (n, d) to features (n, D), for prediction and exports alike.

docs/files.md lists the steps and their arrays. These serve all models of a path: those of a model begin at its epsilon
and repeat, and may be wider than its rows, of which only the first numbers count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A kind of steps: sizes of the arrays, where d is the width of rows, and the function of rows and arrays.

    `n_features` is D for a width and arrays, d without it; negative where the arrays do not fit each other. A model
    whose own arrays are zeros leaves out an optional step.
    """

    shapes: Mapping[str, str]
    apply: Callable[..., Any]
    n_features: Callable[..., int] | None = None
    is_optional: bool = False


@dataclasses.dataclass(frozen=True)
class Step:
    """A step with its arrays by name, of all models of a path or of one, which has numbers in place of (E, R)."""

    name: str
    arrays: dict[str, Any] = dataclasses.field(default_factory=dict)

    def of_model(self, epsilon_index: int, repeat: int, width: int) -> Step | None:
        """Cut the arrays to one model and to the width of its rows; None where it leaves out the step."""
        arrays, own = {}, []
        for name, shape in STEPS[self.name].shapes.items():
            array, words = self.arrays[name], shape.split()
            if words[:2] == ["E", "R"]:
                array, words = array[epsilon_index, repeat], words[2:]
                own.append(array)
            cut = array[tuple(slice(width if word == "d" else None) for word in words)]
            arrays[name] = cut if words else cut.item()
        is_zero = not any(array.any() for array in own)
        return None if is_zero and STEPS[self.name].is_optional else Step(self.name, arrays)

    @property
    def key(self) -> Any:
        """Numbers of one model that tell its features from another model's; None where these are vectors."""
        own = [array for name, array in self.arrays.items() if STEPS[self.name].shapes[name].startswith("E R")]
        return None if any(isinstance(array, np.ndarray) for array in own) else tuple(own)

    def n_features(self, width: int) -> int:
        """Return the number D of features of one model, negative where its arrays do not fit each other."""
        count = STEPS[self.name].n_features
        return width if count is None else count(width, **self.arrays)

    def apply(self, rows: Any) -> Any:
        """Compute the features of one model."""
        return STEPS[self.name].apply(rows, **self.arrays)


def _dense(rows: Any) -> Any:
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def _unit(rows: Any) -> Any:
    from privsvm.numerics.rows.rows import unit_rows

    return unit_rows(rows)


def standardise(rows: Any, centre: np.ndarray, spread: np.ndarray, bound: Any) -> Any:
    """Centre features, divide them by their spreads, and cut them at a bound."""
    with np.errstate(over="ignore"):
        return np.clip((_dense(rows) - centre) / spread, -bound, bound)


def _columns(rows: Any, lower: Any, upper: Any, indicators: Any, **columns: Any) -> Any:
    from privsvm.solvers.features.columns import Columns, column_features

    return column_features(_dense(rows), lower, upper, indicators != 0.0, Columns(**columns))


def _n_columns(width: int, lower: Any, upper: Any, indicators: Any, **columns: Any) -> int:
    from privsvm.solvers.features.columns import Columns, n_column_features

    features = Columns(**columns)
    fits = lower.size == width and (features.n_hats == 0 or features.n_hats > 1)
    return n_column_features(indicators != 0.0, features) if fits else -1


def _fourier(rows: Any, frequencies: np.ndarray, count: int, beside: np.ndarray) -> np.ndarray:
    from privsvm.solvers.features.fourier import fourier_features

    features = fourier_features(rows, frequencies[:, :count])
    return np.hstack([_dense(rows), features]) if beside.any() else features


def _n_fourier(width: int, frequencies: np.ndarray, count: int, beside: np.ndarray) -> int:
    return 2 * count + bool(beside.any()) * width if 0 < count <= frequencies.shape[1] else -1


def _random_kernel(rows: Any, random_matrix: np.ndarray, centre: np.ndarray, spread: np.ndarray, gamma: Any) -> Any:
    from privsvm.numerics.rows.rows import squared_distances

    rows = (_dense(rows) - centre) / spread
    return np.exp(-gamma.item() * squared_distances(rows, random_matrix)) if gamma.any() else rows @ random_matrix.T


STEPS: Mapping[str, _Kind] = {
    "unit": _Kind({}, _unit),
    "direction": _Kind({"centre": "E R d"}, lambda rows, centre: _unit(_dense(rows) - centre), is_optional=True),
    "standardise": _Kind({"centre": "E R d", "spread": "E R d", "bound": "1"}, standardise),
    "columns": _Kind(
        {"lower": "d", "upper": "d", "indicators": "d", "constant": "E R", "n_hats": "E R", "hat_weight": "E R"},
        _columns,
        _n_columns,
    ),
    "fourier": _Kind(
        {"frequencies": "d F", "count": "E R", "beside": "1"},
        _fourier,
        _n_fourier,
        is_optional=True,
    ),
    "random_kernel": _Kind(
        {"random_matrix": "n d", "centre": "d", "spread": "d", "gamma": "1"},
        _random_kernel,
        lambda width, random_matrix, **_: len(random_matrix),
    ),
    "power": _Kind({"power": "1"}, lambda rows, power: rows if power == 1.0 else rows ** power.item()),
}
