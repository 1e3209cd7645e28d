"""The ledger: nothing is lost or counted twice, whatever happens; edits and cuts show; totals compose."""

import dataclasses
import json
import math
import multiprocessing
import os
import re
import shutil
import signal
from pathlib import Path
from unittest.mock import Mock

import filelock
import jsonschema
import numpy as np
import pytest
import yaml
from dp_accounting import get_epsilon_gaussian
from tests.blocks import blocks_run_by
from tests.faults.harness import in_fork, kill_at
from tests.processes import exit_codes
from tests.release.conftest import in_shell, run
from tests.release.made_up import hashed
from tests.waits import PATIENCE

from privsvm.errors import PrivSVMError
from privsvm.privacy.accountants import group_account
from privsvm.privacy.events import Composed, leaves
from privsvm.privacy.gate import compose
from privsvm.release.documents.deployments import deployments
from privsvm.release.documents.ledger import Ledger
from privsvm.release.documents.verifying import verify
from privsvm.release.training import releasing
from privsvm.release.training.recipes import Recipe, Terms
from privsvm.release.training.releasing import CardOptions, Permission, RefusedError, release
from privsvm.tables.schema import parse_schema, read_schema

RECIPE = Recipe("private_svm", {"C": 0.02})


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small table, and its schema for rows and for persons."""
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(60, 2))
    rows = [f"p{row_index // 3},{a},{b},{int(a > 0)}" for row_index, (a, b) in enumerate(x)]
    (folder / "t.csv").write_text("\n".join(["who,a,b,y", *rows]))
    columns = {"who": "ignore", "a": {"bounds": [-1, 1], "fill": "middle"}, "b": {"bounds": [-1, 1], "fill": "middle"}}
    per_row = {"name": "small", "label": "y", "classes": [0, 1], "prescaled": False, "columns": columns}
    per_person = per_row | {"name": "persons", "person": "who", "rows_per_person": 3}
    per_person["columns"] = {name: columns[name] for name in "ab"}
    return folder / "t.csv", parse_schema(per_row), parse_schema(per_person)


def agree(before, after):
    return True


def once(small, folder, name, epsilon=1.0, persons=False, **options):
    data, per_row, per_person = small
    settings = {"recipe": RECIPE, "confirm": agree, "today": "2026-01-01", "without_inspection": True}
    settings |= {"epsilon": epsilon} | options
    ledger = settings.pop("ledger", None) or Ledger(folder / "ledger.jsonl", wait=PATIENCE)
    schema = per_person if persons else per_row
    parts = []
    for kind in (Terms, Permission, CardOptions):
        names = {field.name for field in dataclasses.fields(kind)} & set(settings)
        parts.append(kind(**{name: settings.pop(name) for name in names}))
    assert not settings
    return release(data, schema, folder / name, parts[0], ledger, *parts[1:])


@pytest.mark.parametrize("persons", [False, True])
def test_the_total_is_that_of_one_accountant(small, tmp_path, persons):
    # A clock that is set back changes no total.
    epsilons, days = (1.0, 0.5, 0.5), ["2026-05-01", "1999-01-01", "2026-05-02"]
    done = [
        once(small, tmp_path, day, epsilon, persons, today=day) for epsilon, day in zip(epsilons, days, strict=True)
    ]
    assert [entry.date for entry in Ledger(tmp_path / "ledger.jsonl").entries()] == days
    guarantees = [one.entry.guarantee for one in done]
    total = done[-1].total
    assert [one.entry.epsilon for one in done] == pytest.approx(epsilons)
    assert total.releases == 3
    assert total.delta == pytest.approx(3e-5)
    if persons:
        events = Composed(tuple(guarantee.event for guarantee in guarantees))
        assert total.epsilon == group_account(events, 3, total.delta, "add_remove").epsilon
    else:
        assert total.epsilon == compose(guarantees).epsilon_proved
    assert 1.0 < total.epsilon < sum(epsilons)
    assert Ledger(tmp_path / "ledger.jsonl").total("another") is None


def test_a_budget_is_kept(small, tmp_path):
    once(small, tmp_path, "first", budget=1.5)
    with pytest.raises(RefusedError, match="nothing was spent"):
        once(small, tmp_path, "second", budget=1.2)
    with pytest.raises(RefusedError, match="above the budget"):
        once(small, tmp_path, "second", epsilon=2.0, budget=1.5)
    with pytest.raises(RefusedError, match="with this one, about 2\\. Run with --yes to spend more"):
        once(small, tmp_path, "second", confirm=lambda before, after: False)
    assert len(Ledger(tmp_path / "ledger.jsonl").entries()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"first", "ledger.jsonl", "ledger.jsonl.lock"}


def test_a_budget_is_remembered(small, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    once(small, tmp_path, "first", budget=1.2)
    for options in ({}, {"epsilon": 1.5}):
        with pytest.raises(RefusedError, match=r"above the budget of 1\.2; nothing was spent"):
            once(small, tmp_path, "second", **options)
    confirm = Mock(return_value=True)
    once(small, tmp_path, "second", budget=2.0, confirm=confirm)
    once(small, tmp_path, "third", epsilon=0.1, confirm=confirm)
    assert [tuple(total.budget for total in asked) for asked, _ in confirm.call_args_list] == [(1.2, 2.0), (2.0, 2.0)]
    assert [entry.budget for entry in ledger.entries()] == [1.2, 2.0, None]
    assert ledger.total("small").budget == 2.0
    code, out, _ = run("ledger", "--ledger", tmp_path / "ledger.jsonl")
    assert (code, "small: 3 release(s)" in out, ", of a budget of 2\n" in out) == (0, True, True)


@pytest.mark.parametrize(("persons", "hold_back"), [(False, None), (True, None), (False, 0.2), (True, 0.2)])
def test_the_question_names_the_total(small, tmp_path, persons, hold_back):
    """The total stated before training is the ledger's afterwards, and no more than the sum."""
    options = {"recipe": None, "persons": persons, "hold_back": hold_back}
    once(small, tmp_path, "first", **options)
    confirm = Mock(return_value=True)
    done = once(small, tmp_path, "second", epsilon=0.5, confirm=confirm, **options)
    before, after = confirm.call_args.args
    confirm.assert_called_once()
    assert before.epsilon == pytest.approx(1.0)
    assert (after.releases, after.delta) == (2, pytest.approx(done.total.delta))
    assert after.epsilon == pytest.approx(done.total.epsilon, rel=0.01)
    assert 1.0 < after.epsilon <= 1.5
    # An observer of both guesses better than an observer of one.
    single = done.entry.guarantee.risk(rows=done.entry.rows).guess
    assert single < done.total.guess() < 1.0


