"""The numbers and statements that dpsvmdvp-2019 prints, and what is known of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.distributions import Distribution
from privsvm_bench.reproduction.judging import TIMES, Judgement, Printed
from privsvm_bench.reproduction.printed import Claim, Comparison, Paper, cell_id, interval, numbers_of
from privsvm_bench.reproduction.trends import slope, trend
from reproduce.dpsvmdvp.trends import panels, trend_claims

_STAND_IN = (
    "cod-rna.t, the paper's test set, cannot be had here; cod-rna.r stands in for it, and a difference may be that of "
    "the rows"
)


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    dataset, metric = row["dataset"], row["metric"]
    found: dict[str, Any] = {"family": "text", "rule": f"text, {dataset}: {metric}"}
    if row["source"] == "Table 1":
        other = "splice" if dataset == "cod-rna" else "cod-rna"
        found = {"family": "Table 1", "rule": "Table 1", "neighbour": cell_id(other, "", "", metric)}
        if dataset == "cod-rna" and metric == "n_test":
            found["missing"] = "cod-rna.t cannot be had here"
    elif dataset == "cod-rna" and metric == "accuracy":
        found["stand_in"] = _STAND_IN
    elif metric.endswith("knee"):
        other = "splice" if dataset == "cod-rna" else "cod-rna"
        found |= {"rule": "knees", "neighbour": cell_id(other, row["method"], row["setting"], metric)}
    return found


# Each accuracy beside the other end of its line.
_ENDS = {
    "n_train=20000": "n_train=59535", "n_train=50000": "n_train=20000", "n_train=59535": "n_train=20000",
    "n_train=1300": "n_train=2175", "n_train=2175": "n_train=1300", "n_features=5": "n_features=8",
    "n_features=8": "n_features=5", "n_features=55": "n_features=60", "n_features=60": "n_features=55",
}  # fmt: skip


def numbers(rows: Sequence[Mapping[str, str]]) -> list[Printed]:
    """List the numbers of Table 1 and of the text on Figures 1 to 6."""
    import dataclasses

    found = []
    for own in numbers_of(rows, _place):
        head, _, last = own.setting.partition(";")
        if own.metric == "accuracy" and last in _ENDS:
            own = dataclasses.replace(
                own, neighbour=cell_id(own.dataset, own.method, f"{head};{_ENDS[last]}", own.metric)
            )
        found.append(own)
    return found


def reading(judgement: Judgement) -> str:
    """Say what is known of a cell."""
    own, item = judgement.printed, judgement.distribution
    if own.metric in TIMES:
        return "a time of the authors' machine"
    if own.id == "splice///n_features":
        return "123 is the number of features of a1a to a9a; every copy of splice has 60"
    parts = []
    if item is not None and "n_train=50000" in own.setting:
        parts.append(
            "the order of the file explains the 20,000 rows, where the SVM has the same accuracy, but not these"
        )
    return "; ".join(parts)


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Check the statements on lines of the figures."""
    ours = {name: item.median for name, item in distributions.items()}

    def line(dataset: str, key: str, values: Sequence[int]) -> list[Distribution]:
        cells = [cell_id(dataset, "DPSVMDVP", f"epsilon=0.1;{key}={value}", "accuracy") for value in values]
        return [distributions[cell] for cell in cells] if all(cell in distributions for cell in cells) else []

    found = []
    for name, source, text, dataset, key, values in (
        ("size-cod-rna", "Figure 3(a)", "accuracy rises with the number of training rows on cod-rna", "cod-rna",
         "n_train", (20000, 30000, 40000, 50000, 59535)),
        ("size-splice", "Figure 4(a)", "accuracy rises with the number of training rows on splice", "splice",
         "n_train", (1300, 1600, 1900, 2175)),
        ("features-cod-rna", "Figure 5(a)", "accuracy rises weakly with the number of features on cod-rna", "cod-rna",
         "n_features", (5, 6, 7, 8)),
        ("features-splice", "Figure 6(a)", "accuracy rises clearly with the number of features on splice", "splice",
         "n_features", (55, 56, 57, 58, 59, 60)),
    ):  # fmt: skip
        items = line(dataset, key, values)
        verdict, said = "not judged yet", ""
        if items:
            found_slope = slope([value / values[-1] for value in values], items)
            row = [item.median for item in items]
            steady = all(second >= first for first, second in itertools.pairwise(row))
            verdict = trend(found_slope)
            said = ", ".join(f"{value:.3f}" for value in row) + ("" if steady else "; not steadily")
            said += f"; slope {found_slope}"
        found.append(Claim(id=name, source=source, text=text, verdict=verdict, ours=said))
    found += trend_claims(distributions)
    for dataset in ("splice", "cod-rna"):
        exact = ours.get(f"{dataset}/LIBSVM's own gradient/epsilon=0.1/log10 of the median scale")
        mixed = ours.get(f"{dataset}/trained single, f double/epsilon=0.1/log10 of the median scale")
        if exact is not None and mixed is not None:
            found.append(
                Claim(
                    id=f"noise-{dataset}", source="Algorithm 2",
                    text="the budgets E_i / sum E_j put noise on the dual variables", verdict="refuted",
                    ours=f"median noise scale 10^{mixed:.1f} if E_i is taken in double precision around an offset from "
                    f"single precision, 10^{exact:.1f} if it is the gradient that the solver holds: a mismatch of "
                    "precisions is the noise",
                )
            )  # fmt: skip
    return found


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
            place = f"{dataset}/{name}/epsilon=0.1"
            accuracy = distributions.get(f"{place}/accuracy")
            if accuracy is not None:
                scale, total = (
                    distributions[f"{place}/log10 of the {what}"].median for what in ("median scale", "sum of errors")
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
        "dpsvmdvp_exact", "dpsvmdvp_budget", "dpsvmdvp_size", "dpsvmdvp_features", "dpsvmdvp_readings",
        "dpsvmdvp_panels",
    ),
    notes=(
        "Accuracies are printed as means of three draws of noise around one trained model, and judged by such means.",
    ),
)  # fmt: skip
