"""The pipeline as its users run it: `snakemake`, `dvc repro`, `dvc exp run`, clones."""

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from privsvm.files import read_json
from tests.browser import headless_browser, needs_browser
from tests.scripts import REPOSITORY
from tests.waits import PATIENCE

from .conftest import Workspace

pytestmark = pytest.mark.workflow

MADE_BY_JOBS = [f"data/{name}" for name in ("raw", "prepared", "condensed", "models", "results", "audits")]


def list_changes(workspace: Workspace, before: dict[str, int]) -> set[str]:
    """Return files of jobs that were made again, or are new."""
    return {name for name, time in workspace.times(*MADE_BY_JOBS).items() if before.get(name) != time}


def is_current(workspace: Workspace) -> bool:
    """Say whether both tools have nothing to do and checks pass."""
    status = json.loads(workspace.call("dvc", "status", "--json"))
    return workspace.nothing_to_do() and not status and "in order" in workspace.call(sys.executable, "stages/check.py")


def test_one_run_makes_everything_and_dvc_agrees(finished):
    for name in ("index.html", "metrics.json", "curves.csv", "tracking.json"):
        assert (finished.folder / "reports" / name).stat().st_size > 0
    assert (finished.folder / "mlflow.db").exists()
    assert is_current(finished)
    before = finished.times("data", "reports")
    assert "up to date" in finished.call("dvc", "repro")
    assert finished.times("data", "reports") == before
    # The run changes no tracked file but its versions.
    assert finished.git("status", "--porcelain") == "?? dvc.lock\n"


def test_what_is_lost_or_damaged_is_made_again(finished):
    """Also what Snakemake does not make: DVC's versions, MLflow's database, the cache of finished jobs."""
    finished.commit("results")
    original = finished.hashes()
    (raw,) = (finished.folder / "data/raw/breast_cancer").iterdir()
    for name in ("dvc.lock", "mlflow.db", "data/results/majority/wine.json", "data/raw/breast_cancer",
                 "data/prepared/wine.npz", "data/models/svm"):  # fmt: skip
        path = finished.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for entry in (finished.folder / ".cache/jobs").glob("*/0"):
        entry.write_bytes(entry.read_bytes()[:-1])
    finished.snakemake()
    assert "damaged or incomplete" in (finished.folder / "logs/evaluate/majority/wine.log").read_text()
    assert finished.hashes() == original
    assert raw.is_file()
    assert (finished.folder / "mlflow.db").stat().st_size > 0
    assert finished.git("status", "--porcelain") == ""
    # A merge leaves a dvc.lock that is nobody's.
    lock_file = finished.folder / "dvc.lock"
    lock_file.write_text(lock_file.read_text().replace("md5: ", "md5: 0"))
    assert finished.stale_jobs() == ["logs/recorded"]
    finished.snakemake()
    assert finished.git("status", "--porcelain") == ""
    assert is_current(finished)


@pytest.mark.long
def test_same_bits_with_other_cores_and_order_and_a_clean_tree(finished):
    original, params = finished.hashes(), finished.params()
    finished.commit("results")
    for name in ("data/raw", *MADE_BY_JOBS, "logs", ".snakemake", ".dvc/cache", ".cache/jobs", "mlflow.db"):
        path = finished.folder / name
        path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
    # Reversed lists change the order of jobs.
    backwards = {key: dict(reversed(params[key].items())) for key in ("datasets", "methods")}
    finished.write_params({**params, **backwards})
    finished.snakemake(cores=8)
    reordered = finished.hashes()
    assert {name for name in original if reordered.get(name) != original[name]} <= {"reports/curves.csv"}
    finished.write_params(params)
    finished.snakemake()
    assert finished.hashes() == original
    assert finished.git("status", "--porcelain") == ""


def test_one_parameter_reruns_one_method_and_comes_back(finished):
    original, before = finished.hashes(), finished.times(*MADE_BY_JOBS)
    finished.commit("first results")
    finished.change("methods.pmsvm_wp.C", 0.02)
    finished.snakemake()
    rerun = list_changes(finished, before)
    assert {name for name in rerun if "pmsvm_wp" not in name} == set()
    assert "data/models/pmsvm_wp/wine.npz" in rerun
    assert finished.hashes("data/models/pmsvm_wp").items().isdisjoint(original.items())
    finished.commit("other results")
    # DVC compares the commits: both sides are in its cache.
    differences = json.loads(finished.call("dvc", "metrics", "diff", "HEAD~1", "--json"))["reports/metrics.json"]
    assert {name.split(".")[1] for name in differences} == {"pmsvm_wp"}
    assert all({"old", "new"} <= values.keys() for values in differences.values())
    # The first results come back from DVC's cache, by `dvc repro` and by a checkout.
    finished.change("methods.pmsvm_wp.C", 0.05)
    assert "Running stage 'train'" not in finished.call("dvc", "repro")
    finished.git("checkout", "--quiet", "--force", "HEAD~1")
    finished.make("sync")
    assert finished.hashes() == original
    assert is_current(finished)
    assert finished.git("status", "--porcelain") == ""


