"""Sources of tables name the code of every measurement, and the samples that confirmed it."""

import pytest

from privsvm_bench import evidence
from privsvm_bench.evidence import Sources
from tests.scripts import REPOSITORY


@pytest.fixture
def day(monkeypatch):
    """Set the day and the machine of the next statement."""

    def set_day(date, machine="here"):
        monkeypatch.setattr(evidence, "_here", lambda code: {"code": code, "date": date, "machine": machine})

    set_day("2026-11-20")
    return set_day


def test_an_entry_is_current_by_measurement_or_sample(tmp_path, day):
    sources = Sources(tmp_path)
    assert not sources.is_current("board", "lda", "one", "wine")
    sources.measure("board", "lda", "one", "wine", 0.5)
    assert sources.is_current("board", "lda", "one", "wine")
    # Neither other code, nor another part, entry or table.
    for place in (("board", "lda", "two", "wine"), ("board", "lda", "one", "iris"), ("board", "svm", "one", "wine")):
        assert not sources.is_current(*place)
    assert not sources.is_current("other", "lda", "one", "wine")
    sources.confirm("board", "lda", "two", 8, 0.0)
    assert sources.is_current("board", "lda", "two", "wine")
    # An unmeasured part is not confirmed.
    assert not sources.is_current("board", "lda", "two", "iris")


def test_a_part_has_one_measurement(tmp_path, day):
    sources = Sources(tmp_path)
    for part in ("wine", "iris"):
        sources.measure("board", "lda", "one", part, 0.5)
    day("2026-11-27")
    sources.measure("board", "lda", "two", "wine", 0.25)
    assert [(item["code"], item["parts"]) for item in sources.entries("board")["lda"]["measured"]] == [
        ("one", {"iris": 0.5}), ("two", {"wine": 0.25})
    ]  # fmt: skip
    assert sorted(sources.seconds("board", "lda")) == [0.25, 0.5]
    sources.measure("board", "lda", "two", "iris")
    assert [item["code"] for item in sources.entries("board")["lda"]["measured"]] == ["two"]


def test_sentences_say_what_is_stored_and_no_more(tmp_path, day):
    sources = Sources(tmp_path)
    sources.measure("board", "lda", "one", "wine")
    assert sources.sentence("board", "lda") == "measured on 2026-11-20, not drawn again since"
    day("2026-11-27")
    sources.measure("board", "lda", "two", "iris")
    sources.confirm("board", "lda", "two", 8, 0.0005)
    assert sources.sentence("board", "lda") == (
        "measured from 2026-11-20 to 2026-11-27, confirmed on 2026-11-27 by 8 cells (largest difference 0.0005)"
    )


def test_the_machine_is_described():
    assert " cores, " in evidence.machine()
    assert "numpy" in evidence.machine()


def test_the_page_of_audits_states_their_sources():
    sources, page = Sources(REPOSITORY / "reports"), (REPOSITORY / "docs/audits.md").read_text(encoding="utf-8")
    entries = sources.entries("audits")
    assert len(entries) > 20
    lines = [line.split(" | ") for line in page.splitlines()]
    stated = {line[0]: line[-1] for line in lines if len(line) == 2 and line[1].startswith("measured ")}
    assert stated == {f"| {name}": f"{sources.sentence('audits', name)} |" for name in entries}


def test_a_sample_confirms_an_entry_of_other_code(tmp_path, day, capsys):
    sources, ran = Sources(tmp_path), []
    sources.measure("board", "lda", "one", "wine")

    def confirm(code, difference=0.0):
        compare = lambda key: ran.append(key) or (3, difference)  # noqa: E731
        options = {"number": 2, "tolerance": 0.001}
        return sources.confirm_sample("board", "lda", code, "abcdef", compare, **options)

    assert confirm("one")
    assert ran == []
    assert not confirm("two", 0.002)
    assert "board, lda: not what the table says" in capsys.readouterr().out
    assert not sources.is_current("board", "lda", "two", "wine")
    assert len(set(ran)) == len(ran) == 2
    assert confirm("two", 0.001)
    assert sources.sentence("board", "lda").endswith("by 6 cells (largest difference 0.001)")
    # The code draws the sample, not the caller.
    assert ran[:2] == ran[2:]
    for code in ("three", "four", "five"):
        confirm(code)
    assert len(set(ran)) > 2
