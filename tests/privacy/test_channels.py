"""What leaves a fit besides the released numbers: output, warnings, logs, errors, words and counts on the estimator.

Of neighbours with rows as bad as they may be, all of it must be the same: nothing pays for it.
"""

import logging
import warnings

import numpy as np
import pytest
from tests.proved import CASES, PARAMS

from privsvm.privacy.gate import Guarantee

ROWS = np.random.default_rng(4).normal(size=(9, 2))
WORST = [
    np.zeros(2), np.full(2, 1.7e308), np.array([-1.7e308, 1.7e308]), np.array([5e-324, -0.0]), np.full(2, 1e-160),
    np.array([1e300, 1e-300]), ROWS[1], -ROWS[1],
]  # fmt: skip


def pairs(relation, n_classes):
    """Neighbours: each worst row in the place of an ordinary one, or beside the others; a class that is lost."""
    labels = np.arange(9) % n_classes
    for row_index, row in enumerate(WORST):
        changed, other = ROWS.copy(), labels.copy()
        changed[3], other[3] = row, row_index % n_classes
        if relation == "replace_one":
            yield (ROWS, labels), (changed, other)
        else:
            yield (changed, other), (np.delete(changed, 3, axis=0), np.delete(other, 3))
    single = np.where(np.arange(9) == 3, 1, 0)
    if relation == "replace_one":
        yield (ROWS, single), (ROWS, single * 0)
    else:
        yield (ROWS, single), (np.delete(ROWS, 3, axis=0), np.zeros(8, dtype=int))


def plain(value):
    """What of an attribute is no released number: shapes, words, counts."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape
    if isinstance(value, Guarantee):
        return repr(value)
    return value if isinstance(value, (int, float, str, type(None), bool)) else type(value).__name__


def told(model, X, y, capfd, caplog):
    """Everything that a fit tells, but for released numbers."""
    caplog.clear()
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
            error = None
        except Exception as problem:
            error = repr(problem)
        words = (repr(model), repr(model.__sklearn_tags__()))
    return {
        "error": error,
        "warnings": [(str(one.message), one.category) for one in caught],
        "printed": tuple(capfd.readouterr()),
        "logged": caplog.text,
        "words": words,
        **{name: plain(value) for name, value in vars(model).items()},
    }


@pytest.mark.parametrize("case", PARAMS)
def test_neighbours_are_told_apart_by_nothing_but_released_numbers(case, capfd, caplog):
    # Two of the pairs for each case, and all of them for all cases of a method.
    several, start = list(pairs(case.relation, case.n_classes)), 2 * CASES.index(case)
    for first, second in (several[start % len(several)], several[(start + 1) % len(several)]):
        one, other = (told(case.model().set_params(random_state=1), *rows, capfd, caplog) for rows in (first, second))
        assert one["error"] is None
        # Under add_remove the recipe pays for a noisy number of rows.
        paid = {"recipe_"} if case.model().pays_for_counts and case.relation == "add_remove" else set()
        assert {**one, **dict.fromkeys(paid)} == {**other, **dict.fromkeys(paid)}


def test_a_word_about_the_rows_would_be_found(capfd, caplog, monkeypatch):
    case = CASES[0]
    method = type(case.model())
    release_path = method.release_path
    tellers = (
        lambda X: warnings.warn("large", stacklevel=1), lambda X: print("large"), lambda X: logging.info("large"),
        lambda X: np.exp(np.abs(X).max()),
    )  # fmt: skip
    first, second = next(pair for pair in pairs(case.relation, case.n_classes) if np.abs(pair[1][0]).max() > 1e300
                         or np.abs(pair[0][0]).max() > 1e300)  # fmt: skip
    for tell in tellers:

        def telling(self, X, *arguments, tell=tell, **options):
            if np.abs(X).max() > 1e300:
                tell(X)
            return release_path(self, X, *arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(method, "release_path", telling)
            both = [told(case.model().set_params(random_state=1), *rows, capfd, caplog) for rows in (first, second)]
        assert both[0] != both[1]
