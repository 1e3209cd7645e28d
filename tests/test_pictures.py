"""The picture of each method is what the method draws now, and stands on its pages."""

import re

import draw_methods
import pytest

from privsvm.pipeline.methods import implementations
from tests.blocks import REPOSITORY


def numbers_apart(text):
    """A picture's text without its numbers, and these."""
    number = r"(?<![\w#])-?\d+\.?\d*(?:e-?\d+)?"
    return re.sub(number, "0", text), [float(found) for found in re.findall(number, text)]


@pytest.mark.parametrize("name", implementations())
def test_the_picture_of_a_method_is_current(name):
    path = draw_methods.FOLDER / f"{name}.svg"
    assert path.stat().st_size < 60_000
    (words, kept), (drawn, found) = (numbers_apart(text) for text in (path.read_text(), draw_methods.draw(name)))
    assert words == drawn, "run make docs"
    # Other processors round elsewhere: two pixels at most.
    assert max(abs(a - b) for a, b in zip(kept, found, strict=True)) <= 2, "run make docs"
    assert f'aria-label="{name}: ' in path.read_text()


def test_every_method_has_a_picture_on_its_pages():
    assert draw_methods.PAGE.read_text() == draw_methods.page(), "run make docs"
    assert {path.stem for path in draw_methods.FOLDER.glob("*.svg")} == set(implementations())
    shown = [path.stem for path in sorted((REPOSITORY / "docs/proofs").glob("*.md")) if path.stem in implementations()]
    assert len(shown) >= 16
    for name in shown:
        page = (REPOSITORY / f"docs/proofs/{name}.md").read_text(encoding="utf-8")
        assert draw_methods.picture(name, "../") in page, f"{name}.md: shows no picture of the method"
