"""One file per method, named as its paper names it; a class is imported when it is first used."""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path
from typing import Any

# A public class that inherits from another one, or the class that the benchmark trains.
_CLASS = re.compile(r"^(?:ESTIMATOR = |class (?=[^_]\w*\())(\w+)", re.MULTILINE)


@functools.cache
def _modules() -> dict[str, str]:
    """Find the module of every class in the text of the files, since importing all of them takes seconds."""
    folder = Path(__file__).parent
    files = {path.stem: path for path in sorted(folder.glob("[!_]*.py"))}
    files |= {path.parent.name: path for path in folder.glob("*/__init__.py")}
    modules = {name: stem for stem, path in files.items() for name in _CLASS.findall(path.read_text(encoding="utf-8"))}
    return dict(sorted(modules.items()))


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(_modules())
    if name.startswith("_") or name not in _modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_modules()[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules()})
