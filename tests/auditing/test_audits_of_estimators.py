"""`privsvm.audit` finds planted bugs of small private estimators at epsilon 1, and nothing without them."""

import csv
import importlib
import math
import os
import subprocess
import sys
import tomllib
from typing import Any, Self

import numpy as np
import pytest
import scipy.stats
from tests.adversarial import count_differences
from tests.scripts import REPOSITORY

from privsvm import audit
from privsvm.auditing.cells import audit_cell
from privsvm.auditing.neighbours import Pair
from privsvm.auditing.witnesses import discrete_witness

# An audit refutes a sound estimator with a probability below (1e-3 / 3000)^2.
DRAWS = 1500


class NoisyMeans:
    """Class means of clipped rows with Laplace noise, (epsilon, 0)-DP.

    Replacing a row of L1 norm 1, with its class, moves their sum by at most 2. The offset adds a number of size 1, so
    that a row has the L1 norm 2.
    """

    def __init__(self, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon

    def noise(self, size: int) -> np.ndarray:
        # Distance of two rows of norm 2: at most 4.
        return np.random.default_rng().laplace(0.0, 4.0 / self.epsilon, size)

    def clip(self, X: np.ndarray) -> np.ndarray:
        return X / np.maximum(1.0, np.abs(X).sum(axis=1, keepdims=True))

    def offset(self, signs: np.ndarray) -> float:
        return float(signs.sum() + self.noise(1)[0])

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        signs = np.where(y == 1, 1.0, -1.0)
        self.coef_ = signs @ self.clip(X) + self.noise(X.shape[1])
        self.intercept_ = self.offset(signs)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X @ self.coef_ + self.intercept_)


class AQuarterOfTheNoise(NoisyMeans):
    def noise(self, size: int) -> np.ndarray:
        return super().noise(size) / 4.0


class RowsAsTheyAre(NoisyMeans):
    def clip(self, X: np.ndarray) -> np.ndarray:
        return X


class ExactOffset(NoisyMeans):
    def offset(self, signs: np.ndarray) -> float:
        return float(signs.sum())


class BoundsOfTheRows(NoisyMeans):
    """Rows are scaled by the largest one, a private number."""

    def clip(self, X: np.ndarray) -> np.ndarray:
        return X / np.abs(X).sum(axis=1).max(initial=1e-9)


class OneSeed(NoisyMeans):
    def noise(self, size: int) -> np.ndarray:
        return np.random.default_rng(0).laplace(0.0, 4.0 / self.epsilon, size)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 40)
    return np.clip(rng.normal(0.0, 0.3, (80, 3)) + np.where(y == 1, 0.2, -0.2)[:, None], -1.0, 1.0), y


@pytest.mark.parametrize(
    ("estimator", "draws"),
    [(AQuarterOfTheNoise, 6000), (RowsAsTheyAre, 3000), (ExactOffset, 1000), (BoundsOfTheRows, 3000), (OneSeed, 1000)],
)
def test_planted_bugs_are_found_at_epsilon_1(estimator: type[NoisyMeans], draws: int) -> None:
    report = audit(estimator, *rows(), draws=draws)
    assert report.refuted, str(report)
    assert report.lower_bound > 1.0
    assert str(report).startswith("REFUTED: replace_one")


def test_without_a_bug_nothing_is_found() -> None:
    report = audit(NoisyMeans, *rows(), draws=DRAWS)
    assert not report.refuted
    assert report.epsilon == 1.0
    assert all(bound.sure <= 1.0 for bound in report.bounds)
    text = str(report)
    assert "not refuted" in text
    assert f"stated            1 |{'=' * 40}" in text
    assert report.pair.words in text
    assert "<pre>" in report._repr_html_()


def test_neighbours_of_ones_own_are_tried() -> None:
    class SecretNumber(NoisyMeans):
        """Leaks one secret row."""

        def noise(self, size: int) -> np.ndarray:
            return super().noise(size) + (1000.0 if self.seen else 0.0)

        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            self.seen = bool((X == 0.125).all(axis=1).any())
            return super().fit(X, y)

    X, y = rows()
    assert not audit(SecretNumber, X, y, draws=200).refuted
    other = X.copy()
    other[0] = 0.125
    pair = Pair("the secret row", (other, y), (X, y))
    report = audit(SecretNumber, X, y, draws=DRAWS, pairs=[pair])
    assert report.pair is pair
    assert report.refuted


