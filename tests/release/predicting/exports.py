"""Compare exported models with `privsvm predict`, row by row.

`python -m tests.release.predicting.exports` does so on 10,000 rows.
Every recipe that the recommended method can choose is trained on a messy table, exported, and run by DuckDB and SQLite
on texts, by DuckDB on numbers and dates, and by onnxruntime.
"""

import csv
import sqlite3
import sys
import tempfile
from pathlib import Path

import numpy as np

from privsvm.base.model_file import Description, write_model
from privsvm.release.predicting.exporting import export
from privsvm.release.predicting.model import load
from privsvm.release.training.recipes import Recipe, Terms, train
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema
from privsvm.tables.tables import units_table

# Name: features or another method, epsilon, classes, kinds of columns. Numbers alone have decimal commas.
RECIPES = {
    "linear": ("linear", 8.0, 2, "all"),
    "linear without a constant": ("linear", 0.02, 2, "all"),
    "linear, four classes": ("linear", 8.0, 4, "all"),
    "linear of categories": ("linear", 8.0, 2, "categories"),
    "hats": ("hats", 8.0, 3, "all"),
    "hats of numbers": ("hats", 8.0, 2, "numbers"),
    "fourier": ("fourier", 20.0, 2, "all"),
    "fourier of two numbers": ("fourier", 20.0, 3, "numbers"),
    "directions from a centre": ("dp_newton", 40.0, 3, "all"),
    "plain random features": ("private_svm_rbf", 40.0, 2, "numbers"),
}

_NUMBERS = ["12", " 17.5", "-3e1", "+.5", "5.", "1E+01", "0", "-0.0", "1e400", "99", "-99", "", "NA", "?", "inf", "nan",
            "1_0", "1,5", "0x1A", "1.2.3", "--4", "3-", "e5", "1e", "1e5e5", ".", "12 "]  # fmt: skip
_DAYS = ["01.02.2020", "1.2.2020", "29.02.2020", "29.02.2021", "31.04.2015", "00.01.2015", "05.13.2015", "31.12.2024",
         "2020-02-01", "", "soon", "01.02.20", " 07.08.2013 ", "02/13/2020", "13/02/2020", "1/2/2020", "01.01.1900",
         "1900-01-01", "01/01/1900", "2019-02-29"]  # fmt: skip
_TIMES = ["2020-02-01", "20200201", "2020-02-01T13:45", "2020-02-01 13:45:59", "2020-02-01T24:00:01", "2019-02-29", "",
          "2020-06-30 01:02:03Z", "2020-06-30T01:02:03+02:00", "1969-07-20", "2020-1-1", "never",
          "9999-12-31 23:59:59", "9999-12-31"]  # fmt: skip
_COLUMNS = {
    "age": (
        {"bounds": [18, 100], "fill": 60, "missing": [-99, "n.d.", 12]},
        [*_NUMBERS, "33", "44,4", "55", "66.6", "77", "88"],
    ),
    "dose": ({"bounds": [-2.5, 1e3], "fill": "middle"}, _NUMBERS),
    'odd "name"': ({"boolean": True, "fill": "no"}, ["yes", "No", "1", "0.0", "TRUE", " on", "", "maybe", "1."]),
    "visit": (
        {
            "date": ["%d.%m.%Y", "%d/%m/%Y", "iso", "%m/%d/%Y"],
            "bounds": ["01.01.2010", "2024-12-31"],
            "fill": "middle",
            "missing": ["01.01.1900"],
        },
        _DAYS,
    ),
    "day": ({"date": "%d.%m.%Y", "bounds": ["01.01.2010", "31.12.2024"], "fill": "middle"}, _DAYS),
    "time": (
        {
            "date": "iso",
            "bounds": ["2019-01-01", "2021-12-31T12:00"],
            "fill": "2020-02-29",
            "missing": ["9999-12-31T23:59:59"],
        },
        _TIMES,
    ),
    "ward": ({"categories": ["a", "b's", "A"], "unknown": "other"}, ["a", "b's", "A", " a ", "c", "", "other"]),
    "code": (
        {"categories": ["7", "0", "07"], "fill": "7", "missing": [99]},
        ["7", "7.0", "07", "0", "-0.0", "70", "", "8", "7.", "99.0"],
    ),
    "sex": (
        {
            "categories": ["M\u00e4nnlich", "wei\u00df", "K"],
            "unknown": "other",
            "fill": "K",
            "ignore_case": True,
            "missing": ["n.d."],
        },
        ["M\u00c4NNLICH", "m\u00e4nnlich", "WEISS", "wei\u1e9e", "weis", "\u212a", "k", " N.D. ", "", "OTHER", "x"],
    ),
}
_KINDS = {"all": list(_COLUMNS), "numbers": ["age", "dose"], "categories": ["ward", "code", "sex"]}


def write_rows(path, kind, n_classes, n_rows, seed):
    """Write a table whose cells are as they should be in half of the rows; return the columns of its schema."""
    rng, columns = np.random.default_rng(seed), {name: _COLUMNS[name] for name in _KINDS[kind]}
    usual = {
        "age": lambda: f"{rng.normal(60, 20):.3f}".replace(".", "," if kind == "numbers" else "."),
        "dose": lambda: repr(float(rng.normal(300, 300))),
        "visit": lambda: f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.{rng.integers(2009, 2026)}",
        "time": lambda: f"20{rng.integers(18, 23)}-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
    }
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([*columns, "label", "row"])
        for row in range(n_rows):
            odd = rng.random() < 0.5
            cells = [
                usual[name]() if name in usual and not odd else str(rng.choice(values))
                for name, (_, values) in columns.items()
            ]
            rows.writerow([*cells, f"class {rng.integers(n_classes)}", row])
    return {name: declared for name, (declared, _) in columns.items()}


