"""The pipeline as its users run it: `snakemake`, `dvc repro`, `dvc exp run`, clones."""

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from privsvm.files import read_json
from tests.browser import PATIENCE, headless_browser, needs_browser

pytestmark = pytest.mark.workflow


# What the jobs of Snakemake make; data/inputs and data/jobs are DVC's.
MADE_BY_JOBS = [f"data/{name}" for name in ("raw", "prepared", "condensed", "models", "results", "timings")]


def test_one_run_makes_everything_and_dvc_agrees(finished):
    for name in ("index.html", "metrics.json", "curves.csv", "tracking.json"):
        assert (finished.folder / "reports" / name).stat().st_size > 0
    assert (finished.folder / "mlflow.db").exists()
    assert finished.nothing_to_do()
    assert finished.call("dvc", "status", "--json").strip() == "{}"
    before = finished.times("data", "reports")
    assert "up to date" in finished.call("dvc", "repro")
    assert finished.times("data", "reports") == before
    # Nothing that the run leaves shows up in git, but for what belongs there.
    changed = {line[3:] for line in finished.git("status", "--porcelain").splitlines()}
    assert changed <= {"dvc.lock", "reports/", "reports/metrics.json", "reports/curves.csv", "reports/tracking.json"}


def test_one_parameter_reruns_one_method_and_its_old_value_comes_from_the_cache(finished):
    original = finished.hashes()
    before = finished.times(*MADE_BY_JOBS)
    finished.change("methods.pmsvm_wp.C", 0.02)
    finished.call("dvc", "repro")
    after = finished.times(*MADE_BY_JOBS)
    rerun = {name for name in after if after[name] != before[name]}
    assert rerun == {name for name in after if "/pmsvm_wp/" in name}
    assert finished.hashes("data/models/pmsvm_wp") != {
        name: value for name, value in original.items() if name.startswith("data/models/pmsvm_wp/")
    }
    assert finished.nothing_to_do()
    finished.change("methods.pmsvm_wp.C", 0.05)
    output = finished.call("dvc", "repro")
    assert "Running stage" not in output
    assert finished.hashes() == original


def test_what_is_removed_leaves_everything_and_a_dataset_added_runs_its_jobs_only(finished):
    params = finished.params()
    del params["datasets"]["breast_cancer"]
    del params["methods"]["majority"]
    finished.write_params(params)
    finished.snakemake()
    # Out of everything that is shared, and out of the report.
    made = set(finished.times("data", "reports")) - set(finished.times("reports/utility"))
    assert not [name for name in made if "breast_cancer" in name]
    assert "breast_cancer" not in (finished.folder / "reports/metrics.json").read_text()
    assert "majority" not in json.dumps(read_json(finished.folder / "reports/metrics.json"))
    assert finished.call("dvc", "status", "--json").strip() == "{}"
    assert finished.nothing_to_do()
    # It comes back when it is wanted again.
    before = finished.times(*MADE_BY_JOBS)
    params["datasets"]["breast_cancer"] = {"scaling": "bounds"}
    finished.write_params(dict(params, datasets=dict(sorted(params["datasets"].items()))))
    finished.snakemake()
    after = finished.times(*MADE_BY_JOBS)
    assert {name for name in before if after[name] != before[name]} == set()
    assert "data/results/svm/breast_cancer.json" in after
    assert "breast_cancer" in (finished.folder / "reports/metrics.json").read_text()
    assert finished.call("dvc", "status", "--json").strip() == "{}"


def test_condensed_rows_before_every_method(finished):
    original = finished.hashes()
    finished.change("condense", "ci")
    finished.snakemake()
    condensed = finished.hashes("data/condensed/ci")
    assert {Path(name).name for name in condensed} == {
        f"{dataset}.{ending}" for dataset in ("wine", "breast_cancer") for ending in ("npz", "json")
    }
    record = read_json(finished.folder / "data/condensed/ci/wine.json")
    assert [split["n_condensed"] for split in record["splits"]] == [45, 45]
    seconds = read_json(finished.folder / "data/timings/_condense/wine.json")["condense_seconds"]
    assert len(seconds) == 2
    assert min(seconds) > 0
    for method in ("svm", "pmsvm_wp"):
        result = read_json(finished.folder / f"data/results/{method}/wine.json")
        assert result["condense"] == "ci"
        assert result["attacks"] == [record]
        assert result["status"] != "proved"
    page = (finished.folder / "reports/index.html").read_text()
    assert "condensed" in page
    assert finished.nothing_to_do()
    assert finished.call("dvc", "status", "--json").strip() == "{}"
    assert not (finished.folder / "data/condensed/none").exists()
    finished.change("condense", "none")
    assert "Running stage" not in finished.call("dvc", "repro")
    # Rows condensed in another way are no stage's output: they stay as they were, all of them, until `record` runs.
    assert finished.hashes() == {**original, **condensed}
    assert finished.call("dvc", "status", "--json").strip() == "{}"
    finished.snakemake("--forcerun", "record")
    assert finished.hashes() == original
    assert finished.nothing_to_do()
    assert finished.call("dvc", "status", "--json").strip() == "{}"


