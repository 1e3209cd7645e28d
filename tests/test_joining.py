"""Anybody's classifier joins the leaderboard by one file: it is isolated, audited, and ranked like the others."""

import ast
import contextlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from privsvm.errors import PrivSVMError
from tests.adversarial import count_differences
from tests.blocks import blocks
from tests.scripts import REPOSITORY

EXAMPLE = REPOSITORY / "bench/utility/submissions/diffprivlib_forest/entry.py"
ENTRIES = yaml.safe_load((REPOSITORY / "tests/entries.yaml").read_text())


@pytest.fixture(scope="module")
def join(utility):
    return utility("join")


@pytest.fixture(scope="module")
def joined(utility):
    return utility("joined")


@pytest.fixture(scope="module")
def rows(joined):
    """Rows of all entries, from the cells."""
    return joined.list_rows(joined.read())


@pytest.fixture
def stated(join):
    """State a guarantee with changes."""
    return lambda changes: f"GUARANTEE = {join.read_statement(EXAMPLE).model_dump() | {'name': 'own'} | changes}\n"


@pytest.fixture
def enter(join, stated, tmp_path):
    """Start the workers of an entry, given by its text, in this environment."""
    with contextlib.ExitStack() as stack:

        def start(text):
            path = tmp_path / "entry.py"
            path.write_text(stated({}) + text)
            workers = join.Workers(join.read_statement(path), Path(sys.executable), path, str(tmp_path))
            return stack.enter_context(contextlib.closing(workers))

        yield start


@pytest.mark.parametrize(("change", "message"), ENTRIES["mistakes"])
def test_a_statement_is_checked(join, stated, tmp_path, change, message):
    path = tmp_path / "entry.py"
    path.write_text(change if isinstance(change, str) else stated(change))
    with pytest.raises(PrivSVMError, match=message):
        join.check_name(path, join.read_statement(path).name)


def test_a_listed_file_keeps_its_name(join, tmp_path):
    join.check_name(EXAMPLE, "diffprivlib_forest")
    join.check_name(tmp_path / "entry.py", "own")


def test_an_entry_knows_its_own_task_alone(join, enter, monkeypatch):
    monkeypatch.setenv("PRIVSVM_MIRROR", "/nowhere")
    data, workers = join.draw_holdout(1), enter(ENTRIES["curious"])
    task = join.make_cell_task(workers.statement, data, 1.0, 1)
    assert len(task["y"]) == len(task["X"]) == 1000
    public = {"bounds", "classes", "epsilon", "delta", "neighbours"}
    assert set(task) == {"X", "y", "X_test", "seeds"} | public
    for _ in range(2):
        (answer,) = workers.all[0].run_task(task, 1)["fits"]
        # One call, all rows, no variable, no folder of the project.
        assert answer["numbers"] == [4.0, 1.0, 1000.0, 0.0, 0.0]
    (row,) = workers.score([(data, 1.0, 0)])
    assert row["accuracy"] == round(float(np.mean(data.y[1000:] == 0)), 5)
    assert np.isnan(row["auc"])


@pytest.mark.parametrize(("text", "message"), ENTRIES["failures"])
def test_a_fit_that_fails_is_no_answer(join, enter, tmp_path, text, message):
    with pytest.raises(PrivSVMError, match=f"a trial fit failed: .*{message}"):
        join.try_entry(enter(text), tmp_path / "entry.py")


def test_a_quarter_of_the_noise_is_refuted_and_all_of_it_is_not(join, enter, monkeypatch):
    """Looks end with the first that refutes, and the number of its draws gives the same bits."""
    monkeypatch.setattr(join, "DRAWS", (80, 2000, 20_000))
    found = join.audit_for_minutes(enter(f"SHARE = 0.25\n{ENTRIES['noisy_means']}"), 1000)
    assert (found["refuted"], found["draws"]) == (True, 2000)
    assert float(found["at_least"]) > 1.5
    monkeypatch.setattr(join, "DRAWS", (80, 400, 100_000))
    found = join.audit_for_minutes(enter(f"SHARE = 1.0\n{ENTRIES['noisy_means']}"), 0.01)
    assert (found["refuted"], found["draws"]) == (False, 80)
    assert float(found["at_least"]) <= 1.0
    assert found == join.audit_entry(enter(f"SHARE = 1.0\n{ENTRIES['noisy_means']}"), 80)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_audited_tables_are_neighbours_within_bounds(join, relation):
    for pair in join.audited_pairs(relation):
        assert count_differences(pair) == ((1, 1) if relation == "replace_one" else (1, 0))
        for rows, _ in (pair.first, pair.second):
            assert ((rows >= 0.0) & (rows <= 1.0)).all()


