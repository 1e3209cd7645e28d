"""One command for each cell."""

import argparse
import dataclasses
import re
import shutil
import subprocess
import sys

import pytest

from privsvm.errors import PrivSVMError
from privsvm_bench.evidence import Sources
from reproduce.__main__ import main as reproduce
from reproduce.cell import MODULES, _record, draws_of, judge_committed, main
from reproduce.engine.cells import (
    FIRST_RUN,
    LATER_RUN,
    RERUNS,
    cells_behind,
    choose_draws,
    choose_jobs,
    column_of,
    find_printed,
)
from reproduce.engine.distributions import LEVELS, merge_distributions, read_distributions
from reproduce.engine.judging import DECIDED, TIMES
from reproduce.engine.papers import find_experiments
from tests.processes import run_python
from tests.scripts import REPOSITORY

ARGUMENTS = ["--reports", str(REPOSITORY / "reports/reproduce")]


@pytest.mark.parametrize("name", MODULES)
def test_every_drawn_number_can_be_rerun(name):
    judged, draws = judge_committed(name), draws_of([name])
    for judgement in judged.judgements:
        printed = judgement.printed
        assert find_printed(judged, printed.source, printed.dataset, column_of(printed)) is printed
        if judgement.distribution is not None and printed.metric not in TIMES:
            assert choose_draws(judged.paper, draws, printed.id), printed.id


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dpws", "Table 3", "heart", "x"], "paper 'dpws' is unknown; did you mean 'dpwss'"),
        (["dpwss", "Table 4", "heart", "x"], "table 'Table 4' is unknown"),
        (["dpwss", "Table 3", "Heart", "x"], "row 'Heart' is unknown; did you mean 'heart'"),
        (["dpwss", "Table 2", "heart", "//n_sample"], "column '//n_sample' is unknown; did you mean '//n_samples'"),
        (["ci_svm", "statements", "privacies", "all"], "statement 'privacies' is unknown; did you mean 'privacy'"),
        (["ci_svm", "statements", "support", "Heart"], "column 'Heart' is unknown; did you mean 'heart'"),
    ],
)
def test_an_unknown_name_is_an_error(arguments, message):
    with pytest.raises(PrivSVMError, match=message):
        main([*arguments, *ARGUMENTS])


def test_a_cell_is_trained_judged_and_shown_beside_the_committed_one(tmp_path):
    command = ["-m", "reproduce", "cell", "dpwss", "statements", "privacy", "all", "--data", tmp_path, *ARGUMENTS]
    committed, rerun, *cells = run_python(*command, cwd=REPOSITORY).splitlines()
    assert committed.startswith("committed: refuted; two rows")
    assert rerun.removeprefix("rerun: ") == committed.removeprefix("committed: ")
    assert cells == [f"claim/privacy/{name}: the same" for name in
                     ("epsilon at least", "neighbour's runs with the model", "runs with the model")]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_every_decided_statement_can_be_rerun_and_states_its_time(name):
    judged, draws, experiments = judge_committed(name), draws_of([name]), find_experiments("reproduce")
    times = Sources(REPOSITORY / "reports/reproduce/distributions").parts(RERUNS, name)
    for claim in judged.claims:
        if claim.verdict not in DECIDED:
            continue
        assert claim.id in times, claim.id
        cells = cells_behind(judged, claim)
        # Without cells of ours the printed numbers alone decide.
        assert cells or all(cell.startswith("printed/") for cell in claim.cells), claim.id
        for cell in cells:
            experiment = experiments.get(judged.distributions[cell].table)
            jobs = choose_jobs(experiment.all_jobs(), cell) if experiment else choose_draws(judged.paper, draws, cell)
            assert jobs, cell


@pytest.mark.parametrize("command", [["cell", "ci_svm", "statements", "support", "heart"], ["confirm", "ci_svm"]])
def test_a_folder_without_the_tables_is_an_error(command, tmp_path):
    """All would be "not judged yet", and nothing stale."""
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(PrivSVMError, match=f"^--reports {folder}: has no .*; name the folder that has"):
            reproduce([*command, "--reports", str(folder)])


def test_a_job_is_chosen_by_dataset_method_and_table():
    jobs = {
        "a.x": {"dataset": "a", "kind": "times"}, "a.y": {"dataset": "a", "kind": "times"},
        "b.x": {"dataset": "b", "kind": "times"}, "b.growth": {"dataset": "b", "kind": "growth"},
    }  # fmt: skip
    assert choose_jobs(jobs, "e/times/a/x//seconds") == ["a.x"]
    assert choose_jobs(jobs, "e/growth/b/z//seconds") == ["b.growth"]
    # An average needs all datasets.
    assert choose_jobs(jobs, "e/other/mean/z//seconds") == list(jobs)


