"""The private search: its releases, its cost, and that nothing bypasses its draws."""

import copy
import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.adversarial import KINDS, neighbours, scaled
from tests.replay import Recorder, Replayer, check_given, list_leaves, released_bits

from privsvm import (
    Budget,
    DPFrankWolfeClassifier,
    DPLeastSquaresClassifier,
    ObjectivePerturbationClassifier,
    OvRJointGaussianClassifier,
    PMSVMGPClassifier,
    PMSVMWPClassifier,
    PrivateLinearClassifier,
    PrivateSearch,
    PrivateSVMClassifier,
    PrivateSVMRBFClassifier,
    SVMClassifier,
)
from privsvm.base.released import LinearPath
from privsvm.model_selection.private_search import _Outcome, count_right_rows
from privsvm.privacy.events import BestOfNegativeBinomial, BestOfPoisson, Gaussian, OneOf, event_from_json, leaves
from privsvm.privacy.gate import Guarantee, restore
from privsvm.privacy.statement import Statement

GRID = {"C": [0.01, 0.1, 1.0]}


def search_for(n_classes=3, method=OvRJointGaussianClassifier, grid=None, relation="replace_one", **chosen):
    estimator = method(classes=list(range(n_classes)), neighbours=relation)
    return PrivateSearch(estimator, GRID if grid is None else grid, **{"random_state": 0, "mean_runs": 3.0, **chosen})


@parametrize_with_checks(
    [PrivateSearch(OvRJointGaussianClassifier(allow_unsound=True), {"C": [0.1]}, mean_runs=1.5, random_state=0)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, math.inf])
