"""One reading of params.yaml, whoever wrote it; the place of every mistake; no code, no bombs, no guesses."""

import io
import math
import subprocess
import sys
from pathlib import Path

import pytest
import ruamel.yaml
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from privsvm.errors import PrivSVMError
from privsvm.pipeline.params import check_params, read_params
from privsvm.plain_yaml import parse_yaml, read_yaml

REPOSITORY = Path(__file__).resolve().parents[2]

TEXT = (REPOSITORY / "params.yaml").read_text()


def parsed(text):
    return parse_yaml(text, "params.yaml")[0]


def refusal(text, source="params.yaml"):
    with pytest.raises(PrivSVMError) as caught:
        parse_yaml(text, source)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    ("written", "value"),
    [
        # Snakemake's reader takes the first six for other values than DVC's.
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("Off", "Off"), ("1e-5", 1e-5), ("1:30", "1:30"),
        ("y", "y"), ("2020-01-01", "2020-01-01"), ("1E+3", 1000.0),
        ("-.5e1", -5.0), ("3.", 3.0), ("010.5", 10.5), ("0", 0), ("-7", -7),
        ("+7", 7),
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ('"1"', "1"), ("'no'", "no"),
        ('"010"', "010"), ("1.2.3", "1.2.3"), ("e5", "e5"), ("=", "="), ("0.1", 0.1), ("18446744073709551616", 2**64),
    ],
)  # fmt: skip
def test_one_reading(written, value):
    for text in (f"key: {written}\n", f"key: [{written}]\n", f"other: 1\nkey:\n  - {written}\n"):
        if written or "[" not in text:
            found = parsed(text)["key"]
            found = found[0] if isinstance(found, list) else found
            assert found == value
            assert type(found) is type(value)


def rewritten(text):
    """What `dvc exp run -S` leaves behind: it reads and writes the file with this package."""
    reader = ruamel.yaml.YAML()
    stream = io.StringIO()
    reader.dump(reader.load(text), stream)
    return stream.getvalue()


OWN = """
datasets:
  my_patients:
    path: params.yaml
    format: csv
    label: diagnosis
    classes: ["no", "yes"] # public
    positive: "yes"
    groups: {"no": ["no", "010"], "yes": ["1_000", "1:30", "2020-01-01", "0x1F", "1e5", "~", "true", ""]}
"""


def test_what_dvc_has_rewritten_stays_as_it_was():
    again = rewritten(OWN)
    # The quotes are gone, and with them what the other reading holds of the classes.
    assert yaml.safe_load(again)["datasets"]["my_patients"]["classes"] == [False, True]
    assert parsed(again) == parsed(OWN)
    assert parsed(rewritten(TEXT)) == parsed(TEXT)


@settings(max_examples=40)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
                    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abn-_", min_size=1), inner),
                    max_leaves=6))  # fmt: skip
def test_what_dvc_writes_is_what_is_read(value):
    stream = io.StringIO()
    ruamel.yaml.YAML(typ="safe", pure=True).dump({"key": value}, stream)
    assert parsed(stream.getvalue()) == {"key": value}


def test_the_default_is_read_as_before():
    assert read_params(REPOSITORY / "params.yaml") == check_params(yaml.safe_load(TEXT))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", "line 3, column 2: "),
        ("a: 1\n  b: 2\n", "line 2, column 4: "),
        ("a: 1\n\tb: 2\n", "line 2, column 1: "),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: the key 'a' is there twice, first in line 1"),
        ("a:\n  x: 1\n  'x': 2\n", "line 3, column 3: the key 'x' is there twice"),
        ("1: a\n'1': b\n", "line 2, column 1: the key '1' is there twice"),
        ("a: .nan\n", "line 1, column 4: .nan is not a finite number"),
        ("a: [1, -.inf]\n", "line 1, column 8: -.inf is not a finite number"),
        ("a: 1e999\n", "line 1, column 4: 1e999 is too large"),
        (f"a: {'9' * 5000}\n", "line 1, column 4: a number of 5000 digits"),
        ("a: 010\n", "line 1, column 4: 010 is read in several ways"),
        ("a: 0o10\n", "line 1, column 4: 0o10 is read"),
        ("a: 0x1F\n", "line 1, column 4: 0x1F is read"),
        ("a: 1_000\n", "line 1, column 4: 1_000 is read"),
        ("a: !!python/object/apply:os.system ['true']\n", "line 1, column 4: the tag"),
        ("a: !!float 1\n", "line 1, column 4: the tag"),
        ("a: &x [1]\nb: {<<: *x}\n", "line 2, column 5: merge keys"),
        ("a: *nothing\n", "line 1, column 4: the alias *nothing"),
        ("a: &x [*x]\n", "line 1, column 8: the alias *x"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: a second document"),
        ("? [1]\n: 2\n", "line 1, column 3: a key must be a word"),
        ("a: 1\nb: \x01\n", "line 2"),
        ("a: %x\n", "line 1, column 4: "),
        ("a: " + "[" * 2000, "line 1, column "),
        ("a: " + "{b: " * 100 + "1" + "}" * 100, "more than 30 levels"),
    ],
)
def test_every_mistake_has_its_place(text, words):
    assert f"params.yaml: {words}" in refusal(text) or words in refusal(text)
    assert refusal(text, "mine.yaml").startswith("mine.yaml: line ")


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "word\n", "3\n"])
def test_what_holds_no_keys(text):
    assert "holds no keys" in refusal(text)