def test_a_rerun_that_differs_is_an_error(tmp_path):
    """Two rows of a committed table say what no run gives: the exit code is 1, and both verdicts are printed."""
    reports = tmp_path / "reports"
    shutil.copytree(REPOSITORY / "reports/reproduce", reports)
    table = reports / "distributions/dpwss_privacy.csv"
    items = read_distributions(table)
    name = "claim/privacy/epsilon at least"
    items[name] = dataclasses.replace(items[name], quantiles=(0.5,) * len(LEVELS))
    table.write_text(merge_distributions({}, items.values()))
    command = [sys.executable, "-m", "reproduce", "cell", "dpwss", "statements", "privacy", "all"]
    folders = ["--data", tmp_path / "data", "--reports", reports]
    result = subprocess.run([*command, *folders], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert re.match("committed: agrees; .*\nrerun: refuted; ", result.stdout)
    assert result.stderr.endswith("error: privacy: committed and rerun differ: agrees and refuted\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["statements", "coincident", "all"], "claim/coincident/share of condensed rows: not drawn; .*PRIVSVM_MIRROR"),
        (["statements", "support", "heart"], "support vectors: not measured; heart: .*PRIVSVM_MIRROR"),
        (["statements", "condense-fcm", "nowhere"], "column 'nowhere' is unknown"),
    ],
    ids=["draws", "jobs", "column"],
)
@pytest.mark.usefixtures("no_data")
def test_a_cell_without_data_is_an_error(row, message, tmp_path, capsys):
    with pytest.raises(PrivSVMError, match=message):
        main(["ci_svm", *row, "--data", str(tmp_path), *ARGUMENTS])
    assert "rerun" not in capsys.readouterr().out


def test_commands_pin_arithmetic_before_numpy_is_imported():
    modules = ", ".join(f"reproduce.{name}" for name in ("__main__", "cell", "confirm", "draws"))
    program = f"import sys, {modules}; print(*sorted({{'numpy', 'scipy', 'numba'}} & set(sys.modules)))"
    assert run_python("-c", program, cwd=REPOSITORY).strip() == ""


@pytest.mark.parametrize(
    ("before", "after", "number", "statement"),
    [
        ("", "ab", [FIRST_RUN], []),
        ("ab", "ab", [LATER_RUN], ["privacy"]),
        ("a", "ab", [], []),
    ],
)
def test_a_run_that_compiles_is_timed_apart(before, after, number, statement, tmp_path, monkeypatch):
    (tmp_path / "distributions").mkdir()
    judged, options = judge_committed("ppsvm"), argparse.Namespace(reports=tmp_path, paper="ppsvm")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled = {letter: tmp_path / f"{letter}.1.nbc" for letter in after}
    for path in compiled.values():
        path.touch()
    options.compiled = {compiled[letter] for letter in before}
    _record(options, judged, "privacy", 2.0)
    assert list(Sources(tmp_path / "distributions").parts(RERUNS, "ppsvm")) == statement
    _record(options, judged, judged.judgements[0].printed.id, 0.0)
    assert sorted(Sources(tmp_path / "distributions").parts(RERUNS, "ppsvm")) == sorted(number + statement)


@pytest.mark.usefixtures("no_data")
def test_named_data_that_nobody_has_are_an_error(tmp_path, capsys):
    from reproduce.draws import main as draw
    from reproduce.engine.command import main as run_experiments

    folders = ["--data", str(tmp_path), "--reports", str(tmp_path / "reports")]
    with pytest.raises(PrivSVMError, match="1 of 1 draws lack their data; the lines above"):
        draw(["dpwss", "--datasets", "heart", "--names", "dpwss_exact heart.shrinking=0", *folders])
    with pytest.raises(PrivSVMError, match="--datasets 'heart': not run; the lines above say why"):
        run_experiments(find_experiments("reproduce"), ["ci_svm_accuracy", "--datasets", "heart", *folders])
    said = capsys.readouterr().err
    assert said.count("PRIVSVM_MIRROR") == 2
    assert "glass" not in said


def test_draws_that_match_nothing_are_an_error():
    from reproduce.draws import main as draw

    with pytest.raises(PrivSVMError, match="--names 'weight': no draw has it in its name"):
        draw(["pmsvm", "--datasets", "Vehicle", "--names", "weight"])
    with pytest.raises(PrivSVMError, match="--datasets 'vehicle' is unknown; did you mean 'Vehicle'"):
        draw(["pmsvm", "--datasets", "vehicle"])
