"""Events: the effect of a release on the rows, as far as accounting must know; frozen, and JSON can hold them.

Events that `dp_accounting` has mean the same here: its own are not plain data, and importing it takes longer than most
jobs. It has none for selections by the exponential mechanism, for perturbed objectives, for a plain (epsilon, delta),
for one of several events and for the best of runs without "no run".

A noise multiplier is noise over the contribution of one row, for both relations. A row that is replaced is one taken
away and one added, so it moves a sum by twice that: where a release is no sum of rows, what "one row adds" is half the
largest distance between neighbours under ``replace_one``, and all of it under ``add_remove``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

Neighbours = Literal["replace_one", "add_remove"]
NEIGHBOURS: tuple[Neighbours, ...] = get_args(Neighbours)

_MOST_COUNT = 10**9

# Ends of a range of numbers, and whether the first one belongs to it.
_Ranges = Mapping[str, tuple[float, float, bool]]


def relation_factor(neighbours: Neighbours) -> float:
    """Return how far neighbours are apart, in units of one row's contribution: 2 for a replaced row."""
    return 2.0 if neighbours == "replace_one" else 1.0


def _check_number(name: str, value: Any, low: float, high: float, closed: bool) -> None:
    """Refuse any value but a finite number above `low` (or equal to it, if `closed`) and at most `high`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value > high or not (value >= low if closed else value > low):
        limit = "" if high == math.inf else f" and at most {high:g}"
        raise ValueError(f"{name} is {value!r}: must be a finite number {'from' if closed else 'above'} {low:g}{limit}")


@dataclass(frozen=True)
class Event:
    """The effect of a release on the rows; a base."""

    # The name in JSON; a field of every event, which nobody passes.
    kind: str = dataclasses.field(init=False, default="")
    # Of numbers that may be other than positive, by name.
    ranges: ClassVar[_Ranges] = {}

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            match field.type:
                case "float":
                    _check_number(name, value, *self.ranges.get(name, (0.0, math.inf, False)))
                case "int":
                    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_COUNT:
                        raise ValueError(f"{name} is {value!r}: must be a whole number from 1 to {_MOST_COUNT}")
                case "tuple[Event, ...]":
                    if not isinstance(value, tuple) or not value:
                        raise ValueError(f"{name} is {value!r}: must be a tuple of events")
                    if wrong := [event for event in value if not isinstance(event, Event)]:
                        raise ValueError(f"{name} holds {wrong[0]!r}: must be an event")
                case "Event" if not isinstance(value, Event):
                    raise ValueError(f"{name} is {value!r}: must be an event")
                case "Gaussian" if not isinstance(value, Gaussian):
                    raise ValueError(f"{name} is {value!r}: drawn rows are released with Gaussian noise")
                case "str" | "Event" | "Gaussian":
                    pass
                case _:
                    raise TypeError(f"{name}: no check for fields of type {field.type!r}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Read events in records by `event_from_json`."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, Event) else event_from_json(value)
        )


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise on a vector, in the L2 norm: dp_accounting's ``GaussianDpEvent``.

    The multiplier is the standard deviation of the noise over the norm that one row adds.
    """

    kind: str = dataclasses.field(init=False, default="gaussian")
    noise_multiplier: float


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise on a vector, continuous or on a grid, in the L1 norm: dp_accounting's ``LaplaceDpEvent``.

    The multiplier is the scale b of the noise, whose probabilities go as ``exp(-|x| / b)``, over the norm that one row
    adds. `privsvm.privacy.risk` counts on grids of at most 2^-14 of the scale, and of 2^-6 for the counts of `OneOf`.
    """

    kind: str = dataclasses.field(init=False, default="laplace")
    noise_multiplier: float


@dataclass(frozen=True)
class ExponentialMechanism(Event):
    """One selection of a public candidate by the exponential mechanism.

    `epsilon` is the range of the privacy loss between neighbours: weights are
    ``exp(epsilon * score / (2 sensitivity))``.
    """

    kind: str = dataclasses.field(init=False, default="exponential_mechanism")
    epsilon: float


@dataclass(frozen=True)
class ZeroConcentrated(Event):
    """A release with rho-zCDP: dp_accounting's ``ZCDpEvent``, with ``xi`` 0."""

    kind: str = dataclasses.field(init=False, default="zcdp")
    rho: float


@dataclass(frozen=True)
class PerturbedObjectives(Event):
    """Minima of k objectives with random linear terms, released with noise: a Renyi curve.

    `signal` is the norm that one row adds to the gradient of one objective, over the standard deviation of its linear
    term; `curvature` is the curvature that one row adds, over the curvature of the regulariser. The objectives share
    the rows. `output_multiplier` is the noise multiplier of the Gaussian noise on all approximate minima, given the
    exact ones. See `privsvm.privacy.objective_perturbation`.
    """

    kind: str = dataclasses.field(init=False, default="perturbed_objectives")
    ranges: ClassVar[_Ranges] = {"curvature": (0.0, math.inf, True)}
    signal: float
    curvature: float
    n_objectives: int
    output_multiplier: float