def test_what_has_no_total_is_refused_before_it_is_spent(small, tmp_path):
    data, per_row, per_person = small
    once(small, tmp_path, "first")
    for options in ({"epsilon": 1e-9}, {"delta": 2.0}):
        with pytest.raises(PrivSVMError, match="must"):
            once(small, tmp_path, "second", recipe=None, **options)
    same_name = parse_schema(per_person.to_json() | {"name": per_row.name})
    with pytest.raises(PrivSVMError, match="persons under add_remove and rows under replace_one, which have no total"):
        once((data, per_row, same_name), tmp_path, "second", persons=True)
    assert len(Ledger(tmp_path / "ledger.jsonl").entries()) == 1


def test_releases_under_both_relations_add_up_as_replaced_rows(small, tmp_path):
    """By their events at twice the sensitivity, whatever came first; each line states both epsilons."""
    order = ("add_remove", "replace_one", "add_remove")
    confirm = Mock(return_value=True)
    terms = {"recipe": None, "confirm": confirm}
    done = [once(small, tmp_path, f"m{n}", neighbours=order[n], **terms) for n in range(3)]
    first, mixed = done[0].total, done[-1].total
    assert list(first.by_relation) == ["add_remove", "replace_one"]
    assert first.by_relation["replace_one"] == done[0].entry.by_relation["replace_one"] > 2.0
    assert (mixed.neighbours, list(mixed.by_relation)) == ("replace_one", ["replace_one"])
    signals = [exact_signal(one.entry.guarantee) for one in done]
    assert mixed.epsilon == pytest.approx(get_epsilon_gaussian(1.0 / math.hypot(*signals), 3e-5), rel=1e-6)
    # The cost was about this before the release, and the card and the ledger state it.
    for ((before, after), _), one, earlier in zip(confirm.call_args_list, done[1:], done[:-1], strict=True):
        assert (before.neighbours, after.neighbours) == (earlier.total.neighbours, "replace_one")
        assert after.epsilon == pytest.approx(one.total.epsilon, rel=0.02)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    lines = [json.loads(line) for line in ledger.path.read_text().splitlines()[::2]]
    assert [list(line["by_relation"]) for line in lines] == [
        ["add_remove", "replace_one"], ["replace_one"], ["add_remove", "replace_one"],
    ]  # fmt: skip
    for number in range(3):
        verify(tmp_path / f"m{number}", ledger=ledger)
    text = str(ledger.total("small"))
    assert text == f"small: 3 release(s), epsilon {mixed.epsilon:.4g} per row, delta 3e-05, under replace_one"
    with pytest.raises(RefusedError, match="together under replace_one, above the budget"):
        once(small, tmp_path, "more", neighbours="add_remove", budget=mixed.epsilon + 0.1, **terms)


