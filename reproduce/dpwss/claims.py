"""Statements of dpwss-2021, judged by our runs of Table 3's cells and by the printed numbers themselves."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import scipy.stats

from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name
from reproduce.engine.distributions import LEVELS, Distribution
from reproduce.engine.judging import STRONG_RATIO, Judgement, log_density
from reproduce.engine.printed import all_medians, cell_id
from reproduce.engine.statements import Claim, statement
from reproduce.engine.trends import MOST, NEARLY_ALL, UNDECIDED, WORDS, Estimate, judge_word, ratio, slope

CAPABILITY = ("AUC", "accuracy", "precision", "recall", "f1", "MCC")
METRICS = (*CAPABILITY, "objective", "iterations")
COLUMNS = TABLE3_SETTINGS["columns"]
# Columns by sigma at epsilon 1, and by epsilon at sigma 0.7.
BY_SIGMA, BY_EPSILON = slice(4), slice(3, None)
# The largest difference that the paper calls the same capability, and its bound on the error of the objective.
SAME, ERROR = 0.03, 2.0
# Sets on which a printed rate tells a whole count from a mean of five.
_SMALL = 1000
_RESULTS = "Section 5.3"


class Table3(NamedTuple):
    """Our runs of the printed cells: means of five runs, and single runs, by cell."""

    means: Mapping[str, Distribution]
    singles: Mapping[str, Distribution]

    def line(self, dataset: str, shrinking: int, columns: slice, metric: str) -> list[Distribution]:
        """Return the means along some columns; an empty list if one is missing."""
        cells = [cell_id(dataset, "DPWSS", setting_name(shrinking, column), metric) for column in COLUMNS[columns]]
        return [self.means[cell] for cell in cells] if all(cell in self.means for cell in cells) else []

    def base(self, dataset: str, shrinking: int, metric: str) -> Distribution | None:
        """Return the result of WSS2."""
        return self.means.get(cell_id(dataset, "WSS2", setting_name(shrinking, None), metric))

    def lines(self, columns: slice, metric: str) -> Iterator[tuple[str, Distribution, list[Distribution]]]:
        """Yield dataset, WSS2 and DPWSS for each dataset, with shrinking and without."""
        for dataset in TABLE3_SETTINGS["datasets"]:
            for shrinking in TABLE3_SETTINGS["shrinking"]:
                base, line = self.base(dataset, shrinking, metric), self.line(dataset, shrinking, columns, metric)
                if base is not None and line:
                    yield dataset, base, line


def _capability(table: Table3) -> list[Claim]:
    """Compare the classification capability of both methods, and of DPWSS's own columns."""
    gaps: list[tuple[float, str]] = []
    widths: dict[str, list[tuple[float, str]]] = {"epsilon": [], "sigma": []}
    for metric in CAPABILITY:
        for dataset, base, line in table.lines(slice(None), metric):
            name = f"{metric} of {dataset}"
            gaps += [(abs(item.median - base.median), name) for item in line]
            for key, columns in (("epsilon", BY_EPSILON), ("sigma", BY_SIGMA)):
                medians = [item.median for item in line[columns]]
                widths[key].append((max(medians) - min(medians), name))
    result = []
    for name, text, pairs in (
        ("three-per-cent", "no metric of Table 3 differs by more than 3 % between the methods", gaps),
        ("capability-epsilon", "classification capability is not affected by the randomness", widths["epsilon"]),
        ("capability-sigma", "classification capability is not affected by the filter sigma", widths["sigma"]),
    ):
        largest, where = max(pairs, default=(math.nan, ""))
        ours = f"largest difference of medians {largest:.4f} ({where}), of {len(pairs)}; the paper allows {SAME}"
        result.append(statement(name, _RESULTS, text, largest <= SAME if pairs else None, ours))
    return result


def _printed_capability(texts: Mapping[str, str]) -> Claim:
    """Compare the printed numbers of both methods."""
    gaps = []
    for cell, text in texts.items():
        dataset, method, setting, metric = cell.split("/")
        base = texts.get(cell_id(dataset, "WSS2", setting.partition(";")[0], metric))
        if method == "DPWSS" and metric in CAPABILITY and text and base:
            gaps.append((abs(float(text) - float(base)), cell))
    largest, where = max(gaps)
    return statement("three-per-cent-printed", _RESULTS, "the same in the paper's own Table 3", largest <= SAME,
                     f"largest printed difference {largest:.4f} ({where})")  # fmt: skip


