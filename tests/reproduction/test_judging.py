"""Verdicts by distribution: rules that can fail, every printed number once, partial runs that touch nothing else."""

import csv
import dataclasses
import io
import re

import numpy as np
import pytest
import scipy.stats

from privsvm_bench.evidence import Sources
from reproduce.cell import MODULES, draws_of, judge_committed
from reproduce.engine.distributions import (
    LEVELS,
    SINGLE,
    Distribution,
    distributions_csv,
    merge_distributions,
    of_mean,
    of_parts,
    of_whole,
    read_distributions,
)
from reproduce.engine.draws import Draws, Further, run_draws
from reproduce.engine.judging import VERDICTS, Printed, judge, percentile, two_sided
from reproduce.engine.panels import Line, Panel, panel_svg
from reproduce.engine.paper_page import (
    Calibration,
    anchor,
    calibration,
    calibration_by_kind,
    column_misses,
    index_page,
    paper_page,
)
from reproduce.engine.papers import find_experiments
from reproduce.engine.printed import NOT_JUDGED, rows_csv
from reproduce.engine.rerun import beside
from reproduce.engine.statements import KINDS, NEEDS, TRENDS, group_cells, read_claims
from reproduce.engine.trends import judge_word, ratio, slope
from tests.scripts import REPOSITORY

NORMAL = tuple(float(value) for value in scipy.stats.norm.ppf(np.clip(LEVELS, 1e-4, 1 - 1e-4)))


