"""Headless browser for tests of pages, which are skipped without one."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waits import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")

needs_browser = pytest.mark.skipif(
    not (CHROMIUM and CHROMEDRIVER),
    reason="Chromium or its driver is missing; install the Debian packages chromium and chromium-driver",
)


@contextlib.contextmanager
def headless_browser(profile: Path, *logs: str) -> Iterator[Any]:
    """Start a browser with its profile in a folder, and log its console."""
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", dict.fromkeys(("browser", *logs), "ALL"))
    flags = "headless=new no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
    flags += " disable-component-update disable-dev-shm-usage disable-sync window-size=1500,1000"
    for flag in (*flags.split(), f"user-data-dir={profile}"):
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
    try:
        driver.command_executor.client_config.timeout = PATIENCE
        driver.set_page_load_timeout(PATIENCE)
        driver.set_script_timeout(PATIENCE)
        yield driver
    finally:
        driver.quit()
