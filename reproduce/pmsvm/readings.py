"""Readings of gradient columns on which the paper and its released files disagree.

Stored scripts name several losses "svm": ``main-opacus-decay-bs.py``, which trains the linear layer, and
``main-opacus-decay-resnet.py`` have softmax, ``main-opacus-resnet.py`` has PyTorch's ``multi_margin_loss``, and
``train.py`` imports one of M3SVM. The script that the notebooks call, ``main-opacus.py``, is not stored. Each column is
judged by the reading that fits it best.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from reproduce.engine.distributions import Distribution
from reproduce.engine.judging import STRONG_RATIO, Judgement, Printed, log_density
from reproduce.engine.printed import all_medians
from reproduce.engine.statements import NEEDS, Claim, statement
from reproduce.pmsvm.experiments import DATASETS, EPSILONS

Pool = Mapping[str, Distribution]
# By the setting that a column varies: ends of the settings of its readings, the stated one first.
READINGS = {
    "": ("loss=softmax", "loss=multi_margin_loss", "loss=equations 12 to 15"),
    "clip": ("as in Table 8", "as stored"),
    "batch": ("clip=1", "clip=10"),
}
_COLUMNS = ("Linear", "PMSVM-GP", "PMSVM-AGP")
_LOSS_CELLS = tuple(
    f"*/<PMSVM-GP,PMSVM-AGP>/epsilon=<1,2,4,8>{loss}/accuracy"
    for loss in ("", *(f";{loss}" for loss in READINGS[""][1:]))
)
_MIXED = "some sets fit a margin loss better and others softmax, and the script that the notebooks call is not released"


def reading_cells(cell: str) -> dict[str, str]:
    """Return the cells of a printed number by its readings, the stated one first; empty where there is but one."""
    head, _, metric = cell.rpartition("/")
    if head.count("/") != 2:
        return {}
    _, method, setting = head.split("/")
    stated, *others = READINGS.get(setting.partition(";")[2].partition("=")[0], ("",))
    if not others or method not in _COLUMNS[1:]:
        return {}
    return {stated: cell, **{reading: f"{head};{reading}/{metric}" for reading in others}}


def fit_readings(numbers: Iterable[Printed], pool: Pool) -> dict[str, float]:
    """Return the log likelihood of printed numbers by reading, over those that all readings have a distribution of."""
    fits: dict[str, float] = {}
    for number in numbers:
        cells = reading_cells(number.id)
        if number.compared and cells and all(cell in pool for cell in cells.values()):
            for reading, cell in cells.items():
                fits[reading] = fits.get(reading, 0.0) + log_density(float(number.text), pool[cell])
    return fits


def choose_readings(
    numbers: Sequence[Printed], distributions: Pool
) -> tuple[list[Printed], list[Printed], dict[str, Distribution]]:
    """Judge each column by the reading that fits its means and deviations best.

    Returns the numbers with the reading in the names of their rules, copies of them for the other readings, and the
    distributions that judge the numbers.
    """
    judged, others, changed = [], [], {}
    columns: dict[str, list[Printed]] = {}
    for number in numbers:
        columns.setdefault(number.rule.rpartition(":")[0], []).append(number)
    best = {column: max(fits, key=lambda reading: fits[reading])
            for column, members in columns.items() if (fits := fit_readings(members, distributions))}  # fmt: skip
    for number in numbers:
        column, _, metric = number.rule.rpartition(":")
        if column not in best:
            judged.append(number)
            continue
        for reading, cell in reading_cells(number.id).items():
            renamed = dataclasses.replace(number, rule=f"{column}, {reading}:{metric}")
            if reading != best[column]:
                others.append(dataclasses.replace(renamed, id=cell))
                continue
            judged.append(renamed)
            if cell in distributions:
                changed[number.id] = distributions[cell]
    return judged, others, changed


def _fit_groups(
    judgements: Mapping[str, Judgement], source: str, name: Callable[[Printed], str], pool: Pool
) -> dict[str, dict[str, float]]:
    """Fit the readings of a table's numbers in groups."""
    groups: dict[str, list[Printed]] = {}
    for judgement in judgements.values():
        if judgement.printed.source == source:
            groups.setdefault(name(judgement.printed), []).append(judgement.printed)
    return {group: fits for group, members in groups.items() if (fits := fit_readings(members, pool))}


