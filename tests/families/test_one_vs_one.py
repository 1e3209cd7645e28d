"""The plan of the solvers of pairs of classes: a pure function of sizes and an estimate."""

import numpy as np
import pytest

from privsvm.families.exact.one_vs_one import plan_solvers


@pytest.mark.parametrize(("n_rows", "steps"), [([900], True), ([5000], False), ([5000, 90, 5000], True), ([], True)])
def test_small_problems_and_many_pairs_take_steps(n_rows, steps):
    plan = plan_solvers(np.array(n_rows, dtype=np.int64), None)
    assert plan.steps == steps
    assert not plan.interior_first.any()
    assert not plan.interior_later.any()


def test_the_interior_point_method_gets_what_it_solves_soon():
    # As long as 1, 10 and 1000 steps a row.
    n_rows = np.full(3, 500)
    seconds = np.array([1.0, 10.0, 1000.0]) * 500 * 3.4e-7
    plan = plan_solvers(n_rows, seconds)
    assert plan.interior_first.tolist() == [True, False, False]
    assert plan.interior_later.tolist() == [False, True, False]
    # A pair of many rows is not for steps: the method goes first wherever it may.
    alone = plan_solvers(np.array([5000]), np.array([0.1]))
    assert (alone.interior_first.tolist(), alone.steps, alone.interior_later.tolist()) == ([True], False, [False])
