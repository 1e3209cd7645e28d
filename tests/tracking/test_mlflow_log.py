"""Every result is in MLflow once, whatever happened before."""

import contextlib
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from mlflow.entities import ViewType
from mlflow.tracking import MlflowClient
from servers import free_port, running_server
from tests.processes import exit_codes
from tests.refusals import refusal
from tests.reporting.synthetic_results import make_audit, make_audit_cell, make_condensed_attack
from tests.tracking.conftest import EPSILONS, N_SPLITS

from privsvm.files import read_json, write_json
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.statement import STATUSES
from privsvm_bench.records import seal, write
from privsvm_bench.tracking.experiments import experiment_links
from privsvm_bench.tracking.mlflow_log import log_results
from privsvm_bench.tracking.runs import collect_runs


def all_runs(uri: str, experiment: str = "demo/wine") -> list[Any]:
    client = MlflowClient(uri)
    stored = client.get_experiment_by_name(experiment)
    return list(client.search_runs([stored.experiment_id], run_view_type=ViewType.ACTIVE_ONLY, max_results=1000))


def runs_of(uri: str, experiment: str = "demo/wine") -> list[Any]:
    """All runs but the parents of sweeps, which have no curve."""
    return [run for run in all_runs(uri, experiment) if not run.info.run_name.startswith("sweep ")]


def parents_of(uri: str) -> dict[str, int]:
    """The number of curves under each parent, by the epsilons of the parent."""
    grids = {run.info.run_id: run.data.params["epsilons"] for run in all_runs(uri) if "epsilons" in run.data.params}
    return Counter(grids[run.data.tags["mlflow.parentRunId"]] for run in runs_of(uri))


def history(uri: str, run: Any, metric: str) -> list[tuple[int, float]]:
    points = MlflowClient(uri).get_metric_history(run.info.run_id, metric)
    return sorted((point.step, point.value) for point in points)


def only(runs: list[Any], method: str) -> Any:
    (run,) = [run for run in runs if run.data.params["method"] == method]
    return run


def test_a_run_holds_the_curve_and_says_what_epsilon_is_worth(
    uri: str, wine_results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "a_login_name")
    monkeypatch.setenv("USER", "a_login_name")
    keys = log_results(wine_results, uri, "abc123")
    runs = runs_of(uri)
    assert [run.data.tags["record_key"] for run in (only(runs, path.parent.name) for path, _ in wine_results)] == keys
    run, content = only(runs, "pmsvm_wp"), read_json(wine_results[2][0])
    assert [value for _, value in history(uri, run, "accuracy")] == content["summary"]["accuracy"]["mean"]
    assert [value for _, value in history(uri, run, "accuracy_sd")] == content["summary"]["accuracy"]["sd"]
    assert [value for _, value in history(uri, run, "epsilon_with_system_noise")] == content["epsilons"]
    assert "epsilon_proved" not in run.data.metrics
    assert history(uri, run, "epsilon")[:3] == [(-2000, 0.01), (-1523, 0.03), (-1000, 0.1)]
    assert history(uri, run, "fit_seconds")[0][1] == pytest.approx(
        sum(read_json(wine_results[2][1][0])["fit_seconds"]) / 2
    )
    assert history(uri, run, "release_seconds") == [(0, 0.5)]
    assert history(uri, run, "predict_seconds") == [(0, pytest.approx(0.2))]
    assert history(uri, run, "objective") == [(0, 1.5)]
    assert history(uri, run, "n_support") == [(0, 10.0)]
    expected = {
        "status": "seeded",
        "parameter.C": "1.0",
        "parameter.kernel": "linear",
        "delta": "1e-05",
        "repeats": "3",
    }
    assert expected.items() <= run.data.params.items()
    assert run.data.tags["git_commit"] == "abc123"
    (dataset,) = run.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("wine", "d" * 36)
    published = only(runs, "pmsvm_wp_as_published")
    assert not {"epsilon_proved", "epsilon_with_system_noise"} & published.data.metrics.keys()
    curves = {"none: svm", "none: majority", "seeded: pmsvm_wp", "claimed: pmsvm_wp_as_published"}
    assert {run.data.params["curve"] for run in runs} == curves
    assert published.data.tags["guarantee"] == "claimed"
    # Names say how a method was set.
    assert run.info.run_name == "seeded: pmsvm_wp"
    assert published.data.tags["guarantee_reason"] == "the scale is taken from the data"
    for path, _ in wine_results:
        folder = tmp_path / "mlartifacts/demo/wine" / only(runs, path.parent.name).info.run_id / "artifacts"
        assert read_json(folder / "guarantees.json") == read_json(path)["guarantees"]
    # No run names the person or the machine.
    before = [run.to_dictionary() for run in all_runs(uri)]
    assert {run["data"]["tags"]["mlflow.user"] for run in before} == {run["info"]["user_id"] for run in before}
    assert {run["info"]["user_id"] for run in before} == {"privsvm"}
    assert "a_login_name" not in str(before)
    assert str(tmp_path) not in str(before)
    # Logging twice adds nothing.
    assert log_results(wine_results, uri, "another commit") == keys
    assert [run.to_dictionary() for run in all_runs(uri)] == before


