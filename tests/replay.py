"""Record every draw of a release, and replay it on a neighbour with the released values held fixed.

After Re:cord-play (arXiv 2602.17454). The input of a draw is compared with its stated sensitivity, and all draws with
the record. A method fails if its noise, sensitivity, sequence of draws or accounting differs from its proof, or if
anything bypasses its draws.
"""

import dataclasses
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from privsvm.numerics.noise.noise_source import NoiseSource, Sensitivity, StepTape
from privsvm.privacy.events import (
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Neighbours,
    PerturbedObjectives,
    PoissonSampled,
    SelfComposed,
    leaves,
    relation_factor,
)


class Call(NamedTuple):
    """One draw: its public parameters, its input, and its released output."""

    kind: str
    # Noise in cells of the grid: standard deviation, b, or the scale of scores.
    scale: float
    stated: Sensitivity
    shape: tuple[int, ...]
    # Sampled steps draw a row if its random word is below; 2^64 draws all.
    threshold: int
    given: np.ndarray
    released: np.ndarray
    # Mask of the rows that steps drew.
    drawn: np.ndarray

    @property
    def public(self):
        return self[:5]


NOBODY = np.empty((0, 0), dtype=np.uint8)


class Recorder(NoiseSource):
    """A noise source that records inputs and refuses unstated draws."""

    def __init__(self, key=bytes(32), calls=None):
        super().__init__(key)
        self.calls = [] if calls is None else calls
        self._open = 0

    def part(self, name):
        return type(self)(self._key_of("part", name), self.calls)

    def next_key(self):
        assert self._open, "a draw whose numbers and sensitivity nobody states"
        self._open -= 1
        return super().next_key()

    def generator(self):
        raise AssertionError("a draw that no guarantee rests on, in a method that proves something")

    def _keep(self, kind, scale, stated, given, draw, threshold=2**64):
        assert given.dtype == np.int64, f"{kind} noise on numbers that are not whole"
        self._open += 1
        released = draw(given, scale, stated)
        assert self._open == 0
        self.calls.append(Call(kind, scale, stated, given.shape, threshold, given.copy(), released.copy(), NOBODY))
        return released

    def add_rounded_normals(self, numbers, sigma, stated):
        return self._keep("gaussian", sigma, stated, numbers, super().add_rounded_normals)

    def add_discrete_laplace(self, numbers, scale, stated):
        return self._keep("laplace", scale, stated, numbers, super().add_discrete_laplace)

    def choose(self, scores, scale, stated):
        return self._keep("selection", scale, stated, scores, super().choose)

    def step_tape(self, *, n_steps, size, n_rows, threshold, sigma, stated):
        self._open += 1
        tape = StepTape(
            1,
            np.zeros((n_steps, size), dtype=np.int64),
            np.zeros((n_steps, size), dtype=np.int64),
            np.zeros((n_steps, n_rows), dtype=np.uint8),
        )
        self.calls.append(Call("steps", sigma, stated, (n_steps, size), threshold, tape.sums, tape.noisy, tape.drawn))
        return tape


class Replayer(Recorder):
    """A noise source that releases recorded outputs in the same order.

    `record` has the calls of the other source. `rows` are the indices of this dataset's rows in the other one, if they
    differ: rows keep their draws. `instead` replaces released outputs, by the number of the call.
    """

    def __init__(self, record, rows=None, instead=None, calls=None):
        super().__init__(calls=calls)
        self.record, self.rows, self.instead = record, rows, instead or {}

    def part(self, name):
        return Replayer(self.record, self.rows, self.instead, self.calls)

    def _keep(self, kind, scale, stated, given, draw, threshold=2**64):
        return self._next(kind, scale, stated, given.shape, threshold, given)

    def _next(self, kind, scale, stated, shape, threshold, given):
        number = len(self.calls)
        assert number < len(self.record), "more draws than on the other data set"
        other = self.record[number]
        assert (kind, scale, stated, shape, threshold) == other.public, "another draw than on the other data set"
        released = self.instead.get(number, other.released)
        self.calls.append(other._replace(given=given.copy(), released=released))
        return released.copy()

    def step_tape(self, *, n_steps, size, n_rows, threshold, sigma, stated):
        self._open += 1
        noisy = self._next("steps", sigma, stated, (n_steps, size), threshold, np.zeros((n_steps, size), np.int64))
        drawn = self.calls[-1].drawn
        drawn = drawn.copy() if self.rows is None else np.ascontiguousarray(drawn[:, self.rows])
        assert drawn.shape[1] == n_rows
        self.calls[-1] = self.calls[-1]._replace(drawn=drawn)
        return StepTape(2, self.calls[-1].given, noisy, drawn)


def _integers(numbers):
    return np.array([int(number) for number in numbers.ravel()], dtype=object)


def _distance(call, other):
    """Compute the distance of two inputs in the norm of their noise."""
    move = _integers(call.given) - _integers(other.given)
    if call.kind == "gaussian":
        return sum(move * move)
    return sum(abs(move)) if call.kind == "laplace" else max(abs(move))