@pytest.mark.long
def test_removed_entries_leave_and_added_ones_run_alone(finished):
    params = finished.params()
    del params["datasets"]["breast_cancer"]
    del params["methods"]["majority"]
    finished.write_params(params)
    finished.snakemake()
    # Removed from all versioned outputs and from the report.
    made = set(finished.times("data", "reports")) - set(finished.times("reports/utility"))
    assert not [name for name in made if "breast_cancer" in name or "majority" in name]
    assert "breast_cancer" not in (finished.folder / "reports/metrics.json").read_text()
    assert "majority" not in (finished.folder / "reports/metrics.json").read_text()
    assert is_current(finished)
    # Adding the dataset again runs its jobs alone.
    before = finished.times(*MADE_BY_JOBS)
    params["datasets"]["breast_cancer"] = {"scaling": "bounds"}
    finished.write_params(dict(params, datasets=dict(sorted(params["datasets"].items()))))
    finished.snakemake()
    assert {name for name in list_changes(finished, before) if "breast_cancer" not in name} == set()
    assert (finished.folder / "data/results/svm/breast_cancer.json").is_file()
    assert "breast_cancer" in (finished.folder / "reports/metrics.json").read_text()
    assert is_current(finished)


@pytest.mark.long
def test_condensed_rows_before_every_method(finished):
    finished.change("condense", "ci")
    finished.snakemake()
    record = read_json(finished.folder / "data/condensed/ci/wine.json")
    assert [split["n_condensed"] for split in record["splits"]] == [45, 45]
    seconds = read_json(finished.folder / "logs/timings/_condense/wine.json")["condense_seconds"]
    assert len(seconds) == 2
    assert min(seconds) > 0
    for method in ("svm", "pmsvm_wp"):
        result = read_json(finished.folder / f"data/results/{method}/wine.json")
        assert result["condense"] == "ci"
        assert result["attacks"] == [record]
        assert result["status"] == ("none" if method == "svm" else "claimed")
    assert "condensed" in (finished.folder / "reports/index.html").read_text()
    assert is_current(finished)
    assert not (finished.folder / "data/condensed/none").exists()


def test_clone_pull_sync(finished, tmp_path):
    finished.call("dvc", "remote", "add", "--default", "shelf", str(tmp_path / "shelf"))
    finished.commit("results")
    finished.call("dvc", "push")
    finished.call("git", "clone", "--quiet", str(finished.folder), str(tmp_path / "clone"))
    clone = Workspace(tmp_path / "clone")
    clone.call("dvc", "pull")
    clone.take_compiled(finished)
    clone.make("sync")
    assert is_current(clone)
    assert clone.hashes() == finished.hashes()
    # After `make sync` a change makes its own jobs stale, and no others.
    clone.change("methods.pmsvm_wp.C", 0.02)
    assert all("pmsvm_wp" in name or name.startswith(("reports/", "logs/")) for name in clone.stale_jobs())
    clone.change("methods.pmsvm_wp.C", 0.05)
    # Outputs of another commit are refused.
    (clone.folder / "data/results/svm/wine.json").write_text("{}")
    clone.change("methods.svm.C", 2.0)
    output = clone.make("sync", check=False)
    assert clone.code != 0
    assert "run dvc pull or dvc repro" in output


@pytest.mark.long
def test_moved_and_copied_clones_have_nothing_to_do(finished, tmp_path):
    """The folder's name needs quotes in a shell."""
    finished.folder.rename(tmp_path / 'it\'s a "moved" $(touch pwned) clone')
    moved = Workspace(tmp_path / 'it\'s a "moved" $(touch pwned) clone')
    copied = moved.copy(tmp_path / "copied clone")
    assert is_current(copied)
    copied.take_compiled(Workspace(REPOSITORY))
    copied.change("methods.pmsvm_wp.C", 0.02)
    copied.snakemake()
    assert is_current(copied)
    assert is_current(moved)
    assert not list(tmp_path.rglob("pwned"))


def test_yaml_1_1_and_1_2_read_the_same_benchmark(finished):
    text = (finished.folder / "params.yaml").read_text()
    assert yaml.safe_load(text)["privacy"]["delta"] == 1e-5
    (finished.folder / "params.yaml").write_text(text.replace("delta: 1.0e-05", "delta: 1e-05"))
    assert yaml.safe_load((finished.folder / "params.yaml").read_text())["privacy"]["delta"] == "1e-05"
    assert finished.nothing_to_do()


@needs_browser
def test_curves_of_dvc_are_drawn_without_a_network(finished, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    def draw():
        with headless_browser(tmp_path / "browser") as browser:
            browser.get((finished.folder / "dvc_plots/index.html").as_uri())
            WebDriverWait(browser, PATIENCE).until(lambda _: browser.find_element("tag name", "body").text.strip())
            shown = browser.find_element("tag name", "body").text
            log = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
            marks = browser.find_elements("css selector", "canvas, svg")
            return shown, len(marks), log

    finished.call(sys.executable, "stages/plots.py")
    shown, marks, log = draw()
    assert (marks > 0, log) == (True, []), shown
    # Without the copied chart library and a network, the page names the remedy.
    (finished.folder / ".cache/vega.js").unlink()
    shown, marks, log = draw()
    assert "run python stages/plots.py" in shown
    assert (marks, len(log) > 0) == (0, True)


def test_report_of_snakemake_holds_our_results(finished):
    finished.snakemake("--report", "runs.zip")
    with zipfile.ZipFile(finished.folder / "runs.zip") as archive:
        packed = {Path(name).name for name in archive.namelist()}
        (page,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("report.html"))
    assert packed == {"report.html", "curves.csv", "metrics.json", "wine.svg", "breast_cancer.svg"}
    assert "Accuracy against epsilon" in page