def test_one_parent_holds_the_curves_of_a_sweep(uri: str, wine_results: Any, write_result: Any) -> None:
    log_results(wine_results, uri, "abc")
    (first,) = parents_of(uri)
    # Another parameter is another curve of the same sweep, other epsilons are another sweep.
    write_result("pmsvm_wp", level=0.93, parameters={"C": 2.0})
    log_results(wine_results, uri, "abc")
    assert parents_of(uri) == {first: 5}
    for method in ("pmsvm_wp", "pmsvm_wp_as_published"):
        write_result(method, level=0.93, epsilons=[1.0, 2.0], status="claimed")
    log_results(wine_results, uri, "abc")
    assert parents_of(uri) == {first: 5, "[1.0,2.0]": 4}
    # No chart shows a parent, and a deleted one comes back.
    client = MlflowClient(uri)
    (parent,) = [run for run in all_runs(uri) if run.data.params.get("epsilons") == "[1.0,2.0]"]
    assert not {"current", "method"} & {*parent.data.tags, *parent.data.params, *parent.data.metrics}
    client.delete_run(parent.info.run_id)
    log_results(wine_results, uri, "abc")
    assert parents_of(uri) == {first: 5, "[1.0,2.0]": 4}
    assert {run.info.status for run in all_runs(uri)} == {"FINISHED"}


def test_methods_without_epsilon_are_level_lines_over_the_private_grid(uri: str, write_result: Any) -> None:
    results = [
        write_result("svm", status="none", epsilons=["inf"], level=0.97),
        write_result("one", epsilons=[0.1, 10.0]),
        write_result("other", epsilons=[1.0, 10.0]),
        write_result("elsewhere", dataset="iris", epsilons=[40.0]),
    ]
    log_results(results, uri, "abc")
    svm = only(runs_of(uri), "svm")
    assert history(uri, svm, "accuracy") == [(-1000, 0.97), (0, 0.97), (1000, 0.97)]
    assert not {"epsilon_proved", "epsilon_with_system_noise"} & svm.data.metrics.keys()
    assert (svm.data.params["status"], svm.data.params["delta"]) == ("none", "none")
    # A longer grid needs a longer line: that is another run, and the short one is not current.
    results[1] = write_result("one", epsilons=[0.1, 10.0, 50.0])
    log_results(results, uri, "abc")
    lines = {run.data.tags["current"]: run for run in runs_of(uri) if run.data.params["method"] == "svm"}
    assert len(history(uri, lines["no"], "accuracy")) == 3
    assert len(history(uri, lines["yes"], "accuracy")) == 4


def test_values_of_any_kind_are_logged(uri: str, write_result: Any) -> None:
    parameters = {f"p{number}": number for number in range(150)} | {"λ": 1.5, "words": "two\nlines", "empty": ""}
    parameters |= {"kernel": "k" * 9000}
    path, timings = write_result("ci_svm", status="none", epsilons=["inf"], parameters=parameters)
    by_stage = make_condensed_attack("wine", None, twice=True)
    by_method = make_condensed_attack("wine", "ci_svm", twice=True, size_ratio=0.5 + 1 / 142)
    write_json(path, seal(read_json(path) | {"objective": [None] * N_SPLITS, "attacks": [by_stage, by_method]}))
    log_results([(path, timings)], uri, "abc")
    (run,) = runs_of(uri)
    assert {f"parameter.{name}" for name in parameters} <= run.data.params.keys()
    assert run.data.params["parameter.words"] == "two\nlines"
    assert len(run.data.params["parameter.kernel"]) == 500
    # A server refuses an empty text.
    assert run.data.params["parameter.empty"] == '""'
    # A line, without any private method too.
    assert len(history(uri, run, "accuracy")) == 2
    metrics = run.data.metrics
    assert all(math.isfinite(value) for value in metrics.values())
    assert metrics["size_ratio"] == pytest.approx((2 * 48 / 142 + 0.5 + 1 / 142) / 3)
    assert metrics["condensed_size_ratio"] == pytest.approx(48 / 142)
    assert metrics["label_purity"] == metrics["condensed_label_purity"] == pytest.approx(0.96)
    assert metrics["linkage_rate"] == pytest.approx(0.91)
    assert "condensed_linkage_rate" not in metrics
    # Undefined, not 0.
    assert "membership_auc" not in metrics


