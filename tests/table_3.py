"""Table 3 of the DPWSS paper: its datasets, read from a mirror, and its printed numbers."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from privsvm_bench.datasets.catalogue import load_catalogue
from privsvm_bench.datasets.download import fetch_file
from privsvm_bench.datasets.readers import read_part
from tests.scripts import REPOSITORY

# Names in the paper, with names and roles in the catalogue.
TABLE_3 = {
    "a1a": ("a1a", "train"),
    "a5a": ("a5a", "train"),
    "australian": ("australian_scale", "all"),
    "breast": ("breast-cancer_scale", "all"),
    "diabetes": ("diabetes_scale", "all"),
    "fourclass": ("fourclass_scale", "all"),
    "german": ("german.numer_scale", "all"),
    "heart": ("heart_scale", "all"),
    "ijcnn1": ("ijcnn1", "train"),
    "ionosphere": ("ionosphere_scale", "all"),
    "sonar": ("sonar_scale", "all"),
    "splice": ("splice_scale", "train"),
    "w1a": ("w1a", "train"),
    "w5a": ("w5a", "train"),
}


# Sets of which a solve takes longest.
LARGE = {"a5a", "ijcnn1", "splice", "w5a"}

# Cache of read sets, which no test changes: parsing the largest takes as long as some tests.
_READ = {}


def read_training_part(dataset, role, folder):
    """Read rows and signs of a set from the mirror; skip the test without one."""
    mirror = Path(os.environ.get("PRIVSVM_MIRROR") or REPOSITORY.parent / "shared" / "datasets")
    if not (mirror / "MANIFEST.json").is_file():
        pytest.skip(f"no mirror at {mirror}: set PRIVSVM_MIRROR")
    if (dataset, role) in _READ:
        return _READ[dataset, role]
    entry = load_catalogue()[dataset]
    for file in entry.parts[role].files:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PRIVSVM_MIRROR", str(mirror))
            fetch_file(entry.files[file], folder / file, dataset=entry.name)
    X, labels = read_part(entry, role, folder)
    _READ[dataset, role] = X, np.where(labels.astype(int) > 0, 1.0, -1.0)
    return _READ[dataset, role]


def table_3_rows(name, folder):
    """Read rows and signs of one of the table's sets."""
    X, y = read_training_part(*TABLE_3[name], folder)
    # The paper's positive class is benign, the file's is malignant.
    return X, -y if name == "breast" else y


def printed(name, shrinking):
    """Read the WSS2 column of one set: metric to number."""
    with (REPOSITORY / "reproduce/dpwss/published.csv").open() as file:
        return {
            row["metric"]: float(row["value"])
            for row in csv.DictReader(file)
            if (row["source"], row["dataset"], row["method"], row["setting"])
            == ("Table 3", name, "WSS2", f"shrinking={shrinking}")
        }
