"""Audits of private estimators with scikit-learn's interface: `privsvm.audit`."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privsvm.auditing.cells import CellBound, Draw, audit_cell, best_pair
from privsvm.auditing.neighbours import Pair, make_pairs, pairs_around
from privsvm.privacy.events import Neighbours

# Releases of a pair that the search looks at, as a share of all draws; and at least so many.
_SEARCH_SHARE, _SEARCH_LEAST = 0.01, 12

# Attributes of fitted estimators that are counters and times, no releases.
_NO_RELEASE = (
    "n_iter_",
    "n_features_in_",
    "classes_",
    "feature_names_in_",
    "fit_status_",
    "shape_fit_",
    "class_weight_",
)

_BAR = 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit:
    """Findings of an audit of an estimator that states `epsilon` and `delta` for a relation of neighbours.

    `pair` holds the two datasets that were told apart best, and `draws` counts all trainings without the search.
    `bounds` are lower bounds on epsilon; `refuted` says whether one with very high confidence is above the stated
    epsilon, and one from fresh trainings too.
    """

    epsilon: float
    delta: float
    relation: Neighbours
    pair: Pair
    draws: int
    bounds: tuple[CellBound, ...]
    refuted: bool

    @property
    def lower_bound(self) -> float:
        """Largest epsilon that the estimator does not keep below, with 95 % confidence."""
        return max(bound.epsilon for bound in self.bounds)

    def __str__(self) -> str:
        """Draw the bounds as bars of characters, beside the stated epsilon."""
        finite = [bound.epsilon for bound in self.bounds if bound.epsilon < math.inf]
        longest = max([self.epsilon, *finite]) or 1.0

        def bar(value: float, mark: str) -> str:
            return mark * (_BAR if value == math.inf else round(_BAR * value / longest))

        word = "REFUTED" if self.refuted else "not refuted"
        lines = [f"{word}: {self.relation}, delta {self.delta:g}, {self.draws} draws"]
        lines.append(f"{'stated':10s} {self.epsilon:8.4g} |{bar(self.epsilon, '=')}")
        lines += [
            f"{bound.kind:10s} {bound.epsilon:8.4g} |{bar(bound.epsilon, '#')} "
            f"(can show {bound.ceiling:.3g} of {self.epsilon:g})"
            for bound in self.bounds
        ]
        return "\n".join([*lines, f"pair: {self.pair.words}"])

    def _repr_html_(self) -> str:
        """Draw the same for notebooks."""
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def plot(self) -> Any:
        """Draw bounds and ceilings as bars beside the stated epsilon, and return matplotlib's axes."""
        from matplotlib.figure import Figure

        axes, kinds = Figure().subplots(), [bound.kind for bound in self.bounds]
        places, end = np.arange(len(kinds)), 2.0 * max([self.epsilon, *(bound.ceiling for bound in self.bounds)])
        axes.bar(places - 0.2, [min(bound.epsilon, end) for bound in self.bounds], 0.4, label="at least, 95 %")
        axes.bar(places + 0.2, [bound.ceiling for bound in self.bounds], 0.4, label="most that the draws can show")
        axes.axhline(self.epsilon, linestyle="--", color="black", label="stated")
        axes.set_xticks(places, kinds)
        axes.set(ylabel=f"epsilon (bars end at {end:g})", title=self.pair.words)
        axes.legend()
        return axes


def _numbers(value: Any) -> np.ndarray | None:
    """Read an attribute as numbers; None if it holds none."""
    try:
        array = np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array.ravel()


def _lay_out_release(estimator: Any, probes: np.ndarray) -> np.ndarray:
    """Lay out the release of a fitted estimator: public attributes that are numbers, and answers for given rows."""
    arrays = []
    for name in sorted(vars(estimator)):
        if name.startswith("_") or not name.endswith("_") or name in _NO_RELEASE:
            continue
        numbers = _numbers(getattr(estimator, name))
        if numbers is not None and numbers.size:
            # Arrays whose size depends on the data are summarised by size and sums.
            arrays.append(np.array([numbers.size, numbers.sum(), np.abs(numbers).sum()]))
            if numbers.size <= 64:
                arrays.append(np.concatenate([numbers, np.zeros(64 - numbers.size)]))
    for answer in ("decision_function", "predict_proba", "predict_log_proba"):
        method = getattr(estimator, answer, None)
        if method is not None:
            numbers = _numbers(method(probes))
            if numbers is not None:
                arrays.append(numbers)
                break
    else:
        numbers = _numbers(estimator.predict(probes))
        if numbers is not None:
            arrays.append(numbers)
    return np.nan_to_num(np.concatenate(arrays), nan=0.0, posinf=1e300, neginf=-1e300)


def _fit_pair(make: Callable[[], Any], pair: Pair, probes: np.ndarray) -> Draw:
    def draw(dataset: int, n: int, stream: str) -> np.ndarray:
        del stream  # The estimator's own noise is fresh for every training.
        X, y = (pair.first, pair.second)[dataset]
        rows = [_lay_out_release(make().fit(X.copy(), y.copy()), probes) for _ in range(n)]
        longest = max((row.size for row in rows), default=0)
        return np.array([np.concatenate([row, np.zeros(longest - row.size)]) for row in rows])

    return draw


