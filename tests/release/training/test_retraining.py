"""A budget that is divided by several releases."""

import dataclasses

import pytest
from tests.release.conftest import refusal, run

from privsvm.errors import PrivSVMError
from privsvm.privacy.accountants import group_account
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Composed, Gaussian
from privsvm.privacy.gate import convert_relation
from privsvm.release.documents.ledger import Ledger, total_of
from privsvm.release.training.measuring import with_measurement
from privsvm.release.training.retraining import schedule


def test_schedule_is_what_the_ledger_adds_up(hospital):
    (entry,) = Ledger(hospital / "ledger.jsonl").entries()
    total = total_of(entry.account, [entry] * 4)
    plan = schedule(total.epsilon * 1.001, 3, entry.delta, [entry])
    assert plan.epsilon == 1.0 == pytest.approx(entry.epsilon)
    assert plan.totals[-1] == pytest.approx(total.epsilon, rel=1e-5)
    assert plan.total_delta == pytest.approx(total.delta)
    assert schedule(total.epsilon * 0.999, 3, entry.delta, [entry]).epsilon < 1.0


@pytest.mark.parametrize(("budget", "releases"), [(3.0, 1), (3.0, 5), (0.5, 12), (8.0, 40)])
def test_schedule_spends_the_budget_and_no_more(budget, releases):
    plan = schedule(budget, releases, 1e-5)
    assert list(plan.totals) == sorted(plan.totals)
    assert 0.98 * budget < plan.totals[-1] <= budget * (1 + 1e-9)


def test_command_plans_after_the_releases_of_the_ledger(hospital):
    ledger = ("--ledger", hospital / "ledger.jsonl", "--account", "hospital")
    code, out, err = run("ledger", "plan", "--budget", 3, "--releases", 2, *ledger)
    assert (code, err) == (0, "")
    assert "after 1 release(s) of 'hospital'" in out
    assert len(out.splitlines()) == 5
    assert "plan fewer, or decide on a larger total" in refusal(
        "ledger", "plan", "--budget", 0.9, "--releases", 2, *ledger
    )
    assert "give --rows and --features" in refusal(
        "ledger", "plan", "--budget", 3, "--releases", 2, "--rows", 100, *ledger
    )
    assert "no budget is known" in refusal("ledger", "plan", "--releases", 2, *ledger)
    with pytest.raises(PrivSVMError, match="from 1 to 1000"):
        schedule(1.0, 0, 1e-5)


def test_plans_continue_under_the_relation_of_the_total(hospital):
    """One replaced row moves noise twice as far: one release after none costs what it costs."""
    (entry,) = Ledger(hospital / "ledger.jsonl").entries()
    alone = schedule(1.5, 1, 1e-5)
    assert (alone.neighbours, alone.totals[0]) == ("add_remove", pytest.approx(alone.epsilon))
    guarantee = convert_relation(entry.guarantee)
    earlier = [dataclasses.replace(entry, unit="row", rows=1, guarantee=guarantee)]
    spent = total_of(entry.account, earlier)
    assert spent.neighbours == "replace_one"
    plan = schedule(2.0 * spent.epsilon, 1, 1e-5, earlier)
    assert plan.neighbours == "replace_one"
    assert "each under replace_one, after 1 release(s)" in plan.lines(1, "hospital")[0]
    planned = Gaussian(2.0 * gaussian_noise_multiplier(plan.epsilon, 1e-5))
    assert group_account(Composed((guarantee.event, planned)), 1, 2e-5, "replace_one").epsilon == plan.totals[0]


def test_no_release_on_the_way_exceeds_the_budget(hospital):
    (entry,) = Ledger(hospital / "ledger.jsonl").entries()
    guarantee = with_measurement(entry.guarantee, entry.guarantee.epsilon_requested)
    earlier = [dataclasses.replace(entry, guarantee=guarantee)] * 2
    spent = total_of(entry.account, earlier).epsilon
    # As deltas add up, the first total may be larger than the last.
    assert max(schedule(1.001 * spent, 4, entry.delta, earlier).totals) <= 1.001 * spent * (1 + 1e-9)
