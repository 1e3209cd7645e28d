"""One command for each cell."""

import pytest

from privsvm.errors import PrivSVMError
from reproduce.cell import MODULES, draws_of, judge_committed, main
from reproduce.engine.cells import choose_draws, column_of, find_printed
from reproduce.engine.judging import TIMES
from tests.processes import told_by_python

from .conftest import REPOSITORY

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
    committed, rerun = told_by_python(*command, cwd=REPOSITORY).splitlines()
    assert committed.startswith("committed: refuted; two rows")
    assert rerun.removeprefix("rerun: ") == committed.removeprefix("committed: ")


def test_draws_that_match_nothing_are_an_error():
    from reproduce.draws import main as draw

    with pytest.raises(PrivSVMError, match="--names 'weight': no draw has it in its name"):
        draw(["pmsvm", "--datasets", "Vehicle", "--names", "weight"])
    with pytest.raises(PrivSVMError, match="--datasets 'vehicle' is unknown; did you mean 'Vehicle'"):
        draw(["pmsvm", "--datasets", "vehicle"])
