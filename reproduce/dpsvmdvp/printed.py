"""The numbers and statements that dpsvmdvp-2019 prints, with remarks on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from reproduce.dpsvmdvp.trends import STAND_IN, panels, times_not_measured
from reproduce.engine.distributions import Distribution
from reproduce.engine.judging import Judgement, Printed
from reproduce.engine.printed import (
    Comparison,
    Paper,
    all_medians,
    cell_id,
    interval,
    numbers_of,
)
from reproduce.engine.statements import Claim, statement


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    dataset, metric = row["dataset"], row["metric"]
    results: dict[str, Any] = {"family": "text", "rule": f"text, {dataset}: {metric}"}
    if row["source"] == "Table 1":
        other = "splice" if dataset == "cod-rna" else "cod-rna"
        results = {"family": "Table 1", "rule": "Table 1", "neighbour": cell_id(other, "", "", metric)}
        if dataset == "cod-rna" and metric == "n_test":
            results["missing"] = "cod-rna.t is not available here"
    elif dataset == "cod-rna" and metric == "accuracy":
        results["undecided"] = STAND_IN
    elif metric.endswith("knee"):
        other = "splice" if dataset == "cod-rna" else "cod-rna"
        results |= {"rule": "knees", "neighbour": cell_id(other, row["method"], row["setting"], metric)}
    return results


# Each accuracy beside the other end of its line.
_ENDS = {
    "n_train=20000": "n_train=59535", "n_train=50000": "n_train=20000", "n_train=59535": "n_train=20000",
    "n_train=1300": "n_train=2175", "n_train=2175": "n_train=1300", "n_features=5": "n_features=8",
    "n_features=8": "n_features=5", "n_features=55": "n_features=60", "n_features=60": "n_features=55",
}  # fmt: skip


def numbers(rows: Sequence[Mapping[str, str]]) -> list[Printed]:
    """List the numbers of Table 1 and of the text on Figures 1 to 6."""
    outcome = []
    for number in numbers_of(rows, _place):
        head, _, last = number.setting.partition(";")
        if number.metric == "accuracy" and last in _ENDS:
            number = dataclasses.replace(
                number, neighbour=cell_id(number.dataset, number.method, f"{head};{_ENDS[last]}", number.metric)
            )
        outcome.append(number)
    return outcome


def reading(judgement: Judgement) -> str:
    """Return the remark on a cell."""
    printed, item = judgement.printed, judgement.distribution
    if printed.id == "splice///n_features":
        return "123 is the number of features of a1a to a9a; every copy of splice has 60"
    sentences = []
    if item is not None and "n_train=50000" in printed.setting:
        sentences.append(
            "the order of the file explains the 20,000 rows, where the SVM has the same accuracy, but not these"
        )
    return "; ".join(sentences)


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Judge the statements on privacy, sizes, lines of the figures and the noise."""
    result = [_privacy(distributions), _exchanged(texts, distributions), *times_not_measured(distributions)]
    for dataset in ("splice", "cod-rna"):
        values = all_medians(
            distributions,
            [
                f"{dataset}/{name}/epsilon=0.1/log10 of the median scale"
                for name in ("trained single, f double", "LIBSVM's own gradient")
            ],
        )
        if values:
            result.append(
                statement(
                    f"noise-{dataset}", "Algorithm 2", "the budgets E_i / sum E_j put noise on the dual variables",
                    False,
                    f"median noise scale 10^{values[0]:.1f} if E_i is taken in double precision around an offset from "
                    f"single precision, 10^{values[1]:.1f} if it is the gradient that the solver holds: a mismatch of "
                    "precisions is the noise",
                )
            )  # fmt: skip
    return result


def _privacy(distributions: Mapping[str, Distribution]) -> Claim:
    names = ("rows in the clear", "training rows", "epsilon is infinite")
    values = all_medians(distributions, [f"claim/privacy/{name}" for name in names])
    ours = brief = ""
    if values:
        brief = f"the model holds {values[0]:.0f} of {values[1]:.0f} training rows of splice in the clear"
        ours = (
            f"the released model holds {values[0]:.0f} of the {values[1]:.0f} training rows of splice in the clear, as "
            "its support vectors; one of them is missing in a neighbouring dataset, so that no epsilon holds"
        )
    return statement("privacy", "Abstract; Section IV", "the method is differentially private",
                     values[2] == 0.0 if values else None, ours, brief=brief)  # fmt: skip


def _exchanged(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Claim:
    """Compare Table 1's sizes of splice with LIBSVM's files: we train on the one that LIBSVM names the test file."""
    sizes = [distributions.get(f"splice///{name}") for name in ("n_train", "n_test")]
    ours, holds = "", None
    if sizes[0] is not None and sizes[1] is not None:
        larger, smaller = (item.median for item in sizes if item is not None)
        holds = float(texts["splice///n_train"]) == smaller
        ours = (
            f"LIBSVM's training file of splice has {smaller:.0f} rows and its test file {larger:.0f}: the paper has "
            "them exchanged, and we follow it"
        )
    return statement("exchanged", "Table 1", "the training set of splice is LIBSVM's", holds, ours)


_READINGS = {
    "trained single, f double": "f in double precision, its offset in single precision",
    "all double": "f and offset from kernel values in double precision",
    "all single": "f and offset from kernel values in single precision",
    "LIBSVM's own gradient": "E_i from the gradient that the solver holds",
}


def comparisons(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> list[Comparison]:
    """Show how much noise each precision of E_i gives, and the accuracy at epsilon 0.1."""
    lines = []
    for dataset in ("splice", "cod-rna"):
        for name, words in _READINGS.items():
            prefix = f"{dataset}/{name}/epsilon=0.1"
            accuracy = distributions.get(f"{prefix}/accuracy")
            if accuracy is not None:
                scale, total = (
                    distributions[f"{prefix}/log10 of the {what}"].median for what in ("median scale", "sum of errors")
                )
                middle, low, high = interval(accuracy)
                lines.append(
                    (
                        f"{dataset}: {words}",
                        f"10^{total:.1f}",
                        f"10^{scale:.1f}",
                        f"{middle:.3f} ({low:.3f} to {high:.3f})",
                    )
                )
    if not lines:
        return []
    return [
        Comparison(
            title="The noise is a mismatch of precisions",
            caption="The formula divides the budget by the sum of the errors E_i of the free support vectors, which is "
            "zero but for round-off. With one precision throughout, hardly any noise is left. The paper's curves come "
            "out only if the offset inside E_i has another precision than f: kernel values in single precision, as "
            "LIBSVM keeps them, and f summed in double precision.",
            columns=(
                "Reading",
                "Sum of E_i",
                "Median scale of the noise",
                "Mean accuracy of three draws (central 95 %)",
            ),
            lines=lines,
        )
    ]


PAPER = Paper(
    name="dpsvmdvp",
    title="DPSVMDVP (Zhang, Hao and Wang, IEEE Access 2019)",
    numbers=numbers,
    reading=reading,
    claims=claims,
    comparisons=comparisons,
    panels=panels,
    experiments=(
        "dpsvmdvp_exact", "dpsvmdvp_readings", "dpsvmdvp_panels", "dpsvmdvp_orders", "dpsvmdvp_privacy",
    ),
    notes=(
        "Accuracies are printed as means of three draws of noise around one trained model, and judged by such means. "
        "On splice each is drawn around the solution of another order of the rows: the noise hangs on round-off, and "
        "so on the order.",
    ),
)  # fmt: skip
