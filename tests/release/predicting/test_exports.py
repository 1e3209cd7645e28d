"""Exported models predict as `privsvm predict` does; tests/release/predicting/exports.py compares 10,000 rows."""

import contextlib
import importlib.metadata
import importlib.util
import shlex
import sqlite3

import numpy as np
import pandas as pd
import pytest
from tests.blocks import blocks_run_by
from tests.release.conftest import refusal, run
from tests.release.made_up import release_of_wards
from tests.release.predicting.exports import PROGRAMS, RECIPES, differences
from tests.release.predicting.test_released import forge

from privsvm import PrivateLinearClassifier
from privsvm.base.released import LinearPath
from privsvm.errors import PrivSVMError
from privsvm.release.predicting.exporting import export
from privsvm.release.predicting.model import ReleasedModel, load, save
from privsvm.release.predicting.onnx_graph import onnx_model
from privsvm.release.predicting.sql_query import sql_query
from privsvm.tables.schema import parse_schema

PACKAGES = {"duckdb": ["duckdb"], "duckdb, typed": ["duckdb"], "onnxruntime": ["onnx", "onnxruntime"]}


def skip_without(*packages):
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: privsvm[export] and requirements-dev.lock have it")


@pytest.mark.parametrize("recipe", RECIPES)
def test_exports_predict_as_predict_does(recipe):
    programs = [
        program for program in PROGRAMS if all(importlib.util.find_spec(name) for name in PACKAGES.get(program, []))
    ]
    found, counts = differences(recipe, 150, programs)
    assert len(counts) == RECIPES[recipe][2]
    assert all(wrong == 0 and largest < 1e-9 for wrong, largest in found.values()), found
    skip_without(*dict.fromkeys(name for names in PACKAGES.values() for name in names))


@pytest.mark.parametrize("to", ["sql", "onnx", "mlflow"])
def test_command_writes_whole_files(hospital, tmp_path, to):
    skip_without(*(["onnx"] if to == "onnx" else ["mlflow"] if to == "mlflow" else []))
    code, _, err = run("export", hospital / "model", "--to", to, "--out", tmp_path / "out", "--keep", "patient")
    assert (code, err) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    if to == "sql":
        text = (tmp_path / "out").read_text(encoding="utf-8")
        assert text.startswith("-- PrivSVM ")
        assert "epsilon 1 per person" in text.splitlines()[0]
        assert '"patient"' in text


def test_mlflow_loads_without_pickle(hospital, tmp_path):
    skip_without("mlflow")
    import mlflow.pyfunc

    export(hospital / "model", "mlflow", tmp_path / "flavour")
    assert not [path for path in (tmp_path / "flavour").rglob("*") if path.suffix in (".pkl", ".pickle")]
    names = {path.name for path in (tmp_path / "flavour" / "data").iterdir()}
    assert names == {"card.html", "card.json", "model.json", "model.npz"}
    rows = pd.read_csv(hospital / "new.csv", dtype=str, keep_default_na=False)
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "flavour"))
    np.testing.assert_array_equal(loaded.predict(rows), load(hospital / "model").predict(rows))
    assert "give a new folder" in refusal("export", hospital / "model", "--to", "mlflow", "--out", tmp_path / "flavour")


