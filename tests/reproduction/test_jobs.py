import pytest

from privsvm.errors import PrivSVMError
from privsvm.files import read_json
from privsvm_bench.workflow.sources import closure, closure_digest
from reproduce.engine import context as engine
from reproduce.engine import jobs
from reproduce.engine.command import main
from reproduce.engine.experiment import Experiment
from reproduce.engine.measurements import measure, read_measurements
from reproduce.engine.papers import find_experiments

# Runs that were computed.
COMPUTED = []


def _run(parameters, context):
    size = len(context.class_rows(*parameters["source"]).codes)

    def compute(number):
        COMPUTED.append((parameters["dataset"], number))
        if [number] == STOP_AT:
            raise KeyboardInterrupt
        return size + number

    return {"sizes": context.parts(parameters, "runs", "run", compute)}


STOP_AT = []


def _measure(experiment, results):
    for job, result in results.items():
        yield from measure("sizes", job, "", "", rows=result["sizes"])


TOY = Experiment(
    package="tests.reproduction", name="toy",
    settings={"datasets": ["wine", "digits"], "runs": 2},
    jobs=lambda settings: {name: {"dataset": name, "source": [name, "all"], "runs": settings["runs"]}
                           for name in settings["datasets"]},
    run="test_jobs:_run", measure="test_jobs:_measure",
)  # fmt: skip
WINE, DIGITS = ("wine///rows", (178.0, 179.0)), ("digits///rows", (1797.0, 1798.0))


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Run the toy experiment, and return its cells and the runs that it computed."""
    monkeypatch.setattr("tests.reproduction.test_jobs.STOP_AT", [])

    def run(*arguments, reports=tmp_path):
        COMPUTED[:] = []
        main({"toy": TOY}, ["toy", "--data", str(tmp_path / "data"), "--reports", str(tmp_path), *arguments])
        return {item.cell: item.values for item in read_measurements(reports / "toy.csv")}

    return run


def test_only_missing_results_are_computed(toy, tmp_path):
    assert toy() == dict([WINE, DIGITS])
    assert len(COMPUTED) == 4
    assert toy() == dict([WINE, DIGITS])
    assert COMPUTED == []
    # One run more costs itself only, and tables of changed settings stand apart.
    more = toy("--settings", '{"runs": 3}', reports=tmp_path / "changed")
    assert COMPUTED == [("wine", 2), ("digits", 2)]
    assert more[WINE[0]] == (178.0, 179.0, 180.0)
    assert toy("--tables-only", "--settings", '{"runs": 4}', reports=tmp_path / "changed") == {}


def test_an_interrupted_run_continues(toy, monkeypatch, tmp_path):
    monkeypatch.setattr("tests.reproduction.test_jobs.STOP_AT", [1])
    with pytest.raises(KeyboardInterrupt):
        toy()
    assert not list(tmp_path.rglob(".*.part*"))
    monkeypatch.setattr("tests.reproduction.test_jobs.STOP_AT", [])
    assert toy() == dict([WINE, DIGITS])
    assert COMPUTED == [("wine", 1), ("digits", 0), ("digits", 1)]


def test_a_partial_run_leaves_every_other_cell_as_it_was(toy, tmp_path, capsys):
    assert toy("--datasets", "digits") == dict([DIGITS])
    assert "wine" not in capsys.readouterr().err
    (tmp_path / "toy.csv").write_text("table,cell,values\nsizes,wine///rows,1\nsizes,digits///rows,2\n")
    assert toy("--datasets", "digits") == {WINE[0]: (1.0,), DIGITS[0]: DIGITS[1]}


def test_data_that_cannot_be_had_erases_nothing(toy, tmp_path, capsys, no_data, monkeypatch):
    (tmp_path / "toy.csv").write_text("table,cell,values\nsizes,wine///rows,1\n")
    assert toy() == {WINE[0]: (1.0,)}
    assert "toy wine: wine.npz: not in any source; set PRIVSVM_MIRROR" in capsys.readouterr().err
    # A job without data is tried again.
    monkeypatch.undo()
    engine._read_classes.cache_clear()
    assert toy() == dict([WINE, DIGITS])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["toy", "--datasets", "Wine"], "--datasets 'Wine' is unknown; did you mean 'wine'"),
        (["tox"], "'tox' is unknown; did you mean 'toy'"),
    ],
)
def test_an_unknown_name_is_one_line(arguments, message):
    with pytest.raises(PrivSVMError, match=message):
        main({"toy": TOY}, arguments)


def test_a_result_is_stored_with_the_digest_of_its_code(finished):
    stored = read_json(finished.folder / "data" / "dpwss_figures" / "figure1.json")
    assert stored["code"] == closure_digest("reproduce.dpwss.runs", "reproduce.engine.context")
    stored = read_json(finished.folder / "data" / "pmsvm_table2_sound" / "Dermatology.PMSVM-GP.json")
    assert stored["code"] == closure_digest(
        "reproduce.pmsvm.runs.sound", "reproduce.engine.context", "privsvm.methods.pmsvm_gp"
    )


@pytest.mark.parametrize(
    ("experiment", "method", "file", "stale"),
    [
        # Imported by a module that the run imports.
        ("pmsvm_table2", "", "lib/privsvm/families/output_perturbation/weight_perturbation.py", True),
        ("pmsvm_table2", "", "lib/privsvm/families/moments/private_scaling.py", False),
        ("pmsvm_table2_sound", "PMSVM-GP", "lib/privsvm/families/moments/private_scaling.py", True),
        ("pmsvm_table2", "", "lib/privsvm_bench/datasets/catalogue.json", True),
        ("pmsvm_table2", "", "reproduce/engine/measurements.py", False),
        ("pmsvm_table2", "", "reproduce/pmsvm/measurements.py", False),
        ("pmsvm_table2", "", "reproduce/pmsvm/runs/weight.py", True),
        ("pmsvm_table2", "", "reproduce/pmsvm/runs/times.py", False),
        # Named by the job alone.
        ("pmsvm_table2_sound", "Objective-perturbation", "lib/privsvm/methods/objective_perturbation.py", True),
        ("pmsvm_table2_sound", "Linear", "lib/privsvm/methods/objective_perturbation.py", False),
        ("ppsvm_table1", "", "lib/privsvm/solvers/linear/one_norm_svm.py", True),
    ],
)
def test_results_are_stale_where_an_imported_file_changes(experiment, method, file, stale):
    experiment = find_experiments("reproduce")[experiment]
    job = next(parameters for name, parameters in experiment.all_jobs().items() if method in name)
    assert (file in closure(*jobs.code_entries(experiment, job))) == stale


def test_seeds_depend_on_what_they_are_for(tmp_path):
    context = engine.Context("one", tmp_path, "0")
    other = engine.Context("another", tmp_path, "0")
    draws = [stream.random() for stream in (context.stream(1, "a", 2), context.stream(1, "a", 2),
                                            context.stream(1, "a", 3), other.stream(1, "a", 2))]  # fmt: skip
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3
