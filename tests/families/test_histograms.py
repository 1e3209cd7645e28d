"""Noisy histograms of columns, and the two methods on them: a row's contribution, and accuracy."""

import math

import numpy as np
import pytest
from tests.adversarial import Silence

from privsvm import DPNaiveBayesClassifier, DPTRNewtonClassifier
from privsvm.families.histograms.quantiles import SCALES, counts_noise, counts_sensitivity, noisy_ranges, quantile_edges
from privsvm.methods import dp_tr_newton
from privsvm.solvers.features.trees import CELLS, column_cells, leaf_numbers, staircase

METHODS = [DPNaiveBayesClassifier, DPTRNewtonClassifier]
RELATIONS = ["replace_one", "add_remove"]
RNG = np.random.default_rng(3)
ROWS = RNG.uniform(-1.2, 1.2, size=(400, 3))


def cells_of(rows):
    return column_cells(rows, np.full(3, -1.0), np.ones(3), np.array([0, 0, 0]))


def scales_of(cells):
    """Count cells on every scale, by another way: the leading bits of their numbers."""
    return np.concatenate(
        [np.bincount(column >> bits, minlength=CELLS >> bits) for column in cells.T for bits in range(SCALES)]
    )


def test_a_cell_depends_on_its_number_alone():
    together = cells_of(ROWS)
    assert np.array_equal(together, np.vstack([cells_of(row[None]) for row in ROWS]))
    assert together.min() == 0
    assert together.max() == CELLS - 1
    bounds, levels = (np.array([0.0, -1e308, 5.0]), np.array([4.0, 1e308, 5.0])), np.array([5, 0, 0])
    rows = np.array([[2.0, 0.0, 7.0], [4.0, 1e308, 5.0], [5.0, -1e308, 5.0], [-1.0, 1e300, 5.0], [0.5, 0.0, 0.0]])
    expected = [[2, 128, 0], [4, 255, 0], [0, 0, 0], [0, 128, 0], [0, 128, 0]]
    assert column_cells(rows, *bounds, levels).tolist() == expected


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbour_moves_counts_by_more_than_the_bound(relation):
    bound, moves = counts_sensitivity(SCALES * 3, relation), []
    for row in range(50):
        other = ROWS.copy()
        other[row] = -ROWS[row]
        fewer = np.delete(ROWS, row, axis=0)
        changed = other if relation == "replace_one" else fewer
        moves.append(np.linalg.norm(scales_of(cells_of(ROWS)) - scales_of(cells_of(changed))))
    assert max(moves) <= bound
    assert max(moves) == pytest.approx(bound)


def test_counts_on_all_scales_agree_by_least_squares():
    counts = []

    class Kept(Silence):
        def add_rounded_normals(self, numbers, sigma, stated):
            noisy = numbers + np.random.default_rng(0).integers(-9000, 9000, size=numbers.shape)
            counts.append(noisy * stated.grid)
            return noisy

    ranges = noisy_ranges(cells_of(ROWS), 3.0, "replace_one", Kept())
    assert counts_noise(SCALES * 3, 3.0, "replace_one") == pytest.approx(3.0 * math.sqrt(SCALES * 3 / 2.0))
    scales = np.vstack([np.kron(np.eye(CELLS >> bits), np.ones(1 << bits)) for bits in range(SCALES)])
    best = np.linalg.lstsq(scales, counts[0].T, rcond=None)[0]
    assert ranges == pytest.approx(best.T, abs=1e-8)
    silent = noisy_ranges(cells_of(ROWS), 3.0, "replace_one", Silence())
    assert silent == pytest.approx(np.stack([np.bincount(column, minlength=CELLS) for column in cells_of(ROWS).T]))


def test_quantiles_divide_rows_equally_and_noise_is_not_fatal():
    edges = quantile_edges(np.ones(CELLS), 4)
    assert edges.tolist() == [64, 128, 192]
    assert quantile_edges(-np.ones(CELLS), 4).tolist() == [64, 128, 192]
    assert quantile_edges(np.eye(CELLS)[255], 4).size == 0
    assert quantile_edges(np.eye(CELLS)[7], 4).tolist() == [8]


def test_leaves_are_those_that_tests_lead_to():
    edges = np.array([3, 40, 41, 200, 255])
    low = staircase(edges, 3)[None]
    cells = np.arange(CELLS)[:, None]
    leaves = leaf_numbers(cells, np.zeros((1, 7), dtype=int), low, np.full((1, 7), np.inf))
    assert np.array_equal(leaves[:, 0], np.searchsorted(edges, cells[:, 0], side="right"))
    # A category: right for its code alone.
    leaves = leaf_numbers(cells, np.zeros((1, 1), dtype=int), np.array([[4.0]]), np.array([[5.0]]))
    assert np.flatnonzero(leaves[:, 0]).tolist() == [4]


