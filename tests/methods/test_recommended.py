import itertools
import math

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import FixedThresholdClassifier, train_test_split

from privsvm import PrivateLinearClassifier
from privsvm.base.released import path_from_arrays
from privsvm.families.moments import scaled_descent
from privsvm.families.moments.scaled_descent import Budget
from privsvm.methods.recommended import classifier as recommended
from privsvm.methods.recommended.rule import FEATURES, TABLE, choose_recipe
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.privacy.events import Gaussian, leaves
from privsvm.registry import estimator_class, implementations
from privsvm.solvers.features.columns import Columns, column_features, keeps_zeros

DIGITS, DIGIT = load_digits(return_X_y=True)


def rows(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def classifier(**chosen):
    common = {"classes": [0, 1], "random_state": 0, "neighbours": "replace_one"}
    return PrivateLinearClassifier(**common | chosen)


def budget(relation="replace_one", epsilon=1.0):
    return Budget(epsilon=epsilon, delta=1e-5, neighbours=relation)


@pytest.mark.parametrize("features", ["linear", "hats", "fourier"])
@pytest.mark.parametrize("bounds", [None, (-3.0, 3.0)])
def test_the_released_model_reads_rows_as_training_did(features, bounds):
    """Its scores equal the scores of its training rows, up to one positive factor a row."""
    X = rows(3000)
    kept = {}
    plain = scaled_descent.descend
    with pytest.MonkeyPatch.context() as patch:

        def descend(cells, *rest):
            coef = plain(cells, *rest)
            kept["scores"] = cells / 2**20 @ coef.T
            return coef

        patch.setattr(scaled_descent, "descend", descend)
        model = classifier(features=features, bounds=bounds, classes=[0, 1, 2], epsilon=8.0)
        model.fit(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3))
    scores = model.decision_function(X)
    factors = np.linalg.norm(scores, axis=1) / np.linalg.norm(kept["scores"], axis=1)
    # Test rows are not truncated; the grid's step is 2^-20.
    close = np.abs(scores - kept["scores"] * factors[:, None]).max(axis=1) / np.linalg.norm(scores, axis=1)
    assert np.quantile(close, 0.99) < 1e-3
    assert np.array_equal(model.predict(scipy.sparse.csr_array(X)), model.predict(X))
    many = model.release_path(X, model.predict(X), [1.0, 8.0], 5, 3)
    shapes, arrays = many.array_shapes, many.arrays()
    for repeat in (0, 4):
        one = {name: array[:, [repeat]] if shapes[name][:3] == "E R" else array for name, array in arrays.items()}
        alone = path_from_arrays(many.kind, one, epsilons=many.epsilons, guarantees=(), n_classes=3)
        for index in range(2):
            assert np.allclose(many.scores(X, index)[repeat], alone.scores(X, index)[0], atol=1e-9)


def test_other_numbers_of_the_rule_choose_other_recipes():
    case = 10**4, 22, 22, budget()
    assert choose_recipe(*case) == choose_recipe(*case, table=TABLE._replace())
    for other in (
        {"hats_from": 1e6}, {"n_hats": 4}, {"hat_weight": 0.3}, {"fourier_from": 1e6}, {"n_frequencies": 3},
        {"moment_share": 0.2}, {"widest": 20},
    ):  # fmt: skip
        assert choose_recipe(*case, table=TABLE._replace(**other))[0] != choose_recipe(*case)[0], other
    few = 200, 22, 22, budget("add_remove")
    assert choose_recipe(*few, table=TABLE._replace(evened_from=1.0))[0] != choose_recipe(*few)[0]
    two = 10**4, 2, 2, budget()
    for other in ({"few_columns": 1}, {"gamma_of_one": 1.0}):
        assert choose_recipe(*two, table=TABLE._replace(**other))[0] != choose_recipe(*two)[0], other
    X, y = rows(300, 22), np.arange(300) % 2
    model = classifier(n_rows=300, neighbours="add_remove").fit(X, y)
    # A rule from outside is code that nothing is known of.
    other = classifier(n_rows=300, neighbours="add_remove", allow_unsound=True)
    other._table = TABLE._replace(moment_share=0.2)
    other.fit(X, y)
    # The proof covers the training that was done.
    assert other.recipe_ in other.guarantee_.mechanism
    assert other.guarantee_.event != model.guarantee_.event


