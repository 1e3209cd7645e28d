import json
import re
import shutil

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from privsvm.errors import PrivSVMError
from privsvm.files import read_json
from privsvm.pipeline.sources import closure_digest
from privsvm.reproduction import context as engine
from privsvm.reproduction import jobs
from privsvm.reproduction.comparison import read_published
from privsvm.reproduction.page import index_page
from privsvm.reproduction.papers import find_experiments
from privsvm.solvers.c_svc import CSVCSolution
from reproduce.dpsvmdvp.report import knees
from reproduce.dpwss import runs as dpwss_runs

from .conftest import DPSVMDVP, DPWSS, REPOSITORY

ALL = [
    "ci_svm_accuracy",
    "ci_svm_time",
    "dpsvmdvp_budget",
    "dpsvmdvp_features",
    "dpsvmdvp_size",
    "dpwss_figures",
    "dpwss_table3",
    "pmsvm_batch",
    "pmsvm_clip",
    "pmsvm_convergence",
    "pmsvm_gap",
    "pmsvm_lr_decay",
    "pmsvm_table2",
    "pmsvm_table2_sound",
    "pmsvm_time",
    "ppsvm_attack",
    "ppsvm_entities",
    "ppsvm_kernels",
    "ppsvm_sharing",
    "ppsvm_table1",
    "ppsvm_table2",
]


@pytest.mark.parametrize("name", ALL)
def test_every_experiment_gives_a_table_and_figures(finished, name):
    rows = finished.rows(name)
    assert rows
    # Opacus may be missing, and a method that is not in this version.
    assert {row.verdict for row in rows} <= {"agrees", "differs", "ruled out", "no number", "not available"}
    figures = finished.figures(name)
    assert figures
    for figure in figures:
        assert figure["layout"]["yaxis"]
        for trace in figure["data"]:
            assert len(trace["x"]) == len(trace["y"]) > 0
    page = finished.page(name)
    assert "://" not in re.sub(r"(?s)<script>.*?</script>", "", page)
    for row in rows:
        assert row.dataset in page


def test_all_experiments_are_listed(finished):
    experiments = list(find_experiments("reproduce").values())
    assert sorted(item.name for item in experiments) == ALL
    page = index_page(experiments, finished.folder / "reports")
    for item in experiments:
        assert f'href="{item.name}.html"' in page
    assert "not run" in index_page(experiments, finished.folder / "nowhere")
    documented = (REPOSITORY / "docs" / "reproductions.md").read_text()
    assert all(f"`{name}`" in documented for name in ALL)


def test_figures_reuse_the_results_of_the_table(finished):
    table = {(row.dataset, row.setting, row.metric): row.ours for row in finished.rows("dpwss_table3")}
    for row in finished.rows("dpwss_figures"):
        if row.metric == "iterationRatio":
            shrinking = row.setting.split(";")[0]
            expected = table[row.dataset, row.setting, "iterations"] / table[row.dataset, shrinking, "iterations"]
            assert row.ours == pytest.approx(expected, rel=1e-4)
    assert not (finished.folder / "data" / "dpwss_figures" / "heart.shrinking-1.json").exists()


def test_missing_data_is_a_verdict(bench, no_data):
    bench.run("dpwss", settings={**DPWSS, "datasets": {"gisette": ["gisette_scale", "train", "1"]}})
    rows = bench.rows("dpwss_table3")
    assert {row.verdict for row in rows} == {"no data"}
    assert all("PRIVSVM_MIRROR" in row.explanation and row.ours is None for row in rows)
    assert any(row.published for row in rows)
    bench.run("dpsvmdvp", settings={**DPSVMDVP, "datasets": {"splice": DPSVMDVP["datasets"]["splice"]}})
    for name in ("dpsvmdvp_budget", "dpsvmdvp_size", "dpsvmdvp_features"):
        assert {row.verdict for row in bench.rows(name)} == {"no data"}


def test_a_job_without_data_is_tried_again(bench, no_data, monkeypatch):
    settings = {**DPWSS, "datasets": {"heart": DPWSS["datasets"]["heart"]}, "columns": [], "shrinking": [1]}
    bench.run("dpwss_table3", settings=settings)
    assert {row.verdict for row in bench.rows("dpwss_table3")} == {"no data"}
    monkeypatch.undo()
    engine._read.cache_clear()
    bench.run("dpwss_table3", settings=settings)
    assert "no data" not in {row.verdict for row in bench.rows("dpwss_table3")}