def test_the_weakest_guarantee_names_the_curve(write_result: Any) -> None:
    path, _ = write_result("weak", status="none", epsilons=[0.1, 1.0])
    assert collect_runs([(path, [])])[0].parameters["curve"] == "none: weak"
    path, _ = write_result("mixed", epsilons=[0.5, 1.0])
    content = read_json(path)
    content["guarantees"][1] |= {"status": "claimed", "epsilon_with_system_noise": "inf", "reason": "a toy"}
    for guarantee in content["guarantees"]:
        guarantee["sensitivity"] = 2.0
    write_json(path, seal(content))
    (run,) = collect_runs([(path, [])])
    assert run.parameters["curve"] == "claimed: mixed"
    # A value that no epsilon changes is a bar.
    assert [(point.step, point.value) for point in run.metrics if point.name == "sensitivity"] == [(0, 2.0)]


def test_a_curve_that_an_audit_refutes_is_named_so(uri: str, tmp_path: Path, write_result: Any) -> None:
    files = write_result("broken", status="claimed")
    cell = make_audit_cell("claimed", EPSILONS[2], 6.0, refuted=True)
    audit = tmp_path / "broken.json"
    write(audit, make_audit("broken", cell))
    log_results([files], uri, "abc", [audit])
    (run,) = runs_of(uri)
    assert (run.info.run_name, run.data.params["status"]) == ("refuted: broken", "refuted")
    assert cell.pair in run.data.tags["witness"]
    # An audit that refutes nothing found no counterexample.
    weak = make_audit_cell("claimed", EPSILONS[2], 6.0, refuted=False)
    write(audit, make_audit("broken", weak))
    (curve,) = collect_runs([files], [audit])
    assert "witness" not in curve.tags


def test_a_run_says_what_a_replaced_row_costs(write_result: Any) -> None:
    path, _ = write_result("counted", epsilons=[1.0, 4.0])
    content = read_json(path) | {"neighbours": "add_remove"}
    for epsilon, guarantee in zip((1.0, 4.0), content["guarantees"], strict=True):
        event = {"kind": "gaussian", "noise_multiplier": gaussian_noise_multiplier(epsilon, guarantee["delta"])}
        guarantee |= {"neighbours": "add_remove", "event": event, "sensitivity": None, "noise_scale": None}
    write_json(path, seal(content))
    (run,) = collect_runs([(path, [])])
    points = {(point.name, point.step): point.value for point in run.metrics}
    assert points["epsilon_add_remove", 0] == pytest.approx(1.0)
    known = [round(points["epsilon_replace_one", step], 2) for step in (0, 602)]
    assert known == [2.15, 9.08]


def test_one_view_compares_methods_over_all_datasets(uri: str, write_result: Any) -> None:
    epsilons = [0.1, 1.0]
    results = [
        write_result("best", dataset=dataset, epsilons=epsilons, level=level)
        for dataset, level in (("iris", 0.9), ("wine", 0.8))
    ]
    results += [
        write_result("also", dataset="iris", epsilons=epsilons, level=0.88),
        write_result("also", dataset="wine", epsilons=epsilons, level=0.76, status="claimed"),
        write_result("partly", dataset="wine", epsilons=epsilons, level=0.7),
        # A claim is no best.
        write_result("lucky", dataset="wine", epsilons=epsilons, level=0.99, status="claimed"),
    ]
    log_results(results, uri, "abc")
    runs = {run.info.run_name: run for run in runs_of(uri, "demo/_all-datasets")}
    assert runs.keys() == {"seeded: best", "claimed: also", "seeded: partly", "claimed: lucky"}
    behind = {name: dict(history(uri, run, "points_behind")) for name, run in runs.items()}
    assert behind["seeded: best"] == {-1000: 0.0, 0: 0.0}
    assert behind["claimed: also"][0] == pytest.approx(3.0)
    assert behind["seeded: partly"][0] == pytest.approx(10.0)
    assert behind["claimed: lucky"][0] == pytest.approx(-19.0)
    assert runs["seeded: partly"].data.params["datasets"] == '["wine"]'
    # It follows its curves.
    log_results([write_result("best", dataset="iris", epsilons=epsilons, level=0.95), *results[1:]], uri, "abc")
    current = [run for run in runs_of(uri, "demo/_all-datasets") if run.data.tags["current"] == "yes"]
    assert len(current) == 4
    assert dict(history(uri, only(current, "also"), "points_behind"))[0] == pytest.approx(5.5)


