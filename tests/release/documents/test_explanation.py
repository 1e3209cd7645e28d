"""Which columns matter in a model, and how far noise may mislead about it."""

import dataclasses
import shutil

import numpy as np
import pytest
from tests.blocks import blocks_run_by
from tests.release.conftest import in_shell, refusal, run
from tests.release.made_up import read_folder, release_of_wards, write_folder

import privsvm
from privsvm import PrivateLinearClassifier
from privsvm.base.feature_steps import Step
from privsvm.base.model_file import read_model
from privsvm.base.released import LinearPath, NoisyLinearPath
from privsvm.errors import PrivSVMError
from privsvm.methods import PrivateSVMClassifier
from privsvm.numerics.noise.noise_source import NoiseSource
from privsvm.release.documents.explanation import JOINT, Explanation, explain_on_card
from privsvm.tables.schema import read_schema

COMMON = {"epsilons": (1.0,), "guarantees": (), "n_classes": 2}


def hats_path(weights, n_frequencies=0):
    """A model of two numbers and an indicator: columns, constant, two hats of each number, and random features."""
    steps = [
        Step(
            "columns",
            {"lower": -np.ones(3), "upper": np.ones(3), "indicators": np.array([0.0, 1.0, 0.0]),
             "constant": np.ones((1, 1)), "n_hats": np.full((1, 1), 2), "hat_weight": np.ones((1, 1))},
        ),
        Step(
            "fourier",
            {"frequencies": np.ones((8, 2)), "count": np.full((1, 1), n_frequencies), "beside": np.ones(1)},
        ),
    ]  # fmt: skip
    coef = np.array(weights, dtype=float).reshape(1, 1, 1, -1)
    noise = {"noise": np.full((1, coef.shape[-1]), 1e-3), "kept": np.ones(coef.shape[-1])}
    return NoisyLinearPath(coef=coef, intercept=np.zeros((1, 1, 1)), steps=tuple(steps), **noise, **COMMON)


