"""What a fitted private model holds, also stored, copied or changed: released and public numbers, and its proof."""

import contextlib
import copy
import dataclasses
import gc
import io
import json
import pickle
import types
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import StandardScaler
from tests.adversarial import Silence
from tests.proved import CASES as EVERY_CHOICE
from tests.proved import PARAMS

from privsvm import (
    Budget,
    PMSVMAGPClassifier,
    PrivateLinearClassifier,
    PrivateSearch,
    PrivateSVMClassifier,
    PublicSchema,
    load,
    make_private_pipeline,
)
from privsvm.base.estimators import plain_parameters
from privsvm.base.feature_steps import Step
from privsvm.base.released import ReleasedPath
from privsvm.errors import PrivSVMError
from privsvm.numerics.rows.row_blocks import ArrayBlocks
from privsvm.release.predicting.exporting import export
from privsvm.release.training.private_pipeline import PrivatePipeline

# Values released with noise, by the names of estimators and of paths.
RELEASED = {
    "coef_", "intercept_", "dual_coef_", "centre_", "spread_", "mean_", "feature_mean_",
    "coef", "intercept", "pair_coef", "centre", "spread", "mean", "feature_mean",
    "low_", "high_", "value_", "low", "high", "value",
}  # fmt: skip
# Of the noise in the weights, which follows from public numbers and released ones.
OF_NOISE = {"noise", "kept"}
RECIPE = {
    "recipe_", "_why", "constant", "n_hats", "hat_weight", "count", "frequencies",
    "_history[0]['rows']", "_history[0]['weight']",
}  # fmt: skip
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
        if path.rsplit(".", 1)[-1] not in RELEASED | OF_NOISE
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


def check_files(first, second, rows, folder, *, paid):
    """The files of a model hold released arrays, none of the rows' numbers, and else the same as a neighbour's."""
    contents = []
    for name, model in (("first", first), ("second", second)):
        model = getattr(model, "best_estimator_", model)
        model.save(folder / name)
        record = json.loads((folder / name / "model.json").read_text())
        released = ("arrays", "digest", "history") if paid else ("arrays", "digest")
        contents.append({key: value for key, value in record.items() if key not in released})
        with np.load(folder / name / "model.npz") as stored:
            arrays = {key: stored[key] for key in stored.files}
        last = model.steps[-1][1] if hasattr(model, "steps") else model
        assert arrays.keys() == last._path.arrays().keys()
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
        check_files(first, second, rows, tmp_path / str(index), paid=paid)
    stored = pickle.dumps(first)
    for secret in rows.ravel():
        assert np.float64(secret).tobytes() not in stored
        assert np.float64(secret).astype(">f8").tobytes() not in stored
    # Neither the number of rows, nor a text that tells it.
    if relation == "add_remove":
        values = [value for _, value in leaves(first)]
        assert N_ROWS not in {value for value in values if isinstance(value, (int, float))}
        assert not [text for text in values if isinstance(text, str) and f"{N_ROWS}" in text.split("=")]


# Each proved method, by the first relation that it takes.
RELATIONS = {case.values[0]: case.values[1] for case in reversed(CASES)}
METHODS = list(RELATIONS)
# Cells that their columns do not declare, as somebody might have written them, and one date.
TEXTS = ("Jane Doe: diabetes", "Zoë Müller, HIV", "x17q-of-ward-4", "2020-02-29")
SCHEMA = {
    "name": "wards",
    "label": "died",
    "classes": ["0", "1", "2"],
    "columns": {
        "age": {"bounds": [0, 1], "fill": 0.5},
        "dose": {"bounds": [0, 0.5], "fill": "middle"},
        "ward": {"categories": ["a", "b"], "unknown": "other"},
        "day": {"date": "%Y-%m-%d", "bounds": ["2020-01-01", "2020-12-31"], "fill": "middle"},
        "smoker": {"boolean": True, "fill": False},
    },
}
TABLE = {
    "age": [*X[:-2, 0], TEXTS[0], TEXTS[2]],
    "dose": [*X[:-2, 1].tolist(), TEXTS[1], TEXTS[2]],
    "ward": [*TEXTS, *RNG.choice(["a", "b"], N_ROWS - 4).tolist()],
    "day": [*TEXTS, *["2020-05-05"] * (N_ROWS - 4)],
    "smoker": [*TEXTS, *["yes"] * (N_ROWS - 4)],
}
LABELS = Y.astype(str)
# The first rows, as they are and as the schema scales them.
NUMBERS = [*X[:12].ravel(), *(2.0 * X[:12, 0] - 1.0), *(4.0 * X[:12, 1] - 1.0)]


