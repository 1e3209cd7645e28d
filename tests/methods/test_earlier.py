"""Releases that are averaged with earlier ones."""

import json
import shutil

import numpy as np
import pytest
from tests.replay import Recorder, Replayer, check_given

from privsvm import PrivateLinearClassifier, PublicSchema, load, make_private_pipeline, save
from privsvm.base.model_file import content_digest
from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.families.moments.scaled_descent import Budget, EarlierModel
from privsvm.files import write_json, write_npz
from privsvm.methods.adassp import AdaSSPClassifier
from privsvm.methods.recommended import classifier as recommended
from privsvm.methods.recommended.rule import choose_recipe
from privsvm.privacy.events import leaves

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, size=1000)
X = np.clip(RNG.normal(size=(1000, 3)) + np.eye(3)[Y], -4.0, 4.0)
COMMON = {"classes": [0, 1, 2], "bounds": (-4.0, 4.0), "delta": 1e-5}


def release(folder, n=1000, **chosen):
    """Fit a model on the first rows, and save it."""
    model = PrivateLinearClassifier(**COMMON | {"random_state": n} | chosen).fit(X[:n], Y[:n])
    save(model, folder)
    return model


def steps_of(model):
    return [(step.name, {name: array.tolist() for name, array in step.arrays.items()}) for step in model._path.steps]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_model_is_the_average_of_all_releases(tmp_path, monkeypatch, neighbours):
    trained = []
    plain = recommended.train
    monkeypatch.setattr(
        recommended, "train", lambda *rows, **terms: trained.append(plain(*rows, **terms)) or trained[-1]
    )
    terms = {"neighbours": neighbours, "epsilon": 8.0}
    first = release(tmp_path / "0", 700, n_rows=700, **terms)
    release(tmp_path / "1", 800, n_rows=800, after=str(tmp_path / "0"), **terms)
    third = release(tmp_path / "2", 1000, n_rows=1000, after=str(tmp_path / "1"), **terms | {"epsilon": 4.0})
    signals = [Budget(epsilon=epsilon, delta=1e-5, neighbours=neighbours).signal for epsilon in (8.0, 8.0, 4.0)]
    weights = np.square(np.array([700, 800, 1000]) * signals)
    for name in ("coef", "intercept"):
        mean = np.average([getattr(model, name) for model in trained], axis=0, weights=weights)
        assert np.allclose(getattr(third, f"{name}_"), mean, rtol=1e-12)
    # One linear model of the first one's features, which the mean is a part of: no release pays for another one.
    assert steps_of(third) == steps_of(first)
    assert first._path.step("fourier")["count"].item() > 0
    assert first.mean_.any()
    assert "averaged with the earlier model" in third.recipe_
    assert len(leaves(third.guarantee_.event)) == len(leaves(first.guarantee_.event)) - 1
    loaded = load(tmp_path / "2")
    assert np.array_equal(loaded.predict(X), third.predict(X))
    assert [one.model for one in loaded.record.releases] == [
        load(tmp_path / name).record.digest for name in ("0", "1", "2")
    ]
    assert [one.rows for one in loaded.record.releases] == [700, 800, 1000]
    # Its own epsilon is for its own rows, and it says who pays more.
    assert third.guarantee_.verify().epsilon == pytest.approx(4.0, rel=1e-2)
    assert any("so is the earlier model, with an epsilon of its own" in text for text in third.guarantee_.assumptions)
    loaded.save(tmp_path / "copy")
    assert (tmp_path / "copy/model.json").read_bytes() == (tmp_path / "2/model.json").read_bytes()


def test_other_features_begin_anew(tmp_path):
    """Hat functions on one side alone: what the rule chooses for the rows there are is worth more than an average."""
    few = release(tmp_path / "few", 300, epsilon=0.05, n_rows=300)
    many = release(tmp_path / "many", epsilon=8.0, n_rows=1000, after=str(tmp_path / "few"))
    assert few._path.step("columns")["n_hats"].item() == 0 < many._path.step("columns")["n_hats"].item()
    assert "not averaged" in many.recipe_
    assert len(load(tmp_path / "many").record.releases) == 1
    # As from nothing.
    assert np.array_equal(many.coef_, release(tmp_path / "alone", epsilon=8.0, n_rows=1000).coef_)


