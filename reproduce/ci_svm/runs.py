"""Experiments of ci-svm-2018: accuracies of SVMs on condensed rows and on all rows, and their times.

A repeat is one five-fold split of the rows. On the four training folds, features are scaled to [0, 1], rows are
condensed, C and gamma are searched by five-fold cross-validation on the method's training rows, and a model is trained
with them. Here a *side* is a choice of training rows: all, condensed ones, or a random sample.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privsvm.constraints import POSITIVE
from privsvm.families.condensed.condensation import condense_by_triples, condense_rows
from privsvm.families.exact.svm_classifier import SVMClassifier
from privsvm.families.one_norm.one_norm_training import count_errors, count_kernel_rows, draw_rows, train_one_norm
from privsvm.numerics.rows.rows import squared_distances, squared_norms
from privsvm.solvers.condensing.condense import condensed_rows, feature_weights, greedy_triples, weighted_unit_rows
from reproduce.ci_svm.grid_search import PAPER_CS, PAPER_GAMMAS, SearchGrid, count_right, search_c_and_gamma
from reproduce.engine.context import Context

_FOLDS = 5
_TOL = 1e-3
_CACHE_SIZE = 200.0
# Rows on a sphere of this radius, in largest norms: their cosines tell distances to about 1 in its square.
_RADIUS = 30.0

Grid = tuple[tuple[float, ...], tuple[float, ...]]
Seconds = dict[str, float]


class Side(NamedTuple):
    """Rows (M, d) to train on, their class codes (M,), and the share of the given rows that have their side's class."""

    rows: Any
    codes: np.ndarray
    purity: float = 1.0


class Folded(NamedTuple):
    """Features (n, d), class codes (n,), number of classes, and the fold of each row."""

    X: np.ndarray
    codes: np.ndarray
    n_classes: int
    folds: np.ndarray


def deal_folds(codes: np.ndarray, rng: np.random.Generator, n_folds: int = _FOLDS) -> np.ndarray:
    """Deal rows to folds at random, class by class; return the fold of each row (n,).

    Sizes of folds differ by at most one, and so do the sizes within each class.
    """
    order = rng.permutation(codes.size)
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(codes.size, dtype=np.int64)
    folds[order] = np.arange(codes.size) % n_folds
    return folds


