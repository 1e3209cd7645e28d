"""Sources of the distributions: measurements, samples that confirm them, and samples that do not."""

import csv

import numpy as np
import pytest

from privsvm.errors import PrivSVMError
from privsvm.files import read_json, write_json
from privsvm_bench.evidence import Sources
from reproduce import confirm
from reproduce.__main__ import main
from reproduce.cell import MODULES, draws_of
from reproduce.engine.context import MissingError
from reproduce.engine.distributions import read_distributions
from reproduce.engine.draws import Draws, run_draws
from tests.scripts import REPOSITORY

REPORTS = REPOSITORY / "reports/reproduce"
DRAWS = draws_of(list(MODULES))
# Columns of a table that would say where a row comes from.
OF_SOURCES = {"origin", "source code", "sources", "code", "digest", "seconds", "date", "measured", "machine", "version"}


def _normal(parameters, context, piece):
    rng = np.random.default_rng([parameters["seed"], piece])
    return {f"{parameters['dataset']}/m//x": rng.normal(size=30).tolist(), f"{parameters['dataset']}/m//wait": [piece]}


def _missing(parameters, context, piece):
    raise MissingError("dataset b: not here; set PRIVSVM_MIRROR")


def _plan(dataset, run="_normal", name="", **changes):
    return Draws(
        experiment="toy", name=name or dataset, dataset=dataset, run=f"{__name__}:{run}", pieces=2, combine="mean",
        size=5, unit=lambda cell: 0.01, parameters={"dataset": dataset, "seed": ord(dataset[0])},
        machine_metrics=("wait",), **changes,
    )  # fmt: skip


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Measure datasets a and b by earlier code; return a function that confirms them, and their sources."""
    plans = [_plan("a", means=("toy_means", 10)), _plan("b")]
    run_draws(plans, tmp_path / "data", Sources(tmp_path), say=lambda line: None)
    write_json(tmp_path / "sources.json", _without_code(read_json(tmp_path / "sources.json")))

    def confirm_toy(*arguments, draws=plans):
        monkeypatch.setattr(confirm, "draws_of", lambda papers: draws)
        main(["confirm", "dpwss", "--data", str(tmp_path / "data"), "--reports", str(tmp_path), *arguments])

    return confirm_toy, Sources(tmp_path)


def _without_code(value):
    if isinstance(value, dict):
        return {key: "" if key == "code" else _without_code(item) for key, item in value.items()}
    return [_without_code(item) for item in value] if isinstance(value, list) else value


def test_a_sample_confirms_what_other_code_measured(toy, capsys):
    confirm_toy, sources = toy
    assert set(confirm.stale_draws([_plan("a"), _plan("b"), _plan("never measured")], sources)) == {
        ("toy", "a"), ("toy", "b")
    }  # fmt: skip
    before = {path: path.read_bytes() for path in sources.path.parent.glob("*.csv")}
    confirm_toy()
    assert {path: path.read_bytes() for path in sources.path.parent.glob("*.csv")} == before
    # The same draws again, without the cells that are times.
    for table, dataset in (("toy", "a"), ("toy_means", "a"), ("toy", "b")):
        stated = sources.entries(table)[dataset]["confirmed"]
        assert (stated["code"], stated["cells"], stated["difference"]) == (_plan("a").code, 1, 0.0)
    assert capsys.readouterr().out.count("not drawn again since") == 0
    # Now nothing is stale.
    confirm_toy()
    assert capsys.readouterr().out == ""


def test_a_cell_that_differs_is_printed_and_confirms_nothing(toy, capsys):
    confirm_toy, sources = toy
    path = sources.path.with_name("toy.csv")
    item = read_distributions(path)["b/m//x"]
    path.write_text(path.read_text().replace(f",{item.median:.7g},", f",{item.median + 9.0:.7g},"))
    with pytest.raises(PrivSVMError, match="cells that differ from the committed ones: 1; mend the code, or draw"):
        confirm_toy()
    assert "  b/m//x: committed " in capsys.readouterr().out
    assert "confirmed" not in sources.entries("toy")["b"]
    assert sources.entries("toy")["a"]["confirmed"]["cells"] == 1


def test_what_a_sample_lacks_stays_unconfirmed(toy, capsys, tmp_path):
    confirm_toy, sources = toy
    confirm_toy("--data", str(tmp_path / "empty"), draws=[_plan("a", name="other"), _plan("b", run="_missing")])
    # Unmeasured cells are not confirmed, and missing data confirms none.
    missing = "toy b: unconfirmed: toy b: dataset b: not here; set PRIVSVM_MIRROR\n"
    assert capsys.readouterr().out == missing
    # Nor does one function that has its data, while the other one has not.
    sources.measure("toy", "b", "", "none", 0.0)
    confirm_toy(draws=[_plan("b"), _plan("b", run="_missing", name="none")])
    assert capsys.readouterr().out == missing.replace("toy b: dataset", "toy none: dataset")
    confirm_toy("--seconds", "-1")
    assert capsys.readouterr().out.count("unconfirmed: its sample takes about 0 s") == 3
    assert all("confirmed" not in source for source in sources.entries("toy").values())


def test_a_sample_takes_the_cheapest_draws_of_each_function():
    plans = [_plan("a", name=name) for name in ("slow", "quick", "not timed")] + [_plan("a", "_missing", name="other")]
    times = {("toy", "slow"): 9.0, ("toy", "quick"): 1.0, ("toy", "other"): 5.0}
    for share, names in ((0.0, ["quick", "other"]), (0.5, ["quick", "slow", "other"])):
        chosen, seconds = confirm.choose_sample(plans, times, share)
        assert [plan.name for plan in chosen] == names
        assert seconds == sum(times["toy", name] for name in names)
    assert len(confirm.choose_sample(plans, times, 1.0)[0]) == 4


def test_every_committed_cell_has_a_source():
    sources = Sources(REPORTS / "distributions")
    for path in (REPORTS / "distributions").glob("*.csv"):
        entries = sources.entries(path.stem)
        parts = {(entry, part) for entry, source in entries.items()
                 for item in source["measured"] for part in item["parts"]}  # fmt: skip
        plans = {(plan.dataset, plan.name): plan for plan in DRAWS if path.stem in plan.tables}
        assert parts <= plans.keys()
        for cell in read_distributions(path):
            giving = {key for key, plan in plans.items() if plan.gives(cell.removeprefix("mean/"))}
            assert giving <= parts, cell
            assert giving or any(entry in cell for entry in entries), cell


def test_the_draws_of_an_entry_run_one_module():
    """One digest then says by which code an entry was confirmed."""
    modules = {}
    for plan in DRAWS:
        modules.setdefault((plan.experiment, plan.dataset), set()).add(plan.run.partition(":")[0])
    assert {key: names for key, names in modules.items() if len(names) > 1} == {}


def test_tables_hold_measurements_only():
    tables = [*REPORTS.rglob("*.csv"), *(REPORTS.parent / "utility").glob("*.csv"), REPORTS.parent / "audits.csv"]
    assert len(tables) > 40
    for path in (path for path in tables if not path.name.endswith(".log.csv")):
        with open(path, encoding="utf-8", newline="") as handle:
            assert OF_SOURCES.isdisjoint(next(csv.reader(handle))), path