def _distribution(cell="a", centre=0.0, fresh=(), **changes):
    made = Distribution(
        cell=cell, statistic="one value", runs=1000, unit=0.01, fresh=fresh,
        quantiles=tuple(centre + value for value in NORMAL),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def _printed(name, text, **changes):
    defaults = {"source": "T", "family": "T", "dataset": "d", "method": "m", "setting": "", "metric": "x", "rule": "r"}
    return Printed(id=name, text=text, **{**defaults, **changes})


@pytest.fixture(scope="module")
def judged():
    return {name: judge_committed(name) for name in MODULES}


def test_percentile_counts_half_of_equal_numbers():
    assert percentile(0.0, 0.01, _distribution()) == pytest.approx(0.5, abs=1e-3)
    # Two atoms: 0 and 1, as likely as each other.
    atoms = _distribution(quantiles=of_whole([0.0, 1.0] * 500), statistic="one value")
    assert percentile(0.0, 0.1, atoms) == pytest.approx(0.25, abs=0.06)
    assert percentile(1.0, 0.1, atoms) == pytest.approx(0.75, abs=0.06)


def test_verdicts():
    # Numbers of forty cells, each where its distribution is but for two.
    centres = {f"c{number}": 20.0 + 10.0 * number for number in range(40)}
    distributions = {name: _distribution(name, centre) for name, centre in centres.items()}
    texts = {name: f"{centre:.2f}" for name, centre in centres.items()}
    texts |= {"c3": "52.10", "c7": "95.00"}
    numbers = [_printed(name, texts[name]) for name in centres]
    numbers.append(_printed("absent", "1.00", missing="not here"))
    judgements, columns = judge(numbers, distributions)
    verdicts = {judgement.printed.id: judgement.verdict for judgement in judgements}
    assert verdicts.pop("c3") == "unlikely"
    assert verdicts.pop("c7") == "refuted"
    assert verdicts.pop("absent") == "no data"
    assert set(verdicts.values()) == {"agrees"}
    assert (columns[0].below, columns[0].above, columns[0].outside) == (0, 2, 2)


@pytest.mark.parametrize(
    ("metric", "text", "width", "verdict"),
    [
        # The interval reaches two widths to each side: 5 points, or 20 %, must lie beyond it on both.
        ("accuracy", "0.80", 0.024, "agrees"),
        ("accuracy", "0.80", 0.026, "too weak to tell"),
        ("accuracy", "0.83", 0.024, "too weak to tell"),
        ("accuracy", "0.86", 0.024, "unlikely"),
        ("accuracy SD", "0.80", 0.026, "too weak to tell"),
        ("iterations", "0.80", 0.075, "agrees"),
        ("iterations", "0.80", 0.085, "too weak to tell"),
        ("iterations", "1.80", 0.085, "refuted"),
    ],
)
def test_a_number_that_could_not_fail_agrees_with_nothing(metric, text, width, verdict):
    item = _distribution(quantiles=tuple(0.8 + width * value for value in NORMAL))
    others = {f"c{number}": _distribution(f"c{number}", 10.0 * number) for number in range(1, 80)}
    numbers = [_printed("a", text, metric=metric), *(_printed(name, f"{item.median:.2f}", metric="iterations")
                                                      for name, item in others.items())]  # fmt: skip
    judgements, _ = judge(numbers, {"a": item, **others})
    assert judgements[0].verdict == verdict


def test_a_column_that_could_not_fail_agrees_with_nothing():
    rng = np.random.default_rng(4)
    for width, verdict in ((0.01, "agrees"), (1.0, "too weak to tell")):
        drawn = {f"c{number}": 0.5 + width * value for number, value in enumerate(rng.normal(size=20))}
        items = {name: _distribution(name, quantiles=tuple(0.5 + width * value for value in NORMAL)) for name in drawn}
        numbers = [_printed(name, f"{value:.4f}", metric="accuracy") for name, value in drawn.items()]
        (column,) = judge(numbers, items)[1]
        assert column.verdict == verdict


def test_a_column_is_judged_by_its_percentiles():
    rng = np.random.default_rng(2)
    centres = 20.0 + np.arange(30.0)
    ours = {f"a{number}": _distribution(f"a{number}", centre) for number, centre in enumerate(centres)}
    right = [_printed(name, f"{value:.2f}") for name, value in zip(ours, centres + rng.normal(size=30), strict=True)]
    # All on one side, though each inside.
    shifted = [_printed(name, f"{centre + 1.0:.2f}") for name, centre in zip(ours, centres, strict=True)]
    (column,) = judge(right, ours)[1]
    assert column.verdict == "agrees"
    judgements, (column,) = judge(shifted, ours)
    assert {judgement.verdict for judgement in judgements} == {"agrees"}
    assert column.verdict == "refuted"


def test_undecided_rows_say_why():
    distributions = {f"c{number}": _distribution(f"c{number}", 20.0 + 10.0 * number) for number in range(8)}
    numbers = [_printed(name, f"{item.median:.2f}") for name, item in distributions.items()]
    numbers[1] = dataclasses.replace(numbers[1], metric="training ms")
    numbers[3] = dataclasses.replace(numbers[3], text="95.00", undecided="other rows")
    numbers.append(_printed("undrawn", "1.00"))
    judgements, _ = judge(numbers, distributions)
    assert [(judgement.verdict, judgement.reason) for judgement in judgements[1:4]] == [
        ("cannot discriminate", "a time of other hardware"), ("agrees", ""), ("cannot discriminate", "other rows")
    ]  # fmt: skip
    assert (judgements[-1].verdict, judgements[-1].reason) == ("not judged yet", "no runs have been drawn")


def test_exact_numbers_agree_in_every_printed_digit():
    distributions = {
        f"c{number}": _distribution(f"c{number}", statistic="exact", quantiles=(10.0 * number + 0.004,) * len(LEVELS))
        for number in range(6)
    }
    numbers = [_printed(name, f"{item.median + (name == 'c4') * 0.01:.2f}") for name, item in distributions.items()]
    verdicts = [judgement.verdict for judgement in judge(numbers, distributions)[0]]
    assert verdicts == ["agrees"] * 4 + ["refuted", "agrees"]


@pytest.mark.parametrize("runs", [4, 20, 200])
def test_fresh_means_lie_outside_in_five_of_a_hundred_cases(runs):
    rng = np.random.default_rng(5)
    cells, outside = 300, 0
    for _ in range(cells):
        quantiles = of_mean(rng.gamma(4.0, size=runs), 5, rng, samples=500)
        value = rng.gamma(4.0, size=5).mean()
        outside += not quantiles[LEVELS.index(0.025)] <= value <= quantiles[LEVELS.index(0.975)]
    # Fails by chance once in a million for shares from 4 to 7 %.
    low, high = scipy.stats.binom.ppf(2.5e-7, cells, 0.04), scipy.stats.binom.isf(2.5e-7, cells, 0.07)
    assert low <= outside <= high


def test_parts_combine_independent_draws():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(400, 20))
    quantiles = of_parts(values, rng)
    assert quantiles[LEVELS.index(0.5)] == pytest.approx(values.mean(), abs=0.02)
    assert quantiles[LEVELS.index(0.975)] - quantiles[LEVELS.index(0.5)] == pytest.approx(1.96 / np.sqrt(20), rel=0.15)


