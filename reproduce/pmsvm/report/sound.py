"""Table 2 again, at proved epsilons."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from privsvm.privacy.guarantee import STATUS_TEXT, theorem_holds
from privsvm_bench.reproduction.comparison import Missing, Published, Row, Rule, claim, compare
from privsvm_bench.reproduction.drawing import axis, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Report, Results, Settings, Table
from reproduce.pmsvm.experiments import sound_jobs
from reproduce.pmsvm.report.shared import (
    WEIGHT_METHODS,
    against_published,
    colour_of,
    printed_accuracy,
    range_text,
    spread_of,
)

BOTH = ("PMSVM-GP", "PMSVM-AGP")

# Dataset and setting, to the accuracies of each method.
_Cells = dict[tuple[str, str], dict[str, list[float]]]
# Dataset, method and setting, to the reason why nothing is proved.
_Claims = dict[tuple[str, str, str], str]


def sound_report(experiment: Experiment, results: Results) -> Report:
    """Accuracies at proved epsilons beside the printed ones."""
    settings, published = experiment.settings, experiment.published()
    rows: list[Row] = []
    cells: _Cells = {}
    fixed: _Cells = {}
    gone: dict[str, Missing] = {}
    claims: _Claims = {}
    n_proofs = n_claims = 0
    for job, parameters in sound_jobs(settings).items():
        result, missing = results[job]
        dataset, method = parameters["dataset"], parameters["method"]
        if missing and method in BOTH:
            gone[dataset] = missing
        for index, epsilon in enumerate(settings["epsilons"]):
            setting = f"epsilon={epsilon:g}"
            if result is not None:
                reason = _check_record(result["records"][index], epsilon, f"{dataset}, {method}, {setting}")
                if reason is None:
                    n_proofs += 1
                else:
                    n_claims += 1
                    claims[dataset, method, setting] = reason
                cells.setdefault((dataset, setting), {})[method] = result["accuracies"][index]
                fixed.setdefault((dataset, setting), {})[method] = result["paper split"][index]
            values = None if result is None else result["accuracies"][index]
            name = method.removesuffix(" (naive)")
            claimed = (dataset, method, setting) in claims
            rows.append(_sound_row(published, (dataset, name, setting), method, values, missing, claimed))
    better, summary = _better_rows("better", settings, published, cells, gone, claims)
    alike, alike_summary = _better_rows("paper's split", settings, published, fixed, gone, claims)
    return Report(
        tables=[
            Table(
                name="better",
                title="The better of PMSVM-GP and PMSVM-AGP, ours by a proved method, the paper's as printed",
                caption="Mean over 20 splits that are not stratified, epsilon for add_remove with delta 1e-5 and "
                "system noise (this noise is seeded), except where a setting says claimed; "
                "features scaled by public bounds or at the expense of the budget. Agrees where ours is at least the "
                "printed number minus its standard deviation. The paper's is one split with scaling by private rows.",
                rows=better,
            ),
            Table(
                name="paper's split",
                title="The same on the paper's one split",
                caption="Five draws of noise on the split with seed 42, as in the paper.",
                rows=alike,
            ),
            Table(
                name="summary",
                title="Cells at least equal",
                caption="Of those that could be run. Agrees where more than half are at least the printed number.",
                rows=[*summary, *alike_summary],
            ),
            Table(
                name="methods",
                title="All methods, at their epsilon with system noise",
                caption="Where a setting says claimed, the noise is the same and nothing is proved. Agrees where ours "
                "is at least the printed number minus its standard deviation. The printed "
                "epsilon of weight perturbation does not hold (see pmsvm_table2), so those numbers compare unequal "
                "privacy. What has no printed number is a baseline that the paper does not have: joint composition "
                "spends the budget once for all classes.",
                rows=rows,
            ),
        ],
        figures=[*_sound_figures(settings, cells, claims), *against_published("Sound methods", rows)],
        notes=[
            f"{n_proofs + n_claims} records were checked: for {n_proofs} a theorem holds, and epsilon with system "
            f"noise is at most the requested one; {n_claims} say claimed."
            if n_proofs + n_claims
            else "No record was checked.",
            *_claims_in_words(claims),
            "Dermatology is used in grades and years, scaled by public bounds. The gradient methods and Linear take "
            "Vehicle as it was measured and pay for the scale of its features out of the budget; the others take the "
            "publisher's file in [-1, 1], whose scaling looked at all rows, so that nothing is proved for them.",
            "PMSVM-GP, PMSVM-AGP and Linear have one rule for all datasets, which knows public numbers only: 60 steps "
            "over all rows, a learning rate from epsilon, rows and steps, the average of the last 30 iterates, a noisy "
            "centre for a tenth of the budget, or, for Vehicle, noisy centres, spreads and second moments for four "
            "tenths. The rule was found on other splits of the same rows, after two looks at these, and the C of the "
            "other methods on test rows, as in the paper: neither selection is charged.",
            "Tried without gain: batches of a tenth of the rows, 30 to 100 steps, momentum, falling learning rates, a "
            "margin regulariser, Adam's usual beta1 of 0.9. Without the noisy centre, accuracies on Dermatology and "
            "ISOLET fall by 0.01 to 0.10; without whitening, those on Vehicle by about 0.02.",
        ],
    )  # fmt: skip


def _check_record(record: Mapping[str, Any], epsilon: float, where: str) -> str | None:
    """Return why nothing is proved, None for a proof; refuse a proof above the epsilon that was asked for."""
    if theorem_holds(record["status"]):
        # Records of the first version have one epsilon.
        proved = record.get("epsilon_with_system_noise", record["epsilon_proved"])
        if proved > epsilon * (1 + 1e-9):
            raise ValueError(f"{where}: the proved epsilon {proved:g} exceeds the requested one")
        return None
    if record["status"] != "claimed" or not record["reason"]:
        raise ValueError(f"{where}: status {record['status']} and no reason")
    return str(record["reason"])


def _claims_in_words(claims: _Claims) -> list[str]:
    """Say for which datasets and methods nothing is proved, one note for each reason."""
    members: dict[str, dict[str, list[str]]] = {}
    for (dataset, method, _), reason in claims.items():
        members.setdefault(reason, {}).setdefault(dataset, []).append(method)
    return [
        f"Claimed, since {reason}: "
        + "; ".join(f"{dataset} ({', '.join(dict.fromkeys(methods))})" for dataset, methods in values.items())
        + "."
        for reason, values in members.items()
    ]


def _at_least(spread: float) -> Rule:
    return Rule(
        "at least the printed number minus its standard deviation",
        lambda printed, ours: ours >= printed - spread - 1e-9,
    )


def _sound_row(
    published: Published,
    key: tuple[str, str, str],
    method: str,
    values: Sequence[float] | None,
    missing: Missing | None,
    claimed: bool,
) -> Row:
    printed, spread = printed_accuracy(published, *key)
    setting = f"{key[2]}, claimed" if claimed else key[2]
    labels = {"table": "methods", "dataset": key[0], "method": method, "setting": setting, "metric": "accuracy"}

    def why() -> str:
        if key[1] in WEIGHT_METHODS:
            return (
                "the printed epsilon does not hold: here rows have norm 1 and the noise is what epsilon needs; "
                f"{range_text(values or [])}"
            )
        return (
            "one split, features scaled by private rows and other constants in the paper; "
            f"{range_text(values or [])} over splits"
        )

    return compare(
        labels, printed, None if values is None else statistics.fmean(values), _at_least(spread), why, missing
    )


def _better_rows(
    table: str,
    settings: Settings,
    published: Published,
    cells: _Cells,
    gone: Mapping[str, Missing],
    claims: _Claims,
) -> tuple[list[Row], list[Row]]:
    """Rows of the better of the two gradient methods, and how many are at least equal."""
    rows = [
        _better_row(table, published, dataset, f"epsilon={epsilon:g}", cells, gone, claims)
        for dataset in settings["datasets"]
        for epsilon in settings["epsilons"]
    ]
    compared = [row for row in rows if row.difference is not None]
    equal = sum((row.difference or 0.0) >= -0.0005 for row in compared)
    share = equal / len(compared) if compared else None
    labels = {"table": "summary", "dataset": "all", "method": "better of both",
             "setting": f"{table}, {len(compared)} cells", "metric": "share at least equal"}  # fmt: skip
    most = share is not None and share > 0.5
    return rows, [claim(labels, "most", share, most, f"{equal} of {len(compared)}")]


def _better_row(
    table: str,
    published: Published,
    dataset: str,
    setting: str,
    cells: _Cells,
    gone: Mapping[str, Missing],
    claims: _Claims,
) -> Row:
    printed = [printed_accuracy(published, dataset, method, setting) for method in BOTH]
    best, spread = max(printed, key=lambda pair: float(pair[0] or "-1"))
    outcome = {name: accuracies for name, accuracies in cells.get((dataset, setting), {}).items() if name in BOTH}
    means = {name: statistics.fmean(accuracies) for name, accuracies in outcome.items()}
    ours = max(means, key=means.__getitem__) if means else ""
    values = outcome.get(ours, [])
    return compare(
        {"table": table, "dataset": dataset, "method": ours or "better of both",
         "setting": f"{setting}, claimed" if (dataset, ours, setting) in claims else setting, "metric": "accuracy"},
        best,
        means.get(ours),
        _at_least(spread),
        f"lower by more than the printed standard deviation of {spread:g}, which is that of the noise on "
        f"one split; over our {len(values)} runs it is {spread_of(values) if values else 0:.3f}",
        gone.get(dataset),
    )  # fmt: skip


def _sound_figures(settings: Settings, cells: _Cells, claims: _Claims) -> list[Figure]:
    """Accuracy against epsilon of all methods, for each dataset."""
    fallen = {key[:2] for key in claims}
    figures = []
    for dataset in settings["datasets"]:
        data = [
            trace
            for method in settings["methods"]
            for trace in _sound_trace(settings, cells, dataset, method, (dataset, method) in fallen)
        ]
        if data:
            figures.append(
                Figure(
                    title=f"{dataset}: accuracy against epsilon",
                    caption="Proved methods with seeded noise, except what is grey and dashed: claimed. "
                    f"Mean and standard deviation over {len(settings['splits'])} splits.",
                    data=data,
                    layout={"xaxis": axis("epsilon (add_remove)", type="log", tickvals=settings["epsilons"]),
                            "yaxis": axis("accuracy", range=[0, 1]), "height": 420,
                            "legend": {"orientation": "h", "y": -0.28}},
                )
            )  # fmt: skip
    return figures


def _sound_trace(settings: Settings, cells: _Cells, dataset: str, method: str, claimed: bool) -> list[dict[str, Any]]:
    """Draw one method on one dataset, where it has run."""
    points = {
        epsilon: cells[dataset, f"epsilon={epsilon:g}"][method]
        for epsilon in settings["epsilons"]
        if method in cells.get((dataset, f"epsilon={epsilon:g}"), {})
    }
    if not points:
        return []
    bars = {"type": "data", "array": [spread_of(values) for values in points.values()], "thickness": 1, "width": 2}
    line = {"color": colour_of(method), "dash": "dot" if "(naive)" in method else "solid", "width": 1.4}
    if claimed:
        line = {"color": "#83878e", "dash": "dash", "width": 1.4}
    name = f"{method} — {STATUS_TEXT['claimed' if claimed else 'seeded']}"
    means = [statistics.fmean(values) for values in points.values()]
    return [scatter("lines+markers", name, points, means, error_y=bars, line=line)]
