"""No text of params.yaml reaches a shell, and unchecked names remove nothing."""

import itertools
import re

import pytest

from privsvm.files import read_json

from .conftest import OWN_ROWS, REPOSITORY

pytestmark = pytest.mark.workflow

# A shell that ran one of these would create the file `pwned`.
COMMANDS = [
    "$(touch pwned)", "`touch pwned`", "a;touch pwned", "a|touch pwned", "a&touch pwned", "a\ntouch pwned",
    "'; touch pwned; '", '"; touch pwned; "', "-x", "a b", "a\n",
]  # fmt: skip
PATHS = ["../../docs", "../docs", "/docs", "..", "."]


ENTRIES = {"methods": {"implementation": "majority"}, "datasets": {"path": "patients.csv", "label": "label"}}


def test_names_are_refused_before_anything_runs(finished):
    params, before = finished.params(), finished.hashes("data", "docs", "lib", "stages")
    for command, (section, entry) in itertools.product(
        (["dvc", "repro"], ["snakemake", "--cores", "1"]), ENTRIES.items()
    ):
        finished.write_params({**params, section: {**params[section], **dict.fromkeys([*COMMANDS, *PATHS], entry)}})
        output = finished.call(*command, check=False)
        assert finished.code != 0
        assert "Traceback" not in output
        (line,) = [line for line in output.splitlines() if line.startswith("error: ")]
        assert line.startswith("error: params.yaml: ")
        assert not list(finished.folder.rglob("pwned"))
        finished.write_params(params)
    # DVC removes a stage's outputs before it runs the stage; the old params.yaml restores them.
    finished.snakemake()
    assert finished.hashes("data", "docs", "lib", "stages") == before


@pytest.mark.long
def test_free_text_is_passed_on_unchanged(finished):
    """Mirror, own file and database may be any text."""
    text = 'it\'s "$(touch pwned)" `touch pwned`; touch pwned | touch pwned & {wildcards.dataset}'
    file = "my $(touch pwned); `touch pwned` & 'data'.csv"
    (finished.folder / "data/own" / file).write_text("\n".join(OWN_ROWS) + "\n")
    params = finished.params()
    params["data"] = {"mirror": f"/nowhere/{text}"}
    params["datasets"] = {"own": {"path": file, "label": "label", "classes": ["a", "b"], "bounds": [0, 7]}}
    params["methods"] = {"majority": {"implementation": "majority"}}
    params["mlflow"] = {"tracking_uri": "sqlite:///$(touch pwned);`touch pwned`.db"}
    finished.write_params(params)
    # Every stage of DVC with all its rules; then the rule that DVC skips.
    output = finished.call("dvc", "repro")
    assert re.findall(r"Running stage '(\w+)", output) == ["download", "prepare", "condense", "train", "report"]
    finished.snakemake()
    assert finished.nothing_to_do()
    assert read_json(finished.folder / "data/private/results/majority/own.json")["dataset"] == "own"
    assert not list(finished.folder.rglob("pwned"))


def test_every_field_in_a_rule_is_quoted():
    """Fields of `shell:` end in `:q`, except our quoted folder."""
    for rule in sorted((REPOSITORY / "stages").rglob("*.smk")):
        for command in re.findall(r"shell:\n((?: +[\"f].*\n)+)", rule.read_text()):
            fields = re.findall(r"\{([^{}]*)\}", command)
            assert fields
            assert all(field.endswith(":q") or field in ("STAGES", "threads") for field in fields), (rule.name, fields)
