"""Two settings are compared split by split."""

import json
import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from tests.blocks import blocks_run_by
from tests.reporting.synthetic_results import GRID, make_audit, make_audit_cell, make_result
from tests.scripts import REPOSITORY

from privsvm_bench import records
from privsvm_bench.command import main
from privsvm_bench.records import seal
from privsvm_bench.tracking.comparison import compare, comparison_latex, read_settings

# Its commands are taken from docs/change.md, from the ```sh block that names this file.
PAGE = REPOSITORY / "docs/change.md"


def write(folder, method, status, gaps, dataset="wine", results="data/results", **changes):
    """A result whose accuracy at every epsilon is 0.8 and a gap of its split."""
    record = make_result(dataset, method, status, **changes)
    epsilons = record["epsilons"]
    splits = [[[0.8 + gap + shift for shift in (-0.01, 0.01)]] * len(epsilons) for gap in gaps]
    record |= {"metrics": {"accuracy": splits}, "n_splits": len(gaps), "repeats": 2}
    record |= {name: [None] * len(gaps) for name in ("objective", "n_support", "n_iter")}
    path = folder / results / method / f"{dataset}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(seal(record)))
    return path


def test_differences_are_paired_and_their_interval_knows_the_overlap(tmp_path):
    noise = np.array([0.1, -0.1, 0.05, -0.05, 0.0])
    first = write(tmp_path, "private_svm", "proved", noise)
    second = write(tmp_path, "pmsvm_wp", "proved", noise + np.array([0.02, 0.03, 0.01, 0.02, 0.02]))
    differences = compare(*read_settings(first, second))
    assert [one.epsilon for one in differences] == list(GRID)
    # Variation that the splits share cancels.
    assert differences[0].mean == pytest.approx(0.02)
    spread = np.std([0.02, 0.03, 0.01, 0.02, 0.02], ddof=1)
    # The quantile of Student's t with four degrees of freedom is 2.776.
    assert differences[0].high - differences[0].mean == pytest.approx(
        2.776 * spread * math.sqrt(1 / 5 + 171 / 398), rel=1e-3
    )
    reference = write(tmp_path, "svm", "none", noise)
    assert [one.epsilon for one in compare(*read_settings(reference, second))] == list(GRID)
    assert [one.epsilon for one in compare(*read_settings(reference, reference))] == [math.inf]
    once, too = write(tmp_path, "once", "proved", [0.0]), write(tmp_path, "too", "proved", [0.1])
    assert compare(*read_settings(once, too))[0].low == -math.inf


def test_the_command_of_the_page(tmp_path, monkeypatch, capsys):
    write(tmp_path, "private_svm", "proved", [0.0, 0.1])
    write(tmp_path, "pmsvm_wp", "proved", [0.05, 0.16])
    monkeypatch.chdir(tmp_path)
    ((command,),) = (block.commands for block in blocks_run_by(__file__))
    assert main(shlex.split(command)[3:]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^wine +1 +85\.0 +proved +90\.5 +proved +\+5\.5 ", shown, re.MULTILINE)
    table = Path("table.tex").read_text()
    assert "wine & 1 & 85.0 & proved & 90.5 & proved & +5.5 &" in table
    assert table.count("\\_") == 2
    # One for each point, and one for the picture.
    assert Path("figure.svg").read_text().count("<title>") == len(GRID) + 1


def test_a_refuted_epsilon_is_struck_out(tmp_path, monkeypatch, capsys):
    write(tmp_path, "fair", "seeded", [0.0, 0.1])
    write(tmp_path, "broken", "claimed", [0.05, 0.16])
    bounds = make_audit_cell("claimed", 1.0, 3.0).bounds
    cells = tuple(
        make_audit_cell("claimed", epsilon, 3.0, bounds=bounds, refuted=epsilon == 1.0) for epsilon in (1.0, 2.0)
    )
    records.write(tmp_path / "data/audits/broken.json", make_audit("broken", *cells))
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "fair", "broken", "--latex", "t.tex", "--figure", "f.svg"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^wine +1 .* seeded .* ~1~ refuted ", shown, re.MULTILINE)
    # One bound of many at 95 % may be chance: fresh draws did not refute this one.
    assert re.search(r"^wine +2 .* seeded .* claimed ", shown, re.MULTILINE)
    assert "reveals more than the epsilon that is struck out" in shown
    assert r"{\ooalign{1\cr" in Path("t.tex").read_text()
    picture = Path("f.svg").read_text()
    assert "refuted less seeded" in picture
    assert "stroke-dasharray" in picture


def test_own_datasets_are_compared_too_and_what_one_lacks_is_named(tmp_path, monkeypatch, capsys):
    for results, dataset in (("data/results", "wine"), ("data/private/results", "patients")):
        for method in ("a", "b"):
            write(tmp_path, method, "proved", [0.0], dataset, results)
    write(tmp_path, "b", "proved", [0.0], "digits")
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "a", "b"]) == 0
    shown = capsys.readouterr().out
    assert {"wine", "patients"} <= set(shown.split())
    assert "not compared: digits, where only one of the two has a result" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "nothing"), "nothing: no result file"),
        (("a", "b", "--metric", "speed"), "--metric speed: must be one of accuracy"),
        (("a", "other_rows"), "wine: a and other_rows were not run on the same splits"),
        (("a", "elsewhere"), "no data set and epsilon in common"),
    ],
)
def test_what_cannot_be_compared_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    write(tmp_path, "a", "proved", [0.0])
    write(tmp_path, "b", "proved", [0.0])
    write(tmp_path, "other_rows", "proved", [0.0], dataset_digest="2" * 64)
    write(tmp_path, "elsewhere", "proved", [0.0], dataset="digits")
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_names_are_safe_in_latex(tmp_path):
    path = write(tmp_path, "a", "proved", [0.0, 0.1], dataset="some_set")
    assert "some\\_set" in comparison_latex(("a&b", "c"), compare(*read_settings(path, path)), "accuracy")
