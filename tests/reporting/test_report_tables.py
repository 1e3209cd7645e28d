"""metrics.json and curves.csv: contents, determinism, and refusing what contradicts itself."""

import csv
import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import GRID, METHODS, make_condensed_attack, make_guarantee, make_result, results_of, whole
from tests.scripts import REPOSITORY, load_script

from privsvm.errors import PrivSVMError
from privsvm_bench.reporting.curve_tables import curve_columns, curve_rows, curves_csv, metrics_record, nearest_epsilon
from privsvm_bench.reporting.results import read_results


@pytest.fixture
def run_stage() -> Callable[..., None]:
    stage = load_script("stages/report.py")

    def run(files: dict[str, list[str]], folder: Path, **parameters: Any) -> None:
        # Beside the folder of timings of `write_experiment`, or without any.
        timings = folder.with_name("timings" if files["timings"] else "none")
        stage.main(
            [
                *("--results", *files["results"], "--prepared", *files["prepared"], "--timings", str(timings)),
                *("--output-html", str(folder / "index.html"), "--output-metrics", str(folder / "metrics.json")),
                *("--output-curves", str(folder / "curves.csv"), "--parameters", json.dumps(parameters)),
                *("--output-private", *files.get("private", [])),
            ]
        )

    return run


def test_nearest_epsilon_is_by_ratio_and_infinite_only_if_alone() -> None:
    for reference, expected in ((1.0, 1.0), (0.01, 0.1), (100.0, 8.0), (3.0, 4.0), (math.sqrt(8), 2.0)):
        assert GRID[nearest_epsilon(GRID, reference)] == expected
    assert nearest_epsilon([math.inf], 1.0) == 0
    assert nearest_epsilon([math.inf, 8.0], 1.0) == 1


def test_metrics_hold_each_method_at_the_reference_epsilon() -> None:
    table = metrics_record(whole(), 2.2)["wine"]
    assert set(table) == set(METHODS)
    assert table["pmsvm_wp"]["status"] == "proved"
    assert table["pmsvm_wp"]["epsilon"] == table["pmsvm_wp"]["epsilon_proved"] == 2.0
    assert table["dpwss"]["status"] == "refuted"
    assert not {"epsilon_proved", "epsilon_with_system_noise"} & table["dpwss"].keys()
    assert table["pmsvm_gp"]["status"] == "seeded"
    assert table["pmsvm_gp"]["epsilon_with_system_noise"] == table["pmsvm_wp"]["epsilon_with_system_noise"] == 2.0
    assert "epsilon_proved" not in table["pmsvm_gp"]
    assert "epsilon" not in table["svm"]
    mean = make_result("wine", "pmsvm_wp", "proved")["summary"]["accuracy"]["mean"][GRID.index(2.0)]
    assert table["pmsvm_wp"]["accuracy"] == round(mean, 6)
    words = ("status", "randomness")
    for entry in table.values():
        assert all(isinstance(value, (int, float)) for key, value in entry.items() if key not in words)


def test_undefined_metrics_are_left_out() -> None:
    record = make_result("wine", "svm", "none")
    record["summary"]["auc"] = {key: [None] for key in ("mean", "sd", "low", "high")}
    assert "auc" not in metrics_record(results_of(record))["wine"]["svm"]
    (row,) = curve_rows(results_of(record), 2.0)
    assert row["auc"] is None
    # Without a private method, references still have a finite epsilon.
    assert row["epsilon"] == 2.0


def test_curves_have_one_row_per_point_and_flat_references() -> None:
    rows = list(csv.DictReader(io.StringIO(curves_csv(curve_rows(whole())))))
    assert len(rows) == len(METHODS) * len(GRID)
    assert list(rows[0]) == curve_columns()
    reference = [row for row in rows if row["method"] == "svm"]
    assert [float(row["epsilon"]) for row in reference] == list(GRID)
    assert len({row["accuracy"] for row in reference}) == 1
    assert {row["status"] for row in reference} == {"none"}
    for name in ("epsilon_proved", "epsilon_with_system_noise"):
        assert {row[name] for row in reference} == {""}
        assert {row[name] for row in rows if row["status"] in ("claimed", "refuted")} == {"inf"}
    assert all(row["epsilon_proved"] == row["epsilon"] for row in rows if row["status"] == "proved")
    assert {row["epsilon_proved"] for row in rows if row["status"] == "seeded"} == {"inf"}
    backed = [row for row in rows if row["status"] in ("proved", "seeded")]
    assert [row["epsilon_with_system_noise"] for row in backed] == [row["epsilon"] for row in backed]
    assert all(math.isclose(10 ** float(row["log10_epsilon"]), float(row["epsilon"]), rel_tol=1e-5) for row in rows)


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_a_small_delta_is_not_rounded_and_may_be_zero(delta: float) -> None:
    record = make_result("wine", "pmsvm_wp", "proved")
    for guarantee in record["guarantees"]:
        guarantee["delta"] = guarantee["event"]["delta"] = delta
    assert {row["delta"] for row in curve_rows(results_of(record))} == {delta}


def test_one_claimed_guarantee_makes_the_curve_claimed() -> None:
    record = make_result("wine", "pmsvm_wp", "proved")
    record["guarantees"][3] = make_guarantee("pmsvm_wp", "claimed", GRID[3])
    (result,) = results_of(record)
    assert result.status == "claimed"
    assert {row["epsilon_proved"] for row in curve_rows([result])} == {math.inf}


