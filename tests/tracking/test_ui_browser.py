"""The page behind the link that `make ui` prints."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from servers import free_port, running_server
from tests.browser import headless_browser, needs_browser
from tests.scripts import REPOSITORY
from tests.waits import PATIENCE

CURVES = {
    "svm": "none: svm",
    "majority": "none: majority",
    "pmsvm_wp": "seeded: pmsvm_wp",
    "pmsvm_wp_as_published": "claimed: pmsvm_wp_as_published",
}
pytestmark = [pytest.mark.browser, needs_browser]


@contextlib.contextmanager
def running_ui(folder: Path) -> Iterator[dict[str, str]]:
    """Run stages/ui.py in `folder` until its page answers; yields its printed links by name."""
    port = free_port()
    log = folder / "ui.log"
    command = [sys.executable, str(REPOSITORY / "stages" / "ui.py"), "--port", str(port)]
    with running_server(command, port, log):
        yield dict(re.findall(r"^(\S+): (http\S+)$", log.read_text(), flags=re.MULTILINE))


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """A fresh headless browser."""
    with headless_browser(tmp_path / "browser") as driver:
        yield driver


def elements(parent: Any, selector: str) -> list[Any]:
    """Elements below `parent` that match a CSS selector."""
    return list(parent.find_elements("css selector", selector))


def chart_cards(browser: Any) -> dict[str, Any]:
    """The drawn chart cards by their title."""
    cards = elements(browser, "[data-testid='experiment-view-compare-runs-card']")
    return {card.text.splitlines()[0]: card for card in cards if card.text}


def visible_lines(card: Any) -> list[list[float]]:
    """The height on the screen of every point of every drawn line with markers."""
    lines = []
    for trace in elements(card, ".plotly .trace.scatter"):
        points = [
            point for point in elements(trace, ".points path") if "fill-opacity: 1" in point.get_attribute("style")
        ]
        if points:
            lines.append([point.rect["y"] for point in points])
    return lines


def test_the_link_opens_on_charts_of_the_current_runs(
    tmp_path: Path, uri: str, write_result: Any, wine_results: Any, browser: Any
) -> None:
    from mlflow.tracking import MlflowClient
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    from privsvm_bench.tracking.mlflow_log import log_results

    # An older run of other parameters must not be drawn.
    log_results([write_result("pmsvm_wp", level=0.6, parameters={"C": 50.0})], uri, "older")
    write_result("pmsvm_wp", level=0.93)
    params = yaml.safe_load((REPOSITORY / ".test/params.yaml").read_text())
    params["methods"] = {name: {"implementation": name} for name in CURVES}
    params["methods"]["pmsvm_wp_as_published"]["allow_unsound"] = True
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    with running_ui(tmp_path) as links:
        assert list(links) == ["demo/wine"]
        printed = (tmp_path / "ui.log").read_text()
        assert printed.index("http") < printed.index("clear the filter `tags.current = 'yes'`")
        # It serves the files of the runs, too.
        client = MlflowClient(links["demo/wine"].partition("/#")[0])
        experiment = client.get_experiment_by_name("demo/wine").experiment_id
        for run in client.search_runs([experiment]):
            has_curve = "current" in run.data.tags
            files = [file.path for file in client.list_artifacts(run.info.run_id)]
            assert files == ["guarantees.json"] * has_curve
        browser.get(links["demo/wine"])

        def drawn(*titles: str) -> Any:
            cards = chart_cards(browser)
            complete = set(titles) <= set(cards) and all(len(visible_lines(cards[title])) == 4 for title in titles)
            return cards if complete else None

        wait = WebDriverWait(browser, PATIENCE, ignored_exceptions=[StaleElementReferenceException])
        screenshot = Path(os.environ.get("PRIVSVM_SCREENSHOT") or tmp_path / "mlflow_ui.png")
        try:
            accuracy = wait.until(lambda _: drawn("accuracy"))["accuracy"]
        finally:
            browser.save_screenshot(str(screenshot))
        legend = re.findall(r"^(.+) \(accuracy\)$", accuracy.text, flags=re.MULTILINE)
        assert sorted(legend) == sorted(CURVES.values())
        # Heights grow downwards: both reference lines are level, svm on top, majority at the bottom.
        drawn_lines = dict(zip(legend, visible_lines(accuracy), strict=True))
        lines = {method: drawn_lines[curve] for method, curve in CURVES.items()}
        assert {len(line) for line in lines.values()} == {8}
        assert len(set(lines["svm"])) == len(set(lines["majority"])) == 1
        for method in ("pmsvm_wp", "pmsvm_wp_as_published"):
            assert lines[method] == sorted(lines[method], reverse=True)
            assert lines["svm"][0] < min(lines[method]) < max(lines[method]) < lines["majority"][0]
        assert "4 matching runs" in " ".join(browser.find_element("tag name", "body").text.split())

        # Three clicks from here to two settings side by side.
        for _ in range(2):
            boxes = elements(
                browser, "input[type='checkbox'][aria-label='Press Space to toggle row selection (unchecked)']"
            )
            ticked = len(boxes)
            boxes[0].click()
            wait.until(
                lambda _, before=ticked: (
                    len(elements(browser, "input[aria-label='Press Space to toggle row selection (unchecked)']"))
                    < before
                )
            )
        wait.until(lambda _: elements(browser, "[data-testid='runs-compare-button']:not([disabled])"))
        elements(browser, "[data-testid='runs-compare-button']")[0].click()
        page = wait.until(
            lambda _: "Comparing 2 Runs" in (text := browser.find_element("tag name", "body").text) and text
        )
        assert sum(name in page for name in CURVES.values()) == 2
