"""Several fits on the same rows: counted together, refused beyond the budget, and no search goes unnoticed."""

import copy
import multiprocessing
import os
import pickle
import threading

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFE, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    scale,
)

from privsvm import (
    Budget,
    BudgetExceededError,
    DPSVMDVPClassifier,
    PMSVMAGPClassifier,
    PrivateLinearClassifier,
    PrivateSVMClassifier,
    PublicSchema,
    make_private_pipeline,
)
from privsvm.privacy.gate import compose

X = np.array([[-0.8, 0.1], [0.7, -0.2]] * 30)
Y = np.array([0, 1] * 30)
MODEL = PrivateSVMClassifier(epsilon=1.0, classes=[0, 1])


def test_fits_compose_to_the_total_of_one_accountant(capsys):
    with Budget(epsilon=3, delta=1e-5) as budget:
        fits = [clone(MODEL).fit(X, Y).guarantee_ for _ in range(3)]
    assert budget.spent.epsilon_proved == compose(fits, 1e-5).epsilon_proved
    assert 1.0 < budget.spent.epsilon_proved < 3.0
    assert f"3 fits: epsilon {budget.spent.epsilon_proved:.4g} of 3" in capsys.readouterr().out


def test_the_fit_that_would_exceed_it_is_refused_and_keeps_no_model():
    with Budget(epsilon=1.5, delta=1e-5, verbose=False) as budget:
        clone(MODEL).fit(X, Y)
        clone(MODEL).fit(X, Y)
        third = clone(MODEL)
        with pytest.raises(BudgetExceededError, match="3 fits would cost epsilon"):
            third.fit(X, Y)
        assert not hasattr(third, "coef_")
    assert budget.spent.epsilon_proved <= 1.5
    with Budget(epsilon=9, delta=1e-5, verbose=False), pytest.raises(BudgetExceededError, match="proved models alone"):
        PrivateSVMClassifier(allow_unsound=True).fit(X, Y)


def _fit(place):
    clone(MODEL).fit(X, Y)


def test_processes_share_it():
    context = multiprocessing.get_context("fork")
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        workers = [context.Process(target=_fit, args=(place,)) for place in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0] * 3
        with pytest.raises(ValueError, match="open already"):
            Budget(1, 1e-5).__enter__()
    single = clone(MODEL).fit(X, Y).guarantee_
    assert budget.spent.epsilon_proved == compose([single] * 3, 1e-5).epsilon_proved


def _fit_at_once(gate, epsilon):
    gate.wait()
    try:
        clone(MODEL).set_params(epsilon=epsilon).fit(X, Y)
    except BudgetExceededError:
        os._exit(7)


@pytest.mark.parametrize("attempt", range(3))
def test_processes_that_fit_at_once_spend_no_more_than_the_budget(attempt):
    one = clone(MODEL).set_params(epsilon=0.5).fit(X, Y).guarantee_
    limit = compose([one] * 3, 1e-5).epsilon_proved * 1.001
    assert compose([one] * 4, 1e-5).epsilon_proved > limit
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(6)
    with Budget(epsilon=limit, delta=1e-5, verbose=False) as budget:
        workers = [context.Process(target=_fit_at_once, args=(gate, 0.5)) for _ in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert sorted(worker.exitcode for worker in workers) == [0, 0, 0, 7, 7, 7]
    assert budget.spent.epsilon_proved == compose([one] * 3, 1e-5).epsilon_proved


def test_searches_are_counted_or_refused():
    search = GridSearchCV(MODEL, {"C": [0.01, 0.1]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match="allow_composition=False: a search, cross-validation or ensemble fits many"):
        clone(search).fit(X, Y)
    with pytest.raises(ValueError, match="allow_composition"):
        cross_val_score(make_pipeline(Normalizer(), MODEL), X, Y, cv=2, error_score="raise")
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        clone(search).fit(X, Y)
    single = clone(MODEL).fit(X, Y).guarantee_
    assert budget.spent.epsilon_proved == pytest.approx(compose([single] * 5, 1e-5).epsilon_proved)
    with Budget(epsilon=2, delta=1e-5, verbose=False), pytest.raises(BudgetExceededError):
        clone(search).fit(X, Y)
    clone(search).set_params(estimator__allow_composition=True).fit(X, Y)


PUBLIC = [
    Normalizer(),
    FunctionTransformer(np.abs),
    FunctionTransformer(),
    SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
    ColumnTransformer([("a", Normalizer(), [0]), ("b", "passthrough", [1])]),
    OneHotEncoder(categories=[[-0.8, 0.7], [-0.2, 0.1]], sparse_output=False),
]
FITTED = [
    StandardScaler(),
    MinMaxScaler(),
    SimpleImputer(),
    SimpleImputer(strategy="constant", fill_value=0.0),
    OneHotEncoder(sparse_output=False),
    # Of categories that are given, too, it counts the rare ones.
    OneHotEncoder(categories=PUBLIC[-1].categories, min_frequency=2, handle_unknown="infrequent_if_exist"),
    OrdinalEncoder(categories=PUBLIC[-1].categories, max_categories=1, dtype=np.float64),
    # Subtracts the mean of the rows that it is given.
    FunctionTransformer(scale),
    # A product of all rows at once, which rounds a row in another way where others are gone: rows of 1e30 make it 1.
    RBFSampler(gamma=1.0, random_state=0),
    SelectKBest(k=1),
    ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])]),
    ColumnTransformer([("a", "passthrough", [0])], remainder=StandardScaler()),
    ColumnTransformer([("a", "passthrough", lambda X: np.flatnonzero(X.var(axis=0) > 0.1))]),
    make_pipeline(Normalizer(), StandardScaler()),
]


