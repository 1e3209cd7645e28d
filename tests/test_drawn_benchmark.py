"""Pages on speed and large tables follow from records, and peers get separate environments on demand."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.scripts import REPOSITORY, load_script


def load_bench(name):
    """Import a program of bench/."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "bench")
        return load_script(f"bench/{name}.py")


@pytest.fixture(scope="module")
def bench():
    return load_bench("drawn")


def test_answer_and_table_count_every_shape(bench):
    """Three shapes: one peer slower, one faster, one stopped."""
    records = []
    for factor in (4.0, 0.5, 10.0):
        # The slower peer ends above our objective, the faster one hardly below it.
        finished = {"fit": factor, "predict": 1.0, "objective": -0.7 if factor == 4.0 else -1.0 - 2e-6}
        theirs = {"over": factor} if factor == 10.0 else finished
        ours = {"fit": 1.0, "predict": 2.0, "objective": -1.0}
        ratios = {"LIBSVM": bench.ratios(ours, theirs)}
        records.append({"threads": 1, "ours": ours, "peers": {"LIBSVM": theirs}, "ratios": ratios})
    sentence = bench.sentence(records)
    assert sentence == (
        "Over 3 random problems, `SVMClassifier` is 4 times as fast as LIBSVM (median). "
        "It is slower in 1 of 3 comparisons."
    )
    stopped = {**records[0], "ours": {"over": 120.0}, "ratios": {}}
    assert bench.sentence([*records, stopped]) == f"{sentence} 1 further fits were stopped."
    row = bench.shape_table({"threads": [1], "records": records}).splitlines()[-1]
    assert row == "| LIBSVM | 1 | 3 of 3 | 0.50 | **4.0** | 1 | 0.50 | 0.5 | 2e-06 | 3e-01 |"


@pytest.mark.parametrize(("name", "write"), [("drawn", "with_shapes"), ("large_tables", "with_figures")])
def test_pages_are_computed_from_their_records(name, write):
    program = load_bench(name)
    page = program.PAGE.read_text()
    assert getattr(program, write)(page, json.loads(program.RESULTS.read_text())) == page


def test_large_fits_are_tasks_and_slow_ones_are_marked():
    tables = load_bench("large_tables")
    results, page = json.loads(tables.RESULTS.read_text()), tables.PAGE.read_text()
    assert set(results) <= set(tables.all_tasks())
    slow = tables.with_figures(page, {name: {**figures, "seconds": 1e4} for name, figures in results.items()})
    assert slow.count("10000.0 |") == len(results)
    assert slow.count("**over**") == len(tables.LIMITS)


def test_a_worker_is_stopped_by_processor_time(bench, monkeypatch):
    # However busy this machine is.
    monkeypatch.setattr(bench, "BUSY", 1000.0)
    small = {"n": 300, "d": 5, "classes": 2, "density": 1.0, "kernel": "rbf"}
    case = {**bench.draw_case(np.random.default_rng(1)), **small}
    worker = bench.Worker("LIBSVM", 1)
    try:
        answer = worker.run(case, 20.0)
        assert answer["fit"] > 0
        assert worker.objective() < 0
        assert worker.run({**case, "n": 20_000, "C": 100.0, "noise": 0.3}, 0.5) == {"over": 0.5}
    finally:
        worker.end()


@pytest.fixture
def environments():
    return load_bench("peer_environments")


def test_an_environment_is_made_once_by_the_hashes_of_its_lock(environments, monkeypatch, tmp_path):
    commands = []

    def run(command, check):
        commands.append([str(word) for word in command])
        python = tmp_path / "opacus/bin/python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()

    monkeypatch.setenv("PRIVSVM_PEERS", str(tmp_path))
    monkeypatch.setattr(environments.subprocess, "run", run)
    python = environments.peer_python("opacus")
    assert python == environments.peer_python("opacus") == tmp_path / "opacus/bin/python"
    made, installed = commands
    assert made[:4] == [sys.executable, "-m", "uv", "venv"]
    assert "--require-hashes" in installed
    assert "\nopacus==" in Path(installed[-1]).read_text()


def test_every_environment_has_a_lock(environments):
    requested = {path.stem for folder in ("utility", "audit") for path in REPOSITORY.glob(f"bench/{folder}/peers/*.in")}
    assert requested
    assert requested == set(environments.LOCKS)


def test_audits_of_peers_load_without_our_packages():
    program = REPOSITORY / "bench" / "audit" / "run_peers.py"
    shown = subprocess.run([sys.executable, "-I", "-S", program, "--help"], capture_output=True, text=True)
    assert "--here" in shown.stdout, shown.stderr