@pytest.mark.parametrize("n_rows", [800, 4000])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_recipe_with_earlier_features_keeps_to_the_budget(n_rows, neighbours):
    budget = Budget(epsilon=1.0, delta=1e-5, neighbours=neighbours)
    plain, _ = choose_recipe(n_rows, 3, 3, budget)
    earlier = EarlierModel(
        coef=np.zeros((3, 5)), intercept=np.zeros(3), mean=np.zeros(5), columns=plain.columns,
        frequencies=np.zeros((5, 2)), weight=1.0,
    )  # fmt: skip
    recipe, _ = choose_recipe(n_rows, 3, 3, budget, earlier=earlier)
    assert (recipe.earlier, recipe.n_frequencies, recipe.mean_share) == (earlier, 2, 0.0)
    signals = [count / event.noise_multiplier**2 for event, count in leaves(recipe.event(budget))]
    whole = (budget.signal * (2 if neighbours == "replace_one" else 1)) ** 2
    assert sum(signals) == pytest.approx(whole if neighbours == "add_remove" else whole / 4, rel=1e-6)


def _forge(folder, other, arrays=None, **record):
    """Write a model with other arrays and another record, and digests that fit."""
    shutil.copytree(folder, other)
    with np.load(other / "model.npz") as stored:
        write_npz(other / "model.npz", {**stored, **(arrays or {})})
    content = json.loads((other / "model.json").read_text()) | record
    content["arrays"] = sha256_of_file(other / "model.npz")
    content["digest"] = content_digest(content, "digest")
    write_json(other / "model.json", content)
    return str(other)


@pytest.mark.parametrize("size", [1.0, 1e8, 1e154, 1e308])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_no_numbers_of_an_earlier_model_move_a_neighbour_further(tmp_path, neighbours, size):
    """Record a release and replay it on neighbours, after a forged model: a row moves no sum beyond its sensitivity."""
    rng = np.random.default_rng(2)
    release(tmp_path / "0", epsilon=8.0, n_rows=1000, neighbours=neighbours)
    with np.load(tmp_path / "0/model.npz") as stored:
        names = [name for name in stored if name.split(".")[-1] in ("centre", "frequencies", "hat_weight", "coef")]
        forged = {name: size * rng.choice([-1.0, 1.0], size=stored[name].shape) for name in names}
    after = _forge(tmp_path / "0", tmp_path / "1", forged)
    rows, labels = np.vstack([np.full((1, 3), 4.0), X[:400]]), np.append(0, Y[:400])
    for other in (-rows[:1], np.zeros((1, 3)), [[4.0, -4.0, 0.0]]):
        second = (rows[1:], labels[1:]) if neighbours == "add_remove" else (np.vstack([other, rows[1:]]), labels)
        recorder = Recorder(bytes(32))
        replayer = Replayer(recorder.calls)
        for (one, codes), source in (((rows, labels), recorder), (second, replayer)):
            model = PrivateLinearClassifier(
                **COMMON, epsilon=8.0, n_rows=None if neighbours == "add_remove" else 401, after=after,
                neighbours=neighbours,
            )  # fmt: skip
            model.release_path(one, codes, [8.0], 1, lambda epsilon, repeat, source=source: source)
        assert check_given(recorder.calls, replayer.calls, 0, neighbours) <= 1


