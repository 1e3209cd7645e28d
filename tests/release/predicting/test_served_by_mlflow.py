"""MLflow's own server answers as `privsvm predict` does, and a bad request gets one line that names its column."""

import base64
import csv
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import requests
from tests.release.conftest import release_into
from tests.release.predicting.test_exports import linear_model, skip_without
from tests.tracking.servers import free_port, running_server

import privsvm
from privsvm.release.predicting.exporting import export
from privsvm.release.predicting.model import load, save

SCHEMA = """\
name: codes
label: ill
classes: ["no", "yes"]
positive: "yes"
prescaled: false
columns:
  site: {categories: ["007", "012", "045"], unknown: other}
  country: {categories: ["NA", "DE"]}
  age: {bounds: [0, 100], fill: 50}
  visit: {date: "%d.%m.%Y", bounds: ["01.01.2010", "31.12.2024"], fill: middle}
  smoker: {boolean: true, fill: false}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that was released with rows held back, its export, and new rows with cells that are none."""
    skip_without("mlflow")
    folder = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "site": rng.choice(["007", "012", "045"], 1000), "country": "DE", "age": rng.integers(0, 100, 1000),
        "visit": "01.02.2020", "smoker": rng.choice(["yes", "0"], 1000),
    })  # fmt: skip
    table["ill"] = np.where(table["age"] + 40 * (table["site"] == "007") > 70, "yes", "no")
    table.to_csv(folder / "patients.csv", index=False)
    (folder / "schema.yaml").write_text(SCHEMA)
    release_into(folder, folder / "patients.csv", folder / "schema.yaml", "--hold-back", 0.1, epsilon=4)
    export(folder / "model", "mlflow", folder / "mlflow-model")
    new = table.drop(columns="ill").head(200).astype(str)
    new.loc[:19, "age"] = [*"n.d.", "", "-999", "1e1", "5", "54.5", "99"] * 2
    new.loc[:7, "visit"] = ["31.12.2019", "", "2019-12-31", "x", "01.01.1900", "?", "0", "1"]
    new.loc[:7, "smoker"] = ["Y", "", "no", "1", "true", "x", "F", "0"]
    new.loc[:3, "site"] = ["7", "", "other", "999"]
    new.to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def ask(folder):
    """Send a request to MLflow's server; returns status and content of the answer."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "--env-manager", "local"]
    command += ["-m", str(folder / "mlflow-model"), "--host", "127.0.0.1", "--port", str(port)]
    # MLflow starts uvicorn by its name.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(Path(privsvm.__file__).parents[1])
    with running_server(command, port, folder / "server.log", environment) as address:

        def send(content, kind="application/json"):
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            answer = requests.post(f"{address}/invocations", data=data, headers={"Content-Type": kind}, timeout=600)
            return answer.status_code, answer.json()

        yield send


def texts(folder):
    return pd.read_csv(folder / "new.csv", dtype=str, keep_default_na=False)


def split(table, **params):
    content = {"columns": [*table.columns], "data": table.to_numpy().tolist()}
    return {"dataframe_split": content} | ({"params": params} if params else {})


def records(table, **params):
    return {"dataframe_records": table.to_dict(orient="records"), "params": params}


def test_csv_and_json_are_answered_as_predict_does(folder, ask):
    expected = load(folder / "model").predict(texts(folder)).tolist()
    assert set(expected) == {"no", "yes"}
    for request, *kind in (
        (split(texts(folder)),), (records(texts(folder)),), ((folder / "new.csv").read_bytes(), "text/csv"),
    ):  # fmt: skip
        assert ask(request, *kind) == (200, {"predictions": expected})


@pytest.mark.parametrize(
    ("method", "more"), [("predict_proba", {}), ("predict_set", {}), ("predict_set", {"coverage": 0.999})]
)
def test_params_ask_for_probabilities_and_sets(folder, ask, method, more):
    status, answer = ask(split(texts(folder), method=method, **more))
    expected = getattr(load(folder / "model"), method)(texts(folder), **more)
    assert (status, [[*row] for row in answer["predictions"]]) == (200, [["no", "yes"]] * 200)
    np.testing.assert_allclose([[*row.values()] for row in answer["predictions"]], expected, atol=1e-9)


def test_one_record_with_numbers_is_answered(folder, ask):
    row = {"site": "007", "country": "DE", "age": 54, "visit": None, "smoker": True}
    expected = load(folder / "model").predict(row).tolist()
    assert ask(records(pd.DataFrame([row]))) == (200, {"predictions": expected})


def test_the_example_is_answered(folder, ask):
    assert ask((folder / "mlflow-model/serving_input_example.json").read_bytes())[0] == 200


@pytest.mark.parametrize(
    ("change", "params", "message"),
    [
        (lambda table: table[["age"]], {}, r"missing inputs \['site', 'country', 'visit', 'smoker'\]"),
        (lambda table: table.assign(site=7), {}, "column 'site' holds numbers, and category '007'"),
        (lambda table: table, {"method": "fit"}, "method='fit': must be one of predict, predict_proba, predict_set"),
        (lambda table: table, {"method": "predict_set", "coverage": 2.0}, "coverage=2.0: must lie between 0 and 1"),
    ],
)
def test_a_bad_request_is_an_error_400_without_a_trace(folder, ask, change, params, message):
    status, answer = ask(split(change(texts(folder)), **params))
    assert status == 400
    assert "stack_trace" not in answer
    assert pd.Series(answer["message"]).str.contains(message).all(), answer


def test_a_category_that_pandas_reads_as_missing_is_not_taken_for_none(folder, ask):
    table = texts(folder).assign(country="NA")
    status, answer = ask(table.to_csv(index=False).encode(), "text/csv")
    assert status == 400
    assert "column 'country' has missing cells, which a reader of CSV makes of category 'NA'" in answer["message"]
    expected = load(folder / "model").predict(table).tolist()
    assert ask(split(table)) == (200, {"predictions": expected})


def test_tables_in_python_are_texts_or_objects(folder):
    import mlflow.pyfunc

    model, table = mlflow.pyfunc.load_model(str(folder / "mlflow-model")), texts(folder)
    expected = load(folder / "model").predict(table)
    typed = table.assign(age=pd.to_numeric(table["age"], errors="coerce")).astype(object)
    for rows in (table, typed):
        np.testing.assert_array_equal(model.predict(rows), expected)
    assert model.predict(model.input_example).tolist() in (["no"], ["yes"])


def test_rows_without_a_schema_are_an_array(hospital, tmp_path):
    skip_without("mlflow")
    import mlflow.pyfunc

    bare = linear_model(hospital, {"age": {"bounds": [0, 1], "fill": 0}, "weight": {"bounds": [0, 1], "fill": 0}})
    bare = type(bare)(bare._path, bare.record.model_copy(update={"table": None, "held_back": None}))
    save(bare, tmp_path / "bare")
    export(tmp_path / "bare", "mlflow", tmp_path / "flavour")
    model, rows = mlflow.pyfunc.load_model(str(tmp_path / "flavour")), np.array([[0.0, 0.1], [1.0, 1.0]])
    assert model.predict(rows).tolist() == bare.predict(rows).tolist() == ["no", "yes"]
    with pytest.warns(UserWarning, match="not calibrated"):
        shares = model.predict(rows, params={"method": "predict_proba"})
    assert [*shares.columns] == ["no", "yes"]
    with pytest.raises(Exception, match="no rows were held back"):
        model.predict(rows, params={"method": "predict_set"})
    assert len(model.predict(model.input_example)) == 1


def test_the_wheel_beside_the_model_is_this_package(folder, tmp_path):
    (wheel,) = (folder / "mlflow-model/wheels").iterdir()
    lines = (folder / "mlflow-model/requirements.txt").read_text().splitlines()
    assert lines[0] == f"wheels/{wheel.name}"
    with zipfile.ZipFile(wheel) as packed:
        (record,) = [name for name in packed.namelist() if name.endswith("/RECORD")]
        listed = {name: (digest, size) for name, digest, size in csv.reader(StringIO(packed.read(record).decode()))}
        for name in set(packed.namelist()) - {record}:
            data = packed.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert listed.pop(name) == (f"sha256={digest}", str(len(data)))
        assert [*listed] == [record]
    # As MLflow does: the paths are relative to the folder of the model.
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", tmp_path / "site"]
    subprocess.run([*pip, lines[0]], cwd=folder / "mlflow-model", check=True)
    code = "import privsvm, sys; print(privsvm.__file__, *privsvm.load('model').predict([['007', 'DE', 99, '', 1]]))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True,
        env={"PYTHONPATH": str(tmp_path / "site")},
    )  # fmt: skip
    assert done.stdout.split() == [str(tmp_path / "site/privsvm/__init__.py"), "yes"]
    export(folder / "model", "mlflow", tmp_path / "again")
    assert (tmp_path / "again/wheels" / wheel.name).read_bytes() == wheel.read_bytes()
