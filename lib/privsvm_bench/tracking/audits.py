"""What MLflow gets to know about audits: claimed against audited epsilon, one run for each method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from privsvm.digests import canonical_json, sha256_of_json
from privsvm.privacy.guarantee import Status
from privsvm_bench.palette import looks_of
from privsvm_bench.records import AuditRecord
from privsvm_bench.tracking.runs import LAYOUT, CurveRun, MetricPoint, colour_of, curve_name

__all__ = ["AUDITS", "CONFIDENCE", "at_stated", "audit_runs", "chart"]

AUDITS = "claimed-against-audited"
"""In the name of the MLflow experiment, the place of a data set."""

# That of `privsvm.privacy.lower_bounds`, whose accountants are slow to import; a test compares them.
CONFIDENCE = 0.95

# Pixels of a chart, and of the space for the words beside its axes.
_SIDE, _MARGIN = 420, 60


def audit_runs(records: Sequence[AuditRecord], experiment: str) -> list[CurveRun]:
    """Work out what is to be logged of audits.

    Returns
    -------
    list of CurveRun
        A run for each method that has cells, with a step for each cell: its stated epsilon, the audited bound, its
        confidence and whether it refutes what is stated. `chart` of all methods is a file of each.
    """
    picture = chart(records)
    return [_run(record, experiment, picture) for record in records if record.cells]


def _run(record: AuditRecord, experiment: str, picture: str) -> CurveRun:
    status = _status(record)
    identity = {"layout": LAYOUT, "experiment": experiment, "audit": record, "chart": picture}
    curve = curve_name(record.method, status)
    parameters = {
        "curve": curve,
        "method": record.method,
        "implementation": record.implementation,
        "status": status,
        "confidence": f"{CONFIDENCE:g}",
        "neighbours": _distinct(cell.relation for cell in record.cells),
        "delta": _distinct(f"{cell.delta:g}" for cell in record.cells),
        "draws": _distinct(f"{cell.draws}" for cell in record.cells),
    }
    return CurveRun(
        experiment=experiment,
        dataset=AUDITS,
        method=record.method,
        key=sha256_of_json(identity),
        dataset_digest="",
        name=curve,
        parameters=parameters,
        tags={
            "guarantee": status,
            "refuted": "yes" if any(cell.refuted for cell in record.cells) else "no",
            "mlflow.runColor": colour_of(record.implementation, status),
        },
        metrics=tuple(_points(record)),
        timings=(),
        files={
            "audit.json": f"{canonical_json(record, indent=1)}\n",
            "card.md": _card(record, curve),
            "claimed_against_audited.svg": picture,
        },
    )


def _status(record: AuditRecord) -> Status:
    statuses = [cell.status for cell in record.cells]
    return "claimed" if "claimed" in statuses else statuses[0]


def _distinct(texts: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def at_stated(epsilon: float) -> str:
    """Name the metric of the bounds for one stated epsilon, so that no chart compares those for two."""
    return f"audited_at_epsilon_{epsilon:g}"


def _points(record: AuditRecord) -> Iterator[MetricPoint]:
    for epsilon in {cell.epsilon: None for cell in record.cells}:
        largest = max(cell.best.epsilon for cell in record.cells if cell.epsilon == epsilon)
        if math.isfinite(largest):
            yield MetricPoint(at_stated(epsilon), largest, 0)
    for step, cell in enumerate(record.cells):
        values = {
            "epsilon": cell.epsilon,
            "log10_epsilon": math.log10(cell.epsilon) if cell.epsilon > 0 else math.nan,
            "epsilon_with_system_noise": cell.epsilon_with_system_noise,
            "audited_epsilon": cell.best.epsilon,
            "audited_ceiling": cell.best.ceiling,
            "confidence": CONFIDENCE,
            "refuted": float(cell.refuted),
            "draws": float(cell.draws),
            **{f"audited_{bound.kind}": bound.epsilon for bound in cell.bounds},
        }
        yield from (MetricPoint(name, value, step) for name, value in values.items() if math.isfinite(value))


def _card(record: AuditRecord, curve: str) -> str:
    """Say in words what audits of a method found, with a line for each cell."""
    lines = [
        f"# Audit of {curve}",
        "",
        f"| neighbours | stated epsilon | status | at least, {CONFIDENCE:.0%} | by | can show | draws | refuted |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for cell in record.cells:
        best = cell.best
        lines.append(
            f"| {cell.relation} | {cell.epsilon:g} | {cell.status} | {best.epsilon:.4g} | {best.kind} | "
            f"{best.ceiling:.4g} | {cell.draws} | {'**yes**' if cell.refuted else 'no'} |"
        )
    lines += ["", *dict.fromkeys(f"Pair: {cell.pair}." for cell in record.cells), ""]
    return "\n".join([*lines, "A low bound proves nothing; one above the proof would mean that it is wrong.", ""])


def chart(records: Sequence[AuditRecord]) -> str:
    """Draw claimed against audited epsilon of all methods, with the diagonal and what the draws can show.

    Returns
    -------
    str
        An SVG picture that needs nothing else. Filled marks are of proved methods, hollow ones claimed; the bar above
        a mark ends at the ceiling of its bound.
    """
    from privsvm_bench.charts import GREY, MARKERS, PANEL, named, new_figure, style, svg_text

    values = [value for record in records for cell in record.cells for value in (cell.epsilon, cell.best.epsilon)]
    shown = [value for value in values if 0.0 < value < math.inf] or [0.1, 10.0]
    low, high = min(shown) / 1.5, max(shown) * 1.5
    title = f"Audited epsilon (at least, {CONFIDENCE:.0%}) against the stated one"
    with style():
        figure, (axes,) = new_figure(480, 480)
        axes.set_position((0.15, 0.125, 0.8, 0.8))
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), title=title, xlabel="stated epsilon")
        stated = sorted({cell.epsilon for record in records for cell in record.cells})
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(stated, [f"{epsilon:g}" for epsilon in stated])
        axes.minorticks_off()
        axes.plot([low, high], [low, high], color=GREY, linestyle="--")
        for record, look in zip(records, looks_of([record.implementation for record in records]), strict=True):
            colour = colour_of(record.implementation, _status(record)) if record.cells else look.light
            for cell in record.cells:
                # Nothing and certainty lie on the edges.
                lower, ceiling = (min(max(one, low), high) for one in (cell.best.epsilon, cell.best.ceiling))
                axes.plot([cell.epsilon] * 2, [lower, ceiling], color=colour, linewidth=1)
                inside = colour if cell.theorem_holds else PANEL
                (mark,) = axes.plot(
                    cell.epsilon, lower, MARKERS[look.symbol], color=colour, markerfacecolor=inside, markersize=9,
                    clip_on=False,
                )  # fmt: skip
                named(
                    mark,
                    f"{record.method}, {cell.relation}: stated {cell.epsilon:g} ({cell.status}), at least "
                    f"{cell.best.epsilon:.4g}{', refuted' if cell.refuted else ''}",
                )
        return svg_text(figure, title)
