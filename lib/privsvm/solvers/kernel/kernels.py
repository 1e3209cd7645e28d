"""Kernel matrices: a matrix product by BLAS, then one compiled pass."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privsvm.errors import nearest_name
from privsvm.numerics.compiled.jit import jit, jit_step
from privsvm.numerics.compiled.vector_code import maximum
from privsvm.numerics.compiled.vector_math import FAST_MATH, LOG2_E, exp2
from privsvm.numerics.rows.rows import squared_norms

KERNELS = ("linear", "rbf", "poly", "sigmoid")
LINEAR, RBF, POLY, SIGMOID = range(4)
# Ratio of the squared norm of the rows' mean to their variance above which products of rows lose six digits of 16.
_FAR = 1e6


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel function, with a number for gamma (see `resolve_gamma`).

    ``linear`` is ``x.z``, ``rbf`` ``exp(-gamma |x-z|^2)``, ``poly`` ``(gamma x.z + coef0)^degree``, and ``sigmoid``
    ``tanh(gamma x.z + coef0)``.
    """

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def kind(self) -> int:
        """Position of the name in `KERNELS`, as compiled code takes it.

        ValueError for an unknown name.
        """
        if self.name not in KERNELS:
            raise ValueError(f"kernel={self.name!r}: {nearest_name(self.name, KERNELS)}")
        return KERNELS.index(self.name)

    def formula(self, dtype: Any = np.float64) -> Formula | None:
        """Return the formula for compiled code."""
        kind = self.kind
        return None if kind == RBF else Formula(kind, np.dtype(dtype).type(self.coef0), int(self.degree))


class Formula(NamedTuple):
    """Formula of a kernel's values from scaled products, for any kernel but rbf.

    For rbf it is None, which Numba compiles apart: a first fit by rbf does not compile the other kernels.
    """

    kind: int
    coef0: float
    degree: int


@jit_step(fastmath=FAST_MATH)
def _set_powers(row, result, shifted, coef0, degree):
    """Set ``result = (row + coef0)^degree`` by repeated squaring.

    `shifted` is overwritten.
    """
    for i in range(row.shape[0]):
        shifted[i] = row[i] + coef0
        result[i] = 1
    exponent = degree
    while exponent > 0:
        if exponent & 1:
            for i in range(row.shape[0]):
                result[i] *= shifted[i]
        exponent >>= 1
        if exponent > 0:
            for i in range(row.shape[0]):
                shifted[i] *= shifted[i]


@jit_step(fastmath=FAST_MATH)
def set_other_values(products, out, first_row, first_column, formula):
    """Do `set_kernel_values` for any kernel but rbf; `out` may be `products` itself."""
    kind, coef0, degree = formula
    shifted = np.empty(products.shape[1], out.dtype)
    for t in range(products.shape[0]):
        row, result = products[t], out[first_row + t, first_column : first_column + products.shape[1]]
        if kind == POLY:
            _set_powers(row, result, shifted, coef0, degree)
        elif kind == SIGMOID:
            for i in range(row.shape[0]):
                result[i] = np.tanh(row[i] + coef0)
        else:
            for i in range(row.shape[0]):
                result[i] = row[i]


@jit_step(fastmath=FAST_MATH)
def set_kernel_values(products, out, first_row, first_column, formula, row_norms, other_norms):
    """Write products of scaled rows (n, m) to another array as kernel values.

    For rbf, products and squared norms carry the factor ``gamma log2(e)``, and the products another 2; for poly and
    sigmoid, products carry ``gamma``. `out` may have fewer digits.
    """
    if formula is not None:
        set_other_values(products, out, first_row, first_column, formula)
        return
    value = out.dtype.type
    for t in range(products.shape[0]):
        row, result = products[t], out[first_row + t, first_column : first_column + products.shape[1]]
        norm = row_norms[t]
        for i in range(row.shape[0]):
            # Round-off may leave a tiny negative distance between equal rows.
            result[i] = exp2(-maximum(value(norm + other_norms[i] - row[i]), value(0)))


@jit_step(fastmath=FAST_MATH)
def _turn_into_exponentials(products, row_norms, other_norms):
    for t in range(products.shape[0]):
        row, norm = products[t], row_norms[t]
        for i in range(row.shape[0]):
            row[i] = exp2(-maximum(norm + other_norms[i] - row[i], products.dtype.type(0)))


@jit_step()
def turn_into_values(products, formula, row_norms, other_norms):
    """Do `set_kernel_values` in place, with the same bits.

    A single argument for input and output: two that may alias keep the compiler from vectorising, and take three times
    as long.
    """
    if formula is None:
        _turn_into_exponentials(products, row_norms, other_norms)
    else:
        set_other_values(products, products, 0, 0, formula)


_turn_all_into_values = jit()(turn_into_values)


def resolve_gamma(gamma: float | str, X) -> float:
    """Turn scikit-learn's ``"scale"``, ``1 / (d * variance of X)``, and ``"auto"``, ``1 / d``, into a number.

    Raises ValueError if `gamma` is another word or is negative.
    """
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma != "scale":
            raise ValueError(f"gamma={gamma!r}: {nearest_name(gamma, ('scale', 'auto'))} Or give a positive number")
        variance = float(X.multiply(X).mean() - X.mean() ** 2) if scipy.sparse.issparse(X) else float(np.var(X))
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    number = isinstance(gamma, (int, float, np.integer, np.floating)) and not isinstance(gamma, bool)
    if not (number and gamma >= 0 and np.isfinite(gamma)):
        raise ValueError(f"gamma={gamma!r}: must be a finite number of at least 0, 'scale' or 'auto'")
    return float(gamma)


def far_centre(X) -> np.ndarray | None:
    """Return the mean (d,) of dense rows whose distance from zero costs their products many digits, else None."""
    if scipy.sparse.issparse(X) or X.shape[0] == 0:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        mean: np.ndarray = X.mean(axis=0)
        far = mean @ mean > _FAR * float(np.square(X - mean).mean(axis=0).sum())
    return mean if far and np.isfinite(mean).all() else None


def kernel_matrix(X, Z, kernel: Kernel) -> np.ndarray:
    """Compute the float64 kernel values (n, m) between two sets of rows; raise ValueError for an unknown kernel."""
    kind = kernel.kind
    if kind == RBF and not scipy.sparse.issparse(X) and not scipy.sparse.issparse(Z):
        # A shift leaves distances as they are, and shorter rows lose less to cancellation.
        origin = Z.mean(axis=0)
        X, Z = X - origin, Z - origin
    exponent = float(kernel.gamma) * LOG2_E
    factor = {LINEAR: 1.0, RBF: 2.0 * exponent}.get(kind, float(kernel.gamma))
    products = X @ (factor * Z).T
    if scipy.sparse.issparse(products):
        products = products.toarray()
    products = np.ascontiguousarray(products, dtype=np.float64)
    if kind != LINEAR:
        norms = (exponent * squared_norms(rows) for rows in (X, Z))
        _turn_all_into_values(products, kernel.formula(), *norms)
    return products


def warm_up() -> None:
    """Compile what this module runs."""
    X = np.eye(2)
    for kernel in KERNELS:
        kernel_matrix(X, X, Kernel(kernel))
