"""Two settings side by side: differences over the same splits, with an interval."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from privsvm.errors import PrivSVMError
from privsvm_bench.metrics import METRICS, mean_of_known
from privsvm_bench.records import Result, Worth, read_results

if TYPE_CHECKING:
    import pandas as pd

# Folders of the benchmark's results: of the catalogue's datasets, and of own data.
_RESULTS = ("data/results", "data/private/results")
# Confidence of the intervals.
_LEVEL = 0.95
_STATUSES = "claimed: nothing proves the epsilon; refuted: the method reveals more than the epsilon that is struck out"


@dataclasses.dataclass(frozen=True)
class Difference:
    """One metric of two results at one epsilon, paired by split.

    `first` and `second` are means over the splits. `mean` is the mean of the second less the first, in an interval from
    `low` to `high`, which is infinite for a single split. `epsilon` is infinite if neither result states one;
    `worths` are its worth to each of them.
    """

    dataset: str
    epsilon: float
    worths: tuple[Worth, Worth]
    first: float
    second: float
    low: float
    mean: float
    high: float


def read_settings(*names: str | os.PathLike[str]) -> list[dict[str, Result]]:
    """Read the results that words of the command line mean, by dataset, with the witnesses of audits.

    A name is a result file, a folder of them, or a method of the benchmark that ran here. Raises PrivSVMError if there
    are none.
    """
    files = [_result_files(name) for name in names]
    audits = audit_files(path for paths in files for path in paths)
    return [{result.dataset: result for result in read_results(paths, audits)} for paths in files]


def _result_files(name: str | os.PathLike[str]) -> list[Path]:
    if Path(name).is_file():
        return [Path(name)]
    for places in ([Path(name)], [Path(folder, name) for folder in _RESULTS]):
        files = [path for place in places for path in sorted(place.glob("*.json"))]
        if files:
            return files
    raise PrivSVMError(
        f"{name}: no result file, folder of results, or method in {' or '.join(_RESULTS)}; run `make run` first"
    )


def audit_files(results: Iterable[Path]) -> list[Path]:
    """List the audits of the methods of result files, as far as they are here."""
    files = [Path("data/audits", f"{name}.json") for name in sorted({path.parent.name for path in results})]
    return [path for path in files if path.is_file()]


def _over_repeats(result: Result, metric: str, index: int) -> list[float | None]:
    """Mean over the repeats of each split."""
    return [mean_of_known(split[index]) for split in result.metrics.get(metric, ())]


def _pair_splits(
    first: Result, second: Result, metric: str, epsilon: float, epsilon_indices: tuple[int, int]
) -> Difference | None:
    pairs = [
        (one, other)
        for one, other in zip(
            _over_repeats(first, metric, epsilon_indices[0]),
            _over_repeats(second, metric, epsilon_indices[1]),
            strict=True,
        )
        if one is not None and other is not None
    ]
    if not pairs:
        return None
    gaps = [other - one for one, other in pairs]
    mean, half = statistics.fmean(gaps), math.inf
    if len(gaps) > 1:
        from scipy.stats import t

        # Training sets overlap, so splits are not independent (Nadeau and Bengio 2003).
        overlap = (first.n_test or 0) / first.n_train if first.n_train else 0.0
        variance = statistics.variance(gaps) * (1 / len(gaps) + overlap)
        half = float(t.ppf((1 + _LEVEL) / 2, len(gaps) - 1)) * math.sqrt(variance)
    return Difference(
        dataset=first.dataset,
        epsilon=epsilon,
        worths=(first.worth(epsilon_indices[0]), second.worth(epsilon_indices[1])),
        first=statistics.fmean(one for one, _ in pairs),
        second=statistics.fmean(other for _, other in pairs),
        low=mean - half,
        mean=mean,
        high=mean + half,
    )


def compare(first: Mapping[str, Result], second: Mapping[str, Result], metric: str = "accuracy") -> list[Difference]:
    """Compare two settings on all datasets and epsilons that both have, ordered by dataset and epsilon.

    `first` and `second` are results by dataset. A setting without epsilon is compared at every epsilon of the other
    one. Raises PrivSVMError if nothing can be compared: an unknown metric, no common dataset, or other rows or splits.
    """
    if metric not in METRICS:
        raise PrivSVMError(f"--metric {metric}: must be one of {', '.join(METRICS)}")
    differences = []
    for dataset in sorted(first.keys() & second.keys()):
        one, other = first[dataset], second[dataset]
        if (one.dataset_digest, one.n_splits) != (other.dataset_digest, other.n_splits):
            raise PrivSVMError(
                f"{dataset}: {one.method} and {other.method} were not run on the same splits of the same rows; run "
                "both again with one params.yaml"
            )
        for epsilon in sorted({*one.epsilons, *other.epsilons}):
            epsilon_indices = tuple(
                0 if result.is_reference else result.epsilons.index(epsilon)
                for result in (one, other)
                if result.is_reference or epsilon in result.epsilons
            )
            # Two references meet at infinity, a reference and a curve at the epsilons of the curve.
            if len(epsilon_indices) == 2 and (math.isfinite(epsilon) or (one.is_reference and other.is_reference)):
                difference = _pair_splits(one, other, metric, epsilon, (epsilon_indices[0], epsilon_indices[1]))
                differences += [] if difference is None else [difference]
    if not differences:
        raise PrivSVMError("compare: the two have no data set and epsilon in common; name two that have")
    return differences


def _epsilon(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else "none"


def _table(names: tuple[str, str], differences: Sequence[Difference], strike: str) -> pd.DataFrame:
    """Lay out differences as text, in points, each mean beside its status; `strike` encloses a refuted epsilon."""
    import pandas as pd

    rows = []
    for one in differences:
        interval = f"{100 * one.low:+.1f} to {100 * one.high:+.1f}" if math.isfinite(one.low) else "one split: unknown"
        sure = "" if one.low <= 0 <= one.high else "*"
        struck = f"{strike}{_epsilon(one.epsilon)}{strike} refuted"
        statuses = [struck if worth == "refuted" else worth for worth in one.worths]
        means = f"{100 * one.first:.1f}", statuses[0], f"{100 * one.second:.1f}", statuses[1]
        rows.append((one.dataset, _epsilon(one.epsilon), *means, f"{100 * one.mean:+.1f}", interval, sure))
    columns = ("data set", "epsilon", names[0], "status", names[1], "status", "difference", "interval", "")
    return pd.DataFrame(rows, columns=columns)


def comparison_text(names: tuple[str, str], differences: Sequence[Difference], metric: str) -> str:
    """Write the differences for a terminal, in points."""
    title = f"{metric}, in points: {names[1]} less {names[0]}, paired over splits, {_LEVEL:.0%} interval"
    table = _table(names, differences, "~").set_index("data set").rename_axis(None)
    note = "* the interval does not contain 0; about one star in twenty is chance"
    return f"{title}\n\n{table.to_string()}\n\n{note}\n{_STATUSES}"


def comparison_latex(names: tuple[str, str], differences: Sequence[Difference], metric: str) -> str:
    """Write the differences as a LaTeX table; needs the package booktabs."""
    table = _table(names, differences, "\0").iloc[:, :-1]
    table.iloc[:, -2:] = table.iloc[:, -2:].apply(lambda column: column.str.replace("-", "\N{MINUS SIGN}"))
    style = table.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    note = f"% {metric} in percent; differences in points, paired over splits, with their {_LEVEL:.0%} interval\n"
    text = style.to_latex(hrules=True, column_format="llrlrlrr")
    # Struck out by plain TeX, without a further package.
    return f"{note}% {_STATUSES}\n" + re.sub(
        "\0(.*?)\0", r"{\\ooalign{\1\\cr\\leaders\\hrule height .65ex depth -.57ex\\hfil\\cr}}", text
    )


def comparison_svg(names: tuple[str, str], differences: Sequence[Difference], metric: str) -> str:
    """Draw the differences with their intervals, one line each: dashed and hollow unless both epsilons are proved."""
    from privsvm_bench.charts import BLUE, PANEL, RED, SOFT, named, new_chart, style, svg_text
    from privsvm_bench.palette import CLAIMED

    title = f"{metric}: {names[1]} less {names[0]}, points, {_LEVEL:.0%} interval"
    with style():
        figure, axes = new_chart(820, 80 + 22 * len(differences), left=190, right=200, bottom=36, top=34)
        axes.set_yticks(range(len(differences)), [f"{one.dataset}, ε {_epsilon(one.epsilon)}" for one in differences])
        axes.set(title=title, ylim=(len(differences) - 0.4, -0.6))
        axes.axvline(0, color=SOFT, linestyle="--", linewidth=1)
        for row, one in enumerate(differences):
            ends = [100 * (end if math.isfinite(end) else one.mean) for end in (one.low, one.high)]
            is_claim = not {"claimed", "refuted"}.isdisjoint(one.worths)
            colour, dashes = (CLAIMED, "--") if is_claim else (BLUE, "-")
            axes.plot(ends, [row, row], color=colour, linestyle=dashes)
            words = f"{one.worths[1]} less {one.worths[0]}"
            inside = PANEL if is_claim else BLUE
            (point,) = axes.plot(100 * one.mean, row, "o", color=colour, markerfacecolor=inside)
            named(point, f"{100 * one.mean:+.1f}, {words}")
            ink = RED if "refuted" in one.worths else CLAIMED if is_claim else SOFT
            axes.text(1.02, row, words, transform=axes.get_yaxis_transform(), va="center", color=ink)
        return svg_text(figure, title)