def _toy(parameters, context, piece):
    rng = np.random.default_rng([parameters["seed"], piece])
    return {f"{parameters['dataset']}/m//x": rng.normal(size=30).tolist()}


def _draws(dataset, pieces):
    return Draws(
        experiment="toy", name=dataset, dataset=dataset, run=f"{__name__}:_toy", pieces=pieces, combine="mean",
        size=5, unit=lambda cell: 0.01, parameters={"dataset": dataset, "seed": 1},
    )  # fmt: skip


def test_partial_draws_leave_every_other_cell_as_it_was(tmp_path):
    messages = []
    run_draws([_draws("a", 1), _draws("b", 1)], tmp_path / "data", Sources(tmp_path), say=messages.append)
    before = (tmp_path / "toy.csv").read_text().splitlines()
    stored = len(list((tmp_path / "data").rglob("*.json")))
    run_draws([_draws("b", 2)], tmp_path / "data", Sources(tmp_path), say=messages.append)
    after = (tmp_path / "toy.csv").read_text().splitlines()
    assert before[:2] == after[:2]
    assert before[2] != after[2]
    # The first piece was kept.
    assert len(list((tmp_path / "data").rglob("*.json"))) == stored + 1
    again = read_distributions(tmp_path / "toy.csv")
    assert again["b/m//x"].runs == 50
    # Each piece of b was timed, and the sources say so of b alone.
    sources = Sources(tmp_path)
    assert sorted(sources.entries("toy")) == ["a", "b"]
    assert sources.seconds("toy", "b")[0] >= 0.0
    assert merge_distributions({}, again.values()) == distributions_csv(again.values())


def test_cells_that_lie_outside_are_drawn_on(tmp_path):
    both = [_draws("a", 2), _draws("b", 2)]
    further = Further(cells=frozenset({"b/m//x"}), runs=300, seconds=60.0)
    run_draws(both, tmp_path / "data", Sources(tmp_path), say=lambda text: None, further=further)
    distributions = read_distributions(tmp_path / "toy.csv")
    # Ten of them are kept apart.
    assert (distributions["a/m//x"].runs, distributions["b/m//x"].runs) == (50, 290)
    # Too slow to be drawn on.
    assert dataclasses.replace(further, seconds=1.0).pieces({"b/m//x": [0.0] * 30}, 0.2) == 0


def test_a_tail_is_nowhere_lighter_than_the_runs():
    rng = np.random.default_rng(6)
    for values in (rng.normal(size=4000), rng.standard_t(3, size=4000), rng.gamma(0.5, size=4000)):
        item = _distribution(runs=4000, quantiles=of_whole(values.tolist()), statistic="mean of 5 runs")
        for level in (0.975, 0.995, 0.999):
            assert item.tail(item.quantiles[LEVELS.index(level)]) >= 0.999 * (1.0 - level)
    # Fitted at one point alone, heavy tails would be far too light.
    heavy = _distribution(runs=4000, quantiles=of_whole(rng.standard_t(3, size=4000).tolist()))
    assert max(heavy.tail_fits()) < 1e-4


