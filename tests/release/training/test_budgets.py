"""Several fits on the same rows: counted together, refused beyond the budget, and no search goes unnoticed."""

import copy
import inspect
import math
import multiprocessing
import os
import pickle
import threading

import joblib
import numpy as np
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as imblearn_pipeline
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils import all_estimators
from tests.processes import exit_codes
from tests.waits import PATIENCE

import privsvm
from privsvm import (
    Budget,
    BudgetExceededError,
    CondensedInformation,
    DPSVMDVPClassifier,
    MajorityClassifier,
    PMSVMAGPClassifier,
    PrivateLinearClassifier,
    PrivateSearch,
    PrivateSVMClassifier,
    PublicSchema,
    SVMClassifier,
    make_private_pipeline,
)
from privsvm.privacy.gate import ONE_OF_SEVERAL, compose, restore
from privsvm.registry import estimator_class, implementations
from privsvm.release.training.recipes import Terms, train
from privsvm.tables.schema import parse_schema

X = np.array([[-0.8, 0.1], [0.7, -0.2]] * 30)
Y = np.array([0, 1] * 30)
MODEL = PrivateSVMClassifier(epsilon=1.0, classes=[0, 1])
COLUMNS = {name: {"bounds": [-1, 1], "fill": "middle"} for name in "ab"}
SCHEMA = PublicSchema({"name": "s", "label": "y", "classes": ["0", "1"], "columns": COLUMNS})


def model(**changes):
    return PrivateSVMClassifier(**{"epsilon": 1.0, "classes": [0, 1], **changes})


def test_fits_compose_to_the_total_of_one_accountant(capsys):
    with Budget(epsilon=3, delta=1e-5) as budget:
        fits = [model().fit(X, Y).guarantee_ for _ in range(3)]
    assert budget.spent.epsilon_proved == compose(fits, 1e-5).epsilon_proved
    assert 1.0 < budget.spent.epsilon_proved < 3.0
    assert f"3 fits: epsilon {budget.spent.epsilon_proved:.4g} of 3" in capsys.readouterr().out


def test_the_fit_that_would_exceed_it_is_refused_and_keeps_no_model():
    with Budget(epsilon=1.5, delta=1e-5, verbose=False) as budget:
        model().fit(X, Y)
        model().fit(X, Y)
        third = model()
        with pytest.raises(BudgetExceededError, match="3 fits would cost epsilon"):
            third.fit(X, Y)
        assert not hasattr(third, "coef_")
    assert budget.spent.epsilon_proved <= 1.5
    with Budget(epsilon=9, delta=1e-5, verbose=False), pytest.raises(BudgetExceededError, match="proved models alone"):
        PrivateSVMClassifier(allow_unsound=True).fit(X, Y)


def _fit(number):
    model().fit(X, Y)


def _fit_at_once(gate, epsilon):
    gate.wait()
    try:
        model(epsilon=epsilon).fit(X, Y)
    except BudgetExceededError:
        os._exit(7)


@pytest.mark.parametrize("attempt", range(3))
def test_processes_that_fit_at_once_spend_no_more_than_the_budget(attempt):
    one = model(epsilon=0.5).fit(X, Y).guarantee_
    limit = compose([one] * 3, 1e-5).epsilon_proved * 1.001
    assert compose([one] * 4, 1e-5).epsilon_proved > limit
    gate = multiprocessing.get_context("fork").Barrier(6)
    with Budget(epsilon=limit, delta=1e-5, verbose=False) as budget:
        assert sorted(exit_codes(_fit_at_once, [(gate, 0.5)] * 6)) == [0, 0, 0, 7, 7, 7]
        with pytest.raises(ValueError, match="open already"):
            Budget(1, 1e-5).__enter__()
    assert budget.spent.epsilon_proved == compose([one] * 3, 1e-5).epsilon_proved