def unit_range(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale features so that the training rows (n, d) lie in [0, 1]; constant features become 0 there."""
    low, high = train.min(axis=0), train.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return (train - low) / width, (test - low) / width


def read(parameters: Mapping[str, Any], context: Context) -> tuple[np.ndarray, np.ndarray, int]:
    """Features (n, d), class codes (n,) and the number of classes.

    Parameters: ``dataset``, ``source`` (name and parts), ``seed``; ``most_rows``: None, or how many rows are drawn,
    once, of more.
    """
    X, codes, labels = context.class_rows(*parameters["source"])
    most = parameters["most_rows"]
    if most is not None and codes.size > most:
        drawn = draw_rows(codes.size, most, context.stream(parameters["seed"], parameters["dataset"], "rows"))
        X, codes = X[drawn], codes[drawn]
    X = X.toarray() if scipy.sparse.issparse(X) else X
    # Classes without rows would be trained against.
    present, codes = np.unique(codes, return_inverse=True)
    assert present.size <= len(labels)
    return np.asarray(X, dtype=np.float64), codes, int(present.size)


# --- training rows of a method --------------------------------------------------------------------------------------


def _all(X: np.ndarray, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Side:
    return Side(X, codes)


def _third(X: np.ndarray, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Side:
    """Draw as many rows as there would be condensed ones, class by class."""
    drawn = deal_folds(codes, rng, 3) == 0
    return Side(X[drawn], codes[drawn])


def _ci(X: np.ndarray, codes: np.ndarray, n_classes: int, rng: np.random.Generator, scale: str = "min_max") -> Side:
    results = condense_by_triples(X, codes, scale)
    return Side(results.rows, results.codes, results.label_purity)


def _ci_evenly(X: np.ndarray, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Side:
    """Condense with equal weights of the features."""
    return _mean_side(X, codes, greedy_triples(weighted_unit_rows(X, np.ones(X.shape[1]))))


def _mean_side(X: np.ndarray, codes: np.ndarray, groups: np.ndarray) -> Side:
    """Replace groups (M, 3) of rows by their means."""
    rows, condensed_codes = condensed_rows(X, codes, groups)
    return Side(rows, condensed_codes, float((codes[groups] == condensed_codes[:, None])[groups >= 0].mean()))


def _fcm(X: np.ndarray, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Side:
    outcome = condense_rows("fcm", X, codes, n_classes, rng=rng)
    return Side(outcome.rows, outcome.codes, outcome.label_purity)


def _ci_by_class(X: np.ndarray, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Side:
    """Condense the rows of each class apart, so that no triple crosses a border."""
    sides = [_ci(X[codes == code], np.zeros(int((codes == code).sum()), dtype=np.int64), 1, rng)
             for code in np.unique(codes)]  # fmt: skip
    sizes = [side.codes.size for side in sides]
    return Side(np.vstack([side.rows for side in sides]), np.repeat(np.unique(codes), sizes))


def _ci_by_distance(X: np.ndarray, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Side:
    """Condense by the distances of the weighted rows in place of their angles.

    One more feature puts the rows on a sphere that is large beside them. The cosine of two of them is then 1 less half
    their squared distance, over the square of the radius.
    """
    weighted = X * feature_weights(X)
    norms = squared_norms(weighted)
    square = _RADIUS**2 * max(float(norms.max(initial=0.0)), 1e-300)
    lifted = np.column_stack([weighted, np.sqrt(square - norms)])
    return _mean_side(X, codes, greedy_triples(weighted_unit_rows(lifted, np.ones(lifted.shape[1]))))


MakeSide = Callable[[np.ndarray, np.ndarray, int, np.random.Generator], Side]

SIDES: Mapping[str, MakeSide] = {
    "all rows": _all,
    "a third of the rows": _third,
    "condensed information": _ci,
    "condensed information, as scaled": functools.partial(_ci, scale="none"),
    "condensed information without weights": _ci_evenly,
    "condensed information, class by class": _ci_by_class,
    "condensed information, by distance": _ci_by_distance,
    "fuzzy centres": _fcm,
}


# --- search and training --------------------------------------------------------------------------------------------


class _Chosen(NamedTuple):
    C: float
    gamma: float
    # Share of the side's rows (of the original rows, where these judge) that cross-validation classified right.
    accuracy: float


def search(side: Side, n_classes: int, grid: Grid, rng: np.random.Generator) -> _Chosen:
    """Search C and gamma by five-fold cross-validation on the side's own rows.

    `grid` has values of C and of gamma, and `rng` deals the folds. Returns C, gamma and accuracy; the smallest of the
    grid if a fold would leave one class only.
    """
    folds = deal_folds(side.codes, rng)
    class_counts = [np.unique(side.codes[folds != number]).size for number in np.unique(folds)]
    if len(class_counts) < 2 or min(class_counts) < 2:
        return _Chosen(min(grid[0]), min(grid[1]), float(np.bincount(side.codes).max() / side.codes.size))
    result = search_c_and_gamma(side.rows, side.codes, n_classes, SearchGrid(*grid, _TOL, _CACHE_SIZE), folds=folds)
    return _Chosen(result.C, result.gamma, float(result.accuracy.max()))


def search_held_out(
    make: MakeSide, X: np.ndarray, codes: np.ndarray, n_classes: int, grid: Grid, rng: np.random.Generator
) -> _Chosen:
    """Search C and gamma by five-fold cross-validation whose folds are original rows; the other four are condensed.

    `make` is one of `SIDES`, and `grid` has values of C and of gamma. `rng` deals the folds, and draws for `make`.
    Returns C, gamma and accuracy: among equals the smallest C, then the smallest gamma, as in `search_c_and_gamma`.
    """
    folds = deal_folds(codes, rng)
    right = np.zeros((len(grid[0]), len(grid[1])), dtype=np.int64)
    for number in np.unique(folds):
        test = folds == number
        side = make(X[~test], codes[~test], n_classes, rng)
        if np.unique(side.codes).size < 2:
            right += (codes[test] == side.codes[0]).sum()
            continue
        right += count_right(
            side.rows, side.codes, X[test], codes[test], n_classes, SearchGrid(*grid, _TOL, _CACHE_SIZE)
        )
    best_C, best_gamma = np.unravel_index(np.argmax(right), right.shape)
    return _Chosen(grid[0][best_C], grid[1][best_gamma], float(right.max() / codes.size))


class _Fitted(NamedTuple):
    predict: Callable[[np.ndarray], np.ndarray]
    chosen: _Chosen
    n_rows: int
    n_support: int
    purity: float
    seconds: Seconds


class _Clock:
    """Processor time of one step after another."""

    def __init__(self) -> None:
        self.seconds: Seconds = {}
        self._last = time.process_time()

    def stop(self, name: str) -> None:
        now = time.process_time()
        self.seconds[name] = now - self._last
        self._last = now


def _fit(how: Mapping[str, Any], X: np.ndarray, codes: np.ndarray, n_classes: int, grid: Grid,
         stream: Callable[[str], np.random.Generator], chosen: _Chosen | None) -> _Fitted:  # fmt: skip
    """Condense, search unless it is chosen already, train."""
    if how["side"] == "reduced kernel":
        return _fit_reduced(how, X, codes, n_classes, grid, stream, chosen)
    make, clock = SIDES[how["side"]], _Clock()
    side = make(X, codes, n_classes, stream("side"))
    clock.stop("condense")
    if chosen is None and how["judge"] == "held-out rows":
        chosen = search_held_out(make, X, codes, n_classes, grid, stream("search"))
    elif chosen is None:
        chosen = search(side, n_classes, grid, stream("search"))
    clock.stop("search")
    classes = np.unique(side.codes)
    if classes.size == 1:
        predict: Callable[[np.ndarray], np.ndarray] = lambda rows: np.full(len(rows), classes[0])  # noqa: E731
        n_support = 0
    else:
        svm = SVMClassifier(C=chosen.C, gamma=chosen.gamma, tol=_TOL, cache_size=_CACHE_SIZE, classes=range(n_classes))
        svm.fit(side.rows, side.codes)
        predict, n_support = svm.predict, int(svm.support_.size)
    clock.stop("train")
    return _Fitted(predict, chosen, int(side.codes.size), n_support, side.purity, clock.seconds)


def _fit_reduced(how: Mapping[str, Any], X: np.ndarray, codes: np.ndarray, n_classes: int, grid: Grid,
                 stream: Callable[[str], np.random.Generator], chosen: _Chosen | None) -> _Fitted:  # fmt: skip
    """RSVM, as `ReducedSVMClassifier` trains it, on the same grid: one program for two classes, else one for each."""
    clock, Cs = _Clock(), sorted(grid[0])
    drawn = X[draw_rows(len(X), count_kernel_rows(how["mbar"], len(X)), stream("side"))]
    distances = squared_distances(X, drawn)
    clock.stop("condense")
    if chosen is None:
        folds, gammas = deal_folds(codes, stream("search")), sorted(grid[1])
        held_out = [folds == number for number in range(_FOLDS)]
        wrong = np.array(
            [count_errors(np.exp(-gamma * distances), codes, n_classes, Cs, held_out) for gamma in gammas]
        ).T
        best_C, best_gamma = np.unravel_index(np.argmin(wrong), wrong.shape)
        chosen = _Chosen(Cs[best_C], gammas[best_gamma], 1.0 - float(wrong.min()) / codes.size)
    clock.stop("search")
    gamma, K = chosen.gamma, np.exp(-chosen.gamma * distances)
    model = train_one_norm(K, codes, n_classes, "linear", chosen.C, gamma, stream("train"))
    clock.stop("train")

    def predict(rows: np.ndarray) -> np.ndarray:
        values = np.exp(-gamma * squared_distances(rows, drawn)) @ model.coef.T + model.intercept
        return (values[:, 0] > 0).astype(np.int64) if n_classes == 2 else np.argmax(values, axis=1)

    used = int(np.count_nonzero(model.coef.any(axis=0)))
    return _Fitted(predict, chosen, len(X), used, 1.0, clock.seconds)


# --- the jobs -------------------------------------------------------------------------------------------------------


def _grid(parameters: Mapping[str, Any]) -> Grid:
    """Return C and gamma in ascending order, by default the paper's."""
    grid = {"Cs": parameters["Cs"] or PAPER_CS, "gammas": parameters["gammas"] or PAPER_GAMMAS}
    Cs, gammas = (tuple(sorted(float(POSITIVE.check(name, value)) for value in grid[name])) for name in grid)
    return Cs, gammas


def accuracies(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Errors of every method on the folds of repeated five-fold splits.

    Parameters: as for `read`; ``repeats``; ``Cs``, ``gammas``: the grid, None for the paper's; ``methods``: name to
    ``{"side", "judge", "mbar"}``: the training rows (`SIDES`, or "reduced kernel" with a share `mbar` of the rows), and
    the rows that judge the search ("its rows" or "held-out rows"); ``search``: "every fold", or "once a repeat": on the
    first fold's training rows, for all folds. Result: ``n_rows, n_features, n_classes``, and for each of ``repeats``:
    ``folds`` (sizes), and for each of ``methods`` lists over the folds: ``errors, C, gamma, n_rows,
    n_support, purity``, and ``searched``: the accuracy of the best point in the search (for the folds that were
    searched).
    """
    X, codes, n_classes = read(parameters, context)
    grid = _grid(parameters)

    def compute(repeat: int) -> dict[str, Any]:
        folds = deal_folds(codes, context.stream(parameters["seed"], parameters["dataset"], repeat, "folds"))
        result = {}
        for name, how in parameters["methods"].items():
            # Methods with equal sides draw them, and the folds of their search, alike.
            stream = functools.partial(_stream, parameters, context, how["side"], repeat)
            every_fold = parameters["search"] == "every fold"
            result[name] = _method_errors(how, Folded(X, codes, n_classes, folds), grid, stream, every_fold)
        return {"folds": np.bincount(folds).tolist(), "methods": result}

    repeats = context.parts(parameters, "repeats", "repeat", compute)
    return {"n_rows": codes.size, "n_features": X.shape[1], "n_classes": n_classes, "repeats": repeats}


def _method_errors(
    how: Mapping[str, Any], data: Folded, grid: Grid, stream: Callable[[int, str], np.random.Generator],
    every_fold: bool,
) -> dict[str, list[Any]]:  # fmt: skip
    """Errors of one method on the folds of one split, and its training parameters, as lists over the folds."""
    fields = ("errors", "C", "gamma", "n_rows", "n_support", "purity", "searched")
    result: dict[str, list[Any]] = {field: [] for field in fields}
    chosen, codes = None, data.codes
    for number in range(_FOLDS):
        test = data.folds == number
        train, judged = unit_range(data.X[~test], data.X[test])
        if "range" in how:
            low, high = how["range"]
            train, judged = (low + (high - low) * rows for rows in (train, judged))
        if every_fold:
            chosen = None
        fitted = _fit(how, train, codes[~test], data.n_classes, grid, functools.partial(stream, number), chosen)
        if chosen is None:
            result["searched"].append(fitted.chosen.accuracy)
        chosen = fitted.chosen
        result["errors"].append(int((fitted.predict(judged) != codes[test]).sum()))
        result["C"].append(chosen.C)
        result["gamma"].append(chosen.gamma)
        for field in ("n_rows", "n_support", "purity"):
            result[field].append(getattr(fitted, field))
    return result


def _stream(
    parameters: Mapping[str, Any], context: Context, side: str, repeat: int, fold: int, purpose: str
) -> np.random.Generator:
    return context.stream(parameters["seed"], parameters["dataset"], repeat, fold, side, purpose)


def picture(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Two features of the rows of a dataset, before and after condensing by them.

    Parameters: as for `read`; ``columns``: the two features. Result: ``rows, codes, condensed, condensed_codes``, and
    ``groups``: the rows of each condensed one.
    """
    X, codes, n_classes = read(parameters, context)
    rows, _ = unit_range(X[:, parameters["columns"]], X[:1, parameters["columns"]])
    result = condense_rows("ci", rows, codes, n_classes)
    assert result.groups is not None
    return {
        "rows": rows.tolist(),
        "codes": codes.tolist(),
        "condensed": result.rows.tolist(),
        "condensed_codes": result.codes.tolist(),
        "groups": result.groups.tolist(),
    }


def times(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Processor time of every method on the first fold of some splits, one after the other in one thread.

    Parameters: as for `accuracies`; each of the ``repeats`` searches. Result: ``n_rows`` (trained on), ``n_features,
    n_classes``, and for each of ``repeats`` and each method ``seconds`` (condense, search, train), ``n_rows,
    n_support, accuracy``.
    """
    X, codes, n_classes = read(parameters, context)
    grid = _grid(parameters)

    def compute(repeat: int) -> dict[str, Any]:
        for how in parameters["methods"].values():
            _warm_up(how["side"], how["mbar"])
        folds = deal_folds(codes, context.stream(parameters["seed"], parameters["dataset"], repeat, "folds"))
        test = folds == 0
        train, judged = unit_range(X[~test], X[test])
        result = {}
        for name, how in parameters["methods"].items():
            stream = functools.partial(_stream, parameters, context, how["side"], repeat, 0)
            fitted = _fit(how, train, codes[~test], n_classes, grid, stream, None)
            result[name] = {
                "seconds": fitted.seconds,
                "n_rows": fitted.n_rows,
                "n_support": fitted.n_support,
                "accuracy": float(np.mean(fitted.predict(judged) == codes[test])),
            }
        return result

    repeats = context.parts(parameters, "repeats", "repeat", compute)
    n_train = int((deal_folds(codes, np.random.default_rng(0)) != 0).sum())
    return {"n_rows": n_train, "n_features": X.shape[1], "n_classes": n_classes, "repeats": repeats}


@functools.cache
def _warm_up(side: str, mbar: float | None) -> None:
    """Compile the code of a method, on a few synthetic rows."""
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 2
    X = rng.random((60, 3)) + 0.5 * codes[:, None]
    how = {"side": side, "judge": "its rows", "mbar": mbar}
    _fit(how, X, codes, 2, ((0.5, 8.0), (0.5, 2.0)), lambda purpose: np.random.default_rng(0), None).predict(X)


def _seconds(step: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = step()
    return time.process_time() - started, result


def growth(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Processor time of condensing more and more rows of a dataset, in one thread.

    Parameters: as for `read`; ``sizes``: for "ci" and "fcm", numbers of rows, drawn at random, the fewer among the more
    (larger ones than the dataset are its size); ``repeats``: the smallest time of so many counts. Result: for "ci" and
    "fcm" the lists ``n_rows`` and ``seconds``; for "fcm" ``n_iter`` too.
    """
    X, codes, n_classes = read(parameters, context)
    X, _ = unit_range(X, X[:1])
    order = context.stream(parameters["seed"], parameters["dataset"], "order").permutation(codes.size)

    def compute(kind: str, size: int) -> dict[str, float]:
        subset = order[:size]
        rng = functools.partial(context.stream, parameters["seed"], parameters["dataset"], kind, size)

        def condense(rows: np.ndarray, row_codes: np.ndarray) -> Any:
            return condense_rows(kind, rows, row_codes, n_classes, rng=rng())

        condense(X[order[:60]], codes[order[:60]])
        runs = [_seconds(lambda: condense(X[subset], codes[subset])) for _ in range(parameters["repeats"])]
        return {"seconds": min(seconds for seconds, _ in runs), "n_iter": runs[0][1].n_iter}

    key = {name: value for name, value in parameters.items() if name != "sizes"}
    result: dict[str, Any] = {}
    for kind, sizes in parameters["sizes"].items():
        counts = sorted({min(size, codes.size) for size in sizes})
        results = [
            context.part({**key, "condensed": kind, "n": n}, functools.partial(compute, kind, n)) for n in counts
        ]
        result[kind] = {
            "n_rows": counts,
            **{name: [timing[name] for timing in results] for name in ("seconds", "n_iter")},
        }
    return result


_KINDS = {"accuracies": accuracies, "picture": picture, "times": times, "growth": growth}


def run(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Run a job by its ``kind``: `accuracies`, `picture`, `times` or `growth`."""
    return _KINDS[parameters["kind"]](parameters, context)