def judge_loss(judgements: Mapping[str, Judgement], distributions: Pool) -> Claim:
    """Judge by each set whether margin losses or softmax give the gradient columns of Table 2."""
    fits = _fit_groups(judgements, "Table 2", lambda number: number.dataset, distributions)
    ratios = {dataset: max(margins) - softmax for dataset, (softmax, *margins) in
              ((dataset, fit.values()) for dataset, fit in fits.items())}  # fmt: skip
    holds, fails = (sum(sign * ratio > STRONG_RATIO for ratio in ratios.values()) for sign in (1.0, -1.0))
    listed = ", ".join(f"{dataset} {ratio:+.0f}" for dataset, ratio in ratios.items())
    claim = statement(
        "loss", "Section 3; equations 12 to 15", "PMSVM-GP trains the smoothed margin loss",
        bool(holds) if ratios else None, f"log likelihood of Table 2 by the better margin loss, less softmax: {listed}",
        "" if bool(holds) != bool(fails) else _MIXED,
    )  # fmt: skip
    return dataclasses.replace(claim, cells=_LOSS_CELLS)


def judge_margin(distributions: Pool) -> Claim:
    """Judge whether margin gradients, the better of both columns, surpass the linear layer, by each loss."""
    verdicts, found = set(), []
    for loss in READINGS[""]:
        gains = []
        for dataset, epsilon in itertools.product(DATASETS, EPSILONS):
            linear, *cells = (f"{dataset}/{method}/epsilon={epsilon}/accuracy" for method in _COLUMNS)
            medians = all_medians(distributions, [linear, *(reading_cells(cell)[loss] for cell in cells)])
            gains += [max(medians[1:]) - medians[0]] if medians else []
        if gains:
            holds, ties = sum(gain > 0.0 for gain in gains), gains.count(0.0)
            # Two columns of one program cannot outdo each other: a tie counts on either side.
            least, most = (NEEDS["typically"].agrees(number / len(gains)) for number in (holds, holds + ties))
            verdicts.add("agrees" if least else "cannot discriminate" if most else "refuted")
            found.append(f"{loss.removeprefix('loss=')}: {holds} of {len(gains)}, equal in {ties}")
    verdict = verdicts.pop() if len(verdicts) == 1 else "cannot discriminate"
    claim = statement(
        "margin-over-linear", "Section 5.2", "margin-maximizing gradients, the better column, surpass the linear layer",
        verdict == "agrees" if found else None, f"higher medians by {'; by '.join(found)}",
        "it depends on the loss that was trained, which is open" if verdict == "cannot discriminate" else "",
    )  # fmt: skip
    return dataclasses.replace(claim, cells=(*_LOSS_CELLS, "*/Linear/epsilon=<1,2,4,8>/accuracy"))


def judge_clipping(judgements: Mapping[str, Judgement], distributions: Pool) -> Claim:
    """Judge whether the columns of Table 11 have the clipping norm 1 that the paper states."""
    fits = _fit_groups(judgements, "Table 11", lambda number: number.setting.rpartition("=")[2], distributions)
    ratios = {batch: fit["clip=10"] - fit["clip=1"] for batch, fit in fits.items()}
    wrong = {batch: ratio for batch, ratio in ratios.items() if ratio > STRONG_RATIO}
    sizes = ", ".join(wrong)
    found = f"{len(wrong)} columns of Table 11 (batch sizes {sizes}) fit a clipping norm of 10 better than the text's 1"
    ratio = f" (log likelihood ratio {min(wrong.values(), default=0.0):.0f} or more)"
    claim = statement(
        "clip-of-batches", "Section 5.1; Table 11", "all columns of Table 11 have the clipping norm 1",
        not wrong if ratios else None, found + ratio if wrong else "no column fits the clipping norm 10 better",
        brief=found if wrong else "",
    )  # fmt: skip
    return dataclasses.replace(claim, cells=("*/PMSVM-AGP/epsilon=~;batch=*/accuracy",))
