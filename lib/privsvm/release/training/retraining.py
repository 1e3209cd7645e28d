"""Several releases of one data set under one budget: how much each of them may cost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from privsvm.errors import PrivSVMError
from privsvm.privacy.accountants import group_account
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.bisection import bisect
from privsvm.privacy.events import Composed, Gaussian, Neighbours, relation_factor
from privsvm.release.documents.ledger import Entry, events_under

# The smallest epsilon that is worth a release, and how near a solution must come before it is rounded.
_SMALLEST, _TOLERANCE = 1e-3, 1e-4
_MOST_RELEASES = 1000


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Releases to come, each with `epsilon` and `delta` under the relation `neighbours`.

    `totals` are the epsilons of everything, releases of the ledger included, after each one; `total_delta` is the delta
    of everything after the last one.
    """

    epsilon: float
    delta: float
    totals: tuple[float, ...]
    total_delta: float
    neighbours: Neighbours

    def lines(self, n_earlier: int, account: str | None) -> list[str]:
        """Write it as a table, after so many earlier releases of an account."""
        before = f", after {n_earlier} release(s) of {account!r} in the ledger" if n_earlier else ""
        return [
            f"{len(self.totals)} release(s) at epsilon {self.epsilon:g}, delta {self.delta:.3g} each under "
            f"{self.neighbours}{before}: epsilon {self.totals[-1]:.4g}, delta {self.total_delta:.3g} in all",
            "release  epsilon in all after it",
            *(f"{number:<7}  {total:.4g}" for number, total in enumerate(self.totals, start=1)),
        ]


def schedule(budget: float, releases: int, delta: float, entries: Sequence[Entry] = ()) -> Schedule:
    """Divide a budget evenly, as the ledger will add the releases up.

    The budget is the epsilon of `releases` releases to come and of the earlier `entries` together; each has `delta`,
    and deltas add up. All are under ``replace_one`` if an earlier one is, else under ``add_remove``. The schedule has
    the largest epsilon of three digits, for the recommended method or another with Gaussian noise. Raises PrivSVMError
    if nothing is left for so many releases.
    """
    if not 1 <= releases <= _MOST_RELEASES:
        raise PrivSVMError(f"releases={releases}: must be a number from 1 to {_MOST_RELEASES}")
    rows = max((entry.rows for entry in entries), default=1)
    neighbours: Neighbours = "add_remove"
    if any(entry.guarantee.neighbours == "replace_one" for entry in entries):
        neighbours = "replace_one"
    factor, earlier = relation_factor(neighbours) * rows, events_under(neighbours, entries)

    def total(epsilon: float, count: int) -> float:
        # As `privsvm.release.documents.ledger.total_of`: noise on rows is larger where a person has several.
        events = (*earlier, *(count * [Gaussian(factor * gaussian_noise_multiplier(epsilon, delta))]))
        all_deltas = math.fsum([*(entry.delta for entry in entries), count * delta])
        stated = [entry.by_relation.get(neighbours, math.inf) for entry in entries]
        added = math.fsum([*stated, count * epsilon])
        composed = group_account(Composed(events), rows, all_deltas, neighbours)
        return min(composed.epsilon, added)

    def totals(epsilon: float) -> tuple[float, ...]:
        # Deltas add up, so that an earlier total may be the largest.
        return tuple(total(epsilon, count) for count in range(1, releases + 1))

    if budget <= _SMALLEST or max(totals(_SMALLEST)) > budget:
        raise PrivSVMError(
            f"budget={budget:g}: leaves nothing for {releases} release(s) after {len(entries)} in the ledger; plan "
            "fewer, or decide on a larger total"
        )
    largest = bisect(lambda epsilon: max(totals(epsilon)) <= budget, _SMALLEST, 1.001 * budget, _TOLERANCE)[0]
    unit = 10.0 ** (math.floor(math.log10(largest)) - 2)
    epsilon = float(f"{math.ceil(largest / unit) * unit:.3g}")
    if max(totals(epsilon)) > budget * (1.0 + 1e-9):
        epsilon = float(f"{math.floor(largest / unit) * unit:.3g}")
    all_deltas = math.fsum([*(entry.delta for entry in entries), releases * delta])
    return Schedule(epsilon, delta, totals(epsilon), all_deltas, neighbours)