MESSAGE = "sklearn.base.clone made this estimator"
CLONES = {
    "GridSearchCV": {"param_grid": {"C": [0.01, 0.1]}, "cv": 2},
    "HalvingGridSearchCV": {"param_grid": {"C": [0.01, 0.1]}, "cv": 2},
    "HalvingRandomSearchCV": {"param_distributions": {"C": [0.01, 0.1]}, "cv": 2},
    "RandomizedSearchCV": {"param_distributions": {"C": [0.01, 0.1]}, "cv": 2, "n_iter": 2},
    "BaggingClassifier": {"bootstrap": False, "n_estimators": 2},
    # A random code of equal bits would fit nothing.
    "OutputCodeClassifier": {"random_state": 0, "code_size": 4},
    "RFE": {"n_features_to_select": 1},
    "StackingClassifier": {"cv": 2},
}
# Meta-estimators that fit regressors, transform alone, fit nothing, or ask for weights of rows, which ours do not take.
NO_FITS = {
    "AdaBoostClassifier", "AdaBoostRegressor", "BaggingRegressor", "FeatureUnion", "FrozenEstimator", "RANSACRegressor",
    "StackingRegressor", "VotingRegressor",
}  # fmt: skip
SEVERAL_LABELS = {"ClassifierChain", "MultiOutputClassifier", "MultiOutputRegressor", "RegressorChain"}


META_ESTIMATORS = [
    kind
    for name, kind in all_estimators()
    if {"estimator", "estimators"} & inspect.signature(kind).parameters.keys() and name not in NO_FITS
]