def test_bombs():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{step}: &a{step} [{', '.join([f'*a{step - 1}'] * 10)}]" for step in range(1, 10)]
    assert "more than 400000 values" in refusal("\n".join(lines))
    assert "more than 1000 aliases" in refusal("a: &a x\nb: [" + "*a, " * 1001 + "]\n")
    assert "larger than 4 MB" in refusal("a: " + "x" * (4 << 20))
    assert parsed("a: &a [1]\nb: *a\n") == {"a": [1], "b": [1]}


def test_files_that_cannot_be_read(tmp_path):
    for content, words in ((b"a: \xff\n", "line 1: not UTF-8"), (b"a: 1\n\xe4: 1\n", "line 2: not UTF-8")):
        (tmp_path / "p.yaml").write_bytes(content)
        with pytest.raises(PrivSVMError, match=words):
            read_yaml(tmp_path / "p.yaml")
    (tmp_path / "p.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(tmp_path / "p.yaml")[0] == {"a": 1}
    with pytest.raises(PrivSVMError, match="file not found"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(PrivSVMError, match="Is a directory"):
        read_yaml(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("delta: 1.0e-5", "delta: 2", "(line {line}, column 3)"),
        ("repeats: 10\n\n#", "repeats: 0\n\n#", "(line {line}, column 3)"),
        ("scaling: bounds\n  digits", "scalign: bounds\n  digits", "(line {line}, column 5)"),
        ("  svm:\n", "  s;vm:\n", "(line {line}, column 3)"),
        ("epsilons: [0.1, 0.25", "epsilons: [0.1, 0", "(line {line}, column 19)"),
    ],
)  # fmt: skip
def test_values_have_their_place(tmp_path, old, new, place):
    assert TEXT.count(old) == 1
    (tmp_path / "params.yaml").write_text(TEXT.replace(old, new))
    with pytest.raises(PrivSVMError) as caught:
        read_params(tmp_path / "params.yaml")
    line = TEXT[: TEXT.index(old)].count("\n") + 1
    assert str(caught.value).endswith(place.format(line=line)), str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("datasets.x.attacks", {}, ["becomes a folder", ".attacks"]),
        ("datasets.x.train", {}, ["becomes a folder"]),
        ("datasets.123", {}, ["becomes a folder", "a letter"]),
        ("methods.123", {"implementation": "svm"}, ["becomes a folder", "a letter"]),
        ("methods." + "a" * 5000, {"implementation": "svm"}, ["becomes a folder", "64"]),
        ("experiment", "7", ["a letter"]),
        ("experiment", "x" * 65, ["64"]),
        ("privacy.epsilons", [1 + step / 1e4 for step in range(1001)], ["at most 1000"]),
        ("privacy.repeats", 10**9, ["at least 1 and at most 100000"]),
        ("protocol.repeats", 10**9, ["at least 1 and at most 100000"]),
        ("protocol.folds", 10**9, ["at least 2 and at most 100000"]),
        ("seed", 2**64, ["at least 0 and at most"]),
        ("methods.svm.C", math.nan, ["finite"]),
        ("methods.new", {"implementation": "sklearn.svm:SVC", "C": math.nan}, ["methods.new.C", "finite"]),
        ("methods.new", {"implementation": "sklearn.svm:SVC", "C": [1.0, {"x": -math.inf}]}, ["new.C.1.x", "finite"]),
        ("methods.new", {"implementation": "ppsvm", "entities": 10**9}, ["entities", "1000"]),
        ("methods.new", {"implementation": "ppsvm", "entities": [[step] for step in range(1001)]}, ["1000"]),
        ("report.reference_epsilon", math.inf, ["finite"]),
    ],
)  # fmt: skip
def test_limits(key, value, words):
    params = yaml.safe_load(TEXT)
    section, _, last = key.partition(".")
    if last:
        params[section][last if last not in ("svm.C",) else "svm"] = value if last != "svm.C" else {
            "implementation": "svm", "C": value
        }  # fmt: skip
    else:
        params[section] = value
    with pytest.raises(PrivSVMError) as caught:
        check_params(params)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 6000
    for word in words:
        assert word in message, message


def test_a_file_runs_no_code(tmp_path):
    """Snakemake's own reader evaluates such expressions."""
    text = "__use_yte__: true\n__definitions__:\n  - import os; open('pwned', 'w')\n" + TEXT
    (tmp_path / "params.yaml").write_text(text)
    for name in ("lib", "stages", "Snakefile", "profiles"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "error: params.yaml: __definitions__ is not a known key" in done.stderr
    assert "(line 2, column 1)" in done.stderr
    assert not (tmp_path / "pwned").exists()
