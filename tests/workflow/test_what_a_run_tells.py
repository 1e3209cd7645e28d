"""What leaves a run on own data: its records, its pages and what MLflow gets, for neighbours with equal declarations.

They may differ in what the report names as outside every epsilon, and in released models: in nothing else.
"""

import dataclasses
import json
import re

import numpy as np
import pytest

from privsvm.files import read_json
from privsvm_bench import records, reporting
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.datasets.prepare import prepare, write_prepared
from privsvm_bench.datasets.prepared import load_prepared
from privsvm_bench.jobs.condensing import condense_splits
from privsvm_bench.jobs.evaluation import evaluate_paths
from privsvm_bench.jobs.model_files import load_paths, model_record, save_paths, train_timings
from privsvm_bench.jobs.training import train_paths, training_sizes
from privsvm_bench.metrics import METRICS
from privsvm_bench.tracking.runs import collect_runs

MODELS = {
    "recommended": {}, "pmsvm_wp": {"C": 0.05}, "pmsvm_gp": {"scaling": "centre", "epochs": 3}, "dp_least_squares": {},
    "private_svm_laplace": {}, "objective_perturbation": {"C": 0.05}, "dp_frank_wolfe": {"n_steps": 5},
}  # fmt: skip
PRIVACY = {"epsilons": [0.5, 4.0], "delta": 1e-5, "repeats": 2}
SETTINGS = {"label": "y", "classes": ["a", "b", "c"], "bounds": [0, 7], "prescaled": False}
# Beside the released models, by the names of keys: accuracies and their like, hashes, seconds, witnesses.
OUTSIDE = re.compile(r"\.(metrics|summary|witness)\b|digest|sha256|seconds|record_key|\.seal")


def table(change):
    """Rows as text: as they are, or of a neighbour."""
    rng = np.random.default_rng(7)
    rows = [[*map(str, x), "abc"[int(x[0] > 2.5) + int(x[1] > 4)]] for x in rng.uniform(0, 7, (60, 3)).round(3)]
    if change == "replaced":
        # Far out, and of another class.
        rows[5] = ["7000", "-1e9", "6.999", "a" if rows[5][3] == "c" else "c"]
    elif change == "removed":
        del rows[5]
    return "\n".join(",".join(row) for row in [["u", "v", "w", "y"], *rows]) + "\n"


def run(folder, change, relation):
    """Everything that leaves a run but the models: records as JSON, pages, and what MLflow gets."""
    folder.mkdir()
    (folder / "rows.csv").write_text(table(change))
    settings = SETTINGS | {"path": str(folder / "rows.csv")}
    settings |= {"n_rows": 60} if relation == "add_remove" else {}
    protocol = {"kind": "holdout", "repeats": 2, "test_size": 0.25, "stratified": False}
    arrays, description = prepare(resolve("patients", settings), folder, protocol, 1, "run")
    write_prepared(folder / "p.npz", folder / "p.json", arrays, description)
    prepared = load_prepared(folder / "p.npz")
    condensed = condense_splits(prepared, "none", "run", 1)[0]
    told, sizes, files = {}, {}, []
    for method, parameters in MODELS.items():
        if relation == "add_remove" and method == "dp_frank_wolfe":
            continue
        job = {"experiment": "run", "seed": 1, "implementation": method, "parameters": parameters,
               "privacy": PRIVACY | {"neighbours": relation}, "condense": "none"}  # fmt: skip
        paths, attacks = train_paths(prepared, condensed, method, job)
        record = model_record(method, job, prepared.description, training_sizes(prepared, job), paths, attacks)
        models, said = folder / f"{method}.npz", folder / f"{method}.model.json"
        save_paths(paths, models, said, record)
        result, timings = evaluate_paths(prepared, *load_paths(models, said, records.ModelRecord))
        place = folder / method / "patients.json"
        records.write(place, result, indent=None)
        seconds = place.with_suffix(".train.json"), place.with_suffix(".evaluate.json")
        for file, content in zip(seconds, (train_timings(paths), timings), strict=True):
            records.write(file, content)
        files.append((place, list(seconds)))
        told[method] = {"model": read_json(said), "result": read_json(place)}
        with np.load(models) as stored:
            sizes[method] = {name: (stored[name].shape, stored[name].dtype.str) for name in stored.files}
    results = reporting.read_results([place for place, _ in files])
    pages = reporting.report_files(
        results, timings=[], condensing=[], attacks=[], audits=[], prepared=[], origin=reporting.provenance(),
        experiment="run", reference_epsilon=0.5, own=("patients",),
    )  # fmt: skip
    return told, sizes, pages, [dataclasses.asdict(one) for one in collect_runs(files)]


def leaves(content, place=""):
    """Every value of a record, with the way to it, and the length of every list."""
    if isinstance(content, dict):
        for key, inner in content.items():
            yield from leaves(inner, f"{place}.{key}")
    elif isinstance(content, list):
        yield f"{place}.length", len(content)
        for index, inner in enumerate(content):
            yield from leaves(inner, f"{place}[{index}]")
    else:
        yield place, content


@pytest.mark.parametrize(("change", "relation"), [("replaced", "replace_one"), ("removed", "add_remove")])
def test_neighbours_differ_in_what_the_report_names_and_in_nothing_else(change, relation, tmp_path):
    first, second = run(tmp_path / "a", "", relation), run(tmp_path / "b", change, relation)
    assert first[1] == second[1]
    statuses = {guarantee["status"] for one in first[0].values() for guarantee in one["model"]["guarantees"]}
    assert statuses == {"proved"}
    one, other = dict(leaves(first[0])), dict(leaves(second[0]))
    assert one.keys() == other.keys()
    differ = {place for place in one if one[place] != other[place]}
    assert {place for place in differ if not OUTSIDE.search(place)} == set()
    # Some of it does differ: the comparison sees what there is.
    assert any("metrics" in place for place in differ)
    # Pages are made of the same; of which they show accuracies, in whatever order these have.
    assert list(first[2]) == list(second[2])
    for name in first[2]:
        words, others = (set(re.findall("[A-Za-z]+", part[2][name])) for part in (first, second))
        assert words ^ others <= {"e"}, name
    for mine, others in zip(first[3], second[3], strict=True):
        assert {name for name in mine if mine[name] != others[name]} <= {
            "dataset_digest", "files", "key", "metrics", "tags", "timings",
        }  # fmt: skip
        assert {name for name in mine["tags"] if mine["tags"][name] != others["tags"][name]} == {"dataset_digest"}
        assert mine["files"]["card.md"] == others["files"]["card.md"]
        said, told = (dict(leaves(json.loads(one["files"]["guarantees.json"]))) for one in (mine, others))
        assert said.keys() == told.keys()
        assert all("witness" in place for place in said if said[place] != told[place])
        # A run has the same metrics at the same places; their values are accuracies and their like, and witnesses.
        kept, changed = ({(point["name"], point["step"]): point["value"] for point in one["metrics"]}
                         for one in (mine, others))  # fmt: skip
        assert kept.keys() == changed.keys()
        named = {place[0] for place in kept if kept[place] != changed[place]}
        assert named <= {f"{metric}{ending}" for metric in METRICS for ending in ("", "_sd")} | {"epsilon_witness"}