def exact_signal(guarantee):
    """How far a replaced row moves the Gaussian releases of a record, in standard deviations."""
    return 2.0 * math.hypot(*(math.sqrt(count) / event.noise_multiplier for event, count in leaves(guarantee.event)))


def test_no_line_states_a_smaller_epsilon_for_a_replaced_row(small, tmp_path):
    once(small, tmp_path, "first", recipe=None, neighbours="add_remove")
    path = tmp_path / "ledger.jsonl"
    changed = json.loads(path.read_text().splitlines()[0])
    changed["by_relation"]["replace_one"] = 2.0 * changed["epsilon"]
    path.write_text(hashed(changed))
    with pytest.raises(PrivSVMError, match="was changed or cut"):
        Ledger(path).entries()
    # A line of an earlier commit states one epsilon, and costs the same.
    del changed["by_relation"]
    path.write_text(hashed(changed))
    (entry,) = Ledger(path).entries()
    assert entry.by_relation["replace_one"] > 2.0 * entry.epsilon


def test_edits_and_cuts_show(small, tmp_path):
    """Also in a release, which then leaves all as it is."""
    for name in ("a", "b", "c"):
        once(small, tmp_path, name)
    (tmp_path / "elsewhere").mkdir()
    once(small, tmp_path / "elsewhere", "m")
    merged = (tmp_path / "elsewhere/ledger.jsonl").read_text()
    path = tmp_path / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for broken in (
        lines[1:],
        [*lines[:2], *lines[3:]],
        [lines[1], lines[0], *lines[2:]],
        [*lines, lines[5]],
        [*lines, *lines[:2]],
        [*lines, merged],
        [lines[0].replace("small", "smell"), *lines[1:]],
        [re.sub(r'"epsilon":[0-9.]+,', '"epsilon":0.1,', lines[0]), *lines[1:]],
        [lines[0], "{}\n", lines[2]],
        [*lines[:2], lines[2][:100]],
        [*lines[:2], lines[2][:100] + "\n"],
    ):
        path.write_text("".join(broken))
        with pytest.raises(PrivSVMError, match="was changed or cut, or a line before it is missing"):
            once(small, tmp_path, "more")
        assert path.read_text() == "".join(broken)
        assert not (tmp_path / "more").exists()
    # A cut end leaves a whole chain, which goes on; cards know better.
    path.write_text("".join(lines[:4]))
    verify(tmp_path / "b", ledger=Ledger(path))
    for name in ("d", "e"):
        with pytest.raises(PrivSVMError, match="does not contain this release"):
            verify(tmp_path / "c", ledger=Ledger(path))
        assert once(small, tmp_path, name).total.releases > 2
    path.write_text(lines[0].replace('"version":3', '"version":4'))
    with pytest.raises(PrivSVMError, match="has version 4; update PrivSVM"):
        Ledger(path).entries()


