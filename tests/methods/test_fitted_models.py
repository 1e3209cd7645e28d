"""What becomes of a proof where a model is changed, copied, stored or fitted again, and where a class is derived."""

import copy
import json
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from tests.methods.test_what_a_model_holds import CASES, X, Y, leaves, settings

from privsvm import Budget, PMSVMAGPClassifier, PrivateSearch, PrivateSVMClassifier, load, make_private_pipeline
from privsvm.base.estimators import PrivateClassifier
from privsvm.release.private_pipeline import PrivatePipeline

ONE_EACH = [case for case in CASES if case.values[1] == "replace_one"]


def content(model):
    """All that a model holds, but for its parameters."""
    parameters = getattr(model, "declared", {})
    return {
        place: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for place, value in leaves(model)
        if place.split(".")[1].split("[")[0] not in parameters
    }


@pytest.mark.parametrize(("method", "neighbours"), ONE_EACH)
def test_a_saved_model_says_what_it_was_trained_with(method, neighbours, tmp_path):
    model = method(**settings(method, neighbours)).fit(X, Y)
    before, said = content(model), model.guarantee_
    model.set_params(epsilon=0.001)
    if "C" in method.declared:
        model.set_params(C=77.0)
    assert content(model) == before
    model.save(tmp_path)
    stored = json.loads((tmp_path / "model.json").read_text())
    assert stored["recipe"]["parameters"]["epsilon"] == 2.0
    assert stored["recipe"]["parameters"].get("C") != 77.0
    read = load(tmp_path)
    assert read.guarantee_ == said
    assert read.protection_.epsilon == pytest.approx(said.epsilon_proved, rel=1e-9)


@pytest.mark.parametrize(("method", "neighbours"), ONE_EACH)
def test_copies_hold_the_same_and_clones_nothing(method, neighbours, tmp_path):
    model = method(**settings(method, neighbours)).set_params(random_state=4711).fit(X, Y)
    joblib.dump(model, tmp_path / "model")
    copies = [
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "model"),
    ]
    for other in copies:
        assert content(other) == content(model)
        # A second fit of a copy draws other noise than the first.
        assert other.random_state is None
    assert not {name for name in vars(clone(model)) if name not in method.declared}