def test_every_printed_number_has_one_row(judged):
    for name, paper in judged.items():
        ids = [judgement.printed.id for judgement in paper.judgements] + [f"claim/{claim.id}" for claim in paper.claims]
        assert len({anchor(item) for item in ids}) == len(ids), name
        with open(REPOSITORY / "reproduce" / name / "published.csv", encoding="utf-8", newline="") as handle:
            published = {"/".join(row[key] for key in ("dataset", "method", "setting", "metric")): row["value"]
                         for row in csv.DictReader(handle)}  # fmt: skip
        texts = {judgement.printed.id: judgement.printed.text for judgement in paper.judgements}
        assert {key: texts[key] for key in published} == published
        # Added rows are lost in the copy, and say so.
        assert all(not text for key, text in texts.items() if key not in published)
    assert len([paper for paper in judged["dpwss"].judgements if paper.printed.source == "Table 3"]) == 16 * 2 * 7 * 8


def test_every_statement_has_cells(judged):
    for name, paper in judged.items():
        waiting = [claim.id for claim in paper.claims if claim.verdict == "not judged yet"]
        assert not waiting, name
        for claim in paper.claims:
            for pattern in claim.cells:
                # Times by epsilon were not measured on cod-rna.
                found = group_cells(pattern, paper.distributions)
                assert found or "cod-rna/epsilon=#" in pattern, (claim.id, pattern)


def test_fresh_draws_of_the_committed_distributions(judged):
    columns = [column for paper in judged.values() for column in paper.columns]
    for name, paper in judged.items():
        fresh = calibration(paper.columns)
        assert fresh is None or fresh.holds(), (name, fresh)
    kinds = calibration_by_kind(columns)
    assert len(kinds) >= 7
    for kind, fresh in kinds.items():
        assert fresh.holds(), (kind, fresh)
    # Of 88 intervals of 95 % some miss: corrected over the columns, none does.
    single = {column.rule: fresh for column in columns if (fresh := calibration([column])) is not None}
    assert all(fresh.holds(len(single)) for fresh in single.values()), single
    missed = sum(not fresh.holds() for fresh in single.values())
    assert missed <= scipy.stats.binom.isf(0.001, len(single), 0.05)
    assert column_misses(columns).startswith(f"{missed} of {len(single)} columns miss 5 %")


def test_a_miscalibrated_kind_is_found():
    assert calibration_by_kind([]) == {}
    assert Calibration(400, 20).holds()
    for outside in (5, 40):
        assert not Calibration(400, outside).holds()
    assert Calibration(28, 5).holds(88)
    assert not Calibration(28, 10).holds(88)


def test_at_most_15_per_cent_of_the_rows_are_undecided(judged):
    rows = [row for paper in judged.values() for row in (*paper.judgements, *paper.claims)]
    assert sum(row.verdict == "cannot discriminate" for row in rows) <= 0.15 * len(rows)
    assert all(row.verdict in VERDICTS for row in rows)
    assert all(row.reason for row in rows if row.verdict == "cannot discriminate")


def test_a_distribution_that_is_no_printed_cell_changes_no_claim(judged):
    """The cells of sigma 0.9 once refuted the paper's first result."""
    dpwss = judged["dpwss"]
    base = dpwss.distributions["heart/DPWSS/shrinking=0;epsilon=1;sigma=0.7/MCC"]
    off = dataclasses.replace(base, quantiles=(0.0,) * len(LEVELS))
    stray = {f"heart/DPWSS/shrinking=0;epsilon=1;sigma=0.8/{metric}": off for metric in ("MCC", "objective", "AUC")}
    assert judge_committed("dpwss", changed=stray).claims == dpwss.claims
    assert {claim.id: claim.verdict for claim in dpwss.claims}["three-per-cent"] == "agrees"


