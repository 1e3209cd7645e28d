"""Measurements of dpwss-2021's Figure 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reproduce.engine.experiment import Experiment, Results
from reproduce.engine.measurements import Measurement, measure


def figure1(experiment: Experiment, results: Results) -> Iterator[Measurement]:
    """Change of accuracy against WSS2's line, how many lines of DPWSS differ, and the points of the picture."""
    dataset = experiment.settings["figure1"]["dataset"]
    for result in results.values():
        first, *lines = result["lines"]
        yield from measure(
            "Figure 1", dataset, "DPWSS", "two columns, classes moved apart",
            largest_change_of_accuracy=max(abs(line["accuracy"] - first["accuracy"]) for line in lines),
            lines=len(lines), different_lines=len({(*line["weights"], line["offset"]) for line in lines}),
        )  # fmt: skip
        points, pairs = result["points"], {"WSS2": _ends(result["points"], first)}
        pairs |= {f"DPWSS {number}": _ends(points, line) for number, line in enumerate(lines, start=1)}
        for sign, name in ((1.0, "positive"), (-1.0, "negative")):
            pairs[name] = [point for point, own in zip(points, result["signs"], strict=True) if own == sign]
        for name, members in pairs.items():
            yield from measure("lines", dataset, name, "", points=[value for point in members for value in point])


def _ends(points: Sequence[Sequence[float]], line: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Return two points of the line where a decision function is 0, at the ends of the rows."""
    (w0, w1), b = line["weights"], line["offset"]
    (low, high), (bottom, top) = ((min(values), max(values)) for values in zip(*points, strict=True))
    if abs(w1) <= 1e-12:
        return [(-b / w0, bottom), (-b / w0, top)]
    return [(x, -(w0 * x + b) / w1) for x in (low, high)]