def make_model(folder, name, n_rows=1500):
    """Train a model of a recipe and write it; return its folder."""
    features, epsilon, n_classes, kind = RECIPES[name]
    table, folder = Path(folder) / "train.csv", Path(folder) / "model"
    columns = write_rows(table, kind, n_classes, n_rows, 1)
    # A label that follows from a number, so that all classes are predicted.
    schema = parse_schema({
        "name": "made-up", "label": "label", "classes": [f"class {code}" for code in range(n_classes)],
        "prescaled": False, "decimal": "," if kind == "numbers" else ".", "columns": {**columns, "row": "ignore"},
    })  # fmt: skip
    X, _, _ = units_table(table, schema)
    codes = np.argsort(np.argsort(X @ np.cos(np.arange(X.shape[1])))) * n_classes // len(X)
    recipe = Recipe(features)
    if features in ("linear", "hats", "fourier"):
        recipe = Recipe("recommended", {"features": features, "class_weight": "balanced"})
    terms = Terms(epsilon, 1e-5, recipe=recipe)
    trained = train(X, codes, schema, terms, random_state=1)
    described = Description(
        classes=schema.class_order, n_features=X.shape[1], recipe=trained.recipe, table=schema.to_json()
    )
    folder.mkdir()
    write_model(folder, trained.estimator._path, described, trained.estimator.guarantee_)
    return folder


def texts_of(table):
    """Columns of a CSV as lists of texts, None where they are empty."""
    with open(table, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    return {name: [cell or None for cell in cells] for name, cells in zip(names, zip(*rows, strict=True), strict=True)}


def _answers(rows):
    """Labels (n,) and scores (n, k) in the order of the kept column."""
    _, labels, *scores = zip(*sorted(rows, key=lambda row: int(row[0])), strict=True)
    return np.array(labels), np.array(scores).T


def by_sqlite(query, model, columns):
    """Labels and scores that SQLite computes from texts."""
    declared = ", ".join('"{}" TEXT'.format(name.replace('"', '""')) for name in columns)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE patients ({declared})")
    rows = list(zip(*columns.values(), strict=True))
    connection.executemany(f"INSERT INTO patients VALUES ({', '.join('?' * len(columns))})", rows)
    return _answers(connection.execute(query))


def _by_duckdb(query, frame):
    import duckdb

    connection = duckdb.connect()
    connection.register("patients", frame)
    return _answers(connection.execute(query).fetchall())


def by_duckdb(query, model, columns):
    """The same by DuckDB."""
    import pandas as pd

    return _by_duckdb(query, pd.DataFrame(columns, dtype=object))


def by_typed_duckdb(query, model, columns):
    """The same by DuckDB, from numbers, times and truth values in place of texts."""
    import pandas as pd

    frame = {}
    for name, column in model.schema_.features.items():
        numbers = np.array([column.read(cell or "", model.schema_.decimal) for cell in columns[name]])
        if column.kind == "date":
            seconds = np.where(np.isnan(numbers), np.iinfo(np.int64).min, (numbers * 86400).round())
            frame[name] = seconds.astype(np.int64).view("datetime64[s]")
        elif column.kind == "boolean":
            frame[name] = [None if np.isnan(number) else bool(number) for number in numbers]
        else:
            frame[name] = columns[name] if column.words else numbers
    return _by_duckdb(query, pd.DataFrame({**frame, "row": columns["row"]}))


def by_onnx(graph, model, columns):
    """The same by onnxruntime."""
    import onnxruntime

    given = {
        name: np.array([normalise_label(cell or "") for cell in columns[name]], dtype=object)
        if column.words
        else np.array([column.read(cell or "", model.schema_.decimal) for cell in columns[name]])
        for name, column in model.schema_.features.items()
    }
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return session.run(["predicted", "scores"], given)


PROGRAMS = {"sqlite": by_sqlite, "duckdb": by_duckdb, "duckdb, typed": by_typed_duckdb, "onnxruntime": by_onnx}


def differences(recipe, n_rows, programs=PROGRAMS):
    """Compare programs with `privsvm predict`.

    Returns the number of rows with another label and the largest difference of scores, for each program, and how often
    each label is predicted.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, table = make_model(folder, recipe), Path(folder) / "new.csv"
        model = load(path)
        write_rows(table, RECIPES[recipe][3], RECIPES[recipe][2], n_rows, 2)
        texts = texts_of(table)
        labels, scores = model.predict(texts), model.scores(texts)
        found = {}
        for program in programs:
            form = "onnx" if program == "onnxruntime" else "sql"
            export(path, form, Path(folder) / form, table="patients", keep=["row"])
            written = (Path(folder) / form).read_bytes()
            answer, numbers = PROGRAMS[program](written if form == "onnx" else written.decode(), model, texts)
            found[program] = int((np.array(answer) != labels).sum()), float(np.abs(numbers - scores).max())
        return found, np.unique(labels, return_counts=True)[1].tolist()


if __name__ == "__main__":
    rows, failed = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, False
    for recipe in RECIPES:
        found, counts = differences(recipe, rows)
        failed |= any(wrong for wrong, _ in found.values())
        print(f"{recipe}: {rows} rows, labels {counts}; other labels and largest difference of scores:")
        print("  " + ", ".join(f"{program} {wrong}, {largest:.1e}" for program, (wrong, largest) in found.items()))
    sys.exit(failed)
