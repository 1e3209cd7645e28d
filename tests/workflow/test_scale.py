"""A benchmark of thousands of jobs: what one job costs does not grow with their number."""

import argparse
import itertools
import os
import re
from types import SimpleNamespace

import pytest
from snakemake import io
from snakemake.exceptions import WildcardError
from snakemake.pathvars import Pathvars

from privsvm.pipeline import dry_run as dry_run_module
from privsvm.pipeline.workflow import argument_file

from . import programs
from .conftest import OWN_ROWS, SMALL, new_workspace

pytestmark = pytest.mark.workflow

# Linux takes no longer string in a command.
LONGEST_ARGUMENT = 128 * 1024


def dry_run(workspace) -> tuple[set[str], list[tuple[str, list[str]]]]:
    """Names of all rules; and of every job of a run from nothing, its rule and input files."""
    printed = workspace.snakemake("--dry-run", "--printshellcmds", cores=1)
    assert max(len(line) for line in printed.splitlines() if "exec " in line) < LONGEST_ARGUMENT
    jobs = [
        (rule, [name for line in re.findall(r"^    input: (.*)$", text, re.MULTILINE) for name in line.split(", ")])
        for rule, text in re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", printed, re.MULTILINE)
    ]
    listed = workspace.snakemake("--list-rules", cores=1)
    return set(re.findall(r"^(\w+)$", listed, re.MULTILINE)), jobs


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return dry_run(new_workspace(tmp_path_factory.mktemp("scale") / "small"))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Six hundred methods on one dataset, and three of them on fifty more."""
    workspace = new_workspace(tmp_path_factory.mktemp("scale") / "large")
    params = workspace.params()
    rows = "\n".join(OWN_ROWS)
    for number in range(50):
        (workspace.folder / f"data/own/own{number}.csv").write_text(f"{rows}\n{number},1,a\n")
        own = {"path": f"own{number}.csv", "label": "label", "classes": ["a", "b"], "bounds": [0, 100]}
        params["datasets"][f"own{number}"] = own
    kinds = (SMALL["methods"]["svm"], SMALL["methods"]["majority"])
    for number in range(600):
        params["methods"][f"method{number}"] = {**kinds[number % 2], "datasets": ["wine"]}
    workspace.write_params(params)
    return dry_run(workspace)


def test_no_more_rules(small, large):
    assert "train" in small[0]
    assert large[0] == small[0]


def test_no_more_inputs_of_a_job(small, large):
    counts = [
        {rule: max(len(inputs) for name, inputs in jobs if name == rule) for rule, _ in jobs}
        for _, jobs in (small, large)
    ]
    alike = {rule for rule in counts[0] if rule not in ("report", "track", "all", "record")}
    assert {"download", "prepare", "condense", "train", "evaluate"} <= alike
    assert {rule: counts[1][rule] for rule in alike} == {rule: counts[0][rule] for rule in alike}
    assert max(counts[1][rule] for rule in alike) <= 4
    # Sources and files of one's own are compared by digests; these are the jobs' own files.
    assert all(name.startswith(("data/", "reports/", "logs/")) or ".cache/" in name
               for _, jobs in (small, large) for _, inputs in jobs for name in inputs)  # fmt: skip


def test_every_job_is_there(large):
    rules = [rule for rule, _ in large[1]]
    assert rules.count("train") == rules.count("evaluate") == 3 * 52 + 600
    assert rules.count("prepare") == 52


def said_of_jobs(workspace, *options: str) -> list[tuple[str, tuple[str, ...]]]:
    """What a dry run says of every job but its number, and commands; the order differs from run to run."""
    printed = workspace.snakemake("--dry-run", *options, cores=1)
    found = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", printed, re.MULTILINE)
    commands = [("", (line.strip(),)) for line in printed.splitlines() if "exec " in line]
    return sorted(
        (rule, tuple(", ".join(sorted(line.split(", "))) for line in text.splitlines() if "jobid:" not in line))
        for rule, text in found
    ) + sorted(commands)


def test_a_dry_run_says_what_snakemake_itself_says(finished):
    finished.change("methods.pmsvm_wp.C", 0.02)
    (finished.folder / "data/results/svm/wine.json").unlink()
    options = ((), ("--printshellcmds",))
    quick = [said_of_jobs(finished, *some) for some in options]
    assert {"train", "evaluate", "report"} <= {rule for rule, _ in quick[0]}
    assert quick[0] != quick[1]
    path = finished.folder / "lib/privsvm/pipeline/dry_run.py"
    text = path.read_text()
    assert text.count(f'VERSION = "{dry_run_module.VERSION}"') == 1
    path.write_text(text.replace(f'VERSION = "{dry_run_module.VERSION}"', 'VERSION = "none"'))
    assert [said_of_jobs(finished, *some) for some in options] == quick


def test_plain_names_are_worth_no_warning(monkeypatch):
    """A dry run does not have Snakemake look at them."""
    parts = ["a", "data/wine.npz", ".cache", ".", "..", "./", "/", "//", " ", "\n", "{a}", "{a-b}", "-", ""]
    names = ["".join(some) for number in (1, 2, 3) for some in itertools.product(parts, repeat=number)]
    warned = []
    monkeypatch.setattr(io.logger, "warning", warned.append)
    plain = [name for name in names if dry_run_module._PLAIN_NAME.fullmatch(name)]
    assert {"a/a", ".cache/a", "data/wine.npz"} <= set(plain)
    for name in plain:
        io.check(name)
    assert not warned
    for name in names:
        io.check(name)
    assert len(warned) > len(names) / 2


def test_wildcards_get_their_values(monkeypatch):
    """As Snakemake puts them into names, or raises, with the flags of the pattern."""
    rule = SimpleNamespace(pathvars=Pathvars.with_defaults(), workflow=None)
    wildcards = {"method": "a<logs>", "dataset": "wine"}
    plain = io._IOFile.apply_wildcards
    monkeypatch.setattr(io._IOFile, "apply_wildcards", plain)
    patterns = [
        *("data/{dataset}.npz", "data/x", "{dataset,[a-z]+}.json", "{method}/{dataset}", "<results>/{dataset}"),
        *("{dataset}/", "{{dataset}}", "{missing}", "", io.temp("{dataset}.part"), io.directory("{dataset}")),
    ]
    files = [io.IOFile(pattern, rule) for pattern in patterns]

    def told(file):
        try:
            found = file.apply_wildcards(wildcards)
        except WildcardError as error:
            return str(error)
        return str(found), str(found.file), type(found.file), found.flags, found.rule, found.is_callable(), hash(found)

    expected = [told(file) for file in files]
    dry_run_module._wildcards()
    assert io._IOFile.apply_wildcards is not plain
    assert [told(file) for file in files] == expected
    # Flags are each file's own.
    assert files[-1].apply_wildcards(wildcards).flags is not files[-1].flags


def test_long_lists_are_read_from_a_file(tmp_path, monkeypatch):

    monkeypatch.chdir(tmp_path)
    names = [f"data/results/a long name {number}/wine.json" for number in range(5000)]
    place = argument_file("report", "--results", *names)
    assert argument_file("report", "--results", *names) == place
    assert argument_file("report", "--results", *names[1:]) != place
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--results", nargs="+")
    assert parser.parse_args([place]).results == names
    assert len(place) < 60


TIMERS = """
import threading
from privsvm.pipeline.workflow import stop_needless_looks_for_jobs


