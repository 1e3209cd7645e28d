"""The pages on speed and on large tables are what their programs compute from the records."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def load_bench(name):
    """Import a program of bench/."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "bench")
        spec = importlib.util.spec_from_file_location(name, REPOSITORY / f"bench/{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench():
    return load_bench("drawn")


@pytest.fixture
def results(bench):
    """Records of three shapes: one peer slower, one faster, one stopped."""
    rng = np.random.default_rng(0)
    records = []
    for factor in (4.0, 0.5, 10.0):
        case = bench.draw_case(rng)
        # The slower peer ends above our objective, the faster one hardly below it.
        finished = {"fit": factor, "predict": 1.0, "objective": -0.7 if factor == 4.0 else -1.0 - 2e-6}
        theirs = {"over": factor} if factor == 10.0 else finished
        ratios = {"LIBSVM": bench.ratios({"fit": 1.0, "predict": 2.0}, theirs)}
        ours = {"fit": 1.0, "predict": 2.0, "objective": -1.0}
        records.append({**case, "threads": 1, "ours": ours, "peers": {"LIBSVM": theirs}, "ratios": ratios})
    return {"date": "2001-02-03", "seed": 20010203, "threads": [1], "records": records}


def test_answer_and_section_replace_the_former_ones(bench, results):
    sentence = bench.sentence(results["records"])
    assert sentence == (
        "Over 3 random problems, `SVMClassifier` is 4 times as fast as LIBSVM (median). "
        "It is slower in 1 of 3 comparisons."
    )
    stopped = {**results["records"][0], "ours": {"over": 120.0}, "ratios": {}}
    assert bench.sentence([*results["records"], stopped]) == f"{sentence} 1 further fits were stopped."
    lines = bench.drawn_section(results)
    row = next(line for line in lines if line.startswith("| LIBSVM | 1 | 3 of 3 | 0.50 | **4.0** | 1 |"))
    assert row.endswith("| 2e-06 | 3e-01 |")
    page = bench.PAGE.read_text()
    first = bench.with_headed_section(bench.with_head(page, results), lines)
    assert first.count(sentence) == 1
    assert bench.with_headed_section(bench.with_head(first, results), lines) == first
    for heading in (line for line in page.splitlines() if line.startswith("## ")):
        assert first.count(f"\n{heading}\n") == 1


def test_what_is_committed_belongs_together(bench):
    if not bench.RESULTS.exists():
        pytest.skip("bench/drawn.json is not there: `make bench` writes it")
    results = json.loads(bench.RESULTS.read_text())
    page = bench.PAGE.read_text()
    assert bench.with_head(page, results) == page
    assert "\n".join(bench.drawn_section(results)) in page


def test_tables_of_large_tables_are_those_of_their_figures():
    tables = load_bench("large_tables")
    results, page = json.loads(tables.RESULTS.read_text()), tables.PAGE.read_text()
    assert tables.with_figures(page, results) == page
    assert set(results) <= set(tables.all_tasks())
    slow = {name: {**figures, "seconds": 1e4} for name, figures in results.items()}
    assert tables.with_figures(page, slow).count("10000.0 |") == len(results)
    assert tables.with_figures(page, slow).count("**over**") == len(tables.LIMITS)


def test_a_worker_is_stopped_by_processor_time(bench, monkeypatch):
    """A worker measures a case, and stops a long one by its processor time."""
    # However busy this machine is.
    monkeypatch.setattr(bench, "BUSY", 1000.0)
    case = {
        **bench.draw_case(np.random.default_rng(1)),
        "n": 300,
        "d": 5,
        "classes": 2,
        "density": 1.0,
        "kernel": "rbf",
    }
    worker = bench.Worker("LIBSVM", 1)
    try:
        answer = worker.run(case, 20.0)
        assert answer["fit"] > 0
        assert worker.objective() < 0
        assert worker.run({**case, "n": 20_000, "C": 100.0, "noise": 0.3}, 0.5) == {"over": 0.5}
    finally:
        worker.end()