def test_two_results_for_one_curve_are_refused(write_experiment: Any) -> None:
    files = write_experiment()["results"]
    with pytest.raises(PrivSVMError, match="second result of 'svm' on 'breast_cancer'"):
        read_results([*files, files[0]])


def test_outputs_do_not_depend_on_order_timings_or_date(write_experiment: Any, run_stage: Any, tmp_path: Path) -> None:
    files = write_experiment()
    run_stage(files, tmp_path / "one", experiment="default")
    backwards = {"results": files["results"][::-1], "timings": [], "prepared": []}
    run_stage(backwards, tmp_path / "two", experiment="default")
    for name in ("metrics.json", "curves.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert not list((tmp_path / "one").glob(".*part*"))


def test_numbers_of_private_data_are_written_apart(
    write_experiment: Any, run_stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC caches and pushes the others."""
    monkeypatch.chdir(tmp_path)
    files = write_experiment(("wine", "clinic"), {"svm": "none", "majority": "none"})
    for number, name in enumerate(files["results"]):
        if Path(name).stem == "clinic":
            path = Path("data/private/results", *Path(name).parts[-2:])
            path.parent.mkdir(parents=True, exist_ok=True)
            files["results"][number] = str(Path(name).rename(path))
    files["private"] = ["own/metrics.json", "own/curves.csv"]
    run_stage(files, tmp_path / "out", experiment="default")
    for folder, dataset in (("out", "wine"), ("own", "clinic")):
        assert json.loads(Path(folder, "metrics.json").read_text()).keys() == {dataset}
        with Path(folder, "curves.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {row["dataset"] for row in rows} == {dataset}
        assert {row["method"] for row in rows} == {"svm", "majority"}
    assert "clinic" in Path("out/index.html").read_text()


def test_the_stage_shows_what_condensing_gave_away_and_took(
    write_experiment: Any, run_stage: Any, tmp_path: Path
) -> None:
    attacks = [make_condensed_attack("wine", None)]
    change = {"condense": "ci", "attacks": attacks}
    files = write_experiment(("wine",), {"svm": "none", "majority": "none"}, lambda record: record | change)
    (tmp_path / "timings/_condense").mkdir()
    seconds = {"dataset": "wine", "condense": "ci", "condense_seconds": [0.25, 0.75]}
    (tmp_path / "timings/_condense/wine.json").write_text(json.dumps(seconds))
    run_stage(files, tmp_path / "out", experiment="default")
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("known exactly") == 1
    assert "Condense (s)" in page
    assert "trained on condensed rows" in page


@pytest.mark.parametrize("reference", [0, -1, "x", "inf", None])
def test_a_bad_reference_epsilon_is_one_line(
    write_experiment: Any, run_stage: Any, tmp_path: Path, reference: Any
) -> None:
    with pytest.raises(PrivSVMError, match="reference_epsilon"):
        run_stage(write_experiment(("wine",)), tmp_path / "out", reference_epsilon=reference)
    assert not (tmp_path / "out").exists()


def test_the_dvc_template_fills_with_every_anchor() -> None:
    vega = pytest.importorskip("dvc_render.vega", reason="DVC is not installed")
    folder = REPOSITORY / ".dvc" / "plots"
    rows = [{**row, "rev": revision} for revision in ("HEAD", "workspace") for row in curve_rows(whole())]
    renderer = vega.VegaRenderer(
        rows, "curves.csv", x="epsilon", y="accuracy", template="privacy_utility", template_dir=str(folder)
    )
    content = renderer.get_filled_template()
    assert "<DVC_METRIC_" not in json.dumps({key: value for key, value in content.items() if key != "data"})
    assert content["spec"]["encoding"]["x"]["scale"]["type"] == "log"
    assert content["facet"]["field"] == "dataset"


def test_dvc_names_a_curve_by_its_worst_status() -> None:
    vl_convert = pytest.importorskip("vl_convert")
    rows = [row | {"rev": "workspace"} for row in csv.DictReader(io.StringIO(curves_csv(curve_rows(whole()))))]
    # One refuted epsilon decides.
    for row in rows:
        if row["method"] == "dpwss" and row["epsilon"] != "1.0":
            row["status"] = "claimed"
    # An empty number is not 0.
    rows.append(rows[-1] | {"accuracy": ""})
    template = (REPOSITORY / ".dvc/plots/privacy_utility.json").read_text()
    template = template.replace('"<DVC_METRIC_DATA>"', json.dumps(rows))
    for name, value in {"X": "epsilon", "Y": "accuracy"}.items():
        template = template.replace(f"<DVC_METRIC_{name}>", value)
    template = re.sub('"<DVC_METRIC_PLOT_(WIDTH|HEIGHT)>"', "300", template)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", vl_convert.vegalite_to_svg(template, "5.21"))
    curves = [text for text in texts if ": " in text]
    assert curves[:3] == ["proved: objective_perturbation", "proved: pmsvm_wp", "seeded: pmsvm_gp"]
    assert curves[3:6] == ["claimed: dpsvmdvp", "refuted: dpwss", "refuted: pmsvm_wp_as_published"]
    assert {"0.1", "0.5", "1", "2", "4", "8"} <= set(texts)
    assert "0.0" not in texts
