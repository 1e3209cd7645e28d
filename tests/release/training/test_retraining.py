"""A budget that is divided by several releases."""

import dataclasses

import pytest
from tests.release.conftest import refusal, run

from privsvm.errors import PrivSVMError
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


def test_no_release_on_the_way_exceeds_the_budget(hospital):
    (entry,) = Ledger(hospital / "ledger.jsonl").entries()
    guarantee = with_measurement(entry.guarantee, entry.guarantee.epsilon_requested)
    earlier = [dataclasses.replace(entry, guarantee=guarantee)] * 2
    spent = total_of(entry.account, earlier).epsilon
    # As deltas add up, the first total may be larger than the last.
    assert max(schedule(1.001 * spent, 4, entry.delta, earlier).totals) <= 1.001 * spent * (1 + 1e-9)
