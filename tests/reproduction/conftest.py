"""The papers' experiments, run in this process on small bundled data in place of the papers' own."""

import json
from pathlib import Path

import pytest

from privsvm.files import read_json
from reproduce.__main__ import main
from reproduce.dpwss import experiments as dpwss
from reproduce.engine import context as engine
from reproduce.engine.measurements import read_measurements
from reproduce.pmsvm import experiments as pmsvm
from reproduce.ppsvm import experiments as ppsvm
from tests.once import make_once

REPOSITORY = Path(__file__).resolve().parents[2]

HEART = ["wine", "all", "class_1"]
SPLICE = {"train": ["digits", "all", "0"], "test": ["digits", "all", "0"]}
DPSVMDVP = {
    "datasets": {"splice": SPLICE},
    "n_train": 300,
    "n_test": 100,
    "repeats": 2,
    "epsilons": [0.0005, 0.01, 0.05, 0.5],
    "options": [{"scaling": "none", "C": 1.0}, {"scaling": "min_max", "C": 1.0}],
}
# All rows in every step: the noise then has a closed form, and nothing waits for an accountant.
WINE = ["wine", "all"]
PMSVM = {
    "datasets": {"Dermatology": WINE},
    "public_scaling": {"Dermatology": ["bounds", "unit_rows"]},
    "epsilons": [1, 8],
    "splits": [42, 43],
    "runs": 2,
    "batch": None,
    "batches": [None],
    "methods": {
        "PMSVM-WP": {"estimator": "pmsvm_wp", "settings": {"C": 0.05}},
        "PMSVM-GP": {
            "estimator": "pmsvm_gp",
            "settings": {"batch_size": None, "epochs": 3},
        },
        "Missing": {"estimator": "no_such_file", "settings": {}},
    },
    "recipes": {"Dermatology": {"PMSVM-WP": {"C": 0.1}}},
    "repeats": 1,
    "paper_runs": 2,
    "epochs": 1,
}
PMSVM_TIME = {"datasets": {"Dermatology": WINE}, "batch": 64, "least_steps": 1, "repeats": 1}
# Named as in the paper, so that its numbers are compared.
PPSVM = {
    "datasets": {"Bupa Liver": {"source": HEART, "missing": None, "entities": [5, 2]}},
    "n_folds": 3,
    "partitions": 2,
    "rules": ["judged on the tenth", "largest of equals"],
    "readings": {"Bupa Liver": [{"column": 5, "above": 2, "label_as_feature": True}]},
    "full_kernel": ["Bupa Liver"],
    "every_fold": [],
    "most_entities": 1,
    "drawn": {"linear": None, "gaussian": 1},
    "curve": {"dataset": "Bupa Liver", "entities": 5},
    "draws": 2,
}
PPSVM_KERNELS = {"partitions": {"linear": {"others": 1}, "gaussian": {"others": 1}}, "most_tuned_rows": 40}

CI_SVM = {
    "two_class": {"heart": ["breast_cancer", "all"]},
    "multi_class": {"wine": WINE},
    "most_rows": 300,
    "repeats": 2,
    "Cs": [0.5, 8.0],
    "gammas": [0.03125, 0.5],
    "every_fold": ["wine"],
    "picture": {"dataset": "heart", "source": ["breast_cancer", "all"], "columns": [0, 1]},
    "scratch": {"methods": ["LIBSVM", "CI-SVM"], "repeats": 1},
    "growth": {"dataset": "cod-rna", "source": ["digits", "all"], "repeats": 1,
               "sizes": {"ci": [100, 200, 400], "fcm": [60, 120]}},
    "large": {"usps": {"source": ["digits", "all"], "C": 8.0, "gamma": 0.03125}},
}  # fmt: skip


class Bench:
    """A folder for results and reports, and how to run experiments into it."""

    def __init__(self, folder: Path):
        self.folder = folder

    def run(self, *arguments: str, settings: dict) -> None:
        folders = ["--data", str(self.folder / "data"), "--reports", str(self.folder / "reports")]
        main([*arguments, *folders, "--settings", json.dumps(settings)])

    @property
    def reports(self) -> Path:
        """Where the tables of changed settings are."""
        return self.folder / "reports" / "changed"

    def cells(self, experiment: str) -> dict[tuple[str, str], tuple[float, ...]]:
        """Values by table and cell."""
        return {item[:2]: item.values for item in read_measurements(self.reports / f"{experiment}.csv")}

    def result(self, experiment: str, job: str):
        return read_json(self.folder / "data" / experiment / f"{job}.json")["result"]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def run_everything(folder: Path) -> None:
    bench = Bench(folder)
    bench.run("dpwss", settings={"figure1": figure1()})
    bench.run("dpsvmdvp", settings=DPSVMDVP)
    bench.run(*[name for name in pmsvm.EXPERIMENTS if name != "pmsvm_time"], settings=PMSVM)
    bench.run("pmsvm_time", settings=PMSVM_TIME)
    bench.run(*[name for name in ppsvm.EXPERIMENTS if name != "ppsvm_kernels"], settings=PPSVM)
    bench.run("ppsvm_kernels", settings={**PPSVM, **PPSVM_KERNELS})
    bench.run("ci_svm", settings=CI_SVM)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """All experiments, run once on small data, for all workers. Do not change it."""
    return Bench(make_once(tmp_path_factory, "reproduce", run_everything))


def figure1() -> dict:
    original = dpwss.FIGURES_SETTINGS["figure1"]
    return {**original, "source": HEART, "features": [1, 2], "runs": 2}


@pytest.fixture
def no_data(monkeypatch):
    """No file can be had."""
    from privsvm.errors import PrivSVMError

    def refuse(name, file, *arguments, **options):
        raise PrivSVMError(f"{file}: not in any source; set PRIVSVM_MIRROR")

    monkeypatch.setattr(engine, "download_raw", refuse)
    engine._read.cache_clear()
    engine._read_classes.cache_clear()
    yield
    engine._read.cache_clear()
    engine._read_classes.cache_clear()