def _copies(estimator: Any) -> Callable[[], Any]:
    """Return what makes a fresh estimator: a factory or a class as it is, or copies of an estimator."""
    if hasattr(estimator, "fit") and not isinstance(estimator, type):
        # Clones of private estimators prove nothing, see `privsvm.base.estimators.CloneAware`.
        return lambda: copy.deepcopy(estimator)
    if not callable(estimator):
        raise ValueError(f"estimator={estimator!r}: must have fit, or be a callable that returns an estimator")
    made: Callable[[], Any] = estimator
    return made


def audit(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    relation: Neighbours = "replace_one",
    draws: int = 2000,
    gaussian: bool = False,
    bound: float = 1.0,
    pairs: Sequence[Pair] = (),
    seed: int = 0,
) -> Audit:
    """Bound the epsilon of a private estimator from below, by training it again and again on two neighbouring datasets.

    Parameters
    ----------
    estimator : estimator or callable
        With ``fit``, and public attributes or ``decision_function``, ``predict_proba`` or ``predict``. A callable
        returns a fresh one for each training; an estimator is cloned.
    X : array-like (n, d) or None, default=None
        Rows around which neighbours are searched; None makes up a few.
    y : array-like (n,) or None, default=None
        Their labels.
    epsilon : float or None, default=None
        The stated epsilon; None reads the parameter ``epsilon``.
    delta : float or None, default=None
        Goes with epsilon; None reads the parameter ``delta``, and is 0 without one.
    relation : {"replace_one", "add_remove"}, default="replace_one"
        The relation of the statement: one row replaced, or one there or not.
    draws : int, default=2000
        Trainings that are told apart, half of them on either dataset; the search takes some more.
    gaussian : bool, default=False
        Whether Gaussian noise is all that makes the release private: its trade-off curve is then assumed, and bounds
        are larger.
    bound : float, default=1.0
        How long a row may be that the estimator promises to protect, for made-up ones.
    pairs : sequence of Pair, default=()
        Pairs of your own to try besides those around `X`, or in the place of made-up ones.
    seed : int, default=0
        Of the search.

    Returns
    -------
    Audit
        With a text picture; ``plot()`` draws it.

    Raises
    ------
    ValueError
        For parameters out of range, or an epsilon that nobody states.

    Examples
    --------
    >>> from privsvm import OvRJointGaussianClassifier, audit
    >>> found = audit(OvRJointGaussianClassifier(classes=[0, 1]), draws=200)
    >>> found.refuted, found.delta
    (False, 1e-05)
    """
    make = _copies(estimator)
    if draws < 40:
        raise ValueError(f"draws={draws!r}: must be at least 40")
    asked = make()
    stated = getattr(asked, "epsilon", None) if epsilon is None else epsilon
    if stated is None or not 0 < float(stated) < math.inf:
        raise ValueError(f"epsilon={stated!r}: must be a positive finite number")
    delta = getattr(asked, "delta", None) or 0.0 if delta is None else delta
    if not (0 <= delta < 1 and (delta > 0 or not gaussian)):
        raise ValueError(f"delta={delta!r}: must be at least 0 and below 1, and with gaussian=True above 0")
    tried = list(pairs)
    if X is None:
        tried = tried or make_pairs(2, relation, bound, (1.0, 10.0, 1e3))
        probes = np.array([[0.0], [bound], [-bound]])
    else:
        rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
        tried += pairs_around(rows, labels, relation, seed)
        probes = np.vstack([rows.mean(axis=0), rows.max(axis=0), rows.min(axis=0), np.zeros(rows.shape[1])])
    refusals = [_find_refusal(make, pair) for pair in tried]
    usable = [pair for pair, refusal in zip(tried, refusals, strict=True) if not refusal]
    if not usable:
        raise ValueError(f"X: the estimator refuses every pair of neighbours ({refusals[0]}); pass pairs that it takes")
    n_search = max(_SEARCH_LEAST, int(draws * _SEARCH_SHARE))
    candidates = [_fit_pair(make, pair, _rows_to_answer(probes, pair)) for pair in usable]
    best = best_pair(candidates, n_search, gaussian)
    draw = candidates[best]
    limit = float(stated)
    bounds = audit_cell(draw, draws, limit, delta, gaussian)
    refuted = any(lower_bound.sure > limit for lower_bound in bounds)
    if refuted:
        again = audit_cell(draw, draws, limit, delta, gaussian)
        refuted = any(lower_bound.sure > limit for lower_bound in again)
    return Audit(
        epsilon=limit, delta=delta, relation=relation, pair=usable[best], draws=draws, bounds=bounds, refuted=refuted
    )


def _rows_to_answer(probes: np.ndarray, pair: Pair) -> np.ndarray:
    """Add a row of a pair to the probes; those with one feature get as many as it has."""
    row = pair.first[0][-1:]
    return np.vstack([np.broadcast_to(probes, (len(probes), row.shape[1])), row])


def _find_refusal(make: Callable[[], Any], pair: Pair) -> str:
    """Return why the estimator refuses one of two datasets: it protects a row by giving nothing; empty if it fits."""
    try:
        make().fit(*pair.first)
        make().fit(*pair.second)
    except (ValueError, ArithmeticError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