def patterns():
    """Every secret as bytes, by the name of its form."""
    found = {}
    for number in map(float, NUMBERS):
        found[f"{number!r} of 8 bytes"] = np.float64(number).tobytes()
        found[f"{number!r} of 8 bytes, reversed"] = np.float64(number).astype(">f8").tobytes()
        found[f"{number!r} as text"] = repr(number)[:14].encode()
        found[f"{number!r} as text of 16 bits"] = repr(number)[:14].encode("utf-16-le")
    for row in X[:12]:
        # Two at once: four bytes occur by chance.
        found[f"{row[:2]} of 4 bytes"] = row[:2].astype(np.float32).tobytes()
    for text in TEXTS:
        found[text] = text.encode()
        found[f"{text} of 16 bits"] = text.encode("utf-16-le")
        found[f"{text} escaped"] = text.encode("ascii", "backslashreplace")
    # Pickles of the second protocol write bytes as text.
    return found | {f"{name}, pickled": pattern.decode("latin-1").encode() for name, pattern in found.items()}


PATTERNS = patterns()


def reachable(root):
    """The bytes of every text, number and array that an object leads to."""
    stack, seen, parts = [root], {}, []
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, (type, types.ModuleType, types.FunctionType, types.BuiltinMethodType)):
            continue
        seen[id(item)] = item
        if isinstance(item, np.ndarray):
            stack += item.ravel().tolist() if item.dtype == object else [item.base]
            parts.append(item.tobytes())
        elif isinstance(item, (str, bytes)):
            parts.append(item.encode("utf-8", "replace") if isinstance(item, str) else item)
        elif isinstance(item, (float, np.floating)):
            parts.append(np.float64(item).tobytes())
        else:
            stack += gc.get_referents(item)
    return b"\n".join(parts)


def unpack(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


def forms(model, folder):
    """Return the serialised forms of a fitted object, as bytes by name."""
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield f"pickle {protocol}", pickle.dumps(model, protocol)
    yield "skops", unpack(skops.io.dumps(model))
    yield "attributes", reachable(vars(copy.deepcopy(model)))
    saved = getattr(model, "best_estimator_", model)
    if not hasattr(saved, "save"):
        return
    saved.save(folder / "saved")
    for to in ("sql", "onnx", "mlflow"):
        # Not every kind of model has a form there.
        with contextlib.suppress(PrivSVMError):
            export(folder / "saved", to, folder / f"exported.{to}")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, unpack(path.read_bytes()) if path.suffix == ".npz" else path.read_bytes()


def secrets_in(model, folder):
    return [
        (form, name) for form, content in forms(model, folder) for name, secret in PATTERNS.items() if secret in content
    ]


def by_arrays(method):
    yield "dense", X, Y
    yield "csr", scipy.sparse.csr_array(X), Y
    yield "frame", pd.DataFrame(X, columns=list("abcd")), Y
    if method.reads_blocks:
        yield "blocks", ArrayBlocks(X), Y


def fit_objects(method):
    """Every kind of object that holds a model of a method, fitted and used on private rows."""
    chosen = settings(method, RELATIONS[method])
    for name, rows, labels in by_arrays(method):
        model = method(**chosen).fit(rows, labels)
        model.predict(rows)
        yield name, model
    model = method(**chosen | {"classes": list("012")})
    pipeline = make_private_pipeline(PublicSchema(SCHEMA), model).fit(TABLE, LABELS)
    pipeline.predict(pd.DataFrame(TABLE))
    yield "pipeline", pipeline
    if can_be_searched(method):
        search = PrivateSearch(method(**chosen), [{}], epsilon=6.0, mean_runs=1.5, shape=1.0).fit(X, Y)
        search.predict(X)
        yield "search", search


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_no_cell_is_stored(method, tmp_path, caplog):
    caplog.set_level(0)
    names = []
    for name, model in fit_objects(method):
        assert model.guarantee_.status == "proved"
        (tmp_path / name).mkdir()
        assert not secrets_in(model, tmp_path / name), name
        names.append(name)
    released = load(tmp_path / "pipeline" / "saved")
    released.predict(TABLE)
    released.predict(pd.DataFrame(TABLE))
    (tmp_path / "released").mkdir()
    assert not secrets_in(released, tmp_path / "released")
    assert not [name for name, secret in PATTERNS.items() if secret in caplog.text.encode()]
    written = {path.name for path in tmp_path.rglob("*")}
    assert {"exported.mlflow", "model.npz"} <= written
    assert method is not PrivateLinearClassifier or {"exported.sql", "exported.onnx"} <= written
    expected = 5 + method.reads_blocks + can_be_searched(method)
    assert len({*names, "released"}) == expected


def test_classes_lead_to_no_labels():
    labels = np.append([0, 1, 2], Y)
    model = PrivateLinearClassifier(classes=labels[:3]).fit(np.vstack([X[:3], X]), labels)
    assert labels.tobytes() not in reachable(model.classes_)


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