def test_timings_are_no_part_of_the_key_but_are_added_when_they_turn_up(uri: str, wine_results: Any) -> None:
    keys = log_results([(path, []) for path, _ in wine_results], uri, "abc")
    assert "fit_seconds" not in only(runs_of(uri), "svm").data.metrics
    assert log_results(wine_results, uri, "abc") == keys
    assert len(history(uri, only(runs_of(uri), "svm"), "fit_seconds")) == 1
    write_json(wine_results[0][1][0], {"fit_seconds": [99.0], "release_seconds": [99.0]})
    assert log_results(wine_results, uri, "abc") == keys
    assert only(runs_of(uri), "svm").data.metrics["fit_seconds"] != 99.0


def test_changed_parameters_keep_the_older_run_but_not_as_current(
    uri: str, wine_results: Any, write_result: Any
) -> None:
    log_results(wine_results, uri, "abc")
    write_result("pmsvm_wp", level=0.93, parameters={"C": 2.0})
    log_results(wine_results, uri, "abc")

    def current() -> dict[tuple[str, str], str]:
        return {(r.data.params["method"], r.data.params["parameter.C"]): r.data.tags["current"] for r in runs_of(uri)}

    assert len(current()) == 5
    assert (current()["pmsvm_wp", "1.0"], current()["pmsvm_wp", "2.0"]) == ("no", "yes")
    write_result("pmsvm_wp", level=0.93)
    log_results(wine_results[:3], uri, "abc")
    assert (current()["pmsvm_wp", "1.0"], current()["pmsvm_wp", "2.0"]) == ("yes", "no")
    assert current()["pmsvm_wp_as_published", "1.0"] == "no"
    assert len(current()) == 5


def test_unfinished_runs_of_a_killed_attempt_are_replaced(uri: str, wine_results: Any) -> None:
    """Runs of other people are left alone, and a deleted experiment comes back."""
    log_results(wine_results, uri, "abc")
    client = MlflowClient(uri)
    broken = [only(runs_of(uri), path.parent.name).info.run_id for path, _ in wine_results[:3]]
    for run_id, status in zip(broken, ("RUNNING", "FAILED", "KILLED"), strict=True):
        client.update_run(run_id, status=status)
    log_results(wine_results, uri, "abc")
    assert len(runs_of(uri)) == 4
    assert not {*broken} & {run.info.run_id for run in runs_of(uri)}
    assert {run.info.status for run in runs_of(uri)} == {"FINISHED"}
    experiment_id = client.get_experiment_by_name("demo/wine").experiment_id
    foreign = client.create_run(experiment_id).info.run_id
    client.delete_experiment(experiment_id)
    log_results(wine_results, uri, "abc")
    assert client.get_run(foreign).info.status == "RUNNING"
    assert len(runs_of(uri)) == 5


def log_until(moment: int, waits: bool, *arguments: Any) -> int:
    """Log; end without a chance to clean up where the statement of SQL with that number is next, or just behind it.

    Returns how many statements there were.
    """
    statements = 0

    def count(*_: Any) -> None:
        nonlocal statements
        statements += 1
        if statements == moment:
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGKILL)).start()
            if waits:
                signal.pause()

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", count)
    log_results(*arguments)
    sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", count)
    return statements


# `.ci/run` has 20, and `PRIVSVM_KILLS=50 pytest tests/tracking/test_mlflow_log.py` more.
KILLS = int(os.environ.get("PRIVSVM_KILLS", "4"))

# With what MLflow imports once it opens a database, which takes as long as all else.
MLFLOW = [
    "privsvm_bench.tracking.mlflow_log", "mlflow.store.tracking.sqlalchemy_store", "alembic.command",
    "alembic.migration",
]  # fmt: skip


