"""params.yaml as a typed model: its content, the jobs that follow from it, messages for mistakes."""

import copy
import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests import refusals
from tests.fuzz.strategies import paths, value_at
from tests.scripts import REPOSITORY

from privsvm.errors import PrivSVMError, printable
from privsvm_bench.jobs.params import Params, check_params, read_params
from privsvm_bench.workflow import graph
from privsvm_bench.workflow.private_outputs import private_folder
from privsvm_bench.workflow.session import set_addresses

HERE = Path(__file__).resolve().parent
TEXT = (REPOSITORY / "params.yaml").read_text()


def default():
    return yaml.safe_load(TEXT)


def refusal(values):
    message = refusals.refusal(check_params, values)
    assert message.startswith("params.yaml: ")
    return message


def with_value(key, value):
    """Return the default with another value of one key."""
    params = default()
    section, _, last = key.partition(".")
    if last:
        params[section][last] = value
    else:
        params[section] = value
    return params


def test_the_default_benchmark():
    params = read_params(REPOSITORY / "params.yaml")
    assert params.privacy.epsilons == (0.1, 0.25, 0.5, 1, 2, 4, 8, 16)
    assert params.privacy.delta == 1e-5
    assert params.dataset_settings("wine") == {"scaling": "bounds"}
    assert params.train_jobs()[:5] == [
        *(("svm", name) for name in ("breast_cancer", "digits", "digit_eight", "wine")),
        ("crammer_singer", "breast_cancer"),
    ]
    assert len(params.train_jobs()) == 60
    assert "pmsvm_wp" in params.methods_to_audit()
    assert "svm" not in params.methods_to_audit()
    # The one of CI is valid and tiny.
    assert len(read_params(REPOSITORY / ".test/params.yaml").train_jobs()) <= 4
    # It is frozen.
    for target, name in ((params, "seed"), (params.privacy, "delta"), (params.methods["svm"], "implementation")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(target, name, 1)


def test_every_key_is_documented():
    page = (REPOSITORY / "docs/parameters.md").read_text()
    for name, field in Params.model_fields.items():
        for key, inner in (getattr(field.annotation, "model_fields", {}) or {name: field}).items():
            assert (inner.alias or key) in page, f"{name}.{key}"


def test_changes_are_merged_before_validation():
    """As `snakemake --config` gives them: Snakemake takes 1e-6 for text."""
    changes = {"seed": 7, "privacy": {"delta": "1e-06", "epsilons": ["1e-2", 1]}, "methods": {"svm": {"C": 2.0}}}
    params = read_params(REPOSITORY / "params.yaml", changes)
    assert (params.seed, params.privacy.delta, params.privacy.repeats) == (7, 1e-6, 10)
    assert params.privacy.epsilons == (0.01, 1)
    assert params.methods["svm"].parameters == {"kernel": "linear", "C": 2.0}
    with pytest.raises(PrivSVMError, match=r"privacy\.delta: 2 is not valid.*\(line \d+, column 3\)$"):
        read_params(REPOSITORY / "params.yaml", {"privacy": {"delta": 2}})


def test_parameters_of_one_dataset():
    params = default()
    params["methods"]["pmsvm_wp"]["per_dataset"] = {"wine": {"C": 0.5}}
    params["methods"]["majority"]["datasets"] = ["digits"]
    checked = check_params(params)
    assert checked.method_parameters("pmsvm_wp", "wine") == {"C": 0.5, "data_norm": 1.0}
    assert checked.method_parameters("pmsvm_wp", "digits") == {"C": 0.05, "data_norm": 1.0}
    assert [job for job in checked.train_jobs() if job[0] == "majority"] == [("majority", "digits")]


def test_own_tables_meet_every_method_or_a_reason():
    params = default()
    params["datasets"]["sensors"] = {"url": "https://example.org/s.csv", "label": "y"}
    checked = check_params(params)
    jobs = checked.train_jobs()
    missing = {method for method in checked.methods if (method, "sensors") not in jobs}
    assert missing == {"ppsvm_linear", "ppsvm_gaussian"}
    assert "sensors: ppsvm_linear, ppsvm_gaussian (datasets in params.yaml: breast_cancer)" in (checked.left_out())
    assert "digits: dpsvmdvp (its models hold support vectors for every pair of digits)" in checked.left_out()
    # Each pair runs or has its line.
    said = sum(line.split(" (")[0].count(",") + 1 for line in checked.left_out())
    assert len(jobs) + said == len(checked.methods) * len(checked.datasets)
    # Exceptions stay where a dataset of the catalogue is taken out.
    del params["datasets"]["digit_eight"]
    assert all(dataset != "digit_eight" for _, dataset in check_params(params).train_jobs())
    # The same where one's tables take the place of all others.
    params["datasets"] = {"sensors": params["datasets"]["sensors"]}
    alone = check_params(params)
    assert alone.left_out() == [line for line in checked.left_out() if line.startswith("sensors:")]
    assert {dataset for _, dataset in alone.train_jobs()} == {"sensors"}


@pytest.mark.parametrize(
    "implementation",
    ["svm", "crammer_singer", "majority", "one_norm_svm", "rsvm", "ci_svm", "fcm_svm", "ppsvm", "sklearn.svm:SVC"],
)
def test_methods_without_epsilon_depend_on_no_privacy(implementation):
    entries = {"plain": {"implementation": implementation}, "private": {"implementation": "pmsvm_wp"}}
    before = check_params({**default(), "methods": entries})
    changes = {"epsilons": [3.0], "delta": 1e-6, "neighbours": "add_remove", "repeats": 3}
    for key, value in changes.items():
        privacy = {**default()["privacy"], key: value}
        after = check_params({**default(), "methods": entries, "privacy": privacy})
        same = {
            name: graph.train_parameters(before, name, "wine") == graph.train_parameters(after, name, "wine")
            for name in entries
        }
        assert same == {"plain": True, "private": False}, key


def test_a_foreign_class_reads_privacy_if_it_states_epsilon():
    entry = {"implementation": "sklearn.svm:SVC", "degree": 2, "per_dataset": {"wine": {"states_epsilon": "C"}}}
    params = check_params({**default(), "methods": {"other": entry}})
    assert params.method_parameters("other", "wine") == {"degree": 2, "states_epsilon": "C"}
    assert params.reads_privacy("other", "wine")
    assert not params.reads_privacy("other", "digits")
    assert "epsilons" in json.loads(graph.train_parameters(params, "other", "wine"))


def test_own_files_lie_in_their_folder(tmp_path, monkeypatch):
    """The printed remedy for a file outside the folder works."""
    settings = {"label": "y", "classes": [0, 1], "bounds": [0, 1]}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/own").mkdir(parents=True)
    for name in ("here.csv", "two words.csv"):
        (tmp_path / name).write_text("x,y\n0,1\n")
        assert "no such file" in refusal(with_value("datasets.mine", {**settings, "path": name}))
        for path in (f"../{tmp_path.name}/{name}", str(tmp_path / name)):
            message = refusal(with_value("datasets.mine", {**settings, "path": path}))
            assert message.startswith(
                f"params.yaml: datasets.mine.path: {path!r} is outside of data/own; move it there"
            )
        remedy = re.search(r"\((ln -s .*/)\), and write `path: (.*)`", message)
        subprocess.run(remedy[1], shell=True, check=True)
        params = check_params(with_value("datasets.mine", {**settings, "path": remedy[2]}))
        assert params.own_file("mine") == params.dataset_settings("mine")["path"] == f"data/own/{name}"
        assert Path(params.own_file("mine")).read_text() == "x,y\n0,1\n"
    assert params.own_file("wine") is None
    assert not params.is_private("wine")
    assert params.is_private("mine")
    shared = check_params(with_value("datasets.mine", {**settings, "path": "here.csv", "share": True}))
    assert not shared.is_private("mine")
    # A seeded model of private rows would tell all.
    for given in (params, shared):
        assert given.models_to_register() == []
        asked = given.model_copy(update={"mlflow": given.mlflow.model_copy(update={"registers": True})})
        registered = [dataset for _, dataset in asked.models_to_register()]
        assert registered == [name for name in asked.datasets if not asked.is_private(name)]
        assert {method for method, _ in asked.models_to_register()} == {"recommended"}


def test_ppsvm_does_not_train_on_condensed_rows():
    params = {**default(), "condense": "fcm", "methods": {"shared": {"implementation": "ppsvm"}}}
    assert "condense: 'fcm' cannot go with methods.shared" in refusal(params)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        *yaml.safe_load((HERE / "mistakes_in_params.yaml").read_text()),
        ("methods.a\n", {"implementation": "svm"}, "becomes a folder"),
        ("datasets.mine", {"path": "x.csv", "bounds": [0, 10**399]}, "not a finite number"),
        ("privacy.epsilons", [1 + step / 1e4 for step in range(1001)], "at most 1000"),
        pytest.param("privacy.delta", 10**399, "privacy.delta", id="a delta of 400 digits"),
        pytest.param("audit.draws", 1e20, "of at least 400 and below 2^63", id="a number of more than 64 bits"),
        ("datasets.mine", {"path": "x" * 300}, "no such file"),
    ],
)
def test_what_is_wrong_is_one_line(key, value, words):
    message = refusal(with_value(key, value))
    assert message.startswith(f"params.yaml: {key.split('.')[0]}")
    assert words in message


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("delta: 1.0e-5", "delta: 2", 3),
        ("scaling: bounds\n  digits", "scalign: bounds\n  digits", 5),
        ("  svm:\n", "  s;vm:\n", 3),
        ("epsilons: [0.1, 0.25", "epsilons: [0.1, 0", 19),
        ("implementation: one_norm_svm", "implementation: two_norm_svm", 5),
    ],
)
def test_mistakes_have_their_place(tmp_path, old, new, column):
    assert TEXT.count(old) == 1
    (tmp_path / "mine.yaml").write_text(TEXT.replace(old, new))
    with pytest.raises(PrivSVMError) as caught:
        read_params(tmp_path / "mine.yaml")
    line = TEXT[: TEXT.index(old)].count("\n") + 1
    assert str(caught.value).startswith(f"{tmp_path / 'mine.yaml'}: ")
    assert str(caught.value).endswith(f"(line {line}, column {column})")


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