@pytest.mark.parametrize("moment", ["release_path", "_keep", "_keep_recipe"])
def test_a_second_fit_that_is_interrupted_leaves_the_first_model(moment, monkeypatch):
    model = PMSVMAGPClassifier(classes=[0, 1, 2], epsilon=0.5, epochs=1).fit(X, Y)
    before = content(model)
    works = getattr(PMSVMAGPClassifier, moment)

    def interrupted(self, *arguments, **options):
        works(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(PMSVMAGPClassifier, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(epsilon=9.0).fit(X, Y)
    assert content(model) == before


class Defaults(PrivateSVMClassifier):
    """Brings a name, a method and a way of predicting of its own."""

    def predict(self, X):
        return super().predict(X)

    def about(self):
        return "mine"


class Scaled(PrivateSVMClassifier):
    """Trains on rows that it scales by themselves."""

    def release_path(self, X, *arguments, **options):
        return super().release_path(StandardScaler().fit_transform(X), *arguments, **options)


class Mixin:
    """The same, beside the method."""

    def release_path(self, X, *arguments, **options):
        return super().release_path(X - X.mean(axis=0), *arguments, **options)


class Mixed(Mixin, PrivateSVMClassifier):
    """Both."""


class Noiseless(PrivateSVMClassifier):
    """Says another noise than the method's."""

    _noise = None

    def _check_parameters(self):
        self._noise = super()._noise
        return super()._check_parameters()


class Between(PrivateClassifier):
    """Stands behind the method and before its bases."""

    def fit(self, X, y):
        return super().fit(X - X.mean(axis=0), y)


class Behind(PrivateSVMClassifier, Between):
    """Both."""


class Bypassing(PrivateSVMClassifier):
    """Leaves out where a release is judged."""

    def release_path(self, X, y, epsilons, repeats, rng=None, audit=False):
        return self._release(X - X.mean(axis=0), y, epsilons, repeats, rng, audit)


class Reading(PrivateSVMClassifier):
    """Answers for every attribute."""

    def __getattribute__(self, name):
        return super().__getattribute__(name)


def test_a_class_that_puts_its_own_code_in_proves_nothing():
    assert Defaults(classes=[0, 1, 2]).fit(X, Y).guarantee_.status == "proved"
    assert Defaults(classes=[0, 1, 2]).release_path(X, Y, [1.0], 1).guarantees[0].status == "proved"
    for method in (Scaled, Mixed, Noiseless, Behind, Reading):
        released = method(classes=[0, 1, 2]).release_path(X, Y, [1.0, 2.0], 1).guarantees
        assert {guarantee.status for guarantee in released} == {"claimed"}
        with pytest.raises(ValueError, match=r"nothing is known of \w+\.\w+"):
            method(classes=[0, 1, 2]).fit(X, Y)
        model = method(classes=[0, 1, 2], allow_unsound=True).fit(X, Y)
        assert {model.guarantee_.status, model._path.guarantees[0].status} == {"claimed"}
        assert model.guarantee_.epsilon_proved == np.inf
        with Budget(epsilon=9, delta=1e-5, verbose=False), pytest.raises(ValueError, match="proved models alone"):
            clone(model).fit(X, Y)
    search = PrivateSearch(Scaled(classes=[0, 1, 2]), {"C": [0.1]}, epsilon=4.0, mean_runs=2)
    with pytest.raises(ValueError, match=r"nothing is known of Scaled\.release_path"):
        search.fit(X, Y)


@pytest.mark.parametrize("name", ["_noise", "_release", "release_path", "_keep"])
def test_code_of_the_object_itself_proves_nothing(name):
    model = PrivateSVMClassifier(classes=[0, 1, 2])
    setattr(model, name, getattr(model, name))
    with pytest.raises(ValueError, match=f"nothing is known of the object's {name}"):
        model.fit(X, Y)


class OneRun(PrivateSearch):
    """Draws a number of runs of its own."""

    def _draw_runs(self, source):
        return 1


class CentringPipeline(PrivatePipeline):
    """Centres the rows by themselves before all steps."""

    def fit(self, X, y=None, **params):
        return super().fit(X - X.mean(axis=0), y, **params)


def test_a_derived_search_or_pipeline_proves_nothing():
    model = PrivateSVMClassifier(classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"nothing is known of OneRun\._draw_runs"):
        OneRun(model, {"C": [0.1]}, epsilon=4.0, mean_runs=2).fit(X, Y)
    steps = [("norm", Normalizer()), ("model", model)]
    with pytest.raises(ValueError, match=r"nothing is known of CentringPipeline\.fit"):
        CentringPipeline(steps).fit(X, Y)
    assert PrivatePipeline(steps).fit(X, Y).guarantee_.status == "proved"


def test_no_class_of_the_library_has_code_of_others():
    for case in CASES:
        assert issubclass(case.values[0], PrivateClassifier)
        assert case.values[0].__module__.startswith("privsvm.")


class Centring(Normalizer):
    """A step that looks like one that reads no values."""

    def transform(self, X, copy=None):
        return super().transform(X - X.mean(axis=0), copy)


class Other(FunctionTransformer):
    """The same."""

    def transform(self, X):
        return X - X.mean(axis=0)


@pytest.mark.parametrize("step", [Centring(), Other()], ids=lambda step: type(step).__name__)
def test_a_derived_step_takes_the_proof(step):
    with pytest.raises(ValueError, match="fitted to private rows before the model"):
        make_private_pipeline(step, PrivateSVMClassifier(classes=[0, 1, 2])).fit(X, Y)


def test_a_step_that_comes_after_the_fit_takes_the_proof():
    steps = make_private_pipeline(Normalizer(), PrivateSVMClassifier(classes=[0, 1, 2])).fit(X, Y)
    assert steps.guarantee_.status == "proved"
    steps.steps.insert(0, ("scale", StandardScaler().fit(X)))
    assert steps.guarantee_.status == "claimed"
    assert "scale (StandardScaler)" in steps.guarantee_.reason