def test_every_cell_of_the_overview_leads_to_its_row(judged):
    overview = index_page(list(judged.values()))
    cell_links = re.findall(r'<a class="cell [a-z-]+" href="([a-z0-9_]+)\.html#(n-[^"]+)"', overview)
    assert len(cell_links) == sum(len(printed_paper.verdicts) for printed_paper in judged.values())
    sources = Sources(REPOSITORY / "reports/reproduce/distributions")
    for name in ("ci_svm", "dpsvmdvp", "ppsvm"):
        experiments = [item for item in find_experiments("reproduce").values() if item.paper == name]
        page = paper_page(judged[name], draws_of([name]), sources, experiments)
        assert "://" not in page
        # A reader knows which data a command reads.
        data = {"ci_svm": "bupa_uci", "dpsvmdvp": "splice", "ppsvm": "ionosphere_uci"}[name]
        assert f"<code>{data}</code>" in page
        for item in experiments:
            assert page.count(f'href="{item.name}.csv"') == 1
            assert all(cell.replace("'", "&#39;") in page for _, cell, _ in judged[name].measurements[item.name])
        # The page repeats each measurement's source.
        tables = judged[name].paper.experiments
        sentences = [sources.sentence(table, entry) for table in tables for entry in sources.entries(table)]
        assert re.findall(r"<td>(measured [^<]+)</td>", page) == sentences
        anchors = set(re.findall(r' id="(n-[^"]+)"', page))
        assert {anchor for paper, anchor in cell_links if paper == name} <= anchors
        assert page.count("<code>python -m reproduce cell ") == len(judged[name].verdicts)


def test_rows_are_written_with_their_reading(judged):
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(rows_csv(judged["dpwss"])))}
    assert len(rows) == len(judged["dpwss"].verdicts)
    same = "the paper prints the same number with and without shrinking, where the two solutions differ a little"
    assert rows["german/WSS2/shrinking=0/AUC"]["reading"] == f"printed above ours; {same}"
    assert rows["claim/privacy"]["verdict"] == "refuted"
    for name, paper in judged.items():
        readings = [paper.reading(judgement) for judgement in paper.judgements]
        for remark in paper.remarks:
            assert any(remark.text in reading for reading in readings), (name, remark)


def test_a_rerun_beside_the_committed_cells():
    rng = np.random.default_rng(3)
    singles = rng.normal(size=200)
    first = _distribution("r", statistic="mean of 5 runs", runs=200, quantiles=of_mean(singles, 5, rng))
    other = dataclasses.replace(first, quantiles=of_mean(rng.normal(size=200), 5, rng))
    moved = dataclasses.replace(first, quantiles=tuple(value + 0.6 for value in other.quantiles))
    exact = _distribution("e", statistic="exact", quantiles=(1.0,) * len(LEVELS))
    off = dataclasses.replace(exact, quantiles=(1.004,) * len(LEVELS))
    wrong = dataclasses.replace(exact, quantiles=(1.02,) * len(LEVELS))
    committed = {"r": first, "e": exact}

    def reading(item):
        (line,) = beside(committed, {item.cell: item})
        assert line.confirms == (item not in (moved, wrong))
        return line.reading

    assert reading(first) == reading(exact) == "the same"
    assert reading(other) == "within what other draws change"
    assert reading(moved).startswith("further apart")
    assert reading(off).startswith("round-off")
    assert reading(wrong).startswith("differs in printed digits")
    assert beside(committed, {"x": first}) == []


def test_every_sentence_on_results_is_judged_by_rows_that_exist(judged):
    for name, paper in judged.items():
        claims = {claim.id for claim in paper.claims}
        ids = [judgement.printed.id for judgement in paper.judgements]
        tables = {label for item in paper.judgements for label in (item.printed.source, item.printed.family)}
        assert paper.passages, name
        named = {row for passage in paper.passages for row in passage.rows}
        for row in named - claims - tables - set(NOT_JUDGED):
            assert any(item.startswith(row) for item in ids), (name, row)
        assert claims <= named, (name, claims - named)


# Statements that the openings of the papers state as facts, with the verdicts that they have then.
OPENINGS = {
    "dpwss": {"agrees": "three-per-cent iterations-slope epsilon-little within-two-printed",
              "refuted": "privacy fewer-everywhere means-of-five", "cannot discriminate": "within-two"},
    "pmsvm": {"agrees": "wp-best gradient-over-weight", "refuted": "privacy clip-of-batches",
              "cannot discriminate": "margin-over-linear"},
    "ppsvm": {"agrees": "better-linear better-gaussian kernels-full kernels-reduced",
              "refuted": "privacy-known-linear privacy-known-gaussian privacy-linear privacy-gaussian"},
    "dpsvmdvp": {"agrees": "budget-splice private-level-splice ratio-DPSVMDVP-training-splice",
                 "refuted": "privacy noise-splice printed-offset-splice"},
    "ci_svm": {"agrees": "rsvm libsvm multi-libsvm multi-fcm time-libsvm support",
               "refuted": "privacy libsvm-held-out growth-ci"},
}  # fmt: skip