@pytest.mark.parametrize("written", [
    lambda text: text.removesuffix("\n"), lambda text: text + "\n\n", lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\r\n").removesuffix("\r\n"),
])  # fmt: skip
@pytest.mark.parametrize("n_lines", [1, 2, 3, 4])
def test_an_editor_forgets_no_release(small, tmp_path, written, n_lines):
    """Whatever it does to the ends of lines: whole lines that fit the chain count."""
    for name in ("a", "b"):
        once(small, tmp_path, name)
    path = tmp_path / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)[:n_lines]
    path.write_bytes(written("".join(lines)).encode())
    before = Ledger(path).entries()
    assert [bool(entry.model) for entry in before] == [True, True][: n_lines // 2] + [False] * (n_lines % 2)
    done = once(small, tmp_path, "c")
    assert Ledger(path).entries() == [*before, done.entry]
    assert done.total.releases == len(before) + 1
    verify(tmp_path / "c", ledger=Ledger(path))


def _kill_at(moment, small, folder):
    """Release in a process that kills itself at its n-th call that changes the disk."""
    return in_fork(lambda: once(small, folder, "model"), kill_at(moment))


def test_a_kill_loses_no_entry_and_counts_none_twice(small, tmp_path):
    once(small, tmp_path / "warm", "model")
    (tmp_path / "whole").mkdir()
    whole = _kill_at(0, small, tmp_path / "whole")
    assert whole.code == 0
    moments = sorted({round(call) for call in np.linspace(1, whole.calls, 24)})
    assert len(moments) >= 20
    spent_before_the_kill = 0
    for moment in moments:
        folder = tmp_path / str(moment)
        folder.mkdir()
        assert _kill_at(moment, small, folder).was_killed
        ledger = Ledger(folder / "ledger.jsonl")
        before = ledger.entries()
        assert len(before) <= 1
        if (folder / "model").exists():
            assert [bool(entry.model) for entry in before] == [True]
        else:
            again = once(small, folder, "model", confirm=lambda before, after: False)
            assert not again.resumed or before
        (entry,) = ledger.entries()
        # The payment before the kill also pays for the next attempt.
        assert not before or (entry.id, entry.guarantee) == (before[0].id, before[0].guarantee)
        spent_before_the_kill += len(before)
        verify(folder / "model", ledger=ledger)
        assert not list(folder.glob(".*.part"))
    assert 0 < spent_before_the_kill < len(moments)


def _interrupt(small, folder, name, step, **options):
    """Begin a release, and let it fail in a step after its noise was drawn."""

    def failing(*arguments):
        raise OSError("no room")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releasing, step, failing)
        with pytest.raises(PrivSVMError, match="no room; the release is paid for in the ledger: fix that and run the"):
            once(small, folder, name, **options)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("hold_back", [None, 0.2])
@pytest.mark.parametrize("step", ["_write_part", "_finish"])
def test_a_release_that_fails_is_paid_for_once(small, tmp_path, step, persons, hold_back):
    """An outcome of noise is an outcome; the same command draws again on the line that paid, and asks nobody."""
    options = {"recipe": None, "persons": persons, "hold_back": hold_back, "budget": 1.2}
    _interrupt(small, tmp_path, "m", step, **options)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    (paid,) = ledger.entries()
    assert bool(paid.model) == (step == "_finish")
    total = ledger.total(paid.account)
    assert (total.releases, total.epsilon) == (1, pytest.approx(1.0, rel=0.01))
    unfinished = ", paid and not finished" in run("ledger", "--ledger", ledger.path)[1]
    assert unfinished == (not paid.model)
    assert [record["url_slug"] for record in deployments(ledger.entries())] == [f"{paid.account}-1"] * bool(paid.model)
    _interrupt(small, tmp_path, "m", step, **options)
    assert [(entry.id, entry.number) for entry in ledger.entries()] == [(paid.id, 1)]
    done = once(small, tmp_path, "m", confirm=lambda before, after: False, **options)
    assert done.resumed == bool(paid.model)
    assert ledger.entries() == [done.entry]
    assert (done.entry.id, done.entry.guarantee) == (paid.id, paid.guarantee)
    verify(tmp_path / "m", ledger=ledger)


