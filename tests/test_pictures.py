"""The picture of each method is current, and the page on methods shows it."""

import re

import draw_methods
import pytest

from privsvm.registry import implementations


@pytest.mark.parametrize("name", implementations())
def test_the_picture_of_a_method_is_current(name):
    """Words and numbers are compared; lines may differ by processor."""
    text = (draw_methods.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert len(text) < 60_000
    words = [re.findall(r"<(?:text|title)[^>]*>([^<]*)<", picture) for picture in (text, draw_methods.draw(name))]
    assert words[0] == words[1], "run make docs"
    assert f'aria-label="{name}: ' in text


def test_every_method_has_a_picture():
    assert draw_methods.PAGE.read_text() == draw_methods.page(), "run make docs"
    assert {path.stem for path in draw_methods.FOLDER.glob("*.svg")} == set(implementations())
