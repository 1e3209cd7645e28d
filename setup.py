"""Write the stubs of the packages that import their names lazily into the wheel; pyproject.toml says all else."""

import importlib
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# Both packages import the standard library alone: an isolated build has nothing else.
sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))


def stubs():
    """Return the stubs by their paths in the wheel; type checkers read names that are imported on first use."""
    library, methods = (importlib.import_module(name) for name in ("privsvm", "privsvm.methods"))
    own_modules = {name: f"privsvm.methods.{module}" for name, module in methods._modules().items()}

    def text(modules, *more):
        listed = sorted(modules.items(), key=lambda item: item[::-1])
        return "\n".join([*(f"from {module} import {name} as {name}" for name, module in listed), *more, ""])

    return {
        "privsvm/__init__.pyi": text(own_modules | library._MODULES, "", "__version__: str"),
        "privsvm/methods/__init__.pyi": text(own_modules),
    }


class BuildWithStubs(build_py):
    """Write the stubs beside the copied modules; an editable installation has none to go stale."""

    def run(self):
        """Copy the modules, then write the stubs."""
        super().run()
        if not self.editable_mode:
            for name, text in stubs().items():
                Path(self.build_lib, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildWithStubs})