@dataclass(frozen=True)
class EpsilonDelta(Event):
    """A release of which nothing is known but that it is (epsilon, delta)-DP under the relation in question."""

    kind: str = dataclasses.field(init=False, default="epsilon_delta")
    ranges: ClassVar[_Ranges] = {"epsilon": (0.0, math.inf, True), "delta": (0.0, 1.0, True)}
    epsilon: float
    delta: float


@dataclass(frozen=True)
class NonPrivate(Event):
    """A release that nothing protects: dp_accounting's ``NonPrivateDpEvent``."""

    kind: str = dataclasses.field(init=False, default="non_private")


@dataclass(frozen=True)
class PoissonSampled(Event):
    """Gaussian noise on a sum over rows that are drawn independently: dp_accounting's ``PoissonSampledDpEvent``."""

    kind: str = dataclasses.field(init=False, default="poisson_sampled")
    ranges: ClassVar[_Ranges] = {"sampling_probability": (0.0, 1.0, False)}
    sampling_probability: float
    event: Gaussian


@dataclass(frozen=True)
class SelfComposed(Event):
    """The same event several times, where later ones may depend on the outcomes of earlier ones."""

    kind: str = dataclasses.field(init=False, default="self_composed")
    event: Event
    count: int


@dataclass(frozen=True)
class Composed(Event):
    """Several events, where later ones may depend on the outcomes of earlier ones."""

    kind: str = dataclasses.field(init=False, default="composed")
    events: tuple[Event, ...]


@dataclass(frozen=True)
class OneOf(Event):
    """One of several events, chosen at random or by public numbers: the choice reads no row."""

    kind: str = dataclasses.field(init=False, default="one_of")
    events: tuple[Event, ...]


@dataclass(frozen=True)
class BestOfNegativeBinomial(Event):
    """The best outcome of a random number of runs, which is kept secret: dp_accounting's ``RepeatAndSelectDpEvent``.

    The number of runs has a truncated negative binomial distribution with `shape` eta, above -1; the smaller `gamma`,
    strictly between 0 and 1, the more runs. `event` is one run. Outcomes are compared in an order that reads no row, by
    a score that one run releases. See `privsvm.privacy.random_stopping`.
    """

    kind: str = dataclasses.field(init=False, default="best_of_negative_binomial")
    ranges: ClassVar[_Ranges] = {"shape": (-1.0, 1e6, False), "gamma": (0.0, math.nextafter(1.0, 0.0), False)}
    shape: float
    gamma: float
    event: Event


@dataclass(frozen=True)
class BestOfPoisson(Event):
    """The best outcome of a random number of runs with a Poisson distribution (of parameter mu) that has no 0."""

    kind: str = dataclasses.field(init=False, default="best_of_poisson")
    ranges: ClassVar[_Ranges] = {"parameter": (0.0, 1e9, False)}
    parameter: float
    event: Event


_KINDS: Mapping[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        Gaussian, Laplace, ExponentialMechanism, ZeroConcentrated, PerturbedObjectives, EpsilonDelta, NonPrivate,
        PoissonSampled, SelfComposed, Composed, OneOf, BestOfNegativeBinomial, BestOfPoisson,
    )
}  # fmt: skip


