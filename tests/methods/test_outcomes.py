"""Whatever the noise is, a fit ends in a model: no error, no warning and no number of steps tells of it."""

import warnings
from unittest.mock import Mock

import numpy as np
import pytest
from tests.proved import CASES, PARAMS

from privsvm import Budget, PrivateLinearClassifier, PrivateSearch, SoftmaxDPSGDClassifier
from privsvm.base import estimators
from privsvm.base.budget import BudgetExceededError, charge_to
from privsvm.base.estimators import Release
from privsvm.errors import PrivSVMError
from privsvm.methods import DPSVMDVPClassifier, OPERAAsPublishedClassifier, PMSVMWPAsPublishedClassifier
from privsvm.numerics.compiled.threads import thread_pool
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.solvers.gradients import noisy_gradient

X = np.random.default_rng(0).uniform(-1, 1, size=(8, 2))
Y = np.arange(8) % 3
# A whole number drawn in place of noise of a scale, by its place; far more than any noise has ever been, too.
DRAWS = {
    "none": lambda scale, places: 0 * places,
    "smallest": lambda scale, places: 0 * places - int(40 * scale),
    "largest": lambda scale, places: 0 * places + int(40 * scale),
    "alternating": lambda scale, places: int(40 * scale) * (1 - 2 * (places % 2)),
    "beyond": lambda scale, places: (2**62) * (1 - 2 * (places % 2)),
}


class Chosen(NoiseSource):
    """A source whose draws a test chooses."""

    draw = staticmethod(DRAWS["none"])

    def part(self, name):
        return type(self)(self._key_of("part", name))

    def rounded_normals(self, sigma, size):
        return self.draw(sigma, np.arange(size))

    def discrete_laplace(self, scale, size):
        return self.draw(scale, np.arange(size))

    def exponential_choices(self, scores, scale):
        return self.draw(1.0, np.arange(len(scores))) % scores.shape[1]


class ChosenGenerator(np.random.Generator):
    """The same for methods of which nothing is proved."""

    draw = staticmethod(DRAWS["none"])

    def laplace(self, loc=0.0, scale=1.0, size=None):
        return 1e-3 * self.draw(1000.0, np.arange(np.prod(size))).reshape(size)

    def normal(self, loc=0.0, scale=1.0, size=None):
        return self.laplace(size=size)


def choose_draws(monkeypatch, draw):
    """Choose every draw of the fits in a test."""

    def of_steps(key, sigma, size, first):
        return draw(sigma, first + np.arange(size))

    monkeypatch.setattr(noisy_gradient, "rounded_normals", of_steps)
    monkeypatch.setattr(Chosen, "draw", staticmethod(draw))
    monkeypatch.setattr(ChosenGenerator, "draw", staticmethod(draw))
    monkeypatch.setattr(estimators, "system_source", lambda: Chosen(bytes(32)))
    monkeypatch.setattr(estimators, "system_stream", lambda: ChosenGenerator(np.random.PCG64(0)))


@pytest.fixture(params=DRAWS)
def draws(request, monkeypatch):
    """Choose every draw of the fits in a test, in one way after the other."""
    choose_draws(monkeypatch, DRAWS[request.param])


