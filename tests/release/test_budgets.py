"""Several fits on the same rows: counted together, refused beyond the budget, and no search goes unnoticed."""

import multiprocessing

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler

from privsvm import Budget, BudgetExceededError, PrivateSVMClassifier, make_private_pipeline
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


def test_searches_are_counted_or_refused():
    search = GridSearchCV(MODEL, {"C": [0.01, 0.1]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match="allow_composition=False: a search or cross-validation fits many"):
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
    SimpleImputer(strategy="constant", fill_value=0.0),
    ColumnTransformer([("a", Normalizer(), [0]), ("b", "passthrough", [1])]),
    OneHotEncoder(categories=[[-0.8, 0.7], [-0.2, 0.1]], sparse_output=False),
]
FITTED = [
    StandardScaler(),
    MinMaxScaler(),
    SimpleImputer(),
    OneHotEncoder(sparse_output=False),
    SelectKBest(k=1),
    ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])]),
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