def test_openings_say_what_the_verdicts_say(judged):
    for name, paper in judged.items():
        verdicts = {claim.id: claim.verdict for claim in paper.claims}
        for verdict, claims in OPENINGS[name].items():
            assert {verdicts[claim] for claim in claims.split()} == {verdict}, name
        assert "{" not in paper.paragraph


def test_errors_of_single_runs_are_those_of_the_table_of_readings(judged):
    (readings,) = judged["dpwss"].comparisons
    holds, total = (sum(int(row[1].split(" of ")[part]) for row in readings.lines[:2]) for part in (0, 1))
    (claim,) = (claim for claim in judged["dpwss"].claims if claim.id == "within-two")
    assert f"{holds} of {total} if single runs do" in claim.ours


def test_trends_of_numbers_that_were_measured_once():
    rng = np.random.default_rng(4)
    once = {"statistic": SINGLE, "runs": 1}
    x = [20.0, 30.0, 40.0, 50.0, 60.0]
    inside = 0
    for _ in range(400):
        items = [
            _distribution(quantiles=(value,) * len(LEVELS), **once)
            for value in 2.0 + 3.0 * np.array(x) + rng.normal(size=5)
        ]
        estimate = slope(x, items)
        inside += estimate.low <= 3.0 <= estimate.high
    # 95 % of them; fails by chance once in a million.
    assert scipy.stats.binom.ppf(5e-7, 400, 0.95) <= inside <= 400
    items = [_distribution(quantiles=(value,) * len(LEVELS), **once) for value in (1.0, 4.0, 9.0)]
    assert slope([1.0, 2.0, 3.0], items, exponent=True).middle == pytest.approx(2.0)
    twice = [
        _distribution(quantiles=(factor * item.median,) * len(LEVELS), **once)
        for item, factor in zip(items, (1.9, 2.0, 2.1), strict=True)
    ]
    estimate = ratio(twice, items)
    assert estimate.low < 2.0 < estimate.high < 2.4
    assert judge_word("less", ratio(twice[:1], items[:1])) == "cannot discriminate"


def test_ratio_of_means_of_three_runs():
    # Student's tails with two degrees of freedom reach below 0, which no time does.
    tails = np.array(scipy.stats.t.ppf(np.clip(LEVELS, 0.001, 0.999), 2))
    slow = [_distribution(quantiles=tuple(1.1 + 0.1 * tails)) for _ in range(20)]
    base = [_distribution(quantiles=tuple(1.0 + 0.01 * tails)) for _ in range(20)]
    estimate = ratio(slow, base)
    assert estimate.middle == pytest.approx(1.1, abs=0.01)
    assert 0.9 < estimate.low < 1.1 < estimate.high < 1.3
    assert ratio(base, slow).middle == pytest.approx(1.0 / 1.1, abs=0.01)


def test_ratio_of_two_numbers_of_a_run():
    """A step that adds 8 % to another one's time is seen on a machine whose times vary by half."""
    varying = np.array(scipy.stats.norm.ppf(np.clip(LEVELS, 0.001, 0.999), 1.0, 0.25))
    without = [_distribution(quantiles=tuple(varying)) for _ in range(5)]
    within = [_distribution(quantiles=tuple(varying + 0.08)) for _ in range(5)]
    assert judge_word("slightly more", ratio(within, without)) == "cannot discriminate"
    estimate = ratio(within, without, paired=True)
    assert estimate.middle == pytest.approx(1.08, abs=0.005)
    assert judge_word("slightly more", estimate) == "agrees"


