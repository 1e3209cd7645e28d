"""The page in a real browser: charts are drawn, nothing is logged, nothing is requested."""

import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import GRID, METHODS, WORTHS, attack_of, make_attack, make_condensed_attack
from tests.browser import headless_browser, needs_browser
from tests.waits import wait_until

from privsvm.privacy.statement import theorem_holds
from privsvm_bench.records import Prepared, read_by_dataset, read_timings
from privsvm_bench.reporting.page import ReportRecords, report_files
from privsvm_bench.reporting.results import read_results

pytestmark = [pytest.mark.browser, needs_browser]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One for all pages: its start takes as long as most of them."""
    with headless_browser(tmp_path_factory.mktemp("profile"), "performance") as driver:
        yield driver


@pytest.fixture
def open_page(tmp_path: Path, browser: Any) -> Iterator[Callable[..., Any]]:
    def start(files: dict[str, str], width: int = 1400, name: str = "index.html", height: int = 1000) -> Any:
        path = tmp_path / name
        for file, text in files.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(text, encoding="utf-8")
        # Discard the logs of the browser's start page and of earlier tests.
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get_log("performance")
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        browser.get(path.as_uri())
        wait_until(lambda: browser.execute_script("return document.documentElement.dataset.ready") == "true")
        return browser

    yield start
    browser.get("about:blank")


def draw(driver: Any, selector: str = "[data-metric] svg", place: int = 0) -> dict[str, Any]:
    """Describe a visible chart: curves by name, with dashes, marks and tooltips of their points."""
    return driver.execute_script(
        """const charts = [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility());
        const chart = charts[arguments[1]];
        const curves = {};
        for (const group of chart.querySelectorAll("g:has(> title):not(.more)")) {
          // Beside the curve there are its name and mark.
          const [name, path] = [group.querySelector("title").textContent, group.querySelector(":scope > path")];
          const marks = group.querySelector("g:has(> use)")?.style;
          curves[name] ??= {dashed: path.style.strokeDasharray, hollow: marks?.fillOpacity === "0", fill: marks?.fill,
            points: [...group.querySelectorAll("use > title")].map((title) => title.textContent)};
        }
        const inner = chart.getBoundingClientRect();
        const bands = [...chart.querySelectorAll(".band")].map((one) => getComputedStyle(one).display);
        return {curves, bands: bands.filter((display) => display !== "none").length,
          texts: [...chart.querySelectorAll("text")].map((text) => text.textContent), label: chart.ariaLabel,
          cut: [...chart.querySelectorAll("text")].map((text) => text.getBoundingClientRect())
            .filter((box) => box.left < inner.left || box.right > inner.right || box.bottom > inner.bottom).length};""",
        selector,
        place,
    )


def choose(driver: Any, title: str) -> None:
    """Choose a metric."""
    driver.execute_script(
        """const select = document.querySelector("[name=metric]");
        select.selectedIndex = [...select.options].findIndex((one) => one.text === arguments[0]);
        select.dispatchEvent(new Event("change"));""",
        title,
    )


def check_quiet(driver: Any) -> None:
    """No error in the console, no request but for the file itself, and no scrolling sideways of the page."""
    # Tables and large charts scroll inside their box.
    assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    requested = set()
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            requested.add(message["params"]["request"]["url"])
    loud = {url for url in requested if not url.startswith(("file://", "data:", "blob:", "chrome://", "about:"))}
    assert loud == set()


def page_of(files: dict[str, list[str]], attacks: tuple[dict[str, Any], ...] = ()) -> dict[str, str]:
    return report_files(
        read_results(files["results"]),
        records=ReportRecords(
            attacks=[attack_of(attack) for attack in attacks],
            timings=read_timings(files["timings"]),
            prepared=read_by_dataset(Prepared, files["prepared"]),
        ),
        experiment="default",
    )


def test_wide_tables_show_a_shadow_and_fit_a_desktop(write_experiment: Any, open_page: Any) -> None:
    page = page_of(write_experiment(("wine",)))
    measure = """const box = document.querySelector("table.scores").parentElement;
        const nav = document.querySelector("nav");
        return [box.scrollWidth > box.clientWidth, box.parentElement.classList.contains("more-right"),
          nav.offsetHeight - nav.clientHeight <= 1 && nav.offsetWidth - nav.clientWidth <= 1];"""
    assert open_page(page).execute_script(measure) == [False, False, True]
    phone = open_page(page, 420)
    assert phone.execute_script(measure) == [True, True, True]
    phone.execute_script("document.querySelector('table.scores').parentElement.scrollLeft = 9999")
    wait_until(lambda: phone.execute_script(measure)[1] is False)
    assert phone.execute_script("return document.querySelector('.frame.more-left table.scores') !== null")


@pytest.mark.parametrize("width", [1400, 420])
def test_charts_are_drawn(write_experiment: Any, open_page: Any, width: int) -> None:
    driver = open_page(page_of(write_experiment(("wine",))), width)
    chart = draw(driver)
    assert chart["cut"] == 0
    assert chart["bands"] == sum(status != "none" for status in METHODS.values())
    assert chart["curves"].keys() == {f"{method} — {WORTHS.get(method, status)}" for method, status in METHODS.items()}
    for name, curve in chart["curves"].items():
        method = name.partition(" — ")[0]
        status = METHODS[method]
        assert (curve["dashed"] not in ("", "none")) == (not theorem_holds(status))
        assert len(curve["points"]) == (0 if status == "none" else len(GRID))
        assert all(point.startswith(f"{name}: ε = ") and " ± " in point for point in curve["points"])
        # Claims are crossed boxes, seeded proofs are pale.
        assert curve["hollow"] == (status == "claimed")
        assert (curve["fill"] == "var(--panel)") == (status == "seeded")
        # The end of each curve has its name.
        assert method + (f", {WORTHS.get(method, status)}" if status == "claimed" else "") in chart["texts"]
    driver.execute_script("document.getElementById('bands').click()")
    assert draw(driver)["bands"] == 0
    # A name under the mouse makes other curves faint.
    faint = """const chart = document.querySelector("[data-metric] svg");
        const groups = [...chart.querySelectorAll("g:has(> title)")];
        const target = groups.find((one) => one.querySelector("text")?.textContent === arguments[0]) ?? chart;
        target.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
        return groups.filter((one) => !one.matches(".faint")).map((one) => one.firstChild.textContent);"""
    assert driver.execute_script(faint, "pmsvm_wp") == ["pmsvm_wp — proved"] * 3
    assert len(driver.execute_script(faint, None)) == 3 * len(METHODS)
    check_quiet(driver)


@pytest.mark.parametrize("width", [1400, 420])
def test_an_attack_is_drawn(write_experiment: Any, open_page: Any, width: int) -> None:
    attacks = (make_attack("wine", "ppsvm_gaussian"), make_attack("wine", "ppsvm_linear", (1e-14,) * 20))
    driver = open_page(page_of(write_experiment(), attacks), width)
    few_entities, many_entities = (draw(driver, "#attacks svg", place) for place in (0, 1))
    assert few_entities["curves"].keys() == {"entity-1 (6 features)", "entity-2 (7 features)"}
    assert "below: recovered " in few_entities["texts"]
    points = few_entities["curves"]["entity-1 (6 features)"]["points"]
    assert points[2].startswith("entity-1: 6 known rows, 6 needed; largest error 2e-14; 100 % of the other rows")
    assert len(many_entities["curves"]) == 20
    assert few_entities["cut"] == many_entities["cut"] == 0
    check_quiet(driver)


@pytest.mark.parametrize("width", [1400, 420])
def test_what_condensed_rows_give_away_fits(write_experiment: Any, open_page: Any, width: int) -> None:
    condensed = [("ci_svm", "ci"), ("fcm_svm", "fcm"), (None, "ci")]
    attacks = tuple(make_condensed_attack("breast_cancer", method, kind, lost_classes=1) for method, kind in condensed)
    driver = open_page(page_of(write_experiment(("wine",)), (make_attack("wine", "ppsvm_linear"), *attacks)), width)
    cut = driver.execute_script(
        """const box = document.querySelector("table.condensed").parentElement;
        const inside = box.getBoundingClientRect();
        box.scrollLeft = 9999;
        const heads = [...box.querySelectorAll("tbody th")].map((head) => head.getBoundingClientRect());
        return [box.scrollWidth > box.clientWidth, heads.map((head) => Math.abs(head.left - inside.left) > 2),
          heads.map((head) => head.width > inside.width / 2)];"""
    )
    # On a phone the table scrolls in its box; the row's name stays in sight.
    assert cut == [width < 500, [False] * 3, [False] * 3]
    check_quiet(driver)


def test_metric_selector_changes_charts_and_tables(write_experiment: Any, open_page: Any) -> None:
    def distinct(record: dict[str, Any]) -> dict[str, Any]:
        record["summary"]["mcc"]["mean"] = [0.25] * len(record["epsilons"])
        return record

    driver = open_page(page_of(write_experiment(("wine",), change=distinct)))
    title = "Matthews correlation (MCC)"
    choose(driver, title)
    assert draw(driver)["label"] == f"{title} of all methods against epsilon on wine"
    caption, *cells = driver.execute_script(
        """return [...document.querySelectorAll("table.scores caption, table.scores td > span")]
            .filter((one) => one.checkVisibility()).map((one) => one.textContent);"""
    )
    assert caption.startswith(title)
    assert all(cell.startswith("0.250 ± ") for cell in cells)
    check_quiet(driver)


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (400, 800)])
def test_the_first_screen_answers(write_experiment: Any, open_page: Any, width: int, height: int) -> None:
    driver = open_page(page_of(write_experiment()), width, height=height)
    inside = """const inside = (element) => {
          const box = element.getBoundingClientRect();
          return box.width > 0 && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
        };
        const drawn = (one) => one.getBoundingClientRect().height > 0;
        const shown = (selector) => [...document.querySelectorAll(selector)].filter(drawn);
        const [answer] = shown(".answer span"), [chart] = shown(".first-chart svg"), [ranks] = shown(".ranked");
        const [cursor] = shown(".first-chart .cursor");
        return {size: [innerWidth, innerHeight], text: answer.textContent, charts: shown("#summary svg").length,
          inside: [answer, chart, ...document.querySelectorAll(".epsilons label")].map(inside),
          ranked: innerWidth < 560 || inside(ranks),
          cursor: cursor.getBoundingClientRect().left,
          rows: shown(".verdicts caption").map((one) => one.textContent)};"""
    first = driver.execute_script(inside)
    assert first["size"] == [width, height]
    assert all(first["inside"])
    assert first["ranked"]
    assert first["charts"] == 1
    assert re.match(r"At ε.=.1, \w+ has the best mean rank .* first on [123] of 3 datasets: ", first["text"])
    # Sentence, chart and table follow the selector, here by the keyboard.
    from selenium.webdriver.common.keys import Keys

    driver.find_element("css selector", "[name=epsilon]:checked").send_keys(Keys.ARROW_RIGHT)
    then = driver.execute_script(inside)
    assert re.match(r"At ε.=.2, ", then["text"])
    assert then["cursor"] > first["cursor"]
    assert [[row[:27] for row in rows] for rows in (first["rows"], then["rows"])] == [
        ["Proved methods over all 3 d", f"Best proved method at ε = {epsilon}"] for epsilon in (1, 2)
    ]
    check_quiet(driver)


def test_a_chart_opens_on_five_methods(write_experiment: Any, open_page: Any) -> None:
    driver = open_page(page_of(write_experiment()))
    shown = """const visible = (selector) =>
          [...document.querySelectorAll(selector)].filter((one) => one.getBoundingClientRect().width > 0);
        const names = visible("#summary svg g:has(> title)").map((one) => one.firstChild.textContent);
        return [new Set(names).size, visible("#summary .chips li").length];"""
    assert driver.execute_script(shown) == [5, 0]
    driver.execute_script("document.getElementById('all-methods').click()")
    # All private methods, and the two references.
    assert driver.execute_script(shown) == [len(METHODS)] * 2
    check_quiet(driver)


COLLISIONS = """
    // Texts of one picture or one legend; hidden ones have no size.
    const found = [];
    for (const picture of document.querySelectorAll("svg, .chips, figcaption, .epsilons")) {
      const boxes = [...picture.querySelectorAll(picture.matches("svg") ? "text" : "li, label, .files")]
        .map((one) => [one.textContent, one.getBoundingClientRect()]).filter(([, box]) => box.width * box.height > 0);
      const frame = picture.getBoundingClientRect();
      boxes.forEach(([text, box], index) => {
        if (box.left < frame.left - 1 || box.right > frame.right + 1) found.push(`${text} is cut`);
        for (const [other, near] of boxes.slice(index + 1)) {
          const across = Math.min(box.right, near.right) - Math.max(box.left, near.left);
          const down = Math.min(box.bottom, near.bottom) - Math.max(box.top, near.top);
          if (across > 1.5 && down > 1.5) found.push(`${text} on ${other}`);
        }
      });
    }
    return found;"""


CARDS = """
    return [...document.querySelectorAll("table.stack")].filter((one) => one.checkVisibility()).map((one) =>
      one.parentElement.scrollWidth <= one.parentElement.clientWidth && [...one.querySelectorAll("tbody td")]
        .every((cell) => getComputedStyle(cell, "::before").content.length > 4));"""


@pytest.mark.parametrize("name", ["index.html", "pages/wine.html"])
def test_no_labels_collide(write_experiment: Any, open_page: Any, name: str) -> None:
    files = page_of(write_experiment(("digits", "wine")), (make_attack("wine", "ppsvm"),))
    for width in (1400, 400):
        driver = open_page(files, width, name)
        assert driver.execute_script(COLLISIONS) == []
        driver.execute_script("document.getElementById('all-methods').click()")
        assert driver.execute_script(COLLISIONS) == []
        assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    # On the phone each row of a table is a card, and each cell has its column's name.
    cards = driver.execute_script(CARDS)
    assert len(cards) >= 2
    assert all(cards)


def axe_script() -> Path | None:
    """Return the script of axe-core, named by PRIVSVM_AXE or from the package axe-core-python."""
    if named := os.environ.get("PRIVSVM_AXE"):
        return Path(named)
    package = importlib.util.find_spec("axe_core_python")
    return Path(package.origin).with_name("axe.min.js") if package and package.origin else None


AXE = axe_script()


@pytest.mark.skipif(AXE is None, reason="axe-core-python is not installed, and PRIVSVM_AXE names no axe.min.js")
@pytest.mark.parametrize("name", ["index.html", "pages/wine.html"])
def test_axe_finds_nothing(write_experiment: Any, open_page: Any, name: str) -> None:
    attacks = (make_attack("wine", "ppsvm_gaussian"), make_condensed_attack("wine", "ci_svm"))
    driver = open_page(page_of(write_experiment(("digits", "wine")), attacks), name=name)
    driver.execute_script(AXE.read_text(encoding="utf-8"))
    report = driver.execute_async_script("axe.run().then(arguments[0])")
    assert [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in report["violations"]] == []


@pytest.mark.long
def test_the_overview_of_many_datasets_leads_to_their_pages(write_experiment: Any, open_page: Any) -> None:
    methods = {f"method_{index:02d}": ("proved", "claimed", "none", "proved")[index % 4] for index in range(20)}
    files = write_experiment(tuple(f"dataset_{index:02d}" for index in range(12)), methods)
    driver = open_page(page_of(files))
    assert driver.execute_script("return document.querySelectorAll('a.dataset svg').length") == 12
    driver.execute_script("document.querySelector('#dataset-10').click()")
    wait_until(lambda: "dataset_10.html" in driver.current_url)
    assert len(draw(driver)["curves"]) == 20
    check_quiet(driver)
