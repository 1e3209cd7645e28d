"""Our bounds from counts against jax_privacy's auditing module, which shares no code with ours.

Its values are in a table (`jax_privacy_values.py` writes it, with the version); where jax_privacy can be imported, the
table is computed anew.
"""

import csv
import importlib.util
import math
import re

import pytest
from tests.privacy.jax_privacy_values import HEAD, VALUES
from tests.scripts import REPOSITORY

from privsvm.privacy.lower_bounds import counts_bound, f_dp_bound, limits, one_run_bound

with VALUES.open(encoding="utf-8", newline="") as handle:
    ROWS = list(csv.DictReader(handle))

JAX_PRIVACY = importlib.util.find_spec("jax_privacy") is not None


def ours(row):
    counts = tuple(int(row[name]) for name in ("hits", "runs", "other_hits", "other_runs"))
    hits, runs, others, other_runs = counts
    delta, miss = float(row["delta"]), float(row["significance"])
    if row["bound"] == "counts":
        return float(counts_bound(*counts, delta, 1.0 - miss))
    if row["bound"] == "one_run":
        # A guess is that a canary was there, wherever the event occurred.
        return one_run_bound(runs + other_runs, hits + others, hits, delta, 1.0 - miss).epsilon
    miss /= int(row["thresholds"])
    # Theirs leaves out tests that may always err on one side.
    if max(limits(runs - hits, runs, miss / 2)[1], limits(others, other_runs, miss / 2)[1]) >= 1.0 - delta:
        return 0.0
    confidence = 1.0 - miss
    # Theirs takes the better of both directions.
    turned = f_dp_bound(runs - hits, runs, other_runs - others, other_runs, delta, confidence).epsilon
    return max(f_dp_bound(*counts, delta, confidence).epsilon, turned)


def test_the_table_covers_every_bound_and_says_its_version():
    assert tuple(ROWS[0]) == HEAD
    assert {row["bound"] for row in ROWS} == {"counts", "f_dp", "one_run"}
    assert all(row["version"].startswith("jax_privacy ") for row in ROWS)
    for kind in ("counts", "f_dp", "one_run"):
        epsilons = [float(row["epsilon"]) for row in ROWS if row["bound"] == kind]
        assert min(epsilons) == 0.0
        assert len({epsilon for epsilon in epsilons if epsilon > 0}) >= 8


@pytest.mark.parametrize("bound", ["counts", "f_dp", "one_run"])
def test_our_bounds_are_those_of_jax_privacy(bound):
    for row in ROWS:
        if row["bound"] == bound:
            # Both solve for epsilon to within 1e-6 where there is no closed form.
            assert ours(row) == pytest.approx(float(row["epsilon"]), rel=1e-8, abs=3e-6), row


@pytest.mark.skipif(not JAX_PRIVACY, reason="jax_privacy is not installed; its values are in the table")
def test_the_table_is_what_jax_privacy_computes():
    from tests.privacy.jax_privacy_values import rows

    live = list(rows())
    assert len(live) == len(ROWS)
    for row, stored in zip(live, ROWS, strict=True):
        assert {**row, "version": "", "epsilon": ""} == {**stored, "version": "", "epsilon": ""}
        assert math.isclose(float(row["epsilon"]), float(stored["epsilon"]), rel_tol=1e-8, abs_tol=3e-6)


def test_nothing_but_tests_imports_these_packages():
    sources = [path for folder in ("lib", "stages", "reproduce") for path in (REPOSITORY / folder).rglob("*.py")]
    assert len(sources) > 200
    found = re.compile(r"^\s*(import|from) (jax|opendp)", re.MULTILINE)
    assert not [path for path in sources if found.search(path.read_text())]
