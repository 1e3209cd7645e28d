"""Label codes, missing values, splits, scaling, and the files that come out."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.processes import refused_by_stage, run_stage
from tests.refusals import refusal

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import canonical_json
from privsvm_bench.datasets.catalogue import Bounds, DataFile, DataPart, DatasetEntry, resolve
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.datasets.prepare import _affine, write_prepared
from privsvm_bench.datasets.prepare import prepare as prepare_dataset
from privsvm_bench.datasets.prepared import load_prepared
from privsvm_bench.datasets.settings import Given, parse_protocol
from privsvm_bench.records import Prepared, read

HOLDOUT = {"kind": "holdout", "repeats": 3, "test_size": 0.25, "stratified": True}


def prepare(entry, folder, protocol, seed, experiment):
    """Prepare by a protocol as params.yaml writes it."""
    return prepare_dataset(entry, folder, parse_protocol(protocol), seed, experiment)


def table(labels, width=2, seed=0):
    values = np.random.default_rng(seed).normal(size=(len(labels), width)).round(6)
    rows = zip(values.tolist(), labels, strict=True)
    return "".join(",".join(map(repr, row)) + f",{label}\n" for row, label in rows)


@pytest.fixture
def toy(make_entry):
    """Entry of a hand-made CSV: label last, anything of the entry can be set."""

    def make(content, columns=2, **entry):
        return make_entry(content, name="toy.csv", format="csv", label=columns, entry=entry)

    return make


def parts_entry(folder, name="toy", **parts):
    for role, content in parts.items():
        (folder / role).write_text(content)
    return DatasetEntry(
        name=name,
        files={role: DataFile(role) for role in parts},
        parts={role: DataPart(role, (role,), "csv", label=2) for role in parts},
        pool=tuple(parts)[:1],
    )


def splits_of(arrays, description):
    return [(arrays[f"train_{s}"], arrays[f"test_{s}"]) for s in range(description["n_splits"])]


def fails(entry, folder, protocol, *words):
    message = refusal(prepare, entry, folder, protocol, 0, "e")
    for word in words:
        assert word in message, message


def round_trip(entry, folder, target, protocol=HOLDOUT, seed=0):
    arrays, description = prepare(entry, folder, protocol, seed, "e")
    write_prepared(target / "toy.npz", target / "toy.json", arrays, description)
    # The report reads the record by its type.
    assert canonical_json(read(Prepared, target / "toy.json"), indent=1) + "\n" == (target / "toy.json").read_text()
    return load_prepared(target / "toy.npz")


def test_two_classes_positive_gets_code_one(toy, tmp_path):
    labels = ["sick", "well", "well", "sick"] * 5
    entry = toy(table(labels), classes=("sick", "well"), labels=("sick", "well"), positive="sick")
    arrays, description = prepare(entry, tmp_path, HOLDOUT, 0, "e")
    assert description["classes"] == ["well", "sick"]
    assert description["classes_origin"] == "declared"
    assert arrays["y"].tolist() == [1 if label == "sick" else 0 for label in labels]
    assert arrays["y"].dtype == np.int64
    # Classes from the data are said to be.
    arrays, description = prepare(toy(table(["10", "9", "2"] * 9)), tmp_path, HOLDOUT, 0, "e")
    assert description["classes"] == ["2", "9", "10"]
    assert description["classes_origin"] == "data"
    assert arrays["y"][:3].tolist() == [2, 1, 0]


def test_groups_and_declared_classes(toy, tmp_path):
    labels = ["0", "1", "2", "3"] * 6
    entry = toy(table(labels), classes=("no", "yes"), positive="yes", groups={"no": ("0",), "yes": ("1", "2", "3")})
    arrays, description = prepare(entry, tmp_path, HOLDOUT, 0, "e")
    assert arrays["y"].tolist() == [int(label != "0") for label in labels]
    assert description["classes"] == ["no", "yes"]
    fails(
        dataclasses.replace(entry, groups={"no": ("0",), "yes": ("1", "2")}), tmp_path, HOLDOUT, "label '3'", "no group"
    )
    fails(toy(table(labels), classes=("0", "1", "2")), tmp_path, HOLDOUT, "'3' is not a declared class")
    # A declared class without rows keeps its code.
    arrays, description = prepare(toy(table(["c", "a"] * 9), classes=("a", "b", "c")), tmp_path, HOLDOUT, 0, "e")
    assert sorted(set(arrays["y"].tolist())) == [0, 2]
    fails(toy(table(["a", "b"] * 9), positive="c"), tmp_path, HOLDOUT, "no class 'c'")
    fails(toy(table(["a", "b", "c"] * 9), positive="c"), tmp_path, HOLDOUT, "3 classes")
    # Refusals must not depend on labels: their set is declared.
    entry = toy(table(["a", "b"] * 9), classes=("x", "y"), groups={"x": ("a", "b"), "y": ("c",)})
    arrays, _ = prepare(entry, tmp_path, HOLDOUT, 0, "e")
    assert set(arrays["y"].tolist()) == {0}
    fails(toy(table(["a"] * 9)), tmp_path, HOLDOUT, "one class only, 'a'")


GAPS = "1,2,a\n?,4,b\n5,6,a\n7,8,b\n9,1,a\n2,2,b\n3,?,a\n1,1,b\n"


def test_missing_rules(make_entry, tmp_path):
    def run(rule, text=GAPS):
        entry = make_entry(text, name="toy.csv", format="csv", label=2, entry={"missing": rule})
        return prepare(entry, tmp_path, {"kind": "resubstitution"}, 0, "e")

    arrays, description = run("drop_rows")
    assert arrays["X"].tolist() == [[1, 2], [5, 6], [7, 8], [9, 1], [2, 2], [1, 1]]
    assert arrays["y"].tolist() == [0, 0, 1, 0, 1, 1]
    assert description["missing"] == {"rule": "drop_rows", "rows_dropped": 2, "columns_dropped": []}
    arrays, description = run("drop_columns", GAPS.replace("3,?,a", "3,0,a"))
    assert arrays["X"].ravel().tolist() == [2, 4, 6, 8, 1, 2, 0, 1]
    assert description["missing"]["columns_dropped"] == [0]
    assert description["n_features"] == 1
    arrays, _ = run("zero")
    assert arrays["X"][1].tolist() == [0, 4]
    assert arrays["X"][6].tolist() == [3, 0]
    for rule in ("error", "drop_columns"):
        with pytest.raises(PrivSVMError, match="missing"):
            run(rule)


def test_missing_in_sparse_rows(make_entry, tmp_path):
    text = "1 1:2 150:nan\n2 2:1\n1 3:1\n2 4:nan\n"
    for rule, rows, columns in (("drop_rows", 2, 150), ("drop_columns", 4, 148), ("zero", 4, 150)):
        entry = make_entry(text, format="libsvm", entry={"missing": rule})
        arrays, description = prepare(entry, tmp_path, "resubstitution", 0, "e")
        assert description["sparse"]
        assert arrays["X_shape"].tolist() == [rows, columns]
        assert not np.isnan(arrays["X_data"]).any()


HOLDOUTS = {"kind": st.just("holdout"), "test_size": st.floats(0.2, 0.6)}
FOLDS = {"kind": st.just("k_fold"), "folds": st.integers(2, 6)}
COMMON = {"repeats": st.integers(1, 3), "stratified": st.booleans()}
PROTOCOLS = st.fixed_dictionaries(HOLDOUTS | COMMON) | st.fixed_dictionaries(FOLDS | COMMON)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PROTOCOLS, st.lists(st.integers(10, 30), min_size=2, max_size=4), st.integers(0, 2**40))
def test_properties_of_splits(toy, tmp_path, protocol, counts, seed):
    labels = [str(number) for number, count in enumerate(counts) for _ in range(count)]
    entry = toy(table(labels))
    arrays, description = prepare(entry, tmp_path, protocol, seed, "e")
    splits, n = splits_of(arrays, description), len(labels)
    y = arrays["y"]
    for train, test in splits:
        assert train.dtype == test.dtype == np.int64
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(n)), "disjoint and all rows"
        assert np.all(np.diff(train) > 0)
        assert np.all(np.diff(test) > 0)
        if protocol["stratified"]:
            share = len(test) / n
            for code, count in enumerate(counts):
                assert abs((y[test] == code).sum() - share * count) <= 1.5
    if protocol["kind"] == "k_fold":
        folds = protocol["folds"]
        assert len(splits) == folds * protocol["repeats"]
        for repeat in range(protocol["repeats"]):
            tests = np.concatenate([test for _, test in splits[repeat * folds : (repeat + 1) * folds]])
            assert np.array_equal(np.sort(tests), np.arange(n)), "every row is tested once a repeat"
    again, _ = prepare(entry, tmp_path, protocol, seed, "e")
    assert all(np.array_equal(arrays[key], again[key]) for key in arrays)


def test_splits_depend_on_their_purpose_only(tmp_path):
    content = table(["a", "b"] * 50)

    def tests_of(name="toy", seed=0, experiment="e", repeats=3):
        entry = parts_entry(tmp_path, name, all=content)
        arrays, description = prepare(entry, tmp_path, {**HOLDOUT, "repeats": repeats}, seed, experiment)
        return [tuple(test) for _, test in splits_of(arrays, description)]

    base = tests_of()
    assert len(set(base)) == 3, "repeats differ"
    assert tests_of(repeats=5)[:3] == base, "more repeats leave the first ones alone"
    for other in (tests_of(name="other"), tests_of(seed=1), tests_of(experiment="f")):
        assert not set(other) & set(base)


def test_given_and_resubstitution(tmp_path):
    entry = parts_entry(tmp_path, train=table(["a", "b"] * 4), test=table(["b", "a"] * 2, seed=1))
    arrays, description = prepare(entry, tmp_path, "given", 0, "e")
    assert arrays["train_0"].tolist() == list(range(8))
    assert arrays["test_0"].tolist() == [8, 9, 10, 11]
    assert description["n_rows"] == 12
    assert set(description["sources"]) == {"train", "test"}
    swapped, _ = prepare(entry, tmp_path, {"kind": "given", "train": "test", "test": "train"}, 0, "e")
    assert len(swapped["train_0"]) == 4
    arrays, description = prepare(entry, tmp_path, "resubstitution", 0, "e")
    assert arrays["train_0"].tolist() == arrays["test_0"].tolist() == list(range(8))
    assert set(description["sources"]) == {"train"}, "other parts are not needed"
    pooled, _ = prepare(dataclasses.replace(entry, pool=("train", "test")), tmp_path, HOLDOUT, 0, "e")
    assert len(pooled["y"]) == 12
    _, description = prepare(dataclasses.replace(entry, protocol=Given()), tmp_path, HOLDOUT, 0, "e")
    assert description["protocol"]["kind"] == "given", "the dataset's own protocol goes before the experiment's"
    fails(parts_entry(tmp_path, all=table(["a", "b"] * 4)), tmp_path, "given", "needs part 'train'", "holdout")


def test_protocols_that_cannot_be_applied(toy, tmp_path):
    lonely = toy(table(["a"] * 20 + ["b"] * 20 + ["c"]))
    for protocol in (HOLDOUT, {"kind": "k_fold", "stratified": True}):
        fails(lonely, tmp_path, protocol, "dataset toy", "class 'c' has 1 row", "stratified: false")
    prepare(lonely, tmp_path, {**HOLDOUT, "stratified": False}, 0, "e")
    for count, protocol, words in (
        (3, {"kind": "k_fold", "folds": 9, "stratified": False}, "9 folds of 6 rows"),
        (3, {"kind": "holdout", "test_size": 6}, "does not fit"),
        (9, {"kind": "holdout", "test_size": 1, "stratified": True}, "stratified: false"),
    ):
        fails(toy(table(["a", "b"] * count)), tmp_path, protocol, words)
    one_sided = parts_entry(tmp_path, train="1,2,a\n?,3,b\n?,3,b\n?,4,a\n", test=table(["a", "b"] * 2))
    fails(dataclasses.replace(one_sided, missing="drop_rows"), tmp_path, "given", "trains on one class only, 'a'")


def test_scaling_by_declared_bounds(toy, tmp_path):
    entry = toy("0,5,a\n10,5,b\n2,9,a\n4,1,b\n", scaling="bounds", bounds=Bounds((0.0, 2.0), (10.0, 6.0)))
    prepared = round_trip(entry, tmp_path, tmp_path / "out", "resubstitution")
    np.testing.assert_allclose(prepared.split(0).X_train, [[-1, 0.5], [1, 0.5], [-0.6, 2.5], [-0.2, -1.5]], atol=1e-15)
    scaling = prepared.description["scaling"]
    assert scaling["origin"] == "declared"
    assert scaling["outside_bounds"] == 2, "values outside are kept and counted"
    one_pair = dataclasses.replace(entry, bounds=Bounds((0.0,), (10.0,)), target_range=(0.0, 1.0))
    np.testing.assert_allclose(
        round_trip(one_pair, tmp_path, tmp_path / "out", "resubstitution").split(0).X_train, prepared.X / 10, atol=1e-15
    )
    odd = dataclasses.replace(entry, bounds=Bounds((0.0,) * 3, (1.0,) * 3))
    fails(odd, tmp_path, HOLDOUT, "3 pairs for 2 features")
    # Other rows move neither shift nor factor.
    bounds = {"scaling": "bounds", "bounds": Bounds((-3.0,), (5.0,))}
    first, second = (
        prepare(toy(table(["a", "b"] * 9, seed=seed), **bounds), tmp_path, HOLDOUT, 0, "e")[0] for seed in (1, 2)
    )
    assert not np.array_equal(first["X"], second["X"])
    for key in ("scale_shift", "scale_factor"):
        assert first[key].shape == (1, 2)
        assert np.array_equal(first[key], second[key])


@pytest.mark.parametrize("scaling", ["min_max", "z_score"])
def test_scaling_fitted_to_rows(toy, tmp_path, scaling):
    labels = ["a", "b"] * 30
    per_split = round_trip(toy(table(labels), scaling=scaling), tmp_path, tmp_path / "out")
    assert per_split.description["scaling"]["origin"] == "training rows"
    overall = round_trip(toy(table(labels), scaling=scaling, fit_on="all_rows"), tmp_path, tmp_path / "all")
    assert overall.description["scaling"]["origin"] == "all rows"
    everything = np.arange(60)
    for s in range(3):
        split = per_split.split(s)
        for X in (split.X_train, overall.scaled(everything, s)):
            if scaling == "min_max":
                np.testing.assert_allclose([X.min(axis=0), X.max(axis=0)], [[-1, -1], [1, 1]], atol=1e-12)
            else:
                np.testing.assert_allclose([X.mean(axis=0), X.std(axis=0)], [[0, 0], [1, 1]], atol=1e-12)
    assert any(not np.array_equal(per_split.split(s).X_test, overall.split(s).X_test) for s in range(3)), (
        "fitted to other rows"
    )
    # The test rows of a split have no say in its scaling.
    arrays, _ = prepare(toy(table(labels), scaling=scaling), tmp_path, HOLDOUT, 0, "e")
    values = [line.split(",") for line in table(labels).splitlines()]
    for row in arrays["test_0"]:
        values[row][0] = "1000000"
    changed, _ = prepare(toy("\n".join(",".join(line) for line in values), scaling=scaling), tmp_path, HOLDOUT, 0, "e")
    assert np.array_equal(arrays["scale_factor"][0], changed["scale_factor"][0])
    assert not np.array_equal(arrays["scale_factor"][1], changed["scale_factor"][1])


@pytest.mark.parametrize("scaling", ["min_max", "z_score"])
def test_constant_feature_becomes_zero(toy, tmp_path, scaling):
    text = "".join(f"0.1,{row},{'ab'[row % 2]}\n" for row in range(12))
    prepared = round_trip(toy(text, scaling=scaling), tmp_path, tmp_path / "out", "resubstitution")
    X = prepared.split(0).X_train
    assert np.all(X[:, 0] == 0)
    assert np.isfinite(X).all()
    assert X[:, 1].std() > 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=20), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_min_max_reaches_its_range(values, low, width):
    column = np.array(values)
    shift, factor = _affine(column.min(keepdims=True), column.max(keepdims=True), (low, low + width))
    scaled = (column - shift) * factor
    assert np.isfinite(scaled).all()
    spread = np.ptp(column)
    if spread > 1e-6 * np.abs(column).max():
        assert np.isclose(scaled.min(), low, atol=1e-6 * (width + abs(low)))
        assert np.isclose(scaled.max(), low + width, atol=1e-6 * (width + abs(low)))


SPARSE = "".join(f"{row % 2} {row % 7 + 1}:1 {row + 90}:0.5\n" for row in range(30))


def test_sparse_round_trip(make_entry, tmp_path):
    base = make_entry(SPARSE, format="libsvm")
    prepared = round_trip(base, tmp_path, tmp_path / "out")
    assert prepared.description["sparse"]
    assert prepared.X.indices.dtype == np.int32
    split = prepared.split(1)
    assert split.X_train.shape[1] == 119
    np.testing.assert_array_equal(split.X_test.toarray(), prepared.X.toarray()[split.test_index])
    scaled = dataclasses.replace(base, scaling="bounds", bounds=Bounds((0.0,), (2.0,)), target_range=(0.0, 1.0))
    prepared = round_trip(scaled, tmp_path, tmp_path / "out")
    np.testing.assert_array_equal(
        prepared.split(0).X_train.toarray() * 2, prepared.X.toarray()[prepared.split(0).train_index]
    )
    same = dataclasses.replace(base, scaling="bounds", bounds=Bounds((-1.0,), (1.0,)))
    assert round_trip(same, tmp_path, tmp_path / "out").description["scaling"]["outside_bounds"] == 0
    positive = dataclasses.replace(base, scaling="bounds", bounds=Bounds((0.5,), (1.5,)), target_range=(0.5, 1.5))
    record = round_trip(positive, tmp_path, tmp_path / "out").description["scaling"]
    assert record["outside_bounds"] == 30 * 119 - 60, "zeros that are not stored count too"
    for scaling in ("min_max", "z_score"):
        fails(dataclasses.replace(base, scaling=scaling), tmp_path, HOLDOUT, "sparse", "scaling: none")


def test_files_are_the_same_bytes_and_belong_together(toy, tmp_path):
    entry = toy(table(["a", "b"] * 20), scaling="z_score")
    round_trip(entry, tmp_path, tmp_path / "one")
    round_trip(entry, tmp_path, tmp_path / "two")
    for name in ("toy.npz", "toy.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    round_trip(entry, tmp_path, tmp_path / "three", seed=1)
    (tmp_path / "one" / "toy.npz").write_bytes((tmp_path / "three" / "toy.npz").read_bytes())
    with pytest.raises(PrivSVMError, match=r"digest differs.*delete both and run again"):
        load_prepared(tmp_path / "one" / "toy.npz")
    with pytest.raises(PrivSVMError, match="file not found"):
        load_prepared(tmp_path / "one" / "none.npz")
    with pytest.raises(PrivSVMError, match="no split 3"):
        load_prepared(tmp_path / "two" / "toy.npz").split(3)


def test_stage_with_a_bundled_set(tmp_path):
    download_raw("wine", "wine.npz", tmp_path / "raw" / "wine.npz")
    output, description = tmp_path / "p" / "wine.npz", tmp_path / "p" / "wine.json"
    parameters = {"settings": {}, "protocol": HOLDOUT, "seed": 3, "experiment": "benchmark"}

    command = ["prepare.py", "--dataset", "wine", "--raw", tmp_path / "raw", "--output", output]
    command += ["--description", description, "--parameters"]
    done = run_stage(*command, json.dumps(parameters))
    assert done.returncode == 0, done.stderr
    prepared = load_prepared(output)
    record = json.loads(description.read_text())
    assert record["digest"] == sha256_of_file(output)
    assert record["scaling"]["origin"] == "declared"
    assert record["sources"] == {"wine.npz": sha256_of_file(tmp_path / "raw" / "wine.npz")}
    assert prepared.n_splits == 3
    assert prepared.classes == ["class_0", "class_1", "class_2"]
    assert np.abs(prepared.split(0).X_train).max() <= 1
    wrong = refused_by_stage(*command, json.dumps(parameters | {"settings": {"scalin": "none"}}))
    assert "did you mean 'scaling'" in wrong


def test_own_data_from_settings_to_splits(tmp_path):
    source = tmp_path / "people.csv"
    source.write_text(
        "age,income,city\n" + "".join(f"{20 + row},{'high' if row % 3 else 'low'},{row % 5}\n" for row in range(60))
    )
    given = {"path": str(source), "label": "income", "positive": "high", "bounds": {"lower": [0, 0], "upper": [120, 4]}}
    for extra, origin in (({}, "data"), ({"classes": ["high", "low"]}, "declared")):
        entry = resolve("people", {**given, **extra})
        download_raw("people", "people.csv", tmp_path / "raw" / "people.csv", {**given, **extra})
        prepared = round_trip(entry, tmp_path / "raw", tmp_path / "out")
        assert prepared.classes == ["low", "high"]
        assert prepared.description["classes_origin"] == origin
        scaling = prepared.description["scaling"]
        assert (scaling["origin"], scaling["bounds_origin"], scaling["outside_bounds"]) == ("declared", "declared", 0)
        np.testing.assert_allclose(prepared.scaled(np.array([40]), 0), [[0.0, -1.0]], atol=1e-15)


def test_the_log_says_what_a_schema_fills_in(tmp_path):
    source, output = tmp_path / "people.csv", tmp_path / "people.npz"
    source.write_text("age,died\n" + "5,no\nn.d.,yes\nn.d.,no\n7,yes\n" * 20)
    columns = {"age": {"bounds": [0, 100], "fill": 50}}
    schema = {"label": "died", "classes": ["no", "yes"], "prescaled": False, "columns": columns}
    settings = {"path": str(source), "schema": schema}
    download_raw("people", "people.csv", tmp_path / "raw/people.csv", settings)
    parameters = {"settings": settings, "protocol": HOLDOUT, "seed": 3, "experiment": "benchmark"}
    command = ["prepare.py", "--dataset", "people", "--raw", tmp_path / "raw", "--output", output]
    done = run_stage(*command, "--description", tmp_path / "people.json", "--parameters", json.dumps(parameters))
    assert done.returncode == 0, done.stderr
    assert "age: 40 values cannot be read, such as 'n.d.'; they count as the fill value" in done.stdout
    assert load_prepared(output).description["missing"]["rule"] == "filled in by the schema"


def test_first_line_of_own_data_is_not_lost(tmp_path):
    """A table without header is not read as if it had one, unless somebody says so."""
    source = tmp_path / "t.csv"
    source.write_text("1,2,a\n3,4,b\n5,6,a\n7,8,b\n")
    for changes, rows in (({"header": False}, 4), ({"header": True}, 3)):
        entry = resolve("own", {"path": str(source), "label": 2, **changes})
        assert prepare(entry, tmp_path, "resubstitution", 0, "e")[1]["n_rows"] == rows
    fails(resolve("own", {"path": str(source), "label": 2}), tmp_path, "resubstitution", "may be data", "header: false")


@pytest.mark.parametrize(
    ("name", "changes", "rows", "features"),
    [
        ("cleveland_uci", {}, 297, 13),
        ("cleveland_uci", {"missing": "drop_columns", "groups": {}}, 303, 11),
        ("dermatology_uci", {}, 366, 34),
        ("dermatology_uci", {"missing": "drop_rows"}, 358, 34),
        ("arrhythmia_uci", {}, 452, 274),
        ("arrhythmia_uci", {"missing": "drop_rows", "protocol": "resubstitution"}, 68, 279),
        ("usps", {}, 9298, 256),
        ("usps", {"protocol": "given"}, 9298, 256),
        ("a1a", {}, 1605, 123),
        ("a1a", {"protocol": "given"}, 32561, 123),
        ("cornell_pmsvm", {"protocol": {"kind": "k_fold", "stratified": False}}, 827, 4134),
    ],
)
def test_real_sets(mirror, tmp_path, name, changes, rows, features):
    entry = resolve(name, changes)
    for file in entry.files:
        download_raw(name, file, tmp_path / file, changes)
    arrays, description = prepare(entry, tmp_path, HOLDOUT, 0, "e")
    assert (description["n_rows"], description["n_features"]) == (rows, features)
    assert description["classes_origin"] == "declared"
    assert len(arrays["y"]) == rows