def test_an_estimator_that_refuses_far_rows_is_audited_on_others() -> None:
    class Strict(NoisyMeans):
        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            if np.abs(X).max() > 2.0:
                raise ValueError("out of bounds")
            return super().fit(X, y)

    assert not audit(Strict, *rows(), draws=200).refuted

    class Never(NoisyMeans):
        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            raise ValueError("no")

    with pytest.raises(ValueError, match="refuses every pair"):
        audit(Never, *rows(), draws=200)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": -1.0}, "epsilon="),
        ({"epsilon": math.inf}, "epsilon="),
        ({"delta": 1.5}, "delta="),
        ({"gaussian": True}, "delta="),
        ({"draws": 3}, "draws="),
        ({"relation": "both"}, "relation="),
        ({"estimator": 3}, "estimator="),
    ],
)
def test_arguments_out_of_range_are_named(changes: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"estimator": NoisyMeans, "draws": 200, **changes}
    with pytest.raises(ValueError, match=words):
        audit(arguments.pop("estimator"), *rows(), **arguments)


def test_half_of_laplace_noise_is_found_at_epsilon_1() -> None:
    # A row moves two numbers by 2 each, so that scale 4 gives epsilon 1; further numbers are functions of these. A
    # projection of so many releases shows less than 1.2, because distant numbers dominate it.
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(4, 6))

    def draw(dataset: int, n: int, noise_key: str) -> np.ndarray:
        numbers = rng.laplace(0.0, 2.0, (n, 4)) + 2.0 * dataset * np.array([1.0, -1.0, 0.0, 0.0])
        return np.column_stack([numbers, numbers @ mixed])

    (bound,) = audit_cell(draw, 30_000, 1.0, 0.0, gaussian=False)
    assert bound.kind == "counts"
    assert 1.3 < bound.sure < 2.0