@pytest.mark.parametrize("step", PUBLIC, ids=lambda step: type(step).__name__)
def test_steps_that_read_no_values_leave_the_proof(step):
    assert make_private_pipeline(clone(step), clone(MODEL)).fit(X, Y).guarantee_.status == "proved"


@pytest.mark.parametrize("step", FITTED, ids=lambda step: type(step).__name__)
def test_steps_that_are_fitted_to_the_rows_take_it(step):
    with pytest.raises(ValueError, match="fitted to private rows before the model"):
        make_private_pipeline(clone(step), clone(MODEL)).fit(X, Y)
    model = clone(MODEL).set_params(allow_unsound=True)
    guarantee = make_private_pipeline(clone(step), model).fit(X, Y).guarantee_
    assert guarantee.status == "claimed"
    assert "fitted to private rows" in guarantee.reason


WARDS = {
    "name": "wards",
    "label": "died",
    "classes": ["no", "yes"],
    "columns": {name: {"bounds": [-1, 1]} for name in "ab"},
}


@pytest.mark.parametrize(
    ("declared", "status", "says"),
    [
        ({}, "proved", ""),
        ({"prescaled": False}, "proved", ""),
        ({"prescaled": True}, "claimed", "scaled by statistics of its own rows"),
        ({"person": "id", "rows_per_person": 5}, "claimed", "a person has up to 5 rows, and epsilon covers one row"),
    ],
    ids=["nothing", "not scaled", "scaled", "persons"],
)
@pytest.mark.parametrize("nested", [False, True])
def test_what_a_schema_declares_of_its_rows_is_in_the_guarantee(declared, status, says, nested):
    schema, model = PublicSchema(WARDS | declared), clone(MODEL)
    step = make_pipeline(FeatureUnion([("schema", schema)])) if nested else schema
    if says:
        with pytest.raises(ValueError, match=says):
            make_private_pipeline(clone(step), clone(model)).fit(X, Y)
        model.set_params(allow_unsound=True)
    guarantee = make_private_pipeline(step, model).fit(X, Y).guarantee_
    assert guarantee.status == status
    assert says in (guarantee.reason or "")


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", ["fit", "transform", "fit_transform"])
def test_a_method_that_an_object_was_given_takes_it(name, nested):
    step = Normalizer()
    setattr(step, name, lambda X, y=None: step if name == "fit" else scale(X))
    step = make_pipeline(step) if nested else step
    with pytest.raises(ValueError, match="Normalizer with a method of its own"):
        make_private_pipeline(step, clone(MODEL)).fit(X, Y)


def test_no_name_of_a_record_keeps_a_proof_that_a_step_took():
    model = PMSVMAGPClassifier(classes=[0, 1], allow_unsound=True, epochs=1)
    steps = make_private_pipeline(StandardScaler(), model).fit(X, Y)
    assert {steps[-1].guarantee_.status, steps[-1].privacy_.status, steps[-1]._path.guarantees[0].status} == {"claimed"}
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        with pytest.raises(BudgetExceededError, match="proved models alone"):
            make_private_pipeline(StandardScaler(), clone(model)).fit(X, Y)
        assert make_private_pipeline(Normalizer(), clone(MODEL)).fit(X, Y).guarantee_.status == "proved"
    assert budget.spent.epsilon_proved <= 1.0


@pytest.mark.parametrize(
    "several",
    [
        BaggingClassifier(MODEL, n_estimators=2, bootstrap=False),
        OneVsRestClassifier(MODEL),
        CalibratedClassifierCV(MODEL, cv=2),
        RFE(MODEL, n_features_to_select=1),
    ],
    ids=lambda several: type(several).__name__,
)
def test_other_fits_of_one_model_are_counted_or_refused(several):
    with pytest.raises(ValueError, match="allow_composition=False"):
        clone(several).fit(X, Y)
    with Budget(epsilon=1.2, delta=1e-5, verbose=False) as budget:
        try:
            clone(several).fit(X, Y)
        except BudgetExceededError:
            assert budget is not None
    assert budget.spent.epsilon_proved <= 1.2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_drawn_twice_for_one_fit_are_refused_where_fits_are_counted(n_jobs):
    # A row that is in a fit k times moves its weights k times as far as the budget would count.
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget, pytest.raises(ValueError, match="drawn several times"):
        BaggingClassifier(MODEL, n_estimators=2, n_jobs=n_jobs, random_state=0).fit(X, Y)
    assert budget.spent is None


