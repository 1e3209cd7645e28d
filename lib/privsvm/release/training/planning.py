"""What accuracy to expect of an epsilon, without any data of one's own.

The recommended method on made-up tables of the shape, and its accuracy on real sets of about this shape.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privsvm.errors import PrivSVMError
from privsvm.families.moments.second_moments import rows_per_noise
from privsvm.numerics.compiled.threads import memory_of_machine
from privsvm.privacy.gate import default_delta
from privsvm.release.documents.calibration import COVERAGE
from privsvm.release.documents.card import per_cent
from privsvm.release.documents.verifying import verify
from privsvm.release.predicting.model import save
from privsvm.release.training.recipes import Terms, train
from privsvm.release.training.risk_targets import curve_of_release
from privsvm.tables.schema import Schema, parse_schema

# How well a linear model without privacy tells the classes apart, as AUC: tables differ in nothing more.
DIFFICULTIES = {"hard": 0.75, "medium": 0.85, "easy": 0.95}
_TEST_ROWS = 4000
# Tables of one shape that are in memory at once, about.
_COPIES = 4
# Measurements, at most, of about as many rows for one unit of noise, of which quartiles are shown.
_NEAREST, _NEAR_NOISE = 25, 2.0
# Factors between the rows, and between the features, of tables of about one shape.
_NEAR_ROWS, _NEAR_FEATURES, _MOST_SETS = 4.0, 4.0, 3


@dataclasses.dataclass(frozen=True)
class TableShape:
    """Shape of a table, and the share of its rarest class; None: all are as common.

    Raises PrivSVMError for a shape that no table has, or that this machine cannot hold.
    """

    rows: int
    features: int
    n_classes: int
    prevalence: float | None = None

    def __post_init__(self) -> None:
        if self.prevalence is not None and not 0.0 < self.prevalence <= 1.0 / max(self.n_classes, 1):
            raise PrivSVMError(
                f"prevalence={self.prevalence!r}: is the share of the rarest of {self.n_classes} classes; must lie "
                f"between 0 and 1 / {self.n_classes}"
            )
        needed, most = 8 * _COPIES * self.rows * self.features, memory_of_machine()
        if needed > most:
            raise PrivSVMError(
                f"rows={self.rows}, features={self.features}: made-up tables of this shape would take "
                f"{needed // 10**9} GB, {most / 1e9:.0f} GB of this machine; plan with fewer: more rows only help"
            )


@dataclasses.dataclass(frozen=True)
class Expected:
    """Result of the simulation for one epsilon and one difficulty of the table.

    `attainable_auc` is without privacy. `spent` is the part of epsilon to spend: less than all where a smaller epsilon
    gave more accuracy. `auc` and `balanced_accuracy` are least, mean and greatest over repeated tables and noise.
    `recipe` describes the model that was trained on the first table, and the reason for it. With rows held back,
    `measured` are means over the repeats of the intervals of accuracy and balanced accuracy, and of the size of sets.
    """

    difficulty: str
    attainable_auc: float
    epsilon: float
    spent: float
    auc: tuple[float, float, float]
    balanced_accuracy: tuple[float, float, float]
    recipe: str
    measured: tuple[float, ...] = ()

    def is_worse(self, other: Expected) -> bool:
        """Whether another one has a higher mean, to two digits."""
        return any(
            round(ours[1], 2) < round(theirs[1], 2)
            for ours, theirs in ((self.auc, other.auc), (self.balanced_accuracy, other.balanced_accuracy))
        )


@dataclasses.dataclass(frozen=True)
class Measured:
    """Accuracy of the recommended method on one real set, and of a linear SVM there without privacy.

    `name` is the set's in the catalogue, and `rows` counts its training rows. `epsilon` is the measured one nearest to
    the requested one. Accuracies are the least and greatest of the splits; without privacy, medians.
    """

    name: str
    rows: int
    features: int
    classes: int
    epsilon: float
    auc: tuple[float, float]
    balanced_accuracy: tuple[float, float]
    auc_without_privacy: float
    balanced_accuracy_without_privacy: float


@functools.cache
def _measurements() -> dict[str, Any]:
    """Read the measurements on real sets."""
    content: dict[str, Any] = json.loads(Path(__file__).with_name("utility.json").read_text(encoding="utf-8"))
    return content


def rows_worth(rows: int, epsilon: float, delta: float) -> list[float]:
    """Look up the share of the rows on which a linear SVM without privacy is as accurate as the recommended method.

    Quartiles of the measurements on real sets with about as many rows for one unit of noise; empty beyond all of them.
    """
    size = rows_per_noise(rows, epsilon, delta, "add_remove")
    away = sorted((abs(math.log(other / size)), share) for other, share in _measurements()["rows_worth"])
    shares = [share for distance, share in away[:_NEAREST] if distance < math.log(_NEAR_NOISE)]
    return np.quantile(shares, [0.25, 0.5, 0.75]).tolist() if shares else []


def find_real_sets(
    rows: int, features: int, n_classes: int, epsilons: Sequence[float], *, rows_per_person: int | None = None
) -> list[Measured]:
    """Look up releases of at most three real sets of about a shape, the nearest first.

    With k rows a person, epsilon / k for a row is looked up: the sets were released with a guarantee for rows. The list
    is empty where no set has about so many rows, features and classes.
    """
    sets = _measurements()["sets"]

    def distance(entry: dict[str, int]) -> float:
        by_rows = abs(math.log(entry["rows"] / rows)) / math.log(_NEAR_ROWS)
        by_features = abs(math.log(entry["features"] / features)) / math.log(_NEAR_FEATURES)
        same_kind = (entry["classes"] == 2) == (n_classes == 2)
        return math.inf if max(by_rows, by_features) > 1 or not same_kind else by_rows + by_features

    near = sorted((distance(entry), name) for name, entry in sets.items())
    measured = {}
    for name in [name for far, name in near if far < math.inf][:_MOST_SETS]:
        entry = sets[name]
        without_noise = entry["measured"]["inf"]
        by_epsilon = {float(key): value for key, value in entry["measured"].items() if key != "inf"}
        for asked in epsilons:
            epsilon = min(by_epsilon, key=lambda value: abs(math.log(value * (rows_per_person or 1) / asked)))
            auc, balanced = by_epsilon[epsilon]
            shape = (entry["rows"], entry["features"], entry["classes"])
            ranges = ((auc[0], auc[2]), (balanced[0], balanced[2]))
            measured[name, epsilon] = Measured(name, *shape, epsilon, *ranges, without_noise[0][1], without_noise[1][1])
    return list(measured.values())


def make_up_rows(
    rng: np.random.Generator, rows: int, direction: np.ndarray, prevalence: float, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows in [-1, 1] whose classes lie along a direction (two classes) or around centres (more)."""
    d = direction.shape[1]
    shares = np.full(n_classes, (1.0 - prevalence) / (n_classes - 1))
    shares[-1] = prevalence
    y = rng.choice(n_classes, size=rows, p=shares)
    X = rng.normal(size=(rows, d)) + direction[y]
    return np.clip(X / 4.0, -1.0, 1.0), y


