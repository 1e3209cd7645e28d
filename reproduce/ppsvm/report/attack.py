"""Remarks 2.2 and 3.2: rows of an entity, recovered from known ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privsvm_bench.reproduction.comparison import Row, claim, explained
from privsvm_bench.reproduction.drawing import axis, scatter
from privsvm_bench.reproduction.experiment import Experiment, Figure, Outcome, Report, Result, Results, Table
from reproduce.ppsvm.experiments import attack_jobs
from reproduce.ppsvm.report.shared import KERNEL_NAMES

# An entry that is off by less, in standard deviations of its column, counts as recovered.
RECOVERED = 1e-8

_NOTES = [
    "Remarks 2.2 and 3.2 say that an entity's columns cannot be computed from its block. That counts unknowns, and "
    "leaves out what an attacker may know already. The block of a linear kernel is a linear function of the "
    "columns, and minus the logarithm of a Gaussian one nearly so: whoever knows as many rows as the entity has "
    "columns (Gaussian: one more) solves for it, and has all other rows. Those rows may be the attacker's own "
    "records, or customers that two entities share.",
    "It takes mbar of at least as many rows. The paper asks for mbar of at least all columns together, and takes a "
    "tenth of the rows.",
]


def attack_report(experiment: Experiment, results: Results) -> Report:
    """Tabulate what is recovered of each entity's rows from as many known ones as it has columns."""
    jobs = attack_jobs(experiment.settings)
    there = [(job, result) for name, job in jobs.items() if (result := results[name].numbers) is not None]
    possible = [(job, result) for job, result in there if _errors_at_rows_needed(result)]
    notes = list(_NOTES)
    if there:
        notes.append(f"Exact recovery is possible in {len(possible)} of {len(there)} settings of Tables 1 and 2.")
    return Report(
        tables=[
            Table(
                name="recovery",
                title="Rows recovered from known ones",
                caption="Largest error over all entries of all other rows and all entities, in standard deviations of "
                "the column, when just as many rows are known as are needed, chosen for being in general position. "
                f"The paper's remarks agree where that is above {RECOVERED:g}.",
                rows=[_recovery_row(job, results[name]) for name, job in jobs.items()],
            )
        ],
        figures=[_attack_figure(job, result) for job, result in possible if job["counts"] is None],
        notes=notes,
    )


def _errors_at_rows_needed(result: Result) -> list[float]:
    """Largest error of each entity that can be solved for."""
    return [
        entity["error_at_rows_needed"]
        for entity in result["entities"]
        if entity["possible"] and entity["error_at_rows_needed"] is not None
    ]


def _recovery_row(job: Mapping[str, Any], outcome: Outcome) -> Row:
    result, missing = outcome
    statement = "impossible to compute"
    labels = {"table": "recovery", "dataset": job["dataset"], "method": f"{KERNEL_NAMES[job['kernel']]} kernel",
             "setting": f"{job['entities']} entities", "metric": "largest error"}  # fmt: skip
    if result is None:
        return claim(labels, statement, None, False, missing=missing)
    entities, errors = result["entities"], _errors_at_rows_needed(result)
    widest = max(entity["rows_needed"] for entity in entities)
    if not errors:
        best = max(max(entity["max_error"]) for entity in entities)
        text = f"not exact: mbar {result['mbar']} is below the {widest} that are needed"
        return explained(claim(labels, statement, best, True), text)
    unread = sum(entity["unreadable_rows"] for entity in entities)
    text = f"from {widest} known rows at most, of {result['n_rows']}; mbar {result['mbar']}"
    if len(errors) < len(entities):
        text += f"; {len(errors)} of {len(entities)} entities"
    if unread:
        text += f"; {unread} rows cannot be read, over all entities"
    row = claim(labels, statement, max(errors), max(errors) > RECOVERED, text)
    return explained(row, text) if row.verdict == "within tolerance" else row


def _attack_figure(job: Mapping[str, Any], result: Result) -> Figure:
    data = [
        scatter("lines+markers", f"entity {position} ({entity['columns']} columns)", entity["known"],
                [max(value, 1e-17) for value in entity["max_error"]])
        for position, entity in enumerate(result["entities"])
    ]  # fmt: skip
    return Figure(
        title=f"{job['dataset']}, {job['entities']} entities, {KERNEL_NAMES[job['kernel']]} kernel",
        caption="Largest error over the other rows, in standard deviations, against the number of known ones.",
        data=data,
        layout={"xaxis": axis("known rows"), "height": 400,
                "yaxis": axis("largest error", type="log", exponentformat="power")},
    )  # fmt: skip