def test_a_model_that_does_not_fit_is_refused_in_one_line(tmp_path):
    terms = {"epsilon": 4.0, "random_state": None}
    model = release(tmp_path / "0", **terms)
    other = AdaSSPClassifier(epsilon=1.0, classes=[0, 1, 2]).fit(X / 8.0, Y)
    save(other, tmp_path / "other")
    release(tmp_path / "seeded", epsilon=4.0)
    after = str(tmp_path / "0")
    for chosen, problem in (
        ({"after": str(tmp_path / "other")}, "it is no model of PrivateLinearClassifier"),
        ({"after": str(tmp_path / "seeded")}, "its guarantee is seeded, not proved"),
        ({"classes": [0, 1, 2, 3]}, r"its classes are"),
        ({"neighbours": "replace_one"}, "its relation is add_remove"),
        ({"bounds": (-4.0, 5.0)}, "it has other columns"),
        ({"bounds": None}, "it has other columns"),
        ({"indicators": [0]}, "it has other columns"),
        ({"features": "hats"}, "it gives centre and features"),
        ({"public_rows": [[0.0, 0.0, 0.0]]}, "it gives centre and features"),
    ):
        again = PrivateLinearClassifier(**COMMON | terms | {"after": after} | chosen)
        with pytest.raises(ValueError, match=problem) as refused:
            again.fit(X, Y)
        assert "\n" not in str(refused.value)
        assert "after=" in str(refused.value)
        assert not hasattr(again, "guarantee_")
    with pytest.raises(ValueError, match="after=7: must be the folder"):
        PrivateLinearClassifier(**COMMON, after=7).fit(X, Y)
    # Files that were changed, and a record that promises more than its event.
    shutil.copytree(after, tmp_path / "cut")
    (tmp_path / "cut/model.npz").write_bytes((tmp_path / "0/model.npz").read_bytes()[:-9])
    promised = load(after).record.protection.model_dump() | {"epsilon": 0.1}
    more = _forge(tmp_path / "0", tmp_path / "more", protection=promised)
    without = _forge(tmp_path / "0", tmp_path / "without", history=[{"weight": -1.0, "rows": 1.0}])
    with pytest.raises(ValueError, match="no such folder"):
        PrivateLinearClassifier(**COMMON, after=str(tmp_path / "nowhere")).fit(X, Y)
    earlier = {"weight": 1.0, "rows": 1.0, "model": "0" * 64, "epsilon": 1.0, "delta": 1e-5}
    own = json.loads((tmp_path / "0/model.json").read_text())["history"]
    unpaid = [
        _forge(tmp_path / "0", tmp_path / f"unpaid {number}", history=[earlier | terms, *own])
        for number, terms in enumerate(({"model": None}, {"epsilon": None}, {"epsilon": -1.0}, {"delta": 2.0}))
    ]
    for folder in (str(tmp_path / "cut"), more, without, *unpaid):
        with pytest.raises(PrivSVMError):
            PrivateLinearClassifier(**COMMON, after=folder).fit(X, Y)
    # Comparisons may build on comparisons.
    seeded = release(tmp_path / "next", epsilon=4.0, after=str(tmp_path / "seeded"))
    assert seeded.guarantee_.status == "seeded"
    assert model.guarantee_.status == "proved"
    # A path of this machine is no part of a published model.
    assert str(tmp_path) not in (tmp_path / "next/model.json").read_text()


def test_a_pipeline_averages_models_of_one_schema(tmp_path):
    bounds = {"bounds": [-4, 4], "fill": 0}
    declared = {
        "name": "t", "label": "y", "classes": ["a", "b", "c"], "prescaled": False, "rows": 900,
        "columns": dict.fromkeys("uvw", bounds),
    }  # fmt: skip
    table, labels = dict(zip("uvw", X.T, strict=True)), np.array(["a", "b", "c"])[Y]

    def fit(schema, after):
        model = PrivateLinearClassifier(epsilon=4.0, classes=["a", "b", "c"], bounds=(-1, 1), after=after)
        return make_private_pipeline(PublicSchema(schema), model).fit(table, labels)

    save(fit(declared, None), tmp_path / "0")
    averaged = fit(declared | {"rows": 1000}, str(tmp_path / "0"))
    assert averaged.guarantee_.status == "proved"
    assert len(averaged.steps[-1][1]._history) == 2
    wider = declared | {"columns": declared["columns"] | {"u": {"bounds": [-5, 4], "fill": 0}}}
    with pytest.raises(PrivSVMError, match="`columns` of its schema is another"):
        fit(wider, str(tmp_path / "0"))
