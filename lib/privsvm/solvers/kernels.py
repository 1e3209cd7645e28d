"""Kernel matrices: a matrix product by BLAS, then one fused Numba pass."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numba import njit

from privsvm.errors import nearest_name

__all__ = ["KERNELS", "kernel_matrix", "resolve_gamma"]

KERNELS = ("linear", "rbf", "poly", "sigmoid")


@njit(cache=True)
def _rbf_in_place(products, squared_norms_x, squared_norms_z, gamma):
    for i in range(products.shape[0]):
        for j in range(products.shape[1]):
            squared_distance = squared_norms_x[i] + squared_norms_z[j] - 2.0 * products[i, j]
            # Round-off may leave a tiny negative distance between equal rows.
            products[i, j] = np.exp(-gamma * max(squared_distance, 0.0))


@njit(cache=True)
def _poly_in_place(products, gamma, coef0, degree):
    for i in range(products.shape[0]):
        for j in range(products.shape[1]):
            products[i, j] = (gamma * products[i, j] + coef0) ** degree


@njit(cache=True)
def _sigmoid_in_place(products, gamma, coef0):
    for i in range(products.shape[0]):
        for j in range(products.shape[1]):
            products[i, j] = np.tanh(gamma * products[i, j] + coef0)


def _squared_norms(X) -> np.ndarray:
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def resolve_gamma(gamma: float | str, X) -> float:
    """Turn scikit-learn's ``"scale"`` and ``"auto"`` into a number.

    Parameters
    ----------
    gamma : float, "scale" or "auto"
        ``"scale"`` is ``1 / (d * variance of X)``, ``"auto"`` is ``1 / d``.
    X : ndarray or sparse matrix (n, d)
        Training rows.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `gamma` is another word or is not positive.
    """
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma != "scale":
            raise ValueError(f"gamma={gamma!r}: {nearest_name(gamma, ('scale', 'auto'))} Or give a positive number")
        variance = float(X.multiply(X).mean() - X.mean() ** 2) if scipy.sparse.issparse(X) else float(np.var(X))
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if not (gamma > 0 and np.isfinite(gamma)):
        raise ValueError(f"gamma={gamma!r}: must be positive and finite")
    return float(gamma)


def kernel_matrix(X, Z, kernel: str, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> np.ndarray:
    """Kernel values between two sets of rows.

    Parameters
    ----------
    X : ndarray or CSR matrix (n, d)
        Rows.
    Z : ndarray or CSR matrix (m, d)
        Rows.
    kernel : {"linear", "rbf", "poly", "sigmoid"}
        ``x.z``, ``exp(-gamma |x-z|^2)``, ``(gamma x.z + coef0)^degree``, ``tanh(gamma x.z + coef0)``.
    gamma, degree, coef0 : float, int, float
        Kernel parameters.

    Returns
    -------
    ndarray (n, m) of float64

    Raises
    ------
    ValueError
        If the kernel is unknown.
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel={kernel!r}: {nearest_name(kernel, KERNELS)}")
    products = X @ Z.T
    if scipy.sparse.issparse(products):
        products = products.toarray()
    products = np.ascontiguousarray(products, dtype=np.float64)
    if kernel == "rbf":
        _rbf_in_place(products, _squared_norms(X), _squared_norms(Z), float(gamma))
    elif kernel == "poly":
        _poly_in_place(products, float(gamma), float(coef0), int(degree))
    elif kernel == "sigmoid":
        _sigmoid_in_place(products, float(gamma), float(coef0))
    return products


def warm_up() -> None:
    """Compile the kernels."""
    X = np.eye(2)
    for kernel in KERNELS:
        kernel_matrix(X, X, kernel)