def test_the_model_says_what_was_chosen():
    for chosen, why in (({}, choose_recipe(300, 22, 0, budget())[1]), ({"features": "linear"}, "; by request")):
        model = classifier(**chosen).fit(rows(300, 22), np.arange(300) % 2)
        assert model.recipe_.endswith(why)
        assert model.recipe_ in model.guarantee_.mechanism
    wide, why = choose_recipe(10**6, 2000, 0, budget())
    assert wide.moment_share == 0
    assert "no second moment of 2000 features" in why


def test_more_rows_have_richer_features():
    """Linear ones, hat functions, then random features beside both; a request is met however few rows there are."""
    recipes = [choose_recipe(n, 10, 10, budget())[0] for n in np.geomspace(10, 10**6, 200)]
    richness = [(recipe.columns.n_hats, recipe.n_frequencies) for recipe in recipes]
    assert richness == sorted(richness)
    assert richness[0] == (0, 0)
    assert (TABLE.n_hats, 0) in richness
    assert richness[-1] == (TABLE.n_hats, TABLE.n_frequencies)
    for features, expected in (("linear", (0, 0)), ("hats", (8, 0)), ("fourier", (8, 128))):
        for n in (10, 10**6):
            recipe, why = choose_recipe(n, 10, 10, budget(), features)
            assert (recipe.columns.n_hats, recipe.n_frequencies) == expected
            assert why.endswith("by request")
    # Models of one path share the frequencies, however much noise each of them has.
    path = classifier(bounds=(-2.0, 2.0), features="fourier").release_path(
        rows(60), np.arange(60) % 2, [1e-3, 8.0], 1, 0
    )
    assert np.isfinite(path.scores(rows(5), 0)).all()
    assert (path.step("columns")["constant"] == 1.0).all()
    # However little noise there is, features are fewer than rows.
    few = choose_recipe(150, 10, 10, budget(epsilon=1e6))[0]
    assert (few.columns.n_hats, few.n_frequencies) == (TABLE.n_hats, 0)


@pytest.mark.parametrize("chosen", [{}, {"class_weight": "balanced"}, {"neighbours": "add_remove"}])
def test_one_recipe_serves_tables_of_all_kinds(chosen):
    X = rows(9000)
    plain, curved = (X @ [1.0, 1.0, 0.0, 0.0] > 0).astype(int), (np.abs(X[:, 0]) > 0.7).astype(int)
    product = (X[:, 0] * X[:, 1] > 0).astype(int)
    for y in (plain, curved, product):
        model = classifier(bounds=(-2.0, 2.0), epsilon=4.0, **chosen).fit(X, y)
        assert model.score(X, y) > 0.9
        assert "random Fourier frequencies" in model.recipe_
        assert model.guarantee_.epsilon_with_system_noise == pytest.approx(4.0, rel=1e-6)


def test_richer_features_cost_no_accuracy_where_a_class_is_rare():
    """A linear table: hat functions and Fourier features only cost, whatever epsilon is. Seeds are fixed."""
    rng = np.random.default_rng(0)
    areas = {1.0: [], 2.0: [], 4.0: [], 5.0: [], 8.0: []}
    for seed in range(4):
        direction = rng.normal(size=14)
        y = (rng.random(6000) < 0.06).astype(int)
        X = rng.normal(size=(6000, 14)) + 1.5 * np.outer(y, direction / np.linalg.norm(direction))
        y_test = y[3000:]
        path = classifier(bounds=(-4.0, 4.0)).release_path(X[:3000], y[:3000], list(areas), 1, seed)
        for index, epsilon in enumerate(areas):
            scores = path.scores(X[3000:], index)[0]
            areas[epsilon].append(roc_auc_score(y_test, scores[:, 1] - scores[:, 0]))
    means = [np.mean(values) for values in areas.values()]
    assert np.diff(means).min() > -0.01