def released(model, X, y):
    """Fit, where every warning is an error and every odd number raises; return the guarantee and public attributes."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        model.fit(X, y)
    fitted = vars(model)
    assert all(np.isfinite(value).all() for value in fitted.values() if isinstance(value, np.ndarray))
    numbers = {name: value for name, value in fitted.items() if isinstance(value, (int, float))}
    return model.guarantee_, sorted(fitted), numbers


@pytest.mark.parametrize("case", PARAMS)
def test_no_draw_is_an_error_or_a_warning(case, monkeypatch):
    outcomes = []
    for draw in DRAWS.values():
        choose_draws(monkeypatch, draw)
        outcomes.append(released(case.model(), X, Y % case.n_classes))
    assert outcomes[0][0].status == "proved"
    # The released model decides predictions, and no number of steps is stored.
    assert all(outcome == outcomes[0] for outcome in outcomes)


@pytest.mark.parametrize("method", [DPSVMDVPClassifier, OPERAAsPublishedClassifier, PMSVMWPAsPublishedClassifier])
def test_no_draw_is_an_error_where_nothing_is_proved(method, draws):
    assert released(method(allow_unsound=True), X, Y)[0].status == "claimed"


@pytest.mark.parametrize("changes", [{"learning_rate": 1e100}, {"learning_rate": 10.0, "ridge": 1e90}])
@pytest.mark.parametrize("scaling", ["none", "centre", "whiten"])
def test_training_that_diverges_is_released(draws, changes, scaling):
    model = SoftmaxDPSGDClassifier(classes=[0, 1, 2], scaling=scaling, **changes)
    assert released(model, X, Y)[0].status == "proved"
    assert np.isfinite(model.decision_function(X)).all()


def test_threads_tell_nothing_either(draws):
    """They have settings of their own for numbers that overflow."""
    model = SoftmaxDPSGDClassifier(classes=[0, 1, 2], learning_rate=1e100, scaling="whiten", n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = model.release_path(X, Y, [1.0, 2.0], 2)
    assert np.isfinite(path.coef).all()
    with thread_pool(2) as pool:
        assert set(pool.submit(np.geterr).result().values()) == {"ignore"}


def test_a_search_ends_in_a_model(draws):
    search = PrivateSearch(SoftmaxDPSGDClassifier(classes=[0, 1, 2]), {"learning_rate": [0.1, 1e100]}, mean_runs=3)
    search.fit(X, Y)
    assert search.guarantee_.status == "proved"
    assert search.best_params_["learning_rate"] in (0.1, 1e100)


def methods():
    """Choose one case a method: who pays, and when, does not depend on other choices."""
    return list({case.method: case for case in CASES}.values())


@pytest.mark.parametrize("case", methods(), ids=str)
def test_a_model_is_paid_for_before_any_draw(case, monkeypatch):
    """A refused payment draws no noise, and leaves the estimator unchanged."""
    refuse = Mock(side_effect=BudgetExceededError("too much"))

    def unpaid():
        raise AssertionError("a draw that nobody has paid for")

    # Sources may be opened; their generators may not.
    monkeypatch.setattr(Chosen, "draw", staticmethod(lambda scale, places: unpaid()))
    monkeypatch.setattr(Chosen, "next_key", lambda self: unpaid())
    monkeypatch.setattr(estimators, "system_source", lambda: Chosen(bytes(32)))
    model = case.model()
    before = dict(vars(model))
    with charge_to(refuse), pytest.raises(BudgetExceededError, match="too much"):
        model.fit(X, Y % case.n_classes)
    assert [call.args[0].status for call in refuse.call_args_list] == ["proved"]
    assert vars(model) == before


def test_noise_needs_payment():
    release = Release(
        rows=X, codes=Y, n_classes=3, epsilons=(1.0,), delta=1e-5, neighbours="replace_one", repeats=1,
        sources=lambda epsilon, repeat: NoiseSource(bytes(32)), randomness="seeded", audit=False,
        declared_classes=True, book=lambda one: one,
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="drawn before it is paid for"):
        release.source(1.0, 0)


def test_a_fit_that_fails_after_its_draw_is_paid_for(monkeypatch):
    """Else each failure would be an answer for nothing."""

    def failing(self, path):
        raise PrivSVMError("failed")

    monkeypatch.setattr(PrivateLinearClassifier, "_keep", failing)
    with Budget(epsilon=3.0, delta=1e-5, verbose=False) as budget:
        for _ in range(2):
            with pytest.raises(PrivSVMError, match="failed"):
                PrivateLinearClassifier(classes=[0, 1, 2]).fit(X, Y)
    assert budget.spent.epsilon_proved == pytest.approx(1.45, abs=0.05)
