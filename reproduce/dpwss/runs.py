"""Training runs of dpwss-2021 by WSS2 and DPWSS on LIBSVM's order of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.stats

from privsvm.solvers.kernel.c_svc import CSVCSolution, SolverOptions
from privsvm.solvers.kernel.kernels import Kernel
from privsvm.solvers.kernel.smo import PairSelection, solve_smo
from privsvm_bench.metrics import Predictions, compute_metrics
from reproduce.engine.context import Context


def _libsvm_order(signs: np.ndarray) -> np.ndarray:
    """Rows of label +1 first, as LIBSVM trains: ties in the working set are decided by position."""
    return np.argsort(-signs, kind="stable")


def _solve(
    X, signs: np.ndarray, parameters: Mapping[str, Any], column: Mapping[str, float] | None, rng
) -> CSVCSolution:
    options = SolverOptions(tol=parameters["tol"], shrinking=bool(parameters["shrinking"]), cache_size=100.0)
    upper, kernel = np.full(signs.size, parameters["C"]), Kernel("linear")
    if column is None:
        return solve_smo(X, signs, upper, kernel, options)
    # Equation 28: the exponential mechanism with sensitivity 1 - sigma.
    sharpness = column["epsilon"] / (2.0 * (1.0 - column["sigma"]))
    return solve_smo(X, signs, upper, kernel, options, PairSelection("dpwss", column["sigma"], sharpness), rng)


def serial_auc(values: np.ndarray, signs: np.ndarray) -> float:
    """Area under the curve by equation 29 to the letter: a row's rank is its serial number, also among ties.

    Tied rows are numbered against the order of the rows, as a descending sort that keeps ties in order does.
    """
    ranks = scipy.stats.rankdata(values[::-1], method="ordinal")[::-1]
    positive = signs > 0
    m, n = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - m * (m + 1) / 2) / (m * n))


def _measure(X, signs: np.ndarray, solution: CSVCSolution, order: np.ndarray) -> dict[str, float]:
    """Metrics on the training rows, named as in the published table; row k stands at `order[k]` of the file."""
    values = X @ (X.T @ (solution.alpha * signs)) - solution.rho
    in_file = np.argsort(order)
    codes = (signs > 0).astype(np.int64)
    result = compute_metrics(Predictions(codes, (values > 0).astype(np.int64)[None], values[None, :, None], 2))
    precision, recall = float(result["precision"][0]), float(result["recall"][0])
    return {
        "AUC": serial_auc(values[in_file], signs[in_file]),
        "accuracy": float(result["accuracy"][0]),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "MCC": float(result["mcc"][0]),
        "objective": solution.objective,
        "iterations": solution.n_iter,
    }


def figure1(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Lines of WSS2 and of several DPWSS runs on two shifted columns of one dataset.

    Parameters: ``source, features`` (two column numbers from 1), ``shift`` (of each class, in opposite directions),
    ``column`` (epsilon and sigma), ``runs, shrinking, C, tol, seed``. Result: ``points, signs, support`` and ``lines``:
    weights, offset, accuracy and iterations; the first is WSS2.
    """
    rows = context.rows(*parameters["source"])
    order = _libsvm_order(rows.signs)
    columns = [feature - 1 for feature in parameters["features"]]
    X = rows.X[order][:, columns]
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    signs = rows.signs[order]
    X = X + signs[:, None] * np.asarray(parameters["shift"])
    lines, support = [], np.zeros(0, dtype=np.int64)
    for run in range(parameters["runs"] + 1):
        rng = context.stream(parameters["seed"], "figure1", run)
        solution = _solve(X, signs, parameters, parameters["column"] if run else None, rng)
        if run == 0:
            support = np.flatnonzero(solution.alpha > 0)
        lines.append(
            {
                "weights": (X.T @ (solution.alpha * signs)).tolist(),
                "offset": -solution.rho,
                "accuracy": _measure(X, signs, solution, order)["accuracy"],
                "iterations": solution.n_iter,
                "objective": solution.objective,
            }
        )
    return {"points": X.tolist(), "signs": signs.tolist(), "support": support.tolist(), "lines": lines}