def test_a_folder_for_mlflow_requires_this_version_and_holds_a_checked_card(hospital_copy, tmp_path):
    """The version in a model's file is its giver's word, and a page that nobody checked may hold a script."""
    folder = hospital_copy / "model"
    forge(folder, privsvm="99.1+other")
    export(folder, "mlflow", tmp_path / "flavour")
    own = importlib.metadata.version("privsvm")
    assert (tmp_path / "flavour" / "requirements.txt").read_text() == f"privsvm=={own}\n"
    (folder / "card.html").write_text("<script>alert(1)</script>")
    with pytest.raises(PrivSVMError, match="is not the page"):
        export(folder, "mlflow", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def linear_model(hospital, columns, **more):
    """A linear model of a schema, that nobody trained."""
    table = parse_schema(
        {"name": "t", "label": "label", "classes": ["no", "yes"], "prescaled": False, "columns": columns, **more}
    ).to_json()
    record = load(hospital / "model").record
    path = LinearPath(
        coef=np.ones((1, 1, 1, len(columns))), intercept=np.full((1, 1, 1), -0.3), epsilons=(1.0,), guarantees=(),
        n_classes=2,
    )  # fmt: skip
    return ReleasedModel(path, record.model_copy(update={"table": table, "n_features": len(columns)}))


def test_columns_of_all_kinds_and_plain_linear_models(hospital, tmp_path):
    skip_without("onnx", "onnxruntime")
    release_of_wards(tmp_path)
    first = load(tmp_path / "model")
    columns = {
        "age": ["50", "", "x"], "ward": ["a", "", "?"], "day": ["2020-06-30", "2020-13-01", ""],
        "smoker": ["1", "no", ""], "row": ["0", "1", "2"],
    }  # fmt: skip
    plain = linear_model(hospital, {"age": {"bounds": [0, 100], "fill": 60}})
    for model in (first, plain):
        given = {name: columns[name] for name in [*model.schema_.features, "row"]}
        for program, form in (
            ("sqlite", sql_query(model, "patients", ["row"])),
            ("onnxruntime", onnx_model(model, "")),
        ):
            labels, scores = PROGRAMS[program](form, model, given)
            np.testing.assert_array_equal(labels, model.predict(given))
            np.testing.assert_allclose(scores, model.scores(given), atol=1e-12)


def test_a_query_stops_at_a_missing_column(hospital):
    """SQLite takes a name in quotes for a text where no column has it."""
    query = sql_query(linear_model(hospital, {"age": NUMBER}), "patients", ["row"])
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        PROGRAMS["sqlite"](query, None, {"row": ["1"], "Alter": ["30"]})


NUMBER = {"bounds": [0, 1], "fill": 0}


@pytest.mark.parametrize("table", ["step1", "STEP2", "source", "x0"])
def test_a_table_may_have_a_name_of_the_query(hospital, table):
    query = sql_query(linear_model(hospital, {"age": NUMBER}), table, [])
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE {table} AS SELECT '1' AS age")
        assert len(database.execute(query).fetchall()) == 1


@pytest.mark.parametrize(
    ("columns", "to", "message"),
    [
        ({"Age": NUMBER, "age": NUMBER}, "sql", "'Age', 'age': databases do not tell"),
        ({"day": {"date": "%d %b %Y", "bounds": ["01 Jan 2010", "31 Dec 2020"], "fill": "middle"}}, "sql", "'day'"),
        ({f"x{number}": NUMBER for number in range(1001)}, "sql", "columns"),
        ({"predicted": NUMBER}, "onnx", "export to sql"),
    ],
)
def test_what_a_format_lacks_is_refused(hospital, columns, to, message):
    skip_without(*(["onnx"] if to == "onnx" else []))
    model = linear_model(hospital, columns)
    with pytest.raises(PrivSVMError, match=message):
        onnx_model(model, "") if to == "onnx" else sql_query(model, "t", [])


def test_every_command_of_the_page_runs(hospital_copy, monkeypatch):
    skip_without("onnx", "mlflow")
    monkeypatch.chdir(hospital_copy)
    monkeypatch.setenv("PRIVSVM_LEDGER", str(hospital_copy / "ledger.jsonl"))
    for block in blocks_run_by(__file__):
        for command in block.commands:
            program, *arguments = shlex.split(command)
            assert program == "privsvm"
            code, out, err = run(*arguments)
            assert code == 0, f"{command}: {err}"
    assert out.startswith("4 release(s) at epsilon")
    assert "medium" in out


def test_no_export_into_the_model_or_without_a_schema(hospital, tmp_path):
    assert "lies in the folder of the model" in refusal(
        "export", hospital / "model", "--to", "sql", "--out", hospital / "model" / "query.sql"
    )
    bare = PrivateLinearClassifier(epsilon=1.0, classes=[0, 1], bounds=(-2, 2)).fit([[-1.0], [1.0]] * 50, [0, 1] * 50)
    save(bare, tmp_path / "bare")
    with pytest.raises(PrivSVMError, match="release it with one"):
        export(tmp_path / "bare", "sql", tmp_path / "query.sql")
    assert not (tmp_path / "query.sql").exists()