def _objective(table: Table3) -> list[Claim]:
    gaps = [
        (abs(item.median - base.median), dataset)
        for dataset, base, line in table.lines(slice(None), "objective")
        for item in line
    ]
    within = sum(gap <= ERROR for gap, _ in gaps)
    beyond = sorted({dataset for gap, dataset in gaps if gap > ERROR})
    far = []
    for dataset in TABLE3_SETTINGS["datasets"]:
        cells = [cell_id(dataset, "DPWSS", f"shrinking=0;epsilon=1;sigma={sigma}", "objective") for sigma in (0.9, 0.7)]
        values = all_medians(table.means, [*cells, cell_id(dataset, "WSS2", "shrinking=0", "objective")])
        far += [(values[0] - values[2], values[1] - values[2])] if values else []
    missed = sum(error > ERROR for error, _ in far)
    here, before = (statistics.median(errors) for errors in zip(*far, strict=True)) if far else (0.0, 0.0)
    return [
        statement(
            "within-two", f"{_RESULTS}; Figures 2 to 5", "errors of the objective are nearly within two",
            within >= NEARLY_ALL * len(gaps) if gaps else None,
            f"{within} of {len(gaps)} medians; beyond on {', '.join(beyond) or 'none'}",
        ),
        statement(
            "sigma-far", _RESULTS,
            "at sigma 0.9 most violating pairs are filtered out and the final objective is not reached",
            missed > MOST * len(far) if far else None,
            f"error of the objective above two on {missed} of {len(far)} sets; median {here:.3g}, at .7 {before:.3g}",
        ),
    ]  # fmt: skip


def _slopes(table: Table3) -> list[Claim]:
    result = []
    sigmas = [column["sigma"] for column in COLUMNS[BY_SIGMA]]
    for name, text, metric, word in (
        ("error-slope", "with sigma the error of the objective tends to increase", "objective", "rises"),
        ("iterations-slope", "with sigma the iterations fall", "iterations", "falls"),
    ):
        verdicts = [judge_word(word, slope(sigmas, line)) for _, _, line in table.lines(BY_SIGMA, metric)]
        holds, fails = verdicts.count("agrees"), verdicts.count("refuted")
        ours = (
            f"slope over sigma with its 95 % interval {WORDS[word].meaning.removeprefix('a slope ')} in {holds} of "
            f"{len(verdicts)} lines, on the other side in {fails}"
        )
        decided = max(holds, fails) > MOST * len(verdicts)
        result.append(
            statement(name, _RESULTS, text, holds > fails if verdicts else None, ours, "" if decided else UNDECIDED)
        )
    return result


