"""Programs of the repository that are in no package."""

import importlib.util
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]


def load_script(name: str) -> Any:
    """Load a program by its path in the repository."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, REPOSITORY / name)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
