"""Cells of private tables are in nothing that is stored of fitted objects: pickles, copies, files and exports."""

import contextlib
import copy
import gc
import io
import pickle
import types
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from tests.methods.test_what_a_model_holds import CASES, N_ROWS, RNG, X, Y, can_be_searched, settings

from privsvm import PrivateLinearClassifier, PrivateSearch, PublicSchema, load, make_private_pipeline
from privsvm.errors import PrivSVMError
from privsvm.numerics.rows.row_blocks import ArrayBlocks
from privsvm.release.predicting.exporting import export

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
