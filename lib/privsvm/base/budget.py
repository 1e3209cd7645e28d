"""A budget for several fits on the same rows: composed by one accountant, refused where it would be exceeded.

A fit adds its guarantee to the file of the budget that is open where it begins: before it draws noise, and for good,
since an error after a draw would be an answer too. The environment variable PRIVSVM_BUDGET names that file, so that
processes started inside the block inherit it. A meta-estimator of scikit-learn fits clones: a budget refuses these,
since it knows nothing of what else is read from the rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, NoReturn, Self

from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.files import append_line, fork_safe_lock
from privsvm.privacy.gate import Guarantee, Stored, compose
from privsvm.privacy.statement import describe_relations

_VARIABLE = "PRIVSVM_BUDGET"
_LONGEST_WAIT = 600.0

# Of this thread: who pays for its fit, and the file of the budget that was open when it began.
_fit = threading.local()
# Only one thread may open a budget.
_opening = fork_safe_lock()


class BudgetExceededError(PrivSVMError):
    """A fit that would cost more than is left; it drew no noise."""


class Budget:
    """What all fits of private models inside a ``with`` block may cost together.

    Two things may be fitted inside: private estimators by a call of their own `fit`, alone or as the last step of a
    pipeline, and `privsvm.PrivateSearch`. Other estimators of this library are refused. So are clones that
    `sklearn.base.clone` made, and with them all of scikit-learn's meta-estimators: each reads labels or scores of
    private rows beside its fits. What you compute from private rows by other means, for example `model.score` or an
    estimator of scikit-learn, is not counted: choose on public rows.

    Fits in other threads, in joblib's workers and in processes started inside the block count. Start pools of processes
    of your own inside it: an older worker knows of no budget. A budget may be entered again: spent epsilon stays spent.

    Parameters
    ----------
    epsilon, delta : float
        Of all fits together: under ``replace_one`` as soon as one fit is, else under ``add_remove``.
    verbose : bool, default=True
        Whether the total is printed at the end.

    Attributes
    ----------
    spent : Guarantee or None
        The guarantee of all fits so far together, as of the last time that the block was left; None before the first.

    Raises
    ------
    BudgetExceededError
        By the fit that would exceed it, by one that would draw its noise after the block was left, and by a second one
        with seeded noise, which may be the noise of the first. A fit that draws noise and then fails has been paid for.

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
        self._fits: tuple[Guarantee, ...] = ()
        self._process = 0

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Budget cannot be copied or pickled: each copy could be spent")

    def __enter__(self) -> Self:
        with _opening:
            if _open_file() is not None:
                raise ValueError("a Budget is open already: fits cannot count for two; leave it first")
            if self._process:
                raise ValueError(
                    "what this Budget spent was lost when its block ended: make one of what is surely left"
                )
            # A folder that its owner alone can read.
            file = Path(tempfile.mkdtemp(prefix="privsvm-budget-"), "fits.jsonl")
            limit = canonical_json({"epsilon": self.epsilon, "delta": self.delta})
            file.write_text("\n".join([limit, *map(canonical_json, self._fits)]) + "\n", encoding="utf-8")
            self._process = os.getpid()
            os.environ[_VARIABLE] = str(file)
        _restart_workers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._process:
            # A copy of the process that opened it, by fork; there it is still open.
            return
        file = Path(os.environ.pop(_VARIABLE))
        with _lock(file):
            _, fits = _read(file)
            file.unlink()
        self._fits, self._process = tuple(fits), 0
        shutil.rmtree(file.parent)
        _restart_workers()
        self.spent = compose(fits, self.delta) if fits else None
        if self.verbose:
            total, relations, seeded = 0.0, "", ""
            if self.spent is not None:
                total = self.spent.epsilon_with_system_noise
                known = {relation: account.epsilon for relation, account in self.spent.by_relation().items()}
                relations = f", {describe_relations(known)}"
                seeded = ", with system noise; one was seeded" if self.spent.status == "seeded" else ""
            cost = f"epsilon {total:.4g} of {self.epsilon:g} at delta {self.delta:g}"
            print(f"{len(fits)} fits: {cost}{relations}{seeded}")


def _open_file() -> Path | None:
    """Return the file of the budget that is open for this process."""
    file = os.environ.get(_VARIABLE)
    return Path(file) if file else None


def _restart_workers() -> None:
    """Stop joblib's idle workers: those that it starts next inherit the environment as it is now."""
    if "joblib.externals.loky" in sys.modules:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(reuse=True).shutdown(wait=True)


def _lock(file: Path) -> contextlib.AbstractContextManager[Any]:
    import filelock

    return filelock.FileLock(f"{file}.lock", timeout=_LONGEST_WAIT)


