"""The numbers and statements that dpsvmdvp-2019 prints, with remarks on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reproduce.dpsvmdvp.draws import OFFSETS
from reproduce.dpsvmdvp.figures import STAND_IN, panels
from reproduce.engine.distributions import Distribution
from reproduce.engine.printed import interval, read_paper


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    dataset, metric = row["dataset"], row["metric"]
    results: dict[str, Any] = {"family": "text", "rule": f"text, {dataset}: {metric}"}
    if row["source"] == "Table 1":
        results = {"family": "Table 1", "rule": "Table 1"}
        if dataset == "cod-rna" and metric == "n_test":
            results["missing"] = "cod-rna.t is not available here"
    elif dataset == "cod-rna" and metric == "accuracy":
        results["undecided"] = STAND_IN
    elif metric.endswith("knee"):
        results["rule"] = "knees"
    return results


_READINGS = {
    "trained single, f double": "f in double precision, its offset in single precision",
    "all double": "f and offset from kernel values in double precision",
    "all single": "f and offset from kernel values in single precision",
    "LIBSVM's own gradient": "E_i from the gradient that the solver holds",
    OFFSETS[0]: "the printed offset b, of one free vector",
    OFFSETS[1]: "the offset in the middle of those of the free vectors",
}


def compare(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Sequence[tuple[str, ...]]:
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
                lines.append((f"{dataset}: {words}", f"10^{total:.1f}", f"10^{scale:.1f}",
                              f"{middle:.3f} ({low:.3f} to {high:.3f})"))  # fmt: skip
    return lines


PAPER = read_paper(__package__, attributes=_place, compare=compare, panels=panels)
