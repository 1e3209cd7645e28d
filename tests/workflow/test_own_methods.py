"""The user's own method, run by the workflow: a class of another package, or a further file."""

import json

import pytest

from .conftest import REPOSITORY

pytestmark = pytest.mark.workflow

TOY = '''"""The most frequent class: a toy."""

from privsvm.base.parameters import parameter
from privsvm.constraints import SHARE_KEPT
from privsvm.methods.majority import MajorityClassifier

__all__ = ["ESTIMATOR", "NearestToyClassifier"]


class NearestToyClassifier(MajorityClassifier):
    shrinkage: float = parameter(0.0, SHARE_KEPT, "Nothing.")


ESTIMATOR = NearestToyClassifier
'''


def models_made_again(workspace) -> set[str]:
    """Return the methods whose models are stale."""
    return {name.split("/")[2] for line in workspace.stale_jobs() for name in line.split(", ") if "/models/" in name}


@pytest.mark.long
def test_a_class_of_another_package(finished):
    module, source = finished.folder / "packages/own_method.py", (REPOSITORY / "examples/own_method.py").read_text()
    module.parent.mkdir()
    module.write_text(source)
    finished.change("methods.mine", {"implementation": "own_method:NoisyCentroids", "states_epsilon": "budget"})
    before = finished.times("data/models", "data/results")
    finished.snakemake()
    for dataset in ("wine", "breast_cancer"):
        record = json.loads((finished.folder / f"data/models/mine/{dataset}.json").read_text())
        assert record["kind"] == "predictions"
        assert {guarantee["status"] for guarantee in record["guarantees"]} == {"claimed"}
        result = json.loads((finished.folder / f"data/results/mine/{dataset}.json").read_text())
        assert min(result["summary"]["accuracy"]["mean"]) > 0.0
    assert "mine" in (finished.folder / "reports/curves.csv").read_text()
    # Models of other methods were not made again.
    after = finished.times("data/models", "data/results")
    assert {name: after[name] for name in before} == before
    assert finished.nothing_to_do()
    # An edit of the package reruns the jobs of its method alone.
    module.write_text(source.replace("scale=4 *", "scale=8 *"))
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
    # The declaration applies, and the class has its public name, before files are generated from it.
    finished.change("methods.toy.shrinkage", 1.5)
    output = finished.snakemake("--dry-run", check=False)
    assert "params.yaml: methods.toy.shrinkage: 1.5 is not valid; must be at least 0 and below 1" in output
    assert "NearestToyClassifier()" in finished.call(
        "python", "-c", "import privsvm as p; print(p.NearestToyClassifier())"
    )
    status = finished.git("status", "--porcelain").splitlines()
    touched = {line[3:] for line in status if not line[3:].startswith(("reports/", "dvc.lock"))}
    assert touched == {"params.yaml", "lib/privsvm/methods/nearest_toy.py"}
