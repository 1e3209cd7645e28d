"""A risk in place of an epsilon: a limit on attackers, and the budget that keeps it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from privsvm.errors import PrivSVMError
from privsvm.privacy.accounting import gaussian_epsilon, gaussian_noise_multiplier
from privsvm.privacy.bisection import bisect
from privsvm.privacy.events import Event, Gaussian, Laplace, OneOf
from privsvm.privacy.risk import TradeOff, trade_off

# Range of signals, in which every target lies that a release may have; and how far below a solution the budget stays,
# which covers the round-off of conversions.
_SMALLEST_SIGNAL, _LARGEST_SIGNAL, _SLACK = 1e-6, 50.0, 1e-7


@dataclasses.dataclass(frozen=True)
class RiskTarget:
    """Largest risk of a release for a protected person; at least one of the two limits is given.

    `guess`, above 0.5, is how often a guess whether someone's data were used may be right, at even odds. A test that
    names the share `false_positive_rate` of all other persons may name the share `true_positive_rate` of the persons
    whose data were used.
    """

    guess: float | None = None
    true_positive_rate: float | None = None
    false_positive_rate: float = 0.01

    def __post_init__(self) -> None:
        if self.guess is None and self.true_positive_rate is None:
            raise PrivSVMError("risk: give the largest rate of right guesses, or of true positives")
        if self.guess is not None and not 0.5 < self.guess < 1.0:
            raise PrivSVMError(f"guess={self.guess!r}: must lie above 0.5, which a coin reaches, and below 1")
        rate = self.false_positive_rate
        if not 0.0 < rate < 1.0:
            raise PrivSVMError(f"false_positive_rate={rate!r}: must lie strictly between 0 and 1")
        if self.true_positive_rate is not None and not rate < self.true_positive_rate < 1.0:
            raise PrivSVMError(
                f"true_positive_rate={self.true_positive_rate!r}: must lie above the rate of false positives, "
                f"{rate:g}, which needs no model, and below 1"
            )

    def is_met(self, curve: TradeOff) -> bool:
        """Whether nobody can do better against a release."""
        by_guess = self.guess is None or curve.guess(0.5) <= self.guess
        power = self.true_positive_rate
        return by_guess and (power is None or curve.true_positive_rate(self.false_positive_rate) <= power)

    def epsilon(self, delta: float) -> float:
        """Compute the largest epsilon, to four digits, at which the recommended method's Gaussian noise is enough."""
        epsilon = gaussian_epsilon(1.0 / self._largest(lambda signal: Gaussian(1.0 / signal)), delta)
        unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
        return float(f"{math.floor(epsilon / unit) * unit:.4g}")

    @property
    def epsilon_of_counts(self) -> float:
        """Largest epsilon at which the noisy counts of held-back rows meet the target: they have Laplace noise."""
        return self._largest(lambda epsilon: OneOf((Laplace(1.0 / epsilon), Laplace(1.0 / epsilon))))

    def _largest(self, event_of: Callable[[float], Event]) -> float:
        def holds(signal: float) -> bool:
            return self.is_met(trade_off(event_of(signal), "add_remove"))

        if not holds(_SMALLEST_SIGNAL):
            raise PrivSVMError("risk: no noise makes it so small; allow a little more")
        return bisect(holds, _SMALLEST_SIGNAL, _LARGEST_SIGNAL, _SLACK, geometric=True)[0] * (1.0 - _SLACK)


def curve_of_release(epsilon: float, delta: float, epsilon_of_counts: float | None = None) -> TradeOff:
    """Bound all tests on a release of the recommended method, for a unit with this budget, and one for counts."""
    event: Event = Gaussian(gaussian_noise_multiplier(epsilon, delta))
    if epsilon_of_counts is not None:
        event = OneOf((event, Laplace(1.0 / epsilon_of_counts)))
    return trade_off(event, "add_remove")
