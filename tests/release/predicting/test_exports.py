"""Exported models predict as `privsvm predict` does (exports.py compares 10,000 rows), typed tables as texts are."""

import contextlib
import csv
import importlib.metadata
import importlib.util
import io
import json
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.blocks import blocks_run_by
from tests.methods.test_rows_of_users import StreamOnly
from tests.release.conftest import in_shell, refusal, run
from tests.release.made_up import release_by, release_of_wards
from tests.release.predicting.exports import PROGRAMS, RECIPES, differences
from tests.release.predicting.test_released import forge

import privsvm
from privsvm import PrivateLinearClassifier, PublicSchema
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
        pytest.skip(f"{', '.join(missing)} not installed; requirements-dev.lock has it")


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
    wheel = f"wheels/privsvm-{importlib.metadata.version('privsvm')}-py3-none-any.whl"
    assert (tmp_path / "flavour" / "requirements.txt").read_text().startswith(f"{wheel}\n")
    assert (tmp_path / "flavour" / wheel).is_file()
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
            _, out = in_shell(command)
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


COLUMNS = {
    "site": {"categories": ["007", "012", "045", "101"], "unknown": "other"},
    "age": {"bounds": [0, 100], "fill": 50},
    "grade": {"categories": ["1", "2"], "unknown": "other"},
}
DECLARED = {"name": "codes", "label": "y", "classes": ["no", "yes"], "prescaled": False, "columns": COLUMNS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, its exports, and a table with the codes of the schema and others."""
    skip_without("duckdb", "mlflow", "onnx", "onnxruntime")
    folder = tmp_path_factory.mktemp("codes")
    release_by(parse_schema(DECLARED), folder / "model", folder / "ledger.jsonl")
    for form in ("mlflow", "onnx", "sql"):
        export(folder / "model", form, folder / form, table="patients", keep=["age"])
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "site": rng.choice(["007", "012", "045", "101", "099"], 200), "age": np.arange(200) / 2,
        "grade": rng.choice(["1", "2"], 200),
    })  # fmt: skip
    table.to_csv(folder / "new.csv", index=False)
    return folder


def texts(folder):
    return pd.read_csv(folder / "new.csv", dtype=str)


def typed(folder):
    return pd.read_csv(folder / "new.csv")


def by_model(read):
    return lambda folder: privsvm.load(folder / "model").predict(read(folder))


def through_parquet(frame):
    pq.write_table(pa.Table.from_pandas(frame), file := io.BytesIO())
    return pq.read_table(file)


def by_mlflow(form):
    def answers(folder):
        from mlflow.models import predict

        columns, out = texts(folder), folder / f"answers {form}.json"
        content = {"dataframe_split": {"columns": [*columns], "data": columns.to_numpy().tolist()}}
        (folder / "request.json").write_text(json.dumps(content))
        table = folder / ("new.csv" if form == "csv" else "request.json")
        predict(
            str(folder / "mlflow"), input_path=str(table), content_type=form, output_path=str(out), env_manager="local"
        )
        return np.array(json.loads(out.read_text())["predictions"])

    return answers


def by_onnx(kind):
    def answers(folder):
        import onnxruntime

        columns = texts(folder)
        given = {name: columns[name].to_numpy(dtype=object) for name in ("site", "grade")}
        given |= {"age": columns["age"].to_numpy(dtype=float), "site": given["site"].astype(kind)}
        session = onnxruntime.InferenceSession((folder / "onnx").read_bytes(), providers=["CPUExecutionProvider"])
        return np.array(session.run(["predicted"], given)[0])

    return answers


def by_sqlite(kind):
    def answers(folder):
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            database.execute(f"CREATE TABLE patients (site {kind}, age TEXT, grade {kind})")
            database.executemany("INSERT INTO patients VALUES (?, ?, ?)", texts(folder).to_numpy().tolist())
            return np.array([row[1] for row in database.execute((folder / "sql").read_text())])

    return answers


def by_duckdb(options):
    def answers(folder):
        import duckdb

        with contextlib.closing(duckdb.connect()) as database:
            database.execute(f"CREATE TABLE patients AS FROM read_csv('{folder / 'new.csv'}'{options})")
            return np.array([row[1] for row in database.execute((folder / "sql").read_text()).fetchall()])

    return answers


def by_command(folder):
    code, out, _ = run("predict", folder / "model", folder / "new.csv")
    assert code == 0
    return np.array([row["predicted"] for row in csv.DictReader(io.StringIO(out))])


SAME = {
    "command": by_command,
    "pandas, dtypes": by_model(lambda folder: pd.read_csv(folder / "new.csv", dtype={"site": str})),
    "pandas, categories": by_model(lambda folder: texts(folder).astype("category")),
    "parquet": by_model(lambda folder: through_parquet(texts(folder))),
    "stream": by_model(lambda folder: StreamOnly(through_parquet(texts(folder)))),
    "json": by_model(lambda folder: json.loads(texts(folder).to_json(orient="records"))),
    "mlflow, json": by_mlflow("json"),
    "onnx": by_onnx(object),
    "sqlite": by_sqlite("TEXT"),
    "duckdb": by_duckdb(", all_varchar=true"),
}
REFUSED = {
    "pandas": by_model(typed),
    "pandas, nullable": by_model(lambda folder: typed(folder).convert_dtypes()),
    "pandas, arrow": by_model(lambda folder: typed(folder).convert_dtypes(dtype_backend="pyarrow")),
    "pandas, categories": by_model(lambda folder: typed(folder).astype("category")),
    "pandas, beside texts": by_model(
        lambda folder: typed(folder).astype({"site": object}).replace({"site": {101: "101"}})
    ),
    "parquet": by_model(lambda folder: through_parquet(typed(folder))),
    "stream": by_model(lambda folder: StreamOnly(through_parquet(typed(folder)))),
    "json": by_model(lambda folder: json.loads(typed(folder).to_json(orient="records"))),
    "sqlite": by_sqlite("INTEGER"),
    "sqlite, floats": by_sqlite("REAL"),
    "duckdb": by_duckdb(", types={'site': 'BIGINT'}"),
}


ERROR = r"column '+site'+ holds numbers, and category '+0\d\d'+ is a text that they lose"


@pytest.mark.parametrize("way", SAME)
def test_texts_are_answered_alike(folder, way):
    np.testing.assert_array_equal(SAME[way](folder), privsvm.load(folder / "model").predict(texts(folder)))


# MLflow's server reads texts, see test_served_by_mlflow.py; its command guesses the types of a CSV.
OTHERS = {
    "mlflow, csv": (by_mlflow("csv"), r"column site\. Can not safely convert int64"),
    "onnx, numbers": (by_onnx(np.int64), "Unexpected input data type"),
}


@pytest.mark.parametrize(("way", "error"), [*((way, ERROR) for way in REFUSED.values()), *OTHERS.values()],
                         ids=[*REFUSED, *OTHERS])  # fmt: skip
def test_numbers_in_place_of_codes_name_the_column(folder, way, error):
    with pytest.raises(Exception, match=error):
        way(folder)


def test_rows_to_train_on_are_refused_by_the_type_of_a_column():
    """Whatever its cells are: an error that a row decides would tell of it."""
    schema = PublicSchema(DECLARED)
    rest = {"age": [1, 2], "grade": [1, 2]}
    for dtype in ("int64", "float32", "Int64", "category", "Sparse[int64]", "int64[pyarrow]"):
        with pytest.raises(PrivSVMError, match=ERROR):
            schema.fit_transform(pd.DataFrame(rest | {"site": pd.Series([999, 999], dtype=dtype)}))
    for cells in (pa.array([1, None]), pa.array([1, 1]).dictionary_encode(), np.ones(2)):
        with pytest.raises(PrivSVMError, match=ERROR):
            schema.fit_transform({**rest, "site": cells})
    for cells in ([7, "012"], pa.array(["007", "012"]), pd.interval_range(0, 2), np.array(["007", 7], dtype=object)):
        assert schema.fit_transform({**rest, "site": cells}).shape == (2, 9)


@pytest.mark.parametrize("code", ["007", "2.50", "1E3", "+7", ".5", "00"])
def test_any_text_that_a_number_loses(code):
    columns = {"code": {"categories": [code, "a"]}}
    schema = PublicSchema(DECLARED | {"columns": columns})
    with pytest.raises(PrivSVMError, match="is a text that they lose"):
        schema.transform({"code": np.array([1.0])})
    kept = PublicSchema(
        DECLARED | {"columns": {"code": {"categories": ["0", "7", "2.5", "-3.0", "nan", "9" * 400, "1_0"]}}}
    )
    assert kept.transform({"code": pd.array([7.0, 2.5, -3.0], dtype="Float64")}).argmax(axis=1).tolist() == [1, 2, 3]


@pytest.fixture(scope="module")
def numeric(folder, tmp_path_factory):
    """The same with `numeric: true` for its codes, and a table that lost their zeros."""
    numeric = tmp_path_factory.mktemp("numeric")
    columns = COLUMNS | {"site": COLUMNS["site"] | {"numeric": True}}
    release_by(parse_schema(DECLARED | {"columns": columns}), numeric / "model", numeric / "ledger.jsonl")
    for form in ("mlflow", "onnx", "sql"):
        export(numeric / "model", form, numeric / form, table="patients", keep=["age"])
    pd.read_csv(folder / "new.csv").to_csv(numeric / "new.csv", index=False)
    return numeric


@pytest.mark.parametrize("way", [*SAME.values(), *REFUSED.values()], ids=[*SAME, *REFUSED])
def test_numeric_codes_are_the_same_without_zeros(folder, numeric, way):
    np.testing.assert_array_equal(way(numeric), privsvm.load(folder / "model").predict(texts(folder)))


@pytest.mark.parametrize("way", ["command", "json", "onnx", "sqlite", "duckdb"])
def test_numeric_codes_may_keep_their_zeros(folder, numeric, way, tmp_path):
    shutil.copytree(numeric, tmp_path / "both")
    shutil.copy(folder / "new.csv", tmp_path / "both")
    np.testing.assert_array_equal(SAME[way](tmp_path / "both"), privsvm.load(folder / "model").predict(texts(folder)))


def test_predict_counts_cells_that_it_cannot_read(folder, tmp_path):
    (tmp_path / "t.csv").write_text("site,age,grade\n7,12,1\n12,x,1\n045,NA,3\n,,\n101,1_0,2,9\n")
    code, _, err = run("predict", folder / "model", tmp_path / "t.csv")
    counts = "of 5 rows, cells that are unknown or cannot be read: 2 in 'site', 1 in 'age', 1 in 'grade'; "
    assert (code, [line for line in err.splitlines() if counts in line]) == (0, [err.splitlines()[1]])
    (tmp_path / "t.csv").write_text("site,age,grade\n007,12,1\n,NA,other\n")
    assert "cannot be read" not in run("predict", folder / "model", tmp_path / "t.csv")[2]
