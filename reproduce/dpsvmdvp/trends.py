"""Statements of dpsvmdvp-2019 on the lines of all 18 panels, and the panels themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from privsvm_bench.reproduction.distributions import LEVELS, SINGLE, Distribution
from privsvm_bench.reproduction.panels import Line, Panel
from privsvm_bench.reproduction.printed import Claim
from privsvm_bench.reproduction.trends import ratio, slope, trend
from reproduce.dpsvmdvp.experiments import EPSILONS, FEATURES_SETTINGS, SIZE_SETTINGS
from reproduce.dpsvmdvp.panels import METHODS, WHOLE

STEPS = {"accuracy": "accuracy", "training seconds": "training", "prediction seconds": "prediction"}
# Number of the figure, what varies.
_FIGURES = {
    "cod-rna": ((1, "epsilon"), (3, "n_train"), (5, "n_features")),
    "splice": ((2, "epsilon"), (4, "n_train"), (6, "n_features")),
}
_AXES = {"epsilon": "epsilon", "n_train": "training rows", "n_features": "features"}
# A ratio up to which "slightly higher" holds.
_SLIGHTLY = 1.25


def _values(dataset: str, what: str) -> Sequence[float]:
    return {
        "epsilon": EPSILONS,
        "n_train": SIZE_SETTINGS["sizes"][dataset],
        "n_features": FEATURES_SETTINGS["features"][dataset],
    }[what]


def _line(
    distributions: Mapping[str, Distribution], dataset: str, what: str, method: str, metric: str
) -> tuple[list[float], list[Distribution]]:
    """Points of a line that there are."""
    points = [
        (float(value), distributions[cell])
        for value in _values(dataset, what)
        if (cell := f"panel/{dataset}/{what}={value:g}/{method}/{metric}") in distributions
    ]
    return [value for value, _ in points], [item for _, item in points]


def _claim(name: str, source: str, text: str, verdict: str, ours: str) -> Claim:
    return Claim(id=name, source=source, text=text, verdict=verdict, ours=ours)


def _budget(distributions: Mapping[str, Distribution], dataset: str, figure: int) -> list[Claim]:
    found = []
    text = f"the larger the budget, the higher the accuracy, on {dataset}"
    values, items = _line(distributions, dataset, "epsilon", "DPSVMDVP", "accuracy")
    if len(values) < 3:
        found.append(_claim(f"budget-{dataset}", f"Figure {figure}(a)", text, "not judged yet", ""))
    else:
        own = slope([math.log10(value) for value in values], items)
        found.append(
            _claim(f"budget-{dataset}", f"Figure {figure}(a)", text, trend(own), f"slope over log10 of epsilon {own}")
        )
    for step, panel in (("training seconds", "b"), ("prediction seconds", "c")):
        text = f"the budget has little effect on the time of {STEPS[step]} on {dataset}"
        values, items = _line(distributions, dataset, "epsilon", "DPSVMDVP", step)
        name = f"budget-{STEPS[step]}-{dataset}"
        if len(values) < 3:
            found.append(_claim(name, f"Figure {figure}({panel})", text, *_too_long(distributions, dataset)))
            continue
        own = slope(values, items, exponent=True)
        # Ten per cent over the 2,000-fold range of epsilon.
        most = math.log(1.1) / math.log(values[-1] / values[0])
        verdict = "agrees" if max(abs(own.low), abs(own.high)) <= most else trend(own, rises=False)
        verdict = "refuted" if verdict in ("agrees", "refuted") and min(abs(own.low), abs(own.high)) > most else verdict
        found.append(
            _claim(name, f"Figure {figure}({panel})", text, verdict, f"exponent of the time {own}; little: {most:.2g}")
        )
    return found


def _too_long(distributions: Mapping[str, Distribution], dataset: str) -> tuple[str, str]:
    """Verdict and reason where a training takes too long for one at each epsilon."""
    for point in WHOLE[dataset]:
        cells = [f"panel/{dataset}/{point}/DPSVMDVP/{step}" for step in list(STEPS)[1:]]
        once = [distributions[cell].median for cell in cells if cell in distributions]
        if len(once) == len(cells):
            return (
                "cannot discriminate",
                f"not measured: three runs at each of {len(EPSILONS)} epsilons would take {3 * len(EPSILONS)} times "
                f"{sum(once):.0f} s of processor time",
            )
    return "not judged yet", ""


def _over(
    distributions: Mapping[str, Distribution], dataset: str, method: str, step: str
) -> tuple[list[Distribution], list[Distribution]]:
    one, other = [], []
    # A training that several figures share counts once where it was measured once.
    again = {tuple(point.split("=")) for point in WHOLE[dataset][1:]}
    for _, what in _FIGURES[dataset]:
        values, own = _line(distributions, dataset, what, method, step)
        base = _line(distributions, dataset, what, "SVM", step)[1]
        kept = [
            index
            for index, item in enumerate(own)
            if item.statistic != SINGLE or (what, f"{values[index]:g}") not in again
        ]
        one += [own[index] for index in kept]
        other += [base[index] for index in kept]
    return one, other


def _ratios(distributions: Mapping[str, Distribution], dataset: str) -> list[Claim]:
    found = []
    for method, step, text in (
        ("DPSVMDVP", "training seconds", "training DPSVMDVP takes slightly longer than the SVM"),
        ("DPSVMDVP", "prediction seconds", "predicting with DPSVMDVP takes slightly longer than with the SVM"),
        ("PrivateSVM", "training seconds", "training PrivateSVM takes the least time"),
        ("PrivateSVM", "prediction seconds", "predicting with PrivateSVM takes a very short time"),
    ):
        name = f"ratio-{method}-{STEPS[step]}-{dataset}"
        text, source = f"{text}, on {dataset}", "Section V.C; Figures 1 to 6 (b, c)"
        one, other = _over(distributions, dataset, method, step)
        if not one:
            found.append(_claim(name, source, text, "not judged yet", ""))
            continue
        own = ratio(one, other)
        if method == "PrivateSVM":
            verdict = trend(own, rises=False, level=1.0 if step.startswith("training") else 0.5)
        elif own.low > _SLIGHTLY or own.high < 1.0:
            verdict = "refuted"
        else:
            verdict = "agrees" if own.low > 1.0 and own.high <= _SLIGHTLY else "cannot discriminate"
        found.append(_claim(name, source, text, verdict, f"ratio to the SVM's time {own}"))
    return found


def _growth(distributions: Mapping[str, Distribution], dataset: str) -> list[Claim]:
    found = []
    (_, _), (size, _), (features, _) = _FIGURES[dataset]
    for step, panel in (("training seconds", "b"), ("prediction seconds", "c")):
        for figure, what, text, rises in (
            (size, "n_train", f"more training rows take longer in {STEPS[step]}, linearly", True),
            (features, "n_features",
             f"with more features {STEPS[step]} takes {'less' if dataset == 'cod-rna' else 'more'} time",
             dataset != "cod-rna"),
        ):  # fmt: skip
            name, source = f"{what}-{STEPS[step]}-{dataset}", f"Figure {figure}({panel})"
            values, items = _line(distributions, dataset, what, "DPSVMDVP", step)
            if len(values) < 3:
                found.append(_claim(name, source, f"{text}, on {dataset}", "not judged yet", ""))
                continue
            own = slope(values, items, exponent=True)
            verdict, said = trend(own, rises), f"exponent of the time {own}"
            if what == "n_train" and verdict == "agrees":
                verdict = "agrees" if own.low <= 1.0 <= own.high else "refuted"
                said += "; linear growth is 1"
            found.append(_claim(name, source, f"{text}, on {dataset}", verdict, said))
    return found


def _levels(distributions: Mapping[str, Distribution], dataset: str) -> list[Claim]:
    """Compare DPSVMDVP with the SVM at the largest budget, and with PrivateSVM at the smallest."""
    found = []
    place = f"panel/{dataset}/epsilon={{:g}}/{{}}/accuracy"
    for name, text, epsilon, other in (
        ("svm-level", "at a reasonable budget the accuracy is close to the SVM's", EPSILONS[-1], "SVM"),
        ("private-level", "at the smallest budget the accuracy is roughly PrivateSVM's", EPSILONS[0], "PrivateSVM"),
        ("above-private", "at a reasonable budget the accuracy is much higher than PrivateSVM's", EPSILONS[-1],
         "PrivateSVM"),
    ):  # fmt: skip
        own, base = (distributions.get(place.format(epsilon, method)) for method in ("DPSVMDVP", other))
        if own is None or base is None:
            found.append(_claim(f"{name}-{dataset}", "Section V.C", f"{text}, on {dataset}", "not judged yet", ""))
            continue
        gap = own.median - base.median
        width = 0.5 * (own.quantiles[LEVELS.index(0.975)] - own.quantiles[LEVELS.index(0.025)])
        holds = gap > 0.2 if name == "above-private" else abs(gap) <= 0.02 + width
        found.append(
            _claim(
                f"{name}-{dataset}", "Section V.C", f"{text}, on {dataset}", "agrees" if holds else "refuted",
                f"{own.median:.3f} and {base.median:.3f} at epsilon {epsilon:g}",
            )
        )  # fmt: skip
    return found


def trend_claims(distributions: Mapping[str, Distribution]) -> list[Claim]:
    """Check the statements on curves, times and ratios."""
    found = []
    for dataset, figures in _FIGURES.items():
        found += _budget(distributions, dataset, figures[0][0])
        found += _levels(distributions, dataset)
        found += _ratios(distributions, dataset)
        found += _growth(distributions, dataset)
    return found


def panels(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> list[Panel]:
    """Draw the 18 panels, with the published knees and accuracies."""
    found = []
    for dataset, figures in _FIGURES.items():
        for figure, what in figures:
            for letter, metric in zip("abc", STEPS, strict=True):
                lines = []
                for method in METHODS:
                    values, items = _line(distributions, dataset, what, method, metric)
                    bands = [
                        tuple(item.quantiles[LEVELS.index(level)] for level in (0.025, 0.5, 0.975)) for item in items
                    ]
                    lines.append(Line(method, values, [tuple(float(part) for part in band) for band in bands]))
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
                found.append(
                    Panel(
                        title=f"Figure {figure}({letter}): {dataset}, {metric}", x=_AXES[what],
                        y=metric, lines=lines, marks=marks, points=points, log_x=what == "epsilon",
                        log_y=metric != "accuracy",
                    )
                )  # fmt: skip
    return sorted(found, key=lambda panel: panel.title)
