"""A budget for several fits on the same rows: composed by one accountant, refused where it would be exceeded.

A fit tells its guarantee to the budget of its process, which is a file that processes share under a lock. A search of
scikit-learn fits many models on the same rows without a word: outside a budget it is refused.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

from privsvm.digests import canonical_json
from privsvm.privacy.gate import Stored, compose
from privsvm.privacy.guarantee import Guarantee

__all__ = ["Budget", "BudgetExceededError", "check_search", "refuse_in_budget", "spend"]

_VARIABLE = "PRIVSVM_BUDGET"
_LONGEST_WAIT = 60.0


class BudgetExceededError(ValueError):
    """A fit that would cost more than is left; its model was not kept."""


class Budget:
    """What all fits of private models inside a ``with`` block may cost together.

    Clones and the fits of scikit-learn's searches count, and so do fits in processes that are started inside the block;
    joblib's are started anew.

    Parameters
    ----------
    epsilon, delta : float
        Of all fits together.
    verbose : bool, default=True
        Whether the total is printed at the end.

    Attributes
    ----------
    spent : Guarantee or None
        The guarantee of all fits so far together; None before the first.

    Raises
    ------
    BudgetExceededError
        By the fit that would exceed it.

    Examples
    --------
    >>> from privsvm import Budget, PrivateSVMClassifier
    >>> with Budget(epsilon=2.0, delta=1e-5, verbose=False) as budget:
    ...     for C in (0.01, 0.1):
    ...         model = PrivateSVMClassifier(epsilon=1.0, C=C, classes=[0, 1]).fit([[-1.0], [1.0]] * 50, [0, 1] * 50)
    >>> round(budget.spent.epsilon_proved, 2)
    1.47
    """

    def __init__(self, epsilon: float, delta: float, verbose: bool = True) -> None:
        if not epsilon > 0 or not 0 <= delta < 1:
            raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}: epsilon must be positive, and delta from 0 to 1")
        self.epsilon, self.delta, self.verbose = float(epsilon), float(delta), verbose
        self.spent: Guarantee | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        if _VARIABLE in os.environ:
            raise ValueError("a Budget is open already: fits cannot count for two; leave it first")
        # Readable for its owner alone, as temporary folders are.
        self._folder = tempfile.TemporaryDirectory(prefix="privsvm-budget-")
        file = Path(self._folder.name) / "fits.jsonl"
        file.write_text(canonical_json({"epsilon": self.epsilon, "delta": self.delta}) + "\n", encoding="utf-8")
        os.environ[_VARIABLE] = str(file)
        _restart_workers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        file = Path(os.environ.pop(_VARIABLE))
        _restart_workers()
        assert self._folder is not None
        _, fits = _read(file)
        self.spent = compose(fits, self.delta) if fits else None
        self._folder.cleanup()
        if self.verbose:
            total = 0.0 if self.spent is None else self.spent.epsilon_proved
            print(f"{len(fits)} fits: epsilon {total:.4g} of {self.epsilon:g} at delta {self.delta:g}")


def _restart_workers() -> None:
    """Stop joblib's idle processes: they have the environment of their start, and would not know of the budget."""
    loky = sys.modules.get("joblib.externals.loky")
    if loky is not None and getattr(loky.reusable_executor, "_executor", None) is not None:
        loky.get_reusable_executor().shutdown(wait=True)


def _read(file: Path) -> tuple[dict[str, float], list[Guarantee]]:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[Guarantee, Stored()])
    first, *lines = file.read_text(encoding="utf-8").splitlines()
    return json.loads(first), [adapter.validate_json(line) for line in lines]


def refuse_in_budget(reason: str | None) -> None:
    """Raise BudgetExceededError, with the reason, for a model of which nothing is proved, if a budget is open."""
    if _VARIABLE in os.environ:
        raise BudgetExceededError(f"a budget takes proved models alone, and this one is not: {reason}")


def spend(guarantee: Guarantee) -> None:
    """Count a fit for the budget that is open, if there is one.

    Parameters
    ----------
    guarantee : Guarantee
        Of the model.

    Raises
    ------
    BudgetExceededError
        If all fits together would cost more, or nothing is proved of this one.
    """
    if _VARIABLE not in os.environ:
        return
    if guarantee.status != "proved":
        refuse_in_budget(guarantee.reason)
    import filelock

    file = Path(os.environ[_VARIABLE])
    with filelock.FileLock(f"{file}.lock", timeout=_LONGEST_WAIT):
        limit, fits = _read(file)
        epsilon = compose([*fits, guarantee], limit["delta"]).epsilon_proved
        if epsilon > limit["epsilon"] * (1.0 + 1e-9):
            raise BudgetExceededError(
                f"{len(fits) + 1} fits would cost epsilon {epsilon:.4g} at delta {limit['delta']:g}, above the budget "
                f"of {limit['epsilon']:g}: lower the epsilon of each, or fit less often"
            )
        with open(file, "a", encoding="utf-8") as handle:
            handle.write(canonical_json(guarantee) + "\n")


# What of scikit-learn fits an estimator several times, or on rows that it chose.
_SEVERAL = tuple(
    f"sklearn.{name}."
    for name in (
        "calibration", "ensemble", "feature_selection", "model_selection", "multiclass", "multioutput",
        "semi_supervised",
    )
)  # fmt: skip


def check_search(allow_composition: bool) -> None:
    """Refuse a fit inside a search, cross-validation or ensemble of scikit-learn, unless it is counted or agreed to.

    Parameters
    ----------
    allow_composition : bool
        The parameter of the estimator.

    Raises
    ------
    ValueError
        If neither is the case; and in a budget for bootstrapped rows, which may be in one fit several times.
    """
    counted = _VARIABLE in os.environ
    if allow_composition and not counted:
        return
    frame = sys._getframe(1)
    while frame is not None:
        module = f"{frame.f_globals.get('__name__', '')}."
        if counted and module == "sklearn.ensemble._bagging." and frame.f_locals.get("bootstrap", False):
            raise ValueError(
                "bootstrap=True: a row may be drawn several times for one fit, which costs more than a budget counts "
                "for it; use bootstrap=False"
            )
        if not counted and module.startswith(_SEVERAL):
            raise ValueError(
                "allow_composition=False: a search, cross-validation or ensemble fits many private models on the same "
                "rows, and their budgets add up; put it into `with privsvm.Budget(epsilon=..., delta=...)`, which "
                "counts them, or set allow_composition=True"
            )
        frame = frame.f_back  # type: ignore[assignment]