def check_given(calls, others, row, relation: Neighbours) -> float:
    """Check in exact arithmetic that inputs move by at most the stated sensitivity.

    Returns the largest distance over the sensitivity, at most 1. The calls are on two datasets that differ in one row,
    whose index in the first one is `row`.
    """
    assert len(calls) == len(others), "fewer draws than on the other data set"
    largest, open_share = Fraction(0), Fraction(0)
    for call, other in zip(calls, others, strict=True):
        bound = Fraction(call.stated.sensitivity) * (int(relation_factor(relation)) if call.stated.per_row else 1)
        if call.kind == "steps":
            for step, (first, second) in enumerate(zip(call.given, other.given, strict=True)):
                move = _integers(first) - _integers(second)
                if not call.drawn[step, row]:
                    assert not move.any(), "a step was moved by a row that it did not draw"
                largest = max(largest, sum(move * move) / bound**2)
            assert largest <= 1, "a step's sum moved further than stated"
            continue
        distance = _distance(call, other)
        if call.kind != "gaussian":
            assert distance <= bound, f"{call.kind} noise covers less than neighbours are apart"
            largest = max(largest, (distance / bound) ** 2)
            continue
        open_share += distance / bound**2
        assert open_share <= 1, "gaussian noise covers less than neighbours are apart"
        largest = max(largest, open_share)
        if not call.stated.more:
            open_share = Fraction(0)
    return math.sqrt(largest)


def _multiplier(call, relation):
    """Return the noise over the contribution of one row."""
    return call.scale / (call.stated.sensitivity / (1.0 if call.stated.per_row else relation_factor(relation)))


def list_leaves(calls, relation: Neighbours, record: Event) -> list[tuple[Event, int]]:
    """Return the events of draws in their order, and how often each happened.

    Two draws of perturbed objectives make an event; its number of objectives and its curvature, which no draw shows,
    come from `record`.
    """
    events: list[tuple[Event, int]] = []
    waiting = list(calls)
    if isinstance(record, PerturbedObjectives):
        terms, minima = waiting
        assert (terms.kind, minima.kind) == ("gaussian", "gaussian")
        assert not terms.given.any(), "linear terms that know the rows"
        signal = 1.0 / (_multiplier(terms, relation) * math.sqrt(record.n_objectives))
        return [(PerturbedObjectives(signal, record.curvature, record.n_objectives, _multiplier(minima, relation)), 1)]
    while waiting:
        call = waiting.pop(0)
        if call.kind == "steps":
            rate = float(Fraction(call.threshold, 2**64))
            step = Gaussian(_multiplier(call, relation))
            events.append((step if call.threshold == 2**64 else PoissonSampled(rate, step), call.shape[0]))
        elif call.kind == "laplace":
            events.append((Laplace(_multiplier(call, relation)), 1))
        elif call.kind == "selection":
            events.append((ExponentialMechanism(2.0 * call.stated.sensitivity / call.scale), call.shape[0]))
        else:
            multipliers = [_multiplier(call, relation)]
            while call.stated.more:
                call = waiting.pop(0)
                multipliers.append(_multiplier(call, relation))
            events.append((Gaussian(min(multipliers)), 1))
    return events


def _runs(events):
    """Merge runs of equal events."""
    runs: list[list] = []
    for event, count in events:
        if runs and _same(runs[-1][0], event, 1e-11):
            runs[-1][1] += count
        else:
            runs.append([event, count])
    return runs


def _same(first, second, accuracy=1e-9):
    """Say whether two leaves are equal up to round-off."""
    if type(first) is not type(second):
        return False
    for field in dataclasses.fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, Event):
            if not _same(one, other, accuracy):
                return False
        elif one != other and not (isinstance(one, float) and math.isclose(one, other, rel_tol=accuracy)):
            return False
    return True


def check_record(calls, guarantee) -> Event:
    """Compare a record's event with the composition of the draws."""
    relation = guarantee.neighbours
    draws = list_leaves(calls, relation, guarantee.event)
    recorded, stated = _runs(draws), _runs(leaves(guarantee.event))
    same = len(recorded) == len(stated) and all(
        count == other_count and _same(event, other)
        for (event, count), (other, other_count) in zip(recorded, stated, strict=True)
    )
    if not same and all(isinstance(event, Gaussian) for event, _ in (*recorded, *stated)):
        # A budget divided by released numbers: the record states the total cost of all Gaussian draws.
        power, other = (sum(n * event.noise_multiplier**-2 for event, n in events) for events in (recorded, stated))
        same = len(stated) < len(recorded) and math.isclose(power, other, rel_tol=1e-9)
    assert same, f"the draws are {recorded}, and the record says {stated}"
    composed = [event if count == 1 else SelfComposed(event, count) for event, count in draws]
    return composed[0] if len(composed) == 1 else Composed(tuple(composed))


def released_bits(path):
    """Return the content of a path by name, as bytes and texts, without times."""
    contents = {}
    arrays = path.arrays()
    for field in dataclasses.fields(path):
        if not field.name.endswith("seconds") and field.name not in (*arrays, "steps"):
            contents[field.name] = repr(getattr(path, field.name))
    return contents | {name: array.tobytes() for name, array in arrays.items()}