def test_an_interrupted_run_continues(bench, monkeypatch):
    settings = {**DPWSS, "datasets": {"heart": DPWSS["datasets"]["heart"]}, "shrinking": [1]}
    solved, interrupts = [], [KeyboardInterrupt()]
    original = dpwss_runs._solve

    def solve(X, signs, parameters, column, rng):
        if len(solved) == 4 and interrupts:
            raise interrupts.pop()
        solved.append(column)
        return original(X, signs, parameters, column, rng)

    monkeypatch.setattr(dpwss_runs, "_solve", solve)
    with pytest.raises(KeyboardInterrupt):
        bench.run("dpwss_table3", settings=settings)
    # WSS2 and two runs of the first setting are finished, one run of the second is not stored.
    assert not list(bench.folder.rglob(".*.part*"))
    solved[:] = []
    bench.run("dpwss_table3", settings=settings)
    assert solved == [settings["columns"][1]] * 2
    whole = bench.rows("dpwss_table3")

    # Nothing is left to do, and one more setting costs its own runs only.
    solved[:] = []
    bench.run("dpwss_table3", settings=settings)
    assert solved == []
    more = {"epsilon": 0.1, "sigma": 0.7}
    bench.run("dpwss_table3", settings={**settings, "columns": [*settings["columns"], more]})
    assert solved == [more] * 2
    assert [row for row in bench.rows("dpwss_table3") if "epsilon=0.1" not in row.setting] == whole


def test_stored_results_of_other_settings_count_as_not_run(bench):
    settings = {**DPWSS, "datasets": {"heart": DPWSS["datasets"]["heart"]}, "shrinking": [1]}
    bench.run("dpwss_table3", settings=settings)
    bench.run("dpwss_table3", "--tables-only", settings={**settings, "runs": 3})
    assert {row.verdict for row in bench.rows("dpwss_table3")} == {"not run"}


def test_chosen_datasets_only(bench):
    settings = {**DPWSS, "columns": [], "shrinking": [1]}
    bench.run("dpwss_table3", "--datasets", "heart", settings=settings)
    verdicts = {row.dataset: row.verdict for row in bench.rows("dpwss_table3")}
    assert verdicts["heart"] != "not run"
    assert verdicts["sonar"] == "not run"


def test_unknown_experiment_is_one_line(bench):
    with pytest.raises(PrivSVMError, match="'dpwss_tabel3' is unknown; did you mean 'dpwss_table3'"):
        bench.run("dpwss_tabel3", settings={})


def test_a_result_is_stored_with_the_digest_of_its_code(finished):
    stored = read_json(finished.folder / "data" / "dpwss_table3" / "heart.shrinking-1.json")
    assert stored["code"] == closure_digest("reproduce.dpwss.runs", "privsvm.reproduction.context")
    stored = read_json(finished.folder / "data" / "pmsvm_table2_sound" / "Dermatology.PMSVM-GP.json")
    assert stored["code"] == closure_digest(
        "reproduce.pmsvm.runs", "privsvm.reproduction.context", "privsvm.methods.pmsvm"
    )


