"""The report: an overview and a page for each data set, which make no network request."""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from privsvm.errors import without_absolute_paths
from privsvm.privacy.statement import STATUSES, theorem_holds
from privsvm_bench.charts import audit_bars
from privsvm_bench.palette import COLOURS, SYMBOLS, Look, looks_of
from privsvm_bench.records import (
    Attack,
    AuditRecord,
    CondensedRowsAttack,
    CondenseTimings,
    KnownSampleAttack,
    Prepared,
    Result,
    Timing,
)
from privsvm_bench.reporting.attack_tables import (
    NEARLY,
    RECOVERED,
    pick_condensed_findings,
    tabulate_condensed_rows,
    tabulate_known_sample,
)
from privsvm_bench.reporting.audit_tables import audit_bars_of, audit_rows
from privsvm_bench.reporting.claim_tables import broken_claims, contradictions
from privsvm_bench.reporting.curve_charts import CurveChart, Scale, accuracy_range
from privsvm_bench.reporting.curve_tables import (
    curve_columns,
    curve_rows,
    curves_csv,
    epsilon_grids,
    metric_columns,
    nearest_epsilon,
)
from privsvm_bench.reporting.dataset_sections import best_proved, dataset_sections, key_methods, metrics_to_draw
from privsvm_bench.reporting.first_screen import answers, claims_by_origin, rank_methods
from privsvm_bench.reporting.glossary import glossary
from privsvm_bench.reporting.guarantee_cards import guarantee_cards, parameter_rows, timing_rows
from privsvm_bench.reporting.results import group_by
from privsvm_bench.reporting.text import count_in_words, percent, score_text, short_number

TEMPLATES = Path(__file__).with_name("templates")
# Up to this many epsilons the selector is a row of buttons, above it a list.
_MOST_BUTTONS = 9


def _looks_of(results: Sequence[Result]) -> dict[str, Look]:
    """Choose colours and mark of each method; proved ones come first, those claimed anywhere with the claims."""
    rank: dict[str, int] = {}
    for result in results:
        rank[result.method] = max(rank.get(result.method, 0), STATUSES.index(result.status))
    methods = sorted(rank, key=lambda method: (rank[method], method))
    implementations = {result.method: result.implementation for result in results}
    return dict(zip(methods, looks_of([implementations[method] for method in methods]), strict=True))


def _claims_context(results: Sequence[Result], reference_epsilon: float) -> dict[str, Any]:
    """Compute the section on claims, and the claim that the summary names."""
    claims = broken_claims(results, reference_epsilon)
    headlines = [claim for claim in claims if claim["headline"] and claim["headline"]["verdict"].kind == "broken"]
    return {
        "claims": claims,
        "worst_claim": max(
            headlines, key=lambda claim: float(claim["headline"]["found"] / claim["headline"]["stated"]), default=None
        ),
        "any_audited": any(claim["measured"] for claim in claims),
        "contradictions": contradictions(results),
    }


def _attacks_context(attacks: Sequence[Attack], condensed: str | None) -> dict[str, Any]:
    """Compute the section on attacks; `condensed` is how the rows were condensed for all methods."""
    known_sample = [attack for attack in attacks if isinstance(attack, KnownSampleAttack)]
    condensed_rows = tabulate_condensed_rows(
        [attack for attack in attacks if isinstance(attack, CondensedRowsAttack)], condensed is not None
    )
    return {
        "known_sample": tabulate_known_sample(known_sample),
        "condensed_rows": condensed_rows,
        "condensed_findings": pick_condensed_findings(condensed_rows),
        "condensed": condensed,
    }


def page_names(results: Sequence[Result]) -> dict[str, str]:
    """Name the page of each data set, where there are several."""
    names = dict.fromkeys(result.dataset for result in results)
    return {name: f"{name}.html" for name in names} if len(names) > 1 else {}


def _charts_of(
    results: Sequence[Result], grids: Mapping[str, list[float]], looks: Mapping[str, Look], reference_epsilon: float
) -> dict[str, CurveChart]:
    """Prepare a chart of the main methods on each dataset."""
    return {
        name: CurveChart(members, grids[name], looks, key_methods(members, reference_epsilon))
        for name, members in group_by(results, "dataset").items()
    }


def _draw_metric(chart: CurveChart, metric: str, title: str) -> str:
    """Draw one metric of all methods on a dataset."""
    everything = [result.method for result in chart.results]
    return dataclasses.replace(chart, key=everything, scale=Scale(metric, title), every_band=True).svg()


