"""The interactive figures of the report: plotly's, in the colours of the page, which are CSS variables."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from privsvm.privacy.statement import STATUS_TEXT, Status, theorem_holds
from privsvm_bench.charts import VARIABLES
from privsvm_bench.palette import COLOURS, SYMBOLS
from privsvm_bench.reporting.pictures import thinned
from privsvm_bench.reporting.text import short_number

__all__ = ["plotly_figures"]

_GROUPS: dict[str, str] = {status: text.upper() for status, text in STATUS_TEXT.items()}
_GROUPS |= {"none": "NO GUARANTEE"}
_GREYS = ("var(--claimed)", "var(--soft)", "var(--none)")
_MEAN = "%{y:.3f}"
_VALUES = (
    f"{_MEAN} ± %{{customdata[0]:.3f}}<br>2.5 to 97.5 percentiles: %{{customdata[1]:.3f}} to %{{customdata[2]:.3f}}"
)
_HOVER = "%{text}<extra></extra>"
# Pixels: axes and margins above and below, a line of the legend, a heading of it.
_AXES_ROOM, _ENTRY, _HEADING = 88, 20, 26
# With more entities a legend would be taller than the chart.
_MOST_ENTITIES = 15
# Positions of exact recovery and no recovery on a logarithmic axis.
_EXACT = 1e-16
_RECOVERED = 1e-8


def _wrapped(text: str, width: int = 56) -> str:
    """Break a text of a hover box; plotly reads some HTML, and names from files must stay text."""
    return "<br>".join(escape(line, quote=False) for line in textwrap.wrap(str(text), width))


class _Report:
    """Names and looks of the methods, shared by the figures of one page."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.methods, self.looks = data["methods"], data["looks"]
        curves = [curve for one in data["datasets"] for curve in one["curves"]]
        self.claims = sorted({curve["method"] for curve in curves if curve["status"] == "claimed"})

    def name(self, method: int) -> str:
        return escape(self.methods[method], quote=False)

    def trace(self, method: int, status: Status) -> dict[str, Any]:
        """Arguments of a method's trace: its look, its name, its place in the legend."""
        if theorem_holds(status):
            look = self.looks[method]
            seeded = status == "seeded"
            colour, symbol = f"var({VARIABLES[look['light']]})", look["symbol"]
            line = {"color": colour, "width": 1.6 if seeded else 2.5, "dash": "solid"}
            inside = "var(--panel)" if seeded else colour
            marker = {"color": inside, "size": 9, "symbol": symbol, "line": {"color": colour, "width": 1.4}}
        elif status == "claimed":
            colour = _GREYS[self.claims.index(method) % len(_GREYS)]
            line = {"color": colour, "width": 1.6, "dash": "dash"}
            marker = {"color": colour, "size": 11, "symbol": "square-x-open", "line": {"color": colour, "width": 1.6}}
        else:
            colour = "var(--none)"
            line = {"color": colour, "width": 1.5, "dash": "1.5px,4px"}
            marker = {"color": colour, "size": 5, "symbol": "line-ew-open"}
        return {
            "line": line, "marker": marker, "legendgroup": status, "hovertemplate": _HOVER,
            "name": f"{self.name(method)} — {STATUS_TEXT[status]}",
            "legendrank": 1000 * (list(_GROUPS).index(status) + 1) + method,
        }  # fmt: skip

    def head(self, method: int, status: Status) -> str:
        """First line of a hover box."""
        return f"<b>{self.name(method)}</b> — <b>{STATUS_TEXT[status].upper()}</b>"


def _background(x: Sequence[float], y: Sequence[float], **more: Any) -> go.Scatter:
    return go.Scatter(
        x=list(x), y=list(y), mode="lines", hoverinfo="skip", showlegend=False, line={"width": 0}
    ).update(more)  # fmt: skip


def _axis(title: str = "", **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}}, "gridcolor": "var(--line)",
        "linecolor": "var(--soft)", "zeroline": False, "ticks": "outside", "tickcolor": "var(--line)", "showline": True,
        "automargin": True, **more,
    }  # fmt: skip


def _log_axis(title: str, low: float, high: float, ticks: Sequence[float], **more: Any) -> dict[str, Any]:
    return _axis(
        title, type="log", range=[math.log10(low), math.log10(high)], tickvals=list(ticks),
        ticktext=[short_number(tick) for tick in ticks], tickangle=0, **more,
    )  # fmt: skip


def _note(text: str, x: float, y: float, colour: str = "var(--soft)", **more: Any) -> dict[str, Any]:
    return {"text": text, "x": x, "y": y, "xref": "paper", "yref": "paper", "showarrow": False,
            "font": {"color": colour, "size": 12}, **more}  # fmt: skip