class Counted(threading.Timer):
    number = 0

    def start(self):
        Counted.number += 1
        super().start()


threading.Timer = Counted


onstart:
    stop_needless_looks_for_jobs(workflow)


onsuccess:
    print("timers:", Counted.number)


rule all:
    input: "a", "b"


rule one:
    output: "{name}"
    shell: "touch {output}"
"""


def test_snakemake_waits_for_jobs_without_timers(tmp_path):
    (tmp_path / "Snakefile").write_text(TIMERS)
    code, output = programs.call(["snakemake", "--cores", "1"], tmp_path, os.environ)
    assert code == 0
    assert "timers: 0" in output


COMMANDS = """
import atexit
from privsvm.pipeline.dry_run import hasten

hasten(workflow)


class Word:
    number = 0

    def __str__(self):
        Word.number += 1
        return "word"


atexit.register(lambda: print("formatted:", Word.number))


rule one:
    output: "one"
    params: word=Word()
    shell: "touch {output} # {params.word}"
"""


def test_a_dry_run_writes_each_command_once(tmp_path):
    """Snakemake itself writes it three times; what it shows is the same."""
    texts, counts = [], []
    for commands in (COMMANDS, COMMANDS.replace("hasten(workflow)", "")):
        (tmp_path / "Snakefile").write_text(commands)
        code, output = programs.call(["snakemake", "--dry-run", "--printshellcmds"], tmp_path, os.environ)
        assert code == 0
        assert "touch one # word" in output
        counts.append(int(re.search(r"formatted: (\d+)", output)[1]))
        texts.append(output[output.index("rule one") :].partition("formatted")[0])
    assert texts[0] == texts[1]
    assert counts[0] == 1 < counts[1]
