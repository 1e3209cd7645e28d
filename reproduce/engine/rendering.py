"""The templates of the reproductions' pages."""

from __future__ import annotations

import functools
import math
import re
from pathlib import Path

import jinja2

from privsvm_bench.reporting.page import TEMPLATES, new_environment
from privsvm_bench.reporting.text import short_number


def anchor(name: str) -> str:
    """Return the name of a row on the page."""
    return "n-" + re.sub(r"[^A-Za-z0-9.=]+", "-", name)


def write_duration(seconds: float | None) -> str:
    """Say how long a rerun takes."""
    if seconds is None:
        return "not timed"
    if seconds < 1.0:
        return "under 1 s"
    digits = math.floor(math.log10(seconds))
    return f"about {round(seconds, -digits + 1 if digits else 0):g} s"


@functools.cache
def environment() -> jinja2.Environment:
    """Templates of the pages."""
    environment = new_environment(Path(__file__).with_name("templates"), TEMPLATES)
    short = functools.partial(short_number, digits=4)
    environment.filters.update(anchor=anchor, duration=write_duration, short=short)
    return environment