def _finished(
    traces: Sequence[go.Scatter], layout: Mapping[str, Any], height: int, narrow_height: int
) -> dict[str, Any]:
    """Add the layout that all figures share; on a narrow screen the legend goes below the axes."""
    groups: set[str] = set()
    for trace in traces:
        group = trace.legendgroup
        if trace.showlegend is not False and group and group not in groups:
            groups.add(group)
            trace.legendgrouptitle = {"text": f"<b>{_GROUPS[group]}</b>"}
    entries = 0 if layout.get("showlegend") is False else sum(trace.showlegend is not False for trace in traces)
    room = _ENTRY * entries + _HEADING * len(groups)
    figure = go.Figure(traces)
    figure.update_layout(
        template="none", height=max(height, _AXES_ROOM + room + 20), dragmode=False, hovermode="closest",
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", showlegend=True,
        font={"family": "system-ui, sans-serif", "size": 13, "color": "var(--ink)"},
        hoverlabel={"bgcolor": "var(--panel)", "bordercolor": "var(--soft)", "align": "left", "namelength": 0,
                    "font": {"color": "var(--ink)", "size": 12.5}},
        legend={"x": 1.015, "xanchor": "left", "y": 1, "yanchor": "top", "font": {"size": 12.5},
                "grouptitlefont": {"size": 11, "color": "var(--soft)"}, "traceorder": "grouped"},
        margin={"l": 66, "r": 24, "t": 26, "b": 62},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "var(--soft)", "activecolor": "var(--ink)"},
    )  # fmt: skip
    figure.update_layout(layout)
    below = {
        "height": narrow_height + room, "legend.x": 0, "legend.y": -62 / (narrow_height - _AXES_ROOM),
        "legend.font.size": 10.5, "legend.maxheight": 1, "font.size": 12,
        "margin": {"l": 52, "r": 14, "t": 26, "b": 62 + room},
    }  # fmt: skip
    return {**figure.to_plotly_json(), "narrow": below}


def _columns(curve: Mapping[str, Any], metric: str) -> list[list[float | None]]:
    """Mean, deviation and percentiles of a metric along a curve; nothing where it was not measured."""
    empty = [None] * max(len(curve["epsilons"]), 1)
    return list(curve["values"].get(metric, [empty] * 4))


def _curve_figure(report: _Report, dataset: Mapping[str, Any], metrics: Mapping[str, str]) -> dict[str, Any]:
    """Metrics against epsilon; ``choices`` are arguments of Plotly.update, for each metric and for bands or none."""
    grid, curves = dataset["grid"], dataset["curves"]
    first, last = (grid[0], grid[-1]) if grid[0] < grid[-1] else (grid[0] / 1.5, grid[0] * 1.5)
    flat = [first, *(epsilon for epsilon in grid if first < epsilon < last), last]
    bands, traces = [], []
    for curve in curves:
        method, status = curve["method"], curve["status"]
        look = report.trace(method, status)
        if curve["epsilons"]:
            stated = [f"ε = {short_number(epsilon)}" for epsilon in curve["epsilons"]]
            if status == "claimed":
                stated = [f"<s>{words}</s> claimed" for words in stated]
            text = [f"{words}; {_wrapped(epsilons)}" for words, epsilons in zip(stated, curve["known"], strict=True)]
        else:
            text = ["the same at every ε: no privacy"] * len(flat)
        has_range = all(
            value is not None for metric in metrics for column in _columns(curve, metric) for value in column
        )
        values = _VALUES if has_range else _MEAN
        look["hovertemplate"] = f"{report.head(method, status)}<br>%{{text}}<br>{values}<extra></extra>"
        mode = "lines" if status == "none" else "lines+markers"
        traces.append(go.Scatter(x=curve["epsilons"] or flat, y=[], text=text, mode=mode, meta="curve", **look))
        if curve["epsilons"] and status != "none":
            # A curve's seven or so points up, and down again.
            x = [*curve["epsilons"], *curve["epsilons"][::-1]]
            colour = look["line"]["color"]
            opacity = 0.13 if theorem_holds(status) else 0.09
            bands.append(_background(x, [], fill="toself", fillcolor=colour, opacity=opacity, meta="band",
                                     legendgroup=status, name=look["name"]))  # fmt: skip
    ticks, margin = thinned(grid, math.log10(last / first) / 9), 0.03 * math.log10(last / first)
    layout = {
        "xaxis": {**_log_axis("stated epsilon (smaller is more private)", first, last, ticks),
                  "range": [math.log10(first) - margin, math.log10(last) + margin]},
        "yaxis": _axis(),
    }  # fmt: skip
    figure = _finished([*bands, *traces], layout, 470, 360)
    choices: dict[str, Any] = {
        str(number): _metric(report, curves, metric, title, len(flat), last)
        for number, (metric, title) in enumerate(metrics.items())
    }
    everywhere = list(range(len(bands)))
    choices["bands"], choices["lines"] = ([{"visible": shown}, {}, everywhere] for shown in (True, False))
    return {**figure, "choices": choices}