@pytest.mark.parametrize("method", METHODS)
def test_columns_are_declared_or_refused(method):
    y = np.arange(400) % 2
    for changes in ({"bounds": (1.0, -1.0)}, {"bounds": (0.0, [1.0, 2.0])}, {"bounds": (0.0, np.inf)}):
        with pytest.raises(ValueError, match=r"^bounds="):
            method(classes=[0, 1], **changes).fit(ROWS, y)
    for categories in ([0, 0], [0, -1, 0], [0, 1.5, 0]):
        with pytest.raises(ValueError, match=r"^categories="):
            method(classes=[0, 1], categories=categories).fit(ROWS, y)


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_what_a_row_adds_is_no_longer_than_1_and_its_own(n_classes, monkeypatch):
    """Of two classes nothing is cut; of more, hardly anything."""
    scores = RNG.normal(size=(300, 1 if n_classes == 2 else n_classes)) * 5.0
    codes, many = RNG.integers(n_classes, size=300), int(n_classes > 2)
    settings = dp_tr_newton._HESSIAN[many], dp_tr_newton._NORM[many]
    together = dp_tr_newton._contributions(scores, codes, *settings)
    alone = [dp_tr_newton._contributions(scores[i : i + 1], codes[i : i + 1], *settings) for i in range(300)]
    assert np.array_equal(together, np.vstack(alone))
    assert (np.linalg.norm(together, axis=1) <= 1.0 + 1e-12).mean() > (0.95 if many else 0.999)
    taken, lengths = dp_tr_newton.grid_rows, []

    def watched(rows, norm, bits):
        cells = taken(rows, norm, bits)
        lengths.append(np.linalg.norm(cells, axis=1).max())
        return cells

    monkeypatch.setattr(dp_tr_newton, "grid_rows", watched)
    DPTRNewtonClassifier(classes=list(range(n_classes)), n_trees=5, epsilon=50.0).fit(ROWS, np.arange(400) % n_classes)
    assert len(lengths) == 5
    assert max(lengths) <= 1.0


def test_trees_depend_on_the_quantiles_alone():
    def structure(rows, y):
        model = DPTRNewtonClassifier(classes=[0, 1], n_trees=4).release_path(rows, y, [1.0], 1, lambda *_: Silence())
        return [getattr(model, name) for name in ("feature", "low", "high")]

    y = np.arange(400) % 2
    first = structure(ROWS, y)
    for other in (structure(ROWS[::-1], y), structure(ROWS, 1 - y)):
        assert all(np.array_equal(*pair) for pair in zip(first, other, strict=True))
    assert np.array_equal(first[0], structure(-0.3 * ROWS, y)[0])
    assert not np.array_equal(first[1], structure(-0.3 * ROWS, y)[1])


def test_with_much_budget_it_is_naive_bayes():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(4, size=20000), rng.integers(3, size=20000)
    X = np.column_stack([np.where(rng.random(20000) < 0.5, codes, y), rng.normal(size=20000) / 3 + y - 1])
    model = DPNaiveBayesClassifier(
        classes=[0, 1, 2], categories=[4, 0], bounds=([0, -3], [3, 3]), epsilon=1e4, delta=0.1
    )
    path = model.release_path(X, y, [1e4], 1, 0)
    tables = [np.bincount(y[X[:, 0] == code], minlength=3) for code in range(4)]
    shares = np.array(tables) / np.bincount(y)
    expected = np.log(shares / (np.bincount(X[:, 0].astype(int)) / 20000)[:, None])
    assert path.value[0, 0, 0, :4] == pytest.approx(expected, abs=0.02)
    assert (path.codes(path.scores(X, 0))[0] == y).mean() > 0.9
    rare = np.column_stack([codes, rng.integers(2, size=20000)])
    assert DPNaiveBayesClassifier(classes=[0, 1], categories=[4, 2]).fit(rare, y > 1).value_.shape[0] == 2


def test_with_much_budget_trees_learn_a_checkerboard():
    y = (ROWS[:, 0] > 0) ^ (ROWS[:, 1] > 0)
    model = DPTRNewtonClassifier(classes=[False, True], epsilon=500.0, random_state=0, allow_unsound=True).fit(ROWS, y)
    assert (model.predict(ROWS) == y).mean() > 0.95
    codes = (ROWS[:, 0] > 0).astype(int) + 2 * (ROWS[:, 1] > 0)
    more = DPTRNewtonClassifier(classes=[0, 1, 2, 3], epsilon=500.0, random_state=0, allow_unsound=True).fit(
        ROWS, codes
    )
    assert (more.predict(ROWS) == codes).mean() > 0.9