def _first_screen(
    results: Sequence[Result],
    charts: Mapping[str, CurveChart],
    reference_epsilon: float,
    own_datasets: Collection[str],
) -> dict[str, Any]:
    """Compute the sentence, the chart and the tables that the selector of epsilon drives, and the small charts."""
    # The reader's own tables, if there are some; the first with a proved method leads.
    scope = [name for name in charts if name in own_datasets] or list(charts)
    chosen_results = [result for result in results if result.dataset in scope]
    proved = [result.dataset for result in chosen_results if result.theorem_holds]
    lead = (proved or scope)[0]
    grid = charts[lead].grid
    chosen = nearest_epsilon(grid, reference_epsilon)
    chart = dataclasses.replace(charts[lead], chosen=chosen)
    at_each = grid if len(charts) > 1 else []
    return {
        "lead": lead,
        "chosen": chosen,
        "buttons": len(grid) <= _MOST_BUTTONS,
        "answers": answers(chosen_results, lead, grid),
        "overview": [rank_methods(results, epsilon) for epsilon in at_each],
        # A dataset without an epsilon of the selector shows its nearest.
        "data_set_rows": [{"epsilon": epsilon, "rows": best_proved(results, epsilon)} for epsilon in at_each],
        "chart": chart.svg,
        "chips": chart.chips,
        "look_of": chart.looks,
        "small_multiples": functools.partial(_small_multiples, list(charts.values())),
        "metric_chart": functools.partial(_draw_metric, charts[lead]),
    }


def _small_multiples(charts: Sequence[CurveChart]) -> list[dict[str, Any]]:
    """Draw the main methods of each data set on one axis of accuracy, with a legend for each."""
    ranges = []
    for chart in charts:
        shown = [result for result in chart.results if result.method in chart.key]
        ranges.append(accuracy_range(shown, next(iter(chart.key), None)))
    limits = (min(low for low, _ in ranges), max(high for _, high in ranges))
    return [
        {
            "svg": dataclasses.replace(chart, limits=limits).svg(narrow=True),
            "chips": [chip for chip in chart.chips if not chip["more"]],
        }
        for chart in charts
    ]


@dataclasses.dataclass(frozen=True)
class ReportRecords:
    """Records that a report shows beside the results; `privsvm_bench.records` reads them."""

    timings: Sequence[Timing] = ()
    left_out: Sequence[str] = ()  # See `privsvm_bench.jobs.params.Params.left_out`.
    condensing: Sequence[CondenseTimings] = ()
    prepared: Sequence[Prepared] = ()
    attacks: Sequence[Attack] = ()
    audits: Sequence[AuditRecord] = ()

    def of_data_set(self, name: str) -> ReportRecords:
        """Keep the records of one data set; audits are of releases, so only the overview shows them."""
        kept = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "audits"}
        lines = [line for line in kept.pop("left_out") if line.startswith(f"{name}:")]
        of_name = {key: [one for one in items if one.dataset == name] for key, items in kept.items()}
        return ReportRecords(**of_name, left_out=lines)


