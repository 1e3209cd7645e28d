"""1-norm SVM: a linear program, solved by HiGHS in its dual form.

The problem is ``min C e'y + ||u||_1`` over coefficients u, offset b and slacks ``y >= 0`` with
``s_i (K_i u + b) + y_i >= 1``, for columns K (n, k) and signs s. Its dual ``max e'a`` subject to
``|K'(s a)| <= 1``, ``s'a = 0`` and ``0 <= a <= C`` has one row for each column of K in place of one for each training
row, so that a basis is small, and C and the training rows only enter as bounds: a basis stays dual feasible when they
change, and the dual simplex method goes on from it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

try:
    import highspy
except ImportError:
    raise ImportError("linear programs need the package highspy: run `pip install highspy`") from None

from privsvm.errors import PrivSVMError

_TOLERANCE = 1e-10
# Columns whose sizes differ by at most this factor are not scaled.
_EVEN_COLUMNS = 1e-3
# Limit of the iterations of later attempts, as a multiple of the first one's.
_MOST_ITERATIONS = 50
# The last attempts are in units of C.
_SCALED_ATTEMPTS = 2


@dataclasses.dataclass(frozen=True)
class OneNormSolution:
    """A solution of the linear program.

    The decision value of a row of k columns is ``K_i u + b``, with u (k,) in `coef`, exactly 0 outside the basis.
    `slack` is ``e'y``, and the objective ``C e'y + ||u||_1``; it exceeds the dual objective, and the optimum at most,
    by `gap`. `n_iter` counts simplex iterations.
    """

    coef: np.ndarray
    intercept: float
    slack: float
    objective: float
    gap: float
    n_iter: int


class OneNormProblem:
    """Linear programs of one finite set of columns (n, k), each warm-started from the last.

    Columns are features or kernel values, and signs +1 or -1. `tolerance` says how far bounds may be missed, in units
    in which the largest column is 1. A larger one can save most of the time where C is large and columns nearly depend
    on each other. The linear program may have many solutions; the solves before decide which of them is found. The
    objective does not depend on them.
    """

    def __init__(self, K, signs: np.ndarray, tolerance: float = _TOLERANCE):
        self._K = scipy.sparse.csr_array(K) if scipy.sparse.issparse(K) else np.ascontiguousarray(K, dtype=np.float64)
        self._signs = np.asarray(signs, dtype=np.float64)
        self._tolerance = tolerance
        self._limit = 1.0
        self._gain_ratio = self._until = 0.0
        self._highs = self._open()

    def solve(self, C: float, rows: np.ndarray | None = None) -> OneNormSolution:
        """Solve for one C, the weight of a row's slack (the paper's nu), on the rows of a mask; None for all.

        Raises PrivSVMError if HiGHS does not reach the optimum.
        """
        k = self._K.shape[1]
        self._run(C, rows)
        result, limit = self._highs.getSolution(), self._limit
        duals = np.array(result.row_dual)
        coef, intercept = duals[:k] / self._unit, float(duals[k])
        dual_objective = float(np.sum(result.col_value)) / (limit * self._unit)
        margins = self._signs * (self._K @ coef + intercept)
        margins = margins if rows is None else margins[rows]
        slack, norm, smallest = float(np.maximum(1.0 - margins, 0.0).sum()), float(np.abs(coef).sum()), margins.min()
        if smallest > 0 and norm / smallest <= C * slack + norm:
            # The rows are separable up to round-off, which a large C would amplify.
            coef, intercept, slack, norm = coef / smallest, intercept / smallest, 0.0, norm / smallest
        objective = C * slack + norm
        if norm == 0.0:
            # Ratio of the gain of the columns at this C to the cost of a coefficient: the dual variables and C may grow
            # until it is 1.
            self._gain_ratio = float(np.abs(result.row_value).max()) / limit
        n_iter = int(self._highs.getInfo().simplex_iteration_count)
        return OneNormSolution(coef, intercept, slack, objective, objective - dual_objective, n_iter)

    def path(self, Cs: Sequence[float], rows: np.ndarray | None = None) -> list[OneNormSolution]:
        """Solve for a grid of C, from the smallest up; return the solutions in the given order.

        The optimum is a concave function of C and, at a fixed solution, the objective a linear one. So a solution that
        is optimal at two values of C is optimal between them, and is not computed again: ``u = 0`` as far as scaled
        dual variables prove it, one without slack for every larger C, and one whose basis is also optimal at the
        largest C.
        """
        grid = sorted(set(map(float, Cs)))
        solutions: dict[float, OneNormSolution] = {}
        last: OneNormSolution | None = None
        for position, C in enumerate(grid):
            if C in solutions:
                last = solutions[C]
            elif last is not None and self._until >= C:
                solutions[C] = last = _elsewhere(last, C, last.gap * (C / grid[position - 1] if last.slack else 1.0))
            else:
                solutions[C] = last = self.solve(C, rows)
                if position and not last.n_iter and len(grid) > position + 2:
                    end = self.solve(grid[-1], rows)
                    solutions[grid[-1]] = end
                    if not end.n_iter:
                        gap = max(last.gap, end.gap)
                        solutions |= {between: _elsewhere(last, between, gap) for between in grid[position + 1 : -1]}
                self._until = self._last_certified(C, last)
        return [solutions[float(C)] for C in Cs]

    def _last_certified(self, C: float, solution: OneNormSolution) -> float:
        """Return the largest C at which this solution is certainly optimal."""
        if not solution.coef.any():
            return C / max(self._gain_ratio, 1e-300)
        return math.inf if solution.slack == 0.0 else C

    def _set_bounds(self, C: float, limit: float, rows: np.ndarray | None) -> None:
        """Bound the dual variables of the rows by C, in units in which a column's dual row is bounded by `limit`."""
        n, k = self._K.shape
        upper = np.full(n, C * self._unit * limit)
        if rows is not None:
            upper[~rows] = 0.0
        self._highs.changeColsBounds(n, np.arange(n, dtype=np.int32), np.zeros(n), upper)
        for row in range(k if limit != self._limit else 0):
            self._highs.changeRowBounds(row, -limit, limit)
        self._limit = limit

    def _run(self, C: float, rows: np.ndarray | None) -> None:
        """Find an optimal basis: by warm start, from scratch, with all of HiGHS, or in units of C."""
        # Scaling: the largest column becomes 1, and then the larger of the two bounds is not small compared with the
        # solver's tolerance.
        box = C * self._unit
        self._set_bounds(C, max(1.0, 1.0 / box), rows)
        steps = {"simplex_iteration_limit": _MOST_ITERATIONS * self._options["simplex_iteration_limit"]}
        attempts: tuple[dict[str, Any], ...] = (
            {},
            _tolerances(1e-9),
            {**_tolerances(1e-7), **steps},
            {"presolve": "choose", "simplex_scale_strategy": 2},
            {"solver": "ipm"},
            # Tolerances are absolute: round-off of dual variables of size C may exceed them, and then every method
            # above ends as "Unknown". In units of C it does not.
            {**self._options, **_tolerances(1e-8), **steps},
            _tolerances(1e-7),
        )
        for number, changes in enumerate(attempts):
            if number == len(attempts) - _SCALED_ATTEMPTS:
                self._set_bounds(C, 1.0 / box, rows)
            _set_options(self._highs, changes)
            if number:
                self._highs.clearSolver()
            self._highs.run()
            status = self._highs.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                break
        if number:
            _set_options(self._highs, self._options)
        if status != highspy.HighsModelStatus.kOptimal:
            self._highs.clearSolver()
            raise PrivSVMError(
                f"C={C:g}: the linear program is out of HiGHS's reach, which ends with "
                f"{self._highs.modelStatusToString(status)!r}; give a smaller C, or scale the features"
            )

    def _open(self) -> highspy.Highs:
        """Hand the program to HiGHS, for C = 1."""
        n, k = self._K.shape
        sizes = np.abs(self._K).max(axis=0)
        sizes = sizes.toarray().ravel() if scipy.sparse.issparse(sizes) else sizes
        self._unit = float(sizes.max(initial=0.0)) or 1.0
        # A column of the dual program is a row of K with its sign, followed by that sign.
        if scipy.sparse.issparse(self._K):
            signed = scipy.sparse.csr_array(self._K / self._unit).multiply(self._signs[:, None])
            columns = scipy.sparse.hstack([signed, self._signs[:, None]]).tocsr()
            starts, indices, values = columns.indptr, columns.indices, columns.data
        else:
            starts = np.arange(n + 1) * (k + 1)
            indices = np.tile(np.arange(k + 1), n)
            values = np.column_stack([self._K * (self._signs / self._unit)[:, None], self._signs]).ravel()
        highs = highspy.Highs()
        even = sizes[sizes > 0].min(initial=self._unit) >= _EVEN_COLUMNS * self._unit
        self._options = {
            "output_flag": False,
            "threads": 1,
            "solver": "simplex",
            # Presolve is off: it does not pass on a basis, and takes longer than it saves for these dense programs.
            "presolve": "off",
            "simplex_scale_strategy": 0 if even else 2,
            "primal_feasibility_tolerance": self._tolerance,
            "dual_feasibility_tolerance": self._tolerance,
            "small_matrix_value": 1e-12,
            # Collinear columns with a large C: bounds this exact can be out of reach.
            "simplex_iteration_limit": 2 * (n + k),
        }
        _set_options(highs, self._options)
        sign_column = np.append(np.ones(k), 0.0)
        # Arrays instead of a HighsLp, which would copy them number by number.
        status = highs.passModel(
            n,
            k + 1,
            values.size,
            int(highspy.MatrixFormat.kColwise),
            int(highspy.ObjSense.kMaximize),
            0.0,
            np.ones(n),
            np.zeros(n),
            np.ones(n),
            -sign_column,
            sign_column,
            starts.astype(np.int32),
            indices.astype(np.int32),
            values,
            np.zeros(n, dtype=np.int32),
        )
        if status == highspy.HighsStatus.kError:
            raise RuntimeError("HiGHS refuses the linear program: are all columns finite?")
        return highs


def _elsewhere(solution: OneNormSolution, C: float, gap: float) -> OneNormSolution:
    """Return the same solution for another C."""
    objective = C * solution.slack + float(np.abs(solution.coef).sum())
    return dataclasses.replace(solution, objective=objective, gap=gap, n_iter=0)


def _tolerances(tolerance: float) -> dict[str, Any]:
    return {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}


def _set_options(highs: highspy.Highs, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise RuntimeError(f"HiGHS refuses {name}={value!r}")