# Region and kind; medians at places 1, 2, 4 that hold, and that do not; numbers that they are compared with.
STATEMENTS = {
    "value": ("> 5", [1.0, 6.0], [1.0, 5.0], None),
    "mean": ("2..3", [1.0, 4.0], [1.0, 9.0], None),
    "range": ("<= 0.5", [1.0, 1.5], [1.0, 1.6], None),
    "difference": ("> 0", [1.0, 4.0], [1.0, 2.0], [3.0, 2.5]),
    "mean difference": ("< 0", [1.0, 2.0], [3.0, 4.0], [3.0, 2.5]),
    "quotient": (">= 2", [6.0], [5.0], [3.0]),
    "share": ("0.25..0.75", [1.0, 9.0], [1.0, 1.0], [2.0, 2.0]),
    "rank": ("> 0", [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], None),
    "slope": ("rises", [1.0, 9.0, 17.0], [17.0, 9.0, 1.0], None),
    "slope log10": ("rises", [1.0, 9.0, 17.0], [17.0, 9.0, 1.0], None),
    "step": ("steadily", [1.0, 30.0, 60.0], [1.0, 60.0, 30.0], None),
    "exponent": ("linear", [1000.0, 2000.0, 4000.0], [1000.0, 4000.0, 16000.0], None),
    "factor": ("little effect", [1000.0, 1010.0, 1000.0], [1000.0, 2000.0, 4000.0], None),
    "gap": ("much higher", [100.0], [1.0], [50.0]),
    "ratio": ("far less", [100.0], [400.0], [400.0]),
    "paired ratio": ("less", [100.0], [400.0], [200.0]),
}


def _claims(path, *rows):
    """Read statements of rows ``kind, cells, over, region, need, ours, undecided``, with a function of the pool."""
    path.write_text(
        "id,source,claim,kind,cells,over,region,need,ours,undecided,brief\n"
        + "".join(f"c{number},S,it holds,{row},in short\n" for number, row in enumerate(rows))
    )
    return lambda pool: read_claims(path, pool)


@pytest.mark.parametrize("kind", [*KINDS, *TRENDS])
def test_a_kind_of_statement_can_agree_and_be_refuted(kind, tmp_path):
    region, *lines, base = STATEMENTS[kind]
    over = "" if base is None else "p/*/#/base"
    start = f"{kind},p/*/#/ours,{over},{region},all,found"
    read = _claims(tmp_path / "claims.csv", f"{start},", f"{start},other rows")
    for line, verdict in zip(lines, ("agrees", "refuted"), strict=True):
        drawn = {f"p/a/{2**number}/ours": _distribution(centre=value) for number, value in enumerate(line)}
        drawn |= {f"p/a/{2**number}/base": _distribution(centre=value) for number, value in enumerate(base or ())}
        decided, undecided = read(drawn)
        assert (decided.verdict, decided.ours, decided.brief) == (verdict, "found", "in short")
        assert (undecided.verdict, undecided.reason) == ("cannot discriminate", "other rows")
        assert decided.cells == (("p/*/#/ours",) if base is None else ("p/*/#/ours", "p/*/#/base"))
    assert {claim.verdict for claim in read({})} == {"not judged yet"}


@pytest.mark.parametrize(
    ("need", "verdicts"),
    [
        # With 0, 1, 2, 3 and 4 of four numbers in the region.
        ("all", "refuted refuted refuted refuted agrees"),
        ("typically", "refuted refuted refuted refuted agrees"),
        ("nearly all", "refuted refuted refuted refuted agrees"),
        ("most", "refuted refuted refuted agrees agrees"),
        ("half", "refuted refuted agrees agrees agrees"),
        ("3/4", "refuted refuted refuted agrees agrees"),
        ("few", "refuted refuted refuted undecided agrees"),
    ],
)
def test_enough_numbers_make_a_statement(need, verdicts, tmp_path):
    assert need in NEEDS or "/" in need
    read = _claims(tmp_path / "claims.csv", f"value,p/*,,> 0,{need},{{holds}} of {{total}},")
    for holds, verdict in enumerate(verdicts.split()):
        drawn = {f"p/{number}": _distribution(centre=1.0 if number < holds else -1.0) for number in range(4)}
        (claim,) = read(drawn)
        assert claim.verdict.replace("cannot discriminate", "undecided") == verdict
        assert claim.ours == f"{holds} of 4"


