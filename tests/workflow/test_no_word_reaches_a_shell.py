"""No word of params.yaml reaches a shell, and nothing is removed by a name that was not checked."""

import importlib
import re

import pytest
import yaml

from privsvm.errors import PrivSVMError
from privsvm.files import read_json

from .conftest import OWN_ROWS, REPOSITORY

pytestmark = pytest.mark.workflow

# Each would leave a file `pwned` behind if a shell read it.
COMMANDS = [
    "$(touch pwned)", "`touch pwned`", "a;touch pwned", "a|touch pwned", "a&touch pwned", "a\ntouch pwned",
    "'; touch pwned; '", '"; touch pwned; "', "-x", "a b", "a\n",
]  # fmt: skip
PATHS = ["../../docs", "../docs", "/docs", "..", "."]


def kept(workspace) -> dict[str, str]:
    """Everything that a run may not touch when it refuses to start."""
    return workspace.hashes("data/raw", "data/prepared", "data/models", "data/results", "docs", "lib", "stages")


@pytest.fixture(scope="module")
def at_rest(finished_once, tmp_path_factory):
    """A finished working copy: the data stages have nothing to do."""
    return finished_once.copy(tmp_path_factory.mktemp("shell") / "finished")


def with_entries(params: dict, section: str, names: list[str]) -> dict:
    entry = {"implementation": "majority"} if section == "methods" else {"path": "patients.csv", "label": "label"}
    return {**params, section: {**params[section], **dict.fromkeys(names, entry)}}


def refused(workspace, params, *commands) -> None:
    """Every command says in one line what is wrong, runs nothing and removes nothing."""
    before, text = kept(workspace), (workspace.folder / "params.yaml").read_text()
    (workspace.folder / "data/own/patients.csv").write_text("\n".join(OWN_ROWS) + "\n")
    workspace.write_params(params)
    try:
        for command in commands:
            output = workspace.call(*command, check=False)
            assert workspace.code != 0, command
            assert "Traceback" not in output
            (line,) = [line for line in output.splitlines() if line.startswith("error: ")]
            assert line.startswith("error: params.yaml: ")
            assert not list(workspace.folder.rglob("pwned"))
            assert kept(workspace) == before
    finally:
        (workspace.folder / "params.yaml").write_text(text)
    # The names are gone, and nothing has to run again.
    assert "Running stage" not in workspace.call("dvc", "repro").replace("Running stage 'inputs'", "")


@pytest.mark.parametrize("section", ["methods", "datasets"])
def test_names(at_rest, section):
    stage = "train" if section == "methods" else "download"
    params = with_entries(at_rest.params(), section, COMMANDS)
    refused(
        at_rest, params, ["dvc", "repro"], ["dvc", "repro", f"{stage}@{COMMANDS[0]}"],
        ["dvc", "repro", f"{stage}@{COMMANDS[5]}"], ["snakemake", "--cores", "1"],
    )  # fmt: skip


@pytest.mark.parametrize("name", [*COMMANDS, *PATHS])
def test_every_name_by_itself(at_rest, monkeypatch, name):
    """What DVC starts for a stage of that name, whatever came before it."""
    monkeypatch.chdir(at_rest.folder)
    monkeypatch.syspath_prepend(str(REPOSITORY / "stages"))
    main = importlib.import_module("dvc_stage").main
    params, text = at_rest.params(), (at_rest.folder / "params.yaml").read_text()
    before = kept(at_rest)
    for section, stage in (("methods", "train"), ("datasets", "prepare")):
        at_rest.write_params(with_entries(params, section, [name]))
        monkeypatch.setenv("DVC_STAGE", f"{stage}@{name}")
        try:
            with pytest.raises(PrivSVMError, match=r"\Aparams\.yaml: .*\Z"):
                main([])
        finally:
            (at_rest.folder / "params.yaml").write_text(text)
    assert not list(at_rest.folder.rglob("pwned"))
    assert kept(at_rest) == before


@pytest.mark.parametrize("section", ["methods", "datasets"])
def test_paths_for_names(at_rest, section):
    """DVC itself refuses two outputs in one place, or the stage `inputs` does; nothing is removed."""
    before, text = kept(at_rest), (at_rest.folder / "params.yaml").read_text()
    stage = "train" if section == "methods" else "download"
    for name in PATHS[:2]:
        at_rest.write_params(with_entries(yaml.safe_load(text), section, [name]))
        try:
            for command in (["dvc", "repro"], ["dvc", "repro", f"{stage}@{name}"]):
                output = at_rest.call(*command, check=False)
                assert at_rest.code != 0
                assert "Traceback" not in output
                assert kept(at_rest) == before
        finally:
            (at_rest.folder / "params.yaml").write_text(text)
    at_rest.call("dvc", "repro")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("methods.majority.implementation", "majority; touch pwned"),
        ("methods.svm.kernel", "$(touch pwned)"),
        ("methods.pmsvm_wp.C", "`touch pwned`"),
        ("condense", "../../docs"),
        ("experiment", "$(touch pwned)"),
        ("privacy.neighbours", "replace_one & touch pwned"),
    ],
)
def test_values_that_are_no_values(at_rest, key, value):
    params = at_rest.params()
    *path, last = key.split(".")
    place = params
    for name in path:
        place = place[name]
    place[last] = value
    refused(at_rest, params, ["dvc", "repro"])


def test_free_text_is_handed_over_as_it_is(finished):
    """A mirror, the name of a file of one's own, a database: what may be any text, in every command."""
    text = 'it\'s "$(touch pwned)" `touch pwned`; touch pwned | touch pwned & {wildcards.dataset}'
    file = "my $(touch pwned); `touch pwned` & 'data'.csv"
    (finished.folder / "data/own" / file).write_text("\n".join(OWN_ROWS) + "\n")
    params = finished.params()
    params["data"] = {"mirror": f"/nowhere/{text}"}
    params["datasets"] = {"own": {"path": file, "label": "label", "classes": ["a", "b"], "bounds": [0, 7]}}
    params["methods"] = {"majority": {"implementation": "majority"}}
    params["mlflow"] = {"tracking_uri": "sqlite:///$(touch pwned);`touch pwned`.db"}
    finished.write_params(params)
    # Every stage of DVC, and below it every rule; then those rules that DVC leaves out.
    output = finished.call("dvc", "repro")
    assert re.findall(r"Running stage '(\w+)", output) == [
        "inputs", "download", "prepare", "condense", "jobs", "train", "audit", "report"
    ]  # fmt: skip
    finished.snakemake("--forcerun", "record")
    assert finished.nothing_to_do()
    assert read_json(finished.folder / "data/results/majority/own.json")["dataset"] == "own"
    assert not list(finished.folder.rglob("pwned"))


def test_no_command_of_dvc_holds_a_word_of_params():
    stages = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["stages"]
    assert {stage.get("do", stage)["cmd"] for stage in stages.values()} == {"python stages/dvc_stage.py"}


def test_every_word_in_a_rule_is_quoted():
    """Fields of `shell:` end in `:q`; the paths of our own scripts are quoted by `start_of_commands`."""
    for rule in sorted((REPOSITORY / "stages").rglob("*.smk")):
        for command in re.findall(r"shell:\n((?: +[\"f].*\n)+)", rule.read_text()):
            fields = re.findall(r"\{([^{}]*)\}", command)
            assert fields
            assert all(field.endswith(":q") or field in ("STAGES", "threads") for field in fields), (rule.name, fields)
