"""Statements of privacy records, true or not, and the witness that may refute them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Literal, get_args

from privsvm.files import ExtendedFloat
from privsvm.privacy.accountants import Account, group_account, recompute_account
from privsvm.privacy.assumptions import Facts
from privsvm.privacy.events import NEIGHBOURS, Event, Neighbours
from privsvm.privacy.risk import Risk, trade_off

Status = Literal["proved", "seeded", "claimed", "none"]
STATUSES: tuple[Status, ...] = get_args(Status)
STATUS_TEXT: Mapping[Status, str] = {
    "proved": "proved",
    "seeded": "proved method, seeded noise",
    "claimed": "claimed, not proved",
    "none": "none",
}
"""What reports call a status."""
Randomness = Literal["system", "seeded"]
RANDOMNESS: tuple[Randomness, ...] = get_args(Randomness)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Witness:
    """A lower bound on epsilon, shown on one concrete pair of neighbouring datasets.

    At the guarantee's delta, no smaller epsilon holds for the pair. `description` names the pair, and how the bound was
    computed. `confidence` is the probability that the bound holds, if it was estimated from sampled releases; None if
    it is exact.
    """

    epsilon: ExtendedFloat
    neighbours: Neighbours
    description: str
    confidence: float | None = None

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon is {self.epsilon}: must not be negative")
        if self.neighbours not in NEIGHBOURS:
            raise ValueError(f"neighbours is {self.neighbours!r}: must be one of {', '.join(NEIGHBOURS)}")
        if self.confidence is not None and not 0 < self.confidence <= 1:
            raise ValueError(f"confidence is {self.confidence}: must lie between 0 and 1")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Statement:
    """The statements of a privacy record, whether or not they are true.

    Attributes
    ----------
    status : {"proved", "seeded", "claimed", "none"}
        ``proved``: a theorem covers the code, the code enforces its assumptions, an accountant computed the number.
        ``seeded``: the same but for the noise, which anyone who knows its seed can draw again and subtract; for
        benchmarks. ``claimed``: somebody states the epsilon, and nothing proves it. ``none``: no formal guarantee is
        stated.
    mechanism : str
        The randomised numbers, and the noise.
    neighbours : {"replace_one", "add_remove"} or None
        The relation between datasets that epsilon refers to.
    epsilon_requested : float
        The requested epsilon; infinite for models without privacy.
    epsilon_proved : float
        The proved epsilon; infinite unless the status is ``proved``.
    epsilon_with_system_noise : float
        The proved epsilon of the same release with noise from the operating system: as `epsilon_proved` for ``proved``,
        finite for ``seeded`` too; infinite where no theorem holds.
    delta : float or None
        The probability that goes with epsilon; 0 for pure differential privacy.
    sensitivity : float or None
        The sensitivity that the noise was scaled to, in the mechanism's norm: L2 for Gaussian noise, L1 for Laplace
        noise, the largest change of a score for selections.
    noise_scale : float or None
        Scale of the noise on each released number (standard deviation of Gaussian noise, b of Laplace noise) or
        score.
    event : Event or None
        The release's effect on the rows, as far as accounting must know.
    accountant : str or None
        What turned the event, or sensitivity and noise, into epsilon.
    randomness : {"system", "seeded"} or None
        Where the noise came from.
    facts : Facts or None
        Origins of everything that the proof takes to be public.
    assumptions : tuple of str
        Conditions of the proof, and who ensures each.
    reason : str or None
        For ``claimed`` and ``none``: why nothing is proved.
    reference : str
        Paper and equation.
    witness : Witness or None
        An epsilon below which the mechanism is refuted on a concrete pair; benchmarks only, since it
        is computed from the private rows.

    Raises
    ------
    ValueError
        If the record contradicts itself: ``proved`` or ``seeded`` with an infinite epsilon, with one above the
        requested epsilon, or with one that its own exact witness refutes.
    """

    status: Status
    mechanism: str
    reference: str
    neighbours: Neighbours | None = None
    epsilon_requested: ExtendedFloat = math.inf
    epsilon_proved: ExtendedFloat = math.inf
    epsilon_with_system_noise: ExtendedFloat = math.inf
    delta: float | None = None
    sensitivity: float | None = None
    noise_scale: float | None = None
    event: Event | None = None
    accountant: str | None = None
    randomness: Randomness | None = None
    facts: Facts | None = None
    assumptions: tuple[str, ...] = ()
    reason: str | None = None
    witness: Witness | None = None

    def __post_init__(self) -> None:
        known_words = (
            ("status", STATUSES), ("neighbours", (*NEIGHBOURS, None)), ("randomness", (*RANDOMNESS, None))
        )  # fmt: skip
        for name, allowed in known_words:
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must be one of {', '.join(map(str, allowed))}")
        if not self.epsilon_requested > 0:
            raise ValueError(f"epsilon_requested is {self.epsilon_requested}: must be positive")
        if self.status != "proved" and self.epsilon_proved != math.inf:
            raise ValueError(
                f"epsilon_proved is {self.epsilon_proved} but status is {self.status!r}: must be inf where nothing is "
                "proved"
            )
        if not self.theorem_holds and self.epsilon_with_system_noise != math.inf:
            raise ValueError(
                f"epsilon_with_system_noise is {self.epsilon_with_system_noise} but status is {self.status!r}: must be "
                "inf where no theorem holds"
            )
        if self.status == "claimed" and not self.reason:
            raise ValueError(f"reason is {self.reason!r} but status is 'claimed': must say why the claim does not hold")
        if self.delta is not None and not 0 <= self.delta < 1:
            raise ValueError(f"delta is {self.delta}: must be 0 or lie strictly between 0 and 1")
        for name in ("sensitivity", "noise_scale"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} is {value}: must be positive and finite")
        if self.theorem_holds:
            self._check_proof()

    def _check_proof(self) -> None:
        key = self._epsilon_key
        epsilon = getattr(self, key)
        if not 0 <= epsilon < math.inf:
            raise ValueError(f"{key} is {epsilon} but status is {self.status!r}: must be finite")
        for name in ("neighbours", "delta", "accountant", "event", "randomness", "facts"):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is None but status is {self.status!r}: a proof must name it")
        if self.status == "seeded" and self.randomness != "seeded":
            raise ValueError(f"randomness is {self.randomness!r} but status is 'seeded': must be 'seeded'")
        if epsilon > self.epsilon_requested:
            raise ValueError(f"{key} is {epsilon}: must not exceed epsilon_requested, {self.epsilon_requested}")
        witness = self.witness
        # A sampled bound may be wrong, and refutes nothing by itself.
        exact = witness is not None and witness.confidence is None and witness.neighbours == self.neighbours
        if exact and witness is not None and witness.epsilon > epsilon:
            raise ValueError(f"{key} is {epsilon}: a witness refutes it ({witness.description})")
        if self.epsilon_with_system_noise not in (math.inf, epsilon):
            raise ValueError(
                f"epsilon_with_system_noise is {self.epsilon_with_system_noise}: must be epsilon_proved, {epsilon}"
            )
        # Records of the first version lack it.
        object.__setattr__(self, "epsilon_with_system_noise", epsilon)

    @property
    def theorem_holds(self) -> bool:
        """Whether a theorem covers the release, whatever its noise was drawn from; see the function."""
        return theorem_holds(self.status)

    @property
    def _epsilon_key(self) -> str:
        """Name of the epsilon that the record stands for."""
        return "epsilon_proved" if self.status == "proved" else "epsilon_with_system_noise"

    @property
    def accounted_parts(self) -> tuple[Event, float, Neighbours]:
        """Event, delta and relation of a record that has them."""
        if self.event is None or self.delta is None or self.neighbours is None:
            raise ValueError(f"event is {self.event!r}: the record says too little of the release to account for it")
        return self.event, self.delta, self.neighbours

    def verify(self) -> Account:
        """Compute epsilon once more from the event, by other means than those that made the record.

        Returns
        -------
        Account
            Privacy loss distributions for Gaussian noise, Renyi divergences for selections, zCDP and perturbed
            objectives, a closed form for Laplace noise; the record's epsilon or a little more. Named in it.

        Raises
        ------
        ValueError
            If the record has no event.
        """
        return recompute_account(*self.accounted_parts)

    def for_group(self, k: int) -> Account:
        """Compute what holds for neighbours that differ in k rows, at the record's delta; see `group_account`."""
        event, delta, neighbours = self.accounted_parts
        return group_account(event, k, delta, neighbours)

    def risk(self, *, false_positive_rate: float = 0.01, prior: float = 0.5, rows: int = 1) -> Risk:
        """Bound the leakage of the release by its event's trade-off curve; see `privsvm.privacy.risk`.

        Of ``seeded`` noise it holds against attackers who do not know the seed.

        Parameters
        ----------
        false_positive_rate : float, default=0.01
            Of a test that says whether rows were used.
        prior : float, default=0.5
            Probability that they were, before the release.
        rows : int, default=1
            Rows in question together: all rows of a person, say.

        Returns
        -------
        Risk

        Raises
        ------
        ValueError
            If nothing is proved, or an argument is out of range.
        """
        if not math.isfinite(self.epsilon_proved):
            raise ValueError(f"status is {self.status!r}: no risk is bounded where nothing is proved")
        event, delta, neighbours = self.accounted_parts
        curve = trade_off(event, neighbours, rows, delta)
        return Risk(
            rows=rows,
            false_positive_rate=false_positive_rate,
            true_positive_rate=curve.true_positive_rate(false_positive_rate),
            prior=prior,
            guess=curve.guess(prior),
            advantage=curve.advantage,
            mu=curve.mu,
        )


def theorem_holds(status: str) -> bool:
    """Return whether a theorem covers the releases of a status: of ``seeded``, it asks for other noise alone."""
    return status in ("proved", "seeded")


def weakest_status(statuses: Collection[Status]) -> Status | None:
    """Find the one word for several guarantees: a single claim that does not hold decides, then seeded noise.

    None where a theorem holds for some of them and some say ``none``: no method can mean that.
    """
    distinct = set(statuses)
    if "claimed" in distinct:
        return "claimed"
    if distinct == {"proved", "seeded"}:
        return "seeded"
    return distinct.pop() if len(distinct) == 1 else None
