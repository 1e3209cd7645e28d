"""Pages of papers in a real browser."""

import pytest

from privsvm_bench.evidence import Sources
from reproduce.cell import MODULES, REPORTS, draws_of, judge_committed
from reproduce.engine.paper_page import paper_page
from tests.browser import headless_browser, needs_browser


@pytest.mark.browser
@needs_browser
def test_no_statement_lies_behind_its_command(tmp_path):
    with headless_browser(tmp_path / "profile") as driver:
        for name in MODULES:
            page = tmp_path / f"{name}.html"
            page.write_text(paper_page(judge_committed(name), draws_of([name]), Sources(REPORTS / "distributions")))
            for width in (900, 1400):
                screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
                driver.get(page.as_uri())
                box = "document.querySelector('[aria-label=Statements]')"
                hidden = driver.execute_script(f"return {box}.scrollWidth - {box}.clientWidth")
                assert hidden <= 0, (name, width)
