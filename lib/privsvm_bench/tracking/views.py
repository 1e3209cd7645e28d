"""Saved view of the MLflow page: it opens on accuracy against epsilon, and every line names its kind of guarantee.

MLflow stores such a view as a tag of the experiment; the format is not documented, so a browser test guards it.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection, Sequence
from typing import Any

from privsvm.digests import canonical_json
from privsvm_bench.metrics import METRICS
from privsvm_bench.tracking.audits import at_stated
from privsvm_bench.tracking.store import open_store

__all__ = ["VIEW_KEY", "experiment_tags", "view_links", "view_state"]

VIEW_KEY = "privsvm-accuracy-epsilon"

_VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
_VIEW_NAME, _AUDIT_NAME = "Accuracy against epsilon", "Claimed against audited epsilon"
_VIEW_TIME = 1767225600000  # the view has no history: 2026-01-01 in milliseconds

_FIRST_SECTION, _OTHER_SECTION = "privsvm-section-accuracy", "privsvm-section-others"

_NOTE = """\
One run is one curve: a method on this data set, over the grid of epsilons.

**Is epsilon backed by a proof?** The legend says it before each name (parameters `curve` and `status`):

- `seeded`: a theorem covers the method as it is implemented here, and the noise of \
these models can be drawn again from a seed: `epsilon_with_system_noise` is what a release with system noise proves.
- `proved`: the same, with system noise; `epsilon_proved` holds it.
- `claimed` (grey): an epsilon is stated, and nothing proves it for what is implemented; tag \
`guarantee_reason` says why, tag `witness` names a counterexample where one is known. Do not read it as privacy.
- `none`: no privacy at all. Such methods (`svm`, `majority`) are reference lines: one value, repeated at every epsilon.

**Which runs are shown?** Those with tag `current = yes`: the parameter values of the last run of the pipeline. \
Runs of earlier values are kept with `current = no`; to compare with them, clear the search field.

**Two settings side by side?** Their names say what they were set to: tick both and press *Compare*, or run \
`python -m privsvm_bench compare A B`, which adds intervals.

To keep changes to the charts, save them as a view under another name: the pipeline overwrites this view."""


_AUDIT_NOTE = """\
One run is the audit of one method: a step is a cell, with what is stated (`epsilon`) and what releases of two \
neighbouring datasets show of it at least (`audited_epsilon`, with the parameter `confidence`). A chart shows the \
bounds for one stated epsilon.

