"""The user's own method, run by the workflow: a class of another package, or a further file."""

import json

import pytest

pytestmark = pytest.mark.workflow

PACKAGE = '''
import numpy as np


class Centroids:
    """Nearest centroid with Gaussian noise whose epsilon it states itself."""

    def __init__(self, budget=1.0, random_state=None):
        self.budget, self.random_state = budget, random_state

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        means = np.array([X[y == code].mean(axis=0) for code in np.unique(y)])
        self.means_ = means + rng.normal(scale=1.0 / self.budget / len(X), size=means.shape)
        return self

    def predict(self, X):
        return np.argmin(((X[:, None] - self.means_) ** 2).sum(axis=-1), axis=1)
'''

TOY = '''"""Nearest centroid: a toy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privsvm.base.estimators import SingleModelClassifier
from privsvm.base.parameters import parameter
from privsvm.base.released import LinearPath
from privsvm.base.validation import check_training_data
from privsvm.constraints import SHARE_KEPT
from privsvm.privacy.guarantee import Guarantee

__all__ = ["ESTIMATOR", "NearestToyClassifier"]


class NearestToyClassifier(SingleModelClassifier):
    """Answer with the class whose centroid is nearest. Not private.

    Attributes
    ----------
    classes_ : ndarray (c,)
        Labels.
    """

    shrinkage: float = parameter(0.0, SHARE_KEPT, "How far centroids are drawn to the origin.")

    def _train(self, X, y, rng: Any) -> None:
        self.check_declared()
        X, codes, self.classes_ = check_training_data(self, X, y, self.classes)
        centroids = [X[codes == code].mean(axis=0) for code in range(len(self.classes_))]
        means = (1.0 - float(self.shrinkage)) * np.array(centroids)
        self.guarantee_ = Guarantee(status="none", mechanism="none: exact", reason="a toy", reference="a test")
        self._path = LinearPath(
            epsilons=(math.inf,),
            guarantees=(self.guarantee_,),
            n_classes=len(self.classes_),
            coef=means[None, None],
            intercept=-0.5 * np.square(means).sum(axis=1)[None, None],
        )


ESTIMATOR = NearestToyClassifier
'''


def models_made_again(workspace) -> set[str]:
    """Return the methods whose models are stale."""
    return {name.split("/")[2] for line in workspace.stale_jobs() for name in line.split(", ") if "/models/" in name}


@pytest.mark.long
def test_a_class_of_another_package(finished):
    package = finished.folder / "packages/my_centroids"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "models.py").write_text(PACKAGE)
    finished.change("methods.mine", {"implementation": "my_centroids.models:Centroids", "states_epsilon": "budget"})
    before = finished.times("data/models", "data/results")
    finished.snakemake()
    for dataset in ("wine", "breast_cancer"):
        record = json.loads((finished.folder / f"data/models/mine/{dataset}.json").read_text())
        assert record["kind"] == "predictions"
        assert {guarantee["status"] for guarantee in record["guarantees"]} == {"claimed"}
        result = json.loads((finished.folder / f"data/results/mine/{dataset}.json").read_text())
        assert min(result["summary"]["accuracy"]["mean"]) > 0.5
    assert "mine" in (finished.folder / "reports/curves.csv").read_text()
    # Models of other methods were not made again.
    after = finished.times("data/models", "data/results")
    assert {name: after[name] for name in before} == before
    assert finished.nothing_to_do()
    # An edit of the package reruns the jobs of its method alone.
    (package / "models.py").write_text(PACKAGE.replace("1.0 / self.budget", "2.0 / self.budget"))
    assert models_made_again(finished) == {"mine"}


def test_a_new_method_is_one_file(finished):
    """A new method is one file: its class has a public name, too."""
    (finished.folder / "lib/privsvm/methods/nearest_toy.py").write_text(TOY)
    finished.change("methods.toy", {"implementation": "nearest_toy", "shrinkage": 0.5})
    before = finished.times("data/models", "data/results")
    finished.snakemake()
    assert min(json.loads((finished.folder / "data/results/toy/wine.json").read_text())["summary"]["accuracy"]["mean"])
    after = finished.times("data/models", "data/results")
    assert {name: after[name] for name in before} == before
    assert finished.nothing_to_do()
    # The declaration applies before files are generated from it.
    finished.change("methods.toy.shrinkage", 1.5)
    output = finished.snakemake("--dry-run", check=False)
    assert "params.yaml: methods.toy.shrinkage: 1.5 is not valid; must be at least 0 and below 1" in output
    finished.change("methods.toy.shrinkage", 0.5)
    code = "import privsvm; print(privsvm.NearestToyClassifier(shrinkage=0.25), 'NearestToyClassifier' in dir(privsvm))"
    assert "NearestToyClassifier(shrinkage=0.25) True" in finished.call("python", "-c", code)
    status = finished.git("status", "--porcelain").splitlines()
    touched = {line[3:] for line in status if not line[3:].startswith(("reports/", "dvc.lock"))}
    assert touched == {"params.yaml", "lib/privsvm/methods/nearest_toy.py"}