def _range(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), math.fsum(values) / len(values), max(values)


def _distance(auc: float) -> float:
    from statistics import NormalDist

    return float(np.sqrt(2.0) * NormalDist().inv_cdf(auc))


def _simulate(
    difficulty: str, shape: TableShape, schema: Schema, releases: Sequence[tuple[int, Terms]], seeds: Sequence[int]
) -> Expected:
    """Train on one made-up table for each seed, and test; each release is averaged with the ones before."""
    from sklearn.metrics import roc_auc_score

    rows, features, n_classes, prevalence = dataclasses.astuple(shape)
    prevalence = 1.0 / n_classes if prevalence is None else prevalence
    auc = DIFFICULTIES[difficulty]
    pairs, recipes, measured, epsilon = [], [], [], releases[-1][1].epsilon
    for repeat, seed in enumerate(seeds):
        rng = np.random.default_rng([seeds[0], repeat])
        direction = rng.normal(size=(n_classes, features))
        direction -= direction.mean(axis=0)
        direction /= np.linalg.norm(direction[-1] - direction[0]) / _distance(auc)
        X, y = make_up_rows(rng, rows, direction, prevalence, n_classes)
        trained: Any = None
        with tempfile.TemporaryDirectory() as folder:
            for number, (n_rows, terms) in enumerate(releases):
                if trained is not None:
                    terms = dataclasses.replace(terms, after=f"{folder}/{number}")
                    save(trained, f"{folder}/{number}")
                grown = schema.model_copy(update={"rows": n_rows})
                done = train(X[:n_rows], y[:n_rows], grown, terms, random_state=seed + 1000 * number)
                trained, held = done.estimator, done.held_back
        if held is not None:
            measured.append((*held.accuracy[1:], *held.balanced_accuracy[1:], held.calibration.set_size))
        recipes.append(trained.recipe_)
        test, truth = make_up_rows(rng, _TEST_ROWS, direction, 1.0 / n_classes, n_classes)
        scores = trained._path.scores(test, 0)[0]
        codes = trained._path.codes(scores[None])[0]
        recalls = [float((codes[truth == code] == code).mean()) for code in range(n_classes)]
        margin = scores[:, -1] - (scores[:, :-1].max(axis=1) if scores.shape[1] > 1 else 0.0)
        pairs.append((float(roc_auc_score(truth == n_classes - 1, margin)), float(np.mean(recalls))))
    aucs, balanced = zip(*pairs, strict=True)
    means = tuple(np.mean(measured, axis=0).tolist()) if measured else ()
    return Expected(difficulty, auc, epsilon, epsilon, _range(aucs), _range(balanced), recipes[0], means)