def _iterations(table: Table3) -> list[Claim]:
    """Judge the statements on how many iterations are saved."""
    result = []
    fewer = [item.median < base.median for _, base, line in table.lines(slice(None), "iterations") for item in line]
    result.append(
        statement("fewer-everywhere", _RESULTS, "fewer iterations than WSS2 on all datasets under all settings",
                  all(fewer) if fewer else None, f"fewer in {sum(fewer)} of {len(fewer)} settings")
    )  # fmt: skip
    figures = f"{_RESULTS}; Figures 6 to 21"
    by_dataset: dict[str, list[bool]] = {}
    for dataset, base, line in table.lines(slice(1, 2), "iterations"):
        by_dataset.setdefault(dataset, []).append(line[0].median < base.median)
    most = sum(all(values) for values in by_dataset.values())
    result.append(
        statement("iterations-0.3", figures, "from sigma .3 on, fewer iterations than WSS2 on most datasets",
                  most > MOST * len(by_dataset) if by_dataset else None,
                  f"fewer with shrinking and without on {most} of {len(by_dataset)}")
    )  # fmt: skip
    ratios = {
        dataset: ratio(line, [base] * len(line))
        for dataset, base, line in table.lines(BY_EPSILON, "iterations")
        if dataset != "ijcnn1"
    }
    verdicts = [judge_word("far less", estimate) for estimate in ratios.values()]
    middles = [estimate.middle for estimate in ratios.values()] or [0.0]
    undecided = "refuted" not in verdicts and "cannot discriminate" in verdicts
    result.append(
        statement(
            "iterations-0.7", figures, "at sigma .7, far fewer iterations on all datasets but ijcnn1",
            "refuted" not in verdicts if verdicts else None,
            f"{WORDS['far less'].meaning} on {verdicts.count('agrees')} of {len(verdicts)} sets; ratios "
            f"{min(middles):.2f} to {max(middles):.2f}",
            UNDECIDED if undecided else "",
        )
    )  # fmt: skip
    lines = [line for _, _, line in table.lines(BY_EPSILON, "iterations")]
    change = ratio([line[0] for line in lines], [line[-1] for line in lines]) if lines else Estimate(1.0, 0.0, 2.0)
    verdict = judge_word("little effect", change)
    result.append(
        statement(
            "epsilon-little", _RESULTS, "epsilon has little effect on iterations at a fixed sigma",
            verdict == "agrees" if lines else None,
            f"iterations at epsilon 1 over those at 0.1 {change}, over {len(lines)} lines; little is "
            f"{WORDS['little effect'].meaning}",
            UNDECIDED if verdict == "cannot discriminate" else "",
        )
    )  # fmt: skip
    return result


def _spread(item: Distribution) -> float:
    """Return the relative standard deviation of a run."""
    width = item.quantiles[LEVELS.index(0.975)] - item.quantiles[LEVELS.index(0.025)]
    return width / (2.0 * float(scipy.stats.norm.ppf(0.975))) / max(abs(item.median), 1e-12)


def _differ_little(table: Table3) -> Claim:
    spreads: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for dataset in TABLE3_SETTINGS["datasets"]:
        for shrinking in TABLE3_SETTINGS["shrinking"]:
            for column in COLUMNS:
                setting = setting_name(shrinking, column)
                cells = {metric: cell_id(dataset, "DPWSS", setting, metric) for metric in METRICS}
                if all(cell in table.singles for cell in cells.values()):
                    for metric, cell in cells.items():
                        spreads[metric].append(_spread(table.singles[cell]))
    runs = list(zip(*spreads.values(), strict=True))
    wins = sum(run[-1] == max(run) for run in runs)
    listed = ", ".join(
        f"{metric} {100 * statistics.median(values):.2g} %" for metric, values in spreads.items() if values
    )
    return statement(
        "runs-differ", _RESULTS, "runs with the same settings differ little, mainly in the iterations",
        wins > MOST * len(runs) if runs else None,
        f"iterations spread most in {wins} of {len(runs)} settings; median relative standard deviation of a run: "
        f"{listed}",
    )  # fmt: skip


def _imbalance(texts: Mapping[str, str], table: Table3) -> Claim:
    errors: dict[str, float] = {}
    for metric in CAPABILITY:
        for dataset, base, line in table.lines(BY_SIGMA, metric):
            largest = max(abs(item.median - base.median) for item in line)
            errors[dataset] = max(errors.get(dataset, 0.0), largest)
    pairs = [
        (abs(math.log(float(text))), error)
        for dataset, error in errors.items()
        if (text := texts.get(cell_id(dataset, "", "", "imbalance ratio")))
    ]
    text = "imbalance has little effect on the classification capability"
    if len(pairs) < 4:
        return statement("imbalance", _RESULTS, text, None, "")
    test = scipy.stats.spearmanr(*zip(*pairs, strict=True))
    ours = (
        f"rank correlation of imbalance and largest error {test.statistic:.2f} on {len(pairs)} sets, "
        f"p {test.pvalue:.2f}"
    )
    reason = "" if test.pvalue < 0.05 else "so few sets show a strong dependence only"
    return statement("imbalance", _RESULTS, text, False, ours, reason)