def test_a_holdout_follows_from_its_seed(join):
    first, again, other = (join.draw_holdout(seed) for seed in (1, 1, 2))
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert first.X.shape != other.X.shape or not np.array_equal(first.X, other.X)
    assert 0.0 <= first.X.min() <= first.X.max() <= 1.0
    assert len(np.unique(first.y)) == first.n_classes


def test_places_count_listed_entries_that_are_ahead(joined):
    listed = pd.DataFrame({"a": [0.9, 0.8], "b": [0.7, np.nan]})
    assert joined.mean_place(listed, pd.Series([0.8, 0.8])).startswith("1.5 (1.0 to 2.0)")
    # A twin does not move it, whatever the round-off, and no answer is last.
    twin = [0.8, 0.8 + 1e-16]
    assert joined.mean_place(listed.assign(c=twin), pd.Series([0.8, 0.8])).startswith("1.5 (")
    assert joined.mean_place(listed, pd.Series([np.nan, 0.9])).startswith("2.0 (")


def test_rows_of_an_entry_are_replaced(joined, monkeypatch, tmp_path):
    monkeypatch.setattr(joined, "TABLES", tmp_path)
    (tmp_path / "table.csv").write_text("name,value\nb,1\n")
    for name, value in (("a", 2), ("b", 3)):
        joined.replace_rows("table", name, [{"name": name, "value": value}])
    assert (tmp_path / "table.csv").read_text() == "name,value\na,2\nb,3\n"


def test_a_withdrawn_entry_leaves_its_name(joined, rows, monkeypatch):
    statements = joined.read_rows("joined")
    tables = {"joined": statements.assign(withdrawn="by its author"), "holdouts": joined.read_rows("holdouts")}
    monkeypatch.setattr(joined, "read_rows", tables.get)
    assert f"Withdrawn: {statements.name[0]} (by its author)." in joined.with_joined(joined.PAGE.read_text(), rows)
    listed = [row for row in joined.list_rows(joined.read()) if row["entry"] == joined.title(statements.name[0])]
    assert [row["repeats"] for row in listed] == [""]


def test_an_audit_of_its_library_refutes_an_entry(utility, rows, monkeypatch):
    """Under the relation of the audit alone, and with its bound."""
    entries, forest = utility("entries"), "diffprivlib_forest"
    (audit,), (other,) = (entries.refutations(forest, [relation]) for relation in ("add_remove", "replace_one"))
    assert (audit["relation"], other["relation"]) == ("add_remove", "replace_one")
    stated = [entries.status(name, ["add_remove"]) for name in (forest, "dp_ebm", "recommended")]
    assert stated == ["**refuted**", "claimed", "proved"]
    (row,) = [row for row in rows if row["entry"] == entries.title(forest)]
    bound = f"{audit['low']:.3g} ({audit['draws']})"
    assert (row["status"], row["epsilon is at least (draws)"]) == ("**refuted**", bound)
    monkeypatch.setitem(entries.AUDITED, "dp_ebm", ("diffprivlib", "logistic regression"))
    assert entries.status("dp_ebm", ["replace_one"]) == "claimed"


def test_raw_scores_follow_their_schema(joined):
    rows = joined.raw_scores()
    assert {name: str(kind) for name, kind in rows.dtypes.items()} == joined.SCHEMA
    assert not rows.duplicated(["table", "entry", "set", "neighbours", "epsilon", "split"]).any()
    assert set(rows.table) == {"leaderboard", "judge", "peers", "joined_scores"}
    assert set(rows.neighbours) == {"add_remove", "replace_one", ""}
    scored = rows[rows.status == "ok"]
    assert scored.accuracy.between(0.0, 1.0).sum() >= 0.99 * len(scored)


def test_the_section_is_computed_from_the_cells(joined, rows):
    page = joined.PAGE.read_text()
    assert joined.with_joined(page, rows) == page, "run python bench/utility/leaderboard.py --page-only"


def test_the_page_has_the_example_and_its_row_is_the_listed_one(joined):
    page = next(block for block in blocks() if block.page == "docs/join-leaderboard.md")
    trees = [ast.parse(text).body for text in (page.text, EXAMPLE.read_text())]
    assert [ast.dump(node) for node in trees[0]] == [ast.dump(node) for node in trees[1][1:]]
    scores = joined.raw_scores().query("entry == 'diffprivlib_forest'").set_index("table")
    ours, theirs = ({*scores.loc[name].itertuples(index=False)} for name in ("joined_scores", "peers"))
    assert len(ours) == 600
    assert ours <= theirs