@pytest.mark.parametrize("kind", META_ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("consent", [False, True], ids=["", "allow_composition"])
def test_a_budget_takes_no_meta_estimator(kind, consent):
    """Each reads labels or scores of private rows beside its fits, and none of that would be counted."""
    single = model(allow_composition=consent)
    one = "estimator" in inspect.signature(kind).parameters
    asked = {"estimator": single} if one else {"estimators": [("one", single), ("two", model())]}
    labels = np.column_stack([Y, Y]) if kind.__name__ in SEVERAL_LABELS else Y
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget, pytest.raises(Exception, match=MESSAGE):
        kind(**asked, **CLONES.get(kind.__name__, {})).fit(X, labels)
    assert budget.spent is None


def test_a_budget_is_judged_by_the_number_of_rows():
    rows, labels = np.tile(X, (4, 1)), np.tile(Y, 4)
    with Budget(epsilon=2.0, delta=0.008), pytest.raises(BudgetExceededError, match=r"delta is 0\.008: at 1 / 240"):
        PrivateLinearClassifier(classes=[0, 1], neighbours="replace_one").fit(rows, labels)


@pytest.mark.parametrize("pipeline", [False, True])
@pytest.mark.parametrize("scored", [cross_val_score, cross_val_predict, learning_curve, permutation_test_score])
def test_a_budget_takes_no_cross_validation(scored, pipeline):
    steps = make_private_pipeline(SCHEMA, model(allow_composition=True)) if pipeline else model(allow_composition=True)
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget, pytest.raises(Exception, match=MESSAGE):
        scored(steps, X, Y, cv=2)
    assert budget.spent is None


def test_a_search_of_searches_is_refused_in_a_budget():
    search = PrivateSearch(model(), {"C": [0.1]}, epsilon=4.0, mean_runs=2)
    with pytest.raises(ValueError, match="allow_composition=False"):
        clone(search).fit(X, Y)
    several = GridSearchCV(search, {"epsilon": [4.0, 5.0]}, cv=2, error_score="raise")
    with Budget(epsilon=99, delta=1e-5, verbose=False) as budget, pytest.raises(BudgetExceededError, match=MESSAGE):
        several.fit(X, Y)
    assert budget.spent is None


def test_clones_prove_nothing_unless_their_user_adds_up():
    with pytest.raises(ValueError, match=r"allow_composition=False.*privsvm\.PrivateSearch"):
        GridSearchCV(MODEL, {"C": [0.01, 0.1]}, cv=2, error_score="raise").fit(X, Y)
    with pytest.raises(ValueError, match="allow_composition"):
        cross_val_score(make_pipeline(Normalizer(), MODEL), X, Y, cv=2, error_score="raise")
    for made in (clone(model()), pickle.loads(pickle.dumps(clone(model()))), copy.deepcopy(clone(model()))):
        with pytest.raises(ValueError, match="allow_composition=False"):
            made.fit(X, Y)
    accepted = clone(model(allow_unsound=True)).fit(X, Y).guarantee_
    assert accepted.status == "claimed"
    assert "sklearn.base.clone" in accepted.reason
    several = clone(model(allow_composition=True)).fit(X, Y)
    assert several.guarantee_.status == "proved"
    # Its user adds up; a choice by scores is covered by no sum, and every copy of the record says so.
    for fitted in (several, pickle.loads(pickle.dumps(several))):
        assert fitted.guarantee_.assumptions[-1] == ONE_OF_SEVERAL
    assert ONE_OF_SEVERAL not in model(allow_composition=True).fit(X, Y).guarantee_.assumptions


def test_a_budget_counts_a_private_search_as_a_whole():
    search = PrivateSearch(model(), {"C": [0.1, 1.0]}, epsilon=4.0, mean_runs=2)
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        search.fit(X, Y)
    assert budget.spent.epsilon_proved == pytest.approx(search.guarantee_.epsilon_proved)
    # The released model is no clone: its user may train it again.
    assert search.best_estimator_.fit(X, Y).guarantee_.status == "proved"


class Mine(PublicSchema):
    """May do anything."""


UNKNOWN = [
    StandardScaler(),
    Normalizer(),
    # A product of matrices where rows are sparse and as many as features.
    FunctionTransformer(np.square),
    FunctionTransformer(),
    SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
    # Dense or sparse, as the density of all rows has it.
    ColumnTransformer([("a", "passthrough", [0, 1])]),
    FeatureUnion([("a", "passthrough")]),
    OneHotEncoder(categories=[[-0.8, 0.7], [-0.2, 0.1]], sparse_output=False),
    RBFSampler(gamma=1.0, random_state=0),
    SelectKBest(k=1),
    make_pipeline(SCHEMA),
    Mine(SCHEMA.schema),
]


@pytest.mark.parametrize("steps", [(), (SCHEMA,), ("passthrough",)], ids=len)
def test_public_schemas_leave_the_proof(steps):
    assert make_private_pipeline(*steps, model()).fit(X, Y).guarantee_.status == "proved"


@pytest.mark.parametrize(
    ("declared", "status", "says"),
    [
        ({"prescaled": False}, "proved", ""),
        ({"prescaled": True}, "claimed", "scaled by statistics of its own rows"),
        ({"person": "id", "rows_per_person": 5}, "claimed", "a person has up to 5 rows, and epsilon covers one row"),
    ],
    ids=["not scaled", "scaled", "persons"],
)
def test_what_a_schema_declares_of_its_rows_is_in_the_guarantee(declared, status, says):
    schema = PublicSchema({**SCHEMA.schema, **declared})
    if says:
        with pytest.raises(ValueError, match=says):
            make_private_pipeline(schema, model()).fit(X, Y)
    guarantee = make_private_pipeline(schema, model(allow_unsound=bool(says))).fit(X, Y).guarantee_
    assert guarantee.status == status
    assert says in (guarantee.reason or "")


@pytest.mark.parametrize("step", UNKNOWN, ids=lambda step: type(step).__name__)
def test_every_other_step_takes_it(step):
    with pytest.raises(ValueError, match="steps that may mix private rows before the model"):
        make_private_pipeline(step, model()).fit(X, Y)
    guarantee = make_private_pipeline(step, model(allow_unsound=True)).fit(X, Y).guarantee_
    assert guarantee.status == "claimed"
    assert type(step).__name__.lower() in guarantee.reason.lower()


def test_resampled_rows_are_not_called_proved():
    """A row that was repeated counts several times, and one that was made from others has none of its own."""
    for steps in ((RandomOverSampler(), model()), (SCHEMA, imblearn_pipeline(RandomOverSampler(), model()))):
        with pytest.raises(ValueError, match="nothing is proved"):
            make_private_pipeline(*steps).fit(X, Y)


def test_a_step_alone_says_that_it_knows_nothing_of_what_came_before():
    """In a plain pipeline it cannot know that a scaler has read all rows."""
    scaled = make_pipeline(StandardScaler(), model()).fit(X, Y)[-1].guarantee_
    alone, behind_a_schema = model().fit(X, Y), make_private_pipeline(SCHEMA, model()).fit(X, Y)
    for guarantee in (scaled, alone.guarantee_, behind_a_schema.guarantee_):
        assert guarantee.assumptions[0].startswith("the status is that of this step alone: rows reach it untouched")
    # The caller states how the file was made.
    assert "this step alone" not in " ".join(restore(scaled, preparation="declared").assumptions)


def test_no_name_of_a_record_keeps_a_proof_that_a_step_took():
    trained = PMSVMAGPClassifier(classes=[0, 1], allow_unsound=True, epochs=1)
    steps = make_private_pipeline(StandardScaler(), trained).fit(X, Y)
    assert {steps[-1].guarantee_.status, steps[-1].privacy_.status, steps[-1]._path.guarantees[0].status} == {"claimed"}
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        with pytest.raises(BudgetExceededError, match="proved models alone"):
            make_private_pipeline(StandardScaler(), model(allow_unsound=True)).fit(X, Y)
        assert make_private_pipeline(SCHEMA, model()).fit(X, Y).guarantee_.status == "proved"
    assert budget.spent.epsilon_proved <= 1.0


def test_joblibs_workers_count_for_the_budget_that_is_open_however_old_they_are():
    def in_workers(task, *arguments):
        return joblib.Parallel(n_jobs=2)(joblib.delayed(task)(*arguments) for _ in range(4))

    assert set(in_workers(os.getenv, "PRIVSVM_BUDGET")) == {None}
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        assert set(in_workers(os.getenv, "PRIVSVM_BUDGET")) == {os.environ["PRIVSVM_BUDGET"]}
        in_workers(_fit, 0)
    assert budget.spent.epsilon_proved == compose([model().fit(X, Y).guarantee_] * 4, 1e-5).epsilon_proved
    assert set(in_workers(os.getenv, "PRIVSVM_BUDGET")) == {None}


def _search(number):
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
    inside, closed, refused = threading.Event(), threading.Event(), []
    release_path = PrivateSVMClassifier.release_path

    def slow(self, *arguments, **options):
        inside.set()
        closed.wait(PATIENCE)
        return release_path(self, *arguments, **options)

    def fit(model):
        try:
            model.fit(X, Y)
        except BudgetExceededError as error:
            refused.append(str(error))
        finally:
            inside.set()

    monkeypatch.setattr(PrivateSVMClassifier, "release_path", slow)
    trained = model()
    thread = threading.Thread(target=fit, args=(trained,), daemon=True)
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        thread.start()
        inside.wait(PATIENCE)
    closed.set()
    thread.join()
    assert budget.spent is None
    assert len(refused) == 1
    assert "left before this fit was counted" in refused[0]
    assert not hasattr(trained, "coef_")
    # Nor does it spend from a later budget.
    assert model().fit(X, Y).guarantee_.status == "proved"


def test_a_budget_that_is_entered_again_goes_on_and_has_no_copies():
    budget = Budget(epsilon=1.5, delta=1e-5, verbose=False)
    for fits in (1, 2):
        with budget:
            model().fit(X, Y)
        single = model().fit(X, Y).guarantee_
        assert budget.spent.epsilon_proved == compose([single] * fits, 1e-5).epsilon_proved
    with pytest.raises(BudgetExceededError, match="3 fits would cost"), budget:
        model().fit(X, Y)
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
        model().fit(X, Y)
    single = model().fit(X, Y).guarantee_
    assert budget.spent.epsilon_proved == compose([single] * 2, 1e-5).epsilon_proved


def test_two_fits_with_seeded_noise_are_refused():
    """Their noise was the same, so that the difference of two models had none."""
    models = [model(C=C, random_state=7) for C in (0.01, 0.1)]
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        models[0].fit(X, Y)
        with pytest.raises(BudgetExceededError, match="the noise of both may be the same"):
            models[1].fit(X, Y)
        fits = [models[0].guarantee_, model().fit(X, Y).guarantee_]
    assert budget.spent == compose(fits, 1e-5)
    assert (budget.spent.status, budget.spent.epsilon_proved) == ("seeded", math.inf)


def test_a_seeded_fit_costs_what_one_with_system_noise_does(capsys):
    with pytest.raises(BudgetExceededError, match="1 fits would cost epsilon 1"), Budget(epsilon=0.9, delta=1e-5):
        model(random_state=7).fit(X, Y)
    with Budget(epsilon=9, delta=1e-5):
        model(random_state=7).fit(X, Y)
    said = capsys.readouterr().out
    assert "1 fits: epsilon 1 of 9 at delta 1e-05, under replace_one, with system noise; one was seeded" in said


# Each class with a `fit` among the public names and the benchmark's methods; a new one is one of them.
ESTIMATORS = sorted(
    {
        kind
        for kind in (getattr(privsvm, name) for name in dir(privsvm))
        if isinstance(kind, type) and hasattr(kind, "fit")
    }
    | set(map(estimator_class, implementations())),
    key=lambda kind: kind.__name__,
)


def _to_train(kind, consent):
    """Make an estimator that trains on the rows above."""
    if kind is PrivateSearch:
        return kind(model(), {"C": [0.1, 1.0]}, epsilon=1.0, mean_runs=2)
    if kind is PublicSchema:
        return SCHEMA
    parameters = inspect.signature(kind).parameters
    chosen = {"classes": [0, 1], "n_rows": len(Y), "epsilon": 1.0, "allow_unsound": consent}
    return kind(**{name: value for name, value in chosen.items() if name in parameters})


@pytest.mark.parametrize("consent", [False, True], ids=["", "allow_unsound"])
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_a_fit_in_a_budget_is_counted_or_refused(kind, consent):
    estimator = _to_train(kind, consent)
    budget = Budget(epsilon=9, delta=1e-5, verbose=False)
    try:
        with budget:
            estimator.fit(X, Y)
    except ValueError as error:
        # Unsound ones are refused before they are counted.
        assert isinstance(error, BudgetExceededError) or not consent  # noqa: PT017 - of two outcomes one is no error
        assert budget.spent is None
        return
    if kind is PublicSchema:
        # It reads no row.
        assert budget.spent is None
        assert np.array_equal(estimator.fit().transform(X), estimator.fit(X[:7], Y[:7]).transform(X))
    elif kind is PrivateSearch:
        # It pays before it knows in which words the best run describes itself.
        assert budget.spent.event == compose([estimator.guarantee_], 1e-5).event
    else:
        assert budget.spent == compose([estimator.guarantee_], 1e-5)


def test_what_a_budget_does_not_count_is_refused_by_name():
    schema = parse_schema({**SCHEMA.schema, "prescaled": False})
    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        for name, task in {
            "PrivateSVMClassifier": lambda: model().release_path(X, Y, [1.0], 1),
            "SVMClassifier": lambda: SVMClassifier().fit(X, Y),
            "MajorityClassifier": lambda: MajorityClassifier().release_path(X, Y, [1.0], 1),
            "CondensedInformation": lambda: CondensedInformation().fit_resample(X, Y),
        }.items():
            with pytest.raises(BudgetExceededError, match=f"^{name}: .*fit a private estimator such as Private"):
                task()
        with pytest.raises(BudgetExceededError, match=r"^a budget takes proved models alone"):
            DPSVMDVPClassifier(allow_unsound=True).fit(X, Y)
        with pytest.raises(BudgetExceededError, match="no fit pays for what rows held back measure"):
            train(X, Y, schema, Terms(1.0, 1e-5, "replace_one", hold_back=0.1))
    assert budget.spent is None


@pytest.mark.parametrize("lose", [os.unlink, lambda file: os.truncate(file, 60)], ids=["removed", "cut"])
def test_a_budget_whose_file_was_lost_is_not_entered_again(lose):
    """It would begin with nothing spent."""
    budget = Budget(epsilon=9, delta=1e-5, verbose=False)
    budget.__enter__()
    model().fit(X, Y)
    lose(os.environ["PRIVSVM_BUDGET"])
    with pytest.raises((OSError, ValueError)):
        budget.__exit__(None, None, None)
    with pytest.raises(ValueError, match="was lost when its block ended"), budget:
        raise AssertionError("it was entered")


def test_a_full_disk_leaves_no_half_line(monkeypatch):
    write = os.write

    def full(descriptor, line):
        monkeypatch.undo()
        write(descriptor, line[:40])
        raise OSError("no room")

    with Budget(epsilon=9, delta=1e-5, verbose=False) as budget:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="no room"):
            model().fit(X, Y)
        model().fit(X, Y)
    assert budget.spent.epsilon_proved == pytest.approx(1.0, abs=0.01)


