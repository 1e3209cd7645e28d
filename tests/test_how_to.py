"""The how-to pages that answer questions of other projects say what their code gives."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from tests.blocks import blocks_run_by
from tests.scripts import REPOSITORY


@pytest.fixture(scope="module")
def names():
    """Run the pages' blocks; return the names that each leaves, by page."""
    X, kinds = load_wine(return_X_y=True)
    left = {block.page: {"X": X, "y": np.where(kinds == 0, "no", "yes")} for block in blocks_run_by(__file__)}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        for block in blocks_run_by(__file__):
            exec(compile(block.text, block.page, "exec"), left[block.page])
    return left


def test_an_attack_report_states_the_guarantee(names):
    stated = names["docs/attack-report.md"]["stated"]
    assert (stated["status"], stated["neighbours"], stated["delta"]) == ("proved", "add_remove", 1e-5)
    assert 0.999 < stated["epsilon"] <= 1
    assert 0.5 < stated["guess at most"] < 0.6
    assert 0.01 < stated["true positives at 1 % false ones at most"] < 0.03


def test_raw_results_are_by_split_and_of_all_entries(names):
    accuracy = names["docs/raw-results.md"]["accuracy"]
    assert {"recommended", "adassp", "diffprivlib_forest", "dp_ebm"} <= set(accuracy.columns)
    assert len(accuracy) >= 40
    ranks = accuracy.rank(axis=1, ascending=False).mean()
    assert ranks.idxmin().startswith("recommended")
    page = (REPOSITORY / "docs/raw-results.md").read_text()
    columns = (REPOSITORY / "reports/utility/leaderboard.csv").read_text().partition("\n")[0]
    assert columns.replace(",", ", ") in page


@pytest.mark.parametrize("page", ["attack-report", "registry", "raw-results"])
def test_the_page_fits_a_screen(page):
    assert len((REPOSITORY / f"docs/{page}.md").read_text().splitlines()) <= 40
