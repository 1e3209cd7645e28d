"""Mistakes end a run with one line that names the file or key, the value and the remedy."""

import os
import re
import shutil

import pytest

from tests.scripts import REPOSITORY

from .conftest import OWN_ROWS

pytestmark = pytest.mark.workflow


def test_snakemake_shows_the_line_and_fails(finished):
    finished.change("privacy.delta", 2)
    output = finished.snakemake(check=False)
    assert finished.code != 0
    (line,) = [line for line in output.splitlines() if not line.startswith("Using workflow specific profile")]
    assert line.startswith("error: params.yaml: privacy.delta: 2")


BAD_FILES = {
    "one_class": ([OWN_ROWS[0], *(row.replace(",b", ",a") for row in OWN_ROWS[1:])], "class"),
    "web_page": (["<!DOCTYPE html>", "<html><body>Not found</body></html>"], "HTML"),
}


def test_bad_own_data(finished):
    """One line for each bad file; jobs of good ones go on."""
    good = finished.params()["datasets"]
    for name, (rows, _) in BAD_FILES.items():
        (finished.folder / f"data/own/{name}.csv").write_text("\n".join(rows) + "\n")
        good[name] = {"path": f"{name}.csv", "label": "label", "classes": ["a", "b"]}
    finished.change("datasets", good)
    output = finished.snakemake(check=False)
    assert finished.code != 0
    assert "Traceback" not in output
    # Our messages follow Snakemake's.
    errors = [line for line in output.splitlines()[-15:] if line.startswith("error: ")]
    for name, (_, message) in BAD_FILES.items():
        assert [line for line in errors if name in line and message.lower() in line.lower()], (name, errors)


def test_no_network_and_no_mirror(finished):
    params = finished.params()
    params["datasets"] = {"heart_scale": {}}
    finished.write_params(params)
    # Nothing listens at this proxy, so that no request leaves the machine.
    proxy = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    output = finished.snakemake(check=False, **proxy, no_proxy="", NO_PROXY="")
    errors = [line for line in output.splitlines() if "error:" in line]
    assert finished.code != 0
    assert any("heart_scale" in line and "PRIVSVM_MIRROR" in line for line in errors), output[-3000:]
    assert not list((finished.folder / "data/raw").glob("heart_scale/*"))


def test_a_folder_that_cannot_be_written_is_named(finished):
    before = finished.hashes("reports")
    finished.change("report.reference_epsilon", 4.0)
    command = ["snakemake", "--cores", "2"]
    if os.geteuid() == 0:
        # Root may write everywhere unless it drops these capabilities.
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", *command]
        shutil.chown(finished.folder / "reports", "nobody")
    (finished.folder / "reports").chmod(0o555)
    try:
        output = finished.call(*command, check=False)
    finally:
        (finished.folder / "reports").chmod(0o755)
    assert finished.code != 0
    (line,) = [line for line in output.splitlines() if "error:" in line]
    assert "reports" in line
    assert "writable" in line
    assert "Traceback" not in output
    assert finished.hashes("reports") == before


def test_no_home_that_can_be_written(finished):
    """/proc/1 takes no folder from anyone, root included."""
    assert "Traceback" not in finished.snakemake("-n", HOME="/proc/1/none", XDG_CACHE_HOME="")
    shown = finished.call("make", "--eval", "home: ; @echo $$HOME", "-s", "home", HOME="/proc/1/none")
    assert shown.strip() == str(finished.folder / ".cache/home")


# A shell that ran one of these would create the file `pwned`; a path would remove a folder.
NAMES = [
    "$(touch pwned)", "`touch pwned`", "a;touch pwned", "a|touch pwned", "a&touch pwned", "a\ntouch pwned",
    "'; touch pwned; '", '"; touch pwned; "', "-x", "a b", "a\n", "../../docs", "/docs", "..", ".",
]  # fmt: skip
ENTRIES = {"methods": {"implementation": "majority"}, "datasets": {"path": "patients.csv", "label": "label"}}


def test_names_are_refused_before_anything_runs(finished):
    params, before = finished.params(), finished.hashes("data", "docs", "lib", "stages")
    for command, (section, entry) in zip((["dvc", "repro"], ["snakemake", "-c1"]), ENTRIES.items(), strict=True):
        finished.write_params({**params, section: {**params[section], **dict.fromkeys(NAMES, entry)}})
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
    file = "my $(touch pwned); `touch pwned` & 'data'.csv"
    (finished.folder / "data/own" / file).write_text("\n".join(OWN_ROWS) + "\n")
    own = {"path": file, "label": "label", "classes": ["a", "b"], "bounds": [0, 7]}
    changes = {
        "data": {"mirror": "/nowhere/it's \"$(touch pwned)\" `touch pwned`; touch pwned | {wildcards.dataset}"},
        "datasets": {"own": own}, "methods": {"majority": {"implementation": "majority"}},
        "mlflow": {"tracking_uri": "sqlite:///$(touch pwned);`touch pwned`.db"},
    }  # fmt: skip
    finished.write_params(finished.params() | changes)
    # Every stage of DVC with all its rules; then the rule that DVC skips.
    finished.call("dvc", "repro")
    finished.snakemake()
    assert (finished.folder / "data/private/results/majority/own.json").is_file()
    assert not list(finished.folder.rglob("pwned"))


def test_every_field_in_a_rule_is_quoted():
    """Fields of `shell:` end in `:q`, except our quoted folder."""
    for rule in sorted((REPOSITORY / "stages").rglob("*.smk")):
        for command in re.findall(r"shell:\n((?: +[\"f].*\n)+)", rule.read_text()):
            fields = re.findall(r"\{([^{}]*)\}", command)
            assert fields
            assert all(field.endswith(":q") or field in ("STAGES", "threads") for field in fields), (rule.name, fields)