HOSTILE = [
    None, True, math.nan, 1e300, 1e20, 2**63, -1, 0, 0.5, "", "a\0b", "\ud800", "a\nb", "\x1b[2J", "../x", "{}", "%",
    "http://[x", "sqlite:///a\0b", "x" * 5000, [], [None], [True, False], [math.nan, "yes"], [[[]]], {}, {"a": None},
]  # fmt: skip


def test_hostile_values_at_every_key_are_one_line(tmp_path, monkeypatch):
    """Accepted content becomes parameters of jobs; anything else is one line that begins with the file."""
    params = default() | yaml.safe_load((HERE / "own_data.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/own").mkdir(parents=True)
    for name in ("a.csv", "b.npz"):
        (tmp_path / "data/own" / name).write_text("x,y\n0,1\n")
    check_params(params)
    accepted, refused = 0, []
    for (*path, last), value in itertools.product(paths(params), HOSTILE):
        changed = copy.deepcopy(params)
        value_at(changed, path)[last] = value
        try:
            checked = check_params(changed)
        except PrivSVMError as error:
            refused.append(printable(str(error)))
            continue
        accepted += 1
        for dataset in checked.datasets:
            graph.download_parameters(checked, dataset, private_folder(checked, dataset))
            graph.prepare_parameters(checked, dataset)
            for method in checked.methods:
                graph.train_parameters(checked, method, dataset)
        for method in checked.methods_to_audit():
            graph.audit_parameters(checked, method)
        monkeypatch.delenv("PRIVSVM_MIRROR", raising=False)
        set_addresses(checked)
    assert accepted > 100
    assert [line for line in refused if not line.startswith("params.yaml: ") or len(line.splitlines()) != 1] == []


def test_a_database_elsewhere_needs_the_environment(tmp_path, monkeypatch):
    """The printed remedy works, and no further than its folder."""
    monkeypatch.chdir(tmp_path)
    message = refusal(with_value("mlflow.tracking_uri", f"sqlite:///{tmp_path.parent}/two words/x.db"))
    (name, folder) = re.search(r"\(export (\w+)='(.*)'\)", message).groups()
    monkeypatch.setenv(name, folder)
    for file in (f"{tmp_path.parent}/two words/x.db", f"{tmp_path}/x.db", "logs/x.db"):
        assert check_params(with_value("mlflow.tracking_uri", f"sqlite:///{file}")).mlflow.file == Path(file)
    for file in ("x.db", "two words/../x.db", "two words2/x.db"):
        refusal(with_value("mlflow.tracking_uri", f"sqlite:///{tmp_path.parent}/{file}"))
    assert check_params(with_value("mlflow.tracking_uri", "http://127.0.0.1:5000")).mlflow.file is None