def test_audits_of_other_packages_match_their_page() -> None:
    """Audits refute the planted and the known violations of packages, and nothing else."""
    with (REPOSITORY / "reports/audit_peers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert row["refuted"] == row["expected"] == str(float(row["sure"]) > float(row["epsilon"])), row
        assert bool(row["source"]) == (row["expected"] == "True"), row
    known = [row for row in rows if row["source"] and not row["source"].startswith("planted")]
    assert len(known) >= 10
    assert sum(not row["source"] for row in rows) >= 20
    assert len({row["package"] for row in rows}) >= 12
    page = (REPOSITORY / "docs/audits.md").read_text(encoding="utf-8")
    for row in rows:
        shown = f"**{row['low']}**" if row["source"] else f"{int(row['draws']):,} | {row['low']}"
        assert f"| {row['package']} {row['version']} | {row['case']} | {shown} |" in page


@pytest.mark.parametrize(
    ("module", "case", "draws"),
    [
        ("on_published", "sparse vector, corrected", 400),
        ("on_published", "Laplace noise in floating point", 1000),
        ("on_opendp", "randomised response", 400),
    ],
)
def test_a_sample_of_the_peers_ends_as_listed(
    module: str, case: str, draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make audit-peers` audits all of them with more draws."""
    monkeypatch.syspath_prepend(REPOSITORY / "bench" / "audit" / "peers")
    (listed,) = [one for one in importlib.import_module(module).CASES if one.name == case]
    report = audit(listed.make, **{"epsilon": 1.0, **listed.options, "draws": draws})
    assert report.refuted == bool(listed.source), str(report)


def label_chances(counts: tuple[int, int]) -> np.ndarray:
    """Compute the chances of a leaf's two labels by permute-and-flip at epsilon 1.

    Each label is tried first in half of the cases; the more frequent one holds, the other one with a smaller chance.
    """
    first, second = np.exp(np.array(counts) - max(counts))
    return np.array([first + (1.0 - second) * first, second + (1.0 - first) * second]) / 2.0


def test_audits_of_forests_show_no_more_than_the_exact_chances_do() -> None:
    """Trees of the first table and of the second have other rows; docs/join-leaderboard.md has the arithmetic."""
    page = (REPOSITORY / "docs/join-leaderboard.md").read_text(encoding="utf-8")
    none, no, yes, both = map(label_chances, ((0, 0), (1, 0), (0, 1), (1, 1)))
    with (REPOSITORY / "reports/audit_peers.csv").open(newline="") as file:
        shown = {row["case"]: float(row["low"]) for row in csv.DictReader(file) if row["refuted"] == "True"}
    for case, leaves, epsilon in (
        ("random forest, a row more", [(no, yes)] * 9 + [(yes, none)], 9 * math.log(2 * math.e - 1) + 0.49),
        ("random forest, a row replaced", [(both, yes), (none, no)], 2.0),
    ):
        witness = discrete_witness(leaves, 0.0, "replace_one", case)
        assert witness.epsilon == pytest.approx(epsilon, abs=0.01)
        assert 1.0 < shown[case] <= witness.epsilon
        assert f"= {epsilon:.3g}" in page


def test_a_row_of_a_pair_is_left_out_and_the_labels_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "bench" / "audit" / "peers")
    (found,) = importlib.import_module("case").pair("", [[1.0]] * 10, [[1.0]] * 9, 1)
    assert count_differences(found) == (1, 0)
    assert found.first[1].tolist()[1:] == found.second[1].tolist()


@pytest.mark.long
def test_the_forest_of_diffprivlib_is_refuted_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes of the nine trees whose label changes follow it. Exact chances would fail once in two million runs."""
    monkeypatch.syspath_prepend(REPOSITORY / "bench")
    program = f"""
import sys
sys.path[:0] = [{str(REPOSITORY / "lib")!r}, {str(REPOSITORY / "bench/audit/peers")!r}]
from on_diffprivlib import CASES
(case,) = [case for case in CASES if case.name == "random forest, a row more"]
(pair,) = case.options["pairs"]
for rows in (pair.first, pair.second):
    votes = [case.make().fit(*rows).published_[1:-2:2] for _ in range(60)]
    print(sum((vote == pair.first[1][:9]).sum() > 4 for vote in votes))
"""
    python = importlib.import_module("peer_environments").peer_python("diffprivlib")
    first, second = map(int, subprocess.check_output([python, "-c", program], text=True).split())
    exact = scipy.stats.binom.sf(4, 9, 1.0 - 1.0 / (2.0 * math.e))
    assert scipy.stats.binom.cdf(first, 60, exact) > 2.5e-7
    assert scipy.stats.binom.sf(second - 1, 60, 1.0 - exact) > 2.5e-7


def test_pairs_may_have_more_features_than_made_up_rows() -> None:
    X, y = rows()
    other = X.copy()
    other[0] = 1.0
    report = audit(NoisyMeans, draws=200, pairs=[Pair("three features", (X, y), (other, y))])
    assert not report.refuted


TESTS = """
import numpy as np

class Count:
    epsilon = 1.0

    def __init__(self, scale):
        self.scale = scale

    def fit(self, X, y):
        self.count_ = y.sum() + np.random.default_rng().laplace(0.0, self.scale)
        return self

    def predict(self, X):
        return np.zeros(len(X))

def test_sound(privsvm_audit):
    assert privsvm_audit(Count(1.0), draws=400).epsilon == 1.0

def test_broken(privsvm_audit):
    privsvm_audit(lambda: Count(0.01), epsilon=1.0, draws=600)
"""


def test_one_fixture_makes_one_assertion(tmp_path):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugin = project["entry-points"]["pytest11"]["privsvm"]
    (tmp_path / "test_counts.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "-q", "test_counts.py"]
    # Where the library is installed, its entry point loads the plug-in, too.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "REFUTED: replace_one" in done.stdout
    # The traceback ends in the test.
    assert "def not_refuted" not in done.stdout