def test_public_rows_centre_rows_that_are_too_few_for_a_noisy_mean():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 30)) + 3.0, np.arange(400) % 2
    X[:, 0] += 0.5 * (2 * y - 1)
    chosen = {"bounds": (0.0, 6.0), "epsilon": 0.05, "n_rows": 400}
    public = np.repeat([[3.1], [3.0], [2.9]], 30, axis=1)
    alone, centred = classifier(**chosen).fit(X, y), classifier(**chosen, public_rows=public).fit(X, y)
    assert not alone.mean_.any()
    mapped = (public - 3.0) / 3.0
    unit = mapped / np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), 1e-300)
    assert np.allclose(centred.mean_, unit.mean(axis=0))
    # They cost no epsilon, and the guarantee says what they must be.
    assert centred.guarantee_.event == alone.guarantee_.event
    assert any("public rows, of which none is a training row" in text for text in centred.guarantee_.assumptions)
    # One row is a row of usual values.
    one = classifier(**chosen, public_rows=public[0]).fit(X, y)
    assert np.allclose(one.mean_, unit[0])
    for wrong in ([[1.0] * 29], [[math.nan] * 30], "usual", np.zeros((2, 3, 30))):
        with pytest.raises(ValueError, match="public_rows="):
            classifier(**chosen, public_rows=wrong).fit(X, y)


def test_columns_that_are_declared_indicators_stay():
    X, y = rows(200), np.arange(200) % 2
    cut = np.clip(X, 0, 1)
    stays = classifier(bounds=(0, 1), indicators="all").fit(X, y)
    assert np.array_equal(stays.coef_, classifier().fit(cut, y).coef_)
    assert np.array_equal(stays.decision_function(X), stays.decision_function(cut))
    # No bounds are mistaken for an indicator's.
    mapped = classifier(bounds=(0, 1)).fit(X, y)
    assert np.array_equal(mapped.coef_, classifier(bounds=(-1, 1)).fit(2.0 * cut - 1.0, y).coef_)
    some = classifier(bounds=(0, 1), indicators=[1, 3]).fit(X, y)
    assert some._path.step("columns")["indicators"].tolist() == [0, 1, 0, 1]
    for wrong in ([4], [-1], "some", [0.5]):
        with pytest.raises(ValueError, match="indicators="):
            classifier(bounds=(0, 1), indicators=wrong).fit(X, y)


