"""Messages show texts of users without control characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsvm.errors import PrivSVMError, printable
from privsvm_bench.workflow.stage import run

HOSTILE = ["\x1b[2J\x1b]0;title\x07", "a\rerror: none", "a\nerror: none", "\u202egnp.exe", "\x9b31m", "\x00", "\u2028"]


@pytest.mark.parametrize("text", HOSTILE)
def test_errors_are_one_line_without_escapes(capsys, text):
    def main(arguments):
        raise PrivSVMError(f"{text}.csv: column '{text}' missing; correct `label`")

    def other(arguments):
        raise FileNotFoundError(2, "No such file", f"{text}.csv")

    for stage in (main, other):
        with pytest.raises(SystemExit):
            run(stage)
        error = capsys.readouterr().err
        assert error.endswith("\n")
        assert error.startswith("error: ")
        assert error[:-1].isprintable()


@given(st.text())
def test_every_text_can_be_printed(text):
    shown = printable(text)
    assert shown.isprintable()
    if text.isprintable():
        assert shown == text


def test_words_of_all_languages_stay():
    for text in ("Müller, 王小明: 3 µm, “x”", "a b"):
        assert printable(text) == text
