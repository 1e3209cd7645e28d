import dataclasses
import shutil

import pytest

from privsvm.errors import PrivSVMError
from privsvm.files import read_json, write_json
from privsvm_bench.workflow.sources import closure, closure_digest
from reproduce.dpwss import runs as dpwss_runs
from reproduce.engine import context as engine
from reproduce.engine import jobs
from reproduce.engine.command import main, write_report
from reproduce.engine.comparison import Row, merge_rows, read_rows
from reproduce.engine.experiment import Report, Table
from reproduce.engine.page import index_page
from reproduce.engine.papers import find_experiments

from .conftest import DPSVMDVP, DPWSS, REPOSITORY

COMMITTED = REPOSITORY / "reports" / "reproduce"


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
    finished_rows = bench.rows("dpwss_table3")

    # Nothing is left to do, and one more setting costs its own runs only.
    solved[:] = []
    bench.run("dpwss_table3", settings=settings)
    assert solved == []
    more = {"epsilon": 0.1, "sigma": 0.7}
    bench.run("dpwss_table3", settings={**settings, "columns": [*settings["columns"], more]})
    assert solved == [more] * 2
    assert [row for row in bench.rows("dpwss_table3") if "epsilon=0.1" not in row.setting] == finished_rows


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


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """All pages, from the committed tables alone."""
    folder = tmp_path_factory.mktemp("pages")
    for path in COMMITTED.glob("*.csv"):
        shutil.copy(path, folder)
    experiments = find_experiments("reproduce")
    main(experiments, ["--tables-only", "--data", str(folder / "none"), "--reports", str(folder)])
    (folder / "index.html").write_text(index_page(list(experiments.values()), folder))
    return folder


def test_pages_need_no_results_and_change_no_table(pages):
    tables = sorted(COMMITTED.glob("*.csv"))
    assert len(tables) >= 21
    for path in tables:
        assert (pages / path.name).read_bytes() == path.read_bytes()
        page = (pages / f"{path.stem}.html").read_text()
        for row in read_rows(path):
            assert row.dataset in page


def test_a_partial_run_leaves_every_other_row_as_it_was(tmp_path, monkeypatch):
    experiment = find_experiments("reproduce")["dpwss_table3"]
    kept = (COMMITTED / "dpwss_table3.csv").read_text().splitlines()
    (tmp_path / "dpwss_table3.csv").write_text("\n".join(kept) + "\n")
    # A run of one dataset stores numbers for its jobs and nothing for the others.
    numbers = {"AUC": 0.5, "accuracy": 0.5}
    monkeypatch.setattr(
        type(experiment), "make_report", lambda self, results: _report(self, {job for job in results if results[job]})
    )
    for job, (_, parameters) in experiment.all_jobs().items():
        if parameters["dataset"] == "heart":
            write_json(
                tmp_path / "data" / experiment.name / f"{job}.json", {"parameters": parameters, "result": numbers}
            )
    write_report(experiment, tmp_path / "data", tmp_path)
    merged = (tmp_path / "dpwss_table3.csv").read_text().splitlines()
    assert len(merged) == len(kept)
    changed = [old for old, new in zip(kept, merged, strict=True) if old != new]
    assert changed
    assert all(line.split(",")[1] == "heart" for line in changed)


def _report(experiment, ran):
    """A report in which every number of the datasets that ran is a half."""
    of_jobs = {parameters["dataset"] for job, (_, parameters) in experiment.all_jobs().items() if job in ran}
    rows = [
        dataclasses.replace(row, ours=0.5, difference=None, verdict="no number", explanation="")
        if row.dataset in of_jobs
        else dataclasses.replace(row, ours=None, difference=None, verdict="not run", explanation="")
        for row in read_rows(COMMITTED / "dpwss_table3.csv")
    ]
    tables = [
        Table(name=name, title=name, caption="", rows=[row for row in rows if row.table == name])
        for name in dict.fromkeys(row.table for row in rows)
    ]
    return Report(tables=tables)


