"""Released linear models of rows that are scaled by noisy means of them: see `privsvm.base.released`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from privsvm.base.released import LinearPath
from privsvm.errors import PrivSVMError

__all__ = ["SHORTEST", "ColumnLinearPath", "ScaledLinearPath", "bounded_rows"]

# Shorter differences to a mean are as good as none.
SHORTEST = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaledLinearPath(LinearPath):
    """Linear models of rows, or of their random Fourier features, that are centred and divided by their norm.

    Rows are cut to the bounds (d,) and mapped to [-1, 1] first, but for bounds of 0 and 1; without bounds (length 0),
    they are read unchanged. Then `mean` (E, R, d) is subtracted from unit rows, and `feature_mean` (E, R, 2 F) from
    features. A model with F frequencies, `n_frequencies` (E, R), uses the first F of `frequencies` (d, F), which are
    public; one with none reads rows, and not features. Of the weights (E, R, c, D) of a model with fewer features, the
    last ones are 0. Cosines come first.
    """

    kind: ClassVar[str] = "scaled_linear"
    shapes: ClassVar[Mapping[str, str]] = {
        "coef": "E R k D", "intercept": "E R k", "lower": "b", "upper": "b", "mean": "E R d", "n_frequencies": "E R",
        "frequencies": "d F", "feature_mean": "E R 2F",
    }  # fmt: skip

    lower: np.ndarray
    upper: np.ndarray
    mean: np.ndarray
    n_frequencies: np.ndarray
    frequencies: np.ndarray
    feature_mean: np.ndarray

    def check_arrays(self) -> dict[str, int]:
        sizes = super().check_arrays()
        counts = self.n_frequencies
        fits = (counts >= 0) & (counts <= sizes["F"]) & (2 * counts <= sizes["D"])
        fits &= sizes["D"] <= max(self.mean.shape[-1], 2 * sizes["F"])
        if not (fits & self._check_widths(sizes)).all():
            raise PrivSVMError(
                f"model file: arrays of a model of kind {self.kind!r} do not fit each other; get or make it again"
            )
        return sizes

    def _check_widths(self, sizes: Mapping[str, int]) -> np.ndarray:
        """Tell which models read no more features than the arrays have."""
        read = np.where(self.n_frequencies == 0, sizes["d"], 0)
        fits: np.ndarray = (read <= sizes["D"]) & (sizes["b"] in (0, sizes["d"]))
        return fits

    def scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        # Blocks of rows keep the features within about 64 MB.
        widest = max(X.shape[1], self.coef.shape[-1], 1)
        block = max(1, 8_000_000 // widest)
        starts = range(0, max(X.shape[0], 1), block)
        return np.concatenate([self._block_scores(X[start : start + block], epsilon_index) for start in starts], axis=1)

    def _columns(self, epsilon_index: int) -> list[Any]:
        """Return each model's features of the columns."""
        return [None] * self.n_repeats

    def _scaled(self, rows: np.ndarray, columns: Any) -> np.ndarray:
        bounded: np.ndarray = bounded_rows(rows, self.lower, self.upper)
        return bounded

    def _block_scores(self, X: Any, epsilon_index: int) -> np.ndarray:
        from privsvm.numerics.rows.rows import unit_rows
        from privsvm.solvers.features.fourier import fourier_features

        X = X if isinstance(X, np.ndarray) else X.toarray()
        arrays = {name: getattr(self, name)[epsilon_index] for name in ("coef", "intercept", "mean", "feature_mean")}
        counts, columns = self.n_frequencies[epsilon_index], self._columns(epsilon_index)
        rows_by_columns = {each: unit_rows(self._scaled(X, each)) for each in set(columns)}
        if not counts.any() and len(rows_by_columns) == 1:
            (rows,) = rows_by_columns.values()
            width = rows.shape[1]
            return _centred_scores(rows, arrays["mean"][:, :width], arrays["coef"][..., :width], arrays["intercept"])
        model_scores = []
        for model, count in enumerate(counts):
            coef, intercept, mean, feature_mean = (array[model : model + 1] for array in arrays.values())
            rows = rows_by_columns[columns[model]]
            width = rows.shape[1]
            mean = mean[:, :width]
            if count == 0:
                model_scores.append(_centred_scores(rows, mean, coef[..., :width], intercept))
                continue
            features = fourier_features(unit_rows(rows - mean[0]), self.frequencies[:width, :count])
            size = features.shape[1]
            model_scores.append(_centred_scores(features, feature_mean[:, :size], coef[..., :size], intercept))
        return np.concatenate(model_scores)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColumnLinearPath(ScaledLinearPath):
    """Linear models as `ScaledLinearPath`, of features of single columns.

    Bounds (d,) are public; the largest numbers where there are none. `indicators` (d,) are 1 for columns that stay
    unchanged within their bounds, else 0. Constants, weights and numbers of hats (E, R) are of each model's
    `privsvm.solvers.features.columns.Columns`. A model with fewer features than another uses the first ones of each
    array.
    """

    kind: ClassVar[str] = "column_linear"
    shapes: ClassVar[Mapping[str, str]] = {
        **ScaledLinearPath.shapes, "lower": "d", "upper": "d", "mean": "E R w", "frequencies": "w F",
        "indicators": "d", "constant": "E R", "n_hats": "E R", "hat_weight": "E R",
    }  # fmt: skip

    indicators: np.ndarray
    constant: np.ndarray
    n_hats: np.ndarray
    hat_weight: np.ndarray

    def _check_widths(self, sizes: Mapping[str, int]) -> np.ndarray:
        # The product stays within int64.
        fits = (self.n_hats == 0) | ((self.n_hats > 1) & (self.n_hats <= sizes["w"]))
        hats = np.where(fits, self.n_hats, 0) * int((self.indicators == 0.0).sum())
        features = sizes["d"] + (self.constant > 0.0) + hats
        read = np.where(self.n_frequencies == 0, features, 0)
        width: np.ndarray = fits & (features <= sizes["w"]) & (read <= sizes["D"])
        return width

    def _columns(self, epsilon_index: int) -> list[Any]:
        from privsvm.solvers.features.columns import Columns

        names = ("constant", "n_hats", "hat_weight")
        lists = (getattr(self, name)[epsilon_index].tolist() for name in names)
        return [Columns(*each) for each in zip(*lists, strict=True)]

    def _scaled(self, rows: np.ndarray, columns: Any) -> np.ndarray:
        from privsvm.solvers.features.columns import column_features

        features: np.ndarray = column_features(rows, self.lower, self.upper, self.indicators != 0.0, columns)
        return features