def simulate_accuracy(
    shape: TableShape,
    epsilons: Sequence[float],
    *,
    rows_per_person: int | None = None,
    repeats: int = 5,
    before: Sequence[tuple[int, Terms]] = (),
    terms: Terms | None = None,
) -> list[Expected]:
    """Simulate releases. No epsilon is promised less accuracy than a smaller one: it need not be spent.

    `repeats` tables of the shape are made up for each epsilon, for persons with `rows_per_person` rows,
    averaged with releases `before` of a table's first rows; `terms` are all others of a release. Raises PrivSVMError
    for a shape that no table has.
    """
    schema = parse_schema(
        {
            "name": "plan",
            "label": "label",
            "classes": list(range(shape.n_classes)),
            "rows": shape.rows,
            "prescaled": False,
            "columns": {f"x{column}": {"bounds": [-1, 1], "fill": 0} for column in range(shape.features)},
            "person": None if rows_per_person is None else "id",
            "rows_per_person": rows_per_person,
        }
    )
    expectations = []
    for difficulty in DIFFICULTIES:
        best: Expected | None = None
        for epsilon in sorted(epsilons):
            relation = before[-1][1].neighbours if before else None
            last = shape.rows, dataclasses.replace(terms or Terms(epsilon), epsilon=epsilon, neighbours=relation)
            found = _simulate(difficulty, shape, schema, [*before, last], range(repeats))
            best = found if best is None or not found.is_worse(best) else dataclasses.replace(best, epsilon=epsilon)
            expectations.append(best)
    return expectations


def simulation_lines(expected: Sequence[Expected]) -> Iterator[str]:
    """Write a simulation as a table."""
    yield "Recommended method on simulated tables of this shape; no data are read. Mean of the repeats, and range."
    yield "difficulty  AUC without privacy  epsilon  AUC                 balanced accuracy"
    for row in expected:
        auc, balanced = (f"{mean:.2f} ({low:.2f} - {high:.2f})" for low, mean, high in (row.auc, row.balanced_accuracy))
        less = "" if row.spent == row.epsilon else f"  spend only {row.spent:.4g}: more gave no better model"
        yield f"{row.difficulty:<11} {row.attainable_auc:<20} {row.epsilon:<8.4g} {auc}  {balanced}{less}"


def measurement_lines(expected: Sequence[Expected], share: float, n_classes: int) -> Iterator[str]:
    """Write what a simulated measurement on rows held back says, as a table."""
    yield (
        f"On {100 * share:g} % held back: 95 % intervals on the card, in per cent, and labels in a prediction set for "
        f"{100 * COVERAGE:g} % of rows, of {n_classes}; means of the repeats."
    )
    yield "difficulty  epsilon  accuracy      balanced accuracy  labels in a set"
    for row in expected:
        *ends, size = row.measured
        accuracy, balanced = (
            f"{100 * low:.1f} - {100 * high:.1f}" for low, high in zip(ends[::2], ends[1::2], strict=True)
        )
        useless = "  sets say nothing: hold back more, or spend more" if size > n_classes - 0.05 else ""
        yield f"{row.difficulty:<11} {row.epsilon:<8.4g} {accuracy:<13} {balanced:<18} {size:.1f}{useless}"