def test_intervals_on_both_sides_leave_a_statement_open(tmp_path):
    read = _claims(tmp_path / "claims.csv", "slope,p/*/#,,rises,most,{holds} {fails},")
    lines = {"up": [1.0, 9.0, 17.0], "down": [17.0, 9.0, 1.0], "flat": [0.0, 0.0, 0.0]}

    def verdict(*names):
        return read({f"p/{number}/{2**place}": _distribution(centre=value) for number, name in enumerate(names)
                     for place, value in enumerate(lines[name])})[0].verdict  # fmt: skip

    assert verdict("up", "up", "flat") == "agrees"
    assert verdict("up", "flat", "down") == "cannot discriminate"
    assert verdict("up", "down", "down") == "refuted"


def test_conditions_correlations_and_statements_without_cells(tmp_path):
    read = _claims(
        tmp_path / "claims.csv", "each,a|b,,> 1|< 1,all,{cells[a]:.0f} {percent[b]:.0f},", "correlation,x/*,y/*,> 0,,,",
        ",,,,,,a time of other hardware", "mean,p/~/*,,<= 1,range,,",
    )  # fmt: skip
    values = {"a": 2.0, "b": 0.5, "p/1/u": 1.0, "p/2/u": 3.0, "p/1/v": 3.0}
    values |= {f"{name}/{place}": float(place) for name in "xy" for place in range(8)}
    each, correlation, nothing, mean = read({cell: _distribution(centre=value) for cell, value in values.items()})
    assert (each.verdict, each.ours) == ("agrees", "2 50")
    assert correlation.verdict == "agrees"
    assert (nothing.verdict, nothing.reason) == ("cannot discriminate", "a time of other hardware")
    # Means of 2 and 3.
    assert mean.verdict == "agrees"
    assert read({cell: _distribution(centre=2.0) for cell in "ab"})[0].verdict == "refuted"
    shuffled = {f"x/{place}": value for place, value in enumerate([3.0, 1.0, 2.0, 0.0, 3.5, 1.5, 2.5, 0.5])}
    drawn = {cell: _distribution(centre=value) for cell, value in {**values, **shuffled}.items()}
    assert "indistinguishable" in read(drawn)[1].reason


def test_one_more_draw_of_a_number_lies_outside_as_often_as_it_should():
    rng = np.random.default_rng(8)
    outside, cases = 0, 4000
    for _ in range(cases):
        values = rng.normal(size=39)
        item = _distribution(statistic="one value", runs=39, quantiles=of_whole(values.tolist()))
        outside += two_sided(float(rng.normal()), 1e-6, item) < 0.05
    # Fails by chance once in a million for shares from 4 to 6 %; taken as they are, the quantiles give 9 %.
    low, high = scipy.stats.binom.ppf(5e-7, cases, 0.04), scipy.stats.binom.isf(5e-7, cases, 0.06)
    assert low <= outside <= high


def test_too_few_runs_refute_nothing():
    item = _distribution(statistic="one value", runs=9, quantiles=of_whole([0.1 * number for number in range(9)]))
    assert two_sided(50.0, 0.01, item) >= 0.2


def test_panels_are_drawn_with_what_is_printed():
    line = Line("ours", [1.0, 2.0, 4.0], [(0.4, 0.5, 0.6)] * 3)
    panel = Panel(title="a < b", x="rows", y="accuracy", lines=[line], marks=[(2.0, "knee")], points=[(4.0, 0.9)],
                  log_x=True)  # fmt: skip
    drawn = panel_svg(panel)
    assert "a &lt; b" in drawn
    assert "<title>knee: 2</title>" in drawn
    assert "<title>printed 0.9 at 4</title>" in drawn
    assert drawn.count("<path") >= 6
    assert Panel(title="", x="", y="", lines=[Line("ours", [], [])]).empty
