"""Files of the repository: programs that are in no package, and copies."""

import importlib.util
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]


def list_files() -> list[str]:
    """List the present files of the repository that Git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in names if (REPOSITORY / name).is_file()]


def copy_files(names: Iterable[str], folder: Path) -> None:
    """Copy files of the repository into a folder; those that are equal keep their times."""
    for name in names:
        source, target = REPOSITORY / name, folder / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def load_script(name: str) -> Any:
    """Load a program by its path in the repository."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, REPOSITORY / name)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