def _rows_worth_lines(rows: int, epsilons: Sequence[float], rows_per_person: int) -> Iterator[str]:
    """Write rows worth at every epsilon that real sets have about as much noise as."""
    delta = default_delta(rows) / rows_per_person
    for epsilon in epsilons:
        if shares := rows_worth(rows, epsilon / rows_per_person, delta):
            low, middle, high = (f"{100 * share:.0f}" for share in shares)
            yield (
                f"Rows worth at epsilon {epsilon:.4g}: as accurate as a linear SVM without privacy on {middle} % of "
                f"the rows (quartiles {low} and {high} %, real sets with about as many rows for one unit of noise)."
            )


def plan_lines(
    shape: TableShape,
    epsilons: Sequence[float],
    rate: float,
    rows_per_person: int | None,
    after: str | None = None,
    terms: Terms | None = None,
) -> Iterator[str]:
    """Write each epsilon's leakage, to a test with such a rate of false positives too, and its accuracy.

    Of `terms`, the rows to hold back and the risk count.
    """
    terms = terms or Terms(1.0)
    unit, delta = "person" if rows_per_person else "row", default_delta(shape.rows)
    yield (
        f"Someone who knows everything else guesses whether a {unit} was used. At most, per 100: right guesses "
        f"(without the model 50), and used {unit}s that a test names if it also names {100 * rate:.6g} of 100 others."
    )
    yield f"epsilon per {unit}, delta {delta:<8.3g}  right guesses  used {unit}s named"
    for epsilon in epsilons:
        counts = dataclasses.replace(terms, epsilon=epsilon).epsilon_of_counts
        curve = curve_of_release(epsilon, delta, None if terms.hold_back is None else counts)
        yield f"{epsilon:<28.4g}  {per_cent(curve.guess(0.5)):<13}  {per_cent(curve.true_positive_rate(rate))}"
    expected = simulate_accuracy(shape, epsilons, rows_per_person=rows_per_person, terms=terms)
    yield from simulation_lines(expected)
    if terms.hold_back is not None:
        yield from measurement_lines(expected, terms.hold_back, shape.n_classes)
    if after is not None:
        record = verify(after)
        if not record.history or (record.n_features, len(record.classes)) != (shape.features, shape.n_classes):
            raise PrivSVMError(f"{after}: averages nothing, or has another number of features or classes; plan for its")
        paid = [(min(int(one.rows), shape.rows), float(one.epsilon or 0.0), one.delta) for one in record.releases]
        before = [(rows, Terms(epsilon, delta, record.judged[0].neighbours)) for rows, epsilon, delta in paid]
        total = math.fsum(epsilon for _, epsilon, _ in paid)
        yield f"Averaged with {len(paid)} earlier release(s), for which their rows pay up to epsilon {total:.4g}:"
        averaged = simulate_accuracy(shape, epsilons, rows_per_person=rows_per_person, before=before, terms=terms)
        yield from itertools.islice(simulation_lines(averaged), 1, None)
    for row in expected:
        if row.difficulty == expected[0].difficulty:
            yield f"Recipe at epsilon {row.epsilon:.4g} on a {row.difficulty} table: {row.recipe}."
    yield from _rows_worth_lines(shape.rows, epsilons, rows_per_person or 1)
    real = find_real_sets(shape.rows, shape.features, shape.n_classes, epsilons, rows_per_person=rows_per_person)
    if not real:
        yield "No real set of similar shape was measured; see docs/leaderboard.md for others."
        return
    times = f", {rows_per_person} times as much per person" if rows_per_person else ""
    yield (
        f"Real sets of similar shape, epsilon per row{times}. In parentheses: a linear SVM without privacy "
        "(docs/leaderboard.md)."
    )
    for one in real:
        yield (
            f"{one.name}, {one.rows} x {one.features}, {one.classes} classes: epsilon {one.epsilon:g}: AUC "
            f"{one.auc[0]:.2f} - {one.auc[1]:.2f} ({one.auc_without_privacy:.2f}), balanced accuracy "
            f"{one.balanced_accuracy[0]:.2f} - {one.balanced_accuracy[1]:.2f} "
            f"({one.balanced_accuracy_without_privacy:.2f})"
        )
