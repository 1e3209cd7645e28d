"""What a fitted private model holds, attribute by attribute and byte by byte: released numbers, and public ones."""

import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from tests.adversarial import Silence

from privsvm.base.released import ReleasedPath
from privsvm.pipeline.methods import estimator_class, implementations

PRIVATE = [estimator_class(name) for name in implementations() if "epsilon" in estimator_class(name).declared]
# What is released with noise, by the names of estimators and of paths.
RELEASED = {
    "coef_", "intercept_", "dual_coef_", "centre_", "spread_", "mean_", "feature_mean_",
    "coef", "intercept", "pair_coef", "centre", "spread", "mean", "feature_mean",
}  # fmt: skip
N_ROWS, N_FEATURES = 83, 4
RNG = np.random.default_rng(5)
# Inside every bound, so that no step changes their bits; no number occurs twice, and none is round.
X = RNG.uniform(0.01, 0.4, size=(N_ROWS, N_FEATURES))
Y = RNG.integers(0, 3, size=N_ROWS)


def settings(method, neighbours):
    """A call in which the number of rows is declared, and is another one than there are."""
    chosen = {"classes": [0, 1, 2], "neighbours": neighbours, "n_rows": 97, "epsilon": 2.0}
    return {name: value for name, value in chosen.items() if name in method.declared}


def cases():
    for method in PRIVATE:
        for neighbours in ("replace_one", "add_remove"):
            if not method.declared["neighbours"].constraint.accepts(neighbours):
                continue
            try:
                status = method(**settings(method, neighbours)).fit(X, Y).guarantee_.status
            except ValueError:
                continue
            if status == "proved":
                yield pytest.param(method, neighbours, id=f"{method.__name__}-{neighbours}")


CASES = list(cases())


def leaves(value, place=""):
    """Every number, text and array that can be reached from an object, with the way to it."""
    if isinstance(value, (BaseEstimator, ReleasedPath)):
        for name, inner in sorted(vars(value).items()):
            yield from leaves(inner, f"{place}.{name}")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), f"{place}.{field.name}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{place}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{place}[{index}]")
    elif (
        isinstance(value, np.ndarray) or value is None or isinstance(value, (str, bytes, bool, int, float, np.generic))
    ):
        yield place, value
    else:
        raise AssertionError(f"{place} holds a {type(value).__name__}, which this test cannot look into")


def public_part(model):
    """All that a model holds, but for what is released with noise."""
    return {
        place: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for place, value in leaves(model)
        if place.rsplit(".", 1)[-1] not in RELEASED
    }


def test_there_are_cases():
    assert len(CASES) >= 28


@pytest.mark.parametrize(("method", "neighbours"), CASES)
def test_all_but_the_released_numbers_is_public(method, neighbours):
    """Neighbours, even far ones, leave nothing else behind: no count, no gap that was reached, no pass, no second."""
    first = method(**settings(method, neighbours)).fit(X, Y)
    others = [(np.vstack([X[1:], np.full((1, N_FEATURES), 0.33)]), np.append(Y[1:], 0))]
    if neighbours == "add_remove":
        others += [(X[:-1], Y[:-1]), (X[:40], Y[:40])]
    for rows, labels in others:
        other = method(**settings(method, neighbours)).fit(rows, labels)
        assert public_part(first) == public_part(other)
    path = first._path
    assert (path.objective, path.n_support, path.n_iter) == (None, None, None)
    assert path.fit_seconds == path.release_seconds == 0.0


@pytest.mark.parametrize(("method", "neighbours"), CASES)
def test_no_byte_is_of_the_rows_or_of_the_weights_before_noise(method, neighbours):
    model = method(**settings(method, neighbours)).fit(X, Y)
    stored = pickle.dumps(model)
    everything = b"".join(
        np.ascontiguousarray(value).tobytes() for _, value in leaves(model) if isinstance(value, np.ndarray)
    )
    numbers = {float(value) for _, value in leaves(model) if isinstance(value, (int, float)) and value is not None}
    secrets = X.ravel()
    if model.guarantee_.facts.solution == "certified":
        silent = method(**settings(method, neighbours)).release_path(X, Y, [2.0], 1, lambda epsilon, repeat: Silence())
        exact = [array.ravel() for name, array in silent.arrays().items() if name in RELEASED]
        secrets = np.concatenate([secrets, *exact])
        assert secrets.size > X.size
    secrets = secrets[np.abs(secrets) > 1e-6]
    for secret in secrets:
        for pattern in (np.float64(secret).tobytes(), np.float64(secret).astype(">f8").tobytes()):
            assert pattern not in everything
            assert pattern not in stored
        assert float(secret) not in numbers
    # Neither the number of rows, nor a text that tells it.
    if neighbours == "add_remove":
        assert N_ROWS not in numbers
        assert not [text for _, text in leaves(model) if isinstance(text, str) and f"{N_ROWS}" in text.split("=")]
