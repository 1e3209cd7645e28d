"""The 18 panels of dpsvmdvp-2019; claims.csv has the statements on their lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduce.dpsvmdvp.experiments import EPSILONS, VARIED
from reproduce.dpsvmdvp.panels import METHODS
from reproduce.engine.distributions import LEVELS, Distribution
from reproduce.engine.panels import Line, Panel

METRICS = ("accuracy", "training seconds", "prediction seconds")
# Number of the figure, what varies.
_FIGURES = {
    "cod-rna": ((1, "epsilon"), (3, "n_train"), (5, "n_features")),
    "splice": ((2, "epsilon"), (4, "n_train"), (6, "n_features")),
}
_AXES = {"epsilon": "epsilon", "n_train": "training rows", "n_features": "features"}
# Why no accuracy on cod-rna is judged.
STAND_IN = (
    "cod-rna.t, the paper's test set, is not available here; cod-rna.r stands in for it, and a difference may be that "
    "of the rows"
)


def _values(dataset: str, what: str) -> Sequence[float]:
    return EPSILONS if what == "epsilon" else VARIED[what][dataset]


def _line(distributions: Mapping[str, Distribution], dataset: str, what: str, method: str, metric: str) -> Line:
    """Draw a line through the points that there are, with the central 95 % of our runs."""
    cells = {float(value): f"panel/{dataset}/{what}={value:g}/{method}/{metric}" for value in _values(dataset, what)}
    items = {value: distributions[cell] for value, cell in cells.items() if cell in distributions}
    levels = [LEVELS.index(level) for level in (0.025, 0.5, 0.975)]
    return Line(method, list(items), [tuple(item.quantiles[level] for level in levels) for item in items.values()])


def panels(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> list[Panel]:
    """Draw the 18 panels, with the published knees and accuracies."""
    results = []
    for dataset, figures in _FIGURES.items():
        for figure, what in figures:
            for letter, metric in zip("abc", METRICS, strict=True):
                lines = [_line(distributions, dataset, what, method, metric) for method in METHODS]
                marks, points = [], []
                if metric == "accuracy" and what == "epsilon":
                    marks = [
                        (float(texts[f"{dataset}/DPSVMDVP//{knee}"]), f"printed {knee}")
                        for knee in ("lower knee", "upper knee")
                    ]
                elif metric == "accuracy":
                    points = [
                        (float(value), float(text))
                        for value in _values(dataset, what)
                        if (text := texts.get(f"{dataset}/DPSVMDVP/epsilon=0.1;{what}={value}/accuracy"))
                    ]
                results.append(
                    Panel(
                        title=f"Figure {figure}({letter}): {dataset}, {metric}", x=_AXES[what],
                        y=metric, lines=lines, marks=marks, points=points, log_x=what == "epsilon",
                        log_y=metric != "accuracy",
                    )
                )  # fmt: skip
    return sorted(results, key=lambda panel: panel.title)
