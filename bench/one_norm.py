"""Time the path of the 1-norm SVM over 15 values of C against solving each of them from the start, on one thread.

"Cold" solves our dual form for every C without a warm start. "HiGHS" solves the form of the papers by HiGHS with its
defaults, "linprog" the same by SciPy. All reach the same optima.
"""

from __future__ import annotations

import highspy
import numpy as np
from crammer_singer import REPETITIONS, paper_rows, seconds
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from privsvm.errors import PrivSVMError
from privsvm.numerics.rows.rows import squared_distances
from privsvm.solvers.linear.one_norm_svm import OneNormProblem

GRID = [10.0**exponent for exponent in range(-7, 8)]
SETS = {"breast_cancer (WDBC)": None, "german_uci": "german_uci", "ionosphere_uci": "ionosphere_uci"}


def columns_of(X: np.ndarray) -> dict[str, np.ndarray]:
    """Compute random kernels of a tenth of the rows, as PPSVM publishes them."""
    X = X[:, X.std(axis=0) > 0]
    X, rng = scale(X), np.random.default_rng(0)
    B = rng.standard_normal((X.shape[0] // 10, X.shape[1]))
    return {"linear": X @ B.T, "gaussian": np.exp(-0.3 / X.shape[1] * squared_distances(X, B))}


def printed_program(K: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return matrix and costs of ``D(Ku - e gamma) + y >= e``, u = p - q."""
    signed = K * signs[:, None]
    matrix = np.hstack([signed, -signed, -signs[:, None], np.eye(len(signs))])
    return matrix, np.append(np.ones(2 * K.shape[1]), 0.0)


def by_linprog(K: np.ndarray, signs: np.ndarray) -> list[float]:
    """Return optima by SciPy, one call for each C."""
    matrix, costs = printed_program(K, signs)
    n = len(signs)
    bounds = [(0, None)] * (2 * K.shape[1]) + [(None, None)] + [(0, None)] * n
    return [linprog(np.append(costs, np.full(n, C)), A_ub=-matrix, b_ub=-np.ones(n), bounds=bounds).fun for C in GRID]


def by_highs(K: np.ndarray, signs: np.ndarray) -> list[float]:
    """Return optima by HiGHS with its defaults, one model for each C."""
    matrix, costs = printed_program(K, signs)
    n, infinity = len(signs), highspy.kHighsInf
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.row_lower_, program.row_upper_ = np.ones(n), np.full(n, infinity)
    program.col_lower_ = np.append(np.append(np.zeros(costs.size - 1), -infinity), np.zeros(n))
    program.col_upper_ = np.full(matrix.shape[1], infinity)
    rows, columns = np.nonzero(matrix.T)[::-1]
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.searchsorted(columns, np.arange(matrix.shape[1] + 1))
    program.a_matrix_.index_, program.a_matrix_.value_ = rows, matrix[rows, columns]
    optima = []
    for C in GRID:
        program.col_cost_ = np.append(costs, np.full(n, C))
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.passModel(program)
        highs.run()
        optima.append(highs.getObjectiveValue())
    return optima


def compared(label: str, kernel: str, K: np.ndarray, signs: np.ndarray) -> str:
    """Write one line of the table."""
    solvers = {
        "path": lambda: [solution.objective for solution in OneNormProblem(K, signs).path(GRID)],
        "cold": lambda: [OneNormProblem(K, signs).solve(C).objective for C in GRID],
        "highs": lambda: by_highs(K, signs),
        "linprog": lambda: by_linprog(K, signs),
    }
    optima = {name: np.array(run()) for name, run in solvers.items()}
    error = max(float(np.max(np.abs(values / optima["linprog"] - 1))) for values in optima.values())
    path, *others = seconds(*solvers.values())
    ratios = " | ".join(f"{1e3 * other:.0f} | **{other / path:.1f}**" for other in others)
    return f"| {label} | {K.shape[0]} x {K.shape[1]}, {kernel} | {error:.0e} | {1e3 * path:.0f} | {ratios} |"


def one_norm_section() -> list[str]:
    """Write the section on the path of the 1-norm SVM."""
    rows = []
    with threadpool_limits(1):
        for label, name in SETS.items():
            try:
                X, y = load_breast_cancer(return_X_y=True) if name is None else paper_rows(name)
            except PrivSVMError:
                rows.append(f"| {label} | no data | – | – | – | – | – | – | – | – |")
                continue
            for kernel, K in columns_of(X).items():
                rows.append(compared(label, kernel, K, np.where(y == 1, 1.0, -1.0)))
    return [
        "## Path of the 1-norm SVM",
        "",
        f"Processor time in milliseconds on one thread (median of {REPETITIONS} alternating runs; 3 if they take over "
        "0.5 s), for 15 values of C from 1e-7 to 1e7 on random kernels with a tenth of the rows. Path: PrivSVM "
        "warm-starts each C from the last one. Cold: the same without warm starts. HiGHS: the paper's form, with "
        "defaults. linprog: SciPy. The error is the largest relative difference from linprog's optima.",
        "",
        "| data | size, kernel | error | path, ms | cold, ms | ratio | HiGHS, ms | ratio | linprog, ms | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
    ]


if __name__ == "__main__":
    print("\n".join(one_norm_section()))
