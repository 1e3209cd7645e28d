"""Opposite data turn the verdict of every statement."""

import csv
import dataclasses

import pytest

from reproduce.cell import HERE, MODULES, judge_committed
from reproduce.engine.distributions import LEVELS
from reproduce.engine.statements import KINDS, TRENDS, _read_claim, group_cells

# Lines by place on the axis and number of the cell: level, rising, falling, spread out, and up and down.
SHAPES = [
    lambda place, number: 1.0,
    lambda place, number: max(place, 1e-9) ** 3,
    lambda place, number: max(place, 1e-9) ** 1,
    lambda place, number: 1.0 / max(place, 1e-9),
    lambda place, number: float(number),
    lambda place, number: 1.0 + number,
    lambda place, number: -float(number),
    lambda place, number: (-1.0) ** number * (number + 1),
]
SCALES = (0.0, 1e-9, 1e-3, 0.015, 0.1, 0.3, 0.55, 1.0, 1.2, 3.0, 50.0, 1e6)
LEVEL = (0.001, 0.5, 1.0, 2.0)


def _plant(patterns, pool, line):
    """Replace the cells of some patterns: each by the line at its place."""
    planted = {}
    for number, points in enumerate(group_cells(patterns, pool).values()):
        for step, (place, item) in enumerate(points):
            value = line(place, number + step)
            planted[item.cell] = dataclasses.replace(item, quantiles=(value,) * len(LEVELS))
    return planted


def _outcomes(record, pool):
    """Judge a row of claims.csv by one planted line after another, until it has agreed and has been refuted."""
    record, found = {**record, "undecided": ""}, set()
    shapes = [(shape, sign * scale) for scale in SCALES for sign in (1.0, -1.0) for shape in SHAPES]
    for level in LEVEL if record["over"] else LEVEL[:1]:
        others = _plant(record["over"], pool, lambda place, number: level * (1 + number))  # noqa: B023
        for shape, scale in shapes:
            cells = _plant(record["cells"], pool, lambda place, number: scale * shape(place, number))  # noqa: B023
            try:
                found.add(_read_claim(record, {**pool, **others, **cells}).verdict)
            except (ValueError, ZeroDivisionError, OverflowError):
                continue
            if {"agrees", "refuted"} <= found:
                return found
    return found


def _change(texts, name, value):
    assert name in texts
    return {**texts, name: value}


def _held(cell, value):
    """Return a function that holds a cell at a value."""
    return lambda pool: {name: dataclasses.replace(item, quantiles=(value,) * len(LEVELS))
                         for name, item in pool.items() if name.endswith(cell)}  # fmt: skip


# Statements that a paper's code judges, with opposite printed numbers or opposite cells.
PLANTS = {
    "pmsvm": {
        "bold": (lambda texts: _change(texts, "Vehicle/PrivateSVM/epsilon=8/accuracy", "0.999"), None),
        "averages": (lambda texts: _change(texts, "average/OPERA//fit_seconds", "99.00"), None),
        "noise-negligible": (None, _held("share of noise", 0.9)),
        "margin-over-linear": (None, _held("Linear/epsilon=1/accuracy", 2.0)),
        "clip-of-batches": (None, _held("clip=10/accuracy", 1000.0)),
    },
}


@pytest.fixture(scope="module", params=MODULES)
def judged(request):
    return judge_committed(request.param)


def test_opposite_data_turn_every_statement(judged):
    name = judged.paper.name
    records = list(csv.DictReader((HERE / name / "claims.csv").open(encoding="utf-8", newline="")))
    by_row = {record["id"] for record in records}
    verdicts = {claim.id: claim.verdict for claim in judged.claims}
    stuck = {}
    for record in records:
        assert record["kind"] in (*KINDS, *TRENDS, "each", "correlation", "")
        if record["kind"] and (record["undecided"] or verdicts[record["id"]] in ("agrees", "refuted")):
            found = _outcomes(record, judged.distributions)
            if not {"agrees", "refuted"} <= found:
                stuck[record["id"]] = found
    texts = {row.printed.id: row.printed.text for row in judged.judgements}
    by_id = {row.printed.id: row for row in judged.judgements}
    for claim, verdict in verdicts.items():
        if claim in by_row or verdict not in ("agrees", "refuted"):
            continue
        change_texts, change_cells = PLANTS.get(name, {}).get(claim, (None, None))
        pool = {**judged.distributions, **(change_cells(judged.distributions) if change_cells else {})}
        planted = judged.paper.claims(change_texts(texts) if change_texts else texts, by_id, pool)
        opposite = next(item.verdict for item in planted if item.id == claim)
        if {verdict, opposite} != {"agrees", "refuted"}:
            stuck[claim] = opposite
    assert stuck == {}
