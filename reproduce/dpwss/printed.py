"""The numbers and statements that dpwss-2021 prints, and what is known of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm_bench.reproduction.distributions import Distribution, decimals_of
from privsvm_bench.reproduction.judging import CENTRAL, Judgement, Printed, log_density, percentile, two_sided
from privsvm_bench.reproduction.printed import Claim, Comparison, Paper, all_medians, cell_id, numbers_of
from reproduce.dpwss.chosen import CHOSEN
from reproduce.dpwss.experiments import TABLE3_SETTINGS, setting_name
from reproduce.dpwss.readings import DATASETS as READING_DATASETS
from reproduce.dpwss.readings import READINGS, SELECTIONS
from reproduce.dpwss.trends import trend_claims

METRICS = ("AUC", "accuracy", "precision", "recall", "f1", "MCC", "objective", "iterations")
ABSENT = {"gisette": "gisette_scale cannot be had here", "rcv1": "rcv1_train.binary cannot be had here"}

# What keeps a set from being drawn, measured on the machine of the committed draws.
LONG = {"ijcnn1": "not drawn: four runs of a setting take 50 to 100 s of processor time"}


def _place(row: Mapping[str, str]) -> dict[str, Any]:
    dataset, method, setting, metric = (row[key] for key in ("dataset", "method", "setting", "metric"))
    found: dict[str, Any] = {"missing": ABSENT.get(dataset, "")}
    if row["source"] == "Table 3":
        shrinking = setting.partition(";")[0]
        first = setting_name(int(shrinking[-1]), TABLE3_SETTINGS["columns"][0])
        # The other method's column.
        other = (dataset, "WSS2", shrinking) if method == "DPWSS" else (dataset, "DPWSS", first)
        column = ", ".join(part for part in setting.split(";")[1:])
        found |= {"rule": f"Table 3, {method}{column and f' {column}'}: {metric}", "neighbour": cell_id(*other, metric)}
        if column:
            found["group"] = f"Table 3, {column.partition(', ')[2]}: {metric}"
        found["family"] = f"Table 3, {method}"
    else:
        names = list(TABLE3_SETTINGS["datasets"])
        found["neighbour"] = cell_id(names[names.index(dataset) - 1], method, setting, metric)
    return found


def numbers(rows: Sequence[Mapping[str, str]]) -> list[Printed]:
    """List all cells of Tables 2 and 3; those lost in our copy have no text."""
    known = {(row["dataset"], row["method"], row["setting"], row["metric"]) for row in rows}
    lost = []
    for dataset in TABLE3_SETTINGS["datasets"]:
        for shrinking in TABLE3_SETTINGS["shrinking"]:
            for column in (None, *TABLE3_SETTINGS["columns"]):
                for metric in METRICS:
                    key = (dataset, "DPWSS" if column else "WSS2", setting_name(shrinking, column), metric)
                    if key not in known:
                        values = dict(zip(("dataset", "method", "setting", "metric"), key, strict=True))
                        lost.append({"source": "Table 3", **values, "value": ""})
    found = numbers_of([*rows, *lost], _place)
    return [own if own.text else _lost(own) for own in found]


def _lost(own: Printed) -> Printed:
    import dataclasses

    return dataclasses.replace(
        own, missing="; ".join(part for part in (own.missing, "lost in our copy of the paper") if part)
    )


def reading(judgement: Judgement) -> str:
    """Say what is known of a cell."""
    own, item = judgement.printed, judgement.distribution
    if judgement.verdict == "not judged yet" and own.dataset in LONG:
        return LONG[own.dataset]
    if judgement.verdict not in ("unlikely", "refuted") or item is None:
        return ""
    if own.metric == "n_features":
        return f"features up to the last that is not always zero: {item.median:g}"
    if own.method == "WSS2":
        return f"LIBSVM's steps give {item.median:.7g}; the table file of dpwss_table3 says why where we know"
    side = "above" if float(own.text) > item.median else "below"
    if own.metric == "objective":
        word = "worse" if side == "above" else "better"
        return f"the printed objective is {side} our median: {word} than ours"
    return f"the printed number is {side} our median"


def _claim(name: str, source: str, text: str, holds: bool | None, ours: str) -> Claim:
    verdict = "not judged yet" if holds is None else "agrees" if holds else "refuted"
    return Claim(id=name, source=source, text=text, verdict=verdict, ours=ours)


def claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    """Check what the text says of all datasets, on our medians."""
    found = []
    ours = {name: item.median for name, item in distributions.items()}

    def line(dataset: str, shrinking: int, columns: slice, metric: str) -> list[float]:
        """Medians along some columns."""
        chosen = TABLE3_SETTINGS["columns"][columns]
        cells = [cell_id(dataset, "DPWSS", setting_name(shrinking, column), metric) for column in chosen]
        return all_medians(distributions, cells)

    def pairs(metric: str, sigma: float | None = None) -> list[tuple[str, float, float]]:
        """Dataset, DPWSS and WSS2 for each setting."""
        result = []
        for name, value in ours.items():
            dataset, method, setting, own = name.split("/")
            shrinking = setting.partition(";")[0]
            base = ours.get(cell_id(dataset, "WSS2", shrinking, metric))
            if (
                method == "DPWSS"
                and own == metric
                and base is not None
                and (sigma is None or setting.endswith(f"sigma={sigma:g}"))
            ):
                result.append((dataset, value, base))
        return result

    errors = [(abs(value - base), name, metric) for metric in METRICS[:6] for name, value, base in pairs(metric)]
    worst = max(errors, default=None)
    found.append(
        _claim("three-per-cent", "Section 5.3", "no metric of Table 3 differs by more than 3 % between the methods",
               None if worst is None else worst[0] <= 0.03,
               "" if worst is None else f"largest difference of medians {worst[0]:.4f} ({worst[2]} of {worst[1]})")
    )  # fmt: skip
    printed = [
        (abs(float(text) - float(texts[base])), name)
        for name, text in texts.items()
        for dataset, method, setting, metric in [name.split("/")]
        if method == "DPWSS" and metric in METRICS[:6] and text
        for base in [cell_id(dataset, "WSS2", setting.partition(";")[0], metric)]
        if texts.get(base)
    ]
    largest = max(printed, default=None)
    found.append(
        _claim("three-per-cent-printed", "Section 5.3", "the same in the paper's own Table 3",
               None if largest is None else largest[0] <= 0.03,
               "" if largest is None else f"largest printed difference {largest[0]:.4f} ({largest[1]})")
    )  # fmt: skip
    gaps = [(abs(value - base), name) for name, value, base in pairs("objective")]
    beyond = sorted({name for gap, name in gaps if gap > 2.0})
    found.append(
        _claim("within-two", "Section 5.3; Figures 2 to 5", "errors of the objective are nearly within two",
               None if not gaps else statistics.quantiles([gap for gap, _ in gaps], n=20)[-1] <= 2.0,
               f"{sum(gap <= 2.0 for gap, _ in gaps)} of {len(gaps)} medians; beyond on {', '.join(beyond) or 'none'}")
    )  # fmt: skip
    rises = []
    for shrinking in (1, 0):
        for dataset in TABLE3_SETTINGS["datasets"]:
            row = line(dataset, shrinking, slice(4), "objective")
            if row:
                rises.append(row[-1] > row[0])
    found.append(
        _claim("error-rises", "Section 5.3; Figures 2 to 5", "the error of the objective tends to rise with sigma",
               None if not rises else sum(rises) > 0.5 * len(rises),
               f"sigma .7 above sigma .1 in {sum(rises)} of {len(rises)}")
    )  # fmt: skip
    for sigma, source, text, need in (
        (0.3, "Section 5.3; Figures 6 to 21", "from sigma .3 on, fewer iterations than WSS2 on most datasets", 0.5),
        (0.7, "Section 5.3; Figures 6 to 21", "at sigma .7, far fewer iterations on all datasets but ijcnn1", 1.0),
    ):
        by_dataset: dict[str, list[float]] = {}
        for name, value, base in pairs("iterations", sigma):
            by_dataset.setdefault(name, []).append(value / base)
        by_dataset.pop("ijcnn1" if sigma == 0.7 else "", None)
        fewer = [name for name, ratios in by_dataset.items() if max(ratios) < 1.0]
        holds = None if not by_dataset else len(fewer) > need * len(by_dataset) - (need == 1.0)
        found.append(
            _claim(
                f"iterations-{sigma:g}",
                source,
                text,
                holds,
                f"fewer in every setting on {len(fewer)} of {len(by_dataset)}",
            )
        )
    spreads = []
    for dataset in TABLE3_SETTINGS["datasets"]:
        for shrinking in (1, 0):
            row = line(dataset, shrinking, slice(3, None), "iterations")
            if row:
                spreads.append((max(row) - min(row)) / statistics.median(row))
    found.append(
        _claim("epsilon-little", "Section 5.3", "epsilon has little effect on iterations at a fixed sigma",
               None if not spreads else statistics.median(spreads) <= 0.1,
               "" if not spreads else f"median range {100 * statistics.median(spreads):.0f} % of the iterations")
    )  # fmt: skip
    return found


def _all_claims(
    texts: Mapping[str, str], judgements: Mapping[str, Judgement], distributions: Mapping[str, Distribution]
) -> list[Claim]:
    return [*claims(texts, judgements, distributions), *trend_claims(texts, distributions)]


def comparisons(texts: Mapping[str, str], distributions: Mapping[str, Distribution]) -> list[Comparison]:
    """Compare the printed columns of sigma 0.7 without shrinking with each reading of the text."""
    lines = []
    likelihoods: dict[str, float] = {}
    for name in (*READINGS, *CHOSEN, *SELECTIONS):
        counts = {metric: [0, 0, 0, 0] for metric in ("objective", "iterations")}
        likelihood = 0.0
        for dataset in READING_DATASETS:
            for epsilon in ("1", "0.5", "0.1"):
                for metric, own in counts.items():
                    printed = texts.get(f"{dataset}/DPWSS/shrinking=0;epsilon={epsilon};sigma=0.7/{metric}")
                    item = distributions.get(f"{name}/{dataset}/{epsilon}/{metric}")
                    if not printed or item is None:
                        continue
                    value, unit = float(printed), 10.0 ** -decimals_of(printed)
                    place = percentile(value, unit, item)
                    own[0] += 1
                    own[1] += two_sided(value, unit, item) >= 1.0 - CENTRAL
                    own[2] += place < 0.5
                    own[3] += place > 0.5
                    likelihood += log_density(value, item)
        if counts["objective"][0]:
            likelihoods[name] = likelihood
            cells = [part for own in counts.values() for part in (f"{own[1]} of {own[0]}", f"{own[2]} / {own[3]}")]
            lines.append((name, *cells))
    base = likelihoods.get("to the letter", 0.0)
    full = [(*line, f"{likelihoods[line[0]] - base:+.0f}") for line in lines]
    if not full:
        return []
    return [
        Comparison(
            title="Readings of the text at sigma .7",
            caption="Printed objectives and iterations without shrinking on sets of at most 1,000 rows, under each "
            "reading of what the text leaves open: how many lie inside the central 95 %, how many below and above the "
            "median, and the log likelihood of all of them over that of the text to the letter. The printed numbers "
            "are taken as means of five runs; by the last readings they are of one run that was chosen.",
            columns=(
                "Reading",
                "Objectives inside",
                "below / above",
                "Iterations inside",
                "below / above",
                "Log likelihood",
            ),
            lines=full,
        )
    ]


PAPER = Paper(
    name="dpwss",
    title="DPWSS (Sun et al., PeerJ Computer Science 2021)",
    numbers=numbers,
    reading=reading,
    claims=_all_claims,
    comparisons=comparisons,
    experiments=("dpwss_exact", "dpwss_table3", "dpwss_readings", "dpwss_sigma"),
    notes=(
        "Numbers of DPWSS are printed as means of five runs; each is judged by the distribution of such means. Those "
        "of WSS2 are exact, and agree if every printed digit does.",
    ),
)
