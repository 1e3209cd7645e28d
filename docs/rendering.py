"""Templates of Markdown pages, in docs/templates."""

import functools
from pathlib import Path

import jinja2


@functools.cache
def _environment():
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )  # nosec B701: Markdown
    environment.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return environment


def render(template, **values):
    """Write a page, or a section of one."""
    return _environment().get_template(f"{template}.md.jinja").render(values)
