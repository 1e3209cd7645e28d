"""What becomes of a proof where a model is changed, copied, stored or fitted again, and where a class is derived."""

import copy
import json
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from tests.methods.test_what_a_model_holds import CASES, X, Y, leaves, settings

from privsvm import Budget, PMSVMAGPClassifier, PrivateSearch, PrivateSVMClassifier, load, make_private_pipeline
from privsvm.base.estimators import plain_parameters
from privsvm.release.training.private_pipeline import PrivatePipeline

ONE_EACH = [case for case in CASES if case.values[1] == "replace_one"]


def content(model):
    """All that a model holds, but for its parameters."""
    parameters = getattr(model, "declared", {})
    return {
        path: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for path, value in leaves(model)
        if path.split(".")[1].split("[")[0] not in parameters
    }


def test_recipes_state_public_lists_alone():
    given = {"bounds": (np.zeros(2), np.ones(17)), "indicators": np.arange(2), "rows": np.ones(2), "n": np.int64(3)}
    stated = {"bounds": [[0.0, 0.0], "17 values"], "indicators": [0, 1], "rows": "ndarray", "n": 3}
    assert plain_parameters(given) == stated


@pytest.mark.parametrize(("method", "neighbours"), ONE_EACH)
def test_a_saved_model_says_what_it_was_trained_with(method, neighbours, tmp_path):
    model = method(**settings(method, neighbours)).fit(X, Y)
    before, guarantee = content(model), model.guarantee_
    model.set_params(epsilon=0.001)
    if "C" in method.declared:
        model.set_params(C=77.0)
    assert content(model) == before
    model.save(tmp_path)
    stored = json.loads((tmp_path / "model.json").read_text())
    assert stored["recipe"]["parameters"]["epsilon"] == 2.0
    assert stored["recipe"]["parameters"].get("C") != 77.0
    read = load(tmp_path)
    assert read.guarantee_ == guarantee
    assert read.protection_.epsilon == pytest.approx(guarantee.epsilon_proved, rel=1e-9)


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
    assert vars(clone(model)).keys() - method.declared.keys() <= {"_cloned"}


@pytest.mark.parametrize("moment", ["release_path", "_keep", "_keep_recipe"])
def test_a_second_fit_that_is_interrupted_leaves_the_first_model(moment, monkeypatch):
    model = PMSVMAGPClassifier(classes=[0, 1, 2], epsilon=0.5, epochs=1).fit(X, Y)
    before = content(model)
    works = getattr(PMSVMAGPClassifier, moment)

    def interrupt(self, *arguments, **options):
        works(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(PMSVMAGPClassifier, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(epsilon=9.0).fit(X, Y)
    assert content(model) == before


class Derived(PrivateSVMClassifier):
    """Might scale rows by themselves."""


# It says that it is of the library.
Derived.__module__, Derived.__qualname__ = PrivateSVMClassifier.__module__, "PrivateSVMClassifier"


class DerivedSearch(PrivateSearch):
    """Might draw a number of runs of its own."""


class DerivedPipeline(PrivatePipeline):
    """Might centre the rows before all steps."""


def test_derived_classes_prove_nothing():
    released = Derived(classes=[0, 1, 2]).release_path(X, Y, [1.0, 2.0], 1).guarantees
    assert {guarantee.status for guarantee in released} == {"claimed"}
    model = Derived(classes=[0, 1, 2], allow_unsound=True).fit(X, Y)
    assert {model.guarantee_.status, model._path.guarantees[0].status} == {"claimed"}
    with Budget(epsilon=9, delta=1e-5, verbose=False), pytest.raises(ValueError, match="proved models alone"):
        model.fit(X, Y)
    with_classes = PrivateSVMClassifier(classes=[0, 1, 2])
    for derived in (
        Derived(classes=[0, 1, 2]),
        PrivateSearch(Derived(classes=[0, 1, 2]), {"C": [0.1]}, epsilon=4.0, mean_runs=2),
        DerivedSearch(with_classes, {"C": [0.1]}, epsilon=4.0, mean_runs=2),
        DerivedPipeline([("model", with_classes)]),
    ):
        with pytest.raises(ValueError, match="is a class of yours"):
            derived.fit(X, Y)
    assert PrivatePipeline([("model", with_classes)]).fit(X, Y).guarantee_.status == "proved"


def test_a_model_with_the_record_of_another_is_not_saved(tmp_path):
    seeded, model = (PrivateSVMClassifier(classes=[0, 1, 2], random_state=seed).fit(X, Y) for seed in (1, None))
    seeded.guarantee_ = model.guarantee_
    with pytest.raises(ValueError, match="not the record of the released model"):
        seeded.save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_step_that_comes_after_the_fit_takes_the_proof():
    steps = make_private_pipeline(PrivateSVMClassifier(classes=[0, 1, 2])).fit(X, Y)
    assert steps.guarantee_.status == "proved"
    steps.steps.insert(0, ("scale", StandardScaler().fit(X)))
    assert steps.guarantee_.status == "claimed"
    assert "scale (StandardScaler)" in steps.guarantee_.reason
