import threading

import numpy as np
import pytest
from numba import njit

from privsvm.numerics.compiled.spin_barrier import meet, run_team


@njit(nogil=True)
def count_together(member, meetings, n_members, n_rounds, counts):
    """Count rounds; returns how often another member was found in an earlier round after a meeting, or a later one."""
    wrong = 0
    for number in range(n_rounds):
        counts[member] = number + 1
        if not meet(meetings, n_members):
            return -1
        for other in range(n_members):
            wrong += counts[other] != number + 1
        if not meet(meetings, n_members):
            return -1
    return wrong


# The last team has more members than most machines have cores.
@pytest.mark.parametrize(("n_members", "n_rounds"), [(1, 5), (2, 20_000), (3, 500), (9, 100)])
def test_all_members_meet_every_time(n_members, n_rounds):
    counts = np.zeros(n_members, dtype=np.int64)
    miscounts = dict.fromkeys(range(n_members))
    threads = set()

    def work(member, meetings):
        threads.add(threading.get_ident())
        miscounts[member] = count_together(member, meetings, n_members, n_rounds, counts)

    run_team(work, n_members)
    assert miscounts == dict.fromkeys(range(n_members), 0)
    assert len(threads) == n_members
    assert threading.get_ident() in threads
    assert (counts == n_rounds).all()


@pytest.mark.parametrize("broken", [0, 2])
def test_nobody_waits_for_a_member_that_failed(broken):
    counts, miscounts = np.zeros(3, dtype=np.int64), []

    def work(member, meetings):
        if member == broken:
            raise MemoryError("no room")
        miscounts.append(count_together(member, meetings, 3, 10, counts))

    with pytest.raises(MemoryError, match="no room"):
        run_team(work, 3)
    assert miscounts == [-1, -1]


def test_one_member_meets_nobody_and_its_errors_pass():
    calls = []
    run_team(lambda member, meetings: calls.append((member, meet(meetings, 1))), 1)
    assert calls == [(0, True)]

    def fail(member, meetings):
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        run_team(fail, 1)
