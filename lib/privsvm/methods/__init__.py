"""One file per method, named as its paper names it; a class is imported when it is first used."""

from __future__ import annotations

import importlib
from typing import Any


def _modules() -> dict[str, str]:
    # Imported by name: a line for a new method must not rerun the jobs of all others, which depend on this file.
    modules: dict[str, str] = importlib.import_module("privsvm.methods._names").MODULES
    return modules


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(_modules())
    if name.startswith("_") or name not in _modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_modules()[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules()})