def test_data_that_cannot_be_had_here_erases_nothing():
    old = [Row(table="t", dataset="a", metric="m", published="1", ours=1.0, difference=0.0, verdict="within tolerance")]
    new = [Row(table="t", dataset="a", metric="m", published="1", verdict="no data", explanation="no mirror")]
    assert merge_rows(old, new, lambda row: False) == old
    assert merge_rows(old, new, lambda row: True) == new
    # A dataset of which nothing is known has its row.
    more = [*new, Row(table="t", dataset="b", metric="m", published="2", verdict="not run")]
    assert merge_rows(old, more, lambda row: False) == [old[0], more[1]]


def test_an_unknown_dataset_is_one_line(bench):
    with pytest.raises(PrivSVMError, match="--datasets 'Heart' is unknown; did you mean 'heart'"):
        bench.run("dpwss_table3", "--datasets", "Heart", settings=DPWSS)


def test_unknown_experiment_is_one_line(bench):
    with pytest.raises(PrivSVMError, match="'dpwss_tabel3' is unknown; did you mean 'dpwss_table3'"):
        bench.run("dpwss_tabel3", settings={})


def test_a_result_is_stored_with_the_digest_of_its_code(finished):
    stored = read_json(finished.folder / "data" / "dpwss_table3" / "heart.shrinking-1.json")
    assert stored["code"] == closure_digest("reproduce.dpwss.runs", "reproduce.engine.context")
    stored = read_json(finished.folder / "data" / "pmsvm_table2_sound" / "Dermatology.PMSVM-GP.json")
    assert stored["code"] == closure_digest(
        "reproduce.pmsvm.runs.sound", "reproduce.engine.context", "privsvm.methods.pmsvm_gp"
    )


@pytest.mark.parametrize(
    ("experiment", "method", "file", "stale"),
    [
        # Imported by what the run imports.
        ("pmsvm_table2", "", "lib/privsvm/families/output_perturbation/weight_perturbation.py", True),
        ("pmsvm_table2", "", "lib/privsvm/families/moments/private_scaling.py", False),
        ("pmsvm_table2_sound", "PMSVM-GP", "lib/privsvm/families/moments/private_scaling.py", True),
        ("pmsvm_table2", "", "lib/privsvm_bench/datasets/catalogue.json", True),
        ("pmsvm_table2", "", "lib/privsvm/solvers/linear/one_norm_svm.py", False),
        ("pmsvm_table2", "", "reproduce/engine/comparison.py", False),
        ("pmsvm_table2", "", "lib/privsvm_bench/reporting/page.py", False),
        ("pmsvm_table2", "", "reproduce/pmsvm/report.py", False),
        ("pmsvm_table2", "", "reproduce/pmsvm/runs/weight.py", True),
        ("pmsvm_table2", "", "reproduce/pmsvm/runs/times.py", False),
        ("pmsvm_time", "", "reproduce/pmsvm/runs/gradient.py", True),
        ("pmsvm_table2", "", "reproduce/ppsvm/runs.py", False),
        # Named by the job alone.
        ("pmsvm_table2", "", "lib/privsvm/methods/objective_perturbation.py", False),
        ("pmsvm_table2_sound", "Objective-perturbation", "lib/privsvm/methods/objective_perturbation.py", True),
        ("pmsvm_table2_sound", "Linear", "lib/privsvm/methods/objective_perturbation.py", False),
        ("ppsvm_table1", "", "lib/privsvm/solvers/linear/one_norm_svm.py", True),
        ("dpwss_table3", "", "lib/privsvm/families/moments/private_scaling.py", False),
    ],
)
def test_results_are_stale_where_an_imported_file_changes(experiment, method, file, stale):
    experiment = find_experiments("reproduce")[experiment]
    job = next(parameters for name, parameters in experiment.jobs(experiment.settings).items() if method in name)
    entries = jobs.code_entries(experiment, job)
    assert (file in closure(*entries)) == stale


def test_seeds_depend_on_what_they_are_for(tmp_path):
    context = engine.Context("one", tmp_path, "0")
    other = engine.Context("another", tmp_path, "0")
    draws = [stream.random() for stream in (context.stream(1, "a", 2), context.stream(1, "a", 2),
                                            context.stream(1, "a", 3), other.stream(1, "a", 2))]  # fmt: skip
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3