def drawn(n_rows, n_features, n_classes, seed):
    """Rows and labels that depend on the first half of the columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, n_features))
    weights = rng.normal(size=(n_features, n_classes)) * (np.arange(n_features) < n_features / 2)[:, None]
    return X, np.argmax(X @ weights + 0.3 * rng.normal(size=(n_rows, n_classes)), axis=1)


class Silent:
    """A source of noise without noise."""

    def add_rounded_normals(self, exact, sigma, stated):
        """Add nothing."""
        return np.array(exact)


def fit_twice(monkeypatch, seed, X, y, **terms):
    """Fit a model, and the same one without noise in its steps."""
    model = PrivateLinearClassifier(random_state=seed, bounds=(-1, 1), **terms)
    noisy, part = model.fit(X, y)._path, NoiseSource.part
    with monkeypatch.context() as patched:
        patched.setattr(NoiseSource, "part", lambda self, *name: Silent() if name == ("steps",) else part(self, *name))
        return noisy, model.fit(X, y)._path


@pytest.mark.parametrize(("feature", "owner"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0), (5, 0), (6, 2), (7, 2), (9, 3)])
def test_a_feature_belongs_to_its_column(feature, owner):
    """Constant and random features are of all columns, and hats of the number that they are made of."""
    explanation = Explanation(hats_path(np.eye(12)[feature], 2), 3)
    assert explanation.names == ["column 0", "column 1", "column 2", JOINT]
    varies = feature != 3
    assert [column.share for column in explanation.columns] == [varies * (number == owner) for number in range(4)]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_parts_and_offset_are_the_scores(n_classes):
    """Of any rows."""
    X, y = drawn(3000, 3, n_classes, 1)
    model = PrivateLinearClassifier(epsilon=4.0, classes=[*range(n_classes)], bounds=(-1, 1), random_state=1).fit(X, y)
    explanation, scores = Explanation(model._path, 3), model._path.scores(X, 0)[0]
    parts, noise = explanation.contributions(X)
    decided = scores[:, 1] - scores[:, 0] if n_classes == 2 else scores.max(axis=1) - scores.mean(axis=1)
    np.testing.assert_allclose(parts.sum(axis=1), decided, atol=1e-9)
    assert parts.shape == (len(X), len(explanation.names) + 1)
    assert noise.shape == (len(X), len(explanation.names))
    assert (noise > 0.0).all()


def test_the_noise_of_weights_is_known(monkeypatch):
    """Of 100 fits on few rows, where steps hardly lead it back, for either kind of recipe."""
    X, y = drawn(40, 4, 2, 2)
    for terms in ({"neighbours": "replace_one"}, {"neighbours": "add_remove", "features": "linear"}):
        ratios = []
        for seed in range(100):
            noisy, silent = fit_twice(monkeypatch, seed, X, y, epsilon=0.5, classes=[0, 1], **terms)
            factor = noisy.noise if len(noisy.noise) > 1 else np.diag(noisy.noise[0])
            covariance = factor.T @ factor
            moved = (noisy.coef / noisy.kept - silent.coef / silent.kept)[0, 0, 1]
            # Half of the variance is in either of two opposite vectors.
            ratios.append(2.0 * moved @ np.linalg.pinv(covariance, rcond=1e-9) @ moved / len(moved))
        assert 0.5 < np.mean(ratios) < 1.2, terms


def test_output_noise_is_known():
    """Weights are 400 normal numbers around the exact ones."""
    X, y = drawn(30, 400, 2, 3)
    path = PrivateSVMClassifier(epsilon=0.1, C=0.01, classes=[0, 1], random_state=1).fit(X, y)._path
    assert np.abs((path.coef[0, 0, 0] / path.noise[0]).std() - 1.0) < 0.2
    assert Explanation(path, 400).condition.endswith("without noise.")


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_intervals_hold_the_share_without_noise(monkeypatch, epsilon):
    """Each of five columns in 30 fits: 11 misses of one have a probability of 1e-7 if it is missed in 5 %."""
    X, y = drawn(1500, 5, 2, 4)
    misses, widths = np.zeros(6), []
    for seed in range(30):
        noisy, silent = fit_twice(monkeypatch, seed, X, y, epsilon=epsilon, classes=[0, 1], features="hats")
        truth, columns = Explanation(silent, 5).noiseless_shares[0], Explanation(noisy, 5).columns
        low, high = np.array([(column.low, column.high) for column in columns]).T
        misses += (truth < low - 1e-9) | (truth > high + 1e-9)
        widths.append(high - low)
    assert misses.max() <= 10
    assert np.mean(widths) < (0.5 if epsilon > 1 else 1.0)


def test_columns_of_noise_are_called_so(monkeypatch):
    """Columns without any signal, with much of it in others."""
    X, y = drawn(8000, 6, 2, 5)
    columns = Explanation(fit_twice(monkeypatch, 1, X, y, epsilon=4.0, classes=[0, 1], features="hats")[0], 6).columns
    assert all("not told from noise" in str(column) for column in columns[3:6])
    assert sum("not told from noise" not in str(column) for column in columns[:3]) >= 1


def test_models_without_known_noise_have_no_intervals():
    """And those whose scores are no sums have no shares."""
    path = LinearPath(coef=np.ones((1, 1, 1, 2)), intercept=np.zeros((1, 1, 1)), **COMMON)
    explanation = Explanation(path, 2)
    assert explanation.condition.startswith("No intervals")
    assert [(column.low, column.high) for column in explanation.columns] == [(None, None)] * 2
    parts, noise = explanation.contributions(np.ones((1, 2)))
    assert parts.sum() == pytest.approx(2.0)
    assert np.isnan(noise).all()
    other = privsvm.SVMClassifier().fit([[0.0], [1.0]] * 3, [0, 1] * 3)._path
    with pytest.raises(PrivSVMError, match="no sums over its columns"):
        Explanation(other, 1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["coef", "intercept", "noise", "kept"])
def test_numbers_that_overflow_are_one_line_and_no_card(hospital, name):
    """In a file that somebody made up: nothing is said of them."""
    path, record = read_model(hospital / "model")
    for size in (1e31, 1e154, 1e308):
        huge = dataclasses.replace(path, **{name: np.full_like(getattr(path, name), size)})
        with pytest.raises(PrivSVMError, match=r"explain: a number of the model is beyond 1e\+30"):
            Explanation(huge, record.n_features)
        assert explain_on_card(huge, record) is None
    largest = dataclasses.replace(path, **{name: np.full_like(getattr(path, name), 1e30)})
    assert np.isfinite([column.share for column in Explanation(largest, record.n_features).columns]).all()


def test_command_and_card_explain(hospital, hospital_copy, monkeypatch):
    """By the table's columns; and a card that says more is refused."""
    folder = hospital_copy / "model"
    shutil.copy(hospital / "new.csv", hospital_copy)
    monkeypatch.chdir(hospital_copy)
    (block,) = blocks_run_by(__file__)
    for command in block.commands:
        assert "age" in in_shell(command)[1]
    schema = read_schema(hospital / "schema.yaml")
    code, said, _ = run("explain", folder)
    lines = said.splitlines()
    assert code == 0
    assert {line.partition(":")[0] for line in lines[:-1]} == {*schema.features, JOINT}
    assert "without noise in its steps" in lines[-1]
    assert run("explain", folder, "--column", "ward")[1].splitlines()[1].startswith("a,")
    assert refusal("explain", folder, "--column", "note").startswith("error: explain: 'note' is no column")
    rows = run("explain", folder, "--rows", hospital / "new.csv", "--keep", "patient")[1].splitlines()
    assert len(rows) == 5001
    assert rows[0].split(",")[:3] == ["patient", "predicted", "visit"]
    record, card = read_folder(folder)
    assert "Which columns matter" in (folder / "card.html").read_text()
    card["explained"]["shares"][0][2] = 0.9
    write_folder(folder, record, card)
    assert "explained is not what model.json gives" in refusal("verify", folder)
    del card["explained"]
    write_folder(folder, record, card)
    assert "explained is not what model.json gives" in refusal("verify", folder)


def test_a_card_without_known_noise_explains_nothing(tmp_path):
    """An explanation that is added to it is refused."""
    release_of_wards(tmp_path)
    folder = tmp_path / "model"
    record, card = read_folder(folder)
    assert "explained" not in card
    card["explained"] = {"shares": [["ward", 1.0, 0.9, 1.0]], "others": 0, "interval": "certain"}
    write_folder(folder, record, card)
    assert "explained is not what model.json gives" in refusal("verify", folder)
