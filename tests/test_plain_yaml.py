"""YAML 1.2 is parsed as DVC does, with the position of every mistake, without code and alias bombs."""

import io
import os

import pytest
import ruamel.yaml
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.parser import Parser

from privsvm.errors import PrivSVMError
from privsvm.plain_yaml import parse_yaml, read_yaml, with_place
from tests import refusals


def parse(text):
    return parse_yaml(text, "params.yaml")[0]


def refusal(text):
    message = refusals.refusal(parse_yaml, text, "params.yaml")
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    ("written", "value"),
    [
        # Snakemake's YAML 1.1 parses the first seven as other values.
        ("no", "no"), ("on", "on"), ("010", 10), ("1:30", "1:30"), ("1e-5", 1e-5), ("1e-06", 1e-6),
        ("2020-01-01", "2020-01-01"), ("1E+3", 1000.0), ("-7", -7), ("true", True), ("~", None), ('"1"', "1"),
        ("'no'", "no"), ("=", "="), ("0.1", 0.1), ("18446744073709551616", 2**64),
    ],
)  # fmt: skip
def test_scalars(written, value):
    scalar = parse(f"key: [{written}]\n")["key"][0]
    assert scalar == value
    assert type(scalar) is type(value)


def test_what_dvc_rewrites_is_read_as_before():
    """`dvc exp run -S` drops the quotes that YAML 1.2 does not need."""
    text = 'delta: 1.0e-5\nclasses: ["no", "yes", "010", "1e5", "~", "true", ""]\n'
    editor, stream = ruamel.yaml.YAML(), io.StringIO()
    editor.dump(editor.load(text), stream)
    assert parse(stream.getvalue()) == parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", "line 3, column 2: expected ',' or ']', but got ':'; correct it"),
        ("a: 1\n\tb: 2\n", "line 2, column 1: "),
        ("a: 1\nb: 2\na: 3\n", 'line 3, column 1: found duplicate key "a"'),
        ("a: !!python/object/apply:os.system ['true']\n", "line 1, column 4: tags are not read; write the value alone"),
        ("a: *nothing\n", "line 1, column 4: found undefined alias"),
        ("a: &x [*x]\n", "line 1, column 4: more than 30 levels"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: but found another document"),
        ("? [1]\n: 2\n", "line 1, column 3: a key must be a word"),
        ("a: 1\nb: \x01\n", "line 2: the character '\\x01' is not YAML"),
        (f"a: {'9' * 5000}\n", "line 1, column 4: a number of more than 40 digits"),
        ("a: " + "[" * 1200, "line 1, column 34: more than 30 levels"),
        ("!!str a: 1\n", "line 1, column 1: tags are not read"),
        ("a: &x 5\n*x : 1\n", "line 2, column 1: a key has no anchor"),
        ("a: 0x" + "f" * 5000, "line 1, column 4: a number of more than 40 digits"),
        ("%YAML 1.1\n---\na: no\n", "line 2, column 1: directives are not read"),
        ("a: -_\n", "not YAML"),
        ("a: {010: 1, '010': 2}\n", 'line 1, column 13: found duplicate key "010"'),
        ("- a\n", "holds no keys; restore it (git checkout params.yaml)"),
    ],
)
def test_every_mistake_has_its_place(text, message):
    assert refusal(text).startswith(f"params.yaml: {message}")


def test_a_short_file_stands_for_few_values():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{step}: &a{step} [{', '.join([f'*a{step - 1}'] * 10)}]" for step in range(1, 10)]
    assert "100000 values" in refusal("\n".join(lines))
    assert parse("a: &a [1]\nb: *a\n") == {"a": [1], "b": [1]}


def test_keys_are_the_texts_that_are_written():
    assert parse("{~: 1, true: 2, 010: 3, 1.50: 4, 2001-01-01: 5, '': 6}\n") == {
        "~": 1, "true": 2, "010": 3, "1.50": 4, "2001-01-01": 5, "": 6,
    }  # fmt: skip
    assert parse("a: &a {b: 1}\nc: {<<: *a, d: 2}\ne: <<\n") == {"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": "<<"}


@pytest.mark.filterwarnings("error")
def test_an_anchor_may_be_used_twice():
    assert parse("a: &a 1\nb: &a 2\nc: *a\n") == {"a": 1, "b": 2, "c": 2}


COSTLY = {
    "words": "a: [" + "a," * 250_000 + "]",
    "keys": "".join(f"k{index}:\n" for index in range(60_000)),
    "one key": "a: 1\n" * 60_000,
    "empty lists": "a: [" + "[]," * 150_000 + "]",
    "levels": "- " * 200_000,
    "braces": "{" * 400_000,
    "equal keys of aliases": "m0: &m0 {a: 1}\n"
    + "".join(f"m{step}: &m{step} {{a: *m{step - 1}, a: *m{step - 1}}}\n" for step in range(1, 40)),
    "merged aliases": "m0: &m0 {a: 1}\n"
    + "".join(f"m{step}: &m{step} {{<<: [*m{step - 1}, *m{step - 1}]}}\n" for step in range(1, 40)),
}


@pytest.mark.parametrize("kind", COSTLY)
def test_limits_are_counted_before_values_are_made(kind, monkeypatch):
    """The parser is asked for at most two events for each allowed value, and nothing is constructed."""
    events, get_event = [], Parser.get_event

    def count(parser):
        events.append(1)
        return get_event(parser)

    monkeypatch.setattr(Parser, "get_event", count)
    monkeypatch.setattr(SafeConstructor, "construct_document", lambda *_: pytest.fail("constructed"))
    message = refusal(COSTLY[kind])
    assert "more than 30 levels or 100000 values" in message or "duplicate key" in message
    assert len(events) < 200_100


def test_files_that_cannot_be_read(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(file) == ({"a": 1}, {("a",): (1, 1)})
    for content, message in (
        (b"a: 1\n\xe4: 1\n", "line 2: not UTF-8"),
        (b"a: " + b"x" * (512 << 10), "more than the 524288 bytes .* at most 512 kB"),
    ):
        file.write_bytes(content)
        with pytest.raises(PrivSVMError, match=message):
            read_yaml(file)
    with pytest.raises(PrivSVMError, match="file not found"):
        read_yaml(tmp_path / "none.yaml")
    # A pipe is not waited for.
    os.mkfifo(tmp_path / "pipe")
    for strange in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(PrivSVMError, match=f"{strange}: is no file; give a readable file"):
            read_yaml(strange)
    for name in ("a\0b", "\ud800"):
        with pytest.raises(PrivSVMError, match="is no path"):
            read_yaml(name)


def test_a_message_gets_the_place_of_its_longest_key():
    positions = parse_yaml("privacy:\n  epsilons: [1, 0]\nmethods:\n  s;vm: {}\n", "params.yaml")[1]
    assert with_place("privacy.epsilons.1: 0 is not valid", positions).endswith("(line 2, column 17)")
    assert with_place("privacy.delta is missing", positions).endswith("(line 1, column 1)")
    assert with_place("methods: 's;vm' is not valid", positions).endswith("(line 4, column 3)")
    assert with_place("seed is missing", positions) == "seed is missing"