@pytest.mark.long
def test_killed_at_any_moment_there_are_no_duplicates(tmp_path: Path, write_result: Any) -> None:
    results = [write_result(f"method_{index}", level=0.9 + index / 1000) for index in range(8)]
    # Started once with everything imported, so that each kill hits the logging and not the imports.
    multiprocessing.set_forkserver_preload(MLFLOW)
    making = log_until(0, False, [], f"sqlite:///{tmp_path}/empty.db", "abc")
    shutil.copy(tmp_path / "empty.db", tmp_path / "counted.db")
    logging = log_until(0, False, results, f"sqlite:///{tmp_path}/counted.db", "abc")
    generator = random.Random(20)
    killed = left_behind = 0
    for attempt in range(2 * KILLS):
        if killed >= KILLS and left_behind >= 1:
            break
        database = tmp_path / f"attempt_{attempt}.db"
        uri = f"sqlite:///{database}"
        # Only every fourth time the database is to be made first, so that most kills hit the logging itself.
        fresh = attempt % 4 == 1
        if not fresh:
            shutil.copy(tmp_path / "empty.db", database)
        for number in range(5):
            moment = generator.randint(1, making + logging) if fresh else generator.randint(1, int(0.6 * logging))
            # Every other time in the middle of whatever comes next.
            call = (moment, number % 2 == 0, results, uri, "abc")
            (code,) = exit_codes(log_until, [call], "forkserver")
            assert code in (0, -signal.SIGKILL)
            if code == 0:
                break  # it was quicker: the rest of this database cannot be killed any more
            killed += 1
        keys = log_results(results, uri, "abc")
        runs = runs_of(uri)
        assert Counter(run.data.tags["record_key"] for run in runs) == Counter(keys)
        assert len(all_runs(uri)) == len(keys) + 1
        assert {(run.info.status, run.data.tags["current"]) for run in runs} == {("FINISHED", "yes")}
        for run in runs:
            assert len(history(uri, run, "accuracy")) == 8
            assert len(history(uri, run, "fit_seconds")) == 1
        with contextlib.closing(sqlite3.connect(database)) as connection:
            left_behind += connection.execute("SELECT COUNT(*) FROM runs WHERE lifecycle_stage = 'deleted'").fetchone()[
                0
            ]
        names = [path.name for path in tmp_path.iterdir() if database.name in path.name]
        assert sorted(names) == [database.name, f"{database.name}.lock"]
    # Unless the kills hit, and some hit between the first and the last line of a run, nothing was tested.
    assert killed >= KILLS
    assert left_behind >= 1


def test_two_processes_at_once_log_each_result_once(tmp_path: Path, new_uri: str, wine_results: Any) -> None:
    multiprocessing.set_forkserver_preload(MLFLOW)
    assert exit_codes(log_results, [(wine_results, new_uri, "abc")] * 4, "forkserver") == [0] * 4
    assert len(runs_of(new_uri)) == 4


def refuse(results: Any, uri: str) -> str:
    text = refusal(log_results, results, uri, "abc")
    assert len(text) < 600
    return text


def overwrite(database: Path) -> None:
    """Damage the middle of a sound database."""
    content = bytearray(database.read_bytes())
    content[4096 * 3 : 4096 * 60] = b"\xff" * (4096 * 57)
    database.write_bytes(content)