def _read(file: Path) -> tuple[dict[str, float], list[Guarantee]]:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[Guarantee, Stored()])
    first, *lines = file.read_text(encoding="utf-8").splitlines()
    return json.loads(first), [adapter.validate_json(line) for line in lines]


@contextlib.contextmanager
def charge_to(payer: Callable[[Guarantee], None] | None = None) -> Iterator[None]:
    """Let a function pay for the fits inside: it gets each guarantee before any noise is drawn, and may refuse it.

    None makes the block one fit, paid for by the fit around it or by the open budget.
    """
    before = getattr(_fit, "payer", None), getattr(_fit, "file", None)
    if payer is None:
        # A fit amid a run of a search (by a handler of signals, say) is no part of it.
        payer = spend if before[0] in (None, nobody) else before[0]
    _fit.payer, _fit.file = payer, before[1] or _open_file()
    try:
        yield
    finally:
        _fit.payer, _fit.file = before


def nobody(run: Guarantee) -> None:
    """Pay for nothing: for the runs of a search, which has paid for all of them."""


def fit_payer() -> Callable[[Guarantee], None] | None:
    """Return the payer for the model of the fit around this call, to be called before its noise is drawn."""
    payer: Callable[[Guarantee], None] | None = getattr(_fit, "payer", None)
    return payer


def refuse_uncounted(estimator: Any) -> None:
    """Raise BudgetExceededError for training outside `charge_to` if a budget is open: nothing would pay for it."""
    if fit_payer() is None and _open_file() is not None:
        raise BudgetExceededError(
            f"{type(estimator).__name__}: a budget counts `fit` of private estimators and of PrivateSearch, and "
            "nothing else. Leave the budget first, or fit a private estimator such as PrivateLinearClassifier"
        )


def refuse_in_budget(reason: str | None) -> None:
    """Raise BudgetExceededError, with the reason, for a model whose whole cost is not proved, if a budget is open."""
    if _open_file() is not None:
        raise BudgetExceededError(f"a budget takes proved models alone, and this one is not: {reason}")


def spend(guarantee: Guarantee) -> None:
    """Count a fit for the budget that was open when it began or is open now, if there is one.

    Raises BudgetExceededError if all fits together would cost more or have no total, nothing is proved of this one, or
    nobody counts it any more.
    """
    file = getattr(_fit, "file", None) or _open_file()
    if file is None:
        return
    if not guarantee.theorem_holds:
        refuse_in_budget(guarantee.reason)
    exceeded = BudgetExceededError(
        "the budget was left before this fit was counted: wait for the fits inside it, and start worker processes anew "
        "outside"
    )
    if not file.exists():
        raise exceeded
    with _lock(file):
        try:
            limit, fits = _read(file)
        except FileNotFoundError:
            raise exceeded from None
        if guarantee.randomness == "seeded" and any(fit.randomness == "seeded" for fit in fits):
            raise BudgetExceededError(
                "random_state is set for two fits: the noise of both may be the same, and then they cost more than is "
                "counted; use random_state=None"
            )
        # A seeded fit is counted as one with system noise, and the total says seeded.
        try:
            total = compose([*fits, guarantee], limit["delta"])
        except ValueError as error:
            raise BudgetExceededError(f"this fit and those before it have no total: {error}") from None
        if not total.theorem_holds:
            refuse_in_budget(total.reason)
        epsilon = total.epsilon_with_system_noise
        if epsilon > limit["epsilon"] * (1.0 + 1e-9):
            raise BudgetExceededError(
                f"{len(fits) + 1} fits would cost epsilon {epsilon:.4g} at delta {limit['delta']:g} under "
                f"{total.neighbours}, above the budget of {limit['epsilon']:g}: lower the epsilon of each, or fit less "
                "often"
            )
        append_line(file, canonical_json(guarantee))


def refuse_clone(estimator: Any) -> None:
    """Refuse to fit a clone if a budget is open: it would count the fit, and not the caller's use of it.

    Raises BudgetExceededError where `sklearn.base.clone` made the estimator, as scikit-learn's meta-estimators do.
    """
    if _open_file() is not None:
        raise BudgetExceededError(
            f"{type(estimator).__name__}: sklearn.base.clone made this estimator, and a budget takes none of these. "
            "Searches, calibration, thresholds, stacking, voting, bagging, feature selection, one-vs-rest and "
            "cross-validation (GridSearchCV, CalibratedClassifierCV, StackingClassifier, RFECV, cross_val_score ...) "
            "fit clones, and read labels or scores of private rows beside them. Choose parameters by "
            "privsvm.PrivateSearch or on a public validation set; fit estimators that you made by their class"
        )