class Rows:
    """Rows that do something whenever they are read."""

    def __init__(self, when_read):
        self.when_read, self.times = when_read, 0

    def __array__(self, dtype=None, copy=None):
        self.times += 1
        self.when_read()
        return np.array(X, dtype=dtype)


def test_what_rows_fit_while_a_search_reads_them_is_paid_for():
    """Nor do they learn the number of its runs, which is secret."""
    rows = Rows(lambda: model().fit(X, Y))
    search = PrivateSearch(model(), {"C": [0.01, 0.1]}, epsilon=4.0, mean_runs=5)
    with Budget(epsilon=20, delta=1e-5, verbose=False) as budget:
        search.fit(rows, Y)
    assert rows.times == 1
    assert [fit.epsilon_requested for fit in budget._fits] == [1.0, 4.0]
    # A fit pays for no more models than one.
    with pytest.raises(ValueError, match="repeats=2: inside a fit"):
        model().fit(Rows(lambda: model().release_path(X, Y, [1.0], 2)), Y)


def test_what_is_fitted_amid_a_run_of_a_search_is_paid_for(monkeypatch):
    """By a handler of signals, for example."""
    run = PrivateSearch._run

    def interrupt(self, *arguments):
        model().fit(X, Y)
        return run(self, *arguments)

    monkeypatch.setattr(PrivateSearch, "_run", interrupt)
    with Budget(epsilon=50, delta=1e-3, verbose=False) as budget:
        PrivateSearch(model(), {"C": [0.01, 0.1]}, epsilon=4.0, mean_runs=3).fit(X, Y)
    assert [fit.epsilon_requested for fit in budget._fits][:2] == [4.0, 1.0]


def test_a_budget_adds_up_both_relations(capsys):
    """As replaced rows: by the events at twice the sensitivity."""
    with Budget(epsilon=9, delta=1e-4) as budget:
        fits = [model(neighbours=relation).fit(X, Y).guarantee_ for relation in ("add_remove", "replace_one")]
    assert budget.spent == compose(fits, 1e-4)
    assert budget.spent.neighbours == "replace_one"
    total = budget.spent.epsilon_proved
    assert f"2 fits: epsilon {total:.4g} of 9 at delta 0.0001, under replace_one\n" in capsys.readouterr().out
    assert total > compose([fits[1]] * 2, 1e-4).epsilon_proved
    with Budget(epsilon=9, delta=1e-5):
        model(neighbours="add_remove").fit(X, Y)
    assert "epsilon 1 of 9 at delta 1e-05, under add_remove (epsilon 2." in capsys.readouterr().out
    message = f"2 fits would cost epsilon {total:.4g} at delta 0.0001 under replace_one, above the budget of 1.5"
    with Budget(epsilon=1.5, delta=1e-4):
        model(neighbours="add_remove").fit(X, Y)
        with pytest.raises(BudgetExceededError, match=message):
            model(neighbours="replace_one").fit(X, Y)
