"""The templates of the reproductions' pages."""

from __future__ import annotations

import functools
from pathlib import Path

import jinja2

import privsvm_bench
from privsvm_bench.reporting.text import short_number

_TEMPLATES = Path(__file__).with_name("templates")
_REPORT_TEMPLATES = Path(privsvm_bench.__path__[0]) / "reporting" / "templates"


@functools.cache
def environment() -> jinja2.Environment:
    """Templates of the pages."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_TEMPLATES, _REPORT_TEMPLATES]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["short"] = functools.partial(short_number, digits=4)
    return environment