def test_a_model_that_was_written_is_released_as_it_is(small, tmp_path):
    """Only the line that names it is missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "finish", lambda *arguments: os.kill(os.getpid(), signal.SIGKILL))
        assert in_fork(lambda: once(small, tmp_path, "m")).was_killed
    written = json.loads((tmp_path / ".m.part" / "model.json").read_text())["digest"]
    done = once(small, tmp_path, "m", confirm=lambda before, after: False)
    assert (done.resumed, done.entry.model, done.total.releases) == (True, written, 1)
    verify(tmp_path / "m", ledger=Ledger(tmp_path / "ledger.jsonl"))


@pytest.mark.parametrize(
    "other",
    [{"epsilon": 0.5}, {"name": "n"}, {"neighbours": "replace_one"}, {"hold_back": 0.2}, {"delta": 1e-6}],
    ids=str,
)
def test_any_other_command_pays(small, tmp_path, other):
    options = {"recipe": None, "name": "m", "neighbours": "add_remove"}
    _interrupt(small, tmp_path, step="_write_part", **options)
    changed = options | other
    with pytest.raises(RefusedError, match=r"Run with --yes|entered in the meantime"):
        once(small, tmp_path, **changed, confirm=lambda before, after: False)
    assert once(small, tmp_path, **changed).total.releases == 2
    assert len(Ledger(tmp_path / "ledger.jsonl").entries()) == 2


def test_another_table_or_schema_pays(small, tmp_path):
    data, per_row, per_person = small
    _interrupt(small, tmp_path, "m", "_write_part")
    longer = tmp_path / "longer.csv"
    longer.write_text(data.read_text() + "\np0,0.1,0.2,1")
    columns = dict(per_row.to_json()["columns"])
    columns["a"] = columns["a"] | {"fill": 0.5}
    filled = parse_schema(per_row.to_json() | {"columns": columns})
    for other in ((longer, per_row, per_person), (data, filled, per_person)):
        with pytest.raises(RefusedError, match=r"Run with --yes|entered in the meantime"):
            once(other, tmp_path, "m", confirm=lambda before, after: False)
    assert len(Ledger(tmp_path / "ledger.jsonl").entries()) == 1


def test_one_payment_releases_one_model(small, tmp_path):
    """Also where the temporary folder of an interrupted release was copied."""
    _interrupt(small, tmp_path, "m", "_write_part")
    shutil.copytree(tmp_path / ".m.part", tmp_path / ".n.part")
    once(small, tmp_path, "n", confirm=lambda before, after: False)
    with pytest.raises(RefusedError):
        once(small, tmp_path, "m", confirm=lambda before, after: False)
    entry = Ledger(tmp_path / "ledger.jsonl").entries()[0]
    with pytest.raises(PrivSVMError, match="another process has finished release 1"):
        Ledger(tmp_path / "ledger.jsonl").finish(entry, "0" * 64, "2026-01-01")


def test_a_model_is_named_on_the_line_that_paid_for_it(small, tmp_path):
    """Not on another one that has its number, where the ledger was exchanged in between."""
    _interrupt(small, tmp_path, "cheap", "_write_part", epsilon=0.1)
    path, write_part = tmp_path / "ledger.jsonl", releasing._write_part
    other = path.read_text()
    path.unlink()

    def exchange(*arguments):
        path.write_text(other)
        return write_part(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releasing, "_write_part", exchange)
        with pytest.raises(PrivSVMError, match="or its line is gone; this model is dropped"):
            once(small, tmp_path, "m", epsilon=8.0)
    assert path.read_text() == other
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("begun", ['{"token": ""}', '{"token": "short"}', '{"token": 3}', "[" * 900, None], ids=str)
def test_a_broken_name_of_an_interrupted_release_is_a_new_one(small, tmp_path, begun):
    (tmp_path / ".m.part").mkdir()
    if begun is None:
        # Nobody waits for what another process writes into a pipe.
        os.mkfifo(tmp_path / ".m.part" / "begun.json")
    else:
        (tmp_path / ".m.part" / "begun.json").write_text(begun)
    assert once(small, tmp_path, "m").total.releases == 1


def test_kills_of_every_attempt_are_paid_for_once(small, tmp_path):
    """An attempt that was killed before it restarted had forgotten the earlier payment."""
    _interrupt(small, tmp_path, "model", "_write_part")
    for moment in range(1, 31):
        _kill_at(moment, small, tmp_path)
    done = once(small, tmp_path, "model", confirm=lambda before, after: False)
    assert Ledger(tmp_path / "ledger.jsonl").entries() == [done.entry]


def test_an_interrupted_line_is_taken_back(small, tmp_path, monkeypatch):
    """Ctrl-C in the middle of it left a ledger that nobody could read, and after it a cost that was paid again."""
    done, write = once(small, tmp_path, "a"), os.write

    def interrupt(descriptor, line):
        monkeypatch.undo()
        write(descriptor, line[:40])
        raise KeyboardInterrupt

    with Ledger(tmp_path / "ledger.jsonl").lock():
        monkeypatch.setattr(os, "write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            Ledger(tmp_path / "ledger.jsonl").begin({**vars(done.entry), "model": ""} | {"id": "0" * 64})
    assert Ledger(tmp_path / "ledger.jsonl").entries() == [done.entry]


@pytest.mark.parametrize(
    "mistake",
    [
        {"recipe": Recipe("softmax_dpsgd", {"max_grad_norm": -1.0})}, {"recipe": Recipe("private_svm", {"gap": 1e-99})},
        {"recipe": Recipe("softmax_dpsgd", {"batch_size": 7}), "persons": True}, {"delta": 0.1}, {"hold_back": 0.9},
        {"epsilon": 99.0}, {"epsilon": 1e-12, "delta": 1e-12},
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_costs_nothing(small, tmp_path, mistake):
    with pytest.raises(PrivSVMError):
        once(small, tmp_path, "m", **{"recipe": None, **mistake})
    assert Ledger(tmp_path / "ledger.jsonl").entries() == []
    assert not list(tmp_path.glob(".*.part"))


def _if_it_may(small, folder, name, gate, budget):
    gate.wait()
    try:
        once(small, folder, name, budget=budget)
    except RefusedError:
        # Refused by the budget that others have used meanwhile: the one code of a worker for that.
        os._exit(7)


@pytest.mark.parametrize("attempt", range(3))
def test_processes_that_start_at_once_spend_no_more_than_the_budget(small, tmp_path, attempt):
    once(small, tmp_path, "m")
    guarantee = Ledger(tmp_path / "ledger.jsonl").entries()[0].guarantee
    # Three releases fit in, one of which is made, and four are tried.
    budget = compose([guarantee] * 3).epsilon_proved * 1.001
    gate, names = multiprocessing.get_context("fork").Barrier(4), [f"m{number}" for number in range(4)]
    calls = [(small, tmp_path, name, gate, budget) for name in names]
    assert sorted(exit_codes(_if_it_may, calls)) == [0, 0, 7, 7]
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert [entry.number for entry in ledger.entries()] == [1, 2, 3]
    assert ledger.total("small").epsilon <= budget
    # Refused releases leave no model behind.
    models = {entry.model for entry in ledger.entries()}
    released = [tmp_path / name for name in ["m", *names] if (tmp_path / name).exists()]
    assert {json.loads((folder / "model.json").read_text())["digest"] for folder in released} == models
    for folder in released:
        verify(folder, ledger=ledger)
    assert not list(tmp_path.glob(".*.part"))


def test_a_locked_ledger_and_a_reserved_folder_are_waited_for_no_longer_than_said(small, tmp_path):
    locked = pytest.raises(PrivSVMError, match="locked by another release")
    with filelock.FileLock(tmp_path / "ledger.jsonl.lock"), locked:
        once(small, tmp_path, "m", ledger=Ledger(tmp_path / "ledger.jsonl", wait=0.01))
    with filelock.FileLock(tmp_path / ".m.lock"), pytest.raises(PrivSVMError, match="another release is writing"):
        once(small, tmp_path, "m")
    assert Ledger(tmp_path / "ledger.jsonl").entries() == []


@pytest.fixture(scope="module")
def registry():
    """Return the registry's check of a record."""
    schema = yaml.safe_load((Path(__file__).parents[1] / "deployments-schema.yaml").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


def test_exported_releases_are_valid_in_the_registry(hospital, registry):
    """Of both units and relations, and of several releases of a data set."""
    folders = (hospital, Path(__file__).parents[1] / "version_1")
    for entries in ([*Ledger(folder / "ledger.jsonl").entries()] * count for folder in folders for count in (1, 2)):
        for record in deployments(entries):
            registry.validate(record)
            several = record["deployment"]["deployment_model"]["release_type"] == "Many releases"
            assert several == (len(entries) > 1)


def test_drafts_become_files_that_the_registry_accepts(hospital_copy, registry, monkeypatch):
    """Its own checks ask for the schema, the name of the file, and text that no line break changes."""
    monkeypatch.chdir(hospital_copy)
    export, split = blocks_run_by(__file__)
    (command,) = export.commands
    _, out = in_shell(command)
    exec(compile(split.text, split.page, "exec"), {})
    (file,) = (path for path in Path.cwd().glob("*.yaml") if path.name.startswith("hospital_"))
    assert re.fullmatch(r"[a-z0-9_]+\.yaml", file.name)
    record = yaml.safe_load(file.read_text())
    registry.validate(record)
    assert record == json.loads(out)[0]
    loss = record["deployment"]["privacy_loss"]
    assert (record["url_slug"], loss["privacy_unit"]) == ("hospital-1", "person")
    assert loss["privacy_parameters"] == {"delta": 1e-05, "epsilon": pytest.approx(1.0, abs=0.1)}
    styles = {token.style for token in yaml.scan(file.read_text()) if hasattr(token, "style")}
    assert styles <= {None, "|", "'", '"'}
    # As many as the page names.
    assert str(record).count("to be filled in") == 4


@pytest.mark.parametrize(
    ("name", "unit", "budget", "row"),
    [
        ("version_1", "row", None, "50,a,2020-05-01,yes,1"),
        ("version_1", "row", 9.0, "50,a,2020-05-01,yes,1"),
        ("version_2", "person", None, "{person},50,a"),
    ],
)
def test_ledgers_of_all_versions_are_read_and_continued(name, unit, budget, row, tmp_path):
    """They record payments. Version 2 of a line added the budget."""
    old, ledger = Path(__file__).parents[1] / name, Ledger(tmp_path / "ledger.jsonl")
    line = json.loads((old / "ledger.jsonl").read_text())
    if budget is not None:
        line |= {"version": 2, "budget": budget}
    first = hashed(line)
    ledger.path.write_text(first)
    schema = read_schema(old / "schema.yaml")
    before = ledger.total(schema.name)
    assert (before.releases, before.unit, before.budget) == (1, unit, budget)
    assert before.epsilon == pytest.approx(2.0, abs=1e-6)
    columns = ([schema.person] if schema.person else []) + [*schema.columns, schema.label]
    rows = [f"{row.format(person=number // 2)},{'yes' if number % 3 else 'no'}" for number in range(400)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    permission = Permission(confirm=lambda *_: True, without_inspection=True)
    terms = Terms(1.0, neighbours="replace_one")
    done = release(tmp_path / "t.csv", schema, tmp_path / "m", terms, ledger, permission)
    assert (done.total.releases, done.total.budget) == (2, budget)
    assert 2.0 < done.total.epsilon <= 3.0
    assert ledger.path.read_text().startswith(first)
    verify(tmp_path / "m", ledger=ledger)


@pytest.mark.parametrize(
    ("budget", "message"), [(None, "another release was entered in the meantime"), (1.2, r"above the budget of 1\.2")]
)
def test_a_release_that_another_one_overtook_asks_again(small, tmp_path, budget, message):
    """Nobody spends twice who was asked about the first release alone, or not at all."""

    class Overtaken(Ledger):
        def check_writable(self):
            super().check_writable()
            once(small, tmp_path, "first")

    confirm = Mock(return_value=None)
    with pytest.raises(RefusedError, match=message):
        once(small, tmp_path, "m", ledger=Overtaken(tmp_path / "ledger.jsonl"), confirm=confirm, budget=budget)
    assert [tuple(total.releases for total in asked) for asked, _ in confirm.call_args_list] == [(1, 2)] * (
        budget is None
    )
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["first"]
    assert Ledger(tmp_path / "ledger.jsonl").total("small").releases == 1


def test_lines_of_other_types_are_refused_whatever_their_hashes_say(small, tmp_path):
    once(small, tmp_path, "m")
    path = tmp_path / "ledger.jsonl"
    text = path.read_text()
    begun, released = map(json.loads, text.splitlines())
    odd = [
        {"account": []}, {"unit": "group"}, {"rows": 0}, {"epsilon": -1.0}, {"delta": "inf"}, {"date": None},
        {"model": "a" * 64}, {"id": "x"}, {"id": ""},
        {"account": "a b"}, {"state": "paid"}, {"state": None}, {"number": 2}, {"version": 2},
        {"version": "3"}, {"version": None},
        # Less than its event costs.
        {"epsilon": 0.5}, {"delta": 1e-9}, {"unit": "person", "rows": 2}, {"rows": 2},
    ]  # fmt: skip
    broken = [(1, hashed(begun | change)) for change in odd]
    changes = ({"model": ""}, {"model": 1}, {"number": 2}, {"number": 0}, {"number": True}, {"date": "x"})
    broken += [(2, text.splitlines()[0] + "\n" + hashed(released | change)) for change in changes]
    for number, content in broken:
        path.write_text(content)
        with pytest.raises(PrivSVMError, match=f"line {number} was changed or cut, or a line before it is missing"):
            Ledger(path).entries()


def test_links_to_a_ledger_share_its_lock(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link.jsonl").symlink_to(tmp_path / "ledger.jsonl")
    locked = pytest.raises(PrivSVMError, match="locked by another release")
    with Ledger(tmp_path / "ledger.jsonl").lock(), locked:
        Ledger(tmp_path / "other" / "link.jsonl", wait=0.01).check_writable()


def test_hard_links_share_no_lock_and_are_refused(small, tmp_path):
    """Two processes that wrote to one file by two names broke it for good."""
    once(small, tmp_path, "a")
    os.link(tmp_path / "ledger.jsonl", tmp_path / "link.jsonl")
    for name in ("ledger", "link"):
        with pytest.raises(PrivSVMError, match=rf"{name}.jsonl: has several names \(hard links\)"):
            once(small, tmp_path, "b", ledger=Ledger(tmp_path / f"{name}.jsonl"))
    (tmp_path / "link.jsonl").unlink()
    assert once(small, tmp_path, "b").total.releases == 2


def test_what_is_no_file_is_no_ledger(small, tmp_path):
    for path in ("/dev/zero", "."):
        with pytest.raises(PrivSVMError, match="is no file; give --ledger"):
            once(small, tmp_path, "m", ledger=Ledger(path))


def test_a_ledger_on_a_read_only_disk_is_found_before_training(small, tmp_path, monkeypatch):
    once(small, tmp_path, "m")
    real = open

    def read_only(path, mode="r", *arguments, **options):
        if str(path).endswith("ledger.jsonl") and "+" in mode:
            raise OSError(30, "Read-only file system", str(path))
        return real(path, mode, *arguments, **options)

    monkeypatch.setattr("builtins.open", read_only)
    monkeypatch.setattr(releasing, "train", lambda *arguments, **options: pytest.fail("trained in vain"))
    with pytest.raises(OSError, match="Read-only file system"):
        once(small, tmp_path, "again")


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_whatever_the_umask_nobody_else_writes_a_release(small, tmp_path, mask):
    before = os.umask(mask)
    try:
        once(small, tmp_path, "m")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in [tmp_path / "m", *(tmp_path / "m").iterdir()]}
    assert modes.pop("m") == 0o755
    assert set(modes.values()) == {0o644}
    assert (tmp_path / "ledger.jsonl").stat().st_mode & 0o777 == 0o600


def test_odd_names_of_folders_are_that_folder_or_refused(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    once(small, tmp_path, "new/../m")
    assert (tmp_path / "m/card.html").exists()
    assert not (tmp_path / "new").exists()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("nowhere")
    once(small, tmp_path, "link/mit Leerzeichen und ü")
    assert (tmp_path / "real/mit Leerzeichen und ü/card.html").exists()
    data, schema, _ = small
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for name in ("", ".", "..", "/", "link", "dangling", "m/"):
        with pytest.raises(PrivSVMError, match="exists already"):
            release(data, schema, name, Terms(1.0, recipe=RECIPE), ledger, Permission(confirm=agree))
    assert len(ledger.entries()) == 2


def test_a_folder_that_another_release_took_meanwhile_costs_nothing(small, tmp_path, monkeypatch):
    reserved = releasing._reserve

    def late(out):
        monkeypatch.setattr(releasing, "_reserve", reserved)
        once(small, tmp_path, "m")
        return reserved(out)

    monkeypatch.setattr(releasing, "_reserve", late)
    with pytest.raises(PrivSVMError, match="exists already"):
        once(small, tmp_path, "m")
    assert len(Ledger(tmp_path / "ledger.jsonl").entries()) == 1
    # Beside the model, nothing is left but the ledger.
    once(small, tmp_path, "another")
    assert {path.name for path in tmp_path.iterdir()} == {"m", "another", "ledger.jsonl", "ledger.jsonl.lock"}