def event_from_json(value: Any) -> Event:
    """Build an event from what `json.loads` made of it.

    It has ``kind`` and the attributes; events inside events likewise, several as a list. Raises ValueError for an
    unknown kind, a missing or unknown attribute, or a value out of range.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"event is {value!r}: must be an object with a kind")
    kind = value.get("kind")
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"kind is {kind!r}: must be one of {', '.join(_KINDS)}")
    names = {field.name for field in dataclasses.fields(cls)}
    if names != value.keys():
        odd = min(names ^ set(value))
        raise ValueError(f"{cls.kind}.{odd}: key is {'missing' if odd in names else 'unknown'}")
    arguments = {name: item for name, item in value.items() if name != "kind"}
    if "event" in arguments:
        arguments["event"] = event_from_json(arguments["event"])
    if "events" in arguments:
        if not isinstance(arguments["events"], list):
            raise ValueError(f"events is {arguments['events']!r}: must be a list of events")
        arguments["events"] = tuple(map(event_from_json, arguments["events"]))
    return cls(**arguments)


def noise_event(noise: str, noise_scale: float, sensitivity: float, neighbours: Neighbours, count: int = 1) -> Event:
    """Make the event of releases with the same noise.

    `noise_scale` is the standard deviation of Gaussian noise, or b of Laplace noise; `sensitivity` the largest distance
    between neighbours under the relation, in the noise's norm.
    """
    multiplier = noise_scale / (sensitivity / relation_factor(neighbours))
    event = Gaussian(multiplier) if noise == "gaussian" else Laplace(multiplier)
    return event if count == 1 else SelfComposed(event, count)


def leaves(event: Event) -> list[tuple[Event, int]]:
    """List the events that an event is composed of, each with the number of times that it happens.

    Rows that are all drawn are plain rows: such a step is listed as its inner event.
    """
    if isinstance(event, PoissonSampled) and event.sampling_probability == 1:
        return [(event.event, 1)]
    if isinstance(event, SelfComposed):
        return [(leaf, count * event.count) for leaf, count in leaves(event.event)]
    if isinstance(event, Composed):
        return [pair for component in event.events for pair in leaves(component)]
    return [(event, 1)]


def noise_multipliers(event: Event, neighbours: Neighbours) -> Iterator[float]:
    """List the noise of all parts of an event over one row's contribution: of selections, half their range."""
    for leaf, _ in leaves(event):
        match leaf:
            case Gaussian() | Laplace():
                yield leaf.noise_multiplier
            case ExponentialMechanism():
                yield 2.0 * relation_factor(neighbours) / leaf.epsilon
            case PerturbedObjectives():
                yield 1.0 / (leaf.signal * math.sqrt(leaf.n_objectives))
            case PoissonSampled() | BestOfNegativeBinomial() | BestOfPoisson():
                yield from noise_multipliers(leaf.event, neighbours)
            case OneOf():
                for part in leaf.events:
                    yield from noise_multipliers(part, neighbours)


def pure_epsilon(event: Event, neighbours: Neighbours) -> float | None:
    """Return the epsilon of an event with pure differential privacy; None for others."""
    match event:
        case Laplace():
            return relation_factor(neighbours) / event.noise_multiplier
        case ExponentialMechanism() | EpsilonDelta(delta=0):
            return event.epsilon
    return None


# Limits on accounting for a record of others: numbers of events, rows of a unit, steps that draw rows and kinds of
# them, repeats beside those, objectives and runs; the least noise on drawn rows, rate of them, and loss of all steps.
# Within them it takes at most a few seconds and 100 MB.
_MOST_EVENTS, _MOST_ROWS, _MOST_STEPS, _MOST_KINDS, _MOST_REPEATS = 500, 1000, 10**6, 4, 10**4
_MOST_OBJECTIVES, _MOST_RUNS = 300, 1e4
_LEAST_NOISE, _LEAST_RATE, _LEAST_LOSS = 0.1, 1e-6, 3e-4


def innermost(event: Event) -> list[tuple[Event, int]]:
    """List everything that may happen, within alternatives and runs too, and these themselves."""
    found = leaves(event)
    for leaf, _ in list(found):
        inner = leaf.events if isinstance(leaf, OneOf) else ()
        inner = (leaf.event,) if isinstance(leaf, (BestOfNegativeBinomial, BestOfPoisson)) else inner
        found += [pair for alternative in inner for pair in innermost(alternative)]
    return found


def check_effort(event: Event, rows: int) -> None:
    """Raise ValueError for an event from a file that no release of ours has: it could take hours or all memory."""
    parts = innermost(event)
    runs = [leaf for leaf, _ in parts if isinstance(leaf, BestOfPoisson)]
    drawn = [(leaf, count) for leaf, count in parts if isinstance(leaf, PoissonSampled)]
    loss = math.fsum(
        count * leaf.sampling_probability**2 * math.expm1(max(leaf.event.noise_multiplier, _LEAST_NOISE) ** -2.0)
        for leaf, count in drawn
    )
    within = (
        len(parts) <= _MOST_EVENTS
        and rows <= _MOST_ROWS
        and len({leaf for leaf, _ in drawn}) <= _MOST_KINDS
        and sum(count for _, count in drawn) <= _MOST_STEPS
        and all(leaf.event.noise_multiplier >= _LEAST_NOISE for leaf, _ in drawn)
        and all(leaf.sampling_probability >= _LEAST_RATE for leaf, _ in drawn)
        and (not drawn or math.sqrt(loss) >= _LEAST_LOSS)
        and all(count <= _MOST_REPEATS or isinstance(leaf, (Gaussian, PoissonSampled)) for leaf, count in parts)
        and (not drawn or all(count <= _MOST_REPEATS for leaf, count in parts if isinstance(leaf, Gaussian)))
        and all(leaf.n_objectives <= _MOST_OBJECTIVES for leaf, _ in parts if isinstance(leaf, PerturbedObjectives))
        and all(run.parameter <= _MOST_RUNS for run in runs)
    )
    if not within:
        raise ValueError("event is of a size that no release of PrivSVM has")