@pytest.fixture
def sources(tmp_path):
    """A copy of all sources; a folder of its own for each state, as a process reads a file once."""
    for folder in ("lib", "reproduce"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize(
    ("experiment", "method", "file", "stale"),
    [
        # Imported by what the run imports.
        ("pmsvm_table2", "", "lib/privsvm/base/private_scaling.py", True),
        ("pmsvm_table2", "", "lib/privsvm/data/catalogue.json", True),
        ("pmsvm_table2", "", "lib/privsvm/solvers/one_norm_svm.py", False),
        ("pmsvm_table2", "", "lib/privsvm/reproduction/comparison.py", False),
        ("pmsvm_table2", "", "lib/privsvm/reporting/page.py", False),
        ("pmsvm_table2", "", "reproduce/pmsvm/report/table2.py", False),
        ("pmsvm_table2", "", "reproduce/pmsvm/runs.py", True),
        ("pmsvm_table2", "", "reproduce/ppsvm/runs.py", False),
        # Named by the job alone.
        ("pmsvm_table2", "", "lib/privsvm/methods/objective_perturbation.py", False),
        ("pmsvm_table2_sound", "Objective-perturbation", "lib/privsvm/methods/objective_perturbation.py", True),
        ("pmsvm_table2_sound", "Linear", "lib/privsvm/methods/objective_perturbation.py", False),
        ("ppsvm_table1", "", "lib/privsvm/solvers/one_norm_svm.py", True),
        ("dpwss_table3", "", "lib/privsvm/base/private_scaling.py", False),
    ],
)
def test_results_are_stale_where_an_imported_file_changes(sources, experiment, method, file, stale):
    experiment = find_experiments("reproduce")[experiment]
    job = next(parameters for name, parameters in experiment.jobs(experiment.settings).items() if method in name)
    entries = jobs.code_entries(experiment, job)
    before = closure_digest(*entries, root=sources)
    assert before == closure_digest(*entries, root=REPOSITORY)
    with (sources / file).open("a") as handle:
        handle.write("\n")
    assert (closure_digest(*entries, root=sources) != before) == stale


def test_seeds_depend_on_what_they_are_for(tmp_path):
    context = engine.Context("one", tmp_path, "0")
    other = engine.Context("another", tmp_path, "0")
    draws = [stream.random() for stream in (context.stream(1, "a", 2), context.stream(1, "a", 2),
                                            context.stream(1, "a", 3), other.stream(1, "a", 2))]  # fmt: skip
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3


def test_auc_numbers_tied_rows():
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(200) < 0.4, 1.0, -1.0)
    values = signs + rng.normal(size=200)
    assert dpwss_runs.serial_auc(values, signs) == pytest.approx(roc_auc_score(signs, values))
    # Equation 29 by a descending sort that keeps ties in order.
    tied = np.round(values)
    order = np.argsort(-tied, kind="stable")
    rank = np.empty(200)
    rank[order] = np.arange(200, 0, -1)
    m, n = (signs > 0).sum(), (signs < 0).sum()
    assert dpwss_runs.serial_auc(tied, signs) == pytest.approx((rank[signs > 0].sum() - m * (m + 1) / 2) / (m * n))
    assert dpwss_runs._tied_share(np.array([1.0, 1.0, 2.0]), np.array([1.0, -1.0, -1.0])) == 0.5


def test_metrics_of_a_known_model():
    X, signs = np.array([[2.0], [1.0], [-1.0], [-3.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    solution = CSVCSolution(np.array([0.5, 0.0, 0.0, 1 / 3]), 0.0, np.zeros(4), -1.5, 7, True)
    found = dpwss_runs._measure(X, signs, solution, np.arange(4))
    assert found["accuracy"] == found["precision"] == found["recall"] == found["f1"] == 0.5
    assert (found["objective"], found["iterations"], found["AUC"]) == (-1.5, 7, 0.75)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([0.5, 0.52, 0.8, 0.9], (0.01, 0.5)),
        ([0.9, 0.9, 0.9, 0.9], (None, 0.0005)),
        ([0.5, 0.5, 0.5, 0.5], (0.5, None)),
        ([0.7, 0.5, 0.89, 0.85], (None, None)),
    ],
)
def test_knees(curve, expected):
    assert knees(DPSVMDVP["epsilons"], curve, 0.9) == expected


def test_published_numbers_name_their_source():
    paths = list((REPOSITORY / "reproduce").glob("*/published.csv"))
    assert {path.parent.name for path in paths} == {item.paper for item in find_experiments("reproduce").values()}
    for path in paths:
        lines = path.read_text().splitlines()
        assert lines[0] == "source,dataset,method,setting,metric,value"
        assert all(line.split(",")[0].startswith(("Table", "Figure", '"Figure')) for line in lines[1:])
        # Every number is there once.
        assert len(read_published(path)) == len(lines) - 1
        assert all(np.isfinite(float(value)) for value in read_published(path).values())


def test_settings_are_json():
    for experiment in find_experiments("reproduce").values():
        assert json.loads(json.dumps(experiment.settings)) == experiment.settings
        for parameters in experiment.jobs(experiment.settings).values():
            assert parameters["dataset"]
