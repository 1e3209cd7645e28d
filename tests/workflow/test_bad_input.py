"""Every mistake gets one line that names the file or key, the value and the remedy, and an exit code."""

import copy
import os
import re
import shutil

import pytest
import yaml

from privsvm.errors import PrivSVMError
from privsvm.pipeline.params import check_params

from .conftest import REPOSITORY, SMALL

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        ("datasets.wien", {}, ["wien", "did you mean 'wine'"]),
        ("methods.pmsvm_wp.implementation", "pmsmv_wp", ["pmsmv_wp", "did you mean 'pmsvm_wp'"]),
        ("methods.pmsvm_wp.epsilom", 1, ["methods.pmsvm_wp.epsilom", "not a known key"]),
        ("methods.pmsvm_wp.data_nrom", 1, ["data_nrom", "did you mean 'data_norm'"]),
        ("methods.pmsvm_wp.C", -1, ["methods.pmsvm_wp.C", "-1", "must be a positive finite number"]),
        ("methods.pmsvm_wp.per_dataset", {"wien": {"C": 1}}, ["wien", "did you mean 'wine'"]),
        (
            "methods.pmsvm_wp.per_dataset",
            {"wine": {"C": 0}},
            ["per_dataset.wine.C", "0", "must be a positive finite number"],
        ),
        ("methods.new", {}, ["methods.new", "'implementation' is missing"]),
        ("privacy.epsilons", [0.5, 0], ["privacy.epsilons.1", "0", "above 0"]),
        ("privacy.epsilons", [-1], ["privacy.epsilons.0", "-1", "above 0"]),
        ("privacy.epsilons", [], ["privacy.epsilons", "[]"]),
        ("privacy.delta", 1, ["privacy.delta", "1", "between 0 and 1"]),
        ("privacy.delta", 0, ["privacy.delta", "0", "between 0 and 1"]),
        ("privacy.dleta", 1e-5, ["privacy.dleta", "did you mean 'delta'"]),
        ("privcay", {}, ["privcay", "did you mean 'privacy'"]),
        ("protocol.kind", "holduot", ["protocol.kind", "holduot", "did you mean 'holdout'"]),
        ("protocol.test_size", 1.5, ["protocol.test_size", "1.5", "between 0 and 1"]),
        ("datasets.wine.scaling", "bound", ["bound", "did you mean 'bounds'"]),
        ("datasets.wine.scalling", "bounds", ["scalling", "did you mean 'scaling'"]),
        ("mlflow.tracking_uri", "mlruns", ["mlflow.tracking_uri", "mlruns", "sqlite:///"]),
    ],
)
def test_mistakes_in_params(monkeypatch, tmp_path, key, value, parts):
    """Checked as Snakemake does it, without paying for its start every time."""
    monkeypatch.chdir(tmp_path)
    params = yaml.safe_load((REPOSITORY / "params.yaml").read_text()) | copy.deepcopy(SMALL)
    *path, last = key.split(".")
    place = params
    for name in path:
        place = place[name]
    place[last] = value
    with pytest.raises(PrivSVMError) as caught:
        check_params(yaml.safe_load(yaml.safe_dump(params)))
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith("params.yaml: ")
    for part in parts:
        assert part in message


def test_snakemake_shows_the_line_and_fails(finished):
    finished.change("privacy.delta", 2)
    output = finished.snakemake(check=False)
    assert finished.code != 0
    (line,) = [line for line in output.splitlines() if not line.startswith("Using workflow specific profile")]
    assert line.startswith("error: params.yaml: privacy.delta: 2")


def own_data(workspace, rows, **settings):
    """Put a CSV of one's own beside wine; returns what Snakemake printed."""
    (workspace.folder / "data/own/own.csv").write_text("\n".join(rows) + "\n")
    params = workspace.params()
    params["datasets"] = {"own": {"path": "own.csv", "label": "label", "classes": ["a", "b"], **settings}}
    workspace.write_params(params)
    output = workspace.snakemake(check=False)
    return "\n".join(line for line in output.splitlines() if "error:" in line), output


GOOD = ["x,y,label", *(f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(40))]


def test_own_data_works(own_data_once):
    assert "patients" in (own_data_once.folder / "reports/curves.csv").read_text()
    assert "error:" not in (own_data_once.folder.parent / "printed").read_text()


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([row.rsplit(",", 1)[0] for row in GOOD], ["label"]),
        ([GOOD[0], "nan,1,a", *GOOD[1:]], ["x", "missing"]),
        ([GOOD[0], *(row.replace(",b", ",a") for row in GOOD[1:])], ["class"]),
        (["<!DOCTYPE html>", "<html><body>Not found</body></html>"], ["HTML"]),
        ([GOOD[0]], ["own.csv"]),
    ],
    ids=["no label column", "NaN", "one class", "HTML page", "no rows"],
)
def test_bad_own_data(finished, rows, parts):
    errors, output = own_data(finished, rows)
    assert finished.code != 0
    assert errors, output[-3000:]
    for part in parts:
        assert re.search(part, errors, re.IGNORECASE), errors
    assert "Traceback" not in output
    # The message stands at the end as well, below Snakemake's own.
    assert any(line.startswith("error: ") for line in output.splitlines()[-8:])


def test_no_network_and_no_mirror(finished):
    params = finished.params()
    params["datasets"] = {"heart_scale": {}}
    finished.write_params(params)
    # A proxy that nobody listens at: no request can leave the machine.
    proxy = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    output = finished.snakemake(check=False, **proxy, no_proxy="", NO_PROXY="")
    errors = [line for line in output.splitlines() if "error:" in line]
    assert finished.code != 0
    assert any("heart_scale" in line and "PRIVSVM_MIRROR" in line for line in errors), output[-3000:]
    assert not list((finished.folder / "data/raw").glob("heart_scale/*"))


@pytest.mark.parametrize("stage", ["train", "report"])
def test_disk_full(finished, stage):
    """A file-size limit makes the kernel refuse the write, as a full disk does."""
    arguments = {
        "train": "train.py --method pmsvm_wp --prepared data/prepared/wine.npz --condensed data/condensed/none/wine.npz"
        " --condensed-record data/condensed/none/wine.json --models out/m.npz --record out/m.json --timings out/t.json",
        "report": "report.py --results data/results/svm/wine.json --output-html out/i.html"
        " --output-metrics out/m.json --output-curves out/c.csv",
    }[stage]
    job = (
        '{"condense":"none","experiment":"e","implementation":"pmsvm_wp","parameters":{"C":0.1},"privacy":{"delta":1e-5,'
        '"epsilons":[1.0],"neighbours":"replace_one","repeats":50},"seed":1}'
    )
    parameters = job if stage == "train" else "{}"
    script = f"ulimit -f 1; trap '' XFSZ; exec python stages/{arguments} --parameters '{parameters}'"
    # Python's own bytecode would be cut short as well.
    unwritten = {"NUMBA_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
    output = finished.call("bash", "-c", script, check=False, **unwritten)
    assert finished.code == 1, output
    assert len(output.strip().splitlines()) == 1, output
    assert "error: " in output
    # What is there is whole, and what is not whole is not there.
    assert not list((finished.folder / "out").glob(".*.part*"))
    assert not (finished.folder / "out" / ("m.npz" if stage == "train" else "i.html")).exists()


def test_unwritable_folder(finished):
    before = finished.hashes("reports")
    finished.change("report.reference_epsilon", 4.0)
    command = ["snakemake", "--cores", "2"]
    if os.geteuid() == 0:
        # Root may write everywhere unless it gives that power up.
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