A bound above the epsilon of a *proved method* would mean that the code is wrong, and ends the run that finds it; one \
above a *claimed* epsilon is the finding (`refuted` is 1). `audited_ceiling` is the most expected of so many draws. \
The files of a run hold its record, a card in words and the chart of all methods, `claimed_against_audited.svg`."""


def _chart(name: str, title: str, section: str, against: str = "log10_epsilon") -> dict[str, Any]:
    """One metric against the logarithm of epsilon, or against another metric."""
    return {
        "uuid": f"privsvm-chart-{name}",
        "type": "LINE",
        "runsCountToCompare": 100,
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
        "displayName": title,
        "metricKey": name,
        "selectedMetricKeys": [name],
        "lineSmoothness": 0,
        "xAxisScaleType": "linear",
        "scaleType": "linear",
        "range": {},
        "xAxisKey": "metric",
        "selectedXAxisMetricKey": against,
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "ignoreOutliers": False,
        "useGlobalXaxisKey": False,
        "useGlobalLineSmoothing": False,
        "selectedYAxisMetricKey": "metric",
    }


def _section(identity: str, name: str, columns: int, height: int) -> dict[str, Any]:
    return {
        "uuid": identity,
        "name": name,
        "display": True,
        "isReordered": False,
        "deleted": False,
        "isGenerated": False,
        "columns": columns,
        "cardHeight": height,
    }


def _audit_charts(stated: Sequence[float]) -> list[dict[str, Any]]:
    """Lay out the charts of audits: for each stated epsilon a bar chart, since lines would join unrelated methods."""
    titles = {
        at_stated(epsilon): f"Audited epsilon (at least) where {epsilon:g} is stated; a bar beyond {epsilon:g} refutes"
        for epsilon in stated
    }
    bars = [(name, title, _FIRST_SECTION) for name, title in titles.items()]
    others = {"audited_ceiling": "Most expected of so many draws", "refuted": "Refuted (1)", "draws": "Draws"}
    bars += [(name, title, _OTHER_SECTION) for name, title in others.items()]
    return [{**_chart(*bar), "type": "BAR"} for bar in bars]


def view_state(stated: Sequence[float] = ()) -> dict[str, Any]:
    """Lay out the charts as MLflow's page stores them.

    The first metric is large; below it are the seconds of a fit and the other metrics. `stated` are the audited
    epsilons if the runs are audits: these replace the metrics.
    """
    first, *others = [metric for metric in METRICS.values() if metric.drawn]
    charts = [_chart(first.name, f"{first.title} against log10 epsilon", _FIRST_SECTION)]
    charts.append(_chart("fit_seconds", "Seconds to fit", _OTHER_SECTION))
    charts += [_chart(metric.name, f"{metric.title} against log10 epsilon", _OTHER_SECTION) for metric in others]
    if stated:
        charts = _audit_charts(stated)
    return {
        "searchFilter": "tags.current = 'yes'",
        # Sort by curve, so that claims stand together.
        "orderByKey": "params.`curve`",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": ["params.`curve`", "params.`neighbours`", "params.`delta`", "tags.`current`"],
        "columnOrder": [],
        "columnWidths": {},
        "runsHiddenMode": "SHOWALL",
        "compareRunCharts": charts,
        "compareRunSections": [
            _section(
                _FIRST_SECTION, _AUDIT_NAME if stated else f"{first.title} against epsilon", columns=1, height=370
            ),
            _section(_OTHER_SECTION, "Other measures", columns=3, height=360),
        ],
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": True,
        "useGroupedValuesInCharts": False,
        "hideEmptyCharts": True,
        # Grouped, each curve would be two rows, and two settings of a method one line.
        "groupBy": None,
        "groupsExpanded": {},
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
    }


def experiment_tags(stated: Sequence[float] = ()) -> dict[str, str]:
    """Return the tags of an MLflow experiment: its saved view, its kind and the note on how to read it."""
    compressed = base64.b64encode(zlib.compress(canonical_json(view_state(stated)).encode())).decode("ascii")
    view = {
        "name": _AUDIT_NAME if stated else _VIEW_NAME,
        "createdAt": _VIEW_TIME,
        "updatedAt": _VIEW_TIME,
        "state": f"deflate;{compressed}",
    }
    return {
        _VIEW_TAG: canonical_json(view),
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.note.content": _AUDIT_NOTE if stated else _NOTE,
    }


def view_links(tracking_uri: str, base_url: str, names: Collection[str] | None = None) -> dict[str, str]:
    """Make links that open the chart of each MLflow experiment, by experiment name, in order.

    `tracking_uri` is the store that `log_results` wrote to, and `base_url` the address of the MLflow page, such as
    ``http://127.0.0.1:5000``. `names` defaults to all experiments that have the saved view. Raises PrivSVMError if the
    store cannot be used.
    """
    links: dict[str, str] = {}
    with open_store(tracking_uri) as client:
        token = None
        while True:
            page = client.search_experiments(max_results=1000, page_token=token)
            for experiment in page:
                if _VIEW_TAG in experiment.tags and (names is None or experiment.name in names):
                    links[experiment.name] = (
                        f"{base_url.rstrip('/')}/#/experiments/{experiment.experiment_id}/runs"
                        f"?workflowType=machine_learning&compareRunsMode=CHART&viewStateShareKey={VIEW_KEY}"
                    )
            token = page.token
            if not token:
                return dict(sorted(links.items()))