def page_context(
    results: Sequence[Result],
    *,
    records: ReportRecords = ReportRecords(),
    origin: Mapping[str, Any] | None = None,
    experiment: str = "",
    reference_epsilon: float = 1.0,
    own_datasets: Collection[str] = (),
    data_set: str | None = None,
) -> dict[str, Any]:
    """Compute the template's variables from the records; the functions among them draw charts.

    `origin` comes from `provenance` and is left out of the page if None. Headline numbers are given at
    `reference_epsilon`. `own_datasets` names the user's datasets. `data_set` is the one whose page this is, in a folder
    below the overview; None for the overview.
    """
    pages = page_names(results)
    audited_methods = {record.method for record in records.audits if record.cells}
    audit_problems = {record.method: record.problem for record in records.audits if record.problem}
    if data_set is not None:
        results = [result for result in results if result.dataset == data_set]
        records = records.of_data_set(data_set)
    grids = epsilon_grids(results, reference_epsilon)
    looks = _looks_of(results)
    methods = list(looks)
    pairs = {(result.method, result.status) for result in results}
    metrics = metrics_to_draw(results) or {"accuracy": "Accuracy"}
    # The same for all results.
    condensed = next((result.condense for result in results if result.condense != "none"), None)
    charts = _charts_of(results, grids, looks, reference_epsilon)
    first = _first_screen(results, charts, reference_epsilon, own_datasets)
    audited = [record for record in records.audits if record.method in looks and record.cells]
    stated, bars = audit_bars_of(results, audited, looks, reference_epsilon)
    title = f"Largest epsilon that an audit shows of each method, where epsilon {stated:g} is stated"
    return {
        "experiment": experiment,
        **first,
        "stem": first["lead"] if pages else "accuracy",
        "claimed_by": claims_by_origin(results),
        "own": [name for name in grids if name in own_datasets],
        "pages": pages,
        "left_out": records.left_out,
        "detail": len(grids) == 1,
        "up": "" if data_set is None else "../",
        "methods": methods,
        "by_status": {status: [method for method in methods if (method, status) in pairs] for status in STATUSES},
        "refuted": {result.method for result in results if result.worst == "refuted"},
        "proved_methods": sorted({result.method for result in results if result.theorem_holds}),
        **_claims_context(results, reference_epsilon),
        # The chart of claims is on the overview, the table of those that fail here on every page.
        "audit_chart": functools.partial(audit_bars, bars, stated, title, alone=False)
        if bars and data_set is None
        else None,
        "audit_stated": stated,
        **_attacks_context(records.attacks, condensed),
        "audits": audit_rows(audited),
        "audited_methods": audited_methods,
        "audit_problems": audit_problems,
        "audited_epsilons": sorted({cell.epsilon for record in audited for cell in record.cells}),
        "datasets": dataset_sections(results, grids, metrics),
        "metrics": list(metrics.items()),
        "cards": guarantee_cards(results, methods, reference_epsilon),
        "timings": timing_rows(records.timings, results),
        "condensing": records.condensing,
        "prepared": without_absolute_paths([dataclasses.asdict(record) for record in records.prepared]),
        "origin": origin,
        "parameters": parameter_rows(results),
    }


def _breakable(name: str) -> Markup:
    """Let a long name wrap after its underscores."""
    return escape(name).replace("_", Markup("_<wbr>"))


def _definition(text: str) -> Markup:
    """Set text between backticks as code, and the exponent of e^ε as an exponent."""
    spans = [
        Markup("<code>{}</code>").format(span) if code % 2 else escape(span)
        for code, span in enumerate(text.split("`"))
    ]
    return Markup("").join(spans).replace("e^ε", Markup("e<sup>ε</sup>"))


def new_environment(*folders: Path) -> jinja2.Environment:
    """Read templates of pages from folders."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = new_environment(TEMPLATES)
    environment.filters.update(
        breakable=_breakable,
        counted=count_in_words,
        definition=_definition,
        mean=statistics.fmean,
        percent=percent,
        short=short_number,
    )
    environment.globals.update(
        colours={f"--c{light[1:]}": (light, dark) for light, dark in COLOURS},
        glyphs={name: glyphs for name, (_, glyphs) in SYMBOLS.items()},
        infinity=math.inf,
        nearly=NEARLY,
        percent=percent,
        recovered=RECOVERED,
        score=score_text,
        theorem_holds=theorem_holds,
        two_digits=functools.partial(short_number, digits=2),
    )
    return environment


@functools.cache
def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def render_page(results: Sequence[Result], **options: Any) -> str:
    """Write one page as one HTML document, with style, charts and script inside.

    A content security policy forbids it to load anything from elsewhere.
    """
    context = page_context(results, **options)
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            context,
            glossary=glossary(),
            # Files of this package.
            style=Markup(_text("style.css.jinja")),  # nosec B704
            script=Markup(_text("report.js.jinja")),  # nosec B704
        )
    )


def report_files(results: Sequence[Result], **options: Any) -> dict[str, str]:
    """Write the whole report, as texts by their path in its folder.

    There is ``index.html``, in ``pages`` one page, figure (SVG) and table (CSV) for each dataset, and in ``assets``
    their shared files.
    """
    files = {"index.html": render_page(results, **options)}
    for name, page in page_names(results).items():
        files[f"pages/{page}"] = render_page(results, data_set=name, **options)
    # The overview has these inside, to be complete alone; all other pages share one copy.
    files |= {"assets/report.css": _text("style.css.jinja"), "assets/report.js": _text("report.js.jinja")}
    reference = options.get("reference_epsilon", 1.0)
    charts = _charts_of(results, epsilon_grids(results, reference), _looks_of(results), reference)
    rows = curve_rows(results, reference)
    for name, chart in charts.items():
        stem = name if len(charts) > 1 else "accuracy"
        files[f"pages/{stem}.svg"] = chart.svg(alone=True)
        drawn = (row for row in rows if row["dataset"] == name)
        files[f"pages/{stem}.csv"] = curves_csv(drawn, [*curve_columns(()), *metric_columns("accuracy")])
    return files