def execute(database: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def half_migrate(database: Path) -> None:
    """Leave the tables of a half-done migration."""
    database.unlink()
    execute(database, "CREATE TABLE _alembic_tmp_tags (key TEXT)", "CREATE TABLE experiments (name TEXT)")


@pytest.mark.parametrize(
    "damage", [lambda database: database.write_bytes(b"this is not a database " * 200), overwrite, half_migrate]
)
def test_a_damaged_database_is_named_with_the_remedy(tmp_path: Path, uri: str, wine_results: Any, damage: Any) -> None:
    damage(tmp_path / "mlflow.db")
    assert re.search(r"mlflow\.db: .*move the file away", refuse(wine_results, uri))
    (tmp_path / "mlflow.db").rename(tmp_path / "away")
    # Another address of the same file: MLflow keeps the connection to the first one open.
    assert len(log_results(wine_results, f"sqlite:///{tmp_path}/./mlflow.db", "abc")) == 4


@pytest.mark.parametrize("tables", [(), ("precious",), ("alembic_version", "precious")])
def test_the_database_of_another_program_is_left_alone(tmp_path: Path, tables: tuple[str, ...]) -> None:
    made = [f"CREATE TABLE {table} (word TEXT)" for table in tables]
    execute(tmp_path / "other.db", "PRAGMA user_version = 7", *made)
    before = (tmp_path / "other.db").read_bytes()
    message = refuse([], f"sqlite:///{tmp_path}/other.db")
    assert re.search(r"other\.db: no database of MLflow.*name another file in", message)
    assert (tmp_path / "other.db").read_bytes() == before


def test_a_newer_database_is_not_called_an_older_one(tmp_path: Path, uri: str, wine_results: Any) -> None:
    remedies = {"f" * 12: "pip install --upgrade mlflow", "cfd24bdc0731": "mlflow db upgrade"}
    for index, (version, remedy) in enumerate(remedies.items(), start=1):
        execute(tmp_path / "mlflow.db", f"UPDATE alembic_version SET version_num = '{version}'")
        # Another address of the same file: MLflow keeps the connection to the first one open.
        message = refuse(wine_results, f"sqlite:///{tmp_path}/{'./' * index}mlflow.db")
        assert remedy in message
        assert ("a newer MLflow made it" in message) == (version == "f" * 12)


def test_an_empty_file_and_the_journal_of_a_deleted_database_do_no_harm(
    tmp_path: Path, new_uri: str, wine_results: Any
) -> None:
    (tmp_path / "mlflow.db").touch()
    for suffix in ("-journal", ".new", ".new-journal"):
        (tmp_path / f"mlflow.db{suffix}").write_bytes(os.urandom(5000))
    log_results(wine_results, new_uri, "abc")
    assert len(runs_of(new_uri)) == 4
    assert sorted(path.name for path in tmp_path.glob("mlflow.db*")) == ["mlflow.db", "mlflow.db.lock"]


@pytest.mark.parametrize("bad", ["mlruns", "file:///tmp/mlruns", "sqlite://", "sqlite:///:memory:", "htp://127.0.0.1"])
def test_a_uri_that_cannot_hold_runs_is_refused(bad: str, wine_results: Any) -> None:
    assert re.search(r"mlflow\.tracking_uri.*sqlite:///mlflow\.db", refuse(wine_results, bad))


def test_a_server_works_like_a_file(tmp_path: Path, wine_results: Any, write_result: Any) -> None:
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{tmp_path / 'server.db'}"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with running_server(command, port, tmp_path / "server.log", environment) as address:
        keys = log_results(wine_results, address, "abc")
        broken = only(runs_of(address), "svm").info.run_id
        MlflowClient(address).update_run(broken, status="FAILED")
        assert log_results(wine_results, address, "abc") == keys
        write_result("pmsvm_wp", level=0.93, parameters={"C": 2.0})
        log_results(wine_results, address, "abc")
        runs = runs_of(address)
        assert len(runs) == 5
        for run in runs:
            names = [file.path for file in MlflowClient(address).list_artifacts(run.info.run_id)]
            assert names == ["guarantees.json"]
        assert sorted(run.data.tags["current"] for run in runs) == ["no", "yes", "yes", "yes", "yes"]
        link = experiment_links(address, address + "/", {"demo/wine"})["demo/wine"]
        assert link.startswith(f"{address}/#/experiments/")


def test_one_experiment_and_one_link_for_each_data_set(uri: str, write_result: Any) -> None:
    results = [write_result("svm", dataset=name, status="none", epsilons=["inf"]) for name in ("wine", "iris", "old")]
    log_results(results, uri, "abc")
    names = ["demo/wine", "demo/iris", "demo/old", "demo/not-logged"]
    links = experiment_links(uri, "http://127.0.0.1:5000", names)
    assert list(links) == ["demo/iris", "demo/old", "demo/wine"]
    # MLflow draws the first ten runs: those that a theorem covers.
    assert all("orderByKey=params.%60curve%60&orderByAsc=false" in link for link in links.values())
    tags = MlflowClient(uri).get_experiment_by_name("demo/wine").tags
    assert all(f"`{status}`" in tags["mlflow.note.content"] for status in STATUSES)


def test_a_malformed_result_is_named_before_anything_is_logged(tmp_path: Path, new_uri: str, wine_results: Any) -> None:
    path = wine_results[3][0]
    write_json(path, seal({**read_json(path), "epsilons": [1.0]}))
    assert re.search(f"{path}: .*8 guarantees for 1 epsilons", refuse(wine_results, new_uri))
    assert not (tmp_path / "mlflow.db").exists()