def test_a_centre_is_bought_where_its_noise_is_no_longer_than_a_row():
    for d in (4, 30, 600):
        chosen = [(n, *choose_recipe(n, d, 0, budget(), "linear")) for n in range(5, 3000, 5)]
        for n, recipe, why in chosen:
            assert ("no centre" in why) == (recipe.mean_share == 0)
            if recipe.mean_share:
                assert math.sqrt(d) * budget().multiplier(recipe.mean_share) <= n
        # With a quarter of the budget, which is the most, it would be too noisy just below.
        first = next(n for n, recipe, _ in chosen if recipe.mean_share)
        assert first == 5 or math.sqrt(d) * budget().multiplier(0.25) > first - 5


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_every_recipe_keeps_to_the_budget(relation):
    sizes = (1, 20, 500, 10**4, 10**6), (1, 30, 5000)
    for n, d, epsilon, features in itertools.product(*sizes, (0.01, 1.0, 16.0), FEATURES):
        recipe, _ = choose_recipe(n, d, d // 2, budget(relation, epsilon), features)
        shares = [recipe.mean_share, recipe.moment_share, recipe.step_share * recipe.n_steps]
        assert math.fsum(shares) == pytest.approx(1.0)
        assert recipe.step_share * recipe.n_steps > 0.4


def test_the_number_of_rows_is_counted_where_neighbours_agree_on_it():
    X, y = rows(400), np.arange(400) % 2
    assert classifier().fit(X, y).guarantee_.facts.n_rows == "counted"
    assert classifier(n_rows=400).fit(X, y).guarantee_.facts.n_rows == "declared"
    assert np.array_equal(classifier().fit(X, y).coef_, classifier(n_rows=400).fit(X, y).coef_)


def test_elsewhere_a_noisy_number_is_paid_for_and_nothing_else_depends_on_it(monkeypatch):
    X, y = rows(400), np.arange(400) % 2
    unknown = classifier(neighbours="add_remove")
    first, second = unknown.fit(X, y), classifier(neighbours="add_remove").fit(X[:399], y[:399])
    assert first.guarantee_ == second.guarantee_
    assert first.guarantee_.status == "seeded"
    assert first.guarantee_.facts.n_rows == "not used"
    assert [type(event) for event, _ in leaves(first.guarantee_.event)] == [Gaussian, Gaussian]
    # Training sees the noisy number alone.
    seen = []
    plain = recommended.train

    def train(*rest, recipe, **more):
        seen.append(recipe.n_rows)
        return plain(*rest, recipe=recipe, **more)

    monkeypatch.setattr(recommended, "train", train)
    unknown.fit(X, y)
    classifier(neighbours="add_remove", n_rows=123).fit(X, y)
    assert seen[0] != 400.0
    assert abs(seen[0] - 400.0) < 6 * budget("add_remove").multiplier(0.01)
    assert seen[1] == 123.0


def imbalanced():
    """One digit against nine, as the default benchmark has it."""
    return DIGITS / 8.0 - 1.0, (DIGIT == 8).astype(int)


def mean_scores(X, y, epsilons, splits=5, **chosen):
    accuracy, balanced = np.zeros((2, len(epsilons), splits))
    for split in range(splits):
        a, b, ya, yb = train_test_split(X, y, test_size=0.2, random_state=split)
        path = classifier(classes=list(range(y.max() + 1)), **chosen).release_path(a, ya, epsilons, 2, split)
        for index in range(len(epsilons)):
            codes = path.codes(path.scores(b, index))
            accuracy[index, split] = (codes == yb).mean()
            balanced[index, split] = np.mean([(codes[:, yb == k] == k).mean() for k in np.unique(yb)])
    return accuracy.mean(axis=1), balanced.mean(axis=1)


def test_rare_classes_do_not_bring_accuracy_below_that_of_the_majority():
    """Seeds are fixed: nothing is left to chance."""
    X, y = imbalanced()
    accuracy, plain = mean_scores(X, y, [0.5, 1.0, 4.0])
    assert (accuracy >= 1 - y.mean() - 0.01).all()
    assert (np.diff(accuracy) > -0.01).all()
    balanced = mean_scores(X, y, [0.5, 1.0, 4.0], class_weight="balanced")[1]
    assert (balanced > plain + 0.03).all()


@pytest.mark.parametrize(
    ("load", "low", "high", "least"), [(load_breast_cancer, None, None, 0.93), (load_digits, 0, 16, 0.86)]
)
def test_accuracy_on_real_data(load, low, high, least):
    X, y = load(return_X_y=True)
    bounds = (np.zeros(X.shape[1]), 1.2 * X.max(axis=0)) if low is None else (low, high)
    assert mean_scores(X, y, [1.0], bounds=bounds)[0] > least


def test_declared_weights_of_classes():
    X, y = imbalanced()
    heavy = mean_scores(X, y, [4.0], class_weight={1: 10.0})[1]
    assert heavy > mean_scores(X, y, [4.0])[1] + 0.03
    for wrong in ({7: 1.0}, {1: 0.0}, {1: math.inf}, {1: "much"}):
        with pytest.raises(ValueError, match="class_weight="):
            classifier(class_weight=wrong).fit(X, y)


def test_bounds_cut_rows():
    X, y = rows(200), np.arange(200) % 2
    model = classifier(bounds=([-1, -1, -1, 0], [1, 1, 1, 0])).fit(X, y)
    cut = np.clip(X, -1, 1) * [1, 1, 1, 0]
    assert np.allclose(model.decision_function(X), model.decision_function(cut))
    huge = classifier(bounds=(-1e308, 1e308)).fit(X * 1e307, y)
    assert np.isfinite(huge.decision_function(X * 1e307)).all()
    for wrong in ((1.0, -1.0), ([0, 0], [1, 1]), (0, math.nan), ("a", "b")):
        with pytest.raises(ValueError, match="bounds="):
            classifier(bounds=wrong).fit(X, y)


@pytest.mark.parametrize("top", [5e-324, 1e-323, 1e-310])
def test_bounds_as_near_as_numbers_can_be_make_numbers(top):
    # Their halves are 0 or not exact, and the quotient was no number: a row of 2^63 cells, and no noise hid its count.
    lower, upper = np.array([0.0, -top, 0.0]), np.array([top, top, 1.0])
    rows = np.array([[-1.0, -1.0, -1.0], [top, 0.0, 0.5], [1e308, 1e308, 1e308]])
    features = column_features(rows, lower, upper, (lower == 0.0) & (upper == 1.0), Columns())
    np.testing.assert_array_equal(features, [[-1.0, -1.0, 0.0], [1.0, 0.0, 0.5], [1.0, 1.0, 1.0]])
    model = PrivateLinearClassifier(classes=[0, 1], bounds=(lower, upper), n_rows=3, neighbours="add_remove")
    assert np.abs(model.fit(rows, [0, 1, 1]).mean_).max() < 1e3


def test_features_of_columns():
    lower, upper, indicators = np.array([0.0, -2.0, 1.0]), np.array([1.0, 2.0, 1.0]), np.array([True, False, False])
    X = np.array([[1.0, 1.0, 7.0], [0.0, 9.0, 1.0], [0.5, -1.0, 0.0]])
    features = column_features(X, lower, upper, indicators, Columns(constant=3.0, n_hats=3, hat_weight=2.0))
    # Column by column, the constant, and three hats of each number, whose sum is their height.
    assert features[:, :4].tolist() == [[1.0, 0.5, 0.0, 3.0], [0.0, 1.0, 0.0, 3.0], [0.5, -0.5, 0.0, 3.0]]
    assert features[:, 4:7].tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 2.0], [1.0, 1.0, 0.0]]
    assert features[:, 7:].tolist() == [[0.0, 2.0, 0.0]] * 3
    columns = Columns(constant=3.0)
    sparse = scipy.sparse.csr_array(X)
    assert not keeps_zeros(np.zeros(3), upper, ~indicators, columns)
    assert not keeps_zeros(lower, upper, indicators, Columns(n_hats=3))
    assert keeps_zeros(-upper, upper, indicators, columns)
    kept = column_features(sparse, -upper, upper, indicators, columns)
    assert np.array_equal(kept.toarray(), column_features(X, -upper, upper, indicators, columns))


