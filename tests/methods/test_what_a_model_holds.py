"""Content of a fitted private model, attribute by attribute and byte by byte: released and public numbers."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from tests.adversarial import Silence
from tests.proved import CASES as EVERY_CHOICE
from tests.proved import PARAMS

from privsvm import PrivateSearch, make_private_pipeline
from privsvm.base.feature_steps import Step
from privsvm.base.released import ReleasedPath

# Values released with noise, by the names of estimators and of paths.
RELEASED = {
    "coef_", "intercept_", "dual_coef_", "centre_", "spread_", "mean_", "feature_mean_",
    "coef", "intercept", "pair_coef", "centre", "spread", "mean", "feature_mean",
    "low_", "high_", "value_", "low", "high", "value",
}  # fmt: skip
RECIPE = {"recipe_", "_why", "constant", "n_hats", "hat_weight", "count", "frequencies"}
N_ROWS, N_FEATURES = 83, 4
# The noisy count of the model that a search keeps.
RELEASED |= {"best_score_"}
RNG = np.random.default_rng(5)
# Inside every bound, so that no step changes their bits; no number occurs twice, and none is round.
X = RNG.uniform(0.01, 0.4, size=(N_ROWS, N_FEATURES))
Y = RNG.integers(0, 3, size=N_ROWS)


def settings(method, neighbours):
    """A call in which the number of rows is declared, and is another one than there are."""
    chosen = {"classes": [0, 1, 2], "neighbours": neighbours, "n_rows": 97, "epsilon": 2.0}
    return {name: value for name, value in chosen.items() if name in method.declared}


CASES = [pytest.param(case.method, case.relation, id=str(case)) for case in EVERY_CHOICE if not case.chosen]


def leaves(value, path=""):
    """Every number, text and array that can be reached from an object, with the way to it."""
    if isinstance(value, (BaseEstimator, ReleasedPath)):
        for name, inner in sorted(vars(value).items()):
            yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, Step):
        for name, inner in {"name": value.name, **value.arrays}.items():
            yield from leaves(inner, f"{path}.{name}")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    elif (
        isinstance(value, np.ndarray) or value is None or isinstance(value, (str, bytes, bool, int, float, np.generic))
    ):
        yield path, value
    else:
        raise AssertionError(f"{path} holds a {type(value).__name__}, which this test cannot look into")


def public_part(model):
    """Collect the content of a model, except for numbers released with noise."""
    return {
        path: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for path, value in leaves(model)
        if path.rsplit(".", 1)[-1] not in RELEASED
    }


def held(model, secrets):
    """Return the numbers among some that the arrays of a model hold."""
    stored = b"".join(
        np.ascontiguousarray(value).tobytes() for _, value in leaves(model) if isinstance(value, np.ndarray)
    )
    return {float(secret) for secret in secrets if np.float64(secret).tobytes() in stored}


@pytest.mark.parametrize(("method", "neighbours"), CASES)
def test_no_number_is_of_the_weights_before_noise(method, neighbours):
    model, again = (method(**settings(method, neighbours)).fit(X, Y) for _ in range(2))
    if model.guarantee_.facts.solution == "certified":
        silent = method(**settings(method, neighbours)).release_path(X, Y, [2.0], 1, lambda epsilon, repeat: Silence())
        exact = np.concatenate([array.ravel() for name, array in silent.arrays().items() if name in RELEASED])
        exact = exact[np.abs(exact) > 1e-6]
        assert exact.size
        # Both are multiples of one number: now and then one after noise equals one before it, but none does so twice.
        assert not held(model, exact) & held(again, exact)


def can_be_searched(method):
    """A search needs a delta: its account is of Renyi divergences."""
    return "delta" in method.declared


def choices():
    """Every choice of words with every relation, alone and as the last step of a pipeline; and searches."""
    for param in PARAMS:
        (case,) = param.values
        yield pytest.param(case.relation, case.n_classes, case.model, id=param.id, marks=param.marks)
    for case in EVERY_CHOICE:
        if case.chosen or case.relation != "replace_one":
            continue
        yield pytest.param(
            case.relation,
            case.n_classes,
            lambda case=case: make_private_pipeline(case.model()),
            id=f"Pipeline-{case}",
        )
        if can_be_searched(case.method):
            yield pytest.param(
                case.relation,
                case.n_classes,
                lambda case=case: PrivateSearch(
                    case.model(), [{}], epsilon=6.0, delta=1e-5, mean_runs=1.5, shape=1.0, random_state=None
                ),
                id=f"PrivateSearch-{case}",
            )


def check_files(first, second, rows, folder):
    """The files of a model hold released arrays, none of the rows' numbers, and else the same as a neighbour's."""
    contents = []
    for name, model in (("first", first), ("second", second)):
        model = getattr(model, "best_estimator_", model)
        model.save(folder / name)
        record = json.loads((folder / name / "model.json").read_text())
        contents.append({key: value for key, value in record.items() if key not in ("arrays", "digest")})
        with np.load(folder / name / "model.npz") as stored:
            arrays = {key: stored[key] for key in stored.files}
        released = model.steps[-1][1] if hasattr(model, "steps") else model
        assert arrays.keys() == released._path.arrays().keys()
        everything = b"".join(array.tobytes() for array in arrays.values())
        assert not [secret for secret in rows.ravel() if np.float64(secret).tobytes() in everything]
    assert contents[0] == contents[1]


@pytest.mark.parametrize(("relation", "n_classes", "model"), list(choices()))
def test_whatever_is_chosen_all_but_the_released_numbers_is_public(relation, n_classes, model, tmp_path):
    """Neighbours, even far ones, leave nothing else behind: no count, no gap that was reached, no pass, no second."""
    rows, labels = X[:, :2], Y % n_classes
    others = [(np.vstack([rows[1:], np.full((1, 2), 0.33)]), np.append(labels[1:], 0))]
    if relation == "add_remove":
        others += [(rows[:40], labels[:40])]
    first = model().fit(rows, labels)
    first_parts = public_part(first)
    # A recipe follows from the noisy number of rows that it paid for.
    pays = relation == "add_remove" and getattr(first, "pays_for_counts", False)
    paid = {path for path in first_parts if pays and path.rsplit(".", 1)[-1] in RECIPE}
    assert first.guarantee_.status == "proved"
    for index, (other_rows, other_labels) in enumerate(others):
        second = model().fit(other_rows, other_labels)
        assert first_parts | dict.fromkeys(paid) == public_part(second) | dict.fromkeys(paid)
        check_files(first, second, rows, tmp_path / str(index))
    stored = pickle.dumps(first)
    for secret in rows.ravel():
        assert np.float64(secret).tobytes() not in stored
        assert np.float64(secret).astype(">f8").tobytes() not in stored
    # Neither the number of rows, nor a text that tells it.
    if relation == "add_remove":
        values = [value for _, value in leaves(first)]
        assert N_ROWS not in {value for value in values if isinstance(value, (int, float))}
        assert not [text for text in values if isinstance(text, str) and f"{N_ROWS}" in text.split("=")]
