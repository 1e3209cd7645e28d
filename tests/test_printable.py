"""Messages show texts of users without control characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsvm.errors import PrivSVMError, list_names, nearest_name, printable
from privsvm.tables.schema import parse_schema
from privsvm.tables.tables import units_table
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


def test_messages_are_of_bounded_length():
    """A file may hold a million columns, or one of a million letters."""
    many = [f"column {number}" for number in range(300_000)]
    for error in (
        PrivSVMError(f"t.csv: {many}; correct it"),
        PrivSVMError(f"t.csv: {'x' * 10**6!r}; correct it"),
        PrivSVMError(f"t.csv: no column 'a' ({nearest_name('a', many)}); correct it"),
    ):
        assert len(str(error)) < 2100
        assert str(error).startswith("t.csv: ")
        assert str(error).endswith("; correct it")
    assert list_names(many).endswith("'column 19' and 299980 more")
    assert len(list_names(["x" * 10**6] * 30)) < 3000


def test_undeclared_columns_are_counted(tmp_path):
    schema = parse_schema(
        {"name": "t", "label": "y", "classes": [0, 1], "columns": {"x": {"bounds": [0, 1], "fill": 0}}}
    )
    (tmp_path / "t.csv").write_text(f"x,y,{','.join(f'c{number}' for number in range(300_000))}\n")
    with pytest.raises(PrivSVMError, match="and 299980 more not in the schema") as error:
        units_table(tmp_path / "t.csv", schema)[:2]
    assert len(str(error.value)) < 1000
