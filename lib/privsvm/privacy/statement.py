"""Statements of privacy records, true or not, the facts that they rest on, and the witness that may refute them.

The code that prepares rows or calls a method states facts about the data and the call, as declared words.
`privsvm.privacy.gate` judges them, by the tables here alone: a fact that is not stated, or stated in a word that the
tables do not know, is broken.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, get_args

from privsvm.files import ExtendedFloat
from privsvm.privacy.accountants import Account, group_account, recompute_account, relation_accounts
from privsvm.privacy.events import NEIGHBOURS, Event, Neighbours
from privsvm.privacy.risk import Risk, trade_off

Status = Literal["proved", "seeded", "claimed", "none"]
STATUSES: tuple[Status, ...] = get_args(Status)
# Statuses of releases that a theorem covers.
_COVERED = ("proved", "seeded")
Randomness = Literal["system", "seeded"]
RANDOMNESS: tuple[Randomness, ...] = get_args(Randomness)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """Origins of everything that a proof takes to be public or enforced; None where nobody states them.

    `preparation` is the treatment of the file before this library read it, and `condensing` of the rows before the
    method; `split` is the choice of training rows. `scaling` is the scale of the rows and `bounds` the origin of the
    bounds for it. `classes`, `n_features` and `features` (landmarks, frequencies and their like) name origins, `n_rows`
    the number that the method uses as the number of rows, and `solution` the knowledge of the optimum that is released
    with noise. `declared_rows` is the number of rows, where it is declared to be public, or neighbours have as many.
    """

    preparation: (
        Literal["as given", "untouched", "declared", "prescaled", "undeclared", "columns dropped", "rows dropped"]
        | None
    ) = None
    condensing: Literal["as given", "none", "ci", "fcm"] | None = None
    split: Literal["as given", "of the files", "every row", "label-blind", "stratified"] | None = None
    scaling: Literal["as given", "none", "declared", "training rows", "all rows"] | None = None
    bounds: Literal["as given", "none", "declared", "published", "observed"] | None = None
    classes: Literal["declared", "private labels"] | None = None
    n_features: Literal["as given", "declared", "private rows"] | None = None
    n_rows: Literal["not used", "declared", "counted"] | None = None
    features: Literal["none", "public", "declared", "private rows", "undeclared"] | None = None
    solution: Literal["none needed", "certified", "limited"] | None = None
    declared_rows: int | None = None

    def __post_init__(self) -> None:
        rows = self.declared_rows
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
            raise ValueError(f"declared_rows is {rows!r}: must be a whole number of at least 1")

    def judge(
        self, neighbours: Neighbours | None, names: Iterable[str] | None = None
    ) -> tuple[tuple[str, ...], list[str]]:
        """Judge the facts of some names, by default of all, by the tables below.

        Returns the assumptions that facts add to a record, and the reasons why nothing can be proved; no reasons where
        every fact is stated and holds.
        """
        assumptions, reasons = [], []
        for name in FACTS if names is None else names:
            word = str(getattr(self, name))
            if word in HOLDS[name]:
                assumptions.append(HOLDS[name][word])
            elif word not in BROKEN[name]:
                reasons.append(f"nobody states the {name.replace('_', ' ')}")
            elif name == "n_rows" and neighbours == "replace_one":
                assumptions.append(_SAME_NUMBER)
            else:
                reasons.append(BROKEN[name][word])
        return tuple(text for text in assumptions if text is not None), reasons

    def for_rows(self, n_rows: int, neighbours: Neighbours) -> Facts:
        """Add the number of rows, where neighbours have as many: a delta must be small for it, and for a larger one."""
        if neighbours != "replace_one" or n_rows == 0:
            return self
        return dataclasses.replace(self, declared_rows=max(n_rows, self.declared_rows or 1))


# Words under which a proof stands, each with the assumption that goes into the record; None: nothing to say.
HOLDS: Mapping[str, Mapping[str, str | None]] = {
    "preparation": {
        "as given": None,
        "untouched": None,
        "declared": "whoever declared that the file was not scaled by its own rows knows how it was made",
    },
    "condensing": {"as given": None, "none": None},
    "split": {
        "as given": "neighbouring data sets are those given to fit: what was done to the rows before is not covered",
        "of the files": "neighbouring data sets are training files: which rows they hold is fixed and public",
        "every row": "neighbouring data sets are whole files",
        "label-blind": "neighbouring data sets are training sets: how the rows were split looks at none of them, and "
        "is fixed and public",
    },
    "scaling": {"as given": None, "none": None, "declared": "the scaling is by declared bounds"},
    "bounds": {
        "as given": None,
        "none": None,
        "declared": "whoever declared the bounds took them from elsewhere than the rows",
        "published": "the bounds of the scaling are from a table that was published with the rows and is not covered",
    },
    "classes": {"declared": None},
    "n_features": {"as given": None, "declared": None},
    "n_rows": {"not used": None, "declared": None},
    "features": {"none": None, "public": None, "declared": None},
    "solution": {"none needed": None, "certified": None},
}

# Words under which none stands, each with the reason.
BROKEN: Mapping[str, Mapping[str, str]] = {
    "preparation": {
        "prescaled": "the published file was scaled by statistics of its own rows",
        "undeclared": "nobody says whether the file was scaled by statistics of its own rows (`prescaled: false` says "
        "that it was not)",
        "columns dropped": "columns are dropped where private rows have missing values",
        "rows dropped": "rows with missing values are dropped: one missing value more changes how all rows are split",
    },
    "condensing": {
        kind: f"the rows were condensed ({kind}): one row can change many condensed rows, and no noise is set for that"
        for kind in ("ci", "fcm")
    },
    "split": {
        "stratified": "the splits are stratified: one changed label can exchange many training rows (22 of 142 were "
        "seen to change), and no noise is set for that",
    },
    "scaling": {
        "training rows": "the scaling was taken from training rows, which are private",
        "all rows": "the scaling was taken from all rows, which are private",
    },
    "bounds": {"observed": "nobody says that the bounds of the scaling are not those of the private rows"},
    "classes": {"private labels": "the class set was taken from the private labels"},
    "n_features": {"private rows": "the number of features was taken from the private rows"},
    # Not under replace_one, where neighbours have as many rows.
    "n_rows": {
        "counted": "the private number of rows was counted and used as if it were public",
    },
    "features": {
        "private rows": "the feature map (gamma, say) was taken from the private rows",
        "undeclared": "the given landmarks are published as they are, and nobody said that they are public",
    },
    "solution": {"limited": "the solver stops after a given number of passes, whether or not its target is reached"},
}

# Dropped by rules for missing values.
DROPPED: Mapping[str, str] = {"drop_columns": "columns dropped", "drop_rows": "rows dropped"}

_SAME_NUMBER = "neighbours have the same number of rows, which is public"

FACTS = tuple(HOLDS)

# Facts about rows that a user hands to `fit`.
AS_GIVEN: Mapping[str, Any] = dict.fromkeys(
    ("preparation", "condensing", "split", "scaling", "bounds", "n_features"), "as given"
)


def merge_facts(several: list[Facts]) -> Facts:
    """Put together the facts of several releases of the same rows: of two words the one that assumes more."""
    words: dict[str, Any] = {}
    for name in FACTS:
        order = [None, *HOLDS[name], *BROKEN[name]]
        stated = [getattr(facts, name) for facts in several]
        broken = [word for word in stated if word is None or word in BROKEN[name]]
        words[name] = broken[0] if broken else max(stated, key=order.index)
    rows = [facts.declared_rows for facts in several if facts.declared_rows is not None]
    # The most: a delta that is small for them is small for fewer.
    return dataclasses.replace(Facts(**words), declared_rows=max(rows, default=None))


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
        return self.status in _COVERED

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

    def by_relation(self, k: int = 1) -> dict[Neighbours, Account]:
        """Compute epsilon under each relation of which the event says something, at the record's delta.

        Parameters
        ----------
        k : int, default=1
            Rows in question together: all rows of a person, say.

        Returns
        -------
        dict of Account
            The record's relation first. ``add_remove`` adds ``replace_one``: the same event at twice the sensitivity,
            accounted anew. ``replace_one`` says nothing of rows that are added. Empty where no theorem holds.
        """
        if not self.theorem_holds:
            return {}
        event, delta, neighbours = self.accounted_parts
        return relation_accounts(event, k, delta, neighbours)

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


def describe_relations(epsilons: Mapping[Neighbours, float]) -> str:
    """Write the relation under which an epsilon holds, the first one, and epsilon under the others."""
    own, *others = epsilons
    return f"under {own}" + "".join(f" (epsilon {epsilons[other]:.4g} under {other})" for other in others)


def theorem_holds(status: str) -> bool:
    """Return whether a theorem covers the releases of a status: of ``seeded``, it asks for other noise alone."""
    return status in _COVERED


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