def test_joblibs_workers_count_for_the_budget_that_is_open_however_old_they_are():
    def in_workers(task, *arguments):
        return joblib.Parallel(n_jobs=2)(joblib.delayed(task)(*arguments) for _ in range(4))

    assert set(in_workers(os.getenv, "PRIVSVM_BUDGET")) == {None}
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        assert set(in_workers(os.getenv, "PRIVSVM_BUDGET")) == {os.environ["PRIVSVM_BUDGET"]}
        in_workers(_fit, 0)
    assert budget.spent.epsilon_proved == compose([clone(MODEL).fit(X, Y).guarantee_] * 4, 1e-5).epsilon_proved
    assert set(in_workers(os.getenv, "PRIVSVM_BUDGET")) == {None}


def _search(place):
    GridSearchCV(MODEL, {"C": [0.01, 0.1]}, cv=2, error_score="raise").fit(X, Y)


def test_a_search_in_a_worker_older_than_the_budget_is_refused():
    with (
        multiprocessing.get_context("fork").Pool(1) as older,
        Budget(epsilon=9, delta=1e-5, verbose=False) as budget,
        pytest.raises(ValueError, match="allow_composition=False"),
    ):
        older.map(_search, [0])
    assert budget.spent is None


def test_a_fit_that_begins_inside_is_paid_for_or_refused_however_it_ends(monkeypatch):
    """In a thread that the block does not wait for: it used to be free."""
    inside, left, refused = threading.Event(), threading.Event(), []
    release_path = PrivateSVMClassifier.release_path

    def slow(self, *arguments, **options):
        inside.set()
        left.wait(60)
        return release_path(self, *arguments, **options)

    def fit(model):
        try:
            model.fit(X, Y)
        except BudgetExceededError as error:
            refused.append(str(error))

    monkeypatch.setattr(PrivateSVMClassifier, "release_path", slow)
    model = clone(MODEL)
    thread = threading.Thread(target=fit, args=(model,))
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        thread.start()
        inside.wait(60)
    left.set()
    thread.join()
    assert budget.spent is None
    assert len(refused) == 1
    assert "left before this fit had ended" in refused[0]
    assert not hasattr(model, "coef_")
    # Nor does it spend what a later budget has.
    assert clone(MODEL).fit(X, Y).guarantee_.status == "proved"


def test_a_budget_that_is_entered_again_goes_on_and_has_no_copies():
    budget = Budget(epsilon=1.5, delta=1e-5, verbose=False)
    for fits in (1, 2):
        with budget:
            clone(MODEL).fit(X, Y)
        single = clone(MODEL).fit(X, Y).guarantee_
        assert budget.spent.epsilon_proved == compose([single] * fits, 1e-5).epsilon_proved
    with pytest.raises(BudgetExceededError, match="3 fits would cost"), budget:
        clone(MODEL).fit(X, Y)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(budget)


def test_copies_of_a_process_leave_its_budget_open():
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        if not (child := os.fork()):
            # Falls out of the block, and goes on.
            budget.__exit__(None, None, None)
            _fit(0)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        clone(MODEL).fit(X, Y)
    single = clone(MODEL).fit(X, Y).guarantee_
    assert budget.spent.epsilon_proved == compose([single] * 2, 1e-5).epsilon_proved


def test_two_fits_with_seeded_noise_are_refused():
    """Their noise was the same, so that the difference of two models had none."""
    models = [clone(MODEL).set_params(C=C, random_state=7) for C in (0.01, 0.1)]
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        models[0].fit(X, Y)
        with pytest.raises(BudgetExceededError, match="the noise of both may be the same"):
            models[1].fit(X, Y)
        clone(MODEL).fit(X, Y)
    assert budget.spent.randomness == "seeded"


def test_releases_that_no_fit_counts_are_refused():
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        with pytest.raises(BudgetExceededError, match="a budget counts fits alone"):
            clone(MODEL).release_path(X, Y, [1.0], 1)
        with pytest.raises(BudgetExceededError, match="nothing is proved of DPSVMDVPClassifier"):
            DPSVMDVPClassifier(allow_unsound=True).fit(X, Y)
    assert budget.spent is None


def test_a_fit_that_is_refused_leaves_nothing_behind():
    # The recipe's words hold a noisy number of rows, which would not be paid for.
    model = PrivateLinearClassifier(epsilon=3.0, classes=[0, 1], neighbours="add_remove")
    before = dict(vars(model))
    with Budget(epsilon=1, delta=1e-5, verbose=False), pytest.raises(BudgetExceededError):
        model.fit(X, Y)
    assert vars(model) == before
