"""Outputs of runs on neighbouring data sets with equal declarations: records, pages and runs in MLflow.

They may differ only in released models and in values that the report names as outside every epsilon.
"""

import dataclasses
import json
import re

import numpy as np
import pytest

from privsvm.files import read_json
from privsvm_bench import records
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.datasets.prepare import prepare, write_prepared
from privsvm_bench.datasets.prepared import load_prepared
from privsvm_bench.datasets.settings import Holdout
from privsvm_bench.jobs.condensing import condense_splits
from privsvm_bench.jobs.evaluation import evaluate_paths
from privsvm_bench.jobs.job import TrainJob
from privsvm_bench.jobs.model_files import load_paths, model_record, save_paths, train_timings
from privsvm_bench.jobs.training import train_paths, training_sizes
from privsvm_bench.metrics import METRICS
from privsvm_bench.reporting.page import report_files
from privsvm_bench.reporting.provenance import provenance
from privsvm_bench.reporting.results import read_results
from privsvm_bench.tracking.runs import collect_runs
from tests.fuzz.strategies import paths, value_at

MODELS = {
    "recommended": {}, "pmsvm_wp": {"C": 0.05}, "pmsvm_gp": {"scaling": "centre", "epochs": 3}, "dp_least_squares": {},
    "private_svm_laplace": {}, "objective_perturbation": {"C": 0.05}, "dp_frank_wolfe": {"n_steps": 5},
}  # fmt: skip
PRIVACY = {"epsilons": [0.5, 4.0], "delta": 1e-5, "repeats": 2}
SETTINGS = {"label": "y", "classes": ["a", "b", "c"], "bounds": [0, 7], "prescaled": False}
# Keys of values that may differ besides the released models: accuracies and similar, hashes, seconds, witnesses.
OUTSIDE = re.compile(r"\.(metrics|summary|witness)\b|digest|sha256|seconds|record_key|\.seal")


def table(change):
    """Write rows of a data set or of its neighbour as CSV."""
    rng = np.random.default_rng(7)
    rows = [[*map(str, x), "abc"[int(x[0] > 2.5) + int(x[1] > 4)]] for x in rng.uniform(0, 7, (60, 3)).round(3)]
    if change == "replaced":
        # An outlier of another class.
        rows[5] = ["7000", "-1e9", "6.999", "a" if rows[5][3] == "c" else "c"]
    elif change == "removed":
        del rows[5]
    return "\n".join(",".join(row) for row in [["u", "v", "w", "y"], *rows]) + "\n"


def run(folder, change, relation):
    """Return records, pages and MLflow's runs of a run, without models."""
    folder.mkdir()
    (folder / "rows.csv").write_text(table(change))
    settings = SETTINGS | {"path": str(folder / "rows.csv")}
    settings |= {"n_rows": 60} if relation == "add_remove" else {}
    protocol = Holdout(repeats=2, test_size=0.25)
    arrays, description = prepare(resolve("patients", settings), folder, protocol, 1, "run")
    write_prepared(folder / "p.npz", folder / "p.json", arrays, description)
    prepared = load_prepared(folder / "p.npz")
    condensed = condense_splits(prepared, "none", "run", 1)[0]
    method_records, sizes, files = {}, {}, []
    for method, parameters in MODELS.items():
        if relation == "add_remove" and method == "dp_frank_wolfe":
            continue
        job = TrainJob(
            condense="none", experiment="run", implementation=method, method=method, parameters=parameters,
            **PRIVACY | {"neighbours": relation}, seed=1,
        )  # fmt: skip
        paths, attacks = train_paths(prepared, condensed, job)
        record = model_record(job, prepared.description, training_sizes(prepared, job), paths, attacks)
        models, record_path = folder / f"{method}.npz", folder / f"{method}.model.json"
        save_paths(paths, models, record_path, record)
        result, timings = evaluate_paths(prepared, *load_paths(models, record_path, records.ModelRecord))
        result_path = folder / method / "patients.json"
        records.write(result_path, result, indent=None)
        seconds = result_path.with_suffix(".train.json"), result_path.with_suffix(".evaluate.json")
        for file, content in zip(seconds, (train_timings(paths), timings), strict=True):
            records.write(file, content)
        files.append((result_path, list(seconds)))
        method_records[method] = {"model": read_json(record_path), "result": read_json(result_path)}
        with np.load(models) as stored:
            sizes[method] = {name: (stored[name].shape, stored[name].dtype.str) for name in stored.files}
    results = read_results([result_path for result_path, _ in files])
    pages = report_files(
        results, origin=provenance(), experiment="run", reference_epsilon=0.5, own_datasets=("patients",)
    )
    return method_records, sizes, pages, [dataclasses.asdict(one) for one in collect_runs(files)]


def leaves(content):
    """Return every value by its path, and the lengths of lists and mappings."""
    values = {path: value_at(content, path) for path in paths(content)}
    return {
        ".".join(["", *map(str, path)]): len(value) if isinstance(value, (dict, list)) else value
        for path, value in values.items()
    }


@pytest.mark.parametrize(("change", "relation"), [("replaced", "replace_one"), ("removed", "add_remove")])
def test_neighbours_differ_only_in_what_the_report_names(change, relation, tmp_path):
    first, second = run(tmp_path / "a", "", relation), run(tmp_path / "b", change, relation)
    assert first[1] == second[1]
    statuses = {guarantee["status"] for one in first[0].values() for guarantee in one["model"]["guarantees"]}
    assert statuses == {"seeded"}
    one, other = leaves(first[0]), leaves(second[0])
    assert one.keys() == other.keys()
    differ = {path for path in one if one[path] != other[path]}
    assert {path for path in differ if not OUTSIDE.search(path)} == set()
    # The accuracies do differ, so the comparison is not vacuous.
    assert any("metrics" in path for path in differ)
    # Pages have the same words; accuracies differ in value and order, and a band's name is a digest of its points.
    assert list(first[2]) == list(second[2])
    for name in first[2]:
        pages = (re.sub(r'(id="|#)m[0-9a-f]{10}"', "", outputs[2][name]) for outputs in (first, second))
        words, others = (set(re.findall("[A-Za-z]+", page)) for page in pages)
        assert words ^ others <= {"e"}, name
    for mine, others in zip(first[3], second[3], strict=True):
        assert {name for name in mine if mine[name] != others[name]} <= {
            "dataset_digest", "files", "key", "metrics", "sweep", "tags", "timings",
        }  # fmt: skip
        assert {name for name in mine["sweep"] if mine["sweep"][name] != others["sweep"][name]} == {"dataset_digest"}
        assert {name for name in mine["tags"] if mine["tags"][name] != others["tags"][name]} == {"dataset_digest"}
        guarantees, other_guarantees = (leaves(json.loads(one["files"]["guarantees.json"])) for one in (mine, others))
        assert guarantees.keys() == other_guarantees.keys()
        assert all("witness" in path for path in guarantees if guarantees[path] != other_guarantees[path])
        # Runs have the same metrics at the same steps; only values of accuracies and witnesses differ.
        values, other_values = ({(point["name"], point["step"]): point["value"] for point in one["metrics"]}
                         for one in (mine, others))  # fmt: skip
        assert values.keys() == other_values.keys()
        named = {path[0] for path in values if values[path] != other_values[path]}
        assert named <= {f"{metric}{ending}" for metric in METRICS for ending in ("", "_sd")} | {"epsilon_witness"}
