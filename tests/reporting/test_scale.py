"""Twice as many results are twice the work, counted in steps of the interpreter, so that no clock decides."""

from pathlib import Path

import pytest
from synthetic_results import make_result, results_of
from tests.steps import steps

from privsvm.files import write_json
from privsvm_bench.records import Result, seal
from privsvm_bench.reporting import curve_rows, metrics_record, page_context
from privsvm_bench.tracking.runs import collect_runs

STATUSES = ("proved", "claimed", "none", "proved")


def synthetic(n_datasets: int, n_methods: int) -> list[Result]:
    return results_of(
        *(
            make_result(f"dataset_{dataset}", f"method_{method}", STATUSES[method % 4], (1.0,))
            for dataset in range(n_datasets)
            for method in range(n_methods)
        )
    )


def tables_and_page(results: list[Result]) -> None:
    page_context(results)
    metrics_record(results)
    curve_rows(results)


@pytest.mark.parametrize(
    ("small_shape", "large_shape"), [((40, 4), (80, 4)), ((1, 160), (1, 320))], ids=["datasets", "methods"]
)
def test_the_report_takes_steps_in_proportion_to_the_results(
    small_shape: tuple[int, int], large_shape: tuple[int, int]
) -> None:
    small, large = synthetic(*small_shape), synthetic(*large_shape)
    assert len(large) == 2 * len(small)
    assert steps(lambda: tables_and_page(large)) < 2.2 * steps(lambda: tables_and_page(small))


def test_tracking_takes_steps_in_proportion_to_the_results(tmp_path: Path) -> None:
    files = []
    for method in range(120):
        path = tmp_path / f"method_{method}.json"
        write_json(path, seal(make_result("wine", f"method_{method}", STATUSES[method % 4], (1.0,))))
        files.append((path, []))
    collect_runs(files[:1])
    assert steps(lambda: collect_runs(files)) < 2.2 * steps(lambda: collect_runs(files[:60]))
