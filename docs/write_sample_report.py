"""Write docs/sample-report.html, its first screen docs/images/report.png, and the rows of README's picture from a run.

Run ``python docs/write_sample_report.py``, then ``make docs``, after ``make run`` with the params.yaml of the
repository. The sample has neither times nor provenance, which differ from run to run. The picture needs Chromium.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import draw_curves

REPOSITORY = Path(__file__).resolve().parents[1]
REPORT = REPOSITORY / "reports/index.html"
SAMPLE = REPOSITORY / "docs/sample-report.html"
PICTURE = REPOSITORY / "docs/images/report.png"
WITHOUT = ("timings", "provenance")
NOTE = """<p class="notice"><strong>This is a sample.</strong> It is the first page of the report that
<code>make run</code> writes with the settings of the repository. Links to other pages are left out.</p>
"""


def sample(page):
    """Reduce a report's first page to the parts that can be read alone."""
    for name in WITHOUT:
        page = re.sub(rf'<section id="{name}">.*?</section>\n', "", page, flags=re.DOTALL)
        page = re.sub(rf' *<li><a href="#{name}">.*?</li>\n', "", page)
    page = re.sub(r' <span class="files">.*?</span>', "", page)
    page = re.sub(r' href="(pages|reproduce)/[^"]*"', "", page)
    return page.replace("<main>\n", f"<main>\n{NOTE}", 1)


def screenshot(page, picture):
    """Take a picture of a page's first screen."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print(f"{picture.name} stays as it is: there is no Chromium here")
        return
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,860"]
        command = [browser, *options, f"--user-data-dir={profile}", f"--screenshot={picture}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    SAMPLE.write_text(sample(REPORT.read_text(encoding="utf-8")), encoding="utf-8")
    screenshot(SAMPLE, PICTURE)
    draw_curves.take_rows()
