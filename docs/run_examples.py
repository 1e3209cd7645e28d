"""Run the examples of the gallery and write their pages: text, code, output and pictures."""

import ast
import contextlib
import io
import os
import runpy
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from rendering import render

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "examples"


@dataclass(frozen=True)
class Shown:
    """One example after its run."""

    title: str  # First line of its docstring; `words` are the rest.
    words: str
    code: str  # Code after the docstring.
    printed: str  # Its output.
    pictures: list[bytes]  # As SVG.


def examples():
    """List the scripts of the gallery."""
    return sorted(FOLDER.glob("*.py"))


def title_of(path):
    """Read the title of an example from its docstring."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).partition("\n")[0].removesuffix(".")


def run(path):
    """Run the script of an example, with pictures instead of windows."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    text = path.read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0]
    words = ast.get_docstring(ast.parse(text)).partition("\n")[2].strip()
    printed, here = io.StringIO(), Path.cwd()
    plt.close("all")
    sys.path.insert(0, str(FOLDER))
    os.chdir(REPOSITORY)
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")
            # matplotlib warns that `show` has no window.
            warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
            runpy.run_path(str(path), run_name="__main__")
        pictures = [_picture(plt.figure(number)) for number in plt.get_fignums()]
    finally:
        os.chdir(here)
        sys.path.remove(str(FOLDER))
        sys.modules.pop(path.stem, None)
        plt.close("all")
    code = "\n".join(text.splitlines()[docstring.end_lineno :]).strip()
    return Shown(title_of(path), words, code, printed.getvalue().rstrip(), pictures)


def _picture(figure):
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def page(path, shown, words):
    """Write the page of an example, as Markdown beside its pictures; `words` have links as on the site."""
    return render("example", path=path, shown=shown, words=words)