def _whole_counts(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> tuple[int, int]:
    """Count the printed accuracies and recalls of small sets that are whole numbers of rows, and all of them."""
    n_whole = total = 0
    for cell, text in texts.items():
        dataset, method, _, metric = cell.split("/")
        size = distributions.get(cell_id(dataset, "", "", "n_samples"))
        if method != "DPWSS" or metric not in ("accuracy", "recall") or not text or not size or size.median > _SMALL:
            continue
        imbalance = distributions[cell_id(dataset, "", "", "imbalance ratio")].median
        rows = size.median if metric == "accuracy" else round(size.median * imbalance / (1.0 + imbalance))
        total += 1
        n_whole += abs(float(text) * rows - round(float(text) * rows)) <= 0.5e-4 * rows + 1e-9
    return n_whole, total


def _means_of_five(texts: Mapping[str, str], table: Table3) -> Claim:
    """Tell single runs from means of five by whole counts and by the likelihood of all cells."""
    n_whole, total = _whole_counts(texts, table.means)
    gain, cells = 0.0, 0
    for cell, single in table.singles.items():
        if texts.get(cell) and single.statistic != "exact":
            value = float(texts[cell])
            gain += log_density(value, single) - log_density(value, table.means[cell])
            cells += 1
    ours = (
        f"{n_whole} of {total} printed accuracies and recalls on sets of at most {_SMALL} rows are whole counts, as "
        f"those of one run are; log likelihood of {cells} cells as single runs over means of five {gain:+.0f}"
    )
    holds = None if not cells or not total else not (n_whole == total and gain >= STRONG_RATIO)
    return statement(
        "means-of-five", f"{_RESULTS}; Table 3", "the numbers of Table 3 are averages of five runs", holds, ours
    )


def _privacy(distributions: Mapping[str, Distribution]) -> Claim:
    cells = [f"claim/privacy/{what}" for what in ("epsilon at least", "runs with the model",
                                                  "neighbour's runs with the model")]  # fmt: skip
    values = all_medians(distributions, cells)
    epsilon = COLUMNS[0]["epsilon"]
    ours = brief = ""
    if values:
        brief = f"epsilon is at least {values[0]:.1f} where {epsilon} is claimed, and infinite by an argument"
        ours = (
            f"two rows, one of which is replaced: the same model comes out in {values[1]:.0f} runs on one dataset and "
            f"in {values[2]:.0f} on the other, since the first variable and the only violating pair leave nothing to "
            f"chance; epsilon is at least {values[0]:.1f} where {epsilon} is claimed, by runs alone, and infinite by "
            "the argument"
        )
    return statement("privacy", "Abstract; Section 4.4", "the algorithm satisfies differential privacy",
                     values[0] <= epsilon if values else None, ours, brief=brief)  # fmt: skip


def _memory(distributions: Mapping[str, Distribution]) -> Claim:
    """Count the flags of Algorithm 2."""
    sizes = {
        dataset: item.median
        for dataset in TABLE3_SETTINGS["datasets"]
        if (item := distributions.get(cell_id(dataset, "", "", "n_samples")))
    }
    ours = ""
    if sizes:
        largest = max(sizes, key=lambda dataset: sizes[dataset])
        ours = (
            f"line 1 of Algorithm 2 sets up a flag for each pair: {sizes[largest] ** 2:.3g} flags for the "
            f"{sizes[largest]:.0f} rows of {largest}"
        )
    return statement("memory", "Section 4.4", "time and memory of DPWSS are O(l)", False if sizes else None, ours)


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Judge the statements of the text, on means of five runs and on single runs."""
    singles = {cell: item for cell, item in distributions.items() if cell.split("/")[1] in ("DPWSS", "WSS2")}
    means = {cell.removeprefix("mean/"): item for cell, item in distributions.items() if cell.startswith("mean/")}
    table = Table3({**distributions, **means}, singles)
    return [
        _privacy(distributions),
        _means_of_five(texts, table),
        *_capability(table),
        _printed_capability(texts),
        *_objective(table),
        *_slopes(table),
        *_iterations(table),
        _differ_little(table),
        _imbalance(texts, table),
        _memory(distributions),
        statement("milliseconds", "Section 5.2", "training takes milliseconds on most datasets", True, "",
                  "a time of other hardware"),
    ]  # fmt: skip
