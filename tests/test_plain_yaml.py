"""YAML 1.2 is parsed as DVC does, with the position of every mistake, without code and alias bombs."""

import io

import pytest
import ruamel.yaml

from privsvm.errors import PrivSVMError
from privsvm.plain_yaml import parse_yaml, read_yaml, with_place


def parsed(text):
    return parse_yaml(text, "params.yaml")[0]


def refusal(text):
    with pytest.raises(PrivSVMError) as caught:
        parse_yaml(text, "params.yaml")
    message = str(caught.value)
    assert "\n" not in message
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
    scalar = parsed(f"key: [{written}]\n")["key"][0]
    assert scalar == value
    assert type(scalar) is type(value)


def test_what_dvc_rewrites_is_read_as_before():
    """`dvc exp run -S` drops the quotes that YAML 1.2 does not need."""
    text = 'delta: 1.0e-5\nclasses: ["no", "yes", "010", "1e5", "~", "true", ""]\n'
    editor, stream = ruamel.yaml.YAML(), io.StringIO()
    editor.dump(editor.load(text), stream)
    assert parsed(stream.getvalue()) == parsed(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", "line 3, column 2: expected ',' or ']', but got ':'; correct it"),
        ("a: 1\n  b: 2\n", "line 2, column 4: "),
        ("a: 1\n\tb: 2\n", "line 2, column 1: "),
        ("a: 1\nb: 2\na: 3\n", 'line 3, column 1: found duplicate key "a"'),
        ("a: !!python/object/apply:os.system ['true']\n", "line 1, column 4: could not determine a constructor"),
        ("a: *nothing\n", "line 1, column 4: found undefined alias"),
        ("a: &x [*x]\n", "line 1, column 4: more than 30 levels"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: but found another document"),
        ("? [1]\n: 2\n", "line 1, column 3: a key must be a word"),
        ("a: 1\nb: \x01\n", "line 2: the character '\\x01' is not YAML"),
        (f"a: {'9' * 5000}\n", "not YAML (Exceeds the limit"),
        ("a: " + "[" * 1200, "not YAML (maximum recursion depth exceeded)"),
        ("- a\n", "holds no keys; restore it (git checkout params.yaml)"),
        ("# nothing\n", "holds no keys"),
    ],
)
def test_every_mistake_has_its_place(text, message):
    assert refusal(text).startswith(f"params.yaml: {message}")


def test_a_short_file_stands_for_few_values():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{step}: &a{step} [{', '.join([f'*a{step - 1}'] * 10)}]" for step in range(1, 10)]
    assert "400000 values" in refusal("\n".join(lines))
    assert parsed("a: &a [1]\nb: *a\n") == {"a": [1], "b": [1]}


def test_files_that_cannot_be_read(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(file) == ({"a": 1}, {("a",): (1, 1)})
    for content, message in (
        (b"a: 1\n\xe4: 1\n", "line 2: not UTF-8"),
        (b"a: " + b"x" * (4 << 20), "larger than 4 MB"),
    ):
        file.write_bytes(content)
        with pytest.raises(PrivSVMError, match=message):
            read_yaml(file)
    with pytest.raises(PrivSVMError, match="file not found"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(PrivSVMError, match="Is a directory"):
        read_yaml(tmp_path)


def test_a_message_gets_the_place_of_its_longest_key():
    positions = parse_yaml("privacy:\n  epsilons: [1, 0]\nmethods:\n  s;vm: {}\n", "params.yaml")[1]
    assert with_place("privacy.epsilons.1: 0 is not valid", positions).endswith("(line 2, column 17)")
    assert with_place("privacy.delta is missing", positions).endswith("(line 1, column 1)")
    assert with_place("methods: 's;vm' is not valid", positions).endswith("(line 4, column 3)")
    assert with_place("seed is missing", positions) == "seed is missing"