def test_the_whole_costs_what_it_may_and_not_much_less(shape, relation):
    X, y = scaled(load_wine)
    search = search_for(relation=relation, shape=shape, epsilon=2.0, mean_runs=8.0).fit(X, y)
    guarantee = search.guarantee_
    assert guarantee.status == "seeded"
    assert 2.0 * 0.997 < guarantee.epsilon_with_system_noise <= guarantee.epsilon_requested == 2.0
    assert guarantee.verify().epsilon == pytest.approx(guarantee.epsilon_with_system_noise, rel=3e-3)
    assert 0.1 * 2.0 < search.run_epsilon_ < 2.0
    # The training of a run has nine tenths of its budget, the score one tenth.
    event = guarantee.event
    assert isinstance(event, BestOfPoisson if shape == math.inf else BestOfNegativeBinomial)
    training, score = event.event.events
    assert (training.noise_multiplier / score.noise_multiplier) ** 2 == pytest.approx(0.1 / 0.9, rel=1e-5)
    # The event survives its JSON.
    fields = dataclasses.asdict(guarantee)
    assert event_from_json(json.loads(json.dumps(fields["event"]))) == event
    stored = Statement(
        **{**{f.name: getattr(guarantee, f.name) for f in dataclasses.fields(Statement)}, "event": event}
    )
    assert restore(stored) == guarantee
    cheaper = dataclasses.replace(event, event=training)
    with pytest.raises(ValueError, match="its event gives"):
        restore(dataclasses.replace(stored, event=cheaper))


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(2, 8), st.booleans())
@settings(max_examples=15, deadline=None)
def test_draws_of_a_search_cover_the_effect_of_one_row(seed, kind, n, sparse):
    """Replay three runs with one row changed; see `tests.replay`."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 3, size=n)
    row = int(np.random.default_rng(seed + 1).integers(n))
    first, second, relation = neighbours(X, y, 3, kind, np.random.default_rng(seed + 1))
    recorder = Recorder(seed.to_bytes(32, "big"))
    searches = []
    with pytest.MonkeyPatch.context() as patch:
        # The number of runs and their candidates do not depend on rows.
        patch.setattr(PrivateSearch, "_draw_runs", lambda self, source: 3)
        patch.setattr(Recorder, "next_key", lambda self: bytes(32) if not self._open else released_key(self))
        patch.setattr("privsvm.model_selection.private_search.draw_choices", lambda key, n_choices, size: [0, 2, 0])
        for rows, labels in (first, second):
            source = recorder if not searches else Replayer(recorder.calls, row if kind == "removed" else None)
            rows = scipy.sparse.csr_array(rows) if sparse else rows
            search = search_for(relation=relation, random_state=lambda epsilon, repeat, stream=source: stream)
            search.fit(rows, labels)
            searches.append((search, source.calls))
    (one, calls), (other, again) = searches
    assert check_given(calls, again, row, relation) <= 1.0
    assert len(calls) == 6
    assert released_bits(one.best_estimator_._path) == released_bits(other.best_estimator_._path)
    assert (one.best_params_, one.best_score_) == (other.best_params_, other.best_score_)
    assert one.guarantee_ == other.guarantee_
    # Draws of every run match the event of one run.
    stated = leaves(one.guarantee_.event.event)
    for run in range(3):
        drawn = list_leaves(calls[2 * run : 2 * run + 2], relation, one.guarantee_.event)
        for (event, count), (expected, expected_count) in zip(drawn, stated, strict=True):
            assert count == expected_count == 1
            assert event.noise_multiplier == pytest.approx(expected.noise_multiplier, rel=1e-9)


def released_key(recorder):
    recorder._open -= 1
    return super(Recorder, recorder).next_key()


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(2, 30), st.integers(2, 4))
@settings(max_examples=60, deadline=None)
def test_one_row_changes_the_count_by_one_at_most(seed, kind, n, n_classes):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, n_classes, size=n)
    first, second, _ = neighbours(X, y, n_classes, kind, rng)
    n_vectors = 1 if n_classes == 2 else n_classes
    # Integer scores make ties everywhere.
    coef = np.rint(rng.normal(size=(1, 1, n_vectors, 3)) * rng.choice([1.0, 1e3]))
    none = Guarantee(status="none", mechanism="none", reference="none")
    path = LinearPath(
        epsilons=(1.0,), guarantees=(none,), n_classes=n_classes, coef=coef, intercept=np.zeros((1, 1, n_vectors))
    )
    counts = [count_right_rows(path, rows, labels) for rows, labels in (first, second)]
    assert abs(counts[0] - counts[1]) <= 1
    for rows, labels in (first, second):
        count = count_right_rows(path, rows, labels)
        order = rng.permutation(len(labels))
        assert count_right_rows(path, rows[order], labels[order]) == count
        assert count_right_rows(path, scipy.sparse.csr_array(rows), labels) == count
        each = sum(int(path.codes(path.scores(rows[i : i + 1], 0))[0, 0] == labels[i]) for i in range(len(labels)))
        assert count == each


@pytest.mark.parametrize(
    ("method", "grid"),
    [
        (ObjectivePerturbationClassifier, {"C": [0.01, 0.3], "data_norm": [1.0]}),
        (PMSVMWPClassifier, {"C": [0.01, 0.3]}),
        (PrivateSVMClassifier, [{"C": [0.01]}, {"C": [0.1], "composition": ["naive"]}]),
        (PMSVMGPClassifier, {"epochs": [2, 9], "scaling": ["centre"]}),
        (DPFrankWolfeClassifier, {"n_steps": [3, 9]}),
        (DPLeastSquaresClassifier, {}),
    ],
)
def test_methods_with_an_event_that_composes_can_be_searched(method, grid):
    X, y = scaled(load_wine)
    search = search_for(method=method, grid=grid, epsilon=4.0).fit(X, y)
    assert search.guarantee_.status == "seeded"
    assert 4.0 * 0.99 < search.guarantee_.epsilon_with_system_noise <= 4.0
    model = search.best_estimator_
    assert isinstance(model, method)
    assert model.guarantee_ is search.guarantee_ is model._path.guarantees[0]
    assert search.best_params_.items() <= model.get_params().items()
    assert np.array_equal(search.predict(X), model.predict(X))
    assert np.array_equal(search.decision_function(X), model.decision_function(X))
    # The noise of the score is below ten rows here.
    assert abs(search.best_score_ - round(search.score(X, y) * len(y))) < 90


def test_the_search_finds_what_is_best():
    """One of four candidates is useful, and searches rarely miss it. Seeds are fixed."""
    X, y = scaled(load_breast_cancer)
    grid = {"C": [1e-9, 3e-9, 1e-8, 0.05]}
    searches = [search_for(2, PrivateSVMClassifier, grid, epsilon=8.0, mean_runs=30.0, shape=1.0, random_state=seed)
             for seed in range(4)]  # fmt: skip
    scores = [search.fit(X, y).score(X, y) for search in searches]
    assert [search.best_params_["C"] for search in searches].count(0.05) >= 3
    assert np.median(scores) > 0.88


@pytest.mark.parametrize("shape", [0.0, math.inf])
def test_runs_are_as_many_and_as_mixed_as_is_recorded(shape, monkeypatch):
    """Numbers of runs and candidates follow the recorded distribution."""
    plan, drawn = PrivateSearch._plan, []
    cache = {}

    def planned(self, *numbers):
        if not cache:
            cache[None] = plan(self, *numbers)
        return cache[None]

    def run(self, rows, codes, plan, index, source):
        drawn[-1].append(int(index))
        return _Outcome(-math.inf, self.estimator, None, {}, "nothing was trained")

    monkeypatch.setattr(PrivateSearch, "_plan", planned)
    monkeypatch.setattr(PrivateSearch, "_run", run)
    X, y = np.array([[-1.0], [1.0], [0.5]]), np.array([0, 1, 1])
    for seed in range(600):
        drawn.append([])
        with pytest.raises(ValueError, match="nothing was trained"):
            search_for(2, shape=shape, random_state=seed).fit(X, y)
    event, most = cache[None].event, np.arange(1, 400)
    if shape == math.inf:
        logs = most * math.log(event.parameter) - np.array([math.lgamma(k + 1) for k in most])
    else:
        logs = most * math.log1p(-event.gamma) - np.log(most)
    expected = np.exp(logs - np.logaddexp.reduce(logs))
    numbers = np.array([len(run) for run in drawn])
    assert (expected * most).sum() == pytest.approx(3.0, rel=1e-6)
    for limit in (1, 2, 3, 5):
        share = expected[:limit].sum()
        # Six standard errors: exceeded by chance once in 10^9.
        assert abs((numbers <= limit).mean() - share) < 6.0 * math.sqrt(share * (1.0 - share) / 600)
    every = np.concatenate(drawn)
    assert np.abs(np.bincount(every, minlength=3) / every.size - 1 / 3).max() < 6.0 * math.sqrt(2 / 9 / every.size)
    same = np.concatenate([np.diff(run) == 0 for run in drawn])
    assert abs(same.mean() - 1 / 3) < 6.0 * math.sqrt(2 / 9 / same.size)


def test_a_search_holds_nothing_but_what_it_releases():
    X, y = scaled(load_wine)
    search = search_for(random_state=1234567).fit(X, y)
    fitted = {name for name in vars(search) if name.endswith("_")}
    assert fitted == {
        "best_estimator_", "best_params_", "best_score_", "classes_", "guarantee_", "n_features_in_", "run_epsilon_",
    }  # fmt: skip
    assert search.best_estimator_.random_state is None
    assert search.best_estimator_._path.release_seconds == 0.0
    assert (1234567).to_bytes(3, "little") not in pickle.dumps(search)
    assert pickle.loads(pickle.dumps(search)).random_state is None
    # Nor is the estimator's seed, which may be the same number; the search itself keeps it.
    search.estimator.random_state = 7654321
    assert (7654321).to_bytes(3, "little") not in pickle.dumps(search)
    assert search.estimator.random_state == 7654321
    # The event is one best-of-runs, not a composition of runs.
    for event, _ in leaves(search.guarantee_.event):
        assert isinstance(event, BestOfNegativeBinomial)


def test_a_search_with_the_record_of_another_does_not_load():
    X, y = scaled(load_wine)
    search, other = (search_for(random_state=None, epsilon=epsilon).fit(X, y) for epsilon in (1.0, 2.0))
    assert pickle.loads(pickle.dumps(search)).guarantee_ == search.guarantee_
    search.guarantee_ = other.guarantee_
    for load in (copy.deepcopy, lambda forged: pickle.loads(pickle.dumps(forged))):
        with pytest.raises(ValueError, match="not the record of the released model"):
            load(search)


def test_events_of_candidates_that_differ_are_one_of_them():
    X, y = scaled(load_wine)
    event = search_for(method=ObjectivePerturbationClassifier, epsilon=3.0).fit(X, y).guarantee_.event.event
    training, score = event.events
    assert isinstance(training, OneOf)
    assert len(training.events) == len(set(training.events)) > 1
    assert isinstance(score, Gaussian)


def test_what_cannot_be_proved_or_makes_no_sense_is_refused():
    X, y = scaled(load_wine)
    with pytest.raises(ValueError, match="rows drawn at random are for add_remove alone"):
        search_for(method=PMSVMGPClassifier, grid={"batch_size": [10]}).fit(X, y)
    with pytest.raises(ValueError, match="must be a private classifier"):
        PrivateSearch(SVMClassifier(), {"C": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="param_grid holds 'epsilon'"):
        search_for(grid={"epsilon": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="holds no candidate"):
        search_for(grid=[]).fit(X, y)
    with pytest.raises(ValueError, match="classes=None"):
        PrivateSearch(OvRJointGaussianClassifier(), GRID).fit(X, y)
    for name, value in (("epsilon", 0.0), ("delta", 1.0), ("mean_runs", 1.0), ("shape", 2.0), ("shape", -1.0),
                        ("score_share", 1.0), ("mean_runs", None), ("epsilon", math.nan)):  # fmt: skip
        with pytest.raises(ValueError, match=f"{name}={value!r}"):
            search_for(**{name: value}).fit(X, y)
    estimator = OvRJointGaussianClassifier(allow_unsound=True)
    unsound = PrivateSearch(estimator, GRID, random_state=0, mean_runs=2.0).fit(X, y)
    assert unsound.guarantee_.status == "claimed"
    assert "class set" in unsound.guarantee_.reason


def test_a_search_is_proved_only_if_all_its_candidates_are():
    # The choice of the best candidate depends on all: one takes the kernel's scale from the rows.
    X, y = scaled(load_wine)
    estimator = PrivateSVMRBFClassifier(classes=[0, 1, 2], allow_unsound=True, n_components=4)
    for seed in range(4):
        search = PrivateSearch(estimator, {"gamma": ["scale", 0.5]}, epsilon=4.0, mean_runs=2.0, random_state=seed)
        if search.fit(X, y).best_params_["gamma"] == 0.5:
            break
    assert search.best_params_["gamma"] == 0.5
    assert search.guarantee_.status == "claimed"
    assert "feature map" in search.guarantee_.reason


def test_a_run_that_fails_is_an_outcome_below_the_others(monkeypatch):
    # An exception would reveal a run that is not the best, which the budget does not cover.
    X, y = scaled(load_wine)
    release_path, failed = OvRJointGaussianClassifier.release_path, []

    def sometimes(self, X, y, epsilons, *rest, **more):
        if self.C == 0.01 and len(X) > 3:
            failed.append(self.C)
            raise ValueError("training diverged")
        return release_path(self, X, y, epsilons, *rest, **more)

    monkeypatch.setattr(OvRJointGaussianClassifier, "release_path", sometimes)
    search = search_for(epsilon=2.0, mean_runs=20.0, shape=math.inf).fit(X, y)
    assert failed
    assert search.best_params_["C"] != 0.01
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget, pytest.raises(ValueError, match="training diverged"):
        search_for(epsilon=2.0, mean_runs=1.5, grid={"C": [0.01]}).fit(X, y)
    assert 1.5 < budget.spent.epsilon_with_system_noise <= 2.0


def test_a_method_that_pays_for_a_number_of_rows_can_be_searched():
    # The plan must not read the private number of rows.
    X, y = scaled(load_wine)
    model = PrivateLinearClassifier(classes=[0, 1, 2], neighbours="add_remove")
    grid = {"class_weight": [None, "balanced"]}
    plans = [
        PrivateSearch(model, grid, epsilon=3.0, mean_runs=2.0, random_state=0).fit(X[:rows], y[:rows])
        for rows in (150, 149)
    ]
    assert [plan.guarantee_.status for plan in plans] == ["seeded", "seeded"]
    assert plans[0].guarantee_ == plans[1].guarantee_
    assert plans[0].run_epsilon_ == plans[1].run_epsilon_