def test_a_threshold_moves_the_decision():
    X, y = imbalanced()
    model = classifier(class_weight="balanced").fit(X, y)
    often, seldom = (
        FixedThresholdClassifier(FrozenEstimator(model), threshold=threshold).fit(X, y).predict(X).mean()
        for threshold in (0.3, 0.7)
    )
    assert seldom < model.predict(X).mean() < often


@pytest.mark.parametrize("implementation", implementations())
def test_probabilities_follow_from_the_scores(implementation):
    X, y = load_wine(return_X_y=True)
    method = estimator_class(implementation)
    common = {"allow_unsound": True, "random_state": 0, "classes": [0, 1, 2]}
    model = method(**{name: value for name, value in common.items() if name in method.declared})
    if not getattr(method, "linear_scores", False):
        assert not hasattr(model, "predict_proba")
        return
    for n_classes in (2, 3):
        kept = y < n_classes
        model.set_params(classes=list(range(n_classes))).fit(X[kept] / 100.0, y[kept])
        probabilities, values = model.predict_proba(X[kept] / 100.0), model.decision_function(X[kept] / 100.0)
        assert np.allclose(probabilities.sum(axis=1), 1.0)
        assert np.array_equal(probabilities.argmax(axis=1), model.predict(X[kept] / 100.0))
        odds = np.log(probabilities[:, 1] / probabilities[:, 0])
        assert np.allclose(odds, values if n_classes == 2 else values[:, 1] - values[:, 0])


def test_a_row_more_or_less_leaves_the_noise_as_it_is():
    """The noise of a release belongs to its place in the recipe, and not to the rows."""
    sources = []

    class Spy(NoiseSource):
        def part(self, name):
            sources.append(name)
            return super().part(name)

    X, y = rows(300), np.arange(300) % 2
    classifier(class_weight="balanced", features="fourier").release_path(X, y, [1.0], 1, lambda e, r: Spy(bytes(32)))
    assert sources == ["classes", "mean", "moment", "steps"]