def bounded_rows(rows: Any, lower: np.ndarray, upper: np.ndarray) -> Any:
    """Cut rows to bounds and map them to [-1, 1], but for bounds of 0 and 1; without bounds, leave them."""
    from privsvm.solvers.features.columns import Columns, column_features

    indicators = (lower == 0.0) & (upper == 1.0)
    return rows if lower.size == 0 else column_features(rows, lower, upper, indicators, Columns())


def _centred_scores(rows: np.ndarray, mean: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Scores (R, n, c) of rows (n, d) less the mean (R, d) of each model, divided by their norms."""
    n_models, n_scores, n_features = coef.shape
    if n_models < 4:
        # Few models: as written.
        centred = [rows - centre for centre in mean]
        norms = [np.maximum(np.linalg.norm(differences, axis=1), SHORTEST)[:, None] for differences in centred]
        models = zip(centred, norms, coef, intercept, strict=True)
        return np.stack([(differences @ weights.T) / norm + offset for differences, norm, weights, offset in models])
    # One product for all models.
    products = (rows @ coef.reshape(-1, n_features).T).reshape(-1, n_models, n_scores)
    products -= np.einsum("rcd,rd->rc", coef, mean)
    squares = np.einsum("ij,ij->i", rows, rows)[:, None] - 2.0 * rows @ mean.T + np.einsum("rd,rd->r", mean, mean)
    products /= np.maximum(np.sqrt(np.maximum(squares, 0.0)), SHORTEST)[:, :, None]
    return np.ascontiguousarray((products + intercept).transpose(1, 0, 2))
