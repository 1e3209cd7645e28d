"""The number and the statements that are left of ci-svm-2018: its tables and figures are lost in our copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduce.engine.distributions import Distribution
from reproduce.engine.measurements import constant
from reproduce.engine.printed import read_paper
from reproduce.engine.statements import group_cells

_TIME = "ci_svm_time/times/{}/{}//seconds of search and training"


def sources(cell: str) -> list[str]:
    """Return the cells that the time saved is computed from."""
    name, _, dataset = cell.partition("/")
    return [_TIME.format(dataset, method) for method in ("CI-SVM", "LIBSVM")] if name == "gain" else [cell]


def derive(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Divide LIBSVM's time of search and training by CI-SVM's."""
    ours, base = (group_cells(_TIME.format("*", method), distributions) for method in ("CI-SVM", "LIBSVM"))
    return {
        (name := f"gain/{key[0]}"): constant(name, base[key][0][1].median / points[0][1].median)
        for key, points in ours.items()
        if key in base
    }


def compare(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> Sequence[tuple[str, ...]]:
    """Show how far choices that the paper leaves open move the accuracies; they have no verdict."""
    lines = []
    for (group, pair), points in group_cells(
        "ci_svm_variants/differences/* mean/*//difference of accuracies", distributions
    ).items():
        start = f"ci_svm_variants/differences/{group} mean/{pair}//"
        searched, error, searched_error = (
            distributions[f"{start}{metric}"].median
            for metric in ("difference of searched accuracies", "standard error", "searched standard error")
        )
        lines.append((f"{group} {pair}", f"{points[0][1].median:+.3f} ({error:.3f})",
                      f"{searched:+.3f} ({searched_error:.3f})"))  # fmt: skip
    return lines


PAPER = read_paper(__package__, derive=derive, sources=sources, compare=compare)
