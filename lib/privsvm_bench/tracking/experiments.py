"""MLflow experiments: the note on how to read one, and links to its charts."""

from __future__ import annotations

import urllib.parse
from collections.abc import Collection

from privsvm_bench.tracking.store import open_store

_AXIS = """\
**The x-axis?** Epsilon on a logarithmic scale: a step is 1000 log10 of epsilon, so -1000 is 0.1, 0 is 1, 1000 is \
10. The metric `epsilon` holds the value at each point."""

CURVE_NOTE = f"""\
One run is one curve: a method on this data set, over the grid of epsilons.

**Is epsilon backed by a proof?** The legend says it before each name (parameters `curve` and `status`):

- `seeded`: a theorem covers the method as it is implemented here, and the noise of \
these models can be drawn again from a seed: `epsilon_with_system_noise` is what a release with system noise proves.
- `proved`: the same, with system noise; `epsilon_proved` holds it.
- `claimed`: an epsilon is stated, and nothing proves it for what is implemented; tag \
`guarantee_reason` says why, tag `witness` names a counterexample where one is known. Do not read it as privacy.
- `refuted`: a claim that an audit refutes at some of its epsilons.
- `none`: no privacy at all. Such methods (`svm`, `majority`) are reference lines: one value, repeated at every epsilon.

**Which runs are shown?** Those with tag `current = yes`: the parameter values of the last run of the pipeline. \
Runs of earlier values are kept with `current = no`; to compare with them, clear the search field.

**Which curves belong together?** Curves of one sweep: the parent run holds the splits and the grid of epsilons.

**Two settings side by side?** Tick both and press *Compare*, which shows the parameters that differ, or run \
`python -m privsvm_bench compare A B`, which adds intervals.

{_AXIS}"""

OVERVIEW_NOTE = f"""\
One run is one method over all data sets of the benchmark. `points_behind` is its mean distance, in points of \
accuracy, from the best proved method of each data set: at 0 it is the best everywhere. It covers the \
data sets on which the method ran (parameter `datasets`). The status before each name is the weakest on any of them.

{_AXIS}"""

# Charts of the runs with the last run's parameter values. MLflow draws the first ten: seeded methods, in this order.
_QUERY = urllib.parse.urlencode(
    {
        "workflowType": "machine_learning",
        "compareRunsMode": "CHART",
        "searchFilter": "tags.current = 'yes'",
        "orderByKey": "params.`curve`",
        "orderByAsc": "false",
    }
)


def experiment_links(tracking_uri: str, base_url: str, names: Collection[str]) -> dict[str, str]:
    """Make a link to the charts of each named MLflow experiment that is in the store, by name in order.

    `base_url` is the address of the MLflow page, such as ``http://127.0.0.1:5000``. Raises PrivSVMError if the store
    cannot be used.
    """
    with open_store(tracking_uri) as client:
        found = {name: client.get_experiment_by_name(name) for name in sorted(names)}
    return {
        name: f"{base_url.rstrip('/')}/#/experiments/{experiment.experiment_id}/runs?{_QUERY}"
        for name, experiment in found.items()
        if experiment is not None
    }
