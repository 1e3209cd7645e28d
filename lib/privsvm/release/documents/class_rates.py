"""How well a model finds each class, from the noisy counts of held-back rows: these are released, and cost no more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privsvm.release.documents.calibration import HeldBackCounts
from privsvm.release.documents.intervals import estimate_share
from privsvm.tables.schema import Group

_ERROR = 0.05
# Counts that no share explains leave no more of an interval.
_NO_WIDTH = 1e-9
# Rows of a group that show that there are some, over the scale of the noise: its standard deviation thrice and more.
_NOISES_OF_GROUP = 8.0
_BALANCED = (
    " The model gives all classes equal weight, so it may name the commonest class less often than that class occurs. "
    "Judge it by the figure with every class weighted equally."
)


def _of_100(share: float) -> str:
    return f"{100.0 * share:.3g}"


def _interval(low: float, high: float) -> str:
    if high - low < _NO_WIDTH:
        return "(no interval: the noise on the counts outweighs them)"
    return f"(95 % interval {_of_100(low)} to {_of_100(high)})"


def majority_share(measured: HeldBackCounts) -> float:
    """Estimate the share of the commonest class among held-back rows."""
    sizes = [right + wrong for right, wrong in zip(measured.right, measured.wrong, strict=True)]
    return min(max(max(sizes) / max(math.fsum(sizes), 1.0), 1.0 / len(sizes)), 1.0)


def accuracy_text(measured: HeldBackCounts, is_balanced: bool) -> str:
    """State the model's accuracy, and the accuracy of always naming the commonest class.

    `is_balanced` says whether the model was trained with ``class_weight="balanced"``.
    """
    accuracy, low, high = measured.accuracy
    balanced, balanced_low, balanced_high = measured.balanced_accuracy
    units = "rows" if measured.rows_per_unit == 1 else "persons"
    trained = _BALANCED if is_balanced else ""
    return (
        f"Right for {_of_100(accuracy)} of 100 new rows {_interval(low, high)}.{trained} Always naming the "
        f"commonest class would be right for about {_of_100(majority_share(measured))}. With every class weighted "
        f"equally, right for {_of_100(balanced)} of 100 {_interval(balanced_low, balanced_high)}, where guessing is "
        f"right for {_of_100(1.0 / len(measured.right))}. Measured with noise on {100.0 * measured.hold_back:.3g} % of "
        f"the {units}, drawn at random and not used for training. The intervals allow for that noise, and new {units} "
        f"like these.{_calibration_text(measured)}"
    )


def _calibration_text(measured: HeldBackCounts) -> str:
    """Say how far probabilities are off, and what prediction sets hold."""
    error, error_low, error_high = measured.calibration.calibration_error
    covered, low, high = measured.calibration.coverage
    return (
        f" Probabilities are calibrated: they are off by {_of_100(error)} percentage points on average "
        f"{_interval(error_low, error_high)}. A set has {measured.calibration.set_size:.3g} labels on average, and "
        f"holds the right one for {_of_100(covered)} of 100 new rows {_interval(low, high)}."
    )


def class_rates(measured: HeldBackCounts, label: str, classes: Sequence[str]) -> list[str]:
    """Say how often rows of each class are found; of two classes, also how often a prediction is right.

    Counts are by true class. `classes` are in the order of their codes; of two, the second is the positive one. Each
    interval holds with 95 %.
    """

    def rate(right: float, wrong: float) -> str:
        share, low, high = estimate_share(measured.noisy_counts(right, wrong), _ERROR)
        return f"{_of_100(share)} {_interval(low, high)}"

    right, wrong = measured.right, measured.wrong
    found = [
        f"of 100 rows with {label} = {name}, the model finds {rate(right[code], wrong[code])}."
        for code, name in enumerate(classes)
    ]
    if len(classes) != 2:
        return [text[0].upper() + text[1:] for text in found]
    negative, positive = classes
    return [
        f"Sensitivity: {found[1]}",
        f"Specificity: {found[0]}",
        # Wrong answers on rows of one class are predictions of the other.
        f"Positive predictive value: of 100 rows that it calls {positive}, {rate(right[1], wrong[0])} are right.",
        f"Negative predictive value: of 100 rows that it calls {negative}, {rate(right[0], wrong[1])} are right.",
    ]


def group_rates(measured: HeldBackCounts, groups: Sequence[Group]) -> list[str]:
    """Say for each column how often the model is right for rows of each group, the worst group first.

    The groups of a column share the error, so that all intervals hold together and the worst may be chosen by them.
    Raises ValueError where the counts are of other groups.
    """
    if {group.name: len(group.words) for group in groups} != {name: len(of) for name, of in measured.groups.items()}:
        raise ValueError("held-back counts are of other groups than the schema declares")
    lines = []
    for group in groups:
        table, error = measured.groups[group.name], _ERROR / len(group.words)
        rates = [estimate_share(measured.noisy_counts(right, wrong), error) for right, wrong in table.tolist()]
        known = [code for code, total in enumerate(table.sum(axis=1)) if total > _NOISES_OF_GROUP * measured.scale]
        order = sorted(known, key=lambda code: rates[code][0])
        worst = "too few rows of any group for a comparison"
        if order:
            apart = all(rates[order[0]][2] < rates[code][1] for code in order[1:])
            worst = f"worst for {group.words[order[0]]}" + ("" if apart else ", not told apart from all others")
        rest = [code for code in range(len(rates)) if code not in known]
        shown = [f"{group.words[code]} {_of_100(rates[code][0])} {_interval(*rates[code][1:])}" for code in order]
        shown += [f"{group.words[code]} not known (too few rows for the noise)" for code in rest]
        lines.append(f"By {group.name}, of 100 rows right, {worst}: {'; '.join(shown)}.")
    return lines