def _metric(
    report: _Report, curves: Sequence[Mapping[str, Any]], metric: str, title: str, width: int, last: float
) -> list[Any]:
    """Values of all traces, and the axis title, for one metric."""
    bands, values, rests, labels = [], [], [], []
    for curve in curves:
        mean, spread, low, high = _columns(curve, metric)
        rest = [
            [None if value is None else round(value, 3) for value in row] for row in zip(spread, low, high, strict=True)
        ]
        times = 1 if curve["epsilons"] else width
        values.append(list(mean) * times)
        rests.append(rest * times)
        if curve["epsilons"] and curve["status"] != "none":
            bands.append([*high, *low[::-1]])
        if not curve["epsilons"] and mean[0] is not None:
            labels.append((mean[0], f"{report.name(curve['method'])} — none"))
    drawn = [value for line in (*values, *bands) for value in line if value is not None]
    span = (max(drawn, default=1) - min(drawn, default=0)) or 1
    notes: list[dict[str, Any]] = []
    # Reference lines carry their words in the picture itself, as far as these do not overlap.
    above = math.inf
    for value, text in sorted(labels, reverse=True):
        if (above - value) / span >= 0.075:
            above = value
            notes.append({"x": math.log10(last), "y": value, "xanchor": "right", "yanchor": "bottom", "text": text,
                          "showarrow": False, "font": {"size": 11, "color": "var(--none)"}})  # fmt: skip
    changes = {"y": bands + values, "customdata": [[]] * len(bands) + rests}
    return [changes, {"yaxis.title.text": escape(title), "annotations": notes}]


def _attack_figure(attack: Mapping[str, Any]) -> dict[str, Any]:
    """Error of recovered rows against the number of known rows: one line for each entity."""
    curves = attack["curves"]
    most = max(count for curve in curves for count in curve["known"])
    highest = max(10.0, *(error for curve in curves for error in curve["error"]))
    traces = [_background([0, most], [_RECOVERED] * 2, line={"color": "var(--broken)", "width": 1.2, "dash": "dot"})]
    for number, curve in enumerate(curves):
        # Entities of an attack are no methods.
        colour = f"var({VARIABLES[COLOURS[number % 6][0]]})"
        name = escape(curve["name"], quote=False)
        text = [
            f"<b>{name}</b><br>{count} known rows, {curve['needed']} needed<br>largest error {short_number(error)}<br>"
            f"{short_number(100 * share)} % of the other rows recovered"
            for count, error, share in zip(curve["known"], curve["error"], curve["share"], strict=True)
        ]
        traces.append(go.Scatter(
            x=curve["known"], y=[max(error, _EXACT) for error in curve["error"]], text=text, hovertemplate=_HOVER,
            mode="lines+markers", meta="attack", name=f"{name} ({curve['features']} features)",
            line={"color": colour, "width": 2},
            marker={"color": colour, "size": 8, "symbol": SYMBOLS[number % len(SYMBOLS)]},
        ))  # fmt: skip
    layout = {
        "xaxis": _axis("rows of the entity that the attacker knows", rangemode="tozero"),
        "yaxis": _axis("largest error (standard deviations)", type="log", range=[-16.5, math.log10(highest) + 0.5],
                       dtick=4, exponentformat="power"),
        "annotations": [_note("below: <b>recovered</b>", 0.99, -8, "var(--broken)", yref="y", xanchor="right",
                              yanchor="bottom")],
        "showlegend": len(curves) <= _MOST_ENTITIES,
    }  # fmt: skip
    return _finished(traces, layout, 420, 360)


def plotly_figures(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Draw all interactive figures of a page.

    Returns Plotly's ``data`` and ``layout`` by the id of the chart's element, changes of the layout for a ``narrow``
    screen, and ``choices`` of the page's controls.
    """
    report, figures = _Report(data), {}
    for number, dataset in enumerate(data["datasets"]):
        figures[f"curve-chart-{number}"] = _curve_figure(report, dataset, data["metrics"])
    for number, attack in enumerate(data["attacks"]):
        figures[f"attack-chart-{number}"] = _attack_figure(attack)
    return figures