def test_experiments_metrics_and_plots(finished):
    finished.git("add", "--all")
    finished.git("commit", "--quiet", "--message", "first results")
    # One of them is a number that YAML 1.1 takes for text.
    changes = ("--set-param", "methods.pmsvm_wp.C=0.5", "--set-param", "privacy.delta=1e-06")
    finished.call("dvc", "exp", "run", *changes)
    assert finished.params()["methods"]["pmsvm_wp"]["C"] == 0.5
    assert read_json(finished.folder / "data/results/pmsvm_wp/wine.json")["delta"] == 1e-6
    difference = json.loads(finished.call("dvc", "metrics", "diff", "--json"))
    changed = difference["reports/metrics.json"]
    assert any("pmsvm_wp.accuracy" in key for key in changed)
    assert not any(".svm." in key for key in changed)
    finished.call("dvc", "plots", "show")
    assert "pmsvm_wp" in (finished.folder / "dvc_plots/index.html").read_text()
    finished.call("dvc", "params", "diff")


def test_clone_pull_sync(finished, tmp_path):
    finished.call("dvc", "remote", "add", "--default", "shelf", str(tmp_path / "shelf"))
    finished.git("add", "--all")
    finished.git("commit", "--quiet", "--message", "results")
    finished.call("dvc", "push")
    finished.call("git", "clone", "--quiet", str(finished.folder), str(tmp_path / "clone"))
    clone = type(finished)(tmp_path / "clone")
    clone.call("dvc", "pull")
    clone.take_compiled(finished)
    # The Makefile's recipe without its first step, which would build an environment.
    recipe = ["make", "sync", "PREPARE=true"]
    clone.call(*recipe)
    assert clone.nothing_to_do()
    assert clone.hashes() == finished.hashes()
    # Snakemake's knowledge is real: a change is noticed, and only that.
    clone.change("methods.pmsvm_wp.C", 0.02)
    assert all("pmsvm_wp" in name or name.startswith(("reports/", "logs/")) for name in clone.stale_jobs())
    clone.change("methods.pmsvm_wp.C", 0.05)
    # Outputs of another commit are refused.
    (clone.folder / "data/results/svm/wine.json").write_text("{}")
    clone.change("methods.svm.C", 2.0)
    output = clone.call(*recipe, check=False)
    assert clone.code != 0
    assert "run dvc pull or dvc repro" in output


def test_same_bits_with_any_number_of_cores_and_any_order(finished_once, fresh):
    params = fresh.params()
    # Another order of jobs: everything is listed backwards.
    for key in ("datasets", "methods"):
        params[key] = dict(reversed(params[key].items()))
    fresh.write_params(params)
    fresh.take_compiled(finished_once)
    theirs = finished_once.hashes()
    for cores in (1, 8):
        fresh.snakemake(cores=cores)
        ours = fresh.hashes()
        assert set(ours) == set(theirs)
        assert {name for name in ours if ours[name] != theirs[name]} <= {"reports/curves.csv"}
        # Everything runs again except the compilation.
        for name in ("data", "reports", "logs", ".snakemake", ".dvc/cache"):
            shutil.rmtree(fresh.folder / name)


def test_yaml_1_1_and_1_2_read_the_same_benchmark(finished):
    text = (finished.folder / "params.yaml").read_text()
    assert yaml.safe_load(text)["privacy"]["delta"] == 1e-5
    (finished.folder / "params.yaml").write_text(text.replace("delta: 1.0e-05", "delta: 1e-05"))
    assert yaml.safe_load((finished.folder / "params.yaml").read_text())["privacy"]["delta"] == "1e-05"
    assert finished.nothing_to_do()
    assert finished.call("dvc", "status", "--json").strip() == "{}"


@needs_browser
def test_curves_of_dvc_are_drawn_without_a_network(finished, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    def drawn():
        with headless_browser(tmp_path / "browser") as browser:
            browser.get((finished.folder / "dvc_plots/index.html").as_uri())
            WebDriverWait(browser, PATIENCE).until(lambda _: browser.find_element("tag name", "body").text.strip())
            shown = browser.find_element("tag name", "body").text
            log = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
            marks = browser.find_elements("css selector", "canvas, svg")
            return shown, len(marks), log

    finished.call(sys.executable, "stages/plots.py")
    shown, marks, log = drawn()
    assert (marks > 0, log) == (True, []), shown
    # Without the copy of the chart library, and without a network, the page says what to do.
    (finished.folder / ".cache/vega.js").unlink()
    shown, marks, log = drawn()
    assert "run python stages/plots.py" in shown
    assert (marks, len(log) > 0) == (0, True)


@needs_browser
def test_report_of_snakemake_opens_without_a_network(finished, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    finished.snakemake("--report", "runs.zip")
    with zipfile.ZipFile(finished.folder / "runs.zip") as archive:
        packed = {Path(name).name for name in archive.namelist()}
        archive.extractall(tmp_path / "unpacked")
    assert packed == {"report.html", "curves.csv", "metrics.json", "wine.svg", "breast_cancer.svg"}
    with headless_browser(tmp_path / "browser") as browser:
        browser.get((tmp_path / "unpacked/runs/report.html").as_uri())
        wait = WebDriverWait(browser, PATIENCE)

        def text():
            return browser.find_element("tag name", "body").text

        wait.until(lambda _: "Accuracy against epsilon" in text())
        assert {"Numbers", "Statistics"} <= set(text().splitlines())
        browser.find_element("xpath", "//*[text()='Accuracy against epsilon']").click()
        wait.until(lambda _: {"wine", "breast_cancer"} <= set(text().splitlines()))
        assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
